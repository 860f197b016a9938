"""Check configurations and boxes against rules that have criteria beyond class sizes.

A box has a domain of candidates for each variable. A cell is a combination of values in the
frequency table. `ids` has the class of each cell, shape (cells,), a number below `space`. `masks`
has the candidate of each sensitive attribute of the rule, in its order; None if an attribute has no
candidate.

A search does this thousands of times. So it first drops classes that are too small, and then counts
the others in a matrix of classes by values.

Criteria that use the leaves of hierarchies are not monotone, but they can exclude boxes. In every
configuration of a box, the class of a row is at most as large as at the coarsest corner, and the
masks hide at least as many bits as the finest masks. Models that depend on leaves
(`ModelNeed.LEAVES`) are never easier to meet if a class is smaller or hides more bits. So a row
that fails with the largest class size and the fewest hidden bits fails in the whole box.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property, lru_cache

import numpy as np

from aegis.advisor.plan import PrivacyPlan
from aegis.advisor.search.corner_classes import Parts
from aegis.advisor.search.problem import Box, Problem, Variable
from aegis.arrays import Array, Flags, Floats, Integers, Ints, cached_method, group_sums
from aegis.privacy import ClassTable, Criterion, ModelNeed
from aegis.privacy.admission import admits, admits_dense
from aegis.privacy.histograms import Bounds, Histograms, ShareCaps, TreeGroups
from aegis.privacy.model import Compared
from aegis.summary import Candidate, FrequencyTable
from aegis.summary.leaves import domain, leaf_counts, whole_bits

Mask = Candidate | None
"""The candidate of a protected attribute; None if it has no candidate."""

_PLACES = 1 << 21
"""Largest number of entries in a matrix of classes by values.

