"""A few generated calls of each operation; `explore.py` makes many."""

from __future__ import annotations

from explore import explore


def test_no_generated_call_is_answered_with_a_5xx_or_an_undocumented_status(place):
    made, wrong = explore(place, ["paula", "otto"], 2)
    assert wrong == []
    assert min(made.values()) > 100
