"""Find risks that the privacy rule does not cover: other identifying columns, and columns that
reveal the label.

A rule covers only the quasi-identifiers. Somebody who knows more about a person may single out the
person by other released columns. If a column repeats the label in other words, but is not known
when a model is used, every score is too high.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from aegis.advisor.advice import Advice
from aegis.advisor.kept_codes import kept_codes
from aegis.advisor.plan import PrivacyPlan
from aegis.advisor.residual_risk_figures import MissingLeak, Uncovered
from aegis.advisor.scoring import Choice, Scorer
from aegis.masking import masked_population, masked_table, suppress
from aegis.masking.originals import WithOriginals
from aegis.masks import Mask
from aegis.policy import Policy
from aegis.privacy.inference import find_implications, lift, predictability
from aegis.sources import Source
from aegis.summary import PERSON, Summary
from aegis.summary.coded_rows import CodedRows
from aegis.summary.outside import (
    MOST_ROWS,
    NEAR_KEY,
    Outside,
    outside_of,
    outside_of_codes,
)

Codes = npt.NDArray[np.integer[Any]]

LEAK = 0.8
"""A single column that explains at least this share of the label may repeat it in other words."""
MISSING_LEAK = 0.9
"""Smallest difference in the share of nulls between a class and the others: an AUC of 0.95 by itself."""


def with_residual_risks(
    advice: Advice,
    summary: Summary,
    policy: Policy,
    source: Source | None = None,
    plan: PrivacyPlan | None = None,
    known: CodedRows | None = None,
) -> Advice:
    """Add to the advice the risks of its best release that the rule does not cover.

    Parameters
    ----------
    advice
        A ranking.
    summary, policy
        The summary and the policy that the advice was made from.
    source
        The table, if available, to compare its rows with each other.
    plan, known
        The plan that checks configurations, and the rows as codes. If the codes are known, Aegis
        does not read the table again.
    """
    label = summary.label.column or None
    missing = _missing_leaks(summary)
    leaks = {
        name: share
        for name, attribute in summary.attributes.items()
        if name not in missing and (share := label_share(attribute.joint)) >= LEAK
    }
    nothing = Outside(rows=None, unique_rows=None, label=label)
    best = advice.best
    if best is None or best.method is not None:
        return _told(advice, Uncovered.of(nothing, leaks, missing))
    choice = Scorer(summary).choose(best.configuration)
    outside = None if plan is None else _outside_known(known, plan, policy, choice)
    outside = outside or outside_of_release(source, policy, choice, summary.label.mask)
    if outside is None:
        near = {
            name: candidate.size
            for name, candidate in choice.items()
            if candidate.noise is None and candidate.size >= NEAR_KEY * summary.rows > 1
        }
        outside = replace(nothing, near_keys=near)
    return _told(advice, Uncovered.of(outside, leaks, missing))


def _told(advice: Advice, uncovered: Uncovered) -> Advice:
    return replace(advice, uncovered=uncovered, warnings=(*advice.warnings, *uncovered.sentences))


def _outside_known(
    known: CodedRows | None, plan: PrivacyPlan, policy: Policy, choice: Choice
) -> Outside | None:
    """Return `outside_of_release` from rows that are known as codes; None if these are not enough."""
    codes = kept_codes(known, plan, policy, choice)
    if codes is None:
        return None
    names = dict.fromkeys((*plan.summary.attributes, *policy.label.columns))
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
    outside = outside_of_codes(shown, values, quasi, plan.summary.label.column or None)
    return replace(outside, implied=find_implications(hidden, shown))


def outside_of_release(
    source: Source | None, policy: Policy, choice: Choice, label_mask: Mask | None = None
) -> Outside | None:
    """Find the risks in a configuration's release that the rule does not cover, from the rows.

    Return None if the table is not available or too large, or if a mask draws noise.
    """
    drawn = any(candidate.noise is not None for candidate in choice.values())
    if source is None or drawn or source.rows > MOST_ROWS:
        return None
    masks = policy.with_label(
        {name: candidate.mask for name, candidate in choice.items()}, label_mask
    )
    rule = policy.privacy
    quasi = [attribute.name for attribute in policy.quasi_identifiers]
    originals = WithOriginals.of(source, masks)
    released, _ = suppress(
        source,
        masked_table(originals.source, {**masks, **originals.masks}, person=policy.person),
        quasi,
        rule.sensitive,
        rule,
        policy.protected_hierarchies,
        masked_population(policy, source, masks),
    )
    outside = outside_of(
        source,
        quasi,
        table=released.drop(*originals.masks),
        person=None if policy.person is None else PERSON,
        label=policy.label.column or None,
    )
    return None if outside is None else replace(outside, implied=originals.implied(released))


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


def label_share(joint: npt.NDArray[np.integer[Any]]) -> float:
    """Return the share of the label that an attribute explains, from 0 to 1, on held-out rows.

    The guess for each row is the most frequent class of the other rows with its value. Let a be the
    accuracy of these guesses, and b the share of the most frequent class. The result is (a - b) /
    (1 - b), or 0 if this is negative.

    Parameters
    ----------
    joint
        Rows by value and class, shape (V, C).
    """
    values, classes = np.nonzero(joint)
    counts = np.asarray(joint)[values, classes]
    if not len(counts):
        return 0.0
    by_class = np.asarray(joint).sum(axis=0)
    return lift(
        predictability(values, classes, counts).right, float(by_class.max() / by_class.sum())
    )
