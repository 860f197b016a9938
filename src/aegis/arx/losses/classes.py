"""The losses that depend on the equivalence classes of a release, as objectives of a search.

For a single configuration, each loss is exact and includes suppression. A box is a set of
configurations; its bound is the loss of the finest grouping without suppression. The bound is valid
because splitting classes lowers each of these losses, and a suppressed row costs at least as much
as a row in any class. If options make a suppressed row cost less, the bound takes that into
account.

Some losses depend on the area of a released row: how many combinations of original values (leaves
of hierarchies) it may represent. The area is a product over the attributes: each factor is the
number of leaves of the masked value.

If the label is itself a quasi-identifier, all rows of a class have the same masked label, so there
is nothing to predict within classes. The classification metric then groups rows by the other
quasi-identifiers, and counts the masked label.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Mapping
from typing import Any, Self

import numpy as np

from aegis.advisor.plan import PrivacyPlan
from aegis.advisor.search.corner_classes import CornerClasses, Grouping, RuleCells, dense
from aegis.advisor.search.objective import Objective
from aegis.advisor.search.problem import Box, Problem, is_leaf
from aegis.advisor.search.rule_bounds import least_bits
from aegis.arrays import Flags, Floats, Integers
from aegis.arx.losses.loss_options import LabelCharges, LossOptions
from aegis.errors import PolicyError
from aegis.summary import FrequencyTable
from aegis.summary.leaves import domain


class ClassLoss(Objective):
    """A loss that grows if equivalence classes get larger, or if the labels within them get more
    mixed.

    Parameters
    ----------
    problem, plan
        The search space, and the plan that checks the privacy rule.
    options
        The options of the loss, such as a factor; None if the loss has no options.
    name
        The name with options as the user wrote it; by default the name without options.
    """

    name: str
    sign = -1
    divides = True
    follows_rule = True

    def __init__(
        self, problem: Problem, plan: PrivacyPlan, options: Any = None, name: str = ""
    ) -> None:
        self._problem = problem
        self._plan = plan
        self._options = options
        self.name = name or self.name
        self._values: dict[Box, float] = {}

    def under(self, plan: PrivacyPlan) -> Self:
        """Return the same loss for another privacy plan, which decides which rows are suppressed."""
        return type(self)(self._problem, plan, self._options, self.name)

    def bound(self, box: Box) -> float:
        """Return minus the loss of a configuration, or an upper bound of it over a box."""
        if box not in self._values:
            self._values[box] = -(self._exact(box) if is_leaf(box) else self._least(box))
        return self._values[box]

    @abstractmethod
    def _exact(self, box: Box) -> float:
        """Return the loss of a single configuration, including that of suppressed rows."""

    @abstractmethod
    def _least(self, box: Box) -> float:
        """Return a lower bound over a box: the loss of its finest masks without suppression."""

    def _require_frequency(self) -> FrequencyTable:
        """Return the frequency table; raise `PolicyError` if it was too large for the summary."""
        frequency = self._problem.summary.frequency
        if frequency is None:
            raise PolicyError(
                f"Objective {self.name!r} needs the frequency table, which is too large to keep.",
                hint="Search by a measure, or give fewer or coarser candidates.",
            )
        return frequency

    def _joined(self, box: Box) -> dict[str, Integers]:
        """Return the group of each value under the finest masks of a box, by quasi-identifier."""
        variables = zip(self._problem.variables, box, strict=True)
        return {v.name: v.join(domain) for v, domain in variables if v.quasi}


class Discernibility(ClassLoss):
    """The sum of |E|^2 over the equivalence classes E of kept rows, plus the number N of all rows
    for each suppressed row.

    Bayardo and Agrawal, Data privacy through optimal k-anonymization, ICDE 2005, equation 1. The
    option `factor`, from 0 to 1, weights masking against suppression. At 0.5, the loss is as above.
    At 0, a suppressed row costs only the size of its class, as a kept row does. At 1, kept rows
    cost nothing.
    """

    name = "discernibility"
    _options: LossOptions

    def _exact(self, box: Box) -> float:
        classes = self._plan.classes(self._problem.choice(box))
        kept_classes = self._plan.rule.check(classes).kept_classes
        sizes = classes.class_rows.astype(np.float64)
        squares = sizes**2
        beyond = (classes.rows * sizes - squares)[~kept_classes].sum()
        return float(
            self._options.masked * squares[kept_classes].sum()
            + squares[~kept_classes].sum()
            + self._options.suppressed * beyond
        )

    def _least(self, box: Box) -> float:
        frequency = self._problem.summary.frequency
        if frequency is None:
            return 0.0
        sizes = frequency.roll_up(self._joined(box)).class_rows.astype(np.float64)
        return float(self._options.masked * (sizes**2).sum())


class AverageClassSize(ClassLoss):
    """The number of rows divided by the number of classes; all suppressed rows form one class.

    LeFevre, DeWitt, Ramakrishnan, Mondrian multidimensional k-anonymity, ICDE 2006, section 5,
    without the division by k. As in ARX, the option `factor` (f) weights the number of classes: a
    class of kept rows counts as min(1, 2 f), and the class of suppressed rows as min(1, 2 (1 - f)).

    Raises
    ------
    PolicyError
        The factor is 0, so that no kept class would count.
    """

    name = "average-class-size"
    _options: LossOptions

    def __init__(
        self, problem: Problem, plan: PrivacyPlan, options: LossOptions, name: str = ""
    ) -> None:
        super().__init__(problem, plan, options, name)
        if not options.suppressed:
            raise PolicyError(
                f"The factor of {AverageClassSize.name} is 0, so no class in the release would count.",
                hint="Give a number above 0, up to 1; 0.5 counts all classes equally.",
            )

    def _exact(self, box: Box) -> float:
        classes = self._plan.classes(self._problem.choice(box))
        kept_classes = self._plan.rule.check(classes).kept_classes
        return self._average(classes.rows, int(kept_classes.sum()), not kept_classes.all())

    def _least(self, box: Box) -> float:
        frequency = self._problem.summary.frequency
        if frequency is None:
            return 0.0
        classes = frequency.roll_up(self._joined(box))
        # Where the class of suppressed rows counts more than a kept one, one class may be it.
        fewer = len(classes) - 1
        none, some = (
            self._average(classes.rows, kept_classes, suppresses)
            for kept_classes, suppresses in ((fewer + 1, False), (fewer, True))
        )
        return min(none, some)

    def _average(self, rows: int, kept_classes: int, suppresses: bool) -> float:
        counted = kept_classes * self._options.suppressed + suppresses * self._options.masked
        return rows / counted if counted else float(rows)


class ConfigurationClasses:
    """Computes the classes of a configuration, and which of them the privacy rule keeps.

    `problem` is the search space, `plan` checks the rule, and `frequency` has the rows by combination
    of quasi-identifier values; each combination is a cell.
    """

    def __init__(self, problem: Problem, plan: PrivacyPlan, frequency: FrequencyTable) -> None:
        self.tables = CornerClasses(problem, RuleCells(frequency, all_cells=True))
        self._problem, self._plan, self._frequency = problem, plan, frequency
        self._rows = frequency.counts.astype(np.float64)

    def suppressed_cells(self, box: Box) -> Flags:
        """Return whether a configuration suppresses each cell, shape (cells,)."""
        ids, space = dense(*self.tables.of(box))
        return ~self.kept_classes(box, ids, space)[ids]

    def kept_classes(
        self, box: Box, ids: Integers, space: int, rows: Floats | None = None
    ) -> Flags:
        """Return whether the rule keeps each class of a configuration, shape (space,).

        `ids` has the class of each cell, numbered below `space`; `rows` has the rows of each class if
        known, shape (space,).
        """
        rule, frequency = self._plan.rule, self._frequency
        if rule.sizes_only and frequency.persons is None and self._plan.counts_alone:
            sizes = np.bincount(ids, self._rows, space) if rows is None else rows
            return sizes >= rule.minimum_size
        kept_classes = np.zeros(space, dtype=np.bool_)
        kept_classes[ids[self._plan.kept_cells(self._problem.choice(box))]] = True
        return kept_classes


class LabelLoss(ClassLoss):
    """A loss that grows if the unmasked labels within a class get more mixed; rows without one do
    not count.
    """

    def __init__(
        self, problem: Problem, plan: PrivacyPlan, options: Any = None, name: str = ""
    ) -> None:
        super().__init__(problem, plan, options, name)
        frequency = self._frequency = self._require_frequency()
        codes = frequency.representatives[frequency.label][frequency.codes[frequency.label]]
        self._classes = len(problem.summary.label.classes)
        labelled = codes < self._classes
        self._label = np.where(labelled, codes, 0)
        self._weights = np.where(labelled, frequency.counts, 0).astype(np.float64)
        self._totals = np.bincount(self._label, self._weights, self._classes)
        self._all_labelled = bool(labelled.all())
        self._released = ConfigurationClasses(problem, plan, frequency)
        self._tables = self._released.tables
        self._leasts: dict[tuple[Grouping, ...], float] = {}

    def _exact(self, box: Box) -> float:
        ids, space = dense(*self._tables.of(box))
        joint = self._joint(ids, space)
        rows = joint.sum(axis=0) if self._all_labelled else None
        kept_classes = self._released.kept_classes(box, ids, space, rows)
        kept_rows = joint[:, kept_classes]
        return self._loss(kept_rows, self._totals - kept_rows.sum(axis=1))

    def _least(self, box: Box) -> float:
        # Many boxes have the same finest masks.
        key = self._tables.finest(box)
        if key not in self._leasts:
            ids, space = dense(*self._tables.finest_of(box))
            self._leasts[key] = self._bounded(self._joint(ids, space))
        return self._leasts[key]

    def _bounded(self, joint: Floats) -> float:
        """Return a lower bound of the loss of all releases whose classes are unions of n groups of
        rows. `joint` has the rows by label and group, shape (C, n).
        """
        return self._loss(joint, np.zeros(self._classes))

    def _joint(self, ids: Integers, space: int) -> Floats:
        """Return the rows by label and class, shape (C, space); `ids` has the class of each cell."""
        cells = self._label * space
        cells += ids
        counts = np.bincount(cells, self._weights, space * self._classes)
        return counts.astype(np.float64, copy=False).reshape(self._classes, -1)

    @abstractmethod
    def _loss(self, joint: Floats, suppressed: Floats) -> float:
        """Return the loss of a release: `joint` has the released rows by label and class, shape (C,
        n), and `suppressed` the suppressed rows by label, shape (C,).
        """


class Classification(LabelLoss):
    """The share of rows that are suppressed or do not have the most frequent label of their class.

    This is the classification metric of Iyengar, Transforming data to satisfy privacy constraints,
    KDD 2002, section 4. The option `charges` weights suppressed rows, rows with a less frequent
    label, and rows of classes in which several labels are most frequent.
    """

    name = "classification"
    _options: LabelCharges

    def _bounded(self, joint: Floats) -> float:
        # Each group costs what its minority does, or all its rows do: where it is suppressed, or
        # its class has several most frequent labels.
        rows = joint.sum(axis=0)
        per_row = [self._options.suppressed, self._options.tied]
        all_rows = rows * min(charge for charge in per_row if charge is not None)
        minority = self._options.minority * (rows - joint.max(axis=0, initial=0))
        return self._share(np.minimum(minority, all_rows).sum())

    def _loss(self, joint: Floats, suppressed: Floats) -> float:
        rows = joint.sum(axis=0)
        class_charges = self._options.minority * (rows - joint.max(axis=0, initial=0))
        if self._options.tied is not None:
            class_charges = np.where(self._ties(joint), self._options.tied * rows, class_charges)
        return self._share(class_charges.sum() + self._options.suppressed * suppressed.sum())

    @staticmethod
    def _ties(joint: Floats) -> Flags:
        """Return whether each of n classes has several most frequent labels, shape (n,)."""
        most = joint.max(axis=0, initial=0)
        tied: Flags = np.count_nonzero(joint == most, axis=0) > 1
        return tied

    def _share(self, charge: float) -> float:
        return float(charge / max(self._totals.sum(), 1))


class ClassEntropy(LabelLoss):
    """The conditional entropy H(Y | class) of the label, in bits per row.

    It is the mean over rows of -log2(s). For a kept row, s is the share of the row's label in its
    class; for a suppressed row, s is the share of the label in the whole table. Unlike Pillai's
    trace, this loss includes interactions between attributes, but it overfits small classes. So use
    it with few attributes, or with rules that require large classes.
    """

    name = "class-entropy"

    def _loss(self, joint: Floats, suppressed: Floats) -> float:
        within = joint * _bits(joint / np.maximum(joint.sum(axis=0), 1))
        rows = max(float(self._totals.sum()), 1.0)
        bits = within.sum() + (suppressed * _bits(self._totals / rows)).sum()
        return float(bits / rows)


def _bits(share: Floats) -> Floats:
    """Return -log2 of each share; 0 for a share of 0."""
    return -np.log2(np.where(share > 0, share, 1))


Groups = Mapping[str, Integers]
"""The group of each value, by quasi-identifier."""


class AreaLoss(ClassLoss):
    """A loss that depends on the area of each released row: how many combinations of original
    values (leaves of the hierarchies) it may represent. Areas are computed as logarithms, because
    products over many attributes overflow.
    """

    def __init__(
        self, problem: Problem, plan: PrivacyPlan, options: Any = None, name: str = ""
    ) -> None:
        super().__init__(problem, plan, options, name)
        self._frequency = self._require_frequency()
        self._variables = [v for v in problem.variables if v.quasi]
        self._most_bits = math.fsum(math.log2(max(domain(v.attribute), 1)) for v in self._variables)

    def _exact(self, box: Box) -> float:
        choice = self._problem.choice(box)
        groups = {n: choice[n].groups for n in self._frequency.quasi}
        return self._loss(groups, self._cell_bits(box), self._plan.kept_cells(choice))

    def _least(self, box: Box) -> float:
        cell_bits = self._cell_bits(box)
        return self._loss(self._joined(box), cell_bits, np.ones(len(cell_bits), dtype=np.bool_))

    def _cell_bits(self, box: Box) -> Floats:
        """Return log2 of the least area of each cell over a box, shape (cells,)."""
        return least_bits(self._problem, self._frequency, box)

    @abstractmethod
    def _loss(self, groups: Groups, cell_bits: Floats, kept_cells: Flags) -> float:
        """Return the loss for the group of each value (`groups`, by quasi-identifier), log2 of the
        area of each cell, and whether the release keeps the cell.
        """


class Ambiguity(AreaLoss):
    """The number of combinations of original values that a masked row may represent, summed over
    rows.

    Nergiz and Clifton, Thoughts on k-anonymization, DKE 63, 2007.
    """

    name = "ambiguity"

    def _loss(
        self,
        groups: Groups,  # noqa: ARG002 - the class does not matter, its area does
        cell_bits: Floats,
        kept_cells: Flags,
    ) -> float:
        counts = self._frequency.counts
        return float((counts * np.exp2(np.where(kept_cells, cell_bits, self._most_bits))).sum())


class Divergence(AreaLoss):
    """The Kullback-Leibler divergence of the table from its reconstruction by the release, in bits.

    The reconstruction spreads the rows of each class evenly over the combinations of original
    values that the class may represent, and suppressed rows evenly over all combinations (Kifer and
    Gehrke, Injecting utility into anonymized datasets, SIGMOD 2006).
    """

    name = "kl-divergence"

    def _loss(self, groups: Groups, cell_bits: Floats, kept_cells: Flags) -> float:
        counts = self._frequency.counts.astype(np.float64)
        rows = max(counts.sum(), 1.0)
        # log2 of how many rows have the combination of quasi-identifier values of each cell
        alike = np.unique(self._frequency.class_keys(), return_inverse=True)[1]
        original_bits = np.log2(np.bincount(alike, weights=counts)[alike])
        class_ids = np.unique(self._frequency.class_ids(groups), return_inverse=True)[1]
        sizes = np.bincount(class_ids, weights=counts)[class_ids]
        suppressed_rows = counts[~kept_cells].sum()
        released = np.log2(np.where(kept_cells, sizes, max(suppressed_rows, 1.0)))
        spread = np.where(kept_cells, cell_bits, self._most_bits)
        return float((counts / rows * (original_bits - released + spread)).sum())


class ShownClassification(Classification):
    """The share of rows that are suppressed, or whose masked label is not the most frequent one
    among the rows with the same other masked values. The label is a quasi-identifier.

    This is how ARX 3.9.2 treats a response variable that is a quasi-identifier. Each such row has a
    charge, as in the classification metric. If the mask shows v different values for the V label
    values, each charge moves towards the largest charge by the share

        (V - v) / (V - 1).

    So if the mask shows only one value, every kept row has the largest charge.
    """

    def _exact(self, box: Box) -> float:
        choice, frequency = self._problem.choice(box), self._frequency
        groups = {name: choice[name].groups for name in frequency.quasi}
        kept_rows = self._weights * self._plan.kept_cells(choice)
        label = groups[frequency.label]
        joint = self._predicted(groups, label, kept_rows)
        suppressed = self._options.suppressed * (self._weights.sum() - kept_rows.sum())
        return self._share(self._charge(joint, self._hidden(label)) + suppressed)

    def _least(self, box: Box) -> float:
        # What is shown of a label distinguishes most where it is coarsest. Each row of a minority is
        # charged, suppressed, or in a tie, at the least of these.
        variables = zip(self._problem.variables, box, strict=True)
        coarsest = next(v.meet(d) for v, d in variables if v.name == self._frequency.label)
        joint = self._predicted(self._joined(box), coarsest, self._weights)
        charges = (self._options.minority, self._options.suppressed, self._options.tied)
        least = min(charge for charge in charges if charge is not None)
        return self._share(least * float((joint.sum(axis=1) - joint.max(axis=1, initial=0)).sum()))

    def _charge(self, joint: Floats, hidden: float) -> float:
        """Return the sum of the charges (0 to 1) of kept rows for a label of which the mask hides the
        share `hidden`.

        `joint` has the kept rows by combination of other masked values and by masked label. A row has
        a charge if its label is not the most frequent one, or if several are.
        """
        charges = self._options
        most = max(charges.minority, charges.suppressed, charges.tied or 0.0)
        rows = joint.sum(axis=1)
        if hidden == 1:
            return float(most * rows.sum())
        minority = charges.minority * (1 - hidden) + most * hidden
        class_charges = minority * (rows - joint.max(axis=1, initial=0))
        if charges.tied is not None:
            tied = charges.tied * (1 - hidden) + most * hidden
            class_charges = np.where(self._ties(joint.T), tied * rows, class_charges)
        return float(class_charges.sum())

    def _hidden(self, label: Integers) -> float:
        """Return which share of V label values is hidden if v are shown: (V - v) / (V - 1), 0 to 1."""
        if self._classes < 2:
            return 0.0
        return 1 - (len(np.unique(label[: self._classes])) - 1) / (self._classes - 1)

    def _predicted(
        self, groups: Mapping[str, Integers], label: Integers, weights: Floats
    ) -> Floats:
        """Count rows by combination of the other masked quasi-identifiers and by masked label.

        `groups` and `label` have the group of each value, `weights` the rows to count in each cell.
        """
        name = self._frequency.label
        others = self._frequency.class_ids({**groups, name: np.zeros_like(label)})
        numbered, combination = np.unique(others, return_inverse=True)
        size = int(label.max(initial=0)) + 1
        cells = combination * size + label[self._label]
        counts = np.bincount(cells, weights, len(numbered) * size)
        return counts.astype(np.float64, copy=False).reshape(-1, size)
