"""Each registered mask equals its definition by values, and shows the kind that it states."""

from __future__ import annotations

import datetime as dt

import ibis
import numpy as np
import pyarrow as pa
import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st
from masks_definitions import CHANCES, KEY, SHOWN
from masks_support import counted, decimal_floats, lists, masked, small_integers

from aegis.masks import MASKS, Hierarchy, Kind, parse_mask

TEXTS = ["Oslo", "Rome", "a", "b", "", "12", "x" * 9]
"""The texts on which masks are compared with their definitions."""
KEEPING = ("identity", "keep_frequent")
"""Masks that keep so few texts as they are."""
VALUES = {
    Kind.INTEGER: (pa.int64(), small_integers),
    Kind.NUMBER: (pa.float64(), decimal_floats),
    Kind.TEXT: (pa.string(), st.sampled_from(TEXTS)),
    Kind.DATE: (pa.date32(), st.dates(dt.date(2023, 12, 20), dt.date(2024, 3, 10))),
    Kind.BOOLEAN: (pa.bool_(), st.booleans()),
}
TREE = Hierarchy((("a", "g", "p", "*"), ("12", "h", "q", "*"), ("true", "h", "q", "*")))
LISTED = {"randomised_response": ("low", "medium", "high"), "pram": ("single", "married")}
"""The values in the examples of masks that list them."""


def example(name):
    """Return the mask that the reference shows."""
    return parse_mask(yaml.safe_load(MASKS.get(name).example), hierarchy=TREE)


def fits(mask, kind):
    """Return whether the mask accepts the kind; a composition as its first mask."""
    own = mask.masks[0] if mask.name == "compose" else mask
    return kind in own.fits


PLAIN = [
    pytest.param(entry.name, kind, id=f"{entry.name}-{kind}")
    for entry in MASKS
    for kind in Kind
    if entry.mask.deterministic and fits(example(entry.name), kind)
]
DRAWING = [
    pytest.param(entry.name, kind, id=f"{entry.name}-{kind}")
    for entry in MASKS
    for kind in entry.kinds
    if not entry.mask.deterministic and (entry.name not in LISTED or kind is Kind.TEXT)
]


@pytest.mark.parametrize(("name", "kind"), PLAIN)
@given(data=st.data())
def test_a_mask_shows_its_definition(name, kind, data):
    dtype, each = VALUES[kind]
    values = data.draw(lists(each))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("AEGIS_TOKEN_KEY", KEY)
        mask = example(name).fit(counted(kind, values, dtype))
        shown = masked(mask, values, dtype)
        again = masked(mask, shown, dtype) if mask.idempotent else shown
    of_null = "*" if name == "suppress" else None
    assert name in SHOWN, f"add what {name!r} shows of a value to SHOWN in masks_definitions.py"
    assert again == shown == [of_null if v is None else SHOWN[name](mask, v) for v in values]
    assert all(mask.shows(str(value)) is not False for value in shown if value is not None)


@pytest.mark.parametrize(("name", "kind"), [own for own in PLAIN if own.values[1] is Kind.TEXT])
def test_the_texts_suit_a_mask(name, kind, monkeypatch):
    monkeypatch.setenv("AEGIS_TOKEN_KEY", KEY)
    mask = example(name).fit(counted(kind, TEXTS, pa.string()))
    shown = masked(mask, TEXTS, pa.string())
    lacking = f"add texts to TEXTS that {name!r} tells apart, and one that it changes"
    assert len(set(shown)) > 1 or name == "suppress", lacking
    assert shown != TEXTS or name in KEEPING, lacking


@pytest.mark.parametrize(("name", "kind"), DRAWING)
@settings(max_examples=4)  # each compares a whole matrix
@given(data=st.data())
def test_a_channel_is_its_definition(name, kind, data):
    dtype, each = VALUES[kind]
    each = st.sampled_from(LISTED[name]) if name in LISTED else each
    counts = counted(kind, data.draw(st.lists(each, min_size=1, max_size=4, unique=True)), dtype)
    mask = example(name).fit(counts)
    reports = mask.reports(counts).to_pylist()
    assert name in CHANCES, f"add the chances of {name!r} to CHANCES in masks_definitions.py"
    expected = [
        [CHANCES[name](mask, value, report, reports) for report in reports]
        for value in counts.values.to_pylist()
    ]
    assert mask.channel(counts) == pytest.approx(np.array(expected), abs=1e-9)


@pytest.mark.parametrize(("name", "kind"), PLAIN)
def test_output_kinds_hold_on_the_engine(name, kind, monkeypatch):
    monkeypatch.setenv("AEGIS_TOKEN_KEY", KEY)
    dtype, _ = VALUES[kind]
    mask = example(name).fit(counted(kind, [], dtype))
    mask.check(kind, "a")
    table = ibis.table({"a": ibis.dtype(dtype)}, name="t")
    assert Kind.of(mask.expression(table["a"]).type()) is mask.output_kind(kind)


@pytest.mark.parametrize(
    ("spec", "odd"),
    [
        ({"bucketize": {"width": 10}}, "*"),
        ({"quantiles": {"count": 2, "edges": [5]}}, "*"),
        ({"keep_frequent": {"count": 1, "values": [7]}}, "8"),
        ({"blur": {"keep": 1, "symbol": "x"}}, "*"),
        ({"level": 1}, "a"),
        ({"compose": [{"top_code": {"at": 90}}, {"bucketize": {"width": 10}}]}, "[1, 11["),
    ],
)
def test_what_a_mask_cannot_show(spec, odd):
    assert parse_mask(spec, hierarchy=TREE).shows(odd) is False
