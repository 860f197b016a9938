"""On real attributes: what all evidence and smoothness add to one mask."""

from __future__ import annotations

import csv
from collections import Counter

import numpy as np
import pytest

from aegis.papers.reconstruction import Evidence, MaskedJoint, reconstruct
from aegis.papers.reconstruction.evidence import aggregate


def joint_table(path, delimiter, column, label, *, header):
    with path.open(newline="", encoding="utf-8") as file:
        rows = [row for row in csv.reader(file, delimiter=delimiter) if row]
    if header:
        names, rows = rows[0], rows[1:]
        column, label = names.index(column), names.index(label)
    pairs = Counter((float(row[column]), row[label].strip()) for row in rows)
    values = sorted({value for value, _ in pairs})
    labels = sorted({name for _, name in pairs})
    table = np.array([[pairs[value, name] for name in labels] for value in values], dtype=float)
    return np.array(values), table


def candidates(values, table):
    share = (values - values[0]) / (values[-1] - values[0])
    cumulative = table.sum(axis=1).cumsum() / table.sum()
    codes = [np.minimum((share * parts).astype(int), parts - 1) for parts in (2, 3, 5, 8)]
    codes += [np.minimum((cumulative * parts - 1e-9).astype(int), parts - 1) for parts in (4, 7)]
    masks = []
    for number, grouping in enumerate(codes):
        groups, dense = np.unique(grouping, return_inverse=True)
        masks.append(MaskedJoint(f"mask {number}", dense, aggregate(dense, table, len(groups))))
    return masks


@pytest.mark.parametrize(
    ("file", "delimiter", "columns", "label", "header", "known"),
    [
        ("adult/adult.data", ",", [4, 12], 14, False, True),
        ("hotel/hotel_interactions.csv", ",", ["srch_adults_cnt", "cnt"], "is_booking", True, True),
        ("german_credit/german.data", " ", [1, 12], 20, False, True),
        ("german_credit/german.data", " ", [1, 12], 20, False, False),
    ],
)
def test_more_evidence_and_smoothness_beat_one_mask(
    shared_data, file, delimiter, columns, label, header, known
):
    one, every, smooth_one, smooth_every = [], [], [], []
    for column in columns:
        values, table = joint_table(shared_data / file, delimiter, column, label, header=header)
        masks = candidates(values, table)
        ordered = np.ones(len(values), dtype=bool)
        evidence = Evidence(
            *table.shape, masks, table.sum(axis=1) if known else None, ordered=ordered
        )
        every.append(reconstruct(evidence, truth=table).total_variation)
        smooth_every.append(reconstruct(evidence, "smooth", truth=table).total_variation)
        for mask in masks:
            alone = evidence.only(mask.name)
            one.append(reconstruct(alone, "closed-form", truth=table).total_variation)
            if known:
                # Without the histogram, heaped values (credit durations in whole half years) are
                # out of reach of any smooth curve that sees one mask only.
                smooth_one.append(reconstruct(alone, "smooth", truth=table).total_variation)
    assert np.median(every) < np.median(one)
    assert np.median(smooth_every) < np.median(one)
    assert not known or np.median(smooth_one) < np.median(one)
