"""Texts that stand for numbers, dates and times: what is read, what is written, and what stays text."""

from __future__ import annotations

import json
import re
import warnings
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import jointforest as jf
from jointforest.data.frames import decode, encode, read
from jointforest.data.infer_schema import infer_schema
from jointforest.data.reading import reading_of
from jointforest.data.schema_check import schema_from_dict
from jointforest.data.text_columns import find_forms
from jointforest.data.written_forms import WrittenForm

NUMBER_FORMS = [
    WrittenForm("number", "str", prefix, suffix, thousands, decimal, decimals, negative)
    for prefix, suffix in (("", ""), ("$", ""), ("€ ", ""), ("", "%"), ("", " kg"))
    for thousands, decimal in (("", "."), (",", "."), (".", ","), (" ", ","), ("'", "."))
    for decimals in (0, 2)
    for negative in ("-", "()", "after")
]


@given(st.sampled_from(NUMBER_FORMS), st.floats(-1e9, 1e9))
def test_numbers_are_read_as_they_are_written(form: WrittenForm, number: float) -> None:
    assert form.parse(form.write(number)) == pytest.approx(round(number, form.decimals), abs=1e-9)


PATTERNS = [
    "%Y-%m-%dT%H:%M:%SZ",
    "%d/%m/%Y",
    "%m-%d-%Y",
    "%Y.%m.%d",
    "%d %b %Y",
    "%B %d, %Y",
    "%d/%m/%Y %H:%M",
    "%m/%d/%Y %I:%M %p",
]
MOMENTS = st.datetimes(pd.Timestamp("1900-01-01"), pd.Timestamp("2100-01-01"))


@given(st.sampled_from(PATTERNS), st.booleans(), MOMENTS)
def test_dates_are_those_of_strptime(pattern: str, padded: bool, moment: Any) -> None:
    form = WrittenForm("date", "str", pattern=pattern, padded=padded)
    moment = moment.replace(second=0, microsecond=0)
    text = moment.strftime(pattern)
    read_back = pd.Timestamp(form.parse(text), unit="s")
    assert read_back == pd.to_datetime(text, format=pattern)
    assert form.parse(form.write(form.parse(text))) == form.parse(text)
    if padded:
        assert form.write(form.parse(text)) == text


@given(st.integers(0, 1439), st.booleans(), st.sampled_from(["h:mm", "h:mm:ss", "h:mm p", "h:mmp"]))
def test_times_are_read_as_they_are_written(minutes: int, padded: bool, pattern: str) -> None:
    form = WrittenForm("time", "str", pattern=pattern, padded=padded, unit="minutes")
    assert form.parse(form.write(float(minutes))) == minutes


def forms_of(**columns: list[str]) -> dict[str, WrittenForm]:
    return find_forms(read(pd.DataFrame(columns)), {}).forms


def test_a_doubtful_date_is_decided_by_another_column_else_by_convention() -> None:
    doubtful = ["03/04/2022", "05/06/2022"]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert forms_of(a=doubtful, b=["26/11/2022", "01/01/2022"])["a"].pattern == "%d/%m/%Y"
        assert forms_of(a=doubtful, b=["11/26/2022", "01/01/2022"])["a"].pattern == "%m/%d/%Y"
    with pytest.warns(UserWarning, match="'a' is read with the month first.*the day first"):
        assert forms_of(a=doubtful)["a"].pattern == "%m/%d/%Y"
    with pytest.warns(UserWarning, match="'a' is read with the day first"):
        assert forms_of(a=["03.04.2022", "05.06.2022"])["a"].pattern == "%d.%m.%Y"


def test_a_doubtful_comma_is_decided_by_another_column_else_by_convention() -> None:
    doubtful = ["1,006", "5,700"]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert forms_of(a=doubtful, b=["1,5", "2,25"])["a"].decimal == ","
        assert forms_of(a=doubtful, b=["1,234.5", "2.0"])["a"].thousands == ","
    with pytest.warns(UserWarning, match="'a' is read with commas between thousands.*decimal commas"):
        assert forms_of(a=doubtful)["a"].parse("5,700") == 5700.0


