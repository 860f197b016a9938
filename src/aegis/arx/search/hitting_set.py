"""A search that lists configurations by their loss and excludes those that the rule forbids.

Where nothing in a large space is refused by coarse corners, boxes are bounded no better than their finest masks,
and halving them closes no gap. But one configuration that the rule refuses settles all that refine it, and there
are few configurations whose masks alone cost less than the best one found. So these are listed, without what
refines a refused one: a sample of them as long as they are too many. The first one of the list that is not decided is
taken, and made coarser as long as the rule refuses it or the rows that it suppresses cost too much: all that refine
what that ends at are decided together. It is made coarser where that covers most of the list for what classes grow.

This is the search for a smallest hitting set of what is learned on the way (Moreno-Centeno and Karp, The implicit
hitting set approach, Operations Research 61, 2013), with an explicit list in place of an integer programme.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt

from aegis.advisor.search.branch import BranchAndBound
from aegis.advisor.search.cells import RuleCells
from aegis.advisor.search.clock import Clock
from aegis.advisor.search.feasibility import InMemory
from aegis.advisor.search.objective import Objective
from aegis.advisor.search.problem import Problem, Variable, members
from aegis.arx.losses.separable import Separable
from aegis.arx.search.class_counter import Node, Tally
from aegis.arx.search.listing import HALF, Chosen, Listing, OpenList, halves
from aegis.arx.search.walk import Walk
from aegis.interrupts import check
from aegis.progress import Step

Floats = npt.NDArray[np.float64]
Coarsening = tuple[float, int, int]
"""What a step to a coarser candidate covers for what it costs, the variable, the candidate."""

_SMALL = 10**6
"""Combinations up to which boxes prove more in less time."""
_STAGES = (0.6, 0.8, 0.9, 0.95, 0.99, 1.0)
"""Shares of the best loss that are proven one after the other."""
_TOLERANCE = 1e-12
_LEFT = 0.05
"""Share of a sample at which all that is left is listed again."""
_SHARES = 25
"""Configurations after which it is counted again how much a candidate covers."""
_SORTED = 64
"""Configurations after which a short list is sorted again."""
_SHORT = 1 << 17
_NOISE = 0.5
"""How far the worth of a step is varied, so that what is learned differs."""
_FIRST_STEPS, _STEPS = 500, 1
"""Steps of a walk for better configurations at first, and with each one that is decided."""
_RECENT = 0.1
"""Weight of the last configuration in where the next one is expected to end."""
_BITS = 1e-3
"""Entropy that keeps steps that cost nothing apart, in nats."""


def pays(problem: Problem, feasibility: InMemory) -> bool:
    """Return whether listing the space pays: only class sizes decide, and the space is large,
    but not too large.
    """
    domains = [range(len(v.candidates)) for v in problem.variables]
    if not feasibility.by_sizes or math.prod(map(len, domains)) <= _SMALL:
        return False
    middle = halves(domains)
    return max(math.prod(map(len, part)) for part in (domains[:middle], domains[middle:])) <= HALF


class Sieve(BranchAndBound):
    """One search by listing; parameters as for `BranchAndBound`.

    Notes
    -----
    Until as many configurations are found as are asked for, boxes are split.
    """

    def __init__(
        self,
        problem: Problem,
        objective: Objective,
        feasibility: InMemory,
        separable: Separable,
        *,
        top: int,
        clock: Clock,
        step: Step,
    ) -> None:
        super().__init__(problem, objective, feasibility, top=top, clock=clock, step=step)
        cells = feasibility.cells
        self._room = feasibility.room
        self._in_memory = feasibility
        self._separable = separable
        self._tally = Tally(problem, cells, feasibility.plan.rule.minimum_size)
        self._lost = separable.over(cells)
        self._entropies = [_entropies(v, cells) for v in problem.variables]
        self._random = np.random.default_rng(0)
        self._refused: list[Node] = []
        self._charged: list[tuple[Node, list[Floats]]] = []
        self._refines = [_refines(v) if v.quasi else None for v in problem.variables]
        self._typical = self._entropy(tuple(int(e.argmin()) for e in self._entropies))
        self._share = 1.0

    def _loop(self) -> None:
        if len(self.found.best) < self.top:
            super()._loop()
            return
        if not self._open():
            return
        box = self._heap[0][3]
        self._heap.clear()
        self._at_work = self.objective.upper(box)
        value, start = self.found.best[0]
        node = tuple(domain.bit_length() - 1 for domain in start)
        cost = self._separable.sum_of(-value)
        walk = Walk(node, cost, self._separable.least, self._cost)
        walk.go(_FIRST_STEPS)
        inside = [np.full(len(least), math.inf) for least in self._separable.least]
        for figures, least, domain in zip(inside, self._separable.least, box, strict=True):
            figures[members(domain)] = least[members(domain)]
        listing = Listing(inside, self._refines)
        for self._share in _STAGES:
            while not self._sift(listing, walk):
                pass
            self._prove(self._limit())
        self._at_work = -math.inf

    def _limit(self) -> float:
        """Return the sum over attributes from which a configuration is of no interest."""
        loss = -self._threshold()
        return self._separable.sum_of(min(loss, loss * self._share))

    def _prove(self, figure: float) -> None:
        """Take note that whatever is left has at least this sum over attributes."""
        self._at_work = min(self._at_work, -self._separable.total(min(figure, self._limit())))

    def _sift(self, listing: Listing, walk: Walk) -> bool:
        """Decide what is left below the limit, or most of a sample of it; return whether it was all."""
        known = len(self._refused)
        left = listing.left(self._refused, self._limit(), self._random, self._go_on)
        self._prove(left.least)
        window = self._opened(left.chosen, left.sums, known)
        few = 0 if left.whole else int(_LEFT * window.size) + self.top
        if left.whole or window.left() > few:
            self._decide(window, walk, few, proves=left.whole)
            return left.whole
        # What suppressed rows cost has decided nearly all of it: a sample teaches little more.
        for chosen, sums in listing.parts(self._refused[:known], self._limit()):
            self._decide(self._opened(chosen, sums, known), walk, 0, proves=False)
        return True

    def _opened(self, chosen: Chosen, sums: Floats, known: int) -> OpenList:
        """Return a list, with what was learned: all but the first `known` of what is refused."""
        window = OpenList(chosen, sums, self._refines)
        for node in self._refused[known:]:
            window.strike(window.refining(node))
        for number, (node, parts) in enumerate(self._charged):
            if number % _SHARES == 0:
                self._go_on()
                if 2 * window.left() < window.size:
                    window.sort(self._limit())
            window.raise_to(window.refining(node), parts, self._limit())
        window.sort(self._limit())
        return window

    def _decide(self, window: OpenList, walk: Walk, few: int, *, proves: bool) -> None:
        """Decide the configurations of a list but for a few; it `proves` what each costs where all are listed."""
        steps: list[dict[int, list[Coarsening]]] = []
        for number, place in enumerate(_undecided(window)):
            check()
            self._go_on()
            self.found.nodes += 1
            walk.go(_STEPS)
            if proves:
                self._prove(window.least(place))
            if number % _SHARES == 0:
                if window.left() <= few:
                    return
                steps = self._steps(window)
                self._show()
            node = tuple(window.chosen[place].tolist())
            self._learn(window, place, node, steps)
            halved = number % _SHARES == 0 and 2 * window.left() < window.size
            if halved or (number % _SORTED == 0 and window.size < _SHORT):
                window.sort(self._limit())

    def _take(self, node: Node) -> None:
        """Record a configuration that may be among the best, and look around it if it is."""
        box = tuple(1 << candidate for candidate in node)
        before = self._threshold()
        self._keep(box)
        if self._threshold() > before:
            self._to_the_top(box)

    def _learn(
        self,
        window: OpenList,
        place: int,
        node: Node,
        steps: Sequence[dict[int, list[Coarsening]]],
    ) -> None:
        """Decide a configuration, and where that settles it all that a coarser one settles with it."""
        learned = self._coarsened(node, steps)
        if learned is None:
            window.strike_one(place)
            return
        outer, parts = learned
        within = window.refining(outer)
        if parts is None:
            self._refused.append(outer)
            window.strike(within)
        else:
            self._charged.append((outer, parts))
            window.raise_to(within, parts, self._limit())

    def _priced(self, node: Node) -> list[Floats] | None:
        """Return what each candidate costs where these rows are lost; None if they are too many."""
        self.clock.check()
        self._in_memory.checked += 1
        lost = self._tally.lost(node, self._room)
        if lost is None:
            return None
        parts = self._lost.parts(lost)
        if _sum(parts, node) < self._separable.sum_of(-self._threshold()):
            self._take(node)
        return parts

    def _cost(self, node: Node) -> float:
        """Return the sum over attributes of a configuration; infinity where it is not admissible."""
        parts = self._priced(node)
        return math.inf if parts is None else _sum(parts, node)

    def _settled(self, node: Node, outer: Node) -> tuple[bool, list[Floats] | None]:
        """Return whether a coarser configuration settles one, and what is left of it to pay."""
        parts = self._priced(outer)
        return parts is None or _sum(parts, node) >= self._limit(), parts

    def _coarsened(
        self, node: Node, steps: Sequence[dict[int, list[Coarsening]]]
    ) -> tuple[Node, list[Floats] | None] | None:
        """Return the coarsest configuration on a way that settles its first one, and what that leaves to pay.

        None if nothing settles it but that it is among the best. The search begins where the last ones ended.
        """
        way = self._way(node, steps)
        after = [_after(node, way[:count]) for count in range(len(way) + 1)]
        known = [self._entropy(each) for each in after]
        parts: list[Floats] | None = None
        low, high = -1, len(way)
        place, stride = sum(entropy > self._typical for entropy in known), 1
        while low < high:
            middle = min(max(place, low + 1), high)
            settles, some = self._settled(node, after[middle])
            if settles:
                low, parts = middle, some
                place = middle + stride
            else:
                high = middle - 1
                place = middle - stride
            stride *= 2
            if low >= 0 and high < len(way):
                place = (low + high + 1) // 2
        if low < 0:
            return None
        self._typical += _RECENT * (known[low] - self._typical)
        return after[low], parts

    def _entropy(self, node: Node) -> float:
        return sum(float(e[c]) for e, c in zip(self._entropies, node, strict=True))

    def _way(self, node: Node, steps: Sequence[dict[int, list[Coarsening]]]) -> list[Coarsening]:
        """Return steps from a configuration to the coarsest ones, those of the most worth first."""
        noise = 1.0 + _NOISE * self._random.random(len(node))
        way = [
            (worth * float(noise[index]), index, candidate)
            for index, start in enumerate(node)
            for worth, _, candidate in steps[index].get(start, ())
        ]
        # Stable, and worth falls along an attribute: its steps stay in their order.
        return sorted(way, key=lambda step: -step[0])

    def _steps(self, window: OpenList) -> list[dict[int, list[Coarsening]]]:
        """Return per variable and candidate the steps from there to coarser ones, of falling worth."""
        steps = []
        pairs = zip(self.problem.variables, window.shares(), self._entropies, strict=True)
        for index, (variable, shares, entropies) in enumerate(pairs):
            logs = np.log(np.maximum(shares, 1e-9))
            steps.append(
                {
                    start: list(_ascent(variable, index, start, logs, entropies))
                    for start in range(len(logs))
                }
            )
        return steps

    def _show(self) -> None:
        best = self.objective.sign * self.found.best[0][0]
        self.step.note(
            f"best {best:.6g}, bound {self.objective.sign * self._at_work:.6g}, "
            f"{self.found.nodes:,} nodes"
        )


def _undecided(window: OpenList) -> Iterator[int]:
    """Yield the place of the first configuration that is not decided, until all are."""
    while (place := window.first()) is not None:
        yield place


def _ascent(
    variable: Variable, index: int, start: int, logs: Floats, entropies: Floats
) -> Iterator[Coarsening]:
    """Yield steps from a candidate to coarser ones, each the one that covers most for what it costs."""
    current = start
    last = math.inf
    while coarser := members(variable.coarser[current] & ~variable.finer[current]):
        ratios = [
            (
                float(
                    (logs[c] - logs[current] + _BITS) / (entropies[current] - entropies[c] + _BITS)
                ),
                -c,
            )
            for c in coarser
        ]
        worth, place = max(ratios)
        last = min(last, worth)
        yield last, index, -place
        current = -place


def _after(node: Node, steps: Sequence[Coarsening]) -> Node:
    """Return the configuration after some steps."""
    changed = list(node)
    for _, index, candidate in steps:
        changed[index] = candidate
    return tuple(changed)


def _sum(parts: Sequence[Floats], node: Node) -> float:
    return math.fsum(part[candidate] for part, candidate in zip(parts, node, strict=True))


def _refines(variable: Variable) -> npt.NDArray[np.bool_]:
    """Return whether a candidate (row) is at least as fine as another (column)."""
    count = len(variable.candidates)
    table = np.zeros((count, count), dtype=np.bool_)
    for other in range(count):
        table[members(variable.finer[other]), other] = True
    return table


def _entropies(variable: Variable, cells: RuleCells) -> Floats:
    """Return the entropy of the groups of each candidate over rows, in nats, shape (n,)."""
    entropies = np.zeros(len(variable.candidates))
    if not variable.quasi:
        return entropies
    for place, candidate in enumerate(variable.candidates):
        rows = np.bincount(cells.code(variable.name, candidate.groups), weights=cells.counts)
        shares = rows[rows > 0] / rows.sum()
        entropies[place] = -(shares * np.log(shares)).sum()
    return entropies
