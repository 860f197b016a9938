"""Define the objectives that a search maximises, with bounds for whole boxes.

Every objective returns one number for a box (see `problem`), and the search maximises it. It is an
upper bound for all configurations in the box; for a single configuration, it is the exact value.
Figures for which smaller values are better are negated here, and negated again in the result.

For several labels, the search maximises a combination of the shares kept. Let B_t be an upper bound
on the score for label t over a box. The share kept of label t grows with its score, so the share
for the score B_t is an upper bound on it. The weighted mean of these bounds is a bound on the
weighted mean share, and the smallest of them is a bound on the smallest share. A search can prove
its result if the objective of each label has bounds.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Sequence
from dataclasses import replace
from functools import cached_property

import numpy as np

from aegis.advisor.encodings import CodedMasks
from aegis.advisor.fold_counts import FoldBlocks
from aegis.advisor.plan import PrivacyPlan
from aegis.advisor.scores import utility_kept
from aegis.advisor.scoring import Scorer
from aegis.advisor.search.objective import (
    OBJECTIVES,
    FinestBound,
    FinestMasks,
    Objective,
    ObjectiveType,
    OfMeasure,
    Pillai,
    columns_work,
    has_reach,
    inverse_work,
    levels_at,
    levels_of,
    reads_names,
)
from aegis.advisor.search.problem import Box, Problem, Variable, is_leaf, make_problem, members
from aegis.advisor.several import SeveralScorer, TaskScorer
from aegis.arrays import Flags, Floats, Integers, Ints, cached_method
from aegis.measures import MEASURES, Direction, LabelKind, Measure, Need, Scope
from aegis.measures.auc_bound import reachable_auc
from aegis.measures.columns import explained_by_others, weighted
from aegis.measures.cooccurrence import Trace
from aegis.measures.number import explained_share
from aegis.measures.numerics import cumulative
from aegis.summary import Candidate


class ShareOfLabel(Objective):
    """An objective: the share of the unmasked utility that a configuration keeps for one of several
    labels, or an upper bound of it for a box; None if the unmasked table has no utility for the
    label.

    Parameters
    ----------
    problem, space
        The search space of the whole table, and of the label's table, which lacks the columns that
        its scores ignore.
    task
        The scorer of the label.
    measure, inner
        The measure from which the share is computed, and the objective for it on the label's table.
    """

    sign = 1

    def __init__(
        self, problem: Problem, space: Problem, task: TaskScorer, measure: Measure, inner: Objective
    ) -> None:
        self.name = f"share kept of {task.column} by {measure.name}"
        self.bounded, self.divides = inner.bounded, inner.divides
        self.reaches = inner.bounded or inner.loose
        self.measure = measure
        self._space, self._task, self._inner = space, task, inner
        self._places = _places(problem, space, task)
        scorer = task.scorer
        self._rows = scorer.label_rows
        self._reference = scorer.value(scorer.unmasked, measure)
        self._shares: dict[Box, float | None] = {}
        self._quick: dict[Box, float | None] = {}

    def box(self, box: Box) -> Box:
        """Translate a box of the whole table into a box of the label's table."""
        return tuple([self._domain(i, box[index]) for i, (index, _) in enumerate(self._places)])

    @cached_method
    def _domain(self, index: int, domain: int) -> int:
        """Translate a domain of the whole table into that of the attribute at `index` in the
        label's table.
        """
        _, maps = self._places[index]
        return sum({1 << maps[c] for c in members(domain)})

    def share(self, box: Box) -> float | None:
        """Return the share, from 0 to 1: exact for a configuration, an upper bound for a box."""
        label_box = self.box(box)
        if label_box not in self._shares:
            self._shares[label_box] = self._share(label_box, self._inner.bound)
        return self._shares[label_box]

    def quick_share(self, box: Box) -> float | None:
        """Return an upper bound of `share` that takes less time to compute."""
        label_box = self.box(box)
        if label_box in self._shares:
            return self._shares[label_box]
        if label_box not in self._quick:
            self._quick[label_box] = self._share(label_box, self._inner.upper)
        return self._quick[label_box]

    def known_share(self, box: Box) -> float | None:
        """Return an upper bound of `share`, if one was computed before; otherwise 1."""
        label_box = self.box(box)
        if label_box in self._shares:
            return self._shares[label_box]
        return self._quick.get(label_box, self._most)

    @cached_property
    def _most(self) -> float | None:
        percent = utility_kept(self._reference, self._reference, self.measure, self._rows)
        return None if percent is None else percent / 100

    def _share(self, label_box: Box, figure: Callable[[Box], float]) -> float | None:
        """Return the share for the score that `figure` returns for a box of the label's table."""
        if is_leaf(label_box) and self._task.hides_label(self._space.choice(label_box)):
            score = self.measure.worst(self._rows)
        else:
            score = self._inner.sign * figure(label_box)
        percent = utility_kept(score, self._reference, self.measure, self._rows)
        return None if percent is None else percent / 100

    def guess(self, box: Box) -> float:
        """Return a quick estimate of the utility that a box can keep, relative to the unmasked
        table. The search uses it only to compare boxes.
        """
        span = abs(self._reference - self.measure.worst(self._rows))
        return self._inner.guess(self.box(box)) / span if span else 0.0

    def bound(self, box: Box) -> float:
        """Return `share`; 0 if the unmasked table has no utility for the label."""
        return self.share(box) or 0.0

    def upper(self, box: Box) -> float:
        """Return `quick_share`; 0 if the unmasked table has no utility for the label."""
        return self.quick_share(box) or 0.0

    def effort(self, box: Box) -> float:
        """Return about how many seconds `bound` takes; 0 if the result is cached."""
        label_box = self.box(box)
        return 0.0 if label_box in self._shares else self._inner.effort(label_box)


