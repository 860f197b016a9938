"""What a search by an expected merit proves, against every combination scored one by one."""

from __future__ import annotations

import sys
from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from advisor_support import RULES, policy_of, random_rows, table_of
from aegis.advisor import PrivacyPlan
from aegis.advisor.search import Searcher
from aegis.advisor.search.objective import has_reach
from aegis.measures import MEASURES
from aegis.summary import summarize
from search_support import VARIANTS, rule_of

MERITS = ("held-out-auc", "held-out-accuracy", "held-out-log-loss(nb)", "cmim")
searching = sys.modules[Searcher.__module__]


@settings(max_examples=5, deadline=None)
@given(
    st.integers(0, 1_000),
    st.sampled_from(MERITS),
    st.sampled_from(sorted(VARIANTS)),
    st.sampled_from(RULES),
    st.sampled_from([0.0, 0.12]),
    st.integers(1, 12),
    st.booleans(),
)
def test_the_list_is_complete_above_its_stated_trace(
    seed: int,
    merit: str,
    variant: str,
    rule: dict[str, object],
    share: float,
    listed: int,
    prove: bool,
) -> None:
    table = table_of(random_rows(seed))
    summary = summarize(table, policy_of(**VARIANTS[variant]))
    plan = PrivacyPlan(summary, rule_of(rule, share))
    searcher = Searcher(summary, plan, merit, merit)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(searching, "ENUMERATED", 0)
        patched.setattr(searching, "LISTED", listed)
        outcome, figures = searcher.run(plan.rule, top=3, time_limit=None, prove=prove)
    domains = [[1 << c for c in range(len(v.candidates))] for v in searcher.problem.variables]
    admissible = [
        leaf for leaf in product(*domains) if plan.check(searcher.problem.choice(leaf)).admissible
    ]
    assert bool(outcome.best) == bool(admissible)
    assert {leaf for _, leaf in outcome.best} <= set(admissible)
    if not admissible:
        assert figures.proven is None
        assert figures.complete
        return
    scores = {leaf: searcher.objective.bound(leaf) for leaf in admissible}
    assert all(value == scores[leaf] for value, leaf in outcome.best)
    if figures.bound is not None:
        assert max(scores.values()) <= searcher.objective.sign * figures.bound + 1e-9
    if figures.optimal:
        assert outcome.best[0][0] == pytest.approx(max(scores.values()))
    if prove and has_reach(merit, searcher.problem):
        assert figures.optimal
        assert figures.complete
        assert not any("ignores the privacy rule" in note for note in figures.notes)
    proven = figures.proven
    if proven is None:
        return
    measure = MEASURES.get(proven.measure)
    value = {
        leaf: searcher.scorer.value(searcher.problem.choice(leaf), measure) for leaf in admissible
    }
    least = proven.least
    assert proven.highest == pytest.approx(max(value.values()), abs=1e-9)
    above = [leaf for leaf in admissible if least is None or value[leaf] > least + 1e-9]
    assert len(above) <= proven.configurations
    assert all(outcome.best[0][0] >= scores[leaf] - 1e-12 for leaf in above)
    if least is None:
        assert figures.optimal
        assert proven.configurations == len(admissible)
