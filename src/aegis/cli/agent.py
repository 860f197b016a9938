"""`aegis agent`: mask beside the data what a catalog has approved."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from aegis.cli.options import Quiet
from aegis.cli.output import Output

EXAMPLES = (
    "AEGIS_TOKEN=... aegis agent agent.yaml",
    "AEGIS_TOKEN=... aegis agent agent.yaml --once",
)


def command(
    settings: Annotated[
        Path,
        typer.Argument(
            metavar="FILE",
            help="YAML: url of the service, key (PEM, as aegis keygen makes it), sources "
            "(name: path of a table), and optionally name.",
            show_default=False,
        ),
    ],
    token: Annotated[
        str,
        typer.Option(
            "--token",
            envvar="AEGIS_TOKEN",
            metavar="TOKEN",
            help="The provider's token with the scopes work and upload-summary; better given by "
            "the environment than on the command line.",
            show_default=False,
        ),
    ],
    once: Annotated[bool, typer.Option("--once", help="Stop when no job is waiting.")] = False,
    quiet: Quiet = False,
) -> None:
    """Work beside the data for a catalog: summarise, check, mask, sign, hand in.

    In: a file that names the service, the provider's key and the tables that may be
    read. Out: what leaves is a protected summary, a verdict on configurations, or a
    masked file that was verified, each signed. The agent opens no port: it asks for
    work. After a kill it goes on with what was begun. Ends with Ctrl-C.
    """
    from aegis.service.agent import Agent, AgentSettings

    shell = Output(quiet=quiet)
    agent = Agent(AgentSettings.load(settings, token), say=shell.say)
    shell.say(f"Working for {agent.settings.url} as {agent.settings.name} (Ctrl-C ends it)")
    if not once:
        agent.run()
        return
    while agent.once():
        continue
