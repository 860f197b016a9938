"""`aegis serve`: the catalog for an organisation, or the workbench for one's own tables."""

from __future__ import annotations

import os
import sys
from ipaddress import ip_network
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from aegis.cli.options import Quiet
from aegis.cli.output import Output
from aegis.errors import PolicyError
from aegis.service.commands.service_options import (
    CATALOG,
    JOB_MEMORY,
    JOB_SECONDS,
    Database,
    JobMemory,
    JobSeconds,
    KeepDays,
    Objects,
    kept_for,
    work_limits,
)

if TYPE_CHECKING:
    from aegis.service.notifying import Channel
    from aegis.service.oidc import Provider

PANEL = "Serve a catalog"
"""Group of the command in the help."""
EXAMPLES = (
    "aegis serve --local data/",
    "aegis serve --database catalog.db --port 8080",
    "aegis serve --database postgresql://aegis@db/catalog --objects s3://releases --origin https://aegis.example.org --processes 4",
)
FIRST = (
    "local",
    "database",
    "objects",
    "host",
    "port",
    "origin",
    "worker",
)
"""Options that the help explains first, by parameter."""
_LOOPBACK = ("127.0.0.1", "::1", "localhost")


def command(
    local: Annotated[
        Path | None,
        typer.Option(
            "--local",
            metavar="FOLDER",
            help="Open the tables of this folder in a workbench, without accounts. Only this machine "
            "can reach it.",
        ),
    ] = None,
    database: Database = CATALOG,
    objects: Objects = None,
    host: Annotated[
        str, typer.Option("--host", metavar="ADDRESS", help="Address to listen on.")
    ] = "127.0.0.1",
    port: Annotated[
        int, typer.Option("--port", metavar="PORT", min=0, max=65535, help="Port to listen on.")
    ] = 8080,
    origin: Annotated[
        str | None,
        typer.Option(
            "--origin",
            metavar="URL",
            help="Behind a proxy: the address that browsers use (https://...).",
        ),
    ] = None,
    issuer: Annotated[
        str | None,
        typer.Option(
            "--oidc-issuer",
            metavar="URL",
            help="Identity provider (OpenID Connect) at which people may also sign in.",
        ),
    ] = None,
    client: Annotated[
        str | None,
        typer.Option(
            "--oidc-client",
            metavar="ID",
            help="The client ID of this service at the identity provider. Aegis reads the secret from "
            "AEGIS_OIDC_SECRET.",
        ),
    ] = None,
    roles_claim: Annotated[
        str | None,
        typer.Option(
            "--oidc-roles-claim",
            metavar="CLAIM",
            help="The claim that decides about roles, such as groups, instead of the page Accounts.",
        ),
    ] = None,
    roles: Annotated[
        str,
        typer.Option(
            "--oidc-roles",
            metavar="VALUE=ROLE,...",
            help="The role that each value of the claim gives. Other values give no role.",
        ),
    ] = "",
    worker: Annotated[
        bool,
        typer.Option("--worker/--no-worker", help="Also work on background jobs in this process."),
    ] = True,
    processes: Annotated[
        int,
        typer.Option(
            "--processes",
            metavar="NUMBER",
            min=1,
            max=64,
            help="How many processes answer calls, for example one per processor (Linux, macOS).",
        ),
    ] = 1,
    job_seconds: JobSeconds = JOB_SECONDS,
    job_memory: JobMemory = JOB_MEMORY,
    keep_days: KeepDays = None,
    proxies: Annotated[
        list[str] | None,
        typer.Option(
            "--trust-proxy",
            metavar="ADDRESS",
            help="Address or network (10.1.0.0/16) of your proxy. Aegis reads the caller's address "
            "from its X-Forwarded-For. By default: this machine, if --origin is https://.",
        ),
    ] = None,
    access_log: Annotated[
        str | None,
        typer.Option(
            "--access-log",
            metavar="FILE",
            help="Log each call to this file as a line of JSON; - for standard output.",
        ),
    ] = None,
    notify: Annotated[
        Path | None,
        typer.Option(
            "--notify",
            metavar="FILE",
            help="Settings for mail or webhook (YAML), to notify people of requests that wait for "
            "them. If several services share a database, give it to one of them.",
        ),
    ] = None,
    quiet: Quiet = False,
) -> None:
    """Serve the catalog between providers, operators and consumers, or a workbench.

    You give a database, which Aegis makes if it is missing, or with `--local` a folder
    of tables. Aegis serves pages and, under /api/v1, a REST API. The service never
    holds an unmasked row: agents mask next to the data. Ctrl-C ends it.
    """
    from aegis.service.run import serve
    from aegis.service.settings import Operation, ServiceSettings

    if local is not None and host not in _LOOPBACK:
        raise PolicyError(
            f"A workbench without accounts would be open to all who reach {host}.",
            hint="Leave --host out; for several people serve a catalog, without --local.",
        )
    if local is not None and not local.is_dir():
        raise PolicyError(f"{local} is no folder.", hint="Give the folder of your tables.")
    if processes > 1:
        _require_several(processes, local, port)
    shown = f"[{host}]" if ":" in host else host
    settings = ServiceSettings(
        database=database,
        objects=objects,
        local=local is not None,
        folder=local,
        origin=origin or f"http://{shown}:{port}",
        worker=worker,
        processes=processes,
        provider=_provider(issuer, client, roles_claim, roles),
        work=work_limits(job_seconds, job_memory),
        operation=Operation(
            proxies=_proxies(proxies),
            access_log=access_log,
            keep=kept_for(keep_days),
            channels=_channels(notify),
        ),
    )
    Output(quiet=quiet).say(f"Serving on {settings.origin} (Ctrl-C ends it)")
    serve(settings, host, port)


