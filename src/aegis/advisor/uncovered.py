"""What the privacy rule does not cover: keys beside the quasi-identifiers, and the label in disguise.

A rule looks at the quasi-identifiers alone. Whoever knows more of a person than those may single
the person out by all that is released; and a column that holds the label in other words makes every
score look better than any model will be where that column is not known.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import ibis
import numpy as np
import numpy.typing as npt

from aegis.advisor.advice import Advice
from aegis.advisor.plan import PrivacyPlan
from aegis.advisor.scoring import Choice, Scorer
from aegis.masking import masked_population, masked_table, suppress
from aegis.masks import Kind
from aegis.policy import Policy
from aegis.sources import Source
from aegis.summary import PERSON, Summary
from aegis.summary.coded_rows import CodedRows
from aegis.summary.outside import (
    MOST_ROWS,
    NEAR_KEY,
    count_alone,
    key_sentences,
    unique_sentence,
)
from aegis.words import percent

LEAK = 0.8
"""Share of the label's variance that makes a single column look like the label in other words."""


@dataclass(frozen=True)
class Uncovered:
    """What stands outside the rule.

    Attributes
    ----------
    label
        The column that is predicted; None without a label.
    released_rows, unique_rows
        Rows of the best release, and how many of them no other row equals in all released columns;
        None where the rows were not at hand, are drawn with noise, or are more than two million.
    near_keys
        Released columns that show nearly a value of their own for each row, with the number of
        values.
    leaks
        Columns that alone tell most of the label, with the share of its variance that they explain
        (Pillai's trace, corrected for chance).
    """

    label: str | None
    released_rows: int | None = None
    unique_rows: int | None = None
    near_keys: Mapping[str, int] = field(default_factory=dict)
    leaks: Mapping[str, float] = field(default_factory=dict)

    @property
    def sentences(self) -> tuple[str, ...]:
        """What a privacy officer should know, in words."""
        said = [
            *unique_sentence(self.unique_rows, self.released_rows),
            *key_sentences(self.near_keys),
        ]
        for name, share in self.leaks.items():
            said.append(
                f"the column {name} alone explains {percent(100 * share, 0)} of {self.label}: it may hold the label in "
                "other words, and not be known where a model is used. Then leave it out (--leave-out)"
            )
        return tuple(said)

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as JSON values."""
        return {
            "released_rows": self.released_rows,
            "unique_rows": self.unique_rows,
            "near_keys": dict(self.near_keys),
            "leaks": dict(self.leaks),
        }


def with_uncovered(
    advice: Advice,
    summary: Summary,
    policy: Policy,
    source: Source | None = None,
    plan: PrivacyPlan | None = None,
    known: CodedRows | None = None,
) -> Advice:
    """Return the advice with what its best release leaves outside the rule.

    Parameters
    ----------
    advice
        A ranking.
    summary, policy
        What it was made from.
    source
        The table, where it is at hand; its rows are compared with each other.
    plan, known
        What holds configurations against the rule, and the rows as codes, where the summary was
        made of them: then the table is not read again.
    """
    scorer = Scorer(summary)
    leaks = {
        name: share
        for name, attribute in summary.attributes.items()
        if (share := label_share(attribute.joint)) >= LEAK
    }
    label = summary.label.column or None
    best = advice.best
    if best is None or best.method is not None:
        return _told(advice, Uncovered(label, leaks=leaks))
    choice = scorer.choose(best.configuration)
    near = {
        name: candidate.size
        for name, candidate in choice.items()
        if candidate.noise is None and candidate.size >= NEAR_KEY * summary.rows > 1
    }
    counted = None if plan is None else _unique_known(known, plan, policy, choice)
    if counted is None:
        counted = unique_rows(source, policy, choice)
    released, unique = (None, None) if counted is None else counted
    return _told(advice, Uncovered(label, released, unique, near, leaks))


def _told(advice: Advice, uncovered: Uncovered) -> Advice:
    return replace(advice, uncovered=uncovered, warnings=(*advice.warnings, *uncovered.sentences))


def _unique_known(
    known: CodedRows | None, plan: PrivacyPlan, policy: Policy, choice: Choice
) -> tuple[int, int] | None:
    """Return `unique_rows` from the rows as codes; None where they do not tell it."""
    summary, frequency = plan.summary, plan.summary.frequency
    drawn = any(candidate.noise is not None for candidate in choice.values())
    if known is None or frequency is None or frequency.earlier is not None:
        return None
    if drawn or policy.person is not None or summary.label.mask is not None:
        return None
    shown = [candidate.shown.type for candidate in choice.values()]
    if any(Kind.of(ibis.dtype(dtype)) is None for dtype in shown):
        return None  # a column that is not compared
    label = None
    if summary.label.there:
        own = choice.get(summary.label.column)
        label = np.arange(len(summary.label.classes) + 1) if own is None else own.groups
    keep = np.ones(len(known.label), dtype=np.bool_)
    if frequency.quasi:
        ids = frequency.class_ids({name: choice[name].groups for name in frequency.quasi})
        classes = plan.classes(choice)
        kept_ids = classes.kept_ids(plan.rule.check(classes).kept_classes)
        _, cell = known.frequency(
            frequency.quasi, frequency.sensitive, summary.attributes, frequency.label
        )
        keep = np.isin(ids, kept_ids)[cell]
    groups = {name: choice[name].groups for name in summary.attributes}
    return known.alone(groups, label, keep)


def unique_rows(source: Source | None, policy: Policy, choice: Choice) -> tuple[int, int] | None:
    """Return the rows of a release, and those that are alone with their values in all columns.

    Where persons are counted, rows of one person are alone together.

    None where the table is not at hand or too large, or its masks draw noise.
    """
    drawn = any(candidate.noise is not None for candidate in choice.values())
    if source is None or drawn or source.rows > MOST_ROWS:
        return None
    masks = policy.with_label({name: candidate.mask for name, candidate in choice.items()})
    rule = policy.privacy
    quasi = [attribute.name for attribute in policy.quasi_identifiers]
    released, _ = suppress(
        source,
        masked_table(source, masks, person=policy.person),
        quasi,
        rule.sensitive,
        rule,
        policy.protected_hierarchies,
        masked_population(policy, masks),
    )
    return count_alone(source, released, None if policy.person is None else PERSON)


def label_share(joint: npt.NDArray[np.integer[Any]]) -> float:
    """Return the share of the label's variance that an attribute explains, corrected for chance.

    Pillai's trace of the table over its maximum, min(V, C) - 1: phi squared over that. By chance
    (V - 1) (C - 1) / (N - 1) of phi squared is expected of V values and C classes (Bartlett, 1937);
    that is taken from both sides. At most 1; 0 for an attribute that tells nothing.

    Parameters
    ----------
    joint
        Rows by value and class, shape (V, C).
    """
    counts = np.asarray(joint, dtype=np.float64)
    counts = counts[counts.any(axis=1)][:, counts.any(axis=0)]
    values, label_classes = counts.shape
    rows = counts.sum()
    if min(values, label_classes) < 2:
        return 0.0
    expected = counts.sum(axis=1, keepdims=True) * counts.sum(axis=0) / rows
    phi_squared = float(((counts - expected) ** 2 / expected).sum() / rows)
    chance = (values - 1) * (label_classes - 1) / max(rows - 1, 1)
    most = min(values, label_classes) - 1
    return max(0.0, (phi_squared - chance) / (most - chance)) if chance < most else 0.0