def test_one_cell_in_a_hundred_may_differ_and_is_named() -> None:
    texts = [f"{k}%" for k in range(1, 100)]
    with pytest.warns(UserWarning, match="another form: 'see note'; correct them, or keep the column as text"):
        form = forms_of(a=[*texts, "see note"])["a"]
    assert form.is_missing("see note") and not form.is_missing("see notes")
    with pytest.warns(UserWarning, match="stays text: 98% of its cells seem to be numbers, but 'nothing', 'see note'"):
        assert forms_of(a=[*texts, "see note", "nothing"]) == {}


@pytest.mark.parametrize("n_wrong", [1, 5, 6, 20])
def test_errors_among_amounts_make_no_identifier(n_wrong: int) -> None:
    texts = [f"{k}.{k % 90 + 10}" for k in range(500 - n_wrong)] + [f"{k}O.5{k}" for k in range(n_wrong)]
    frame = pd.DataFrame({"amount": texts, "x": range(500)})
    with pytest.warns(UserWarning, match="column 'amount' .*'0O.50'"):
        schema = infer_schema(frame)
    if n_wrong <= 5:  # one cell in a hundred
        assert schema["amount"].kind == "rounded" and schema["amount"].n_observed == 500 - n_wrong
        assert np.isnan(encode(schema, frame)[0][-n_wrong:, 0]).all()
    else:
        assert schema.all_columns["amount"].aside.reason == "unlike cells"
        assert decode(schema, np.zeros((2, 1)), first_new=0)["amount"].isna().all()
        assert schema_from_dict(schema.to_dict()) == schema
    codes = pd.DataFrame({"invoice": [*(f"{k}" for k in range(536365, 536864)), "C536379"], "x": range(500)})
    aside = infer_schema(codes).all_columns["invoice"].aside
    assert aside is not None and aside.reason == "unlike cells"


def test_other_readings_than_numbers_are_hinted_at() -> None:
    days = pd.date_range("2015-03-01", periods=400, freq="3D")
    for pattern, said in (("%m%d%Y", "month, day, year"), ("%d%m%Y", "day, month, year")):
        frame = pd.DataFrame({"day": days.strftime(pattern).astype(int)})
        with pytest.warns(UserWarning, match=rf"'day': its whole numbers, such as .*\({said}\).*format='{pattern}'"):
            assert infer_schema(frame)["day"].kind == "integer"
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        infer_schema(pd.DataFrame({"k": np.random.default_rng(0).integers(10**6, 4 * 10**7, 400)}))


@pytest.mark.parametrize(
    ("pattern", "read_as"),
    [
        *((p, p) for p in ("%m/%d/%y", "%d/%m/%y", "%d.%m.%y", "%d-%m-%y", "%y-%m-%d", "%d-%b-%y", "%d %b %y")),
        *((p, p) for p in ("%d%b%Y", "%Y%m%d", "%d%m%Y", "%m%d%Y", "%m/%d/%y %H:%M", "%b %d, %y", "%d/%B/%Y")),
        ("unpadded %m/%d/%y", "%m/%d/%y"),
        ("unpadded %d.%m.%y", "%d.%m.%y"),
        ("unpadded %d-%b-%y", "%d-%b-%y"),
        ("unpadded %d-%^b-%y", "%d-%^b-%y"),
        ("unpadded %m/%d/%y %I:%M %p", "%m/%d/%y %I:%M %p"),
    ],
)
def test_short_years_and_solid_dates(pattern: str, read_as: str) -> None:
    moments = pd.Series(pd.date_range("2015-03-01", periods=300, freq="41h")).dt.floor("min")
    bare = pattern.removeprefix("unpadded ")
    texts = moments.dt.strftime(bare)
    if bare != pattern:
        texts = texts.str.replace(r"(?<![\d:])0(?=\d)", "", regex=True)
    frame = pd.DataFrame({"day": texts})
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        schema = infer_schema(frame)
    assert schema["day"].written is not None and schema["day"].written.pattern == read_as
    X, _ = encode(schema, frame)
    found = pd.Series(schema["day"].values(X[:, 0]))
    expected = moments if "%M" in bare else moments.dt.floor("D")
    assert found.dt.floor("min").tolist() == expected.tolist()
    assert decode(schema, X)["day"].tolist() == texts.tolist()


