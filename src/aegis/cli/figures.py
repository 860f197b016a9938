"""Advice together with the report that explains it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from aegis.advisor import Advice, PrivacyPlan, Ranked, Scorer, advise, prepare
from aegis.policy import Configuration, Policy
from aegis.privacy import PrivacyReport
from aegis.privacy import report as privacy_report
from aegis.progress import Progress

if TYPE_CHECKING:
    from aegis.summary import Summary


def advise_with_report(
    subject: str | Summary,
    policy: Policy,
    *,
    configurations: Mapping[str, Configuration] | None = None,
    generate_count: int | None = None,
    measure: str | None = None,
    seed: int = 0,
    progress: Progress,
    render_report: bool = True,
) -> tuple[Advice, str | None]:
    """Return the advice and, where asked for, its report as HTML.

    The report's privacy figures come from the frequency table that checked the rule, so that a
    summary alone suffices for them.
    """
    if not render_report:
        advice = advise(
            subject,
            policy,
            configurations=configurations,
            generate_count=generate_count,
            measure=measure,
            seed=seed,
            progress=progress,
        )
        return advice, None
    from aegis.report import render

    summary, plan = prepare(subject, policy, seed=seed, progress=progress)
    advice = advise(
        summary if summary.frequency is not None else subject,
        policy,
        configurations=configurations,
        generate_count=generate_count,
        measure=measure,
        seed=seed,
        progress=progress,
    )
    with progress.step("Drawing the report"):
        before, after = _privacy(summary, plan, policy, _subject(advice))
        return advice, render(advice, before=before, after=after)


def _subject(advice: Advice) -> Ranked:
    """Return the configuration that the report is about: the best, else the closest."""
    if advice.best is not None:
        return advice.best
    return min(advice.ranking, key=lambda r: (r.suppressed_rows, -r.smallest_class))


def _privacy(
    summary: Summary, plan: PrivacyPlan, policy: Policy, ranked: Ranked
) -> tuple[PrivacyReport, PrivacyReport]:
    """Return the privacy of the table as it is, and of a configuration's release."""
    scorer = Scorer(summary)
    masked = plan.classes(scorer.choose(ranked.configuration), policy.sensitive)
    verdict = plan.rule.check(masked)
    if verdict.admissible:
        masked = masked.keep(verdict.kept)
    raw = plan.classes(scorer.unmasked, policy.sensitive)
    return privacy_report(raw), privacy_report(masked)
