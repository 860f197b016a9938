"""Decide which candidates can still be part of an admissible configuration.

A box has a domain of candidates for each variable. The rule is checked at the *coarsest corner* of
the box, the configuration in which all variables have their coarsest grouping. If a monotone rule
fails there, it fails for every configuration in the box, because each refines the corner. If the
rule fails for a candidate while all other variables have their coarsest grouping, this candidate
and all candidates that refine it are removed from the domain. Criteria that are not monotone under
the suppression limit are checked for single configurations; docs/theory.md lists these criteria and
proves this. But most of them also limit how many rows of the corner's classes finer configurations
can keep (`aegis.privacy.histograms`), which can exclude a box.

A protected attribute may have several candidate masks. Models that check each class separately are
easiest to meet with the finest values of this attribute, so a box is checked with the finest
values. This is not true for models that compare a class with the whole table, so these are not
checked until the box has only one mask for the attribute.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Protocol

from aegis.advisor.plan import PrivacyPlan
from aegis.advisor.search.cells import RuleCells, dense, refine
from aegis.advisor.search.clock import Clock
from aegis.advisor.search.corner_classes import Corners
from aegis.advisor.search.implied import Implied
from aegis.advisor.search.leaf_bound import LeafBound
from aegis.advisor.search.problem import Box, Problem, Variable, is_leaf, members, replaced
from aegis.advisor.search.rule_bounds import Judge
from aegis.arrays import Integers, Ints
from aegis.privacy import ModelNeed, PrivacyRule
from aegis.summary import Candidate, FrequencyTable

_PARTS = 1 << 18
"""Classes at the finest masks of a box up to which they are looked at as parts of coarser ones."""
_LOOK, _PER_CELL, _QUERY = 1e-4, 5e-9, 0.1
"""The work of counting classes in memory, of each cell in this count, and of a query."""
_FILTERED = 256
"""Largest number of candidates in a domain that are checked one by one; larger domains are divided."""


class Feasibility(Protocol):
    """Removes candidate masks that cannot meet the rule from boxes, and checks single
    configurations.
    """

    def narrow(self, box: Box) -> Box | None:
        """Return the box without those candidates that cannot meet the rule; None if an attribute
        has no candidate left.
        """

    def admits(self, box: Box) -> bool:
        """Return whether a single configuration meets the whole privacy rule."""


class InMemory:
    """Checks whether configurations meet the rule, on the frequency table in memory.

    Parameters
    ----------
    problem
        The search space.
    frequency
        Frequency table at the finest candidates.
    plan
        The plan that checks single configurations.
    clock
        Time limit; counting then ends with `OutOfTimeError`.
    shared
        Cached counts from searches under other rules: one cache for rules that depend only on class
        sizes, and one for all other rules. New counts are added to these caches.

    Attributes
    ----------
    cells
        The cells that the rule can distinguish.
    room
        Number of rows that may be suppressed.
    """

    def __init__(
        self,
        problem: Problem,
        frequency: FrequencyTable,
        plan: PrivacyPlan,
        clock: Clock,
        shared: dict[bool, Corners] | None = None,
    ) -> None:
        self.problem = problem
        self.plan = plan
        self.clock = clock
        self.frequency = frequency
        self.checked = 0
        self.rule = prunable(plan.rule)
        self.room = plan.rule.allowed_rows(frequency.rows)
        self._admits: dict[Box, bool] = {}
        self._passed: dict[Hashable, bool] = {}
        self._implied = Implied(problem)
        self._nodes: dict[tuple[int, int], int] = {}
        self._corner: tuple[Box, list[int]] = (), []
        self._sound: dict[frozenset[str], PrivacyRule | None] = {}
        self._rest: dict[PrivacyRule, PrivacyRule | None] = {}
        self._places = {v.name: i for i, v in enumerate(problem.variables)}
        self._by_person = frequency.persons is not None
        alone = not (self._by_person or plan.by_population)
        self._bounds = alone and bool(self._judge.bounding)
        whole = self._bounds or not (self.rule is None or self.rule.sizes_only)
        known = {} if shared is None else shared
        if whole not in known:
            known[whole] = Corners(problem, RuleCells(frequency, whole=whole))
        self._tables = known[whole]
        self.cells = self._tables.cells
        self._leaves = LeafBound(problem, frequency, plan) if plan.rule.by_leaves else None

    @property
    def by_sizes(self) -> bool:
        """Whether the rule depends only on how many rows each class has."""
        alone = not self._by_person and self.plan.counts_alone
        return alone and self.plan.rule.sizes_only and bool(self.plan.rule.criteria)

    @property
    def _judges_boxes(self) -> bool:
        return self.rule is not None or self._bounds

    def narrow(self, box: Box) -> Box | None:
        """Return the box without those candidates that fail the rule even if all other attributes
        have their coarsest masks.

        Very large domains stay unchanged. The result is None if the whole box fails.
        """
        if self._leaves is not None:
            self.clock.check()
            if not self._leaves.possible(box):
                return None
        if not self._judges_boxes:
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
        """Return the candidates of a domain that pass while all other variables are at their coarsest."""
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

    def _passes(
        self, box: Box, rule: PrivacyRule | None, instead: tuple[int, int] | None = None
    ) -> bool:
        """Return whether the coarsest corner of a box meets the criteria that are valid for boxes.

        Parameters
        ----------
        box
            The box. Its classes are those of its coarsest corner, which many boxes share.
        rule
            The criteria that `_rule` returns.
        instead
            Index of a variable, and a domain that replaces the variable's domain in the box.
        """
        masks = self._masks(box) if self._bounds else None
        if rule is None and masks is None:
            self.count()
            return True
        key: Hashable = rule, self._node(box, instead)
        if masks is not None or self._by_person or not (rule is None or rule.sizes_only):
            key = key, *(box[place] for place in self._protected)
        if key not in self._passed:
            self._passed[key] = self._meets(box, rule, instead, masks)
        if masks is None or not self._passed[key] or not self._judge.bounds_parts:
            return self._passed[key]
        return self._passes_in_parts(key, box, instead, masks)

    def _passes_in_parts(
        self,
        corner: Hashable,
        box: Box,
        instead: tuple[int, int] | None,
        masks: Sequence[Candidate | None],
    ) -> bool:
        """Return whether enough rows of the corner's classes may remain under the finest masks.

        Parameters are those of `_passes`; `corner` is a key of the corner.
        """
        inner = box
        if instead is not None:
            index, domain = instead
            finer = self.problem.variables[index].finer[domain.bit_length() - 1]
            inner = replaced(box, index, box[index] & finer)
        if is_leaf(inner) or self._tables.combinations(inner) > _PARTS:
            return True
        key = corner, self._tables.finest(inner)
        if key not in self._passed:
            if not self._judge.parts_pay.worth():
                return True
            self.count()
            ids, space = self._classes(box, instead)
            parts = self._tables.parts(inner)
            self._passed[key] = self._judge.possible_in_parts(*dense(ids, space), parts, masks)
        return self._passed[key]

    def _meets(
        self,
        box: Box,
        rule: PrivacyRule | None,
        instead: tuple[int, int] | None,
        masks: Sequence[Candidate | None] | None,
    ) -> bool:
        if masks is None and rule is not None and rule.sizes_only and not self._by_person:
            return self._meets_by_size(box, instead, rule.minimum_size)
        self.count()
        ids, space = self._classes(box, instead)
        if masks is not None:
            ids, space = dense(ids, space)
            if not self._judge.possible(ids, space, masks):
                return False
            rule = self._undecided_part(rule)
        if rule is None:
            return True
        if rule.sizes_only and not self._by_person:
            return self.cells.rows_below(ids, space, rule.minimum_size) <= self.room
        table = self.cells.classes(ids, rule.sensitive, self._sensitive(box))
        return rule.check(table).admissible

    def _meets_by_size(self, box: Box, instead: tuple[int, int] | None, k: int) -> bool:
        """Return whether the rows in classes with fewer than `k` rows may be suppressed."""
        node = self._node(box, instead)
        met = self._implied.answer(node)
        if met is None:
            self.count()
            met = self.cells.rows_below(*self._classes(box, instead), k) <= self.room
            self._implied.add(node, met=met)
        return met

    def _classes(self, box: Box, instead: tuple[int, int] | None) -> tuple[Ints, int]:
        """Return the class of each cell at the coarsest corner of a box, and a limit of the ids.

        Parameters are those of `_passes`.
        """
        ids, space = self._tables.of(box)
        if instead is None:
            return ids, space
        return refine(ids, space, *self._tables.coded(*instead))

    def _masks(self, box: Box) -> list[Candidate | None] | None:
        """Return the candidates of the rule's protected attributes; None if one is undecided."""
        masks: list[Candidate | None] = []
        for name in self.plan.rule.sensitive:
            place = self._places.get(name)
            if place is None:
                masks.append(None)
                continue
            domain = box[place]
            if domain & (domain - 1):
                return None
            masks.append(self.problem.variables[place].candidates[domain.bit_length() - 1])
        return masks

    def _undecided_part(self, rule: PrivacyRule | None) -> PrivacyRule | None:
        """Return the criteria of a rule that the judge cannot decide for boxes."""
        if rule is None:
            return None
        if rule not in self._rest:
            criteria = tuple(c for c in rule.criteria if not self._judge.decides(c))
            self._rest[rule] = replace(rule, criteria=criteria) if criteria else None
        return self._rest[rule]

    def _node(self, box: Box, instead: tuple[int, int] | None) -> tuple[int, ...]:
        """Return a key of the corner of a box: the coarsest candidate of each domain.

        A domain without a coarsest candidate is its own key. `instead` replaces the domain of one
        variable.
        """
        if self._corner[0] != box:  # a box is asked about once for each of its candidates
            own = [self._coarsest(i, box[i]) if v.quasi else 0 for i, v in self._numbered]
            self._corner = box, own
        node = list(self._corner[1])
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
        """Indices of the variables that a rule beyond class sizes may use."""
        protected = set(self.frequency.sensitive) | {self.frequency.label}
        return [i for i, variable in self._numbered if variable.name in protected]

    def _rule(self, box: Box) -> PrivacyRule | None:
        """Return the criteria of the rule that are valid for a whole box; None if there are none."""
        open_masks = undecided(self.problem, box)
        if open_masks not in self._sound:
            self._sound[open_masks] = sound_part(self.rule, open_masks)
        return self._sound[open_masks]

    def _sensitive(self, box: Box) -> Mapping[str, Integers]:
        """Return the finest grouping of each protected attribute in a box, which is easiest to meet."""
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
        """Return whether a single configuration meets the whole privacy rule."""
        if box not in self._admits:
            quick = self.plan.rule.sizes_only and not (self._by_person or self.plan.after_others)
            if quick and self.plan.rule.criteria:
                self._admits[box] = self._passes(box, self._rule(box))
            else:
                self._admits[box] = self._all_met(box)
        return self._admits[box]

    def _all_met(self, box: Box) -> bool:
        """Return whether a configuration meets a rule that has criteria beyond class sizes."""
        if self._judges_boxes and not self._passes(box, self._rule(box)):
            return False
        if self._by_person or not self.plan.counts_alone:
            self.count()
            return self.plan.check(self.problem.choice(box)).admissible
        key = self._node(box, None), *(box[place] for place in self._protected)
        if key not in self._passed:
            self.count()
            self._passed[key] = self._judged(box)
        return self._passed[key]

    def _judged(self, box: Box) -> bool:
        """Return whether a configuration meets the rule, checking only classes that are large enough."""
        ids, space = dense(*self._tables.of(box))
        choice = self.problem.choice(box)
        masks = [choice.get(name) for name in self.plan.rule.sensitive]
        return self._judge.admits(ids[self.cells.of_cell], space, masks)

    def count(self) -> None:
        """Add one to the number of configurations that were checked."""
        self.checked += 1
        self.problem.work.add(_LOOK + _PER_CELL * self.frequency.cells)

    @cached_property
    def _judge(self) -> Judge:
        return Judge(self.plan, self.frequency)


