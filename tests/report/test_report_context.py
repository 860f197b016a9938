"""What the report says, before any of it becomes HTML."""

from __future__ import annotations

import math
import re
from dataclasses import replace
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from aegis.advisor.owner_preview import ReleaseValues
from aegis.advisor.ranked import PrivacyChange
from aegis.advisor.utility import NumberErrors, UtilityFigure
from aegis.errors import PolicyError
from aegis.present.finding import LISTED
from aegis.privacy import PrivacyRule
from aegis.report import render_report
from aegis.report.charts import HEAT_STEPS, heat_step
from aegis.report.context import (
    SCATTER_LIMIT,
    TOP,
    _admitting_limit,
    build_context,
)
from aegis.report.sections import _smaller
from report_factory import BINDING, FRONT, ROWS, advice, many, privacy, ranked

OWNER = ReleaseValues(())
"""A report for the owner, which states small numbers of rows, too."""


def context(
    given: Any, *, before: Any = None, after: Any = None, finest: bool = False, **parts: Any
) -> dict[str, Any]:
    change = None if before is None else PrivacyChange(before, after, finest)
    return build_context(replace(given, privacy=change), **{"title": "Title", **parts})


def test_the_recommendation_states_what_was_chosen_and_why() -> None:
    told = context(advice([ranked("c7"), ranked("c8", utility_kept=80)]))
    verdict = told["verdict"]
    assert verdict["admissible"]
    assert (verdict["name"], verdict["suppressed"]) == ("c7", "10")
    assert verdict["kept"] == "90.0\u00a0%"
    assert verdict["share"] == "1.0\u00a0%"
    assert told["rule"]["short"] == "k-anonymity (k\u00a0=\u00a05)"
    assert told["rule"]["allowed"] == "20 rows"
    assert [one[0] for one in told["key_figures"]] == [
        "Utility kept",
        "Rows suppressed",
        "Smallest class",
    ]
    by_area = context(advice([ranked("c7")], measure="held-out-auc"))
    figures = {one[0]: one[1] for one in by_area["key_figures"]}
    assert figures["Expected AUC"] == f"{ranked('c7').score:.2f}"  # as its standard error allows


def test_the_expected_auc_has_the_error_that_the_terminal_prints() -> None:
    figure = UtilityFigure("held-out-auc", 0.79, 0.8, utility_kept=97, stderr=0.016)
    given = advice([replace(ranked("c7"), utility=figure)], measure="held-out-auc")
    notes = {one[0]: one[2] for one in context(given)["key_figures"]}
    assert "of models, give or take 0.07; 0.80 unmasked" in notes["Expected AUC"]
    assert ", give or take 0.07" in given.headline


def test_the_report_states_the_expected_r2_and_the_errors_that_the_terminal_prints() -> None:
    errors = NumberErrors(6.102, 6.0961)
    figure = UtilityFigure("held-out-r2", 0.1842, 0.1853, stderr=0.01, number=errors)
    given = advice([replace(ranked("c7"), utility=figure)], measure="held-out-r2")
    stated = {one[0]: (one[1], one[2]) for one in context(given)["key_figures"]}
    assert stated["Expected R2"][0] == "0.18"
    assert given.headline is not None
    assert figure.errors.startswith(", error of a prediction 6.102 instead of")
    assert figure.errors in given.headline
    assert figure.errors in stated["Expected R2"][1]


def test_the_page_says_what_the_range_of_an_r2_contains() -> None:
    """The terminal says the same (`UtilityFigure.range_words`)."""
    page = render_report(advice())
    assert "an expected R2 contains about seven of ten, and most others do better." in page


def test_without_an_admissible_one_the_closest_is_named_and_what_would_admit_it() -> None:
    far = ranked("far", suppressed=400, admissible=False, violations=["k-anonymity: 400 rows"])
    near = ranked("near", suppressed=31, admissible=False, violations=["k-anonymity: 31 rows"])
    told = context(advice([far, near]))
    verdict = told["verdict"]
    assert not verdict["admissible"]
    assert verdict["name"] == "near"
    assert verdict["limit"] == "3.10\u00a0%"
    assert verdict["violations"] == ["k-anonymity: 31 rows"]
    assert [p["recommended"] for p in told["ranking"]["points"]] == [False, False]


