"""Proposals for kinds of columns: codes, numbers, dates, keys, ranges written as text."""

from __future__ import annotations

import itertools
import math
import random
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from suggest_support import check, load_text, people

from aegis.policy import Role
from aegis.policy.suggest import init_policy
from aegis.policy.suggest.facts import in_order
from aegis.sources import open_proposing


def test_codes_with_leading_zeros_and_whole_numbers_named_postcode() -> None:
    rows = 200
    table = pa.table(
        {
            "dept": [f"{i % 60:04d}" for i in range(rows)],
            "plz": [10_000 + 11 * (i % 50) for i in range(rows)],
            "postcode": [
                ("AB1 2CD", "M1 1AA", "SW1A 1AA")[i % 3] + str(i % 20) for i in range(rows)
            ],
            "y": [i % 2 for i in range(rows)],
        }
    )
    proposed = check(table, "y")
    specs = {n: [m.spec() for m in a.masks] for n, a in proposed.policy.attributes.items()}
    assert proposed.policy.attributes["dept"].role is Role.QUASI_IDENTIFIER
    assert {"blur": {"keep": 3}} in specs["dept"]
    assert {"blur": {"hide": 1}} in specs["plz"]
    assert {"blur": {"hide": 3}} in specs["postcode"]


def test_a_csv_file_with_leading_zeros(tmp_path: Path) -> None:
    path = tmp_path / "people.csv"
    rows = "".join(f"{i % 50:05d},{i % 2}\n" for i in range(200))
    path.write_text("area,y\n" + rows)
    proposed = init_policy(path, label="y")
    assert proposed.policy.attributes["area"].role is Role.QUASI_IDENTIFIER
    assert load_text(proposed.yaml) == proposed.policy
    assert "A first policy for people.csv (200 rows, 2 columns)" in proposed.yaml
    assert str(tmp_path) not in proposed.yaml
    assert "aegis advise people.csv --policy" in proposed.yaml
    assert "aegis advise TABLE --policy" in init_policy(people(), label="label").yaml


def test_a_csv_file_with_a_column_that_is_empty_throughout(tmp_path: Path) -> None:
    path = tmp_path / "courts.csv"
    path.write_text("note,age,y\n" + "".join(f",{20 + i % 50},{i % 2}\n" for i in range(100)))
    source = open_proposing(path)
    proposed = init_policy(source, label="y")
    assert proposed.policy.attributes["note"].role is Role.IGNORE


def test_shares_of_groups_are_no_trait_and_dates_in_digits_are_dates() -> None:
    rows = 400
    table = pa.table(
        {
            "share_white": [(i * 37 % 997) / 10 for i in range(rows)],
            "share_hispanic": [(i * 41 % 991) / 10 for i in range(rows)],
            "hispanic": [i % 2 for i in range(rows)],
            "sighting date": [10062018 + i * i % 19 * 10000 for i in range(rows)],
            "y": [i % 3 == 0 for i in range(rows)],
        }
    )
    roles = {n: a.role for n, a in init_policy(table, label="y").policy.attributes.items()}
    assert roles == {
        "share_white": Role.FEATURE,
        "share_hispanic": Role.FEATURE,
        "hispanic": Role.QUASI_IDENTIFIER,
        "sighting date": Role.QUASI_IDENTIFIER,
    }


def test_unknown_among_numbers_is_null(tmp_path: Path) -> None:
    path = tmp_path / "people.csv"
    path.write_text(
        "age,y\n" + "".join(f"{20 + i % 50 if i % 25 else 'Unknown'},{i % 2}\n" for i in range(100))
    )
    source = open_proposing(path)
    assert source.reading is not None
    assert source.reading.null == ("Unknown",)
    (age,) = (
        a for a in init_policy(source, label="y").policy.attributes.values() if a.name == "age"
    )
    assert {"bucketize": {"width": 5}} in [mask.spec() for mask in age.masks]


