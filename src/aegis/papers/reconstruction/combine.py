"""Reconstruct joint counts from those of all candidate masks of an attribute (method
`all-evidence`), by iterative proportional fitting (IPF); for ordered attributes, also by a smooth
curve, if it predicts the known counts (method `smooth`). An atom is an unmasked value.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from aegis.arrays import Floats, Ints, group_sums
from aegis.errors import DataError, PolicyError
from aegis.files import SILENT, Progress
from aegis.papers.reconstruction.composite import SmoothFit, composite_link
from aegis.papers.reconstruction.evidence import (
    AGREEMENT,
    Evidence,
    MaskedJoint,
    Reconstruction,
    aggregate,
)
from aegis.papers.reconstruction.families import THEOREM_1, spread
from aegis.papers.reconstruction.ipf import histogram_family, ipf, joint_family


def all_evidence(
    evidence: Evidence,
    *,
    tolerance: float = 1e-8,
    max_sweeps: int = 10_000,
    progress: Progress = SILENT,
) -> Reconstruction:
    """Return the table of rows by unmasked value and class that agrees with the known counts of
    every mask, and is as uniform as possible.

    Iterative proportional fitting (IPF) starts from equal counts, and scales them in turn to the
    counts of each mask and of a known histogram. The problem is made smaller before:

    1. Masks whose groups are runs of consecutive values (widths, quantiles, erased digits, prefixes
       of sorted text) are merged into one mask, with a group between every two neighbouring cuts.
    2. If the groups of a mask are unions of the groups of another mask, it adds no information. The
       function checks that both masks agree, and drops the coarser one.
    3. Values that no mask distinguishes are fitted together. Their counts are divided in proportion
       to the histogram, or equally.

    If only one mask remains, the result has a closed form.

    Parameters
    ----------
    evidence
        Rows by masked value and class of deterministic masks. Noise masks are ignored, with a note.
    tolerance, max_sweeps, progress
        When IPF stops (as in `ipf`), and the receiver of progress.

    Returns
    -------
    Reconstruction
        Rows by V unmasked values and C classes. `residual` covers all known counts.

    Raises
    ------
    PolicyError
        There are no counts of a deterministic mask.
    DataError
        The counts of two masks contradict each other or the histogram; the message names the masks.
    """
    if not evidence.masked:
        raise PolicyError(
            "Method 'all-evidence' needs the joint of at least one deterministic mask; given none.",
            hint="Use 'channel-em' for noise masks.",
        )
    slack = AGREEMENT * evidence.rows
    masks = drop_implied(merge_intervals(evidence.masked, slack), slack)
    block = common_refinement([mask.codes for mask in masks])
    fit = _fit_blocks(masks, block, evidence.histogram, tolerance, max_sweeps, progress)
    refined = MaskedJoint("common refinement", block, fit.table)
    table = _spread_blocks(refined, evidence.histogram)
    return replace(
        fit,
        table=table,
        method="all-evidence",
        residual=evidence.residual(table),
        details={"families": float(len(masks)), "blocks": float(refined.groups)},
        notes=(*fit.notes, *_notes(evidence)),
    )


def merge_intervals(masks: Sequence[MaskedJoint], slack: float) -> list[MaskedJoint]:
    """Merge all masks whose groups are runs of consecutive atoms (unmasked values) into one mask,
    whose groups lie between neighbouring cuts of any of these masks. Other masks stay as they are.

    The merged counts are exact, because each mask gives the cumulative counts at its cuts, by
    class. Raise `DataError` if two masks disagree at a cut, or if the count between two cuts is
    below -`slack` rows; the message names two masks.
    """
    runs = [mask for mask in masks if _is_runs(mask.codes)]
    if len(runs) < 2:
        return list(masks)
    ends, cumulative, source = [], [], []
    for number, mask in enumerate(runs):
        starts = np.flatnonzero(np.diff(mask.codes, prepend=-1))
        ends.append(np.append(starts[1:], len(mask.codes)))
        cumulative.append(np.cumsum(mask.joint[mask.codes[starts]], axis=0))
        source.append(np.full(len(starts), number))
    every_end, origin = np.concatenate(ends), np.concatenate(source)
    every_count = np.concatenate(cumulative)
    cuts, first, cut_index = np.unique(every_end, return_index=True, return_inverse=True)
    gap = np.abs(every_count - every_count[first][cut_index]).max(axis=1)
    if gap.max() > slack:
        worst = int(gap.argmax())
        raise _contradiction(runs[origin[first][cut_index[worst]]], runs[origin[worst]], gap[worst])
    joint = np.diff(every_count[first], axis=0, prepend=0.0)
    if joint.min() < -slack:
        worst = int(joint.min(axis=1).argmin())
        raise _contradiction(
            runs[origin[first][worst - 1]], runs[origin[first][worst]], -joint.min()
        )
    merged = MaskedJoint(
        " & ".join(mask.name for mask in runs),
        np.searchsorted(cuts, np.arange(len(masks[0].codes)), side="right"),
        np.maximum(joint, 0.0),
    )
    return [merged, *(mask for mask in masks if not _is_runs(mask.codes))]


def drop_implied(masks: Sequence[MaskedJoint], slack: float) -> list[MaskedJoint]:
    """Drop masks whose groups are unions of another's; refuse counts that differ beyond `slack`
    rows.
    """
    remaining: list[MaskedJoint] = []
    for mask in sorted(masks, key=lambda mask: -len(np.unique(mask.codes))):
        for finer in remaining:
            onto = np.zeros(finer.groups, dtype=np.int64)
            onto[finer.codes] = mask.codes
            if (onto[finer.codes] != mask.codes).any():  # it splits a group of the finer mask
                continue
            gap = np.abs(aggregate(onto, finer.joint, mask.groups) - mask.joint).max()
            if gap > slack:
                raise _contradiction(finer, mask, gap)
            break
        else:
            remaining.append(mask)
    return remaining


def common_refinement(groupings: Sequence[Ints]) -> Ints:
    """Divide atoms into blocks: two atoms are in one block if all groupings put them together.
    Return the block of each atom, from 0 on.
    """
    block: Ints = np.zeros(len(groupings[0]), dtype=np.int64)
    for codes in groupings:
        block = np.unique(block * (int(codes.max()) + 1) + codes, return_inverse=True)[1]
    return block


def _is_runs(codes: Ints) -> bool:
    """Return whether every group consists of consecutive atoms."""
    starts = codes[np.flatnonzero(np.diff(codes, prepend=-1))]
    return len(starts) == len(np.unique(starts))


def _fit_blocks(
    masks: Sequence[MaskedJoint],
    block: Ints,
    histogram: Floats | None,
    tolerance: float,
    max_sweeps: int,
    progress: Progress,
) -> Reconstruction:
    """Estimate the rows by block (values that no mask distinguishes) and class; IPF for several
    masks.
    """
    leader = np.unique(block, return_index=True)[1]
    blocks = len(leader)
    if len(masks) == 1:
        return Reconstruction(masks[0].joint[masks[0].codes[leader]], "all-evidence")
    labels = masks[0].joint.shape[1]
    seed = np.repeat(np.bincount(block, minlength=blocks), labels).reshape(blocks, labels)
    families = [joint_family(mask.name, mask.codes[leader], mask.joint) for mask in masks]
    if histogram is not None:
        families.append(histogram_family(group_sums(block, histogram, blocks), labels))
    return ipf(seed, families, tolerance=tolerance, max_sweeps=max_sweeps, progress=progress)


def _spread_blocks(refined: MaskedJoint, histogram: Floats | None) -> Floats:
    if histogram is None:
        return spread(refined, None)
    sizes = group_sums(refined.codes, histogram, refined.groups)
    slack = AGREEMENT * float(histogram.sum())
    if np.allclose(refined.joint.sum(axis=1), sizes, rtol=0, atol=slack):
        return spread(refined, histogram)
    # IPF stopped short of the histogram: keep its joint, share by the histogram inside blocks.
    counts = np.bincount(refined.codes, minlength=refined.groups)
    bare = sizes[refined.codes] == 0
    shares = np.divide(
        np.where(bare, 1.0, histogram),
        np.where(bare, counts[refined.codes], sizes[refined.codes]),
    )
    return shares[:, None] * refined.joint[refined.codes]


def _notes(evidence: Evidence) -> tuple[str, ...]:
    notes = []
    if len(evidence.masked) == 1:
        notes.append(THEOREM_1)
    if evidence.noisy:
        names = ", ".join(noise.name for noise in evidence.noisy)
        notes.append(f"Not used: the reports of noise masks ({names}); 'channel-em' uses them.")
    return tuple(notes)


def _contradiction(first: MaskedJoint, second: MaskedJoint, gap: float) -> DataError:
    return DataError(
        f"Inconsistent evidence: the joints of masks {first.name!r} and {second.name!r} "
        f"contradict each other by {gap:g} rows.",
        hint="All joints must come from the same rows, unrounded and without added noise.",
    )


WEIGHTS = (0.0, 0.5, 1.0)
"""The weights of the smooth curve to try; the other part of the weight is flat in every group."""

FEWEST_GROUPS = 3
"""Fewest groups for a test of predictions."""

LEAST_EXTENT = 0.1
"""Smallest share of the atoms in the smaller of two groups for which the curve is used."""

PREDICTED_PENALTIES = 2
"""Step width on the grid of penalties in predictions, for which a coarse choice is enough."""

PREDICTED_SWEEPS = 10
"""Sweeps of IPF in a prediction; the prediction need not be exact."""


def smooth(
    evidence: Evidence,
    *,
    tolerance: float = 1e-8,
    max_sweeps: int = 10_000,
    progress: Progress = SILENT,
) -> Reconstruction:
    """Return a table of counts by value and class that is smooth along an ordered attribute and
    agrees with all known counts.

    There are four steps:

    1. Compute the rows by class and group of values that no mask distinguishes (`all_evidence`).
    2. For each label class, fit a penalised composite link model (`composite_link`): a smooth curve
       of counts, or of the share of the class if the histogram is known.
    3. Combine the curve with equal counts in each group, with the weight that predicts best.
       Missing values, which have no place in the order, keep their count from step 1.
    4. Run iterative proportional fitting (IPF) from the result, to meet all known counts exactly.

    Parameters
    ----------
    evidence
        Rows by masked value and class of at least one mask, for an attribute with an order.
    tolerance, max_sweeps, progress
        When IPF stops, and the receiver of progress.

    Returns
    -------
    Reconstruction
        Rows by V unmasked values and C classes. `details` holds the curve's weight, and the penalty
        and the effective dimension for each class (0 without rows or curve).

    Raises
    ------
    PolicyError
        The attribute has no order, or there are no counts of a mask.
    DataError
        Known counts contradict each other, or fewer than 3 values have a place in the order.
    """
    _require_order(evidence)
    base = all_evidence(evidence, tolerance=tolerance, max_sweeps=max_sweeps, progress=progress)
    block = common_refinement([mask.codes for mask in evidence.masked])
    grouped = aggregate(block, base.table, int(block.max()) + 1)
    joint = MaskedJoint("common refinement", block, grouped)
    known_counts = _KnownCounts.of(evidence, joint.codes, base.table)
    weight = known_counts.weight()
    fits = known_counts.fits() if weight else []
    seed = known_counts.put(fits, weight, base.table)
    table, rake = _meet(seed, joint, evidence, tolerance, max_sweeps, progress)
    fitted = [fit for fit in fits if fit is not None]
    return replace(
        rake,
        table=table,
        method="smooth",
        converged=base.converged and rake.converged and all(fit.converged for fit in fitted),
        iterations=sum(fit.iterations for fit in fitted) + rake.iterations,
        residual=evidence.residual(table),
        details=_details(evidence, fits, weight),
        notes=(*_smoothing_notes(evidence, base, weight, fitted), *rake.notes),
    )


def _require_order(evidence: Evidence) -> None:
    if evidence.ordered is None:
        raise PolicyError(
            "Method 'smooth' needs an ordered attribute: a number or a date.",
            hint="Use 'all-evidence' for an attribute without order.",
        )
    if evidence.ordered.sum() < 3:
        raise DataError(
            f"Smoothing needs at least 3 atoms in order; given {evidence.ordered.sum()}.",
            hint="Use 'all-evidence'.",
        )


def _details(evidence: Evidence, fits: Sequence[SmoothFit | None], weight: float) -> dict[str, Any]:
    """Return penalty and effective dimension by class (0 without a curve), and the curves' weight."""
    per_label = [*fits, *[None] * (evidence.labels - len(fits))]
    return {
        "penalty": tuple(0.0 if fit is None else fit.penalty for fit in per_label),
        "effective_dimension": tuple(0.0 if fit is None else fit.dimension for fit in per_label),
        "curve": weight,
    }


