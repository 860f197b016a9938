"""`aegis advise`: find the masks that keep the most predictive value under a rule."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from aegis.cli import completion
from aegis.cli.advice import print_advice, print_short
from aegis.cli.files import (
    REPORT,
    YAML,
    check_outputs,
    is_bundle,
    next_step,
    repeated,
    shown,
    unused,
    written,
)
from aegis.cli.formats import SummaryRequest, format_of_summary
from aegis.cli.opening import DEFAULT, Opening, opens_table
from aegis.cli.options import (
    After,
    Configurations,
    Force,
    Format,
    FormatOption,
    Generate,
    LeaveOut,
    Measure,
    Merit,
    Models,
    NoValues,
    PolicyFile,
    Population,
    Quiet,
    RuleOverride,
    Seed,
    TableOrBundle,
    VerifyKey,
    With,
    asked_measure,
    split_names,
)
from aegis.cli.output import Output
from aegis.cli.progress import reporting
from aegis.errors import PolicyError

if TYPE_CHECKING:
    from rich.console import RenderableType

    from aegis.advisor import Advice, Ranked

TOP = 10
"""How many are listed unless somebody says so."""
EXAMPLES = (
    "aegis advise table.csv -p policy.yaml -o best.yaml --report report.html",
    "aegis advise table.csv -p policy.yaml --explain",
    "aegis advise table.csv -p policy.yaml --time-limit 300 --top 5",
    "aegis advise table.aegis -p policy.yaml --measure cmim --format json",
    "aegis advise table.csv -p policy.yaml --merit accuracy --models lr,gbdt",
    "aegis advise table.csv -p policy.yaml --front k=2..20",
    "aegis advise table.csv -p policy.yaml --generate 200 --seed 1",
    "aegis advise table.csv -p policy.yaml --with mondrian,mdav -o best.yaml",
    "aegis advise table.aegis -p policy.yaml --estimate aegis+1d --measure mi",
)


@opens_table
def command(
    table: TableOrBundle,
    policy_file: PolicyFile,
    configurations: Configurations = None,
    generate: Generate = None,
    search: Annotated[
        bool,
        typer.Option(
            "--search",
            help="Search all combinations of the candidate masks: the default, unless the policy lists "
            "configurations. It says whether the best is proven.",
        ),
    ] = False,
    measure: Measure = None,
    merit: Merit = None,
    models: Models = None,
    proxy: Annotated[
        bool,
        typer.Option(
            "--proxy",
            help="Also train a small model (the first of --models, else lr) on 2,000 rows of "
            "each of the best five releases, and show what it reaches. The ranking stays as"
            " it is. Needs the table, not a summary.",
        ),
    ] = False,
    objective: Annotated[
        str | None,
        typer.Option(
            "--objective",
            metavar="NAME",
            autocompletion=completion.objectives,
            help="What the search maximises: a measure, or an information loss to minimise "
            "(nu-entropy, loss, precision, discernibility, classification, class-entropy), with "
            "options as loss(mean=geometric,factor=0.5). By default the measure.",
        ),
    ] = None,
    time_limit: Annotated[
        float | None,
        typer.Option(
            "--time-limit",
            metavar="SECONDS",
            help="Stop the search after this time, as Ctrl-C does, with the best so far and its gap: "
            "by default 30 seconds. Reading and summarising the table come before it.",
        ),
    ] = None,
    front: Annotated[
        str | None,
        typer.Option(
            "--front",
            metavar="RANGE",
            help="Also search the best for each of several rules: k=2..50, risk=, suppression=, or a "
            "number of a model that the policy asks for: l=, t=.",
        ),
    ] = None,
    prefer: Annotated[
        str | None,
        typer.Option(
            "--prefer",
            metavar="NAME",
            help="Which comes first of those that score within 0.002 of the highest AUC: least-masking "
            "(the default of a search), most-private, or score, the highest score (of a ranking).",
        ),
    ] = None,
    estimate: Annotated[
        str | None,
        typer.Option(
            "--estimate",
            metavar="CASE",
            help="Rank by the estimated deviation from the raw table, the smallest first (Algorithm "
            "1 of the AEGIS paper): aegis+1d, aegis-1d, sampling, all-evidence, or raw, the "
            "deviation itself. Of configurations that are named or generated (50 by default).",
        ),
    ] = None,
    methods: With = None,
    after: After = None,
    leave_out: LeaveOut = None,
    population: Population = None,
    no_values: NoValues = False,
    top: Annotated[
        int | None,
        typer.Option(
            "--top",
            min=0,
            metavar="N",
            help="How many to list, 10 unless you say so; 0 lists all that were ranked. A search lists "
            "them only with this option or --explain.",
        ),
    ] = None,
    explain: Annotated[
        bool,
        typer.Option(
            "--explain",
            help="Print the whole page of a search: the ranking, what each mask costs, what is proven, why "
            "no mask is finer, what a weaker rule would gain, every caution in full.",
        ),
    ] = False,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            metavar="FILE",
            help="Write the best (YAML): a configuration for aegis apply, or a recipe for "
            "aegis anonymize.",
        ),
    ] = None,
    report: Annotated[
        Path | None,
        typer.Option(
            "--report",
            metavar="FILE",
            help="Write a report (.html, or .pdf with an installed Chromium).",
        ),
    ] = None,
    exact: Annotated[
        bool, typer.Option("--exact", help="Count co-occurrences on all rows, not on a sample.")
    ] = False,
    rule_override: RuleOverride = False,
    verify_key: VerifyKey = None,
    opening: Opening = DEFAULT,
    format: FormatOption = Format.TABLE,  # noqa: A002 - the option's name
    seed: Seed = 0,
    force: Force = False,
    quiet: Quiet = False,
) -> None:
    """Find the masks that keep the most predictive value under the privacy rule.

    In: a table, or its summary, and a policy. Out: the best of the combinations of
    the candidate masks that were searched, whether it is proven best of all, and
    the runners-up: each with its score, the predictive utility deviation (PUD), the smallest class and the rows
    to suppress; then the best one, mask by mask. Configurations that the policy, a
    file or --generate names are ranked instead. With record-level methods, their
    releases are ranked among them, by the same measure and rule.

    A search prints the best on one screen; --explain prints all that was found.
    Exit code 1 when none meets the privacy rule; the one that comes closest is named.
    """
    from aegis import Study
    from aegis.files import write_text
    from aegis.policy import load_configurations, load_policy
    from aegis.study import SEARCH_SECONDS

    check_outputs(
        [(output, YAML), (report, REPORT)], force=force, inputs=(table, policy_file, configurations)
    )
    measure = asked_measure(measure, merit, models)
    names = split_names(methods)
    ranking = {"--configurations": configurations, "--generate": generate}
    searching = {
        "--objective": objective,
        "--time-limit": time_limit,
        "--front": front,
    }
    _check_kind(ranking, searching, search=search, estimate=estimate, prefer=prefer)
    dropped = split_names(leave_out)
    policy = load_policy(policy_file).without(dropped or ()).drawn_from(population)
    asked = search or any(given is not None for given in searching.values())
    searches = asked or not (configurations or generate or estimate or policy.configurations)
    listed = None if configurations is None else load_configurations(configurations, policy)
    added = format_of_summary(table)
    if added is not None:
        added.advise(
            SummaryRequest(
                path=table,
                policy_file=policy_file,
                policy=policy,
                configurations=listed,
                search=searches,
                options={
                    **ranking,
                    **searching,
                    "--search": search or None,
                    "--measure": measure,
                    "--estimate": estimate,
                    "--prefer": prefer,
                    "--with": methods,
                    "--after": after,
                    "--population": population,
                    "--proxy": proxy or None,
                    "--leave-out": dropped,
                    "--verify-key": verify_key,
                    "--rule-override": rule_override or None,
                    "--top": TOP if top is None else top,
                    "--seed": seed,
                    "--output": output,
                    "--report": report,
                },
                shell=Output(format, quiet),
            )
        )
        return
    shell = Output(format, quiet)
    listing = explain or top is not None or front is not None or bool(methods)
    short = searches and shell.format is Format.TABLE and not listing
    subject = opening.subject(table, policy, quiet=quiet, verify_key=verify_key)
    table = shown(table)
    with reporting(quiet=quiet) as progress:
        if after:
            from aegis.advisor.composition import read_release, summary_after

            earlier = [read_release(path, policy) for path in after]
            subject = summary_after(
                subject, policy, earlier, exact=exact, seed=seed, progress=progress
            )
        study = Study(
            subject,
            policy,
            exact=exact,
            seed=seed,
            progress=progress,
            rule_override=rule_override,
        )
        if proxy and study.source is None:
            raise PolicyError(
                "--proxy trains models on rows, and a summary holds none.", hint="Give the table."
            )
        if searches:
            advice = study.search(
                objective=objective,
                measure=measure,
                top=top or TOP,
                time_limit=SEARCH_SECONDS if time_limit is None else time_limit,
                front=front,
                methods=names,
                prefer=prefer or "least-masking",
                explain_best=not short or report is not None,
            )
        else:
            advice = study.rank(
                listed,
                generate_count=generate,
                measure=measure,
                estimate=estimate,
                methods=names,
                prefer=prefer,
            )
        if proxy:
            first = (models or "lr").replace("+", ",").split(",")[0]
            advice = study.proxy(advice, [first])
        if report is not None:
            study.report(advice, report, values=not no_values, force=force)
    best = advice.best
    if output is not None and best is not None:
        write_text(output, _written(best, advice))
    if short and best is not None:
        print_short(shell, advice, best, table, policy)
    else:
        print_advice(shell, advice, table, policy, TOP if top is None else top or None)
    made = output if best is not None else None
    shell.say(*written([made, report]))
    if best is None:
        advice.require_best()
    deciding = {
        "configurations": configurations,
        "generate": generate,
        "search": search,
        "measure": measure,
        "estimate": estimate,
        "objective": objective,
        "time_limit": time_limit,
        "prefer": prefer,
        "with": names,
        "after": after,
        "rule_override": rule_override,
        "exact": exact,
        "seed": seed or None,
    }
    shell.suggest(
        *_next(
            table,
            policy_file,
            made,
            best,
            [*opening.words(), *repeated(leave_out=dropped, population=population)],
            deciding,
            repeated(after=after, rule_override=bool(advice.rule_override)),
        )
    )


def _check_kind(
    ranking: Mapping[str, object],
    searching: Mapping[str, object],
    *,
    search: bool,
    estimate: str | None,
    prefer: str | None,
) -> None:
    """Raise where options of a ranking and of a search were given together."""
    if estimate is not None:
        _refuse({"--prefer": prefer}, "is of scores, not of estimates", "Leave it out.")
    if search:
        _refuse(
            ranking,
            "is not for a search, which tries all combinations",
            "Leave out {} or --search.",
        )
    if any(given is not None for given in ranking.values()):
        _refuse(searching, "is for a search, which tries all combinations", "Leave it out.")
    if estimate is not None:
        _refuse(
            searching,
            "is for a search, and estimates are of a ranking",
            "Leave out {} or --estimate.",
        )


def _refuse(options: Mapping[str, object], why: str, hint: str) -> None:
    """Raise for the first of these options that was given."""
    for name, given in options.items():
        if given is not None:
            raise PolicyError(f"{name} {why}.", hint=hint.format(name))


def _written(best: Ranked, advice: Advice) -> str:
    """Return the best as a file holds it: a configuration, or the recipe of a record-level release.

    With it goes the measure that ranked it, by which its certificate then states what it keeps;
    the default needs no name. Chosen from a summary, it also says under which rule that was made.
    """
    named = advice.stated_measure
    if best.method is None:
        from aegis.policy import dump_configurations

        owner = None if advice.owner_rule is None else advice.owner_rule.to_dict()
        return dump_configurations({best.name: best.configuration}, measure=named, made_under=owner)
    from aegis.anonymizers import dump_recipe

    return dump_recipe(best.method.recipe, measure=named)


def _next(
    table: str,
    policy_file: Path,
    made: Path | None,
    best: Ranked | None,
    read: Sequence[str],
    deciding: Mapping[str, object],
    stated: Sequence[str],
) -> list[RenderableType]:
    """Return what to do next, with the options that read the same table and decide the same best.

    `stated` are options that say of the release what was said of the advice.
    """
    policy = ("--policy", str(policy_file))
    if made is None:
        return next_step(
            "write the best configuration, for aegis apply",
            "advise",
            table,
            *read,
            *policy,
            *repeated(**deciding),
            "-o",
            unused("best.yaml"),
        )
    certificate = ("--certificate", unused(made.with_name("certificate.json")), *stated)
    if best is not None and best.method is not None:
        released = unused(made.with_name("released.parquet"))
        return next_step(
            "group the records, and have the result verified and certified",
            "anonymize",
            table,
            *read,
            *policy,
            "--recipe",
            str(made),
            "-o",
            released,
            *certificate,
        )
    masked = unused(made.with_name("masked.parquet"))
    subject = "TABLE" if is_bundle(table) else table
    return next_step(
        "mask the table, and have the result verified and certified",
        "apply",
        subject,
        *read,
        *policy,
        "--configuration",
        str(made),
        "-o",
        masked,
        *certificate,
    )
