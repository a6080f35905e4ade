"""Small messy CSV files, each with the table that it stands for: one file for each trait, and for pairs of them."""

from __future__ import annotations

import csv
import datetime as dt
import io
from collections.abc import Iterator
from itertools import combinations
from typing import Any, NamedTuple


class Trait(NamedTuple):
    """A column as a file writes it, and what it means: numbers, dates, text; None where missing."""

    name: str
    texts: list[str]
    kind: str
    cells: list[Any]


class Case(NamedTuple):
    """A file and the columns that it stands for."""

    name: str
    content: bytes
    columns: dict[str, tuple[str, list[Any]]]


DAYS = [dt.date(2022, 11, 26), dt.date(2021, 2, 1), dt.date(2020, 4, 3)]

TRAITS = [
    Trait("plain", ["1", "20", "3"], "integer", [1, 20, 3]),
    Trait("thousands", ["1,700.10", "300.50", "12,000.00"], "number", [1700.1, 300.5, 12000]),
    Trait("european", ["1.700,10", "300,50", "12.000,00"], "number", [1700.1, 300.5, 12000]),
    Trait("decimal_comma", ["1,5", "20,25", "3"], "number", [1.5, 20.25, 3]),
    Trait("spaces", ["1 700", "12 500", "300"], "number", [1700, 12500, 300]),
    Trait("narrow_spaces", ["1\u202f700", "12\u202f500", "300"], "number", [1700, 12500, 300]),
    Trait("swiss", ["1'700.50", "12'500.00", "3.25"], "number", [1700.5, 12500, 3.25]),
    Trait("dollars", ["$1,200.00", "$3.50", "-$7.00"], "number", [1200, 3.5, -7]),
    Trait("euros", ["1.200,00 €", "3,50 €", "-7,00 €"], "number", [1200, 3.5, -7]),
    Trait("currency_code", ["USD 5.50", "USD 12.00", "USD 3.25"], "number", [5.5, 12, 3.25]),
    Trait("percent", ["15%", "3.5%", "100%"], "number", [15, 3.5, 100]),
    Trait("percent_apart", ["15 %", "3 %", "100 %"], "number", [15, 3, 100]),
    Trait("accounting", ["(1,200.00)", "30.00", "(5.25)"], "number", [-1200, 30, -5.25]),
    Trait("minus_after", ["12.50-", "30.00", "5.25-"], "number", [-12.5, 30, -5.25]),
    Trait("unit", ["5 kg", "12 kg", "7.5 kg"], "number", [5, 12, 7.5]),
    Trait("months", ["36 months", "60 months", "12 months"], "number", [36, 60, 12]),
    Trait("signs", ["+5.5", "-3.0", "+2.25"], "number", [5.5, -3, 2.25]),
    Trait("scientific", ["1e-5", "2.5e3", "1.0"], "number", [1e-5, 2500, 1]),
    Trait(
        "day_first",
        ["26/11/2022", "01/02/2021", "03/04/2020"],
        "date",
        DAYS,
    ),
    Trait(
        "month_first",
        ["11/26/2022", "01/02/2021", "03/04/2020"],
        "date",
        [DAYS[0], dt.date(2021, 1, 2), dt.date(2020, 3, 4)],
    ),
    Trait("points", ["26.11.2022", "1.2.2021", "3.4.2020"], "date", DAYS),
    Trait("iso", ["2022-11-26", "2021-02-01", "2020-04-03"], "date", DAYS),
    Trait(
        "year_first",
        ["2022/11/26", "2021/02/01", "2020/04/03"],
        "date",
        DAYS,
    ),
    Trait(
        "month_name",
        ["26 Nov 2022", "01 Feb 2021", "03 Apr 2020"],
        "date",
        DAYS,
    ),
    Trait(
        "american",
        ["Nov 26, 2022", "Feb 1, 2021", "Apr 3, 2020"],
        "date",
        DAYS,
    ),
    Trait(
        "moments",
        ["26/11/2022 09:30", "01/02/2021 23:59", "03/04/2020 00:00"],
        "date",
        [dt.datetime(2022, 11, 26, 9, 30), dt.datetime(2021, 2, 1, 23, 59), dt.datetime(2020, 4, 3)],
    ),
    Trait("times", ["00:57:00", "23:59:00", "12:00:00"], "number", [57, 1439, 720]),
    Trait("half_days", ["9:05 AM", "12:30 PM", "12:01 AM"], "number", [545, 750, 1]),
    Trait("durations", ["25:10:05", "1:00:00", "100:00:30"], "number", [90605, 3600, 360030]),
    Trait("zip", ["00017", "12345", "02139"], "text", ["00017", "12345", "02139"]),
    Trait("codes", ["A1", "A2", "B1"], "text", ["A1", "A2", "B1"]),
    Trait("phone", ["555 123 456", "555 987 654"] * 2, "text", ["555 123 456", "555 987 654"] * 2),
    Trait("ranges", ["20-30", "40+", "<5"], "text", ["20-30", "40+", "<5"]),
    Trait("versions", ["1.2.3", "1.10.0", "2.0.1"], "text", ["1.2.3", "1.10.0", "2.0.1"]),
    Trait("ordinals", ["1st", "2nd", "3rd"], "text", ["1st", "2nd", "3rd"]),
    Trait("mixed", ["12", "n/a yet", "7"], "text", ["12", "n/a yet", "7"]),
    Trait("two_units", ["5 kg", "12 lb", "7 kg"], "text", ["5 kg", "12 lb", "7 kg"]),
    Trait("spaced_levels", [" South", "South", "North "], "text", ["South", "South", "North "]),
    Trait("excel_errors", ["1.5", "#N/A", "#DIV/0!"], "number", [1.5, None, None]),
    Trait("missing_words", ["$1.50", "-", "n.a."], "number", [1.5, None, None]),
    Trait("dash_level", ["-", "yes", "no"], "text", ["-", "yes", "no"]),
    Trait("quotes", ['a "b"', "c;d", "e,f"], "text", ['a "b"', "c;d", "e,f"]),
    Trait("accents", ["é", "ß", "日本"], "text", ["é", "ß", "日本"]),
]
TOWNS = Trait("towns", ["Köln", "Zürich", "Orléans"], "text", ["Köln", "Zürich", "Orléans"])
ENCODINGS = ("utf-16", "utf-16-le", "utf-16-be", "utf-32", "cp1252", "latin-1")
LOOKS = [
    {"delimiter": ";"},
    {"delimiter": "\t"},
    {"delimiter": "|"},
    {"quoting": csv.QUOTE_ALL},
    {"lineterminator": "\r\n"},
    {"encoding": "utf-8-sig"},
]


