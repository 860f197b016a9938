"""Propose a first policy from a table and its label (`aegis init`)."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from aegis.errors import DataError, PolicyError
from aegis.files import SILENT, Progress, check_output, write_text
from aegis.masks import parse_mask
from aegis.masks.base import SECONDS, TIMES
from aegis.measures import LabelKind
from aegis.options import checks_types
from aegis.policy.labels import ANY_LABEL, MUCH_IN_ONE_ROW, Label, LabelTask, several_labels
from aegis.policy.model import Attribute, AttributeKind, Policy, Role
from aegis.policy.suggest.facts import ColumnFacts, ColumnProfile
from aegis.policy.suggest.masks import RISKY_SHARE, propose_masks
from aegis.policy.suggest.profile import measure_columns
from aegis.policy.suggest.relations import (
    alike_once,
    count_alone,
    find_derived,
    find_identifying,
    find_label_leaks,
    find_squares,
    find_twins,
    one_row_share,
)
from aegis.policy.suggest.roles import (
    FEWEST_FOR_UNIQUE,
    MOSTLY_ALIKE,
    likely_persons,
    propose_role,
    warn_of,
    warn_of_label,
)
from aegis.policy.suggest.yaml_text import (
    ASKED_OF_WEIGHT,
    declared_weight,
    is_likely_weight,
    likely_weight,
    render,
    show,
)
from aegis.privacy import PrivacyRule
from aegis.sources import Reading, Source, open_proposing
from aegis.words import joined, percent

K = 5
SUPPRESSION = 0.02
BINS = 5
"""Number of ranges into which a numeric label is cut, if it is not predicted as a number."""
MOST_NUMERIC_CLASSES = 10
"""A label with more different numbers than this is predicted as a number, unless its name indicates
codes.
"""
MOST_CLASSES = 1_024
"""Largest number of label classes that a summary accepts."""
FEWEST_SENSITIVE = 4
"""The rule requires two values per class of a sensitive attribute only if the attribute has at
least this many values.
"""
MOST_DOMINANT = 0.8
"""It also requires this only if no value of the attribute has a larger share than this; otherwise,
too many classes have only that value.
"""


@dataclass(frozen=True)
class ProposedPolicy:
    """A first policy, as an object and as commented YAML that you can edit.

    Attributes
    ----------
    policy
        The policy.
    yaml
        The policy as YAML text. `save` writes it to a file, from which `load_policy` reads an equal
        policy.
    profiles
        The facts and the proposal for every column, including the label, by name, in the table's
        order.
    identifying
        A warning about a few columns outside the rule that single out many rows; empty if there are
        none.
    alone
        Number of rows that are the only ones with their values in `unmasked`; None if it was not
        counted, because the table is large or on a server.

    Examples
    --------
    >>> import aegis
    >>> proposed = aegis.init_policy("data/adult.parquet", label="income")
    >>> proposed.yaml.splitlines()[0][:16]
    '# A first policy'
    """

    policy: Policy
    yaml: str
    profiles: Mapping[str, ColumnProfile]
    identifying: str = ""
    alone: int | None = None

    @property
    def unmasked(self) -> tuple[str, ...]:
        """The features that every release shows unmasked, because they have no mask other than
        `identity`.
        """
        return _unmasked(self.policy)

    @property
    def person(self) -> str | None:
        """The identifier whose values are numbers of persons and occur in several rows; None if
        there is none.
        """
        return self.policy.person

    @property
    def warnings(self) -> tuple[str, ...]:
        """The questions that you must answer before you use the policy: first about single columns,
        then about several columns together.

        Examples
        --------
        >>> import aegis
        >>> proposed = aegis.init_policy("data/adult.parquet", label="income")
        >>> len(proposed.warnings) > 0
        True
        """
        by_column = alike_once(
            {
                f"{'label ' if profile.role is None else ''}{show(profile.name)!r}": profile.warning
                for profile in self.profiles.values()
                if profile.warning
            }
        )
        weight = None
        if self.policy.weight is None:
            weight = likely_weight(profile.facts for profile in self.profiles.values())
        of_weight = () if weight is None else (f"{show(weight)!r}: {ASKED_OF_WEIGHT}",)
        return (*by_column, *of_weight, *([self.identifying] * bool(self.identifying)))

    @checks_types
    def save(self, path: str | Path, *, force: bool = False) -> None:
        """Write the YAML of the policy to a file. An existing file is overwritten only if `force`
        is True.

        Raises
        ------
        PolicyError
            The file exists, or its folder does not.

        Examples
        --------
        >>> import aegis, pathlib, tempfile
        >>> proposed = aegis.init_policy("data/adult.parquet", label="income")
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = pathlib.Path(folder, "policy.yaml")
        ...     proposed.save(path)
        ...     aegis.load_policy(path) == proposed.policy
        True
        """
        check_output(Path(path), force=force, formats=None)
        write_text(Path(path), self.yaml)

    def to_dict(self) -> dict[str, Any]:
        """Return the label, the rule and the profiles as JSON values.

        Examples
        --------
        >>> import aegis
        >>> proposed = aegis.init_policy("data/adult.parquet", label="income")
        >>> proposed.to_dict()["label"]["column"]
        'income'
        """
        label = self.policy.label
        return {
            "label": {"column": label.column, "bins": label.bins} if label else None,
            **({"labels": list(label.columns)} if self.policy.tasks else {}),
            "privacy": self.policy.privacy.to_mapping(),
            "person": self.person,
            "columns": [profile.to_dict() for profile in self.profiles.values()],
        }

    def __repr__(self) -> str:
        label = str(self.policy.label) or None
        lines = [f"ProposedPolicy(label={label!r}, {self.policy.privacy})"]
        for profile in self.profiles.values():
            if profile.role is not None:
                masks = ", ".join(map(str, profile.masks)) or "no masks"
                lines.append(f"  {profile.role:<16}  {show(profile.name)}: {masks}")
        return "\n".join(lines)


def _policy(
    label: Label,
    profiles: Mapping[str, ColumnProfile],
    person: ColumnFacts | None,
    reading: Reading | None,
    weight: str | None,
) -> Policy:
    """Build the policy from the proposals for the columns."""
    rule = _propose_rule(profiles.values())
    return Policy(
        label=label,
        attributes={
            name: _attribute(profile, profile.role)
            for name, profile in profiles.items()
            if profile.role is not None
        },
        privacy=replace(rule, person=None if person is None else person.name),
        reading=reading,
        weight=weight,
    )


@checks_types
def init_policy(
    table: Any,
    *,
    label: str | Sequence[str] | None = None,
    weight: str | None = None,
    path: str | Path = "policy.yaml",
    progress: Progress = SILENT,
) -> ProposedPolicy:
    """Propose roles, candidate masks and a privacy rule for a table.

    The proposal is a guess from names, types and distributions, so read and edit it. Each entry
    of the YAML states the facts and the reason. The same table gives the same proposal.

    Parameters
    ----------
    table
        Anything that `aegis.sources.open_table` opens.
    label
        The column to predict, or several columns. A column of more than 10 distinct numbers is
        predicted as a number. None: each column is predicted from the others (`labels: any`).
    weight
        The column of survey weights. If None, the policy asks you about likely columns.
    path
        The file name to show in the first lines of the YAML. Aegis writes no file.
    progress
        Receives one step.

    Raises
    ------
    DataError
        The table cannot be read or has no rows; a weight is negative or not a number; or the label
        is missing, null in all rows, constant, cannot be masked, or has more than 1,024 classes.
    PolicyError
        Aegis can score no column other than the label.

    Examples
    --------
    >>> import aegis
    >>> proposed = aegis.init_policy("data/adult.parquet", label="income")
    >>> proposed.policy.attributes["age"].role.value
    'quasi-identifier'
    """
    named = [label] if isinstance(label, str) else list(label or ())
    source = _opened(table, named, weight)
    facts = measure_columns(source, progress=progress)
    labels = [_propose_label(facts[name], alone=len(named) == 1) for name in named]
    target = several_labels(LabelTask(label) for label, _ in labels) if labels else ANY_LABEL
    profiles = _profiles(facts, named, weight)
    _check_scored(list(profiles.values()), ", ".join(named) or None)
    with progress.step("Comparing columns"):
        labels = [_with_warnings(source, *pair, facts, profiles) for pair in labels]
        profiles, identifying = _with_questions(source, _with_twins(source, profiles))
    persons = likely_persons(p.facts for p in profiles.values() if p.role is Role.IDENTIFIER)
    policy = _policy(target, profiles, next(iter(persons), None), source.reading, weight)
    found_labels = tuple(profile for _, profile in labels)
    columns = tuple(profiles.values())
    text = render(policy, found_labels, columns, persons=persons, source=source, path=str(path))
    profiles |= {profile.name: profile for profile in found_labels}
    alone = count_alone(source, _unmasked(policy), policy.person)
    return ProposedPolicy(policy, text, {n: profiles[n] for n in facts}, identifying, alone)


def _unmasked(policy: Policy) -> tuple[str, ...]:
    features = policy.with_role(Role.FEATURE)
    return tuple(a.name for a in features if {*map(str, a.masks)} == {"identity"})


def _opened(table: Any, labels: Sequence[str], weight: str | None) -> Source:
    """Open a table, and check that it has the columns that the user named."""
    source = open_proposing(table)
    for label in labels:
        source.require(label, where="the label")
    if weight is not None:
        source.require(weight, where="the weight")
    return source


def _profiles(
    facts: Mapping[str, ColumnFacts], labels: Sequence[str], weight: str | None
) -> dict[str, ColumnProfile]:
    """Return role and masks to propose for every column except the labels, from its `facts`."""
    return {
        name: declared_weight(column) if name == weight else _propose(column)
        for name, column in facts.items()
        if name not in labels
    }


def _attribute(profile: ColumnProfile, role: Role) -> Attribute:
    """Return the policy's entry for a column; ranges written as text get their order."""
    if profile.ordered:
        ordinal, ranges = AttributeKind.ORDINAL, profile.facts.ranges
        return Attribute(profile.name, role, profile.masks, kind=ordinal, order=ranges)
    return Attribute(profile.name, role, profile.masks)


