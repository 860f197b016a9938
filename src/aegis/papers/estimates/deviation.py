"""Estimate the utility that a mask costs, and the joint counts of one attribute and the label,
without the raw joint counts.

The joint counts of an attribute's masked values and the label are always known. The information
settings of the AEGIS paper define which other counts are known: all counts (`raw`), the histogram
of the attribute (`histogram`, AEGIS+1D), or no other counts (`nothing`, AEGIS-1D). From the known
counts, this module reconstructs the raw joint counts, and estimates the predictive utility
deviation (PUD; AEGIS, equation 1). The bounds of the estimate need no model. Masking cannot add
information. So a monotone measure of the raw attribute is at least as high as the measure of the
finest candidate. It is at most the largest value that is possible with this label or this
histogram.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from aegis.advisor import scores
from aegis.advisor.encodings import group_rows
from aegis.advisor.ranked import AttributeEstimate, Estimate
from aegis.advisor.scoring import Scorer
from aegis.arrays import Floats, Ints
from aegis.errors import DataError, PolicyError, require_known
from aegis.files import SILENT, Progress
from aegis.measures import MEASURES, Direction, Measure, Scope
from aegis.measures.cooccurrence import Margins
from aegis.papers.reconstruction import (
    METHODS,
    Evidence,
    MaskedJoint,
    NoisyJoint,
    Reconstruction,
    Settings,
    reconstruct,
)
from aegis.policy import Configuration
from aegis.summary import AttributeSummary, Candidate, Information, Summary
from aegis.summary.attributes import expected_reports

DEFAULT_METHOD = "all-evidence"
_MOST_CELLS = 1 << 25
"""Most entries of a noise mask's channel (the matrix of its probabilities) in a reconstruction."""
_WORDS = {Information.RAW: "raw joint", Information.HISTOGRAM: "histogram"}


def evidence_of(
    attribute: AttributeSummary,
    know: Information | str = Information.HISTOGRAM,
    *,
    masks: Iterable[str] | None = None,
) -> Evidence:
    """Collect the known counts of an attribute, from which a method can reconstruct the rows by
    unmasked value and label.

    Parameters
    ----------
    attribute
        The attribute, with the counts of its masked values under its candidate masks.
    know
        What is assumed to be known of unmasked values: `raw` (their rows by label), `histogram`
        (their rows) or `nothing`. Candidates that show every value unmasked are used only with
        `raw`. For noise masks, the expected counts of noisy values are used.
    masks
        The candidates to use, each as a policy writes it or as text; by default all candidates.

    Raises
    ------
    PolicyError
        `know` or a mask is unknown, the summary has less information, or there is no candidate to
        use.
    DataError
        A noise mask has too many possible noisy values.
    """
    setting = Information.of(know)
    candidates = _chosen(attribute, masks)
    _check_carried(attribute, setting)
    if setting is Information.RAW:
        unmasked = attribute.unmasked
        joint = _joint(attribute, unmasked)
        masked = [MaskedJoint("raw joint", unmasked.groups.astype(np.int64), joint)]
        noisy: list[NoisyJoint] = []
    else:
        hiding_masks = [c for c in candidates if c.noise is None and not shows_all(attribute, c)]
        masked = [
            MaskedJoint(str(c.declared), _groups(attribute, c), _joint(attribute, c))
            for c in hiding_masks
        ]
        noisy = [_noisy(attribute, c) for c in candidates if c.noise is not None]
    if not masked and not noisy:
        raise PolicyError(
            f"The only candidate mask of {attribute.name!r} is `identity`, which shows the raw joint: there is nothing to estimate.",
            hint="Give it another candidate mask, or say that the raw joint is known.",
        )
    numbers = attribute.numbers
    return Evidence(
        atoms=len(attribute.all_values),
        labels=attribute.joint.shape[1],
        masked=tuple(masked),
        noisy=tuple(noisy),
        histogram=None if setting is Information.NOTHING else histogram_of(attribute).astype(float),
        ordered=None if numbers is None else np.isfinite(numbers),
    )


def reconstruct_attribute(
    summary: Summary,
    name: str,
    *,
    know: Information | str = Information.HISTOGRAM,
    method: str = DEFAULT_METHOD,
    masks: Iterable[str] | None = None,
    seed: int = 0,
    progress: Progress = SILENT,
) -> Reconstruction:
    """Estimate how many rows each unmasked value and label have, and compare with the truth.

    Parameters
    ----------
    summary, name
        The summary, and the name of one of its attributes.
    know, masks
        What is used of unmasked values (`raw`: their rows by label, `histogram`: their rows, or
        `nothing`), and the candidate masks that are used (by default all).
    method
        A registered reconstruction method.
    seed
        Seed for methods that draw at random.
    progress
        Receives the progress, step by step.

    Returns
    -------
    Reconstruction
        The estimate, with its total variation distance from the true counts if the summary has
        them.

    Raises
    ------
    PolicyError
        `know`, a mask or the method is unknown, or the summary lacks counts that the method needs.
    """
    attribute = _scored(summary, name)
    evidence = evidence_of(attribute, know, masks=masks)
    settings = Settings(seed=seed, progress=progress)
    truth = attribute.joint if attribute.domain is None else None
    return reconstruct(evidence, method, settings=settings, truth=truth)


