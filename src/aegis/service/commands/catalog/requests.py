"""Verbs on requests: create, review, approve, release, download and verify."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from aegis.cli.files import next_step, written
from aegis.cli.output import Output, clean
from aegis.cli.parameters import Force, Format, FormatOption, file_option, output_file
from aegis.errors import PolicyError
from aegis.files import check_output, read_text, write_text
from aegis.service.commands.catalog.options import (
    SHORT,
    DataSet,
    Message,
    RequestId,
    Token,
    Url,
    connected,
    names_in,
    show_facts,
)
from aegis.service.commands.catalog.verb import Rows, Verb

if TYPE_CHECKING:
    from aegis.service.client import Client


Purpose = Annotated[
    str, typer.Option("--purpose", metavar="TEXT", help="The purpose of the release.")
]
MeasureName = Annotated[
    str | None,
    typer.Option("--measure", metavar="NAME", help="The measure of utility, such as held-out-auc."),
]
AcceptTerms = Annotated[
    bool, typer.Option("--accept-terms", help="You accept the terms of the data set.")
]
OutputFile = Annotated[Path, output_file("File to write.")]
CertificateFile = Annotated[
    Path | None, file_option("--certificate", text="Write the certificate to this file.")
]
_MODELS = typer.Option(
    "--models", metavar="NAME,...", help="Models that you plan to train, separated by commas."
)


def request(
    client: Client,
    data_set: DataSet,
    purpose: Purpose,
    measure: MeasureName = None,
    models: Annotated[str, _MODELS] = "",
    accept_terms: AcceptTerms = False,
    draft: Annotated[
        bool,
        typer.Option(
            "--draft", help="Only save a draft. You can hand it in later with aegis catalog submit."
        ),
    ] = False,
) -> None:
    """Request a release of a data set.

    You give a data set and a purpose. Aegis prints the number of the request.
    """
    ask = client.draft if draft else client.request
    created = ask(
        data_set, purpose, measure=measure, models=names_in(models), terms_accepted=accept_terms
    )
    Output().show(created["id"][:SHORT])


def edit(
    client: Client,
    number: RequestId,
    purpose: Purpose,
    measure: MeasureName = None,
    models: Annotated[str | None, _MODELS] = None,
    accept_terms: AcceptTerms = False,
) -> None:
    """Change a request that is a draft or was returned. Fields that you do not give
    stay.

    You give the number of the request and the new fields, such as the purpose. Then
    hand it in with `aegis catalog submit`."""
    about: dict[str, Any] = {} if measure is None else {"measure": measure}
    if models is not None:
        about["models"] = names_in(models)
    if accept_terms:
        about["terms_accepted"] = True
    changed = client.change_request(number, purpose=purpose, **about)
    Output().say(f"Changed request {number}. Its state: {changed['state']}")


def status(
    client: Client,
    number: RequestId,
    format: FormatOption = Format.TABLE,  # noqa: A002 - the option's name
) -> None:
    """Show a request: its state, its purpose, the results, its newest job.

    You give the number of the request. Aegis shows the fields that your roles may see."""
    matched = client.shown(number)
    if format is Format.JSON:
        show_facts(matched, format)
        return
    keys = ("id", "data_set", "version", "consumer", "state", "message", "purpose", "measure")
    facts = {key: matched[key] for key in keys}
    if matched["stuck"] is not None:
        facts["stuck"] = matched["stuck"]
    if matched["answer"] is not None:
        facts["found"] = matched["answer"]["headline"]
        facts["rule"] = "met" if matched["answer"]["holds"] else "not met"
    if matched["job"] is not None:
        facts["job"] = matched["job"]["id"]
        facts["work"] = f"{matched['job']['kind']} {matched['job']['state']}"
    show_facts(facts, format)


def renew(
    client: Client,
    number: RequestId,
    days: Annotated[
        int,
        typer.Option(
            "--days",
            min=1,
            max=3650,
            help="How many days the release shall last from now on, within the provider's limit.",
        ),
    ],
) -> None:
    """Extend a release. This needs a new approval.

    You give a released request and a number of days. If the data set requires two
    approvers, the extension waits for the other approver.
    """
    moved = client.step(number, "renew", days=days)
    Output().say(f"You renewed request {number} for {days} days. Its state: {moved['state']}")


def statement(client: Client, number: RequestId, output: OutputFile, force: Force = False) -> None:
    """Write the statement of an approval to a file, to sign it on a machine without a
    connection.

    You give a request that waits for approval. Sign the file with `aegis catalog sign`.
    """
    check_output(output, force=force, formats=None)
    write_text(output, json.dumps(client.statement(number), ensure_ascii=False, indent=2) + "\n")
    Output().say(f"Wrote {output}")


def release(
    client: Client,
    number: RequestId,
    certificate: CertificateFile = None,
    force: Force = False,
    format: FormatOption = Format.TABLE,  # noqa: A002 - the option's name
) -> None:
    """Show a release: its file, its digest, its last day, and whose key signed it.

    You give a request that was released. With --certificate, Aegis also writes the
    certificate.
    """
    if certificate is not None:
        check_output(certificate, force=force, formats=None)
    matched = client.release(number)
    if certificate is not None:
        write_text(certificate, matched["certificate"])
        Output().say(f"Wrote {certificate}")
    hidden = () if format is Format.JSON else ("certificate", "signature")
    show_facts({key: value for key, value in matched.items() if key not in hidden}, format)


def requests(
    client: Client,
    state: Annotated[
        str | None, typer.Option("--state", metavar="STATE", help="Only those in this state.")
    ] = None,
) -> Rows:
    """List the requests that you may see, the newest first.

    If you name a state, Aegis lists only requests in this state.
    """
    keys = ("id", "data_set", "consumer", "state", "purpose")
    return [{key: request[key] for key in keys} for request in client.requests(state)]


def choose(
    client: Client,
    number: RequestId,
    configuration: Annotated[
        Path | None,
        file_option(
            "--configuration",
            "-c",
            text="The configuration (YAML), as aegis advise -o writes it. By default, Aegis searches for the best.",
        ),
    ] = None,
) -> None:
    """Choose the configuration that a request would release, or let Aegis find the
    best.

    You give a request in review. The agent checks the choice on the data, and Aegis
    then prints the result.
    """
    text = None if configuration is None else read_text(configuration, "configuration", PolicyError)
    answer = client.choose(number, text)
    Output().show(clean(answer["headline"]), *map(clean, answer["why"]))


Key = Annotated[
    Path | None,
    file_option(
        "--key",
        text="Your private key (PEM, from aegis keygen). The agent counts the approval if it "
        "knows your public key.",
    ),
]


def approve(number: RequestId, key: Key = None, url: Url = "", token: Token = "") -> None:
    """Approve a request, and with `--key` sign the approval on this machine.

    You give the number of a request in review. If the data set requires two approvers,
    the request then waits for the other one. You can also sign an approval that you
    gave without a key.
    """
    from aegis.signing import load_private_key

    private_key = None if key is None else load_private_key(key)
    with connected(url, token, private_key) as client:
        moved = client.step(number, "approve")
    signed = "with your signature" if key is not None else "without a signature"
    shell, state = Output(), moved["state"]
    shell.say(f"You approved request {number} {signed}. Its state: {state}")
    if key is None and (moved["answer"] or {}).get("signature_needed"):
        shell.say(
            "The provider's agent counts only signed approvals: approve again with --key FILE"
        )
    if state == "failed":
        shell.say(f"Make the release again: aegis catalog retry {number}")


def sign(
    statement: Annotated[
        Path,
        typer.Argument(
            metavar="FILE", help="The statement, downloaded from the page of the request."
        ),
    ],
    key: Annotated[Path, file_option("--key", text="Your private key (PEM).")],
) -> None:
    """Sign the statement of an approval, without a connection.

    You give your key and the statement, which you can download from the page of the
    request. Paste the signed approval into that page.
    """
    from aegis.service.client import sign_approval
    from aegis.signing import load_private_key

    text = read_text(statement, "statement", PolicyError)
    try:
        offered = json.loads(text)
    except ValueError as error:
        raise PolicyError(
            f"{statement} is not JSON: {error}.", hint="Download it from the page of the request."
        ) from error
    if not isinstance(offered, dict):
        raise PolicyError(
            f"{statement} is not a statement.", hint="Download it from the page of the request."
        )
    Output().json(sign_approval(offered, load_private_key(key)).to_dict())


def run(client: Client, number: RequestId) -> None:
    """Let the agent make an approved release, and wait for it.

    Give the number of an approved request. Aegis prints the state of the request once
    the agent has finished. If the data set has changed since the approval, the request
    goes back to its consumer. If no release was made, the exit code is 1.
    """
    client.step(number, "run")
    waited = client.wait(number)
    reason = clean(waited["message"])
    Output().say(f"State of request {number}: {waited['state']}{reason and '. '}{reason}")
    if waited["state"] != "released":
        raise typer.Exit(1)


def download(
    client: Client,
    number: RequestId,
    output: OutputFile,
    certificate: CertificateFile = None,
    force: Force = False,
) -> None:
    """Download a release that you requested.

    You give a released request. Aegis writes the masked file under a temporary name,
    and renames it if its digest is right. With --certificate, Aegis also writes the
    certificate, with which you can check the file: `aegis audit`.
    """
    client.download(number, output, certificate=certificate, force=force)
    shell = Output()
    shell.say(*written([output, certificate]))
    if certificate is not None:
        step = "compare the file with its certificate"
        shell.suggest(*next_step(step, "audit", output, certificate=certificate))


def verify(client: Client, number: RequestId) -> None:
    """Verify a release: its file, its certificate, its signature, and that nobody has
    revoked it.

    You give a released request. If the release was revoked, or if file, certificate and
    signature do not match, the exit code is 1.
    """
    verdict = client.verify(number)
    if verdict["verified"]:
        Output().show(
            "File, certificate and signature match. Nobody has revoked the release so far. "
            f"Its last day is {verdict['expires'][:10]}."
        )
        return
    Output().show(*map(clean, verdict["wrong"]))
    raise typer.Exit(1)


def _mover(step: str, doing: str, done: str, *, reasoned: bool) -> Callable[..., None]:
    """Return a command that does the action `step` on a request, given its number and, if
    `reasoned`, a reason. `doing` and `done` are the first and the last sentence of its help.
    """

    def move(client: Client, number: RequestId) -> None:
        Output().say(f"State of request {number}: {client.step(number, step)['state']}")

    def decide(client: Client, number: RequestId, message: Message) -> None:
        moved = client.step(number, step, message=message)
        Output().say(f"State of request {number}: {moved['state']}")

    command = decide if reasoned else move
    reason = " and your reason" if reasoned else ""
    command.__doc__ = f"{doing}\n\nYou give the number of the request{reason}. {done}"
    return command


def steps() -> dict[str, Verb]:
    """Return the subcommands of `aegis catalog` that change the state of a request, by name."""
    words = {
        "submit": (
            "Hand in a request that is a draft or was returned.",
            "An operator can then review it.",
        ),
        "review": ("Start the review of a request.", "You can then choose what it would release."),
        "withdraw": ("Take your own request back.", "Nobody works on it any more."),
        "return": (
            "Return a request to its consumer, to be changed.",
            "The consumer can edit it and hand it in again.",
        ),
        "reject": ("Refuse a request.", "You cannot undo this."),
        "revoke": ("End a release before its time.", "Nobody can download it any more."),
    }
    verbs = {}
    for step, (doing, done) in words.items():
        reasoned = step in ("return", "reject", "revoke")
        command = _mover(step, doing, done, reasoned=reasoned)
        example = f"aegis catalog {step} 4f2c9a" + (' -m "..."' if reasoned else "")
        verbs[step] = Verb(command, (example, f"{example} --url https://aegis.example.org"))
    return verbs
