from __future__ import annotations

import numpy as np
import pyarrow as pa
from anonymizers_support import encoded, tables
from hypothesis import given
from hypothesis import strategies as st

from aegis.anonymizers import AttributeKind, RecordAttribute, Records
from aegis.records.members import k_member


def cost(attribute: RecordAttribute, codes: list[int]) -> float:
    """Range over range, or height of the lowest common ancestor over that of the tree."""
    if attribute.kind is AttributeKind.CATEGORICAL:
        levels = attribute.tree.levels[codes]
        alike = [len(set(levels[:, h])) == 1 for h in range(levels.shape[1])]
        return alike.index(True) / attribute.tree.height
    places = [float(attribute.positions[code]) for code in codes]
    return min(max(places) - min(places), 1.0)


def extent(records: Records, members: list[int]) -> float:
    return sum(cost(a, [int(a.codes[member]) for member in members]) for a in records.attributes)


def slow_k_member(records: Records, k: int, start: int, distinct: int) -> list[int]:
    """k-member of Byun et al. on lists of records."""
    left = list(range(len(records)))
    labels = [-1] * len(records)
    clusters: list[list[int]] = []
    seed = start

    def diverse(members: list[int]) -> bool:
        return all(len(set(a.codes[members].tolist())) >= distinct for a in records.sensitive)

    while len(left) >= k:
        seed = max(left, key=lambda r: (extent(records, [seed, r]), -r))
        members = [seed]
        left.remove(seed)
        while (len(members) < k or not diverse(members)) and left:
            best = min(left, key=lambda r: (extent(records, [*members, r]), r))
            members.append(best)
            left.remove(best)
        if len(members) < k or not diverse(members):
            left = sorted([*left, *members])
            break
        clusters.append(members)
    if not clusters:
        return [0] * len(records)
    for record in sorted(left):
        growth = [
            (len(c) + 1) * extent(records, [*c, record]) - len(c) * extent(records, c)
            for c in clusters
        ]
        clusters[int(np.argmin(growth))].append(record)
    for number, members in enumerate(clusters):
        for member in members:
            labels[member] = number
    return labels


@given(
    table=tables(least=4, most=20),
    k=st.integers(2, 5),
    distinct=st.integers(1, 3),
    seed=st.integers(0, 99),
)
def test_k_member_equals_its_definition(table, k, distinct, seed):
    records = encoded(table)
    held = len(set(table.column("illness").to_pylist()))
    if len(records) < k or held < distinct:
        return
    fast = k_member(records, k, np.random.default_rng(seed), distinct=distinct)
    # The random record is known by its values, hence by the first record that holds them.
    first, of = records.combinations
    start = int(first[of[np.random.default_rng(seed).integers(len(records))]])
    assert fast.tolist() == slow_k_member(records, k, start, distinct)


def test_clusters_grow_until_they_are_diverse():
    table = pa.table({"age": [1, 2, 3, 10, 11, 12], "illness": ["a", "a", "b", "a", "a", "b"]})
    roles = {"age": "quasi-identifier", "illness": "sensitive"}
    from aegis.anonymizers import encode

    records = encode(table, roles)
    plain = k_member(records, 2, np.random.default_rng(0))
    diverse = k_member(records, 2, np.random.default_rng(0), distinct=2)
    assert sorted(np.bincount(plain).tolist()) == [2, 2, 2]
    assert sorted(np.bincount(diverse).tolist()) == [3, 3]