class InEngine:
    """Checks whether configurations meet the rule by database queries, if the frequency table does
    not fit in memory.

    Each check of a configuration needs a query, so the search checks only configurations that could
    be the best.
    """

    def __init__(self, problem: Problem, plan: PrivacyPlan, clock: Clock) -> None:
        self.problem = problem
        self.plan = plan
        self.clock = clock
        self.checked = 0
        self._monotone = plan.rule.monotone
        self._admits: dict[Box, bool] = {}

    def narrow(self, box: Box) -> Box | None:
        """Return the box. If its coarsest configuration fails the rule, return None.

        A box without a coarsest configuration is returned as it is.
        """
        self.clock.check()
        rule = self.plan.rule
        if not self._monotone or sound_part(rule, undecided(self.problem, box)) != rule:
            return box
        corner = self.problem.corner(box)
        return box if corner is None or self.admits(corner) else None

    def admits(self, box: Box) -> bool:
        """Return whether a single configuration meets the rule, which takes one database query."""
        # Masks of other attributes do not change classes, so they share the answer.
        key = tuple(
            domain if v.quasi or v.name in self.plan.rule.sensitive else 0
            for v, domain in zip(self.problem.variables, box, strict=True)
        )
        if key not in self._admits:
            self.checked += 1
            self.problem.work.add(_QUERY)
            self._admits[key] = self.plan.check(self.problem.choice(box)).admissible
        return self._admits[key]


