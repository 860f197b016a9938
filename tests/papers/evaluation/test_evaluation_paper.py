"""Configurations as the AEGIS paper draws them, for the experiments that reproduce it."""

from __future__ import annotations

import pyarrow as pa
import pytest
from evaluation_support import make_policy, make_table

from aegis.errors import PolicyError
from aegis.summary import summarize
from experiment_modules import experiment

PAPER = experiment("paper_masks")


def test_the_generator_of_the_paper_draws_its_masks_and_no_others():
    policy = PAPER.paper_policy(make_table(), make_policy())
    summary = summarize(make_table(), policy)
    drawn = PAPER.paper_configurations(summary, 60, seed=5)
    seen = {n: {c.masks[n].name for c in drawn} for n in ("age", "town", "size")}
    assert seen["age"] == seen["size"] == {"equal_width", "erase_digits", "suppress"}
    assert seen["town"] == {"identity", "suppress"}
    assert len({tuple(map(str, c.masks.values())) for c in drawn}) == len(drawn) == 60
    again = PAPER.paper_configurations(summary, 60, seed=5)
    assert [c.spec() for c in again] == [c.spec() for c in drawn]
    assert {*policy.attributes} == {*make_policy().attributes}
    families = [c.masks["age"].name for c in drawn]
    # A third each, though there are more widths than numbers of digits.
    assert 8 <= families.count("suppress") <= 32


def test_the_generator_ends_where_there_is_no_new_configuration():
    attributes = {"town": {"role": "feature"}}
    policy = PAPER.paper_policy(make_table(), make_policy(attributes=attributes, privacy={}))
    summary = summarize(make_table(), policy)
    assert len(PAPER.paper_configurations(summary, 10, seed=0)) == 2
    with pytest.raises(PolicyError, match="cannot be generated"):
        PAPER.paper_configurations(summary, 0)


def test_a_boolean_is_left_or_suppressed():
    table = pa.table({"flag": [True, False] * 10, "sick": ["a", "b", "b", "a"] * 5})
    policy = PAPER.paper_policy(
        table, make_policy(attributes={"flag": {"role": "feature"}}, privacy={})
    )
    assert [mask.name for mask in policy.attributes["flag"].masks] == ["identity", "suppress"]
