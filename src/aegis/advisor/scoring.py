"""Score configurations from a summary, with a cache of shared counts and values.

The time does not depend on the number of rows, because every score is a function of grouped counts
(theory.md, section 2). The cache contains the contingency table of each attribute under each mask
and the measures of this table. It also contains the mutual information of each pair of attributes
under each pair of masks.

An atom is a set of values that all candidates of an attribute treat in the same way, and a level is
a masked value. Methods that take attributes take their indices in the summary (`which`), their
masks (`candidates`) and the mask of the label (`label`; None if it has none).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from functools import cached_property, partial
from itertools import combinations
from typing import Any

import numpy as np

from aegis.advisor import scores
from aegis.advisor.encodings import (
    CodedMasks,
    RowGroups,
    encodings,
    group_rows,
    indicators,
    known_alone,
    masked_classes,
    mean_numbers,
    shared_losses,
    summary_of_one,
    summed_by_group,
)
from aegis.advisor.fold_counts import CV_FOLDS, FoldBlocks, Interactions, pair_block, widths
from aegis.advisor.scores import (
    AttributeScore,
    AttributeScores,
    ColumnRole,
    ConfigurationScore,
    column_roles,
    utility_kept,
)
from aegis.arrays import Array, BoundedCache, Floats, cached_method
from aegis.blas import one_blas_thread
from aegis.errors import PolicyError
from aegis.measures import Contingency, Cooccurrence, Encoding, Measure, Need, OrderedCounts, Scope
from aegis.measures.association import pair_information
from aegis.measures.columns import column_figures, mean_of_pairs
from aegis.measures.cooccurrence import ColumnCounts, PairSide
from aegis.policy import Configuration, required_mask
from aegis.summary import RANGES, AttributeSummary, Candidate, PairCounts, Summary, level_channel
from aegis.summary.attributes import expected_reports, in_full
from aegis.summary.cooccurrence import Matrix, is_sparse

_CELLS = 1 << 22
"""Number of cells of the tables of pairs that are counted at once, unless one table has more."""
Masked = tuple[int, Candidate]
"""The index of an attribute in the summary, and its mask."""


class PairValues:
    """Computes measures of pairs of attributes, for many pairs at once.

    Parameters
    ----------
    pairs
        Counts of pairs of atoms.
    levels
        Function that returns, for the index of an attribute and a candidate, the level of each of A
        atoms, shape (A,); for a noise mask, the probability of each of L levels, shape (A, L).
    """

    def __init__(self, pairs: PairCounts, levels: Callable[[int, Candidate], Array]) -> None:
        self._pairs = pairs
        self._levels = levels

    def values(self, first: Sequence[Masked], others: Sequence[Masked], measure: Measure) -> Floats:
        """Return the value of a measure for each of m masked attributes with each of k others,
        shape (m, k). The value of an attribute with itself means nothing.
        """
        assert measure.of_pairs is not None
        second = self._side(others)
        values = np.zeros((len(first), len(others)))
        start = 0
        while start < len(first):
            stop, cells = start, 0
            while stop < len(first) and (stop == start or cells < _CELLS):
                cells += self._size(first[stop]) * max(int(second.bounds[-1]), self._atoms)
                stop += 1
            some = first[start:stop]
            by_atom = np.concatenate([self._by_level(*pair) for pair in some])  # (levels, atoms)
            columns = np.ascontiguousarray(by_atom.T)
            block = np.concatenate([self._grouped(columns, *pair) for pair in others]).T
            values[start:stop] = measure.of_pairs(block, self._side(some), second)
            start = stop
        return values

    def mean(self, chosen: Sequence[Candidate], measure: Measure) -> float:
        """Return the mean of a measure over all pairs of attributes with these masks; 0 without
        pairs.
        """
        masked = list(enumerate(chosen))
        return mean_of_pairs(self.values(masked, masked, measure)) if len(masked) > 1 else 0.0

    def mean_of_one(
        self, index: int, candidate: Candidate, others: Sequence[Candidate], measure: Measure
    ) -> float:
        """Return the mean of a measure over all pairs of one masked attribute with another one; 0
        if there is no other. `others` has the masks of all attributes.
        """
        rest = [(j, other) for j, other in enumerate(others) if j != index]
        return float(np.mean(self.values([(index, candidate)], rest, measure))) if rest else 0.0

    @cached_property
    def _atoms(self) -> int:
        """The number of atoms (sets of values) of all attributes together."""
        return int(self._pairs.offsets[-1])

    def _size(self, masked: Masked) -> int:
        """Return the number of levels (masked values) of an attribute under a mask."""
        return widths(self._levels(*masked))

    def _side(self, masked: Sequence[Masked]) -> PairSide:
        """Return attributes with their masks as a measure of pairs takes them."""
        rows = []
        for index, candidate in masked:
            by_atom = self._pairs.atom_counts[index].sum(axis=1)[:, None]
            rows.append(self._of_levels(by_atom, index, candidate)[:, 0])
        bounds = np.cumsum([0, *map(len, rows)]).astype(np.int64)
        side = PairSide.of(np.concatenate(rows), bounds)
        noisy = [i for i, (_, candidate) in enumerate(masked) if candidate.noise is not None]
        for i in noisy:
            side.told_apart[i] = self._effective_values(*masked[i])
        return side

    def _by_level(self, index: int, candidate: Candidate) -> Floats:
        """Return the rows by level of one attribute and by atom of all attributes, shape (L, D)."""
        return self._grouped(self._pairs.total, index, candidate)

    def _grouped(self, counts: Matrix, index: int, candidate: Candidate) -> Floats:
        """Sum those rows of `counts`, one for each atom of all attributes, that belong to one
        attribute, by its levels.
        """
        rows = counts[slice(*self._pairs.offsets[index : index + 2])]
        return self._of_levels(rows.toarray() if is_sparse(rows) else rows, index, candidate)

    def _of_levels(self, counts: Array, index: int, candidate: Candidate) -> Floats:
        """Sum the rows of `counts`, one for each atom of an attribute, by level (masked value)."""
        level = self._levels(index, candidate)
        if level.ndim == 2:
            return np.asarray(level.T @ counts)
        return summed_by_group(counts, level, widths(level))

    def informations(
        self, which: Sequence[int], candidates: Sequence[Candidate], label: Candidate | None
    ) -> Floats:
        """Return how much information each pair of m attributes has about the label, in bits,
        corrected for chance, shape (m, m).
        """
        informations = np.zeros((len(which), len(which)))
        for i, j in combinations(range(len(which)), 2):
            places, chosen = (which[i], which[j]), (candidates[i], candidates[j])
            informations[i, j] = informations[j, i] = self._information(places, chosen, label)
        return informations

    @cached_method
    def _information(
        self,
        places: tuple[int, int],
        candidates: tuple[Candidate, Candidate],
        label: Candidate | None,
    ) -> float:
        return pair_information(self._block(places, candidates, label))

    def _block(
        self,
        places: tuple[int, int],
        candidates: tuple[Candidate, Candidate],
        label: Candidate | None = None,
    ) -> Array:
        levels = self._levels(places[0], candidates[0]), self._levels(places[1], candidates[1])
        return pair_block(self._pairs, places, levels, label)

    @cached_method
    def _effective_values(self, index: int, candidate: Candidate) -> float:
        """Return the effective number of values of an attribute after masking: the sum of p_a P(r |
        a)^2 / p_r over its atoms a and levels r. p_a and p_r are shares of rows, and P(r | a) is
        the probability that the mask shows r for a.
        """
        channel = indicators(self._levels(index, candidate))
        atoms = self._pairs.atom_counts[index].sum(axis=1).astype(np.float64)
        shares = atoms / max(atoms.sum(), 1)
        reports = shares @ channel
        occurring = reports > 0
        squares = (shares[:, None] * channel[:, occurring] ** 2).sum(axis=0)
        return float((squares / reports[occurring]).sum())


_CACHED = 64
"""Number of configurations whose counts of pairs are cached, for measures that share them."""
_NOTHING = 0.0, 0.0
"""Figures of a column that does not count."""
Choice = Mapping[str, Candidate]
"""One candidate for each scored attribute, and one for the label if it has candidates."""

MOST_LEVELS = 1_000
"""Aegis computes `lost_alone` only if all unmasked attributes together have at most this many
values.
"""


class Scorer:
    """Computes the scores of configurations from the counts of one summary.

    Parameters
    ----------
    summary
        The counts from which scores are computed.
    roles
        Function that returns, for each column, its weight in the mean of all columns' scores, with
        the reason. Only measures that predict each column from all others use it. To score a
        release, give the weights of the unmasked table. By default, weights are computed from
        `summary`.
    """

    def __init__(
        self, summary: Summary, roles: Callable[[], Mapping[str, ColumnRole]] | None = None
    ) -> None:
        summary = summary.in_effective_rows()
        self.summary = summary
        self._roles = roles
        self._names = summary.pairs.names
        self._contingencies: dict[Any, Contingency] = {}
        self._values: dict[Any, float] = {}
        self._counts: BoundedCache[Any, Cooccurrence] = BoundedCache(_CACHED)
        pairs = summary.pairs
        self._groups = RowGroups(lambda: pairs.total, pairs.stacked_joint, pairs.offsets)
        attributes = summary.attributes.values()
        self._counted = [i for i, a in enumerate(attributes) if not a.excluded]

    @cached_property
    def _weights(self) -> Floats:
        """Weight of each attribute in the mean over attributes, for measures of single attributes."""
        return np.array([a.weight for a in self.summary.attributes.values()], dtype=np.float64)

    @cached_property
    def label_rows(self) -> list[float]:
        """The number of rows in each class of the unmasked label. If rows have weights, it is the
        number of effective rows: of rows without weights that would carry as much information.
        """
        return [float(rows) for rows in self.summary.label.weighted]

    @cached_property
    def unmasked(self) -> Choice:
        """The choice of candidates that leaves every attribute and the label unmasked."""
        return {a.name: a.untouched for a in self.summary.all_attributes}

    def choose(self, configuration: Configuration) -> Choice:
        """Return the candidates of the summary that have the masks of a configuration.

        Raises
        ------
        PolicyError
            The summary does not contain a mask, or the configuration has no mask for an attribute.
        """
        attributes = self.summary.all_attributes
        return {a.name: a.candidate(required_mask(configuration, a.name)) for a in attributes}

    def score(self, choice: Choice, measure: Measure) -> ConfigurationScore:
        """Return the score of a configuration, the share of utility that it keeps, and the score of
        each attribute.
        """
        value = self.value(choice, measure)
        percent = utility_kept(value, self.value(self.unmasked, measure), measure, self.label_rows)
        return ConfigurationScore(value, percent, self._alone_scores(choice, measure))

    def _alone_scores(self, choice: Choice, measure: Measure) -> AttributeScores:
        """Return the score of each attribute by a measure, masked and unmasked: how well it alone
        predicts the label or, for a measure that predicts every column, how well the others predict
        it. Attributes whose score cannot be computed from the summary are left out.
        """
        label = self._label(choice)
        attributes = self.summary.attributes.items()
        names = [name for name, attribute in attributes if known_alone(attribute, measure)]

        @one_blas_thread
        def score(name: str) -> AttributeScore:
            attribute = self.summary.attributes[name]
            if Need.COLUMNS in measure.needs:
                of = self.columns(choice), self.columns(self.unmasked)
                return AttributeScore(*(each.get(name, _NOTHING)[0] for each in of))
            masked = self.attribute(attribute, choice[name], measure, label)
            unmasked = self.attribute(attribute, attribute.unmasked, measure, None)
            return AttributeScore(masked, unmasked)

        return AttributeScores(names, score)

    @one_blas_thread
    def value(self, choice: Choice, measure: Measure) -> float:
        """Return the value of a measure for a configuration; for a measure of single attributes,
        their weighted mean.
        """
        label = self._label(choice)
        if measure.scope is Scope.ATTRIBUTE:
            attributes = self.summary.attributes.values()
            values = [self.attribute(a, choice[a.name], measure, label) for a in attributes]
            return float((self._weights * values).sum() / self._weights.sum())
        key = (measure.name, label, *(choice[name] for name in self._names))
        if key not in self._values:
            if measure.of_pairs is None:
                self._values[key] = measure(self.cooccurrence(choice, measure.needs))
            else:
                chosen = [choice[name] for name in self._names]
                self._values[key] = self._pairs.mean(chosen, measure)
        return self._values[key]

    @cached_property
    def _pairs(self) -> PairValues:
        """Computes and caches measures that are means over pairs of attributes."""
        return PairValues(self.summary.pairs, self.levels_of)

    def pair_values(self, masked: Sequence[Masked], measure: Measure) -> Floats:
        """Return the value of a measure for each pair of m masked attributes, shape (m, m). An
        attribute may occur with several masks; its value with itself means nothing.
        """
        return self._pairs.values(masked, masked, measure)

    def levels_of(self, index: int, candidate: Candidate) -> Array:
        """Return `levels` of the attribute at `index`."""
        return self.levels(self.summary.attributes[self._names[index]], candidate)

    def lost_alone(self, choice: Choice, measure: Measure) -> dict[str, float]:
        """Return, for each attribute, how much utility is lost if only this attribute is masked,
        with its candidate in `choice`.

        If other attributes carry the same information, the loss is small. The result is empty if
        the unmasked table has more than `MOST_LEVELS` values, because the whole table is scored for
        each attribute.
        """
        sign = measure.direction.sign
        levels = sum(self.unmasked[name].size for name in self._names)
        if measure.scope is Scope.CONFIGURATION and levels > MOST_LEVELS:
            return {}
        unmasked = self.value(self.unmasked, measure)
        return {
            name: sign * (unmasked - self.value({**self.unmasked, name: choice[name]}, measure))
            for name in self._names
        }

    def attribute(
        self,
        attribute: AttributeSummary,
        candidate: Candidate,
        measure: Measure,
        label: Candidate | None = None,
    ) -> float:
        """Return the value of a measure that compares one masked attribute with the label. For a
        measure of pairs of attributes or of all columns, all other attributes stay unmasked.
        """
        key = (measure.name, attribute.name, candidate, label)
        if key not in self._values:
            if measure.of_pairs is not None:
                others = [a.unmasked for a in self.summary.attributes.values()]
                index = self._names.index(attribute.name)
                self._values[key] = self._pairs.mean_of_one(index, candidate, others, measure)
            elif Need.COLUMNS in measure.needs:
                masked = {**self.unmasked, attribute.name: candidate}
                self._values[key] = self.columns(masked).get(attribute.name, _NOTHING)[0]
            elif measure.scope is Scope.ATTRIBUTE:
                self._values[key] = measure(
                    self.contingency(attribute, candidate, label, measure=measure)
                )
            elif attribute.excluded:
                self._values[key] = self._score_alone(attribute, candidate, label, measure)
            else:
                self._values[key] = measure(self._alone(attribute, candidate, label, measure.needs))
        return self._values[key]

    def contingency(
        self,
        attribute: AttributeSummary,
        candidate: Candidate,
        label: Candidate | None = None,
        *,
        measure: Measure | None = None,
    ) -> Contingency:
        """Return the number of rows by level of an attribute and class of the label.

        For a noise mask, the counts are expected counts. They are rounded to integers, unless
        `measure` can be computed from fractions (see `aegis.advisor.scores`).
        """
        key = (attribute.name, candidate, label)
        if key not in self._contingencies:
            counts = self._rows_by_class(attribute, candidate, label)
            if counts.dtype.kind == "f":  # expected rows, or effective rows of weights
                return scores.contingency(counts, measure)
            self._contingencies[key] = Contingency.of(counts)
        return self._contingencies[key]

    def _rows_by_class(
        self, attribute: AttributeSummary, candidate: Candidate, label: Candidate | None
    ) -> Array:
        """Return the number of rows by level and class of the label; see `contingency`."""
        if candidate.noise is not None:
            return self._reports(attribute, candidate, label)
        return masked_classes(group_rows(attribute.joint, candidate.groups, candidate.size), label)

    @cached_method
    def _reports(
        self, attribute: AttributeSummary, candidate: Candidate, label: Candidate | None
    ) -> Floats:
        """Return the expected number of rows for the levels of a noise mask and the label classes."""
        return expected_reports(attribute, candidate, masked_classes(attribute.joint, label))

    @cached_method
    def levels(self, attribute: AttributeSummary, candidate: Candidate) -> Array:
        """Return the level (all rare ones are one level) of each of the A atoms of an attribute,
        shape (A,). For a noise mask, return the probability of each of L levels for each atom,
        shape (A, L).
        """
        if candidate.noise is None:
            return candidate.levels
        return level_channel(attribute, candidate, self.summary.max_levels)

    def cooccurrence(self, choice: Choice, needs: Collection[Need] = ()) -> Cooccurrence:
        """Return how many rows have both levels of each pair under a configuration, and the further
        counts that a measure `needs`.

        Raises
        ------
        PolicyError
            The measure needs folds of the rows, and the summary was made without folds.
        """
        label = self._label(choice)
        candidates = tuple(choice[self._names[i]] for i in self._counted)
        return self._filled((label, *candidates), self._counted, candidates, label, needs)

    def _filled(
        self,
        key: Any,
        which: Sequence[int],
        candidates: Sequence[Candidate],
        label: Candidate | None,
        needs: Collection[Need],
    ) -> Cooccurrence:
        """Return the counts of some attributes, whose masks `key` identifies, from the cache or
        newly counted. Counts that `needs` lists are added if they are missing.
        """
        counts = self._counts.get(key, lambda: self._pair_counts(which, candidates, label))
        for need in needs:
            if getattr(counts, need) is None:
                more = self._fill[need](which, candidates, label)
                counts = self._counts.put(key, counts.extended(**more))
        return counts

    def _pair_counts(
        self, which: Sequence[int], candidates: Sequence[Candidate], label: Candidate | None
    ) -> Cooccurrence:
        """Return the counts of pairs of levels of some attributes, over all rows."""
        levels = self._levels(which, candidates)
        grouped = self._groups.counts(levels, which)
        return Cooccurrence(
            n=self.summary.pairs.n,
            joint=masked_classes(grouped.joint, label),
            counted=grouped.counted,
            offsets=grouped.offsets,
            chance=grouped.chance,
        )

    @cached_property
    def _fill(self) -> Mapping[Need, Callable[..., dict[str, Any]]]:
        """Functions that compute further counts, as fields of `Cooccurrence`, by the kind of
        counts.
        """
        return {
            Need.PAIRS: lambda *of: {"pairs": self._pairs.informations(*of)},
            Need.ORDER: lambda *of: {"order": self._in_order(*of)},
            Need.POOLED: lambda *of: {"pooled": self._losses(*of)},
            Need.CV_FOLDS: self._in_folds,
            Need.COLUMNS: self._columns,
        }

    def _in_folds(
        self, which: Sequence[int], candidates: Sequence[Candidate], label: Candidate | None
    ) -> dict[str, Any]:
        """Return, as fields of `Cooccurrence`, the functions for measures on held-out rows: one
        that counts by fold for each encoding, and one that measures the interactions of pairs.
        """
        names, ordered = self._encodings(which, candidates)
        # Configurations share the masks of attributes without a choice.
        common = [at for at, a in enumerate(self._scored(which)) if len(a.candidates) < 2]
        count, pairs = self._fold_blocks.counts, self._interactions.gains
        folds = partial(count, which, names, label, common)
        thresholds, numbers = folds, folds
        if any(number is not None for number in ordered.numbers):
            thresholds = partial(count, which, ordered, label, common)
            numbers = partial(count, which, ordered._replace(linear=True), label, common)
        return {
            "folds": {
                Encoding.NAMES: folds,
                Encoding.THRESHOLDS: thresholds,
                Encoding.NUMBERS: numbers,
            },
            "tables_of_pairs": lambda: pairs(which, ordered, label),
        }

    def _columns(
        self, which: Sequence[int], candidates: Sequence[Candidate], label: Candidate | None
    ) -> dict[str, Any]:
        """Return, as a field of `Cooccurrence`, the function that counts all columns by fold, with
        the weights of the columns.
        """
        _, thresholds = self._encodings(which, candidates)
        roles = [self.column_roles.get(self._names[index]) for index in which]
        weights = [0.0 if role is None else role.weight for role in roles]
        count = partial(self._fold_blocks.counts, which, thresholds, label)
        return {"columns": ColumnCounts(count, np.array(weights))}

    @cached_property
    def column_roles(self) -> Mapping[str, ColumnRole]:
        """For each column, its weight in measures that predict every column, and why it is left
        out.
        """
        return column_roles(self.summary) if self._roles is None else self._roles()

    def columns(self, choice: Choice) -> dict[str, tuple[float, float]]:
        """Return, for each column under a configuration, how well the other columns predict it: the
        score, and the share of the column's variance that they explain on held-out rows.
        """
        figures = column_figures(self.cooccurrence(choice, (Need.COLUMNS,)))
        names = [self._names[index] for index in self._counted]
        scores = zip(figures.learnt[0].tolist(), figures.explained.tolist(), strict=True)
        return dict(zip(names, scores, strict=True))

    def _encodings(
        self, which: Sequence[int], candidates: Sequence[Candidate]
    ) -> tuple[CodedMasks, CodedMasks]:
        levels, orders = self._levels(which, candidates), self._orders_of(which, candidates)
        return encodings(candidates, levels, orders)

    @property
    def folds(self) -> int:
        """The number of folds that contain rows; 0 if the summary has no folds."""
        folds = self.summary.pairs.folds
        if folds is None:
            return 0
        fold = np.arange(folds.size) % min(CV_FOLDS, folds.size)
        return int(np.count_nonzero(np.bincount(fold, weights=folds.rows)))

    @cached_property
    def _interactions(self) -> Interactions:
        return Interactions(self._fold_blocks)

    @cached_property
    def _fold_blocks(self) -> FoldBlocks:
        if self.summary.pairs.folds is None:
            raise PolicyError(
                "The summary has no folds of the rows, so Aegis cannot hold rows out.",
                hint="Summarise the table again, or choose another measure, such as pillai.",
            )
        return FoldBlocks(self.summary.pairs)

    def _orders_of(
        self, which: Sequence[int], candidates: Sequence[Candidate]
    ) -> list[tuple[Array, Floats | None]]:
        return [self.order(*pair) for pair in zip(self._scored(which), candidates, strict=True)]

    def _scored(self, which: Sequence[int]) -> list[AttributeSummary]:
        return [self.summary.attributes[self._names[index]] for index in which]

    def _in_order(
        self, which: Sequence[int], candidates: Sequence[Candidate], label: Candidate | None
    ) -> OrderedCounts:
        """Return the counts of pairs of levels, in the order of their values."""
        orders = self._orders_of(which, candidates)
        counts = self._groups.counts([level for level, _ in orders], which)
        ordered = [numbers is not None for _, numbers in orders]
        joint = masked_classes(counts.joint, label)
        return OrderedCounts(counts.total, joint, counts.offsets, ordered, counts.chance)

    @cached_method
    def order(
        self, attribute: AttributeSummary, candidate: Candidate
    ) -> tuple[Array, Floats | None]:
        """Return the levels of an attribute under a candidate (see `levels`) in the order of their
        values, and the mean of the numbers in each; None without an order.
        """
        level: Array | None = candidate.ranges
        if candidate.noise is not None and candidate.noise.ordered and attribute.kind.ordered:
            most = min(RANGES, self.summary.max_levels)
            level = level_channel(attribute, candidate, most)
        if level is None:
            return self.levels(attribute, candidate), None
        return level, mean_numbers(level, *attribute.atom_numbers)

    def _losses(
        self, which: Sequence[int], candidates: Sequence[Candidate], label: Candidate | None
    ) -> Floats:
        """Return `losses`, summed over attributes."""
        masked = zip(self._scored(which), candidates, strict=True)
        by_attribute = [self.losses(*attribute, label) for attribute in masked]
        total: Floats = np.sum(by_attribute, axis=0)
        return total

    @cached_method
    def losses(
        self, attribute: AttributeSummary, candidate: Candidate, label: Candidate | None
    ) -> Floats:
        """Return how much Pillai's trace on held-out rows falls because the rare groups of a
        candidate share one level: one figure for each ridge penalty.
        """
        return shared_losses(attribute, candidate, label)

    def _alone(
        self,
        attribute: AttributeSummary,
        candidate: Candidate,
        label: Candidate | None,
        needs: Collection[Need] = (),
    ) -> Cooccurrence:
        """Return the counts of a single masked attribute, as measures of whole configurations take
        them.
        """
        which = [self._names.index(attribute.name)]
        return self._filled((attribute.name, candidate, label), which, [candidate], label, needs)

    def _score_alone(
        self,
        attribute: AttributeSummary,
        candidate: Candidate,
        label: Candidate | None,
        measure: Measure,
    ) -> float:
        """Return the score of a single attribute from all its values, which are so many that scores
        of whole configurations leave it out.
        """
        scorer, full = self._in_full(attribute)
        ways = (*attribute.candidates, attribute.unmasked)
        index = next(i for i, way in enumerate(ways) if way is candidate)
        return scorer.attribute(full, (*full.candidates, full.unmasked)[index], measure, label)

    @cached_method
    def _in_full(self, attribute: AttributeSummary) -> tuple[Scorer, AttributeSummary]:
        full = in_full(attribute, self.summary.max_levels)
        return Scorer(summary_of_one(self.summary, full)), full

    def _levels(self, which: Sequence[int], candidates: Sequence[Candidate]) -> list[Array]:
        return [self.levels(a, c) for a, c in zip(self._scored(which), candidates, strict=True)]

    def _label(self, choice: Choice) -> Candidate | None:
        """Return the label's candidate in a configuration; None if it keeps all classes separate."""
        candidate = choice.get(self.summary.label.column)
        if candidate is None or candidate.size == len(candidate.groups):
            return None
        return candidate


__all__ = ["AttributeScore", "Choice", "ConfigurationScore", "Scorer", "utility_kept"]
