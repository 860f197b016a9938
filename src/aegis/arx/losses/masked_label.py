"""The classification metric for a label that is itself a quasi-identifier.

All rows of a class then have the same masked label, so there is nothing to predict within classes.
Rows are grouped by the other quasi-identifiers instead, and the masked label is counted.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from aegis.advisor.search.problem import Box
from aegis.arrays import Floats, Integers
from aegis.arx.losses.classes import Classification


class ShownClassification(Classification):
    """The share of rows that are suppressed, or whose masked label is not predicted by the other
    quasi-identifiers. The label is itself a quasi-identifier.

    This is how ARX 3.9.2 treats a response variable that is a quasi-identifier. Kept rows with
    equal values of the other quasi-identifiers form a group. Their masked labels determine their
    charges, like the labels of the rows of a class in `Classification`. If the mask shows v
    different values for the V label values, each charge moves towards the largest charge by the
    share

        (V - v) / (V - 1).

    So if the mask shows only one value, every kept row has the largest charge.
    """

    def _exact(self, box: Box) -> float:
        choice, frequency = self._problem.choice(box), self._frequency
        groups = {name: choice[name].groups for name in frequency.quasi}
        kept_classes = self._plan.rule.check(self._plan.classes(choice)).kept_classes
        _, place = np.unique(frequency.class_ids(groups), return_inverse=True)
        kept_rows = self._weights * kept_classes[place]
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
        """Return the sum of the charges (losses between 0 and 1) of all kept rows. A row is charged
        if it does not have the most frequent masked label of its group, or if labels tie.

        `joint` counts the kept rows by group of the other quasi-identifiers and by masked label,
        shape (groups, labels). `hidden`, from 0 to 1, is the share of label values that the mask
        hides.
        """
        charges = self._options
        most = max(charges.minority, charges.suppressed, charges.tied or 0.0)
        rows = joint.sum(axis=1)
        if hidden == 1:
            return float(most * rows.sum())
        minority = charges.minority * (1 - hidden) + most * hidden
        charged = minority * (rows - joint.max(axis=1, initial=0))
        if charges.tied is not None:
            tied = charges.tied * (1 - hidden) + most * hidden
            charged = np.where(self._ties(joint.T), tied * rows, charged)
        return float(charged.sum())

    def _hidden(self, label: Integers) -> float:
        """Return the share of the V label values that a mask hides, (V - shown) / (V - 1), from 0
        to 1. `label` has the masked label of each value, shape (V,).
        """
        if self._classes < 2:
            return 0.0
        return 1 - (len(np.unique(label[: self._classes])) - 1) / (self._classes - 1)

    def _predicted(
        self, groups: Mapping[str, Integers], label: Integers, weights: Floats
    ) -> Floats:
        """Return the number of rows by group of the other quasi-identifiers and by masked label,
        shape (groups, labels).

        Parameters
        ----------
        groups
            For each quasi-identifier, the group of each value under its mask.
        label
            The masked label of each of the V label values, shape (V,).
        weights
            The rows of each cell (combination of values) of the frequency table that are counted,
            shape (cells,).
        """
        name = self._frequency.label
        others = self._frequency.class_ids({**groups, name: np.zeros_like(label)})
        numbered, place = np.unique(others, return_inverse=True)
        size = int(label.max(initial=0)) + 1
        cells = place * size + label[self._label]
        counts = np.bincount(cells, weights, len(numbered) * size)
        return counts.astype(np.float64, copy=False).reshape(-1, size)
