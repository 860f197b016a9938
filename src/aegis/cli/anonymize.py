"""`aegis anonymize`: release a table record by record, verify what was written, certify it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from aegis.cli.apply import nothing_to_predict
from aegis.cli.files import (
    HTML,
    JSON,
    check_outputs,
    is_bundle,
    next_step,
    unused,
    written,
    written_dict,
)
from aegis.cli.opening import DEFAULT, Opening, opens_table
from aegis.cli.options import (
    Force,
    Format,
    FormatOption,
    PolicyFile,
    Quiet,
    ReleaseSeed,
    SafeCsv,
    SignCertificate,
    Table,
    UtilityMeasure,
)
from aegis.cli.output import Output
from aegis.cli.progress import reporting
from aegis.errors import DataError, PolicyError
from aegis.files import TABLE_FORMATS

if TYPE_CHECKING:
    from rich.console import RenderableType

    from aegis.anonymizers import Recipe
    from aegis.policy import Located, Policy
    from aegis.release import AnonymizedRelease

SCHEMA = 1
"""Version of the JSON form; it changes when a field changes its meaning."""
EXAMPLES = (
    "aegis anonymize table.csv -p policy.yaml --method mondrian -o released.parquet",
    "aegis anonymize table.csv -p policy.yaml -m mdav --k 10 -o out.csv --certificate out.json",
    "aegis anonymize table.csv -p policy.yaml -m mo-obam --option clusters=30 --front",
    "aegis anonymize table.csv -p policy.yaml --recipe recipe.yaml -o released.parquet",
)


@opens_table
def command(
    table: Table,
    policy_file: PolicyFile,
    method: Annotated[
        str | None,
        typer.Option(
            "--method", "-m", metavar="NAME", help="The method (aegis anonymizers lists them)."
        ),
    ] = None,
    recipe: Annotated[
        Path | None,
        typer.Option(
            "--recipe",
            metavar="FILE",
            help="Method, options and seed from a file (YAML), as aegis advise -o writes it.",
        ),
    ] = None,
    option: Annotated[
        list[str] | None,
        typer.Option(
            "--option",
            metavar="NAME=VALUE",
            help="An option of the method; give it again for more (aegis anonymizers NAME "
            "lists them).",
        ),
    ] = None,
    k: Annotated[
        int | None,
        typer.Option(
            "--k",
            metavar="K",
            help="Records in each group at least; by default what the policy's rule asks for.",
        ),
    ] = None,
    style: Annotated[
        str | None,
        typer.Option(
            "--style",
            metavar="NAME",
            help="How groups are shown: centroid or generalised; by default the method's way.",
        ),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            metavar="FILE",
            help="The released table: .parquet, .csv, .tsv, .arrow or .feather.",
        ),
    ] = None,
    certificate: Annotated[
        Path | None,
        typer.Option(
            "--certificate",
            metavar="FILE",
            help="Write a certificate (JSON): digests, options, losses, every privacy figure.",
        ),
    ] = None,
    sign: SignCertificate = None,
    measure: UtilityMeasure = None,
    front: Annotated[
        bool,
        typer.Option(
            "--front",
            help="Also search a grid of cluster numbers and weights (mo-obam): information "
            "loss against diversity.",
        ),
    ] = False,
    report: Annotated[
        Path | None,
        typer.Option("--report", metavar="FILE", help="Write a report (one HTML file)."),
    ] = None,
    safe_csv: SafeCsv = False,
    opening: Opening = DEFAULT,
    format: FormatOption = Format.TABLE,  # noqa: A002 - the option's name
    seed: ReleaseSeed = None,
    force: Force = False,
    quiet: Quiet = False,
) -> None:
    """Release a table by grouping its records, and verify the file that was written.

    In: a table, its policy and a record-level method. Out: the table with what stands
    for each group in place of its quasi-identifiers, without identifiers and without
    the rows of classes that break the rule; its information loss. Privacy is measured
    on the written file before it takes its name: against the policy's rule and the k
    that the method claims. When the rule is not met, nothing is written and the exit
    code is 1.
    """
    from aegis import Study
    from aegis.policy import load_policy, measure_of_choice, read_document
    from aegis.signing import load_private_key

    check_outputs(
        [(output, TABLE_FORMATS), (certificate, JSON), (report, HTML)],
        force=force,
        inputs=(table, policy_file),
    )
    if output is None and not front:
        raise PolicyError(
            "No output is named.", hint="Name it with -o, or ask for the front with --front."
        )
    if is_bundle(table):
        raise DataError(f"{table} is a summary: it holds no records.", hint="Give the table.")
    policy = load_policy(policy_file)
    subject = opening.subject(table, policy, quiet=quiet)
    document = None if recipe is None else read_document(recipe, "recipe")
    chosen = _recipe(method, document, option, k, style, seed)
    stated = None if document is None else measure_of_choice(document)
    key = None if sign is None else load_private_key(sign)
    with reporting(quiet=quiet) as progress:
        study = Study(subject, policy, progress=progress)
        release = study.anonymize(
            chosen,
            report=report,
            output=output,
            certificate=certificate,
            key=key,
            measure=measure or stated,
            force=force,
            safe_csv=safe_csv,
            front=front,
        )
    _print(Output(format, quiet), release, policy, policy_file, [output, certificate, report])


def _recipe(
    method: str | None,
    file: Located | None,
    given: list[str] | None,
    k: int | None,
    style: str | None,
    seed: int | None,
) -> Recipe:
    from aegis.anonymizers import ANONYMIZERS, Recipe, load_recipe

    if (method is None) == (file is None):
        raise PolicyError(
            "Both --method and --recipe were given." if file else "No method was named.",
            hint=f"Give --recipe FILE, or --method and one of: {', '.join(ANONYMIZERS.names())}.",
        )
    options = dict(map(_option, given or ()))
    if k is not None:
        options["k"] = k
    if method is not None:
        return Recipe(method, options, seed, style)
    if options or style is not None:
        raise PolicyError(
            "A recipe brings its own options and style.",
            hint="Change them in the file, or name the method with --method.",
        )
    loaded = load_recipe(file or "")
    return loaded if seed is None else replace(loaded, seed=seed)


def _option(text: str) -> tuple[str, Any]:
    """Return name and value of `NAME=VALUE`, the value read as YAML."""
    from aegis.policy import parse_value

    name, equals, value = text.partition("=")
    if not equals or not name.strip():
        raise PolicyError(f"--option {text!r} is no NAME=VALUE.", hint="Write --option k=10.")
    return name.strip().replace("-", "_"), parse_value(value.strip(), f"--option {name.strip()}")


def _print(
    shell: Output,
    release: AnonymizedRelease,
    policy: Policy,
    policy_file: Path,
    paths: list[Path | None],
) -> None:
    if not shell.tabular:
        data = {"schema": SCHEMA} | release.to_dict() | {"files": written_dict(paths)}
        shell.json(data) if shell.format is Format.JSON else shell.figures(data)
        return
    if shell.quiet:
        return
    from aegis.cli.pages.anonymize import print_front, print_release

    print_release(shell, release, policy)
    if release.front:
        print_front(shell, release)
    nothing = release.certificate is not None and release.utility is None
    nothing_said = (nothing_to_predict(policy),) if nothing else ()
    shell.caution([*release.notes, *release.warnings, *nothing_said])
    shell.say(*written(paths))
    shell.suggest(*_next(release, policy_file))


def _next(release: AnonymizedRelease, policy_file: Path) -> list[RenderableType]:
    if release.path is None:
        return next_step(
            "release the table under a setting of the front",
            "anonymize",
            "TABLE",
            "--policy",
            policy_file,
            "--method",
            release.recipe.method,
            "--option",
            "clusters=N",
            "--option",
            "weight=W",
            "-o",
            unused("released.parquet"),
        )
    return next_step(
        "see every privacy figure of the output", "audit", release.path, "--policy", policy_file
    )
