"""Trained models in the report: what their section says, and that it stands there."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Any

from aegis.papers.report.section import evaluation_section, trained_section
from aegis.report import render_report
from aegis.report.charts import HEAT_STEPS
from aegis.report.context import TOP, is_relative
from report_factory import advice, ranked


@dataclass(frozen=True)
class Trained:
    model: str
    metric: str
    configuration: str
    value: float
    unmasked: float | None
    deviation: float | None


@dataclass(frozen=True)
class Judged:
    measure: str
    model: str
    spearman: float | None
    kendall: float | None
    loss: float


@dataclass(frozen=True)
class Gold:
    scores: tuple[Trained, ...]
    agreement: tuple[Judged, ...]
    metric: str = "accuracy"


def section_of(given: Any, gold: Gold) -> dict[str, Any]:
    section = evaluation_section(gold, given, TOP, relative=is_relative(given))
    assert section is not None
    return section


def page_of(given: Any, gold: Gold) -> str:
    section = trained_section(gold, given)
    assert section is not None
    page = render_report(given, sections=[section])
    ids = re.findall(r' id="([^"]+)"', page)
    assert len(ids) == len(set(ids))
    assert "<summary>Trained models</summary>" in page
    return page


def test_figures_are_shown_with_their_deviations() -> None:
    gold = Gold(
        (Trained("<b>lr", "accuracy", "c1", 0.8431, 0.851, 0.002),),
        (Judged("adjusted-pillai", "<b>lr", 0.96, None, 0.1),),
    )
    told = section_of(advice(), gold)
    assert told["scores"][0]["value"] == "0.8431 ± 0.0020"
    assert told["agreement"][0]["kendall"] == "–"
    assert "&lt;b&gt;lr" in page_of(advice(), gold)


def test_nothing_trained_is_no_section() -> None:
    assert trained_section(Gold((), ()), advice()) is None


def test_models_are_drawn_against_the_score() -> None:
    gold = Gold(
        tuple(
            Trained(model, metric, name, value, 0.9, None)
            for model in ("lr", "rf")
            for metric in ("accuracy", "f1")
            for name, value in (("c1", 0.8), ("c2", 0.7), ("unknown", 0.1), ("gone", 0.2))
        ),
        (
            Judged("adjusted-pillai", "lr", 0.95, None, 0.1),
            Judged("mi", "lr", -0.4, 0.1, 0.2),
            Judged("mi", "rf", None, None, 0.2),
        ),
    )
    given = advice([ranked("c1"), ranked("c2", utility_kept=50, admissible=False)])
    told = section_of(given, gold)
    assert [panel["title"] for panel in told["panels"]] == ["lr", "rf"]
    assert [
        (p["utility"], p["reached"], p["admissible"], p["recommended"])
        for p in told["panels"][0]["points"]
    ] == [(90.0, 0.8, True, True), (50, 0.7, False, False)]
    assert told["ranks"]["measures"] == ["adjusted-pillai", "mi"]
    assert [(c["row"], c["column"], c["text"], c["step"]) for c in told["ranks"]["cells"]] == [
        (0, 0, "0.95", HEAT_STEPS - 1),
        (1, 0, "-0.40", 0),
        (1, 1, "–", HEAT_STEPS),
    ]
    page = page_of(given, gold)
    assert "takes at least" not in page
    for name in ("trained-wide-title", "trained-narrow-title", "agreement-wide-title"):
        assert f'id="{name}"' in page


def test_few_configurations_have_no_rank_correlation() -> None:
    gold = Gold(
        tuple(Trained("lr", "accuracy", f"c{i}", 0.8, 0.9, None) for i in range(3)),
        (Judged("adjusted-pillai", "lr", 1.0, 1.0, 0.0),),
    )
    given = advice([ranked("c0"), ranked("c1"), ranked("c2")])
    told = section_of(given, gold)
    assert told["ranks"]["cells"] == []
    assert (told["agreement"][0]["spearman"], told["agreement"][0]["loss"]) == ("–", "0.0000")
    page = page_of(given, gold)
    assert "A rank correlation takes at least 4 configurations" in page
    assert "agreement-wide-title" not in page


def test_every_axis_of_utility_is_the_same() -> None:
    # One release without a figure of utility kept does not turn the panels into scores.
    given = advice([ranked("c1"), ranked("c2", utility_kept=None), ranked("c3", utility_kept=80.0)])
    names = ("c1", "c2", "c3")
    gold = Gold(tuple(Trained("lr", "accuracy", n, 0.8, 0.9, None) for n in names), ())
    assert is_relative(given)
    assert [p["utility"] for p in section_of(given, gold)["panels"][0]["points"]] == [90.0, 80.0]
    # Releases of one utility stand above each other, which is no picture of anything.
    assert not section_of(advice([ranked("c1"), ranked("c2")]), gold)["panels"]
    none = advice([replace(ranked(n, utility_kept=None), score=0.1 * int(n[1])) for n in names])
    assert not is_relative(none)
    scores = [one.score for one in none.ranking]
    assert [p["utility"] for p in section_of(none, gold)["panels"][0]["points"]] == scores
