"""Apply several masks one after the other."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import reduce
from typing import TYPE_CHECKING, Any, ClassVar

from aegis.errors import PolicyError
from aegis.masks import parameters
from aegis.masks.base import SUPPRESSED, Kind, Mask, ValueCounts, described
from aegis.masks.grouping import transform

if TYPE_CHECKING:
    import ibis.expr.types as ir


def parts_of(mask: Mask) -> tuple[Mask, ...]:
    """Return the masks of a composition; any other mask is returned as the only entry."""
    return mask.masks if isinstance(mask, Compose) else (mask,)


@dataclass(frozen=True)
class Compose(Mask):
    """Applies masks in order, each to the result of the previous mask.

    `{compose: [{top_code: {at: 90}}, {bucketize: {width: 10}}]}` caps ages at 90 and then shows
    their decade. Each mask must fit the kind of data that the previous mask shows.
    """

    name: ClassVar[str] = "compose"
    summary: ClassVar[str] = "Applies several masks one after the other."
    fits: ClassVar[frozenset[Kind]] = frozenset(Kind)
    example: ClassVar[str] = "{compose: [{top_code: {at: 90}}, {bucketize: {width: 10}}]}"

    masks: tuple[Mask, ...] = described("the masks in order, at least two")

    def __post_init__(self) -> None:
        given: object = self.masks
        masks = tuple(given) if isinstance(given, Iterable) else ()
        if len(masks) < 2 or not all(isinstance(mask, Mask) for mask in masks):
            raise parameters.wrong(self.name, "masks", given, "a list of two or more masks")
        for mask in masks:
            if not mask.deterministic:
                raise PolicyError(
                    f"Mask {self.name!r} cannot hold {mask.name!r}, which draws its values at random.",
                    hint="Use the noise mask by itself.",
                )
        object.__setattr__(self, "masks", masks)

    def spec(self) -> str | dict[str, Any]:
        """Return `{compose: [...]}`."""
        return {self.name: [mask.spec() for mask in self.masks]}

    def __str__(self) -> str:
        return f"{self.name}({', '.join(map(str, self.masks))})"

    def check(self, kind: Kind, attribute: str) -> None:
        """Raise `PolicyError` if a mask does not fit the kind of data that the previous mask shows."""
        for mask in self.masks:
            mask.check(kind, attribute)
            kind = mask.output_kind(kind)

    def output_kind(self, kind: Kind) -> Kind:
        """Return the kind of data that the last mask shows."""
        return reduce(lambda shown, mask: mask.output_kind(shown), self.masks, kind)

    @property
    def fitted(self) -> bool:
        """Whether all masks are fitted."""
        return all(mask.fitted for mask in self.masks)

    def _learn(self, data: ValueCounts) -> Compose:
        """Return the composition with each mask fitted to the result of the previous mask."""
        fitted = []
        for mask in self.masks:
            fitted.append(mask.fit(data))
            if len(fitted) < len(self.masks):
                data = transform(fitted[-1], data)
        return replace(self, masks=tuple(fitted))

    def shows(self, text: str) -> bool | None:
        """Return whether the composition can show a text.

        It can if the last mask can, or if an earlier mask shows this text for values that it does
        not know.
        """
        shown = self.masks[-1].shows(text)
        return shown if shown is None else shown or text == SUPPRESSED

    def expression(self, column: ir.Column) -> ir.Value:
        """Return the expression of all masks, applied one after the other."""
        return reduce(lambda shown, mask: mask.expression(shown), self.masks, column)

    def known(self, column: ir.Column) -> ir.BooleanValue | None:
        """Return the condition that each mask defines a result for its input; None if all masks do
        so for every value.
        """
        all_known = None
        for mask in self.masks:
            known = mask.known(column)
            if known is not None:
                all_known = known if all_known is None else all_known & known
            column = mask.expression(column)
        return all_known
