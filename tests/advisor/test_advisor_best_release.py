"""Suppression can remove what the best masks keep: releases that suppress fewer rows are compared."""

from __future__ import annotations

import io
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from aegis import Advice, Policy, Study, load_policy
from aegis.advisor.confidence import AUC_MARGIN
from aegis.advisor.released import _fewer
from aegis.cli.advice import search_sections
from aegis.policy import policy_mapping
from aegis.present import Finding
from aegis.privacy.rule import rule_at
from aegis.report import render_report


def table(rows: int = 400, ill: int = 12, seed: int = 0) -> pa.Table:
    """A table in which only a rare cause gives the rare class away, and each cause is rare."""
    random = np.random.default_rng(seed)
    died = np.arange(rows) < ill
    return pa.table(
        {
            "cause": [f"cause {i % 6}" if own else "none" for i, own in enumerate(died)],
            "age": random.integers(0, 4, rows),
            "height": np.round(random.normal(size=rows) + 1.5 * died, 1),
            "died": np.where(died, "yes", "no"),
        }
    )


def policy(suppression: float = 0.05, **more: Any) -> Policy:
    masks = {"cause": ["identity", "suppress"], "age": ["identity", {"bucketize": {"width": 2}}]}
    quasi = {name: {"role": "quasi-identifier", "masks": own} for name, own in masks.items()}
    return load_policy(
        {
            "version": 1,
            "label": "died",
            "privacy": {"k": 5, "suppression": suppression},
            "attributes": {**quasi, "height": {"role": "feature"}},
            **more,
        }
    )


def masks_of(advice: Advice) -> dict[str, str]:
    assert advice.best is not None
    return advice.best.mask_texts


def test_a_release_that_loses_its_class_is_not_recommended() -> None:
    study = Study(table(), policy())
    advice = study.search(top=2)
    lost, best = advice.ranking[1], advice.best
    assert best is not None
    assert lost.score > 0.99
    assert study.rank([lost.configuration]).utility.utility_kept == 0  # type: ignore[union-attr]
    assert (best.suppressed_rows, lost.suppressed_rows) == (0, 12)
    assert advice.utility.utility_kept > 50  # type: ignore[union-attr, operator]
    assert not advice.utility.lost_classes  # type: ignore[union-attr]


def test_the_proof_speaks_of_all_rows() -> None:
    advice = Study(table(), policy()).search(explain_best=True)
    search = advice.search
    assert search is not None
    assert advice.by_release
    assert search.optimal
    assert not advice.optimal
    assert advice.best is not None
    assert search.best == advice.ranking[1].score > advice.best.score
    proof = Finding.of(advice, advice.best).proof
    assert (
        "scores better on all rows (proven best), but its release loses rows and so keeps less."
        in proof
    )
    assert all(ranked.tied_with_best is None for ranked in advice.ranking)
    assert advice.binding is not None
    assert all(mask.violations for mask in advice.binding.finer)
    assert f"{advice.utility.value:.4f}, with 0 rows suppressed" in advice.preferred.words()  # type: ignore[union-attr]


def test_everybody_recommends_the_same(tmp_path: Path) -> None:
    own, study = policy(), Study(table(), policy())
    wanted = masks_of(study.search())
    assert masks_of(study.search(top=1)) == masks_of(study.search(prefer="score")) == wanted
    assert masks_of(study.advise()) == masks_of(study.rank(generate_count=50)) == wanted
    assert masks_of(Study(study.summary, own).search()) == wanted
    stopped = tmp_path / "stopped.json"
    assert all(masks_of(study.search(resume=str(stopped))) == wanted for _ in range(2))
    said = study.search().to_dict()
    assert (said["optimal"], said["search"]["optimal"]) == (False, True)
    assert said["utility"] == said["ranking"][0]["utility"]


def test_a_class_of_several_counts_as_lost() -> None:
    """The mean AUC of the classes that are left may rise if a class vanishes."""
    own = table()
    third = np.random.default_rng(1).permutation(["no", "perhaps"] * 200)
    died = [a if a == "yes" else b for a, b in zip(own["died"].to_pylist(), third, strict=True)]
    study = Study(own.set_column(3, "died", [died]), policy())
    advice = study.search()
    assert not advice.utility.lost_classes  # type: ignore[union-attr]
    assert advice.by_release


def test_nothing_changes_where_a_release_keeps_its_value() -> None:
    cause = ["one" if i < 60 else "none" for i in range(399)]
    own = table(ill=60).set_column(0, "cause", [[*cause, "odd"]])
    advice = Study(own, policy()).search()
    assert advice.best is not None
    assert advice.best.suppressed_rows == 1
    assert not advice.by_release
    assert advice.optimal


