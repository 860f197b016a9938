"""Short random walks with an attacker among the actors; `walks.py` makes long ones."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from walks import STEPS, walked


@given(seed=st.integers(0, 2**32))
@settings(max_examples=4, deadline=None, derandomize=True)
def test_no_walk_breaks_what_must_hold(seed):
    _, wrong = walked(60, seed)
    assert wrong == []


@pytest.mark.parametrize("seed", [4])
def test_a_walk_gets_somewhere_and_mallory_nowhere(seed):
    """Every step is tried; what moves a request is carried out, what an attacker does never."""
    done, wrong = walked(250, seed, every=25)
    assert wrong == []
    tried = {name.removesuffix(" refused") for name in done}
    assert tried == set(STEPS)
    assert {"draft", "submit", "review", "check", "approve"} <= set(done)
    assert not [name for name in done if "mallory" in name and not name.endswith("refused")]
