"""`aegis import`: turns a project of another tool into a table and a policy."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from aegis.cli.files import check_outputs, next_step, unused, written
from aegis.cli.output import Output
from aegis.cli.parameters import Force, Quiet

if TYPE_CHECKING:
    from rich.console import RenderableType

    from aegis.arx.project import ImportedProject

PANEL = "From a table to a release"
"""Group of the command in the help."""
EXAMPLES = (
    "aegis import project.deid -o project",
    "aegis import project.deid -o project --people 83000000",
)


def command(
    project: Annotated[
        Path, typer.Argument(metavar="PROJECT", help="A project file of ARX (.deid).")
    ],
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="FOLDER", help="The folder to write into.")
    ],
    people: Annotated[
        int | None,
        typer.Option(
            "--people",
            metavar="N",
            min=1,
            help="Size of the population, for models of population uniqueness.",
        ),
    ] = None,
    force: Force = False,
    quiet: Quiet = False,
) -> None:
    """Turn a project of ARX into a table, hierarchies and a policy.

    You give a .deid file. Aegis writes FOLDER/data.csv, FOLDER/hierarchies/ and
    FOLDER/policy.yaml with roles, candidate masks (the levels of the hierarchies),
    privacy models and the suppression limit. If the project uses something that Aegis
    does not have, Aegis refuses the project or names what it left out. It also prints
    the optimum that the project stores, so that you can compare it with the result of
    Aegis.
    """
    from aegis.arx.project import import_project

    if output.is_dir():
        files = [(output / name, None) for name in ("policy.yaml", "data.csv")]
        check_outputs(files, force=force, inputs=(project,))
    imported = import_project(project, output, people=people)
    shell = Output(quiet=quiet)
    shell.warn(imported.notes)
    shell.say(*written([imported.policy, imported.table]))
    if imported.optimum is not None:
        loss, levels = imported.optimum
        shell.say(f"Stored optimum: {loss:.9g} at levels {' '.join(map(str, levels))}")
    shell.suggest(*_next(imported, output))


def _next(imported: ImportedProject, output: Path) -> list[RenderableType]:
    """Return the command to run next: a search, or a draw for differential privacy."""
    files = (imported.table, "--policy", imported.policy)
    if imported.sampled is not None:
        options = [
            word
            for key, value in imported.sampled.items()
            for word in ("--option", f"{key}={value}")
        ]
        release = ("-o", unused(output / "sample.csv"))
        words = ("--method", "safe-pub", *options, *release)
        return next_step("draw the release", "anonymize", *files, *words)
    objective = () if imported.objective is None else ("--objective", imported.objective)
    best = ("-o", unused(output / "best.yaml"))
    return next_step("search the optimum", "advise", *files, "--search", *objective, *best)
