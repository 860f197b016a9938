"""Aggregate a table into a `Summary`, close to the data."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from aegis.errors import PolicyError
from aegis.options import checks_types
from aegis.policy import Policy, as_policy, policy_digest
from aegis.progress import SILENT, Progress
from aegis.sources import open_table
from aegis.summary.builder import MAX_LEVELS, SAMPLE_ROWS, Builder
from aegis.summary.coded_rows import CodedRows
from aegis.summary.grouped import grouping
from aegis.summary.held_rows import TaskBuilder
from aegis.summary.model import Information, SeveralSummaries, Summary, TaskSummary


@checks_types
def summarize(
    table: Any,
    policy: Policy | str | Path | Mapping[str, Any],
    *,
    exact: bool = False,
    sample_rows: int = SAMPLE_ROWS,
    max_levels: int = MAX_LEVELS,
    seed: int = 0,
    like: Summary | None = None,
    progress: Progress = SILENT,
) -> Summary:
    """Reduce a table to the counts from which Aegis can give advice.

    Aegis counts values by label, and the cells of the frequency table, on all rows. If the table
    has more than `sample_rows` rows, Aegis counts pairs of values on a uniform sample, unless you
    set `exact`.

    Parameters
    ----------
    table
        Anything that `aegis.sources.open_table` opens.
    policy
        Roles, candidate masks and the label.
    exact
        Whether to count pairs of values on all rows.
    sample_rows
        Number of rows in the sample for pairs of values.
    max_levels
        Largest number of levels of an attribute in measures of several attributes; at least 2.
    seed
        Seed of the sample.
    like
        The summary of another part of the same data under the same policy. Aegis reuses its
        fitted masks, label bins, classes and pooled groups, so that you can merge both summaries.
    progress
        Receives one step per stage.

    Raises
    ------
    DataError
        A column is missing or has no usable type, or the table is empty. Or the label has only
        nulls, only one class or too many classes.
    PolicyError
        A mask does not fit its column, or `like` was made under another policy.

    Examples
    --------
    >>> import aegis
    >>> summary = aegis.summarize("data/adult.parquet", "examples/adult/policy.yaml")
    >>> summary.rows, len(summary.attributes)
    (32561, 11)
    """
    rows = None if exact else sample_rows
    return summarize_rows(table, policy, rows, max_levels, seed, like, progress)[0]


def summarize_rows(
    table: Any,
    policy: Policy | str | Path | Mapping[str, Any],
    sample_rows: int | None = SAMPLE_ROWS,
    max_levels: int = MAX_LEVELS,
    seed: int = 0,
    like: Summary | None = None,
    progress: Progress = SILENT,
) -> tuple[Summary, CodedRows | None]:
    """Return the summary of a table, together with its rows as codes. The rows are None if they do
    not fit in memory.

    The parameters are those of `summarize`; a `sample_rows` of None means `exact`.
    """
    policy = as_policy(policy)
    if like is not None:
        _check_model(like, policy)
        max_levels = like.max_levels
    builder = Builder(
        open_table(table, reading=policy.reading), policy, max_levels, seed, like, progress
    )
    counted_together = (
        *(a.name for a in policy.quasi_identifiers),
        *policy.sensitive,
        *policy.label.columns,
    )
    with grouping(builder.source, counted_together):
        summary = builder.build(sample_rows)
    if policy.tasks:
        summary = _with_tasks(builder, summary, sample_rows)
    return summary, builder.coded


def _with_tasks(whole: Builder, summary: Summary, sample_rows: int | None) -> Summary:
    """Add to the summary of a table one summary for each of its several labels, from the same rows."""
    policy, likes = whole.policy, None if whole.like is None else whole.like.several
    assert policy.label.several is not None
    started, tasks = time.perf_counter(), []
    for place, task in enumerate(policy.tasks):
        like = None if likes is None else likes.tasks[place].summary
        counted = TaskBuilder(whole, task, like).build(sample_rows)
        own = replace(counted, unnamed=(), digests=summary.digests, terms=summary.terms)
        tasks.append(TaskSummary(own, task.weight, task.named_measure(policy.measure)))
    timings = {**summary.timings, "labels": time.perf_counter() - started}
    several = SeveralSummaries(tuple(tasks), policy.label.several.serve)
    return replace(summary, several=several, timings=timings)


def _check_model(like: Summary, policy: Policy) -> None:
    if like.information is not Information.RAW:
        raise PolicyError(
            f"The summary that you gave as an example holds {like.information} of an attribute, not the raw joints.",
            hint="Give one that was made with the raw joints.",
        )
    if like.digests.get("policy") != policy_digest(policy):
        raise PolicyError(
            "The summary that you gave as an example was made under another policy.",
            hint="Parts can be merged only under one policy: give the one that it was made with.",
        )