def test_short_years_before_1969_are_said() -> None:
    frame = pd.DataFrame({"born": [f"{k % 12 + 1}/{k % 28 + 1}/{k % 40 + 35}" for k in range(300)]})
    with pytest.warns(UserWarning, match="'born': years from 30 on are read as 1930 to 1999, such as in '1/1/35'"):
        schema = infer_schema(frame)
    assert (
        schema["born"].written is not None
        and schema["born"].written.parse("5/6/45") == pd.Timestamp(1945, 5, 6).timestamp()
    )
    versions = pd.DataFrame({"version": [f"1.{k % 10}.{k % 30 + 10}" for k in range(300)]})
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert infer_schema(versions)["version"].kind == "categorical"


@pytest.mark.parametrize(
    "word", ["***", "*", "Unknown", "UNKNOWN", "N/a", "Na", "NAN", "not available", "--", "...", "§"]
)
def test_words_for_missing_among_numbers(word: str) -> None:
    texts = [word if k % 3 == 0 else f"{'-' * (k % 2)}.{k % 90 + 10}" for k in range(300)]
    frame = pd.DataFrame({"x": texts, "age": [f"{k % 70}" if k % 5 else word for k in range(300)]})
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        schema = infer_schema(frame)
    X, _ = encode(schema, frame)
    assert schema.kinds == {"x": "rounded", "age": "integer"}
    np.testing.assert_array_equal(np.isnan(X), frame == word)
    assert X[1, 0] == -0.11 and X[2, 0] == 0.12 and X[4, 1] == 4
    assert decode(schema, X)["x"].fillna(word).tolist() == texts


@pytest.mark.parametrize("sign", ["", "₹", "Rs. "])
def test_lakhs(sign: str) -> None:
    numbers = [10 ** (k % 8) * (k % 9 + 1) + k for k in range(300)]
    texts = [sign + lakhs(number) for number in numbers]
    assert texts[7] == f"{sign}8,00,00,007" and texts[3] == f"{sign}4,003"
    frame = pd.DataFrame({"pay": texts})
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        schema = infer_schema(frame)
    X, _ = encode(schema, frame)
    assert X[:, 0].tolist() == numbers and decode(schema, X)["pay"].tolist() == texts
    assert schema_from_dict(json.loads(json.dumps(schema.to_dict()))) == schema
    assert "commas between lakhs" in reading_of(schema).notice
    frame.loc[5, "pay"] = sign + "1,2,3"  # an error, not a reason to delete real values
    with pytest.warns(UserWarning, match="missing, as of another form: .*1,2,3"):
        assert infer_schema(frame)["pay"].kind == "integer"


def lakhs(number: int) -> str:
    """A number with commas after its last three digits, and then after every two."""
    head, tail = divmod(number, 1000)
    groups = []
    while head > 99:
        groups.insert(0, f"{head % 100:02d}")
        head //= 100
    return ",".join([str(head), *groups, f"{tail:03d}"]) if number > 999 else str(number)


def test_signs_between_thousands_may_be_rare() -> None:
    texts = [f"{k}.50" for k in range(1, 900)] + ["1,200.50"]
    assert forms_of(a=texts)["a"].parse("1,200.50") == 1200.5


