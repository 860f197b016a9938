"""`aegis histograms`: count rows by attribute and raw value, for publishers of masked tables."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

from aegis.cli.files import DEFAULT, JSON, Opening, check_outputs, opens_table, written
from aegis.cli.output import Output, reporting
from aegis.cli.parameters import Force, PolicyOfTable, Quiet, TableOrBundle, VerifyKey, output_file
from aegis.errors import PolicyError

PANEL = "Research"
"""Group of the command in the help."""
EXAMPLES = (
    "aegis histograms table.aegis -o histograms.json",
    "aegis histograms table.csv -p policy.yaml -o histograms",
)


@opens_table
def command(
    table: TableOrBundle,
    output: Annotated[
        Path,
        output_file(
            "What to write: a JSON file or, for a name without ending, a new folder with a CSV "
            "file for each attribute."
        ),
    ],
    policy: PolicyOfTable = None,
    verify_key: VerifyKey = None,
    opening: Opening = DEFAULT,
    force: Force = False,
    quiet: Quiet = False,
) -> None:
    """Write how many rows each raw value of each attribute has.

    You give a table and its policy, or a summary. `aegis publish --histograms` reads
    the file. Rows without a label do not count. Aegis leaves out attributes for which
    the summary has no histogram."""
    from aegis.files import write_text
    from aegis.papers.published import histograms_of, write_histograms
    from aegis.policy import load_policy
    from aegis.study import Study
    from aegis.summary import Summary

    folder = output.suffix == ""
    if folder:
        if output.exists():
            raise PolicyError(f"{output} exists.", hint="Name a folder that does not exist.")
        if not output.absolute().parent.is_dir():
            raise PolicyError(
                f"Cannot write {output}: its folder does not exist.", hint="Create it first."
            )
    else:
        check_outputs([(output, JSON)], force=force, inputs=(table, policy))
    declared = None if policy is None else load_policy(policy)
    subject = opening.subject(table, declared, quiet=quiet, verify_key=verify_key)
    with reporting(quiet=quiet) as progress:
        policy_of_table = None if isinstance(subject, Summary) else declared
        histograms = histograms_of(Study(subject, policy_of_table, progress=progress).summary)
    if folder:
        write_histograms(histograms, output)
    else:
        write_text(output, json.dumps(histograms, indent=1) + "\n")
    shell = Output(quiet=quiet)
    shell.say(*written([output]))
