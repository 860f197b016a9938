"""Check whether a protected summary may be used under a policy and its rule."""

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
            f"{', '.join(dict.fromkeys(differing))}.",
            hint="Ask for one that was made with this policy.",
        )


def summary_under(
    summary: ProtectedSummary, policy: Policy, *, rule_override: bool = False
) -> tuple[ProtectedSummary, RuleOverride | None]:
    """Return a protected summary for use under a policy, and the owner's rule if the user overrode
    it, else None.

    If the verdicts are about another rule than the policy's, the result has no verdicts, and its
    notes say so.

    Parameters
    ----------
    summary
        The summary as published by its owner.
    policy
        The policy of the user.
    rule_override
        Whether the user intends to use another rule than the owner's.

    Raises
    ------
    PolicyError
        The summary was made for other masks; or its rule differs from the policy's rule, and is
        locked or was not overridden.
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
