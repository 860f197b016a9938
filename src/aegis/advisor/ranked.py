"""One entry of a ranking, and privacy before and after masking."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

from aegis.advisor.scores import AttributeScore, mean_change
from aegis.advisor.utility import UtilityFigure
from aegis.policy import Configuration
from aegis.privacy import PrivacyAccount, PrivacyReport

if TYPE_CHECKING:
    from aegis.advisor.estimates import Estimate
    from aegis.advisor.record_level import RecordLevel


@dataclass(frozen=True)
class Ranked:
    """One configuration, or record-level release, with its score and whether it meets the rule.

    Attributes
    ----------
    configuration
        The masks, fitted to the data; a record-level release has a name here and no masks.
    score
        The measure of the configuration.
    utility_kept
        Percent of the unmasked utility that is kept; None if there was none. With a `utility` it
        is of the released rows, else of the masks on all rows.
    admissible
        Whether its release meets the privacy rule; None if nobody said so who has the rows.
    smallest_class
        Rows of the smallest equivalence class, after suppression; 0 where nothing is left, None if
        it is not known which values share a row.
    suppressed_rows
        Rows that the release leaves out; None if that is not known.
    violations
        What falls short, in plain sentences; empty when admissible.
    attributes
        The measure of each attribute alone, masked and unmasked; of a ranking worked out when it is
        first read.
    declared
        Attribute to mask as the policy wrote it, without what was fitted: short, for people.
    objective
        The value of the search's objective, where it is not the measure itself.
    utility
        The utility of the rows that the release keeps, where it was measured: of the best one, and
        of record-level releases.
    stderr
        Standard error of the score (`sampling_error`); None if it was not computed.
    tied_with_best
        Whether its score is not significantly different from the best one's; None if it was not compared.
    masking
        How much its masks hide of what the attributes predict, from 0 to 1: the mean over attributes
        of the share of their entropy that is lost; None if it was not computed.
    differential_privacy
        What its noise masks promise, summed over attributes; None without such a promise.
    method
        How a record-level release came about and what it cost; None for a configuration.
    estimate
        The estimated deviation from the raw table, if requested.
    against_finest
        Whether `pud`, and the unmasked figures, are against the finest masks of a summary that
        carries no more, not against the raw table.
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

    @cached_property
    def pud(self) -> float:
        """Predictive utility deviation: the mean over attributes of |unmasked - masked|."""
        return mean_change(self.attributes)

    @property
    def name(self) -> str:
        """The configuration's name."""
        return self.configuration.name

    def ranking_key(self, sign: int) -> tuple[bool, float, str]:
        """Return the sort key of a ranking, for a measure that is better if `sign` times its
        value is larger.
        """
        return (self.admissible is False, -sign * self.score, self.name)

    @property
    def masks(self) -> dict[str, Any]:
        """Attribute to mask, as a policy writes it."""
        return self.configuration.spec()

    @property
    def shown(self) -> dict[str, str]:
        """Mask of each attribute as text for people: as declared, without fitted parameters.

        A record-level release shows its method for every quasi-identifier.
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

    def to_dict(self) -> dict[str, Any]:
        """Return the entry of `ranking` in the JSON of advice."""
        return {
            "name": self.name,
            "score": self.score,
            "utility_kept": self.utility_kept,
            "pud": None if self.against_finest else self.pud,
            "pud_finest": self.pud if self.against_finest else None,
            "estimate": None if self.estimate is None else self.estimate.to_dict(),
            "admissible": self.admissible,
            "smallest_class": self.smallest_class,
            "suppressed_rows": self.suppressed_rows,
            "violations": list(self.violations),
            "objective": self.objective,
            "utility": None if self.utility is None else self.utility.to_dict(),
            "stderr": self.stderr,
            "tied_with_best": self.tied_with_best,
            "masking": self.masking,
            "differential_privacy": None
            if self.differential_privacy is None
            else self.differential_privacy.to_dict(),
            "masks": self.masks,
            "method": None if self.method is None else self.method.to_dict(),
            "attributes": {
                name: {
                    "score": a.score,
                    "finest" if self.against_finest else "unmasked": a.unmasked,
                    "change": a.change,
                }
                for name, a in self.attributes.items()
            },
        }


@dataclass(frozen=True, eq=False)
class PrivacyChange:
    """Figures of privacy before masking and of the release that an advice recommends.

    Attributes
    ----------
    before
        Of the table as it is.
    after
        Of the release; of the closest configuration as it is where none is admissible; None if nothing was ranked.
    finest
        Whether `before` is of the table under the finest candidate masks instead: where no
        candidate shows all values, a summary counts no finer.
    """

    before: PrivacyReport
    after: PrivacyReport | None = None
    finest: bool = False

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as JSON values."""
        return {
            "before": self.before.to_dict(),
            "after": None if self.after is None else self.after.to_dict(),
            "finest": self.finest,
        }
