"""Define the mask that shows a level of an attribute's hierarchy."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

import ibis

from aegis.errors import InternalError, PolicyError
from aegis.masks import parameters
from aegis.masks.base import SUPPRESSED, Kind, Mask, Targets, described
from aegis.masks.hierarchy import Hierarchy
from aegis.masks.mapping import among, keyed_by, mapped

if TYPE_CHECKING:
    import ibis.expr.datatypes as dt
    import ibis.expr.types as ir


@dataclass(frozen=True)
class Level(Mask):
    """Shows the group of a value on one level of its hierarchy; level 0 is the value itself.

    Null stays null unless the hierarchy has a row for it. From level 1 on, a value that the
    hierarchy does not cover is unknown: `known` is false for it and the expression shows "*".
    """

    name: ClassVar[str] = "level"
    summary: ClassVar[str] = (
        "Replaces each value by its group at a level of the attribute's hierarchy."
    )
    fits: ClassVar[frozenset[Kind]] = frozenset(Kind)
    example: ClassVar[str] = "{level: 2}"

    level: int = described("number of the level. Level 0 is the value itself")
    hierarchy: Hierarchy | None = field(default=None, metadata={"policy": False})

    def __post_init__(self) -> None:
        parameters.whole(self.name, "level", self.level)
        if self.hierarchy is not None:
            self.hierarchy.require(self.level)

    def spec(self) -> str | dict[str, Any]:
        """Return `{level: n}`; the hierarchy itself belongs to the attribute."""
        return {self.name: self.level}

    def __str__(self) -> str:
        return f"{self.name}({self.level})"

    def check(self, kind: Kind, attribute: str) -> None:
        """Raise `PolicyError` if the attribute has no hierarchy."""
        super().check(kind, attribute)
        if self.hierarchy is None:
            raise PolicyError(
                f"Mask {str(self)!r}: attribute {attribute!r} has no hierarchy.",
                hint="Name one under `hierarchy:` of the attribute.",
            )

    def output_kind(self, kind: Kind) -> Kind:
        """Return `kind` for level 0, text for all other levels."""
        return kind if self.level == 0 else Kind.TEXT

    def shows(self, text: str) -> bool | None:
        """Return whether the mask can show a text: a group of the level, or "*". None for level 0,
        which can show any text.
        """
        return among(text, self._texts) if self.level else None

    @cached_property
    def _texts(self) -> frozenset[str]:
        return frozenset(map(str, self.shown_values)) | {SUPPRESSED}

    def expression(self, column: ir.Column) -> ir.Value:
        """Return the group of each value; raise `InternalError` if the mask has no hierarchy."""
        if self.level == 0:
            return column
        targets = self._targets()
        of_null = targets.pop(None, None)
        shown = mapped(column, targets, ibis.literal(SUPPRESSED))
        return shown if of_null is None else ibis.ifelse(column.isnull(), of_null, shown)

    def targets(self, dtype: dt.DataType) -> Targets | None:
        """Return the list of the hierarchy's values, in the type `dtype`, with the group of each;
        None for level 0, which shows the values unchanged.
        """
        if self.level == 0:
            return None
        targets = self._targets()
        of_null = targets.pop(None, None)
        return Targets(keyed_by(targets, dtype), SUPPRESSED, of_null)

    def known(self, column: ir.Column) -> ir.BooleanValue | None:
        """Return whether a value is null or covered by the hierarchy; None for level 0."""
        if self.level == 0:
            return None
        covered = {value: True for value in self._targets() if value is not None}
        return column.isnull() | mapped(column, covered, ibis.literal(False))

    @property
    def shown_values(self) -> frozenset[Any]:
        """All values that the mask can show; raise `InternalError` if it has no hierarchy."""
        return frozenset(self._targets().values())

    def _targets(self) -> dict[Any, Any]:
        if self.hierarchy is None:
            raise InternalError(f"Mask {str(self)!r} has no hierarchy to look values up in.")
        return self.hierarchy.targets(self.level)
