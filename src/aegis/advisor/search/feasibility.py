"""Which candidates can still be part of an admissible configuration.

A box is checked at its *coarsest* corner. A monotone rule that fails there fails for every
configuration in the box, because each of them refines that corner; and a candidate for which the
rule fails while all other variables stand at their coarsest can be struck from its domain, with
everything that refines it. Criteria that are not monotone under the rule's suppression limit have
no part in this: they are checked at single configurations (see docs/theory.md for which, and the
proofs).

A protected attribute may have several masks itself. Models that look at one class alone are met
most easily by its finest values, which is how a box is checked. Models that compare a class with
the whole table are not, so they have no part either until that mask is decided.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable, Mapping
from dataclasses import replace
from functools import cached_property
from itertools import islice
from operator import ne
from typing import Protocol

import numpy as np
import numpy.typing as npt

from aegis.advisor.plan import PrivacyPlan
from aegis.advisor.search.clock import Clock
from aegis.advisor.search.judging import Judge
from aegis.advisor.search.problem import Box, Problem, Variable, members
from aegis.privacy import ClassTable, ModelNeed, PrivacyRule
from aegis.summary import FrequencyTable

Ids = npt.NDArray[np.int64]
_DENSE = 1 << 21
"""Class ids are counted in a plain array up to this many places."""
_SPREAD = 16
"""Places per cell up to which classes are counted although most places are empty."""
_CACHED = 64 << 20
"""Bytes of class ids that are remembered."""
_FILTERED = 256
"""Candidates in a domain up to which each is checked; larger domains are divided first."""
_LATELY = 12
"""Boxes counted last among which one around another is looked for."""


class Feasibility(Protocol):
    """Narrows boxes, and judges single configurations."""

    @property
    def checked(self) -> int:
        """Class counts that were held against the rule."""

    def possible(self, box: Box) -> bool:
        """Return whether anything in the box may be admissible; False proves that nothing is."""

    def narrow(self, box: Box) -> Box | None:
        """Return the box without what cannot be admissible; None when nothing is left."""

    def admits(self, box: Box) -> bool:
        """Return whether a single configuration meets the whole rule."""


class InMemory:
    """Feasibility from the frequency table.

    Parameters
    ----------
    problem
        The search space.
    frequency
        Frequency table at the finest candidates.
    plan
        Judges single configurations.
    clock
        Ends the counting, with `OutOfTimeError`.
    """

    def __init__(
        self, problem: Problem, frequency: FrequencyTable, plan: PrivacyPlan, clock: Clock
    ) -> None:
        self.problem = problem
        self.plan = plan
        self.clock = clock
        self.frequency = frequency
        self.checked = 0
        self.rule = prunable(plan.rule)
        self._limit = plan.rule.allowed_rows(frequency.rows)
        self._codes: dict[tuple[int, int], tuple[Ids, int]] = {}
        self._tables: OrderedDict[tuple[int, ...], tuple[Ids, int]] = OrderedDict()
        self._bytes = 0
        self._admits: dict[Box, bool] = {}
        self._passed: dict[Hashable, bool] = {}
        self._nodes: dict[tuple[int, int], int] = {}
        self._sound: dict[frozenset[str], PrivacyRule | None] = {}
        self._by_person = frequency.persons is not None
        self._cells = _Cells(frequency, self.rule)

    def possible(self, box: Box) -> bool:
        """Return whether the coarsest corner of a box meets what of the rule judges a box."""
        return self.rule is None or self._passes(box, self._rule(box))

    def narrow(self, box: Box) -> Box | None:
        """Return the box without candidates that fail with all others at their coarsest.

        Very large domains stay whole, but where nothing in the box passes.
        """
        if self.rule is None:
            return box
        rule = self._rule(box)
        if not self._passes(box, rule):
            return None
        narrowed = list(box)
        for index, variable in enumerate(self.problem.variables):
            domain = box[index]
            if variable.quasi and 1 < domain.bit_count() <= _FILTERED:
                narrowed[index] = self._filter(box, rule, index)
                if not narrowed[index]:
                    return None
        return tuple(narrowed)

    def _filter(self, box: Box, rule: PrivacyRule | None, index: int) -> int:
        """Return the part of a domain that passes with all others at their coarsest."""
        domain = box[index]
        variable = self.problem.variables[index]
        passing = 0
        order = sorted(members(domain), key=lambda c: -variable.candidates[c].size)
        for candidate in order:
            if passing & variable.finer[candidate]:
                passing |= 1 << candidate  # something finer passes, so this does
                continue
            self.clock.check()
            if self._passes(box, rule, (index, 1 << candidate)):
                passing |= 1 << candidate
        return passing

    def _coded(self, index: int, domain: int) -> tuple[Ids, int]:
        """Return the group of each cell at the coarsest of a domain, and the number of groups."""
        key = (index, domain)
        if key not in self._codes:
            variable = self.problem.variables[index]
            groups = variable.meet(domain)
            codes = self._cells.code(variable.name, groups)
            self._codes[key] = (codes, int(groups.max(initial=0)) + 1)
        return self._codes[key]

    def _corner(self, box: Box) -> tuple[Ids, int]:
        """Return the class of each cell with every variable at its coarsest."""
        if box in self._tables:
            self._tables.move_to_end(box)
            return self._tables[box]
        outer = self._around(box)
        if outer is None:
            ids, space = self._cells.undivided()
        else:
            ids, space = self._tables[outer]
        for index, variable in enumerate(self.problem.variables):
            if variable.quasi and (outer is None or outer[index] != box[index]):
                codes, size = self._coded(index, box[index])
                ids, space = _dense(*_refine(ids, space, codes, size))
        self._remember(box, ids, space)
        return ids, space

    def _around(self, box: Box) -> Box | None:
        """Return the closest box around this one whose classes were counted lately.

        The corner of the larger box is coarser, so that refining its classes by what differs is
        enough.
        """
        best: tuple[int, Box] | None = None
        for outer in islice(reversed(self._tables), _LATELY):
            if all(inner & ~domain == 0 for inner, domain in zip(box, outer, strict=True)):
                changed = sum(map(ne, box, outer))
                if best is None or changed < best[0]:
                    best = (changed, outer)
        return None if best is None else best[1]

    def _remember(self, box: Box, ids: Ids, space: int) -> None:
        self._tables[box] = (ids, space)
        self._bytes += ids.nbytes
        while self._bytes > _CACHED and len(self._tables) > 1:
            self._bytes -= self._tables.popitem(last=False)[1][0].nbytes

    def _passes(
        self, box: Box, rule: PrivacyRule | None, instead: tuple[int, int] | None = None
    ) -> bool:
        """Return whether the corner of a box meets the part of a rule that judges a whole box.

        Parameters
        ----------
        box
            The box, whose classes are those of its coarsest corner. Many boxes share one.
        rule
            As `_rule` returns it.
        instead
            A variable, and what stands in place of its domain for the classes.
        """
        if rule is None:
            self.checked += 1
            return True
        key: Hashable = rule, self._node(box, instead)
        if self._by_person or not rule.sizes_only:
            key = key, *(box[place] for place in self._protected)
        if key not in self._passed:
            self.checked += 1
            self._passed[key] = self._meets(box, rule, instead)
        return self._passed[key]

    def _meets(self, box: Box, rule: PrivacyRule, instead: tuple[int, int] | None) -> bool:
        ids, space = self._corner(box)
        if instead is not None:
            ids, space = _refine(ids, space, *self._coded(*instead))
        if rule.sizes_only and not self._by_person:
            return self._cells.rows_below(ids, space, rule.minimum_size) <= self._limit
        table = self._cells.classes(ids, rule.sensitive, self._sensitive(box))
        return rule.check(table).admissible

    def _node(self, box: Box, instead: tuple[int, int] | None) -> tuple[int, ...]:
        """Return what tells the corner of a box from others: the coarsest candidates of its domains.

        A domain without a coarsest candidate stands for itself. With all other variables at
        their coarsest, a domain is refined by what stands `instead` of it.
        """
        node = [self._coarsest(i, box[i]) if v.quasi else 0 for i, v in self._numbered]
        if instead is not None:
            node[instead[0]] = self._coarsest(*instead)
        return tuple(node)

    def _coarsest(self, index: int, domain: int) -> int:
        key = index, domain
        if key not in self._nodes:
            coarsest = self.problem.variables[index].coarsest(domain)
            self._nodes[key] = ~domain if coarsest is None else coarsest
        return self._nodes[key]

    @cached_property
    def _numbered(self) -> list[tuple[int, Variable]]:
        return list(enumerate(self.problem.variables))

    @cached_property
    def _protected(self) -> list[int]:
        """Variables that a rule of more than class sizes may look at."""
        protected = set(self.frequency.sensitive) | {self.frequency.label}
        return [i for i, variable in self._numbered if variable.name in protected]

    def _rule(self, box: Box) -> PrivacyRule | None:
        """Return the part of the rule that judges a whole box."""
        open_masks = undecided(self.problem, box)
        if open_masks not in self._sound:
            self._sound[open_masks] = sound_part(self.rule, open_masks)
        return self._sound[open_masks]

    def _sensitive(self, box: Box) -> Mapping[str, npt.NDArray[np.integer]]:
        """Return the finest grouping of each protected attribute: the most favourable one."""
        label = self.frequency.label
        groupings = {label: self.plan.protected(label, {})[0]}
        return groupings | {
            v.name: v.join(box[i])
            if box[i] & (box[i] - 1)
            else v.candidates[box[i].bit_length() - 1].in_order[0]
            for i, v in enumerate(self.problem.variables)
            if v.name in self.frequency.sensitive
        }

    def admits(self, box: Box) -> bool:
        """Return whether a single configuration meets the whole rule."""
        if box not in self._admits:
            quick = self.plan.rule.sizes_only and not self._by_person
            if quick and self.plan.rule.criteria:
                self._admits[box] = self._passes(box, self._rule(box))
            else:
                self._admits[box] = self._all_met(box)
        return self._admits[box]

    def _all_met(self, box: Box) -> bool:
        """Return whether a configuration meets a rule of more than class sizes."""
        if self.rule is not None and not self._passes(box, self._rule(box)):
            return False
        if self._by_person or not self.plan.counts_alone:
            self.checked += 1
            return self.plan.check(self.problem.choice(box)).admissible
        key = self._node(box, None), *(box[place] for place in self._protected)
        if key not in self._passed:
            self.checked += 1
            self._passed[key] = self._judged(box)
        return self._passed[key]

    def _judged(self, box: Box) -> bool:
        """Count the classes of a configuration that are large enough, and judge them."""
        ids, space = _dense(*self._corner(box))
        choice = self.problem.choice(box)
        masks = [choice.get(name) for name in self.plan.rule.sensitive]
        return self._judge.admits(ids[self._cells.of_cell], space, masks)

    @cached_property
    def _judge(self) -> Judge:
        return Judge(self.plan, self.frequency)


class InEngine:
    """Feasibility by queries, for frequency tables that do not fit in memory.

    Each configuration costs a query, so only those that could be the best are asked about.
    """

    def __init__(self, problem: Problem, plan: PrivacyPlan, clock: Clock) -> None:
        self.problem = problem
        self.plan = plan
        self.clock = clock
        self.checked = 0
        self._monotone = plan.rule.monotone
        self._admits: dict[Box, bool] = {}

    def narrow(self, box: Box) -> Box | None:
        """Return the box, or None when the configuration at its coarsest corner fails."""
        self.clock.check()
        return box if self.possible(box) else None

    def possible(self, box: Box) -> bool:
        """Return whether the configuration at the coarsest corner meets the rule, if there is one."""
        rule = self.plan.rule
        if not self._monotone or sound_part(rule, undecided(self.problem, box)) != rule:
            return True
        corner = []
        for variable, domain in zip(self.problem.variables, box, strict=True):
            coarsest = variable.coarsest(domain) if variable.quasi else variable.finest(domain)
            if coarsest is None:
                return True
            corner.append(1 << coarsest)
        return self.admits(tuple(corner))

    def admits(self, box: Box) -> bool:
        """Return whether a single configuration meets the rule, from one query."""
        # Masks of other attributes do not change classes, so they share the answer.
        key = tuple(
            domain if v.quasi or v.name in self.plan.rule.sensitive else 0
            for v, domain in zip(self.problem.variables, box, strict=True)
        )
        if key not in self._admits:
            self.checked += 1
            self._admits[key] = self.plan.check(self.problem.choice(box)).admissible
        return self._admits[key]


def undecided(problem: Problem, box: Box) -> frozenset[str]:
    """Return the attributes that have several candidates left in a box."""
    pairs = zip(problem.variables, box, strict=True)
    return frozenset(v.name for v, domain in pairs if domain & (domain - 1))


def sound_part(rule: PrivacyRule | None, undecided: frozenset[str]) -> PrivacyRule | None:
    """Return the rule without comparisons of protected attributes whose mask is undecided."""
    if rule is None:
        return None
    sound = tuple(c for c in rule.criteria if c.model.local or c.attribute not in undecided)
    if len(sound) == len(rule.criteria):
        return rule
    return replace(rule, criteria=sound) if sound else None


class _Cells:
    """The cells of the frequency table that a rule can tell apart."""

    def __init__(self, frequency: FrequencyTable, rule: PrivacyRule | None) -> None:
        self._frequency = frequency
        self._whole = (rule is not None and not rule.sizes_only) or frequency.persons is not None
        if self._whole:
            self._first = self.of_cell = np.arange(frequency.cells)
            self.counts = frequency.counts
        else:
            # A rule on class sizes alone sees neither label nor sensitive values.
            keys = frequency.class_keys()
            _, first, cell = np.unique(keys, return_index=True, return_inverse=True)
            self._first, self.of_cell = first, cell
            self.counts = np.bincount(cell, weights=frequency.counts).astype(np.int64)
        self._weights = self.counts.astype(np.float64)

    @property
    def count(self) -> int:
        """Number of cells."""
        return len(self.counts)

    def undivided(self) -> tuple[Ids, int]:
        """Return the class of each cell where nothing is shown but by earlier releases."""
        earlier = self._frequency.earlier
        if earlier is None:
            return np.zeros(self.count, dtype=np.int64), 1
        return _dense(earlier[self._first], int(earlier.max(initial=0)) + 1)

    def code(self, name: str, groups: npt.NDArray[np.integer]) -> Ids:
        """Return the group of each cell, (cells,), for a grouping (V,) of an attribute's values."""
        frequency = self._frequency
        on_codes = groups[frequency.representatives[name]].astype(np.int64)
        return on_codes[frequency.codes[name][self._first]]

    def rows_below(self, ids: Ids, space: int, k: int) -> int:
        """Return the rows in classes of fewer than `k` rows."""
        if space > _SPREAD * len(ids):
            ids, space = _dense(ids, space)
        sizes = np.bincount(ids, weights=self._weights, minlength=1)
        if space <= 2 * len(ids):
            return int(sizes.sum(where=sizes < k))
        # Spread thinly, classes are fewer by cell than by place.
        return int(self._weights.sum(where=sizes.take(ids) < k))

    def classes(
        self,
        ids: Ids,
        protected: tuple[str, ...],
        sensitive: Mapping[str, npt.NDArray[np.integer]],
    ) -> ClassTable:
        """Return the classes with the counts of protected values, each at a given grouping."""
        frequency = self._frequency
        cells = {}
        for name in protected:
            groups = sensitive.get(name)
            if groups is None:
                groups = np.arange(int(frequency.representatives[name].max()) + 1)
            size = int(groups.max(initial=0)) + 1
            cells[name] = (self.code(name, groups), tuple(map(str, range(size))))
        return frequency.count(ids, cells)


def prunable(rule: PrivacyRule) -> PrivacyRule | None:
    """Return the criteria that may strike candidates: monotone, and measured on counts alone."""
    part = rule.monotone_part
    if part is None or not part.hierarchical:
        return part
    criteria = tuple(c for c in part.criteria if ModelNeed.HIERARCHY not in c.model.needs)
    return replace(part, criteria=criteria) if criteria else None


def _refine(ids: Ids, space: int, codes: Ids, size: int) -> tuple[Ids, int]:
    """Split classes by another grouping; the result is not dense."""
    if size == 1:
        return ids, space
    return ids * size + codes, space * size


def _dense(ids: Ids, space: int) -> tuple[Ids, int]:
    """Renumber class ids when they have become too spread out to count in a plain array."""
    if space <= max(4 * len(ids), 1 << 12):
        return ids, space
    if space <= _DENSE:
        present = np.zeros(space, dtype=np.bool_)
        present[ids] = True
        places = np.cumsum(present) - 1
        return places[ids], int(places[-1]) + 1
    unique, dense = np.unique(ids, return_inverse=True)
    return dense.astype(np.int64), len(unique)