class SharesKept(Objective):
    """An objective for several labels: a combination of the shares of utility that a configuration
    keeps for each label, such as their weighted mean.
    """

    sign = 1

    def __init__(self, name: str, scorer: SeveralScorer, labels: Sequence[ShareOfLabel]) -> None:
        self.name = name
        weights = [task.task.weight for task in scorer.tasks]
        self._weights = [weight / sum(weights) for weight in weights]
        self.labels = tuple(labels)
        self.bounded = all(label.bounded for label in labels)
        self.loose = not self.bounded and all(label.reaches for label in labels)
        self.divides = any(label.divides for label in labels)
        self._combine = scorer.combine
        classes = [len(task.task.summary.label.counts) for task in scorer.tasks]
        self._quickest = sorted(range(len(classes)), key=classes.__getitem__)

    def guess(self, box: Box) -> float:
        """Return a quick estimate of `upper`. If the bounds of the labels are loose and slow to
        compute, it is the weighted mean of quick estimates for the labels.
        """
        if not self.loose:
            return self.upper(box)
        return sum(
            w * label.guess(box) for w, label in zip(self._weights, self.labels, strict=True)
        )

    def bound(self, box: Box) -> float:
        """Return the combination of the upper bounds of a box for all labels."""
        return self._combine([label.share(box) for label in self.labels])

    def upper(self, box: Box) -> float:
        """Return an upper bound that takes less time than `bound`, but need not be exact for a
        configuration.
        """
        return self._combine([label.quick_share(box) for label in self.labels])

    def excludes(self, box: Box, value: float, within: Box) -> bool:
        """Return True if the bounds of the labels show that no configuration in a box exceeds
        `value`.

        The search begins with the labels' bounds for a larger box (`within`). It replaces one after
        the other by the bound for `box`, first for labels with few classes, until the result is
        clear.
        """
        shares = [label.known_share(within) for label in self.labels]
        for index in self._quickest:
            if self._combine(shares) <= value:
                return True
            shares[index] = self.labels[index].quick_share(box)
        return self._combine(shares) <= value

    def effort(self, box: Box) -> float:
        """Return about how many seconds it takes to compute the bounds for all labels."""
        return sum(label.effort(box) for label in self.labels)


def _key(candidate: Candidate) -> tuple[bytes, object]:
    """Return a key of a candidate: equal keys mean equal groups of values and equal noise."""
    return candidate.groups.tobytes(), candidate.noise


