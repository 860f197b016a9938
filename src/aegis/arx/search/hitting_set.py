"""A search that lists the configurations with a small loss, and removes those the rule refuses.

In a large space, the rule often accepts the coarsest configuration of every box. Then bounds of
boxes are weak, and splitting boxes does not prove that a configuration is the best. But if the rule
refuses a configuration, it also refuses all refinements of it, that is, all configurations that are
at least as fine in every attribute. And only few configurations have masks that cost less than the
best configuration found. So the search lists these configurations, except refinements of refused
ones. If there are too many, it lists a sample.

The search takes the first open configuration of the list. It makes it coarser as long as the rule
refuses it or its suppressed rows cost too much. Then it removes all refinements of the last such
configuration from the list. Each step changes one mask: the one for which the coarser configuration
covers most of the list, relative to the growth of the classes.

This is the search for a smallest hitting set of the refused configurations (Moreno-Centeno and
Karp, The implicit hitting set approach, Operations Research 61, 2013), with an explicit list
instead of an integer programme.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import count

import numpy as np

from aegis.advisor.search.branch import BranchAndBound, Found, OpenBox
from aegis.advisor.search.corner_classes import RuleCells
from aegis.advisor.search.feasibility import Feasibility, InMemory
from aegis.advisor.search.objective import Objective
from aegis.advisor.search.problem import Box, Clock, MaskVariable, Problem, Variable, members
from aegis.arrays import Flags, Floats
from aegis.arx.losses.separable import ChargedLoss, Separable
from aegis.arx.search.listing import HALF, Chosen, Listing, Node, OpenList, SmallClasses, halves
from aegis.errors import InternalError
from aegis.files import Step, check

Coarsening = tuple[float, int, int]
"""What a step to a coarser candidate covers for what it costs, the variable, the candidate."""

_SMALL = 10**6
"""Combinations up to which boxes prove more in less time."""
_STAGES = (0.6, 0.8, 0.9, 0.95, 0.99, 1.0)
"""Shares of the best loss that are proven one after the other."""
_OPEN_SHARE = 0.05
"""Share of a sample's configurations: if so few are still open, all open ones are listed again."""
_SHARES = 25
"""Configurations after which it is counted again how much a candidate covers."""
_SORTED = 64
"""Configurations after which a short list is sorted again."""
_SHORT = 1 << 17
_NOISE = 0.5
"""How far the worth of a step is varied, so that what is learned differs."""
_RECENT = 0.1
"""Weight of the last configuration in where the next one is expected to end."""
_BITS = 1e-3
"""Entropy that keeps steps that cost nothing apart, in nats."""


def pays(problem: Problem, feasibility: InMemory) -> bool:
    """Return whether it pays to list all configurations and strike what the rule refuses: if the rule
    limits only class sizes, and they are many, but few enough to list.
    """
    domains = [range(len(v.candidates)) for v in problem.variables]
    if not feasibility.by_sizes or math.prod(map(len, domains)) <= _SMALL:
        return False
    middle = halves(domains)
    return max(math.prod(map(len, part)) for part in (domains[:middle], domains[middle:])) <= HALF


