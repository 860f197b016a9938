"""Merge the summaries of disjoint parts of a table.

Aegis adds the counts, and computes everything that depends on counts again. The result equals the
summary of the whole table. If a part pools groups, the result equals the summary of the whole table
with `like` set to this part, so that levels and ranges are the same. If the parts do not have
enough information for this, Aegis raises an error; it does not approximate anything.

The weights of all parts are converted to one unit first, so that their sums can be added.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from typing import Any

import numpy as np
import pyarrow as pa

from aegis.arrays import Int32s, Ints
from aegis.errors import DataError, PolicyError
from aegis.masks import Grouping, ValueCounts, common_refinement, evaluate, refines
from aegis.options import checks_types
from aegis.policy import Terms
from aegis.summary.attributes import (
    assemble,
    kept_groups,
    levels_of,
    ranges_like,
    ranges_of,
    with_identity,
)
from aegis.summary.codes import encode
from aegis.summary.cooccurrence import PairCounts, PartOfPairs, added_pairs
from aegis.summary.count_cells import MAX_CELLS
from aegis.summary.frequency import FrequencyTable
from aegis.summary.model import AttributeSummary, Candidate, Information, LabelSummary, Summary
from aegis.summary.responses import NumberUnit
from aegis.summary.weights import TableWeights, WeightSums

_SUM_BITS = 62
"""Bits that a sum of weights may take."""


def merged_weights(summaries: Sequence[Summary]) -> TableWeights | None:
    """Return the weights of all parts of a table together; their unit must be the same."""
    parts = [summary.weights for summary in summaries if summary.weights is not None]
    if not parts:
        return None
    return replace(
        parts[0],
        sums=reduce(WeightSums.plus, (part.sums for part in parts)),
        labelled=reduce(WeightSums.plus, (part.labelled for part in parts)),
        zeros=sum(part.zeros for part in parts),
    )


def in_one_unit(summaries: Sequence[Summary]) -> list[Summary]:
    """Return the summaries of all parts with their weights in the smallest unit that one of them
    has.

    Raises
    ------
    DataError
        The units have no common unit, or sums would be too large for 62 bits.
    """
    weights = [summary.weights for summary in summaries if summary.weights is not None]
    if not weights:
        return list(summaries)
    unit = max((part.unit for part in weights), key=lambda unit: unit.exponent)
    if len({part.unit.base for part in weights}) > 1:
        raise DataError(
            f"The weights {weights[0].column!r} of the parts are kept in units that do not fit together.",
            hint="Summarise the part with most decimals first, and the others like it "
            "(`--like FIRST.aegis`).",
        )
    factors = [int(part.unit.exact / unit.exact) for part in weights]
    total = sum(part.sums.total * factor for part, factor in zip(weights, factors, strict=True))
    if total >= 2**_SUM_BITS:
        raise DataError(
            f"The weights {weights[0].column!r} add up to {total * unit.exact:g}, in units of "
            f"{unit.size:g}: too much to be kept exactly.",
            hint="Round the weights to fewer decimals in all parts, and summarise them again.",
        )
    return [_times(s, factor) for s, factor in zip(summaries, factors, strict=True)]


def _times(summary: Summary, factor: int) -> Summary:
    """Convert a summary to a unit of weight that is `factor` times smaller."""
    weights, label, totals = summary.weights, summary.label_attribute, summary.label.totals
    if factor == 1 or weights is None or totals is None:
        return summary
    unit = replace(
        weights.unit, exponent=weights.unit.exponent + _digits(factor, weights.unit.base)
    )
    same = PartOfPairs(
        summary.pairs,
        [np.arange(size) for size in summary.pairs.sizes],
        np.arange(summary.pairs.classes),
    )
    return replace(
        summary,
        attributes={n: replace(a, joint=a.joint * factor) for n, a in summary.attributes.items()},
        label_attribute=None if label is None else replace(label, joint=label.joint * factor),
        label=replace(summary.label, totals=totals * factor),
        pairs=added_pairs([same], summary.pairs.sizes, summary.pairs.classes, factor),
        weights=replace(
            weights,
            unit=unit,
            sums=weights.sums.scaled(factor),
            labelled=weights.labelled.scaled(factor),
        ),
    )


def _digits(factor: int, base: int) -> int:
    """Return the exponent n for which `factor` equals `base` ** n."""
    digits = 0
    while factor > 1:
        factor, digits = factor // base, digits + 1
    return digits


LIKE = (
    "Summarise the other parts like one of them, best the largest: "
    "`aegis summarize ... --like LARGEST.aegis`, or `summarize(..., like=largest)`."
)


@checks_types
def merge(*summaries: Summary) -> Summary:
    """Return the summary of a whole table from the summaries of its parts, which have no rows in
    common.

    Aegis cannot check that the parts are disjoint: a row in two parts counts twice.

    Parameters
    ----------
    summaries
        One or more summaries with the same policy and `max_levels`. Their order does not matter,
        except that the timings come from the first one.

    Raises
    ------
    PolicyError
        The policies or `max_levels` differ, or masks were fitted to each part separately.
    DataError
        A part counted pairs of values on a sample; columns have different types; or a part pools
        groups that the whole table would not pool.

    Examples
    --------
    >>> import pyarrow as pa
    >>> import aegis
    >>> policy = {
    ...     "version": 1,
    ...     "label": "bought",
    ...     "attributes": {"age": {"role": "quasi-identifier", "masks": ["identity", "suppress"]}},
    ... }
    >>> north = aegis.summarize(pa.table({"age": [30, 40, 40], "bought": [0, 1, 1]}), policy)
    >>> south = aegis.summarize(
    ...     pa.table({"age": [40, 50], "bought": [1, 0]}), policy, like=north
    ... )
    >>> aegis.merge(north, south).rows
    5
    """
    _check(summaries)
    first = summaries[0]
    if len(summaries) == 1:
        return first
    merged = _Merger(in_one_unit(summaries)).merged()
    if first.several is None:
        return merged
    tasks = [
        replace(task, summary=merge(*(s.several.tasks[i].summary for s in summaries if s.several)))
        for i, task in enumerate(first.several.tasks)
    ]
    return replace(merged, several=replace(first.several, tasks=tuple(tasks)))


def _check(summaries: Sequence[Summary]) -> None:
    if not summaries:
        raise PolicyError("There is nothing to merge.", hint="Give at least one summary.")
    first = summaries[0]
    for number, other in enumerate(summaries, 1):
        if other.digests.get("policy") != first.digests.get("policy"):
            raise PolicyError(
                f"Summary {number} was made under another policy than summary 1.",
                hint="Summarise all parts under one policy.",
            )
        if other.information is not Information.RAW:
            raise PolicyError(
                f"Summary {number} carries {other.information} of an attribute, not the raw joints "
                "that Aegis adds up.",
                hint="Merge the parts first, then leave out what the masks do not show.",
            )
        if other.max_levels != first.max_levels:
            raise PolicyError(
                f"Summary {number} was made with {other.max_levels} levels, summary 1 with "
                f"{first.max_levels}.",
                hint="Use one number for all parts.",
            )
        if other.sampled:
            raise DataError(
                f"The co-occurrences of summary {number} come from a sample of "
                f"{other.pairs.rows:,} rows: samples cannot be added up.",
                hint="Summarise every part with --exact.",
            )
        if other.label.mask != first.label.mask:
            raise PolicyError(f"The label of summary {number} is cut at other places.", hint=LIKE)
        if _base(other) != _base(first):
            raise DataError(
                f"The number to predict is kept in other units in summary {number}.", hint=LIKE
            )


def _base(summary: Summary) -> tuple[int, int | None] | None:
    """Return the base and the exponent of a numeric label's unit that all parts must share; None if
    the label has classes. The exponent is None for base 10, because decimal units can be converted.
    """
    unit = summary.label.unit
    return None if unit is None else (unit.base, None if unit.base == 10 else unit.exponent)


def _read_by_context(summaries: Sequence[Summary]) -> tuple[str, ...] | None:
    """Return the columns of text files in which, in some part, the reading of a value depended on
    the other values; None if a part does not state them.
    """
    columns: dict[str, None] = {}
    for summary in summaries:
        if summary.read_by_context is None:
            return None
        columns |= dict.fromkeys(summary.read_by_context)
    return tuple(columns)


def _terms(summaries: Sequence[Summary]) -> Terms | None:
    """Return the policy of the merged summary: locked, or binding, if that of any part is."""
    terms = [s.terms for s in summaries if s.terms is not None]
    if not terms:
        return None
    locked, binding = any(t.locked for t in terms), any(t.binding for t in terms)
    return replace(terms[0], locked=locked, binding=binding)


@dataclass(frozen=True, eq=False)
class _PartCodes:
    """The index of each value of an attribute in one part among those of the merged attribute."""

    summary: AttributeSummary
    values: Int32s
    """Place of each of the part's values among those of the whole."""