def test_no_limit_admits_a_release_without_rows() -> None:
    told = context(advice([ranked(suppressed=ROWS, admissible=False, violations=["no class"])]))
    assert told["verdict"]["limit"] is None
    assert told["verdict"]["violations"] == ["No class"]


@given(st.integers(1, 5000), st.data())
def test_the_admitting_limit_suffices_and_is_the_least_in_its_digits(
    total: int, data: st.DataObject
) -> None:
    suppressed = data.draw(st.integers(0, total - 1))
    text = _admitting_limit(suppressed, total)
    assert text is not None
    points = round(100 * float(text.split("\u00a0")[-2]))
    allowed = PrivacyRule((), min(points / 10_000, math.nextafter(1, 0))).allowed_rows(total)
    assert allowed >= suppressed or text.startswith(">")
    if points and suppressed:
        assert math.floor((points - 1) * total / 10_000 + 1e-9) < suppressed or text.startswith("<")


def test_an_empty_ranking_recommends_nothing() -> None:
    told = context(advice([]))
    assert told["verdict"]["name"] is None
    assert told["key_figures"] == told["attributes"] == told["ranking"]["points"] == []
    assert told["yaml"]["configuration"] is None


def test_attributes_say_role_mask_and_change() -> None:
    age, sex = context(advice())["attributes"]
    assert (age["name"], age["role"], age["mask"]) == ("age", "quasi-identifier", "suppress")
    assert age["meaning"]
    assert (age["unmasked"], age["masked"], age["width"]) == ("0.2000", "0.2000", 100.0)
    assert (sex["masked"], sex["kept"]) == ("0.1000", "50.0\u00a0%")
    assert (sex["values"], sex["nulls"]) == ("7", "fewer than 5")


def test_a_masked_label_has_no_score_of_its_own() -> None:
    one = ranked(attributes=("age", "income"))
    told = context(advice([_without_score(one, "income")], attributes=("age", "income")))
    label = told["attributes"][1]
    assert (label["role"], label["masked"], label["width"]) == ("label", None, None)


def _without_score(one: Any, name: str) -> Any:
    from dataclasses import replace

    return replace(one, attributes={a: s for a, s in one.attributes.items() if a != name})


def test_columns_that_are_not_released_are_named_with_the_reason() -> None:
    more = {
        "ssn": {"role": "identifier"},
        "key": {"role": "identifier", "masks": ["tokenise"]},
        "junk": {"role": "ignore"},
    }
    withheld = context(advice(more=more, unnamed=["extra"]))["withheld"]
    assert {w["name"]: w["why"] for w in withheld} == {
        "ssn": "identifier",
        "key": "identifier, replaced by a token",
        "junk": "ignored by the policy",
        "extra": "not in the policy",
    }


@given(st.floats(-50, 200))
def test_steps_of_the_heat_map_are_thresholds(kept: float) -> None:
    expected = next(
        (i for i, bound in enumerate((10, 30, 50, 70, 90)) if kept < bound), HEAT_STEPS - 1
    )
    assert heat_step(kept) == expected
    assert heat_step(None) is None


def test_charts_show_the_head_and_say_so() -> None:
    names = [f"a{i}" for i in range(14)]
    told = context(advice(many(SCATTER_LIMIT + 10, names, admissible=5), attributes=names))
    ranking = told["ranking"]
    assert (ranking["shown"], ranking["cut"], ranking["scatter_cut"]) == (TOP, True, True)
    assert (len(ranking["points"]), len(ranking["scatter"])) == (TOP, SCATTER_LIMIT)
    assert [len(cells) for cells in ranking["heat"]] == [14] * TOP
    assert [p["admissible"] for p in ranking["points"]] == [True] * 5 + [False] * (TOP - 5)
    shortfalls = told["shortfalls"]
    assert (shortfalls["total"], shortfalls["shown"]) == (SCATTER_LIMIT + 5, TOP)
    assert all(row["violations"] for row in shortfalls["rows"])


def test_the_heat_map_of_a_wide_table_shows_the_strongest_attributes() -> None:
    names = [f"a{i}" for i in range(LISTED + 40)]
    given = advice(many(2, names, admissible=2), attributes=names)
    first = given.ranking[0].attributes
    ranking = context(given)["ranking"]
    weakest = min(first[name].unmasked for name in ranking["heat_names"])
    assert (len(ranking["heat_names"]), ranking["heat_more"]) == (LISTED, 40)
    assert sum(score.unmasked > weakest for score in first.values()) < LISTED
    page = render_report(given)
    assert "The 40 attributes that predict less by themselves are left out." in page