def _places(
    problem: Problem, space: Problem, task: TaskScorer
) -> list[tuple[int, tuple[int, ...]]]:
    """Match the variables and candidates of one label's table (`space`) with those of the whole
    table.

    For each variable of the label's table, return its index in the whole table, and the index in
    the label's table of each of its candidates in the whole table.
    """
    names = [variable.name for variable in problem.variables]
    places = []
    for variable in space.variables:
        index = names.index(variable.name)
        first = {_key(c): i for i, c in reversed(list(enumerate(variable.candidates)))}
        maps = [
            first[_key(task.candidate(variable.name, candidate))]
            for candidate in problem.variables[index].candidates
        ]
        places.append((index, tuple(maps)))
    return places


_MOST = 1.0 - 1e-9
"""Largest share of the trace that is converted to an AUC."""
_SECONDS_PER_CELL = 2e-8
"""Approximate time to count one cell of the tables of all pairs of candidates."""
_SECONDS_PER_CANDIDATE = 2.5e-7
"""Approximate time for each candidate of all attributes to bound a box by values of pairs, and to
choose this box. It was measured on a table of 500 columns.
"""
_BITS = 61
"""Values of pairs of at most 1 are whole numbers of 2 to the power of minus this."""
_LEAST = np.iinfo(np.int64).min
"""The value of a candidate that a box does not have."""


class Additive(Objective):
    """An objective that adds up one value for each attribute, which depends only on the attribute's
    mask (and on the label's mask, if the label has candidates).

    The upper bound of a box is the sum of the best values of the attributes. The bound is valid
    even if values do not grow with finer masks, so the search is exact for corrected measures, too.
    If the label has candidates, the bound is the largest of the sums for these candidates.
    """

    def __init__(self, name: str, sign: int, values: list[list[list[float]]]) -> None:
        # values[l][j][c]: signed value of candidate c of variable j under label candidate l
        self.name = name
        self.sign = sign
        self._values = values
        self._labelled = len(values) > 1

    def bound(self, box: Box) -> float:
        """Return the sum of the best value of each attribute in a box."""
        labels = members(box[-1]) if self._labelled else [0]
        return max(
            math.fsum(self._over(label, j, box[j]) for j in range(len(self._values[label])))
            for label in labels
        )

    @cached_method
    def _over(self, label: int, variable: int, domain: int) -> float:
        values = self._values[label][variable]
        return max(values[c] for c in members(domain))


class Unbounded(OfMeasure):
    """A measure without an upper bound. To prove the best configuration, a search must score every
    one that meets the rule.
    """

    bounded = False

    def _over(self, box: Box) -> float:  # noqa: ARG002 - the bound of any box
        return math.inf


class BelowBound(OfMeasure):
    """A measure whose upper bound in a box is computed from the finest masks of the box.

    The held-out trace and the held-out R2 never exceed the figures without held-out rows (plug-in),
    because penalties and held-out rows only lower a figure. Plug-in figures cannot grow when masks
    are coarser. The expected AUC never exceeds `reachable_auc`, and the expected R2 never exceeds
    `explained_share`. These bounds ignore the effect of penalties and held-out rows, so a proof may
    need many more boxes than for `adjusted-pillai`. The bounds for the expected AUC and R2 are
    loose.
    """

    divides = True

    def __init__(self, problem: Problem, scorer: Scorer, measure: Measure) -> None:
        super().__init__(problem, scorer, measure)
        self.bounded = measure.trace is Trace.BELOW
        self.loose = not self.bounded
        self._of_number = measure.label is LabelKind.NUMBER

    @cached_property
    def _trace(self) -> Pillai:
        return Pillai(self._problem, "the plug-in trace", adjusted=False)

    @cached_property
    def _finest(self) -> FinestBound:
        most = explained_share if self._of_number else reachable_auc
        return FinestBound(self._problem, most, names=reads_names(self._measure))

    def upper(self, box: Box) -> float:
        """Return an upper bound of a box. For a configuration that has no score yet, it is not
        exact, because a score takes longer than the bound.
        """
        return self._scored[box] if box in self._scored else self._over(box)

    def _over(self, box: Box) -> float:
        by_trace = self.bounded and not self._of_number
        return self._trace.bound(box) if by_trace else self._finest.bound(box)

    def guess(self, box: Box) -> float:
        """Return a quick estimate of `upper`, by which the search compares boxes.

        For an expected AUC, it is twice the AUC of two classes with the same plug-in Pillai's
        trace, which is quicker to compute than the bound. For other measures, it is the bound
        itself.
        """
        if self.bounded or self._of_number:
            return self.upper(box)
        counts = self._problem.summary.label.counts
        explained = min(self._trace.bound(box) / max(len(counts) - 1, 1), _MOST)
        share = float(counts.max()) / max(float(counts.sum()), 1.0)
        odds = explained / (1.0 - explained) / max(share * (1.0 - share), 1.0 - _MOST)
        return 2.0 * float(cumulative(math.sqrt(odds / 2.0)))


