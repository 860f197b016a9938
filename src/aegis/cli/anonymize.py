"""`aegis anonymize`: release a table by grouping its records, verify the written file, and certify
it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from aegis.cli.apply import suppressed
from aegis.cli.files import (
    HTML,
    JSON,
    Opening,
    check_outputs,
    next_step,
    opens_table,
    repeated,
    unused,
    written,
    written_dict,
)
from aegis.cli.output import (
    Column,
    Output,
    PrintOptions,
    fixed,
    heading,
    line,
    number,
    pairs,
    percent,
    reporting,
    table_of,
)
from aegis.cli.parameters import PolicyFile, ReportFile, SignCertificate, Table
from aegis.errors import PolicyError
from aegis.files import TABLE_FORMATS
from aegis.options import option
from aegis.requests import AnonymizeRequest
from aegis.words import MOST_NAMED, counted, joined

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
FIRST = (
    "policy_file",
    "method",
    "recipe",
    "option",
    "k",
    "output",
    "certificate",
    "report",
    "force",
)
"""The options that the help explains first, by the names of their parameters."""


@dataclass(frozen=True, kw_only=True)
class MethodOptions:
    """Options that select the record-level method, by its name or by a recipe."""

    method: str | None = option(
        None, "The method (aegis anonymizers lists them).", "NAME", short="-m"
    )
    recipe: Path | None = option(
        None, "Method, options and seed from a file (YAML), as aegis advise -o writes it.", "FILE"
    )
    options: list[str] | None = option(
        None,
        "An option of the method (aegis anonymizers NAME lists them). Repeat for several.",
        "NAME=VALUE",
        name="option",
    )
    k: int | None = option(
        None, "The least number of records in a group. By default: the k of the policy's rule.", "K"
    )


@dataclass(frozen=True, kw_only=True)
class AnonymizeCommand(PrintOptions):
    """All options of `aegis anonymize`."""

    table: Table
    policy_file: PolicyFile
    grouping: MethodOptions
    release: AnonymizeRequest
    sign: SignCertificate = None
    report: ReportFile = None
    opening: Opening


@opens_table
def command(options: AnonymizeCommand) -> None:
    """Release a table by grouping its records, and verify the written file.

    You give a table, its policy and a record-level method. Aegis forms groups of
    records, and shows one common value of each quasi-identifier for all records of a
    group. The release has no identifiers and no rows of classes that break the rule.
    Aegis prints its information loss. Before the file gets its name, Aegis checks that
    it meets the policy's rule and the k that the method promises. If it does not, Aegis
    removes the file, and the exit code is 1.
    """
    from aegis.policy import load_policy, measure_of_choice, read_document
    from aegis.signing import load_private_key
    from aegis.study import Study

    release, table = options.release, options.table
    paths = [release.output, release.certificate, options.report]
    check_outputs(
        list(zip(paths, (TABLE_FORMATS, JSON, HTML), strict=True)),
        force=release.force,
        inputs=(table, options.policy_file),
    )
    if release.output is None and not release.front:
        raise PolicyError(
            "No output is named.", hint="Name it with -o, or ask for the front with --front."
        )
    policy = load_policy(options.policy_file)
    subject = options.opening.source(table, policy, quiet=options.quiet)
    recipe = options.grouping.recipe
    document = None if recipe is None else read_document(recipe, "recipe")
    chosen = _recipe(options.grouping, document, release)
    recipe_measure = None if document is None else measure_of_choice(document)
    key = None if options.sign is None else load_private_key(options.sign)
    with reporting(quiet=options.quiet) as progress:
        result = Study(subject, policy, progress=progress).anonymize(
            chosen,
            release,
            report=options.report,
            key=key,
            measure=release.measure or recipe_measure,
            style=None,  # the recipe has it, and the seed
        )
    _print(options.shell, result, policy, options.policy_file, paths)


def _recipe(grouping: MethodOptions, file: Located | None, release: AnonymizeRequest) -> Recipe:
    from aegis.anonymizers import ANONYMIZERS, Recipe, load_recipe

    method, style, seed = grouping.method, release.style, release.seed
    if (method is None) == (file is None):
        raise PolicyError(
            "Both --method and --recipe were given." if file else "No method was named.",
            hint=f"Give --recipe FILE, or --method and one of: {', '.join(ANONYMIZERS.names())}.",
        )
    options = dict(map(_option, grouping.options or ()))
    if grouping.k is not None:
        options["k"] = grouping.k
    if method is not None:
        return Recipe(method, options, seed, style)
    if options or style is not None:
        raise PolicyError(
            "The recipe already sets options and style, so you cannot give them again.",
            hint="Change them in the file, or name the method with --method.",
        )
    loaded = load_recipe(file or "")
    return loaded if seed is None else replace(loaded, seed=seed)


def _option(text: str) -> tuple[str, Any]:
    """Return name and value (parsed as YAML) of a text NAME=VALUE."""
    from aegis.policy import parse_value

    name, equals, value = text.partition("=")
    if not equals or not name.strip():
        raise PolicyError(f"--option {text!r} is not a NAME=VALUE.", hint="Write --option k=10.")
    return name.strip().replace("-", "_"), parse_value(value.strip(), f"--option {name.strip()}")


def _print(
    shell: Output,
    release: AnonymizedRelease,
    policy: Policy,
    policy_file: Path,
    paths: Sequence[str | Path | None],
) -> None:
    data = {"schema": SCHEMA} | release.to_dict() | {"files": written_dict(paths)}
    if shell.as_data(data) or shell.quiet:
        return
    from aegis.present.cautions import nothing_to_predict

    print_release(shell, release, policy)
    if release.front:
        print_front(shell, release)
    nothing = release.certificate is not None and release.utility is None
    nothing_said = (nothing_to_predict(policy.label.column),) if nothing else ()
    shell.caution([*release.notes, *release.warnings, *nothing_said])
    shell.say(*written(paths))
    shell.suggest(*_next(release, policy_file))


def _next(release: AnonymizedRelease, policy_file: Path) -> list[RenderableType]:
    if release.path is None:
        chosen = repeated(policy=policy_file, method=release.recipe.method)
        chosen += ["--option", "clusters=N", "--option", "weight=W"]
        why, output = "release the table under a setting of the front", unused("released.parquet")
        return next_step(why, "anonymize", "TABLE", *chosen, o=output)
    why = "see every privacy figure of the output"
    return next_step(why, "audit", release.path, policy=policy_file)


def print_release(shell: Output, release: AnonymizedRelease, policy: Policy) -> None:
    """Print a release with its information loss and its privacy."""
    how = "verified on the written file" if release.path else "verified in memory, not written"
    shell.show(
        line(f"Released {release.released_rows:,} of {counted(release.rows, 'row')}, {how}.")
    )
    shell.show(heading("Release"), pairs(_facts(release)))
    shell.show(heading("Information loss, lower is better"), pairs(_losses(release)))
    shell.show(heading("Privacy, measured on the output"), pairs(_privacy(release, policy)))


def _facts(release: AnonymizedRelease) -> list[tuple[str, str]]:
    grouped = release.grouped
    figures = [
        ("method", f"{release.recipe.method} ({release.recipe.anonymizer.reference})"),
        (
            "groups",
            f"{len(grouped.groups):,}, the smallest of {counted(grouped.smallest, 'record')}",
        ),
        *suppressed(release),
        ("time to group", f"{grouped.seconds:.2f} s"),
    ]
    figures += [
        (f"unseen values, shown as *: {name}", counted(rows, "row"))
        for name, rows in release.unseen.items()
    ]
    if release.dropped:
        figures.append(("columns not released", joined(release.dropped, MOST_NAMED)))
    utility = release.utility
    if utility is not None:
        figures.append(("utility kept", f"{percent(utility.utility_kept)} ({utility.basis})"))
    return figures


def _losses(release: AnonymizedRelease) -> list[tuple[str, str]]:
    loss = release.grouped.loss
    return [
        ("IL on z-scores", fixed(loss.scaled)),
        ("IL on original numbers", fixed(loss.unscaled)),
        ("normalised certainty penalty", fixed(loss.penalty)),
        ("discernibility", f"{loss.discernibility:,}"),
        ("average class size", f"{loss.average_class_size:.2f}"),
        ("average class size / k", f"{loss.normalised_class_size:.2f}"),
    ]


def _privacy(release: AnonymizedRelease, policy: Policy) -> list[tuple[str, str]]:
    report = release.audit.report
    criteria = [(str(criterion), "met") for criterion in policy.privacy.criteria]
    claims = release.claims
    claimed = "none: the method guarantees no k" if claims is None else f"k = {claims['k']}, met"
    return [
        *criteria,
        ("guaranteed by the method", claimed),
        (f"k, {report.unit} of the smallest class", f"{report.k:,}"),
        ("classes", f"{report.classes:,}"),
        (f"{report.unit} unique by quasi-identifiers", f"{report.uniques:,}"),
        (f"{report.unit} at risk above 0.2", f"{report.at_risk['0.2']:,}"),
    ]


def print_front(shell: Output, release: AnonymizedRelease) -> None:
    """Print the settings that MO-OBAM has tried, and mark those on the Pareto front."""
    shell.show(heading("Information loss against diversity"))
    shell.show(
        table_of(
            release.front,
            (number("clusters"), lambda point: f"{point.clusters:,}"),
            (number("weight"), lambda point: f"{point.weight:g}"),
            (number("IL"), lambda point: fixed(point.information_loss)),
            (number("entropy (bits)"), lambda point: fixed(point.entropy)),
            (number("smallest"), lambda point: f"{point.smallest:,}"),
            (Column("on the front"), lambda point: "yes" if point.efficient else ""),
        ),
        line(
            "\nentropy: sum over sensitive attributes of the least entropy of a cluster.",
            style="dim",
        ),
    )
