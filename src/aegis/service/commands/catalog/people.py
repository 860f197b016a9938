"""Commands on accounts: links, passwords, second factors, sessions, and handing over data sets."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from aegis.cli.output import Output
from aegis.cli.parameters import file_option
from aegis.errors import PolicyError
from aegis.service.commands.catalog.options import Account, Roles, asked_secret, names_in
from aegis.service.commands.catalog.verb import Facts, Rows

if TYPE_CHECKING:
    from aegis.service.client import Client

Receiver = Annotated[
    str, typer.Argument(metavar="PROVIDER", help="The provider that gets the data sets.")
]
Tokens = Annotated[bool, typer.Option("--tokens", help="Revoke all tokens, too.")]
Password = Annotated[
    str,
    typer.Option(
        "--password",
        envvar="AEGIS_PASSWORD",
        callback=asked_secret("Password", "AEGIS_PASSWORD"),
        help="Your current password; by default AEGIS_PASSWORD, else a line that you pipe. "
        "Otherwise Aegis prompts for it.",
    ),
]
NewPassword = Annotated[
    str,
    typer.Option(
        "--new",
        envvar="AEGIS_NEW_PASSWORD",
        callback=asked_secret("New password", "AEGIS_NEW_PASSWORD", twice=True),
        help="The new password; by default AEGIS_NEW_PASSWORD, else the next line that you pipe. "
        "Otherwise Aegis prompts for it.",
    ),
]


def invite(client: Client, name: Account, roles: Roles) -> None:
    """Make an account and a link by which its owner sets the password.

    You give a name and roles. Aegis prints the link once and never again. The link
    works once, within 7 days.
    """
    Output().show(client.invite(name, names_in(roles))["link"])


def reset(client: Client, name: Account) -> None:
    """Make a link by which a person sets another password.

    You give an account. Aegis prints the link once and never again. The link works
    once, within a day. The present password stays valid until the person uses the link.
    The second factor stays.
    """
    Output().show(client.reset(name)["link"])


def set_password(
    link: Annotated[str, typer.Argument(metavar="LINK", help="The link that an admin sent you.")],
    new: NewPassword = "",
) -> None:
    """Set your password by the link of an invitation or a reset.

    You give the link and the password. The link works only once.
    """
    from aegis.service.client import connect

    address, _, secret = link.partition("#")
    if not secret or "/set-password" not in address:
        raise PolicyError(
            "This is not a link that sets a password.",
            hint="Give the whole link in quotes: https://HOST/set-password#SECRET.",
        )
    with connect(address.partition("/set-password")[0], "") as client:
        name = client.set_password(secret, new)
    Output().say(f"The password of {name} is set")


def sessions(client: Client) -> Rows:
    """List your open sessions.

    Aegis prints when each session began, and when it was last used.
    """
    return [{key: row[key] for key in ("created", "seen")} for row in client.sessions()]


def factor_state(client: Client) -> Facts:
    """Show whether you have a second factor.

    Aegis prints whether the second factor is on, and how many recovery codes are left.
    """
    return client.factor()


def reopen(client: Client, name: Account) -> None:
    """Open a closed account again.

    The account gets its former roles back. Its tokens stay revoked.
    """
    client.reopen(name)
    Output().say(f"{name} is open")


def end_sessions(
    client: Client,
    name: Annotated[
        str,
        typer.Argument(
            metavar="ACCOUNT", help="Name of the account. By default, your own account."
        ),
    ] = "",
    tokens: Tokens = False,
) -> None:
    """End all sessions of an account.

    You give an account. Without one, Aegis ends your own sessions. Aegis prints how
    many sessions ended.
    """
    ended = client.end_sessions(name or None, tokens=tokens)
    Output().say(f"Ended {ended['sessions']} sessions and {ended['tokens']} tokens")


def remove_factor(client: Client, name: Account) -> None:
    """Turn off the second factor of somebody who lost device and recovery codes.

    The account then signs in with its password alone, so first make sure who is asking.
    """
    client.remove_factor(name)
    Output().say(f"{name} signs in without a second factor")


def hand_over(
    client: Client,
    subject: Annotated[
        str,
        typer.Argument(
            metavar="NAME",
            help="A data set, or with --all the account that gives its data sets away.",
        ),
    ],
    to: Receiver,
    everything: Annotated[
        bool, typer.Option("--all", help="Hand over all data sets of an account, as an admin.")
    ] = False,
    key: Annotated[
        Path | None, file_option("--key", text="Public key of the other provider's agent (PEM).")
    ] = None,
) -> None:
    """Give data sets to another provider.

    You give a data set and a provider. The agent of this provider then works for the
    data set. If you own the data set's population and have no other data set of it, the
    provider gets the population, too. If you are no admin, the jobs of the data set are
    cancelled and all roles on it are taken back; the other provider grants them again.
    """
    from aegis.signing import load_public_key

    public = None if key is None else load_public_key(key).text
    if everything:
        handed = client.hand_over_all(subject, to)
    else:
        handed = [client.hand_over(subject, to, public_key=public)["id"]]
    Output().say(f"{to} is the provider of {', '.join(handed) or 'nothing more'}")


def password(client: Client, present: Password = "", new: NewPassword = "") -> None:
    """Change your password.

    You give the present password and the new one. All your sessions end."""
    client.change_password(present, new)
    Output().say("Your password is changed; all your sessions have ended")


def second_factor(
    client: Client,
    present: Password = "",
    remove: Annotated[bool, typer.Option("--remove", help="Turn it off.")] = False,
    recovery: Annotated[
        bool,
        typer.Option("--recovery", help="Make new recovery codes. The old ones become invalid."),
    ] = False,
) -> None:
    """Set up a second factor: codes of an app on your phone.

    You give your password, then a code of the app. Aegis prints recovery codes once and
    never again.
    """
    if remove:
        client.second_factor("remove", password=present)
        Output().say("Your second factor is off")
        return
    if recovery:
        Output().show(*client.second_factor("recovery", password=present)["recovery_codes"])
        return
    begun = client.second_factor("", password=present)
    Output().show(f"Key for your app: {begun['secret']}", begun["address"])
    code = typer.prompt("Code that the app shows")
    Output().show(*client.second_factor("confirm", code=code)["recovery_codes"])
