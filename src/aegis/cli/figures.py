"""Advice together with the report that explains it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from aegis.advisor import Advice, Prepared, PrivacyPlan, Ranked, Scorer, prepare
from aegis.policy import Policy
from aegis.privacy import PrivacyReport
from aegis.privacy import report as privacy_report
from aegis.progress import Progress

if TYPE_CHECKING:
    from aegis.evaluation import Evaluation
    from aegis.sources import Source
    from aegis.summary import Summary

Advisor = Callable[["str | Source | Summary | Prepared"], Advice]
"""Gives advice on a table, on its summary, or on what was prepared from either."""


def advise_with_report(
    subject: str | Source | Summary | Prepared,
    policy: Policy,
    advisor: Advisor,
    *,
    seed: int,
    progress: Progress,
) -> tuple[Advice, str]:
    """Return the advice and its report as HTML.

    The report's privacy figures come from the frequency table that checks the rule, so that a
    summary alone suffices for them.
    """
    from aegis.report import render

    prepared = prepare(subject, policy, seed=seed, progress=progress)
    advice = advisor(prepared)
    with progress.step("Drawing the report"):
        before, after = _privacy(prepared.summary, prepared.plan, policy, advice)
        finest = not prepared.plan.as_it_is
        return advice, render(advice, before=before, after=after, finest=finest)


def evaluation_report(
    table: str,
    policy: Policy,
    evaluation: Evaluation,
    *,
    seed: int,
    progress: Progress,
) -> str:
    """Return the report on an evaluation as HTML, with the privacy of what it advises."""
    from aegis.report import render

    prepared = prepare(table, policy, seed=seed, progress=progress)
    with progress.step("Drawing the report"):
        advice = evaluation.advice
        before, after = _privacy(prepared.summary, prepared.plan, policy, advice)
        finest = not prepared.plan.as_it_is
        return render(advice, before=before, after=after, finest=finest, evaluation=evaluation)


def _subject(advice: Advice) -> Ranked | None:
    """Return the configuration that the report is about: the best, else the closest."""
    if advice.best is not None:
        return advice.best
    return min(advice.ranking, key=lambda r: (r.suppressed_rows, -r.smallest_class), default=None)


def _privacy(
    summary: Summary, plan: PrivacyPlan, policy: Policy, advice: Advice
) -> tuple[PrivacyReport, PrivacyReport | None]:
    """Return the privacy before masking, and of the release that the report is about.

    Before masking means the table as it is, or under the finest masks: see `PrivacyPlan.as_it_is`.
    """
    scorer = Scorer(summary)
    raw = privacy_report(plan.classes(scorer.unmasked, policy.sensitive))
    ranked = _subject(advice)
    if ranked is None:
        return raw, None
    if ranked.method is not None:
        return raw, ranked.method.report
    masked = plan.classes(scorer.choose(ranked.configuration), policy.sensitive)
    verdict = plan.rule.check(masked)
    if verdict.admissible:
        masked = masked.keep(verdict.kept_classes)
    return raw, privacy_report(masked)
