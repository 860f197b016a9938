"""Score configurations from a summary, remembering what they share.

Nothing here depends on the number of rows: every score is a function of grouped counts
(theory.md, section 2). What recurs is computed once: the contingency table of an attribute under
a mask, its measures, and the information of a pair of attributes under a pair of masks.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from aegis.advisor import expected
from aegis.advisor.grouping import (
    Levels,
    RowGroups,
    drawn_chance,
    group_rows,
    masked_classes,
)
from aegis.errors import PolicyError
from aegis.measures import (
    Contingency,
    Cooccurrence,
    Direction,
    Measure,
    OrderedCounts,
    Scope,
    pair_information,
    pooled_losses,
)
from aegis.policy import Configuration
from aegis.summary import (
    RANGES,
    AttributeSummary,
    Candidate,
    Summary,
    expected_reports,
    level_channel,
    pooled_groups,
)

_REMEMBERED = 64
"""Configurations whose second-order counts are kept, for measures that share them."""
Choice = Mapping[str, Candidate]
"""One candidate per scored attribute, and one for the label where it has candidates."""


@dataclass(frozen=True)
class AttributeScore:
    """What a mask does to one attribute's measure.

    Attributes
    ----------
    score
        The measure of the masked attribute.
    unmasked
        The measure of the attribute as it is.
    """

    score: float
    unmasked: float

    @property
    def change(self) -> float:
        """Masked minus unmasked, with its sign."""
        return self.score - self.unmasked


@dataclass(frozen=True)
class ConfigurationScore:
    """The score of one configuration under one measure.

    Attributes
    ----------
    score
        The measure of the configuration; for an attribute measure the weighted mean over
        attributes.
    utility_kept
        Percent of the unmasked utility that is kept, or None where there was none to keep. The
        utility of a measure that is better when lower (g1, g2, g3) is one minus it.
    pud
        Predictive utility deviation: the mean over attributes of |unmasked - masked| (AEGIS,
        equation 1).
    attributes
        The measure of each attribute alone.
    """

    score: float
    utility_kept: float | None
    pud: float
    attributes: Mapping[str, AttributeScore]


class Scorer:
    """Scores configurations of one summary.

    Parameters
    ----------
    summary
        The aggregates to score from.
    """

    def __init__(self, summary: Summary) -> None:
        self.summary = summary
        self._names = summary.pairs.names
        self._contingencies: dict[Any, Contingency] = {}
        self._values: dict[Any, float] = {}
        self._pair_values: dict[Any, float] = {}
        self._counts: OrderedDict[Any, Cooccurrence] = OrderedDict()
        self._singles: dict[Any, Cooccurrence] = {}
        self._expected: dict[Any, npt.NDArray[np.float64]] = {}
        self._channels: dict[Any, npt.NDArray[np.float64]] = {}
        self._orders: dict[Any, tuple[Levels, bool]] = {}
        self._lost: dict[Any, npt.NDArray[np.float64]] = {}
        self._groups = RowGroups(summary.pairs, summary.pairs.offsets)

    @cached_property
    def _weights(self) -> npt.NDArray[np.float64]:
        """Weight of each attribute in the mean of attribute measures, shape (m,)."""
        return np.array([a.weight for a in self.summary.attributes.values()], dtype=np.float64)

    @cached_property
    def unmasked(self) -> Choice:
        """Every attribute, and the label, as it is."""
        return {a.name: a.unmasked for a in self.summary.all_attributes}

    def choose(self, configuration: Configuration) -> Choice:
        """Return the candidates that a configuration names.

        Raises
        ------
        PolicyError
            A mask was not summarised, or an attribute is left out.
        """
        choice = {}
        for attribute in self.summary.all_attributes:
            mask = configuration.masks.get(attribute.name)
            if mask is None:
                raise PolicyError(
                    f"Configuration {configuration.name!r} does not mask {attribute.name!r}.",
                    hint="Name every scored attribute.",
                )
            choice[attribute.name] = attribute.candidate(mask)
        return choice

    def score(self, choice: Choice, measure: Measure) -> ConfigurationScore:
        """Score one configuration."""
        label = self._label(choice)
        attributes = {
            a.name: AttributeScore(
                self.attribute(a, choice[a.name], measure, label),
                self.attribute(a, a.unmasked, measure, None),
            )
            for a in self.summary.attributes.values()
        }
        value = self.value(choice, measure)
        percent = utility_kept(value, self.value(self.unmasked, measure), measure.direction)
        pud = float(np.mean([abs(a.change) for a in attributes.values()]))
        return ConfigurationScore(value, percent, pud, attributes)

    def value(self, choice: Choice, measure: Measure) -> float:
        """Return the measure of a whole configuration; additive for attribute measures."""
        label = self._label(choice)
        if measure.scope is Scope.ATTRIBUTE:
            attributes = self.summary.attributes.values()
            values = [self.attribute(a, choice[a.name], measure, label) for a in attributes]
            return float((self._weights * values).sum() / self._weights.sum())
        key = (measure.name, label, *(choice[name] for name in self._names))
        if key not in self._values:
            self._values[key] = measure(self.cooccurrence(choice))
        return self._values[key]

    def attribute(
        self,
        attribute: AttributeSummary,
        candidate: Candidate,
        measure: Measure,
        label: Candidate | None = None,
    ) -> float:
        """Return the measure of one masked attribute against the (masked) label."""
        key = (measure.name, attribute.name, candidate, label)
        if key not in self._values:
            if measure.scope is Scope.ATTRIBUTE:
                self._values[key] = measure(
                    self.contingency(attribute, candidate, label, measure=measure)
                )
            else:
                self._values[key] = measure(self._alone(attribute, candidate, label))
        return self._values[key]

    def contingency(
        self,
        attribute: AttributeSummary,
        candidate: Candidate,
        label: Candidate | None = None,
        *,
        measure: Measure | None = None,
    ) -> Contingency:
        """Return the contingency table of a masked attribute and the (masked) label.

        For a noise mask the table holds expected counts, as `measure` can read them (see
        `aegis.advisor.expected`); without a measure they are rounded to whole rows.
        """
        if candidate.noise is not None:
            return expected.contingency(self._reports(attribute, candidate, label), measure)
        key = (attribute.name, candidate, label)
        if key not in self._contingencies:
            joint = group_rows(attribute.joint, candidate.groups, candidate.size)
            self._contingencies[key] = Contingency.of(masked_classes(joint, label))
        return self._contingencies[key]

    def _reports(
        self, attribute: AttributeSummary, candidate: Candidate, label: Candidate | None
    ) -> npt.NDArray[np.float64]:
        """Return the expected reports of a noise mask by (masked) class, shape (R, C)."""
        key = (attribute.name, candidate, label)
        if key not in self._expected:
            joint = masked_classes(attribute.joint, label)
            self._expected[key] = expected_reports(attribute, candidate, joint)
        return self._expected[key]

    def levels(self, attribute: AttributeSummary, candidate: Candidate) -> Levels:
        """Return the level of each atom, shape (A,), or a noise mask's channel, shape (A, L)."""
        if candidate.noise is None:
            return candidate.levels
        key = (attribute.name, candidate)
        if key not in self._channels:
            self._channels[key] = level_channel(attribute, candidate, self.summary.max_levels)
        return self._channels[key]

    def cooccurrence(self, choice: Choice) -> Cooccurrence:
        """Return the second-order counts of a configuration (S' G_y S of theory.md)."""
        label = self._label(choice)
        candidates = [choice[name] for name in self._names]
        key = (label, *candidates)
        if key not in self._counts:
            self._counts[key] = self._cooccurrence(candidates, label)
            if len(self._counts) > _REMEMBERED:
                self._counts.popitem(last=False)
        return self._counts[key]

    def _cooccurrence(self, candidates: list[Candidate], label: Candidate | None) -> Cooccurrence:
        levels = self._levels(candidates)
        found = self._groups.counts(levels, [(c, False) for c in candidates])
        return Cooccurrence(
            n=float(self.summary.pairs.rows),
            joint=masked_classes(found.joint, label),
            total=found.total,
            offsets=found.offsets,
            blocks=self._blocks(levels, label),
            chance=found.chance,
            pair_information=self._remembered(candidates, label),
            find_order=lambda: self._in_order(candidates, label),
            find_losses=lambda: self._losses(candidates, label),
        )

    def _in_order(self, candidates: Sequence[Candidate], label: Candidate | None) -> OrderedCounts:
        """Return the second-order counts with levels in the order of their values."""
        attributes = self.summary.attributes.values()
        found = [self.order(a, c) for a, c in zip(attributes, candidates, strict=True)]
        counts = self._groups.counts([level for level, _ in found], [(c, True) for c in candidates])
        ordered = [known for _, known in found]
        joint = masked_classes(counts.joint, label)
        return OrderedCounts(counts.total, joint, counts.offsets, ordered, counts.chance)

    def order(self, attribute: AttributeSummary, candidate: Candidate) -> tuple[Levels, bool]:
        """Return a candidate's ranges and True, or its levels and False where values have no order."""
        key = (attribute.name, candidate)
        if key not in self._orders:
            self._orders[key] = self._order(attribute, candidate)
        return self._orders[key]

    def _order(self, attribute: AttributeSummary, candidate: Candidate) -> tuple[Levels, bool]:
        if candidate.ranges is not None:
            return candidate.ranges, True
        if candidate.noise is not None and candidate.noise.ordered and attribute.kind.ordered:
            most = min(RANGES, self.summary.max_levels)
            return level_channel(attribute, candidate, most), True
        return self.levels(attribute, candidate), False

    def _losses(
        self, candidates: Sequence[Candidate], label: Candidate | None
    ) -> npt.NDArray[np.float64]:
        """Return what values that share a level take from a held-out trace, of all attributes."""
        attributes = self.summary.attributes.values()
        found = [self.losses(a, c, label) for a, c in zip(attributes, candidates, strict=True)]
        total: npt.NDArray[np.float64] = np.sum(found, axis=0)
        return total

    def losses(
        self, attribute: AttributeSummary, candidate: Candidate, label: Candidate | None
    ) -> npt.NDArray[np.float64]:
        """Return `pooled_losses` of the groups that share the last level of a candidate."""
        key = (attribute.name, candidate, label)
        if key not in self._lost:
            counts = masked_classes(attribute.joint, label)
            groups = pooled_groups(attribute, candidate)
            shared = group_rows(counts, candidate.groups, candidate.size)[groups]
            self._lost[key] = pooled_losses(shared, counts.sum(axis=0))
        return self._lost[key]

    def _alone(
        self, attribute: AttributeSummary, candidate: Candidate, label: Candidate | None
    ) -> Cooccurrence:
        """Return the counts of a configuration of one attribute."""
        key = (attribute.name, candidate, label)
        if key not in self._singles:
            self._singles[key] = self._single(attribute, candidate, label)
        return self._singles[key]

    def _single(
        self, attribute: AttributeSummary, candidate: Candidate, label: Candidate | None
    ) -> Cooccurrence:
        level = self.levels(attribute, candidate)
        ordered, known = self.order(attribute, candidate)
        joint = self._own_joint(attribute, level, label)

        def in_order() -> OrderedCounts:
            own = self._own_joint(attribute, ordered, label)
            chance = self._own_chance(attribute, ordered)
            return OrderedCounts(_alone_total(own), own, np.array([0, len(own)]), [known], chance)

        return Cooccurrence(
            n=float(self.summary.pairs.rows),
            joint=joint,
            total=_alone_total(joint),
            offsets=np.array([0, len(joint)]),
            blocks=self._blocks([level], label),
            chance=self._own_chance(attribute, level),
            find_order=in_order,
            find_losses=lambda: self.losses(attribute, candidate, label),
        )

    def _own_chance(
        self, attribute: AttributeSummary, level: Levels
    ) -> npt.NDArray[np.float64] | None:
        """Return what drawn rows add by chance to the expected counts of one attribute, (L, k)."""
        if level.ndim == 1:
            return None
        counts = self.summary.pairs.joints[self._names.index(attribute.name)]
        return drawn_chance(level, counts.sum(axis=1).astype(np.float64))

    def _own_joint(
        self, attribute: AttributeSummary, level: Levels, label: Candidate | None
    ) -> npt.NDArray[Any]:
        """Return the rows per level of one attribute and (masked) class, shape (L, C)."""
        counts = self.summary.pairs.joints[self._names.index(attribute.name)]
        if level.ndim == 2:
            joint: npt.NDArray[Any] = level.T @ masked_classes(counts, label)
            return joint
        size = int(level.max(initial=0)) + 1
        return masked_classes(group_rows(counts, level, size), label)

    def _levels(self, candidates: Sequence[Candidate]) -> list[Levels]:
        attributes = self.summary.attributes.values()
        return [self.levels(a, c) for a, c in zip(attributes, candidates, strict=True)]

    def _blocks(
        self, levels: Sequence[Levels], label: Candidate | None
    ) -> Callable[[int, int], npt.NDArray[Any]]:
        pairs = self.summary.pairs
        classes = pairs.classes if label is None else label.size

        def blocks(i: int, j: int) -> npt.NDArray[Any]:
            a, b, y, n = pairs.cells(i, j)
            (first, rows), (second, columns) = _placed(levels[i], a), _placed(levels[j], b)
            target = y if label is None else label.groups[y]
            key = (target * rows + first) * columns + second
            counts = np.bincount(key, weights=n, minlength=classes * rows * columns)
            block: npt.NDArray[Any] = counts.reshape(classes, rows, columns)
            if levels[i].ndim == 2:
                block = levels[i].T @ block
            return block @ levels[j] if levels[j].ndim == 2 else block

        return blocks

    def _remembered(
        self, candidates: list[Candidate], label: Candidate | None
    ) -> Callable[[int, int], float]:
        blocks = self._blocks(self._levels(candidates), label)

        def information(i: int, j: int) -> float:
            i, j = min(i, j), max(i, j)
            key = (i, j, candidates[i], candidates[j], label)
            if key not in self._pair_values:
                self._pair_values[key] = pair_information(blocks(i, j))
            return self._pair_values[key]

        return information

    def _label(self, choice: Choice) -> Candidate | None:
        """Return the label's candidate where it groups classes, else None."""
        candidate = choice.get(self.summary.label.column)
        if candidate is None or candidate.size == len(candidate.groups):
            return None
        return candidate


def _alone_total(joint: npt.NDArray[Any]) -> npt.NDArray[np.float64]:
    """Return the co-occurrence of the levels of one attribute, of which no row shows two."""
    return np.diag(joint.sum(axis=1).astype(np.float64))


def _placed(level: Levels, atoms: npt.NDArray[np.int64]) -> tuple[npt.NDArray[Any], int]:
    """Return the level of each atom and the number of levels; a noise mask keeps the atoms."""
    if level.ndim == 2:
        return atoms, len(level)
    return level[atoms], int(level.max(initial=0)) + 1


def utility_kept(score: float, unmasked: float, direction: Direction) -> float | None:
    """Return the percent of the unmasked utility that is kept, None where there was none."""
    if direction is Direction.LOWER:
        score, unmasked = 1.0 - score, 1.0 - unmasked
    return 100.0 * score / unmasked if unmasked > 0 else None
