"""A few generated calls of each operation; `explore.py` makes many."""

from __future__ import annotations

import pytest
from explore import explore


@pytest.mark.parametrize("name", ["paula", "otto"])
def test_no_generated_call_is_answered_with_a_5xx_or_an_undocumented_status(place, name):
    made, wrong = explore(place, name, 2)
    assert wrong == []
    assert made > 100
