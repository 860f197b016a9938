"""Count masked values by fold and class for pairs of attributes, share the counts, and measure
interactions of attributes by them.

A fold is one of the K parts into which the rows were divided at random. An atom is a set of values
that all candidates of an attribute treat in the same way, and a level is a masked value. `level`
arrays have the level of each of A atoms, shape (A,), or, for a noise mask, the probability of each
of L levels for each atom, shape (A, L). `label` is the mask of the label, if it has one.

A block has the counts of two attributes under two masks. Every configuration with these two masks
uses the same block, so it is counted once, from the non-empty cells of the summary.

To measure interactions (what two attributes predict beyond the sum of both effects), Aegis divides
each attribute into at most eight bins, similar to a tree with few leaves. For numbers and dates, a
bin is a range. Of other values, the seven most frequent ones have a bin each, and all others share
one bin. The interaction of two attributes under two masks is the same in every configuration with
these masks, so Aegis computes it once.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Sequence
from functools import cached_property, partial
from itertools import combinations

import numpy as np
import numpy.typing as npt

from aegis.advisor.encodings import CodedAttribute, CodedMasks, drawn_chance, indicators
from aegis.arrays import (
    Array,
    BoundedArrayCache,
    BoundedCache,
    Floats,
    Ints,
    cached_method,
    group_sums,
)
from aegis.errors import PolicyError
from aegis.measures.by_fold import (
    ClassCounts,
    CommonLevels,
    CountsByFold,
    OtherFolds,
    Response,
    ShownLevels,
    later,
)
from aegis.measures.discriminant import PENALTIES
from aegis.measures.pair_gains import pair_gains, pair_gains_of_number
from aegis.summary import Candidate, PairCounts
from aegis.summary.codes import narrow
from aegis.summary.row_pairs import AtomRows, RowPairCounts

CV_FOLDS = 5
"""Largest number of folds for held-out scores; the summary's folds are distributed over them."""

MOST_CLASSES = 100
"""Largest number of label classes for which Aegis predicts a metric: the time grows with its cube."""

FEWEST_LEVELS = 64
"""If at least this many levels are common to several configurations, eliminating them once costs
less than solving for them again.
"""
MOST_NUMBERS = 1 << 25
"""Largest number of numbers in the cache of factorised sets of common levels."""

_AT_ONCE = 1 << 22
"""Largest number of cells of a configuration's counts in memory at once, 8 bytes each."""


