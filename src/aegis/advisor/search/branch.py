"""Search boxes by best-first branch and bound; a result is available at any time, and a proof at
the end.

A box is a set of configurations: it has a domain of candidate masks for each variable, as a bit
mask. A configuration is a box of single candidates. In the coarsest corner of a box, each variable
has the coarsest grouping of its domain. The search continues in a box only while its coarsest
corner meets the monotone criteria of the rule. Values of the objective are signed: negated if
smaller values are better.

The search takes the box with the largest bound, and removes candidates that cannot beat the best
known configuration. Without them, the coarsest corner is finer. So the rule excludes fine
candidates of other variables, and this lowers the bound again.

The search then splits the box in two by a candidate c of one variable: the first half keeps the
candidates that refine c, the second half keeps the others. In the first half the coarsest corner is
finer, so the rule removes candidates of other variables. In the second half the finest grouping is
coarser, so the bound falls. If a domain has many masks that are not nested, the search divides it
into many boxes at once, because such masks together distinguish values that no single mask
distinguishes.

When no remaining bound exceeds the value of the best known configuration, that configuration is
optimal. If none is admissible, the search finds the configuration that needs the fewest rows
removed. For objectives without good bounds over boxes, packages can add other strategies.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import NamedTuple, Protocol

import numpy as np

from aegis.advisor.figures import ProvenList
from aegis.advisor.plan import PrivacyPlan
from aegis.advisor.search.feasibility import Feasibility
from aegis.advisor.search.neighbours import TOLERANCE, LocalSearch, others
from aegis.advisor.search.objective import Objective
from aegis.advisor.search.problem import (
    Box,
    Clock,
    Division,
    OutOfTimeError,
    Problem,
    SearchSpace,
    is_leaf,
    members,
    replaced,
)
from aegis.arrays import cached_method
from aegis.errors import InternalError
from aegis.files import SILENT, Step, acknowledge, check
from aegis.registry import Registry

_DIVE_EVERY = 64
"""Number of nodes between two dives for a better configuration. After each dive that improves nothing,
the number doubles.
"""
_RARELY = 512
"""Largest number of nodes between two dives."""
_EARLY = 4
"""Number of nodes before the first dive in a large space."""
_LARGE = 10**6
"""A space with at least this many configurations is large."""
_SPLITS = 8
"""Largest number of splits of one domain to consider."""
_STRONG = 8
"""Splits of a box whose finer half is narrowed before one is chosen, at most."""
_PATIENCE = 128
"""Nodes after which one more such split is tried."""
_GUESSED = 4
"""Number of splits, those with the largest losses in earlier boxes, whose losses are estimated again."""
_LONG, _FILLED = 50, 5
"""A list of at least `_LONG` configurations is filled at the start, with `_FILLED` per neighbourhood."""


class OpenBox(NamedTuple):
    """A box that the search has not yet excluded, with the upper bound of its values. `tight` says
    that candidates that cannot be the best have already been removed.
    """

    bound: float
    box: Box
    tight: bool


@dataclass
class Found:
    """The result of a search so far. It can be read at any time.

    Attributes
    ----------
    best
        The values of the best configurations, with the configurations, best first.
    bound
        Upper bound of the values of all configurations, including those in `best`.
    nodes
        Number of boxes that were split.
    complete
        Whether the search ran to its end. Then no other configuration is better than the ones in
        `best`; if `best` is empty, no configuration is admissible.
    interrupted
        Whether the user stopped the search.
    beyond
        Upper bound of the values of all configurations outside of `best`.
    open
        The boxes that were not searched, largest bound first; a later search can continue with
        them.
    proven
        What the search proved about the list of configurations that it scored; None if it scored no
        list.
    generous
        Whether `bound` also holds for combinations that break the rule, so that it may be too
        large.
    """

    best: list[tuple[float, Box]] = field(default_factory=list)
    bound: float = math.inf
    nodes: int = 0
    complete: bool = False
    interrupted: bool = False
    beyond: float = math.inf
    open: tuple[OpenBox, ...] = ()
    proven: ProvenList | None = None
    generous: bool = False


@contextmanager
def until_stopped(outcome: Found) -> Iterator[None]:
    """Return a context that ends without an error if time runs out or the user interrupts. An
    interrupt is recorded in `outcome.interrupted`.
    """
    try:
        yield
    except OutOfTimeError:
        pass  # what is known until now is the answer
    except KeyboardInterrupt:
        acknowledge()
        outcome.interrupted = True


class BranchAndBound:
    """A branch-and-bound search for the best configurations that meet a privacy rule.

    Parameters
    ----------
    problem, objective, feasibility
        The search space, the objective to maximise, and the check of the rule.
    top
        Number of best configurations to find.
    clock
        Time limit; the search then returns the best configurations so far.
    step
        Shows the progress: the best value so far, the upper bound, and the gap between them.
    most_nodes
        Largest number of boxes to split after the first admissible configuration was found.
    """

    def __init__(
        self,
        problem: SearchSpace,
        objective: Objective,
        feasibility: Feasibility,
        *,
        top: int,
        clock: Clock,
        step: Step,
        most_nodes: float = math.inf,
    ) -> None:
        self.problem = problem
        self.objective = objective
        self.feasibility = feasibility
        self.top = top
        self.clock = clock
        self.most_nodes = most_nodes
        self.step = step
        self.outcome = Found()
        self._local = LocalSearch(problem, self._upper, self._value)
        self._heap: list[tuple[float, int, int, OpenBox]] = []
        self._pushed = 0
        self._entered: set[Box] = set()
        self._at_work: OpenBox | None = OpenBox(math.inf, problem.root, tight=False)
        self._falls: dict[tuple[int, int, int], float] = {}
        large = math.prod(len(v.candidates) for v in problem.variables) > _LARGE
        self._next_dive = _EARLY if large else _DIVE_EVERY
        self._pause = _DIVE_EVERY

    def run(self, start: tuple[Box, ...] = (), resumed: tuple[OpenBox, ...] | None = None) -> Found:
        """Search until the best configurations are proven to be the best, the time is over, or the
        user interrupts.

        The configurations in `start` are tried first; a good one excludes many others from the
        beginning. `resumed` are the boxes that an earlier search left; None: begin with all
        combinations.
        """
        with until_stopped(self.outcome):
            if resumed is None:
                self._search(start)
            else:
                for entry in resumed:
                    self._queue(entry)
                self._at_work = None
                for box in start:
                    self._keep(box)
                self._loop()
            self._at_work = None
            self.outcome.complete = not self._open()
        best = [value for value, _ in self.outcome.best]
        self.outcome.bound = max([self._remaining(), *best[:1]])
        self.outcome.beyond = max([self._remaining(), *best[self.top - 1 :][:1]])
        self.outcome.open = self._open_boxes()
        return self.outcome

    def _remaining(self) -> float:
        """Return the largest upper bound of all boxes that were not yet searched; -inf if there is
        none.
        """
        # A box that is being split is not on the heap.
        at_work = -math.inf if self._at_work is None else self._at_work.bound
        return max(at_work, -self._heap[0][0]) if self._heap else at_work

    def _open_boxes(self) -> tuple[OpenBox, ...]:
        """Return the boxes that may still contain one of the best configurations, largest bound
        first.
        """
        entries = [] if self._at_work is None else [self._at_work]
        entries += [entry for *_, entry in sorted(self._heap)]
        return tuple(entry for entry in entries if entry.bound > self._threshold())

    def _to_the_top(self, box: Box) -> None:
        """Improve a configuration until no change of one or two masks makes it better."""
        self._local.improved(box, others, pairs=True)

    def _search(self, start: tuple[Box, ...]) -> None:
        """Search all combinations: first for any admissible configuration, then for the best ones."""
        root = self.problem.root
        self._at_work = OpenBox(self.objective.upper(root), root, tight=False)
        for box in start:
            self._keep(box)
        summit = self._local.from_coarsest()
        if summit is not None:
            self._to_the_top(summit)
        self._fill()
        narrowed = self.feasibility.narrow(root)
        if narrowed is not None:
            self._push(narrowed, root)
            self._at_work = None
            if not self.outcome.best:
                self._dive(narrowed)
            self._loop()

    def _fill(self) -> None:
        """If many configurations are requested, record neighbours of the best ones. With a full
        list, the search can exclude many configurations from the beginning.
        """
        tried: set[Box] = set()
        for _ in range(self.top // _FILLED if self.top >= _LONG else 0):
            box = next((box for _, box in self.outcome.best if box not in tried), None)
            if box is None:
                return
            tried.add(box)
            start = self.objective.bound(box)
            for fall, index, candidate in self._local.moves(box, others):
                if start - fall <= self._threshold():
                    break
                self._keep(replaced(box, index, 1 << candidate))

    def _open(self) -> bool:
        """Return whether an unsearched box may still contain one of the best configurations."""
        return bool(self._heap) and -self._heap[0][0] > self._threshold()

    def _threshold(self) -> float:
        """Return the value that a configuration must exceed to be among the best."""
        best = self.outcome.best
        return best[self.top - 1][0] + TOLERANCE if len(best) >= self.top else -math.inf

    def _loop(self) -> None:
        while self._open() and (self.outcome.nodes < self.most_nodes or not self.outcome.best):
            check()
            self._go_on()
            self._at_work = self._heap[0][3]  # before it leaves the heap, should the user interrupt
            heapq.heappop(self._heap)
            _, box, tight = self._at_work
            if is_leaf(box):
                self._keep(box)
            elif (division := self._division(box)) is not None:
                self._divide(box, *division)
            elif not tight:
                self._tighten_and_push(box)
            else:
                self._branch(box)
            self._at_work = None

    def _division(self, box: Box) -> Division | None:
        """Return the index of a variable whose domain is best divided into many domains at once,
        and these; None if there is none.
        """
        return self.problem.division(box) if self.objective.divides else None

    def _divide(self, box: Box, index: int, parts: tuple[int, ...]) -> None:
        """Replace a box by one for each of the `parts` of the domain at `index`."""
        self.outcome.nodes += 1
        for part in parts:
            narrowed = self.feasibility.narrow(replaced(box, index, part))
            if narrowed is not None:
                self._push(narrowed, box)

    def _finest_part(self, box: Box, index: int, parts: tuple[int, ...]) -> Box | None:
        """Return the box for the finest of the `parts` of a domain, from fine to coarse, that may
        contain an admissible configuration; None if no part may. The bisection assumes that finer
        parts fail the rule first, which need not be true.
        """
        best, low, high = None, 0, len(parts)
        while low < high:
            middle = (low + high) // 2
            narrowed = self.feasibility.narrow(replaced(box, index, parts[middle]))
            if narrowed is None:
                low = middle + 1
            else:
                best, high = narrowed, middle
        return best

    def _branch(self, box: Box) -> None:
        """Split a box into two halves. From time to time, also descend from the most promising box
        to a single configuration and improve it.
        """
        self.outcome.nodes += 1
        index, fine, narrowed = self._split(box)
        self._push(replaced(box, index, box[index] & ~fine), box)
        if narrowed is not None:
            self._push(narrowed, box)
        if self.outcome.nodes >= self._next_dive and self._heap:
            before = self.outcome.best
            self._dive(self._heap[0][3].box)
            better = self.outcome.best != before
            self._pause = _DIVE_EVERY if better else min(2 * self._pause, _RARELY)
            self._next_dive = self.outcome.nodes + self._pause
            self._report()

    def _push(self, box: Box, within: Box, *, tight: bool = False) -> None:
        """Queue a box inside the box `within` if it may have one of the best configurations."""
        if not self.objective.excludes(box, self._threshold(), within):
            self._queue(OpenBox(self.objective.upper(box), box, tight))

    def _queue(self, entry: OpenBox) -> None:
        self._pushed += 1
        # Ties go to the smaller box, so that a chain of equal bounds ends in a configuration.
        size = sum(domain.bit_count() for domain in entry.box)
        heapq.heappush(self._heap, (-entry.bound, size, self._pushed, entry))

    def _tighten_and_push(self, box: Box) -> None:
        """Queue a box without the candidates that are too coarse to beat the best known
        configuration, or too fine for the rule.
        """
        while True:
            slack = self.objective.upper(box) - self._threshold()
            if slack <= 0:
                return
            rest = list(box)
            for loss, index, fine in self._losses(box):
                if loss < slack:
                    break
                coarser = replaced(box, index, box[index] & ~fine)
                if self.objective.excludes(coarser, self._threshold(), box):
                    rest[index] &= fine
            if tuple(rest) == box:
                self._push(box, box, tight=True)
                return
            narrowed = self.feasibility.narrow(tuple(rest)) if all(rest) else None
            if narrowed is None:
                return
            box = narrowed

    def _losses(self, box: Box) -> list[tuple[float, int, int]]:
        """Return the possible splits of a box: the estimated decrease of the bound without the
        finer half, the index of the variable, and the finer half; the largest decrease first. If a
        split decreased the bound little for an earlier box, its old estimate is used again.
        """
        estimate = self.objective.guess(box)
        if not math.isfinite(estimate):
            return [(0.0, index, fine) for index, fine in self._splits(box)]
        splits = [(index, box[index], fine) for index, fine in self._splits(box)]
        splits.sort(key=lambda split: -self._falls.get(split, math.inf))
        for rank, split in enumerate(splits):
            if rank >= _GUESSED and split in self._falls:
                continue
            self.clock.check()
            index, domain, fine = split
            coarser = replaced(box, index, domain & ~fine)
            self._falls[split] = estimate - self.objective.guess(coarser)
        falls = ((self._falls[split], split[0], split[2]) for split in splits)
        return sorted(falls, key=lambda split: -split[0])

    def _split(self, box: Box) -> tuple[int, int, Box | None]:
        """Return how to split a box so that the bounds of both halves decrease most: the index of
        the variable, the finer half of its domain, and the box of the finer half after the rule has
        removed candidates (None if the rule excludes it).

        The method is strong branching with the product rule (Achterberg, Koch and Martin, Branching
        rules revisited, Operations Research Letters 33, 2005). Decreases count only up to the one
        that excludes the half.
        """
        slack = max(self.objective.upper(box) - self._threshold(), TOLERANCE)
        best: tuple[float, int, int, Box | None] | None = None
        # The longer the search takes, the more care a split is worth.
        tried = min(1 + self.outcome.nodes // _PATIENCE, _STRONG)
        for loss, index, fine in self._losses(box)[:tried]:
            self.clock.check()
            coarser = max(min(loss, slack), TOLERANCE)
            if best is not None and coarser * slack <= best[0]:
                break
            narrowed = self.feasibility.narrow(replaced(box, index, fine))
            finer = slack if narrowed is None else self._fall(box, narrowed)
            score = coarser * max(min(finer, slack), TOLERANCE)
            if best is None or score > best[0]:
                best = (score, index, fine, narrowed)
        if best is None:
            raise InternalError("A single configuration cannot be split.")
        return best[1:]

    def _fall(self, box: Box, inner: Box) -> float:
        """Return the estimated bound of a box minus that of `inner`; 0 if the first is infinite."""
        estimate = self.objective.guess(box)
        return estimate - self.objective.guess(inner) if math.isfinite(estimate) else 0.0

    def _splits(self, box: Box) -> Iterator[tuple[int, int]]:
        """Yield the possible splits of a box: the index of a variable, and the finer half of its
        domain.
        """
        for index, domain in enumerate(box):
            if domain & (domain - 1) == 0:
                continue
            for fine in self._finer_halves(index, domain):
                yield index, fine

    @cached_method
    def _finer_halves(self, index: int, domain: int) -> tuple[int, ...]:
        """Return possible finer halves of a domain: those of its candidates that refine one of
        them. At most about 16 halves are returned; their sizes are spread evenly.
        """
        variable = self.problem.variables[index]
        ordered = sorted(members(domain), key=lambda c: -variable.candidates[c].size)
        step = max(1, len(ordered) // _SPLITS)
        halves = {domain & variable.finer[candidate] for candidate in ordered[::step]}
        halves.discard(domain)
        return tuple(sorted(halves)) or (1 << ordered[0],)

    def _dive(self, box: Box) -> None:
        """Descend from a box to a single configuration, and improve it by changes of one or two
        masks.
        """
        while not is_leaf(box):
            division = self._division(box)
            part = None if division is None else self._finest_part(box, *division)
            if part is not None:
                box = part
                continue
            _, index, fine = self._losses(box)[0]
            narrowed = self.feasibility.narrow(replaced(box, index, fine))
            box = narrowed or replaced(box, index, box[index] & ~fine)
        if self._keep(box):
            self._to_the_top(box)

    def _upper(self, box: Box) -> float:
        """Return an upper bound of the value of a configuration; -inf if there is no time to
        compute it.
        """
        self._go_on()
        in_time = self.clock.allows(self.objective.effort(box))
        return self.objective.upper(box) if in_time else -math.inf

    def _go_on(self) -> None:
        """Raise `OutOfTimeError` if the time is over. Also report progress, so that the receiver
        can end the search.
        """
        self.clock.check()
        self.step.advance(0)

    def _value(self, box: Box) -> float:
        """Record a configuration, and return its value; -inf if it is not admissible."""
        return self.objective.bound(box) if self._keep(box) else -math.inf

    def _keep(self, box: Box) -> bool:
        """Record a configuration if it is admissible; return whether it is."""
        if not self.feasibility.admits(box):
            return False
        if box not in self._entered:
            self._entered.add(box)
            entry = (self.objective.bound(box), box)
            # In one assignment, so that an interrupt leaves the best in order.
            ranked = sorted([*self.outcome.best, entry], key=lambda e: (-e[0], e[1]))
            self.outcome.best = ranked[: self.top]
            if entry in self.outcome.best:
                self._report()
        return True

    def _report(self) -> None:
        best = self.outcome.best[0][0] if self.outcome.best else -math.inf
        bound = max(best, self._remaining())
        sign = self.objective.sign
        self.step.note(
            f"best {sign * best:.6g}, bound {sign * bound:.6g}, gap {gap(best, bound):.2%}, "
            f"{self.outcome.nodes:,} nodes"
        )


def gap(best: float, bound: float) -> float:
    """Return how far an upper bound lies above the best value, as a share of this value; infinite
    if one of them is not finite.
    """
    if not math.isfinite(best):
        return math.inf
    if bound <= best + TOLERANCE:
        return 0.0
    if not math.isfinite(bound):
        return math.inf
    return (bound - best) / max(abs(best), TOLERANCE)


class SearchStrategy(Protocol):
    """A method that searches for the best configurations, as an alternative to branch and bound.

    Packages add strategies through the entry points `aegis.search_strategies`.
    """

    @property
    def name(self) -> str:
        """The name under which the strategy is registered."""

    def suits(self, problem: Problem, objective: Objective, feasibility: Feasibility) -> bool:
        """Return whether the strategy solves this search faster than branch and bound. `problem` is
        the search space, and `feasibility` checks the rule.
        """

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
        """Return the best configurations, with a proof. If the time limit ends the search before,
        return the best ones so far.

        Parameters
        ----------
        problem, objective, feasibility
            The search space, the objective, and the check of the rule.
        top
            Number of best configurations to return.
        clock
            Time limit.
        step
            Receives the progress.
        start
            Configurations to try first.
        """


STRATEGIES: Registry[SearchStrategy] = Registry("search strategy")
"""Strategies by name; a search uses the first one that suits it."""


def suiting(
    problem: Problem, objective: Objective, feasibility: Feasibility
) -> SearchStrategy | None:
    """Return the first registered strategy that solves a search faster than branch and bound; None
    if there is none. `problem` is the search space, and `feasibility` checks the rule.
    """
    return next((each for each in STRATEGIES if each.suits(problem, objective, feasibility)), None)


class RowsRemoved(Objective):
    """An objective: how many rows must be removed so that the remaining rows meet the rule.

    Some criteria of a rule never remove more rows after classes are merged. The whole rule removes
    at least as many rows as these criteria alone. So the rows that these criteria remove under the
    coarsest masks of a box are a lower bound for every configuration in the box.
    """

    name = "rows removed"
    sign = -1

    def __init__(self, problem: Problem, plan: PrivacyPlan) -> None:
        self._problem = problem
        self._plan = plan
        counted = plan.rule.without_crowd.criteria  # boxes are counted without a population
        criteria = tuple(c for c in counted if c.model.monotone_with_suppression)
        self._part = replace(plan.rule, criteria=criteria)

    @cached_method
    def bound(self, box: Box) -> float:
        """Return minus the number of rows that must be removed, or an upper bound of it for a box."""
        return -float(self._exact(box) if is_leaf(box) else self._at_least(box))

    def _exact(self, box: Box) -> int:
        return self._plan.check(self._problem.choice(box)).suppressed_rows

    def _at_least(self, box: Box) -> int:
        frequency = self._problem.summary.frequency
        if frequency is None or not self._part.criteria:
            return 0
        pairs = list(zip(self._problem.variables, box, strict=True))
        protected = {}
        for name in self._part.sensitive:
            codes = np.arange(int(frequency.representatives[name].max()) + 1)
            groups = next((v.join(domain) for v, domain in pairs if v.name == name), codes)
            protected[name] = groups, tuple(map(str, range(int(groups.max()) + 1)))
        classes = frequency.roll_up({v.name: v.meet(d) for v, d in pairs if v.quasi}, protected)
        return self._part.check(classes).suppressed_rows


class _Anything:
    """A feasibility check that admits every configuration."""

    def narrow(self, box: Box) -> Box | None:
        """Return the box (a set of candidate masks for each attribute) unchanged."""
        return box

    def admits(self, box: Box) -> bool:  # noqa: ARG002 - the protocol's signature
        """Return True: every configuration is admissible."""
        return True


def find_closest(problem: Problem, plan: PrivacyPlan, clock: Clock) -> Box | None:
    """Return the configuration for which the fewest rows must be removed so that it meets the rule.

    The search tries the coarsest configuration first. If time runs out, the result is the best one
    so far; None if the search was interrupted before it tried one.
    """
    with SILENT.step("") as step:
        outcome = BranchAndBound(
            problem,
            RowsRemoved(problem, plan),
            _Anything(),
            top=1,
            clock=clock,
            step=step,
        ).run()
    return outcome.best[0][1] if outcome.best else None