def _smoothing_notes(
    evidence: Evidence, base: Reconstruction, weight: float, fits: Sequence[SmoothFit]
) -> Iterator[str]:
    # With a curve the table does carry signal, and Theorem 1 does not hold for it.
    if len(evidence.masked) > 1 or not weight:
        yield from base.notes
    if not weight:
        yield (
            "No smooth curve is used: the groups are too few, or predict each other no better by "
            "one than spread evenly."
        )
    if not all(fit.converged for fit in fits):
        yield "The composite link model of at least one label did not converge."


@dataclass(frozen=True, eq=False)
class _KnownCounts:
    """The known counts of an attribute with an order: the rows by G groups of values and C label
    classes, and the rows of each value. V' values have a place in the order.

    Attributes
    ----------
    atoms
        Indices of these values among all values, shape (V',).
    codes
        Group of each of these values, shape (V',); groups are numbered in order.
    grouped
        Rows per group and label class, shape (G, C).
    offset
        Rows of each of these values, shape (V',); None if the histogram is not known.
    """

    atoms: Ints
    codes: Ints
    grouped: Floats
    offset: Floats | None

    @classmethod
    def of(cls, evidence: Evidence, groups: Ints, table: Floats) -> _KnownCounts:
        atoms = np.flatnonzero(evidence.ordered if evidence.ordered is not None else [])
        _, codes = np.unique(groups[atoms], return_inverse=True)
        size = int(codes.max(initial=-1)) + 1
        centre = np.bincount(codes, np.arange(len(atoms)), size) / np.bincount(codes, None, size)
        rank = np.argsort(np.argsort(centre, kind="stable"), kind="stable")
        codes = rank[codes]
        grouped = aggregate(codes, table[atoms], size)
        offset = None if evidence.histogram is None else evidence.histogram[atoms]
        return cls(atoms, codes, grouped, offset)

    def fits(self, step: int = 1) -> list[SmoothFit | None]:
        """Return the curve of each class, None without rows; `step` 2 tries every second penalty."""
        return [
            composite_link(column, self.codes, offset=self.offset, step=step)
            if column.sum() > 0
            else None
            for column in self.grouped.T
        ]

    def curves(self, fits: Sequence[SmoothFit | None]) -> Floats:
        """Return smooth counts of ordered values by class, shape (V', C)."""
        nothing = np.zeros(len(self.codes))
        return np.stack([nothing if fit is None else fit.intensity for fit in fits], axis=1)

    def put(self, fits: Sequence[SmoothFit | None], weight: float, table: Floats) -> Floats:
        """Return a copy of `table` in which the result of `blend` replaces the counts of ordered
        values. Without curves, return `table`.
        """
        if not fits:
            return table
        seed = table.copy()
        seed[self.atoms] = self.blend(self.curves(fits), weight)
        return seed

    def blend(self, curves: Floats, weight: float) -> Floats:
        """Return the geometric mean of curves, of this weight, and counts equal in each group."""
        if weight == 1:
            return curves
        flat = np.ones(len(self.codes)) if self.offset is None else self.offset
        return curves**weight * (flat ** (1 - weight))[:, None]

    def weight(self) -> float:
        """Return the weight, from 0 to 1, that the smooth curve gets in the average with a table
        that is flat in every group of values.

        A curve through few coarse groups is mostly extrapolation, and no smooth curve fits values
        that pile up at round numbers. So the method joins neighbouring groups to pairs, fits the
        curve to the pairs, and compares the predicted split of each pair with the known split. It
        returns the weight that predicts best; among equals, the smallest. With too few groups for
        this test, it uses a fixed rule.
        """
        if len(self.grouped) < FEWEST_GROUPS:
            return self._untested_weight()
        missed = np.zeros(len(WEIGHTS))
        for shift in (0, 1):
            pairs = (np.arange(len(self.grouped)) + shift) // 2
            paired = _KnownCounts(
                self.atoms,
                pairs[self.codes],
                aggregate(pairs, self.grouped, int(pairs[-1]) + 1),
                self.offset,
            )
            curves = paired.curves(paired.fits(step=PREDICTED_PENALTIES))
            for number, weight in enumerate(WEIGHTS):
                table = paired.met(paired.blend(curves, weight))
                predicted = aggregate(self.codes, table, len(self.grouped))
                missed[number] += np.abs(predicted - self.grouped).sum()
        # Less than this is rounding; among equals the first, which is the flattest, is taken.
        return WEIGHTS[int((missed <= missed.min() * (1 + 1e-9)).argmax())]

    def _untested_weight(self) -> float:
        """Return the curve's weight without a test of predictions: 1 if there are two groups, the
        histogram is known, and no group is very small; else 0, because it would extrapolate.
        """
        if self.offset is None or len(self.grouped) < 2:
            return 0.0
        return float(np.bincount(self.codes).min() >= LEAST_EXTENT * len(self.codes))

    def met(self, seed: Floats) -> Floats:
        """Scale a table exactly to rows by group and class, roughly to those of each value."""
        table = seed
        for _ in range(1 if self.offset is None else PREDICTED_SWEEPS):
            if self.offset is not None:
                table = table * _quotient(self.offset, table.sum(axis=1))[:, None]
            sums = aggregate(self.codes, table, len(self.grouped))
            table = table * _quotient(self.grouped, sums)[self.codes]
        return table


