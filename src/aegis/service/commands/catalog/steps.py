"""Verbs that move a request to its next or an earlier state."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from aegis.cli.output import Output
from aegis.service.commands.catalog.options import Message, RequestId
from aegis.service.commands.catalog.verb import Verb

if TYPE_CHECKING:
    from aegis.service.client import Client


def _mover(step: str, doing: str, done: str) -> Callable[..., None]:
    """Create the command of a step that needs only the request's number."""

    def command(client: Client, number: RequestId) -> None:
        moved = client.step(number, step)
        Output().say(f"Request {number} is {moved['state']}")

    command.__doc__ = f"{doing}\n\nYou give the number of the request. {done}"
    return command


def _decider(step: str, doing: str, done: str) -> Callable[..., None]:
    """Create the command of a step that also needs a reason."""

    def command(client: Client, number: RequestId, message: Message) -> None:
        moved = client.step(number, step, message=message)
        Output().say(f"Request {number} is {moved['state']}")

    command.__doc__ = f"{doing}\n\nYou give the number of the request and your reason. {done}"
    return command


def steps() -> dict[str, Verb]:
    """Return the verbs that change the state of a request, by name."""
    plain = {
        "submit": (
            "Hand in a request that is a draft or was returned.",
            "An operator can then review it.",
        ),
        "review": ("Start the review of a request.", "You can then choose what it would release."),
        "withdraw": ("Take your own request back.", "Nobody works on it any more."),
    }
    reasoned = {
        "return": (
            "Return a request to its consumer, to be changed.",
            "The consumer can edit it and hand it in again.",
        ),
        "reject": ("Refuse a request.", "You cannot undo this."),
        "revoke": ("End a release before its time.", "Nobody can download it any more."),
    }
    number = "4f2c9a"
    made = {
        step: Verb(
            _mover(step, *words),
            (
                f"aegis catalog {step} {number}",
                f"aegis catalog {step} {number} --url https://aegis.example.org",
            ),
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
