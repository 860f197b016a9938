"""Rank masked tables by a measure, or by the estimated deviation from the raw table."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from aegis.advisor import Advice, Ranked, measure_for, plan_of
from aegis.advisor.confidence import COMPARED, compared, jackknife, marked_by_folds, shrink_of
from aegis.advisor.plan import check_owner_rule, rank_choice
from aegis.advisor.ranked import AttributeEstimate, Estimate
from aegis.advisor.scores import contingency
from aegis.advisor.scoring import AttributeScore, Scorer, utility_kept
from aegis.errors import PolicyError
from aegis.files import SILENT, Progress
from aegis.measures import Measure, Scope
from aegis.measures.cooccurrence import Margins
from aegis.papers.estimates.cases import (
    ONE_MASK,
    PaperEstimate,
    case_of,
    estimated_measure,
)
from aegis.papers.estimates.deviation import (
    DEFAULT_METHOD,
    combined,
    limits_of,
    within_limits,
)
from aegis.papers.published.build import as_it_stands
from aegis.papers.published.model import Published
from aegis.papers.reconstruction import Evidence, MaskedJoint, reconstruct
from aegis.policy import Configuration, Policy, as_policy, policy_mapping
from aegis.summary import Information

AGAINST = (
    "Aegis does not have the raw table. So shares kept and PUD (finest) compare with the best of the "
    "masked tables, for the label and for each attribute"
)

NO_ERRORS = (
    "no standard errors: they need the rows, and contingency tables do not show which values occur in "
    "one row"
)
TOO_MANY_VALUES = "no standard errors: the tables have too few rows to leave out parts of them, or too many values"


def rank_published(
    published: Published,
    policy: Policy | Mapping[str, Any] | str | Path,
    *,
    measure: str | None = None,
    estimate: str | None = None,
    rule_override: bool = False,
    progress: Progress = SILENT,
) -> Advice:
    """Rank masked tables by a measure; those that do not meet the privacy rule come last.

    Parameters
    ----------
    published
        The counts of masked tables, as `publish` returns them.
    policy
        Label, roles and the rule, which the tables must meet without suppression: a `Policy`, its
        content, or the path of its file.
    measure
        Name of a measure; by default, the policy's or else the usual one for the kind of label.
    estimate
        Name of an estimate in `aegis.papers.estimates.cases.CASES`, except `raw`. The tables are
        then ranked by the estimated deviation from the raw table, not by the measure.
    rule_override
        Whether to accept a rule that differs from the rule under which the counts were made.
    progress
        Receives one step per table.

    Raises
    ------
    PolicyError
        A measure or estimate is unknown; the policy has other attributes or another rule; the raw
        values that an estimate needs are not known; or the tables count single attributes, and the
        measure or the rule needs combinations of them.
    """
    started = time.perf_counter()
    policy = as_policy(policy)
    override = check_owner_rule(published.first, policy.privacy, override=rule_override)
    chosen, lacking = measure_for(published.first, measure, policy.measure)
    _check_marginal(published, policy, chosen)
    ranking = _scored(published, policy, chosen, progress)
    case = None if estimate is None else case_of(estimate)
    ranking = _in_order(published, ranking, chosen, case, measure or policy.measure)
    notes: tuple[str, ...] = (ONE_MASK,) if case is not None and case.own_mask else ()
    if case is None:  # of an order by estimates, errors of the measure say nothing
        ranking, notes = _with_errors(published, ranking, chosen, progress)
    return Advice(
        measure=chosen.name,
        ranking=tuple(ranking),
        unmasked=_best(ranking, chosen),
        optimal=False,  # of what masks might have made, nothing is known
        combinations=len(ranking),
        masked_tables=True,
        summary={**published.first.to_dict(), "information": str(_known_information(published))},
        policy=policy_mapping(policy),
        warnings=(*([] if override is None else [override.sentence]), *lacking, *notes, AGAINST),
        timings={"total": time.perf_counter() - started},
        owner_rule=None if published.terms is None else published.terms.owner,
        rule_override=override,
    )


def _scored(
    published: Published, policy: Policy, chosen: Measure, progress: Progress
) -> list[Ranked]:
    """Return the masked tables with their scores, compared with the best of any."""
    ranking = []
    with progress.step("Scoring masked tables", len(published.tables)) as step:
        for name in published.tables:
            ranking.append(_ranked(published, name, policy, chosen))
            step.advance()
    return _against_best(ranking, chosen)


def _in_order(
    published: Published,
    ranking: Sequence[Ranked],
    chosen: Measure,
    case: PaperEstimate | None,
    measure: str | None,
) -> list[Ranked]:
    """Sort the tables. Those that meet the rule come first; among them, the smallest estimated
    deviation comes first if `case` names an estimate, then the best score by the measure `chosen`.
    `measure` is the measure whose deviation is estimated; None for the default.
    """
    if case is not None:
        estimator = _PublishedEstimator(published, case, estimated_measure(measure))
        ranking = [replace(r, estimate=estimator.estimate(r.name)) for r in ranking]
    return sorted(ranking, key=lambda r: r.ranking_key(chosen.direction.sign))


def _best(ranking: Sequence[Ranked], chosen: Measure) -> float:
    sign = chosen.direction.sign
    return sign * max(sign * r.score for r in ranking)


def _with_errors(
    published: Published, ranking: list[Ranked], measure: Measure, progress: Progress
) -> tuple[list[Ranked], tuple[str, ...]]:
    """Add standard errors and ties to the ranking; if there are none, also return why.

    Errors come from scores without each fold. Folds of two tables are unrelated, so the variance of a
    difference is the sum of both: tables count as tied too often rather than too rarely.
    """
    if published.marginal:
        return ranking, (NO_ERRORS,)
    met = [ranked for ranked in ranking if ranked.admissible]
    values: list[np.ndarray] = []
    for ranked in (met or ranking)[:COMPARED]:
        scorer = Scorer(published.tables[ranked.name])
        if compared(scorer, [scorer.unmasked] * 2, measure) < 2:
            break
        fold_scores = jackknife(scorer, [scorer.unmasked], measure, progress)
        if fold_scores is None or (values and len(fold_scores) != len(values[0])):
            break
        values.append(fold_scores[:, 0])
    if not values:
        return ranking, (TOO_MANY_VALUES,)
    shrink = shrink_of(published.tables[ranking[0].name], measure)
    return marked_by_folds(ranking, np.stack(values, axis=1), shrink), ()


def _known_information(published: Published) -> Information:
    """Return `histogram` if rows of raw values are known for all attributes, else `nothing`."""
    complete = all(name in published.histograms for name in published.first.attributes)
    return Information.HISTOGRAM if complete else Information.NOTHING


def _check_marginal(published: Published, policy: Policy, measure: Measure) -> None:
    """Refuse a measure or rule that needs more than contingency tables."""
    if not published.marginal:
        return
    names = ", ".join(sorted(published.marginal))
    if measure.scope is not Scope.ATTRIBUTE:
        raise PolicyError(
            f"{measure.name} scores attributes together, but contingency tables ({names}) hold "
            "single attributes.",
            hint="Rank by a measure of one attribute, such as --measure mi.",
        )
    if policy.privacy.criteria:
        raise PolicyError(
            f"Contingency tables ({names}) do not show which values share a row, so the rule cannot "
            "be compared with them.",
            hint="Give masked tables; or write `privacy: {}` if the owner has already applied the rule.",
        )


def _ranked(published: Published, name: str, policy: Policy, measure: Measure) -> Ranked:
    """Return a masked table as an entry of the ranking, with score and verdict."""
    summary = replace(published.tables[name], terms=None)
    scorer = Scorer(summary)
    plan = plan_of(summary, as_it_stands(policy))
    ranked = rank_choice(name, scorer.unmasked, scorer, plan, measure)
    return replace(
        ranked,
        configuration=Configuration(name, {}),
        declared={attribute: _shows(published, name, attribute) for attribute in ranked.attributes},
        against_finest=True,
        smallest_class=None if name in published.marginal else ranked.smallest_class,
    )


def _shows(published: Published, name: str, attribute: str) -> str:
    """Describe in words how many values the column `attribute` of the masked table `name` shows."""
    size = published.tables[name].attributes[attribute].unmasked.size
    if size <= 1:
        return f"{name}: hidden"
    raw = _shows_all(published, published.joint(name, attribute), attribute)
    return f"{name}: {size:,} {'raw ' if raw else ''}values"


def _shows_all(published: Published, joint: MaskedJoint | None, attribute: str) -> bool:
    """Return whether a table is known to show every raw value of an attribute separately."""
    return joint is not None and len(joint.joint) == len(published.domain(attribute))


def _against_best(ranking: Sequence[Ranked], measure: Measure) -> list[Ranked]:
    """Return the tables compared with the best score of each attribute, and utility, of any."""
    sign = measure.direction.sign
    best = {
        name: sign * max(sign * r.attributes[name].score for r in ranking)
        for name in ranking[0].attributes
    }
    best_score = _best(ranking, measure)
    tables = []
    for ranked in ranking:
        scores = {n: AttributeScore(a.score, best[n]) for n, a in ranked.attributes.items()}
        tables.append(
            replace(
                ranked,
                attributes=scores,
                utility_kept=utility_kept(ranked.score, best_score, measure),
            )
        )
    return tables


class _PublishedEstimator:
    """Estimates deviations from the raw table, from masked counts and known histograms."""

    def __init__(self, published: Published, case: PaperEstimate, measure: Measure) -> None:
        if case.know is Information.RAW:
            raise PolicyError(
                "`--estimate raw` needs the raw table, and you gave only masked tables.",
                hint="Give `--estimate` one of aegis+1d, aegis-1d, sampling, all-evidence.",
            )
        self.published, self.case, self.measure = published, case, measure
        self.masked_joints = {
            attribute: self._masked_joints(attribute) for attribute in published.first.attributes
        }

    def _masked_joints(self, attribute: str) -> dict[str, MaskedJoint]:
        by_table = {name: self.published.joint(name, attribute) for name in self.published.tables}
        known_joints = {name: joint for name, joint in by_table.items() if joint is not None}
        needed = self.published.tables if self.case.own_mask else list(known_joints)[:1]
        missing = [name for name in needed if name not in known_joints]
        if missing or not known_joints:
            where = ", ".join(missing) or "any table"
            raise PolicyError(
                f"Aegis does not know which raw values the masked values of {attribute!r} in {where} "
                "represent, so it cannot estimate the deviation from the raw table.",
                hint="Give the mapping of the column (or its histogram, if it is not masked), or rank by "
                "a measure, which needs neither.",
            )
        return known_joints

    def estimate(self, name: str) -> Estimate:
        attributes = {a: self._attribute(name, a) for a in self.masked_joints}
        case = self.case
        return combined(name, self.measure.name, case.know, case.method, attributes, case=case.name)

    def _attribute(self, name: str, attribute: str) -> AttributeEstimate:
        masked_joints = self.masked_joints[attribute]
        masked = self._value(name, attribute)
        domain = self.published.domain(attribute)
        looked_at = [name] if self.case.own_mask else list(masked_joints)
        exact = next(
            (n for n in looked_at if _shows_all(self.published, masked_joints[n], attribute)), None
        )
        if exact is not None:
            value = self._value(exact, attribute)
            return AttributeEstimate(
                value, value, value, masked, information=Information.RAW, method="exact"
            )
        rows = self.published.histograms.get(attribute)
        uses_histogram = rows is not None and self.case.know is Information.HISTOGRAM
        histogram = None
        if uses_histogram and rows:
            histogram = np.array([rows[v] for v in domain], dtype=float)
        used = [masked_joints[name]] if self.case.own_mask else list(masked_joints.values())
        labels = used[0].joint.shape[1]
        evidence = Evidence(len(domain), labels, masked=used, histogram=histogram)
        estimated = reconstruct(evidence, self.case.method or DEFAULT_METHOD)
        value = self.measure(contingency(estimated.table, self.measure))
        setting = Information.HISTOGRAM if uses_histogram else Information.NOTHING
        margins = Margins(used[0].joint.sum(axis=0), len(domain), histogram)
        masked_measures = [self._value(joint.name, attribute) for joint in used]
        limits = limits_of(self.measure, masked_measures, margins)
        bounded = within_limits(value, limits, masked)
        return replace(bounded, information=setting, method=self.case.method)

    def _value(self, name: str, attribute: str) -> float:
        scorer = Scorer(self.published.tables[name])
        summary_attribute = scorer.summary.attributes[attribute]
        return scorer.attribute(summary_attribute, summary_attribute.unmasked, self.measure)
