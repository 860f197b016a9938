"""Hold one entry of a ranking with its estimates and its record-level release, and privacy figures
before and after masking.

Estimates say how far masked tables deviate from the unmasked table; they can rank configurations.
Packages add estimates through the entry points `aegis.estimates`; see `EstimateCase`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, Protocol

from aegis.advisor.scores import AttributeScore, mean_change, read_later
from aegis.advisor.scoring import Choice
from aegis.advisor.utility import UtilityFigure
from aegis.files import Progress
from aegis.policy import Configuration
from aegis.privacy import PrivacyAccount, PrivacyReport
from aegis.registry import Registry
from aegis.summary import Information, Summary
from aegis.words import json_fields, percent

if TYPE_CHECKING:
    from aegis.anonymizers import InformationLoss, Recipe


@dataclass(frozen=True)
class AttributeEstimate:
    """An estimate of the score that an attribute would have unmasked, made from its masked values.

    Attributes
    ----------
    estimate
        The estimated unmasked score: the score of reconstructed counts, which lies within the
        bounds.
    lower, upper
        Bounds of the unmasked score that hold for all possible unmasked counts; None if the measure
        has no bounds.
    masked
        The score of the masked attribute.
    information, method
        The information that this estimate used, and its method; None if both are the same as in the
        whole `Estimate`.
    """

    estimate: float
    lower: float | None
    upper: float | None
    masked: float
    information: Information | None = None
    method: str | None = None

    @property
    def deviation(self) -> float:
        """The estimate of |unmasked - masked|, the absolute difference between both scores."""
        return abs(self.estimate - self.masked)

    @property
    def interval(self) -> tuple[float, float] | None:
        """The smallest and the largest possible |unmasked - masked|; None without bounds."""
        if self.lower is None or self.upper is None:
            return None
        ends = abs(self.lower - self.masked), abs(self.upper - self.masked)
        inside = self.lower <= self.masked <= self.upper
        return (0.0 if inside else min(ends)), max(ends)


@dataclass(frozen=True)
class Estimate:
    """The predictive utility deviation (PUD) of one configuration, as estimated without the
    unmasked table.

    Attributes
    ----------
    configuration
        Name of the configuration.
    measure, information, method
        The estimated measure, the information used, and the method.
    pud
        Estimated mean over attributes of |unmasked - masked|.
    interval
        Smallest and largest PUD that the information allows; None if the measure has no bounds.
    attributes
        The estimate for each attribute.
    case
        Name of the estimate in `ESTIMATES`, if it was requested by name.
    """

    configuration: str
    measure: str
    information: Information
    method: str
    pud: float
    interval: tuple[float, float] | None
    attributes: dict[str, AttributeEstimate]
    case: str | None = None

    @property
    def rounded_deviation(self) -> float:
        """The estimated deviation by which configurations are sorted, rounded so that
        floating-point errors do not decide the order.
        """
        parts = (abs(x) for a in self.attributes.values() for x in (a.masked, a.estimate))
        largest = max(parts, default=0.0)
        digits = 9 - math.ceil(math.log10(largest)) if largest > 0 else 9
        return round(self.pud, digits)

    def to_dict(self) -> dict[str, Any]:
        """Return the estimate as JSON values, including the deviation of each attribute."""
        keys = ("estimate", "lower", "upper", "masked", "deviation", "interval")
        fields = ("configuration", "case", "measure", "information", "method", "pud", "interval")
        attributes = {
            name: json_fields(estimate, *keys)
            | {
                "information": str(estimate.information or self.information),
                "method": estimate.method or self.method,
            }
            for name, estimate in self.attributes.items()
        }
        return json_fields(self, *fields) | {"attributes": attributes}


class EstimateCase(Protocol):
    """A way to estimate how far scores deviate from those of the unmasked table."""

    @property
    def name(self) -> str:
        """The name under which users request the estimate."""

    @property
    def summary(self) -> str:
        """A sentence that says what is estimated, and what must be known for it."""

    @property
    def caution(self) -> str | None:
        """A warning that the user should read before relying on the estimate; None if there is none."""

    def estimates(
        self,
        summary: Summary,
        choices: Mapping[str, Choice],
        *,
        measure: str | None,
        progress: Progress,
    ) -> Mapping[str, Estimate]:
        """Estimate how far each configuration (`choices`, by its name) deviates from the unmasked
        table. `measure` is the one that the user named, if any.

        Raises
        ------
        PolicyError
            The summary does not have enough information.
        """


ESTIMATES: Registry[EstimateCase] = Registry("estimate")
"""Estimates by name."""


@dataclass(frozen=True)
class RecordLevel:
    """How a record-level release was made, and how much information it loses. Such a release is
    made by a method that changes records, such as microaggregation, instead of masks.

    Attributes
    ----------
    recipe
        Method, all options and seed, so that the same table gives the same release.
    groups
        Number of groups of records.
    left_out
        Number of rows that the method left out.
    claims_k
        Whether the method promises that every released class has k rows.
    loss
        Information loss; it is not used for ranking.
    seconds
        Time that the method took, without scores and checks.
    notes
        Notes for the reader.
    report
        Privacy of the released rows; None if nothing is released.
    carried
        Mask of each column that is not a quasi-identifier, as text.
    before
        Mask of each quasi-identifier that is masked before the method runs, as text.
    held_out
        The score by `held-out-pillai-values`, if the release was ranked by `adjusted-pillai`; else
        None.
    """

    recipe: Recipe
    groups: int
    left_out: int
    claims_k: bool
    loss: InformationLoss
    seconds: float
    notes: tuple[str, ...] = ()
    report: PrivacyReport | None = None
    carried: Mapping[str, str] = field(default_factory=dict)
    before: Mapping[str, str] = field(default_factory=dict)
    held_out: float | None = None

    @property
    def method_text(self) -> str:
        """The method and its k, which reports show in the place of masks."""
        return f"{self.recipe.method}(k={self.recipe.options['k']})"

    def to_dict(self) -> dict[str, Any]:
        """Return all fields except the privacy report as JSON values."""
        return {
            **self.recipe.to_dict(),
            "groups": self.groups,
            "left_out_rows": self.left_out,
            "claims_k": self.claims_k,
            "information_loss": asdict(self.loss),
            "seconds": self.seconds,
            "notes": list(self.notes),
        }


@read_later("score", "utility_kept", "attributes", "labels")
@dataclass(frozen=True, repr=False)
class Ranked:
    """An entry of the ranking, with its score and whether it meets the rule: a configuration (a
    mask for each attribute) or a record-level release (made by a method that changes records).

    Attributes
    ----------
    configuration
        The name and the masks, fitted to the data. For a record-level release, only the name.
    score
        The score of the configuration.
    utility_kept
        Percent of the unmasked utility that is kept; None if the unmasked utility is 0. It is
        measured on the released rows if `utility` is known, else on all rows as masked.
    admissible
        Whether the release of this entry meets the privacy rule; None if this cannot be known
        without the rows.
    probable
        If `admissible` is None: whether an estimate says, with a margin, that the release meets the
        rule; None if there is no estimate.
    smallest_class
        Rows of the smallest equivalence class after suppression; 0 if no rows remain; None if the
        equivalence classes are not known.
    suppressed_rows
        Number of rows that the release suppresses; None if it is not known.
    violations
        The violated requirements as sentences; empty if the entry is admissible.
    attributes
        The score of each attribute alone, masked and unmasked; computed on first use.
    declared
        Mask of each attribute as the policy writes it, without fitted parameters.
    objective
        The value of the search's objective; None if the objective is the measure.
    utility
        The utility of the released rows. It is measured for the best configuration and for
        record-level releases; else None.
    stderr
        Standard error of the score; None if it was not computed.
    tied_with_best
        Whether the score does not differ significantly from the best configuration's score; None if
        the two were not compared.
    masking
        The amount of masking, from 0 to 1: the share of an attribute's entropy that its mask hides,
        averaged over attributes. None if it was not computed.
    differential_privacy
        The guarantee of the noise masks, summed over attributes; None if there is no guarantee.
    method
        Details of a record-level release; None for a configuration.
    estimate
        The estimated deviation from the unmasked table, if requested.
    against_finest
        Whether `pud` and the unmasked figures refer to the finest masks instead of the unmasked
        table, because the summary has no counts of unmasked values.
    labels
        For several labels, the percent of utility that is kept for each label, on all rows; empty
        for one label.
    """

    configuration: Configuration
    score: float
    utility_kept: float | None
    admissible: bool | None
    smallest_class: int | None
    suppressed_rows: int | None
    violations: tuple[str, ...]
    attributes: Mapping[str, AttributeScore]
    declared: Mapping[str, str] = field(default_factory=dict)
    objective: float | None = None
    utility: UtilityFigure | None = None
    stderr: float | None = None
    tied_with_best: bool | None = None
    masking: float | None = None
    differential_privacy: PrivacyAccount | None = None
    method: RecordLevel | None = None
    estimate: Estimate | None = None
    against_finest: bool = False
    labels: Mapping[str, float | None] = field(default_factory=dict)
    probable: bool | None = None

    @property
    def verdict(self) -> str:
        """Whether the release meets the rule, in the words that every screen shows."""
        if self.admissible is not None:
            return "met" if self.admissible else "not met"
        return {True: "probably met", False: "doubtful", None: "not known"}[self.probable]

    @cached_property
    def pud(self) -> float:
        """The predictive utility deviation: the mean over attributes of |unmasked - masked|."""
        return mean_change(self.attributes)

    @property
    def name(self) -> str:
        """The name of the configuration or of the record-level release."""
        return self.configuration.name

    def ranking_key(self, sign: int) -> tuple[bool, bool, float, float, str]:
        """Return the key by which entries are sorted: the rule first, then the estimated deviation
        (if there is one), then the score. `sign` is 1 if larger scores are better, otherwise -1.
        """
        deviation = 0.0 if self.estimate is None else self.estimate.rounded_deviation
        refused = self.admissible is False, self.probable is False
        return (*refused, deviation, -sign * self.score, self.name)

    @property
    def masks(self) -> dict[str, Any]:
        """The mask of each attribute, in the form in which a policy file has it."""
        return self.configuration.spec()

    @property
    def mask_texts(self) -> dict[str, str]:
        """The mask of each attribute as the policy declares it; for a record-level release, the
        text of each quasi-identifier names the method.
        """
        if self.method is not None:
            method_text = self.method.method_text
            texts = {n: f"{mask}, then {method_text}" for n, mask in self.method.before.items()}
            texts |= self.method.carried
            return {name: texts.get(name, method_text) for name in self.attributes}
        if not self.configuration.masks:  # a masked table, of which only its name is known
            return dict(self.declared)
        masks = self.configuration.masks
        return {n: self.declared[n] if n in self.declared else str(m) for n, m in masks.items()}

    def __repr__(self) -> str:
        share = "" if self.utility_kept is None else f", {percent(self.utility_kept)} kept"
        head = f"Ranked({self.name!r}: score {self.score:.6g}{share}, rule {self.verdict})"
        return "\n".join([head, *(f"  {name}: {mask}" for name, mask in self.mask_texts.items())])

    def to_dict(self) -> dict[str, Any]:
        """Return the entry as the list `ranking` in the JSON form of an advice has it."""
        return {
            "name": self.name,
            "score": self.score,
            "utility_kept": self.utility_kept,
            **({"labels": dict(self.labels)} if self.labels else {}),
            "pud": None if self.against_finest else self.pud,
            "pud_finest": self.pud if self.against_finest else None,
            **json_fields(self, "estimate", "admissible"),
            "probably_admissible": self.probable,
            **json_fields(self, "smallest_class", "suppressed_rows"),
            **json_fields(self, "violations", "objective", "utility", "stderr", "tied_with_best"),
            **json_fields(self, "masking", "differential_privacy", "masks", "method"),
            "attributes": {
                name: {
                    "score": a.score,
                    "finest" if self.against_finest else "unmasked": a.unmasked,
                    "change": a.change,
                }
                for name, a in self.attributes.items()
            },
        }


def best_masked(ranking: Sequence[Ranked]) -> Ranked | None:
    """Return the first entry of a ranking if it meets the rule and consists of masks; otherwise
    None.
    """
    first = ranking[0] if ranking else None
    return first if first is not None and first.admissible and first.method is None else None


@dataclass(frozen=True)
class PrivacyChange:
    """The privacy figures of the unmasked table and of the recommended release, side by side.

    Attributes
    ----------
    before
        Figures of the unmasked table.
    after
        Figures of the release. If no configuration is admissible, figures, without suppression, of
        the one for which the fewest rows must be removed. None if nothing was ranked.
    finest
        Whether `before` describes the table under its finest candidate masks instead of the
        unmasked table. This is so if no candidate shows all values, because the summary then has no
        finer counts.
    """

    before: PrivacyReport
    after: PrivacyReport | None = None
    finest: bool = False