def _profile(facts: ColumnFacts, role: Role, reason: str, warning: str = "") -> ColumnProfile:
    choice = propose_masks(facts, role)
    return ColumnProfile(facts, role, reason, choice.masks, choice.reason, choice.unused, warning)


def _propose(facts: ColumnFacts) -> ColumnProfile:
    role, reason = propose_role(facts)
    if role is Role.FEATURE and is_likely_weight(facts):
        why = "may be the weight of a row, which can single it out: not released unless you say so"
        return ColumnProfile(facts, Role.IGNORE, why)
    return _profile(facts, role, reason, warn_of(facts, role))


def _outside(profiles: Mapping[str, ColumnProfile]) -> list[ColumnFacts]:
    return [
        profile.facts
        for profile in profiles.values()
        if profile.role in (Role.FEATURE, Role.SENSITIVE)
    ]


def _with_twins(source: Source, profiles: Mapping[str, ColumnProfile]) -> dict[str, ColumnProfile]:
    """Return the profiles, changed for columns that reveal a quasi-identifier: copies become
    quasi-identifiers or get a question, and squares get the role *ignore*.
    """
    quasi = [p.facts for p in profiles.values() if p.role is Role.QUASI_IDENTIFIER]
    twins = find_twins(source, quasi, _outside(profiles))
    changed = dict(profiles)
    for name, twin in twins.items():
        profile, of = profiles[name], show(twin.of)
        relation = f"gives {of} away in {percent(100 * twin.right, 0)} of the rows"
        if twin.linear:
            relation = f"{of} in other units: the two are on a line"
        if twin.coarse:
            relation = f"follows from {of} in {percent(100 * twin.right, 0)} of the rows, as {of} in larger groups"
        if twin.certain and profile.role is Role.FEATURE:
            changed[name] = _profile(profile.facts, Role.QUASI_IDENTIFIER, relation)
        else:
            question = f"{relation}: masks of {of} hide little unless this column is a quasi-identifier too"
            warning = f"{profile.warning}. It {question}" if profile.warning else question
            changed[name] = replace(profile, warning=warning)
    # Squares of quasi-identifiers are left out of releases, whose readers can compute them.
    quasi = [p.facts for p in changed.values() if p.role is Role.QUASI_IDENTIFIER]
    squares = find_squares(source, quasi, [*quasi, *_outside(changed)])
    return {
        name: _profile(
            profile.facts,
            Role.IGNORE,
            f"the square of {show(squares[name])}, which you can compute from the release",
        )
        if name in squares
        else profile
        for name, profile in changed.items()
    }


