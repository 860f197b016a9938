"""Compare models trained on a release with models trained on the unmasked table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module

import numpy as np

from aegis.papers.evaluation.coding import Design, Labels
from aegis.papers.evaluation.training import Split, one_thread, require_extra

TREES = 100
"""Number of trees in the random forest that measures feature importances."""


@dataclass(frozen=True)
class AgainstOriginal:
    """The difference between a metric on a masked table and on the unmasked table.

    Attributes
    ----------
    configuration, model, metric
        The configuration, the model and the metric.
    difference
        The mean of the metric over the splits, minus its mean on the unmasked table.
    u
        Mann-Whitney U of the metrics of the splits on both tables (Mann and Whitney 1947); None for
        a single split.
    p
        Two-sided p-value of U; None for a single split. Splits of one table overlap, so p is
        smaller than for independent tables: use it to screen, not to prove.
    """

    configuration: str
    model: str
    metric: str
    difference: float
    u: float | None
    p: float | None


def compare_with_original(
    configuration: str, model: str, metric: str, reached: Sequence[float], original: Sequence[float]
) -> AgainstOriginal:
    """Return the difference between a metric of a configuration, measured on n splits, and the
    metric of the unmasked table, measured on m splits, with a test whether it may be chance.

    `reached` and `original` have the metric of each split. The splits are not paired. If all
    metrics are equal, Mann-Whitney's U is n m / 2 and p is 1.
    """
    difference = float(np.mean(reached) - np.mean(original))
    if min(len(reached), len(original)) < 2:
        return AgainstOriginal(configuration, model, metric, difference, None, None)
    if len({*reached, *original}) == 1:
        middle = len(reached) * len(original) / 2
        return AgainstOriginal(configuration, model, metric, difference, middle, 1.0)
    from scipy import stats

    tested = stats.mannwhitneyu(reached, original, alternative="two-sided")
    return AgainstOriginal(
        configuration, model, metric, difference, float(tested.statistic), float(tested.pvalue)
    )


def importances(
    design: Design,
    names: Sequence[str],
    label: Labels,
    split: Split,
    attributes: Sequence[str],
    *,
    seed: int,
) -> dict[str, float]:
    """Return the importance of each of `attributes` in a random forest on the training rows of `split`:
    the mean decrease in impurity (Breiman 2001), adding up to 1, or 0 if none helps.
    """
    shares = dict.fromkeys(attributes, 0.0)
    if len(np.unique(label[split.train])) < 2:
        return shares
    require_extra()
    forest = import_module("sklearn.ensemble").RandomForestClassifier(
        n_estimators=TREES, random_state=seed, n_jobs=1
    )
    with one_thread():
        forest.fit(design.ordinal(split.train), label[split.train])
    return shares | dict(zip(names, forest.feature_importances_.tolist(), strict=True))


def importance_shift(masked: Mapping[str, float], other: Mapping[str, float]) -> float:
    """Return half the sum of the absolute differences of importances, 0 to 1."""
    return 0.5 * float(sum(abs(masked[name] - other[name]) for name in masked))
