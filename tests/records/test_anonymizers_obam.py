from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pytest
from anonymizers_support import class_counts, encoded, exact_partition, possible_blocks, tables
from hypothesis import given
from hypothesis import strategies as st

from aegis.anonymizers import ANONYMIZERS, Records, encode
from aegis.errors import PolicyError
from aegis.records.obam import search
from aegis.records.obam.method import ObamOptions, front
from aegis.records.obam.search import Exchange, ObamObjective, descend, start
from aegis.records.obam.state import Instance, State, entropy


def test_entropies_of_table_ii():
    counts = np.array([[2, 1, 0], [3, 0, 0], [1, 1, 1]])
    assert entropy(counts).tolist() == pytest.approx([0.9183, 0.0, 1.5850], abs=5e-5)


def random_state(records: Records, clusters: int, seed: int, *, scaled: bool = True) -> State:
    instance = Instance.build(records, scaled=scaled)
    labels = np.arange(len(records)) % clusters
    return State(instance, np.random.default_rng(seed).permutation(labels), clusters)


def slow_loss(state: State) -> float:
    """Within-cluster squares and mismatches, record by record."""
    total = 0.0
    for cluster in range(state.clusters):
        inside = state.of == cluster
        points = state.instance.points[inside]
        total += float(((points - points.mean(axis=0)) ** 2).sum()) if len(points) else 0.0
        for codes in state.instance.nominal[inside].T:
            total += len(codes) - (np.bincount(codes).max() if len(codes) else 0)
    return total


@given(table=tables(least=6), clusters=st.integers(2, 3), seed=st.integers(0, 99))
def test_the_loss_of_a_state_is_that_of_its_records(table, clusters, seed):
    state = random_state(encoded(table), clusters, seed)
    assert state.loss == pytest.approx(slow_loss(state), abs=1e-9)


@given(table=tables(least=6), clusters=st.integers(2, 3), seed=st.integers(0, 99))
def test_every_change_is_exact(table, clusters, seed):
    state = random_state(encoded(table), clusters, seed)
    random = np.random.default_rng(seed)
    for _ in range(6):
        record = int(random.integers(len(state.of)))
        others = np.flatnonzero(state.of != state.of[record])
        before = slow_loss(state)
        if random.random() < 0.5 and state.sizes[state.of[record]] > 1:
            target = int(random.choice(np.delete(np.arange(clusters), state.of[record])))
            exchange = Exchange(record, target, None, state.move_change(record, target))
            joining = state.costs_of_joining(target, np.array([record]))[0]
            removing = state.gains_of_removing(np.array([record]))[0]
            adding = state.costs_of_adding(np.array([state.instance.of[record]]))[0, target]
            assert joining == pytest.approx(adding, abs=1e-9)
            assert joining - removing == pytest.approx(exchange.change, abs=1e-9)
        else:
            place = int(random.integers(len(others)))
            other = int(others[place])
            change = float(state.swap_changes(record, others)[place])
            exchange = Exchange(record, int(state.of[other]), other, change)
        expected = exchange.diversity(state)
        exchange.carry_out(state)
        assert slow_loss(state) - before == pytest.approx(exchange.change, abs=1e-9)
        assert state.loss == pytest.approx(slow_loss(state), abs=1e-9)
        assert state.diversity() == pytest.approx(expected, abs=1e-12)
        fresh = state.copy()
        assert np.array_equal(fresh.sizes, state.sizes)
        assert np.allclose(fresh.sums, state.sums)
        for kept, counted in zip(state.tops, fresh.tops, strict=True):
            assert np.array_equal(kept, counted)
        for kept, counted in zip(state.peaks, fresh.peaks, strict=True):
            assert np.array_equal(kept, counted)


@given(table=tables(least=6), clusters=st.integers(2, 3), seed=st.integers(0, 99))
def test_best_moves_are_the_best(table, clusters, seed):
    state = random_state(encoded(table), clusters, seed)
    records, targets, changes = state.best_moves(state.sizes > 1)
    for record, target, change in zip(records, targets, changes, strict=True):
        elsewhere = [c for c in range(clusters) if c != state.of[record]]
        exact = [state.move_change(int(record), c) for c in elsewhere]
        assert change == pytest.approx(min(exact), abs=1e-9)
        assert state.move_change(int(record), int(target)) == pytest.approx(change, abs=1e-9)