def undecided(problem: Problem, box: Box) -> frozenset[str]:
    """Return those attributes for which a box still contains several candidates."""
    pairs = zip(problem.variables, box, strict=True)
    return frozenset(v.name for v, domain in pairs if domain & (domain - 1))


def sound_part(rule: PrivacyRule | None, undecided: frozenset[str]) -> PrivacyRule | None:
    """Return the rule without those criteria that compare one of the attributes `undecided` with
    the whole table.
    """
    if rule is None:
        return None
    sound = tuple(c for c in rule.criteria if c.model.local or c.attribute not in undecided)
    if len(sound) == len(rule.criteria):
        return rule
    return replace(rule, criteria=sound) if sound else None


def prunable(rule: PrivacyRule) -> PrivacyRule | None:
    """Return those criteria by which candidates can be removed: coarser masks never break them, and
    they need only counts.

    If the other criteria require more rows per class than these do, the result also has that number
    as k.
    """
    part = rule.monotone_part
    if part is not None and part.hierarchical:
        criteria = tuple(c for c in part.criteria if ModelNeed.HIERARCHY not in c.model.needs)
        part = replace(part, criteria=criteria) if criteria else None
    if rule.implied_size <= (1 if part is None else part.implied_size):
        return part
    sizes = PrivacyRule.parse({"k": rule.implied_size}).criteria
    return replace(rule, criteria=sizes if part is None else (*part.criteria, *sizes))
