"""Classes and sensitive values as plain matrices, and bounds on the rows that a finer table can keep.

A search checks thousands of tables against one rule. If classes and values are few, a matrix of
counts (classes by values) is faster than the sparse tables of `aegis.privacy.classes`.

**Bound.** Let C be the counts of a class. Split the class in any way and suppress some of the
parts; K <= C are the counts of the kept parts. If a condition holds for a convex set of
distributions and for every kept part, it holds for their sum K. All models here require that

    sum_g min(q_g, u_g) >= theta

for the shares q of some groups g of values, with caps u that grow with the reference p. For
example, each distance of t-closeness is a sum of total variations over partitions of the values.
The total variation of one partition is 1 - sum_g min(q_g, p_g).

With suppression, p refers to the kept rows. So the share of a group is at most its rows over the
rows that remain after the largest allowed suppression. So K has at most as many rows as the largest
n with sum_g min(C_g, n u_g) >= theta n. *Every* finer table loses the rest of the class. If the sum
of these losses over the classes exceeds the limit, no finer table is admissible, although the
models are not monotone under suppression.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import numpy.typing as npt

from aegis.privacy.classes import BoolArray, FloatArray, IntArray

_STEPS = 6
"""Largest number of Newton steps; the bound is valid after any step."""
_SLACK = 1e-12
"""Tolerated relative rounding: bounds may be too weak by this much, never too strong."""


@dataclass(frozen=True, eq=False)
class TreeGroups:
    """The groups of a hierarchy of values, as a 0/1 matrix.

    Attributes
    ----------
    groups
        Whether a value lies in a group below the root, as 0 and 1, shape (V, G).
    height
        Steps from a value to the root.
    """

    groups: FloatArray
    height: int

    @classmethod
    def of(cls, levels: IntArray) -> TreeGroups:
        """Return the groups of nested levels (V, L); a root is added if there is none.

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
    """Rows by class and value of one sensitive attribute; no class is empty.

    Attributes
    ----------
    counts
        Shape (n, V). Values without rows are allowed.
    tree
        The hierarchy of the values, if the rule requires one; else None.
    """

    counts: FloatArray
    tree: TreeGroups | None = None

    @cached_property
    def sizes(self) -> FloatArray:
        """Rows of each class, shape (n,)."""
        sizes: FloatArray = self.counts.sum(axis=1)
        return sizes

    @cached_property
    def totals(self) -> FloatArray:
        """Rows of each value, shape (V,)."""
        totals: FloatArray = self.counts.sum(axis=0)
        return totals

    @cached_property
    def shares(self) -> FloatArray:
        """Share of each value in each class, shape (n, V)."""
        return self.counts / self.sizes[:, None]

    @cached_property
    def reference(self) -> FloatArray:
        """Share of each value in all classes together, shape (V,)."""
        return self.totals / max(float(self.totals.sum()), 1.0)

    def keep(self, mask: BoolArray) -> Histograms:
        """Return the histograms of only the classes with True in `mask`, shape (n,)."""
        return Histograms(self.counts[mask], self.tree)


def equal_distance(table: Histograms) -> FloatArray:
    """Return the total variation distance between each class and the whole table, shape (n,), 0..1."""
    distance: FloatArray = np.maximum(table.shares - table.reference, 0.0).sum(axis=1)
    return distance


def ordered_distance(table: Histograms) -> FloatArray:
    """Return the earth mover's distance over the ranks of the values per class, shape (n,), 0..1."""
    present = table.totals > 0
    steps = int(np.count_nonzero(present)) - 1
    if steps < 1:
        return np.zeros(len(table.counts))
    below = np.cumsum(table.shares[:, present], axis=1)[:, :-1]
    apart: FloatArray = np.abs(below - np.cumsum(table.reference[present])[:-1]).sum(axis=1)
    return apart / steps


def hierarchical_distance(table: Histograms) -> FloatArray:
    """Return the earth mover's distance over the tree of the values per class, shape (n,), 0..1.

    The distance of two values is the height of their lowest common ancestor over the height of the
    tree: the length of the path between them, if each step up or down counts half a level. So the
    distance of a class is the mean, over the levels below the root, of the total variation of their
    groups.
    """
    tree = table.tree
    if tree is None or not tree.height:
        return np.zeros(len(table.counts))
    moved = table.shares @ tree.groups - table.reference @ tree.groups
    distance: FloatArray = np.maximum(moved, 0.0).sum(axis=1)
    return distance / tree.height