def make_objective(
    name: str,
    problem: Problem,
    scorer: Scorer,
    plan: PrivacyPlan,
    companion: Objective | None = None,
) -> Objective:
    """Return the objective called `name`: a measure, or an objective that a package adds. The name
    may have options in brackets. For several labels, `companion` is another objective of the same
    search; both share the bounds of each label that they score by the same measure.

    Raises
    ------
    PolicyError
        No measure or objective has that name, or its options are not allowed.
    """
    if name not in MEASURES:
        return objective_type(name).make(name, problem, plan)
    measure = MEASURES.get(name)
    if isinstance(scorer, SeveralScorer):
        return shares_kept(name, problem, scorer, plan, companion)
    if measure.trace is Trace.BELOW or has_reach(name, problem):
        return BelowBound(problem, scorer, measure)
    if measure.trace is not None:
        return Pillai(problem, measure.name, adjusted=measure.trace is Trace.ADJUSTED)
    if Need.COLUMNS in measure.needs:
        return EveryColumn(problem, scorer, measure)
    if measure.of_pairs is not None:
        return Pairwise(problem, scorer, measure)
    if measure.scope is Scope.ATTRIBUTE:
        return _additive_measure(problem, scorer, measure)
    return Unbounded(problem, scorer, measure)


def shares_kept(
    name: str,
    problem: Problem,
    scorer: SeveralScorer,
    plan: PrivacyPlan,
    companion: Objective | None = None,
) -> SharesKept:
    """Return an objective that combines the shares of utility that a configuration keeps for
    several labels.

    Each label is scored by its measure. If this measure has no bound and `name` is a measure of
    label classes, the objective uses `name` for the label. The search then lists configurations by
    `name`, and scores them by the label's measure afterwards. `companion` is as in
    `make_objective`.
    """
    chosen, labels = MEASURES.get(name), []
    others = companion.labels if isinstance(companion, SharesKept) else ()
    for index, task in enumerate(scorer.tasks):
        space = replace(make_problem(task.task.summary), work=problem.work)
        measure = task.measure
        inner = make_objective(measure.name, space, task.scorer, plan)
        if chosen.label is task.task.summary.label.kind and not inner.bounded:
            measure, inner = chosen, make_objective(name, space, task.scorer, plan)
        same = others and others[index].measure is measure
        labels.append(others[index] if same else ShareOfLabel(problem, space, task, measure, inner))
    return SharesKept(name, scorer, labels)


def objective_type(text: str) -> ObjectiveType:
    """Return the registered type of an objective, from its name with perhaps options in brackets,
    which are checked.

    Raises
    ------
    PolicyError
        There is no such objective, or an option is not allowed.
    """
    registered = OBJECTIVES.get(text.partition("(")[0].strip(), others=MEASURES.names())
    registered.check(text)
    return registered


def is_minimised(objective: str) -> bool:
    """Return whether smaller values of an objective are better than larger ones."""
    if objective in MEASURES:
        return MEASURES.get(objective).direction is Direction.LOWER
    return objective_type(objective).direction is Direction.LOWER


def _additive_measure(problem: Problem, scorer: Scorer, measure: Measure) -> Additive:
    summary = problem.summary
    attributes = problem.variables[: len(summary.attributes)]
    labels: list[Candidate | None] = [None]
    if summary.label_attribute is not None:
        labels = [None if c.size == len(c.groups) else c for c in problem.variables[-1].candidates]
    total = math.fsum(v.attribute.weight for v in attributes)
    sign = measure.direction.sign
    values = [
        [
            [
                sign * v.attribute.weight / total * scorer.attribute(v.attribute, c, measure, label)
                for c in v.candidates
            ]
            for v in attributes
        ]
        for label in labels
    ]
    return Additive(measure.name, sign, values)


