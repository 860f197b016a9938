"""Findings on one column, and the proposal for it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from aegis.masks import Mask
from aegis.policy.model import Role
from aegis.policy.suggest.facts import ColumnFacts


@dataclass(frozen=True)
class ColumnProfile:
    """What was found on one column, and what is proposed for it.

    Attributes
    ----------
    facts
        What was measured.
    role
        The proposed role; None for the label.
    reason
        Why this role.
    masks
        Candidate masks, from fine to coarse.
    masks_reason
        Why these masks.
    unused
        Masks that fit too but are not proposed, each with the reason.
    warning
        What a person must decide before the policy is used; empty if nothing calls for it.
    question
        Whether somebody could know this column, which the rule does not cover; empty if it helps
        little to single out rows.
    alternative
        Masks of the column as a quasi-identifier, where there is a question.
    """

    facts: ColumnFacts
    role: Role | None
    reason: str
    masks: tuple[Mask, ...] = ()
    masks_reason: str = ""
    unused: tuple[tuple[Mask, str], ...] = ()
    warning: str = ""
    question: str = ""
    alternative: tuple[Mask, ...] = ()

    @property
    def name(self) -> str:
        """The column's name."""
        return self.facts.name

    @property
    def ordered(self) -> bool:
        """Whether the policy states an order: of a quasi-identifier's ranges written as text."""
        return self.role is Role.QUASI_IDENTIFIER and bool(self.facts.ranges)

    @property
    def quoted(self) -> bool:
        """Whether values may be quoted: not those of an identifier, nor of a possible one."""
        doubtful = self.role is Role.QUASI_IDENTIFIER and bool(self.warning)
        return self.role is not Role.IDENTIFIER and not doubtful

    def to_dict(self) -> dict[str, Any]:
        """Return the profile as plain data, without values that may name persons."""
        facts = self.facts
        hidden = not self.quoted
        return {
            "name": facts.name,
            "type": facts.dtype,
            "rows": facts.rows,
            "nulls": facts.nulls,
            "distinct": facts.distinct,
            "distinct_exact": facts.exact,
            "minimum": None if hidden else _plain(facts.low),
            "maximum": None if hidden else _plain(facts.high),
            "special": facts.special,
            "frequent": [] if hidden else [{"value": v, "share": s} for v, s in facts.frequent],
            "role": None if self.role is None else str(self.role),
            "reason": self.reason,
            "warning": self.warning or None,
            "question": self.question or None,
            "masks": [mask.spec() for mask in self.masks],
            "masks_reason": self.masks_reason,
            "unused": [{"mask": mask.spec(), "reason": why} for mask, why in self.unused],
        }


def _plain(value: Any) -> Any:
    """Return a number or date as plain data that JSON can hold."""
    return value if value is None or isinstance(value, int | float) else str(value)
