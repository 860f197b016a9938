"""Advice from a protected summary: `aegis advise FILE.protected`."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from aegis.cli.files import next_step, unused, written
from aegis.cli.options import Format
from aegis.cli.output import Output
from aegis.cli.progress import reporting
from aegis.errors import PolicyError

if TYPE_CHECKING:
    from aegis.policy import Configuration, Policy
    from aegis.protect import ProtectedAdvice, ProtectedRanked, ProtectedSummary

NEEDS_EXACT = {
    "--measure": "a protected summary is scored by the target-coded trace alone",
    "--objective": "a protected summary is scored by the target-coded trace alone",
    "--front": "a front needs the classes of every configuration",
    "--after": "its owner holds the rule against earlier releases",
    "--with": "record-level methods need the rows",
    "--estimate": "its deviations are from what was protected, not from the raw table",
}


def advise_protected(
    table: str,
    policy_file: Path,
    *,
    search: bool,
    listed: Mapping[str, Configuration] | None,
    generate: int | None,
    time_limit: float | None,
    top: int,
    output: Path | None,
    report: Path | None,
    refused: Mapping[str, object],
    page: Output,
    seed: int,
) -> None:
    """Rank or search from a protected summary, and print and write what was found."""
    from aegis.files import write_text
    from aegis.policy import dump_configurations, load_policy
    from aegis.protect import load_protected, rank_protected, search_protected

    for name, given in refused.items():
        if given is not None:
            raise PolicyError(
                f"{name} was given with a protected summary: {NEEDS_EXACT[name]}.",
                hint="Leave it out, or give the table or its exact summary (.aegis).",
            )
    policy = load_policy(policy_file)
    summary = load_protected(table)
    require_policy(summary, policy)
    with reporting(quiet=page.quiet) as progress:
        if search:
            advice = search_protected(
                summary, top=top or 10, time_limit=time_limit, progress=progress
            )
        else:
            advice = rank_protected(
                summary, listed, generate_count=generate, seed=seed, progress=progress
            )
    best = advice.best
    if output is not None and best is not None:
        write_text(output, dump_configurations({best.name: best.configuration}))
    if report is not None:
        from aegis.report.protected import render_protected

        write_text(report, render_protected(advice))
    _print(page, advice, top or None)
    made = output if best is not None else None
    page.say(*written([made, report]))
    advice.require_best()
    if made is not None:
        page.suggest(
            *next_step(
                "have its owner mask the table, which checks the rule",
                *("aegis", "apply", "TABLE", "--policy", str(policy_file)),
                *("--configuration", str(made), "-o", unused(made.with_name("masked.parquet"))),
            )
        )


def require_policy(summary: ProtectedSummary, policy: Policy) -> None:
    """Raise `PolicyError` where a protected summary was made for other roles or masks."""
    asked = {a.name: (a.role, a.masks) for a in policy.features if a.scored}
    made = {
        a.name: (a.role, tuple(c.declared for c in a.candidates))
        for a in summary.attributes.values()
    }
    differing = [name for name in {**asked, **made} if asked.get(name) != made.get(name)]
    if summary.label != policy.label.column:
        differing.append(policy.label.column or summary.label)
    if differing:
        raise PolicyError(
            "The protected summary was made for another policy: label, role or masks differ for "
            f"{', '.join(differing)}.",
            hint="Ask for one that was made with this policy.",
        )


def _print(page: Output, advice: ProtectedAdvice, top: int | None) -> None:
    if page.format is Format.JSON:
        page.json(advice.to_dict())
        return
    names = ("rank", "name", "score", "stderr", "kept", "tied", "rule")
    rows = [_row(i, ranked) for i, ranked in enumerate(advice.ranking[:top])]
    if page.format is Format.CSV:
        page.csv(names, rows)
        return
    from aegis.cli.tables import Column, heading, line, number, pairs, table

    figures = advice.summary["protection"]
    page.show(
        line(
            f"{advice.combinations:,} combinations; scores by {_ESTIMATORS[advice.estimator]}, level "
            f"{figures['level']}"
        ),
        line(""),
    )
    columns = (
        *(number(names[0]), Column(names[1]), number(names[2]), number(names[3])),
        *(number(names[4]), Column(names[5]), Column(names[6])),
    )
    page.show(table(columns, ([_text(v) for v in row] for row in rows)))
    if advice.best is not None:
        page.show(line(""), heading(f"Best: {advice.best.name}"))
        page.show(pairs(advice.best.declared.items()))
    page.warn(advice.warnings)


_ESTIMATORS = {
    "codes": "target-coded trace",
    "tables": "mean square contingency of each attribute, added up",
}
_RULE = {True: "meets it", False: "breaks it", None: "not said"}
_TIED = {True: "tied with best", False: "", None: ""}


def _row(index: int, ranked: ProtectedRanked) -> list[Any]:
    return [
        *(index + 1, ranked.name, ranked.score, ranked.stderr, ranked.utility_kept),
        *(_TIED[ranked.tied_with_best], _RULE[ranked.admissible]),
    ]


def _text(value: object) -> str:
    if value is None:
        return ""
    return f"{value:.4g}" if isinstance(value, float) else str(value)