def relative_gain(table: Histograms) -> FloatArray:
    """Return the beta of basic beta-likeness per class: max_v (q_v - p_v) / p_v, shape (n,)."""
    gain: FloatArray = np.maximum(_gains(table).max(axis=1, initial=0.0), 0.0)
    return gain


def enhanced_gain(table: Histograms, tolerance: float) -> FloatArray:
    """Return the smallest beta of enhanced beta-likeness per class, shape (n,); inf if there is none."""
    gains = np.maximum(_gains(table), 0.0)
    held = table.reference[table.totals > 0]
    gains[gains > -np.log(held) + tolerance] = np.inf
    most: FloatArray = gains.max(axis=1, initial=0.0)
    return most


def _gains(table: Histograms) -> FloatArray:
    held = table.totals > 0
    gains: FloatArray = table.shares[:, held] / table.reference[held] - 1.0
    return gains


def log_ratio(table: Histograms, *, absent: bool = True) -> FloatArray:
    """Return the delta of delta-disclosure per class: max_v |ln(q_v / p_v)|, shape (n,).

    `absent` has the same meaning as in `closeness.log_ratio`.
    """
    held = table.totals > 0
    shares = table.shares[:, held]
    ratios = shares / table.reference[held]
    apart = np.abs(np.log(np.where(shares > 0, ratios, 1.0)))
    if absent:
        apart[shares == 0] = np.inf
    most: FloatArray = apart.max(axis=1, initial=0.0)
    return most


def distinct_values(table: Histograms) -> IntArray:
    """Return the number of distinct values of each class, shape (n,)."""
    held: IntArray = np.count_nonzero(table.counts, axis=1).astype(np.int64)
    return held


def effective_values(table: Histograms) -> FloatArray:
    """Return exp(entropy) of each class, shape (n,), rounded to an integer if within 1e-9 of it."""
    counts = table.counts
    weighted = (counts * np.log(np.maximum(counts, 1.0))).sum(axis=1)
    entropy = np.maximum(np.log(table.sizes) - weighted / table.sizes, 0.0)
    figures = np.exp(entropy)
    whole = np.rint(figures)
    values: FloatArray = np.where(np.abs(figures - whole) < 1e-9, whole, figures)
    return values


def recursive_ratio(table: Histograms, l: int) -> FloatArray:  # noqa: E741 - the field's term
    """Return r_1 / (r_l + ... + r_m) per class, shape (n,): see `diversity.recursive_ratio`."""
    ordered = np.sort(table.counts, axis=1)[:, ::-1]
    rest = ordered[:, l - 1 :].sum(axis=1)
    top = ordered[:, 0]
    possible = rest > 0
    if l > 1:
        possible &= ordered[:, 1] > 0 if ordered.shape[1] > 1 else False
    ratio: FloatArray = np.divide(top, rest, out=np.full(len(top), np.inf), where=possible)
    return ratio


@dataclass(frozen=True, eq=False)
class Bounds:
    """The rows of the whole table by value, and how many of them may be suppressed.

    Attributes
    ----------
    totals
        Rows of each value, shape (V,).
    room
        Rows that may be suppressed.
    tree
        The hierarchy of the values, if the rule requires one; else None.
    """

    totals: FloatArray
    room: int
    tree: TreeGroups | None = None

    def most(self, groups: FloatArray | None = None) -> FloatArray:
        """Return the largest possible share of each group among the kept rows, shape (G,).

        `groups` is a 0/1 matrix of shape (V, G). By default each value is a group.
        """
        rows = self.totals if groups is None else self.totals @ groups
        left = max(float(self.totals.sum()) - self.room, 1.0)
        return np.minimum(rows / left, 1.0)

    def least(self) -> FloatArray:
        """Return the smallest possible share of each value among the kept rows, shape (V,)."""
        left = max(float(self.totals.sum()) - self.room, 1.0)
        return np.maximum(self.totals - self.room, 0.0) / left


