from __future__ import annotations

import csv
import json
import math
import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from privacy_brute import LEVELS, Rows, groups, rows, table_of

from aegis.errors import DataError
from aegis.privacy import ClassTable, PrivacyRule, report
from aegis.privacy.report import BINS, same_values, shared_values


def table_from(
    records: Sequence[Sequence[str]],
    quasi_identifiers: Sequence[int],
    sensitive: Sequence[int] = (),
) -> ClassTable:
    """Return the class table of text records; columns are given by position."""
    ids: dict[tuple[str, ...], int] = {}
    classes = [ids.setdefault(tuple(r[c] for c in quasi_identifiers), len(ids)) for r in records]
    counts = {}
    for column in sensitive:
        labels = tuple(sorted({r[column] for r in records}))
        counts[str(column)] = (np.searchsorted(labels, [r[column] for r in records]), labels)
    return ClassTable.from_cells(classes, np.ones(len(records), dtype=np.int64), counts)


def test_oracle_of_the_raw_arx_table(shared_data: Path) -> None:
    with (shared_data / "arx_adult" / "adult.csv").open(newline="") as file:
        records = list(csv.reader(file, delimiter=";"))[1:]
    found = report(table_from(records, range(9)))
    assert (found.rows, found.classes, found.uniques) == (30162, 19502, 15512)
    assert list(found.at_risk.values()) == [29285, 28163, 26959, 23470]
    assert list(found.at_risk) == ["0.05", "0.075", "0.1", "0.2"]


def test_oracle_of_adult_without_missing(shared_data: Path) -> None:
    text = [(shared_data / "adult" / name).read_text() for name in ("adult.data", "adult.test")]
    lines = [line.split(", ") for part in text for line in part.splitlines()]
    records = [line for line in lines if len(line) == 15 and "?" not in line]
    # age, race, sex, marital status; occupation is sensitive
    found = report(table_from(records, [0, 8, 9, 5], [6]))
    assert (found.rows, found.classes) == (45222, 1900)
    assert list(found.at_risk.values())[:3] == [6506, 4906, 3910]
    assert found.homogeneous_rows == {"6": 634}
    assert found.homogeneous_rows_any == 634


def test_oracle_of_german_credit(shared_data: Path) -> None:
    text = (shared_data / "german_credit" / "german.data").read_text()
    records = [line.split() for line in text.splitlines() if line.strip()]
    # age, personal status, job; checking and savings account are sensitive
    found = report(table_from(records, [12, 8, 16], [0, 5]))
    assert (found.rows, found.classes) == (1000, 310)
    assert list(found.at_risk.values())[:3] == [959, 828, 698]
    assert found.homogeneous_rows_any == 279
    assert max(found.homogeneous_rows.values()) <= 279


@given(rows, st.lists(st.integers(0, 9), min_size=6, max_size=6))
def test_identity_figures_are_brute_force(given: Rows, extra: list[int]) -> None:
    classes = groups(given)
    people = [len(one) + more for one, more in zip(classes, extra, strict=False)]
    found = report(table_of(given, people))
    n = len(given)
    own = [(len(one), size) for one, size in zip(classes, people, strict=True) for _ in one]
    assert (found.rows, found.classes) == (n, len(classes))
    assert found.uniques == sum(size == 1 for size, _ in own)
    assert found.k == min(size for size, _ in own)
    for tau, count in found.at_risk.items():
        # In whole numbers: 1/|E| > tau, tau a multiple of 1/1000.
        assert count == sum(round(float(tau) * 1000) * size < 1000 for size, _ in own)
    assert found.prosecutor.maximum == pytest.approx(max(1 / size for size, _ in own))
    assert found.prosecutor.average == pytest.approx(sum(1 / size for size, _ in own) / n)
    assert found.journalist.maximum == pytest.approx(max(1 / size for _, size in own))
    assert found.journalist.average == pytest.approx(sum(1 / size for _, size in own) / n)
    assert found.marketer == found.journalist.average
    constant = sum(len(one) for one in classes if len(set(one)) == 1)
    assert found.homogeneous_rows == {"s": constant}
    assert not found.notes
    for (low, high), entry in zip(BINS, found.class_size_histogram, strict=True):
        inside = [len(one) for one in classes if low <= len(one) <= (high or math.inf)]
        assert (entry.classes, entry.rows) == (len(inside), sum(inside))


def test_any_sensitive_attribute_constant() -> None:
    table = ClassTable.from_cells(
        [0, 0, 1, 1, 2, 2],
        [1, 1, 2, 2, 3, 3],
        {"a": ([0, 0, 0, 1, 0, 1], ("x", "y")), "b": ([0, 1, 0, 0, 0, 1], ("x", "y"))},
    )
    found = report(table)
    assert found.homogeneous_rows == {"a": 2, "b": 4}
    assert found.homogeneous_rows_any == 6
    assert "homogeneous rows, any attribute" in repr(found)


@given(rows)
def test_json_is_exact_and_complete(given: Rows) -> None:
    found = report(table_of(given))
    written = json.dumps(found.to_dict(), allow_nan=False)
    back = json.loads(written)
    assert back == found.to_dict()
    assert set(back) >= {"rows", "classes", "k", "uniques", "at_risk", "homogeneous_rows"}
    one = found.attributes["s"]
    assert back["l_diversity"]["s"]["recursive_c"] == dict(one.diversity.recursive_c)
    assert back["t_closeness"]["s"] == {
        "equal": one.closeness.equal,
        "ordered": one.closeness.ordered,
        "hierarchical": one.closeness.hierarchical,
    }
    assert back["alpha_k"]["s"] == {"alpha": one.alpha, "k": found.k}
    assert [entry["size"] for entry in back["class_size_histogram"]] == [
        "1", "2", "3-4", "5-9", "10-19", "20-49", "50-99", "100+",
    ]  # fmt: skip


