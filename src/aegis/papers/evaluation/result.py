"""Hold the result of an evaluation: metrics of trained models, and how well the rankings by
measures agree with them.
"""

from __future__ import annotations

import html
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from aegis.advisor import Advice, Ranked
from aegis.arrays import Floats
from aegis.errors import require_known
from aegis.papers.evaluation.metrics import METRICS
from aegis.papers.evaluation.original import AgainstOriginal, compare_with_original
from aegis.papers.evaluation.training import Training
from aegis.papers.figures import Agreement, Score
from aegis.policy import Configuration
from aegis.words import html_table, json_fields

if TYPE_CHECKING:
    import polars

    from aegis.report import ReportSection

TIE = 1e-9
"""Scores count as equal if their difference, divided by the largest score, is below this limit."""


@dataclass(frozen=True)
class Judged:
    """The scores that a measure, or an estimator from the literature (comparator), gives to all
    configurations.

    Attributes
    ----------
    name
        Name of the measure or comparator.
    sign
        1 if a higher score is better, -1 if a lower score is better.
    scores
        The score of each configuration.
    kind
        "measure" or "comparator".
    """

    name: str
    sign: int
    scores: Mapping[str, float]
    kind: str = "measure"


def spearman(first: Sequence[float] | Floats, second: Sequence[float] | Floats) -> float | None:
    """Return Spearman's rank correlation; None if all values of `first` or of `second` are equal.

    Equal values have the mean of their ranks.
    """
    return _correlation("spearmanr", first, second)


def kendall(first: Sequence[float] | Floats, second: Sequence[float] | Floats) -> float | None:
    """Return Kendall's tau-b; None if all values of `first` or of `second` are equal."""
    return _correlation("kendalltau", first, second)


def _correlation(name: str, first: Any, second: Any) -> float | None:
    x, y = np.asarray(first, dtype=np.float64), np.asarray(second, dtype=np.float64)
    if len(x) < 2 or np.ptp(x) == 0 or np.ptp(y) == 0:
        return None
    from scipy import stats

    return float(getattr(stats, name)(x, y).statistic)


def agree(
    judged: Judged, model: str, metric: str, values: Mapping[str, float], *, sign: int, share: bool
) -> Agreement:
    """Compare the order of configurations by a measure with their order by the metric of a trained
    model.

    Parameters
    ----------
    judged
        The measure and its scores.
    model, metric
        The names of the model and the metric, for the result.
    values
        The mean metric of each configuration; at least one entry.
    sign
        1 if a higher metric is better, -1 if a lower metric is better.
    share
        Whether the metric is a share, such as accuracy.
    """
    names = list(values)
    scores = judged.sign * np.array([judged.scores[name] for name in names])
    merit = sign * np.array([values[name] for name in names])
    best = scores >= scores.max() - TIE * max(1.0, float(np.abs(scores).max()))
    loss = float(merit.max() - merit[best].mean())
    return Agreement(
        judged.name,
        model,
        metric,
        spearman(scores, merit),
        kendall(scores, merit),
        loss,
        100.0 * loss if share else loss,
        tuple(name for name, chosen in zip(names, best, strict=True) if chosen),
    )


def reliability(values: Mapping[str, Mapping[int, float]]) -> float | None:
    """Return the Spearman correlation, over configurations, of the mean metric on even splits with
    the mean metric on odd splits; None if there is only one split.

    A measure can hardly correlate with the metric more strongly than that.

    Parameters
    ----------
    values
        The metric of each configuration on each split.
    """
    halves: list[list[float]] = [[], []]
    for by_split in values.values():
        for half in (0, 1):
            figures = [value for split, value in by_split.items() if split % 2 == half]
            if not figures:
                return None
            halves[half].append(float(np.mean(figures)))
    return spearman(*halves)


SCHEMA_VERSION = 1
"""Version of the JSON form of `Evaluation`."""
UNMASKED = "(unmasked)"
"""The name of the unmasked table among the trainings; no configuration can have this name."""