def _with_questions(
    source: Source, profiles: Mapping[str, ColumnProfile]
) -> tuple[dict[str, ColumnProfile], str]:
    """Return the profiles with questions on unmasked columns that together make many rows unique,
    and these questions as one sentence.
    """
    as_they_are = {n: p for n, p in profiles.items() if "identity" in map(str, p.masks)}
    identifying = find_identifying(source, _outside(as_they_are))
    if identifying is None:
        return dict(profiles), ""
    few, rows = identifying
    sampled = "" if rows == source.rows else f" of a sample of {rows:,}"
    share = f"{percent(100 * few.unique_rows / rows, 0)} of the rows{sampled}"
    together = joined(map(show, few.columns))
    verb, them = ("singles out", "it") if len(few.columns) == 1 else ("single out", "them")
    changed = dict(profiles)
    for name in few.columns:
        others = ", ".join(show(other) for other in few.columns if other != name)
        with_others = f"with {others} it" if others else "it"
        changed[name] = replace(
            profiles[name],
            question="could somebody know this? The rule does not cover it; without any "
            f"quasi-identifier, {with_others} singles out {share}",
            alternative=propose_masks(profiles[name].facts, Role.QUASI_IDENTIFIER).masks,
        )
    return changed, (
        f"{together} {verb} {share} even without the quasi-identifiers, and the rule does not cover {them}: "
        "could somebody know this of a person? Then uncomment the role quasi-identifier and its masks"
    )