def test_what_is_infinite_is_null() -> None:
    one = report(table_of([(0, 0), (0, 0), (1, 1), (1, 0)])).attributes["s"]
    assert one.diversity.recursive_c == {str(values): None for values in range(2, 11)}
    assert one.disclosure.all is None
    assert one.disclosure.present is not None
    whole = report(table_of([(0, 0), (0, 1), (1, 1), (1, 0)])).attributes["s"]
    assert whole.diversity.recursive_c["2"] == 1
    assert (
        whole.disclosure.all
        == whole.closeness.equal
        == whole.closeness.ordered
        == whole.likeness.basic
        == 0
    )
    assert whole.likeness.enhanced == 0


def test_without_population_the_report_says_so() -> None:
    found = report(ClassTable(np.array([4, 2])))
    assert found.journalist == found.prosecutor
    assert found.homogeneous_rows_any is None
    assert "the attacker knows that the person is in the table" in " ".join(found.notes)
    assert "only identity disclosure" in repr(found)


def test_empty_table() -> None:
    found = report(ClassTable.from_cells([], [], {"s": ([], ("a",))}))
    assert (found.rows, found.classes, found.k, found.mean_class_size) == (0, 0, 0, None)
    assert found.prosecutor.maximum is found.journalist.average is found.marketer is None
    assert found.attributes["s"].alpha is None
    json.dumps(found.to_dict(), allow_nan=False)
    assert "unique rows" in repr(found)


def test_hierarchy_and_population_are_checked() -> None:
    cells = [0, 1], [2, 2], {"s": ([0, 1], ("a", "b"))}
    found = report(ClassTable.from_cells(*cells))
    assert found.attributes["s"].closeness.hierarchical is None
    found = report(ClassTable.from_cells(*cells, hierarchies={"s": np.array([[0, 0], [1, 0]])}))
    assert found.attributes["s"].closeness.hierarchical == 0.5
    assert "0.5 hierarchical" in repr(found)
    with pytest.raises(DataError, match="does not fit 2 sensitive values"):
        ClassTable.from_cells(*cells, hierarchies={"s": LEVELS})
    with pytest.raises(DataError, match="smaller than the table"):
        ClassTable.from_cells(*cells, population=[1, 2])


def test_html_is_escaped() -> None:
    table = ClassTable.from_cells([0], [2], {"<b>": ([0], ("x",))})
    html = report(table)._repr_html_()
    assert "<b>" not in html
    assert "&lt;b&gt;: alpha" in html
    assert html.startswith("<table>")


def test_nulls_that_count_as_a_value_are_named() -> None:
    cells = ([0, 0, 1, 1], [2, 3, 1, 4])
    held = report(ClassTable.from_cells(*cells, {"job": ([0, 1, 0, 1], ("cook", "null"))}))
    assert held.attributes["job"].diversity.distinct == 2
    assert any("Null counts as a value of job (7 rows)" in note for note in held.notes)
    single = report(ClassTable.from_cells([0, 0], [2, 1], {"job": ([0, 1], ("cook", "null"))}))
    assert any("Null counts as a value of job (1 row)" in note for note in single.notes)
    none = report(ClassTable.from_cells(*cells, {"job": ([0, 1, 0, 1], ("cook", "maid", "null"))}))
    assert not any("Null" in note for note in none.notes)


@pytest.mark.parametrize("names", [("health",), ("health", "income")])
def test_the_remedy_for_a_single_value_is_a_rule_that_prevents_it(names: tuple[str, ...]) -> None:
    [sentence] = same_values({**dict.fromkeys(names, 3), "sex": 0}, "rows")
    written = re.search(r"`(l_diversity: .*?)` under `privacy`", sentence)
    assert written is not None
    demanded = PrivacyRule.parse(yaml.safe_load(written[1]))
    assert demanded.sensitive == names
    positions = dict(zip("01", names, strict=False))
    table = table_from(
        [(v, v, c) for v, c in (("flu", "a"), ("flu", "a"), ("none", "b"))], [2], [0, 1]
    )
    counts = {positions[place]: own for place, own in table.sensitive.items() if place in positions}
    assert not demanded.check(replace(table, sensitive=counts)).kept_classes.any()


def test_a_share_of_one_value_is_rounded_down_and_named_from_four_fifths_on() -> None:
    shares = {"a": 0.79, "b": 0.8, "c": 0.998, "d": 1.0, "e": None, "f": 0.8999}
    far = dict.fromkeys(shares, 0.1)
    told = [text.split(":")[0] for text in shared_values(shares, far, "persons")]
    assert told == [
        "In some class, one value of b has 80 % of the persons",
        "In some class, one value of c has more than 99 % of the persons",
        "In some class, one value of f has 89 % of the persons",
    ]
    assert not shared_values(shares, dict.fromkeys(shares, 0.09), "rows")
    remedy = re.search(r"`(alpha_k: .*?)`", shared_values(shares, far, "rows")[0])
    assert remedy is not None
    [criterion] = PrivacyRule.parse(yaml.safe_load(remedy[1])).criteria
    assert criterion.attribute == "b"
