"""Build the summary of an attribute from its values, counts and candidate masks."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from aegis.arrays import Flags, Int32s, Ints
from aegis.masks import Grouping, Identity, Mask, NoiseMask, ValueCounts, evaluate
from aegis.policy import Role
from aegis.summary.codes import settle
from aegis.summary.levels import atomise, neighbours, pool
from aegis.summary.model import AttributeSummary, Candidate
from aegis.summary.ordered import ranges_like, ranges_of

Masks = Sequence[tuple[Mask, Mask]]
"""Pairs of a fitted mask and the same mask as declared."""
Model = tuple[AttributeSummary, Candidate]
"""The same attribute in another table, and its candidate with the same mask."""


def describe(
    name: str,
    role: Role,
    weight: float,
    data: ValueCounts,
    joint: Ints,
    masks: Masks,
    max_levels: int,
    *,
    like: AttributeSummary | None = None,
    groupings: Sequence[Grouping] | None = None,
) -> AttributeSummary:
    """Group the values of an attribute by each of its masks, and return its summary.

    Parameters
    ----------
    name, role, weight
        Name, role and weight of the attribute in the policy.
    data
        The distinct values and the number of rows of each.
    joint
        Number of rows per value and class, shape (V, C).
    masks
        The candidate masks: pairs of the fitted mask and the declared one.
    max_levels
        Largest number of levels of a candidate in measures of several attributes.
    like
        The same attribute in the summary of another part of the data. The new summary pools the
        same groups in one level, and uses the same bounds of ranges.
    groupings
        The grouping of the values by each mask, and as the last entry by the identity. If None,
        groupings are computed.
    """
    masks = with_identity(masks)
    if groupings is None:
        groupings = evaluate([fitted for fitted, _ in masks], data.values)
    models: Sequence[Model | None] = [None] * len(masks)
    if like is not None:
        models = [(like, candidate) for candidate in (*like.candidates, like.unmasked)]
    pooled, ranges = [], []
    for (mask, _), grouping, model in zip(masks, groupings, models, strict=True):
        pooled.append(_pooled(mask, grouping, data, max_levels, model))
        ranges.append(_ranges(mask, grouping, data, max_levels, model))
    return assemble(name, role, weight, data, joint, masks, groupings, pooled, ranges)


def _pooled(
    mask: Mask, grouping: Grouping, data: ValueCounts, max_levels: int, model: Model | None
) -> Int32s:
    if isinstance(mask, NoiseMask) and mask.ordered:
        return neighbours(data.counts, max_levels)
    return levels_of(grouping, data.counts, max_levels, model and kept_groups(*model))


def _ranges(
    mask: Mask, grouping: Grouping, data: ValueCounts, max_levels: int, model: Model | None
) -> Int32s | None:
    if not (data.kind.ordered and mask.deterministic):
        return None
    # Where the model distinguishes all groups there is nothing to follow: parts that do can be cut
    # anywhere once they are merged, as the whole is.
    if model is None or kept_groups(*model) is None:
        return ranges_of(grouping.codes, data.counts, max_levels, data.values)
    return ranges_like(grouping, data.values, *model)


def with_identity(masks: Masks) -> Masks:
    """Return the masks of an attribute, followed by the identity mask, with which every mask is
    compared.
    """
    return [*masks, (Identity(), Identity())]


def assemble(
    name: str,
    role: Role,
    weight: float,
    data: ValueCounts,
    joint: Ints,
    masks: Masks,
    groupings: Sequence[Grouping],
    pooled: Sequence[Int32s],
    ranges: Sequence[Int32s | None],
) -> AttributeSummary:
    """Build the summary of an attribute from the groups into which each mask divides its values.

    `data` has the values and their counts, and `joint` the rows by value and class. `masks`,
    `groupings`, `pooled` (the level of each value: its group, or the level that rare groups share)
    and `ranges` (the range of each value, or None) have one entry per mask, the last for the
    identity.
    """
    known = [own for own in ranges if own is not None]
    atoms, told = atomise([*pooled, *known], len(data.values))
    levels, cut = told[: len(pooled)], iter(told[len(pooled) :])
    made = [
        Candidate(
            fitted,
            declared,
            grouping.codes,
            grouping.shown,
            # What noise shows depends on no less than the atom.
            level if fitted.deterministic else np.arange(len(level), dtype=np.int32),
            None if own is None else next(cut),
        )
        for (fitted, declared), grouping, level, own in zip(
            masks, groupings, levels, ranges, strict=True
        )
    ]
    null_last = len(data.values) > 0 and not data.values[-1].is_valid
    return AttributeSummary(
        name=name,
        role=role,
        kind=data.kind,
        weight=weight,
        values=data.values,
        counts=data.counts,
        joint=joint,
        atoms=atoms,
        candidates=tuple(made[:-1]),
        unmasked=made[-1],
        nulls=int(data.counts[-1]) if null_last else 0,
    )


def levels_of(grouping: Grouping, counts: Ints, max_levels: int, model: pa.Array | None) -> Int32s:
    """Return the level of each of the V values, shape (V,), from the grouping and the rows per
    value. A level is a group; if there are more than `max_levels` groups, those with few rows share
    one level.

    `model` lists the masked values of the groups that have a separate level; all other groups share
    one level. If it is None, each of the most frequent groups has a separate level.
    """
    if model is None:
        return pool(grouping.codes, counts, max_levels)
    own = pc.is_in(settle(grouping.shown), value_set=model).to_numpy(zero_copy_only=False)
    level = np.where(own, np.cumsum(own) - 1, own.sum()).astype(np.int32)
    return level[grouping.codes]


def kept_groups(attribute: AttributeSummary, candidate: Candidate) -> pa.Array | None:
    """Return the masked values of those groups of a candidate that share their level with no other
    group; None if this is so for all groups.
    """
    if candidate.size <= candidate.n_levels:
        return None
    alone = ~pooled_groups(attribute, candidate)
    return settle(candidate.shown.filter(pa.array(alone.tolist(), pa.bool_())))


def pooled_groups(attribute: AttributeSummary, candidate: Candidate) -> Flags:
    """Return, for each group of a candidate mask, whether it shares its level with other groups,
    shape (size,).
    """
    if candidate.noise is not None or candidate.size <= candidate.n_levels:
        return np.zeros(candidate.size, dtype=np.bool_)
    first = np.unique(candidate.groups, return_index=True)[1]
    level = candidate.levels[attribute.atoms[first]]
    return np.bincount(level, minlength=candidate.n_levels)[level] > 1
