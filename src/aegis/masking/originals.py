"""Add true values to the rows of a release, to measure how well they predict hidden columns."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import ibis.expr.types as ir

from aegis.masks import Kind, Mask, NoiseMask
from aegis.privacy.inference import Implication, find_implications
from aegis.sources import Source
from aegis.summary.coded_rows import fetch_codes, fits
from aegis.summary.outside import comparable

_PREFIX = "aegis original"


@dataclass(frozen=True)
class WithOriginals:
    """A table with an extra unmasked copy of each column that a mask hides.

    Attributes
    ----------
    source
        The table.
    columns
        For each column that is hidden by a mask, the name of its copy; the copies are not released.
    known
        Whether Aegis could add the copies. It can if the rows are in this process, are few enough,
        and have no noise.
    """

    source: Source
    columns: Mapping[str, str] = field(default_factory=dict)
    known: bool = False

    @classmethod
    def of(cls, source: Source, masks: Mapping[str, Mask | None]) -> WithOriginals:
        """Add an unmasked copy of each column that `masks` hide. If this is not possible, return
        the table unchanged.
        """
        schema = source.table.schema()
        hidden = {
            name: f"{_PREFIX} {place} {name}"
            for place, (name, mask) in enumerate(masks.items())
            if mask is not None and str(mask) != "identity" and Kind.of(schema[name]) is not None
        }
        drawn = any(isinstance(mask, NoiseMask) for mask in masks.values())
        if drawn or not fits(source, source.rows, len(masks) + len(hidden)):
            return cls(source)
        wide = source.with_copies({new: old for old, new in hidden.items()})
        return cls(wide, hidden, known=True)

    @property
    def masks(self) -> dict[str, Mask | None]:
        """The masks of the added columns: None for each, because these columns stay unmasked."""
        return dict.fromkeys(self.columns.values())

    def implied(self, released: ir.Table) -> tuple[Implication, ...] | None:
        """Return which released columns predict the true values of hidden columns; None if this
        cannot be measured.

        `released` has the masked rows of the release, with the copies of hidden columns.
        """
        if not self.known:
            return None
        added = set(self.columns.values())
        shown = [name for name in comparable(released) if name not in added]
        codes = fetch_codes(self.source, released.select(*shown, *added))
        hidden = {
            name: (codes[original], codes[name])
            for name, original in self.columns.items()
            if name in shown
        }
        return find_implications(hidden, {name: codes[name] for name in shown})
