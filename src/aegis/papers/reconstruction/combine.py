"""Reconstruct from the joint counts of all candidate masks of an attribute (method `all-evidence`)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from aegis.arrays import Floats, Ints
from aegis.errors import DataError, PolicyError
from aegis.measures.checks import group_sums
from aegis.papers.reconstruction.closed import THEOREM_1, spread
from aegis.papers.reconstruction.evidence import AGREEMENT, Evidence, MaskedJoint, aggregate
from aegis.papers.reconstruction.families import Family
from aegis.papers.reconstruction.ipf import histogram_family, ipf, joint_family
from aegis.papers.reconstruction.result import Reconstruction
from aegis.progress import SILENT, Progress


def all_evidence(
    evidence: Evidence,
    *,
    tolerance: float = 1e-8,
    max_sweeps: int = 10_000,
    progress: Progress = SILENT,
) -> Reconstruction:
    """Return the table closest to uniform that agrees with the joint counts of every mask.

    Iterative proportional fitting (IPF) starts from equal counts, and scales them in turn to the
    counts of each mask and of a known histogram. Before, the problem is made smaller:

    1. Masks whose groups are runs of consecutive values (widths, quantiles, erased digits, prefixes
    of sorted text) are merged. Their cumulative counts at all cuts are known, so the joint counts
    of their common refinement are exact differences.
    2. A mask that another mask refines adds no information. The function checks that both masks
    agree, and then drops the coarser one.
    3. The remaining masks are fitted on the blocks of their common refinement. The counts of a block
    are divided among its atoms (unmasked values) as in Theorem 1 in theory.md.

    If only one mask remains, the result has a closed form.

    Parameters
    ----------
    evidence
        Joint counts of at least one deterministic mask. A note says that noise masks are ignored.
    tolerance, max_sweeps, progress
        When IPF stops, and the receiver of progress.

    Returns
    -------
    Reconstruction
        Table of shape (V, C), in rows. `residual` covers all known counts.

    Raises
    ------
    PolicyError
        There are no counts of a deterministic mask.
    DataError
        The joints contradict each other or the histogram; the message names the masks.
    """
    if not evidence.masked:
        raise PolicyError(
            "Method 'all-evidence' needs the joint of at least one deterministic mask; given none.",
            hint="Use 'channel-em' for noise masks.",
        )
    slack = AGREEMENT * evidence.rows
    masks = drop_implied(merge_intervals(evidence.masked, slack), slack)
    block, blocks = common_refinement([mask.codes for mask in masks])
    fit = _fit_blocks(masks, block, blocks, evidence.histogram, tolerance, max_sweeps, progress)
    refined = MaskedJoint("common refinement", block, fit.table)
    table = _spread_blocks(refined, evidence.histogram)
    return replace(
        fit,
        table=table,
        method="all-evidence",
        residual=evidence.residual(table),
        details={"families": float(len(masks)), "blocks": float(blocks)},
        notes=(*fit.notes, *_notes(evidence)),
    )


def merge_intervals(masks: Sequence[MaskedJoint], slack: float) -> list[MaskedJoint]:
    """Merge all masks whose groups are runs of consecutive atoms (unmasked values) into one mask,
    their common refinement.

    The merged counts are exact. Each such mask gives the cumulative counts at its cuts, by class.
    The common refinement has the cuts of all masks. Raise `DataError` if two masks disagree at a
    cut, or if the count between two cuts is below -`slack` rows; the message names two masks.
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
    cuts, first, place = np.unique(every_end, return_index=True, return_inverse=True)
    gap = np.abs(every_count - every_count[first][place]).max(axis=1)
    if gap.max() > slack:
        worst = int(gap.argmax())
        raise _contradiction(runs[origin[first][place[worst]]], runs[origin[worst]], gap[worst])
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
    """Drop every mask that another mask refines.

    Raise `DataError` if the counts of the finer mask do not add up to the counts of the coarser
    mask within `slack` rows; the message names both masks.
    """
    joints: list[MaskedJoint] = []
    for mask in sorted(masks, key=lambda mask: -len(np.unique(mask.codes))):
        implied = False
        for finer in joints:
            onto = _coarsening(finer.codes, mask.codes, finer.groups)
            if onto is None:
                continue
            gap = np.abs(aggregate(onto, finer.joint, mask.groups) - mask.joint).max()
            if gap > slack:
                raise _contradiction(finer, mask, gap)
            implied = True
            break
        if not implied:
            joints.append(mask)
    return joints


def common_refinement(groupings: Sequence[Ints]) -> tuple[Ints, int]:
    """Return the blocks of the common refinement of several groupings of the same atoms (sets of
    values): the index of each atom's block, and the number of blocks. Atoms are in one block if all
    groupings put them together.
    """
    block: Ints = np.zeros(len(groupings[0]), dtype=np.int64)
    blocks = 1
    for codes in groupings:
        _, block = np.unique(block * (int(codes.max()) + 1) + codes, return_inverse=True)
        blocks = int(block.max()) + 1
    return block.astype(np.int64), blocks


def _is_runs(codes: Ints) -> bool:
    """Return whether every group consists of consecutive atoms (unmasked values); `codes` has the
    group of each atom.
    """
    starts = codes[np.flatnonzero(np.diff(codes, prepend=-1))]
    return len(starts) == len(np.unique(starts))


def _coarsening(fine: Ints, coarse: Ints, groups: int) -> Ints | None:
    """Return the coarse group of each fine group; None if a fine group is split."""
    onto = np.zeros(groups, dtype=np.int64)
    onto[fine] = coarse
    return onto if bool((onto[fine] == coarse).all()) else None


def _fit_blocks(
    masks: Sequence[MaskedJoint],
    block: Ints,
    blocks: int,
    histogram: Floats | None,
    tolerance: float,
    max_sweeps: int,
    progress: Progress,
) -> Reconstruction:
    """Return the joint counts of blocks (sets of values that no mask distinguishes) and the label:
    in closed form for one mask, by IPF for several masks. `block` has the block of each unmasked
    value (atom), `blocks` is their number, and `histogram` has the rows of each value. `tolerance`
    and `max_sweeps` say when IPF (iterative proportional fitting) stops.
    """
    leader = np.zeros(blocks, dtype=np.int64)
    leader[block] = np.arange(len(block))
    if len(masks) == 1:
        return Reconstruction(masks[0].joint[masks[0].codes[leader]], "all-evidence")
    labels = masks[0].joint.shape[1]
    seed = np.repeat(np.bincount(block, minlength=blocks), labels).reshape(blocks, labels)
    families: list[Family] = [
        joint_family(mask.name, mask.codes[leader], mask.joint) for mask in masks
    ]
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
