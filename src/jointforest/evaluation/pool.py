"""Rubin's rules: one estimate of several, each from a table that was imputed with other draws."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy.special import stdtrit

from ..runtime.parameters import check_number


class Pooled(NamedTuple):
    """What `pool` makes of estimates from several imputed tables; numbers, or arrays (k,) of k quantities.

    Attributes
    ----------
    estimate
        Mean of the estimates.
    standard_error
        Root of within + (1 + 1/m) between.
    df
        Degrees of freedom of the t distribution; inf where the tables agree and ``df`` was not given.
    low, high
        Ends of the interval.
    missing_information
        Share of the variance that is due to the missing cells, 0..1: (1 + 1/m) between / total.
    """

    estimate: Any
    standard_error: Any
    df: Any
    low: Any
    high: Any
    missing_information: Any


def pool(estimates: Any, variances: Any, *, level: float = 0.95, df: float | None = None) -> Pooled:
    """Pool what was estimated from each of m imputed tables, by Rubin's rules.

    Parameters
    ----------
    estimates : array-like (m,) or (m, k)
        Of one quantity, or k of them, from each of m >= 2 tables.
    variances : array-like, of the same shape
        Their squared standard errors, each as if its table had been observed.
    level : float
        Of the interval, more than 0 and less than 1.
    df : float, optional
        Degrees of freedom that the estimate would have without missing cells, such as rows minus coefficients: the
        interval is then that of Barnard and Rubin (1999), which is right for small tables, too.

    Raises
    ------
    ValueError
        If there are fewer than two tables, shapes differ, or a number is not finite or a variance negative.

    References
    ----------
    D. B. Rubin, *Multiple Imputation for Nonresponse in Surveys*, Wiley 1987, section 3.1. J. Barnard, D. B. Rubin,
    "Small-sample degrees of freedom with multiple imputation", Biometrika 86, 1999.

    Examples
    --------
    >>> found = jf.pool([1.0, 2.0, 3.0], [1.0, 1.0, 1.0])
    >>> found.estimate, round(found.standard_error, 3), round(found.missing_information, 3)
    (2.0, 1.528, 0.571)
    """
    q, u = _finite_numbers("estimates", estimates), _finite_numbers("variances", variances)
    if q.ndim not in (1, 2) or q.shape != u.shape or len(q) < 2:
        raise ValueError(
            f"expected estimates and variances of m >= 2 tables, each (m,) or (m, k), got {q.shape} and {u.shape}"
        )
    if (u < 0).any():
        k = int(np.argwhere(u < 0)[0][0])
        raise ValueError(f"variances: {u[u < 0][0]:g} of table {k} is negative; give squared standard errors")
    check_number("level", level, 0, 1, without="both", text="between 0 and 1")
    if df is not None:
        check_number("df", df, 0, without="low")
        df = None if np.isinf(df) else df  # what the rules are in the limit
    m = len(q)
    estimate, within, between = q.mean(axis=0), u.mean(axis=0), (1.0 + 1.0 / m) * q.var(axis=0, ddof=1)
    total = within + between
    with np.errstate(divide="ignore", invalid="ignore"):
        share = np.where(total > 0, between / total, 0.0)
        freedom = (m - 1) / share**2
        if df is not None:
            observed = (df + 1) / (df + 3) * df * (1.0 - share)
            freedom = 1.0 / (1.0 / freedom + 1.0 / observed)
    error = np.sqrt(total)
    # beyond 1e6 degrees of freedom t is normal to seven digits, and stdtrit knows no infinity
    reach = stdtrit(np.clip(freedom, 1e-3, 1e6), (1.0 + level) / 2.0) * error
    pooled = Pooled(estimate, error, freedom, estimate - reach, estimate + reach, share)
    return pooled if q.ndim == 2 else Pooled(*(float(one) for one in pooled))


def _finite_numbers(name: str, given: Any) -> np.ndarray:
    """Estimates or variances as float64, finite."""
    try:
        numbers = np.asarray(given, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{name}: expected numbers, as many of each table ({error})") from None
    if not np.isfinite(numbers).all():
        k = int(np.argwhere(~np.isfinite(numbers))[0][0])
        raise ValueError(f"{name}: {numbers[~np.isfinite(numbers)][0]} of table {k}; expected finite numbers")
    return numbers
