"""`aegis publish`: write counts of masked tables, so that others can rank the tables."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from aegis.cli.files import check_outputs, next_step, written, written_dict
from aegis.cli.output import Output, RunOptions, pairs, reporting
from aegis.cli.parameters import ExactPairs, PolicyFile, output_file, takes_records
from aegis.errors import PolicyError
from aegis.options import option
from aegis.words import counted

if TYPE_CHECKING:
    from aegis.papers.published import Published

SCHEMA = 1
"""Version of the JSON form; it changes if a field changes its meaning."""
PANEL = "Research"
"""Group of the command in the help."""
EXAMPLES = (
    "aegis publish --masked M1=table.csv --masked M2=march.parquet -p policy.yaml -o m.published",
    "aegis publish --masked M1=table.csv -p policy.yaml -o locked.published --locked",
)


@dataclass(frozen=True, kw_only=True)
class PublishCommand:
    """Options and arguments of `aegis publish`."""

    policy_file: PolicyFile
    output: Annotated[Path, output_file("The file to write (.published).")]
    masked: list[str] | None = option(
        None,
        "A masked table with a name, such as M17=seventeen.parquet. Repeat the option for "
        "each configuration.",
        "NAME=TABLE",
    )
    contingency: list[str] | None = option(
        None,
        "Contingency tables (CSV, Parquet) instead of a masked table, with the columns "
        "attribute, value, label and rows. You can rank them by measures of one attribute, "
        "without a rule.",
        "NAME=FILE",
    )
    histograms: Path | None = option(
        None,
        "Numbers of rows by attribute and raw value: a JSON or YAML file, or a folder with a "
        "CSV file for each attribute.",
        "FILE",
    )
    mapping: Path | None = option(
        None,
        "Which raw values each masked value may represent, by configuration and attribute (JSON "
        "or YAML).",
        "FILE",
    )
    exact: ExactPairs = False
    locked: bool = option(
        False, "Allow no weaker rule than this policy's wherever the file is used."
    )
    running: RunOptions


@takes_records
def command(options: PublishCommand) -> None:
    """Reduce masked tables to counts, in one file; with it, others can rank the tables.

    You give the tables that a publisher has masked, one for each configuration, and the
    policy. Aegis writes the counts of these tables to a file (.published). The commands
    aegis advise and aegis report read this file. With --histograms and --mapping,
    aegis advise --estimate can also rank by the estimated deviation from the raw table."""
    from aegis.papers.published import (
        publish,
        read_contingencies,
        read_histograms,
        read_mapping_of,
        save_published,
    )
    from aegis.papers.published.model import EXTENSION
    from aegis.policy import load_policy

    tables = _named("--masked", options.masked or ())
    counts = _named("--contingency", options.contingency or ())
    if not tables and not counts:
        raise PolicyError(
            "No masked table is given.", hint="Give at least one: --masked M1=one.parquet."
        )
    output, histograms, mapping = options.output, options.histograms, options.mapping
    check_outputs(
        [(output, (EXTENSION,))],
        force=options.running.force,
        inputs=(*tables.values(), *counts.values(), options.policy_file, histograms, mapping),
    )
    policy = load_policy(options.policy_file)
    with reporting(quiet=options.running.quiet) as progress:
        published = publish(
            tables,
            policy,
            contingencies={name: read_contingencies(file) for name, file in counts.items()},
            histograms=None if histograms is None else read_histograms(histograms),
            mappings=None if mapping is None else read_mapping_of(mapping),
            exact=options.exact,
            locked=options.locked,
            seed=options.running.seed,
            progress=progress,
        )
    save_published(published, output, force=options.running.force)
    _print(options.running.shell, published, output, options.policy_file)


def _named(option: str, values: Sequence[str]) -> dict[str, str]:
    """Return the tables by name in the values NAME=TABLE of an option."""
    tables: dict[str, str] = {}
    for text in values:
        name, equals, table = text.partition("=")
        if not (name and equals and table):
            raise PolicyError(
                f"{option} {text!r} does not name a configuration and its table.",
                hint=f"Write {option} M1=one.parquet.",
            )
        if name in tables:
            raise PolicyError(
                f"{option} gives two tables the name {name!r}.", hint="Give each its own name."
            )
        tables[name] = table
    return tables


def _print(shell: Output, published: Published, output: Path, policy_file: Path) -> None:
    first = published.first
    if not shell.tabular:
        data = {
            "schema": SCHEMA,
            "masked": {
                name: {
                    "rows": s.rows,
                    "values": {a.name: a.unmasked.size for a in s.all_attributes},
                }
                for name, s in published.tables.items()
            },
            "contingency_tables": sorted(published.marginal),
            "histograms": list(published.histograms),
            "mappings": {name: list(mapping) for name, mapping in published.mappings.items()},
            "files": written_dict([output]),
        }
        shell.as_data(data)
        return
    shell.show(
        pairs(
            (
                (
                    "Masked tables",
                    f"{', '.join(published.tables)}: {counted(first.rows, 'row')} each",
                ),
                ("Histograms", ", ".join(published.histograms) or "none"),
                ("Mappings", ", ".join(published.mappings) or "none"),
            )
        )
    )
    shell.say(*written([output]))
    # Contingency tables take a measure of single attributes; tables the default.
    measure = ("--measure", "mi") if published.marginal else ()
    shell.suggest(
        *next_step("rank the masked tables", "advise", output, "--policy", policy_file, *measure)
    )
