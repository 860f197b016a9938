"""Rank by the estimated deviation of each configuration: Algorithm 1 of the AEGIS paper.

For each attribute, this module reconstructs the joint counts of unmasked values and label from the
joint counts of masked values and label. It then compares a measure of both. The *cases* are the
cases of the paper (section 5.1.3): in AEGIS+1D, the histogram of the unmasked attribute is known,
and in AEGIS-1D it is not known. SAMPLING is the method with which the paper compares. `raw` is the
true deviation, and `all-evidence` is the estimate from all masks together. Reconstruction from one
mask contains little information on the order of configurations (theory.md, Theorem 1). Ranking by a
measure needs no reconstruction. This ranking exists because the papers use it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import product

from aegis.advisor.ranked import AttributeEstimate, Estimate
from aegis.advisor.scoring import Choice, Scorer
from aegis.errors import DataError, InternalError, PolicyError, require_known
from aegis.files import SILENT, Progress
from aegis.measures import MEASURES, Measure, Scope
from aegis.papers.estimates.deviation import (
    DEFAULT_METHOD,
    combined,
    shows_all,
    unmasked_measure,
)
from aegis.summary import Information, Summary

ONE_MASK = (
    "each estimate uses one mask, which does not show what it hides: if the reconstruction spreads "
    "its rows evenly, the estimated deviation is 0 for every mask (theory, Theorem 1). all-evidence "
    "uses all candidate masks together, and a ranking by measure needs no estimate"
)
"""Warning about a reconstruction from one mask."""
CHANNEL = "channel-em"
"""The method that works only for noise masks."""
MEASURE = "mi"
"""The measure to estimate if a ranking uses a measure of whole configurations."""


@dataclass(frozen=True)
class PaperEstimate:
    """A way in which the AEGIS paper estimates how far a measure of a masked table is from the
    measure of the unmasked table.

    Attributes
    ----------
    name
        The name that users write.
    know
        What is assumed to be known of unmasked values. If the summary knows less about an
        attribute, the estimate uses only what the summary knows.
    method
        The method that reconstructs the counts of unmasked values.
    own_mask
        True reconstructs an attribute only from its mask in the configuration, as in the paper.
        False reconstructs it from all of its candidate masks.
    summary
        Description in one sentence.
    """

    name: str
    know: Information
    method: str
    own_mask: bool
    summary: str

    @property
    def caution(self) -> str | None:
        """A warning if unmasked counts are reconstructed from one mask at a time; else None."""
        return ONE_MASK if self.own_mask else None

    def estimates(
        self,
        summary: Summary,
        choices: Mapping[str, Choice],
        *,
        measure: str | None,
        progress: Progress = SILENT,
    ) -> dict[str, Estimate]:
        """From the summary, estimate how far a measure of each configuration deviates from the
        measure of the unmasked table.

        Parameters
        ----------
        summary
            The summary.
        choices
            The name of each configuration, with its candidates.
        measure
            A measure of single attributes. For any other measure, or for None, the function
            estimates mutual information.
        progress
            Receives one step per configuration.

        Raises
        ------
        PolicyError
            `know` is `raw`, and the summary does not have the rows by unmasked value and label.
        """
        estimator = _Estimator(summary, self, estimated_measure(measure))
        estimates = {}
        with progress.step("Estimating deviations", len(choices)) as step:
            for name, choice in choices.items():
                estimates[name] = estimator.estimate(name, choice)
                step.advance()
        return estimates


PLUS_1D = PaperEstimate(
    "aegis+1d",
    Information.HISTOGRAM,
    "ipf",
    True,
    "The paper's case 1: reconstructed from the own mask, with the raw histogram.",
)
MINUS_1D = PaperEstimate(
    "aegis-1d",
    Information.NOTHING,
    "ipf",
    True,
    "The paper's case 2: the same from a uniform prior.",
)
SAMPLING = PaperEstimate(
    "sampling",
    Information.HISTOGRAM,
    "sampling",
    True,
    "The paper's comparator: one draw of compatible values for the masked rows.",
)
ALL_EVIDENCE = PaperEstimate(
    "all-evidence",
    Information.HISTOGRAM,
    DEFAULT_METHOD,
    False,
    "Reconstructed from all candidate masks of the attribute, with the raw histogram.",
)
RAW = PaperEstimate(
    "raw",
    Information.RAW,
    DEFAULT_METHOD,
    False,
    "No estimate: the deviation from the raw table itself.",
)
CASES = {case.name: case for case in (PLUS_1D, MINUS_1D, SAMPLING, ALL_EVIDENCE, RAW)}
"""The estimates of the papers, by the names that the entry points `aegis.estimates` use."""


def case_of(name: str) -> PaperEstimate:
    """Return the estimate with this name; raise `PolicyError` if there is none."""
    require_known("estimate", name, CASES)
    return CASES[name]


def estimated_measure(named: str | None) -> Measure:
    """Return the measure `named` if it scores single attributes, else the default."""
    if named is None:
        return MEASURES.get(MEASURE)
    chosen = MEASURES.get(named)
    return chosen if chosen.scope is Scope.ATTRIBUTE else MEASURES.get(MEASURE)


class _Estimator:
    """Estimates the deviation of a masked attribute's measure, each mask once."""

    def __init__(self, summary: Summary, case: PaperEstimate, measure: Measure) -> None:
        self.scorer = Scorer(summary)
        self.case = case
        self.measure = measure
        self._estimates: dict[tuple[str, str], AttributeEstimate] = {}
        if case.know is Information.RAW and summary.information is not Information.RAW:
            raise PolicyError(
                f"The summary holds {summary.information} of an attribute, not the raw joint.",
                hint=f"Give `--estimate` one of {', '.join(c for c in CASES if c != 'raw')}.",
            )

    def estimate(self, name: str, choice: Choice) -> Estimate:
        scored = self.scorer.score(choice, self.measure)
        attributes = {}
        for attribute in self.scorer.summary.attributes:
            mask = str(choice[attribute].declared)
            if (attribute, mask) not in self._estimates:
                self._estimates[attribute, mask] = self._attribute(attribute, choice)
            estimate = self._estimates[attribute, mask]
            attributes[attribute] = replace(estimate, masked=scored.attributes[attribute].score)
        return combined(
            name,
            self.measure.name,
            self.case.know,
            self.case.method,
            attributes,
            case=self.case.name,
        )

    def _attribute(self, name: str, choice: Choice) -> AttributeEstimate:
        summary = self.scorer.summary
        attribute, candidate = summary.attributes[name], choice[name]
        if self.case.know is Information.RAW or shows_all(attribute, candidate):
            exact_candidate = attribute.unmasked if self.case.know is Information.RAW else candidate
            value = self.scorer.attribute(attribute, exact_candidate, self.measure)
            return AttributeEstimate(
                value, value, value, value, information=Information.RAW, method="exact"
            )
        order = list(Information)
        setting = max(self.case.know, attribute.information, key=order.index)
        attempts = _attempts(self.case, noise=candidate.noise is not None)
        for method, own_mask in attempts:
            masks = (str(candidate.declared),) if own_mask else None
            try:
                figures = unmasked_measure(
                    self.scorer, name, self.measure, know=setting, method=method, masks=masks
                )
            except (PolicyError, DataError):
                if (method, own_mask) == attempts[-1]:
                    raise
                continue
            used = method if own_mask == self.case.own_mask else f"{method} of all masks"
            return replace(figures, information=setting, method=used)
        raise InternalError("Nothing was tried.")


def _attempts(case: PaperEstimate, *, noise: bool) -> list[tuple[str, bool]]:
    """Return the methods to try, each with whether only the configuration's mask is used: first that of
    `case`, then those for more kinds of masks. For noise, a method of one mask is left out.
    """
    first = CHANNEL if noise and case.own_mask else case.method
    others = product((case.own_mask, False), (DEFAULT_METHOD, CHANNEL))
    tried = [(first, case.own_mask), *((method, own_mask) for own_mask, method in others)]
    return list(dict.fromkeys(tried))
