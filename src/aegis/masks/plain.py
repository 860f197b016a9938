"""Define the two extreme masks: show everything, show nothing."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import ibis

from aegis.masks.base import SUPPRESSED, Kind, Mask

if TYPE_CHECKING:
    import ibis.expr.types as ir


@dataclass(frozen=True)
class Identity(Mask):
    """Shows each value as it is; null stays null."""

    name: ClassVar[str] = "identity"
    summary: ClassVar[str] = "Shows each value as it is."
    fits: ClassVar[frozenset[Kind]] = frozenset(Kind)
    example: ClassVar[str] = "identity"
    keeps_kind: ClassVar[bool] = True

    def expression(self, column: ir.Column) -> ir.Value:
        """Return `column` itself."""
        return column


@dataclass(frozen=True)
class Suppress(Mask):
    """Shows "*" for every value and for null, so that no values can be distinguished."""

    name: ClassVar[str] = "suppress"
    summary: ClassVar[str] = 'Shows "*" instead of every value, also instead of null.'
    fits: ClassVar[frozenset[Kind]] = frozenset(Kind)
    example: ClassVar[str] = "suppress"

    def expression(self, column: ir.Column) -> ir.Value:  # noqa: ARG002 - nothing of it is shown
        """Return the constant "*"."""
        return ibis.literal(SUPPRESSED)

    def shows(self, text: str) -> bool:
        """Return whether a text is "*"."""
        return text == SUPPRESSED
