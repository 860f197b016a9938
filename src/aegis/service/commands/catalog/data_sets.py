"""Commands on data sets: their description, their grants, their budget and their log."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from aegis.cli.output import Output
from aegis.cli.parameters import Force, Format, FormatOption, file_option, output_file
from aegis.errors import PolicyError
from aegis.files import check_output, write_text
from aegis.options import option
from aegis.service.commands.catalog.options import (
    Account,
    DataSet,
    show_facts,
    show_rows,
)
from aegis.service.commands.catalog.verb import Rows
from aegis.words import brief, percent

if TYPE_CHECKING:
    from aegis.service.client import Client

_HEAD = re.compile("[0-9a-f]{64}")
_NUMBER = re.compile("[0-9a-f]{1,32}", re.IGNORECASE)
PolicyFile = Annotated[
    Path, file_option("--policy", "-p", text="The policy (YAML), as aegis init writes it.")
]
Protect = Annotated[
    str,
    typer.Option(
        "--protect", metavar="LEVEL", help="Protection level of the summary: noise or counts."
    ),
]
Epsilon = Annotated[float, typer.Option("--epsilon", help="Epsilon of --protect noise.")]
Delta = Annotated[float, typer.Option("--delta", help="Delta of --protect noise.")]
Ceiling = Annotated[
    float | None,
    typer.Option("--ceiling", metavar="EPSILON", help="Privacy budget of the population."),
]


def listed(
    client: Client,
    words: Annotated[str, typer.Argument(metavar="WORDS", help="Words to search for.")] = "",
) -> Rows:
    """List the data sets that you may see.

    If you give words, Aegis lists only data sets with these words in name, title, label
    or columns.
    """
    return [
        {
            "id": listing["id"],
            "title": listing["title"],
            "provider": listing["provider"],
            "label": listing["label"] or "",
            "version": (listing["version"] or {}).get("number", ""),
            "published": listing["published"],
        }
        for listing in client.search(words)
    ]


About = Annotated[str | None, typer.Option(metavar="TEXT", help="The new text.")]


def show(
    client: Client,
    data_set: DataSet,
    format: FormatOption = Format.TABLE,  # noqa: A002 - the option's name
) -> None:
    """Show a data set: its title, its terms, its attributes and masks.

    You give the name of the data set. With --format json you see every field that the
    catalog stores.
    """
    matched = client.data_set(data_set)
    if format is not Format.TABLE:
        show_facts(matched, format)
        return
    version = matched.pop("version")
    show_facts(matched, format)
    if version is not None:
        Output().show("", f"Version {version['number']}, {version['created']}", "")
        columns = ({**column, "masks": len(column["masks"])} for column in version["columns"])
        show_rows(columns, format)


def versions(client: Client, data_set: DataSet) -> Rows:
    """List the versions of a data set, the newest first.

    For each version, Aegis prints number, date, digests of policy and summary, and
    protection.
    """
    keys = ("number", "created", "policy_sha256", "summary_sha256", "protection")
    return [{key: version[key] for key in keys} for version in client.versions(data_set)]


def policy(client: Client, data_set: DataSet) -> None:
    """Print the policy of a data set, as YAML.

    You give the name of the data set. Aegis prints the policy of its newest version.
    """
    Output().show(client.policy(data_set).rstrip())


def change(
    client: Client,
    data_set: DataSet,
    title: About = None,
    description: About = None,
    terms: About = None,
    public: Annotated[
        bool | None,
        typer.Option(
            "--public/--granted", help="Who can see it: every consumer, or only those with a grant."
        ),
    ] = None,
    approvals: Annotated[
        int | None, typer.Option("--approvals", min=1, max=2, help="How many people must approve.")
    ] = None,
    days: Annotated[
        int | None, typer.Option("--days", min=1, max=3650, help="How many days a release lasts.")
    ] = None,
    ceiling: Ceiling = None,
) -> None:
    """Change the description of a data set. Fields that you do not give stay as they
    are.

    If you change the terms, approved requests go back to review."""
    fields = {
        "title": title,
        "description": description,
        "terms": terms,
        "public": public,
        "approvals": approvals,
        "days": days,
        "ceiling": ceiling,
    }
    about = {name: value for name, value in fields.items() if value is not None}
    if not about:
        raise PolicyError("You named nothing to change.", hint=f"Give one of: {', '.join(fields)}.")
    client.change(data_set, **about)
    Output().say(f"Changed {', '.join(about)} of {data_set}")


def summary(
    client: Client,
    data_set: DataSet,
    policy_file: PolicyFile,
    protect: Protect = "noise",
    epsilon: Epsilon = 1.0,
    delta: Delta = 1e-6,
    threshold: Annotated[
        int,
        typer.Option(
            "--threshold", help="With --protect counts: the least count that the summary may show."
        ),
    ] = 11,
) -> None:
    """Ask the agent of a data set for a new protected summary, under a policy.

    You give one of your data sets and a policy. Aegis prints the number of the job.
    """
    from aegis.policy import dump_policy, load_policy

    how: dict[str, Any] = {"protect": protect, "epsilon": epsilon, "delta": delta}
    text = dump_policy(load_policy(policy_file))
    job = client.ask_summary(data_set, text, threshold=threshold, **how)
    Output().show(job["id"])


def costs(client: Client, data_set: DataSet) -> Rows:
    """Show what each candidate mask of a data set costs, from its protected summary.

    For each mask, Aegis prints the percent of predictive utility that you lose if you
    use only this mask. It prints "unknown" if the summary hides all values of the column.
    The last column says in how many percent of the rows the summary hides the value. If it
    hides much, the true losses can be much smaller or larger.
    """
    return [
        {
            **cost,
            "lost": "unknown" if cost["lost"] is None else percent(cost["lost"]),
            "hidden": percent(cost["hidden"]),
        }
        for cost in client.costs(data_set)
    ]


@dataclass(frozen=True, kw_only=True)
class AskedSummary:
    """Options for the protected summary that the agent is to make."""

    protect: Protect = "noise"
    epsilon: Epsilon = 1.0
    delta: Delta = 1e-6


@dataclass(frozen=True, kw_only=True)
class Description:
    """The published description of a data set, and the people who may see it and approve."""

    title: str = option("", "The title that people see.", "TEXT")
    description: str = option("", "A description of the data set.", "TEXT")
    terms: str = option("", "Terms that a consumer must accept.", "TEXT")
    population: str = option("", "The population that its persons belong to.", "NAME")
    public: bool = option(
        False, "Show the data set to every consumer, not only to those with a grant."
    )
    approvals: Annotated[
        int, typer.Option("--approvals", min=1, max=2, help="How many people must approve.")
    ] = 1
    ceiling: Ceiling = None


@dataclass(frozen=True, kw_only=True)
class RegisterCommand:
    """Options and arguments of `aegis catalog register`."""

    data_set: DataSet
    source: Annotated[
        str,
        typer.Option(
            "--source",
            metavar="NAME",
            help="The name of the table under sources in your agent's file.",
        ),
    ]
    key: Annotated[Path, file_option("--key", text="Public key of your agent (PEM).")]
    policy: PolicyFile
    about: Description
    summary: AskedSummary


def register(client: Client, options: RegisterCommand) -> None:
    """Register a data set, and ask its agent for a protected summary.

    You give a name, the source as your agent lists it, the agent's public key, and a
    policy. Publish the data set when its summary has arrived.
    """
    from aegis.policy import dump_policy, load_policy
    from aegis.signing import load_public_key

    policy = load_policy(options.policy)
    policy.refuse_several("The service")
    policy.refuse_weight("A protected summary")
    client.register(
        options.data_set,
        source=options.source,
        public_key=load_public_key(options.key).text,
        summary={"policy": dump_policy(policy), **vars(options.summary)},
        **vars(options.about),
    )
    Output().say(f"Registered {options.data_set}. Publish it when the agent has sent its summary")


class ExportKind(StrEnum):
    """Formats of descriptions for other catalogs."""

    CROISSANT = "croissant"
    DCAT = "dcat"
    DATAPACKAGE = "datapackage"


def export(
    client: Client,
    subject: Annotated[
        str,
        typer.Argument(
            metavar="NAME", help="A data set, or the number of a request that was released."
        ),
    ],
    kind: Annotated[
        ExportKind, typer.Option("--as", help="Croissant 1.0, DCAT 3 or Data Package 2.0.")
    ] = ExportKind.CROISSANT,
    release: Annotated[
        bool,
        typer.Option(
            "--release", help="NAME is the number of a request, even if a data set has this name."
        ),
    ] = False,
    output: Annotated[
        Path | None, output_file("File to write; without it the description is printed.")
    ] = None,
    force: Force = False,
) -> None:
    """Describe a data set or a release for other catalogs.

    You give a data set, or a request that was released. Aegis prints schema and terms,
    and for a release its file with the digest, as JSON-LD or as a Data Package.
    """
    if output is not None:
        check_output(output, force=force, formats=None)
    facts = client.export_release(subject, kind) if release else _described(client, subject, kind)
    if output is None:
        Output().json(facts)
        return
    write_text(output, json.dumps(facts, ensure_ascii=False, indent=2) + "\n")
    Output().say(f"Wrote {output}")


def _described(client: Client, subject: str, kind: ExportKind) -> dict[str, Any]:
    """Return the description of a data set or, if none has this name, of a request's release."""
    from aegis.service.catalog.errors import NotThere

    try:
        return client.export(subject, kind)
    except NotThere:
        if not _NUMBER.fullmatch(subject):
            raise
    try:
        client.number(subject)
    except NotThere as error:
        raise NotThere(
            f"There is no data set and no request {subject} that you may see.",
            hint="See the lists: aegis catalog list, aegis catalog requests.",
        ) from error
    return client.export_release(subject, kind)