def test_limits_of_the_compared_releases() -> None:
    plan = Study(table(), policy()).plan
    assert _fewer(plan, 20) == [6, 0]
    assert _fewer(plan, 6) == [0]
    number = load_policy({**_number(), "label": "height"})
    assert _fewer(Study(table(), number).plan, 20) == [0]


def _number() -> dict[str, Any]:
    attributes = {"age": {"role": "quasi-identifier", "masks": ["identity", "suppress"]}}
    return {"version": 1, "privacy": {"k": 5, "suppression": 0.05}, "attributes": attributes}


def test_a_ranking_says_why_in_its_own_field() -> None:
    advice = Study(table(), policy()).rank(generate_count=50)
    assert advice.by_release
    said = advice.to_dict()
    assert "predicts more from the rows that it releases" in said["preferred"]
    assert said["preferred"] not in " ".join(advice.warnings)
    score = Study(table(), policy(0)).rank(generate_count=50, prefer="score")
    assert (score.preferred, score.to_dict()["preferred"]) == (None, None)


@pytest.mark.wings
def test_record_level_releases_leave_the_order_of_masks() -> None:
    study = Study(table(), policy())
    advice = study.search(methods=["mondrian"])
    masks = [ranked for ranked in advice.ranking if ranked.method is None]
    assert masks[0].mask_texts == masks_of(study.search())


@given(
    ill=st.integers(4, 14),
    causes=st.integers(1, 6),
    seed=st.integers(0, 5),
    suppression=st.sampled_from([0.03, 0.05, 0.1]),
)
def test_no_release_without_suppression_is_much_better(
    ill: int, causes: int, seed: int, suppression: float
) -> None:
    """The recommended release predicts at least as much as the one that `suppression: 0` would
    recommend, up to twice the margin within which scores count as equal.
    """
    own = table(240, ill, seed)
    cause = [text[: 6 + (i % causes > 0)] for i, text in enumerate(own["cause"].to_pylist())]
    study = Study(own.set_column(0, "cause", [cause]), policy(suppression))
    none = replace(study.policy.privacy, suppression=0.0)
    advice, spared = study.search(), study.under(replace(study.policy, privacy=none)).search()
    assert advice.utility is not None
    assert advice.best is not None
    if spared.utility is not None and spared.best is not None:
        least = min(spared.utility.value, spared.best.score)
        assert advice.utility.value >= least - 2 * AUC_MARGIN - 1e-9


def test_a_front_recommends_what_the_first_screen_does() -> None:
    study = Study(table(), policy())
    advice = study.search(front="k=2,5,10,500")
    assert advice.front is not None
    assert advice.best is not None
    for point in advice.front.points[:3]:
        assert point.utility_kept > 50  # type: ignore[operator]
        assert not point.proven
        rule = rule_at(study.policy.privacy, "k", point.value)
        own = study.under(replace(study.policy, privacy=rule))
        certified = own.rank([point.configuration]).utility
        assert certified.utility_kept == point.utility_kept  # type: ignore[union-attr]
    middle = advice.front.points[1]
    assert middle.utility == advice.utility
    assert dict(middle.declared) == masks_of(advice)
    assert [point.value for point in advice.front.visible_points] == [10]
    assert advice.front.on == "the released rows"
    assert advice.front.left_out == (
        "k = 2, 5: a stricter k keeps as much.",
        "k = 500: no configuration meets the rule.",
    )


def test_a_front_shows_no_point_that_keeps_nothing() -> None:
    own = table().select(["cause", "age", "died"])
    declared = policy_mapping(policy())
    declared["attributes"].pop("height")
    front = Study(own, load_policy(declared)).front("k=2,20")
    assert front.visible_points == ()
    assert front.left_out == ("k = 2, 20: the best release keeps nothing.",)


def test_a_summary_says_that_its_share_is_not_of_released_rows() -> None:
    study = Study(table(), policy())
    said = "utility kept is computed from counts before masking"
    from_summary = Study(study.summary, policy()).search()
    assert from_summary.best is not None
    assert from_summary.best.suppressed_rows == 0
    assert any(text.startswith(said) for text in from_summary.warnings)
    assert not any(text.startswith(said) for text in study.search().warnings)


def test_a_front_from_a_summary_says_that_it_counts_all_rows() -> None:
    study = Study(Study(table(), policy(0.0)).summary, policy(0.0))
    advice = study.search(front="k=2,5", explain_best=True)
    assert advice.front is not None
    assert advice.front.visible_points
    assert advice.front.on == "all rows"
    shown = io.StringIO()
    console = Console(file=shown, width=200)
    for section in search_sections(advice):
        console.print(section)
    assert "kept: on all rows." in shown.getvalue()
    assert "Utility is measured on all rows." in render_report(advice)
