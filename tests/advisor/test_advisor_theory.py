"""What docs/theory.md claims, held against the registry and against its own examples."""

from __future__ import annotations

import re
from itertools import permutations
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from aegis.measures import MEASURES, Contingency
from aegis.privacy import MODELS, ClassTable, PrivacyRule

TEXT = (Path(__file__).parents[2] / "docs" / "theory.md").read_text(encoding="utf-8")
ROW = re.compile(r"^\| `([\w.-]+)` \| (yes|no) \| (yes|no) \| (.+) \|$", re.MULTILINE)
JOINTS = st.lists(
    st.tuples(st.integers(0, 2), st.integers(0, 9), st.integers(0, 9)), min_size=2, max_size=7
)


def test_the_table_of_models_is_the_registry() -> None:
    found = {name: (one == "yes", two == "yes") for name, one, two, _ in ROW.findall(TEXT)}
    lacking = set(MODELS.names()) - found.keys()
    assert not lacking, f"give {sorted(lacking)} a row in the table of section 5 of docs/theory.md"
    assert found == {m.name: (m.monotone, m.monotone_with_suppression) for m in MODELS}


def test_every_reason_is_explained() -> None:
    for *_, reasons in ROW.findall(TEXT):
        first = re.split(r"[,;]", reasons)[0].strip()
        assert f"**{first.capitalize()}.**" in TEXT, first


def test_example_of_a_mixture() -> None:
    rule = PrivacyRule.parse({"alpha_k": {"attribute": "s", "alpha": 0.6}, "suppression": 0.08})
    values = [0] * 8 + [0, 1] + [0, 1] * 45

    def verdict(classes: list[int]) -> tuple[bool, int]:
        table = ClassTable.from_cells(classes, np.ones(100), {"s": (values, ("a", "b"))})
        found = rule.check(table)
        return found.admissible, found.suppressed_rows

    assert verdict([0] * 8 + [1] * 2 + [2] * 90) == (True, 8)
    assert verdict([0] * 10 + [2] * 90) == (False, 10)


def test_example_of_ties() -> None:
    rule = PrivacyRule.parse({"max_risk": {"kind": "marketer", "threshold": 0.3}})
    removed = [
        rule.check(ClassTable(np.array(sizes))).suppressed_rows
        for sizes in ([6, 2] + [1] * 10, [6] + [2] * 6)
    ]
    assert removed == [10, 12]


@given(JOINTS)
def test_theorem_1(given_rows: list[tuple[int, int, int]]) -> None:
    # Rows of values with their masked value; every masked value has rows, every class occurs.
    masks = np.array([m for m, _, _ in given_rows])
    counts = np.array([[a, b] for _, a, b in given_rows]) + 1
    masks = np.unique(masks, return_inverse=True)[1]
    masked = np.stack([counts[masks == m].sum(axis=0) for m in range(masks.max() + 1)])
    rows, size = counts.sum(axis=1), np.bincount(masks)
    with_histogram = rows[:, None] * masked[masks] / masked.sum(axis=1)[masks, None]
    without = masked[masks] / size[masks, None]
    for families in permutations(("rows", "masked")):
        table = np.full(counts.shape, counts.sum() / counts.size)
        for family in families:
            if family == "rows":
                table *= (rows / table.sum(axis=1))[:, None]
            else:
                current = np.stack([table[masks == m].sum(axis=0) for m in range(len(masked))])
                table *= (masked / current)[masks]
        assert table == pytest.approx(with_histogram)
    # Scaled to whole counts, which the measures take; none of these depends on the scale of N.
    scale = int(np.lcm.reduce(masked.sum(axis=1))) * int(np.lcm.reduce(size))
    for table in (with_histogram, without):
        whole = Contingency.of(np.rint(table * scale).astype(np.int64))
        coarse = Contingency.of(masked * scale)
        for name in ("mi", "phi2", "g2", "g3"):
            measure = MEASURES.get(name)
            assert measure(whole) == pytest.approx(measure(coarse), abs=1e-9), name


@given(JOINTS)
def test_theorem_2(given_rows: list[tuple[int, int, int]]) -> None:
    masks = np.unique([m for m, _, _ in given_rows], return_inverse=True)[1]
    counts = np.array([[a, b] for _, a, b in given_rows]) + 1
    masked = np.stack([counts[masks == m].sum(axis=0) for m in range(masks.max() + 1)])
    for name in ("mi", "chi2", "g3"):
        measure = MEASURES.get(name)
        sign = measure.direction.sign
        assert (
            sign * measure(Contingency.of(masked)) <= sign * measure(Contingency.of(counts)) + 1e-9
        )
