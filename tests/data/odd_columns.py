"""Small files with columns whose cells are easily misread, each with what a person reads, and what is said of it."""

from __future__ import annotations

import csv
import datetime as dt
import io
from collections.abc import Iterator, Sequence
from typing import Any

from .odd_files import OddFile

DAYS = [dt.date(2022, 8, 15), dt.date(2018, 1, 7), dt.date(2019, 11, 30), dt.date(2020, 5, 3), dt.date(2021, 12, 25)]
LATE = [dt.date(2018, 10, 14), dt.date(2019, 11, 30), dt.date(2020, 12, 25), dt.date(2021, 10, 2)]
AMOUNTS = [f"{k}.{k % 90 + 10}" for k in range(3, 202)]


def odd_columns() -> Iterator[OddFile]:
    """All of them."""
    yield from _of_spaces()
    yield from _of_words()
    yield from _of_dates()
    yield from _of_numbers()
    yield from _of_errors()
    yield from _of_stand_ins()
    yield from _of_ticks()


def _of_spaces() -> Iterator[OddFile]:
    """Levels with white space at their ends: they are the table's own."""
    for name, pad in (
        ("spaces behind levels, as CHAR(8) has them", "{:<8}"),
        ("a space before levels", " {}"),
        ("tabs around levels", "\t{}\t"),
        ("line ends behind levels", "{}\n"),
        ("spaces around levels that never break", "\u00a0{}\u00a0"),
        ("narrow spaces behind levels", "{}\u202f"),
    ):
        cells = [pad.format(level) for level in ("GOLD", "SILVER", "BRONZE")]
        yield _odd(name, cells * 4, ("text", cells * 4))
    yield _odd("two spellings of a level", ["GOLD"] * 6 + ["GOLD  "] * 4 + ["TIN"], ("text", ["GOLD"] * 10 + ["TIN"]))
    yield _odd("a rare bare level", ["GOLD"] * 2 + ["GOLD  "] * 4 + ["TIN"], ("text", ["GOLD  "] * 6 + ["TIN"]))
    yield _odd("spaces around amounts", [" $5.50 ", "$7.25  ", " $1,200.00"], ("number", [5.5, 7.25, 1200]))


def _of_words() -> Iterator[OddFile]:
    """Words for missing cells in columns of text."""
    damage = ["None"] * 17 + ["Minor", "Minor", "Major"]
    said = r"the text 'None' is taken as a level of column 'c' \(17 of 20 cells\); --na None makes it missing, --keep"
    yield _odd("None as the most frequent level", damage, ("text", damage), said)
    codes = ["A12", "B7", "NA", "C99", "NA"] * 3
    yield _odd("NA among codes that is said to be a level", codes, ("text", codes), said={"kept": ("NA",)})
    yield _odd("NA among codes", codes, ("text", _without(codes, "NA")))
    signs = ["$5.50", "NA", "$7.25", "$1,200.00"]
    kept = {"kept": ("NA",)}
    yield _odd("NA among amounts that is said to be a level", signs, ("number", [5.5, None, 7.25, 1200]), said=kept)
    yield _odd("None that is said to be missing", damage, ("text", [None] * 17 + damage[17:]), said={"sure": ("None",)})
    yield _odd("None that is said to be a level", damage, ("text", damage), said={"kept": ("None",)})
    masonry = ["BrkFace", "Stone"] * 10 + ["None"]
    yield _odd("None as a rare level", masonry, ("text", masonry), r"'None' is taken as a level .*\(1 of 21 cells\)")
    parts = ["EU", "AS", "NA", "AF", "OC", "SA"] * 3
    yield _odd(
        "North America among continents", parts, ("text", parts), r"'NA' is taken as a level .*\(3 of 18 cells\)"
    )
    alleys = ["NA"] * 18 + ["Grvl", "Pave"]
    yield _odd("NA for no alley", alleys, ("text", alleys), r"'NA' is taken as a level .*\(18 of 20 cells\)")
    sexes = ["male", "female"] * 20 + ["NA"]
    yield _odd("NA as R writes it", sexes, ("text", _without(sexes, "NA")))
    often = ["male", "female"] * 7 + ["NA"] * 6
    words = r"'NA' is taken as missing in column 'c' \(6 of 20 cells\); --na NA makes it missing, --keep NA a level"
    yield _odd("NA for much", often, ("text", _without(often, "NA")), words)
    nulls = ["a", "b", "c"] * 2 + ["NULL"] * 14
    yield _odd(
        "NULL as databases write it", nulls, ("text", _without(nulls, "NULL")), r"'NULL' is taken as missing .*14 of 20"
    )
    work = ["Private", "State-gov"] * 20 + ["?"]
    yield _odd("a question mark for little", work, ("text", _without(work, "?")))
    homes = ["rent", "own"] * 8 + ["Unknown"] * 4
    yield _odd(
        "Unknown as a level", homes, ("text", homes), r"the level 'Unknown' \(4 of 20 cells\) may mean a missing"
    )
    stars = ["n/a"] * 15 + ["good", "poor"] * 2
    yield _odd("n/a for most", stars, ("text", stars), r"'n/a' is taken as a level of column 'c' \(15 of 19 cells\)")
    dashes = ["yes", "no", "-"] * 5
    yield _odd("a dash as a level", dashes, ("text", dashes), r"the level '-' \(5 of 15 cells\) may mean a missing")
    some = ["a", "b"] * 9 + ["None"] * 2
    numbers = ["1.5", "None"] * 10
    columns = {"c": ("text", _without(some, "None")), "y": ("number", _numbers(numbers, "None"))}
    yield _odd(
        "None among numbers, too", {"c": some, "y": numbers}, columns, r"'None' is taken as missing in column 'c'"
    )


