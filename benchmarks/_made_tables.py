"""Made tables of twelve kinds, and the planting of wrong cells of five kinds.

Six kinds are realistic, with functions, sums and orders among their columns: orders, patients, sensors, students, flats
and staff. The others are numbers that are easily mistaken for each other.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pandas as pd

Maker = Callable[[np.random.Generator, int], pd.DataFrame]
"""From a random generator and the number of rows."""

ERRORS = ("typing", "shift", "random", "swap", "digit")
"""A letter of a text, a factor of ten, another cell of the column, the cell of the next column, and one digit."""
_LETTERS = list("abcdefghijklmnopqrstuvwxyz")


def _of(table: Mapping[str, Any], keys: np.ndarray) -> np.ndarray:
    """What each key has in a table."""
    return np.array([table[key] for key in keys])


def _days(first: str, days: np.ndarray) -> pd.DatetimeIndex:
    return pd.Timestamp(first) + pd.to_timedelta(days, unit="D")


def orders(rng: np.random.Generator, n: int) -> pd.DataFrame:
    """Cities lie in a country, products have a category and a price, and two amounts are computed."""
    price = {"pen": 1.5, "book": 12.9, "bag": 45.0, "lamp": 89.0, "desk": 240.0, "chair": 119.5}
    category = {"pen": "office", "book": "media", "bag": "fashion", "lamp": "home", "desk": "home", "chair": "home"}
    country = {"Paris": "France", "Lyon": "France", "Berlin": "Germany", "Hamburg": "Germany", "Rome": "Italy",
               "Milan": "Italy", "Madrid": "Spain"}  # fmt: skip
    product = rng.choice(list(price), n, p=[0.3, 0.25, 0.15, 0.15, 0.05, 0.1])
    unit, quantity = _of(price, product), rng.integers(1, 9, n)
    city = rng.choice(list(country), n, p=[0.25, 0.1, 0.25, 0.15, 0.1, 0.1, 0.05])
    subtotal = np.round(unit * quantity, 2)
    shipping = np.where(subtotal > 100, 0.0, rng.choice([4.9, 6.9], n))
    ordered = _days("2024-01-01", rng.integers(0, 365, n))
    shipped = ordered + pd.to_timedelta(rng.geometric(0.4, n), unit="D")
    paid_by = rng.choice(["card", "invoice", "paypal"], n, p=[0.6, 0.25, 0.15])
    return pd.DataFrame(
        {"ordered": ordered, "shipped": shipped, "city": city, "country": _of(country, city), "product": product,
         "category": _of(category, product), "unit": unit, "quantity": quantity, "subtotal": subtotal,
         "shipping": shipping, "total": np.round(subtotal + shipping, 2), "paid_by": paid_by}
    )  # fmt: skip


def patients(rng: np.random.Generator, n: int) -> pd.DataFrame:
    """Wards depend on sex and age, the weight on the height, and nobody is discharged before the admission."""
    sex, age = rng.choice(["female", "male"], n), rng.integers(1, 95, n)
    gives_birth = (sex == "female") & (rng.random(n) < 0.3) & (age < 50)
    others = rng.choice(["surgery", "internal", "cardiology"], n)
    ward = np.where(age < 16, "children", np.where(gives_birth, "maternity", others))
    mean = np.where(age < 16, 75 + 6 * age, np.where(sex == "male", 177, 165))
    height = np.round(mean + rng.normal(0, 7, n))
    weight = np.round((height / 100) ** 2 * rng.normal(np.where(age < 16, 17, 25), 3, n), 1)
    systolic = np.round(105 + 0.4 * age + rng.normal(0, 12, n))
    diastolic, pulse = np.round(0.55 * systolic + 10 + rng.normal(0, 6, n)), np.round(rng.normal(76, 11, n))
    admitted = _days("2023-01-01", rng.integers(0, 700, n))
    discharged = admitted + pd.to_timedelta(rng.geometric(0.2, n) - 1, unit="D")
    temperature, smoker = np.round(rng.normal(36.9, 0.6, n), 1), rng.choice(["yes", "no"], n, p=[0.25, 0.75])
    return pd.DataFrame(
        {"sex": sex, "age": age, "ward": ward, "height": height.astype(int), "weight": weight,
         "systolic": systolic.astype(int), "diastolic": diastolic.astype(int), "pulse": pulse.astype(int),
         "temp": temperature, "smoker": smoker, "admitted": admitted, "discharged": discharged}
    )  # fmt: skip


def sensors(rng: np.random.Generator, n: int) -> pd.DataFrame:
    """The temperature depends on station and hour, the dew point follows, and gusts exceed the wind."""
    station, hour = rng.choice(["north", "south", "east", "west"], n), rng.integers(0, 24, n)
    mean = _of({"north": -4, "south": 4, "east": 0, "west": 1}, station) + 12 + 6 * np.sin((hour - 9) / 24 * 2 * np.pi)
    temp = np.round(mean + rng.normal(0, 2.5, n), 1)
    humidity = np.round(np.clip(85 - 1.6 * temp + rng.normal(0, 6, n), 15, 100))
    pressure, wind = np.round(rng.normal(1013, 8, n), 1), np.round(rng.gamma(2, 2.2, n), 1)
    gust = np.round(wind * (1.2 + rng.gamma(2, 0.2, n)), 1)
    rain = np.round(np.where(rng.random(n) < 0.8, 0, rng.gamma(0.7, 3, n)), 1)
    battery = np.round(rng.uniform(3.3, 4.2, n), 2)
    status = rng.choice(["ok", "low", "service"], n, p=[0.93, 0.05, 0.02])
    return pd.DataFrame(
        {"station": station, "hour": hour, "temp": temp, "dew": np.round(temp - (100 - humidity) / 5, 1),
         "humidity": humidity.astype(int), "pressure": pressure, "wind": wind, "gust": gust, "rain": rain,
         "battery": battery, "status": status}
    )  # fmt: skip


def students(rng: np.random.Generator, n: int) -> pd.DataFrame:
    """Schools lie in a district; three dependent grades have a total, which decides who passed."""
    district = {"Adams High": "East", "Baker High": "East", "Clark Academy": "West", "Dover School": "North",
                "Eaton College": "West"}  # fmt: skip
    school, year, ability = rng.choice(list(district), n), rng.integers(1, 5, n), rng.normal(0, 1, n)
    grades = [
        np.clip(np.round(65 + 11 * (0.8 * ability + 0.6 * rng.normal(0, 1, n))), 0, 100).astype(int) for _ in range(3)
    ]
    absences, total = rng.poisson(4, n), sum(grades)
    age, gender, late = year + 13 + (rng.random(n) < 0.4), rng.choice(["f", "m"], n), rng.poisson(2, n)
    return pd.DataFrame(
        {"school": school, "district": _of(district, school), "year": year, "age": age, "gender": gender,
         "math": grades[0], "reading": grades[1], "science": grades[2], "total": total, "absences": absences,
         "late": late, "passed": np.where(total >= 180, "yes", "no")}
    )  # fmt: skip


def flats(rng: np.random.Generator, n: int) -> pd.DataFrame:
    """Postal codes lie in a city, the floor is in the building, and the fee is 3 % of the price."""
    price_of = {"Vienna": 5600, "Linz": 3800, "Salzburg": 5900, "Innsbruck": 5400, "Graz": 3600}
    city_of = {"1010": "Vienna", "1020": "Vienna", "1030": "Vienna", "4020": "Linz", "4030": "Linz",
               "5020": "Salzburg", "6020": "Innsbruck", "8010": "Graz", "8020": "Graz"}  # fmt: skip
    code, rooms = rng.choice(list(city_of), n), rng.integers(1, 7, n)
    city, area = _of(city_of, code), np.round(rooms * rng.normal(24, 4, n) + 8)
    floors = rng.integers(1, 9, n)
    floor = np.array([rng.integers(0, most + 1) for most in floors])
    price = np.round(area * _of(price_of, city) * rng.lognormal(0, 0.15, n), -3).astype(int)
    kind = rng.choice(["flat", "house"], n, p=[0.8, 0.2])
    bathrooms, built = np.maximum(1, rooms // 3 + (rng.random(n) < 0.2)), rng.integers(1900, 2024, n)
    return pd.DataFrame(
        {"zip": code, "city": city, "kind": kind, "rooms": rooms, "bathrooms": bathrooms, "area": area.astype(int),
         "floor": floor, "floors": floors, "built": built, "price": price, "fee": np.round(price * 0.03).astype(int),
         "sold": np.where(rng.random(n) < 0.7, "yes", "no")}
    )  # fmt: skip


def staff(rng: np.random.Generator, n: int) -> pd.DataFrame:
    """Titles belong to a department and departments to an office; the salary follows the title; pay is a sum."""
    titles = {"sales": ["rep", "lead"], "support": ["agent", "lead"], "finance": ["accountant", "controller"],
              "engineering": ["engineer", "senior engineer", "architect"]}  # fmt: skip
    thousands = {"rep": 38, "lead": 55, "agent": 32, "engineer": 60, "senior engineer": 78, "architect": 95,
                 "accountant": 48, "controller": 70}  # fmt: skip
    department = rng.choice(["sales", "support", "engineering", "finance"], n, p=[0.3, 0.3, 0.3, 0.1])
    title = np.array([rng.choice(titles[one]) for one in department])
    salary = np.round(_of(thousands, title) * 1000 * rng.lognormal(0, 0.1, n), -2).astype(int)
    bonus = np.round(salary * rng.choice([0, 0.05, 0.1], n), -1).astype(int)
    hired, age = _days("2010-01-01", rng.integers(0, 5000, n)), rng.integers(20, 65, n)
    office = _of({"sales": "A1", "support": "B2", "engineering": "C3", "finance": "A2"}, department)
    return pd.DataFrame(
        {"department": department, "title": title, "office": office, "age": age, "hired": hired, "salary": salary,
         "bonus": bonus, "pay": salary + bonus, "vacation": rng.integers(0, 31, n), "sick": rng.poisson(5, n),
         "trainings": rng.poisson(3, n), "remote": rng.choice(["no", "some", "full"], n)}
    )  # fmt: skip


def parts(rng: np.random.Generator, n: int) -> pd.DataFrame:
    """Independent counts of different sizes, and their sum."""
    a, b, c = rng.integers(1, 40, n), rng.integers(0, 20, n), rng.poisson(6, n)
    return pd.DataFrame({"a": a, "b": b, "c": c, "all": a + b + c, "kind": rng.choice(list("abc"), n)})


def equal_parts(rng: np.random.Generator, n: int) -> pd.DataFrame:
    """Independent counts of the same size, and their sum."""
    a, b, c = (rng.integers(0, 30, n) for _ in range(3))
    return pd.DataFrame({"a": a, "b": b, "c": c, "total": a + b + c})


def answers(rng: np.random.Generator, n: int) -> pd.DataFrame:
    """Six answers from 1 to 5 that depend on one trait."""
    trait = rng.normal(0, 1, n)
    columns = {
        f"q{k}": np.clip(np.round(3 + 0.7 * trait + rng.normal(0, 0.9, n) + 0.3 * (k % 3 - 1)), 1, 5).astype(int)
        for k in range(6)
    }
    return pd.DataFrame(columns | {"group": rng.choice(["x", "y"], n)})


def counts(rng: np.random.Generator, n: int) -> pd.DataFrame:
    """Counts of matches, three of which depend on each other."""
    rate = rng.gamma(3, 2, n)
    return pd.DataFrame(
        {"home": rng.poisson(rate), "away": rng.poisson(rate * 0.8), "shots": rng.poisson(rate * 3),
         "fouls": rng.poisson(8, n), "cards": rng.poisson(2, n), "team": rng.choice(list("ABCDEFGH"), n)}
    )  # fmt: skip


def repeated(rng: np.random.Generator, n: int) -> pd.DataFrame:
    """Two measurements of one thing, and an independent one of the same size."""
    truth = rng.normal(100, 15, n)
    first, second = np.round(truth + rng.normal(0, 6, n), 1), np.round(truth + rng.normal(2, 6, n), 1)
    third = np.round(rng.normal(95, 18, n), 1)
    return pd.DataFrame({"first": first, "second": second, "third": third, "sex": rng.choice(["f", "m"], n)})


def balances(rng: np.random.Generator, n: int) -> pd.DataFrame:
    """A difference and a sum of amounts of similar size."""
    revenue = rng.integers(50, 900, n)
    cost = (revenue * rng.uniform(0.5, 0.95, n)).astype(int)
    equity, debt = rng.integers(10, 300, n), rng.integers(5, 280, n)
    return pd.DataFrame(
        {"region": rng.choice(["N", "S", "E"], n), "revenue": revenue, "cost": cost, "profit": revenue - cost,
         "equity": equity, "debt": debt, "assets": equity + debt}
    )  # fmt: skip


MAKERS: tuple[Maker, ...] = (
    orders, patients, sensors, students, flats, staff, parts, equal_parts, answers, counts, repeated, balances,
)  # fmt: skip


def _wrong(old: Any, error: str, column: pd.Series, rng: np.random.Generator) -> Any:
    """A cell after an error of a kind that concerns its column alone; perhaps it stays the same."""
    if error == "typing":
        at = int(rng.integers(len(old)))
        return (old[:at] + _LETTERS[rng.integers(26)] * int(rng.integers(3)) + old[at + 1 :]) or old
    if error == "shift":
        new = round(float(old * 10.0 ** rng.choice([-1, 1, 2])), 6)
        return int(new) if new.is_integer() and isinstance(old, (int, np.integer)) else new
    if error == "digit":
        text = list(str(old))
        text[rng.choice([k for k, sign in enumerate(text) if sign.isdigit()])] = str(rng.integers(10))
        return type(old)("".join(text))
    return column.iat[int(rng.integers(len(column)))]


def plant_errors(frame: pd.DataFrame, rate: float, rng: np.random.Generator) -> tuple[pd.DataFrame, np.ndarray]:
    """The frame with wrong cells, and the kind of error of each cell, empty where it is right, (n, d)."""
    sort = ["number" if pd.api.types.is_numeric_dtype(of) else str(of.dtype) for _, of in frame.items()]
    out, errors = frame.astype(object), np.full(frame.shape, "", dtype="U8")
    for k, name in enumerate(frame):
        is_number, is_date = sort[k] == "number", sort[k].startswith("datetime")
        kinds = ["shift", "digit"] * is_number + ["typing"] * (not is_number and not is_date) + ["random", "swap"]
        for i in np.flatnonzero(rng.random(len(frame)) < rate).tolist():
            error, old = str(rng.choice(kinds)), out.iat[i, k]
            if errors[i, k] or (error == "swap" and sort[k] != ([*sort, ""])[k + 1]):
                continue
            new = out.iat[i, k + 1] if error == "swap" else _wrong(old, error, frame[name], rng)
            if new == old:
                continue
            out.iat[i, k], errors[i, k] = new, error
            if error == "swap":
                out.iat[i, k + 1], errors[i, k + 1] = old, error
    return out.infer_objects(), errors
