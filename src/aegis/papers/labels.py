"""Train models for each of several labels, on the same masked tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from aegis.advisor import Advice
from aegis.options import asked
from aegis.papers.requests import NUMBER_MODELS, EvaluationRequest
from aegis.policy import Configuration, LabelTask

if TYPE_CHECKING:
    from aegis.papers.evaluation import Evaluation
    from aegis.study import Study

FINALISTS = 3
"""Number of entries of an advice on which models are trained."""


def evaluate_labels(
    study: Study,
    configurations: Mapping[str, Configuration] | Sequence[Configuration] | Advice | None,
    options: Mapping[str, Any],
) -> dict[str, Evaluation]:
    """Return an evaluation for each label, by its column, as if the table had no other label.

    The configurations and the verdicts of the rule do not depend on the label.

    Raises
    ------
    PolicyError
        Record-level methods are requested, but they support only one label; or an error of
        `evaluate_models`.
    """
    from aegis.papers.evaluation import evaluate_models

    if options.get("methods") or study.policy.anonymizers:
        study.policy.refuse_several("Training on record-level releases")
    count = options.get("generate_count")
    if isinstance(configurations, Advice):
        finalists = [r for r in configurations.ranking if r.admissible][:FINALISTS]
        advice = replace(configurations, ranking=tuple(finalists))
    else:
        advice = study.rank(configurations, generate_count=count, methods=())
    evaluations = {}
    for task in study.policy.tasks:
        alone = study.under(study.policy.of_task(task))
        names = {a.name for a in alone.summary.all_attributes}
        masked = [
            Configuration(r.name, {n: m for n, m in r.configuration.masks.items() if n in names})
            for r in advice.ranking
        ]
        own = {"seed": study.seed, **options, **_suiting(task, options), "generate_count": None}
        evaluation = evaluate_models(
            alone.rows_to("train models on"),
            alone.summary,
            alone.plan,
            alone.policy,
            asked(EvaluationRequest, None, {**own, "configurations": masked}),
            progress=study.progress,
        )
        judged = _with_verdicts(evaluation.advice, advice)
        evaluations[task.label.column] = replace(evaluation, advice=judged)
    return evaluations


def _suiting(task: LabelTask, options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the requested models and metric that suit a label, or else the label's defaults."""
    from aegis.papers.evaluation import METRICS

    suiting: dict[str, Any] = {}
    metric, models = options.get("metric"), options.get("models")
    if metric is not None and METRICS.get(metric).label is not task.label.kind:
        suiting["metric"] = None
    if models is not None and task.label.is_number:
        suiting["models"] = [m for m in models if m in NUMBER_MODELS] or list(NUMBER_MODELS)
    return suiting


def _with_verdicts(advice: Advice, whole: Advice) -> Advice:
    """Return the advice with the rule's verdicts from the advice on the whole table."""
    said = {ranked.name: ranked for ranked in whole.ranking}
    ranking = [
        replace(
            ranked,
            admissible=said[ranked.name].admissible,
            smallest_class=said[ranked.name].smallest_class,
            suppressed_rows=said[ranked.name].suppressed_rows,
            violations=said[ranked.name].violations,
        )
        for ranked in advice.ranking
    ]
    in_order = sorted(ranking, key=lambda ranked: ranked.admissible is False)
    return replace(advice, ranking=tuple(in_order))