class Pairwise(OfMeasure):
    """An objective: the mean, over all pairs of attributes i and j, of a value w_ij(a, b) that
    depends only on the mask a of attribute i and the mask b of attribute j.

    The value of a pair is divided equally between its two attributes. Attribute i with mask a
    contributes

        1/2 sum_j w_ij(a, b_j) <= 1/2 sum_j max_b w_ij(a, b),

    where b_j is the mask of attribute j. The bound of a box adds, over the attributes, the largest
    right-hand side of any candidate a of attribute i. It is exact for a single configuration. It is
    valid even if values do not grow with finer masks, and it needs no label.

    The values of all pairs of candidates are computed once. They are stored as whole numbers of a
    small unit, so sums are exact. If a box differs from the last one in a few attributes, only the
    terms of these attributes change, so its bound takes little time.
    """

    def __init__(self, problem: Problem, scorer: Scorer, measure: Measure) -> None:
        super().__init__(problem, scorer, measure)
        attributes = problem.variables[: len(problem.summary.attributes)]
        self._pairs = max(len(attributes) * (len(attributes) - 1), 2) / 2
        self._bound_work = _SECONDS_PER_CANDIDATE * sum(len(v.candidates) for v in attributes)
        # An attribute with a single atom tells nothing about others under any mask.
        self._places = [i for i, v in enumerate(attributes) if v.attribute.n_atoms > 1]
        self._variables = [attributes[index] for index in self._places]
        sizes = [len(v.candidates) for v in self._variables]
        self._starts = np.cumsum([0, *sizes])[:-1]
        self._owner = np.repeat(np.arange(len(sizes)), sizes)
        none = np.zeros(len(self._owner), dtype=np.int64)
        self._last: tuple[Box, Ints, Flags] = (0,) * len(sizes), none, none > 0

    @cached_property
    def _halves(self) -> tuple[Ints, float]:
        """Half of the signed value of each pair of the M candidates of all attributes, divided by
        the number of pairs of attributes, as whole numbers of a small unit, shape (M, M); and the
        unit.
        """
        self._problem.work.add(self._count_work)
        masked = [
            (index, candidate)
            for index, variable in zip(self._places, self._variables, strict=True)
            for candidate in variable.candidates
        ]
        values = np.triu(self._scorer.pair_values(masked, self._measure))
        values[self._owner[:, None] == self._owner] = 0.0
        # No sum over pairs exceeds the largest value, so none needs more than 62 bits.
        unit = 2.0 ** (math.ceil(math.log2(max(float(np.abs(values).max()), 1.0))) - _BITS)
        above = np.rint(values * (self.sign / 2 / self._pairs / unit)).astype(np.int64)
        return above + above.T, unit

    @cached_property
    def _count_work(self) -> float:
        """About how many seconds it takes to compute the values of all pairs of candidates."""
        levels = sum(c.n_levels for v in self._variables for c in v.candidates)
        return _SECONDS_PER_CELL * float(levels) ** 2

    def _score(self, box: Box) -> float:
        return self._over(box)

    def _over(self, box: Box) -> float:
        if not self._places:
            return 0.0
        self._problem.work.add(self.effort(box))
        box = tuple([box[index] for index in self._places])
        # The sum of each candidate's values with its best partner in each attribute of the box, and
        # whether the box has the candidate, are computed from those of the last box.
        last, sums, in_box = self._last
        changed = [i for i, (old, new) in enumerate(zip(last, box, strict=True)) if old != new]
        sums, in_box = sums.copy(), in_box.copy()
        for i in changed:
            sums += self._best(i, box[i])
            if last[i]:
                sums -= self._best(i, last[i])
            start = int(self._starts[i])
            in_box[start : start + len(self._variables[i].candidates)] = False
            in_box[[start + at for at in members(box[i])]] = True
        self._last = box, sums, in_box  # in one assignment, so that an interrupt leaves it whole
        most = np.maximum.reduceat(np.where(in_box, sums, _LEAST), self._starts)
        return float(most.sum()) * self._halves[1]

    def _best(self, index: int, domain: int) -> Ints:
        """Return the value of each of M candidates with its best partner in a domain, shape (M,)."""
        partners = [int(self._starts[index]) + at for at in members(domain)]
        halves = self._halves[0]
        best: Ints = halves[partners[0]]
        for partner in partners[1:]:
            best = np.maximum(best, halves[partner])
        return best

    def effort(self, box: Box) -> float:  # noqa: ARG002 - the protocol's signature
        """Return about how many seconds it takes to bound a box; the first also computes all
        values.
        """
        first = 0.0 if "_halves" in self.__dict__ else self._count_work
        return first + self._bound_work


