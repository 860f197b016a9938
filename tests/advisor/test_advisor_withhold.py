"""A summary that carries less than raw joints: same advice, honest about what it lacks."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from advisor_support import AGE, ZIP, all_choices, policy_of, random_rows, rows, table_of
from aegis import advise, search
from aegis.advisor import PrivacyPlan, Scorer
from aegis.errors import PolicyError
from aegis.measures import MEASURES, LabelKind, measures_of
from aegis.papers.estimates.deviation import (
    estimate_pud,
    known_of,
    reconstruct_attribute,
    unmasked_measure,
)
from aegis.policy import Policy
from aegis.summary import Information, Summary, load_bundle, save_bundle, summarize, withhold

LESS = [Information.HISTOGRAM, Information.NOTHING]
RULE = {
    "k": 3,
    "suppression": 0.2,
    "t_closeness": {"attribute": "ill", "distance": "equal", "t": 1},
}


def hiding(**changes: Any) -> Policy:
    """Return a policy whose masks of age, zip and pay never show the values themselves."""
    return policy_of(
        RULE,
        **changes,
        attributes={
            "age": {"role": "quasi-identifier", "masks": AGE[1:], "weight": 2},
            "zip": {"role": "quasi-identifier", "masks": ZIP[1:], "hierarchy": policy_tree()},
            "pay": {"role": "feature", "masks": [{"bucketize": {"width": 2}}, "suppress"]},
        },
    )


def policy_tree() -> dict[str, Any]:
    return {"all": {"north": ["a1", "b1"], "south": ["a2", "b2", "c2"]}}


@pytest.fixture(scope="module")
def full() -> Summary:
    return summarize(table_of(random_rows(5, 90)), hiding())


@settings(max_examples=4, phases=[Phase.generate])
@given(given_rows=rows, most=st.sampled_from([3, 128]), setting=st.sampled_from(LESS))
def test_every_score_and_check_is_that_of_the_full_summary(given_rows, most, setting):
    policy = hiding()
    # With every row labelled: else which numbers labelled rows show may not be known.
    labelled = [(*row[:-1], row[-1] or "p") for row in given_rows]
    full = summarize(table_of(labelled), policy, max_levels=most)
    less = withhold(full, setting)
    known, kept = Scorer(full), Scorer(less)
    plans = [PrivacyPlan(s, policy.privacy) for s in (full, less)]
    for one, two in list(zip(all_choices(full), all_choices(less), strict=True))[::11]:
        for measure in measures_of(LabelKind.CLASSES):
            wanted = known.value(one, measure)
            assert kept.value(two, measure) == pytest.approx(wanted, rel=1e-9, abs=1e-9)
        wanted, found = plans[0].check(one), plans[1].check(two)
        assert (found.admissible, found.violations) == (wanted.admissible, wanted.violations)
        assert found.suppressed_rows == wanted.suppressed_rows


@pytest.mark.parametrize("setting", LESS)
def test_advice_and_search_find_the_same(full, setting):
    less = withhold(full, setting)
    for measure in ("held-out-pillai", "mi"):
        wanted = advise(full, hiding(), generate_count=20, measure=measure)
        found = advise(less, hiding(), generate_count=20, measure=measure)
        assert [(r.name, r.admissible) for r in found.ranking] == [
            (r.name, r.admissible) for r in wanted.ranking
        ]
        errors = [(r.stderr, r.tied_with_best) for r in wanted.ranking[:10]]
        for ranked, (error, tied) in zip(found.ranking, errors, strict=False):
            assert (ranked.stderr, ranked.tied_with_best) == (pytest.approx(error), tied)
        assert any("the summary has no raw counts" in text for text in found.warnings)
        assert not any("the summary has no raw counts" in text for text in wanted.warnings)
    assert search(less, hiding(), top=1).best.masks == search(full, hiding(), top=1).best.masks


@pytest.mark.parametrize("setting", LESS)
def test_what_no_mask_shows_is_in_no_part_of_the_file(full, setting, tmp_path):
    less = withhold(full, setting)
    assert less.information is setting
    assert full.information is Information.RAW
    age = less.attributes["age"]
    assert len(age.values) < len(full.attributes["age"].values) == len(age.all_values)
    for candidate in age.candidates:
        assert len(candidate.groups) == len(age.values) == len(age.joint)
    assert less.pairs.sizes[0] <= len(age.values)
    assert less.frequency.cells < full.frequency.cells
    assert less.frequency.rows == full.frequency.rows
    assert (age.domain.counts is None) == (setting is Information.NOTHING)
    save_bundle(less, tmp_path / "less.aegis")
    again = load_bundle(tmp_path / "less.aegis")
    assert again.to_dict() == less.to_dict()
    assert again.information is setting
    other = again.attributes["age"].domain
    assert other.values == age.domain.values
    assert other.cells.tolist() == age.domain.cells.tolist()
    if setting is Information.HISTOGRAM:
        assert other.counts.tolist() == full.attributes["age"].joint.sum(axis=1).tolist()


@pytest.mark.parametrize("setting", LESS)
@pytest.mark.parametrize("method", ["all-evidence", "smooth"])
def test_estimates_are_those_of_the_full_summary_in_that_setting(full, setting, method):
    less = withhold(full, setting)
    wanted = reconstruct_attribute(full, "age", know=setting, method=method)
    found = reconstruct_attribute(less, "age", know=setting, method=method)
    assert found.table == pytest.approx(wanted.table, abs=1e-6)
    assert wanted.total_variation is not None
    assert found.total_variation is None
    if method == "smooth":  # not for all attributes
        return
    chosen = advise(full, hiding(), generate_count=5).ranking
    same = advise(less, hiding(), generate_count=5).ranking
    one = estimate_pud(full, [r.configuration for r in chosen], know=setting, method=method)
    two = estimate_pud(less, [r.configuration for r in same], method=method)
    for known, kept in zip(one, two, strict=True):
        assert kept.information is setting
        assert kept.pud == pytest.approx(known.pud, abs=1e-6)
        assert kept.interval == pytest.approx(known.interval, abs=1e-6)


def test_the_true_measure_lies_within_the_bounds_that_are_left(full):
    truth = Scorer(full)
    for setting in LESS:
        kept = Scorer(withhold(full, setting))
        for name in ("mi", "chi2", "g3"):
            measure = MEASURES.get(name)
            for attribute in full.attributes.values():
                exact = truth.attribute(attribute, attribute.unmasked, measure)
                know = known_of(kept.summary.attributes[attribute.name])
                found = unmasked_measure(kept, attribute.name, measure, know=know)
                assert found.lower - 1e-9 <= exact <= found.upper + 1e-9


def test_bounds_go_by_the_masks_that_were_seen(full):
    scorer, mi = Scorer(full), MEASURES.get("mi")
    few = unmasked_measure(scorer, "age", mi, know="nothing", masks=["suppress"])
    assert (few.lower, few.masked) == (0, 0)
    assert few.estimate == pytest.approx(0, abs=1e-9)
    assert unmasked_measure(scorer, "age", mi, know="nothing").lower > 0


def test_more_than_is_carried_cannot_be_known(full):
    nothing, histogram = withhold(full, LESS[1]), withhold(full, LESS[0])
    with pytest.raises(PolicyError, match="does not contain the histogram of 'age'") as caught:
        reconstruct_attribute(nothing, "age", know="histogram")
    assert "Estimate from less (nothing)" in caught.value.hint
    for summary in (nothing, histogram):
        with pytest.raises(PolicyError, match="does not contain the raw joint of 'age'"):
            estimate_pud(summary, [], know="raw")
    with pytest.raises(PolicyError, match="already holds only histogram"):
        withhold(histogram, Information.NOTHING)
    assert withhold(full, Information.RAW) is full


def test_losses_of_single_values_are_refused(full):
    less = withhold(full, Information.HISTOGRAM)
    for loss in ("loss", "nu-entropy", "precision"):
        with pytest.raises(PolicyError, match=f"{loss!r} needs counts of single values"):
            search(less, hiding(), objective=loss)
    wanted = search(full, hiding(), objective="discernibility", top=1).ranking[0]
    found = search(less, hiding(), objective="discernibility", top=1).ranking[0]
    assert (found.masks, found.objective) == (wanted.masks, wanted.objective)


def test_noise_needs_the_raw_joint():
    policy = policy_of(attributes={"pay": {"role": "feature", "masks": ["shuffle", "suppress"]}})
    summary = summarize(table_of(random_rows(1)), policy)
    with pytest.raises(PolicyError, match="result of mask 'shuffle' of 'pay'"):
        withhold(summary, Information.NOTHING)


def test_where_a_mask_shows_all_nothing_is_withheld():
    summary = summarize(table_of(random_rows(1)), policy_of())
    less = withhold(summary, Information.NOTHING)
    assert less.information is Information.RAW
    assert all(a.domain is None for a in less.attributes.values())
    assert np.array_equal(less.pairs.total, summary.pairs.total)
    assert isinstance(less.attributes["age"].values, pa.Array)


@pytest.mark.parametrize("information", Information)
def test_what_is_known_may_be_given_as_text(full, information):
    named, meant = withhold(full, str(information)), withhold(full, information)
    assert named.information is meant.information is information
    [one, two] = (s.attributes["age"].information for s in (named, meant))
    assert one is two is information


def test_what_is_known_is_one_of_three(full):
    with pytest.raises(PolicyError, match="Unknown information of a summary 'histograms'"):
        withhold(full, "histograms")
