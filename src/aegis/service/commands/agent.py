"""`aegis agent`: run next to the data, and summarise and mask tables for a catalog."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from aegis.cli.output import Output
from aegis.cli.parameters import Quiet, takes_records
from aegis.options import option
from aegis.service.commands.service_options import work_limits

PANEL = "Serve a catalog"
"""Group of the command in the help."""
EXAMPLES = (
    "AEGIS_TOKEN=... aegis agent agent.yaml",
    "AEGIS_TOKEN=... aegis agent agent.yaml --once",
    "AEGIS_TOKEN=... aegis agent agent.yaml --rotate",
    "AEGIS_TOKEN=... aegis agent agent.yaml --job-seconds 3600 --job-memory 8",
)


@dataclass(frozen=True, kw_only=True)
class AgentCommand:
    """Options and arguments of `aegis agent`."""

    settings: Annotated[
        Path,
        typer.Argument(
            metavar="FILE",
            help="Settings (YAML): url of the service, key (PEM, from aegis keygen), sources (each "
            "with table, policy and floor) and approvers. Optional: approvals, ledger, "
            "certificate, name.",
        ),
    ]
    token: Annotated[
        str,
        typer.Option(
            "--token",
            envvar="AEGIS_TOKEN",
            metavar="TOKEN",
            help="The provider's token, with the scopes work and upload-summary. Set AEGIS_TOKEN "
            "instead, so that other users cannot see it among the running commands.",
        ),
    ]
    once: bool = option(False, "Stop when no job is waiting.")
    job_seconds: float | None = option(
        None,
        "Time limit of a job, in seconds. Each job then runs in a separate process.",
        "SECONDS",
        least=1,
    )
    job_memory: float | None = option(
        None,
        "Memory limit of a job, in GiB (Linux). Each job then runs in a separate process.",
        "GIB",
        least=0.5,
    )
    rotate: bool = option(
        False, "Make a new key, register it with the service, and stop. The old key file stays."
    )
    quiet: Quiet = False


@takes_records
def command(options: AgentCommand) -> None:
    """Work for a catalog next to the data: summarise, check, mask and sign.

    You give a file that names the service, the provider's key, the tables that the
    agent may read, the policy and floor of each table, and the public keys of
    approvers. The agent sends only three things to the service: a protected summary, a
    verdict on configurations, and a masked file that it has verified. Before the agent
    sends one of these, it signs it and records it in its ledger. The agent refuses a
    job that requires more than your file allows. It opens no port, but fetches its work
    from the service. Ctrl-C ends the agent. After a kill, it resumes its work at the
    next start.
    """
    from aegis.service.agent import Agent
    from aegis.service.agent_settings import AgentSettings, rotate_key

    shell = Output(quiet=options.quiet)
    if options.rotate:
        changed = rotate_key(options.settings, options.token)
        sets = "1 data set" if changed == 1 else f"{changed} data sets"
        shell.say(f"The new key signs from now on: {sets}. The former key is kept beside it.")
        return
    work = work_limits(options.job_seconds, options.job_memory)
    agent = Agent(AgentSettings.load(options.settings, options.token, work), say=shell.say)
    shell.say(f"Working for {agent.settings.url} as {agent.settings.name} (Ctrl-C ends it)")
    if options.once:
        while agent.once():
            continue
        return
    try:
        agent.run()
    except KeyboardInterrupt:  # the way to end it
        shell.say("Stopped. Start the agent again to continue.")
