"""`aegis catalog VERB`: a service's catalog from the shell."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from aegis.cli.options import Force, Format, FormatOption
from aegis.cli.output import Output
from aegis.errors import PolicyError

if TYPE_CHECKING:
    from aegis.service.client import Client

Url = Annotated[
    str,
    typer.Option(
        "--url", envvar="AEGIS_URL", metavar="URL", help="The service.", show_default=False
    ),
]
Token = Annotated[
    str,
    typer.Option(
        "--token",
        envvar="AEGIS_TOKEN",
        metavar="TOKEN",
        help="Your token; better given by the environment.",
        show_default=False,
    ),
]
DataSet = Annotated[str, typer.Argument(metavar="DATA-SET", help="Its name in the catalog.")]
RequestId = Annotated[str, typer.Argument(metavar="REQUEST", help="Number of the request.")]
Message = Annotated[
    str, typer.Option("--message", "-m", metavar="TEXT", help="Why.", show_default=False)
]
Database = Annotated[
    str,
    typer.Option(
        "--database", metavar="FILE", help="SQLite file of the catalog, or postgresql://... ."
    ),
]


@dataclass(frozen=True)
class Verb:
    """One verb of the catalog, as the command line registers it.

    Attributes
    ----------
    command
        What it does.
    EXAMPLES
        What its help shows.
    """

    command: Callable[..., None]
    EXAMPLES: tuple[str, ...]


def account(
    name: Annotated[str, typer.Argument(metavar="NAME", help="Name of the account.")],
    roles: Annotated[
        str,
        typer.Option(
            "--roles",
            metavar="ROLE,...",
            help="provider, operator, approver, consumer, auditor, admin.",
            show_default=False,
        ),
    ],
    password: Annotated[
        str,
        typer.Option(
            "--password",
            envvar="AEGIS_PASSWORD",
            prompt=True,
            hide_input=True,
            confirmation_prompt=True,
            help="Asked for where it is not given by the environment.",
            show_default=False,
        ),
    ],
    database: Database = "aegis-catalog.db",
) -> None:
    """Make an account, on the machine of the service.

    In: a name and roles. Out: the account; the first one should be an admin, who
    makes the others on the page "Accounts".
    """
    from aegis.catalog import Catalog, accounts

    with Catalog.open(database).database.writing() as session:
        made = accounts.create(session, name, roles.split(","), password=password)
    Output().say(f"Made {made.name} ({', '.join(made.roles)})")


def token(
    name: Annotated[str, typer.Argument(metavar="ACCOUNT", help="Whose token.")],
    scopes: Annotated[
        str,
        typer.Option(
            "--scopes",
            metavar="SCOPE,...",
            help="What it may do; by default all that its owner may.",
        ),
    ] = "",
    days: Annotated[int, typer.Option("--days", min=1, max=365, help="How long it lasts.")] = 90,
    database: Database = "aegis-catalog.db",
) -> None:
    """Make a token for an account, on the machine of the service.

    In: an account and scopes. Out: the token, shown this once. An agent needs
    work,upload-summary.
    """
    from aegis.catalog import Catalog, accounts
    from aegis.catalog.access import scopes_of

    with Catalog.open(database).database.writing() as session:
        owner = accounts.actor_of(accounts.named(session, name))
        asked = [one.strip() for one in scopes.split(",") if one.strip()] or scopes_of(owner)
        _, secret = accounts.make_token(session, owner, "command line", asked, days=days)
    Output().show(secret)


def listed(
    words: Annotated[str, typer.Argument(metavar="WORDS", help="Words to search for.")] = "",
    url: Url = "",
    token: Token = "",
    format: FormatOption = Format.TABLE,  # noqa: A002 - the option's name
) -> None:
    """List the data sets that you may see.

    In: words of name, title, label or columns. Out: one line each.
    """
    with _client(url, token) as client:
        rows = [
            {
                "id": one["id"],
                "title": one["title"],
                "provider": one["provider"],
                "label": one["label"] or "",
                "version": (one["version"] or {}).get("number", ""),
                "published": one["published"],
            }
            for one in client.search(words)
        ]
    _show(rows, format)


def show(data_set: DataSet, url: Url = "", token: Token = "") -> None:
    """Show a data set: what it is, its terms, its attributes and masks.

    In: its name. Out: all that the catalog knows of it, as JSON.
    """
    with _client(url, token) as client:
        Output().json(client.data_set(data_set))


def costs(
    data_set: DataSet,
    url: Url = "",
    token: Token = "",
    format: FormatOption = Format.TABLE,  # noqa: A002 - the option's name
) -> None:
    """Show what each candidate mask of a data set costs, from its protected summary.

    In: its name. Out: percent of the predictive utility that each mask alone loses.
    """
    with _client(url, token) as client:
        rows = [{**one, "lost": f"{one['lost']:.1f} %"} for one in client.costs(data_set)]
    _show(rows, format)


def register(
    data_set: DataSet,
    source: Annotated[
        str,
        typer.Option(
            "--source", metavar="NAME", help="The table in your agent's list.", show_default=False
        ),
    ],
    key: Annotated[
        Path,
        typer.Option(
            "--key", metavar="FILE", help="Public key of your agent (PEM).", show_default=False
        ),
    ],
    policy: Annotated[
        Path,
        typer.Option(
            "--policy",
            "-p",
            metavar="FILE",
            help="Policy, as aegis init makes it.",
            show_default=False,
        ),
    ],
    title: Annotated[str, typer.Option("--title", metavar="TEXT", help="Title.")] = "",
    description: Annotated[
        str, typer.Option("--description", metavar="TEXT", help="What it is about.")
    ] = "",
    terms: Annotated[
        str, typer.Option("--terms", metavar="TEXT", help="What a consumer accepts.")
    ] = "",
    population: Annotated[
        str, typer.Option("--population", metavar="NAME", help="Whose persons it is about.")
    ] = "",
    public: Annotated[bool, typer.Option("--public", help="Every consumer may see it.")] = False,
    approvals: Annotated[
        int, typer.Option("--approvals", min=1, max=2, help="Persons who must approve.")
    ] = 1,
    ceiling: Annotated[
        float | None,
        typer.Option(
            "--ceiling", metavar="EPSILON", help="Budget of the population.", show_default=False
        ),
    ] = None,
    protect: Annotated[
        str, typer.Option("--protect", metavar="LEVEL", help="noise, or counts.")
    ] = "noise",
    epsilon: Annotated[float, typer.Option("--epsilon", help="Of the noise.")] = 1.0,
    delta: Annotated[float, typer.Option("--delta", help="Of the noise.")] = 1e-6,
    url: Url = "",
    token: Token = "",
) -> None:
    """Register a data set, and ask its agent for a protected summary.

    In: a name, the source in your agent's list, the agent's public key, a policy.
    Out: the data set; publish it when its summary has come.
    """
    from aegis.policy import load_policy
    from aegis.signing import load_public_key

    load_policy(policy)
    with _client(url, token) as client:
        client.register(
            data_set,
            source=source,
            public_key=load_public_key(key).text,
            title=title,
            description=description,
            terms=terms,
            population=population,
            public=public,
            approvals=approvals,
            ceiling=ceiling,
        )
        text = policy.read_text(encoding="utf-8")
        client.ask_summary(data_set, text, protect=protect, epsilon=epsilon, delta=delta)
    Output().say(f"Registered {data_set}; its agent was asked for a summary")


def publish(data_set: DataSet, url: Url = "", token: Token = "") -> None:
    """Show a data set to consumers.

    In: its name. Out: it stands in the catalog.
    """
    with _client(url, token) as client:
        client.publish(data_set)
    Output().say(f"Published {data_set}")


def grant(
    data_set: DataSet,
    account: Annotated[str, typer.Argument(metavar="ACCOUNT", help="Name of the account.")],
    role: Annotated[str, typer.Argument(metavar="ROLE", help="operator, approver or consumer.")],
    url: Url = "",
    token: Token = "",
) -> None:
    """Assign an operator or approver to a data set, or let a consumer see it.

    In: data set, account and role. Out: the grant.
    """
    with _client(url, token) as client:
        client.grant(data_set, account, role)
    Output().say(f"{account} is {role} of {data_set}")


def request(
    data_set: DataSet,
    purpose: Annotated[
        str, typer.Option("--purpose", metavar="TEXT", help="What it is for.", show_default=False)
    ],
    measure: Annotated[
        str | None,
        typer.Option("--measure", metavar="NAME", help="Measure of utility.", show_default=False),
    ] = None,
    models: Annotated[
        str, typer.Option("--models", metavar="NAME,...", help="Models that you mean to train.")
    ] = "",
    accept_terms: Annotated[
        bool, typer.Option("--accept-terms", help="You accept the terms of the data set.")
    ] = False,
    url: Url = "",
    token: Token = "",
) -> None:
    """Request a release of a data set.

    In: a data set and a purpose. Out: the number of the request.
    """
    named = [one.strip() for one in models.split(",") if one.strip()]
    with _client(url, token) as client:
        made = client.request(
            data_set, purpose, measure=measure, models=named, terms_accepted=accept_terms
        )
    Output().show(made["id"])


def requests(
    state: Annotated[
        str | None,
        typer.Option(
            "--state", metavar="STATE", help="Only those in this state.", show_default=False
        ),
    ] = None,
    url: Url = "",
    token: Token = "",
    format: FormatOption = Format.TABLE,  # noqa: A002 - the option's name
) -> None:
    """List the requests that you may see.

    In: nothing, or a state. Out: one line each, the newest first.
    """
    keys = ("id", "data_set", "consumer", "state", "purpose")
    with _client(url, token) as client:
        rows = [{key: one[key] for key in keys} for one in client.requests(state)]
    _show(rows, format)


def choose(
    number: RequestId,
    configuration: Annotated[
        Path | None,
        typer.Option(
            "--configuration",
            "-c",
            metavar="FILE",
            help="As aegis advise -o writes it; by default the best is searched.",
            show_default=False,
        ),
    ] = None,
    url: Url = "",
    token: Token = "",
) -> None:
    """Choose what a request would release, or have the best searched.

    In: a request in review. Out: what was found, once the agent has checked it
    beside the data.
    """
    text = None if configuration is None else configuration.read_text(encoding="utf-8")
    with _client(url, token) as client:
        client.step(number, "choose", **({} if text is None else {"configuration": text}))
        found = client.wait(number)
    answer = found["answer"]
    if answer is None:
        raise PolicyError(f"Nothing was found: {found['job']['error']}.", hint="See the log.")
    Output().show(answer["headline"], *answer["why"])


def download(
    number: RequestId,
    output: Annotated[
        Path,
        typer.Option("--output", "-o", metavar="FILE", help="File to write.", show_default=False),
    ],
    force: Force = False,
    url: Url = "",
    token: Token = "",
) -> None:
    """Download a release that you asked for.

    In: a released request. Out: the masked file; it takes its name when its digest
    is right.
    """
    with _client(url, token) as client:
        Output().say(f"Wrote {client.download(number, output, force=force)}")


def verify(number: RequestId, url: Url = "", token: Token = "") -> None:
    """Verify a release: its file, its certificate, its signature.

    In: a request. Out: whether they fit together; exit code 1 where they do not.
    """
    with _client(url, token) as client:
        found = client.verify(number)
    if found["verified"]:
        Output().show("File, certificate and signature fit together.")
        return
    Output().show(*found["wrong"])
    raise typer.Exit(1)


def ledger(data_set: DataSet, url: Url = "", token: Token = "") -> None:
    """Show the privacy budget of a data set's population, and its releases.

    In: a data set. Out: what was spent and reserved, and what was released, as JSON.
    """
    with _client(url, token) as client:
        Output().json(client.ledger(data_set))


def log(
    check: Annotated[
        bool, typer.Option("--verify", help="Only say whether the log is whole.")
    ] = False,
    url: Url = "",
    token: Token = "",
    format: FormatOption = Format.TABLE,  # noqa: A002 - the option's name
) -> None:
    """Show what happened, or verify that the log is whole.

    In: nothing. Out: the entries that concern you, the newest first; with `--verify`
    exit code 1 where the chain is broken.
    """
    with _client(url, token) as client:
        if not check:
            keys = ("number", "time", "actor", "action", "data_set", "request")
            _show([{key: one[key] or "" for key in keys} for one in client.log()], format)
            return
        found = client.verify_log()
    if found["whole"]:
        Output().show(f"The log is whole: {found['entries']:,} entries, head {found['head']}")
        return
    Output().show(f"Entry {found['broken']} does not fit: {found['reason']}")
    raise typer.Exit(1)


def _mover(step: str, doing: str, done: str) -> Callable[..., None]:
    """Return the command of a step that takes nothing but the request."""

    def command(number: RequestId, url: Url = "", token: Token = "") -> None:
        with _client(url, token) as client:
            moved = client.step(number, step)
        Output().say(f"Request {number} is {moved['state']}")

    command.__doc__ = f"{doing}\n\nIn: the number of a request. Out: {done}"
    return command


def _decider(step: str, doing: str, done: str) -> Callable[..., None]:
    """Return the command of a step that takes a reason."""

    def command(number: RequestId, message: Message, url: Url = "", token: Token = "") -> None:
        with _client(url, token) as client:
            moved = client.step(number, step, message=message)
        Output().say(f"Request {number} is {moved['state']}")

    command.__doc__ = f"{doing}\n\nIn: the number of a request, and why. Out: {done}"
    return command


def run(
    number: RequestId,
    url: Url = "",
    token: Token = "",
) -> None:
    """Have an approved release made, and wait for it.

    In: an approved request. Out: its state; it goes back where the data set has
    changed since it was approved.
    """
    with _client(url, token) as client:
        client.step(number, "run")
        found = client.wait(number)
    Output().say(f"Request {number} is {found['state']}. {found['message']}".rstrip())


def _steps() -> dict[str, Verb]:
    plain = {
        "review": ("Take a request up for review.", "it is in review."),
        "approve": ("Approve a request.", "it is approved, or waits for a second person."),
        "withdraw": ("Take your own request back.", "it is withdrawn."),
    }
    reasoned = {
        "return": ("Return a request to its consumer, to be changed.", "it is returned."),
        "reject": ("Refuse a request.", "it is rejected, for good."),
        "revoke": ("End a release before its time.", "it cannot be downloaded any more."),
    }
    number = "4f2c9a"
    made = {
        step: Verb(
            _mover(step, *words),
            (f"aegis catalog {step} {number}",) * 1
            + (f"aegis catalog {step} {number} --url https://aegis.example.org",),
        )
        for step, words in plain.items()
    }
    return made | {
        step: Verb(
            _decider(step, *words),
            (
                f'aegis catalog {step} {number} -m "..."',
                f'aegis catalog {step} {number} -m "..." --url https://aegis.example.org',
            ),
        )
        for step, words in reasoned.items()
    }


VERBS: Mapping[str, Verb] = {
    "account": Verb(account, ("aegis catalog account ada --roles admin", "aegis catalog account otto --roles operator,approver --database catalog.db")),
    "token": Verb(token, ("aegis catalog token paula --scopes work,upload-summary", "aegis catalog token paula --days 30 --database catalog.db")),
    "list": Verb(listed, ("aegis catalog list", "aegis catalog list census --format json")),
    "show": Verb(show, ("aegis catalog show census-2026", "aegis catalog show census-2026 --url https://aegis.example.org")),
    "costs": Verb(costs, ("aegis catalog costs census-2026", "aegis catalog costs census-2026 --format csv")),
    "register": Verb(register, ("aegis catalog register census-2026 --source adult --key agent.pub.pem -p policy.yaml", "aegis catalog register census-2026 --source adult --key agent.pub.pem -p policy.yaml --approvals 2 --ceiling 4")),
    "publish": Verb(publish, ("aegis catalog publish census-2026", "aegis catalog publish census-2026 --url https://aegis.example.org")),
    "grant": Verb(grant, ("aegis catalog grant census-2026 otto operator", "aegis catalog grant census-2026 clara consumer")),
    "request": Verb(request, ('aegis catalog request census-2026 --purpose "Predict income" --accept-terms', 'aegis catalog request census-2026 --purpose "Predict income" --models lr,gbdt')),
    "requests": Verb(requests, ("aegis catalog requests", "aegis catalog requests --state submitted")),
    "choose": Verb(choose, ("aegis catalog choose 4f2c9a", "aegis catalog choose 4f2c9a -c best.yaml")),
    **_steps(),
    "run": Verb(run, ("aegis catalog run 4f2c9a", "aegis catalog run 4f2c9a --url https://aegis.example.org")),
    "download": Verb(download, ("aegis catalog download 4f2c9a -o masked.parquet", "aegis catalog download 4f2c9a -o masked.parquet --force")),
    "verify": Verb(verify, ("aegis catalog verify 4f2c9a", "aegis catalog verify 4f2c9a --url https://aegis.example.org")),
    "ledger": Verb(ledger, ("aegis catalog ledger census-2026", "aegis catalog ledger census-2026 --url https://aegis.example.org")),
    "log": Verb(log, ("aegis catalog log", "aegis catalog log --verify")),
}  # fmt: skip
"""Every verb by name."""


def _client(url: str, token: str) -> Client:
    from aegis.service.client import connect

    if not url or not token:
        raise PolicyError(
            "No service or token is given.", hint="Set AEGIS_URL and AEGIS_TOKEN, or give both."
        )
    return connect(url, token)


def _show(rows: Iterable[Mapping[str, Any]], form: Format) -> None:
    """Print rows as a table, JSON or CSV."""
    from rich.table import Table

    listed = [dict(row) for row in rows]
    if form is Format.JSON:
        Output().json(listed)
        return
    if form is Format.CSV:
        header = list(listed[0]) if listed else []
        Output().csv(header, (list(row.values()) for row in listed))
        return
    table = Table(box=None, pad_edge=False)
    for name in listed[0] if listed else ("nothing",):
        table.add_column(str(name))
    for row in listed:
        table.add_row(
            *(value if isinstance(value, str) else json.dumps(value) for value in row.values())
        )
    Output().show(table)
