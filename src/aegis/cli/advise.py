"""`aegis advise`: rank masking configurations by the predictive value that they keep."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from aegis.cli.advice import print_advice
from aegis.cli.advisors import make_advisor
from aegis.cli.files import (
    HTML,
    YAML,
    check_outputs,
    is_bundle,
    next_step,
    open_subject,
    repeated,
    shown,
    unused,
    written,
)
from aegis.cli.options import (
    Configurations,
    EngineOption,
    Force,
    Format,
    FormatOption,
    Generate,
    Master,
    Measure,
    MemoryLimit,
    PolicyFile,
    Quiet,
    Seed,
    TableName,
    TableOrBundle,
    With,
    split_names,
)
from aegis.cli.output import Output
from aegis.cli.progress import reporting

if TYPE_CHECKING:
    from rich.console import RenderableType

    from aegis.advisor import Ranked

EXAMPLES = (
    "aegis advise table.csv -p policy.yaml -o best.yaml --report report.html",
    "aegis advise table.csv -p policy.yaml --generate 200 --seed 1 --top 5",
    "aegis advise table.aegis -p policy.yaml --measure cmim --format json",
    "aegis advise table.csv -p policy.yaml --search --time-limit 60",
    "aegis advise table.csv -p policy.yaml --search --front k=2..20",
    "aegis advise table.csv -p policy.yaml --with mondrian,mdav -o best.yaml",
)


def command(
    table: TableOrBundle,
    policy: PolicyFile,
    configurations: Configurations = None,
    generate: Generate = None,
    search: Annotated[
        bool,
        typer.Option(
            "--search",
            help="Search all combinations of the candidate masks, with proof of the best.",
        ),
    ] = False,
    measure: Measure = None,
    objective: Annotated[
        str | None,
        typer.Option(
            "--objective",
            metavar="NAME",
            help="What the search maximises: a measure, or an information loss to minimise "
            "(nu-entropy, loss, precision, discernibility, classification, class-entropy). "
            "By default the measure.",
            show_default=False,
        ),
    ] = None,
    time_limit: Annotated[
        float | None,
        typer.Option(
            "--time-limit",
            metavar="SECONDS",
            help="Stop the search after this time, as Ctrl-C does, with the best so far and "
            "its gap. Reading and summarising the table come before it.",
            show_default=False,
        ),
    ] = None,
    front: Annotated[
        str | None,
        typer.Option(
            "--front",
            metavar="RANGE",
            help="Also search the best for each of several rules: k=2..50, risk=, l=, "
            "suppression=.",
            show_default=False,
        ),
    ] = None,
    methods: With = None,
    top: Annotated[
        int,
        typer.Option(
            "--top", min=0, metavar="N", help="How many to show; 0 shows all that were ranked."
        ),
    ] = 10,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            metavar="FILE",
            help="Write the best (YAML): a configuration for aegis apply, or a recipe for "
            "aegis anonymize.",
            show_default=False,
        ),
    ] = None,
    report: Annotated[
        Path | None,
        typer.Option(
            "--report", metavar="FILE", help="Write a report (one HTML file).", show_default=False
        ),
    ] = None,
    exact: Annotated[
        bool,
        typer.Option("--exact", help="Count co-occurrences on all rows, not on a sample."),
    ] = False,
    table_name: TableName = None,
    memory_limit: MemoryLimit = None,
    engine: EngineOption = None,
    master: Master = None,
    format: FormatOption = Format.TABLE,  # noqa: A002 - the option's name
    seed: Seed = 0,
    force: Force = False,
    quiet: Quiet = False,
) -> None:
    """Rank masking configurations by the predictive value that they keep.

    In: a table, or its summary, and a policy. Out: configurations, admissible ones
    first and the best first among them, each with its score, the utility kept
    (percent of the unmasked score), the predictive utility deviation (PUD), the
    smallest class and the rows to suppress; then the best one, mask by mask. With
    record-level methods, their releases are ranked among them, by the same measure
    and rule.

    Exit code 1 when none meets the privacy rule; what came closest is said.
    """
    from aegis.cli.figures import advise_with_report
    from aegis.files import write_text
    from aegis.policy import load_policy

    check_outputs(
        [(output, YAML), (report, HTML)], force=force, inputs=(table, policy, configurations)
    )
    rules = load_policy(policy)
    subject: Any = open_subject(
        table, name=table_name, memory_limit=memory_limit, engine=engine, master=master
    )
    table = shown(table)
    with reporting(quiet=quiet) as progress:
        if exact and not is_bundle(table):
            from aegis.advisor import Prepared, prepare
            from aegis.sources import open_table
            from aegis.summary import summarize

            source = open_table(subject)
            exactly = summarize(source, rules, exact=True, seed=seed, progress=progress)
            subject = Prepared(exactly, prepare(exactly, rules).plan, source)
        advisor = make_advisor(
            rules,
            configurations=configurations,
            generate=generate,
            measure=measure,
            search=search,
            objective=objective,
            time_limit=time_limit,
            front=front,
            methods=split_names(methods),
            top=top,
            seed=seed,
            progress=progress,
        )
        if report is None:
            advice = advisor(subject)
        else:
            advice, page = advise_with_report(subject, rules, advisor, seed=seed, progress=progress)
            write_text(report, page)
    best = advice.best
    if output is not None and best is not None:
        write_text(output, _written(best, advice.measure))
    shell = Output(format, quiet)
    print_advice(shell, advice, table, rules, top or None)
    made = output if best is not None else None
    shell.say(*written([made, report]))
    if best is None:
        advice.require_best()
    reading = {
        "table": table_name,
        "engine": engine,
        "master": master,
        "memory_limit": memory_limit,
    }
    deciding = {
        "configurations": configurations,
        "generate": generate,
        "search": search,
        "measure": measure,
        "objective": objective,
        "time_limit": time_limit,
        "with": split_names(methods),
        "exact": exact,
        "seed": seed or None,
    }
    # The policy's measure would come before the one in the file.
    other = advice.measure if rules.measure not in (None, advice.measure) else None
    shell.suggest(*_next(table, policy, made, best, reading, deciding, repeated(measure=other)))


def _written(best: Ranked, measure: str) -> str:
    """Return the best as a file holds it: a configuration, or the recipe of a record-level release.

    With it goes the measure that ranked it, by which its certificate then states what it keeps;
    the default needs no name.
    """
    from aegis.measures import DEFAULT_MEASURE

    named = None if measure == DEFAULT_MEASURE else measure
    if best.method is None:
        from aegis.policy import dump_configurations

        return dump_configurations({best.name: best.configuration}, measure=named)
    from aegis.anonymizers import dump_recipe

    return dump_recipe(best.method.recipe, measure=named)


def _next(
    table: str,
    policy: Path,
    made: Path | None,
    best: Ranked | None,
    reading: Mapping[str, object],
    deciding: Mapping[str, object],
    stated: Sequence[str],
) -> list[RenderableType]:
    """Return what to do next, with the options that read the same table and decide the same best.

    `stated` names the measure of the certificate, where neither policy nor file would.
    """
    rules = ("--policy", str(policy))
    read = repeated(**reading)
    if made is None:
        return next_step(
            "write the best configuration, for aegis apply",
            *(
                "aegis",
                "advise",
                table,
                *read,
                *rules,
                *repeated(**deciding),
                "-o",
                unused("best.yaml"),
            ),
        )
    certificate = ("--certificate", unused(made.with_name("certificate.json")), *stated)
    if best is not None and best.method is not None:
        released = unused(made.with_name("released.parquet"))
        return next_step(
            "group the records, and have the result verified and certified",
            *("aegis", "anonymize", table, *read, *rules, "--recipe", str(made)),
            *("-o", released, *certificate),
        )
    masked = unused(made.with_name("masked.parquet"))
    subject = "TABLE" if is_bundle(table) else table
    return next_step(
        "mask the table, and have the result verified and certified",
        *("aegis", "apply", subject, *read, *rules, "--configuration", str(made)),
        *("-o", masked, *certificate),
    )
