"""Algorithm 1 of the paper as a ranking: what it estimates, from what, and what it calls it."""

from __future__ import annotations

import pyarrow as pa
import pytest

from aegis import Study, summarize
from aegis.errors import PolicyError
from aegis.papers.estimates.cases import CASES
from aegis.policy import load_policy
from aegis.summary import Information, Summary, withhold

ROWS = 400
TABLE = pa.table(
    {
        "age": [20 + (i * 7) % 50 for i in range(ROWS)],
        "height": [150 + (i * 13) % 41 / 2 for i in range(ROWS)],
        "city": [f"c{(i * 5) % 9}" for i in range(ROWS)],
        "sex": ["fm"[(i // 3) % 2] for i in range(ROWS)],
        "zip": [f"{1000 + (i * 11) % 60}" for i in range(ROWS)],
        "bought": ["yes" if (i * 7) % 50 + i % 13 > 30 else "no" for i in range(ROWS)],
    }
)
POLICY = load_policy(
    {
        "version": 1,
        "label": "bought",
        "privacy": {"k": 2, "suppression": 0.5},
        "attributes": {
            "age": {
                "role": "quasi-identifier",
                "masks": [{"bucketize": {"width": 5}}, {"quantiles": {"count": 3}}, "suppress"],
            },
            "height": {
                "role": "feature",
                "masks": [{"laplace": {"epsilon": 1, "lower": 150, "upper": 171}}, "suppress"],
            },
            "city": {"role": "feature", "masks": [{"keep_frequent": {"count": 3}}, "suppress"]},
            "sex": {"role": "feature", "masks": [{"randomised_response": {"epsilon": 1}}]},
            "zip": {"role": "quasi-identifier", "masks": [{"blur": {"keep": 3}}, "identity"]},
        },
    }
)
MEASURES = ("mi", "chi2", "g3", "g1", "adjusted-cramers-v")


@pytest.fixture(scope="module")
def summary() -> Summary:
    return summarize(TABLE, POLICY)


@pytest.fixture(scope="module")
def study(summary: Summary) -> Study:
    return Study(summary, POLICY)


@pytest.mark.parametrize("measure", MEASURES)
@pytest.mark.parametrize("case", CASES)
def test_every_case_works_on_every_kind_of_mask_and_measure(
    study: Study, case: str, measure: str
) -> None:
    advice = study.rank(generate_count=12, measure=measure, estimate=case)
    admissible = [r for r in advice.ranking if r.admissible]
    assert admissible
    puds = [r.estimate.pud for r in admissible if r.estimate is not None]
    assert len(puds) == len(admissible)
    # Up to rounding errors: what differs by no more stands in the order of the measure.
    assert puds == pytest.approx(sorted(puds), rel=1e-7, abs=1e-12)
    for ranked in advice.ranking:
        assert ranked.estimate is not None
        for name, told in ranked.estimate.attributes.items():
            assert told.method, name
            if told.interval is not None:
                low, high = told.interval
                assert low - 1e-9 <= told.deviation <= high + 1e-9


def test_raw_is_the_deviation_itself(study: Study) -> None:
    for ranked in study.rank(generate_count=12, measure="mi", estimate="raw").ranking:
        assert ranked.estimate is not None
        assert ranked.estimate.pud == pytest.approx(ranked.pud)
        assert {a.information for a in ranked.estimate.attributes.values()} == {Information.RAW}


def test_the_true_deviation_is_within_the_interval_of_every_estimate(study: Study) -> None:
    for case in CASES:
        for ranked in study.rank(generate_count=12, measure="mi", estimate=case).ranking:
            assert ranked.estimate is not None
            if ranked.estimate.interval is not None:
                low, high = ranked.estimate.interval
                assert low - 1e-9 <= ranked.pud <= high + 1e-9


def test_what_stood_in_for_a_case_is_said_by_attribute(study: Study) -> None:
    advice = study.rank(generate_count=12, measure="mi", estimate="sampling")
    methods = {a: set() for a in advice.ranking[0].attributes}
    for ranked in advice.ranking:
        assert ranked.estimate is not None
        for name, told in ranked.estimate.attributes.items():
            methods[name].add(told.method)
    assert methods["city"] <= {"sampling", "exact"}
    assert methods["sex"] == {"channel-em"}
    assert methods["zip"] == {"sampling", "exact"}  # identity shows the raw joint


def test_by_one_mask_alone_the_deviation_vanishes(study: Study) -> None:
    """Theorem 1: rows spread evenly within a group tell of the label what the group told."""
    for case in ("aegis+1d", "aegis-1d"):
        advice = study.rank(generate_count=8, measure="mi", estimate=case)
        assert any("Theorem 1" in text for text in advice.warnings)
        for ranked in advice.ranking:
            assert ranked.estimate is not None
            plain = ranked.estimate.attributes["city"]
            assert plain.deviation == pytest.approx(0, abs=1e-9)


@pytest.mark.parametrize("setting", ["histogram", "nothing"])
def test_a_summary_with_less_has_names_of_its_own_for_what_is_against_its_finest_masks(
    summary: Summary, study: Study, setting: str
) -> None:
    declared = {
        "version": 1,
        "label": "bought",
        "privacy": {"k": 2, "suppression": 0.5},
        "attributes": {
            "age": {
                "role": "quasi-identifier",
                "masks": [{"bucketize": {"width": 5}}, {"quantiles": {"count": 3}}],
            },
            "city": {"role": "feature", "masks": [{"keep_frequent": {"count": 3}}, "suppress"]},
        },
    }
    policy = load_policy(declared)
    whole = summarize(TABLE, policy)
    less = Study(withhold(whole, Information(setting)), policy)
    told = less.rank(generate_count=4, measure="mi", estimate="all-evidence").to_dict()
    known = Study(whole, policy).rank(generate_count=4, measure="mi").to_dict()
    assert (told["unmasked"], known["finest"]) == (None, None)
    assert told["finest"] <= known["unmasked"] + 1e-9
    for entry in told["ranking"]:
        assert entry["pud"] is None
        assert entry["pud_finest"] >= 0
        assert entry["estimate"]["attributes"]["age"]["information"] == setting
        assert "unmasked" not in entry["attributes"]["age"]
    assert {entry["pud_finest"] for entry in known["ranking"]} == {None}
    with pytest.raises(PolicyError, match="not the raw joint"):
        less.rank(generate_count=4, measure="mi", estimate="raw")


def test_what_cannot_be_estimated_is_refused(study: Study) -> None:
    with pytest.raises(PolicyError, match="Unknown estimate 'aegis'"):
        study.rank(generate_count=4, estimate="aegis")
    with pytest.raises(PolicyError, match="estimate needs masks"):
        study.rank(generate_count=4, estimate="raw", methods=["mondrian"])