def test_awkward_numbers() -> None:
    rows = 120
    table = pa.table(
        {
            "nan": [math.nan] * rows,
            "mostly_nan": [math.nan if i % 5 else float(i) for i in range(rows)],
            "infinite": [math.inf if i % 2 else -math.inf for i in range(rows)],
            "mixed": [(math.inf, -math.inf, math.nan, 1.0 * i)[i % 4] for i in range(rows)],
            "huge age": [2**63 - 1 - i % 30 * 10**15 for i in range(rows)],
            "enormous age": [1e290 * (i % 30) for i in range(rows)],
            "tiny age": [1e-300 * (i % 30) for i in range(rows)],
            "money age": pa.array(
                [Decimal(i % 30) * Decimal("1e20") for i in range(rows)], pa.decimal128(38, 2)
            ),
            "y": [i % 2 for i in range(rows)],
        }
    )
    proposed = check(table, "y")
    assert proposed.policy.attributes["nan"].role is Role.IGNORE
    assert "30 NaN or infinite" not in proposed.yaml
    assert "96 NaN or infinite" in proposed.yaml
    for name in ("huge", "enormous", "tiny", "money"):
        assert len(proposed.policy.attributes[f"{name} age"].masks) >= 2, name


def test_dates_with_time_zones_and_of_every_span() -> None:
    rows = 100
    zone = pa.timestamp("us", tz="Asia/Tokyo")
    start = datetime(2023, 12, 31, 20, tzinfo=UTC)
    spans = {"hours": 0.01, "days": 0.2, "months": 2, "years": 15, "decades": 200}
    table = pa.table(
        {
            **{
                n: pa.array([start + timedelta(days=d * i) for i in range(rows)], zone)
                for n, d in spans.items()
            },
            "y": [i % 2 for i in range(rows)],
        }
    )
    proposed = check(table, "y")
    units = {
        n: [
            "".join(str(v) for v in m.spec()["truncate"].values())
            for m in proposed.policy.attributes[n].masks
            if isinstance(m.spec(), dict)
        ]
        for n in spans
    }
    assert units == {
        "hours": ["day"],
        "days": ["day", "week"],
        "months": ["day", "week", "month", "quarter"],
        "years": ["day", "month", "quarter", "year"],
        "decades": ["day", "month", "year", "year5", "year10decade"],
    }
    assert all(a.role is Role.QUASI_IDENTIFIER for a in proposed.policy.attributes.values())
    named = {n: "`show: year`" in proposed.profiles[n].masks_reason for n in spans}
    assert named == {n: "year" in units[n] for n in spans}


