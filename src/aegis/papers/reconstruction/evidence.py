"""Hold the evidence on an attribute: joint counts of masked and noisy values, and its histogram.

An atom is a value that the reconstruction distinguishes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from aegis.arrays import Flags, Floats, Ints
from aegis.errors import DataError, PolicyError
from aegis.measures.checks import check_channel, counts, group_codes, group_sums

AGREEMENT = 1e-8
"""Largest difference between two sources of evidence that counts as rounding, as a share of N."""


def aggregate(codes: Ints, table: Floats, groups: int) -> Floats:
    """Add up the rows of `table`, V values by C classes, shape (V, C), over the values of each
    group. `codes` has the group of each value; the result has shape (groups, C).
    """
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
        For each of the V atoms (unmasked values), the number of its group among G groups, shape
        (V,), from 0 to G - 1.
    joint
        Number of rows in each of the G groups and C label classes, shape (G, C). A group without
        atoms has 0 rows.
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
        """The number of groups G."""
        return len(self.joint)


@dataclass(frozen=True, eq=False)
class NoisyJoint:
    """The number of rows by label class and report (noisy value), for one noise mask of an
    attribute.

    Attributes
    ----------
    name
        Name of the mask, for messages.
    channel
        Probability that the unmasked value (atom) i gives report j, for V atoms and R reports,
        shape (V, R). Each line sums to 1.
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
    """The known counts of masked values and the label, for one attribute. The joint counts of its
    unmasked values (atoms) and the label are not known.

    Attributes
    ----------
    atoms, labels
        Number of atoms V and of label classes C.
    masked
        The joint counts of each deterministic mask.
    histogram
        Rows per atom, shape (V,); None if it is not known (case AEGIS-1D of the paper).
    noisy
        The joint counts of each noise mask.
    ordered
        For each atom, whether its index gives its place in the order, shape (V,). In a numeric
        attribute, all atoms except null have such a place. None if the attribute has no order.
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
        """The number of rows N, which is the same in all evidence."""
        if self.masked:
            return float(self.masked[0].joint.sum())
        if self.noisy:
            return float(self.noisy[0].joint.sum())
        return 0.0 if self.histogram is None else float(self.histogram.sum())

    def only(self, name: str) -> Evidence:
        """Return the evidence of only the deterministic mask called `name`, and the histogram if it
        is known.
        """
        for mask in self.masked:
            if mask.name == name:
                return replace(self, masked=(mask,), noisy=())
        raise PolicyError.unknown("masked joint", name, [mask.name for mask in self.masked])

    def residual(self, table: Floats) -> float:
        """Return by how many rows a table of V unmasked values (atoms) and C classes, shape (V, C),
        deviates at most from the exact evidence, that is from the deterministic masks' counts and
        the histogram.
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
    """Count in the histogram how many rows each group of a mask has, shape (groups,).

    Raise `DataError` if these numbers differ from the rows of the groups in the mask's joint
    counts, because the joint counts could then not be divided among the unmasked values.
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