def _of_dates() -> Iterator[OddFile]:
    """Years of two digits, solid dates, and whole numbers that seem to be dates."""
    for name, texts in (
        ("dates as Excel writes them", [f"{d.month}/{d.day}/{d:%y}" for d in DAYS]),
        ("days and names of months, as Excel writes them", [f"{d.day}-{d:%b-%y}" for d in DAYS]),
        ("months in capitals, as Oracle writes them", [f"{d:%d-%b-%y}".upper() for d in DAYS]),
        ("days first with years of two digits", [f"{d:%d/%m/%y}" for d in DAYS]),
        ("points and years of two digits", [f"{d:%d.%m.%y}" for d in DAYS]),
        ("points and short days", [f"{d.day}.{d.month}.{d:%y}" for d in DAYS]),
        ("hyphens and short years behind", [f"{d:%d-%m-%y}" for d in _near(2018)]),
        ("hyphens and short years in front", [f"{d:%y-%m-%d}" for d in _near(2018)]),
        ("names of months and short years", [f"{d:%d %b %y}" for d in DAYS]),
        ("American names of months and short years", [f"{d:%b %d, %y}" for d in DAYS]),
        ("dates as SAS writes them", [f"{d:%d%b%Y}".upper() for d in DAYS]),
        ("months first without signs", [f"{d:%m%d%Y}" for d in DAYS]),
        ("days first without signs", [f"{d:%d%m%Y}" for d in DAYS]),
    ):
        days = _near(2018) if "hyphens" in name else DAYS
        yield _odd(name, texts, ("date", days))
    moments = [dt.datetime.combine(day, dt.time(14, 5 * k)) for k, day in enumerate(DAYS)]
    texts = [f"{d.month}/{d.day}/{d:%y %H:%M}" for d in moments]
    yield _odd("moments as Excel writes them", texts, ("date", moments))
    texts = [f"{d.month}/{d.day}/{d:%y} {d:%I:%M %p}".replace(" 0", " ") for d in moments]
    yield _odd("moments with AM and PM as Excel writes them", texts, ("date", moments))
    births = [dt.date(1945, 6, 30), dt.date(1962, 1, 2), dt.date(2001, 3, 14)]
    words = "years from 30 on are read as 1930 to 1999, such as in '6/30/45'"
    yield _odd("births with short years", [f"{d.month}/{d.day}/{d:%y}" for d in births], ("date", births), words)
    early = [dt.date(2022, 3, 4), dt.date(2021, 5, 6), dt.date(2020, 1, 2)]
    words = "'c' is read with the month first, such as '11/26/22'; it may also have the day first"
    yield _odd("short dates without a proof", [f"{d.month}/{d.day}/{d:%y}" for d in early], ("date", early), words)
    for name, form, said in (("months", "%m%d%Y", "month, day, year"), ("days", "%d%m%Y", "day, month, year")):
        days = [day for day in LATE * 3 if day.day > 9]
        numbers = [int(f"{day:{form}}") for day in days]
        words = rf"such as \d*, seem to be dates \({said}\).*to_datetime.*format='{form}'"
        yield _odd(f"whole numbers with {name} first", list(map(str, numbers)), ("integer", numbers), words)
    versions = ["1.10.22", "1.9.21", "2.0.19"]
    yield _odd("versions like short dates", versions, ("text", versions))


