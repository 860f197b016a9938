"""Hold the result of a reconstruction, and its distance from the true counts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from html import escape
from types import MappingProxyType
from typing import Any

import numpy as np
import numpy.typing as npt

from aegis.arrays import Floats
from aegis.errors import DataError
from aegis.words import json_fields


@dataclass(frozen=True, eq=False, repr=False)
class Reconstruction:
    """An estimated table of counts, with details of its computation.

    Attributes
    ----------
    table
        Estimated counts, shape (V, C) for V unmasked values and C label classes (for `ipf`, the
        shape of the start table), float64, read-only, in rows; not negative.
    method
        Name of the method, as registered.
    converged
        Whether the stopping rule of the method was met. Closed forms and draws always converge.
    iterations
        Number of sweeps or iterations; 0 if none were needed.
    residual
        Largest absolute deviation of the table from the constraints to which it was fitted, in
        rows. For noise masks, it is the deviation from the counts of noisy values; sampling noise
        makes it larger than 0.
    total_variation
        Total variation distance from the truth, 0..1; None if no truth was given.
    details
        Figures that are specific to the method, such as the chosen smoothing parameter.
    notes
        Notes for the reader: on Theorem 1, unused evidence, or a fit that did not converge.
    """

    table: Floats
    method: str
    converged: bool = True
    iterations: int = 0
    residual: float = 0.0
    total_variation: float | None = None
    details: Mapping[str, float | tuple[float, ...]] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        table = np.array(self.table, dtype=np.float64)
        table.flags.writeable = False
        object.__setattr__(self, "table", table)
        object.__setattr__(self, "details", MappingProxyType(dict(self.details)))

    def against(self, truth: npt.ArrayLike) -> Reconstruction:
        """Return the result with its total variation distance from the true counts.

        Raise `DataError` if `truth` is empty or does not have the shape of `table`.
        """
        return replace(self, total_variation=total_variation(self.table, truth))

    def to_dict(self) -> dict[str, Any]:
        """Return the result as JSON values."""
        fields = ("method", "converged", "iterations", "residual", "total_variation")
        table = {"table": self.table.tolist()}
        return json_fields(self, *fields, "details", "notes") | table

    def __repr__(self) -> str:
        return f"Reconstruction({', '.join(f'{key}={value}' for key, value in self._facts())})"

    def _repr_html_(self) -> str:
        rows = "".join(
            f"<tr><th>{escape(key)}</th><td>{escape(value)}</td></tr>"
            for key, value in [*self._facts(), *(("note", note) for note in self.notes)]
        )
        return f"<table>{rows}</table>"

    def _facts(self) -> list[tuple[str, str]]:
        facts = [
            ("method", self.method),
            ("shape", " x ".join(map(str, self.table.shape))),
            ("rows", f"{self.table.sum():.10g}"),
            ("converged", str(self.converged)),
            ("iterations", str(self.iterations)),
            ("residual", f"{self.residual:.3g}"),
        ]
        if self.total_variation is not None:
            facts.append(("total variation", f"{self.total_variation:.6f}"))
        return facts


def total_variation(first: npt.ArrayLike, second: npt.ArrayLike) -> float:
    """Return the total variation distance 0.5 sum |P - Q| of two tables of counts.

    Parameters
    ----------
    first, second
        Counts or probabilities of the same shape, not negative. Each table is divided by its total,
        so tables with different numbers of rows are compared as distributions.

    Returns
    -------
    float
        From 0 (equal distributions) to 1 (disjoint supports). The distance is symmetric.

    Raises
    ------
    DataError
        The shapes differ, a value is negative or not finite, or a table is empty.
    """
    left, two = np.asarray(first, dtype=np.float64), np.asarray(second, dtype=np.float64)
    if left.shape != two.shape:
        raise DataError(
            f"Total variation needs two tables of one shape; given {left.shape} and {two.shape}."
        )
    for table in (left, two):
        if not np.isfinite(table).all() or (table < 0).any() or table.sum() <= 0:
            raise DataError(
                "Total variation needs finite counts of at least 0 with a positive total.",
                hint="Check that the table has rows and no missing cells.",
            )
    return float(0.5 * np.abs(left / left.sum() - two / two.sum()).sum())