@dataclass(frozen=True, eq=False)
class ShareCaps:
    """A condition on the shares q of a class: sum_g min(q_g, caps_g) >= demand, q_v >= floors_v.

    Attributes
    ----------
    caps
        Cap of each group g of values, shape (G,).
    demand
        The theta of the module's formula, at least 0.
    groups
        Groups of values as 0 and 1, shape (V, G). None: each value is a group.
    floors
        Smallest allowed share of each value v, shape (V,). None if no value is required.
    """

    caps: FloatArray
    demand: float = 1.0
    groups: FloatArray | None = None
    floors: FloatArray | None = field(default=None)

    def most_rows(self, counts: FloatArray) -> FloatArray:
        """Return an upper bound on the rows of each class that a finer table keeps, shape (n,).

        Parameters
        ----------
        counts
            Rows by class and value, shape (n, V).

        Examples
        --------
        At most half of the kept rows may hold one value:

        >>> ShareCaps(np.array([0.5, 0.5])).most_rows(np.array([[6.0, 2.0], [4.0, 4.0], [3.0, 0.0]]))
        array([4., 8., 0.])
        """
        by_group = counts if self.groups is None else counts @ self.groups
        most = self._within_caps(by_group, counts.sum(axis=1))
        if self.floors is not None and (self.floors > 0).any():
            asked = self.floors > 0
            most = np.minimum(most, (counts[:, asked] / self.floors[asked]).min(axis=1))
        stays: FloatArray = np.floor(most * (1 + _SLACK) + 1e-9)
        return stays

    def most_of_parts(self, parts: FloatArray, starts: IntArray) -> FloatArray:
        """Return an upper bound on the kept rows of each class if its parts are kept or dropped whole.

        sum_g min(q_g, caps_g) - demand, times the kept rows, is a concave function of the kept
        counts, so its tangent at the whole class bounds it from above. Parts with a positive value
        of the tangent are kept. Their sum is spent on the other parts, those that cost least per
        row first; of the last part a fraction is kept.

        Parameters
        ----------
        parts
            Rows by part and value, class by class, shape (m, V); no part is empty.
        starts
            Index of the first part of each class, shape (n,), ascending.
        """
        by_class = np.add.reduceat(parts, starts, axis=0)
        held = by_class if self.groups is None else by_class @ self.groups
        sizes = by_class.sum(axis=1)
        full = held <= sizes[:, None] * self.caps
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
        stays: FloatArray = np.floor((sizes - lost) * (1 + _SLACK) + 1e-6)
        return stays

    def _within_caps(self, counts: FloatArray, sizes: FloatArray) -> FloatArray:
        """Return the largest n with sum_g min(counts_g, n caps_g) >= demand n, or a little more.

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
            held = np.where(full, inside, 0.0).sum(axis=1)
            slope = self.demand - np.where(full, 0.0, self.caps).sum(axis=1)
            short = np.flatnonzero(held < slope * rows - _SLACK * (self.demand + 1) * rows)
            if not len(short):
                break
            next_rows = held[short] / slope[short]
            open_ones = short if open_ones is None else open_ones[short]
            most[open_ones] = next_rows
        return most


def splits(totals: FloatArray, room: int) -> tuple[FloatArray, int, int]:
    """Return the groups of values that the ordered distance compares in every release.

    The ordered distance is the mean difference of cumulative shares over the steps from each value
    to the next. If suppression removes all rows of a value, the step after it disappears. The step
    after a value with more rows than `room` always remains; no step follows the last such value.

    Returns
    -------
    groups
        For each step that remains, the values before it and the values after it, as 0 and 1, shape
        (V, 2 S).
    steps
        S, the number of steps that remain in every release.
    most
        Largest possible number of steps: the number of values with rows, minus 1.
    """
    present = np.flatnonzero(totals > 0)
    certain = np.flatnonzero(totals > room)[:-1]
    behind = (np.arange(len(totals))[:, None] > certain[None, :]).astype(np.float64)
    return np.concatenate([1.0 - behind, behind], axis=1), len(certain), max(len(present) - 1, 0)