Withdraw = Annotated[bool, typer.Option("--withdraw", help="Undo it.")]


def publish(client: Client, data_set: DataSet, withdraw: Withdraw = False) -> None:
    """Show a data set to consumers, or with --withdraw hide it again.

    You give the name of the data set.
    """
    client.publish(data_set, published=not withdraw)
    Output().say(f"{'Took out' if withdraw else 'Published'} {data_set}")


def grant(
    client: Client,
    data_set: DataSet,
    account: Account,
    role: Annotated[str, typer.Argument(metavar="ROLE", help="operator, approver or consumer.")],
    withdraw: Withdraw = False,
) -> None:
    """Assign an operator or approver to a data set, or let a consumer see it.

    You give the data set, an account and a role.
    """
    client.grant(data_set, account, role, granted=not withdraw)
    Output().say(f"{account} is {'no longer ' if withdraw else ''}{role} of {data_set}")


def ledger(
    client: Client,
    data_set: DataSet,
    format: FormatOption = Format.TABLE,  # noqa: A002 - the option's name
) -> None:
    """Show the privacy budget of a data set's population, and its releases.

    Aegis prints how much of the budget is spent and reserved, and what was released.
    """
    matched = client.ledger(data_set)
    if format is not Format.TABLE:
        show_facts(matched, format)
        return
    entries, releases = matched.pop("entries"), matched.pop("releases")
    show_facts(matched, format)
    for rows in (entries, releases):
        Output().show("")
        show_rows(rows, format)


