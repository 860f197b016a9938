"""`aegis evaluate`: train models on the masked tables, and compare the results with the advice."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer

from aegis.cli.files import HTML, Opening, check_outputs, opens_table, written
from aegis.cli.output import (
    Column,
    Output,
    RunOptions,
    fixed,
    heading,
    line,
    number,
    pairs,
    reporting,
    table,
)
from aegis.cli.parameters import (
    Configurations,
    Format,
    Generate,
    PolicyFile,
    ReportFile,
    Table,
    With,
    split_names,
)
from aegis.papers.requests import EvaluationRequest
from aegis.words import counted

if TYPE_CHECKING:
    from rich.console import RenderableType

    from aegis.papers.evaluation import Evaluation

PANEL = "Research"
"""Group of the command in the help."""
EXAMPLES = (
    "aegis evaluate table.csv -p policy.yaml --models lr,gbdt --store trained.jsonl",
    "aegis evaluate table.csv -p policy.yaml --generate 20 --splits 5 --metric roc_auc --jobs 4",
)
MOST_LISTED = 10
"""Number of configurations in the table for people; JSON and CSV hold all configurations."""
FEWEST = 4
"""Least number of configurations for a rank correlation.

Fewer configurations are too often in the same order by chance: three in one of 6 cases, four only
in one of 24 cases.
"""


@dataclass(frozen=True, kw_only=True)
class EvaluateCommand:
    """Options and arguments of `aegis evaluate`."""

    table: Table
    policy_file: PolicyFile
    configurations: Configurations = None
    generate: Generate = None
    request: EvaluationRequest
    comparators: Annotated[
        bool,
        typer.Option(
            "--comparators/--no-comparators",
            help="Also compare estimators from the literature with the trained models.",
        ),
    ] = True
    methods: With = None
    report: ReportFile = None
    opening: Opening
    running: RunOptions

    @property
    def keywords(self) -> dict[str, Any]:
        """The options of the command, in the form that `Study.evaluate` takes."""
        request = self.request
        unchanged = ("metric", "splits", "test_share", "store", "jobs")
        return {name: getattr(request, name) for name in unchanged} | {
            "generate_count": self.generate,
            "models": None if request.models is None else split_names([str(request.models)]),
            "comparators": None if self.comparators else (),
            "methods": split_names(self.methods),
        }


@opens_table
def command(options: EvaluateCommand) -> None:
    """Train models on masked tables, and compare the results with the advice.

    You give a table and its policy. Aegis trains each model on each configuration and
    prints the metric that it reaches. For each measure, it also prints how well the
    measure ranks the configurations (Spearman and Kendall correlations), and how much
    its first choice loses compared with the best configuration. You need scikit-learn
    (the extra `ml`). The command takes minutes to hours; `aegis advise` takes seconds.

    You can stop it at any time. With --store, it keeps the results of finished
    trainings."""
    from aegis.policy import load_configurations, load_policy
    from aegis.study import Study

    table, report, listed = options.table, options.report, options.configurations
    inputs = (table, options.policy_file, listed)
    check_outputs([(report, HTML)], force=options.running.force, inputs=inputs)
    policy = load_policy(options.policy_file)
    if report is not None:
        policy.refuse_several("A report with trained models")
    with reporting(quiet=options.running.quiet) as progress:
        subject = options.opening.source(table, policy, quiet=options.running.quiet)
        study = Study(subject, policy, seed=options.running.seed, progress=progress)
        evaluation = study.evaluate(
            None if listed is None else load_configurations(listed, policy),
            **options.keywords,
        )
        if report is not None:
            study.report(evaluation, report, force=options.running.force)
    shell = options.running.shell
    if isinstance(evaluation, dict):
        _print_labels(shell, evaluation, table)
    else:
        _print(shell, evaluation, table)
    shell.say(*written([report]))


def _print_labels(shell: Output, evaluations: Mapping[str, Evaluation], origin: str) -> None:
    """Print the evaluation of each of several labels; `origin` is the name of the table."""
    data = {"labels": {name: evaluation.to_dict() for name, evaluation in evaluations.items()}}
    rows = [{"label": name, **row} for name, e in evaluations.items() for row in e.rows()]
    if shell.as_data(data, tuple(rows[0]), (tuple(row.values()) for row in rows)):
        return
    for name, evaluation in evaluations.items():
        shell.show(heading(f"Label {name}"))
        _print(shell, evaluation, origin)


def _print(shell: Output, evaluation: Evaluation, origin: str) -> None:
    if shell.format is Format.JSON:
        shell.json(evaluation.to_dict())
        return
    shell.warn(evaluation.notes)
    if shell.format is Format.CSV:
        rows = evaluation.rows()
        shell.csv(tuple(rows[0]), (tuple(row.values()) for row in rows))
        return
    shell.show(*_overview(evaluation, origin), *_configurations(evaluation))
    shell.show(*_against_original(evaluation), *_agreement(evaluation))


def _overview(evaluation: Evaluation, origin: str) -> Iterator[RenderableType]:
    from aegis.papers.evaluation import METRICS

    reused = f", {evaluation.reused:,} of them known from equal ones" if evaluation.reused else ""
    yield pairs(
        (
            ("Table", f"{origin}: {counted(evaluation.advice.summary['rows'], 'row')}"),
            (
                "Splits",
                f"{evaluation.splits} of {evaluation.train_rows:,} training and {evaluation.test_rows:,} test rows",
            ),
            ("Trained", f"{len(evaluation.trainings):,}{reused}"),
            ("Metric", METRICS.get(evaluation.metric).title),
        )
    )


def _configurations(evaluation: Evaluation) -> Iterator[RenderableType]:
    unmasked = {s.model: s.unmasked for s in evaluation.scores if s.metric == evaluation.metric}
    means = {model: evaluation.means(model, releases=True) for model in evaluation.models}
    ranking = evaluation.advice.ranking[:MOST_LISTED]
    rest = len(evaluation.advice.ranking) - len(ranking)
    yield heading(
        f"{evaluation.metric} by configuration" + (f" (the first {len(ranking)})" if rest else "")
    )
    rows = [
        (
            ranked.name,
            fixed(ranked.score),
            "met" if ranked.admissible else "fails",
            *(fixed(means[model].get(ranked.name)) for model in evaluation.models),
        )
        for ranked in ranking
    ]
    rows.append(
        (
            "(unmasked)",
            fixed(evaluation.advice.unmasked),
            "",
            *(fixed(unmasked.get(m)) for m in evaluation.models),
        )
    )
    columns = (
        Column("name", wraps=True),
        number(evaluation.advice.measure),
        Column("rule"),
        *map(number, evaluation.models),
    )
    yield table(columns, rows)
    for text in _on_reading(evaluation):
        yield line(f"\n{text}")


def _on_reading(evaluation: Evaluation) -> Iterator[str]:
    """Yield sentences on what the table compares, and on configurations that fail the rule."""
    from aegis.measures import MEASURES
    from aegis.papers.evaluation.evaluate import PROXY_METRICS

    advice, metric = evaluation.advice, evaluation.metric
    unit = MEASURES.get(advice.measure).unit
    same = {"AUC": "roc_auc", "R2": "r2", **PROXY_METRICS}.get(unit)
    if same not in (None, metric):
        yield (
            f"The advice states {advice.measure} ({unit}), and the models were tested by {metric}. These are "
            f"two different metrics: --metric {same} compares the same one."
        )
    failing = sum(ranked.admissible is False for ranked in advice.ranking)
    if failing:
        yield (
            f"{failing:,} of {counted(len(advice.ranking), 'configuration')} "
            f"{'fails' if failing == 1 else 'fail'} the rule, and must not be released, however good "
            "models are on them. They were trained only to test the ranking."
        )


def _against_original(evaluation: Evaluation) -> Iterator[RenderableType]:
    """Yield tables of models on record-level releases against the unmasked table, if any."""
    if not evaluation.importance_shift:
        return
    cells = {
        (comparison.configuration, comparison.model): comparison
        for comparison in evaluation.against_original
        if comparison.metric == evaluation.metric
    }
    yield heading(f"Against the table as it is: change of {evaluation.metric} (Mann-Whitney p)")
    rows = []
    for name, shift in evaluation.importance_shift.items():
        figures = []
        for model in evaluation.models:
            comparison = cells.get((name, model))
            p = "" if comparison is None or comparison.p is None else f" ({comparison.p:.3f})"
            figures.append("-" if comparison is None else f"{comparison.difference:+.4f}{p}")
        rows.append((name, *figures, fixed(shift)))
    yield table(
        (Column("name", wraps=True), *map(number, evaluation.models), number("importance shift")),
        rows,
    )
    yield line(
        "\nimportance shift: half the sum of absolute differences of the attributes' importances in "
        "a random forest, 0 to 1.",
        style="dim",
    )


def _agreement(evaluation: Evaluation) -> Iterator[RenderableType]:
    cells = {(agreement.measure, agreement.model): agreement for agreement in evaluation.agreement}
    models = [m for m in evaluation.models if any(model == m for _, model in cells)]
    columns = (Column("measure", wraps=True), *map(number, models))
    names = [judged.name for judged in evaluation.judged]
    yield heading("How well each measure ranks (Spearman)")
    count = len(evaluation.configurations)
    enough = count >= FEWEST
    if enough:
        ceiling = ("(two halves)", *(_two(evaluation.reliability[m]) for m in models))
        rows = [(n, *(_two(cells[n, m].spearman) for m in models)) for n in names]
        yield table(columns, [*rows, ceiling] if evaluation.splits > 1 else rows)
    else:
        yield line(
            f"{count} configuration{'s' * (count != 1)} of masks can be in the right order by chance: "
            f"a rank correlation needs at least {FEWEST}. --generate 20 ranks more."
        )
    yield heading("Loss if you choose by a measure, compared with the best (points)")
    yield table(columns, [(n, *(_two(cells[n, m].points) for m in models)) for n in names])
    spearman = (
        "Spearman: 1: same order as the trained models; 0: random order; -: all scores are equal"
        + ("; (two halves): the most that the splits allow" if evaluation.splits > 1 else "")
        + ".\n"
    )
    yield line(
        f"\n{spearman if enough else ''}"
        "Points: hundredths of the metric; for log_loss the loss itself.",
        style="dim",
    )


def _two(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f}"
