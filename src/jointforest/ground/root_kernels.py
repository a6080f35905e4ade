"""Kernel: one step of a bracketed search for the zero of a function."""

from __future__ import annotations

from .compile import kernel


@kernel
def chandrupatla(a, fa, b, fb, c, fc):
    """Fraction of the way from a to b at which to look next: inverse quadratic where that is safe, else the middle.

    a is the newest end of the bracket, b the other one, c the point that was an end last; fa, fb and fc are the
    function's values there.

    T. R. Chandrupatla, "A new hybrid quadratic/bisection algorithm for finding the zero of a nonlinear function
    without using derivatives", Advances in Engineering Software 28 (1997).
    """
    xi, phi = (a - b) / (c - b), (fa - fb) / (fc - fb)
    if phi * phi < xi and (1.0 - phi) * (1.0 - phi) < 1.0 - xi:
        return fa / (fb - fa) * fc / (fb - fc) + (c - a) / (b - a) * fa / (fc - fa) * fb / (fc - fb)
    return 0.5