def _require_several(processes: int, local: Path | None, port: int) -> None:
    """Raise where one process must answer all calls."""
    if local is not None:
        raise PolicyError(
            f"{processes} processes for a workbench, whose open tables are in the memory of one.",
            hint="Leave --processes out; for several people serve a catalog, without --local.",
        )
    if sys.platform == "win32":
        raise PolicyError(
            f"{processes} processes on Windows, where they cannot count calls together.",
            hint="Leave --processes out.",
        )
    if port == 0:
        raise PolicyError("Several processes need one port.", hint="Give --port above 0.")


def _proxies(given: list[str] | None) -> tuple[str, ...] | None:
    """Return the proxies that are trusted; raise where one is no address or network."""
    for proxy in given or ():
        try:
            ip_network(proxy)
        except ValueError as error:
            raise PolicyError(
                f"{proxy!r} is no address of a proxy: {error}.",
                hint="Give an address such as 10.1.0.4, or a network such as 10.1.0.0/16.",
            ) from error
    return tuple(given) if given else None


def _channels(notify: Path | None) -> tuple[Channel, ...]:
    from aegis.service.notifying import load_channels

    return () if notify is None else load_channels(notify)


def _provider(
    issuer: str | None, client: str | None, claim: str | None, roles: str
) -> Provider | None:
    from aegis.service.oidc import Provider

    if issuer is None and client is None and claim is None and not roles:
        return None
    if issuer is None or client is None:
        raise PolicyError(
            "An identity provider has an address and knows this service by a name.",
            hint="Give both --oidc-issuer and --oidc-client.",
        )
    secret = os.environ.get("AEGIS_OIDC_SECRET")
    return Provider(issuer, client, secret, claim, _roles(roles))


def _roles(text: str) -> dict[str, str]:
    """Return the role of each value of a claim, from `VALUE=ROLE,...`."""
    pairs = [pair.rpartition("=") for pair in text.split(",") if pair.strip()]
    if not all(value.strip() and role.strip() for value, _, role in pairs):
        raise PolicyError(
            f"--oidc-roles is {text!r}.", hint="Write VALUE=ROLE, such as aegis-admins=admin."
        )
    return {value.strip(): role.strip() for value, _, role in pairs}