def test_without_utility_to_keep_the_score_is_shown() -> None:
    told = context(advice([ranked(utility_kept=None)]))
    assert told["verdict"]["kept"] is None
    assert told["ranking"]["points"][0]["utility"] == 0.3
    assert told["ranking"]["axis"].startswith("score")


def test_several_criteria_make_one_phrase() -> None:
    rule = {"k": 5, "l_diversity": {"attribute": "sex", "kind": "distinct", "l": 2}}
    short = context(advice(rule=rule))["rule"]["short"].replace("\u00a0", " ")
    assert short == "k-anonymity (k = 5) and distinct l-diversity of sex (l = 2)"


def test_a_rule_without_criterion_is_no_rule() -> None:
    told = context(advice(rule={"suppression": 0.1}))["rule"]
    assert (told["criteria"], told["short"]) == ([], "")


def test_an_unknown_measure_is_an_error() -> None:
    with pytest.raises(PolicyError, match="pilai"):
        context(advice(measure="pilai"))


def test_the_risk_table_holds_the_figures_of_both_reports() -> None:
    before, after = privacy([1, 1, 8], sensitive="job"), privacy([5, 5], sensitive="job")
    told = context(advice(), before=before, after=after, owner_preview=OWNER)["privacy"]
    assert told["columns"] == ["Before masking", "After masking"]
    lines = {line["name"]: line["values"] for group in told["groups"] for line in group["lines"]}
    assert lines["Smallest class"] == ["1", "5"]
    assert lines["Unique rows"] == ["2\n(20.0\u00a0%)", "0"]
    assert lines["Rows at risk above 20\u00a0%"] == ["2\n(20.0\u00a0%)", "0"]
    assert lines["Rows at risk above 10\u00a0%"] == ["10\n(100.0\u00a0%)", "10\n(100.0\u00a0%)"]
    assert lines["Highest prosecutor risk"] == ["100.0\u00a0%", "20.0\u00a0%"]
    assert lines["Rows in homogeneous classes"] == ["2\n(20.0\u00a0%)", "0"]
    assert lines["Fewest distinct values"] == ["1", "2"]
    assert "Closeness t, hierarchical distance" not in lines
    assert [group["title"] for group in told["groups"]] == ["Finding a person", "Learning job"]


def test_small_numbers_of_rows_of_the_table_are_for_its_owner_only() -> None:
    before, after = privacy([1, 1, 8], sensitive="job"), privacy([5, 5], sensitive="job")
    told = context(advice(), before=before, after=after)
    lines = {
        line["name"]: line["values"]
        for group in told["privacy"]["groups"]
        for line in group["lines"]
    }
    assert lines["Smallest class"] == ["fewer than 5", "5"]
    assert lines["Unique rows"] == ["fewer than 5", "0"]
    assert lines["Rows at risk above 20\u00a0%"] == ["fewer than 5", "0"]
    assert lines["Highest prosecutor risk"] == ["above 20.0\u00a0%", "20.0\u00a0%"]
    assert lines["Rows in homogeneous classes"] == ["fewer than 5", "0"]
    histogram = told["privacy"]["histogram"]
    assert histogram["sizes"][0] == "1–4"
    assert histogram["lines"][0]["cells"][0] == {"rows": "fewer than 5", "classes": "fewer than 5"}
    assert (histogram["points"][0]["share"], histogram["points"][0]["text"]) == (0, "fewer than 5")
    notes = [figure[2] for figure in told["key_figures"]]
    assert notes[-2:] == ["fewer than 5 before masking"] * 2


def test_the_table_under_the_finest_masks_is_not_called_unmasked() -> None:
    parts = {"before": privacy([1, 1, 8]), "after": privacy([5, 5]), "owner_preview": OWNER}
    told = context(advice(), **parts, finest=True)
    assert told["privacy"]["columns"] == ["With the finest masks", "After masking"]
    assert "at least as many classes and unique rows" in told["privacy"]["finest"]
    notes = [figure[2] for figure in told["key_figures"]]
    assert notes[-2:] == ["1 with the finest masks", "2 with the finest masks"]
    plain = context(advice(), **parts)
    assert plain["privacy"]["finest"] == ""
    assert [figure[2] for figure in plain["key_figures"]][-1] == "2 before masking"


