"""Lock the rule of a summary: see `aegis.policy.terms`."""

from __future__ import annotations

from dataclasses import replace

from aegis.errors import PolicyError
from aegis.summary.model import Summary


def lock(summary: Summary) -> Summary:
    """Return a summary that refuses rules weaker than its own.

    Raises
    ------
    PolicyError
        The summary does not say its rule: it is of an earlier version.
    """
    if summary.terms is None:
        raise PolicyError(
            "The summary does not say which rule it was made under, so that none can be locked.",
            hint="Summarise the table again.",
        )
    return replace(summary, terms=replace(summary.terms, locked=True, binding=True))
