"""`aegis merge`: add up the summaries of disjoint parts of a table."""

from __future__ import annotations

from hashlib import sha256
from pathlib import Path
from typing import Annotated

import typer

from aegis.cli.files import (
    BUNDLE,
    check_outputs,
    is_protected,
    next_step,
    read_summary,
    unused,
    written,
    written_dict,
)
from aegis.cli.options import Force, Format, FormatOption, Quiet, VerifyKey
from aegis.cli.output import Output
from aegis.errors import PolicyError
from aegis.words import counted

SCHEMA = 1
"""Version of the JSON form; it changes when a field changes its meaning."""
EXAMPLES = (
    "aegis merge january.aegis february.aegis -o year.aegis",
    "aegis merge year.aegis march.aegis -o year.aegis --force",
)


def command(
    summaries: Annotated[
        list[Path],
        typer.Argument(
            metavar="SUMMARY...",
            help="Summaries (.aegis) of parts that share no row.",
            show_default=False,
        ),
    ],
    output: Annotated[
        Path,
        typer.Option(
            "--output",
            "-o",
            metavar="FILE",
            help="The summary to write (.aegis).",
            show_default=False,
        ),
    ],
    format: FormatOption = Format.TABLE,  # noqa: A002 - the option's name
    verify_key: VerifyKey = None,
    force: Force = False,
    quiet: Quiet = False,
) -> None:
    """Add up the summaries of the parts of a table to one of the whole.

    In: summaries made under one policy, with `--exact` where a part is large. Out:
    the summary of all rows, as `summarize --like` that part gives it: counts,
    classes and attributes of at most 128 groups are those of the whole, longer ones
    keep the groups and ranges of the part. New partitions are summarised alone, and
    several providers can combine theirs without showing a row. Masks that learn cuts
    from the data must share them: make the later parts with `--like FIRST.aegis`.
    """
    from aegis.summary import merge, save_bundle

    for path in summaries:
        if is_protected(path):
            raise PolicyError(
                f"{path} is a protected summary, which cannot be merged: parts that were protected "
                "apart tell more together than each of them.",
                hint="Merge the exact summaries (.aegis), and protect the whole.",
            )
    check_outputs([(output, (BUNDLE,))], force=force)
    _refuse_twins(summaries)
    merged = merge(*(read_summary(path, verify_key) for path in summaries))
    save_bundle(merged, output, force=force)
    page = Output(format, quiet)
    if len(summaries) == 1:
        page.warn([f"{summaries[0]} is the only part: {output} holds the same"])
    figures = merged.to_dict()
    if page.format is Format.JSON:
        page.json(
            {"schema": SCHEMA}
            | figures
            | {"parts": len(summaries), "files": written_dict([output])}
        )
        return
    classes = list(figures["classes"].items())
    if page.format is Format.CSV:
        page.csv(("class", "rows"), classes)
        return
    from aegis.cli.tables import line

    page.show(line(f"Merged {len(summaries)}: {counted(merged.rows, 'row')} in all"))
    page.say(*written([output]))
    page.suggest(
        *next_step(
            "rank configurations from the merged summary",
            *("aegis", "advise", output, "--policy", "POLICY", "-o", unused("best.yaml")),
        )
    )


def _refuse_twins(summaries: list[Path]) -> None:
    """Raise when two files are the same summary: its rows would count twice."""
    seen: dict[str, Path] = {}
    for path in summaries:
        digest = sha256(path.read_bytes()).hexdigest() if path.is_file() else str(path)
        if digest in seen:
            raise PolicyError(
                f"{path} and {seen[digest]} are the same summary.",
                hint="Name each part once: its rows would count twice, and classes look larger than they are.",
            )
        seen[digest] = path
