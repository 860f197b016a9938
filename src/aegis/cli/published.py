"""Masked tables as a publisher holds them: `aegis summarize --masked`, and advice from what it wrote."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from aegis.cli.advice import print_advice
from aegis.cli.files import check_outputs, next_step, written, written_dict
from aegis.cli.formats import SummaryRequest
from aegis.cli.options import Format
from aegis.cli.output import Output
from aegis.cli.progress import reporting
from aegis.errors import PolicyError
from aegis.files import PUBLISHED
from aegis.words import counted

if TYPE_CHECKING:
    from aegis.published import Published

SCHEMA = 1
"""Version of the JSON form; it changes when a field changes its meaning."""

Masked = Annotated[
    list[str] | None,
    typer.Option(
        "--masked",
        metavar="NAME=TABLE",
        help="In place of TABLE: a table that is already masked, with a name for its "
        "configuration, such as M17=seventeen.parquet. Give one for each configuration.",
    ),
]
Counted = Annotated[
    list[str] | None,
    typer.Option(
        "--contingency",
        metavar="NAME=FILE",
        help="In place of a masked table: its contingency tables (CSV, Parquet), with the columns "
        "attribute, value, label and rows. They rank by measures of one attribute, without a rule.",
    ),
]
Histograms = Annotated[
    Path | None,
    typer.Option(
        "--histograms",
        metavar="FILE",
        help="With --masked: rows by attribute and raw value (JSON or YAML), or a folder with a CSV "
        "file for each attribute.",
    ),
]
Mapping_ = Annotated[
    Path | None,
    typer.Option(
        "--mapping",
        metavar="FILE",
        help="With --masked: the raw values that masked ones stand for, by configuration and "
        "attribute (JSON or YAML).",
    ),
]


def summarize_masked(
    masked: Sequence[str],
    contingency: Sequence[str],
    policy_file: Path,
    output: Path,
    histograms: Path | None,
    mapping: Path | None,
    *,
    refused: Mapping[str, object],
    shell: Output,
    exact: bool,
    locked: bool,
    seed: int,
    force: bool,
) -> None:
    """Write what masked tables hold, and say so."""
    from aegis.policy import load_policy
    from aegis.published import (
        publish,
        read_contingencies,
        read_histograms,
        read_mapping_of,
        save_published,
    )

    _refuse(refused)
    tables = _named("--masked", masked)
    counts = _named("--contingency", contingency)
    check_outputs(
        [(output, (PUBLISHED,))],
        force=force,
        inputs=(*tables.values(), *counts.values(), policy_file, histograms, mapping),
    )
    policy = load_policy(policy_file)
    with reporting(quiet=shell.quiet) as progress:
        published = publish(
            tables,
            policy,
            contingencies={name: read_contingencies(file) for name, file in counts.items()},
            histograms=None if histograms is None else read_histograms(histograms),
            mappings=None if mapping is None else read_mapping_of(mapping),
            exact=exact,
            locked=locked,
            seed=seed,
            progress=progress,
        )
    save_published(published, output, force=force)
    _print(shell, published, output, policy_file)


def _refuse(options: Mapping[str, object]) -> None:
    for name, given in options.items():
        if given:
            raise PolicyError(f"{name} is not for masked tables.", hint="Leave it out.")


def _named(option: str, values: Sequence[str]) -> dict[str, str]:
    """Return tables by name, from NAME=TABLE."""
    tables: dict[str, str] = {}
    for given in values:
        name, equals, table = given.partition("=")
        if not (name and equals and table):
            raise PolicyError(
                f"{option} {given!r} does not name a configuration and its table.",
                hint=f"Write {option} M1=one.parquet.",
            )
        if name in tables:
            raise PolicyError(
                f"{option} names two tables {name!r}.", hint="Give each its own name."
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
        shell.json(data) if shell.format is Format.JSON else shell.figures(data)
        return
    from aegis.cli.tables import pairs

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


TAKEN_BY = "aegis advise and aegis report take the counts of masked tables"
HOLDS = "holds the counts of masked tables"
REFUSED = (
    "--objective",
    "--front",
    "--prefer",
    "--search",
    "--configurations",
    "--generate",
    "--with",
    "--after",
    "--population",
    "--output",
    "--verify-key",
    "--proxy",
    "--merit",
    "--models",
    "--evaluate",
    "--leave-out",
)
"""Options that need the table or its summary."""


def advise(asked: SummaryRequest) -> None:
    """Rank masked tables, and print and write what was found."""
    from aegis.policy import load_policy
    from aegis.published import load_published, rank_published
    from aegis.report import render_report, write_page

    options, shell = asked.options, asked.shell
    _refuse({name: options.get(name) for name in REFUSED})
    policy = load_policy(asked.policy_file)
    with reporting(quiet=shell.quiet) as progress:
        advice = rank_published(
            load_published(asked.path),
            policy,
            measure=options.get("--measure"),
            estimate=options.get("--estimate"),
            rule_override=bool(options.get("--rule-override")),
            progress=progress,
        )
    report = options.get("--report")
    if report is not None:
        write_page(report, render_report(advice))
    if asked.printed:
        print_advice(shell, advice, asked.path, policy, options.get("--top") or None)
    else:
        shell.warn(advice.warnings)
    shell.say(*written([report]))
    advice.require_best()


def reconstruct(
    path: str,
    attribute: str,  # noqa: ARG001 - of the seam
    options: Mapping[str, Any],  # noqa: ARG001
    shell: Output,  # noqa: ARG001
) -> None:
    """Refuse: the counts are of masked values."""
    raise PolicyError(
        f"{path} {HOLDS}, and this needs a table or its exact summary (.aegis).",
        hint=f"Give one of these; {TAKEN_BY}.",
    )
