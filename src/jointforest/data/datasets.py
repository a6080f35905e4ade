"""Small real tables that come with the package."""

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
