"""`aegis merge`: combine the summaries of disjoint parts of a table into one summary."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from aegis.cli.files import check_outputs, next_step, unused, written, written_dict
from aegis.cli.output import Output, line
from aegis.cli.parameters import Force, Format, FormatOption, Quiet, VerifyKey, output_file
from aegis.files import BUNDLE
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
            metavar="SUMMARY...", help="Summaries (.aegis) of parts that have no row in common."
        ),
    ],
    output: Annotated[Path, output_file("The summary to write (.aegis).")],
    format: FormatOption = Format.TABLE,  # noqa: A002 - the option's name
    verify_key: VerifyKey = None,
    force: Force = False,
    quiet: Quiet = False,
) -> None:
    """Add up the summaries of parts of a table to get a summary of the whole table.

    You give summaries of the parts, all made under one policy. Aegis writes the summary
    of all rows. For example, combine the summaries of several providers without showing
    a row. Make all summaries after the first with `--like FIRST.aegis`, so that all
    parts use the same cut points. Make summaries of large parts with `--exact`. Then
    counts, classes, and attributes of at most 128 groups are the same as in a summary
    of the whole table. Attributes with more groups keep the groups and ranges of the
    first part.
    """
    from aegis.signing import load_public_key
    from aegis.summary import merge_bundles, save_bundle

    check_outputs([(output, (BUNDLE,))], force=force)
    key = None if verify_key is None else load_public_key(verify_key)
    merged = merge_bundles(summaries, verify_key=key)
    save_bundle(merged, output, force=force)
    shell = Output(format, quiet)
    if len(summaries) == 1:
        shell.warn([f"{summaries[0]} is the only part: {output} holds the same"])
    figures = merged.to_dict()
    document = {"schema": SCHEMA, **figures, "parts": len(summaries)}
    document["files"] = written_dict([output])
    if shell.as_data(document, ("class", "rows"), list(figures["classes"].items())):
        return
    shell.show(
        line(
            f"Merged {counted(len(summaries), 'summary', 'summaries')}: {counted(merged.rows, 'row')}"
        )
    )
    shell.say(*written([output]))
    why = "rank configurations from the merged summary"
    shell.suggest(*next_step(why, "advise", output, policy="POLICY", o=unused("best.yaml")))
