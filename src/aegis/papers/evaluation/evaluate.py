"""Train models on every configuration, and compare the measures with the results; or train small
models on sampled rows of the best configurations, to check the estimates.

Each configuration masks all rows. No row is suppressed, because the measures also score masks
before suppression. Every split has the same rows for all configurations, and is stratified by
class. Models with one-hot encoding get one 0/1 column per masked value, also for numbers, and no
values are pooled. To predict a number, ridge regression gets one number per masked value of an
ordered attribute, as the scores for linear models do: the mean of the original numbers that the
value represents. Gradient boosting gets the rank of the masked value. Models predict the unmasked
label (or the label cut into the policy's bins), even if a configuration masks it. Each training
runs on one thread.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from importlib import import_module
from itertools import chain
from typing import TYPE_CHECKING

import numpy as np

from aegis.advisor import Advice, Choice, PrivacyPlan, Scorer, rank_configurations
from aegis.advisor.figures import ProxyFigures
from aegis.errors import PolicyError
from aegis.files import SILENT, Progress, Step
from aegis.measures import MEASURES, LabelKind, measures_of
from aegis.papers.evaluation.coding import CodedTable, Design, code_table
from aegis.papers.evaluation.comparators import compare
from aegis.papers.evaluation.metrics import METRICS
from aegis.papers.evaluation.result import UNMASKED, Evaluation, Judged
from aegis.papers.evaluation.training import (
    Model,
    Split,
    Store,
    Task,
    Training,
    check_splits,
    choose_models,
    make_splits,
    rare_classes,
    train,
)
from aegis.papers.requests import CLASS_MODELS, NUMBER_MODELS, EvaluationRequest
from aegis.policy import Policy
from aegis.sources import Source
from aegis.summary import Summary
from aegis.words import counted

if TYPE_CHECKING:
    from aegis.papers.evaluation.releases import CodedRelease


def check_request(request: EvaluationRequest) -> None:
    """Raise `PolicyError` if options of an evaluation are invalid. The table is not read."""
    if request.models is not None:
        choose_models(request.models)
    if request.metric is not None:
        METRICS.get(request.metric)
    check_splits(request.splits, request.test_share)
    if request.jobs < 1:
        raise PolicyError(f"{request.jobs} jobs were asked for.", hint="Ask for at least 1.")


def evaluate_models(
    source: Source,
    summary: Summary,
    plan: PrivacyPlan,
    policy: Policy,
    request: EvaluationRequest,
    *,
    progress: Progress = SILENT,
) -> Evaluation:
    """Train each model on each configuration, and compare its metrics with the scores by measures.

    `progress` receives one step per stage.

    Raises
    ------
    PolicyError
        A model, metric, comparator, method or mask is unknown, a parameter is out of range, or
        scikit-learn is not installed.
    DataError
        There is no row to test on.
    """
    chosen, metric = _checked(policy, request)
    started = time.perf_counter()
    advice = _ranked(summary, plan, policy, request, progress)
    listed = {r.name: r.configuration for r in sorted(advice.ranking, key=lambda r: r.name)}
    scorer = Scorer(summary)
    choices = {name: scorer.choose(configuration) for name, configuration in listed.items()}
    judged = _judged(policy, scorer, choices, request, progress)
    rows = code_table(source, summary, policy, seed=request.seed)
    divided = _divided(rows, request)
    advice, releases = _releases(source, policy, advice, rows, summary, request, progress)
    ready = time.perf_counter()
    trained = {**choices, UNMASKED: scorer.unmasked} if request.unmasked else choices
    trainings, reused = _train_all(rows, trained, releases, chosen, divided, request, progress)
    shifts = _shifts(rows, scorer, advice, choices, releases, divided[0], request.seed)
    evaluation = Evaluation(
        models=tuple(model.name for model in chosen),
        metric=metric,
        configurations=listed,
        advice=advice,
        judged=judged,
        trainings=trainings,
        releases={name: release.ranked for name, release in releases.items()},
        importance_shift=shifts,
        splits=request.splits,
        test_share=request.test_share,
        seed=request.seed,
        train_rows=len(divided[0].train),
        test_rows=len(divided[0].test),
        reused=reused,
        timings=_timings(started, ready),
    )
    return _noted(evaluation, rows, divided)


def _timings(started: float, ready: float) -> dict[str, float]:
    now = time.perf_counter()
    return {"scoring": ready - started, "training": now - ready, "total": now - started}


def _ranked(
    summary: Summary,
    plan: PrivacyPlan,
    policy: Policy,
    request: EvaluationRequest,
    progress: Progress,
) -> Advice:
    return rank_configurations(
        summary,
        plan,
        policy,
        configurations=request.configurations,
        generate_count=request.generate_count,
        seed=request.seed,
        progress=progress,
    )


def _divided(rows: CodedTable, request: EvaluationRequest) -> tuple[Split, ...]:
    return make_splits(
        rows.label,
        count=request.splits,
        test_share=request.test_share,
        seed=request.seed,
        persons=rows.persons,
    )


def _judged(
    policy: Policy,
    scorer: Scorer,
    choices: Mapping[str, Choice],
    request: EvaluationRequest,
    progress: Progress,
) -> tuple[Judged, ...]:
    """Score the configurations by every measure and, for classes without weights, by comparators."""
    judged = judge(scorer, choices, progress)
    if not policy.label.is_number and policy.weight is None:
        judged += compare(
            scorer, choices, request.comparators, seed=request.seed, progress=progress
        )
    return judged


def _checked(policy: Policy, request: EvaluationRequest) -> tuple[tuple[Model, ...], str]:
    """Return the models and the metric; refuse those that do not fit the label or the policy."""
    check_request(request)
    policy.require_label("Training", number=True)
    if request.comparators or request.methods or policy.anonymizers:
        policy.require_label("Training on record-level releases, or with comparators,")
        policy.refuse_weight("Training on record-level releases, or with comparators,")
    kind = policy.label.kind
    if kind is LabelKind.NUMBER:
        chosen = tuple(m.of_number() for m in choose_models(request.models or NUMBER_MODELS))
    else:
        chosen = choose_models(request.models or CLASS_MODELS)
    metric = request.metric or ("r2" if kind is LabelKind.NUMBER else "accuracy")
    if policy.weight is not None:
        for model in (model for model in chosen if not model.takes_weights):
            policy.refuse_weight(f"Model {model.name!r}, which takes no weights,")
    if METRICS.get(metric).label is not kind:
        allowed = [m.name for m in METRICS if m.label is kind]
        what = "a number" if kind is LabelKind.NUMBER else "of classes"
        raise PolicyError(
            f"Metric {metric!r} does not suit the label, which is {what}.",
            hint=f"Allowed: {', '.join(allowed)}.",
        )
    return chosen, metric


def judge(
    scorer: Scorer, choices: Mapping[str, Choice], progress: Progress = SILENT
) -> tuple[Judged, ...]:
    """Return the score of every configuration by every measure that suits the label."""
    judged = []
    measures = measures_of(scorer.summary.label.kind)
    with progress.step("Scoring under every measure", len(measures)) as step:
        for measure in measures:
            step.note(measure.name)
            scores = {name: scorer.value(choice, measure) for name, choice in choices.items()}
            judged.append(Judged(measure.name, measure.direction.sign, scores))
            step.advance()
    return tuple(judged)


def _releases(
    source: Source,
    policy: Policy,
    advice: Advice,
    rows: CodedTable,
    summary: Summary,
    request: EvaluationRequest,
    progress: Progress,
) -> tuple[Advice, dict[str, CodedRelease]]:
    """Return the advice with record-level releases added, and these as codes by name."""
    methods, seed = request.methods, request.seed
    if methods is None and not policy.anonymizers:
        return advice, {}
    from aegis.advisor.methods import RecordRanker, choose_recipes, insert_methods, renamed
    from aegis.papers.evaluation.releases import code_release

    recipes = renamed(choose_recipes(policy, methods, seed=seed), advice)
    if not recipes:
        return advice, {}
    measure = MEASURES.get(advice.measure)
    ranker = RecordRanker(summary, source, policy, measure, seed, progress)
    releases = {}
    for recipe in recipes:
        release = ranker.make(recipe)
        ranked = ranker.rank(release)
        names = tuple(summary.attributes)
        releases[recipe.name] = code_release(ranker.read, release, ranked, rows, names)
    both = insert_methods(
        advice, [release.ranked for release in releases.values()], ranker.read.notes
    )
    return both, releases


def _shifts(
    rows: CodedTable,
    scorer: Scorer,
    advice: Advice,
    choices: Mapping[str, Choice],
    releases: Mapping[str, CodedRelease],
    split: Split,
    seed: int,
) -> dict[str, float]:
    """Return how far the importances in a random forest differ from those of the unmasked table, 0 to 1,
    for each release and the best configuration; empty without releases.
    """
    if not releases:
        return {}
    from aegis.papers.evaluation.original import importance_shift, importances

    attributes = tuple(rows.codes)

    def of_choice(choice: Choice) -> dict[str, float]:
        names = rows.designed(choice)
        design = rows.design(choice)
        return importances(design, names, rows.label, split, attributes, seed=seed)

    original = of_choice(scorer.unmasked)
    best = next((r.name for r in advice.ranking if r.method is None), None)
    shifts = {} if best is None else {best: importance_shift(original, of_choice(choices[best]))}
    for name, release in releases.items():
        moved = importances(
            release.design, release.names, rows.label, release.split(split), attributes, seed=seed
        )
        shifts[name] = importance_shift(original, moved)
    return shifts


def tasks(
    rows: CodedTable,
    choices: Mapping[str, Choice],
    models: Sequence[Model],
    splits: Sequence[Split],
    seed: int,
    releases: Mapping[str, CodedRelease] | None = None,
) -> Iterator[Task]:
    """Yield a task for each configuration or release, model and split; one masked table at a time."""
    designs: Iterator[tuple[str, Design, Sequence[Split]]] = chain(
        ((name, rows.design(choice), splits) for name, choice in choices.items()),
        (
            (name, release.design, [release.split(split) for split in splits])
            for name, release in (releases or {}).items()
        ),
    )
    for name, design, divided in designs:
        for model in models:
            for split in divided:
                yield Task(
                    configuration=name,
                    design=design,
                    label=rows.label,
                    classes=len(rows.classes),
                    model=model,
                    split=split.number,
                    train=split.train,
                    test=split.test,
                    seed=seed + split.number,
                    response=rows.response,
                    weights=rows.weights,
                )


def _train_all(
    rows: CodedTable,
    choices: Mapping[str, Choice],
    releases: Mapping[str, CodedRelease],
    models: Sequence[Model],
    splits: Sequence[Split],
    request: EvaluationRequest,
    progress: Progress,
) -> tuple[tuple[Training, ...], int]:
    """Train each model on each configuration, release and split. Return the results in a fixed
    order, and how many came from the store.
    """
    total = (len(choices) + len(releases)) * len(models) * len(splits)
    stored_trainings: list[Training] = []
    done: list[Training] = []
    store = Store(request.store)
    all_tasks = tasks(rows, choices, models, splits, request.seed, releases)
    with progress.step("Training models", total) as step:
        waiting = _unknown(all_tasks, store, stored_trainings, step)
        try:
            for key, training in _run(waiting, request.jobs):
                store.add(key, training)
                done.append(training)
                step.note(f"{training.model} on {training.configuration}")
                step.advance()
        finally:
            store.close()
    order = {name: i for i, name in enumerate((*choices, *releases))}
    model_order = {model.name: i for i, model in enumerate(models)}
    trainings = sorted(
        [*stored_trainings, *done],
        key=lambda t: (order[t.configuration], model_order[t.model], t.split),
    )
    return tuple(trainings), len(stored_trainings)


def _unknown(
    all_tasks: Iterator[Task], store: Store, stored_trainings: list[Training], step: Step
) -> Iterator[Task]:
    """Yield the tasks that are not in the store; append the stored results of the others."""
    for task in all_tasks:
        finished = store.get(task)
        if finished is None:
            yield task
        else:
            stored_trainings.append(finished)
            step.advance()


def run_task(task: Task) -> tuple[str, Training]:
    """Train and test one model; return the task's key and the result."""
    return task.key, train(task)


