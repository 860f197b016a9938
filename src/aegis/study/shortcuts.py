"""Answer one question in one call, without a `Study`."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from aegis.advisor import Advice
from aegis.policy import Policy
from aegis.progress import SILENT, Progress
from aegis.study.study import Study


def advise(
    table: Any,
    policy: Policy | str | Path | Mapping[str, Any],
    *,
    exact: bool = False,
    seed: int = 0,
    progress: Progress = SILENT,
    **options: Any,
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
    **options: Any,
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