@given(table=tables(least=6), k=st.integers(1, 4), seed=st.integers(0, 99), data=st.data())
def test_starts_have_clusters_of_at_least_k(table, k, seed, data):
    clusters = data.draw(st.integers(1, table.num_rows // k))
    instance = Instance.build(encoded(table), scaled=True)
    state = start(instance, clusters, k, np.random.default_rng(seed))
    assert state.sizes.min() >= k
    assert len(state.sizes) == clusters
    descend(state, k, ObamObjective(instance.total, 0.0, 0.0, ()))
    assert state.sizes.min() >= k


@pytest.mark.parametrize("weight", [0.0, 0.5])
@pytest.mark.parametrize("seed", range(4))
def test_equal_records_are_compared_once_until_a_swap(seed, weight, monkeypatch):
    random = np.random.default_rng(seed)
    table = pa.table({n: random.choice(list(n), 90) for n in ("xyz", "uvw", "abc")})
    roles = {"xyz": "quasi-identifier", "uvw": "quasi-identifier", "abc": "sensitive"}
    compare, swap = State.swap_changes, search._best_swap
    ends, compared = [], []
    for forgets in (False, True):
        state, asked = random_state(encode(table, roles), 3, seed), []
        with monkeypatch.context() as patch:
            patch.setattr(State, "swap_changes", lambda *a, to=asked: to.append(a) or compare(*a))
            if forgets:
                patch.setattr(search, "_best_swap", lambda *given: swap(*given[:-1], set()))
            objective = ObamObjective(state.instance.total, 0.0, weight, (np.log2(3),))
            passes = []
            while search._swaps(state, objective):
                passes.append(state.of.tolist())
        ends.append(passes)
        compared.append(len(asked))
    assert ends[0] == ends[1] != []
    assert compared[0] < 0.6 * compared[1]


def tiny(seed: int, rows: int) -> Records:
    random = np.random.default_rng(seed)
    table = pa.table(
        {
            "age": random.integers(18, 90, rows),
            "place": random.choice(list("xyz"), rows),
            "illness": random.choice(list("abc"), rows),
        }
    )
    roles = dict.fromkeys(("age", "place"), "quasi-identifier") | {"illness": "sensitive"}
    return encode(table, roles)


def exact_objectives(
    records: Records, clusters: int, k: int, weights: tuple[float, ...]
) -> tuple[float, list[float]]:
    """Least IL, and optima of the weighted sum for each weight.

    Per level of entropy, the cheapest partition that keeps it.
    """
    instance = Instance.build(records, scaled=True)
    rows = len(records)
    losses: dict[frozenset[int], float] = {}
    entropies: dict[frozenset[int], float] = {}
    for block in possible_blocks(rows, clusters, k):
        inside = np.isin(np.arange(rows), list(block))
        points = instance.points[inside]
        losses[block] = float(((points - points.mean(axis=0)) ** 2).sum()) + sum(
            len(codes) - np.bincount(codes).max() for codes in instance.nominal[inside].T
        )
        held = np.bincount(instance.sensitive[inside, 0])
        entropies[block] = round(float(entropy(held)), 12)
    ceiling = np.log2(instance.sensitive_sizes[0])
    level, reached = 0.0, []
    while True:
        allowed = {block: loss for block, loss in losses.items() if entropies[block] >= level}
        solved = exact_partition(allowed, rows, clusters)
        if solved is None:
            break
        least = min(entropies[block] for block in solved[1])
        reached.append((solved[0], least))
        level = least + 1e-9
    return reached[0][0] / instance.total, [
        min(1 - reached[0][0] / loss - weight * least / ceiling for loss, least in reached)
        for weight in weights
    ]


@pytest.mark.parametrize("seed", range(4))
def test_tiny_instances_are_solved_to_the_exact_optimum(seed):
    records = tiny(seed, 12)
    weights = (0.0, 0.1, 1.0)
    method = ANONYMIZERS.get("mo-obam")
    found = [
        method.group(
            records, method.configure(k=3, clusters=3, weight=weight, starts=10), seed=seed
        ).details
        for weight in weights
    ]
    least, optima = exact_objectives(records, 3, 3, weights)
    assert found[0]["information_loss"] == pytest.approx(least, abs=1e-12)
    assert [details["least_information_loss"] for details in found] == pytest.approx([least] * 3)
    assert [details["objective"] for details in found] == pytest.approx(optima, abs=1e-9)


def test_more_diversity_is_bought_with_information():
    records = tiny(7, 60)
    method = ANONYMIZERS.get("mo-obam")
    plain, diverse = (
        method.group(records, method.configure(k=3, clusters=10, weight=weight)).details
        for weight in (0.0, 1.0)
    )
    assert diverse["least_entropy"]["illness"] > plain["least_entropy"]["illness"]
    assert diverse["information_loss"] > plain["information_loss"]


def test_the_front_marks_what_no_other_point_beats():
    records = tiny(3, 40)
    points = front(records, ObamOptions(k=3, starts=2), clusters=(4, 8), weights=(0.0, 0.1, 1.0))
    assert [(p.clusters, p.weight) for p in points] == [
        (c, w) for c in (4, 8) for w in (0.0, 0.1, 1.0)
    ]
    assert any(point.efficient for point in points)
    for point in points:
        beaten = any(
            other.information_loss <= point.information_loss
            and other.entropy >= point.entropy
            and (other.information_loss, -other.entropy) != (point.information_loss, -point.entropy)
            for other in points
        )
        assert point.efficient is not beaten
        assert point.smallest >= 3


def test_the_front_refuses_settings_that_do_not_fit():
    with pytest.raises(PolicyError, match="at most 13 clusters"):
        front(tiny(3, 40), ObamOptions(k=3), clusters=(4, 14))


def test_without_sensitive_attributes_only_loss_counts():
    table = pa.table({"age": [1, 2, 3, 10, 11, 12]})
    records = encode(table, {"age": "quasi-identifier"})
    method = ANONYMIZERS.get("mo-obam")
    grouped = method.group(records, method.configure(k=3, clusters=2))
    assert grouped.groups.of.tolist() == [0, 0, 0, 1, 1, 1]
    assert "No attribute is sensitive" in grouped.notes[0]


def german(folder: Path) -> tuple[pa.Table, dict[str, str]]:
    names = [f"a{i}" for i in range(1, 21)] + ["class"]
    table = pyarrow.csv.read_csv(
        folder / "german_credit" / "german.data",
        read_options=pyarrow.csv.ReadOptions(column_names=names),
        parse_options=pyarrow.csv.ParseOptions(delimiter=" "),
    )
    roles = dict.fromkeys(names, "feature")
    roles |= dict.fromkeys(("a13", "a9", "a17"), "quasi-identifier")
    roles |= dict.fromkeys(("a1", "a6"), "sensitive")
    return table, roles


ADULT = [
    "age",
    "workclass",
    "fnlwgt",
    "education",
    "education-num",
    "marital-status",
    "occupation",
    "relationship",
    "race",
    "sex",
    "capital-gain",
    "capital-loss",
    "hours-per-week",
    "native-country",
    "income",
]
ADULT_QUASI = ("age", "race", "sex", "marital-status")


def adult(folder: Path) -> pa.Table:
    """Train and test part of Adult, the records without a missing value."""
    parts = [
        pyarrow.csv.read_csv(
            folder / "adult" / name,
            read_options=pyarrow.csv.ReadOptions(column_names=ADULT, skip_rows=skipped),
            convert_options=pyarrow.csv.ConvertOptions(
                column_types=dict.fromkeys(ADULT, pa.string())
            ),
        )
        for name, skipped in (("adult.data", 0), ("adult.test", 1))
    ]
    columns = {
        name: [text.strip() for text in pa.concat_tables(parts).column(name).to_pylist()]
        for name in ADULT
    }
    complete = [
        row for row, values in enumerate(zip(*columns.values(), strict=True)) if "?" not in values
    ]
    kept = {name: [columns[name][row] for row in complete] for name in (*ADULT_QUASI, "occupation")}
    return pa.table(kept | {"age": [int(age) for age in kept["age"]]})


def homogeneous(keys: list[object], values: list[object]) -> int:
    """Records in classes that hold one sensitive value."""
    held: dict[object, list[object]] = {}
    for key, value in zip(keys, values, strict=True):
        held.setdefault(key, []).append(value)
    return sum(len(inside) for inside in held.values() if len(set(inside)) == 1)


def test_adult_is_no_worse_than_published(shared_data):
    table = adult(shared_data)
    raw = class_counts(table, ADULT_QUASI)
    sizes = np.array(list(raw.values()))
    assert (table.num_rows, len(sizes)) == (45222, 1900)
    assert at_risk(sizes) == [6506, 4906, 3910]
    occupation = table.column("occupation").to_pylist()
    keys = list(zip(*(table.column(name).to_pylist() for name in ADULT_QUASI), strict=True))
    assert homogeneous(keys, occupation) == 634
    records = encode(
        table, dict.fromkeys(ADULT_QUASI, "quasi-identifier") | {"occupation": "sensitive"}
    )
    method = ANONYMIZERS.get("mo-obam")
    options = method.configure(k=5, clusters=100, weight=1e-4, scaled=False, starts=1)
    grouped = method.group(records, options)
    assert grouped.loss.unscaled <= 0.0116
    assert all(
        found <= published
        for found, published in zip(at_risk(grouped.groups.sizes), [103, 69, 47], strict=True)
    )
    assert homogeneous(grouped.groups.of.tolist(), occupation) <= 3


def at_risk(sizes: np.ndarray) -> list[int]:
    return [int(sizes[1 / sizes > limit].sum()) for limit in (0.05, 0.075, 0.1)]


def test_german_credit_is_no_worse_than_published(shared_data):
    table, roles = german(shared_data)
    raw = np.array(list(class_counts(table, ("a13", "a9", "a17")).values()))
    assert len(raw) == 310
    assert at_risk(raw) == [959, 828, 698]
    method = ANONYMIZERS.get("mo-obam")
    options = method.configure(k=5, clusters=30, weight=1e-4, scaled=False)
    grouped = method.group(encode(table, roles), options)
    assert grouped.loss.unscaled <= 0.0147
    assert all(
        found <= published
        for found, published in zip(at_risk(grouped.groups.sizes), [148, 63, 29], strict=True)
    )
    assert min(grouped.details["least_entropy"].values()) > 0
