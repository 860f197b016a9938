"""Answer one question about a table under a policy in one call."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypedDict, Unpack

from aegis.advisor import Advice
from aegis.files import SILENT, Progress
from aegis.policy import Policy
from aegis.requests import SearchOptions, SearchRequest
from aegis.study.study import Study
from aegis.study.subject import Configurations

if TYPE_CHECKING:
    from aegis.anonymizers import Recipe


class AdviseOptions(TypedDict, total=False):
    """The arguments of `Study.advise`, as keywords of a function."""

    configurations: Configurations | None
    generate_count: int | None
    measure: str | None
    top: int
    time_limit: float | None
    methods: Sequence[str | Recipe] | None
    explain_best: bool


class StudySearchOptions(SearchOptions, total=False):
    """The arguments of `Study.search`, as keywords of a function."""

    request: SearchRequest | None
    methods: Sequence[str | Recipe] | None


def advise(
    table: Any,
    policy: Policy | str | Path | Mapping[str, Any],
    *,
    exact: bool = False,
    seed: int = 0,
    progress: Progress = SILENT,
    **options: Unpack[AdviseOptions],
) -> Advice:
    """Return the best configuration and its runners-up. This is `Study(table, policy).advise(...)`
    in one call: `exact`, `seed` and `progress` are arguments of `Study`, and `options` of `advise`.

    Examples
    --------
    >>> import aegis
    >>> advice = aegis.advise("data/adult.parquet", "examples/adult/policy.yaml", generate_count=5)
    >>> len(advice.ranking)
    5
    """
    return Study(table, policy, exact=exact, seed=seed, progress=progress).advise(**options)


def search(
    table: Any,
    policy: Policy | str | Path | Mapping[str, Any],
    *,
    exact: bool = False,
    seed: int = 0,
    progress: Progress = SILENT,
    **options: Unpack[StudySearchOptions],
) -> Advice:
    """Search all combinations of candidate masks for the best one that meets the rule. This is
    `Study(table, policy).search(...)` in one call: `exact`, `seed` and `progress` are arguments of
    `Study`, and `options` of `search`.

    Examples
    --------
    >>> import aegis
    >>> advice = aegis.search("data/adult.parquet", "examples/adult/policy.yaml", top=1)
    >>> advice.optimal, advice.best.admissible
    (True, True)
    """
    return Study(table, policy, exact=exact, seed=seed, progress=progress).search(**options)


def evaluate(
    table: Any,
    policy: Policy | str | Path | Mapping[str, Any],
    *,
    exact: bool = False,
    seed: int = 0,
    progress: Progress = SILENT,
    **options: Any,
) -> Any:
    """Train models on masked tables, and return the `Evaluation`. This is `Study(table,
    policy).evaluate(...)` in one call: `exact`, `seed` and `progress` are arguments of `Study`, and
    `options` of `evaluate`.

    Examples
    --------
    >>> import aegis
    >>> evaluation = aegis.evaluate(
    ...     "data/adult.parquet",
    ...     "examples/adult/policy.yaml",
    ...     generate_count=2,
    ...     models=("nb",),
    ...     comparators=(),
    ... )
    >>> len(evaluation.trainings)
    3
    """
    return Study(table, policy, exact=exact, seed=seed, progress=progress).evaluate(**options)