class FoldBlocks:
    """Counts the same rows by fold under many configurations.

    Parameters
    ----------
    pairs
        Counts of pairs of atoms by fold.
    folds
        Largest number of folds; the summary's folds are distributed over them.
    """

    def __init__(self, pairs: PairCounts, folds: int = CV_FOLDS) -> None:
        if pairs.folds is None:
            raise ValueError("The counts have no folds.")
        self._pairs = pairs
        self._folds = pairs.folds
        self.folds = min(folds, pairs.folds.size)
        self._blocks = BoundedArrayCache()
        self._attributes: dict[Hashable, CodedAttribute] = {}
        # The factors of common levels under all penalties.
        self._common: BoundedCache[Hashable, CommonLevels] = BoundedCache(
            MOST_NUMBERS, lambda common: len(PENALTIES) * common.numbers
        )

    def counts(
        self,
        which: Sequence[int],
        masks: CodedMasks,
        label: Candidate | None = None,
        common: Collection[int] = (),
    ) -> CountsByFold:
        """Return the counts of pairs of levels by fold under one configuration.

        Parameters
        ----------
        which, masks
            Indices of the attributes in the summary, and their encoded masks.
        label
            The mask of the label, if it has one.
        common
            Positions in `which` of the attributes whose masks are the same in other configurations.
            Their levels are factorised only once, if this saves time.
        """
        attributes = [
            self._attribute((index, key), level, numbers, label, linear=masks.linear)
            for index, level, key, numbers in zip(which, *masks[:3], strict=True)
        ]
        if not self._splits(attributes, common, label):
            return self._counts_of(attributes, label)
        shared = [attributes[position] for position in common]
        others = [a for position, a in enumerate(attributes) if position not in common]
        key = (tuple(a.key for a in shared), label)
        levels = self._common.get(key, lambda: CommonLevels(self._counts_of(shared, label)))
        return self._counts_of([*shared, *others], label, others, levels)

    def _counts_of(
        self,
        attributes: Sequence[CodedAttribute],
        label: Candidate | None,
        others: Sequence[CodedAttribute] | None = None,
        common: CommonLevels | None = None,
    ) -> CountsByFold:
        """Return the counts of encoded `attributes` by fold. If `common` has factorised the levels
        of the first ones, `others` are the remaining ones.
        """
        rows, outside = self._rows_of(label)
        return CountsByFold(
            rows,
            np.concatenate([attribute.joint for attribute in attributes], axis=2),
            self._by_class(attributes if others is None else others, attributes, label),
            outside,
            [attribute.by_level for attribute in attributes],
            _chance(attributes),
            response=self._response_of(attributes),
            common=common,
            blocks=[(attribute.key, attribute.width) for attribute in others or ()],
        )

    def _response_of(self, attributes: Sequence[CodedAttribute]) -> Response | None:
        """Return the sums of a numeric label for each encoded column, by fold; None if it has
        classes.
        """
        sums = self._pairs.responses
        if sums is None:
            return None
        rows, centre = self._folds.rows, sums.centre(self._pairs.rows)
        total = sums.total - centre * rows
        squares = [
            square - 2 * centre * int(summed) + centre**2 * int(n)
            for square, summed, n in zip(sums.squares, sums.total, rows, strict=True)
        ]
        by_column = [np.zeros((self.folds, 0))]
        for attribute in attributes:
            index = attribute.key[0]
            by_atom = sums.sums[index] - centre * self._folds.atom_counts[index][:, :, 0]
            by_level = self._in_folds(by_atom) @ indicators(attribute.level)
            by_column.append(by_level[:, attribute.occurring] @ attribute.by_level.matrix)
        return Response(
            np.concatenate(by_column, axis=1),
            self._in_folds(total),
            self._in_folds(np.array(squares, dtype=np.float64)),
        )

    def _in_folds(self, by_fold: Array) -> Floats:
        """Sum values of the summary's F folds, shape (F, ...), to K folds: fold i has those whose
        number is i modulo K.
        """
        summed = np.zeros((self.folds, *by_fold.shape[1:]))
        np.add.at(summed, np.arange(len(by_fold)) % self.folds, by_fold)
        return summed

    def _splits(
        self, attributes: Sequence[CodedAttribute], common: Collection[int], label: Candidate | None
    ) -> bool:
        """Return whether it saves time to factorise the levels of the attributes at the positions
        `common` first, so that other configurations can reuse the factors.
        """
        if self._pairs.responses is not None or any(a.chance is not None for a in attributes):
            return False
        levels = sum(attribute.width for attribute in attributes)
        shared = sum(attributes[position].width for position in common)
        factors = self._rows_of(label)[1].factors
        return (
            max(FEWEST_LEVELS, 2 * (levels - shared)) <= shared < levels
            and factors * len(PENALTIES) * shared**2 <= MOST_NUMBERS
        )

    def _by_class(
        self,
        others: Sequence[CodedAttribute],
        attributes: Sequence[CodedAttribute],
        label: Candidate | None,
    ) -> ClassCounts:
        """Return an object that counts pairs of encoded columns, a few classes at a time. In each
        matrix, rows are the columns of `others`, the last of `attributes`; only the lower triangle
        is counted.
        """
        folds, classes = self._rows_of(label)[0].shape
        height, width = (sum(a.width for a in of) for of in (others, attributes))
        cells = max(folds * height * width, 1)
        # Powers of two, so that configurations of other sizes count the same classes at once.
        at_once = 1 << max((_AT_ONCE // cells).bit_length() - 1, 0)
        return ClassCounts(
            partial(self._assembled, others, attributes, label), classes, min(at_once, classes)
        )

    def _assembled(
        self,
        others: Sequence[CodedAttribute],
        attributes: Sequence[CodedAttribute],
        label: Candidate | None,
        some: slice | None,
    ) -> Floats:
        """Return how many rows have both of a pair of columns, shape (K, c, q, d), for the q
        columns of `others`, the d columns of `attributes` and c classes: those in the slice `some`,
        or all of them counted together (c = 1).
        """
        folds, classes = self._rows_of(label)[0].shape
        some = None if some is None else slice(some.start, min(some.stop, classes))
        ends = np.cumsum([0, *(attribute.width for attribute in attributes)]).tolist()
        first = len(attributes) - len(others)
        skipped = ends[first]
        # What is of one class is in one piece.
        count = 1 if some is None else some.stop - some.start
        stacked = np.zeros((count, folds, ends[-1] - skipped, ends[-1]))
        stacked = stacked.swapaxes(0, 1)
        for i, attribute in enumerate(attributes):
            for j in range(max(i, first), len(attributes)):
                if attribute.width and attributes[j].width:
                    rows = slice(ends[j] - skipped, ends[j + 1] - skipped)
                    stacked[:, :, rows, ends[i] : ends[i + 1]] = self._block(
                        attribute, attributes[j], label, some
                    )
        return stacked

    def table(
        self, pair: tuple[int, int], bins: tuple[Array, Array], label: Candidate | None
    ) -> Floats:
        """Return the rows by fold, class and bins of two attributes, shape (K, C, a, b). `pair` has
        the indices of the attributes, and `bins` the bin of each atom, or the probability of each
        bin.
        """
        a, b, y, fold, rows = self._entries(pair)
        group, label_classes = self._label_classes(label)
        table_index = fold.astype(np.int64) * label_classes + group[y]
        table = _tabulated(table_index, self.folds * label_classes, (a, b), bins, _adding(rows))
        return table.reshape(self.folds, label_classes, *table.shape[1:])

    def deviations(self, pair: tuple[int, int], bins: tuple[Array, Array]) -> Floats:
        """Return the differences between a numeric label and its mean, summed by fold and by the
        bins of two attributes, shape (K, a, b). `pair` and `bins` are as in `table`.

        Raises
        ------
        PolicyError
            The rows are not in memory: a summary has only sums by single attributes.
        """
        rows = self._number_rows
        atoms = rows.codes[pair[0]], rows.codes[pair[1]]
        return _tabulated(rows.fold % self.folds, self.folds, atoms, bins, rows.deviation_sums)

    @cached_property
    def squared_deviations(self) -> Floats:
        """The squared differences between a numeric label and its mean, summed by fold, shape (K,)."""
        rows = self._number_rows
        return rows.deviation_sums(rows.fold % self.folds, self.folds, power=2)

    @property
    def of_number(self) -> bool:
        """Whether the label is a number instead of a class."""
        return self._pairs.responses is not None

    @property
    def _number_rows(self) -> AtomRows:
        """The rows with a numeric label."""
        if not isinstance(self._pairs, RowPairCounts):
            raise PolicyError(
                "To predict a number with interactions of pairs, Aegis needs the rows. A summary has no "
                "rows, and Aegis does not keep those of a large table.",
                hint="Give a table of at most two million rows, or leave `pairs` out of --models.",
            )
        return self._pairs.atom_rows

    def label_classes(self, label: Candidate | None) -> int:
        """Return how many classes the label has after masking."""
        return self._label_classes(label)[1]

    def atoms(self, index: int) -> Floats:
        """Return the number of rows of each atom of the attribute with this index, shape (A,)."""
        rows: Floats = self._pairs.atom_counts[index].sum(axis=1).astype(np.float64)
        return rows

    @cached_method
    def _rows_of(self, label: Candidate | None) -> tuple[Floats, OtherFolds]:
        """Return the number of rows by fold and class, shape (K, C), and the same counts outside
        each fold.

        Raises
        ------
        PolicyError
            The label has too many classes.
        """
        rows = self._rows_by_atom(0, label).sum(axis=2)
        if (classes := np.count_nonzero(rows.sum(axis=0))) > MOST_CLASSES:
            raise PolicyError(
                f"The label has {classes:,} classes, but Aegis predicts model metrics for at most"
                f" {MOST_CLASSES}.",
                hint="Group its values (masks of the label, such as bucketize), or choose another"
                " measure. Cut a number into classes: `label: {column: NAME, bins: 5}`.",
            )
        return rows, OtherFolds.of(rows)

    def _rows_by_atom(self, index: int, label: Candidate | None) -> Floats:
        """Return the rows by fold, class and atom of the attribute at `index`, shape (K, C, A)."""
        folds = self._folds.atom_counts[index].astype(np.float64)  # (F, A, C)
        group, label_classes = self._label_classes(label)
        by_class = np.zeros((self.folds, label_classes, folds.shape[1]))
        for fold, counts in enumerate(folds):
            np.add.at(by_class[fold % self.folds], group, counts.T)
        return by_class

    def _label_classes(self, label: Candidate | None) -> tuple[Array, int]:
        if label is None:
            return np.arange(self._pairs.classes), self._pairs.classes
        return label.groups[: self._pairs.classes], label.size

    def _attribute(
        self,
        key: tuple[int, Hashable],
        level: Array,
        numbers: Floats | None,
        label: Candidate | None,
        *,
        linear: bool = False,
    ) -> CodedAttribute:
        """Return one attribute under one mask in one encoding, from the cache or newly counted.

        `key` has the index of the attribute, and a key of its mask and encoding. `numbers` has the
        number of each level; None if levels have no order. If `linear`, ordered levels are encoded
        as numbers instead of thresholds.
        """
        if linear and numbers is not None:
            if (key, label, linear) not in self._attributes:
                thresholds = self._attribute(key, level, numbers, label)
                self._attributes[key, label, linear] = CodedAttribute.number(thresholds, numbers)
            return self._attributes[key, label, linear]
        if (key, label) not in self._attributes:
            rows, _ = self._rows_of(label)
            joint = self._rows_by_atom(key[0], label) @ indicators(level)
            occurring = np.flatnonzero(joint.sum(axis=(0, 1)) > 0)
            by_level, chance = joint[..., occurring], None
            joint, codes = by_level, np.eye(len(occurring))
            if level.ndim == 2:
                chance = drawn_chance(level, self.atoms(key[0]))[occurring]
            if ordered := numbers is not None:
                joint, codes = later(joint, 2), np.tri(len(occurring))
                chance = None if chance is None else later(chance, 0)
            varying = np.flatnonzero(joint.sum(axis=(0, 1)) < rows.sum())
            self._attributes[key, label] = CodedAttribute(
                key,
                level,
                joint[..., varying],
                None if chance is None else chance[varying],
                occurring,
                occurring[varying],
                _counted_by(level),
                ordered,
                ShownLevels(by_level, codes[:, varying]),
            )
        return self._attributes[key, label]

    def _block(
        self,
        attribute: CodedAttribute,
        other: CodedAttribute,
        label: Candidate | None,
        some: slice | None,
    ) -> Floats:
        """Return how many rows have both columns of each pair, one of `attribute` and one of
        `other`, shape (K, c, d_j, d_i), for the classes `some` (see `_assembled`). If both are the
        same attribute, only the lower triangle is returned.
        """
        if attribute.key[0] > other.key[0]:
            return self._block(other, attribute, label, some).swapaxes(2, 3)
        if (
            attribute is not other
            and label is None
            and self._pairs.is_dense(attribute.key[0], other.key[0], self.folds)
        ):
            pair = attribute.key, other.key
            table = self._blocks.get(pair, lambda: self._tabled(attribute, other))
            return table.sum(axis=1, keepdims=True) if some is None else table[:, some]
        key = attribute.key, other.key, label, None if some is None else (some.start, some.stop)
        if attribute is other:
            return self._blocks.get(key, lambda: attribute.square(some))
        return self._blocks.get(key, lambda: self._counted(attribute, other, label, some))

    def _tabled(self, attribute: CodedAttribute, other: CodedAttribute) -> Floats:
        """Return `_counted` for all classes, from a dense array of all atoms of both attributes."""
        table = self._pairs.table(attribute.key[0], other.key[0], self.folds)
        atoms = np.ascontiguousarray(table.transpose(3, 2, 1, 0), dtype=np.float64)
        counted: Floats = other.of_atoms.T @ (atoms @ attribute.of_atoms)
        return counted

    def _counted(
        self,
        attribute: CodedAttribute,
        other: CodedAttribute,
        label: Candidate | None,
        some: slice | None,
    ) -> Floats:
        if attribute.steps is not None or other.steps is not None:
            block = self._block(attribute.thresholds, other.thresholds, label, some)
            block = block if attribute.steps is None else block @ attribute.steps[0]
            return block if other.steps is None else other.steps[0].T @ block
        pair = attribute.key[0], other.key[0]
        first = self._levels_of_cells(pair, 0, attribute)
        second = self._levels_of_cells(pair, 1, other)
        fold, rows = self._entries(pair)[3:]
        width, height, classes = attribute.counted_by, other.counted_by, 1
        cell = fold.astype(np.int64)
        if some is not None:
            classes = some.stop - some.start
            target, here = self._entries_of(pair, label, some)
            fold, rows, first, second = (of[here] for of in (fold, rows, first, second))
            cell = fold.astype(np.int64) * classes + target - some.start
        cell = (cell * width + first) * height + second
        size = self.folds * classes * width * height
        total = _by_masked_value(
            group_sums(cell, rows, size).reshape(self.folds, classes, width, height),
            (attribute.level, other.level),
        )
        total = other.by_column(attribute.by_column(total, 2), 3)
        return np.ascontiguousarray(total.swapaxes(2, 3))

    def _entries_of(
        self, pair: tuple[int, int], label: Candidate | None, some: slice
    ) -> tuple[Array, slice | npt.NDArray[np.intp]]:
        """Return the classes and the indices of the entries of a pair whose class is in `some`."""
        y = self._entries(pair)[2]  # ascending
        group, label_classes = self._label_classes(label)
        if label is None:
            here = slice(*np.searchsorted(y, [some.start, some.stop]).tolist())
            return y[here], here
        target = group[y]
        if some.stop - some.start == label_classes:
            return target, slice(None)
        places = np.flatnonzero((target >= some.start) & (target < some.stop))
        return target[places], places

    def _levels_of_cells(self, pair: tuple[int, int], side: int, of: CodedAttribute) -> Array:
        """Return the level that one attribute of a pair (`side` 0 or 1) has in each entry; for a
        noise mask, the atom.
        """
        atoms = self._entries(pair)[side]
        return atoms if of.level.ndim == 2 else of.level[atoms]

    @cached_method
    def _entries(self, pair: tuple[int, int]) -> tuple[Array, ...]:
        """Return five arrays with one entry for each non-empty cell of a pair of attributes: the
        atom of the first, the atom of the second, the class, the fold, and the number of rows,
        sorted by class.
        """
        a, b, y, _ = self._pairs.cells(*pair)
        fold = self._folds.fold[pair].astype(np.int64) % self.folds
        counted = np.bincount(
            fold * len(a) + self._folds.cell[pair],
            weights=self._folds.count[pair],
            minlength=self.folds * len(a),
        )
        there = np.flatnonzero(counted)
        fold, cell = np.divmod(there, max(len(a), 1))
        target = y[cell]
        # Integers of 16 bits at most are sorted in one pass.
        order = np.argsort(narrow(target, self._pairs.classes), kind="stable")
        # There may be as many as rows, and they stay: so in the smallest types that hold them.
        sizes = *(self._pairs.sizes[i] for i in pair), self._pairs.classes, self.folds
        parts = zip((a[cell], b[cell], target, fold), sizes, strict=True)
        small = (narrow(of, size)[order] for of, size in parts)
        rows = counted[there[order]]
        integer = np.issubdtype(self._folds.count[pair].dtype, np.integer)
        return *small, narrow(rows, int(rows.max(initial=0)) + 1) if integer else rows


def _chance(attributes: Sequence[CodedAttribute]) -> Floats | None:
    """Return `CountsByFold.chance` for encoded attributes; None if no attribute has a noise mask."""
    chances = [attribute.chance for attribute in attributes]
    if all(chance is None for chance in chances):
        return None
    blocks = [
        np.zeros((attribute.width, 0)) if chance is None else chance
        for attribute, chance in zip(attributes, chances, strict=True)
    ]
    from scipy.linalg import block_diag

    chance: Floats = block_diag(*blocks)
    return chance


def _counted_by(level: Array) -> int:
    """Return by how many levels rows are counted; for a noise mask, by how many atoms."""
    return len(level) if level.ndim == 2 else widths(level)


def widths(level: Array) -> int:
    """Return how many levels an attribute has."""
    return level.shape[1] if level.ndim == 2 else int(level.max(initial=0)) + 1


def pair_block(
    pairs: PairCounts, pair: tuple[int, int], levels: tuple[Array, Array], label: Candidate | None
) -> Array:
    """Return the rows by class and level of two attributes, shape (C, L_i, L_j). `pair` has the
    indices of the attributes, and `levels` the level of each atom of both.
    """
    label_classes = pairs.classes if label is None else label.size
    a, b, y, n = pairs.cells(*pair)
    target = y if label is None else label.groups[y]
    return _tabulated(target, label_classes, (a, b), levels, _adding(n))


def _adding(rows: Array) -> Callable[[Array, int], Floats]:
    return lambda key, size: group_sums(key, rows, size)


def _tabulated(
    table_index: Array,
    size: int,
    atoms: tuple[Array, Array],
    levels: tuple[Array, Array],
    summed: Callable[[Array, int], Floats],
) -> Floats:
    """Return tables of two attributes by level, shape (size, L_i, L_j): one for each class, for
    example.

    Parameters
    ----------
    table_index, atoms
        For each row or cell, the index of its table, and the atoms of both attributes.
    levels
        The level of each atom of both attributes.
    summed
        Function that returns the number of rows for each key, from the keys and their number.
    """
    height, width = map(_counted_by, levels)
    first, second = (
        atom if level.ndim == 2 else level[atom] for level, atom in zip(levels, atoms, strict=True)
    )
    key = (table_index.astype(np.int64) * height + first) * width + second
    return _by_masked_value(summed(key, size * height * width).reshape(size, height, width), levels)


def _by_masked_value(block: Floats, levels: tuple[Array, Array]) -> Floats:
    """Replace each axis of `block` that has the atoms of a noise mask by the expected counts of its
    levels; the result has shape (.., L_i, L_j).
    """
    counts = block
    if levels[0].ndim == 2:
        counts = levels[0].T @ counts
    return counts @ levels[1] if levels[1].ndim == 2 else counts


BINS = 8
"""Largest number of bins of an attribute."""
MOST_CELLS = 20_000_000
"""Interactions are measured only if all tables of a configuration together have at most this many
cells.
"""
_PAIR_CELLS_AT_ONCE = 1_000_000
"""Number of cells that are processed together."""


class Interactions:
    """Computes how strongly two attributes interact in predicting the label, for many
    configurations of the same rows. Results are cached.
    """

    def __init__(self, blocks: FoldBlocks) -> None:
        self._blocks = blocks
        self._gains = BoundedArrayCache()

    def gains(
        self, which: Sequence[int], masks: CodedMasks, label: Candidate | None = None
    ) -> Floats:
        """Return how much better each pair of attributes predicts the label together than by the
        sum of their effects, shape (M, T, 1 + K), for M pairs and T label classes. Entry 0 of the
        last axis is for all folds, and entry f for all folds except fold f - 1. The arguments are
        as in `FoldBlocks.counts`.

        Raises
        ------
        PolicyError
            The pairs, folds and classes need too many cells.
        """
        levels, keys, numbers, _ = masks
        pairs = list(combinations(range(len(which)), 2))
        folds, label_classes = self._blocks.folds, self._blocks.label_classes(label)
        cells = folds * label_classes * BINS * BINS
        if len(pairs) * cells > MOST_CELLS:
            raise PolicyError(
                f"The interactions of {len(pairs):,} pairs of attributes need {len(pairs) * cells:,} cells"
                f" ({label_classes} classes, {folds} folds); Aegis counts at most {MOST_CELLS:,}.",
                hint="Leave attributes out, or use boosted trees without interactions: --models gbdt.",
            )
        keyed = {(i, j): (which[i], keys[i], which[j], keys[j], label) for i, j in pairs}
        cached = self._gains.cached(keyed.values())
        by_pair = {pair: cached[key] for pair, key in keyed.items() if key in cached}
        lacking = [pair for pair in pairs if pair not in by_pair]
        bins = {
            i: binned_levels(levels[i], self._blocks.atoms(which[i]), numbers[i] is not None)
            for i in {index for pair in lacking for index in pair}
        }
        size = max(1, _PAIR_CELLS_AT_ONCE // cells)
        for start in range(0, len(lacking), size):
            chunk = lacking[start : start + size]
            binned = [((which[i], bins[i]), (which[j], bins[j])) for i, j in chunk]
            by_pair |= zip(chunk, self._gains_of(binned, label), strict=True)
        for pair in lacking:
            self._gains.get(keyed[pair], partial(by_pair.__getitem__, pair))
        return np.stack([by_pair[pair] for pair in pairs]) if pairs else np.zeros((0, 0, 1 + folds))

    def _gains_of(
        self, binned: Sequence[tuple[tuple[int, Array], ...]], label: Candidate | None
    ) -> Floats:
        """Return the gains of some pairs; `binned` has the index and the bin of each atom of both
        attributes.
        """
        blocks = self._blocks
        tables = np.zeros((len(binned), blocks.folds, blocks.label_classes(label), BINS, BINS))
        deviations = np.zeros((len(binned), blocks.folds, BINS, BINS))
        for number, ((i, first), (j, second)) in enumerate(binned):
            table = blocks.table((i, j), (first, second), label)
            height, width = table.shape[2:]
            tables[number, :, :, :height, :width] = table
            if blocks.of_number:
                sums = blocks.deviations((i, j), (first, second))
                deviations[number, :, :height, :width] = sums
        if blocks.of_number:
            return pair_gains_of_number(tables[:, :, 0], deviations, blocks.squared_deviations)
        return pair_gains(tables)


def binned_levels(level: Array, rows: Floats, ordered: bool) -> Array:
    """Divide the levels of an attribute into at most eight bins. Return the bin of each atom, shape
    (A,); for a noise mask, the probability of each bin, shape (A, 8).

    `rows` has the number of rows of each atom, and `ordered` says whether levels are in the order
    of their values. Then each bin consists of neighbouring levels, and all bins have about equally
    many rows.

    Examples
    --------
    >>> import numpy as np
    >>> binned_levels(np.arange(12), np.full(12, 5.0), True).tolist()
    [0, 1, 1, 2, 3, 3, 4, 5, 5, 6, 7, 7]
    """
    counted = rows @ level if level.ndim == 2 else np.bincount(level, weights=rows)
    bins = _bins(counted.astype(np.float64, copy=False), ordered)
    if level.ndim == 1:
        return bins[level]
    return level @ np.eye(BINS)[bins]


def _bins(rows: Floats, ordered: bool) -> Ints:
    """Return the bin of each level, shape (L,), from the rows of each level (see `binned_levels`).
    Without an order, the seven most frequent levels have a bin each, and all others share one.
    """
    bins = np.zeros(len(rows), dtype=np.int64)
    there = np.flatnonzero(rows > 0)
    if len(there) <= BINS:
        bins[there] = np.arange(len(there))
    elif ordered:
        middle = (np.cumsum(rows) - rows / 2) / rows.sum()
        bins = np.unique(
            np.minimum((middle * BINS).astype(np.int64), BINS - 1), return_inverse=True
        )[1]
    else:
        bins += BINS - 1
        bins[np.argsort(-rows, kind="stable")[: BINS - 1]] = np.arange(BINS - 1)
    return bins
