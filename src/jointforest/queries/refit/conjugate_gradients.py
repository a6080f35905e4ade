"""Conjugate gradients, for equations whose matrix is known by its products alone."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np


def conjugate_gradients(
    times: Callable[[np.ndarray], np.ndarray], right: np.ndarray, tolerance: float = 1e-12
) -> np.ndarray:
    """Solve A x = b for several right sides at once; of several solutions the one of least norm.

    Parameters
    ----------
    times : callable
        A x of x (n, K); A is symmetric, without negative eigenvalues.
    right : float64 array (n, K)
        Each column of it A x for some x.
    tolerance : float
        Largest residual, relative to the column of ``right``.

    Returns
    -------
    float64 array (n, K)

    Raises
    ------
    ArithmeticError
        If the tolerance is not reached in 10 n steps.

    Notes
    -----
    M. R. Hestenes and E. Stiefel, "Methods of conjugate gradients for solving linear systems" (1952).

    Examples
    --------
    >>> conjugate_gradients(lambda x: 2 * x, np.array([[1.0], [3.0]]))
    array([[0.5],
           [1.5]])
    """
    x, residual = np.zeros_like(right), right.copy()
    direction, square = residual.copy(), (residual**2).sum(axis=0)
    goal = tolerance**2 * square
    for _ in range(10 * len(right) + 1):
        if (square <= goal).all():
            return x
        product = times(direction)
        curvature = (direction * product).sum(axis=0)
        step = np.divide(square, curvature, out=np.zeros_like(square), where=(curvature > 0) & (square > goal))
        x += step * direction
        residual -= step * product
        before, square = square, (residual**2).sum(axis=0)
        ratio = np.divide(square, before, out=np.zeros_like(square), where=before > 0)
        direction = residual + ratio * direction
    raise ArithmeticError(f"conjugate gradients: no solution in {10 * len(right)} steps")