@pytest.mark.parametrize(
    ("texts", "words"),
    [
        ([f"{k},50 €" for k in range(40)] + ["k.A.", "k.A."], "95% of its cells seem to be numbers, but 'k.A.' is not"),
        ([f"{k:02d}/01/2020" for k in range(1, 13)] + ["soon"], "92% of its cells seem to be dates, but 'soon' is not"),
        (["01/02/2020", "2020-03-04", "5 Mar 2020"], "seem to be dates, but they are written in different forms"),
        (["$5.00", "6.00 €", "$7.00"], "seem to be numbers, but they are written in different forms"),
        (["9:30", "9:31 PM", "10:00"], "seem to be times, but they are written in different forms"),
    ],
)
def test_a_column_that_nearly_has_a_form_says_why_it_stays_text(texts: list[str], words: str) -> None:
    frame = pd.DataFrame({"a": texts * 12, "b": range(12 * len(texts))})
    with pytest.warns(UserWarning, match=f"column 'a' stays text: .*{words}"):
        schema = infer_schema(frame)
    assert words in reading_of(schema).notice and words in schema["a"].why_text
    assert schema_from_dict(schema.to_dict()) == schema


@pytest.mark.parametrize(
    "texts",
    [
        ["12 Main St", "7 Park Road", "3 High Street", "9 Mill Lane", "8 Ash Close", "5 Elm Way", "1 Oak Row"],
        ["00017", "02139", "10115"],
        ["536365", "536366", "536367"],
        ["yes", "no", "1"],
        ["2 doors", "4 doors"],
        ["<1", "1-5", ">5"],
    ],
)
def test_texts_that_are_no_numbers_are_taken_without_a_word(texts: list[str]) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert infer_schema(pd.DataFrame({"a": texts * 5})).columns[0].why_text == ""


def test_many_texts_are_parsed_as_each_alone() -> None:
    forms = [*NUMBER_FORMS, *(WrittenForm("date", "str", pattern=pattern) for pattern in PATTERNS)]
    forms += [WrittenForm("time", "str", pattern="h:mm p", unit="minutes"), WrittenForm("duration", "str")]
    texts = ["1,234.50", "(5)", "-(5)", "--5", "$ -5", "-$5", "5-", "+5", " 7 kg ", "7\nkg", "", "1e999", "1e5", "e5"]
    texts += ["31/12/2020", "31/02/2020", "29.02.2000", "2021.13.01", "12:60", "25:10", "0:30 PM", "12:30 am", "٣"]
    texts += ["7 Mar 2020", "March 7, 2020", "07/03/2020 9:05", "0000.01.01", "5 kg\n6 kg"]
    for form in forms:
        each = [form.parse_all([text])[0] for text in texts]
        np.testing.assert_array_equal(form.parse_all(texts), each)
        fits = [text for text, number in zip(texts, each, strict=True) if np.isfinite(number)]
        np.testing.assert_array_equal(form.parse_all(fits), [form.parse_all([text])[0] for text in fits])


def test_a_day_alone_is_evidence_in_a_column_with_times() -> None:
    form = WrittenForm("date", "str", pattern="%m/%d/%Y %I:%M %p")
    assert form.parse("01/02/2023") == form.parse("01/02/2023 12:00 AM") and form.parse("2023") is None


@pytest.mark.parametrize("library", ["pandas", "string", "object", "polars", "pyarrow", "numpy"])
def test_frames_of_every_library_keep_their_texts(library: str) -> None:
    texts = {"pay": ["$1,200.00", "$3.50", "-", "$77.25"], "day": ["26/11/2022", "1/2/2022", "3/4/2022", ""]}
    frame: Any = pd.DataFrame(texts)
    if library in ("string", "object"):
        frame = frame.astype(library)
    elif library == "numpy":
        frame = frame.to_numpy(dtype=object)
    elif library == "polars":
        frame = pl.DataFrame(texts)
    elif library == "pyarrow":
        frame = pa.table(texts)
    joint = jf.JointTree(random_state=0).fit(frame).joint_
    X, _ = encode(joint.schema, frame)
    assert np.isnan(X).sum() == 2 and X[1, 0] == 3.5
    drawn = joint.sample(5, random_state=0)
    assert type(drawn) is type(frame)
    again, unseen = encode(joint.schema, drawn)
    assert np.isfinite(again).all() and not unseen.any()
    filled = joint.impute(frame)
    known = pd.DataFrame(filled if library == "numpy" else texts | dict(_lists(filled)))
    assert known.iloc[:2, 0].tolist() == texts["pay"][:2] and known.iloc[:3, 1].tolist() == texts["day"][:3]
    assert known.iloc[2, 0] not in ("-", None)