def estimate_pud(
    summary: Summary,
    configurations: Sequence[Configuration],
    *,
    measure: str = "mi",
    know: Information | str | None = None,
    method: str = DEFAULT_METHOD,
    progress: Progress = SILENT,
) -> tuple[Estimate, ...]:
    """Estimate how far a measure of each configuration is from the measure of the unmasked table:
    the absolute predictive utility deviation (PUD).

    For each attribute, the function reconstructs the rows by unmasked value and label once, from
    all candidate masks, and uses them for all configurations. Rankings do not need this.

    Parameters
    ----------
    summary
        The summary.
    configurations
        The configurations to estimate.
    measure
        A measure of single attributes.
    know
        What is used of unmasked values: `raw` (their rows by label; then the result is exact),
        `histogram` (their rows) or `nothing`; by default, all that the summary has.
    method
        A registered reconstruction method.
    progress
        Receives one step per attribute.

    Raises
    ------
    PolicyError
        The measure does not score single attributes, the method is unknown, or the summary lacks
        counts that the method needs.
    """
    chosen = measure_of_attributes(measure)
    METHODS.get(method)
    setting = summary.information if know is None else Information.of(know)
    scorer = Scorer(summary)
    raw = {}
    with progress.step("Reconstructing attributes", len(summary.attributes)) as step:
        for name in summary.attributes:
            raw[name] = unmasked_measure(scorer, name, chosen, know=setting, method=method)
            step.advance()
    estimates = []
    for configuration in configurations:
        choice = scorer.choose(configuration)
        attributes = {
            name: _masked_by(raw[name], summary.attributes[name], choice[name], score.score)
            for name, score in scorer.score(choice, chosen).attributes.items()
        }
        estimates.append(combined(configuration.name, chosen.name, setting, method, attributes))
    return tuple(estimates)


def unmasked_measure(
    scorer: Scorer,
    name: str,
    measure: Measure,
    *,
    know: Information | str,
    method: str = DEFAULT_METHOD,
    masks: Iterable[str] | None = None,
    reconstruction: Reconstruction | None = None,
) -> AttributeEstimate:
    """Estimate a measure of an unmasked attribute, with bounds.

    `know`, `method` and `masks` are those of `reconstruct_attribute`; the bounds also depend on
    `masks`. `reconstruction` is its result, if the caller has it already. In the estimate,
    `masked` is the measure under the attribute's finest candidate mask.
    """
    attribute, setting = _scored(scorer.summary, name), Information.of(know)
    _check_carried(attribute, setting)
    candidates = _chosen(attribute, masks)
    if setting is Information.RAW or all(shows_all(attribute, c) for c in candidates):
        # Nothing was ever hidden: what identity shows is the raw joint.
        exact = scorer.attribute(attribute, attribute.unmasked, measure)
        return AttributeEstimate(exact, exact, exact, exact)
    if reconstruction is None:
        reconstruction = reconstruct_attribute(
            scorer.summary, name, know=setting, method=method, masks=masks
        )
    estimate = measure(scores.contingency(reconstruction.table, measure))
    best, limits = _bounds(scorer, attribute, candidates, measure, setting)
    return within_limits(estimate, limits, best)


def _masked_by(
    estimate: AttributeEstimate, attribute: AttributeSummary, candidate: Candidate, masked: float
) -> AttributeEstimate:
    """Return the estimate with the measure under a candidate, exact if that shows every value."""
    exact = AttributeEstimate(masked, masked, masked, masked)
    return exact if shows_all(attribute, candidate) else replace(estimate, masked=masked)


def within_limits(
    estimate: float, limits: tuple[float, float] | None, masked: float
) -> AttributeEstimate:
    """Return the estimate, moved into its bounds if there are any."""
    if limits is None:
        return AttributeEstimate(estimate, None, None, masked)
    return AttributeEstimate(float(np.clip(estimate, *limits)), *limits, masked)


