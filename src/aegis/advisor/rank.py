"""Score one configuration and hold it against the rule."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from aegis.advisor.plan import PrivacyPlan
from aegis.advisor.ranked import Ranked
from aegis.advisor.scoring import Choice, Scorer
from aegis.masking import masked_population, masked_table, suppress
from aegis.masks import Identity, Mask, privacy_account
from aegis.measures import Measure, Need
from aegis.policy import Attribute, Configuration, Policy
from aegis.privacy import PrivacyAccount, PrivacyRule, Verdict
from aegis.sources import Source
from aegis.summary import Chunk, Information, Summary, count_pairs, summarize
from aegis.summary.leaves import shown_leaves


def rank_choice(
    name: str,
    choice: Choice,
    scorer: Scorer,
    plan: PrivacyPlan,
    measure: Measure,
    verdict: Verdict | None = None,
) -> Ranked:
    """Return a configuration with its score and what the rule says of it."""
    said = plan.check(choice) if verdict is None else verdict
    score = scorer.score(choice, measure)
    return Ranked(
        configuration=Configuration(name, {n: c.mask for n, c in choice.items()}),
        declared={n: str(c.declared) for n, c in choice.items()},
        score=score.score,
        utility_kept=score.utility_kept,
        pud=score.pud,
        admissible=said.admissible,
        smallest_class=said.smallest_class,
        suppressed_rows=said.suppressed_rows,
        violations=said.violations,
        attributes=score.attributes,
        differential_privacy=_account(choice, scorer.summary),
        against_finest=scorer.summary.information is not Information.RAW,
    )


def against(scorer: Scorer, measure: Measure, ranking: Sequence[Ranked]) -> dict[str, Any]:
    """Return what advice holds the best configuration against, as fields of `Advice`."""
    best = next(
        (ranked for ranked in ranking[:1] if ranked.admissible and ranked.method is None), None
    )
    attainable, sign = None, measure.direction.sign
    if measure.attainable is not None:
        counted = (scorer.cooccurrence(c, measure.needs) for c in scorer.standards(measure))
        attainable = sign * max(sign * measure.attainable(counts) for counts in counted)
    return {
        "unmasked": scorer.value(scorer.unmasked, measure),
        "reference": scorer.reference(measure),
        "attainable": attainable,
        "lost_alone": {}
        if best is None
        else scorer.lost_alone(scorer.choose(best.configuration), measure),
    }


def _account(choice: Choice, summary: Summary) -> PrivacyAccount | None:
    """Return what the noise of a configuration promises; the label is released without noise."""
    masks: dict[str, Mask | None] = {n: c.mask for n, c in choice.items()}
    if summary.label.there:
        masks.setdefault(summary.label.column, None)
    return privacy_account(masks, {a.name: a.nulls for a in summary.all_attributes})


def as_it_is(policy: Policy) -> Policy:
    """Return the policy with `identity` as only candidate: it measures a table as it stands."""
    attributes = {
        a.name: Attribute(a.name, a.role, (Identity(),), weight=a.weight) for a in policy.features
    }
    return Policy(policy.label, attributes, PrivacyRule())


def tells_classes_apart(source: Source, policy: Policy) -> bool:
    """Whether a table still shows two classes: without them there is nothing to predict.

    Without a label, whether it has rows.
    """
    if not policy.label:
        return source.rows > 0
    label = source.table[policy.label.column]
    counted = source.collect(source.table.aggregate(n=label.nunique()))
    return bool(counted["n"][0].as_py() > 1)


class AfterSuppression:
    """Measures a configuration on the rows that its release keeps.

    Where every scored attribute is in the frequency table, and nothing is held out, the figure comes
    from the summary alone; otherwise it takes the table, and without one there is no figure, nor with noise masks.

    Parameters
    ----------
    plan
        Says which classes are kept.
    measure
        What is measured.
    source, policy
        The table and its policy, where they are at hand.
    """

    def __init__(
        self,
        plan: PrivacyPlan,
        measure: Measure,
        source: Source | None = None,
        policy: Policy | None = None,
    ) -> None:
        self.plan = plan
        self.measure = measure
        self.source = source
        self.policy = policy

    @property
    def reads_table(self) -> bool:
        """Whether the table is read and summarised anew for each figure.

        Cells do not tell the part of the rows that a row is in, so what is held out needs the table.
        """
        if Need.PARTS in self.measure.needs:
            return True
        frequency = self.plan.summary.frequency
        return frequency is None or not set(self.plan.summary.attributes) <= set(frequency.codes)

    def keeps_all(self, ranked: Ranked, choice: Choice) -> bool:
        """Whether a release keeps every row, as it was scored: with its label, and no noise to draw."""
        noisy = any(candidate.noise is not None for candidate in choice.values())
        masked_label = self.plan.summary.label.column in choice
        return ranked.suppressed_rows == 0 and not noisy and not masked_label

    def score(self, choice: Choice) -> float | None:
        """Return the measure of the kept rows, or None where it cannot be known."""
        summary = self.plan.summary
        if not self.reads_table:
            return self._from_cells(summary, choice)
        if self.source is None or self.policy is None:
            return None
        if any(candidate.noise is not None for candidate in choice.values()):
            return None  # the rows of a release with noise are known once they are drawn
        return self._from_table(self.source, self.policy, choice)

    def _from_table(self, source: Source, policy: Policy, choice: Choice) -> float | None:
        masks = policy.with_label({name: c.mask for name, c in choice.items()})
        masked = masked_table(source, masks, person=self.plan.rule.person)
        quasi = [a.name for a in policy.quasi_identifiers]
        rule = self.plan.rule
        kept_rows, _ = suppress(
            source,
            masked,
            quasi,
            rule.sensitive,
            rule,
            policy.protected_hierarchies,
            masked_population(policy, masks),
            shown_leaves(source, policy, masks) if rule.by_leaves else None,
        )
        rest = Source(kept_rows, source.origin)
        if not tells_classes_apart(rest, policy):
            return None
        summary = summarize(rest, as_it_is(policy))
        scorer = Scorer(summary)
        return scorer.value(scorer.unmasked, self.measure)

    def _from_cells(self, summary: Summary, choice: Choice) -> float | None:
        """Count joints and co-occurrences of the kept rows from the cells of the frequency table."""
        frequency = summary.frequency
        if frequency is None:
            return None
        ids = frequency.class_ids({q: choice[q].groups for q in frequency.quasi})
        classes = self.plan.classes(choice)
        kept_ids = classes.kept_ids(self.plan.rule.check(classes).kept_classes)
        label = frequency.representatives[frequency.label][frequency.codes[frequency.label]]
        keep = np.isin(ids, kept_ids) & (label < len(summary.label.classes))
        if not keep.any():
            return None
        values = {
            name: frequency.representatives[name][frequency.codes[name][keep]]
            for name in summary.attributes
        }
        weights = frequency.counts[keep]
        names = tuple(summary.attributes)
        width = len(summary.label.classes)
        y = label[keep].astype(np.int64)
        atoms = [a.atoms[values[a.name]].astype(np.int64) for a in summary.attributes.values()]
        pairs = count_pairs(names, summary.pairs.sizes, width, [Chunk(atoms, y, weights)])
        attributes = {
            a.name: replace(
                a,
                joint=np.bincount(
                    values[a.name] * width + y, weights=weights, minlength=len(a.values) * width
                )
                .astype(np.int64)
                .reshape(-1, width),
            )
            for a in summary.attributes.values()
        }
        rest = replace(summary, attributes=attributes, pairs=pairs)
        return Scorer(rest).value(choice, self.measure)
