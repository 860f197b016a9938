from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pytest
from anonymizers_support import all_quasi, blocks, encoded, numeric_table, tables
from hypothesis import given
from hypothesis import strategies as st

from aegis.anonymizers import ANONYMIZERS, Records, encode
from aegis.records.microaggregation import mdav, smallest, v_mdav
from aegis.records.space import Space

MDAV_ORACLES = {
    "Tarragona": (16.9326, 19.5460, 22.4619, 33.1929),
    "Census": (5.6922, 7.4947, 9.0884, 14.1559),
    "EIA": (0.4829, 0.6713, 1.6667, 3.8397),
}
V_MDAV_ORACLES = {
    "Tarragona": (16.9630, 19.6940, 22.8778, 33.2527),
    "Census": (5.6619, 7.5140, 9.0070, 14.0730),
}
SIZES = (3, 4, 5, 10)


def reference_file(folder: Path, name: str) -> Records:
    files = {"Tarragona": "Tarragona.csv", "Census": "CASCrefmicrodata.csv", "EIA": "EIA.csv"}
    table = pyarrow.csv.read_csv(folder / "microaggregation" / files[name])
    if name == "EIA":
        table = table.select(["UTILITYID", *table.column_names[5:]])
    return encode(table, all_quasi(table))


@pytest.mark.parametrize("name", MDAV_ORACLES)
def test_mdav_reaches_the_published_sse(shared_data, name):
    records = reference_file(shared_data, name)
    method = ANONYMIZERS.get("mdav")
    found = [100 * method.group(records, method.configure(k=k)).loss.scaled for k in SIZES]
    assert found == pytest.approx(MDAV_ORACLES[name], abs=5e-5)


@pytest.mark.parametrize("name", V_MDAV_ORACLES)
def test_v_mdav_reaches_the_published_sse(shared_data, name):
    records = reference_file(shared_data, name)
    method = ANONYMIZERS.get("v-mdav")
    found = [100 * method.group(records, method.configure(k=k)).loss.scaled for k in SIZES]
    assert found == pytest.approx(V_MDAV_ORACLES[name], abs=5e-5)


def slow_mdav(space: Space, k: int) -> np.ndarray:
    """MDAV-generic, word for word, on lists of records."""
    left = list(range(len(space)))
    labels = np.zeros(len(space), dtype=np.int64)
    cluster = 0

    def distance(record: int) -> list[float]:
        return [float(d) for d in space.take(np.array(left)).distances(space.at(record))]

    def farthest(distances: list[float]) -> int:
        return left[max(range(len(left)), key=lambda i: (distances[i], -i))]

    def take(record: int) -> None:
        nonlocal cluster
        distances = dict(zip(left, distance(record), strict=True))
        others = sorted((r for r in left if r != record), key=lambda r: (distances[r], r))
        for member in [record, *others[: k - 1]]:
            labels[member] = cluster
            left.remove(member)
        cluster += 1

    def extreme() -> int:
        inside = space.take(np.array(left))
        return farthest([float(d) for d in inside.distances(inside.centre())])

    while len(left) >= 3 * k:
        r = extreme()
        from_r = dict(enumerate(space.distances(space.at(r))))
        take(r)
        take(farthest([float(from_r[i]) for i in left]))
    if len(left) >= 2 * k:
        take(extreme())
    labels[left] = cluster
    return labels


@given(table=tables(least=4, most=40), k=st.integers(2, 6))
def test_mdav_equals_its_definition(table, k):
    space = Space.of(encoded(table))
    if len(space) >= k:
        assert np.array_equal(mdav(space, k), slow_mdav(space, k))


@given(table=tables(least=4, most=40), k=st.integers(2, 6))
def test_mdav_clusters_hold_k_to_2k_minus_1_records(table, k):
    space = Space.of(encoded(table))
    if len(space) >= k:
        sizes = np.bincount(mdav(space, k))
        assert sizes.min() >= k
        assert sizes.max() <= 2 * k - 1


def slow_v_mdav(points: np.ndarray, k: int, gamma: float) -> np.ndarray:
    """V-MDAV on points of shape (N, P) with a full distance matrix."""
    between = np.sqrt(((points[:, None] - points[None]) ** 2).sum(axis=2))
    from_centre = ((points - points.mean(axis=0)) ** 2).sum(axis=1)
    labels = np.full(len(points), -1)
    cluster = 0
    while (labels < 0).sum() >= k:
        left = np.flatnonzero(labels < 0)
        seed = left[np.argmax(from_centre[left])]
        members = left[np.argsort(between[seed, left], kind="stable")[:k]]
        labels[members] = cluster
        while (labels == cluster).sum() < 2 * k - 1 and (labels < 0).sum() > 1:
            left = np.flatnonzero(labels < 0)
            reach = between[np.ix_(labels == cluster, left)].min(axis=0)
            nearest = left[np.argmin(reach)]
            others = left[left != nearest]
            if reach.min() >= gamma * between[nearest, others].min():
                break
            labels[nearest] = cluster
        cluster += 1
    centres = np.array([points[labels == c].mean(axis=0) for c in range(cluster)])
    for record in np.flatnonzero(labels < 0):
        labels[record] = np.argmin(((centres - points[record]) ** 2).sum(axis=1))
    return labels


@given(
    rows=st.integers(6, 60),
    k=st.integers(2, 5),
    gamma=st.sampled_from([0.0, 0.2, 1.1, 3.0]),
    seed=st.integers(0, 10**6),
)
def test_v_mdav_equals_its_definition(rows, k, gamma, seed):
    table = numeric_table(np.random.default_rng(seed), rows, 2)
    space = Space.of(encode(table, all_quasi(table)))
    fast = v_mdav(space, k, gamma)
    assert blocks(fast) == blocks(slow_v_mdav(space.points.T, k, gamma))


def test_v_mdav_with_gamma_0_never_extends():
    table = numeric_table(np.random.default_rng(1), 30, 2)
    labels = v_mdav(Space.of(encode(table, all_quasi(table))), 5, 0.0)
    assert np.bincount(labels).tolist() == [5] * 6


@given(values=st.lists(st.integers(0, 4), min_size=1, max_size=20), data=st.data())
def test_the_smallest_are_taken_with_ties_to_the_first(values, data):
    count = data.draw(st.integers(1, len(values)))
    found = smallest(np.array(values, dtype=float), count)
    assert found.tolist() == sorted(np.argsort(values, kind="stable")[:count].tolist())


def test_distance_adds_numbers_ranks_and_categories():
    table = pa.table(
        {
            "age": [20, 40, None],
            "place": ["x", "y", "x"],
            "grade": ["low", "top", "low"],
            "job": ["nurse", "nurse", None],
        }
    )
    space = Space.of(encoded(table, all_quasi(table)))
    distances = space.distances(space.at(0))
    # z-scores of 20 and 40 are -1 and 1; a missing number is at 0 and one unit aside.
    assert distances == pytest.approx([0.0, 4 + 1 + 1 + 0, 1 + 1 + 0 + 0 + 1])