def cases() -> Iterator[Case]:
    """Each trait alone and beside plain columns, in every look; pairs of neighbouring traits; and encodings."""
    for k, trait in enumerate(TRAITS):
        columns = [trait, TRAITS[0]][: 1 + (k > 0)]
        yield _case(trait.name, columns, {})
        yield _case(f"{trait.name} in look {k % len(LOOKS)}", columns, LOOKS[k % len(LOOKS)])
    for k, (a, b) in enumerate(combinations(TRAITS[1:], 2)):
        if k % 17 == 0:
            yield _case(f"{a.name} and {b.name}", [a, b, TRAITS[0]], LOOKS[k % len(LOOKS)])
    euros = next(trait for trait in TRAITS if trait.name == "euros")
    for encoding in ENCODINGS:
        columns = [TOWNS, TRAITS[0]] if encoding == "latin-1" else [TOWNS, euros, TRAITS[0]]
        yield _case(f"in {encoding}", columns, {"encoding": encoding, "delimiter": ";"})


def _case(name: str, traits: list[Trait], look: dict[str, Any]) -> Case:
    look = {"lineterminator": "\n"} | look
    encoding = look.pop("encoding", "utf-8")
    out = io.StringIO(newline="")
    writer = csv.writer(out, **look)
    writer.writerow([trait.name for trait in traits])
    n = 12  # whole cycles of the cells of each trait
    writer.writerows(zip(*((trait.texts * n)[:n] for trait in traits), strict=True))
    return Case(name, out.getvalue().encode(encoding), {t.name: (t.kind, (t.cells * n)[:n]) for t in traits})
