"""Search for masks with differential privacy, by repeated use of the exponential mechanism.

A *scheme* has one mask for each attribute, from a list whose order does not depend on the data.
Mask 0 is the finest mask, the last one the coarsest. The search begins with the coarsest mask of
each attribute. Each step draws a scheme among the schemes that are one mask finer than an already
drawn one (Bild, Kuhn, Prasser, SafePub, PoPETs 2018, section 5). Each draw uses the exponential
mechanism (McSherry, Talwar, FOCS 2007), with a score that one record changes by at most 1.

A last draw, with the same share of the budget, chooses the result among the visited schemes. To
return the visited scheme with the best exact score would reveal more: if all schemes were visited,
the result would be the same in every run, and one record might determine it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from aegis.arrays import Flags, Floats, Ints

Scheme = tuple[int, ...]
"""The number of the mask of each attribute; 0 is the finest."""
Choose = Callable[[Sequence[float], float], int]
"""A function that draws an index, given the scores and epsilon."""


@dataclass(frozen=True)
class DrawnScheme:
    """The result of a differentially private search: the scheme of the last draw, and the schemes
    that were visited.

    Attributes
    ----------
    scheme
        The scheme of the last draw: the number of the mask of each attribute.
    visited
        All schemes among which the last draw chose, in the order in which they were visited.
    epsilon
        The epsilon of each draw. All draws together spend at most the budget.
    """

    scheme: Scheme
    visited: tuple[Scheme, ...]
    epsilon: float


def probabilities(scores: Sequence[float], epsilon: float) -> Floats:
    """Return the probabilities with which the exponential mechanism draws each alternative; they
    are proportional to exp(epsilon score / 2).

    Parameters
    ----------
    scores
        The score of each alternative; one record changes a score by at most 1.
    epsilon
        The epsilon that one draw spends.

    Examples
    --------
    >>> probabilities([0.0, 2.0], math.log(3)).round(3).tolist()
    [0.25, 0.75]
    """
    exponents = 0.5 * epsilon * np.asarray(scores, dtype=np.float64)
    weights = np.exp(exponents - exponents.max())
    chances: Floats = weights / weights.sum()
    return chances


def chooser(uniform: Callable[[], float]) -> Choose:
    """Return a function that draws an alternative by the exponential mechanism, from the scores and
    epsilon, with uniform random numbers in [0, 1).
    """

    def choose(scores: Sequence[float], epsilon: float) -> int:
        sums = np.cumsum(probabilities(scores, epsilon))
        return min(int(np.searchsorted(sums, uniform(), side="right")), len(sums) - 1)

    return choose


def draw_scheme(
    heights: Sequence[int],
    score: Callable[[Scheme], float],
    choose: Choose,
    *,
    steps: int,
    epsilon: float,
) -> DrawnScheme:
    """Search for a scheme (one mask for each attribute) with a high score, and draw it with
    differential privacy.

    Parameters
    ----------
    heights
        For each attribute, the number of its coarsest mask; masks are numbered from 0, the finest.
    score
        Function that returns the score of a scheme; higher is better. One record may change the
        score by at most 1.
    choose
        Function that draws an alternative by the exponential mechanism, from the scores and
        epsilon; `chooser` returns it.
    steps
        Largest number of schemes that are drawn.
    epsilon
        The budget. It is divided equally among the `steps` draws and the last draw.
    """
    part = epsilon / (steps + 1)
    pivot: Scheme = tuple(heights)
    scores = {pivot: score(pivot)}
    visited = [pivot]
    waiting: dict[Scheme, float] = {}
    for _ in range(steps):
        for finer in _finer(pivot):
            if finer not in scores:
                scores[finer] = waiting[finer] = score(finer)
        if not waiting:
            break
        schemes = list(waiting)
        pivot = schemes[choose([waiting[scheme] for scheme in schemes], part)]
        del waiting[pivot]
        visited.append(pivot)
    last = choose([scores[scheme] for scheme in visited], part)
    return DrawnScheme(visited[last], tuple(visited), part)


def _finer(scheme: Scheme) -> list[Scheme]:
    """Return the schemes that are one step finer in one mask."""
    return [
        (*scheme[:index], number - 1, *scheme[index + 1 :])
        for index, number in enumerate(scheme)
        if number
    ]


@dataclass(frozen=True, eq=False)
class SchemeCells:
    """The cells (combinations of values) of a table, and the masks of each attribute, for the
    search over schemes (one mask for each attribute).

    Attributes
    ----------
    codes
        For each attribute, the index of each cell's value, shape (cells,).
    counts
        Number of rows of each cell, shape (cells,).
    groups
        For each attribute and mask, the group of each of the V values in the table, shape (V,).
    shares
        For each attribute and mask, the size of each value's group, shape (V,), as a share of all
        values in the attribute's hierarchy. The hierarchy is public: sizes count its values, not
        values or rows of the table.
    hidden
        For each attribute and mask, whether the mask turns all possible values, not only those in
        the table, into the same output.
    least
        The smallest number of rows of a class that is kept; smaller classes are suppressed.
    beyond
        Number of rows that are in no cell, because every scheme suppresses them.
    targets
        Indices of the attributes that the other attributes should predict. Only some scores use
        them.
    """

    codes: tuple[Ints, ...]
    counts: Ints
    groups: tuple[tuple[Ints, ...], ...]
    shares: tuple[tuple[Floats, ...], ...]
    hidden: tuple[tuple[bool, ...], ...]
    least: int
    beyond: int = 0
    targets: tuple[int, ...] = ()

    @property
    def rows(self) -> int:
        """The number of all rows of the table, including those in `beyond`."""
        return int(self.counts.sum()) + self.beyond

    @property
    def heights(self) -> tuple[int, ...]:
        """The index of the coarsest mask that each attribute can have; masks are numbered from 0."""
        return tuple(len(masks) - 1 for masks in self.groups)

    def classes(self, scheme: Scheme, without: int | None = None) -> Ints:
        """Return the class of each cell, shape (cells,), formed by all attributes except `without`."""
        ids = np.zeros(len(self.counts), dtype=np.int64)
        for index, number in enumerate(scheme):
            if index == without:
                continue
            grouped = self.groups[index][number][self.codes[index]]
            size = int(grouped.max(initial=0)) + 1
            if size > 1:
                ids = np.unique(ids * size + grouped, return_inverse=True)[1]
        return ids


@dataclass(frozen=True)
class _MaskedCells:
    """A table under a scheme: its cells, whether each is in a class that is large enough, and the
    size of each class.
    """

    cells: SchemeCells
    scheme: Scheme
    kept_cells: Flags
    sizes: Ints
    """Rows of each class, shape (classes,)."""

    @property
    def left_out(self) -> int:
        return int(self.cells.counts[~self.kept_cells].sum()) + self.cells.beyond

    @property
    def kept_sizes(self) -> Ints:
        return self.sizes[self.sizes >= self.cells.least]


def _show(cells: SchemeCells, scheme: Scheme) -> _MaskedCells:
    ids = cells.classes(scheme)
    sizes = np.bincount(ids, weights=cells.counts).astype(np.int64)
    return _MaskedCells(cells, scheme, sizes[ids] >= cells.least, sizes[sizes > 0])


def _precision(masked: _MaskedCells) -> float:
    pairs = zip(masked.scheme, masked.cells.heights, strict=True)
    mean = math.fsum(number / height for number, height in pairs if height) / len(masked.scheme)
    return -(int(masked.cells.counts[masked.kept_cells].sum()) * mean + masked.left_out)


def _loss(masked: _MaskedCells) -> float:
    cells = masked.cells
    total = np.zeros(len(cells.counts))
    for codes, masks, number in zip(cells.codes, cells.shares, masked.scheme, strict=True):
        total += masks[number][codes]
    loss = float((cells.counts * total)[masked.kept_cells].sum()) / len(masked.scheme)
    return -(loss + masked.left_out)


def _entropy(masked: _MaskedCells) -> float:
    cells, total = masked.cells, 0.0
    for index, number in enumerate(masked.scheme):
        if cells.hidden[index][number]:
            total += cells.rows
            continue
        grouped = cells.groups[index][number][cells.codes[index]]
        rows = np.bincount(grouped[masked.kept_cells], weights=cells.counts[masked.kept_cells])
        total += float((rows**2).sum()) / max(cells.rows, 1) + masked.left_out
    return -total / len(masked.scheme)


def _classes(masked: _MaskedCells) -> float:
    return float(len(masked.kept_sizes) + (masked.left_out > 0))


def _discernibility(masked: _MaskedCells) -> float:
    squares = float((masked.kept_sizes.astype(np.float64) ** 2).sum())
    return -(squares / max(masked.cells.rows, 1) + masked.left_out)


def _classification(masked: _MaskedCells) -> float:
    return math.fsum(_guessed(masked, target) for target in masked.cells.targets) / max(
        len(masked.cells.targets), 1
    )


def _guessed(masked: _MaskedCells, target: int) -> float:
    """Return the kept rows whose value of `target` is the most frequent one among rows with the
    same other values; fewer for a coarser mask of the target.
    """
    cells, number = masked.cells, masked.scheme[target]
    height = cells.heights[target]
    others = cells.classes(masked.scheme, target)[masked.kept_cells]
    values = cells.groups[target][number][cells.codes[target]][masked.kept_cells]
    width = int(values.max(initial=0)) + 1
    pairs, pair_of_cell = np.unique(others * width + values, return_inverse=True)
    rows = np.bincount(pair_of_cell, weights=cells.counts[masked.kept_cells])
    most = np.zeros(int(others.max(initial=0)) + 1)
    np.maximum.at(most, pairs // width, rows)
    return float(most.sum()) * (1 - number / height if height else 1.0)


@dataclass(frozen=True)
class SchemeScore:
    """A score of the utility of a table, by which the search compares schemes (one mask for each
    attribute).

    Attributes
    ----------
    name
        The name in options.
    description
        The quantity that it measures.
    figure
        Function that computes the score of a table under a scheme; higher is better.
    sensitivity
        Function that returns the largest change of the score by one record, given the smallest
        class size m.
    by_leaves, by_target
        Whether the score depends on `SchemeCells.shares`, and on `SchemeCells.targets`.
    """

    name: str
    description: str
    figure: Callable[[_MaskedCells], float]
    sensitivity: Callable[[int], float]
    by_leaves: bool = False
    by_target: bool = False

    def figure_of(self, cells: SchemeCells, scheme: Scheme) -> float:
        """Return the score of the table under a scheme, not yet divided by its sensitivity."""
        return self.figure(_show(cells, scheme))

    def value(self, cells: SchemeCells, scheme: Scheme) -> float:
        """Return the score under a scheme, divided by its sensitivity, so that one record changes
        it by at most 1.
        """
        return self.figure_of(cells, scheme) / self.sensitivity(cells.least)


# One record more enlarges one class by one row. It stays too small: one more row is left out. It was
# kept: one more row is. Or it becomes just large enough: m - 1 rows that were left out, charged 1
# each, are kept with it, m rows charged from 0 to 1 each. What divides by the number of rows N adds less
# than 1, as that falls; and m rows of a value that c other rows show add (2 c m + m^2) / (N + 1) < 2 m.
# See docs/theory.md for each.
SCHEME_SCORES: dict[str, SchemeScore] = {
    score.name: score
    for score in (
        SchemeScore(
            "precision",
            "number of the mask over that of the coarsest, mean over attributes, 1 for a row left out",
            _precision,
            lambda m: max(m - 1.0, 1.0),
        ),
        SchemeScore(
            "loss",
            "share of leaves that the value shown has, mean over attributes, 1 for a row left out",
            _loss,
            lambda m: max(m - 1.0, 1.0),
            by_leaves=True,
        ),
        SchemeScore(
            "nu-entropy",
            "share of the rows that show the same value, mean over attributes, 1 for a row left out",
            _entropy,
            lambda m: m + 1.0,
        ),
        SchemeScore(
            "classes",
            "number of classes, all rows left out being one",
            _classes,
            lambda _: 1.0,
        ),
        SchemeScore(
            "discernibility",
            "share of the rows in the same class, 1 for a row left out",
            _discernibility,
            lambda m: float(max(m, 2)),
        ),
        SchemeScore(
            "classification",
            "rows kept that show the most frequent label of those with the same other values, times "
            "one less the number of the label's mask over that of the coarsest",
            _classification,
            float,
            by_target=True,
        ),
    )
}
"""The scores by name; docs/theory.md proves their sensitivities."""
