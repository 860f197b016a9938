"""Classes and their sensitive values as plain matrices, and bounds of what a finer table could
keep.

A search holds thousands of tables against one rule. Where classes and values are few, a matrix of
counts (classes by values) answers sooner than the sparse tables that `aegis.privacy.classes` keeps.

**What a finer table can keep.** Let C be the counts of a class, and let the class be split in any way
and some of the parts be suppressed; K <= C is what is kept. A demand that holds on a convex set of
distributions and of every kept part holds of their sum K. All models here ask that

    sum_g min(q_g, u_g) >= theta

of the shares q of some groups g of values, with caps u that grow with the reference p: each of the
distances of t-closeness is a sum of total variations over partitions of the values, and the total
variation of one partition is 1 - sum_g min(q_g, p_g). With suppression p is that of the kept rows, so
that no group has more of it than its rows over all rows less those that may go. So K has at most as many
rows as the largest n with sum_g min(C_g, n u_g) >= theta n. The rest of the class is lost in *every* finer
table; the sum of that over classes proves that nothing finer is admissible, although the models are not
monotone under suppression.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import numpy.typing as npt

from aegis.privacy.classes import BoolArray, FloatArray, IntArray

_STEPS = 6
"""Newton steps at most; each alone gives a valid bound."""
_SLACK = 1e-12
"""Relative rounding that is forgiven: bounds may be too weak by it, never too strong."""


@dataclass(frozen=True, eq=False)
class TreeGroups:
    """Groups of a hierarchy of values.

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
        """Return the groups of nested levels (V, L), with a root added if there is none.

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
        Shape (n, V); values that no row holds are allowed.
    tree
        The hierarchy of the values, where the rule requires one.
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
        """Return the histograms of the classes that `mask` (n,) selects."""
        return Histograms(self.counts[mask], self.tree)


def equal_distance(table: Histograms) -> FloatArray:
    """Return the total variation distance of each class from all, shape (n,), 0..1."""
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

    Two values are as far apart as their lowest common ancestor is high, over the height: that is the way
    between them where each step up or down is half a level. So the distance is the mean over the levels
    below the root of the total variation of their groups.
    """
    tree = table.tree
    if tree is None or not tree.height:
        return np.zeros(len(table.counts))
    moved = table.shares @ tree.groups - table.reference @ tree.groups
    distance: FloatArray = np.maximum(moved, 0.0).sum(axis=1)
    return distance / tree.height


def relative_gain(table: Histograms) -> FloatArray:
    """Return max_v (q_v - p_v) / p_v per class, shape (n,), from 0."""
    gain: FloatArray = np.maximum(_gains(table).max(axis=1, initial=0.0), 0.0)
    return gain


def enhanced_gain(table: Histograms, tolerance: float) -> FloatArray:
    """Return the smallest beta of enhanced beta-likeness per class, shape (n,); inf if there is
    none.
    """
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
    """Return max_v |ln(q_v / p_v)| per class, shape (n,); `absent` as of the sparse figure."""
    held = table.totals > 0
    shares = table.shares[:, held]
    ratios = shares / table.reference[held]
    apart = np.abs(np.log(np.where(shares > 0, ratios, 1.0)))
    if absent:
        apart[shares == 0] = np.inf
    most: FloatArray = apart.max(axis=1, initial=0.0)
    return most


def distinct_values(table: Histograms) -> IntArray:
    """Return the distinct values of each class, shape (n,)."""
    held: IntArray = np.count_nonzero(table.counts, axis=1).astype(np.int64)
    return held


def effective_values(table: Histograms) -> FloatArray:
    """Return exp(entropy) of each class, shape (n,), whole within 1e-9, as the sparse figure."""
    counts = table.counts
    weighted = (counts * np.log(np.maximum(counts, 1.0))).sum(axis=1)
    entropy = np.maximum(np.log(table.sizes) - weighted / table.sizes, 0.0)
    figures = np.exp(entropy)
    whole = np.rint(figures)
    values: FloatArray = np.where(np.abs(figures - whole) < 1e-9, whole, figures)
    return values


def recursive_ratio(table: Histograms, l: int) -> FloatArray:  # noqa: E741 - the field's term
    """Return r_1 / (r_l + ... + r_m) per class, shape (n,); infinite below l values."""
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
    """The rows that classes may consist of, and how many of them may be suppressed.

    Attributes
    ----------
    totals
        Rows of each value, shape (V,).
    room
        Rows that may be suppressed.
    tree
        The hierarchy of the values, where the rule requires one.
    """

    totals: FloatArray
    room: int
    tree: TreeGroups | None = None

    def most(self, groups: FloatArray | None = None) -> FloatArray:
        """Return the largest share that each group (V, G), by default each value, can have, (G,)."""
        rows = self.totals if groups is None else self.totals @ groups
        left = max(float(self.totals.sum()) - self.room, 1.0)
        return np.minimum(rows / left, 1.0)

    def least(self) -> FloatArray:
        """Return the smallest share that each value can have among the kept rows, shape (V,)."""
        left = max(float(self.totals.sum()) - self.room, 1.0)
        return np.maximum(self.totals - self.room, 0.0) / left


@dataclass(frozen=True, eq=False)
class ShareCaps:
    """A demand on the shares of a class: sum_g min(q_g, caps_g) >= demand, q_v >= floors_v.

    Attributes
    ----------
    caps
        Shape (G,).
    demand
        Theta, from 0.
    groups
        Groups of values as 0 and 1, shape (V, G); None: each value is one.
    floors
        Shape (V,); None if no value has to be there.
    """

    caps: FloatArray
    demand: float = 1.0
    groups: FloatArray | None = None
    floors: FloatArray | None = field(default=None)

    def most_rows(self, counts: FloatArray) -> FloatArray:
        """Return how many rows at most a finer table keeps of each class, shape (n,).

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
        """Return the most rows of each class that can be kept if its parts are kept or suppressed
        as a whole.

        The demand is a sum of concave functions of the kept counts, each of one degree: what rows of a value
        add to it is at most their share of its slope at the class as it is. Parts with a gain stay, and of
        the others those that lose least a row, until the gain is spent; of the last one a share.

        Parameters
        ----------
        parts
            Rows by part and value, class by class, shape (m, V); no part is empty.
        starts
            The first part of each class, shape (n,), ascending.
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

        The difference is concave in n and 0 at 0, so that Newton's steps from above never go below it.
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
    """Return the groups of ordered distances that every release has, and two numbers.

    The distance is the mean over the steps between neighbouring values of how far the shares up to there
    differ. A value may go with all its rows, and the step behind it with it; steps behind values that
    have too many rows for that stay, but for the last one.

    Returns
    -------
    groups
        Values up to each such step, and those behind it, as 0 and 1, shape (V, 2 S).
    steps
        S.
    most
        Steps that there can be at most.
    """
    present = np.flatnonzero(totals > 0)
    certain = np.flatnonzero(totals > room)[:-1]
    behind = (np.arange(len(totals))[:, None] > certain[None, :]).astype(np.float64)
    return np.concatenate([1.0 - behind, behind], axis=1), len(certain), max(len(present) - 1, 0)
