"""Hold classes and sensitive values as plain matrices, and bound the number of rows that a finer
table can keep.

A search checks thousands of tables against one rule. If there are few classes and values, a matrix
of counts (classes by values) is faster than the sparse tables of `aegis.privacy.classes`.

**Bound.** Let C be the counts of a class. Suppose that the class is split in some way and some
parts are suppressed; let K <= C be the total counts of the kept parts. If a convex set contains the
distribution of every kept part, it also contains the distribution of their sum K. All models here
require that

    sum_g min(q_g, u_g) >= theta

where q_g are the shares of some groups g of values, and the caps u_g grow with the shares p_g in
the reference (the whole table). For example, each distance of t-closeness is a sum of total
variations over partitions of the values. The total variation of one partition is 1 - sum_g min(q_g,
p_g).

If rows are suppressed, p refers to the kept rows. Then p_g is at most the number of rows of the
group divided by the number of rows that remain after the largest allowed suppression. This limits
the caps u. So K has at most as many rows as the largest n with sum_g min(C_g, n u_g) >= theta n.
*Every* finer table loses the other rows of the class. If the sum of these losses over the classes
exceeds the suppression limit, no finer table is admissible, although the models are not monotone
under suppression.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import numpy.typing as npt

from aegis.arrays import Flags, Floats, Ints

_STEPS = 6
"""Largest number of Newton steps; the bound is valid after any step."""
_SLACK = 1e-12
"""Tolerated relative rounding: bounds may be too weak by this much, never too strong."""


@dataclass(frozen=True, eq=False)
class TreeGroups:
    """The groups in a hierarchy of values, as a matrix that says which value is in which group.

    Attributes
    ----------
    groups
        For each of V values, whether it is in each of the G groups below the root, as 0 and 1,
        shape (V, G).
    height
        Number of steps from a value to the root.
    """

    groups: Floats
    height: int

    @classmethod
    def of(cls, levels: Ints) -> TreeGroups:
        """Return the groups on L nested `levels`, which have shape (V, L) for V values. If the last
        level has several groups, a root is added.

        >>> TreeGroups.of(np.array([[0, 0], [1, 0], [2, 1]])).groups.astype(int).tolist()
        [[1, 0, 0, 1, 0], [0, 1, 0, 1, 0], [0, 0, 1, 0, 1]]
        """
        below = list(levels.T)
        if len(np.unique(below[-1])) == 1:
            below.pop()
        parts = [column[:, np.newaxis] == np.unique(column) for column in below]
        groups = np.concatenate(parts, axis=1) if parts else np.zeros((len(levels), 0))
        return cls(groups.astype(np.float64), len(below))


@dataclass(frozen=True, eq=False)
class Histograms:
    """The number of rows by class and value of one sensitive attribute. Every class has rows.

    Attributes
    ----------
    counts
        Number of rows in each of n classes with each of V values, shape (n, V). Values without rows
        are allowed.
    tree
        The hierarchy of the values, if the rule requires one; else None.
    compared
        Number of rows with each of V values in the table with which classes are compared, shape
        (V,). None: the classes are this table.
    """

    counts: Floats
    tree: TreeGroups | None = None
    compared: Floats | None = None

    @cached_property
    def sizes(self) -> Floats:
        """The number of rows in each of the n classes, shape (n,)."""
        sizes: Floats = self.counts.sum(axis=1)
        return sizes

    @cached_property
    def totals(self) -> Floats:
        """The rows of each value in the table with which classes are compared, shape (V,)."""
        totals: Floats = self.counts.sum(axis=0) if self.compared is None else self.compared
        return totals

    @cached_property
    def shares(self) -> Floats:
        """The share of each value among the rows of each class, shape (n, V)."""
        return self.counts / self.sizes[:, None]

    @cached_property
    def reference(self) -> Floats:
        """The share of each value in the table with which classes are compared, shape (V,)."""
        return self.totals / max(float(self.totals.sum()), 1.0)

    def keep(self, mask: Flags) -> Histograms:
        """Return the histograms of only the classes in `mask`, shape (n,)."""
        return Histograms(self.counts[mask], self.tree)


def equal_distance(table: Histograms) -> Floats:
    """Return `diversity.equal_distance`, shape (n,)."""
    distance: Floats = np.maximum(table.shares - table.reference, 0.0).sum(axis=1)
    return distance


def ordered_distance(table: Histograms) -> Floats:
    """Return `diversity.ordered_distance`, shape (n,)."""
    present = table.totals > 0
    steps = int(np.count_nonzero(present)) - 1
    if steps < 1:
        return np.zeros(len(table.counts))
    below = np.cumsum(table.shares[:, present], axis=1)[:, :-1]
    differences: Floats = np.abs(below - np.cumsum(table.reference[present])[:-1]).sum(axis=1)
    return differences / steps


def hierarchical_distance(table: Histograms) -> Floats:
    """Return `diversity.hierarchical_distance`, shape (n,), as the mean, over all levels below the
    root, of the total variation distance between the groups of the level in the class and in the
    table. The path between two values is then counted with half a level for each step up or down.
    """
    tree = table.tree
    if tree is None or not tree.height:
        return np.zeros(len(table.counts))
    moved = table.shares @ tree.groups - table.reference @ tree.groups
    distance: Floats = np.maximum(moved, 0.0).sum(axis=1)
    return distance / tree.height


def relative_gain(table: Histograms) -> Floats:
    """Return `diversity.relative_gain`, shape (n,)."""
    gain: Floats = np.maximum(_gains(table).max(axis=1, initial=0.0), 0.0)
    return gain


def enhanced_gain(table: Histograms, tolerance: float) -> Floats:
    """Return `diversity.enhanced_gain`, shape (n,); `tolerance` allows for rounding errors."""
    gains = np.maximum(_gains(table), 0.0)
    shares = table.reference[table.totals > 0]
    gains[gains > -np.log(shares) + tolerance] = np.inf
    most: Floats = gains.max(axis=1, initial=0.0)
    return most


def _gains(table: Histograms) -> Floats:
    present = table.totals > 0
    return table.shares[:, present] / table.reference[present] - 1.0


def log_ratio(table: Histograms, *, absent: bool = True) -> Floats:
    """Return `diversity.log_ratio`, shape (n,)."""
    present = table.totals > 0
    shares = table.shares[:, present]
    ratios = shares / table.reference[present]
    distances = np.abs(np.log(np.where(shares > 0, ratios, 1.0)))
    if absent:
        distances[shares == 0] = np.inf
    most: Floats = distances.max(axis=1, initial=0.0)
    return most


def distinct_values(table: Histograms) -> Ints:
    """Return how many distinct values each of n classes has, shape (n,)."""
    return np.asarray(np.count_nonzero(table.counts, axis=1), dtype=np.int64)


def effective_values(table: Histograms) -> Floats:
    """Return `diversity.effective_values`, shape (n,)."""
    counts = table.counts
    weighted = (counts * np.log(np.maximum(counts, 1.0))).sum(axis=1)
    entropy = np.maximum(np.log(table.sizes) - weighted / table.sizes, 0.0)
    figures = np.exp(entropy)
    integers = np.rint(figures)
    values: Floats = np.where(np.abs(figures - integers) < 1e-9, integers, figures)
    return values


def recursive_ratio(table: Histograms, l: int) -> Floats:  # noqa: E741 - the field's term
    """Return `diversity.recursive_ratio`, shape (n,)."""
    ordered = np.sort(table.counts, axis=1)[:, ::-1]
    rest = ordered[:, l - 1 :].sum(axis=1)
    top = ordered[:, 0]
    possible = rest > 0
    if l > 1:
        possible &= ordered[:, 1] > 0 if ordered.shape[1] > 1 else False
    ratio: Floats = np.divide(top, rest, out=np.full(len(top), np.inf), where=possible)
    return ratio


@dataclass(frozen=True, eq=False)
class Bounds:
    """The rows of each value in the whole table, shape (V,), and how many rows suppression may
    remove. They bound the shares of values among the kept rows. `tree` is as in `Histograms`.
    """

    totals: Floats
    room: int
    tree: TreeGroups | None = None

    def most(self, groups: Floats | None = None) -> Floats:
        """Return the largest share of each value, or of each group of values (0/1, shape (V, G)),
        among the rows that suppression keeps.
        """
        rows = self.totals if groups is None else self.totals @ groups
        least_rows = max(float(self.totals.sum()) - self.room, 1.0)
        return np.minimum(rows / least_rows, 1.0)

    def least(self) -> Floats:
        """Return the smallest share of each value among the rows that suppression keeps, shape
        (V,).
        """
        least_rows = max(float(self.totals.sum()) - self.room, 1.0)
        return np.maximum(self.totals - self.room, 0.0) / least_rows


@dataclass(frozen=True, eq=False)
class ShareCaps:
    """A condition on the shares q_v of V values in a class, and q_g of G groups of values:

        sum_g min(q_g, caps_g) >= demand,  q_v >= floors_v.

    Attributes
    ----------
    caps
        The cap of each group g of values, shape (G,).
    demand
        The smallest allowed sum, at least 0.
    groups
        For each value, whether it is in each group, as 0 and 1, shape (V, G). None: each value is a
        group.
    floors
        The smallest allowed share of each value v, shape (V,). None if there is no smallest share.
    """

    caps: Floats
    demand: float = 1.0
    groups: Floats | None = None
    floors: Floats | None = field(default=None)

    def most_rows(self, counts: Floats) -> Floats:
        """Return, for each of n classes, an upper bound on the number of its rows that a table can
        keep if it splits or suppresses parts of the class, shape (n,).

        Parameters
        ----------
        counts
            Number of rows by class and by the V values, shape (n, V).

        Examples
        --------
        At most half of the kept rows may hold one value:

        >>> ShareCaps(np.array([0.5, 0.5])).most_rows(np.array([[6.0, 2.0], [4.0, 4.0], [3.0, 0.0]]))
        array([4., 8., 0.])
        """
        by_group = counts if self.groups is None else counts @ self.groups
        most = self._within_caps(by_group, counts.sum(axis=1))
        if self.floors is not None and (self.floors > 0).any():
            demanded = self.floors > 0
            most = np.minimum(most, (counts[:, demanded] / self.floors[demanded]).min(axis=1))
        return np.floor(most * (1 + _SLACK) + 1e-9)

    def most_of_parts(self, parts: Floats, starts: Ints) -> Floats:
        """Return, for each class, an upper bound on the number of its rows that can be kept, if
        each part of the class is kept or dropped as a whole.

        The kept rows times (sum_g min(q_g, caps_g) - demand) must not be negative, where q_g is the
        share of the group g of sensitive values among the kept rows of the class. This is a concave
        function of the kept counts, so its tangent at the whole class is an upper bound. In the
        bound, parts with a positive tangent are kept, and other parts as long as the sum stays at
        least 0: first those that cost least per row, and a fraction of the last one.

        `parts` has the rows by part and value, shape (m, V); the parts of a class, none of them
        empty, follow each other, and `starts` has the index of the first one, shape (n,),
        ascending.
        """
        by_class = np.add.reduceat(parts, starts, axis=0)
        by_group = by_class if self.groups is None else by_class @ self.groups
        sizes = by_class.sum(axis=1)
        full = by_group <= sizes[:, None] * self.caps
        slopes = full.astype(np.float64)
        if self.groups is not None:
            slopes = slopes @ self.groups.T
        slopes += (np.where(full, 0.0, self.caps).sum(axis=1) - self.demand)[:, None]
        lengths = np.diff(starts, append=len(parts))
        classes = np.repeat(np.arange(len(starts)), lengths)
        rows = parts.sum(axis=1)
        gains = (parts * slopes[classes]).sum(axis=1)
        spare = np.bincount(classes, weights=np.maximum(gains, 0.0), minlength=len(starts))
        spare += _SLACK * (self.demand + 1) * sizes
        losing = np.flatnonzero(gains < 0)
        if not len(losing):
            return np.asarray(sizes, dtype=np.float64)
        of, cost, size = classes[losing], -gains[losing], rows[losing]
        order = np.lexsort((cost / size, of))
        of, cost, size = of[order], cost[order], size[order]
        spent = np.cumsum(cost)
        first = np.flatnonzero(np.diff(of, prepend=-1))
        before = np.repeat(spent[first] - cost[first], np.diff(first, append=len(of)))
        beyond = np.clip(spent - before - spare[of], 0.0, cost)
        lost = np.bincount(of, weights=size * (beyond / cost), minlength=len(starts))
        stays: Floats = np.floor((sizes - lost) * (1 + _SLACK) + 1e-6)
        return stays

    def _within_caps(self, counts: Floats, sizes: Floats) -> Floats:
        """Return, for each class, the largest n (or a little more) with sum_g min(counts_g, n
        caps_g) >= demand n over the groups g of values. `counts` has the rows by class and group.

        The difference is concave in n and 0 at 0, so Newton steps from above never go below the
        solution.
        """
        most = sizes.astype(np.float64)
        open_ones: npt.NDArray[np.intp] | None = None
        for _ in range(_STEPS):
            inside = counts if open_ones is None else counts[open_ones]
            rows = most if open_ones is None else most[open_ones]
            scaled = rows[:, None] * self.caps
            full = inside <= scaled
            uncapped = np.where(full, inside, 0.0).sum(axis=1)
            slope = self.demand - np.where(full, 0.0, self.caps).sum(axis=1)
            short = np.flatnonzero(uncapped < slope * rows - _SLACK * (self.demand + 1) * rows)
            if not len(short):
                break
            next_rows = uncapped[short] / slope[short]
            open_ones = short if open_ones is None else open_ones[short]
            most[open_ones] = next_rows
        return most


def splits(totals: Floats, room: int) -> tuple[Floats, int, int]:
    """Return the groups of ordered values whose shares the ordered distance (of t-closeness)
    compares in every release. `totals` has the rows of each of V values, and `room` the number of
    rows that may be suppressed.

    The ordered distance is the mean difference of cumulative shares over the steps from each value
    to the next. If suppression removes all rows of a value, the step after this value disappears.
    The step after a value with more rows than `room` always remains, except after the last such
    value.

    Returns
    -------
    groups
        For each step that always remains, the values before it and the values after it, as 0 and 1,
        shape (V, 2 S).
    steps
        The number S of steps that remain in every release.
    most
        Largest possible number of steps: the number of values with rows, minus 1.
    """
    present = np.flatnonzero(totals > 0)
    certain = np.flatnonzero(totals > room)[:-1]
    behind = (np.arange(len(totals))[:, None] > certain[None, :]).astype(np.float64)
    return np.concatenate([1.0 - behind, behind], axis=1), len(certain), max(len(present) - 1, 0)
