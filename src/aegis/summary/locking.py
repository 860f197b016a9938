"""Lock the privacy rule of a summary (see `aegis.policy.terms`)."""

from __future__ import annotations

from dataclasses import replace

from aegis.errors import PolicyError
from aegis.summary.model import Summary


def lock(summary: Summary) -> Summary:
    """Lock the rule of a summary, so that a weaker rule is refused.

    Raises
    ------
    PolicyError
        The summary does not contain its rule, because an earlier version made it.
    """
    if summary.terms is None:
        raise PolicyError(
            "The summary does not say which rule it was made under, so Aegis cannot lock it to the rule.",
            hint="Summarise the table again.",
        )
    return replace(summary, terms=replace(summary.terms, locked=True, binding=True))