def combined(
    name: str,
    measure: str,
    setting: Information,
    method: str,
    attributes: dict[str, AttributeEstimate],
    *,
    case: str | None = None,
) -> Estimate:
    """Return the estimate of a configuration: the mean of those of its attributes."""
    intervals = [a.interval for a in attributes.values()]
    known_intervals = [i for i in intervals if i is not None]
    interval = None
    if len(known_intervals) == len(intervals):
        low, high = np.mean(known_intervals, axis=0)
        interval = float(low), float(high)
    pud = float(np.mean([a.deviation for a in attributes.values()]))
    return Estimate(name, measure, setting, method, pud, interval, attributes, case)


def _bounds(
    scorer: Scorer,
    attribute: AttributeSummary,
    candidates: Sequence[Candidate],
    measure: Measure,
    setting: Information,
) -> tuple[float, tuple[float, float] | None]:
    """Return the measure under the finest candidate, and bounds for the unmasked one, or None."""
    masked_measures = [
        scorer.attribute(attribute, candidate, measure)
        for candidate in candidates
        if (candidate.noise is None and not shows_all(attribute, candidate))
        or (candidate.noise is not None and measure.processed)
    ]
    if not masked_measures:
        return math.nan, None
    has_values = setting is not Information.NOTHING
    values = histogram_of(attribute).astype(np.float64) if has_values else None
    label_classes = attribute.joint.sum(axis=0).astype(np.float64)
    margins = Margins(label_classes, len(attribute.all_values), values)
    best = min(masked_measures) if measure.direction is Direction.LOWER else max(masked_measures)
    return best, limits_of(measure, masked_measures, margins)


def limits_of(
    measure: Measure, masked_measures: Sequence[float], margins: Margins
) -> tuple[float, float] | None:
    """Return the lower and the upper bound of a measure of an unmasked attribute; None if the
    measure has none.

    Masks cannot increase the measure, so it is at least the largest of `masked_measures`, its
    values under masks. `margins`, the rows by value and by class, limit it from above.
    """
    if not measure.monotone or measure.limit is None:
        return None
    limit = measure.limit(margins)
    if measure.direction is Direction.LOWER:
        return limit, min(masked_measures)
    return max(masked_measures), max(limit, *masked_measures)


def _chosen(attribute: AttributeSummary, masks: Iterable[str] | None) -> Sequence[Candidate]:
    if masks is None:
        return attribute.candidates
    by_name = {str(c.declared): c for c in attribute.candidates}
    short = {c.declared.name: c for c in attribute.candidates}
    candidates = []
    for mask in masks:
        candidate = by_name.get(mask) or short.get(mask)
        if candidate is None:
            raise PolicyError.unknown(f"candidate mask of {attribute.name!r}:", mask, by_name)
        candidates.append(candidate)
    return candidates


def _scored(summary: Summary, name: str) -> AttributeSummary:
    require_known("attribute", name, summary.attributes)
    return summary.attributes[name]


def shows_all(attribute: AttributeSummary, candidate: Candidate) -> bool:
    """Return whether a mask shows every value separately, as `identity` does."""
    return candidate.noise is None and candidate.size == len(attribute.all_values)


def known_of(attribute: AttributeSummary) -> Information:
    """Return `histogram` if the rows of unmasked values are known, else `nothing`."""
    least = attribute.information is Information.NOTHING
    return Information.NOTHING if least else Information.HISTOGRAM


def _check_carried(attribute: AttributeSummary, setting: Information) -> None:
    """Refuse a `setting` that needs more than the summary knows of the attribute."""
    order = list(Information)
    carried = attribute.information
    if order.index(setting) < order.index(carried):
        raise PolicyError(
            f"The summary does not contain the {_WORDS[setting]} of {attribute.name!r}.",
            hint=f"Estimate from less ({', '.join(order[order.index(carried) :])}), or give a summary that "
            "was made with more information.",
        )


def histogram_of(attribute: AttributeSummary) -> Ints:
    """Return the number of labelled rows per value, shape (V,)."""
    domain = attribute.domain
    counts = None if domain is None else domain.counts
    return attribute.joint.sum(axis=1) if counts is None else counts


def _groups(attribute: AttributeSummary, candidate: Candidate) -> Ints:
    """Return the index of the masked value of each value under a candidate, shape (V,)."""
    groups = candidate.groups.astype(np.int64)
    return groups if attribute.domain is None else groups[attribute.domain.cells]


def _joint(attribute: AttributeSummary, candidate: Candidate) -> Floats:
    return group_rows(attribute.joint, candidate.groups, candidate.size).astype(np.float64)


def _noisy(attribute: AttributeSummary, candidate: Candidate) -> NoisyJoint:
    joint = expected_reports(attribute, candidate, attribute.joint)
    if candidate.noise is None or len(joint) * len(attribute.values) > _MOST_CELLS:
        raise DataError(
            f"Mask {str(candidate.declared)!r} of {attribute.name!r} has {len(joint):,} reports for "
            f"{len(attribute.values):,} values: too many for a reconstruction.",
            hint="Give the mask a coarser resolution.",
        )
    return NoisyJoint(str(candidate.declared), candidate.noise.channel(attribute.data), joint)