class EveryColumn(OfMeasure):
    """An objective: the mean, over all columns, of how well the other columns predict the column.

    For the bound of a box, all columns except the predicted one have the finest masks of the box,
    and the best mask of the predicted column counts. The prediction is least squares on all rows,
    because its errors are never larger than those on held-out rows. The bound is the mean over
    columns, and needs only one matrix inverse.
    """

    divides = True

    def __init__(self, problem: Problem, scorer: Scorer, measure: Measure) -> None:
        super().__init__(problem, scorer, measure)
        self._variables = problem.variables[: len(problem.summary.attributes)]
        roles = scorer.column_roles
        self._weights = np.array([roles[v.attribute.name].weight for v in self._variables])
        self._blocks: FoldBlocks | None = None
        self._masks = FinestMasks(problem)
        self._groups: dict[tuple[Hashable, int], Floats] = {}

    def _score_work(self, chosen: int, settled: int) -> float:
        return columns_work(chosen + settled)

    def effort(self, box: Box) -> float:
        """Return about how many seconds it takes to score a configuration."""
        return columns_work(sum(levels_of(self._problem, box)))

    def _over(self, box: Box) -> float:
        return self.upper(box)

    def upper(self, box: Box) -> float:
        """Return an upper bound of a box by least squares, so it is quicker to compute than an
        exact value.
        """
        return self._scored[box] if box in self._scored else self._upper(box)

    @cached_method
    def _upper(self, box: Box) -> float:
        masks = self._masks.encoded(box)
        if masks is None:
            return 1.0
        explained = self._explained(masks)
        each = [
            max(self._reached(i, masks, c, explained[i]) for c in members(box[i]))
            for i in range(len(explained))
        ]
        return float(weighted(np.array(each), self._weights))

    def _explained(self, masks: CodedMasks) -> list[Floats]:
        """Return, for each column under the finest masks, how much of the scatter of its L levels
        the other columns explain, shape (L, L): see `explained_by_others`.
        """
        if self._blocks is None:
            self._blocks = FoldBlocks(self._problem.summary.pairs, folds=1)
        self._problem.work.add(inverse_work(levels_at(masks)))
        return explained_by_others(self._blocks.counts(range(len(masks.keys)), masks))

    def _reached(self, index: int, masks: CodedMasks, candidate: int, explained: Floats) -> float:
        """Return an upper bound of V / (1 + V), which measures how well the other columns predict
        the column at `index` under one candidate.

        For each group of the candidate, take the scatter that the other columns explain
        (`explained` has it for the finest levels), divided by the rows of the group; V is the sum
        over groups. The output of a noise mask is a random function of the finest levels, so its V
        is no larger.
        """
        if not len(explained):
            return 0.0
        key = masks.keys[index], candidate
        if key not in self._groups:
            variable, level = self._variables[index], masks.levels[index]
            self._groups[key] = self._grouped(variable, level, candidate)
        value = max(float(np.vdot(explained, self._groups[key])), 0.0)
        return value / (1 + value)

    def _grouped(self, variable: Variable, level: Integers, index: int) -> Floats:
        """Return a matrix, shape (L, L), for the levels of a column under its finest masks: for two
        levels in one group of the candidate at `index`, 1 / the rows of the group, else 0. `level`
        has the level of each atom.
        """
        pairs, candidate = self._problem.summary.pairs, variable.candidates[index]
        atoms = pairs.atom_counts[pairs.names.index(variable.attribute.name)].sum(axis=1)
        counted = np.bincount(level, weights=atoms)
        there = np.flatnonzero(counted)
        rows: Floats = counted[there].astype(np.float64)
        if candidate.noise is not None:
            return np.diag(1 / rows)
        levels, numbers = self._scorer.order(variable.attribute, candidate)
        levels = candidate.levels if numbers is None else levels
        first = np.zeros(int(level.max()) + 1, dtype=np.int64)
        first[level] = np.arange(len(level))
        groups = levels[first[there]]
        group_rows = np.bincount(groups, weights=rows)[groups]
        together: Floats = (groups[:, None] == groups) / group_rows
        return together
