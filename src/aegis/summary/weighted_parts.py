"""Convert the summaries of parts of a table with weights to one unit, so that their sums can be
added.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import reduce

import numpy as np

from aegis.errors import DataError
from aegis.summary.added_pairs import PartOfPairs, added_pairs
from aegis.summary.cooccurrence import PairCounts
from aegis.summary.model import Summary
from aegis.summary.weights import TableWeights, WeightSums

_SUM_BITS = 62
"""Bits that a sum of weights may take."""


def merged_weights(summaries: Sequence[Summary]) -> TableWeights | None:
    """Return the weights of all parts of a table together. The parts must have the same unit of
    weight.
    """
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
    """Return the summaries of all parts of a table with their weights in the same unit, the
    smallest that one of them has.

    Raises
    ------
    DataError
        The units have no common unit, or sums would be too large for 62 bits.
    """
    weights = [summary.weights for summary in summaries if summary.weights is not None]
    if not weights:
        return list(summaries)
    unit = max((own.unit for own in weights), key=lambda unit: unit.exponent)
    if len({own.unit.base for own in weights}) > 1:
        raise DataError(
            f"The weights {weights[0].column!r} of the parts are kept in units that do not fit together.",
            hint="Summarise the part with most decimals first, and the others like it "
            "(`--like FIRST.aegis`).",
        )
    factors = [int(own.unit.exact / unit.exact) for own in weights]
    total = sum(own.sums.total * factor for own, factor in zip(weights, factors, strict=True))
    if total >= 2**_SUM_BITS:
        raise DataError(
            f"The weights {weights[0].column!r} add up to {total * unit.exact:g}, in units of "
            f"{unit.size:g}: too much to be kept exactly.",
            hint="Round the weights to fewer decimals in all parts, and summarise them again.",
        )
    return [_times(s, factor) for s, factor in zip(summaries, factors, strict=True)]


def _times(summary: Summary, factor: int) -> Summary:
    """Convert a summary to a unit of weight that is `factor` times smaller."""
    weights, own, totals = summary.weights, summary.label_attribute, summary.label.totals
    if factor == 1 or weights is None or totals is None:
        return summary
    unit = replace(
        weights.unit, exponent=weights.unit.exponent + _digits(factor, weights.unit.base)
    )
    return replace(
        summary,
        attributes={n: replace(a, joint=a.joint * factor) for n, a in summary.attributes.items()},
        label_attribute=None if own is None else replace(own, joint=own.joint * factor),
        label=replace(summary.label, totals=totals * factor),
        pairs=_pairs_times(summary.pairs, factor),
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


def _pairs_times(pairs: PairCounts, factor: int) -> PairCounts:
    same = PartOfPairs(pairs, [np.arange(size) for size in pairs.sizes], np.arange(pairs.classes))
    return added_pairs([same], pairs.sizes, pairs.classes, factor)
