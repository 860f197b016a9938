"""Estimate the joint counts of one attribute and the label from masked values."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from aegis.advisor.estimates import AttributeEstimate
from aegis.advisor.scoring import Scorer
from aegis.errors import PolicyError
from aegis.measures import MEASURES, Measure, Scope
from aegis.papers.estimates.deviation import (
    DEFAULT_METHOD,
    known_of,
    reconstruct_attribute,
    unmasked_measure,
)
from aegis.papers.reconstruction import Reconstruction
from aegis.progress import SILENT, Progress
from aegis.summary import AttributeSummary, Information, Summary


@dataclass(frozen=True, eq=False)
class JointEstimate:
    """The joint counts of an attribute and the label, estimated from masked values.

    Attributes
    ----------
    attribute
        The attribute, with its true counts if the summary has them.
    label
        Name of the label's column.
    classes
        The text of each class of the label.
    know
        The information that is known in addition to masked values.
    reconstruction
        The estimated numbers of rows for the V values and C classes, shape (V, C), with the
        distance from the true numbers.
    measure
        Name of the measure in `figures`.
    figures
        The estimated measure of the unmasked attribute, with bounds.
    true
        The true value of the measure; None if the summary does not have the raw joint counts.
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
        """The text of each value, in the same order as the lines of the estimated table."""
        from aegis.masks.mapping import text_of

        if self.attribute.domain is None:
            return self.attribute.unmasked.labels
        shown = self.attribute.domain.values.to_pylist()
        return tuple("null" if value is None else str(text_of(value)) for value in shown)

    @property
    def truth(self) -> list[list[int]] | None:
        """The true rows by value and class; None if the summary does not have them."""
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
    """Estimate the joint counts of an attribute and the label, and a measure of them.

    Parameters
    ----------
    summary, name
        The summary, and the name of one of its attributes.
    know
        The information that is known in addition to masked values. By default, it is all
        information of the summary except the raw joint counts.
    method, masks, seed, progress
        Reconstruction method, candidate masks to use (default: all), seed of draws, progress.
    measure
        A measure of single attributes.

    Raises
    ------
    PolicyError
        There is no label or no such attribute, the measure scores whole configurations, or
        `reconstruct_attribute` failed.
    """
    chosen = measure_of_attributes(measure)
    _require_label(summary)
    own = summary.attributes.get(name)
    fallback = Information.HISTOGRAM if own is None else known_of(own)
    setting = fallback if know is None else Information.of(know)
    seen = None if masks is None else tuple(masks)
    reconstruction = reconstruct_attribute(
        summary, name, know=setting, method=method, masks=seen, seed=seed, progress=progress
    )
    scorer, own = Scorer(summary), summary.attributes[name]
    figures = unmasked_measure(
        scorer,
        name,
        chosen,
        know=setting,
        method=method,
        masks=seen,
        reconstruction=reconstruction,
    )
    return JointEstimate(
        attribute=own,
        label=summary.label.column,
        classes=tuple(summary.label.classes),
        know=setting,
        reconstruction=reconstruction,
        measure=measure,
        figures=figures,
        true=None if own.domain else scorer.attribute(own, own.unmasked, chosen),
    )
