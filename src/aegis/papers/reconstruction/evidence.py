"""Hold the evidence on an attribute (joint counts of masked and noisy values, and its histogram)
and the result of a reconstruction, with its distance from the true counts. Round estimated counts
to integers, as the papers do.

An atom is a value that the reconstruction distinguishes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from html import escape
from types import MappingProxyType
from typing import Any

import numpy as np
import numpy.typing as npt

from aegis.arrays import Flags, Floats, Ints, group_sums
from aegis.errors import DataError, PolicyError
from aegis.measures.checks import check_channel, counts, group_codes
from aegis.words import json_fields

AGREEMENT = 1e-8
"""Largest difference between two sources of evidence that counts as rounding, as a share of N."""


def aggregate(codes: Ints, table: Floats, groups: int) -> Floats:
    """Add up the rows of `table`, shape (V, C), over each group, shape (groups, C)."""
    labels = table.shape[1]
    cells = (codes[:, None] * labels + np.arange(labels)).ravel()
    return group_sums(cells, table.ravel(), groups * labels).reshape(groups, labels)


@dataclass(frozen=True, eq=False)
class MaskedJoint:
    """The number of rows by label class and masked value, for one deterministic mask of an
    attribute.

    Attributes
    ----------
    name
        Name of the mask, for messages.
    codes
        For each of the V unmasked values, the index of its masked value, shape (V,), from 0 to G -
        1.
    joint
        Number of rows by the G masked values and C label classes, shape (G, C).
    """

    name: str
    codes: Ints
    joint: Floats

    def __post_init__(self) -> None:
        joint = counts(self.joint, f"The joint of mask {self.name!r}")
        if joint.ndim != 2:
            raise DataError(
                f"The joint of mask {self.name!r} must be (groups, labels), given {joint.shape}."
            )
        codes = group_codes(self.codes, len(joint), f"Mask {self.name!r}")
        object.__setattr__(self, "joint", joint)
        object.__setattr__(self, "codes", codes)
        empty = np.bincount(codes, minlength=len(joint)) == 0
        if joint[empty].any():
            group = int(np.flatnonzero(empty & joint.any(axis=1))[0])
            raise DataError(
                f"Mask {self.name!r} reports {joint[group].sum():g} rows in group {group}, "
                "to which no atom belongs.",
                hint="Take joint and grouping from the same summary.",
            )

    @property
    def groups(self) -> int:
        """The number G of masked values."""
        return len(self.joint)


@dataclass(frozen=True, eq=False)
class NoisyJoint:
    """The number of rows by label class and noisy value (report), for one noise mask of an
    attribute.

    Attributes
    ----------
    name
        Name of the mask, for messages.
    channel
        Probability that the mask turns unmasked value i into report j, for V values and R reports,
        shape (V, R). Each row sums to 1.
    joint
        Number of rows for each of the R reports and C label classes, shape (R, C).
    """

    name: str
    channel: Floats
    joint: Floats

    def __post_init__(self) -> None:
        channel = check_channel(self.channel, f"of noise mask {self.name!r}")
        joint = counts(self.joint, f"The joint of noise mask {self.name!r}")
        if joint.ndim != 2 or len(joint) != channel.shape[1]:
            raise DataError(
                f"Noise mask {self.name!r} has {channel.shape[1]} possible reports, but its joint "
                f"has shape {joint.shape}.",
                hint="The joint must be (reports, labels).",
            )
        object.__setattr__(self, "channel", channel)
        object.__setattr__(self, "joint", joint)


@dataclass(frozen=True, eq=False)
class Evidence:
    """The known counts of an attribute, from which the rows by unmasked value (atom) and label
    class are to be estimated.

    Attributes
    ----------
    atoms, labels
        Number of atoms V and of label classes C.
    masked
        The rows by masked value and label class, for each deterministic mask.
    histogram
        Rows per atom, shape (V,); None if it is not known (case AEGIS-1D of the paper).
    noisy
        The rows by noisy value and label class, for each noise mask.
    ordered
        For each atom, whether it has a place in the order, shape (V,): in a numeric attribute, all
        atoms except null. None if the attribute has no order.
    """

    atoms: int
    labels: int
    masked: Sequence[MaskedJoint] = ()
    histogram: Floats | None = None
    noisy: Sequence[NoisyJoint] = ()
    ordered: Flags | None = None

    def __post_init__(self) -> None:
        if self.atoms < 1 or self.labels < 1:
            raise DataError(
                f"There is nothing to fit: {self.atoms} atoms and {self.labels} labels."
            )
        object.__setattr__(self, "masked", tuple(self.masked))
        object.__setattr__(self, "noisy", tuple(self.noisy))
        for mask in self.masked:
            self._check_shape(mask.name, len(mask.codes), mask.joint)
        for noise in self.noisy:
            self._check_shape(noise.name, len(noise.channel), noise.joint)
        if self.histogram is not None:
            histogram = counts(self.histogram, "The histogram")
            if histogram.shape != (self.atoms,):
                raise DataError(
                    f"The histogram has shape {histogram.shape} for {self.atoms} atoms."
                )
            object.__setattr__(self, "histogram", histogram)
        if self.ordered is not None:
            ordered = np.asarray(self.ordered, dtype=np.bool_)
            if ordered.shape != (self.atoms,):
                raise DataError(f"`ordered` has shape {ordered.shape} for {self.atoms} atoms.")
            object.__setattr__(self, "ordered", ordered)
        self._check_totals()

    @property
    def rows(self) -> float:
        """The number of rows N, which is the same under each mask."""
        if self.masked:
            return float(self.masked[0].joint.sum())
        if self.noisy:
            return float(self.noisy[0].joint.sum())
        return 0.0 if self.histogram is None else float(self.histogram.sum())

    def only(self, name: str) -> Evidence:
        """Return the known counts without those of other masks: the counts of the deterministic
        mask called `name`, and the histogram if it is known.
        """
        for mask in self.masked:
            if mask.name == name:
                return replace(self, masked=(mask,), noisy=())
        raise PolicyError.unknown("masked joint", name, [mask.name for mask in self.masked])

    def residual(self, table: Floats) -> float:
        """Return the largest difference, in rows, between a table of V unmasked values and C
        classes, shape (V, C), and the exactly known counts: those of deterministic masks and the
        histogram.
        """
        worst = [
            np.abs(aggregate(mask.codes, table, mask.groups) - mask.joint).max()
            for mask in self.masked
        ]
        if self.histogram is not None:
            worst.append(np.abs(table.sum(axis=1) - self.histogram).max())
        return float(max(worst, default=0.0))

    def _check_shape(self, name: str, atoms: int, joint: Floats) -> None:
        if atoms != self.atoms or joint.shape[1] != self.labels:
            raise DataError(
                f"Mask {name!r} covers {atoms} atoms and {joint.shape[1]} labels; "
                f"the evidence is on {self.atoms} atoms and {self.labels} labels."
            )

    def _check_totals(self) -> None:
        totals = [(mask.name, mask.joint.sum(axis=0)) for mask in self.masked]
        totals += [(noise.name, noise.joint.sum(axis=0)) for noise in self.noisy]
        slack = AGREEMENT * max(self.rows, 1e-300)
        for name, total in totals[1:]:
            if np.abs(total - totals[0][1]).max() > slack:
                label = int(np.abs(total - totals[0][1]).argmax())
                raise DataError(
                    f"Inconsistent evidence: mask {totals[0][0]!r} has {totals[0][1][label]:g} "
                    f"rows of label {label}, mask {name!r} has {total[label]:g}.",
                    hint="All joints must come from the same rows.",
                )
        if self.histogram is not None and totals:
            total = float(self.histogram.sum())
            if abs(total - self.rows) > slack:
                raise DataError(
                    f"Inconsistent evidence: mask {totals[0][0]!r} has {self.rows:g} rows, "
                    f"the histogram {total:g}.",
                    hint="Histogram and joints must come from the same rows.",
                )
            for mask in self.masked:
                check_sizes(mask, self.histogram)


def check_sizes(mask: MaskedJoint, histogram: Floats) -> Floats:
    """Return how many rows the histogram has in each group of values that a mask forms, shape
    (groups,).

    Raise `DataError` if these numbers differ from the numbers of rows that the mask's counts have
    in the groups.
    """
    sizes = group_sums(mask.codes, histogram, mask.groups)
    gap = np.abs(sizes - mask.joint.sum(axis=1))
    if gap.max() > AGREEMENT * histogram.sum():
        group = int(gap.argmax())
        raise DataError(
            f"Inconsistent evidence: mask {mask.name!r} has {mask.joint[group].sum():g} rows "
            f"in group {group}, the histogram {sizes[group]:g} rows in its atoms.",
            hint="Histogram and joint must come from the same rows.",
        )
    return sizes


@dataclass(frozen=True, eq=False, repr=False)
class Reconstruction:
    """An estimated table of counts, with details of its computation.

    Attributes
    ----------
    table
        Estimated numbers of rows, shape (V, C) for V unmasked values and C label classes (for
        `ipf`, the shape of the start table), float64, read-only; not negative.
    method
        Name of the method, as registered.
    converged
        Whether the stopping rule of the method was met. Closed forms and draws always converge.
    iterations
        Number of sweeps or iterations; 0 if none were needed.
    residual
        Largest absolute deviation of the table from the counts to which it was fitted, in rows. For
        noise masks, these are the counts of noisy values, which no table meets exactly.
    total_variation
        Total variation distance from the truth, 0..1; None if no truth was given.
    details
        Figures that are specific to the method, such as the chosen smoothing parameter.
    notes
        Sentences for the reader, such as that some counts were not used, or that a fit did not
        converge.
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
    """Return the total variation distance 0.5 sum |P - Q| of two tables of counts, as distributions
    P and Q.

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
    x, y = np.asarray(first, dtype=np.float64), np.asarray(second, dtype=np.float64)
    if x.shape != y.shape:
        raise DataError(
            f"Total variation needs two tables of one shape; given {x.shape} and {y.shape}."
        )
    for table in (x, y):
        if not np.isfinite(table).all() or (table < 0).any() or table.sum() <= 0:
            raise DataError(
                "Total variation needs finite counts of at least 0 with a positive total.",
                hint="Check that the table has rows and no missing cells.",
            )
    return float(0.5 * np.abs(x / x.sum() - y / y.sum()).sum())


def randomised_rounding(table: npt.ArrayLike, *, seed: int) -> Ints:
    """Round every cell independently: up with the probability of its fraction, otherwise down.

    Each cell is right on average, but totals change. `table` may have any shape. Raise `DataError`
    if a count is negative or missing.

    References
    ----------
    AEGIS (Laskar et al., SIGMOD 2025), reconstruction step.
    """
    values = counts(table, "The table to round")
    floor = np.floor(values)
    up = np.random.default_rng(seed).random(values.shape) < values - floor
    return floor.astype(np.int64) + up