class _Merger:
    """Merges summaries of parts, and translates codes of the parts to codes of the merged summary."""

    def __init__(self, summaries: Sequence[Summary]) -> None:
        self.summaries = summaries
        self.first = summaries[0]
        self.classes = merge_classes([s.label.classes for s in summaries])
        code_of_class = {name: i for i, name in enumerate(self.classes)}
        self.class_codes = [
            np.array([code_of_class[name] for name in s.label.classes], dtype=np.int64)
            for s in summaries
        ]
        self.parts: dict[str, list[_PartCodes]] = {}

    def merged(self) -> Summary:
        label = self._label()
        attributes = {
            name: self._attribute([s.attributes[name] for s in self.summaries])
            for name in self.first.attributes
        }
        label_parts = [s.label_attribute for s in self.summaries if s.label_attribute is not None]
        label_attribute = self._attribute(label_parts, label) if label_parts else None
        all_attributes = dict(attributes)
        if label_attribute is not None:
            all_attributes[label.column] = label_attribute
        return Summary(
            rows=sum(s.rows for s in self.summaries),
            label=label,
            attributes=attributes,
            label_attribute=label_attribute,
            pairs=self._pairs(attributes),
            frequency=self._frequency(all_attributes),
            max_levels=self.first.max_levels,
            unnamed=tuple(dict.fromkeys(name for s in self.summaries for name in s.unnamed)),
            digests={"policy": self.first.digests["policy"]},
            shared_rows=min(s.shared_rows for s in self.summaries),
            dialects=tuple(dict.fromkeys(d for s in self.summaries for d in s.dialects)),
            read_by_context=_read_by_context(self.summaries),
            timings=self.first.timings,
            terms=_terms(self.summaries),
            weights=merged_weights(self.summaries),
        )

    def _label(self) -> LabelSummary:
        counts = np.zeros(len(self.classes), dtype=np.int64)
        for summary, codes in zip(self.summaries, self.class_codes, strict=True):
            counts[codes] += summary.label.counts
        missing = sum(s.label.unlabelled for s in self.summaries)
        label, totals = self.first.label, None
        if label.totals is not None:
            totals = np.zeros(len(self.classes), dtype=np.int64)
            for summary, codes in zip(self.summaries, self.class_codes, strict=True):
                totals[codes] += summary.label.weighted
        ends = self._ends()
        return LabelSummary(
            label.column, self.classes, counts, missing, label.mask, self._unit(), totals, ends
        )

    def _ends(self) -> tuple[int, int] | None:
        """Return the smallest and the largest value of the numeric label; None if a part does not
        state them.
        """
        unit, ends = self._unit(), []
        for label in (summary.label for summary in self.summaries):
            if unit is None or label.unit is None or label.ends is None:
                return None
            factor = int(label.unit.exact / unit.exact)
            ends += [end * factor for end in label.ends]
        return min(ends), max(ends)

    def _unit(self) -> NumberUnit | None:
        """Return the smallest unit of the numeric label in any part, of which all its numbers are
        multiples.
        """
        units = [s.label.unit for s in self.summaries if s.label.unit is not None]
        return max(units, key=lambda unit: unit.exponent, default=None)

    def _attribute(
        self, parts: Sequence[AttributeSummary], label: LabelSummary | None = None
    ) -> AttributeSummary:
        """Merge one attribute from its summaries in all parts; `label` is given if it is the label."""
        first = parts[0]
        _check_parts(parts)
        codes, values = encode(pa.concat_arrays([part.values for part in parts]))
        ends = np.cumsum([len(part.values) for part in parts])
        translated = [
            _PartCodes(part, part_codes.astype(np.int32))
            for part, part_codes in zip(parts, np.split(codes, ends[:-1]), strict=True)
        ]
        self.parts[first.name] = translated
        counts = np.zeros(len(values), dtype=np.int64)
        joint = np.zeros((len(values), len(self.classes)), dtype=np.int64)
        for part, of_classes in zip(translated, self.class_codes, strict=True):
            counts[part.values] += part.summary.counts
            joint[np.ix_(part.values, of_classes)] += part.summary.joint
        if label is not None:
            # Its values are the classes, in their order, and null if a label is missing.
            joint = np.zeros((len(values), len(self.classes)), dtype=np.int64)
            np.fill_diagonal(joint, label.weighted)
        masks = with_identity([(c.mask, c.declared) for c in first.candidates])
        groupings = evaluate([fitted for fitted, _ in masks], values)
        data = ValueCounts(first.kind, values, counts)
        pooled, ranges = [], []
        for i, grouping in enumerate(groupings):
            candidates = [(*p.summary.candidates, p.summary.unmasked)[i] for p in translated]
            pooled.append(self._levels(candidates, grouping, counts, translated))
            ranges.append(self._ranges(candidates, grouping, data, translated))
        return assemble(
            first.name, first.role, first.weight, data, joint, masks, groupings, pooled, ranges
        )

    def _levels(
        self,
        candidates: Sequence[Candidate],
        grouping: Grouping,
        counts: Ints,
        parts: Sequence[_PartCodes],
    ) -> Int32s:
        """Return the level of each value under one candidate, which has the given form in each
        part.

        If no part pools groups, the levels follow from the counts of the merged summary. Otherwise
        they are taken from a part with the most separate levels or from the merged counts,
        whichever agree with every part. Raise `DataError` if none agree.
        """
        separate = (kept_groups(p.summary, c) for p, c in zip(parts, candidates, strict=True))
        models = [model for model in separate if model is not None]
        # A part in which few groups occur keeps few: to follow it would pool what others keep.
        most = max(map(len, models), default=0)
        for model in (*(m for m in models if len(m) == most), None):
            levels = levels_of(grouping, counts, self.first.max_levels, model)
            if all(
                refines(candidate.levels[part.summary.atoms], levels[part.values])
                for part, candidate in zip(parts, candidates, strict=True)
            ):
                return levels
        name = parts[0].summary.name
        raise DataError(
            f"Attribute {name!r} under {candidates[0].declared}: the parts pool different groups of its "
            f"{grouping.size:,}, of which {self.first.max_levels} levels are kept.",
            hint=LIKE,
        )

    def _ranges(
        self,
        candidates: Sequence[Candidate],
        grouping: Grouping,
        data: ValueCounts,
        parts: Sequence[_PartCodes],
    ) -> Int32s | None:
        """Return the range of each value under one candidate, computed from all counts or taken
        from a part; None if there are no ranges.

        Parts that pool groups are tried first, those with the most separate levels before others,
        until ranges agree with every part. Raise `DataError` if none agree.
        """
        if candidates[0].ranges is None:
            return None
        separate_counts = [
            len(kept_groups(p.summary, c) or ()) for p, c in zip(parts, candidates, strict=True)
        ]
        order = sorted(range(len(parts)), key=lambda i: -separate_counts[i])
        pooled = sum(map(bool, separate_counts))
        for i in (*order[:pooled], None, *order[pooled:]):
            if i is None:
                ranges = ranges_of(grouping.codes, data.counts, self.first.max_levels, data.values)
            else:
                ranges = ranges_like(grouping, data.values, parts[i].summary, candidates[i])
            if all(refines(part.summary.atoms, ranges[part.values]) for part in parts):
                return ranges
        raise DataError(
            f"Attribute {parts[0].summary.name!r} under {candidates[0].declared}: the parts cut its "
            f"{grouping.size:,} groups into ranges at different places.",
            hint=LIKE,
        )

    def _pairs(self, attributes: Mapping[str, AttributeSummary]) -> PairCounts:
        sizes = tuple(a.n_atoms for a in attributes.values())
        parts = []
        for number, (summary, to_class) in enumerate(
            zip(self.summaries, self.class_codes, strict=True)
        ):
            atoms = [_atoms(self.parts[name][number], a) for name, a in attributes.items()]
            parts.append(PartOfPairs(self._in_unit(summary), atoms, to_class))
        return added_pairs(parts, sizes, len(self.classes))

    def _in_unit(self, summary: Summary) -> PairCounts:
        """Return the counts of pairs of a part, with a numeric label in the unit that all parts
        share.
        """
        sums, part_unit, unit = summary.pairs.responses, summary.label.unit, self._unit()
        if sums is None or part_unit is None or unit is None:
            return summary.pairs
        return replace(summary.pairs, responses=sums.scaled(int(part_unit.exact / unit.exact)))

    def _frequency(self, attributes: Mapping[str, AttributeSummary]) -> FrequencyTable | None:
        tables = [s.frequency for s in self.summaries if s.frequency is not None]
        if len(tables) < len(self.summaries) or sum(t.cells for t in tables) > MAX_CELLS:
            return None
        first, codes, representatives = tables[0], {}, {}
        for name in first.codes:
            if name in attributes:
                codes[name], representatives[name] = self._keys(name, attributes[name], tables)
            else:
                codes[name] = self._label_keys(tables)
        counts = np.concatenate([table.counts for table in tables])
        names = first.quasi, first.sensitive, first.label
        return FrequencyTable.of(names, codes, representatives, counts)[0]

    def _keys(
        self, name: str, attribute: AttributeSummary, tables: Sequence[FrequencyTable]
    ) -> tuple[Int32s, Int32s]:
        """Return the code of each cell of a column in the frequency tables of all parts, joined one
        after the other, and a value (index) for each code.

        Codes stand for the same groups or values as if the whole table were counted at once. If a
        part does not distinguish all values, a code stands for a set of values that no candidate
        distinguishes.
        """
        finest = attribute.finest_key
        keys = np.arange(len(attribute.values)) if finest is None else finest.groups
        values = [
            (part, part.values[table.representatives[name]])
            for part, table in zip(self.parts[name], tables, strict=True)
        ]
        if finest is None and any(len(v) < len(p.values) for p, v in values):
            listed = attribute.candidates or (attribute.unmasked,)
            keys = common_refinement([candidate.groups for candidate in listed])
        codes = [keys[v][t.codes[name]] for (_, v), t in zip(values, tables, strict=True)]
        first = np.unique(keys, return_index=True)[1].astype(np.int32)
        return np.concatenate(codes).astype(np.int32), first

    def _label_keys(self, tables: Sequence[FrequencyTable]) -> Int32s:
        """Return the code of the class (or null) of each cell of all parts, for a label without
        candidates.
        """
        codes = []
        for table, to_class in zip(tables, self.class_codes, strict=True):
            codes.append(np.append(to_class, len(self.classes))[table.codes[table.label]])
        return np.concatenate(codes).astype(np.int32)


