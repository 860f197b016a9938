"""The policy and the rule of a protected summary, and under which others it may be used."""

from __future__ import annotations

from dataclasses import replace

from aegis.errors import PolicyError
from aegis.policy import Policy, RuleOverride, rule_of
from aegis.privacy import Strength, strength
from aegis.safe.protect.model import ProtectedSummary


def require_policy(summary: ProtectedSummary, policy: Policy) -> None:
    """Raise `PolicyError` if a protected summary was made for another label, roles or masks."""
    asked = {a.name: (a.role, a.masks) for a in policy.features if a.scored}
    made = {
        a.name: (a.role, tuple(c.declared for c in a.candidates))
        for a in summary.attributes.values()
    }
    differing = [name for name in {**asked, **made} if asked.get(name) != made.get(name)]
    if summary.label != policy.label.column:
        differing.append(policy.label.column or summary.label)
    if differing:
        raise PolicyError(
            "The protected summary was made for another policy: label, role or masks differ for "
            f"{', '.join(differing)}.",
            hint="Ask for one that was made with this policy.",
        )


def summary_under(
    summary: ProtectedSummary, policy: Policy, *, rule_override: bool = False
) -> tuple[ProtectedSummary, RuleOverride | None]:
    """Return a protected summary prepared for a policy, and which rule was overridden.

    Verdicts on a rule that is not the policy's say nothing of the policy's: they are left out, and a
    note says so.

    Parameters
    ----------
    summary
        What its owner passed on.
    policy
        Of whoever asks.
    rule_override
        Whether another rule than the owner's is meant.

    Raises
    ------
    PolicyError
        The summary was made for other masks, or under another rule that was not overridden, or that
        is locked.
    """
    require_policy(summary, policy)
    override = None
    if summary.owner is not None:
        override = summary.owner.require(
            policy.privacy, override=rule_override, what="The protected summary"
        )
    if summary.rule is None:
        return summary, override
    stated = replace(rule_of(summary.rule), person=policy.privacy.person)
    if strength(policy.privacy, stated) is Strength.SAME:
        return summary, override
    note = f"its verdicts are on another rule than the policy's, {stated}, and were left out"
    return replace(summary, verdicts=(), rule=None, notes=(*summary.notes, note)), override
