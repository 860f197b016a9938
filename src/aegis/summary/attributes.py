"""Build the summary of an attribute: its levels, ranges and atoms under each candidate mask, and
the expected counts of noise masks. Restrict a summary to fewer candidates, and exclude attributes
from measures of whole configurations.

Levels: under `identity`, an attribute that is almost a key has almost as many groups as rows. A
linear system of that size takes too long, and its indicators fit noise. So each of the most
frequent groups of a candidate is a level, and all other groups share one level. For measures of
several attributes, one candidate refines another if its levels refine the levels of the other. So
every bound of the search stays valid.

Ranges: the level of the rarest groups has no position in an order. So candidates of ordered
attributes also have ranges, for models that split numbers and dates at thresholds. A range consists
of neighbouring groups, and ranges have about equally many rows. The outermost of these ranges join
numbers that differ much, although a linear model depends on them most. So if more than
`MOST_WITHIN` of the variance is within ranges, only three quarters of the ranges have about equally
many rows, and the other cuts are where the numbers within a range differ most. Ranges depend only
on the masked values, so the score of a candidate does not depend on the other candidates.

Reports: a report is the noisy value that a mask shows. Let K be the channel of a mask, which has
the probabilities of reports for each value, and F(A,Y) the joint counts of the attribute A and the
label Y. The expected joint counts of reports and label are K' F(A,Y). The expected joint counts of
the reports of two attributes i and j are K_i' G_y K_j for class y, where G_y are the joint counts
of their values (theory.md, section 2). Scores computed from these counts are scores of expected
counts, not expected scores.

Excluded attributes: the time of a measure of whole configurations grows with the cube of the number
of levels of all attributes together, and the size of its counts grows with the square. If there are
more than `TOGETHER` levels, the measures use only some attributes. First come the attributes that
alone predict the label better than chance, then those with the fewest values. All other attributes
get a single level, so they do not change a score. Measures of single attributes still use all
levels. The choice sees the labels of all rows, also of held-out rows. If it took the best of many
attributes that predict nothing, they would seem to predict held-out rows, too. So the labels only
decide about attributes whose association is larger than that of all attributes by chance.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from aegis.arrays import Array, Flags, Floats, Int32s, Ints
from aegis.errors import InternalError, PolicyError
from aegis.masks import (
    Grouping,
    Identity,
    Mask,
    NoiseMask,
    ValueCounts,
    channel_blocks,
    common_refinement,
    evaluate,
    parts_of,
)
from aegis.measures import LabelSpread, chance_of_share
from aegis.policy import Attribute, Policy, Role
from aegis.summary.codes import numbers_of, settle
from aegis.summary.model import AttributeSummary, Candidate, SeveralSummaries, Summary, TaskSummary
from aegis.summary.weights import WeightSums


def pool(groups: Int32s, counts: Array, max_levels: int) -> Int32s:
    """Assign each value to one of at most `max_levels` levels, shape (V,), from its group and its
    rows, shape (V,) each. If there are more groups, each of the `max_levels - 1` largest (of equal
    ones, the earlier) has a level, and all other groups share the last level.
    """
    size = int(groups.max(initial=-1)) + 1
    if size <= max_levels:
        return groups.astype(np.int32)
    weight = np.bincount(groups, weights=counts, minlength=size)
    frequent = np.sort(np.argsort(-weight, kind="stable")[: max_levels - 1])
    level = np.full(size, max_levels - 1, dtype=np.int32)
    level[frequent] = np.arange(len(frequent), dtype=np.int32)
    return level[groups]


def neighbours(counts: Array, max_levels: int) -> Int32s:
    """Divide ordered values, with so many rows each, shape (V,), into levels of neighbours that
    have about equally many rows, and return the level of each value, shape (V,). If there are no
    more values than `max_levels`, each value is a level. Expected counts are allowed.

    A value that alone has more rows than other levels is a separate level. So a frequent value
    (such as 0 in most rows) does not take away levels from other values. LightGBM bins numbers in a
    similar way (Ke et al., LightGBM, NeurIPS 2017, histograms).
    """
    rows = np.asarray(counts, dtype=np.float64)
    if len(rows) <= max_levels:
        return np.arange(len(rows), dtype=np.int32)
    share = max_levels
    while share > 0:
        level = _shared(rows, share)
        if level is None:
            share -= 1
        elif (excess := int(level[-1]) + 1 - max_levels) <= 0:
            return level
        else:  # the rows between two frequent values begin their own level
            share -= excess
    return _quantiles(rows, max_levels)


def _shared(rows: Floats, share: int) -> Int32s | None:
    """Return the level of each ordered value, shape (V,), so that each level has about 1/`share` of
    the rows; None if values that are frequent enough for a separate level use up all levels.
    """
    frequent = np.zeros(len(rows), dtype=bool)
    levels = share
    while levels > 0:
        large = ~frequent & (rows * levels > rows[~frequent].sum())
        if not large.any():
            break
        frequent |= large
        levels = share - int(frequent.sum())
    if levels <= 0:
        return None
    # A frequent value ends the level before it and is one; 2 k + 1 stretches of k such values.
    stretch = 2 * np.cumsum(frequent) - frequent
    quantiles = _quantiles(np.where(frequent, 0.0, rows), levels)
    starts = (np.diff(stretch) != 0) | ((np.diff(quantiles) != 0) & ~frequent[1:])
    return np.concatenate([[0], np.cumsum(starts)]).astype(np.int32)


def _quantiles(rows: Floats, size: int) -> Int32s:
    """Return which of `size` quantiles contains the middle row of each ordered value, shape (V,)."""
    middle = np.cumsum(rows) - rows / 2
    level = np.clip(np.floor(size * middle / max(float(rows.sum()), 1e-300)), 0, size - 1)
    return np.unique(level, return_inverse=True)[1].astype(np.int32)


def atomise(pooled: Sequence[Int32s], size: int) -> tuple[Int32s, list[Int32s]]:
    """Return the atom of each of `size` values, shape (V,), and the level that each atom has under
    each grouping. `pooled` has the level (or range) of each value under each grouping. Two values
    are in the same atom if no grouping separates them (theory.md, section 2).
    """
    atoms = (common_refinement(list(pooled)) if pooled else np.zeros(size, dtype=np.int32)).astype(
        np.int32
    )
    _, first = np.unique(atoms, return_index=True)
    return atoms, [levels[first].astype(np.int32) for levels in pooled]


RANGES = 32
"""Largest number of ranges of a candidate."""
MOST_WITHIN = 0.005
"""Largest share of a number's variance within ranges of equally many rows; if the share is larger,
some ranges are cut by the numbers. It is 0.001 for a uniform distribution, and 0.009 for a normal
one.
"""


def share_within(ranges: Int32s, rows: Floats, numbers: Floats) -> float:
    """Return which share of the variance of the numbers is within ranges, from 0 to 1; 0 if the
    numbers do not vary.

    `ranges`, `rows` and `numbers` have the range, number of rows and number of each of V ordered
    groups, shape (V,) each.

    Examples
    --------
    >>> import numpy as np
    >>> rows, numbers = np.ones(4), np.array([0.0, 1, 3, 4])
    >>> share_within(np.array([0, 0, 1, 1], dtype=np.int32), rows, numbers)
    0.1
    """
    away = numbers - rows @ numbers / max(float(rows.sum()), 1e-300)
    range_rows = np.maximum(np.bincount(ranges, rows), 1e-300)
    residuals = away - (np.bincount(ranges, rows * away) / range_rows)[ranges]
    total = float(rows @ away**2)
    return float(rows @ residuals**2) / total if total > 0 else 0.0


def cut_further(ranges: Int32s, rows: Floats, numbers: Floats, most: int) -> Int32s:
    """Cut ranges of V ordered groups in two until there are `most`, and return the range of each
    group, shape (V,).

    Each cut is the one that most reduces the squared deviations of the numbers of all rows from the
    means of their ranges; of equal cuts, the first. Ranges that show a single number stay as they
    are.

    Parameters
    ----------
    ranges
        The range of each group before, ascending from 0, shape (V,).
    rows
        Number of rows per group, shape (V,).
    numbers
        The number of each group, shape (V,).
    most
        The number of ranges to reach.

    Examples
    --------
    >>> import numpy as np
    >>> numbers = np.array([1.0, 2, 3, 4, 5, 6, 7, 90])
    >>> before = np.array([0, 0, 0, 1, 1, 2, 2, 2], dtype=np.int32)
    >>> cut_further(before, np.ones(8), numbers, 4).tolist()
    [0, 0, 0, 1, 1, 2, 2, 3]
    """
    starts = np.flatnonzero(np.diff(ranges, prepend=-1)).tolist()
    cuts = [_best_cut(rows, numbers, *ends) for ends in pairwise([*starts, len(rows)])]
    while 0 < len(starts) < most:
        best = max(range(len(cuts)), key=lambda at: cuts[at][0])
        gain, middle = cuts[best]
        if gain <= 0:
            break
        starts.insert(best + 1, middle)
        start, _, stop = (*starts, len(rows))[best : best + 3]
        cuts[best : best + 1] = [
            _best_cut(rows, numbers, start, middle),
            _best_cut(rows, numbers, middle, stop),
        ]
    first = np.zeros(len(rows), dtype=np.int32)
    first[starts[1:]] = 1
    return np.cumsum(first, dtype=np.int32)


def _best_cut(rows: Floats, numbers: Floats, start: int, stop: int) -> tuple[float, int]:
    """Return by how much the best cut of the groups from `start` to before `stop` reduces the
    squared deviations of the numbers of all rows, and the first group behind the cut.
    """
    group_rows = rows[start:stop]
    sums = np.cumsum(group_rows * (numbers[start:stop] - numbers[start]))
    cumulated = np.cumsum(group_rows)
    total = float(cumulated[-1])
    both = cumulated[:-1] * (total - cumulated[:-1])
    # The difference of the means on both sides of the cut, times the rows on both sides.
    difference = sums[:-1] * total - sums[-1] * cumulated[:-1]
    gains = np.divide(difference**2, both * total, out=np.zeros_like(both), where=both > 0)
    if not len(gains):
        return 0.0, start
    best = int(gains.argmax())
    return float(gains[best]), start + best + 1


def ranges_of(groups: Int32s, counts: Array, max_levels: int, values: pa.Array) -> Int32s:
    """Return the range of each value, shape (V,), from the group and the rows of each of the
    ordered `values`. A range joins neighbouring groups (see the module). Ranges are numbered in the
    order of the values; there are at most `max_levels` and `RANGES`.

    A group is ordered by the mean rank of its values, which does not depend on their rows. Groups
    with only missing values form the last range.
    """
    if not len(groups):
        return groups
    mean_rank = np.bincount(groups, weights=np.arange(len(groups))) / np.bincount(groups)
    order = np.argsort(mean_rank, kind="stable")
    rows = np.bincount(groups, weights=counts)[order].astype(np.float64)
    numbers = numbers_of(values)
    finite = np.isfinite(numbers)
    size = np.abs(numbers[finite]).max(initial=0.0) or 1.0  # so that no sum overflows
    scaled = np.nan_to_num(np.clip(numbers / size, -1.0, 1.0))
    numbers_in_group = np.bincount(groups, weights=~np.isnan(numbers))[order]
    has_number = numbers_in_group > 0
    mean = np.bincount(groups, weights=scaled)[order] / np.maximum(numbers_in_group, 1.0)
    most = max(min(RANGES, max_levels) - (not has_number.all()), 1)
    numbered_ranges = neighbours(rows[has_number], most)
    if share_within(numbered_ranges, rows[has_number], mean[has_number]) > MOST_WITHIN:
        numbered_ranges = neighbours(rows[has_number], most - most // 4)
        numbered_ranges = cut_further(numbered_ranges, rows[has_number], mean[has_number], most)
    ordered_ranges = np.full(len(order), -1, dtype=np.int32)
    ordered_ranges[has_number] = numbered_ranges
    ordered_ranges[~has_number] = ordered_ranges.max(initial=-1) + 1
    ranges = np.empty(len(order), dtype=np.int32)
    ranges[order] = ordered_ranges
    return ranges[groups]


def ranges_like(
    grouping: Grouping, values: pa.Array, model: AttributeSummary, candidate: Candidate
) -> Int32s:
    """Return the range of each ordered value, shape (V,), with the same bounds as the ranges of the
    same attribute (`model`) and candidate in another summary.

    A group that also occurs there has the same range. Any other group joins the range of a value
    there: the largest value below the group's first value.
    """
    if candidate.ranges is None:
        raise InternalError(f"{str(candidate.mask)!r} of {model.name!r} has no ranges to follow.")
    of_value = candidate.ranges[model.atoms]
    model_ranges = np.empty(candidate.size, dtype=np.int32)
    model_ranges[candidate.groups] = of_value
    known_values = settle(candidate.masked_values)
    positions = pc.index_in(settle(grouping.masked_values), value_set=known_values)
    first = np.unique(grouping.codes, return_index=True)[1]
    before = np.searchsorted(numbers_of(model.values), numbers_of(values.take(pa.array(first))))
    ranges = of_value[np.maximum(before - 1, 0)]
    present = pc.is_valid(positions).to_numpy(zero_copy_only=False)
    ranges[present] = model_ranges[positions.drop_null().to_numpy()]
    return ranges.astype(np.int32)[grouping.codes]


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
    data, joint
        The distinct values and the rows of each; and the rows by value and class, shape (V, C).
    masks
        The candidate masks: pairs of the fitted mask and the declared one.
    max_levels
        Largest number of levels of a candidate in measures of several attributes.
    like
        The same attribute in the summary of another part of the data, from which pooled groups and
        bounds of ranges are taken.
    groupings
        The grouping of the values by each mask, the last by the identity; None: compute them.
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
    """Return the masks of an attribute, then the identity, with which every mask is compared."""
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
    atoms, by_atom = atomise([*pooled, *(r for r in ranges if r is not None)], len(data.values))
    levels, cut = by_atom[: len(pooled)], iter(by_atom[len(pooled) :])
    candidates = [
        Candidate(
            fitted,
            declared,
            grouping.codes,
            grouping.masked_values,
            # What noise shows depends on no less than the atom.
            level if fitted.deterministic else np.arange(len(level), dtype=np.int32),
            None if value_ranges is None else next(cut),
        )
        for (fitted, declared), grouping, level, value_ranges in zip(
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
        candidates=tuple(candidates[:-1]),
        unmasked=candidates[-1],
        nulls=int(data.counts[-1]) if null_last else 0,
    )


def levels_of(grouping: Grouping, counts: Ints, max_levels: int, model: pa.Array | None) -> Int32s:
    """Return the level of each value, shape (V,): its group or, with more than `max_levels` groups,
    one level for all with few rows. If `model` lists masked values, their groups have separate
    levels, and all others share one.
    """
    if model is None:
        return pool(grouping.codes, counts, max_levels)
    in_model = pc.is_in(settle(grouping.masked_values), value_set=model)
    separate = in_model.to_numpy(zero_copy_only=False)
    level = np.where(separate, np.cumsum(separate) - 1, separate.sum()).astype(np.int32)
    return level[grouping.codes]


def kept_groups(attribute: AttributeSummary, candidate: Candidate) -> pa.Array | None:
    """Return the masked values of those groups of a candidate that share their level with no other
    group; None if this is so for all groups.
    """
    if candidate.size <= candidate.n_levels:
        return None
    alone = ~pooled_groups(attribute, candidate)
    return settle(candidate.masked_values.filter(pa.array(alone.tolist(), pa.bool_())))


def pooled_groups(attribute: AttributeSummary, candidate: Candidate) -> Flags:
    """Return whether each group of a candidate shares its level with others, shape (size,)."""
    if candidate.noise is not None or candidate.size <= candidate.n_levels:
        return np.zeros(candidate.size, dtype=np.bool_)
    first = np.unique(candidate.groups, return_index=True)[1]
    level = candidate.levels[attribute.atoms[first]]
    return np.bincount(level, minlength=candidate.n_levels)[level] > 1


def expected_reports(attribute: AttributeSummary, candidate: Candidate, table: Array) -> Floats:
    """Return the expected rows by noisy value and class, shape (R, C), from those by true value and
    class.
    """
    mask = _noise(candidate)
    size = len(mask.reports(attribute.data))
    expected = np.zeros((size, table.shape[1]))
    for rows, channel in channel_blocks(mask, attribute.data, size):
        expected += channel.T @ table[rows]
    return expected


def level_channel(attribute: AttributeSummary, candidate: Candidate, max_levels: int) -> Floats:
    """Return the probability that the noisy value of a row has each of L levels, for each atom,
    shape (A, L).

    A level is a noisy value, unless there are more than `max_levels`. Then neighbouring noisy
    values are pooled into levels with about equally many expected rows, if the mask is ordered;
    otherwise the rarest noisy values share a level. Probabilities are averaged over the values of
    an atom, weighted by the rows of each value. An atom has several values only if the attribute
    has more values than levels.
    """
    mask = _noise(candidate)
    counts = attribute.counts.astype(np.float64)
    weight = counts + (np.bincount(attribute.atoms, weights=counts)[attribute.atoms] == 0)
    rows = expected_reports(attribute, candidate, attribute.counts[:, None])[:, 0]
    if mask.ordered:
        level = neighbours(rows, max_levels)
    else:
        level = pool(np.arange(len(rows), dtype=np.int32), rows, max_levels)
    by_level = np.zeros((attribute.n_atoms, int(level.max()) + 1))
    for part, channel in channel_blocks(mask, attribute.data, len(rows)):
        pooled = np.zeros((channel.shape[0], by_level.shape[1]))
        np.add.at(pooled.T, level, channel.T)
        np.add.at(by_level, attribute.atoms[part], pooled * weight[part, None])
    shares: Floats = by_level / by_level.sum(axis=1, keepdims=True)
    return shares


def check_noise(policy: Policy, masks: Mapping[str, Mask | None] | None = None) -> None:
    """Raise `PolicyError` if noise would change the label or an attribute that the rule checks,
    under these masks or, by default, under any candidate of the policy.
    """
    listed = (
        [(a.name, mask) for a in policy.attributes.values() for mask in a.masks]
        if masks is None
        else list(masks.items())
    )
    for name, mask in listed:
        if mask is None or mask.deterministic:
            continue
        if name == policy.label.column:
            raise _refused(name, mask, "the label is what all scores are compared with")
        if name in policy.privacy.sensitive:
            raise _refused(name, mask, "the privacy rule counts the attribute's true values")
        if policy.label.is_number:
            why = "the label is a number, and Aegis cannot predict R2 under noise"
            raise _refused(name, mask, why)


def _refused(attribute: str, mask: Mask, why: str) -> PolicyError:
    return PolicyError(
        f"Mask {str(mask)!r} of {attribute!r} draws its values at random, but {why}.",
        hint="Choose a mask without noise, such as bucketize, round or keep_frequent.",
    )


def _noise(candidate: Candidate) -> NoiseMask:
    if candidate.noise is None:
        raise InternalError(f"Mask {str(candidate.mask)!r} is not a noise mask.")
    return candidate.noise


def narrow(summary: Summary, policy: Policy) -> Summary | None:
    """Return a copy of the summary with only the candidate masks of another policy; None if the
    table must be read again.

    It need not be if the policy has the same label and roles, all its masks are candidates of the
    summary, and its rule protects only attributes that were counted. If masks learn bounds from the
    data, the rule must not require larger classes than `shared_rows` of the summary.
    """
    labels = () if policy.chosen_label is None else (policy.chosen_label,)
    declared = {a.name: a for a in (*policy.features, *labels)}
    counted = None if summary.frequency is None else set(summary.frequency.sensitive)
    label = summary.label.mask is None and policy.label_mask is None and not policy.label.cut
    if (
        not label
        or policy.label.column != summary.label.column
        or policy.label.kind is not summary.label.kind
        or declared.keys() != {a.name for a in summary.all_attributes}
        or (counted is not None and not set(policy.privacy.sensitive) <= counted)
    ):
        return None
    several = _several(summary, policy)
    if several is None and (summary.several is not None or policy.tasks):
        return None
    narrowed = {a.name: _narrowed(a, declared[a.name]) for a in summary.all_attributes}
    chosen = {name: narrower for name, narrower in narrowed.items() if narrower is not None}
    if len(chosen) < len(narrowed):
        return None
    if summary.shared_rows < policy.shared_rows and any(map(_learns_bounds, chosen.values())):
        return None
    same = several is None or several is summary.several
    if same and all(chosen[a.name] is a for a in summary.all_attributes):
        return summary
    label_attribute = None if summary.label_attribute is None else chosen.pop(summary.label.column)
    return replace(summary, attributes=chosen, label_attribute=label_attribute, several=several)


def _several(summary: Summary, policy: Policy) -> SeveralSummaries | None:
    """Return the summaries for several labels as `narrow` does."""
    several, declared = summary.several, policy.label.several
    if several is None or declared is None:
        return None
    if declared.columns != tuple(task.column for task in several.tasks):
        return None
    tasks = []
    for old, task in zip(several.tasks, policy.tasks, strict=True):
        narrowed = narrow(old.summary, policy.of_task(task))
        if narrowed is None:
            return None
        measure = task.named_measure(policy.measure)
        same = (narrowed, task.weight, measure) == (old.summary, old.weight, old.measure)
        tasks.append(old if same else TaskSummary(narrowed, task.weight, measure))
    if declared.serve is several.serve and all(map(operator.is_, tasks, several.tasks)):
        return several
    return SeveralSummaries(tuple(tasks), declared.serve)


def _learns_bounds(attribute: AttributeSummary) -> bool:
    """Return whether a candidate learnt bounds from the data, such as quantiles, which a minimum
    number of rows must share.
    """
    return any(
        candidate.mask != candidate.declared
        and any("{rows}" in (part.learns or "") for part in parts_of(candidate.mask))
        for candidate in attribute.candidates
    )


def _narrowed(attribute: AttributeSummary, policy_attribute: Attribute) -> AttributeSummary | None:
    """Return the attribute with only the candidates of `policy_attribute`, in the order of the
    policy; None if one is missing.
    """
    if policy_attribute.role is not attribute.role:
        return None
    declared = {candidate.declared: candidate for candidate in attribute.candidates}
    if not all(mask in declared for mask in policy_attribute.masks):
        return None
    candidates = tuple(declared[mask] for mask in policy_attribute.masks)
    if candidates == attribute.candidates and policy_attribute.weight == attribute.weight:
        return attribute
    return replace(attribute, candidates=candidates, weight=policy_attribute.weight)


TOGETHER = 2_048
"""Largest number of atoms of all attributes together in measures of whole configurations."""


CHANCE = 0.05
"""Probability that chance alone makes at least one of all attributes predict the label."""
ROWS_TO_JUDGE = 5
"""Number of rows of a level from which chi-square has about the distribution that theory says."""
FEWEST_ROWS = 2
"""Number of rows from which this also holds for a level, if all levels with fewer than
`ROWS_TO_JUDGE` rows together have `RARE_ROWS` rows of the rarest class.
"""
RARE_ROWS = 25
"""Expected number of rows of the rarest class in these levels, if the label is independent."""


def trace_alone(attribute: AttributeSummary, max_levels: int) -> float:
    """Return how well a single unmasked attribute, with at most `max_levels` levels, predicts the
    label, as Pillai's trace corrected for chance (see `trace_and_chance`).

    Examples
    --------
    >>> import aegis
    >>> study = aegis.Study("data/adult.parquet", "examples/adult/policy.yaml")
    >>> round(trace_alone(study.summary.attributes["education"], 128), 4)
    0.1356
    """
    return trace_and_chance(attribute, max_levels)[0]


def trace_and_chance(
    attribute: AttributeSummary, max_levels: int, weights: WeightSums | None = None
) -> tuple[float, float]:
    """Return Pillai's trace, corrected for chance, of a single unmasked attribute with the label,
    and how probable so large a trace is by chance.

    The trace is chi-square divided by the number of rows. The correction subtracts its mean for a
    randomly permuted label, (levels - 1) (classes - 1) / (rows - 1). The result is at least 0. If
    counts are sums of row weights, `weights` converts them to effective rows. For the probability,
    levels with too few rows count as one level (`judged_levels`).
    """
    groups = attribute.unmasked.groups
    if attribute.kind.ordered:
        level = ranges_of(groups, attribute.counts, max_levels, attribute.values)
    else:
        level = pool(groups, attribute.joint.sum(axis=1), max_levels)
    joint = np.zeros((int(level.max(initial=0)) + 1, attribute.joint.shape[1]))
    np.add.at(
        joint, level, attribute.joint if weights is None else weights.in_rows(attribute.joint)
    )
    joint = joint[joint.sum(axis=1) > 0][:, joint.sum(axis=0) > 0]
    rows, classes = joint.sum(axis=1), joint.sum(axis=0)
    n = float(joint.sum())
    if n < 2 or len(classes) < 2:
        return 0.0, 1.0
    corrected = _share(joint) - (len(rows) - 1) * (len(classes) - 1) / (n - 1)
    judged = judged_levels(rows, float(classes.min()) / n)
    merged = np.zeros((int(judged.max()) + 1, len(classes)))
    np.add.at(merged, judged, joint)
    chance = chance_of_share(_share(merged), merged.sum(axis=1), LabelSpread.of_classes(classes))
    return max(0.0, corrected), chance


def judged_levels(rows: Floats, rarest: float) -> Ints:
    """Return the new level of each level, shape (V,), after all with too few rows have become one
    level. If this has too few rows, too, it joins the smallest other level. `rarest` is the share
    of the rarest class of the label, or one divided by the kurtosis of a numeric label.
    """
    small = rows[(rows >= FEWEST_ROWS) & (rows < ROWS_TO_JUDGE)].sum()
    least = FEWEST_ROWS if small * rarest >= RARE_ROWS else ROWS_TO_JUDGE
    rare = rows < least
    judged: Ints = np.cumsum(~rare) - 1
    judged[rare] = np.count_nonzero(~rare)
    if rare.any() and not rare.all() and rows[rare].sum() < least:
        judged[rare] = judged[np.where(rare, np.inf, rows).argmin()]
    return judged


def _share(joint: Floats) -> float:
    """Return chi-square divided by the number of rows, from the number of rows by level and class."""
    expected = np.outer(joint.sum(axis=1), joint.sum(axis=0))
    return float((joint**2 / expected).sum()) - 1


def exclude_attributes(
    attributes: Mapping[str, AttributeSummary],
    max_levels: int,
    together: int = TOGETHER,
    weights: WeightSums | None = None,
    explained: Callable[[AttributeSummary], tuple[float, float]] | None = None,
) -> dict[str, AttributeSummary]:
    """Reduce some attributes to a single level each, so that measures of whole configurations leave
    them out.

    Attributes keep their levels as long as they have at most `together` atoms (sets of values) in
    total. First come those of m attributes that predict the label, best first, so well that the
    probability is below `CHANCE` / m. The others follow by their number of atoms, fewest first, and
    fill a quarter of `together` at most, so that scores stay quick. An
    attribute with too many atoms is skipped, unless it is the first. Attributes with noise masks
    are never reduced, because the levels of their noisy values are not known here. For a numeric
    label, the function `explained` replaces `trace_and_chance`. `max_levels` is the largest number
    of levels of an attribute.

    Examples
    --------
    >>> import aegis
    >>> study = aegis.Study("data/adult.parquet", "examples/adult/policy.yaml")
    >>> fewer = exclude_attributes(study.summary.attributes, 128, together=60)
    >>> [name for name, attribute in fewer.items() if attribute.excluded][:3]
    ['age', 'native-country', 'capital-gain']
    """
    if sum(a.n_atoms for a in attributes.values()) <= together:
        return dict(attributes)
    noisy = {
        n for n, a in attributes.items() if any(isinstance(c.mask, NoiseMask) for c in a.candidates)
    }
    remaining = together - sum(attributes[name].n_atoms for name in noisy)
    alone = explained or partial(trace_and_chance, max_levels=max_levels, weights=weights)
    shares = {}
    for name, attribute in attributes.items():
        if name not in noisy:
            share, chance = alone(attribute)
            shares[name] = share if chance * len(attributes) < CHANCE else 0.0
    included, fill = set(noisy), together // 4
    for name in sorted(shares, key=lambda n: (-shares[n], attributes[n].n_atoms)):
        more = attributes[name].n_atoms
        if more <= (remaining if shares[name] > 0 else min(remaining, fill)) or not included:
            included.add(name)
            remaining -= more
            fill -= 0 if shares[name] > 0 else more
    return {n: a if n in included else _with_one_atom(a) for n, a in attributes.items()}


def _with_one_atom(attribute: AttributeSummary) -> AttributeSummary:
    """Return the attribute with all values in one atom, and with a single level under every mask."""
    atoms, level = np.zeros(len(attribute.values), np.int32), np.zeros(1, np.int32)
    candidates = [
        replace(c, levels=level, ranges=None if c.ranges is None else level)
        for c in (*attribute.candidates, attribute.unmasked)
    ]
    return replace(
        attribute, atoms=atoms, candidates=tuple(candidates[:-1]), unmasked=candidates[-1]
    )


def in_full(attribute: AttributeSummary, max_levels: int) -> AttributeSummary:
    """Restore the levels (at most `max_levels`) and ranges of an attribute that `exclude_attributes` has
    reduced to a single level.

    Examples
    --------
    >>> import aegis
    >>> study = aegis.Study("data/adult.parquet", "examples/adult/policy.yaml")
    >>> race = study.summary.attributes["race"]
    >>> both = {"education": study.summary.attributes["education"], "race": race}
    >>> excluded = exclude_attributes(both, 128, together=17)["race"]
    >>> excluded.unmasked.n_levels, in_full(excluded, 128).unmasked.n_levels, race.unmasked.n_levels
    (1, 5, 5)
    """
    every = (*attribute.candidates, attribute.unmasked)
    full = describe(
        attribute.name,
        attribute.role,
        attribute.weight,
        attribute.data,
        attribute.joint,
        [(c.mask, c.declared) for c in attribute.candidates],
        max_levels,
        groupings=[Grouping(c.groups, c.masked_values) for c in every],
    )
    return replace(full, domain=attribute.domain, nulls=attribute.nulls)