def _check_parts(parts: Sequence[AttributeSummary]) -> None:
    """Raise `DataError` unless an attribute has the same type, role and masks in every part."""
    first = parts[0]
    for number, other in enumerate(parts, 1):
        if other.kind is not first.kind or other.values.type != first.values.type:
            raise DataError(
                f"Attribute {first.name!r} has type {other.values.type} in summary {number} and "
                f"{first.values.type} in summary 1.",
                hint="Convert the column to one type in every part, and summarise again.",
            )
        for mine, two in zip(first.candidates, other.candidates, strict=True):
            if mine.mask != two.mask:
                raise PolicyError(
                    f"Mask {mine.declared} of attribute {first.name!r} was fitted to each part "
                    f"separately: {mine.mask} in summary 1, {two.mask} in summary {number}.",
                    hint=LIKE,
                )


def _atoms(part: _PartCodes, merged: AttributeSummary) -> Ints:
    """Return the index of each atom of one part among those of the merged attribute, shape (A,)."""
    new_atoms = np.empty(part.summary.n_atoms, dtype=np.int64)
    new_atoms[part.summary.atoms] = merged.atoms[part.values]
    return new_atoms


def merge_classes(parts: Sequence[Sequence[str]]) -> tuple[str, ...]:
    """Return all classes that occur in any of several parts of a table, in an order that agrees
    with the order in each part.

    Each part lists its classes as texts, sorted by their values, which may be texts or numbers.

    Raises
    ------
    DataError
        Several orders agree with all parts, or none does.
    """
    everything = list(dict.fromkeys(name for part in parts for name in part))
    for part in parts:
        if len(part) == len(everything):
            if all(_agrees(part, other) for other in parts):
                return tuple(part)
            raise _unclear(everything)
    orders = {
        tuple(order)
        for key in (_as_text, float)
        if (order := _sorted(everything, key)) and all(_agrees(order, part) for part in parts)
    }
    if len(orders) != 1:
        raise _unclear(everything)
    return orders.pop()


def _as_text(name: str) -> bytes:
    return name.encode()


def _sorted(names: list[str], key: Callable[[str], Any]) -> list[str]:
    try:
        return sorted(names, key=key)
    except ValueError:
        return []


def _agrees(order: Sequence[str], part: Sequence[str]) -> bool:
    present = set(part)
    return [name for name in order if name in present] == list(part)


def _unclear(names: list[str]) -> DataError:
    return DataError(
        f"The parts have different classes, and their order is not clear: {', '.join(names[:10])}.",
        hint="Summarise the other parts like the one that has most classes (`--like`).",
    )
