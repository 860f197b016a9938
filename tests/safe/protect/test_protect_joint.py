"""What a protected summary tells of one attribute, and of another mask: held against brute force."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from protect_support import make_table
from scipy.optimize import minimize

import aegis
from aegis.errors import PolicyError
from aegis.report import render_report
from aegis.safe.commands.protected import open_summary
from aegis.safe.protect import (
    ProtectedScorer,
    protect,
    rank_protected,
    reconstruct_protected,
)
from aegis.safe.protect.scores import nearest_with_sum


@settings(max_examples=40, deadline=None)
@given(
    st.lists(st.tuples(st.integers(-40, 60), st.integers(1, 5)), min_size=1, max_size=6),
    st.integers(0, 150),
)
def test_the_nearest_table_is_that_of_a_general_solver(cells, total):
    counts = np.array([c for c, _ in cells], dtype=float)
    weight = np.array([w for _, w in cells], dtype=float)
    nearest = nearest_with_sum(counts, weight, total)
    assert (nearest >= 0).all()
    assert nearest.sum() == pytest.approx(total, abs=1e-6)
    solved = minimize(
        lambda x: float(((x - counts) ** 2 / weight).sum()),
        np.full(len(counts), total / len(counts)),
        jac=lambda x: 2 * (x - counts) / weight,
        bounds=[(0, None)] * len(counts),
        constraints={"type": "eq", "fun": lambda x: x.sum() - total},
    )
    distance = float(((nearest - counts) ** 2 / weight).sum())
    assert distance <= solved.fun + 1e-4 * (1 + abs(solved.fun))


def test_a_joint_adds_up_and_its_errors_hold_the_truth(policy, protected):
    table = make_table(3000)
    exact = aegis.summarize(table, policy).attributes["city"]
    joint = reconstruct_protected(protected, "city")
    assert joint.cells == ("aa", "bb", "cc", "dd")
    assert joint.table.sum(axis=0) == pytest.approx(protected.class_counts)
    assert (joint.stderr > 0).all()
    away = np.abs(joint.table - exact.joint) / joint.stderr
    assert (away < 4).all()
    assert joint.contingency_stderr > 0
    with pytest.raises(PolicyError, match="Unknown attribute"):
        reconstruct_protected(protected, "town")


def test_errors_of_a_joint_are_those_of_many_protections(policy):
    """Twenty protections of one table scatter as far as each of them says."""
    summary = aegis.summarize(make_table(1500), policy)
    made = [protect(summary, policy, epsilon=3, delta=1e-6, public=["*"]) for _ in range(20)]
    joints = [reconstruct_protected(one, "city") for one in made]
    scatter = np.std([j.table for j in joints], axis=0, ddof=1).mean()
    stated = np.mean([j.stderr for j in joints])
    assert 0.6 < stated / scatter < 1.7


def test_what_if_is_the_score_of_the_other_choice(protected):
    choice = (0, 0, 0, 0)
    scorer = ProtectedScorer(protected)
    changes = rank_protected(protected, [protected.configuration("c", choice)]).estimated.changes
    sizes = [len(a.candidates) for a in protected.attributes.values()]
    assert len(changes) == sum(sizes) - len(sizes)
    first = changes[0]
    assert first.attribute == "age"
    assert first.score == pytest.approx(scorer.score((1, 0, 0, 0)))
    assert first.change == pytest.approx(first.score - scorer.score(choice))
    assert first.stderr > 0
    # Sex says nothing: to hide it changes the score by its one degree of freedom alone.
    assert abs(next(c.change for c in changes if c.attribute == "sex")) < 0.005
    assert any(not c.tied for c in changes if c.mask == "suppress")


def test_advice_and_its_report_hold_what_if_and_what_leaks(protected, policy):
    advice = rank_protected(protected, generate_count=6)
    alone = rank_protected(protected, [advice.best.configuration])
    assert advice.estimated.changes == alone.estimated.changes
    opened = open_summary(protected, policy, rule_override=False)
    page = render_report(advice, sections=opened.report_sections(advice))
    assert "What another mask would change" in page
    assert "How the summary is protected" in page
    assert "epsilon 4" in page
    assert "nobody" not in page
    assert "How the summary is protected" not in render_report(advice)
    assert aegis.Study(protected, policy).report(advice) == page
