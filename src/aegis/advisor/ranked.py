"""Hold one entry of a ranking, and privacy figures before and after masking."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

from aegis.advisor.later import read_later
from aegis.advisor.scores import AttributeScore, mean_change
from aegis.advisor.utility import UtilityFigure
from aegis.policy import Configuration
from aegis.privacy import PrivacyAccount, PrivacyReport
from aegis.words import json_fields, percent

if TYPE_CHECKING:
    from aegis.advisor.estimates import Estimate
    from aegis.advisor.record_level import RecordLevel


@read_later("score", "utility_kept", "attributes", "labels")
@dataclass(frozen=True, repr=False)
class Ranked:
    """An entry of the ranking: a configuration or a record-level release, with its score and the
    verdict whether it meets the rule.

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

    @cached_property
    def pud(self) -> float:
        """The predictive utility deviation: the mean over attributes of |unmasked - masked|, the
        absolute change of an attribute's score by its mask.
        """
        return mean_change(self.attributes)

    @property
    def name(self) -> str:
        """The name of the configuration or of the record-level release."""
        return self.configuration.name

    def ranking_key(self, sign: int) -> tuple[bool, float, float, str]:
        """Return the key by which entries of the ranking are sorted: the rule first, then the
        estimated deviation (if there is one), then the score. `sign` is 1 if larger scores are
        better, otherwise -1.
        """
        place = 0.0 if self.estimate is None else self.estimate.place
        return (self.admissible is False, place, -sign * self.score, self.name)

    @property
    def masks(self) -> dict[str, Any]:
        """The mask of each attribute, in the form in which a policy file has it."""
        return self.configuration.spec()

    @property
    def shown(self) -> dict[str, str]:
        """The mask of each attribute as text for people: as the policy declares it, without
        parameters that were fitted to the data.

        For a record-level release, the text of each quasi-identifier names the method.
        """
        if self.method is not None:
            own = self.method.shown
            told = {n: f"{mask}, then {own}" for n, mask in self.method.before.items()}
            told |= self.method.carried
            return {name: told.get(name, own) for name in self.attributes}
        if not self.configuration.masks:  # a masked table, of which only its name is known
            return dict(self.declared)
        masks = self.configuration.masks
        return {n: self.declared[n] if n in self.declared else str(m) for n, m in masks.items()}

    def __repr__(self) -> str:
        share = "" if self.utility_kept is None else f", {percent(self.utility_kept)} kept"
        verdict = {True: "meets the rule", False: "fails the rule", None: "rule not checked"}
        head = f"Ranked({self.name!r}: score {self.score:.6g}{share}, {verdict[self.admissible]})"
        return "\n".join([head, *(f"  {name}: {mask}" for name, mask in self.shown.items())])

    def to_dict(self) -> dict[str, Any]:
        """Return the entry as the list `ranking` in the JSON form of an advice has it."""
        return {
            "name": self.name,
            "score": self.score,
            "utility_kept": self.utility_kept,
            **({"labels": dict(self.labels)} if self.labels else {}),
            "pud": None if self.against_finest else self.pud,
            "pud_finest": self.pud if self.against_finest else None,
            **json_fields(self, "estimate", "admissible", "smallest_class", "suppressed_rows"),
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
    """Return the first entry of a ranking if it is admissible and consists of masks; otherwise
    None.
    """
    first = ranking[0] if ranking else None
    return first if first is not None and first.admissible and first.method is None else None


@dataclass(frozen=True, eq=False)
class PrivacyChange:
    """The privacy figures of the unmasked table and of the recommended release, side by side.

    Attributes
    ----------
    before
        Figures of the unmasked table.
    after
        Figures of the release. If no configuration is admissible, figures of the closest
        configuration, without suppression. None if nothing was ranked.
    finest
        Whether `before` describes the table under its finest candidate masks instead of the
        unmasked table. This is so if no candidate shows all values, because the summary then has no
        finer counts.
    """

    before: PrivacyReport
    after: PrivacyReport | None = None
    finest: bool = False

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as JSON values."""
        return json_fields(self, "before", "after", "finest")
