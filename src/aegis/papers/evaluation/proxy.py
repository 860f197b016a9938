"""Train small models on sampled rows of the best configurations, to check the estimates."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from aegis.advisor import Advice, Scorer
from aegis.advisor.figures import ProxyFigures
from aegis.measures import MEASURES
from aegis.papers.evaluation.coding import CodedTable, code_table
from aegis.papers.evaluation.evaluate import run_task, tasks
from aegis.papers.evaluation.models import choose_models
from aegis.papers.evaluation.splits import make_splits
from aegis.policy import Policy
from aegis.progress import SILENT, Progress
from aegis.sources import Source
from aegis.summary import Summary

FINALISTS = 5
"""Number of configurations on which models are trained; these are the best ones."""
ROWS = 2_000
"""Most rows that are drawn for the training and the test."""
SPLITS = 3
TEST_SHARE = 0.3
METRICS = {"accuracy": "accuracy", "nats": "log_loss"}
"""The metric for each unit of the measure that ranks; for other units, the metric is the AUC."""


def train_proxy(
    source: Source,
    summary: Summary,
    policy: Policy,
    advice: Advice,
    *,
    models: Sequence[str] = ("lr",),
    seed: int = 0,
    progress: Progress = SILENT,
) -> Advice:
    """Add to the advice the results of small models, trained on sampled rows of its best entries.

    The ranking does not change, because a sample is less precise than the counts of all rows.

    Parameters
    ----------
    source, summary, policy
        The table, its summary and its policy.
    advice
        The advice; models are trained on its best `FINALISTS` admissible configurations.
        Record-level releases are skipped.
    models
        Names of models, as in an evaluation.
    seed
        Seed of the drawn rows and the splits; all configurations use the same rows.

    Raises
    ------
    PolicyError
        A model is unknown, or the extra `ml` is not installed.
    """
    policy.require_label("A proxy")
    policy.refuse_weight("A proxy")
    chosen = choose_models(models)
    able = [ranked for ranked in advice.ranking if ranked.admissible and ranked.method is None][
        :FINALISTS
    ]
    sample = _drawn(code_table(source, summary, policy, seed=seed), seed)
    splits = make_splits(sample.label, count=SPLITS, test_share=TEST_SHARE, seed=seed)
    metric = METRICS.get(MEASURES.get(advice.measure).unit, "roc_auc")
    scorer = Scorer(summary)
    choices = {ranked.name: scorer.choose(ranked.configuration) for ranked in able}
    reached: dict[str, list[float]] = {}
    with progress.step("Training proxies", len(choices) * len(chosen) * SPLITS) as step:
        for task in tasks(sample, choices, chosen, splits, seed):
            _, training = run_task(task)
            value = training.metrics[metric]
            if value is not None:
                reached.setdefault(training.configuration, []).append(value)
            step.advance()
    figures = ProxyFigures(
        models=tuple(model.name for model in chosen),
        rows=int((sample.label >= 0).sum()),
        splits=SPLITS,
        metric=metric,
        reached={name: float(np.mean(values)) for name, values in reached.items()},
    )
    return replace(advice, proxy=figures)


def _drawn(rows: CodedTable, seed: int) -> CodedTable:
    """Draw at most `ROWS` labelled rows; return the table, in which all other rows have no label."""
    known = np.flatnonzero(rows.label >= 0)
    drawn = np.random.default_rng(seed).choice(known, min(ROWS, len(known)), replace=False)
    label = np.full_like(rows.label, -1)
    label[drawn] = rows.label[drawn]
    return replace(rows, label=label)
