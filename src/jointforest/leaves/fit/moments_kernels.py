"""Kernels that give a piecewise-linear CDF the mean and the variance of the values that it stands for."""

from __future__ import annotations

from ...ground.compile import kernel

_ROUNDS = 12
"""A round changes a mass to a half at least and to its double at most."""


@kernel
def keep_moments(knot_x, knot_p, span, mean, spread, variances, step, scratch):
    """Change heights of knots so that the mean is exact and the variance between two ``variances``; success.

    ``span`` has the first knot to change, the last, and the number of knots: masses outside are kept. Without success
    the heights are as they were. ``spread`` is a unit of length, of about the standard deviation.
    """
    first, end, size = span
    u, q, mass = scratch
    for i in range(size - 1):
        mass[i] = knot_p[i + 1] - knot_p[i]
        a, b = (knot_x[i] - mean) / spread, (knot_x[i + 1] - mean) / spread
        # of a grid, cells count at their middle
        u[i], q[i] = 0.5 * (a + b), (a * a + a * b + b * b) / 3.0 - (step / spread) ** 2 / 12.0
    if not _tilt(u, q, mass, span, variances[0] / spread**2, variances[1] / spread**2):
        return False
    for i in range(first, end):
        knot_p[i + 1] = min(knot_p[i] + mass[i], 1.0)
    for i in range(end + 1, size):
        knot_p[i] = max(knot_p[i], knot_p[i - 1])
    knot_p[size - 1] = 1.0
    return True


@kernel
def _tilt(u, q, mass, span, least, most):
    """Multiply masses by 1 + a u + b q until their mean of u is 0 and that of q from least to most; success.

    If no factor is negative one round is exact: two linear equations. b is 0 until the mean of q is off.
    """
    first, end, size = span
    second = False
    for _ in range(_ROUNDS):
        mean_u, mean_q = 0.0, 0.0
        for i in range(size - 1):
            mean_u += mass[i] * u[i]
            mean_q += mass[i] * q[i]
        off = min(max(mean_q, least), most) - mean_q
        if abs(mean_u) <= 1e-13:
            if abs(off) <= 1e-9:
                return True
            second = True
        total, near_u, near_q = _near_means(u, q, mass, first, end)
        uu, uq, qq = 0.0, 0.0, 0.0
        for i in range(first, end):
            du, dq = u[i] - near_u, q[i] - near_q
            uu += mass[i] * du * du
            uq += mass[i] * du * dq
            qq += mass[i] * dq * dq
        a, b, det = 0.0, 0.0, uu * qq - uq * uq
        if not (uu > 0.0 and (det > 1e-9 * uu * qq or not second)):
            return False
        if second:
            a, b = (-mean_u * qq - off * uq) / det, (off * uu + mean_u * uq) / det
        else:
            a = -mean_u / uu
        new_total = 0.0
        for i in range(first, end):
            mass[i] *= min(max(1.0 + a * (u[i] - near_u) + b * (q[i] - near_q), 0.5), 2.0)
            new_total += mass[i]
        for i in range(first, end):
            mass[i] *= total / new_total
    return False


@kernel
def _near_means(u, q, mass, first, end):
    """Sum of the masses that may change, and their means of u and q."""
    total, mean_u, mean_q = 0.0, 0.0, 0.0
    for i in range(first, end):
        total += mass[i]
        mean_u += mass[i] * u[i]
        mean_q += mass[i] * q[i]
    return total, mean_u / total, mean_q / total
