"""The local search of MO-OBAM: it starts from valid clusters and improves them by moves and swaps
of records.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from aegis.anonymizers.records import distinct_rows
from aegis.arrays import Floats, Ints
from aegis.files import SILENT_STEP, Step
from aegis.records.obam.state import BLOCK, Instance, State, entropy

LLOYD_ROUNDS = 25
SWEEPS = 60
ALL_PAIRS = 1_500
"""Largest number of records for which every pair is tried as a swap."""
BALANCED_UP_TO = 200
"""Largest number of records for which the search also starts from clusters of balanced diversity."""
SWAP_TRIES = 1_000
"""In larger tables, the number of records per sweep for which the search tries swaps with records
of their best other cluster.
"""
CHAINS = (1, 4, 12)
"""Lengths of the chains of exchanges with which the search tries to raise the lowest entropy."""
PROPOSALS = 5
MEMBER_KINDS = 24
POOL = 1_500
"""Largest number of distinct records near the least diverse cluster that are tried as partners."""


@dataclass(frozen=True)
class ObamObjective:
    """The objective of Wei et al., which the search minimises: a weighted sum of information loss
    and diversity of sensitive values.

    The objective is (1 - MIN(IL) / IL) - weight * D, where IL is the information loss. D is a sum
    over the sensitive attributes: the entropy of the attribute in the cluster where it is lowest,
    divided by MAX, which is log2 of the attribute's number of values. If MIN(IL) is 0, the first
    term is IL instead.

    Attributes
    ----------
    total
        Information loss if all records form one cluster; IL is divided by this loss.
    least
        MIN(IL), the lowest known IL for this number of clusters and this k.
    weight
        Weight of diversity (lambda in the paper).
    ceilings
        MAX of each sensitive attribute, in bits.
    """

    total: float
    least: float
    weight: float
    ceilings: tuple[float, ...]

    def infidelity(self, loss: Floats | float) -> Floats:
        """Return 1 - MIN(IL) / IL for an information loss; IL itself if MIN(IL) is 0."""
        information_loss = np.asarray(loss) / self.total if self.total > 0 else np.zeros(1)
        if self.least <= 0:
            return information_loss
        return 1.0 - self.least / np.maximum(information_loss, 1e-300)

    def value(self, loss: float, diversity: Sequence[float]) -> float:
        """Return the objective for a loss and the lowest entropy of each sensitive attribute."""
        spread = sum(d / c for d, c in zip(diversity, self.ceilings, strict=True))
        return float(self.infidelity(loss).item()) - self.weight * spread

    @property
    def looks_at_diversity(self) -> bool:
        """Return whether entropies can change the objective."""
        return self.weight > 0 and bool(self.ceilings)


@dataclass(frozen=True)
class Exchange:
    """A move of one record to another cluster, or a swap of two records.

    `record` moves to the cluster `target`, or swaps clusters with the record `other` (None for a
    move). `change` is the exact change of the information loss.
    """

    record: int
    target: int
    other: int | None
    change: float

    def carry_out(self, state: State) -> None:
        """Move or swap the records in `state`."""
        if self.other is None:
            state.move(self.record, self.target, self.change)
        else:
            state.swap(self.record, self.other, self.change)

    def diversity(self, state: State) -> list[float]:
        """Return the lowest entropy of each sensitive attribute after the exchange, in bits."""
        return state.diversity_after(self.record, self.target, self.other)


def improves(state: State, objective: ObamObjective, exchange: Exchange) -> bool:
    """Return whether an exchange lowers the objective by more than a rounding error."""
    margin = 1e-10 * max(objective.total, 1e-300)
    if not objective.looks_at_diversity:
        return exchange.change < -margin
    now = objective.value(state.loss, state.diversity())
    then = objective.value(max(state.loss + exchange.change, 0.0), exchange.diversity(state))
    return then < now - 1e-10


def start(instance: Instance, clusters: int, k: int, random: np.random.Generator) -> State:
    """Return the clusters from which the search starts: k-means from centres that are far apart, then
    filled up to k records each.
    """
    seeds = _seeds(instance, clusters, random)
    of = _nearest(_around(instance, seeds), instance)
    state = State(instance, of, clusters)
    for _ in range(LLOYD_ROUNDS):
        _fill(state, 1)
        of = _nearest(state, instance)
        if np.array_equal(of, state.of):
            break
        state = State(instance, of, clusters)
    _fill(state, k)
    return state.copy()


def balanced(instance: Instance, clusters: int, random: np.random.Generator) -> State:
    """Return random clusters, over which each sensitive value is distributed evenly."""
    shuffled = random.permutation(len(instance))
    order = shuffled[np.lexsort(instance.sensitive[shuffled].T)]
    of = np.empty(len(instance), dtype=np.int64)
    of[order] = np.arange(len(instance)) % clusters
    return State(instance, of, clusters)


def _around(instance: Instance, seeds: Ints) -> State:
    """Return clusters of one record each, the `seeds`, to measure distances to them."""
    part = Instance(
        instance.points[seeds],
        instance.nominal[seeds],
        instance.nominal_sizes,
        instance.sensitive[seeds],
        instance.sensitive_sizes,
        np.arange(len(seeds)),
        np.arange(len(seeds)),
    )
    state = State(part, np.arange(len(seeds)), len(seeds))
    state.instance = instance
    return state


def _seeds(instance: Instance, clusters: int, random: np.random.Generator) -> Ints:
    """Draw the first records of clusters by squared distance to those drawn before (k-means++)."""
    rows = instance.first
    weights = np.bincount(instance.of).astype(np.float64)
    picked = [int(random.choice(len(rows), p=weights / weights.sum()))]
    seed_distances = np.full(len(rows), np.inf)
    while len(picked) < clusters:
        row = rows[picked[-1]]
        distance = np.sum((instance.points[rows] - instance.points[row]) ** 2, axis=1)
        distance += np.sum(instance.nominal[rows] != instance.nominal[row], axis=1)
        seed_distances = np.minimum(seed_distances, distance)
        chances = seed_distances * weights
        total = chances.sum()
        # Once every combination is a seed, more clusters can only share combinations.
        shares = chances / total if total > 0 else weights / weights.sum()
        picked.append(int(random.choice(len(rows), p=shares)))
    return rows[picked]


def _nearest(state: State, instance: Instance) -> Ints:
    """Return the cluster of `state` with the nearest centroid for each record, shape (N,)."""
    count = len(instance.first)
    nearest = np.empty(count, dtype=np.int64)
    step = max(BLOCK // state.clusters, 1)
    for begin in range(0, count, step):
        block = np.arange(begin, min(begin + step, count))
        nearest[block] = np.argmin(state.distances(block), axis=1)
    return nearest[instance.of]


def _fill(state: State, k: int) -> None:
    """Bring every cluster to k records by the moves that raise the information loss least."""
    for cluster in np.argsort(state.sizes, kind="stable"):
        while state.sizes[cluster] < k:
            movable = np.flatnonzero(state.sizes[state.of] > k)
            cost = -state.gains_of_removing(movable)
            if state.sizes[cluster]:
                cost = cost + state.costs_of_joining(int(cluster), movable)
                lacking = int(k - state.sizes[cluster])
            else:
                lacking = 1
            for record in movable[np.argsort(cost, kind="stable")[:lacking]]:
                if state.sizes[state.of[record]] > k:
                    change = state.move_change(int(record), int(cluster))
                    state.move(int(record), int(cluster), change)


def descend(state: State, k: int, objective: ObamObjective) -> bool:
    """Apply moves and swaps that lower the objective; return whether none is left after `SWEEPS`."""
    return any(_moves(state, k, objective) + _swaps(state, objective) == 0 for _ in range(SWEEPS))


def _moves(state: State, k: int, objective: ObamObjective) -> int:
    records, targets, changes = state.best_moves(state.sizes > k)
    margin = 1e-10 * objective.total
    done = 0
    for number in np.argsort(changes, kind="stable"):
        if changes[number] >= -margin:
            break
        record, target = int(records[number]), int(targets[number])
        if state.sizes[state.of[record]] <= k or state.of[record] == target:
            continue
        exchange = Exchange(record, target, None, state.move_change(record, target))
        if improves(state, objective, exchange):
            exchange.carry_out(state)
            done += 1
    return done


def _swaps(state: State, objective: ObamObjective) -> int:
    if state.clusters < 2:
        return 0
    settled: set[tuple[int, int, int]] = set()
    if len(state.instance) <= ALL_PAIRS:
        return sum(
            _best_swap(
                state, record, np.flatnonzero(state.of != state.of[record]), objective, settled
            )
            for record in range(len(state.instance))
        )
    records, targets, changes = state.best_moves(state.sizes > 0)
    # Records that would gain by leaving a cluster that must keep them come first, then those
    # with the least to lose.
    order = np.argsort(changes, kind="stable")[:SWAP_TRIES]
    done = 0
    for number in order:
        record, target = int(records[number]), int(targets[number])
        if state.of[record] != target:
            members = np.flatnonzero(state.of == target)
            done += _best_swap(state, record, members, objective, settled)
    return done


def _best_swap(
    state: State,
    record: int,
    others: Ints,
    objective: ObamObjective,
    settled: set[tuple[int, int, int]],
) -> int:
    """Apply the swap of `record` with one of `others` that lowers the loss most, if it lowers the
    objective; return the number of swaps.

    `settled` has comparisons without gain (combination, cluster, other cluster) until the next swap.
    """
    if not len(others):
        return 0
    comparison = int(state.instance.of[record]), int(state.of[record]), int(state.of[others[0]])
    if comparison in settled:
        return 0
    changes = state.swap_changes(record, others)
    best = int(np.argmin(changes))
    if changes[best] >= -1e-10 * objective.total:
        settled.add(comparison)
        return 0
    other = int(others[best])
    exchange = Exchange(record, int(state.of[other]), other, float(changes[best]))
    if not improves(state, objective, exchange):
        return 0
    exchange.carry_out(state)
    settled.clear()
    return 1


def diversify(state: State, k: int, objective: ObamObjective, steps: int) -> bool:
    """Raise the lowest entropies as long as this lowers the objective; False if all `steps` were used.

    A single exchange often costs more information loss than it gains entropy. So the search tries
    chains, each for the cluster with the lowest entropy, and undoes those that gain nothing.
    """
    if not objective.looks_at_diversity or state.clusters < 2:
        return True
    for _ in range(steps):
        if not any(
            _chain(state, k, objective, number, depth)
            for depth in CHAINS
            for number in range(len(state.sensitive_counts))
        ):
            return True
    return False


def _chain(state: State, k: int, objective: ObamObjective, number: int, depth: int) -> bool:
    """Try a chain of up to `depth` exchanges that raise the lowest entropy of the sensitive
    attribute at `number`. If it lowers the objective, keep it and return True; otherwise undo it.
    """
    before = _value(objective, state)
    done: list[tuple[Exchange, int]] = []
    while len(done) < depth:
        exchange = _lift(state, k, objective, number, depth)
        if exchange is None:
            break
        done.append((exchange, int(state.of[exchange.record])))
        exchange.carry_out(state)
        if _value(objective, state) < before - 1e-10:
            return True
    for exchange, source in reversed(done):
        replace(exchange, target=source, change=-exchange.change).carry_out(state)
    return False


def _lift(
    state: State, k: int, objective: ObamObjective, number: int, depth: int
) -> Exchange | None:
    """Return the best exchange that raises the entropy `number` in its least diverse cluster, or None.

    No lowest entropy may fall. A rise above the `depth`-th lowest of other clusters does not count.
    """
    weakest = int(np.argmin(state.entropies[number]))
    pool = _pool(state, weakest)
    caps = [
        float(np.sort(np.delete(values, weakest))[min(depth, state.clusters - 1) - 1])
        for values in state.entropies
    ]
    proposals: list[tuple[float, Exchange]] = []
    for record in _kinds(state, np.flatnonzero(state.of == weakest))[:MEMBER_KINDS]:
        changes = state.swap_changes(int(record), pool)
        scores = _scores(state, objective, weakest, int(record), pool, changes, caps)
        for best in np.argsort(scores, kind="stable")[:PROPOSALS]:
            other = int(pool[best])
            swap = Exchange(int(record), int(state.of[other]), other, float(changes[best]))
            proposals.append((float(scores[best]), swap))
    donors = pool[state.sizes[state.of[pool]] > k]
    changes = state.costs_of_joining(weakest, donors) - state.gains_of_removing(donors)
    scores = _scores(state, objective, weakest, None, donors, changes, caps)
    for best in np.argsort(scores, kind="stable")[:PROPOSALS]:
        move = Exchange(int(donors[best]), weakest, None, float(changes[best]))
        proposals.append((float(scores[best]), move))
    now = _value(objective, state)
    least = state.diversity()
    for score, exchange in sorted(proposals, key=lambda proposal: proposal[0]):
        if score >= now - 1e-12:
            return None
        reached = exchange.diversity(state)
        if all(new >= old for new, old in zip(reached, least, strict=True)):
            return exchange
    return None


def _pool(state: State, cluster: int) -> Ints:
    """Return records of the clusters nearest to `cluster`, one of each kind, to exchange with it."""
    centres = state.centres()
    distance = np.sum((centres - centres[cluster]) ** 2, axis=1)
    for counts in state.counts:
        modes = np.argmax(counts, axis=1)
        distance += modes != modes[cluster]
    order = np.argsort(distance, kind="stable")
    order = order[order != cluster]
    near = order[: int(np.searchsorted(np.cumsum(state.sizes[order]), 4 * POOL)) + 1]
    flags = np.zeros(state.clusters, dtype=bool)
    flags[near] = True
    return _kinds(state, np.flatnonzero(flags[state.of]))


def _kinds(state: State, records: Ints) -> Ints:
    """Return the first of the records with the same cluster, quasi-identifiers and sensitive
    values.
    """
    columns = [state.of[records], state.instance.of[records], *state.instance.sensitive[records].T]
    return records[distinct_rows(columns)[0]]


def _scores(
    state: State,
    objective: ObamObjective,
    cluster: int,
    leaving: int | None,
    joining: Ints,
    changes: Floats,
    caps: list[float],
) -> Floats:
    """Return the approximate objective after each exchange, shape (M,): a record of `joining` joins
    `cluster`, `leaving` (None: no record) leaves it, and the loss changes by `changes`. The lowest
    entropy is taken to be that of `cluster`, but at most `caps`.
    """
    scores = objective.infidelity(np.maximum(state.loss + changes, 0.0))
    for number, table in enumerate(state.sensitive_counts):
        counts = table[cluster].copy()
        if leaving is not None:
            counts[state.instance.sensitive[leaving, number]] -= 1
        reached = entropy(counts + np.eye(len(counts), dtype=np.int64))
        least = np.minimum(reached, caps[number])[state.instance.sensitive[joining, number]]
        scores = scores - objective.weight * least / objective.ceilings[number]
    return scores


@dataclass(frozen=True, eq=False)
class Solution:
    """The best assignment of records to clusters that the search found for one weight of diversity.

    Attributes
    ----------
    of
        Number of the cluster to which each of the N records belongs, shape (N,).
    information_loss
        Information loss (IL) in the scale of the search, 0..1.
    least
        MIN(IL), the lowest IL found for this number of clusters and this k.
    diversity
        For each sensitive attribute, the least entropy over clusters, in bits.
    value
        Value of the objective.
    converged
        Whether the search from every start ended at clusters that no tried move or swap improves.
    """

    of: Ints
    information_loss: float
    least: float
    diversity: tuple[float, ...]
    value: float
    converged: bool


def optimise(
    instance: Instance,
    clusters: int,
    k: int,
    weights: Sequence[float],
    *,
    starts: int,
    rounds: int,
    random: np.random.Generator,
    step: Step = SILENT_STEP,
) -> list[Solution]:
    """Search for clusters of at least k records from several starts; return the best solution for
    each weight of diversity.

    The search from each start first minimises only the information loss. For a weight above 0, it
    then alternates, at most `rounds` times, between raising the lowest entropies of sensitive
    attributes and minimising the whole objective.

    There are `clusters` clusters and `starts` random starts. Small tables are also searched from
    clusters with evenly distributed sensitive values.
    """
    total = instance.total
    ceilings = tuple(math.log2(size) if size > 1 else 1.0 for size in instance.sensitive_sizes)
    plain = ObamObjective(total, 0.0, 0.0, ceilings)
    states, converged = [], True
    for _ in range(starts):
        state = start(instance, clusters, k, random)
        converged &= descend(state, k, plain)
        states.append(state.copy())
        step.advance()
    least = min(state.loss for state in states) / total if total > 0 else 0.0
    solutions: list[tuple[float, State, bool]] = []
    for weight in weights:
        objective = ObamObjective(total, least, weight, ceilings)
        candidates: list[State] = []
        settled = converged
        origins = list(states)
        if objective.looks_at_diversity and len(instance) <= BALANCED_UP_TO:
            origins += [balanced(instance, clusters, random) for _ in range(starts)]
        for origin in origins:
            state = origin.copy()
            if objective.looks_at_diversity:
                settled &= _alternate(state, k, objective, rounds)
            candidates.append(state.copy())
        step.advance(starts)
        costs = [_value(objective, state) for state in candidates]
        solutions.append((weight, candidates[int(np.argmin(costs))], settled))
    least = min([least, *(s.loss / total for _, s, _ in solutions if total > 0)])
    return [
        _solution(ObamObjective(total, least, weight, ceilings), state, settled)
        for weight, state, settled in solutions
    ]


def _alternate(state: State, k: int, objective: ObamObjective, rounds: int) -> bool:
    for _ in range(rounds):
        before = _value(objective, state)
        raised = diversify(state, k, objective, 20 * state.clusters)
        settled = descend(state, k, objective)
        if _value(objective, state) >= before - 1e-10:
            return raised and settled
    return False


def _value(objective: ObamObjective, state: State) -> float:
    return objective.value(state.loss, state.diversity())


def _solution(objective: ObamObjective, state: State, converged: bool) -> Solution:
    return Solution(
        state.of,
        state.loss / objective.total if objective.total > 0 else 0.0,
        objective.least,
        tuple(state.diversity()),
        _value(objective, state),
        converged,
    )