def _propose_label(facts: ColumnFacts, *, alone: bool) -> tuple[Label, ColumnProfile]:
    """Return the label: a number if the column has many different numbers, else classes. `alone`
    says whether it is the only label.
    """
    if facts.kind is None:
        raise DataError(
            f"The label {facts.name!r} has type {facts.dtype}, which cannot be a class or a number to predict.",
            hint=f"{SECONDS}, or choose another column."
            if facts.dtype.startswith(TIMES)
            else "Choose a column of text, numbers, dates or booleans.",
        )
    if facts.values == 0:
        raise DataError(
            f"The label {facts.name!r} is null in every row.", hint="Choose a label with values."
        )
    if facts.distinct < 2:
        raise DataError(
            f"The label {facts.name!r} has the same value in every row.",
            hint="Advice needs a label with at least two classes.",
        )
    most = MOST_CLASSES if facts.categorical else MOST_NUMERIC_CLASSES
    if facts.kind.numeric and facts.distinct > most:
        label = Label(facts.name, kind=LabelKind.NUMBER)
        reason = "many numbers, so the number is predicted: what is kept is stated as R2"
        warning = warn_of_label(facts, alone=alone)
        if facts.unique_share <= RISKY_SHARE or facts.values < FEWEST_FOR_UNIQUE:
            return label, ColumnProfile(facts, None, reason, warning=warning)
        exact = (
            f"{facts.distinct:,} values in {facts.values:,} rows, and a release shows them as they are: "
            "somebody who knows one finds its row"
        )
        warning = f"{warning}. It has {exact}" if warning else exact
        ranges = parse_mask({"quantiles": {"count": BINS}})
        return label, ColumnProfile(facts, None, reason, warning=warning, alternative=(ranges,))
    if facts.distinct > MOST_CLASSES:
        raise DataError(
            f"The label {facts.name!r} has {facts.distinct:,} different values; at most {MOST_CLASSES} classes are allowed.",
            hint=f"Choose another label, or group its values before.{_if_numbers(facts)}",
        )
    question = ""
    if facts.kind.numeric and facts.distinct > 2 and not facts.categorical:
        question = f"are these {facts.distinct:,} numbers classes, or a number to predict?"
    return Label(facts.name), ColumnProfile(
        facts, None, "the label", warning=warn_of_label(facts, alone=alone), question=question
    )