def _lists(frame: Any) -> dict[str, list[str]]:
    if isinstance(frame, pl.DataFrame):
        return {str(name): values for name, values in frame.to_dict(as_series=False).items()}
    return dict(frame.to_pydict() if isinstance(frame, pa.Table) else frame.to_dict("list"))


def test_evidence_may_be_the_text_or_the_number() -> None:
    frame = pd.DataFrame({"rate": [f"{k}%" for k in range(40)], "sold": ["yes", "no"] * 20})
    joint = jf.JointTree(random_state=0).fit(frame).joint_
    assert joint.given(rate="15%").proba("sold") == joint.given(rate=15).proba("sold")
    with pytest.raises(ValueError, match=r"column 'rate': expected numbers: unit %.*got the text 'many'"):
        joint.log_density(pd.DataFrame({"rate": ["many"]}))
    with pytest.raises(ValueError, match="'rate'"):
        joint.given(rate="many")


def test_a_model_file_keeps_the_form_and_refuses_a_damaged_one(tmp_path: Any) -> None:
    frame = pd.DataFrame({"rate": [f"{k}%" for k in range(40)], "day": ["26/11/2022", "1/2/2022"] * 20})
    joint = jf.JointTree(random_state=0).fit(frame).joint_
    joint.save(tmp_path / "a.joint")
    assert jf.load(tmp_path / "a.joint").schema == joint.schema

    wrong: dict[str, Any] = {"sort": "x", "decimals": 99, "padded": 1, "pattern": "%Q", "unit": "days", "dtype": "x"}
    for field, value in wrong.items():
        data = joint.schema.to_dict()
        data["columns"][1]["written"][field] = value
        with pytest.raises(ValueError, match="written"):
            schema_from_dict(data)


def test_a_kind_given_by_the_user_decides() -> None:
    frame = pd.DataFrame({"zip": ["123", "456", "789"], "rate": ["1%", "2%", "3%"]})
    assert infer_schema(frame)["zip"].kind == "categorical"
    assert infer_schema(frame, {"zip": "integer"})["zip"].kind == "integer"
    assert infer_schema(frame, {"rate": "categorical"})["rate"].levels == ("1%", "2%", "3%")


def test_decoding_writes_the_form() -> None:
    schema = infer_schema(pd.DataFrame({"pay": ["(1,200.00)", "30.00", "5.25"]}))
    written = decode(schema, np.array([[-1234.5], [0.25], [np.nan]]))["pay"]
    assert written.fillna("").tolist() == ["(1,234.50)", "0.25", ""]


def test_the_order_of_rows_changes_nothing() -> None:
    texts = ["see note", *(f"{k}.50 kg" for k in range(1, 1000)), "-"]
    with pytest.warns(UserWarning, match="another form: 'see note'"):
        form = forms_of(a=texts)["a"]
    with pytest.warns(UserWarning, match="another form: 'see note'"):
        assert forms_of(a=texts[::-1])["a"] == form
    assert form.suffix == " kg" and form.exceptions == ("see note",)


def test_one_code_with_a_leading_zero_keeps_a_column_text() -> None:
    assert forms_of(a=[*(f"{k} kg" for k in range(1, 2000)), "007 kg"]) == {}


def test_columns_that_take_no_part_are_not_read() -> None:
    frame = pd.DataFrame({"a": ["03/04/2022", "05/06/2022"], "b": ["1,006", "5,700"], "x": [1, 2]})
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert infer_schema(frame, {"a": "ignored", "b": "identifier"}).names == ("x",)


def test_a_unit_is_removed_at_the_end_of_a_text_only() -> None:
    of_e, of_dot = WrittenForm("number", "object", suffix="e"), WrittenForm("number", "object", suffix=".")
    assert [of_e.parse(text) for text in ("1e5 e", "3 e", "(2 e)", "2e-")] == [1e5, 3.0, -2.0, -2.0]
    assert of_dot.parse("3.5.") == 3.5


