"""Audit any table: which privacy models it meets, and which rows are at risk."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from html import escape
from pathlib import Path
from typing import Any

import numpy as np

from aegis.errors import PolicyError
from aegis.files import SILENT, Progress
from aegis.masks import Mask, NoiseMask, privacy_account
from aegis.options import checks_types
from aegis.policy import Configuration, Policy, as_policy
from aegis.privacy import ClassTable, PrivacyAccount, PrivacyReport, PrivacyRule, report
from aegis.privacy.report import UNPROTECTED
from aegis.sources import Source, open_table
from aegis.summary import count_classes
from aegis.summary.classes import CountedClasses, PersonClasses
from aegis.summary.coded_rows import CodedRows, read_rows, stored_rows
from aegis.summary.leaves import ShownLeaves, leaves_by_hierarchy
from aegis.summary.outside import (
    Outside,
    comparable,
    outside_of,
    patterns_of_tokens,
    people_of,
)
from aegis.words import json_fields

AUDIT_VERSION = 1
"""Version of the JSON form of `Audit`."""
_Columns = tuple[tuple[str, ...], tuple[str, ...], str | None]
"""Quasi-identifiers, sensitive columns, and the column of persons."""


@dataclass(frozen=True, eq=False)
class Audit:
    """The privacy figures of a table and, if there is a rule, whether the table meets it.

    Attributes
    ----------
    report
        Every privacy figure.
    quasi_identifiers, sensitive
        The columns that Aegis used as quasi-identifiers and as sensitive attributes.
    rule
        The rule that Aegis checked, or None.
    violations
        Violations of the rule by the table as it is; empty if the table meets the rule.
    differential_privacy
        Guarantee of the noise masks; None if no configuration is given or no mask guarantees
        anything.
    person
        The column whose distinct values Aegis counted as persons; None if it counted rows.
    outside
        Risks from columns that the rule does not cover; None for tables of more than two million
        rows.

    Examples
    --------
    >>> import aegis
    >>> audit = aegis.audit("data/adult.parquet", quasi_identifiers=["age", "sex", "race"])
    >>> audit.report.k
    1
    """

    report: PrivacyReport
    quasi_identifiers: tuple[str, ...]
    sensitive: tuple[str, ...]
    rule: PrivacyRule | None = None
    violations: tuple[str, ...] = ()
    differential_privacy: PrivacyAccount | None = None
    person: str | None = None
    outside: Outside | None = None

    @property
    def passed(self) -> bool | None:
        """Whether the table meets the rule; None if there is no rule."""
        return None if self.rule is None else not self.violations

    @property
    def warnings(self) -> tuple[str, ...]:
        """Reasons why the rule protects less than its name promises."""
        demanding = self.rule is not None and bool(self.rule.criteria)
        return (UNPROTECTED,) if demanding and not self.quasi_identifiers else ()

    def to_dict(self) -> dict[str, Any]:
        """Return the documented JSON form (docs/reference/json.md).

        Examples
        --------
        >>> import aegis
        >>> audit = aegis.audit("data/adult.parquet", quasi_identifiers=["age", "sex", "race"])
        >>> audit.to_dict()["rows"]
        32561
        """
        return {
            "schema": AUDIT_VERSION,
            **json_fields(self, "quasi_identifiers", "sensitive", "person"),
            **self.report.to_dict(),
            "rule": None if self.rule is None else self.rule.to_mapping(),
            **json_fields(self, "passed", "violations", "outside", "differential_privacy"),
        }

    def __repr__(self) -> str:
        verdict = {None: "no rule given", True: "meets the rule", False: "fails the rule"}[
            self.passed
        ]
        return f"Audit({verdict})\n{self.report!r}"

    def _repr_html_(self) -> str:
        verdict = repr(self).partition("\n")[0]
        return f"<p>{escape(verdict)}</p>{self.report._repr_html_()}"


@checks_types
def audit(
    table: Any,
    *,
    quasi_identifiers: Sequence[str] | None = None,
    sensitive: Sequence[str] | None = None,
    policy: Policy | str | Path | Mapping[str, Any] | None = None,
    rule: PrivacyRule | Mapping[str, Any] | None = None,
    person: str | None = None,
    configuration: Configuration | None = None,
    population: Any = None,
    leaves: ShownLeaves | None = None,
    progress: Progress = SILENT,
) -> Audit:
    """Measure the privacy of any table, even if Aegis did not make it.

    Parameters
    ----------
    table
        Anything that `aegis.sources.open_table` opens.
    quasi_identifiers, sensitive
        Column names. By default: the policy's columns that the table has.
    policy
        Provides roles and rule, unless you give them separately.
    rule
        The rule to check without suppressing rows: a `PrivacyRule`, or a mapping as under `privacy`
        in a policy, such as `{"k": 5}`. By default: the policy's rule.
    person
        Column that identifies persons, to count persons. By default: the policy's. If the table
        lacks it, Aegis counts rows, and a note says so.
    configuration
        The masks of the table, from which Aegis takes noise and levels, without verifying them.
    population
        For k-map, journalist risk and delta-presence: the population, masked like the table, with
        a row per person or a column `rows` with counts.
    leaves
        Number of original values behind each masked value. By default: from the hierarchies.
    progress
        Receives two steps.

    Raises
    ------
    PolicyError
        You give neither quasi-identifiers nor a policy, a column has two roles, or you give both a
        person column and a population.
    DataError
        A column is missing, or the table has no rows.

    Examples
    --------
    >>> import aegis
    >>> quasi_identifiers = ["age", "sex"]
    >>> audit = aegis.audit("data/adult.parquet", quasi_identifiers=quasi_identifiers, rule={"k": 5})
    >>> audit.report.k, audit.report.uniques, audit.passed
    (1, 5, False)
    """
    source, policy = open_table(table), None if policy is None else as_policy(policy)
    rule = PrivacyRule.parse(rule) if isinstance(rule, Mapping) else rule
    rule = policy.privacy if rule is None and policy is not None else rule
    columns = _columns(source, policy, rule, quasi_identifiers, sensitive, person)
    return _audit(source, columns, policy, rule, configuration, population, leaves, progress)


def _columns(
    source: Source,
    policy: Policy | None,
    rule: PrivacyRule | None,
    quasi: Sequence[str] | None,
    sensitive: Sequence[str] | None,
    person: str | None,
) -> _Columns:
    """Return quasi-identifiers, sensitive columns and column of persons: as given, else the
    policy's.
    """
    if policy is not None:
        if quasi is None:
            source.refuse_other_table(policy.attributes, most=1)
            quasi = [a.name for a in policy.quasi_identifiers if a.name in source.columns]
        if sensitive is None:
            sensitive = [name for name in policy.sensitive if name in source.columns]
        if person is None and policy.person in source.columns:
            person = policy.person
    if quasi is None:
        raise PolicyError(
            "An audit needs quasi-identifiers.",
            hint="Name the columns that others may know, or give a policy that has them. To compare a release with its "
            "certificate, add --certificate.",
        )
    protected = rule.sensitive if rule is not None else ()
    sensitive = tuple(dict.fromkeys((*(sensitive or ()), *protected)))
    for name in sensitive:
        if name in quasi:
            raise PolicyError(
                f"{name!r} cannot be both a quasi-identifier and sensitive: each class has only one value of it.",
                hint="Name it in one of the two roles.",
            )
    if person is not None and person in (*quasi, *sensitive):
        raise PolicyError(
            f"{person!r} names persons, so it cannot also be a quasi-identifier or sensitive.",
            hint="Name it in one of the roles.",
        )
    return tuple(quasi), sensitive, person


def _audit(
    source: Source,
    columns: _Columns,
    policy: Policy | None,
    rule: PrivacyRule | None,
    configuration: Configuration | None,
    population: Any,
    leaves: ShownLeaves | None,
    progress: Progress,
) -> Audit:
    """Measure a table, and check the rule on it if there is one."""
    quasi, sensitive, person = columns
    if person is not None and population is not None:
        raise PolicyError(
            "The population counts rows, but the audit counts persons.",
            hint="Leave out the population, or the column that names persons.",
        )
    with progress.step("Counting equivalence classes"):
        coded_rows = None if person is not None else _read(source, (*quasi, *sensitive))
        counted = count_classes(
            source,
            quasi,
            sensitive,
            hierarchies=policy.protected_hierarchies if policy is not None else {},
            person=person,
            population=_people(source, policy, rule)
            if population is None
            else open_table(population),
            coded_rows=coded_rows,
        )
        classes = counted.table
    violations: tuple[str, ...] = ()
    if rule is not None:
        if rule.by_leaves and policy is not None:
            masks = _masks_of(configuration, quasi)
            classes = _with_leaves(counted, policy, quasi, masks, leaves)
        violations = PrivacyRule(rule.criteria).check(classes).violations
    account = None
    if configuration is not None:
        masks = _masks_of(configuration, source.columns)
        account = privacy_account(masks, _nulls(source, masks))
    figures = report(classes)
    if person is None and policy is not None and policy.person is not None:
        figures = replace(figures, notes=(*figures.notes, _rows_alone(policy.person)))
    with progress.step("Comparing rows over all columns"):
        label = policy.label.column if policy is not None and policy.label else None
        tokens = () if policy is None else _shown_tokens(source, policy)
        outside = outside_of(
            source, quasi, person=person, tokens=tokens, coded_rows=coded_rows, label=label
        )
    return Audit(figures, quasi, sensitive, rule, violations, account, person, outside)


def _read(source: Source, named: Sequence[str]) -> CodedRows | None:
    """Return the columns `named` as codes of their values; None if the engine should count rows."""
    every = tuple(dict.fromkeys((*named, *comparable(source.table))))
    return read_rows(source, every) or stored_rows(source, named)


def _shown_tokens(source: Source, policy: Policy) -> list[str]:
    """Return the identifiers of the policy whose column has tokens in every row: a table that is not
    masked, or was masked by another tool, may show the identifiers themselves.
    """
    schema = source.table.schema()
    tokens = {
        name: pattern
        for name, pattern in patterns_of_tokens(policy).items()
        if name in schema and schema[name].is_string()
    }
    if not tokens:
        return []
    others = {
        f"t{i}": (~source.table[name].re_search(pattern)).sum()
        for i, (name, pattern) in enumerate(tokens.items())
    }
    row = source.collect(source.table.aggregate(**others)).to_pylist()[0]
    return [name for i, name in enumerate(tokens) if not row[f"t{i}"]]


def _people(source: Source, policy: Policy | None, rule: PrivacyRule | None) -> Source | None:
    """Return the population that weights describe; None if the rule needs none, or one is named."""
    if policy is None or rule is None or policy.population or policy.weight not in source.columns:
        return None
    return people_of(replace(policy, privacy=rule), source)


def _masks_of(configuration: Configuration | None, names: Iterable[str]) -> dict[str, Mask | None]:
    return {n: None if configuration is None else configuration.masks.get(n) for n in names}


def _with_leaves(
    counted: CountedClasses | PersonClasses,
    policy: Policy,
    quasi: Sequence[str],
    masks: Mapping[str, Mask | None],
    leaves: ShownLeaves | None,
) -> ClassTable:
    """Return the classes; for each, `hidden` is the share of information (in bits) that masks hide.
    It follows from the number of original values behind each masked value, in `leaves` or else in
    the hierarchies.
    """
    classes = counted.table
    members = counted.members(np.ones(len(classes), dtype=np.bool_))
    shown_leaves = leaves or leaves_by_hierarchy(members, policy, quasi, masks)
    return replace(classes, hidden=shown_leaves.hidden(members))


def audit_rows(
    source: Source, quasi_identifiers: Iterable[str], sensitive: Iterable[str], person: str
) -> Audit:
    """Audit the rows of a release that does not identify persons, although its rule counts persons.

    Columns that the release does not show are left out, and no rule is checked. `person` is the
    column that the rule counts; a note names it.
    """
    quasi, protected = (
        [name for name in names if name in source.columns]
        for names in (quasi_identifiers, sensitive)
    )
    audited = audit(source, quasi_identifiers=quasi, sensitive=protected)
    figures = audited.report
    notes = (*figures.notes, *(() if quasi else (UNPROTECTED,)), _rows_alone(person))
    return replace(audited, report=replace(figures, notes=notes))


def _rows_alone(person: str) -> str:
    return (
        f"The table does not contain {person}, so rows are counted instead of persons. A class "
        "has at least as many rows as persons. More rows may have values of one person only than "
        "are unique."
    )


def _nulls(source: Source, masks: Mapping[str, Mask | None]) -> dict[str, int]:
    """Count the nulls of the table in each column whose mask adds noise."""
    noised = [name for name, mask in masks.items() if isinstance(mask, NoiseMask)]
    if not noised:
        return {}
    counts = {f"n{i}": source.table[name].isnull().sum() for i, name in enumerate(noised)}
    row = source.collect(source.table.aggregate(**counts)).to_pylist()[0]
    return {name: int(row[f"n{i}"] or 0) for i, name in enumerate(noised)}
