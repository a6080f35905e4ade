"""Small real tables that come with the package, and made ones with a known distribution."""

from __future__ import annotations

from importlib.resources import as_file, files
from typing import Any, Literal

_TEXT = ("species", "island", "sex")


def load_penguins(frame: Literal["pandas", "polars", "pyarrow"] = "pandas") -> Any:
    """Palmer penguins: 344 penguins of three species, 7 columns of mixed types, 19 missing cells.

    Columns: species, island and sex (categories); bill_length_mm, bill_depth_mm, flipper_length_mm (millimetres) and
    body_mass_g (grams).

    Parameters
    ----------
    frame : {"pandas", "polars", "pyarrow"}, default "pandas"
        Kind of table to return; its library must be installed.

    Returns
    -------
    pandas.DataFrame, polars.DataFrame or pyarrow.Table

    Raises
    ------
    ValueError
        If ``frame`` is none of these.

    References
    ----------
    Data (CC0): K. B. Gorman, T. D. Williams, W. R. Fraser (2014), Ecological sexual dimorphism and environmental
    variability within a community of Antarctic penguins (genus Pygoscelis), PLoS ONE 9(3):e90081. As collected in
    A. M. Horst, A. P. Hill, K. B. Gorman (2020), palmerpenguins: Palmer Archipelago (Antarctica) penguin data,
    doi:10.5281/zenodo.3960218.

    Examples
    --------
    >>> load_penguins().shape
    (344, 7)
    """
    with as_file(files(__package__) / "tables" / "penguins.csv") as path:
        if frame == "pandas":
            import pandas as pd

            return pd.read_csv(path, dtype=dict.fromkeys(_TEXT, "category"))
        if frame == "polars":
            import polars as pl

            return pl.read_csv(path).with_columns(pl.col(_TEXT).cast(pl.Categorical))
        if frame == "pyarrow":
            from pyarrow import csv

            options = csv.ConvertOptions(auto_dict_encode=True, strings_can_be_null=True)
            return csv.read_csv(path, convert_options=options)
    raise ValueError(f"frame: expected 'pandas', 'polars' or 'pyarrow', got {frame!r}")


def make_visits(
    n_patients: int = 500, random_state: int | None = None, frame: Literal["pandas", "polars", "pyarrow"] = "pandas"
) -> Any:
    """Visits of patients: a made table with several rows for each patient, and a distribution that is known.

    Columns: patient (a number), date (irregular), sex (constant within a patient), status (well, ill or severe),
    weight (kilograms) and pressure (millimetres of mercury).

    Each patient has 2 visits at least. After a visit the history ends with probability 0.15 (severe: 0.35). The next
    visit comes after 7 days and a geometric number of days with mean 30 (severe: 10). The status stays with probability
    0.8; otherwise it moves to a neighbour, from ill to either with equal probability. The weight starts at 62 (F) or 78
    (M) with standard deviation 10, and changes by a normal number with mean 0.1, or -0.6 if severe, and standard
    deviation 0.8. The pressure is 0.6 times that of the visit before plus 0.4 times (90 + 0.4 weight + 15 (ill) or 30
    (severe)), and a normal number with standard deviation 5; at the first visit that target with standard deviation 8.

    Parameters
    ----------
    n_patients : int
    random_state : int, optional
    frame : {"pandas", "polars", "pyarrow"}, default "pandas"
        As of `load_penguins`.

    Returns
    -------
    pandas.DataFrame, polars.DataFrame or pyarrow.Table
        Rows in the order of patients and dates.

    Raises
    ------
    ValueError
        If ``frame`` is none of these, or there is no patient.

    Examples
    --------
    >>> make_visits(3, random_state=0).columns.tolist()
    ['patient', 'date', 'sex', 'status', 'weight', 'pressure']
    """
    import numpy as np

    if frame not in ("pandas", "polars", "pyarrow"):
        raise ValueError(f"frame: expected 'pandas', 'polars' or 'pyarrow', got {frame!r}")
    if n_patients < 1:
        raise ValueError(f"n_patients: expected a whole number of at least 1, got {n_patients}")
    rng = np.random.default_rng(random_state)
    names = ("well", "ill", "severe")
    rows: dict[str, list[Any]] = {name: [] for name in ("patient", "date", "sex", "status", "weight", "pressure")}
    for patient in range(1, n_patients + 1):
        sex = "F" if rng.random() < 0.5 else "M"
        day = np.datetime64("2020-01-01") + int(rng.integers(0, 1000))
        status = int(rng.choice(3, p=(0.6, 0.3, 0.1)))
        weight = rng.normal(62.0 if sex == "F" else 78.0, 10.0)
        pressure, visit = np.nan, 0
        while visit < 2 or rng.random() > (0.35 if status == 2 else 0.15):
            if visit > 0:
                day += 7 + int(rng.geometric(1.0 / (11.0 if status == 2 else 31.0))) - 1
                if rng.random() >= 0.8:
                    status = 1 if status != 1 else 2 * int(rng.random() < 0.5)
                weight += rng.normal(-0.6 if status == 2 else 0.1, 0.8)
            target = 90.0 + 0.4 * weight + 15.0 * status
            pressure = rng.normal(target, 8.0) if visit == 0 else rng.normal(0.6 * pressure + 0.4 * target, 5.0)
            cells = (patient, day, sex, names[status], round(weight, 1), round(pressure))
            for name, cell in zip(rows, cells, strict=True):
                rows[name].append(cell)
            visit += 1
    columns = {name: np.array(cells) for name, cells in rows.items()} | {
        "date": np.array(rows["date"], "datetime64[s]")
    }
    if frame == "pandas":
        import pandas as pd

        return pd.DataFrame(columns)
    if frame == "polars":
        import polars as pl

        return pl.DataFrame(columns | {"date": np.array(rows["date"], "datetime64[D]")})
    import pyarrow as pa

    return pa.table(columns)
