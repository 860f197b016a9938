"""Count masked tables, and compare the counts with the known information on raw values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import ibis
import numpy as np

from aegis.errors import DataError, PolicyError, require_known
from aegis.files import SILENT, Progress
from aegis.masks import Identity
from aegis.masks.base import SUPPRESSED
from aegis.papers.published.model import (
    Contingencies,
    Histogram,
    Possible,
    Published,
    codes_of,
    table_of,
)
from aegis.policy import Attribute, Policy, Terms, as_policy
from aegis.sources import Source, open_table
from aegis.summary import Summary, lock, summarize


def publish(
    masked: Mapping[str, Any],
    policy: Policy | Mapping[str, Any] | str | Path,
    *,
    contingencies: Mapping[str, Contingencies] | None = None,
    histograms: Mapping[str, Histogram] | None = None,
    mappings: Mapping[str, Mapping[str, Possible]] | None = None,
    exact: bool = False,
    locked: bool = False,
    seed: int = 0,
    progress: Progress = SILENT,
) -> Published:
    """Count masked versions of a table, so that others can rank them without the raw table.

    Parameters
    ----------
    masked
        Masked tables by name, such as `M1`: anything that `aegis.sources.open_table` opens. A
        missing column counts as suppressed.
    policy
        Label, roles and the rule. Its candidate masks are not used.
    contingencies
        Contingency tables instead of a masked table, by configuration, as `read_contingencies`
        returns them. They can be ranked only by measures of single attributes, and only if the
        policy has no rule on classes. A missing attribute counts as suppressed.
    histograms, mappings
        If you know them: for each attribute, the number of rows of each raw value (as text); and
        for each configuration and attribute, the raw values behind each masked value.
    locked
        Whether a later ranking refuses rules that are weaker than the rule of the policy.
    exact, seed, progress
        Whether to count pairs on all rows; seed of the sample; progress.

    Raises
    ------
    PolicyError
        No table is given, two have the same name, or a mapping names something unknown.
    DataError
        Tables differ in their number of rows, or in the number of rows of a class; a histogram does
        not add up to the number of rows, or contradicts a table; a mapping does not cover all
        masked values, or assigns a raw value to two masked values.

    Examples
    --------
    >>> import pyarrow as pa
    >>> from aegis.papers.published import publish, rank_published
    >>> fine = pa.table({"age": ["20-29", "20-29", "30-39", "30-39"], "bought": [0, 0, 1, 1]})
    >>> coarse = pa.table({"age": ["*"] * 4, "bought": [0, 0, 1, 1]})
    >>> roles = {"age": {"role": "quasi-identifier"}}
    >>> policy = {"version": 1, "label": "bought", "privacy": {"k": 2}, "attributes": roles}
    >>> held = publish({"M1": fine, "M2": coarse}, policy, histograms={"age": {"25": 2, "35": 2}})
    >>> rank_published(held, policy, measure="mi").best.name
    'M1'
    """
    declared = _declared(policy)
    histograms, mappings = dict(histograms or {}), dict(mappings or {})
    masked = _masked_tables(masked, contingencies or {}, declared)
    _check_names(declared, masked, histograms, mappings)
    tables = _summaries(masked, declared, exact=exact, locked=locked, seed=seed, progress=progress)
    return _checked(Published(tables, histograms, mappings, frozenset(contingencies or ())))


def _declared(policy: Policy | Mapping[str, Any] | str | Path) -> Policy:
    declared = as_policy(policy)
    declared.require_label("A file of published tables")
    declared.refuse_weight("A file of published tables")
    return declared


def _summaries(
    masked: Mapping[str, Any],
    policy: Policy,
    *,
    exact: bool,
    locked: bool,
    seed: int,
    progress: Progress,
) -> dict[str, Summary]:
    tables = {}
    with progress.step("Summarising masked tables", len(masked)) as step:
        for name, table in masked.items():
            step.note(name)
            summary = _summarised(table, policy, exact=exact, seed=seed)
            tables[name] = lock(summary) if locked else summary
            step.advance()
    return tables


def _checked(published: Published) -> Published:
    """Return `published`; refuse tables, histograms and mappings that contradict each other."""
    _check_tables(published)
    for attribute, histogram in published.histograms.items():
        rows, total = published.first.rows, sum(histogram.values())
        if total != rows:
            raise DataError(
                f"The histogram of {attribute!r} adds up to {total:,} rows; the tables have {rows:,}.",
                hint="Give the histogram of the rows in the tables.",
            )
    for name, by_attribute in published.mappings.items():
        for attribute, possible in by_attribute.items():
            _check_mapping(published, name, attribute, possible)
    _check_against(published)
    return published


def _masked_tables(
    masked: Mapping[str, Any], counted: Mapping[str, Contingencies], policy: Policy
) -> dict[str, Any]:
    """Return the masked tables by name; contingency tables become rows."""
    if not masked and not counted:
        raise PolicyError("No masked table is given.", hint="Give at least one, by name.")
    twice = [name for name in counted if name in masked]
    if twice:
        raise PolicyError(
            f"{twice[0]!r} names a masked table and contingency tables.", hint="Give one of them."
        )
    attributes = [a.name for a in policy.features if a.scored]
    for cells in counted.values():
        for name in cells:
            require_known("attribute of contingency tables", name, attributes)
    label = policy.label.column
    return {**masked, **{n: table_of(cells, label, n) for n, cells in counted.items()}}


def _summarised(table: Any, policy: Policy, *, exact: bool, seed: int) -> Summary:
    source = open_table(table, reading=policy.reading)
    plain_policy = as_it_stands(policy)
    present = {
        name: a for name, a in plain_policy.attributes.items() if a.scored or name in source.columns
    }  # a masked table has dropped its identifiers
    lacking = [name for name in present if name not in source.columns]
    if lacking:
        hidden = {name: ibis.literal(SUPPRESSED) for name in lacking}
        source = Source(source.table.mutate(hidden), source.origin)
    summary = summarize(source, replace(plain_policy, attributes=present), exact=exact, seed=seed)
    if summary.label.unlabelled:
        raise DataError(
            f"{source.origin} has {summary.label.unlabelled:,} rows without a label.",
            hint="Leave them out of all tables and histograms: nothing can be predicted from them.",
        )
    terms = Terms.of(policy)
    return replace(summary, terms=terms, digests={"policy": terms.digest})


def as_it_stands(policy: Policy) -> Policy:
    """Return the policy with `identity` as the only mask: the tables are masked already."""
    attributes = {
        a.name: Attribute(a.name, a.role, (Identity(),), weight=a.weight)
        if a.scored and a.name != policy.label.column
        else a
        for a in policy.attributes.values()
    }
    return replace(policy, attributes=attributes, configurations={}, anonymizers=())


def _check_names(
    policy: Policy,
    masked: Mapping[str, Any],
    histograms: Mapping[str, Histogram],
    mappings: Mapping[str, Mapping[str, Possible]],
) -> None:
    attributes = [a.name for a in policy.features if a.scored]
    for name in mappings:
        require_known("configuration of the mapping", name, masked)
    for name in (*histograms, *(a for mapping in mappings.values() for a in mapping)):
        require_known("attribute of histograms or mapping", name, attributes)


def _check_tables(published: Published) -> None:
    """Raise `DataError` if the published tables cannot come from the same rows."""
    first_name, first = next(iter(published.tables.items()))
    for name, other in published.tables.items():
        if other.rows != first.rows:
            raise DataError(
                f"{first_name} has {first.rows:,} rows and {name} has {other.rows:,}.",
                hint="Aegis compares masked tables with each other: give tables of the same rows.",
            )
        mine = dict(zip(other.label.classes, other.label.counts.tolist(), strict=True))
        theirs = dict(zip(first.label.classes, first.label.counts.tolist(), strict=True))
        if mine != theirs:
            raise DataError(
                f"{first_name} and {name} differ in the rows of their classes: {theirs} and {mine}.",
                hint="The label is not masked: give tables of the same rows.",
            )


def _check_mapping(published: Published, name: str, attribute: str, possible: Possible) -> None:
    labels = published.tables[name].attributes[attribute].unmasked.labels
    missing = [value for value in labels if value not in possible]
    if missing:
        raise DataError(
            f"The mapping of {attribute!r} under {name} does not cover {len(missing)} of its masked "
            f"values: {', '.join(map(repr, missing[:5]))}.",
            hint="For each masked value, list the raw values that it may represent.",
        )
    masked_of: dict[str, str] = {}
    for masked, raws in possible.items():
        for raw in raws:
            if raw in masked_of:
                raise DataError(
                    f"The mapping of {attribute!r} under {name} gives {raw!r} to {masked_of[raw]!r} and to "
                    f"{masked!r}.",
                    hint="A mask shows each raw value as one masked value: keep one of the two.",
                )
            masked_of[raw] = masked
    domain = published.domain(attribute)
    lost = [value for value in domain if value not in masked_of]
    if lost:
        raise DataError(
            f"The mapping of {attribute!r} under {name} assigns {len(lost)} raw values to no masked "
            f"one: {', '.join(map(repr, lost[:5]))}.",
            hint="Assign each value of the histogram, or of the other mappings, to a masked value.",
        )


def _check_against(published: Published) -> None:
    """Raise `DataError` if a histogram and a table disagree on the rows of a masked value."""
    for attribute, histogram in published.histograms.items():
        domain = published.domain(attribute)
        rows = np.array([histogram[value] for value in domain], dtype=np.int64)
        for name, summary in published.tables.items():
            summary_attribute = summary.attributes[attribute]
            labels = summary_attribute.unmasked.labels
            possible = published.mappings.get(name, {}).get(attribute)
            codes = codes_of(domain, labels, possible)
            if codes is None:
                continue
            sums = np.bincount(codes, weights=rows, minlength=len(labels)).astype(np.int64)
            wrong = np.flatnonzero(sums != summary_attribute.counts)
            if len(wrong):
                code = int(wrong[0])
                raise DataError(
                    f"The histogram of {attribute!r} has {sums[code]:,} rows that {name} shows as "
                    f"{labels[code]!r}; the table has {summary_attribute.counts[code]:,}.",
                    hint="Give histograms and mapping of the rows in the tables.",
                )
