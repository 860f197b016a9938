"""Apply the papers' methods to a study: estimates, reconstructions and trained models."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from aegis.advisor import Advice, Scorer, with_privacy
from aegis.advisor.released import ReleasedRows, with_utility
from aegis.options import request_with
from aegis.papers.requests import NUMBER_MODELS, EvaluationRequest
from aegis.policy import Configuration, LabelTask
from aegis.summary import Information

if TYPE_CHECKING:
    from aegis.advisor.ranked import Estimate
    from aegis.papers.estimates.deviation import JointEstimate
    from aegis.papers.evaluation import Evaluation
    from aegis.study import Study

Trained = Mapping[str, Configuration] | Sequence[Configuration] | Advice
FINALISTS = 3
"""Number of an advice's entries on which models are trained."""


def check_evaluation(study: Study, **options: Any) -> None:
    """Raise an error if any of the `options` of an evaluation is invalid, before the table is read."""
    from aegis.papers.evaluation import check_request

    study.rows_to("train models on")
    check_request(request_with(EvaluationRequest, None, options))


def evaluate(
    study: Study, configurations: Trained | None = None, **options: Any
) -> Evaluation | dict[str, Evaluation]:
    """Train models on masked tables; return the evaluation or, if the policy has several labels,
    one evaluation for each label.

    If `configurations` is an advice, models are trained on its first configurations that meet the
    privacy rule.
    """
    if study.policy.tasks:
        return evaluate_labels(study, configurations, options)
    if isinstance(configurations, Advice):
        return _of_finalists(study, configurations, options)
    evaluation = _evaluated(study, configurations, options)
    released = ReleasedRows(study.plan, study.source, study.policy, study.seed)
    scorer = Scorer(study.summary)
    advice = with_utility(evaluation.advice, released, scorer, study.progress)
    advice = with_privacy(advice, study.summary, study.plan, study.policy)
    return replace(evaluation, advice=advice)


def _evaluated(
    study: Study,
    configurations: Mapping[str, Configuration] | Sequence[Configuration] | None,
    options: Mapping[str, Any],
) -> Evaluation:
    from aegis.papers.evaluation import check_request, evaluate_models

    source = study.rows_to("train models on")
    request = request_with(
        EvaluationRequest,
        None,
        {"seed": study.seed, **options, "configurations": configurations},
    )
    check_request(request)
    return evaluate_models(
        source, study.summary, study.plan, study.policy, request, progress=study.progress
    )


def _of_finalists(study: Study, advice: Advice, options: Mapping[str, Any]) -> Evaluation:
    """Train models on the first configurations of an advice that meet the privacy rule."""
    finalists = [ranked for ranked in advice.ranking if ranked.admissible][:FINALISTS]
    masked = [ranked.configuration for ranked in finalists if ranked.method is None]
    methods = [
        replace(ranked.method.recipe, name=ranked.name)
        for ranked in finalists
        if ranked.method is not None
    ]
    evaluation = _evaluated(study, masked or None, {"methods": methods, **options})
    return replace(evaluation, advice=advice, judged=())


def proxy(study: Study, advice: Advice, models: Sequence[str]) -> Advice:
    """Add to the advice the results of small models, trained on sampled rows of its best entries.

    `models` are the kinds of models for which the advice predicted a metric. For the kind `pairs`,
    boosted trees are trained.
    """
    from aegis.measures import Learner
    from aegis.papers.evaluation.evaluate import train_proxy

    trained = tuple(Learner.GBDT if model == Learner.PAIRS else model for model in models)
    return train_proxy(
        study.rows_to("train models on"),
        study.summary,
        study.policy,
        advice,
        models=trained,
        seed=study.seed,
        progress=study.progress,
    )


def estimate(
    study: Study,
    configurations: Configuration | Sequence[Configuration],
    *,
    measure: str,
    know: Information | str | None,
    method: str | None,
) -> tuple[Estimate, ...]:
    """Estimate how far a measure of each configuration deviates from the measure of the unmasked
    table. `know` says what is used of unmasked values: their rows by label (`raw`), their rows
    (`histogram`) or `nothing`; None uses all that the summary has. `method` reconstructs the
    unmasked counts.
    """
    from aegis.papers.estimates.deviation import DEFAULT_METHOD, estimate_pud

    listed = [configurations] if isinstance(configurations, Configuration) else configurations
    return estimate_pud(
        study.summary,
        listed,
        measure=measure,
        know=know,
        method=DEFAULT_METHOD if method is None else method,
        progress=study.progress,
    )


def reconstruct(
    study: Study,
    attribute: str,
    *,
    know: Information | str | None,
    method: str | None,
    masks: Sequence[str] | None,
    measure: str,
) -> JointEstimate:
    """Estimate how many rows each unmasked value of an attribute and each label class have, and a
    measure of these counts. `know` says what is used besides masked values: the rows by unmasked
    value and label (`raw`), by unmasked value (`histogram`) or `nothing`. An argument that is None
    gets its default.
    """
    from aegis.papers.estimates.deviation import (
        DEFAULT_METHOD,
        estimate_joint,
        measure_of_attributes,
    )

    measure_of_attributes(measure)
    if know is not None:
        Information.of(know)
    if study.source is not None:
        study.policy.require_label("A reconstruction")
    study.policy.refuse_weight("A reconstruction")
    return estimate_joint(
        study.summary,
        attribute,
        know=know,
        method=DEFAULT_METHOD if method is None else method,
        masks=masks,
        measure=measure,
        seed=study.seed,
        progress=study.progress,
    )


def evaluate_labels(
    study: Study,
    configurations: Mapping[str, Configuration] | Sequence[Configuration] | Advice | None,
    options: Mapping[str, Any],
) -> dict[str, Evaluation]:
    """Return one evaluation for each label of the table, by column name.

    All evaluations have the same configurations, and whether these meet the rule is decided for the
    whole table.

    Raises
    ------
    PolicyError
        Record-level methods are requested, which support only one label; or an error of
        `evaluate_models`.
    """
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
        task_options = {**options, **_suiting(task, options), "generate_count": None}
        evaluation = _evaluated(alone, masked, task_options)
        judged = _with_verdicts(evaluation.advice, advice)
        evaluations[task.label.column] = replace(evaluation, advice=judged)
    return evaluations


def _suiting(task: LabelTask, options: Mapping[str, Any]) -> dict[str, Any]:
    """Return other values for `models` and `metric` (None: the default) if they do not suit the
    label.
    """
    from aegis.papers.evaluation import METRICS

    suiting: dict[str, Any] = {}
    metric, models = options.get("metric"), options.get("models")
    if metric is not None and METRICS.get(metric).label is not task.label.kind:
        suiting["metric"] = None
    if models is not None and task.label.is_number:
        suiting["models"] = [m for m in models if m in NUMBER_MODELS] or list(NUMBER_MODELS)
    return suiting


def _with_verdicts(advice: Advice, table_advice: Advice) -> Advice:
    """Return the advice for one label with the verdicts of the advice on the whole table."""
    by_name = {ranked.name: ranked for ranked in table_advice.ranking}
    ranking = [
        replace(
            ranked,
            admissible=by_name[ranked.name].admissible,
            smallest_class=by_name[ranked.name].smallest_class,
            suppressed_rows=by_name[ranked.name].suppressed_rows,
            violations=by_name[ranked.name].violations,
        )
        for ranked in advice.ranking
    ]
    in_order = sorted(ranking, key=lambda ranked: ranked.admissible is False)
    return replace(advice, ranking=tuple(in_order))