def _of_numbers() -> Iterator[OddFile]:
    """Numbers with words and signs for missing cells, and lakhs."""
    yield _odd("no zero before points, and stars", ["-.18", ".25", "***"] * 5, ("number", [-0.18, 0.25, None] * 5))
    yield _odd("stars beside decimals", ["1.18", "*", "0.25"] * 5, ("number", [1.18, None, 0.25] * 5))
    less_than_one = [f"0,{100 + i}" for i in range(20)]
    yield _odd("three decimals after a zero", less_than_one, ("number", [0.1 + i / 1000 for i in range(20)]))
    yield _odd("stars beside decimal commas", ["1,18", "**", "0,25"] * 5, ("number", [1.18, None, 0.25] * 5))
    yield _odd("no zero behind a currency", ["$.05", "$1.25", "$.50"], ("number", [0.05, 1.25, 0.5]))
    for word in ("Unknown", "UNKNOWN", "Not available", "N/a", "Na", "NONE", "--", "…", "..."):
        yield _odd(f"ages and {word}", ["31", "47", word, "20"] * 3, ("number", [31, 47, None, 20] * 3))
    yield _odd("percentages and n/a", ["15%", "n/a", "3.5%"], ("number", [15, None, 3.5]))
    yield _odd(
        "dates and unknown",
        ["26/11/2022", "Unknown", "01/02/2021"],
        ("date", [dt.date(2022, 11, 26), None, dt.date(2021, 2, 1)]),
    )
    yield _odd("millions", ["5.3M", "12.0M", "0.7M"], ("number", [5.3, 12, 0.7]))
    yield _odd("thousands", ["12k", "7k", "980k", ""], ("integer", [12, 7, 980, None]))
    yield _odd("billions and a currency", ["$1.2bn", "$0.4bn", "$33.0bn"], ("number", [1.2, 0.4, 33]))
    yield _odd("German millions", ["5,3 Mio.", "12,0 Mio.", "0,7 Mio."], ("number", [5.3, 12, 0.7]))
    views = ["12k", "1.2M", "980k", "1.5M", "7k"] * 2
    yield _odd(
        "thousands and millions", views, ("text", views), "in different forms; write all in one form, such as with"
    )
    yield _odd("changes with signs", ["+4", "-2", "0", "+11"], ("integer", [4, -2, 0, 11]))
    yield _odd("changes in percent", ["+4.5%", "-2.1%", "0.0%"], ("number", [4.5, -2.1, 0]))
    yield _odd("powers of ten", ["1.23e+06", "4.5E5", "7e3"], ("integer", [1230000, 450000, 7000]))
    for word in ("inf", "-inf", "Inf", "-Infinity"):
        yield _odd(f"{word} among numbers", ["1.5", word, "2.5"], None, "1 infinite value; .*--na inf")
        one = {"na": ("", "inf")}
        yield _odd(f"{word} that is said to be missing", ["1.5", word, "2.5"], ("number", [1.5, None, 2.5]), said=one)
    lakhs = ["1,20,000", "75,000", "1,00,00,000", "999"]
    yield _odd("lakhs", lakhs, ("integer", [120000, 75000, 10000000, 999]))
    yield _odd("lakhs of rupees", [f"₹{text}.50" for text in lakhs], ("number", [120000.5, 75000.5, 10000000.5, 999.5]))
    small = ["1,200", "75,000", "99,999"]
    yield _odd("thousands that may be lakhs", small, ("integer", [1200, 75000, 99999]), "commas between thousands")


def _of_errors() -> Iterator[OddFile]:
    """Single cells that are written in another way."""
    numbers = list(map(float, AMOUNTS))
    words = "'c' is read as numbers; missing, as of another form: '12O.50'; correct them"
    yield _odd("a typing error among amounts", [*AMOUNTS, "12O.50"], ("number", [*numbers, None]), words)
    whole = [str(7 * k) for k in range(200)]
    yield _odd(
        "a typing error among whole numbers", [*whole, "1O5"], ("integer", [*map(int, whole), None]), "'1O5'; correct"
    )
    days = [dt.date(2020, 1, 1) + dt.timedelta(3 * k) for k in range(150)]
    texts = [f"{day:%d/%m/%Y}" for day in days]
    yield _odd("a day that does not exist", [*texts, "31/02/2021"], ("date", [*days, None]), "'31/02/2021'; correct")
    wrong = [f"{k}O.5" for k in range(10)]
    words = "'c' stays text: 95% of its cells seem to be numbers, but '0O.5', .* are not; write them as the others"
    yield _odd("many typing errors", [*AMOUNTS, *wrong], None, words)
    invoices = [f"{k}" for k in range(536365, 536564)]
    yield _odd("codes of cancelled invoices", [*invoices, "C536379", "C536380"], None, "stays text: 99% of its cells")
    flats = ["12", "7", "12a", "3"] * 3
    yield _odd("numbers of houses", flats, ("text", flats))


