"""Define masks of text and of codes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import ibis

from aegis.masks import parameters
from aegis.masks.base import Kind, Mask, described

if TYPE_CHECKING:
    import ibis.expr.types as ir

SIDES = ("leading", "trailing")


@dataclass(frozen=True)
class Blur(Mask):
    """Hides characters of a text or code: 12345 with `keep: 3` becomes 123*.

    `keep` shows this many leading characters and hides the rest; `hide` hides this many trailing
    characters and shows the rest. `side` sets the end, leading or trailing, to which `keep` or
    `hide` applies. One symbol represents all hidden characters, regardless of their number; the
    mask shows the symbol even if nothing is hidden. So with `keep: 3` the codes E11, E11.9 and
    E11.65 form one group, E11*. A character is a Unicode code point. Whole numbers are read as
    their decimal digits; a minus sign is a character.
    """

    name: ClassVar[str] = "blur"
    summary: ClassVar[str] = "Hides leading or trailing characters of a text or code."
    fits: ClassVar[frozenset[Kind]] = frozenset({Kind.TEXT, Kind.INTEGER})
    example: ClassVar[str] = "{blur: {keep: 3}}"

    keep: int | None = described("characters to show, at least 0 (or give hide)", None)
    hide: int | None = described("characters to hide, at least 1 (or give keep)", None)
    side: str | None = described(
        '"leading" (default of keep) or "trailing" (default of hide)', None
    )
    symbol: str = described("the character that stands for all hidden characters", "*")

    def __post_init__(self) -> None:
        example = "{blur: {keep: 3}} or {blur: {hide: 2}}"
        parameters.either(self.name, example, keep=self.keep, hide=self.hide)
        if self.keep is not None:
            parameters.whole(self.name, "keep", self.keep)
        if self.hide is not None:
            parameters.whole(self.name, "hide", self.hide, at_least=1)
        if self.side is not None:
            parameters.one_of(self.name, "side", self.side, SIDES)
            if self.side == self._usual:
                # One spelling per mask, so that equal masks are equal.
                object.__setattr__(self, "side", None)
        parameters.text(self.name, "symbol", self.symbol)
        if len(self.symbol) != 1:
            raise parameters.wrong(self.name, "symbol", self.symbol, "one character")

    @property
    def _usual(self) -> str:
        return "trailing" if self.keep is None else "leading"

    @property
    def _shows_start(self) -> bool:
        leading = (self.side or self._usual) == "leading"
        return (self.keep is not None) == leading

    def shows(self, text: str) -> bool:
        """Return whether the mask can show a text: the symbol is at the hidden end, and no more
        characters than allowed are shown.
        """
        marked = text.endswith if self._shows_start else text.startswith
        return marked(self.symbol) and (
            self.keep is None or len(text) <= self.keep + len(self.symbol)
        )

    def expression(self, column: ir.Column) -> ir.Value:
        """Return the text with one symbol in place of its hidden characters."""
        text = column if column.type().is_string() else column.cast("string")
        shows_start = self._shows_start
        symbol = ibis.literal(self.symbol)
        if self.keep is not None:
            return text.left(self.keep) + symbol if shows_start else symbol + text.right(self.keep)
        length = text.length()
        rest = length - self.hide
        blurred = text.left(rest) + symbol if shows_start else symbol + text.right(rest)
        return ibis.ifelse(length <= self.hide, symbol, blurred)