@pytest.mark.parametrize(("stderr", "said"), [(0.5, True), (0.001, False), (None, False)])
def test_what_may_be_chance_is_said_beside_the_figure(stderr: float | None, said: bool) -> None:
    note = context(advice([replace(ranked(), stderr=stderr)]))["key_figures"][0][2]
    assert ("may be chance" in note) is said


@given(st.sampled_from([0.05, 0.075, 0.1, 0.2, 0.33, 0.5, 1.0]))
def test_at_risk_means_smaller_than(threshold: float) -> None:
    size = _smaller(threshold)
    assert 1 / size <= threshold + 1e-9
    assert size == 1 or 1 / (size - 1) > threshold


@given(st.lists(st.integers(1, 120), min_size=1, max_size=30))
def test_the_histogram_accounts_for_every_row(sizes: list[int]) -> None:
    told = context(advice(), before=privacy(sizes), owner_preview=OWNER)["privacy"]["histogram"]
    assert sum(p["share"] for p in told["points"]) == pytest.approx(100)
    assert told["series"] == ["Before masking"]
    assert sum(int(line["cells"][0]["classes"]) for line in told["lines"]) == len(sizes)


def test_optional_sections_appear_only_with_data() -> None:
    bare = context(advice())
    assert [bare[name] for name in ("privacy", "front", "binding")] == [None] * 3
    page = render_report(replace(advice(), front=FRONT, binding=BINDING))
    assert re.search(r"At the knee, .{1,40} = 5 \(", page)
    assert "<bdi>age: bucketize(width=10)</bdi>" in page
    assert re.findall("<td>(proven best|best found)</td>", page) == [
        "proven best",
        "proven best",
        "best found",
    ]
    assert "k breaks." in page
    assert '<th scope="row">k from 5 to 4</th>' in page


def test_policy_and_configuration_are_yaml_that_reads_back() -> None:
    given = advice()
    told = context(given)["yaml"]
    assert yaml.safe_load(told["policy"]["text"]) == given.policy
    assert yaml.safe_load(told["configuration"]["text"]) == {
        "measure": "adjusted-pillai",
        "configurations": {"c1": given.ranking[0].masks},
    }
    default = advice(measure="held-out-auc")
    for unnamed in (True, False):  # the policy's own measure would be taken in place of the default
        policy = {k: v for k, v in default.policy.items() if k != "measure" or not unnamed}
        told = context(replace(default, policy=policy))["yaml"]["configuration"]["text"]
        assert ("measure" in yaml.safe_load(told)) != unnamed


def test_a_very_long_policy_is_cut_and_says_so() -> None:
    more = {"x": {"role": "ignore", "hierarchy": {f"v{i}": ["group"] * 5 for i in range(4000)}}}
    told = context(advice(more=more))["yaml"]["policy"]
    assert told["cut"]
    assert len(told["text"]) <= 60_000


def test_each_of_several_labels_has_a_row_a_headline_and_a_heat_map() -> None:
    import numpy as np
    import pyarrow as pa

    import aegis

    draw = np.random.default_rng(2)
    a = draw.integers(0, 6, 200)
    rows = pa.table(
        {
            "a": a,
            "y": ["rs"[i] for i in (a + draw.integers(0, 4, 200) > 5).astype(int)],
            "n": np.round(a + draw.normal(0, 1, 200), 2),
        }
    )
    policy = {
        "version": 1,
        "labels": ["y", {"column": "n", "kind": "number"}],
        "privacy": {"k": 3},
        "attributes": {"a": {"role": "quasi-identifier", "masks": ["identity", "suppress"]}},
    }
    study = aegis.Study(rows, aegis.load_policy(policy))
    page = study.report(study.search())
    section = page[page.index('id="labels"') : page.index('id="attributes"')]
    assert "labels <bdi>y, n</bdi>" in page
    assert section.count("Models are expected to reach") == 2
    assert "Heat map of the labels" in section
    assert "var(--heat-" in section


def test_names_of_many_labels_are_counted_instead_of_cut() -> None:
    given = advice([ranked("c")])
    names = ["school_night_hours_sleep", "text_while_driving_30d", "physically_active_7d"]
    summary = {**given.summary, "label": None, "labels": {name: {} for name in names}}
    told = context(replace(given, summary=summary))
    assert told["table"]["label"] == "school_night_hours_sleep and 2 other labels"
