"""Hold the facts about one column, and the proposal for it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from aegis.masks import Mask
from aegis.policy.model import Role
from aegis.policy.suggest.facts import ColumnFacts


@dataclass(frozen=True)
class ColumnProfile:
    """The facts about one column, and the role and masks that Aegis proposes for it.

    Attributes
    ----------
    facts
        The measured facts.
    role
        The proposed role; None for the label.
    reason
        The reason for the role.
    masks
        Candidate masks, from fine to coarse.
    masks_reason
        The reason for the masks.
    unused
        Other masks that fit but are not proposed, each with the reason.
    warning
        A question that you must answer before you use the policy; empty if there is none.
    question
        For a column that the rule does not cover, a question: could other people know the values?
        Empty if the column hardly helps to find the row of a person.
    alternative
        Masks for the column if you make it a quasi-identifier; empty if `question` is empty.
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
        """The name of the column."""
        return self.facts.name

    @property
    def ordered(self) -> bool:
        """Whether the proposed policy lists the column's values in ascending order.

        This is so if the column is a quasi-identifier whose texts are ranges of numbers.
        """
        return self.role is Role.QUASI_IDENTIFIER and bool(self.facts.ranges)

    @property
    def quoted(self) -> bool:
        """Whether comments in the policy may show values of the column. They may not if the column
        is, or may be, an identifier.
        """
        doubtful = self.role is Role.QUASI_IDENTIFIER and bool(self.warning)
        return self.role is not Role.IDENTIFIER and not doubtful

    def to_dict(self) -> dict[str, Any]:
        """Return the profile as JSON values, without any value of the column that may identify a
        person.
        """
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
    """Return a number, or a date as text, which JSON can store."""
    return value if value is None or isinstance(value, int | float) else str(value)
