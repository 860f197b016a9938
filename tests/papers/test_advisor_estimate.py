"""Estimates of what masks took away, from what each information setting knows."""

from __future__ import annotations

import math

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aegis.advisor import Scorer, generate
from aegis.errors import PolicyError
from aegis.measures import MEASURES
from aegis.papers.estimates.deviation import (
    estimate_pud,
    evidence_of,
    reconstruct_attribute,
    unmasked_measure,
)
from aegis.policy import Configuration, Policy, load_policy
from aegis.summary import Information, Summary, summarize

BOUNDED = [m.name for m in MEASURES if m.monotone and str(m.scope) == "attribute"]


def policy_of(masks: list[object] | None = None) -> Policy:
    age = masks or [
        "identity",
        {"bucketize": {"width": 4}},
        {"quantiles": {"count": 3}},
        "suppress",
    ]
    attributes = {
        "age": {"role": "feature", "masks": age},
        "city": {"role": "feature", "masks": [{"blur": {"keep": 1}}, "suppress"]},
        "sex": {"role": "feature"},
    }
    return load_policy({"version": 1, "label": "y", "attributes": attributes})


def summary_of(seed: int, count: int = 150, masks: list[object] | None = None) -> Summary:
    random = np.random.default_rng(seed)
    age = random.integers(20, 40, count)
    city = random.choice(["ab", "ac", "bc"], count)
    y = [
        "p" if a + 6 * (c == "ab") + random.normal(0, 5) > 32 else "q"
        for a, c in zip(age, city, strict=True)
    ]
    table = pa.table(
        {
            "age": age.tolist(),
            "city": city.tolist(),
            "sex": random.choice(["f", "m"], count).tolist(),
            "y": y,
        }
    )
    return summarize(table, policy_of(masks))


def test_a_summary_says_what_it_knows():
    summary = summary_of(0)
    assert summary.information is Information.RAW
    assert summary.to_dict()["information"] == "raw"


@pytest.mark.parametrize("know", ["raw", "histogram", "nothing"])
def test_evidence_holds_what_the_setting_knows(know):
    age = summary_of(1).attributes["age"]
    evidence = evidence_of(age, know)
    assert evidence.rows == age.joint.sum()
    assert (evidence.histogram is None) == (know == "nothing")
    if know == "raw":
        np.testing.assert_array_equal(evidence.masked[0].joint, age.joint)
    else:
        assert [m.groups for m in evidence.masked] == [5, 3, 1]  # not identity
    assert evidence.ordered is not None
    assert evidence.ordered.all()


def test_the_raw_joint_is_found_where_it_is_known():
    found = reconstruct_attribute(summary_of(2), "age", know="raw")
    assert found.total_variation == pytest.approx(0, abs=1e-12)


def test_knowing_more_is_never_worse_here():
    summary = summary_of(3, 2000)
    distance = [
        reconstruct_attribute(summary, "age", know=k).total_variation
        for k in ("raw", "histogram", "nothing")
    ]
    assert distance == sorted(distance)


def test_noise_alone_is_undone_by_its_channel():
    masks = [{"randomised_response": {"keep": 0.6}}]
    summary = summary_of(4, masks=masks)
    found = reconstruct_attribute(summary, "age", know="nothing", method="channel-em")
    assert found.total_variation == pytest.approx(0, abs=1e-9)


def test_one_mask_carries_the_measure_of_the_mask():
    # Theorem 1: the estimated deviation is 0 for every configuration.
    summary = summary_of(5)
    scorer = Scorer(summary)
    age = summary.attributes["age"]
    for know, mask in (("histogram", "bucketize"), ("nothing", "quantiles")):
        found = reconstruct_attribute(summary, "age", know=know, method="closed-form", masks=[mask])
        candidate = next(c for c in age.candidates if c.declared.name == mask)
        for name in ("mi", "g3", "chi2"):
            measure = MEASURES.get(name)
            known = unmasked_measure(scorer, "age", measure, know=know, reconstruction=found)
            masked = scorer.attribute(age, candidate, measure)
            # The bounds come from all candidates, so the estimate may be moved up to the finest.
            assert known.estimate == pytest.approx(
                masked if known.lower is None else np.clip(masked, known.lower, known.upper)
            )


