"""What columns say together: copies of quasi-identifiers, few columns that identify, labels that do."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

import pyarrow as pa
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from suggest_support import load_text

import aegis
from aegis.policy import Role
from aegis.policy.suggest import ProposedPolicy, init_policy, relations
from aegis.sources import open_table

ROWS = 600


def propose(**columns: Any) -> ProposedPolicy:
    draw = random.Random(11)
    return init_policy(
        pa.table({**columns, "y": [draw.randrange(2) for _ in range(ROWS)]}), label="y"
    )


def people() -> dict[str, list[Any]]:
    draw = random.Random(5)
    sex = [draw.choice("fm") for _ in range(ROWS)]
    age = [draw.randrange(18, 70) for _ in range(ROWS)]
    return {
        "sex": sex,
        "age": age,
        "anrede": [{"f": draw.choice(["Ms.", "Mme"]), "m": "Mr."}[s] for s in sex],
        "m_alive": [12 * a + draw.randrange(12) for a in age],
        "shade": [draw.choice("rgb") for _ in range(ROWS)],
        "k": [draw.randrange(9) for _ in range(ROWS)],
    }


def test_squares_of_quasi_identifiers_are_not_released() -> None:
    """They needed masks of their own, and what is released gives them anyway."""
    age = people()["age"]
    other = [a**2 for a in sorted(age)]
    proposed = propose(age=age, agesq=[a**2 for a in age], tenure=other, shade=people()["shade"])
    roles = {name: profile.role for name, profile in proposed.profiles.items()}
    assert roles["age"] is Role.QUASI_IDENTIFIER
    assert roles["agesq"] is Role.IGNORE
    assert "the square of age, which you can compute from the release" in proposed.yaml
    assert roles["tenure"] is not Role.IGNORE


def test_small_numbers_are_squares_only_where_each_row_is_one() -> None:
    """Squares below 1e-8 counted as equal to each other."""
    age = [a * 1e-7 for a in people()["age"]]
    proposed = propose(age=age, dose=[a**2 for a in sorted(age)], agesq=[a**2 for a in age])
    assert proposed.profiles["dose"].role is not Role.IGNORE
    assert proposed.profiles["agesq"].role is Role.IGNORE


def test_init_names_the_columns_of_which_advise_warns() -> None:
    """A column of many values that mostly follow from the label is named by both."""
    draw = random.Random(8)
    done = [draw.random() < 0.6 for _ in range(ROWS)]
    days = [180 + draw.randrange(4) if d else draw.randrange(ROWS // 4) % 170 for d in done]
    table = pa.table({**people(), "days": days, "done": ["y" if d else "n" for d in done]})
    proposed = init_policy(table, label="done")
    warned = aegis.Study(table, proposed.policy).search().uncovered.leaks
    assert set(warned) == {"days"}
    assert any("days gives its class away" in text for text in proposed.warnings)


def test_columns_that_repeat_a_class_are_named_with_the_label() -> None:
    draw = random.Random(7)
    smoke = [draw.choice(["no", "no", "yes"]) for _ in range(ROWS)]
    columns = {
        **people(),
        "packs": [None if s == "no" else draw.randrange(3) for s in smoke],
        "coded": [int(s == "yes") for s in smoke],
        "smoke": smoke,
    }
    proposed = init_policy(pa.table(columns), label="smoke")
    (note,) = (text for text in proposed.warnings if "gives" in text or "give" in text)
    assert "packs and coded give its class away" in note or "coded and packs give" in note
    assert "delete them from the policy" in note
    without = {name: own for name, own in columns.items() if name not in ("packs", "coded")}
    quiet = init_policy(pa.table(without), label="smoke")
    assert not any("class away" in text for text in quiet.warnings)
    assert load_text(proposed.yaml) == proposed.policy


def test_copies_of_quasi_identifiers_get_their_role() -> None:
    proposed = propose(**people())
    roles = {name: a.role for name, a in proposed.policy.attributes.items()}
    assert roles["anrede"] is roles["m_alive"] is Role.QUASI_IDENTIFIER
    assert roles["shade"] is roles["k"] is Role.FEATURE
    assert proposed.profiles["anrede"].reason == "gives sex away in 100 % of the rows"
    assert "in other units" in proposed.profiles["m_alive"].reason
    assert load_text(proposed.yaml) == proposed.policy


def test_likely_copies_are_asked_about_and_sensitive_ones_stay() -> None:
    columns = people()
    draw = random.Random(2)
    columns["anrede"] = ["Dr." if draw.random() < 0.15 else a for a in columns["anrede"]]
    columns["diagnosis"] = [s + draw.choice("12") for s in columns["sex"]]
    proposed = propose(**columns)
    assert proposed.policy.attributes["anrede"].role is Role.FEATURE
    assert "gives sex away in 9" in proposed.profiles["anrede"].warning
    assert proposed.policy.attributes["diagnosis"].role is Role.SENSITIVE
    assert "gives sex away" in proposed.profiles["diagnosis"].warning


def test_many_columns_with_one_warning_share_a_line() -> None:
    columns, draw = people(), random.Random(2)
    for i in range(12):
        columns[f"q{i}"] = [
            draw.choice("fm") if draw.random() < 0.15 else s for s in columns["sex"]
        ]
    proposed = propose(**columns)
    asked = [name for name, own in proposed.profiles.items() if "gives sex" in (own.warning or "")]
    assert len(asked) > 8
    [line] = [text for text in proposed.warnings if "gives sex away" in text]
    assert line.startswith(f"{asked[0]!r}: gives sex away in ")
    assert (
        f". The same holds for {len(asked) - 1} more columns: {asked[1]!r}, {asked[2]!r}, " in line
    )


def test_columns_that_are_empty_in_the_same_rows_do_not_reveal_each_other() -> None:
    """A part of a questionnaire that most rows lack: its answers say nothing of the language."""
    columns, draw = people(), random.Random(8)
    asked = [draw.random() < 0.4 for _ in range(ROWS)]
    for name, seldom in (("md_lang", 0.2), ("a1", 0.3), ("a2", 0.5)):
        columns[name] = [int(draw.random() < seldom) if there else None for there in asked]
    columns["sex"] = [s if there else None for s, there in zip(columns["sex"], asked, strict=True)]
    columns["a4"] = [None if s is None else f"{s}-" for s in columns["sex"]]
    proposed = propose(**columns)
    for name in ("md_lang", "a1", "a2"):
        assert "gives" not in (proposed.profiles[name].warning or "")
        assert "gives" not in proposed.profiles[name].reason
    assert proposed.profiles["a4"].reason == "gives sex away in 100 % of the rows"


def test_groups_of_a_quasi_identifier_are_asked_about() -> None:
    """A decade that is released shows an age that is suppressed, in larger classes."""
    columns = people()
    columns["age"] = [age // 2 for age in columns["age"]]
    del columns["m_alive"]
    proposed = propose(**columns, wave=[f"w{age // 5}" for age in columns["age"]])
    assert proposed.policy.attributes["wave"].role is Role.FEATURE
    assert "follows from age in 100 % of the rows" in proposed.profiles["wave"].warning
    assert not proposed.profiles["shade"].warning
    assert not proposed.profiles["k"].warning


def test_a_value_for_each_row_and_rare_values_give_nothing_away() -> None:
    columns = people()
    columns["sex"] = ["f" if i < 3 else "m" for i in range(ROWS)]
    columns["shade"] = ["r" if i < 3 else "g" for i in range(ROWS)]
    columns["measured_value"] = [random.Random(i).random() for i in range(ROWS)]
    proposed = propose(**columns)
    assert proposed.policy.attributes["shade"].role is Role.FEATURE
    assert proposed.policy.attributes["measured_value"].role is Role.FEATURE


def test_few_columns_that_single_out_rows_are_asked_about() -> None:
    draw = random.Random(8)
    columns = {"age": people()["age"]}
    columns |= {name: [draw.randrange(12) for _ in range(ROWS)] for name in "abcde"}
    proposed = propose(**columns)
    asked = {n: p for n, p in proposed.profiles.items() if p.question}
    assert 1 < len(asked) <= 4
    rows = list(zip(*(columns[name] for name in asked), strict=True))
    alone = sum(rows.count(row) == 1 for row in rows)
    share = round(100 * alone / ROWS)
    assert all(f"singles out {share} % of the rows" in p.question for p in asked.values())
    assert f"single out {share} % of the rows" in proposed.warnings[-1]
    assert "could somebody know this?" in proposed.yaml
    # What is proposed is a policy once its lines are uncommented.
    name = next(iter(asked))
    block = proposed.yaml.split(f"\n  {name}:\n")[1].split("\n\n")[0]
    lines = [line.strip() for line in block.splitlines()]
    uncommented = "\n".join(line.removeprefix("# ") for line in lines if line.startswith("# "))
    entry = yaml.safe_load(uncommented)
    document = yaml.safe_load(proposed.yaml)
    document["attributes"][name] = entry
    assert aegis.load_policy(document).attributes[name].role is Role.QUASI_IDENTIFIER


def test_columns_that_single_out_few_rows_are_not_asked_about() -> None:
    proposed = propose(age=people()["age"], a=[i % 3 for i in range(ROWS)])
    assert not any(p.question for p in proposed.profiles.values())
    assert proposed.warnings == ()


@pytest.mark.parametrize(
    ("rows", "values", "warned"), [(ROWS, ROWS, True), (ROWS, 60, False), (1338, 1337, True)]
)
def test_a_label_that_is_nearly_a_key_is_warned_of_and_its_ranges_proposed(
    rows: int, values: int, warned: bool
) -> None:
    charges = [1000 + 37.5 * (i % values) for i in range(rows)]
    table = pa.table({"age": [18 + 7 * i % 50 for i in range(rows)], "charges": charges})
    proposed = init_policy(table, label="charges")
    assert (
        any("somebody who knows one finds its row" in text for text in proposed.warnings) is warned
    )
    assert ("To release ranges instead" in proposed.yaml) is warned
    if not warned:
        return
    lines = [text for text in proposed.yaml.splitlines() if text.startswith("#   charges: {")]
    ranges, rounded = (yaml.safe_load(line.removeprefix("#   ")) for line in lines)
    document = yaml.safe_load(proposed.yaml)
    for label, masked in (("charges", ranges), (document["label"], rounded)):
        asked = document | {"label": label, "attributes": document["attributes"] | masked}
        study = aegis.Study(table, aegis.load_policy(asked))
        release = study.apply(study.search())
        assert release.audit.outside is not None
        assert not release.audit.outside.near_keys


SMALL = st.lists(
    st.tuples(st.none() | st.integers(0, 3), st.sampled_from("ab"), st.integers(0, 4)),
    min_size=1,
    max_size=30,
)


@given(SMALL)
def test_rows_that_features_single_out_are_counted(rows: list[tuple[Any, ...]]) -> None:
    table = {name: [row[i] for row in rows] for i, name in enumerate("xyp")}
    source = open_table(pa.table(table))
    values = Counter(row[:2] for row in rows)
    persons = Counter(values_of for values_of, _ in {(row[:2], row[2]) for row in rows})
    assert relations.count_alone(source, "xy", None) == sum(values[r[:2]] == 1 for r in rows)
    assert relations.count_alone(source, "xy", "p") == sum(persons[r[:2]] == 1 for r in rows)
    assert relations.count_alone(source, "", None) is None


@pytest.mark.parametrize("names", ["np", "NP", "v0"])
def test_features_may_be_called_as_a_count(names: str) -> None:
    columns = [names] if names == "v0" else list(names)
    table = pa.table({**{name: [1, 1, 2] for name in columns}, "who": ["a", "b", "c"]})
    assert relations.count_alone(open_table(table), columns, None) == 1
    assert relations.count_alone(open_table(table), columns, "who") == 1


def test_a_large_table_is_not_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    source = open_table(pa.table({"x": [1, 2, 2]}))
    assert relations.count_alone(source, ["x"], None) == 1
    monkeypatch.setattr(relations, "MOST_CELLS", 2)
    assert relations.count_alone(source, ["x"], None) is None


def test_a_proposal_names_the_features_that_keep_all_values() -> None:
    proposed = propose(**people())
    kept = proposed.unmasked
    assert kept
    assert all([*map(str, proposed.policy.attributes[name].masks)] == ["identity"] for name in kept)
    rows = list(zip(*(people()[name] for name in kept), strict=True))
    assert proposed.alone == sum(n for n in Counter(rows).values() if n == 1)
