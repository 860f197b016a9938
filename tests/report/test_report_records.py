"""Record-level releases in reports: shown where there are any, safe with any name."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
import pytest

import aegis
from aegis.advisor.ranked import RecordLevel
from aegis.anonymizers import InformationLoss, Recipe
from aegis.policy import Configuration, load_policy
from aegis.report import render_anonymized, render_report
from aegis.report.sections import options_text
from report_factory import advice, privacy, ranked

HOSTILE = "</style><script>alert(1)</script> {{ 7*7 }} \u202e"


def release(name: str, **changed: object):
    about = RecordLevel(
        recipe=Recipe("mdav", {"k": 7}),
        groups=130,
        left_out=3,
        claims_k=True,
        loss=InformationLoss(0.125, 0.25, 0.0625, 4321, 7.5, 1.25),
        seconds=1.5,
        notes=("a note to read",),
        report=privacy([7, 8, 9]),
    )
    one = ranked(name)
    return replace(one, configuration=Configuration(name, {}), method=about, **changed)


def test_a_ranking_without_releases_has_no_section():
    page = render_report(advice([ranked("c1")]))
    assert 'id="records"' not in page
    assert 'href="#records"' not in page


def test_releases_stand_in_a_section_of_their_own():
    page = render_report(advice([release("mdav"), ranked("c1")]))
    section = page[page.index('id="records"') :]
    section = section[: section.index("</section>")]
    for text in ("mdav", "0.1250", "0.2500", "0.0625", "4,321", "130", "1.50", "a note to read"):
        assert text in section, text
    assert "mdav, k 7" in page
    assert "method: mdav" in page
    assert "configurations:" not in page[page.index('id="documents"') : page.index("Policy</h3>")]


def test_releases_are_counted_beside_configurations():
    page = render_report(advice([release("mdav"), ranked("c1"), ranked("c2")]))
    ranked_words = "2 configurations and 1 record-level release"
    assert page.count(f"All {ranked_words}") == 2
    assert f"among {ranked_words} that were ranked; there are" in page
    failing = [release("mdav", admissible=False), ranked("c1", admissible=False)]
    page = render_report(advice(failing))
    assert "None of the 1 configuration and 1 record-level release meets" in page


@pytest.mark.wings
def test_names_of_releases_are_escaped():
    page = render_report(advice([release(HOSTILE)]))
    assert "<script" not in page
    assert "49" not in page[page.index('id="records"') :][:2000]


@pytest.fixture(scope="module")
def made():
    table = pa.table(
        {
            "age": [20 + i % 30 for i in range(60)],
            "sex": ["fm"[i % 2] for i in range(60)],
            "job": ["abc"[i % 3] for i in range(60)],
            "income": ["hl"[(i // 7) % 2] for i in range(60)],
        }
    )
    policy = load_policy(
        {
            "version": 1,
            "label": "income",
            "privacy": {"k": 3},
            "attributes": {
                "age": {"role": "quasi-identifier"},
                "sex": {"role": "quasi-identifier"},
                "job": {"role": "sensitive"},
            },
        }
    )
    options = {"clusters": 6, "starts": 1}
    return aegis.anonymize(table, policy, "mo-obam", options=options, front=True)


@pytest.mark.wings
def test_page_of_a_release(made):
    page = render_anonymized(made, before=privacy([1, 2, 3]), title=HOSTILE)
    assert "<script" not in page
    assert page.count("<svg") >= 4
    assert f"{made.grouped.loss.scaled:.4f}" in page
    assert "k-anonymity (k = 3)" in page
    assert all(f"{point.information_loss:.4f}" in page for point in made.front)
    assert page == render_anonymized(made, before=privacy([1, 2, 3]), title=HOSTILE)


def test_an_l_that_the_method_does_not_use_is_not_stated(made):
    told = options_text(Recipe("mdav", {"k": 5, "l": 1}))
    assert told == "k 5 (the method does not use l)"
    assert options_text(Recipe("kl-member", {"k": 5, "l": 2})) == "k 5, l 2"


@pytest.mark.wings
def test_rows_left_out_are_stated_of_all_rows(made):
    page = render_anonymized(made, before=None)
    assert f"{made.suppressed_rows} of 60 rows" in page


@pytest.mark.wings
def test_page_of_a_release_without_front_and_without_claim(made):
    grouped = replace(made.grouped, claims_k=False)
    page = render_anonymized(replace(made, grouped=grouped, front=()), before=None)
    assert "guarantees no k" in page
    assert "Information loss against diversity" not in page