def _quotient(target: Floats, reached: Floats) -> Floats:
    return np.divide(target, reached, out=np.zeros_like(reached), where=reached > 0)


def _meet(
    seed: Floats,
    joint: MaskedJoint,
    evidence: Evidence,
    tolerance: float,
    max_sweeps: int,
    progress: Progress,
) -> tuple[Floats, Reconstruction]:
    """Scale the smooth `seed` by IPF to all known counts; return the table, and how it was fitted."""
    # An intensity may underflow where the joint still has rows: a trace keeps the cell open.
    trace = 1e-12 * evidence.rows / seed.size
    positive = np.maximum(seed, trace)
    if evidence.histogram is None:
        sums = aggregate(joint.codes, positive, joint.groups)
        shares = np.divide(joint.joint, sums, out=np.zeros_like(sums), where=sums > 0)
        table: Floats = positive * shares[joint.codes]
        return table, Reconstruction(table, "smooth")
    positive[evidence.histogram == 0] = 0.0
    closed = spread(joint, evidence.histogram)
    positive[closed == 0] = 0.0
    fit = ipf(
        positive,
        [
            joint_family(joint.name, joint.codes, joint.joint),
            histogram_family(evidence.histogram, evidence.labels),
        ],
        tolerance=tolerance,
        max_sweeps=max_sweeps,
        progress=progress,
    )
    return fit.table, fit
