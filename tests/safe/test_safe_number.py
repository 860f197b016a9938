"""A number to predict: `leak` sees its sums of small cells, and a protected summary refuses it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from aegis.errors import PolicyError
from aegis.safe.protect import audit_leak, protect
from aegis.summary import summarize

POLICY: dict[str, Any] = {
    "version": 1,
    "label": {"column": "pay", "kind": "number"},
    "privacy": {"k": 2},
    "attributes": {"town": {"role": "quasi-identifier"}, "age": {"role": "feature"}},
}


def test_sums_of_one_or_two_rows_are_named() -> None:
    towns = ["a"] * 60 + ["b"] * 40 + ["alone", "two", "two"]
    table = pa.table({"town": towns, "age": [30] * 103, "pay": np.arange(103.0)})
    audit = audit_leak(summarize(table, POLICY))
    (part,) = [part for part in audit.parts if part.part == "sums of the label"]
    assert part.alone >= 2  # one town in all, and in its fold
    assert part.small > part.alone
    (finding,) = [text for text in audit.findings if "sums of pay" in text]
    assert "of one row, whose number they are" in finding
    assert "p-percent rule" in finding
    assert not any("reads the label" in text for text in audit.findings)


def test_a_protected_summary_refuses_a_number() -> None:
    table = pa.table({"town": ["a", "b"] * 50, "age": [30, 40] * 50, "pay": np.arange(100.0)})
    with pytest.raises(PolicyError, match="A protected summary is about classes"):
        protect(table, POLICY)
