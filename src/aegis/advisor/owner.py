"""Compare a user's privacy rule with the rule of the summary's owner."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from aegis.advisor.advice import Advice
from aegis.policy import RuleOverride
from aegis.privacy import PrivacyRule, Strength, strength
from aegis.summary import Summary

WHAT = "The summary"


def check_owner_rule(summary: Summary, rule: PrivacyRule, *, override: bool) -> RuleOverride | None:
    """Return how the user's rule differs from the rule that the owner put into a summary; None if
    it does not differ.

    Parameters
    ----------
    summary
        The summary. If it does not contain a rule, or was made in this process, every rule passes.
    rule
        The rule that the user declares.
    override
        Whether the user accepts that the rule differs.

    Raises
    ------
    PolicyError
        The rule differs and `override` is False, or it is weaker and the owner's rule is locked.
    """
    if summary.terms is None or not summary.terms.binding:
        return None
    return summary.terms.owner.require(rule, override=override, what=WHAT)


def check_front_rules(summary: Summary, rules: Iterable[PrivacyRule], *, override: bool) -> None:
    """Check whether one of several rules, such as those of the points of a front, is weaker than
    the rule that the owner put into a summary.

    `override` says whether the user accepts a weaker rule.

    Raises
    ------
    PolicyError
        A rule is weaker, and `override` is False or the owner's rule is locked.
    """
    if summary.terms is None or not summary.terms.binding:
        return
    owner = summary.terms.owner
    for rule in rules:
        if strength(rule, owner.rule) is Strength.WEAKER:
            owner.require(rule, override=override, what=WHAT)


def with_owner_rule(advice: Advice, summary: Summary, override: RuleOverride | None) -> Advice:
    """Return a copy of the advice that states the owner's rule from the summary. If the user
    replaced this rule, `override` says how the two differ, and the advice warns of it.
    """
    if summary.terms is None or not summary.terms.binding:
        return advice
    said = () if override is None else (override.sentence,)
    return replace(
        advice,
        owner_rule=summary.terms.owner,
        rule_override=override,
        warnings=(*said, *advice.warnings),
    )