Larger tables are counted sparsely, or not at all.
"""
_SPREAD = 4
"""Largest number of entries per cell with which all classes are counted before small ones are dropped."""


class Judge:
    """Checks whether a configuration meets a rule, and whether it or any finer one may meet it. The
    frequency table must count rows.
    """

    def __init__(self, plan: PrivacyPlan, frequency: FrequencyTable) -> None:
        self._plan = plan
        self._frequency = frequency
        self._rows = frequency.counts.astype(np.float64)
        self._room = plan.rule.allowed_rows(frequency.rows)
        self._least = plan.rule.implied_size
        self._last: tuple[Ints, tuple[str, Mask], Floats] | None = None

    @cached_property
    def _beyond_sizes(self) -> tuple[Criterion, ...]:
        return tuple(c for c in self._plan.rule.criteria if c.model.least_size is None)

    @cached_property
    def _dense(self) -> bool:
        """Whether all criteria beyond sizes can be computed from matrices of classes by values."""
        return all(c.model.dense is not None for c in self._beyond_sizes)

    @cached_property
    def _beside_input(self) -> bool:
        """Whether a criterion compares classes with the table before suppression."""
        return any(c.reference is Compared.INPUT for c in self._beyond_sizes)

    @cached_property
    def bounding(self) -> tuple[Criterion, ...]:
        """The criteria that limit how many rows a configuration with finer masks can keep."""
        return tuple(c for c in self._beyond_sizes if c.model.caps is not None or self.decides(c))

    def decides(self, criterion: Criterion) -> bool:
        """Return whether one class that fails a criterion proves that all tables with finer masks
        fail it.

        Without suppression, this is so for every monotone privacy model. With suppression, all
        parts into which finer masks divide the class must fail; this is so only for some models.
        """
        model = criterion.model
        if model.least_size is not None:
            return True
        if model.dense is None or (self._room and not criterion.local):
            return False
        return model.monotone_with_suppression if self._room else model.monotone

    def possible(self, ids: Ints, space: int, masks: Sequence[Mask]) -> bool:
        """Return whether a configuration, or any finer one, may meet the rule; False proves that
        none does.
        """
        sizes, large, room = self._large(ids, space, masks)
        if room < 0 or not large.any():
            return False
        width = self._width(masks)
        if np.count_nonzero(large) * width > _PLACES:
            return True
        tables = self._histograms(ids, space, large, masks)
        rows = sizes[large]
        most = rows.copy()
        for criterion in self.bounding:
            name = criterion.attribute or ""
            if self.decides(criterion) and criterion.model.dense is not None:
                fails = criterion.beyond(criterion.model.dense(tables[name], criterion))
                most[fails] = 0.0
            else:
                caps = self._capped(criterion, self._mask_of(name, masks))
                if caps is not None:
                    np.minimum(most, caps.most_rows(tables[name].counts), out=most)
        most[most < self._least] = 0.0
        return bool(rows.sum() - most.sum() <= room and most.any())

    def possible_in_parts(self, ids: Ints, space: int, parts: Parts, masks: Sequence[Mask]) -> bool:
        """Return whether a configuration between a coarser one (`ids`) and a finer one may meet the
        rule; False proves that none does. `parts` are the classes of the finer one: each is a
        subset of a coarser class, and a configuration between the two keeps or suppresses all of
        it.
        """
        of_part = ids[parts.first]
        rows = self._part_rows(parts)
        sizes = group_sums(of_part, rows, space)
        large = sizes >= self._least
        width = self._width(masks)
        if len(parts.first) * width > _PLACES or not large.any():
            return True
        there = np.flatnonzero(large[of_part])
        there = there[np.argsort(of_part[there], kind="stable")]
        starts = np.flatnonzero(np.diff(of_part[there], prepend=-1))
        most: Floats | None = None
        for criterion in self.bounding:
            name = criterion.attribute or ""
            caps = self._capped(criterion, self._mask_of(name, masks))
            if caps is not None and not self.decides(criterion):
                counts = self._part_counts(parts, name, self._mask_of(name, masks))
                within = caps.most_of_parts(counts[there], starts)
                most = within if most is None else np.minimum(most, within)
        if most is None:
            return True
        most[most < self._least] = 0.0
        return bool(rows.sum() - most.sum() <= self._room and most.any())

    def _part_rows(self, parts: Parts) -> Floats:
        """Return how many rows each of the m classes in `parts` has, shape (m,)."""
        if None not in parts.counts:
            parts.counts[None] = group_sums(parts.ids, self._rows, len(parts.first))
        return parts.counts[None]

    def _part_counts(self, parts: Parts, name: str, mask: Mask) -> Floats:
        """Return the rows of each class in `parts` with each value of a protected attribute, shape
        (m, V).
        """
        if (name, mask) not in parts.counts:
            codes, labels = self._values(name, mask)
            width, count = len(labels), len(parts.first)
            keys = parts.ids * width + codes
            counts = group_sums(keys, self._rows, count * width)
            parts.counts[name, mask] = counts.reshape(count, width)
        return parts.counts[name, mask]

    @cached_property
    def bounds_parts(self) -> bool:
        """Whether the classes under the finest masks of a box can exclude configurations that the
        classes under its coarsest masks cannot exclude.
        """
        return any(c.model.caps is not None and not self.decides(c) for c in self.bounding)

    def admits(self, ids: Ints, space: int, masks: Sequence[Mask]) -> bool:
        """Return whether a configuration meets the rule, judging only by the rows by class and
        sensitive value (see `PrivacyPlan.counts_alone`).
        """
        sizes, large, room = self._large(ids, space, masks)
        if room < 0 or not large.any():
            return False
        rule = self._plan.rule
        width = self._width(masks)
        if self._dense and np.count_nonzero(large) * width <= _PLACES:
            tables = self._histograms(ids, space, large, masks)
            named = self._named(masks) if self._beside_input else ()
            inputs = {name: self._totals(name, mask) for name, mask in named}
            return admits_dense(self._beyond_sizes, tables, sizes[large], room, inputs)
        if self._beside_input:  # with which also the small classes count
            large, room = sizes > 0, self._room
        number = np.cumsum(large) - 1
        cells = large[ids]
        sensitive = {
            name: (self._values(name, mask)[0][cells], self._values(name, mask)[1])
            for name, mask in self._named(masks)
        }
        levels = self._plan.levels({name: labels for name, (_, labels) in sensitive.items()})
        counts = self._frequency.counts[cells]
        table = ClassTable.from_cells(number[ids[cells]], counts, sensitive, hierarchies=levels)
        return admits(rule, table, room)

    def _large(self, ids: Ints, space: int, masks: Sequence[Mask]) -> tuple[Floats, Flags, int]:
        """Return the rows of each class, shape (space,), flags of the classes that are large
        enough, and how many more rows may be suppressed after the small classes.
        """
        named = self._named(masks)
        if not named or self._spread(ids, space, masks):
            sizes = group_sums(ids, self._rows, space)
        else:
            # Most pass, and their values are asked for next.
            sizes = self._counts(ids, space, *named[0]).sum(axis=1)
        large = sizes >= self._least
        return sizes, large, self._room - round(float(sizes.sum(where=~large)))

    def _named(self, masks: Sequence[Mask]) -> list[tuple[str, Mask]]:
        return list(zip(self._plan.rule.sensitive, masks, strict=True))

    def _width(self, masks: Sequence[Mask]) -> int:
        """Return the largest number of masked values of any protected attribute; 1 without such
        attributes.
        """
        return max((len(self._values(*named)[1]) for named in self._named(masks)), default=1)

    def _mask_of(self, name: str, masks: Sequence[Mask]) -> Mask:
        return masks[self._plan.rule.sensitive.index(name)]

    def _histograms(
        self, ids: Ints, space: int, large: Flags, masks: Sequence[Mask]
    ) -> dict[str, Histograms]:
        """Return the rows by class and value of each protected attribute, for classes that `large`
        flags.
        """
        classes, count = ids, space
        everything = bool(large.all())
        spread = self._spread(ids, space, masks)
        if spread and not everything:
            # Small classes fall together into one behind the last, which is left out.
            count = int(np.count_nonzero(large))
            classes = np.where(large, np.cumsum(large) - 1, count)[ids]
        tables = {}
        for name, mask in self._named(masks):
            matrix = self._counts(classes, count, name, mask)
            if not spread and not everything:
                matrix = matrix[large]
            tables[name] = Histograms(matrix, self._tree(name, mask))
        return tables

    def _spread(self, ids: Ints, space: int, masks: Sequence[Mask]) -> bool:
        return self._width(masks) * space > _SPREAD * len(ids)

    def _counts(self, ids: Ints, space: int, name: str, mask: Mask) -> Floats:
        """Return the rows by class and value of a protected attribute, shape (space, V). The last
        result is cached.
        """
        key = name, mask
        if self._last is None or self._last[0] is not ids or self._last[1] != key:
            codes, labels = self._values(name, mask)
            width = len(labels)
            counts = group_sums(ids * width + codes, self._rows, space * width)
            self._last = ids, key, counts[: space * width].reshape(space, width)
        return self._last[2]

    @cached_method
    def _capped(self, criterion: Criterion, mask: Mask) -> ShareCaps | None:
        """Return the largest share that each value of a protected attribute may have in a class
        that meets a criterion; None if the privacy model sets no such limits.
        """
        name, caps = criterion.attribute or "", criterion.model.caps
        totals = self._totals(name, mask)
        room = 0 if criterion.reference is Compared.INPUT else self._room
        bounds = Bounds(totals, room, self._tree(name, mask))
        return None if caps is None else caps(bounds, criterion)

    @cached_method
    def _totals(self, name: str, mask: Mask) -> Floats:
        """Return how many rows of the table have each value of a protected attribute, shape (V,)."""
        codes, labels = self._values(name, mask)
        return group_sums(codes, self._rows, len(labels))

    @cached_method
    def _tree(self, name: str, mask: Mask) -> TreeGroups | None:
        levels = self._plan.levels({name: self._values(name, mask)[1]}).get(name)
        return None if levels is None else TreeGroups.of(levels)

    @cached_method
    def _values(self, name: str, mask: Mask) -> tuple[Ints, tuple[str, ...]]:
        """Return the value of a protected attribute in each cell, shape (cells,), as an index into
        a list of texts, and this list.
        """
        groups, labels = self._plan.protected(name, {} if mask is None else {name: mask})
        frequency = self._frequency
        codes = groups[frequency.representatives[name]][frequency.codes[name]]
        return codes.astype(np.int64), labels


_CACHED = 256
"""Number of corners whose class sizes are cached."""


def least_bits(problem: Problem, frequency: FrequencyTable, box: Box) -> Floats:
    """Return the least number of bits that a configuration in a box hides in each cell, shape
    (cells,): log2 of the number of combinations of leaves of the hierarchies that its masked values
    may represent.
    """
    total = np.zeros(frequency.cells)
    for variable, chosen in zip(problem.variables, box, strict=True):
        if variable.quasi:
            values = frequency.representatives[variable.name]
            total += _bits(variable, chosen)[values][frequency.codes[variable.name]]
    return total


def _bits(variable: Variable, chosen: int) -> Floats:
    """Return a lower bound of the bits that the candidates of a domain hide of each value, shape
    (V,).

    If one candidate is the finest, its leaves are counted. If none is, the bound uses the groups of
    the common refinement, and counts the table's values in each.
    """
    finest = variable.finest(chosen)
    if finest is not None:
        return np.log2(leaf_counts(variable.attribute, variable.candidates[finest]))
    groups: Integers = variable.join(chosen)
    return np.log2(np.bincount(groups)[groups].astype(np.float64))


class LeafBound:
    """Counts the rows that fail the rule in every configuration of a box. If they are more than may
    be suppressed, no configuration in the box is admissible.
    """

    def __init__(self, problem: Problem, frequency: FrequencyTable, plan: PrivacyPlan) -> None:
        self._problem = problem
        self._frequency = frequency
        self._plan = plan
        self._criteria = [c for c in plan.rule.criteria if ModelNeed.LEAVES in c.model.needs]
        quasi = [v.attribute for v in problem.variables if v.quasi]
        self._most_bits = whole_bits(map(domain, quasi))
        self._counted = lru_cache(_CACHED)(self._count)
        self._room = plan.rule.allowed_rows(frequency.rows)
        # Persons lose rows in several classes: rows that fail say little about how many they are.
        self._blind = not self._criteria or frequency.persons is not None

    def possible(self, box: Box) -> bool:
        """Return whether a configuration in a box may meet the rule; False proves that none does."""
        corner = None if self._blind else self._problem.corner(box)
        if corner is None:
            return True
        sizes, people = self._counted(corner)
        hidden = least_bits(self._problem, self._frequency, box) / self._most_bits
        table = ClassTable(sizes, population=people, hidden=hidden)
        for criterion in self._criteria:
            if self._frequency.counts[criterion.failing(table)].sum() > self._room:
                return False
        return True

    def _count(self, corner: Box) -> tuple[Array, Array | None]:
        """Return, for each cell, how many rows its class has in the configuration `corner`, and how
        many people in the population (None without one), shape (cells,) each.
        """
        choice = self._problem.choice(corner)
        table = self._plan.classes(choice, ())
        groups = {name: choice[name].groups for name in self._frequency.quasi}
        class_ids = np.arange(len(table)) if table.ids is None else table.ids
        places = np.searchsorted(class_ids, self._frequency.class_ids(groups))
        people = None if table.population is None else table.population[places]
        return table.sizes[places], people
