"""Measure the privacy of the unmasked table and of the recommended release."""

from __future__ import annotations

from dataclasses import replace

from aegis.advisor.advice import Advice
from aegis.advisor.plan import PrivacyPlan
from aegis.advisor.ranked import PrivacyChange
from aegis.advisor.scoring import Scorer
from aegis.policy import Policy
from aegis.privacy import PrivacyReport
from aegis.privacy import report as privacy_report
from aegis.summary import Summary


def with_privacy(advice: Advice, summary: Summary, plan: PrivacyPlan, policy: Policy) -> Advice:
    """Return the advice with privacy reports before and after masking.

    Aegis computes them from the frequency table on which it checks the rule, so a summary is
    enough. A class with a single sensitive value is a risk to persons, so the warning about it
    comes first.
    """
    scorer = Scorer(summary)
    before = privacy_report(plan.classes(scorer.unmasked, policy.sensitive))
    after = _after(advice, scorer, plan, policy)
    said = () if advice.best is None or after is None else after.cautions
    return replace(
        advice,
        privacy=PrivacyChange(before, after, finest=not plan.as_it_is),
        warnings=(*said, *advice.warnings),
    )


def _after(
    advice: Advice, scorer: Scorer, plan: PrivacyPlan, policy: Policy
) -> PrivacyReport | None:
    """Return the privacy report of the best configuration, with its suppression.

    If none is admissible, report the closest entry without suppression; None for an empty ranking.
    """
    ranked = advice.best or advice.closest
    if ranked is None:
        return None
    if ranked.method is not None:
        return ranked.method.report
    masked = plan.classes(scorer.choose(ranked.configuration), policy.sensitive)
    verdict = plan.rule.check(masked)
    return privacy_report(masked.keep(verdict.kept_classes) if verdict.admissible else masked)
