"""Decide which candidates can still be part of an admissible configuration.

A box has a domain of candidates for each variable, as a bit mask; a configuration is a box of
single candidates. A cell is a combination of values in the frequency table. The rule is checked at
the *coarsest corner* of the box, the configuration in which all variables have their coarsest
grouping. If a monotone rule fails there, it fails for every configuration in the box, because each
refines the corner. If the rule fails for a candidate while all other variables have their coarsest
grouping, this candidate and all candidates that refine it are removed from the domain. Criteria
that are not monotone under the suppression limit are checked for single configurations;
docs/theory.md lists these criteria and proves this. But most of them also limit how many rows of
the corner's classes finer configurations can keep (`aegis.privacy.histograms`), which can exclude a
box.

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
from aegis.advisor.search.corner_classes import CornerClasses, RuleCells, dense, refine
from aegis.advisor.search.problem import Box, Clock, Problem, Variable, is_leaf, members, replaced
from aegis.advisor.search.rule_bounds import Judge, LeafBound
from aegis.arrays import Integers, Ints, cached_method
from aegis.privacy import ModelNeed, PrivacyRule
from aegis.summary import Candidate, FrequencyTable

_PARTS = 1 << 18
"""Classes at the finest masks of a box up to which they are looked at as parts of coarser ones."""
_TRIED, _WORTH = 32, 0.25
"""The search looks at parts of classes for `_TRIED` boxes. If it thereby excludes less than the share
`_WORTH` of them, it stops, because a look costs more than it saves (`benchmarks.searches`)."""
_LOOK, _PER_CELL, _QUERY = 1e-4, 5e-9, 0.1
"""The work of counting classes in memory, of each cell in this count, and of a query."""
_FILTERED = 256
"""Largest number of candidates in a domain that are checked one by one; larger domains are divided."""


class Feasibility(Protocol):
    """Removes candidate masks that cannot meet the rule from boxes, and checks configurations."""

    def narrow(self, box: Box) -> Box | None:
        """Return a box without the candidates that cannot meet the rule; None if a domain is then
        empty.
        """

    def admits(self, box: Box) -> bool:
        """Return whether a configuration meets the whole rule."""


class InMemory:
    """Checks whether configurations meet the rule, on the frequency table in memory.

    Parameters
    ----------
    problem
        The search space.
    frequency
        The rows of each cell, counted under the finest candidates.
    plan
        The plan that checks single configurations.
    clock
        Time limit. When it is reached, a check raises `OutOfTimeError`.
    shared
        Cached counts from searches under other rules: one cache for rules that depend only on class
        sizes, and one for all other rules. New counts are added to these caches.
    """

    def __init__(
        self,
        problem: Problem,
        frequency: FrequencyTable,
        plan: PrivacyPlan,
        clock: Clock,
        shared: dict[bool, CornerClasses] | None = None,
    ) -> None:
        self.problem = problem
        self.plan = plan
        self.clock = clock
        self.frequency = frequency
        self.checked = 0
        self.rule = prunable(plan.rule)
        self.room = plan.rule.allowed_rows(frequency.rows)
        self._passed: dict[Hashable, bool] = {}
        self._tried_in_parts = self._excluded_in_parts = 0
        self._corner: tuple[Box, list[int]] = (), []
        self._places = {v.name: i for i, v in enumerate(problem.variables)}
        self._by_person = frequency.persons is not None
        alone = not (self._by_person or plan.by_population)
        self._bounds = alone and bool(self._judge.bounding)
        all_cells = self._bounds or not (self.rule is None or self.rule.sizes_only)
        tables = {} if shared is None else shared
        if all_cells not in tables:
            tables[all_cells] = CornerClasses(problem, RuleCells(frequency, all_cells=all_cells))
        self._tables = tables[all_cells]
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
        """Return a box without those candidates that fail the rule even if all other variables have
        their coarsest masks; None if no configuration in the box meets the rule. Domains of more
        than 256 candidates stay unchanged.
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
        """Return the candidates of the variable at `index` that meet `rule` while all others have
        their coarsest grouping.
        """
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
        """Return whether a box meets the rule at its coarsest corner. If not, it has no admissible
        configuration.

        `rule` has the criteria that can be checked for a whole box; None if there are none.
        `instead` has the index of a variable, and a domain that replaces its domain.
        """
        masks = self._masks(box) if self._bounds else None
        if rule is None and masks is None:
            self.count()
            return True
        key: Hashable = rule, self._node(box, instead)
        if masks is not None or self._by_person or not (rule is None or rule.sizes_only):
            key = key, *(box[index] for index in self._protected)
        if key not in self._passed:
            self._passed[key] = self._meets(box, rule, instead, masks)
        if masks is None or not self._passed[key] or not self._parts_exclude:
            return self._passed[key]
        return self._passes_in_parts(key, box, instead, masks)

    @property
    def _parts_exclude(self) -> bool:
        """Whether parts of classes have excluded enough of the boxes for which they were tried."""
        tried, excluded = self._tried_in_parts, self._excluded_in_parts
        return self._judge.bounds_parts and (tried < _TRIED or excluded >= _WORTH * tried)

    def _passes_in_parts(
        self,
        corner: Hashable,
        box: Box,
        instead: tuple[int, int] | None,
        masks: Sequence[Candidate | None],
    ) -> bool:
        """Return False if the classes under the finest masks of a box prove that no configuration
        in it can keep enough rows. `corner` is a key of its coarsest corner, `masks` are those of
        the protected attributes, and `instead` is as in `_passes`.
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
            self.count()
            ids, space = self._classes(box, instead)
            parts = self._tables.parts(inner)
            self._passed[key] = self._judge.possible_in_parts(*dense(ids, space), parts, masks)
            self._tried_in_parts += 1
            self._excluded_in_parts += not self._passed[key]
        return self._passed[key]

    def _meets(
        self,
        box: Box,
        rule: PrivacyRule | None,
        instead: tuple[int, int] | None,
        masks: Sequence[Candidate | None] | None,
    ) -> bool:
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

    def _classes(self, box: Box, instead: tuple[int, int] | None) -> tuple[Ints, int]:
        """Return the class of each cell at the coarsest corner of a box, shape (cells,), and a
        number above all class numbers. `instead` is as in `_passes`.
        """
        ids, space = self._tables.of(box)
        if instead is None:
            return ids, space
        return refine(ids, space, *self._tables.cell_groups(self._tables.grouping(*instead)))

    def _masks(self, box: Box) -> list[Candidate | None] | None:
        """Return the candidate of each protected attribute of the rule, in its order (None for an
        attribute without candidates); None if a box has several for one.
        """
        masks: list[Candidate | None] = []
        for name in self.plan.rule.sensitive:
            index = self._places.get(name)
            if index is None:
                masks.append(None)
                continue
            domain = box[index]
            if domain & (domain - 1):
                return None
            masks.append(self.problem.variables[index].candidates[domain.bit_length() - 1])
        return masks

    @cached_method
    def _undecided_part(self, rule: PrivacyRule | None) -> PrivacyRule | None:
        """Return those criteria for which one failing class does not prove that all finer
        configurations fail; None if there are none.
        """
        if rule is None:
            return None
        criteria = tuple(c for c in rule.criteria if not self._judge.decides(c))
        return replace(rule, criteria=criteria) if criteria else None

    def _node(self, box: Box, instead: tuple[int, int] | None) -> tuple[int, ...]:
        """Return a key of the coarsest corner of a box: for each variable, its coarsest candidate
        or, if there is none, the inverted domain. `instead` is as in `_passes`.
        """
        if self._corner[0] != box:  # a box is asked about once for each of its candidates
            coarsest = [self._coarsest(i, box[i]) if v.quasi else 0 for i, v in self._numbered]
            self._corner = box, coarsest
        node = list(self._corner[1])
        if instead is not None:
            node[instead[0]] = self._coarsest(*instead)
        return tuple(node)

    @cached_method
    def _coarsest(self, index: int, domain: int) -> int:
        coarsest = self.problem.variables[index].coarsest(domain)
        return ~domain if coarsest is None else coarsest

    @cached_property
    def _numbered(self) -> list[tuple[int, Variable]]:
        return list(enumerate(self.problem.variables))

    @cached_property
    def _protected(self) -> list[int]:
        """Indices of the variables that a rule beyond class sizes may use: sensitive attributes and
        the label.
        """
        protected = set(self.frequency.sensitive) | {self.frequency.label}
        return [i for i, variable in self._numbered if variable.name in protected]

    def _rule(self, box: Box) -> PrivacyRule | None:
        """Return those criteria that can be checked for a whole box; None if there are none."""
        return self._sound_part(undecided(self.problem, box))

    @cached_method
    def _sound_part(self, open_masks: frozenset[str]) -> PrivacyRule | None:
        return sound_part(self.rule, open_masks)

    def _sensitive(self, box: Box) -> Mapping[str, Integers]:
        """Return the group of each value of the protected attributes under the finest masks of a
        box, with which the rule is easiest to meet.
        """
        label = self.frequency.label
        groupings = {label: self.plan.protected(label, {})[0]}
        return groupings | {
            v.name: v.join(box[i])
            if box[i] & (box[i] - 1)
            else v.candidates[box[i].bit_length() - 1].in_order[0]
            for i, v in enumerate(self.problem.variables)
            if v.name in self.frequency.sensitive
        }

    @cached_method
    def admits(self, box: Box) -> bool:
        """Return whether the only configuration of a box (one mask an attribute) meets the whole rule."""
        quick = self.plan.rule.sizes_only and not (self._by_person or self.plan.after_others)
        if quick and self.plan.rule.criteria:
            return self._passes(box, self._rule(box))
        if self._judges_boxes and not self._passes(box, self._rule(box)):
            return False
        if self._by_person or not self.plan.counts_alone:
            self.count()
            return self.plan.check(self.problem.choice(box)).admissible
        key = self._node(box, None), *(box[index] for index in self._protected)
        if key not in self._passed:
            self.count()
            self._passed[key] = self._judged(box)
        return self._passed[key]

    def _judged(self, box: Box) -> bool:
        """Return whether a configuration meets the rule. Only classes that are large enough are
        checked against the criteria beyond class sizes.
        """
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
    not fit in memory. Each check needs a query, so the search checks only configurations that could
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
        """Return a box unchanged, or None if its coarsest configuration fails a rule that coarser
        masks never break.
        """
        self.clock.check()
        rule = self.plan.rule
        if not self._monotone or sound_part(rule, undecided(self.problem, box)) != rule:
            return box
        corner = self.problem.corner(box)
        return box if corner is None or self.admits(corner) else None

    def admits(self, box: Box) -> bool:
        """Return whether a configuration meets the rule, which takes one database query."""
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
    """Return the names of the attributes for which a box still has several candidates."""
    pairs = zip(problem.variables, box, strict=True)
    return frozenset(v.name for v, domain in pairs if domain & (domain - 1))


def sound_part(rule: PrivacyRule | None, undecided: frozenset[str]) -> PrivacyRule | None:
    """Return the rule without the criteria that cannot be checked yet, because they compare classes
    with the whole table and their attribute is `undecided`; None if no criterion is left.
    """
    if rule is None:
        return None
    sound = tuple(c for c in rule.criteria if c.model.local or c.attribute not in undecided)
    if len(sound) == len(rule.criteria):
        return rule
    return replace(rule, criteria=sound) if sound else None


def prunable(rule: PrivacyRule) -> PrivacyRule | None:
    """Return the part of a rule by which candidates can be removed: criteria that coarser masks
    never break, and that need only counts; None if there are none.

    If the whole rule implies a larger class size than this part, the part also requires k-anonymity
    with that size.
    """
    part = rule.monotone_part
    if part is not None and part.hierarchical:
        criteria = tuple(c for c in part.criteria if ModelNeed.HIERARCHY not in c.model.needs)
        part = replace(part, criteria=criteria) if criteria else None
    if rule.implied_size <= (1 if part is None else part.implied_size):
        return part
    sizes = PrivacyRule.parse({"k": rule.implied_size}).criteria
    return replace(rule, criteria=sizes if part is None else (*part.criteria, *sizes))


class BesidePopulation(InMemory):
    """Checks whether configurations meet the rule, on the frequency table and the class sizes in
    the population.

    Criteria on the table remove candidates as in a search without a population. Criteria on the
    population are checked for the coarsest configuration of a box, if there is one. A criterion
    that fails there excludes the box, if coarser masks never break it, or if finer masks cannot
    repair it.
    """

    def __init__(
        self,
        problem: Problem,
        frequency: FrequencyTable,
        plan: PrivacyPlan,
        clock: Clock,
        shared: dict[bool, CornerClasses] | None = None,
    ) -> None:
        super().__init__(problem, frequency, plan, clock, shared)
        self.rule = prunable(plan.rule.without_crowd)
        self._part = plan.rule.monotone_part
        hopeless = any(criterion.model.hopeless is not None for criterion in plan.rule.criteria)
        self._tells = hopeless or self._part is not None
        self._verdicts: dict[tuple[Box, PrivacyRule | None], bool] = {}

    def narrow(self, box: Box) -> Box | None:
        """Return a box without those candidates that fail the rule even if all other variables have
        their coarsest masks; None if a domain is then empty.
        """
        narrowed = super().narrow(box)
        if narrowed is None or not self._corner_possible(narrowed):
            return None
        if not self._tells:
            return narrowed
        domains = list(narrowed)
        for index, variable in enumerate(self.problem.variables):
            if not variable.quasi:
                continue
            domain = domains[index]
            for candidate in members(domain) if domain & (domain - 1) else ():
                self.clock.check()
                tried = replaced(tuple(domains), index, 1 << candidate)
                if not self._corner_possible(tried):
                    domains[index] &= ~(1 << candidate)
            if not domains[index]:
                return None
        return tuple(domains)

    def _corner_possible(self, box: Box) -> bool:
        """Return whether the coarsest configuration of a box meets those criteria that finer masks
        cannot repair; True if there is no such configuration.
        """
        if not self._tells:
            return True
        corner = self.problem.corner(box)
        if corner is None:
            return True
        part = sound_part(self._part, undecided(self.problem, box))
        key = (corner, part)
        if key not in self._verdicts:
            self.count()
            table = self.plan.classes(self.problem.choice(corner))
            lost = any(
                criterion.model.hopeless is not None and criterion.model.hopeless(table, criterion)
                for criterion in self.plan.rule.criteria
            )
            self._verdicts[key] = not lost and (part is None or part.check(table).admissible)
        return self._verdicts[key]
