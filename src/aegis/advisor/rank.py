"""Score one configuration and check it against the rule."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from aegis.advisor.advice import Advice
from aegis.advisor.later import Later, changed, later
from aegis.advisor.plan import PrivacyPlan
from aegis.advisor.ranked import Ranked, best_masked
from aegis.advisor.scoring import Choice, Scorer
from aegis.advisor.several import SeveralScorer
from aegis.masks import Identity, Mask, privacy_account
from aegis.measures import Measure
from aegis.policy import Attribute, Configuration, Policy, Role
from aegis.privacy import PrivacyAccount, PrivacyRule, Verdict
from aegis.sources import Source
from aegis.summary import Information, Summary
from aegis.summary.classes import PERSON, WEIGHT


def rank_choice(
    name: str,
    choice: Choice,
    scorer: Scorer,
    plan: PrivacyPlan,
    measure: Measure,
    verdict: Verdict | None = None,
) -> Ranked:
    """Check whether a configuration meets the rule, and return it as an entry of the ranking. The
    entry computes its scores when somebody first reads them.

    Parameters
    ----------
    name
        Name of the configuration.
    choice
        The candidate mask of each attribute.
    scorer, measure
        The scorer and the measure.
    plan
        The plan that checks the rule.
    verdict
        The result of this check, if it is already known.
    """
    said = plan.check(choice) if verdict is None else verdict
    score = Later(lambda: scorer.score(choice, measure))
    return Ranked(
        configuration=Configuration(name, {n: c.mask for n, c in choice.items()}),
        declared={n: str(c.declared) for n, c in choice.items()},
        score=later(lambda: score.value.score),
        utility_kept=later(lambda: score.value.utility_kept),
        admissible=said.admissible,
        smallest_class=said.smallest_class,
        suppressed_rows=said.suppressed_rows,
        violations=said.violations,
        attributes=later(lambda: score.value.attributes),
        differential_privacy=_account(choice, scorer.summary),
        against_finest=scorer.summary.information is not Information.RAW,
        labels=later(lambda: scorer.kept(choice)) if isinstance(scorer, SeveralScorer) else {},
    )


def lost_alone(scorer: Scorer, measure: Measure, ranking: Sequence[Ranked]) -> dict[str, float]:
    """Return, for each attribute, how much utility is lost if only this attribute is masked, with
    its mask in the best configuration.

    The result is empty if the first entry of the ranking is not admissible or has no masks.
    """
    best = best_masked(ranking)
    return {} if best is None else scorer.lost_alone(scorer.choose(best.configuration), measure)


def _account(choice: Choice, summary: Summary) -> PrivacyAccount | None:
    """Return the privacy guarantee of a configuration's noise masks; None if it has none.

    The guarantee does not cover the label, which is released without noise.
    """
    masks: dict[str, Mask | None] = {n: c.mask for n, c in choice.items()}
    if summary.label.there:
        masks.setdefault(summary.label.column, None)
    return privacy_account(masks, {a.name: a.nulls for a in summary.all_attributes})


def as_it_is(policy: Policy, *, original: bool = False) -> Policy:
    """Return a copy of the policy for measuring a table unmasked: every attribute has only the mask
    `identity`.

    All attributes have the role *feature*, because scores do not need the equivalence classes. If
    `original` is True, the table is not released yet, so the label's mask still has to make the
    classes of the label; it is kept if the policy has only one.
    """
    attributes = {
        a.name: Attribute(a.name, Role.FEATURE, (Identity(),), weight=a.weight)
        for a in policy.features
    }
    own = policy.label_attribute
    if original and own is not None and policy.label_mask is not None:
        attributes[own.name] = own
    rule = PrivacyRule(person=policy.person)
    return Policy(policy.label, attributes, rule, weight=policy.weight)


def as_released(policy: Policy) -> Policy:
    """Return a copy of the policy for measuring rows that have already been released, without
    masking them again.

    A release does not contain the persons or the weights of its rows. The rows to measure have
    both, in the columns `PERSON` and `WEIGHT`.
    """
    person = None if policy.person is None else PERSON
    weight = None if policy.weight is None else WEIGHT
    return replace(as_it_is(policy), privacy=PrivacyRule(person=person), weight=weight)


def with_label_mask(advice: Advice, summary: Summary, policy: Policy) -> Advice:
    """Return a copy of the advice whose configurations also have the label's mask, fitted to the
    table. If the policy does not have exactly one mask for the label, the advice is returned
    unchanged.
    """
    column, mask = summary.label.column, summary.label.mask
    if policy.label_mask is None or mask is None:
        return advice
    ranking = [
        changed(
            ranked,
            configuration=replace(
                ranked.configuration, masks={**ranked.configuration.masks, column: mask}
            ),
            declared={**ranked.declared, column: str(policy.label_mask)},
        )
        if ranked.method is None
        else ranked
        for ranked in advice.ranking
    ]
    return changed(advice, ranking=tuple(ranking))


def tells_classes_apart(source: Source, policy: Policy) -> bool:
    """Return whether a table has at least two classes of the label, so that there is something to
    predict.

    If there is no label, return whether the table has rows.
    """
    if not policy.label:
        return source.rows > 0
    label = source.table[policy.label.column]
    counted = source.collect(source.table.aggregate(n=label.nunique()))
    return bool(counted["n"][0].as_py() > 1)