def _if_numbers(facts: ColumnFacts) -> str:
    """Return how to read the label's texts as numbers; empty if less than half look like it."""
    share = facts.shape("amount")
    if share <= 0.5:
        return f" {SECONDS} if they are times." * (facts.shape("time") > MOSTLY_ALIKE)
    correct = "" if share == 1 else "correct the values that are none, such as `inf` or `?`, and "
    return f" If they should be numbers, {correct}give --numbers {shlex.quote(facts.name)}."


def _with_warnings(
    source: Source,
    label: Label,
    profile: ColumnProfile,
    facts: Mapping[str, ColumnFacts],
    profiles: Mapping[str, ColumnProfile],
) -> tuple[Label, ColumnProfile]:
    """Return the label and its profile, with warnings if another column repeats the label, or if
    most of its variance comes from one row.
    """
    warnings = [profile.warning] if profile.warning else []
    if label.is_number:
        share = one_row_share(source, profile.facts)
        if share >= MUCH_IN_ONE_ROW:
            warnings.append(
                f"one row holds {percent(100 * share, 0)} of its variance, so R2 describes little but that row. Cap it: "
                f"`{show(label.column)}: {{role: feature, masks: [{{top_code: {{at: BOUND}}}}]}}` under `attributes`"
            )
        others = [f for name, f in facts.items() if name != label.column]
        copies = find_derived(source, profile.facts, others)
        verb, what, like = "order", "the rows as it does", "derived from it"
    else:
        released = [p.facts for p in profiles.values() if p.role and p.role.scored]
        copies = find_label_leaks(source, profile.facts, released)
        verb, what, like = "give", "its class away", "that repeat it"
    if copies:
        warnings.append(
            f"{joined(map(show, copies))} {verb}{'s' * (len(copies) == 1)} {what}, as columns {like} do. If they are not "
            "known when somebody predicts, delete them from the policy"
        )
    return label, replace(profile, warning="; ".join(warnings))


def _propose_rule(profiles: Any) -> PrivacyRule:
    """Return k-anonymity, and 2-diversity for the first sensitive attribute with enough values."""
    rule: dict[str, object] = {"k": K, "suppression": SUPPRESSION}
    for profile in profiles:
        facts = profile.facts
        enough = facts.distinct >= FEWEST_SENSITIVE and facts.top_share <= MOST_DOMINANT
        if profile.role is Role.SENSITIVE and enough:
            rule["l_diversity"] = {"attribute": profile.name, "kind": "distinct", "l": 2}
            break
    return PrivacyRule.parse(rule)


def _check_scored(profiles: Sequence[ColumnProfile], label: str | None) -> None:
    """Raise an error if no column other than the label has a role in which Aegis scores it."""
    besides = "" if label is None else f" besides the label {label!r}"
    if not profiles:
        raise PolicyError(
            f"The table has no column{besides}.",
            hint="Give a table with at least one attribute.",
        )
    if any(profile.role and profile.role.scored for profile in profiles):
        return
    columns = "; ".join(
        f"{show(profile.name)!r} ({profile.role}: {profile.reason})" for profile in profiles[:10]
    )
    more = f"; and {len(profiles) - 10:,} more" if len(profiles) > 10 else ""
    raise PolicyError(
        f"No column{besides} can be masked and scored: {columns}{more}.",
        hint="Give a table with attributes that several rows share, or write the policy by hand.",
    )