class ListingSearch(BranchAndBound):
    """A search that lists the configurations with a small loss, a sum over attributes.

    It first runs branch and bound until it has found `top` configurations. `separable` has the terms
    of the sum. All other parameters are those of `BranchAndBound`.
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
        self._small_classes = SmallClasses(problem, cells, feasibility.plan.rule.minimum_size)
        self._lost = separable.over(cells)
        self._entropies = [_entropies(v, cells) for v in problem.variables]
        self._random = np.random.default_rng(0)
        self._refused: list[Node] = []
        self._priced_nodes: list[tuple[Node, list[Floats]]] = []
        self._refines = [_refines(v) if v.quasi else None for v in problem.variables]
        self._typical = self._entropy(tuple(int(e.argmin()) for e in self._entropies))
        self._share = 1.0

    def _loop(self) -> None:
        if len(self.outcome.best) < self.top:
            super()._loop()
            return
        if not self._open():
            return
        self._at_work = self._heap[0][3]  # before it leaves the heap, should the user interrupt
        heapq.heappop(self._heap)
        box = self._at_work.box
        inside = [np.full(len(least), math.inf) for least in self._separable.least]
        for figures, least, domain in zip(inside, self._separable.least, box, strict=True):
            figures[members(domain)] = least[members(domain)]
        listing = Listing(inside, self._refines)
        for self._share in _STAGES:
            while not self._sift(listing):
                pass
            self._prove(self._limit())
        self._at_work = None

    def _limit(self) -> float:
        """Return the loss, as a sum, below which configurations are checked at this stage. In the last
        stage, one that reaches it cannot be among the best.
        """
        loss = -self._threshold()
        return self._separable.sum_of(min(loss, loss * self._share))

    def _prove(self, figure: float) -> None:
        """Record `figure`, a sum, as a lower bound of all losses that are still to be checked."""
        bound = -self._separable.total(min(figure, self._limit()))
        bound = min(self._remaining(), bound)
        self._at_work = OpenBox(bound, self.problem.root, tight=False)

    def _sift(self, listing: Listing) -> bool:
        """Check the listed configurations whose loss is below the limit. If there are too many,
        check most of a random sample. Return whether all were checked.
        """
        refused_count = len(self._refused)
        leftover = listing.leftover(self._refused, self._limit(), self._random, self._go_on)
        self._prove(leftover.least)
        window = self._opened(leftover.chosen, leftover.sums, refused_count)
        few = 0 if leftover.complete else int(_OPEN_SHARE * window.size) + self.top
        if leftover.complete or window.open_count() > few:
            self._decide(window, few, proves=leftover.complete)
            return leftover.complete
        # What suppressed rows cost has decided nearly all of it: a sample teaches little more.
        for chosen, sums in listing.parts(self._refused[:refused_count], self._limit()):
            self._decide(self._opened(chosen, sums, refused_count), 0, proves=False)
        return True

    def _opened(self, chosen: Chosen, sums: Floats, refused_count: int) -> OpenList:
        """Return the list of those configurations in `chosen` that are not known to be refused, and
        whose lower bounds of the loss (`sums`) are below the limit. `chosen` already leaves out
        what refines the first `refused_count` refused configurations.
        """
        window = OpenList(chosen, sums, self._refines)
        for node in self._refused[refused_count:]:
            window.strike(window.refining(node))
        for number, (node, parts) in enumerate(self._priced_nodes):
            if number % _SHARES == 0:
                self._go_on()
                if 2 * window.open_count() < window.size:
                    window.sort(self._limit())
            window.raise_to(window.refining(node), parts, self._limit())
        window.sort(self._limit())
        return window

    def _decide(self, window: OpenList, few: int, *, proves: bool) -> None:
        """Check the open configurations of a list until at most `few` are left.

        With `proves`, the list has all of them, so its least loss is a lower bound of all losses.
        """
        steps: list[dict[int, list[Coarsening]]] = []
        for number in count():
            index = window.first()
            if index is None:
                return
            check()
            self._go_on()
            self.outcome.nodes += 1
            if proves:
                self._prove(window.least(index))
            if number % _SHARES == 0:
                if window.open_count() <= few:
                    return
                steps = self._steps(window)
                self._report()
            node = tuple(window.chosen[index].tolist())
            self._learn(window, index, node, steps)
            halved = number % _SHARES == 0 and 2 * window.open_count() < window.size
            if halved or (number % _SORTED == 0 and window.size < _SHORT):
                window.sort(self._limit())

    def _take(self, node: Node) -> None:
        """Record a configuration; if it is among the best, try those that differ little from it."""
        box = tuple(1 << candidate for candidate in node)
        before = self._threshold()
        self._keep(box)
        if self._threshold() > before:
            self._to_the_top(box)

    def _learn(
        self,
        window: OpenList,
        index: int,
        node: Node,
        steps: Sequence[dict[int, list[Coarsening]]],
    ) -> None:
        """Check the configuration at `index`, and remove from the list what this rules out. If one
        that is coarser by some `steps` is checked instead and fails, more is ruled out.
        """
        learned = self._coarsened(node, steps)
        if learned is None:
            window.strike_one(index)
            return
        outer, parts = learned
        within = window.refining(outer)
        if parts is None:
            self._refused.append(outer)
            window.strike(within)
        else:
            self._priced_nodes.append((outer, parts))
            window.raise_to(within, parts, self._limit())

    def _priced(self, node: Node) -> list[Floats] | None:
        """Check the configuration `node`; record it if its loss is among the least so far.

        Return None if the rule refuses it, else lower bounds of each candidate's part of the loss,
        given that at least the rows that `node` suppresses are suppressed.
        """
        self.clock.check()
        self._in_memory.count()
        lost = self._small_classes.lost(node, self._room)
        if lost is None:
            return None
        parts = self._lost.parts(lost)
        if _sum(parts, node) < self._separable.sum_of(-self._threshold()):
            self._take(node)
        return parts

    def _coarsened(
        self, node: Node, steps: Sequence[dict[int, list[Coarsening]]]
    ) -> tuple[Node, list[Floats] | None] | None:
        """Look for a coarse configuration, `node` or coarser, whose check shows that `node` is not among
        the best; None if none is found.

        Return it with the bounds of `_priced`; they are None if the rule refuses it.
        """
        way = self._way(node, steps)
        after = [_after(node, way[:count]) for count in range(len(way) + 1)]
        entropies = [self._entropy(each) for each in after]
        parts: list[Floats] | None = None
        low, high = -1, len(way)
        guess, stride = sum(entropy > self._typical for entropy in entropies), 1
        while low < high:
            middle = min(max(guess, low + 1), high)
            some = self._priced(after[middle])
            if some is None or _sum(some, node) >= self._limit():
                low, parts = middle, some
                guess = middle + stride
            else:
                high = middle - 1
                guess = middle - stride
            stride *= 2
            if low >= 0 and high < len(way):
                guess = (low + high + 1) // 2
        if low < 0:
            return None
        self._typical += _RECENT * (entropies[low] - self._typical)
        return after[low], parts

    def _entropy(self, node: Node) -> float:
        return sum(float(e[c]) for e, c in zip(self._entropies, node, strict=True))

    def _way(self, node: Node, steps: Sequence[dict[int, list[Coarsening]]]) -> list[Coarsening]:
        """Return the steps from a configuration to the coarsest one, valuable ones first. Random numbers
        vary their value, so that calls take different ways.
        """
        noise = 1.0 + _NOISE * self._random.random(len(node))
        way = [
            (worth * float(noise[index]), index, candidate)
            for index, start in enumerate(node)
            for worth, _, candidate in steps[index].get(start, ())
        ]
        # Stable, and worth falls along an attribute: its steps stay in their order.
        return sorted(way, key=lambda step: -step[0])

    def _steps(self, window: OpenList) -> list[dict[int, list[Coarsening]]]:
        """Return the steps from each candidate of each attribute to ever coarser ones. A step is
        worth more if more open configurations refine the coarser candidate.
        """
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


def _ascent(
    variable: MaskVariable, index: int, start: int, logs: Floats, entropies: Floats
) -> Iterator[Coarsening]:
    """Yield steps from the candidate `start` to the coarsest one, each to the candidate that covers
    most open configurations relative to the growth of the classes. `logs` has the logarithm of the
    share of open configurations that refine each candidate, and `entropies` the entropy of its
    groups, in nats.
    """
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
        worth, negative_index = max(ratios)
        last = min(last, worth)
        current = -negative_index
        yield last, index, current


def _after(node: Node, steps: Sequence[Coarsening]) -> Node:
    """Return the configuration after the steps, each of which changes one mask."""
    changed = list(node)
    for _, index, candidate in steps:
        changed[index] = candidate
    return tuple(changed)


def _sum(parts: Sequence[Floats], node: Node) -> float:
    return math.fsum(part[candidate] for part, candidate in zip(parts, node, strict=True))


def _refines(variable: Variable) -> Flags:
    """Return whether the candidate of each row refines that of each column, shape (n, n)."""
    count = len(variable.candidates)
    table = np.zeros((count, count), dtype=np.bool_)
    for other in range(count):
        table[members(variable.finer[other]), other] = True
    return table


def _entropies(variable: Variable, cells: RuleCells) -> Floats:
    """Return the entropy of the rows over each candidate's groups, in nats, shape (n,); 0 for an
    attribute that forms no classes.
    """
    entropies = np.zeros(len(variable.candidates))
    if not variable.quasi:
        return entropies
    for index, candidate in enumerate(variable.candidates):
        rows = np.bincount(cells.code(variable.name, candidate.groups), weights=cells.counts)
        shares = rows[rows > 0] / rows.sum()
        entropies[index] = -(shares * np.log(shares)).sum()
    return entropies


@dataclass(frozen=True)
class HittingSets:
    """A search strategy that lists configurations with a small loss, and strikes those that the
    rule refuses, with all finer ones.
    """

    name: str = "hitting-sets"

    def suits(self, problem: Problem, objective: Objective, feasibility: Feasibility) -> bool:
        """Return whether a search has many combinations, a loss that is summed over attributes, and
        a rule that limits only class sizes.
        """
        if not isinstance(feasibility, InMemory) or not objective.follows_rule:
            return False
        sums = isinstance(objective, ChargedLoss) and objective.separates
        return sums and pays(problem, feasibility)

    def search(
        self,
        problem: Problem,
        objective: Objective,
        feasibility: Feasibility,
        *,
        top: int,
        clock: Clock,
        step: Step,
        start: tuple[Box, ...],
    ) -> Found:
        """Return the `top` configurations with the least losses, with a proof; if `clock` ends the
        search before, the best ones so far. The configurations in `start` are tried first.
        """
        if not isinstance(feasibility, InMemory) or not isinstance(objective, ChargedLoss):
            raise InternalError("This search is for sums of losses.")
        return ListingSearch(
            problem, objective, feasibility, objective.separable(), top=top, clock=clock, step=step
        ).run(start)


HITTING_SETS = HittingSets()