@pytest.mark.parametrize(
    ("texts", "numbers"),
    [
        (["73/100", "8/100", "100/100"], [73, 8, 100]),
        (["4.5/5", "3.0/5", "5.0/5"], [4.5, 3.0, 5.0]),
        (["6,5 l/100km", "12,0 l/100km", "7,1 l/100km"], [6.5, 12.0, 7.1]),
        (["85m2", "120m2", "64m2"], [85, 120, 64]),
        (["1.250,5 kWh/m2a", "980,0 kWh/m2a", "75,2 kWh/m2a"], [1250.5, 980.0, 75.2]),
    ],
)
def test_units_may_have_digits(texts: list[str], numbers: list[float]) -> None:
    frame = pd.DataFrame({"x": texts * 20, "k": ["a", "b"] * 30})
    joint = jf.HiddenTreeForest(n_estimators=1, n_states=2, random_state=0).fit(frame).joint_
    X, _ = encode(joint.schema, frame)
    assert X[:3, 0].tolist() == pytest.approx(numbers)
    assert decode(joint.schema, X)["x"].tolist() == frame["x"].tolist()
    assert float(joint.query("E(x)")) == pytest.approx(np.mean(numbers), rel=0.02)


@pytest.mark.parametrize("end", ["T%H:%MZ", "T%H:%M:%SZ", " %H:%M:%SZ", " %H:%M:%S UTC"])
def test_moments_of_logs_are_dates(end: str) -> None:
    moments = pd.Timestamp("2024-05-01") + pd.to_timedelta(37 * 60 * np.arange(200), unit="s")
    frame = pd.DataFrame({"at": moments.strftime(f"%Y-%m-%d{end}"), "k": ["a", "b"] * 100})
    joint = jf.HiddenTreeForest(n_estimators=1, n_states=2, random_state=0).fit(frame).joint_
    assert joint.schema["at"].kind == "datetime"
    assert decode(joint.schema, encode(joint.schema, frame)[0])["at"].tolist() == frame["at"].tolist()
    late = frame["at"] > frame["at"].iloc[120]
    assert joint.probability({"at": jf.between(frame["at"].iloc[121], None)}) == pytest.approx(late.mean(), abs=0.02)


@pytest.mark.parametrize(
    "texts", [["03/2024", "11/2024", "12/2024"], ["130/80", "125/70", "140/90"], ["12AB3", "13AB3", "19AB3"]]
)
def test_years_pairs_and_codes_are_no_units(texts: list[str]) -> None:
    assert not find_forms(read(pd.DataFrame({"x": texts * 20})), {}).forms


def test_marks_with_tendencies_are_levels() -> None:
    rng = np.random.default_rng(0)
    marks = [f"{k}{sign}" for k, sign in zip(rng.integers(1, 7, 200), rng.choice(["", "+", "-"], 200), strict=True)]
    schema = jf.fit(pd.DataFrame({"mark": marks, "k": ["a", "b"] * 100}), budget="fast", random_state=0).schema
    assert schema.columns[0].levels == tuple(sorted(set(marks)))


def read_alone(texts: list[str]) -> tuple[np.ndarray, list[str]]:
    """The numbers of a column of texts, and the texts that are written for them."""
    frame = pd.DataFrame({"t": texts, "x": np.arange(len(texts)) % 7})
    schema = infer_schema(frame)
    cells = encode(schema, frame)[0]
    return cells[:, 0] + schema["t"].zero, decode(schema, cells)["t"].tolist()


MOMENTS_OF_LOGS = pd.Series(
    pd.to_datetime("2024-02-27") + pd.to_timedelta(np.arange(0.0, 300.0) * 1234.56789, unit="s")
)


