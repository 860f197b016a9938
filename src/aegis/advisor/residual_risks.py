"""Find risks that the privacy rule does not cover: other identifying columns, and columns that
reveal the label.

A rule covers only the quasi-identifiers. Somebody who knows more about a person may find the person
by other released columns. A column may also repeat the label in other words. If this column is not
known when a model is used, every score is too high.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from aegis.advisor.advice import Advice
from aegis.advisor.caveats import with_first
from aegis.advisor.kept_codes import KeptCodes, codes_known, kept_codes
from aegis.advisor.label_leaks import label_leaks, leak_sentences
from aegis.advisor.later import Later, changed, later
from aegis.advisor.plan import PrivacyPlan
from aegis.advisor.ranked import PrivacyChange, Ranked
from aegis.advisor.released import ReleasedRows
from aegis.advisor.residual_risk_figures import MissingLeak, Uncovered
from aegis.advisor.scoring import Choice, Scorer
from aegis.advisor.several import scorer_of, tasks_of
from aegis.advisor.utility import Rows, UtilityFigure
from aegis.masking.originals import WithOriginals
from aegis.policy import Policy
from aegis.privacy import PrivacyReport
from aegis.privacy import report as privacy_report
from aegis.privacy.inference import find_implications
from aegis.summary import PERSON, Summary
from aegis.summary.classes import WEIGHT
from aegis.summary.outside import (
    MOST_ROWS,
    NEAR_KEY,
    Outside,
    outside_of,
    outside_of_codes,
)

MISSING_LEAK = 0.9
"""Smallest reported difference between the share of nulls in a class and in all other rows. The
nulls alone then have an AUC of at least 0.95.
"""


def with_residual_risks(advice: Advice, released: ReleasedRows) -> Advice:
    """Return a copy of the advice with the risks of its best release from which the rule does not
    protect. The warnings of the advice begin with these risks.

    Parameters
    ----------
    advice
        A ranking.
    released
        The object that counts the rows of releases, with the policy.
    """
    risks = Later(lambda: _uncovered(advice, released))
    if advice.best is not None and not _rows_known(advice.best, released):
        risks.value  # noqa: B018 - the rows are read now, not when they may have changed
    told = changed(advice, uncovered=later(lambda: risks.value[0]))
    return with_first(told, lambda: (*risks.value[1], *risks.value[0].sentences))


def _rows_known(best: Ranked, released: ReleasedRows) -> bool:
    """Return whether the rows that the best release keeps are known without reading the table."""
    plan, policy = released.plan, released.policy
    if best.method is not None or released.source is None or policy is None:
        return True
    choice = Scorer(plan.summary).choose(best.configuration)
    return codes_known(released.known, plan, policy, choice)


def _uncovered(advice: Advice, released: ReleasedRows) -> tuple[Uncovered, tuple[str, ...]]:
    """Return the risks of the best release from which the rule does not protect, and the warnings
    about columns that repeat one of several labels.
    """
    summary = released.plan.summary
    label = summary.label.column or None
    missing = _missing_leaks(summary)
    nothing = Outside(rows=None, unique_rows=None, label=label)
    best = advice.best
    if best is None or best.method is not None:
        unmasked = {attribute.name: attribute.unmasked for attribute in summary.all_attributes}
        leaks = _leaks(None, summary, unmasked)
        return Uncovered.of(nothing, leaks.get(label, {}), missing), _of_others(label, leaks)
    choice = Scorer(summary).choose(best.configuration)
    leaks = _leaks(advice.utility, summary, choice)
    outside = outside_of_release(released, choice)
    if outside is None:
        near = {
            name: candidate.size
            for name, candidate in choice.items()
            if candidate.noise is None and candidate.size >= NEAR_KEY * summary.rows > 1
        }
        outside = replace(nothing, near_keys=near)
    return Uncovered.of(outside, leaks.get(label, {}), missing), _of_others(label, leaks)


def _leaks(
    figure: UtilityFigure | None, summary: Summary, choice: Choice
) -> dict[str | None, Mapping[str, float]]:
    """Return, for each label, the columns that alone explain it, with the share of each.

    `figure` is the utility of a release. If it was measured on the released rows, its columns are
    returned, which the certificate names, too. Otherwise they are found on all rows under the masks
    in `choice`.
    """
    measured = figure is not None and figure.rows is Rows.RELEASED
    tasks = tasks_of(scorer_of(summary))
    if not tasks:
        own = figure.leaks if figure and measured else label_leaks(summary, choice)
        return {summary.label.column or None: own}
    return {
        task.column: figure.labels[task.column].leaks
        if figure and measured and task.column in figure.labels
        else label_leaks(task.task.summary, task.choice(choice))
        for task in tasks
    }


def _of_others(
    label: str | None, leaks: Mapping[str | None, Mapping[str, float]]
) -> tuple[str, ...]:
    """Return a warning for each of several labels that columns repeat. `leaks` has these columns
    by label; those of `label`, the column that `Uncovered` describes, are left out.
    """
    others = {column: own for column, own in leaks.items() if column != label}
    return tuple(
        text for column, own in others.items() for text in leak_sentences(own, str(column))
    )


def outside_of_release(released: ReleasedRows, choice: Choice) -> Outside | None:
    """Read the rows of a configuration's release, and find the risks from which the rule does not
    protect.

    Return None if the table is not available or too large, or if a mask draws noise.
    """
    source, policy = released.source, released.policy
    if policy is None:
        return None
    codes = kept_codes(released.known, released.plan, policy, choice)
    if codes is not None:
        return _outside_of_codes(codes, released.plan.summary, policy, choice)
    drawn = any(candidate.noise is not None for candidate in choice.values())
    if source is None or drawn or source.rows > MOST_ROWS:
        return None
    originals = None
    if released.stored(choice) is None:
        originals = WithOriginals.of(source, released.masks(choice))
    table = released.table(choice, originals)
    added = () if originals is None else tuple(originals.masks)
    outside = outside_of(
        source,
        [attribute.name for attribute in policy.quasi_identifiers],
        table=table.drop(*added, *({WEIGHT} & set(table.columns))),
        person=None if policy.person is None else PERSON,
        label=policy.label.column or None,
    )
    implied = None if originals is None else originals.implied(table)
    return None if outside is None else replace(outside, implied=implied)


def _outside_of_codes(
    codes: KeptCodes, summary: Summary, policy: Policy, choice: Choice
) -> Outside:
    """Return the risks that the rule does not cover, such as implied values, for a release whose
    kept rows are given as codes. `choice` has the mask of each attribute.
    """
    names = dict.fromkeys((*summary.attributes, *policy.label.columns))
    shown = {name: codes.masked.codes[name] for name in names}
    values = {
        name: len(codes.masked.values[name]) - codes.masked.values[name].null_count
        for name in shown
    }
    hidden = {
        name: (codes.original.codes[name], shown[name])
        for name, candidate in choice.items()
        if str(candidate.mask) != "identity"
    }
    quasi = [attribute.name for attribute in policy.quasi_identifiers]
    outside = outside_of_codes(shown, values, quasi, summary.label.column or None)
    return replace(outside, implied=find_implications(hidden, shown))


def _missing_leaks(summary: Summary) -> dict[str, MissingLeak]:
    """Return the columns whose nulls alone reveal a class of the label."""
    leaks = {}
    for name, attribute in summary.attributes.items():
        if not attribute.nulls or not len(attribute.values) or attribute.values[-1].is_valid:
            continue
        rows = attribute.joint.sum(axis=0)
        null = attribute.joint[-1]
        varying = np.flatnonzero((rows > 0) & (rows < rows.sum()))
        within = null[varying] / rows[varying]
        besides = (null.sum() - null[varying]) / (rows.sum() - rows[varying])
        if not len(varying) or np.abs(within - besides).max() < MISSING_LEAK:
            continue
        place = int(np.abs(within - besides).argmax())
        label_class = summary.label.classes[varying[place]]
        leaks[name] = MissingLeak(label_class, float(within[place]), float(besides[place]))
    return leaks


def with_privacy(advice: Advice, summary: Summary, plan: PrivacyPlan, policy: Policy) -> Advice:
    """Return a copy of the advice with reports on privacy before and after masking.

    Aegis computes them from the frequency table on which it checks the rule, so a summary is
    enough. A class with a single sensitive value is a risk to persons, so the warning about it
    comes first.
    """

    def change() -> PrivacyChange:
        scorer = Scorer(summary)
        before = privacy_report(plan.classes(scorer.unmasked, policy.sensitive))
        after = _after(advice, scorer, plan, policy)
        return PrivacyChange(before, after, finest=not plan.as_it_is)

    def said() -> tuple[str, ...]:
        after = privacy.value.after
        return () if advice.best is None or after is None else after.cautions

    privacy = Later(change)
    if summary.frequency is None:
        privacy.value  # noqa: B018 - the engine counts the classes now
    return with_first(changed(advice, privacy=later(lambda: privacy.value)), said)


def _after(
    advice: Advice, scorer: Scorer, plan: PrivacyPlan, policy: Policy
) -> PrivacyReport | None:
    """Return the privacy report of the best configuration, after its failing rows were suppressed.

    If no configuration is admissible, return the report of the closest one without suppression;
    None for an empty ranking.
    """
    ranked = advice.best or advice.closest
    if ranked is None:
        return None
    if ranked.method is not None:
        return ranked.method.report
    masked = plan.classes(scorer.choose(ranked.configuration), policy.sensitive)
    verdict = plan.rule.check(masked)
    return privacy_report(masked.keep(verdict.kept_classes) if verdict.admissible else masked)