def _of_stand_ins() -> Iterator[OddFile]:
    """Values that may stand for missing cells."""
    air = [8 * k + 5 for k in range(90)] + [-200] * 10
    words = "10 cells are -200, the only value below zero; if that means a missing cell"
    yield _odd("-200 below all others", list(map(str, air)), ("integer", air), words)
    columns = {name: [str(value + k) if value > 0 else str(value) for value in air] for k, name in enumerate("cde")}
    read = {name: ("integer", list(map(int, texts))) for name, texts in columns.items()}
    yield _odd("-200 in three columns", columns, read, "columns 'c', 'd', 'e': 30 cells are -200")
    heat = [round(-9.5 + 0.37 * k, 2) for k in range(100)] + [-99.99] * 6
    yield _odd("-99.99 among degrees", list(map(str, heat)), ("number", heat), "6 cells are -99.99, far from all other")
    lat = [round(40.7 + 0.0137 * k, 4) for k in range(100)] + [0.0] * 6
    lon = [round(-73.9 - 0.0171 * k, 4) for k in range(100)] + [0.0] * 6
    read = {"lat": ("number", lat), "lon": ("number", lon)}
    texts = {name: list(map(str, cells)) for name, (_, cells) in read.items()}
    yield _odd("coordinates of nowhere", texts, read, "columns 'lat', 'lon': 12 cells are 0")
    until = [day for day in DAYS * 4] + [dt.date(9999, 12, 31)] * 5
    yield _odd("no end yet", list(map(str, until)), ("date", until), "5 cells are 9999-12-31, far from all other dates")
    once = [*DAYS * 4, dt.date(9999, 12, 31)]
    yield _odd(
        "one without an end", list(map(str, once)), ("date", once), "1 cell is 9999-12-31, at an end of calendars"
    )
    since = [day for day in DAYS * 4] + [dt.date(1900, 1, 1)] * 5
    texts = [f"{day:%d.%m.%Y}" for day in since]
    yield _odd("the first day of Excel", texts, ("date", since), "5 cells are 01.01.1900, far from .*--na=01.01.1900")
    answers = [1, 2, 3, 4, 5] * 8 + [98] * 6 + [99] * 6
    yield _odd(
        "codes of answers", list(map(str, answers)), ("integer", answers), "6 cells are 98, far(.|\n)*6 cells are 99"
    )
    weeks = [k * 7 % 310 + 1 for k in range(100)] + [-1] * 80
    yield _odd("-1 for never", list(map(str, weeks)), ("integer", weeks), "80 cells are -1, the only value below zero")


def _of_ticks() -> Iterator[OddFile]:
    """One value and missing cells: ticked, or not."""
    for name, mark in (
        ("x", "x"),
        ("yes", "Yes"),
        ("1", "1"),
        ("true", "TRUE"),
        ("a title", "The Empire Strikes Back"),
    ):
        yield _odd(
            f"ticks written as {name}", [mark, "", mark, "", ""] * 4, ("text", [True, False, True, False, False] * 4)
        )
    yield _odd("ticks with spaces", ["x ", "", "x"] * 4, ("text", [True, False, True] * 4))
    yield _odd("one currency, hardly ever missing", ["USD"] * 99 + [""], ("text", ["USD"] * 99 + [None]))
    yield _odd("one currency, never missing", ["USD"] * 20, ("text", ["USD"] * 20))


def _odd(
    name: str,
    columns: Sequence[str] | dict[str, list[str]],
    read: Any,
    words: str = "",
    said: dict[str, Any] | None = None,
) -> OddFile:
    """A file with a column c, or with these columns, and beside them one of plain numbers."""
    texts = columns if isinstance(columns, dict) else {"c": list(columns)}
    n = len(next(iter(texts.values())))
    texts = texts | {"x": [("2.5", "4.25", "6.5", "1.25", "3.0")[k % 5] for k in range(n)]}
    read = read if isinstance(read, dict) or read is None else {"c": read}
    out = io.StringIO(newline="")
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(texts)
    writer.writerows(zip(*texts.values(), strict=True))
    numbers = {"x": ("number", list(map(float, texts["x"])))}
    return OddFile(name, "c.csv", out.getvalue().encode(), said or {}, read | numbers if read else {}, words)


def _without(cells: list[str], word: str) -> list[str | None]:
    return [None if cell == word else cell for cell in cells]


def _numbers(cells: list[str], word: str) -> list[float | None]:
    return [None if cell == word else float(cell) for cell in cells]


def _near(year: int) -> list[dt.date]:
    """Days of one year."""
    return [dt.date(year, 1, 7) + dt.timedelta(23 * k) for k in range(12)]