def visits(rows: int = 3000) -> pa.Table:
    """Return visits of persons: numbers of persons come back, amounts heap up."""
    chance = random.Random(5)
    persons = [chance.randrange(10**6, 10**8) for _ in range(rows * 2 // 3)]
    return pa.table(
        {
            "registered": [chance.choice(persons) for _ in range(rows)],
            "tag": [f"Q{chance.randrange(2000):05d}-X" for _ in range(rows)],
            "paid": [round(chance.lognormvariate(10, 1), -1) for _ in range(rows)],
            "cents": [chance.choice([0, chance.randrange(10**6)]) for _ in range(rows)],
            "code": [
                f"{chance.choice('EFJ')}{chance.randrange(60):02d}.{i % 10}" for i in range(rows)
            ],
            "seen": [f"{1 + i % 28:02d}.{1 + i % 12:02d}.20{10 + i % 9}" for i in range(rows)],
            "worth": [f"{1 + i * 7 % 2500},{i % 90 + 10}" for i in range(rows)],
            "words": [f"she said that item {i % 2400} was not as new" for i in range(rows)],
            "y": [i % 2 for i in range(rows)],
        }
    )


def test_keys_are_found_by_how_they_repeat() -> None:
    proposed = check(visits(), "y")
    roles = {n: str(a.role) for n, a in proposed.policy.attributes.items()}
    assert roles == {
        "registered": "identifier",
        "tag": "identifier",
        "paid": "feature",
        "cents": "feature",
        "code": "sensitive",
        "seen": "quasi-identifier",
        "worth": "feature",
        "words": "identifier",
    }
    assert "as numbers of persons repeat" in proposed.profiles["registered"].reason
    assert "codes of diseases (ICD-10)" in proposed.profiles["code"].reason
    assert proposed.person in ("registered", "tag")
    assert f"person: {proposed.person}" in proposed.yaml
    assert proposed.policy.person == proposed.person
    assert proposed.to_dict()["person"] == proposed.person
    assert check(people(), "label").person is None


@pytest.mark.parametrize(
    ("name", "role"),
    [("fnlwgt", "identifier"), ("PERWT", "identifier"), ("final weight", "ignore")],
)
def test_a_weight_of_a_survey_counts_no_persons(name: str, role: str) -> None:
    three = visits().select(["registered", "paid", "y"])
    proposed = check(three.rename_columns([name, "paid", "y"]), "y")
    assert proposed.person is None
    # Of the words only "weight" speaks of a quantity; what is near to a key and says less is dropped.
    # Neither is released, as a weight can single a row out.
    assert str(proposed.policy.attributes[name].role) == role


MONTHS = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
]


def test_values_that_are_races_are_a_quasi_identifier() -> None:
    table = pd.DataFrame(
        {
            "colour": ["White", "Black"] * 60,
            "group": ["Caucasian", "asian", "Other", " "] * 30,
            "paint": ["white", "black", "red"] * 40,
            "side": ["white", "other", "unknown"] * 40,
            "food": ["asian", "american", "hispanic"] * 40,
            "y": ["a", "a", "b"] * 40,
        }
    )
    roles = {a.name: a.role for a in init_policy(table, label="y").policy.attributes.values()}
    races = {name for name, role in roles.items() if role is Role.QUASI_IDENTIFIER}
    assert races == {"colour", "group"}


def test_days_and_months_of_events_are_quasi_identifiers() -> None:
    """They were features, although a date in one column is a quasi-identifier."""
    random = np.random.default_rng(3)
    rows = 2_000
    dead = random.random(rows) < 0.6
    months = np.array([*MONTHS, "Not applicable"])
    table = pd.DataFrame(
        {
            "ideathmon": months[np.where(dead, random.integers(0, 12, rows), 12)],
            "ideathday": np.where(dead, random.integers(1, 32, rows), random.choice([0, 99], rows)),
            "arrival_month": random.integers(1, 13, rows),
            "cigarettes_per_day": random.integers(0, 31, rows),
            "months": random.integers(1, 60, rows),
            "shift": random.choice(["early", "late", "may", "mon"], rows),
            "trial_day": random.integers(1, 8, rows),
            "agent": random.integers(1, 40, rows),
        }
    )
    roles = {n: a.role for n, a in init_policy(table).policy.attributes.items()}
    quasi = {name for name, role in roles.items() if role is Role.QUASI_IDENTIFIER}
    assert quasi == {"ideathmon", "ideathday", "arrival_month"}


def test_numbers_under_the_name_of_a_date_are_quasi_identifiers() -> None:
    """Statistics packages store dates as days since some day: such a column was released as it is."""
    random = np.random.default_rng(4)
    days = random.integers(16_000, 16_200, 900)
    table = pd.DataFrame(
        {
            "Date": days,
            "screening_date": days / 16_200,
            "spent_to_date": random.integers(10, 9_000, 900),
            "update": random.integers(1, 900, 900),
            "date_kind": random.integers(1, 4, 900),
        }
    )
    roles = {n: a.role for n, a in init_policy(table).policy.attributes.items()}
    quasi = {name for name, role in roles.items() if role is Role.QUASI_IDENTIFIER}
    assert quasi == {"Date", "screening_date"}


def test_codes_for_unknown_numbers_are_asked_about() -> None:
    """A -99 among incomes was masked and scored as an income, and nothing was said."""
    random = np.random.default_rng(5)
    missing = random.random(600) < 0.06
    pay = random.integers(900, 9_000, 600)
    table = pd.DataFrame(
        {
            "income": np.where(missing, -99, pay),
            "points": np.where(missing, -999.0, random.random(600)),
            "degrees": random.integers(-99, 40, 600),
            "change": np.where(missing, -99, random.integers(-90, 90, 600)),
        }
    )
    profiles = init_policy(table).profiles
    asked = {name for name, own in profiles.items() if "unknown number" in own.warning}
    assert asked == {"income", "points"}
    assert "--null=-99" in profiles["income"].warning
    assert "--null=-999" in profiles["points"].warning


def test_ranges_written_as_text_have_their_order() -> None:
    ages = [f"[{10 * n}-{10 * n + 10})" for n in range(10)]
    sizes = ["51-100", "11-50", "1-10", "100+"]
    rows = 400
    table = pa.table(
        {
            "age": [ages[i * 7 % 10] for i in range(rows)],
            "household size": [sizes[i % 4] for i in range(rows)],
            "age overlapping": [("0-20", "10-30", "30-40")[i % 3] for i in range(rows)],
            "y": [i % 2 for i in range(rows)],
        }
    )
    proposed = check(table, "y")
    age = proposed.policy.attributes["age"]
    assert age.order == tuple(ages)
    assert age.masks[1].spec() == {
        "group": {
            "groups": {f"[{20 * n}-{20 * n + 20})": ages[2 * n : 2 * n + 2] for n in range(5)},
            "rest": "other",
        }
    }
    household = proposed.policy.attributes["household size"]
    assert household.order == ("1-10", "11-50", "51-100", "100+")
    assert household.masks[1].spec()["group"]["groups"]["51-100 to 100+"] == ["51-100", "100+"]
    assert proposed.policy.attributes["age overlapping"].order == ()


@given(st.lists(st.integers(-50, 50), min_size=2, max_size=8, unique=True), st.randoms())
def test_ranges_are_ordered_by_their_bounds(cuts: list[int], chance: random.Random) -> None:
    cuts = sorted(cuts)
    ranges = [f"{low}-{high}" for low, high in itertools.pairwise(cuts)]
    ranges = [f"<{cuts[0]}", *ranges, f"{cuts[-1]}+"]
    mixed = list(ranges)
    chance.shuffle(mixed)
    assert in_order(mixed) == tuple(ranges)
    assert in_order([*mixed, "other"]) == ()


def test_the_key_of_persons_is_named_by_its_header_too() -> None:
    rows = 400
    table = pa.table(
        {
            "encounter_id": range(rows),
            "patient_nbr": [i * 7 % 300 for i in range(rows)],
            "age": [20 + i % 60 for i in range(rows)],
            "y": [i % 2 for i in range(rows)],
        }
    )
    proposed = check(table, "y")
    assert proposed.person == "patient_nbr"
    assert {a.name for a in proposed.policy.with_role(Role.IDENTIFIER)} == {
        "encounter_id",
        "patient_nbr",
    }


def test_measured_numbers_are_no_identifiers() -> None:
    rows = 100
    table = pa.table(
        {
            "amount": [7 * i for i in range(rows)],
            "reading": [i / 7 for i in range(rows)],
            "ticket": [7 * i for i in range(rows)],
            "y": [i % 2 for i in range(rows)],
        }
    )
    roles = {n: a.role for n, a in init_policy(table, label="y").policy.attributes.items()}
    assert roles == {"amount": Role.FEATURE, "reading": Role.FEATURE, "ticket": Role.IDENTIFIER}


def test_many_numbers_are_a_number_to_predict_and_few_are_asked_about() -> None:
    table = pa.table({"x": [i % 4 for i in range(100)], "price": [i * 1.5 for i in range(100)]})
    proposed = check(table, "price")
    assert proposed.policy.label.is_number
    assert "\nlabel: {column: price, kind: number}\n" in proposed.yaml
    assert "# label: {column: price, bins: 5}" in proposed.yaml
    assert "# measure: held-out-r2 " in proposed.yaml
    grades = pa.table({"x": [i % 4 for i in range(100)], "grade": [i % 6 for i in range(100)]})
    proposed = check(grades, "grade")
    assert not proposed.policy.label.is_number
    assert "# ASK: are these 6 numbers classes, or a number to predict?" in proposed.yaml
    assert "\n# label: {column: grade, kind: number}\n" in proposed.yaml
    assert "# measure: held-out-auc " in proposed.yaml
    marks = pa.table({"x": [i % 4 for i in range(100)], "grade": [i % 18 for i in range(100)]})
    assert check(marks, "grade").policy.label.is_number
    codes = pa.table({"x": [i % 4 for i in range(100)], "cluster": [i % 40 for i in range(100)]})
    assert not check(codes, "cluster").policy.label.is_number
    binary = pa.table({"x": [i % 4 for i in range(100)], "sick": [i % 2 for i in range(100)]})
    assert "# ASK: are these" not in check(binary, "sick").yaml


@pytest.mark.parametrize(
    ("offset", "role"), [(500_000.0, Role.QUASI_IDENTIFIER), (0.0, Role.FEATURE)]
)
def test_x_and_y_in_metres_on_a_map_are_places(offset: float, role: Role) -> None:
    at = {
        name: [offset + (i * step) % 997 + 0.25 for i in range(300)]
        for name, step in zip("xy", (31, 77), strict=True)
    }
    proposed = init_policy(pa.table({**at, "better": [i % 2 for i in range(300)]}), label="better")
    assert [proposed.policy.attributes[name].role for name in "xy"] == [role, role]


@pytest.mark.parametrize(
    "write",
    [
        lambda n: f"756.{n % 9000 + 1000}.{n // 7 % 9000 + 1000}.{n % 90 + 10}",  # Swiss AHV
        lambda n: (
            f"{n % 2 + 1} {n % 90 + 10} {n % 12 + 10} {n % 95:02} {n % 990:03} {n:03} {n % 97:02}"
        ),
        lambda n: f"{100 + n % 900} {100 + n // 3 % 900} {1000 + n}",  # British NHS
        lambda n: f"{100 + n % 7} {100 + n // 3 % 900} {100 + n}",  # nine digits in three groups
        lambda n: f"{100 + n % 7}.{100 + n // 3 % 900}.{100 + n}",
    ],
)
def test_numbers_of_persons_in_groups_are_no_amounts(write: Any) -> None:
    rows = 400
    table = pa.table({"q7": [write(n) for n in range(rows)], "label": ["a", "b"] * (rows // 2)})
    table = table.append_column("x", pa.array([n % 5 for n in range(rows)]))
    assert init_policy(table, label="label").policy.attributes["q7"].role is Role.IDENTIFIER


@pytest.mark.parametrize("form", ["${:,.2f}", "{:,.2f} €", "{:.1f} %", "{:,.0f}"])
def test_amounts_that_stay_texts_are_not_released_as_they_are(form: str) -> None:
    rows = 400
    texts = [form.format(17.3 * n + n * n) for n in range(rows)]
    table = pa.table({"q7": texts, "x": [n % 5 for n in range(rows)]})
    table = table.append_column("label", pa.array(["a", "b"] * (rows // 2)))
    attribute = init_policy(table, label="label").policy.attributes["q7"]
    assert attribute.role is Role.FEATURE
    assert list(map(str, attribute.masks)) == ["suppress"]


def test_a_comment_quotes_values_that_blanks_would_hide() -> None:
    table = pd.DataFrame({"outcome": ["Yes", "No ", "   "] * 40, "age": range(120)})
    assert "# most frequent: '   ' (33.3 %), 'No ' (33.3 %), Yes (33.3 %)" in (
        init_policy(table, label="outcome").yaml
    )


@pytest.mark.parametrize("stored", [pa.int64(), pa.float64()])
def test_keys_are_no_features_if_nulls_made_them_floats(stored: pa.DataType) -> None:
    """pandas and many other programs store whole numbers beside nulls as floats."""
    drawn = random.Random(7)
    table = pa.table(
        {
            "provider_id": pa.array(
                [None if i % 40 == 0 else 100_000 + 7 * (i // 4) for i in range(400)], stored
            ),
            "visits": pa.array(
                [None if i % 40 == 0 else drawn.randrange(300) for i in range(400)], stored
            ),
            "y": [i % 2 for i in range(400)],
        }
    )
    attributes = check(table, "y").policy.attributes
    assert attributes["provider_id"].role is Role.IDENTIFIER
    assert attributes["visits"].role is Role.FEATURE


def test_whole_numbers_with_a_long_tail_are_amounts() -> None:
    random_numbers = random.Random(4)
    due = [round(random_numbers.lognormvariate(11, 0.6)) for _ in range(300)]
    table = pa.table(
        {
            "MORTDUE": due,
            "zwq": random_numbers.sample(range(100_000), 300),
            "block": [n + 60_000 * (n > 30_000) for n in random_numbers.sample(range(60_000), 300)],
            "level": [i % 7 for i in range(300)],
            "y": [i % 2 for i in range(300)],
        }
    )
    assert np.quantile(due, 0.99) > 3 * np.median(due)
    attributes = check(table, "y").policy.attributes
    assert attributes["MORTDUE"].role is Role.FEATURE
    assert [mask.spec() for mask in attributes["MORTDUE"].masks] == [{"round": {"digits": 2}}]
    assert attributes["zwq"].role is Role.IDENTIFIER
    assert attributes["block"].role is Role.IDENTIFIER


def test_texts_with_money_and_a_magnitude_are_amounts() -> None:
    numbers = range(300)
    table = pa.table(
        {
            "worth": [f"${i}.{i % 10} B" for i in numbers],
            "sales": [f"{i}.5 mio EUR" for i in numbers],
            "door": [f"{i} B" for i in numbers],
            "level": [i % 7 for i in numbers],
            "y": [i % 2 for i in numbers],
        }
    )
    attributes = check(table, "y").policy.attributes
    assert attributes["worth"].role is Role.FEATURE
    assert attributes["sales"].role is Role.FEATURE
    assert attributes["door"].role is Role.IDENTIFIER


@pytest.mark.parametrize(("odd", "asks"), [("abc", True), ("17", False)])
def test_a_column_of_numbers_that_one_text_turns_into_text_is_asked_about(
    odd: str, asks: bool, tmp_path: Path
) -> None:
    """`init` proposed masks of categories for it, without a word."""
    ages = [str(18 + i % 60) for i in range(400)]
    ages[333] = odd
    lines = [f"{age},{i % 2}" for i, age in enumerate(ages)]
    path = tmp_path / "odd.csv"
    path.write_text("\n".join(["age,y", *lines]), encoding="utf-8")
    proposed = init_policy(path, label="y")
    assert ("nearly all values are whole numbers" in proposed.profiles["age"].warning) is asks
    assert any("read as text" in text for text in proposed.warnings) is asks


@pytest.mark.parametrize(
    ("texts", "asks"),
    [
        (("Jane Roe", "John Smith", "Mary Jones", "Peter Miller", "Anna Weber"), True),
        (
            (
                "Dr. Jane Roe",
                "Mr. John Smith",
                "Prof. Dr. Mary B. Jones",
                "Herr Peter Ott",
                "Mrs Ann Fox",
            ),
            True,
        ),
        (("Jane Roe", "John Smith", "Mary Jones", "Peter Miller"), False),
        (
            (
                "Blue Eyes",
                "Brown Eyes",
                "Green Eyes",
                "Hazel Eyes",
                "Amber Eyes",
                "Gold Eyes",
                "Grey Eyes",
                "Red Eyes",
                "Pink Eyes",
                "Violet Eyes",
            ),
            False,
        ),
        (("Jane Brown", "John Green", "Mary White", "Peter Black", "Anna Weber"), True),
        (("Red Wine", "White Wine", "Dark Beer", "Green Tea", "Iced Coffee"), False),
        (("New York", "Los Angeles", "San Diego", "Fort Worth", "St. Paul"), False),
    ],
    ids=["names", "titles", "four", "eyes", "surnames", "drinks", "cities"],
)
def test_a_short_list_of_names_of_persons_is_asked_about(
    texts: tuple[str, ...], asks: bool
) -> None:
    rows = 300
    table = pa.table(
        {
            "zwq": [texts[i % len(texts)] for i in range(rows)],
            "level": [i % 7 for i in range(rows)],
            "y": [i % 2 for i in range(rows)],
        }
    )
    profile = check(table, "y").profiles["zwq"]
    assert ("look like names of persons" in profile.warning) is asks
    assert (profile.role is Role.QUASI_IDENTIFIER) is asks
