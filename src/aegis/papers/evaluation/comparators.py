"""Compute the published estimators of a configuration's loss, from a summary.

Each estimator gives one number per configuration: the estimated loss of predictive value (lower is
better). `evaluate` trains models, and compares their metrics with the rankings by these estimators
and by the measures. The published procedure and the sampling estimate contain no information on the
order of configurations (Theorem 1 of the theory page): they rank by the noise of rounding and
drawing. The comparison includes both to show this.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from aegis.advisor import Choice, Scorer
from aegis.advisor.encodings import group_rows
from aegis.arrays import Integers, Ints
from aegis.errors import PolicyError
from aegis.files import SILENT, Progress
from aegis.measures import MEASURES, Contingency, Measure
from aegis.papers.evaluation.result import Judged
from aegis.papers.reconstruction import (
    Evidence,
    MaskedJoint,
    Settings,
    randomised_rounding,
    reconstruct,
)
from aegis.registry import Registry
from aegis.summary import AttributeSummary, Candidate

PUBLISHED = ("mi", "chi2", "g3")
"""The measures whose deviations the AEGIS paper reports."""
TOLERANCE = 1e-6
MAX_SWEEPS = 1000
"""Tolerance and most sweeps of the published IPF."""

Table = npt.NDArray[np.float64]


@dataclass(kw_only=True, eq=False)
class Reconstructed:
    """Estimates how many rows each unmasked value and label class have, and how far measures of
    these counts are from measures of the masked counts.

    Attributes
    ----------
    histogram
        Whether the histogram of the original values is known (AEGIS+1D) or not (AEGIS-1D).
    sampled
        True draws original values at random (the paper's comparator SAMPLING). False fits the
        counts by iterative proportional fitting (IPF).
    records
        Only used if `sampled` is True. True draws original records with their labels, as the paper
        describes SAMPLING (section 5.1.6); this needs the unmasked table. False draws only values,
        and the masked row keeps its label.
    """

    histogram: bool = True
    sampled: bool = False
    records: bool = False
    _fitted: dict[tuple[str, Candidate], Table] = field(default_factory=dict)

    def fitted(self, attribute: AttributeSummary, candidate: Candidate) -> Table:
        """Return the fitted counts of values by classes, shape (V, C), before rounding; cached."""
        key = (attribute.name, candidate)
        if key not in self._fitted:
            settings = Settings(tolerance=TOLERANCE, max_sweeps=MAX_SWEEPS)
            evidence = self._evidence(attribute, candidate)
            self._fitted[key] = reconstruct(evidence, "ipf", settings=settings).table
        return self._fitted[key]

    def table(self, attribute: AttributeSummary, candidate: Candidate, seed: int) -> Ints:
        """Return estimated counts as whole numbers, shape (V, C): drawn, or fitted and then rounded
        at random, each cell separately, so that totals change.
        """
        if self.sampled and self.records:
            return drawn_records(attribute.joint, candidate.groups, seed=seed)
        if self.sampled:
            evidence = self._evidence(attribute, candidate)
            table = reconstruct(evidence, "sampling", settings=Settings(seed=seed)).table
            return table.astype(np.int64)
        return randomised_rounding(self.fitted(attribute, candidate), seed=seed)

    def deviation(
        self, scorer: Scorer, choice: Choice, measures: Sequence[Measure], *, seed: int
    ) -> dict[str, float]:
        """Return how far measures of reconstructed counts are from measures of masked counts: the
        mean of the absolute differences over attributes, by measure.

        `choice` is the candidate mask of each attribute. Give each configuration a different `seed` of
        rounding or drawing.

        References
        ----------
        AEGIS (Laskar et al., SIGMOD 2025): equation 1, with reconstructed counts instead of the
        original ones; and the comparator SAMPLING.
        """
        by_measure: dict[str, list[float]] = {measure.name: [] for measure in measures}
        attributes = scorer.summary.attributes.values()
        seeds = np.random.SeedSequence(seed).generate_state(len(attributes))
        for attribute, attribute_seed in zip(attributes, seeds.tolist(), strict=True):
            candidate = choice[attribute.name]
            estimated = Contingency.of(self.table(attribute, candidate, attribute_seed))
            masked = scorer.contingency(attribute, candidate)
            for measure in measures:
                by_measure[measure.name].append(abs(measure(estimated) - measure(masked)))
        return {name: float(np.mean(values)) for name, values in by_measure.items()}

    def _evidence(self, attribute: AttributeSummary, candidate: Candidate) -> Evidence:
        joint = attribute.joint.astype(np.float64)
        masked = group_rows(attribute.joint, candidate.groups, candidate.size)
        masked_joint = MaskedJoint(
            str(candidate.mask), candidate.groups.astype(np.int64), masked.astype(np.float64)
        )
        return Evidence(
            atoms=joint.shape[0],
            labels=joint.shape[1],
            masked=(masked_joint,),
            histogram=joint.sum(axis=1) if self.histogram else None,
        )


def drawn_records(joint: Ints, groups: Integers, *, seed: int) -> Ints:
    """Draw from each group of values, with replacement, as many records as it has; return counts, (V, C).

    AEGIS (Laskar et al., SIGMOD 2025), section 5.1.6: "labels are directly inherited from the
    sampled original records". `joint` has shape (V, C), and `groups` the group of each value, (V,).
    """
    random = np.random.default_rng(seed)
    counts = np.zeros(joint.shape, dtype=np.int64)
    for group in np.unique(groups):
        members = np.flatnonzero(groups == group)
        rows = joint[members].ravel()
        total = int(rows.sum())
        if total:
            counts[members] = random.multinomial(total, rows / total).reshape(len(members), -1)
    return counts


def mascara(scorer: Scorer, choice: Choice) -> float:
    """Return MASCARA's loss: the sum over attributes of the divergence KL(P||Q), in bits.

    P is the distribution of original values; Q divides the rows of each masked value equally among its
    values. The label does not matter. (The estimator of MASCARA, as the AEGIS paper adapts it.)
    """
    total = 0.0
    for attribute in scorer.summary.attributes.values():
        total += spread_divergence(attribute.counts, choice[attribute.name].groups)
    return total


def spread_divergence(counts: Integers, groups: Integers) -> float:
    """Return the divergence KL(P||Q) in bits. P is the distribution of `counts`, and Q the same
    after the counts of each group are spread equally.
    """
    rows = counts.astype(np.float64)
    sizes = np.bincount(groups)
    spread = (np.bincount(groups, weights=rows) / np.maximum(sizes, 1))[groups]
    there = rows > 0
    share = rows[there] / rows.sum()
    return max(0.0, float((share * np.log2(rows[there] / spread[there])).sum()))


@dataclass(frozen=True)
class Comparator:
    """An estimator from the literature, with which Aegis compares its measures.

    Attributes
    ----------
    name
        The name that users write. After a colon, it has the measure whose deviation is estimated.
    make
        Function that makes an object that estimates deviations of measures (`Reconstructed`); None
        if the comparator does not estimate deviations.
    """

    name: str
    make: Callable[[], Reconstructed] | None = None


COMPARATORS: Registry[Comparator] = Registry("comparator")
"""The estimators of the literature by name: AEGIS (Laskar et al., SIGMOD 2025) and MASCARA."""

for _name, _make in (
    ("aegis+1d", Reconstructed),
    ("aegis-1d", lambda: Reconstructed(histogram=False)),
    ("sampling", lambda: Reconstructed(histogram=False, sampled=True)),
    ("sampling-records", lambda: Reconstructed(histogram=False, sampled=True, records=True)),
):
    COMPARATORS.register_all(*(Comparator(f"{_name}:{measure}", _make) for measure in PUBLISHED))
COMPARATORS.register(Comparator("mascara"))


def compare(
    scorer: Scorer,
    choices: Mapping[str, Choice],
    names: Sequence[str] | None = None,
    *,
    seed: int = 0,
    progress: Progress = SILENT,
) -> tuple[Judged, ...]:
    """Score configurations, given by name, by comparators (estimators from the literature); lower is
    better.

    `names` are by default all comparators, or none if a configuration has noise. Each configuration
    uses different draws of `seed`.

    Raises
    ------
    PolicyError
        A name is unknown, or comparators are named although a configuration has noise.
    """
    if any(c.noise is not None for choice in choices.values() for c in choice.values()):
        if names:
            raise PolicyError(
                f"Comparator {names[0]!r} is not defined for noise masks.",
                hint="Leave the comparators out, or noise masks.",
            )
        return ()
    listed = [COMPARATORS.get(name) for name in (COMPARATORS.names() if names is None else names)]
    scores: dict[str, dict[str, float]] = {comparator.name: {} for comparator in listed}
    kinds = {
        comparator.name.partition(":")[0]: comparator.make
        for comparator in listed
        if comparator.make is not None
    }
    estimators = {kind: make() for kind, make in kinds.items()}
    with progress.step("Scoring with the comparators", len(choices)) as step:
        for number, (name, choice) in enumerate(choices.items()):
            for kind, estimator in estimators.items():
                measure_names = {f"{kind}:{m}": m for m in PUBLISHED if f"{kind}:{m}" in scores}
                measures = [MEASURES.get(m) for m in measure_names.values()]
                deviations = estimator.deviation(
                    scorer, choice, measures, seed=seed * 1_000_003 + number
                )
                for comparator, measure in measure_names.items():
                    scores[comparator][name] = deviations[measure]
            if "mascara" in scores:
                scores["mascara"][name] = mascara(scorer, choice)
            step.advance()
    return tuple(
        Judged(comparator.name, -1, scores[comparator.name], kind="comparator")
        for comparator in listed
    )