def admit(
    client: Client,
    data_set: DataSet,
    account: Annotated[str, typer.Argument(metavar="ACCOUNT", help="Another provider.")],
    withdraw: Withdraw = False,
) -> None:
    """Let another provider's data sets share the budget of your population.

    You give one of your data sets and a provider. Aegis prints all providers that may
    use its population.
    """
    client.admit(data_set, account, admitted=not withdraw)
    joins = "may not share" if withdraw else "may share"
    Output().say(f"{account} {joins} the budget of the population of {data_set}")


@dataclass(frozen=True, kw_only=True)
class EntryOptions:
    """Options that choose the log entries to show."""

    by: str = option("", "Only what this account did.", "NAME")
    action: str = option("", "Only entries with this action, as the log names it.", "NAME")
    data_set: str = option("", "Only entries on this data set.", "NAME")
    since: str = option("", "Only entries from this time on (ISO 8601).", "TIME")
    until: str = option("", "Only entries up to this time (ISO 8601).", "TIME")


@dataclass(frozen=True, kw_only=True)
class LogCommand:
    """Options and arguments of `aegis catalog log`."""

    check: bool = option(False, "Only check that nobody changed the log.", name="verify")
    head: str | None = option(
        None,
        "With --verify: a hash that you noted earlier. Aegis checks that it is still in the log.",
        "HASH",
    )
    filters: EntryOptions
    export: Path | None = option(None, "Write all details as JSON lines, the oldest first.", "FILE")


def log(client: Client, options: LogCommand) -> Rows | None:
    """Show the log, or verify that nobody changed it.

    Aegis prints the entries that concern you, the newest first. You can also name an
    account. With `--verify` the exit code is 1 if the chain of entries is broken.
    """
    if options.head is not None and not options.check:
        raise PolicyError("--head works only with --verify.", hint="Give both.")
    if options.head is not None and not _HEAD.fullmatch(options.head):
        raise PolicyError(
            f"--head is {brief(options.head)}.",
            hint="A head has 64 digits, 0 to 9 and a to f: copy it from --verify.",
        )
    filters = {name: value for name, value in vars(options.filters).items() if value}
    if options.export is not None:
        check_output(options.export, force=False, formats=None)
        entries = list(client.log(**filters))[::-1]
        lines = [json.dumps(entry, ensure_ascii=False) + "\n" for entry in entries]
        write_text(options.export, "".join(lines))
        Output().say(f"Wrote {len(lines):,} entries to {options.export}")
        return None
    if not options.check:
        keys = ("number", "time", "actor", "action", "data_set", "request")
        return [{key: entry[key] or "" for key in keys} for entry in client.log(**filters)]
    verdict = client.verify_log(options.head)
    if verdict["whole"]:
        Output().show(
            f"Nobody has changed the log: {verdict['entries']:,} entries, head {verdict['head']}"
        )
        return None
    Output().show(f"Entry {verdict['broken']} is wrong: {verdict['reason']}")
    raise typer.Exit(1)