@settings(max_examples=10)
@given(st.integers(0, 10_000), st.sampled_from(BOUNDED), st.sampled_from(["histogram", "nothing"]))
def test_intervals_hold_the_true_deviation(seed, name, know):
    summary = summary_of(seed, 60)
    configurations = generate(summary, 6, seed=seed)
    scorer, measure = Scorer(summary), MEASURES.get(name)
    found = estimate_pud(summary, configurations, measure=name, know=know)
    for configuration, estimate in zip(configurations, found, strict=True):
        true = scorer.score(scorer.choose(configuration), measure).pud
        assert estimate.interval is not None
        low, high = estimate.interval
        assert low - 1e-9 <= true <= high + 1e-9
        assert low - 1e-9 <= estimate.pud <= high + 1e-9
        for a in estimate.attributes.values():
            assert a.lower is not None
            assert a.upper is not None
            assert a.lower - 1e-12 <= a.estimate <= a.upper + 1e-12


def test_with_the_raw_joint_the_estimate_is_the_deviation():
    summary = summary_of(6)
    configurations = generate(summary, 5)
    scorer = Scorer(summary)
    for name in ("mi", "adjusted-mi", "g3"):
        for configuration, estimate in zip(
            configurations,
            estimate_pud(summary, configurations, measure=name, know="raw"),
            strict=True,
        ):
            true = scorer.score(scorer.choose(configuration), MEASURES.get(name)).pud
            assert estimate.pud == pytest.approx(true)
            assert estimate.interval == pytest.approx((true, true))
            assert estimate.to_dict()["information"] == "raw"
        [first, *_] = estimate_pud(summary, configurations, measure=name)
        assert first.information is summary.information
        assert first.pud == pytest.approx(
            scorer.score(scorer.choose(configurations[0]), MEASURES.get(name)).pud
        )


def test_what_a_configuration_shows_as_it_is_has_no_deviation():
    summary = summary_of(6)
    age = summary.attributes["age"]
    listed = {str(c.declared): c.mask for c in age.candidates}
    first = {name: a.candidates[0].mask for name, a in summary.attributes.items()}
    shown, hidden = (
        Configuration(name, first | {"age": mask})
        for name, mask in (("shown", listed["identity"]), ("hidden", listed["suppress"]))
    )
    for know in ("histogram", "nothing"):
        one, two = estimate_pud(summary, [shown, hidden], measure="mi", know=know)
        assert one.attributes["age"].deviation == 0
        assert one.attributes["age"].interval == (0, 0)
        assert two.attributes["age"].deviation > 0


def test_a_measure_without_bounds_has_no_interval():
    summary = summary_of(7)
    [estimate] = estimate_pud(
        summary, generate(summary, 1), measure="adjusted-cramers-v", know="histogram"
    )
    assert estimate.interval is None
    assert math.isfinite(estimate.pud)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"name": "height"}, "height"),
        ({"name": "age", "know": "everything"}, "information setting"),
        ({"name": "age", "masks": ["blur"]}, "candidate mask"),
        ({"name": "sex"}, "nothing to estimate"),
        ({"name": "age", "method": "guess"}, "reconstruction method"),
        ({"name": "age", "method": "closed-form"}, "exactly one|one masked"),
    ],
)
def test_what_cannot_be_reconstructed_is_said(arguments, message):
    with pytest.raises(PolicyError, match=message):
        reconstruct_attribute(summary_of(8), **arguments)


def test_a_deviation_is_per_attribute():
    summary = summary_of(9)
    with pytest.raises(PolicyError, match="whole configurations"):
        estimate_pud(summary, generate(summary, 1), measure="adjusted-pillai")