def _run(waiting: Iterator[Task], jobs: int) -> Iterator[tuple[str, Training]]:
    """Run tasks, `jobs` in parallel; yield key and result when ready."""
    if jobs == 1:
        yield from map(run_task, waiting)
        return
    joblib = import_module("joblib")  # comes with scikit-learn
    pool = joblib.Parallel(n_jobs=jobs, return_as="generator_unordered", pre_dispatch=2 * jobs)
    yield from pool(joblib.delayed(run_task)(task) for task in waiting)


def _noted(evaluation: Evaluation, rows: CodedTable, splits: Sequence[Split]) -> Evaluation:
    notes = [*evaluation.advice.warnings]
    if rows.weights is not None:
        notes.append(
            "models are trained and tested with the weights of the rows, which together are worth "
            f"{counted(round(float(rows.weights.sum())), 'row')} of equal weight"
        )
    notes += [
        f"class {rows.classes[class_]!r} has one row only in a training part: models learn next "
        "to nothing of it"
        for class_ in rare_classes(tuple(splits), rows.label).tolist()
    ]
    for model, count in evaluation.unconverged.items():
        total = sum(t.model == model for t in evaluation.trainings)
        notes.append(f"{count:,} of {total:,} trainings of {model} did not converge; they are kept")
    return replace(evaluation, notes=tuple(notes))


FINALISTS = 5
"""Number of configurations on which models are trained; these are the best ones."""
ROWS = 2_000
"""Most rows that are drawn for the training and the test."""
SPLITS = 3
TEST_SHARE = 0.3
PROXY_METRICS = {"accuracy": "accuracy", "nats": "log_loss"}
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

    The best `FINALISTS` admissible configurations are trained, on the same rows and splits, which
    `seed` draws; record-level releases are skipped. The ranking does not change, because a sample
    is less precise than the counts of all rows.

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
    sample = _sampled_rows(code_table(source, summary, policy, seed=seed), seed)
    splits = make_splits(sample.label, count=SPLITS, test_share=TEST_SHARE, seed=seed)
    metric = PROXY_METRICS.get(MEASURES.get(advice.measure).unit, "roc_auc")
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


def _sampled_rows(rows: CodedTable, seed: int) -> CodedTable:
    """Return the table with at most `ROWS` labelled rows; others lose their label."""
    labelled = np.flatnonzero(rows.label >= 0)
    sample = np.random.default_rng(seed).choice(labelled, min(ROWS, len(labelled)), replace=False)
    label = np.full_like(rows.label, -1)
    label[sample] = rows.label[sample]
    return replace(rows, label=label)