@pytest.mark.parametrize("places", [1, 3, 6])
@pytest.mark.parametrize("pattern", ["%Y-%m-%d %H:%M:%S.{}", "%d/%m/%Y %H:%M:%S,{}", "%Y-%m-%dT%H:%M:%S.{}Z"])
def test_moments_with_fractions_of_a_second(pattern: str, places: int) -> None:
    moments = MOMENTS_OF_LOGS.dt.floor(f"{10 ** (9 - places)}ns")
    texts = [m.strftime(pattern.format(f"{m.microsecond:06d}"[:places])) for m in moments]
    pattern = pattern.replace("%d/%m/%Y %H:%M:%S,{}", "%d/%m/%Y %H:%M:%S.{}")  # pandas reads no comma there
    expected = pd.to_datetime([t.replace(",", ".") for t in texts], format=pattern.format("%f")) - pd.Timestamp(0)
    numbers, written = read_alone(texts)
    assert written == texts
    assert numbers == pytest.approx(expected.total_seconds().to_numpy(), abs=1e-6)


def test_times_of_day_with_fractions_of_a_second() -> None:
    texts = [f"{m:%H:%M:%S}.{m.microsecond // 1000:03d}" for m in MOMENTS_OF_LOGS]
    numbers, written = read_alone(texts)
    assert written == texts
    assert numbers == pytest.approx(pd.to_timedelta(pd.Series(texts)).dt.total_seconds().to_numpy(), abs=1e-6)


@pytest.mark.parametrize("pattern", ["%m/%Y", "%Y-%m", "%Y/%m", "%m.%Y", "%b %Y", "%B %Y", "%b-%y", "%B-%Y"])
def test_months_are_counted(pattern: str) -> None:
    months = pd.period_range("1985-03", "2019-11", freq="M")
    numbers, written = read_alone(months.strftime(pattern).tolist())
    assert written == months.strftime(pattern).tolist()
    assert numbers.tolist() == [12.0 * (m.year - 1970) + m.month - 1 for m in months]


def test_answers_about_months_are_shares_of_the_rows() -> None:
    months = pd.period_range("2010-01", "2019-12", freq="M")
    rows = pd.DataFrame({"t": months.strftime("%m/%Y").tolist() * 5, "x": np.arange(600.0) % 10})
    joint = jf.JointTree(random_state=0).fit(rows).joint_
    assert joint.query("P(t <= '06/2015')") == pytest.approx(66 / 120, abs=0.02)
    assert sum(joint.probability({"t": t}) for t in rows["t"].unique()) == pytest.approx(1.0, abs=0.01)
    assert set(joint.sample(200, random_state=0)["t"]) <= set(rows["t"])


@pytest.mark.parametrize("texts", [[f"{y}-{(y + 1) % 100:02d}" for y in range(1999, 2012)], ["2011-04", "2012-04"] * 9])
def test_seasons_and_few_months_stay_levels(texts: list[str]) -> None:
    assert forms_of(t=texts) == {}


SPANS = [
    ["1.2s", "350ms", "12.0s", "0.9s", "7ms"],
    ["1h 20m", "45m", "3h 5m", "2h"],
    ["1h07m", "12h45m", "45m"],
    ["2d 5h 10m", "3d", "7h", "59m"],
    ["2 days, 3 hours", "5 days, 14 hours"],
    ["1 h 5 min", "30 min", "2 h"],
    ["3m 2.50s", "1m 0.25s", "9.00s"],
]


def seconds_of(text: str) -> float:
    """A duration as pandas reads it, which wants a capital D for days."""
    return float(pd.Timedelta(re.sub(r"(\d)d\b", r"\1D", text.replace(",", ""))).total_seconds())


@pytest.mark.parametrize("texts", SPANS)
def test_durations_in_several_units(texts: list[str]) -> None:
    numbers, written = read_alone(texts * 30)
    expected = [seconds_of(text) for text in texts]
    assert numbers[: len(texts)] == pytest.approx(expected, abs=1e-9)
    assert [seconds_of(text) for text in written[: len(texts)]] == expected
    if texts != SPANS[0]:
        assert written[: len(texts)] == texts


@pytest.mark.parametrize("texts", [["1.2M", "350m"], ["1.2 kg", "350 g"], ["5m", "3 apples"], ["12:30", "5h 3m"]])
def test_other_units_are_no_durations(texts: list[str]) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert forms_of(t=texts * 30) == {}