@dataclass(frozen=True, eq=False)
class Evaluation:
    """Results of models that Aegis trained on each configuration.

    Attributes
    ----------
    models
        Names of the models, in the requested order.
    metric
        The metric with which `agreement` compares measures.
    configurations
        The configurations by name, in the requested order.
    advice
        Scores and admissibility of the same configurations.
    judged
        The measures and the comparators, with the scores that they give the configurations.
    trainings
        All trainings, including those on the unmasked table.
    splits, test_share, seed
        Number of splits, share of test rows, and seed.
    train_rows, test_rows
        Number of training and of test rows in one split.
    reused
        Number of trainings whose results Aegis read from the store.
    releases
        Record-level releases by name, on which models are trained. `agreement` does not include
        them.
    importance_shift
        For each record-level release and for the best configuration: how much its feature
        importances differ from the importances in the unmasked table, from 0 (equal) to 1.
    notes
        Notes on rare classes and on solvers that did not converge.
    timings
        Seconds per step.

    Examples
    --------
    >>> import aegis
    >>> study = aegis.Study("data/adult.parquet", "examples/adult/policy.yaml")
    >>> evaluation = study.evaluate(generate_count=2, models=("nb",), comparators=())
    >>> evaluation.metric, len(evaluation.trainings)
    ('accuracy', 3)
    """

    models: tuple[str, ...]
    metric: str
    configurations: Mapping[str, Configuration]
    advice: Advice
    judged: tuple[Judged, ...]
    trainings: tuple[Training, ...]
    splits: int
    test_share: float
    seed: int
    train_rows: int
    test_rows: int
    reused: int = 0
    releases: Mapping[str, Ranked] = field(default_factory=dict)
    importance_shift: Mapping[str, float] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    timings: Mapping[str, float] = field(default_factory=dict)

    @cached_property
    def _values(self) -> dict[tuple[str, str], dict[str, dict[int, float]]]:
        """The metric on each split, by model and metric, then by configuration."""
        figures: dict[tuple[str, str], dict[str, dict[int, float]]] = {}
        for training in self.trainings:
            for metric, value in training.metrics.items():
                if value is not None:
                    by_configuration = figures.setdefault((training.model, metric), {})
                    by_configuration.setdefault(training.configuration, {})[training.split] = value
        return figures

    @cached_property
    def scores(self) -> tuple[Score, ...]:
        """The metrics of the trained models: one entry for each model, metric and configuration.
        Undefined metrics are left out.
        """
        scores = []
        for (model, metric), values in self._values.items():
            raw = values.get(UNMASKED)
            unmasked = None if raw is None else float(np.mean(list(raw.values())))
            for name in (*self.configurations, *self.releases):
                if name in values:
                    figures = list(values[name].values())
                    spread = float(np.std(figures, ddof=1)) if len(figures) > 1 else None
                    mean = float(np.mean(figures))
                    scores.append(Score(model, metric, name, mean, spread, unmasked))
        return tuple(scores)

    @cached_property
    def agreement(self) -> tuple[Agreement, ...]:
        """How well the order of configurations by each measure agrees with their order by each
        model's metric.
        """
        return self.agreement_by(self.metric)

    def agreement_by(self, metric: str) -> tuple[Agreement, ...]:
        """Return how well the order of configurations by each measure agrees with their order by
        one metric of each model.

        The method skips models without the metric. For example, support vector machines have no
        log loss. Raises `PolicyError` for an unknown metric.

        Examples
        --------
        >>> import aegis
        >>> study = aegis.Study("data/adult.parquet", "examples/adult/policy.yaml")
        >>> evaluation = study.evaluate(generate_count=2, models=("nb",), comparators=())
        >>> sorted({agreement.model for agreement in evaluation.agreement_by("accuracy")})
        ['nb']
        """
        chosen = METRICS.get(metric)
        agreements = []
        for model in self.models:
            means = self.means(model, metric)
            if means:
                agreements += [
                    agree(judged, model, metric, means, sign=chosen.sign, share=chosen.share)
                    for judged in self.judged
                ]
        return tuple(agreements)

    @cached_property
    def against_original(self) -> tuple[AgainstOriginal, ...]:
        """The difference between each configuration or release and the unmasked table, for each
        metric.
        """
        return tuple(
            compare_with_original(
                name, model, metric, list(values[name].values()), list(values[UNMASKED].values())
            )
            for (model, metric), values in self._values.items()
            if UNMASKED in values
            for name in (*self.configurations, *self.releases)
            if name in values
        )

    def means(
        self, model: str, metric: str | None = None, *, releases: bool = False
    ) -> dict[str, float]:
        """Return, for each configuration, the mean metric over the splits.

        The result is empty if the metric is not defined for the model. With `releases`, the result
        includes record-level releases.

        Examples
        --------
        >>> import aegis
        >>> study = aegis.Study("data/adult.parquet", "examples/adult/policy.yaml")
        >>> evaluation = study.evaluate(generate_count=2, models=("nb",), comparators=())
        >>> sorted(evaluation.means("nb")) == sorted(evaluation.configurations)
        True
        """
        require_known("model of this evaluation", model, self.models)
        values = self._values.get((model, metric or self.metric), {})
        return {
            name: float(np.mean(list(values[name].values())))
            for name in (*self.configurations, *(self.releases if releases else ()))
            if name in values
        }

    @cached_property
    def reliability(self) -> dict[str, float | None]:
        """For each model, the rank correlation of its metrics on one half of the splits with its
        metrics on the other half; None if there is only one split.
        """
        by_model = {}
        for model in self.models:
            values = self._values.get((model, self.metric), {})
            configured = {name: v for name, v in values.items() if name in self.configurations}
            by_model[model] = reliability(configured) if configured else None
        return by_model

    @property
    def unconverged(self) -> dict[str, int]:
        """The number of trainings that did not converge, by model, if there are any."""
        counts = {
            m: sum(not t.converged for t in self.trainings if t.model == m) for m in self.models
        }
        return {model: count for model, count in counts.items() if count}

    def report_sections(self) -> tuple[ReportSection, ...]:
        """Return the sections on the trained models for a report.

        Examples
        --------
        >>> import aegis
        >>> study = aegis.Study("data/adult.parquet", "examples/adult/policy.yaml")
        >>> evaluation = study.evaluate(generate_count=2, models=("nb",), comparators=())
        >>> [section.title for section in evaluation.report_sections()]
        ['Trained models']
        """
        from aegis.papers.report.section import trained_section

        section = trained_section(self, self.advice)
        return () if section is None else (section,)

    def to_dict(self) -> dict[str, Any]:
        """Return the documented JSON form.

        Examples
        --------
        >>> import aegis
        >>> study = aegis.Study("data/adult.parquet", "examples/adult/policy.yaml")
        >>> evaluation = study.evaluate(generate_count=2, models=("nb",), comparators=())
        >>> evaluation.to_dict()["models"]
        ['nb']
        """
        admissible = {ranked.name: ranked.admissible for ranked in self.advice.ranking}
        return {
            "schema": SCHEMA_VERSION,
            **json_fields(self, "metric", "models", "splits"),
            **json_fields(self, "test_share", "train_rows", "test_rows"),
            "configurations": {
                name: {"masks": configuration.spec(), "admissible": admissible[name]}
                for name, configuration in self.configurations.items()
            },
            "releases": {
                name: {"method": release.to_dict()["method"], "admissible": release.admissible}
                for name, release in self.releases.items()
            },
            **json_fields(self, "against_original", "importance_shift"),
            "measures": {
                judged.name: {
                    "kind": judged.kind,
                    "better": "higher" if judged.sign > 0 else "lower",
                    "scores": dict(judged.scores),
                }
                for judged in self.judged
            },
            **json_fields(self, "scores", "agreement", "reliability", "trainings"),
            **json_fields(self, "unconverged", "reused", "notes", "timings"),
        }

    def rows(self) -> list[dict[str, Any]]:
        """Return one flat row per training: configuration, model, split and the metrics.

        Examples
        --------
        >>> import aegis
        >>> study = aegis.Study("data/adult.parquet", "examples/adult/policy.yaml")
        >>> evaluation = study.evaluate(generate_count=2, models=("nb",), comparators=())
        >>> len(evaluation.rows())
        3
        """
        return [
            {
                **json_fields(training, "configuration", "model", "split"),
                **training.metrics,
                **json_fields(training, "converged", "seconds"),
            }
            for training in self.trainings
        ]

    def to_polars(self) -> polars.DataFrame:
        """Return `rows()` as a Polars frame (Polars must be installed).

        Examples
        --------
        >>> import aegis
        >>> study = aegis.Study("data/adult.parquet", "examples/adult/policy.yaml")
        >>> evaluation = study.evaluate(generate_count=2, models=("nb",), comparators=())
        >>> evaluation.to_polars().height
        3
        """
        import polars

        return polars.DataFrame(self.rows())

    def __repr__(self) -> str:
        return (
            f"Evaluation({len(self.configurations)} configurations, "
            f"{', '.join(self.models)}, {self.splits} splits of {self.train_rows:,} + "
            f"{self.test_rows:,} rows, {len(self.trainings)} trainings)"
        )

    def _repr_html_(self) -> str:
        rows = (
            (a.measure, a.model, _cell(a.spearman), _cell(a.kendall), f"{a.loss:.4f}")
            for a in self.agreement
        )
        table = html_table(("measure", "model", "Spearman", "Kendall", "loss"), rows)
        return f"<p>{html.escape(repr(self))}</p>{table}"


def _cell(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f}"
