"""Check on the frequency table, without reading rows, whether configurations meet the privacy rule;
compare this rule with the rule of the summary's owner; and rank a single configuration.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property

import numpy as np

from aegis.advisor.advice import Advice
from aegis.advisor.ranked import Ranked, best_masked
from aegis.advisor.scores import Later, changed, later
from aegis.advisor.scoring import Choice, Scorer
from aegis.advisor.several import SeveralScorer
from aegis.arrays import Flags, Floats, Integers, Ints, cached_method
from aegis.errors import DataError, InternalError, PolicyError
from aegis.masks import Hierarchy, Identity, Mask, privacy_account
from aegis.measures import Measure
from aegis.policy import Attribute, Configuration, Policy, Role, RuleOverride
from aegis.privacy import ClassTable, PrivacyAccount, PrivacyRule, Verdict
from aegis.sources import Source
from aegis.summary import (
    AttributeSummary,
    Candidate,
    FrequencyTable,
    Information,
    Summary,
    count_in_engine,
)
from aegis.summary.classes import PERSON, WEIGHT
from aegis.summary.codes import in_natural_order
from aegis.summary.leaves import hidden_shares
from aegis.summary.outside import Population, population_of

Counter = Callable[[Mapping[str, Mask]], ClassTable]
"""A function that counts the classes of a configuration in the engine."""


class PrivacyPlan:
    """Checks which configurations of a summary meet a privacy rule.

    Parameters
    ----------
    summary, rule
        The summary with the frequency table, and the rule that a release must meet.
    counter
        Function that counts equivalence classes in the table's engine, such as a database; None if
        there is only the summary. It is used if the summary has no frequency table.
    hierarchies
        Hierarchies of sensitive attributes, for models that need them.
    population
        The population from which the rows were sampled, if it is known.

    Raises
    ------
    DataError
        There is neither a frequency table nor another way to count classes.
    PolicyError
        The rule requires more rows in a class than the table has, or more sensitive values than any
        candidate mask shows, or it protects an attribute that the summary does not have.
    """

    def __init__(
        self,
        summary: Summary,
        rule: PrivacyRule,
        *,
        counter: Counter | None = None,
        hierarchies: Mapping[str, Hierarchy] | None = None,
        population: Population | None = None,
    ) -> None:
        self.summary = summary
        self.rule = rule
        if summary.frequency is None and counter is None:
            raise DataError(
                "The summary holds no frequency table of the quasi-identifiers.",
                hint="Give the table itself, so that Aegis can count the classes in its engine.",
            )
        if rule.person is not None and summary.frequency and summary.frequency.persons is None:
            raise DataError(
                f"The policy counts persons ({rule.person}), but the summary has counts of rows only.",
                hint="Give the table itself: the summary does not state which rows belong to a person.",
            )
        self.in_engine = summary.frequency is None
        self._counter = counter
        self._hierarchies = hierarchies or {}
        self._population = population
        self._check_rule()

    def _check_rule(self) -> None:
        persons = self.summary.frequency.persons if self.summary.frequency else None
        subjects = self.summary.rows if persons is None else persons.total
        self.rule.require_possible(subjects, self._distinct_values())
        for criterion in self.rule.criteria:
            criterion.require_people(subjects)
        lacks = self.rule.shortage(subjects, self.values)
        if lacks is not None:
            raise PolicyError(
                f"The rule requires {lacks} under its finest candidate mask.",
                hint=f"Give it a finer mask in the policy, or {lacks.remedy}.",
            )
        if self.rule.needs_population and self._population is None:
            raise PolicyError(
                f"The rule needs the population of the table: {self.rule}.",
                hint="Name its table in the policy (population: FILE) or a column of survey weights (weight: "
                "COLUMN), or require k or a prosecutor risk, which treat the table as the whole population.",
            )
        if self.rule.by_leaves:
            self._require_leaves()
        sensitive = self.summary.frequency.sensitive if self.summary.frequency else None
        for name in self.rule.sensitive:
            if sensitive is not None and name not in sensitive:
                raise PolicyError.unknown("sensitive attribute of the summary", name, sensitive)

    def _require_leaves(self) -> None:
        """Raise an error if the number of original values behind each masked value is unknown."""
        frequency = self.summary.frequency
        if frequency is None:
            raise PolicyError(
                f"The rule depends on how many values each shown value may represent: {self.rule}. The "
                "table has too many classes to count these values in memory.",
                hint="Give fewer or coarser candidate masks.",
            )
        if self.summary.information is not Information.RAW:
            raise PolicyError(
                "The rule depends on the original values, and the summary has no raw counts "
                f"(information: {self.summary.information}): {self.rule}.",
                hint="Give the table, or a summary with raw counts.",
            )
        for name in frequency.quasi:
            if any(candidate.noise is not None for candidate in self._attributes[name].candidates):
                raise PolicyError(
                    "The rule depends on how many values each shown value may represent, and a mask of "
                    f"{name!r} draws its values at random: {self.rule}.",
                    hint="Leave noise masks out of the candidates, or require k instead.",
                )
        if frequency.earlier is not None:
            raise PolicyError(
                f"The rule can only be checked for a single release, not together with earlier ones: "
                f"{self.rule}.",
                hint="Leave out the earlier releases, or this criterion.",
            )

    @property
    def by_population(self) -> bool:
        """Whether the rule compares classes with the population from which the rows were sampled."""
        return self._population is not None

    def groups_of_people(self, name: str, candidate: Candidate) -> Integers | None:
        """Return the group of each of the W values that an attribute has in the population under a
        candidate, shape (W,); None without a population, or for an attribute that is no
        quasi-identifier. Equal masked values of the population and of the table have the same
        group.
        """
        if self._population is None or name not in self._population.values:
            return None
        return self._population.groups(name, candidate).astype(np.int32)

    @property
    def values(self) -> dict[str, int]:
        """The number of values, including null, of each attribute under its finest mask. No
        record-level release shows more values.
        """
        candidates = {a.name: a.candidates for a in self.summary.all_attributes if a.candidates}
        masked = {n: max(c.size for c in many) for n, many in candidates.items()}
        return self._distinct_values() | masked

    def _distinct_values(self) -> dict[str, int]:
        """Return how many values each attribute and the label have in the table, including null."""
        label = self.summary.label
        counts = {label.column: len(label.classes) + (label.unlabelled > 0)} if label.there else {}
        return counts | {
            attribute.name: attribute.unmasked.size for attribute in self.summary.all_attributes
        }

    @property
    def as_it_is(self) -> bool:
        """Whether the frequency table distinguishes all values, so that it can count the classes of
        the unmasked table. If no candidate shows all values of an attribute, it has only the values
        of the finest candidate.
        """
        frequency = self.summary.frequency
        if frequency is None:
            return True
        counted = {*frequency.quasi, *frequency.sensitive}
        return all(
            attribute.finest_key is None and len(attribute.values) == len(attribute.all_values)
            for attribute in self.summary.all_attributes
            if attribute.name in counted
        )

    def under(self, rule: PrivacyRule) -> PrivacyPlan:
        """Return a plan that checks configurations of the same summary against another rule."""
        return PrivacyPlan(
            self.summary,
            rule,
            counter=self._counter,
            hierarchies=self._hierarchies,
            population=self._population,
        )

    def check(self, choice: Choice) -> Verdict:
        """Return whether the release of a configuration meets the rule, with the number of rows to
        suppress and the violated requirements.
        """
        return self.rule.check(self.classes(choice))

    def classes(self, choice: Choice, sensitive: Sequence[str] | None = None) -> ClassTable:
        """Return the equivalence classes that a configuration forms, with the counts of their
        sensitive values; by default those that the rule protects.
        """
        frequency = self.summary.frequency
        if frequency is None:
            if self._counter is None:
                raise InternalError("A plan without a frequency table cannot count classes.")
            return self._counter({name: candidate.mask for name, candidate in choice.items()})
        groups = {name: choice[name].groups for name in frequency.quasi}
        needed = {
            name: self.protected(name, choice)
            for name in (self.rule.sensitive if sensitive is None else sensitive)
        }
        levels = self.levels({name: labels for name, (_, labels) in needed.items()})
        table = frequency.roll_up(groups, needed, levels)
        if self.rule.by_leaves:
            table = replace(table, hidden=self._hidden(table, frequency, choice))
        if self._population is None:
            return table
        return self._population.with_people(table, frequency, choice)

    def kept_cells(self, choice: Choice) -> Flags:
        """Return whether the release of a configuration keeps each cell (combination of values) of
        the frequency table, shape (cells,), because its class is not suppressed.
        """
        frequency = self.summary.frequency
        if frequency is None:
            raise InternalError("A plan without a frequency table has no cells.")
        ids = frequency.class_ids({name: choice[name].groups for name in frequency.quasi})
        classes = self.classes(choice)
        kept_ids = classes.kept_ids(self.rule.check(classes).kept_classes)
        return np.isin(ids, kept_ids)

    def _hidden(self, table: ClassTable, frequency: FrequencyTable, choice: Choice) -> Floats:
        """Return the share of the bits of the quasi-identifiers that the masks hide in each class,
        shape (classes,). All rows of a class have the same share.
        """
        ids = frequency.class_ids({name: choice[name].groups for name in frequency.quasi})
        hidden = np.zeros(len(table))
        places = np.arange(len(table)) if table.ids is None else table.ids
        hidden[np.searchsorted(places, ids)] = hidden_shares(frequency, self._attributes, choice)
        return hidden

    @cached_property
    def _attributes(self) -> dict[str, AttributeSummary]:
        return {attribute.name: attribute for attribute in self.summary.all_attributes}

    @property
    def counts_alone(self) -> bool:
        """Whether the rows by class and sensitive value are enough to decide if a class meets the
        rule: not if it uses a population, the leaves of hierarchies or earlier releases.
        """
        return self._population is None and not (self.after_others or self.rule.by_leaves)

    @property
    def after_others(self) -> bool:
        """Whether classes also distinguish rows by the values that earlier releases showed of them."""
        frequency = self.summary.frequency
        return frequency is not None and frequency.earlier is not None

    def levels(self, masked_values: Mapping[str, tuple[str, ...]]) -> dict[str, Ints]:
        """Return, for each protected attribute whose hierarchy the rule needs, the group of each
        shown value on each level, shape (values, levels).
        """
        return {
            name: self._ancestry(name, masked_values[name])
            for name in self.rule.hierarchical
            if name in self._hierarchies and name in masked_values
        }

    @cached_method
    def _ancestry(self, name: str, masked_values: tuple[str, ...]) -> Ints:
        return self._hierarchies[name].ancestry(masked_values)

    def protected(self, name: str, choice: Choice) -> tuple[Integers, tuple[str, ...]]:
        """Return the group of each value of a sensitive attribute, and the names of these groups."""
        if name in choice:
            return choice[name].in_order
        return in_natural_order((*self.summary.label.classes, "null"))


def plan_of(summary: Summary, policy: Policy, source: Source | None = None) -> PrivacyPlan:
    """Return a plan that checks whether configurations of a summary meet the rule of a policy. If
    the summary has no frequency table, the engine of the table `source` counts classes.

    Raises
    ------
    PolicyError
        The roles or masks of the summary differ from the policy's, or the table or the candidates
        cannot meet the rule.
    DataError
        There is neither a frequency table nor a table in which to count classes.
    """
    require_same(summary, policy)
    population = population_of(policy, summary, source)
    hierarchies = policy.protected_hierarchies
    counter = None
    if summary.frequency is None and source is not None:
        quasi = tuple(a.name for a in policy.quasi_identifiers)
        counter = count_in_engine(
            source, quasi, policy.privacy.sensitive, hierarchies, policy.person
        )
    return PrivacyPlan(
        summary,
        policy.privacy,
        counter=counter,
        hierarchies=hierarchies,
        population=population,
    )


def require_same(summary: Summary, policy: Policy) -> None:
    """Raise `PolicyError` unless the summary and the policy have the same roles and masks.
    Otherwise Aegis would check the rule on the wrong columns. Rule, measure and weights may differ.
    """
    label_attributes = [] if policy.chosen_label is None else [policy.chosen_label]
    in_policy = {a.name: (a.role, a.masks) for a in (*policy.features, *label_attributes)}
    in_summary = {
        a.name: (a.role, tuple(c.declared for c in a.candidates)) for a in summary.all_attributes
    }
    differing = [n for n in {**in_policy, **in_summary} if in_policy.get(n) != in_summary.get(n)]
    if summary.label_columns != policy.label.columns:
        differing.append(str(policy.label) or ", ".join(summary.label_columns))
    if differing:
        raise PolicyError(
            "The summary was made for another policy: label, role or masks differ for "
            f"{', '.join(dict.fromkeys(differing))}.",
            hint="Summarise the table again with this policy.",
        )


def rank_choice(
    name: str,
    choice: Choice,
    scorer: Scorer,
    plan: PrivacyPlan,
    measure: Measure,
    verdict: Verdict | None = None,
) -> Ranked:
    """Check whether a configuration meets the rule (unless `verdict` is known), and return it as an
    entry of the ranking, which computes its scores when somebody first reads them.
    """
    verdict = plan.check(choice) if verdict is None else verdict
    score = Later(lambda: scorer.score(choice, measure))
    return Ranked(
        configuration=Configuration(name, {n: c.mask for n, c in choice.items()}),
        declared={n: str(c.declared) for n, c in choice.items()},
        score=later(lambda: score.value.score),
        utility_kept=later(lambda: score.value.utility_kept),
        admissible=verdict.admissible,
        smallest_class=verdict.smallest_class,
        suppressed_rows=verdict.suppressed_rows,
        violations=verdict.violations,
        attributes=later(lambda: score.value.attributes),
        differential_privacy=_account(choice, scorer.summary),
        against_finest=scorer.summary.information is not Information.RAW,
        labels=later(lambda: scorer.percents(choice)) if isinstance(scorer, SeveralScorer) else {},
    )


def lost_alone(scorer: Scorer, measure: Measure, ranking: Sequence[Ranked]) -> dict[str, float]:
    """Return, for each attribute, how much utility is lost if only this attribute is masked, as in
    the best configuration. Empty if the first entry of the ranking breaks the rule, or was made by
    a record-level method instead of masks.
    """
    best = best_masked(ranking)
    return {} if best is None else scorer.lost_alone(scorer.choose(best.configuration), measure)


def _account(choice: Choice, summary: Summary) -> PrivacyAccount | None:
    """Return the privacy guarantee of a configuration's noise masks; None if it has none. It does
    not cover the label, which is released without noise.
    """
    masks: dict[str, Mask | None] = {n: c.mask for n, c in choice.items()}
    if summary.label.there:
        masks.setdefault(summary.label.column, None)
    return privacy_account(masks, {a.name: a.nulls for a in summary.all_attributes})


def as_it_is(policy: Policy, *, original: bool = False) -> Policy:
    """Return a copy of the policy for measuring a table unmasked: every attribute is a *feature*
    with only the mask `identity`, because scores do not need equivalence classes.

    If `original` is True, the label has the original values. Then the copy keeps the label's mask,
    which makes the classes, if the policy has only one.
    """
    attributes = {
        a.name: Attribute(a.name, Role.FEATURE, (Identity(),), weight=a.weight)
        for a in policy.features
    }
    label = policy.label_attribute
    if original and label is not None and policy.label_mask is not None:
        attributes[label.name] = label
    rule = PrivacyRule(person=policy.person)
    return Policy(policy.label, attributes, rule, weight=policy.weight)


def as_released(policy: Policy) -> Policy:
    """Return a copy of the policy for measuring released rows, without masking them again. For a
    column of persons or weights, it names the columns `PERSON` or `WEIGHT`, which Aegis adds to the
    rows to measure; a release does not contain them.
    """
    person = None if policy.person is None else PERSON
    weight = None if policy.weight is None else WEIGHT
    return replace(as_it_is(policy), privacy=PrivacyRule(person=person), weight=weight)


def with_label_mask(advice: Advice, summary: Summary, policy: Policy) -> Advice:
    """Return a copy of the advice whose configurations also have the label's mask, fitted to the
    table, if the policy has exactly one mask for the label.
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
    predict; without a label, whether it has rows.
    """
    if not policy.label:
        return source.rows > 0
    label = source.table[policy.label.column]
    counted = source.collect(source.table.aggregate(n=label.nunique()))
    return bool(counted["n"][0].as_py() > 1)


WHAT = "The summary"


def check_owner_rule(summary: Summary, rule: PrivacyRule, *, override: bool) -> RuleOverride | None:
    """Return how the user's rule differs from the rule that the owner put into a summary; None if
    it does not differ, or if the summary has no such rule. `override` says that the user accepts a
    difference.

    Raises
    ------
    PolicyError
        The rule differs and `override` is False, or it is weaker and the owner's rule is locked.
    """
    if summary.terms is None or not summary.terms.binding:
        return None
    return summary.terms.owner.require(rule, override=override, what=WHAT)


def with_owner_rule(advice: Advice, summary: Summary, override: RuleOverride | None) -> Advice:
    """Return a copy of the advice that states the owner's rule from the summary, and warns if the
    user replaced it, which differs as `override` says.
    """
    if summary.terms is None or not summary.terms.binding:
        return advice
    notes = () if override is None else (override.sentence,)
    return replace(
        advice,
        owner_rule=summary.terms.owner,
        rule_override=override,
        warnings=(*notes, *advice.warnings),
    )