@dataclass(frozen=True, eq=False)
class JointEstimate:
    """The rows by unmasked value of an attribute and label class, estimated from masked values.

    Attributes
    ----------
    attribute
        The attribute, with its true counts if the summary has them.
    label
        Name of the label's column.
    classes
        The text of each class of the label.
    know
        What is known in addition to masked values: `histogram`, for example.
    reconstruction
        The estimated numbers of rows for the V values and C classes, shape (V, C), with the
        distance from the true numbers.
    measure
        Name of the measure in `figures`.
    figures
        The estimated measure of the unmasked attribute, with bounds.
    true
        The true value of the measure; None if the summary does not have the true counts.
    """

    attribute: AttributeSummary
    label: str
    classes: tuple[str, ...]
    know: Information
    reconstruction: Reconstruction
    measure: str
    figures: AttributeEstimate
    true: float | None

    @property
    def values(self) -> tuple[str, ...]:
        """The text of each value, in the order of the rows of the estimated table."""
        from aegis.masks.categories import text_of

        if self.attribute.domain is None:
            return self.attribute.unmasked.labels
        values = self.attribute.domain.values.to_pylist()
        return tuple("null" if value is None else str(text_of(value)) for value in values)

    @property
    def truth(self) -> list[list[int]] | None:
        """The true numbers of rows by value and class; None if the summary does not have them."""
        return None if self.attribute.domain else self.attribute.joint.tolist()

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as JSON values."""
        return {
            "attribute": self.attribute.name,
            "label": self.label,
            "know": str(self.know),
            "values": list(self.values),
            "classes": list(self.classes),
            **self.reconstruction.to_dict(),
            "truth": self.truth,
            "measure": {
                "name": self.measure,
                "estimate": self.figures.estimate,
                "lower": self.figures.lower,
                "upper": self.figures.upper,
                "finest_mask": self.figures.masked,
                "true": self.true,
            },
        }


def measure_of_attributes(name: str) -> Measure:
    """Return a measure of single attributes by name; raise `PolicyError` for any other measure."""
    measure = MEASURES.get(name)
    if measure.scope is not Scope.ATTRIBUTE:
        raise PolicyError(
            f"Measure {name!r} scores whole configurations, not single attributes.",
            hint="For example: mi, chi2, g3.",
        )
    return measure


def _require_label(summary: Summary) -> None:
    summary.refuse_weights("A reconstruction")
    if not summary.label.there:
        raise PolicyError(
            "Aegis reconstructs the joint with the label, but the summary has no label.",
            hint="Summarise the table under a policy with `label: COLUMN`.",
        )
    if not summary.label.has_classes:
        raise PolicyError(
            f"Aegis reconstructs the joint with classes, but {summary.label.column!r} is a number "
            "to predict.",
            hint="Summarise the table under a policy that cuts it into classes (`bins: 5`).",
        )


def estimate_joint(
    summary: Summary,
    name: str,
    *,
    know: Information | str | None = None,
    method: str = DEFAULT_METHOD,
    masks: Iterable[str] | None = None,
    measure: str = "mi",
    seed: int = 0,
    progress: Progress = SILENT,
) -> JointEstimate:
    """Estimate the rows by unmasked value and label class, and a measure of these counts.

    The parameters are those of `reconstruct_attribute`, but `know` is by default `histogram` if
    the summary has it. `measure` scores single attributes.

    Raises
    ------
    PolicyError
        There is no label or no such attribute, the measure does not score single attributes, or the
        summary lacks counts that the method needs.
    """
    chosen = measure_of_attributes(measure)
    _require_label(summary)
    attribute = summary.attributes.get(name)
    fallback = Information.HISTOGRAM if attribute is None else known_of(attribute)
    setting = fallback if know is None else Information.of(know)
    mask_names = None if masks is None else tuple(masks)
    reconstruction = reconstruct_attribute(
        summary, name, know=setting, method=method, masks=mask_names, seed=seed, progress=progress
    )
    scorer, attribute = Scorer(summary), summary.attributes[name]
    figures = unmasked_measure(
        scorer,
        name,
        chosen,
        know=setting,
        method=method,
        masks=mask_names,
        reconstruction=reconstruction,
    )
    return JointEstimate(
        attribute=attribute,
        label=summary.label.column,
        classes=tuple(summary.label.classes),
        know=setting,
        reconstruction=reconstruction,
        measure=measure,
        figures=figures,
        true=None if attribute.domain else scorer.attribute(attribute, attribute.unmasked, chosen),
    )
