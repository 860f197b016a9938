"""The owner's rule of a summary, in addition to the rule that somebody else declares."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from aegis.advisor.advice import Advice
from aegis.policy import RuleOverride
from aegis.privacy import PrivacyRule, Strength, strength
from aegis.summary import Summary

WHAT = "The summary"


def check_owner_rule(summary: Summary, rule: PrivacyRule, *, override: bool) -> RuleOverride | None:
    """Return how a rule differs from the summary's rule; None if it does not.

    Parameters
    ----------
    summary
        The summary; of one that does not say its rule, or was just made, nothing is asked.
    rule
        What its user declares.
    override
        Whether another rule is meant.

    Raises
    ------
    PolicyError
        The rule is another one and `override` is not set, or it is weaker and the owner's is locked.
    """
    if summary.terms is None or not summary.terms.binding:
        return None
    return summary.terms.owner.require(rule, override=override, what=WHAT)


def check_front_rules(summary: Summary, rules: Iterable[PrivacyRule], *, override: bool) -> None:
    """Raise an error if a front contains a rule weaker than the owner's; errors as in
    `check_owner_rule`.
    """
    if summary.terms is None or not summary.terms.binding:
        return
    owner = summary.terms.owner
    for rule in rules:
        if strength(rule, owner.rule) is Strength.WEAKER:
            owner.require(rule, override=override, what=WHAT)


def with_owner_rule(advice: Advice, summary: Summary, override: RuleOverride | None) -> Advice:
    """Return the advice with the rule of its summary, and the rule that replaced it."""
    if summary.terms is None or not summary.terms.binding:
        return advice
    said = () if override is None else (override.sentence,)
    return replace(
        advice,
        owner_rule=summary.terms.owner,
        rule_override=override,
        warnings=(*said, *advice.warnings),
    )
