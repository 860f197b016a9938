"""`aegis serve`: run the catalog of an organisation, or the workbench for your own tables."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from datetime import timedelta
from ipaddress import ip_network
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from aegis.cli.output import Output
from aegis.cli.parameters import Quiet, takes_records
from aegis.errors import PolicyError
from aegis.options import option
from aegis.service.commands.service_options import (
    CATALOG,
    JOB_MEMORY,
    JOB_SECONDS,
    Database,
    JobMemory,
    JobSeconds,
    KeepDays,
    Objects,
    work_limits,
)

if TYPE_CHECKING:
    from aegis.service.oidc import Provider
    from aegis.service.settings import Operation, ServiceSettings

PANEL = "Serve a catalog"
"""Group of the command in the help."""
EXAMPLES = (
    "aegis serve --local data/",
    "aegis serve --database catalog.db --port 8080",
    "aegis serve --database postgresql://aegis@db/catalog --objects s3://releases --origin https://aegis.example.org --processes 4",
)
FIRST = ("local", "database", "objects", "host", "port", "origin", "worker")
"""Parameters whose options the help explains first."""
_LOOPBACK = ("127.0.0.1", "::1", "localhost")


@dataclass(frozen=True, kw_only=True)
class SignInOptions:
    """Options on an identity provider at which people may also sign in."""

    issuer: str | None = option(
        None,
        "Identity provider (OpenID Connect) at which people may also sign in.",
        "URL",
        name="oidc_issuer",
    )
    client: str | None = option(
        None,
        "The client ID of this service at the identity provider. Aegis reads the secret from "
        "AEGIS_OIDC_SECRET.",
        "ID",
        name="oidc_client",
    )
    roles_claim: str | None = option(
        None,
        "The claim that decides about roles, such as groups, instead of the page Accounts.",
        "CLAIM",
        name="oidc_roles_claim",
    )
    roles: str = option(
        "",
        "The role that each value of the claim gives. Other values give no role.",
        "VALUE=ROLE,...",
        name="oidc_roles",
    )

    @property
    def provider(self) -> Provider | None:
        """The identity provider; None if no option names it. Raise `PolicyError` if its address or
        the ID of this service is missing, or a role has no value.
        """
        from aegis.service.oidc import Provider

        if self == SignInOptions():
            return None
        if self.issuer is None or self.client is None:
            raise PolicyError(
                "To sign in at an identity provider, the service needs its address and a client ID.",
                hint="Give both --oidc-issuer and --oidc-client.",
            )
        secret = os.environ.get("AEGIS_OIDC_SECRET")
        return Provider(self.issuer, self.client, secret, self.roles_claim, _roles(self.roles))


@dataclass(frozen=True, kw_only=True)
class OperationOptions:
    """Options for operation: processes, limits of jobs, how long files are kept, proxies, and log
    files.
    """

    processes: Annotated[
        int,
        typer.Option(
            "--processes",
            metavar="NUMBER",
            min=1,
            max=64,
            help="How many processes answer calls, for example one per processor (Linux, macOS).",
        ),
    ] = 1
    job_seconds: JobSeconds = JOB_SECONDS
    job_memory: JobMemory = JOB_MEMORY
    keep_days: KeepDays = None
    proxies: list[str] | None = option(
        None,
        "Address or network (10.1.0.0/16) of your proxy. Aegis reads the caller's address "
        "from its X-Forwarded-For. By default: this machine, if --origin is https://.",
        "ADDRESS",
        name="trust_proxy",
    )
    access_log: str | None = option(
        None, "Log each call to this file as a line of JSON; - for standard output.", "FILE"
    )
    notify: Path | None = option(
        None,
        "Settings for mail or webhook (YAML), to notify people of requests that wait for "
        "them. If several services share a database, give it to one of them.",
        "FILE",
    )

    @property
    def operation(self) -> Operation:
        """The settings for operation."""
        from aegis.service.notifying import load_channels
        from aegis.service.settings import Operation

        for proxy in self.proxies or ():
            try:
                ip_network(proxy)
            except ValueError as error:
                raise PolicyError(
                    f"{proxy!r} is not an address of a proxy: {error}.",
                    hint="Give an address such as 10.1.0.4, or a network such as 10.1.0.0/16.",
                ) from error
        return Operation(
            proxies=tuple(self.proxies) if self.proxies else None,
            access_log=self.access_log,
            keep=None if self.keep_days is None else timedelta(days=self.keep_days),
            channels=() if self.notify is None else load_channels(self.notify),
        )


@dataclass(frozen=True, kw_only=True)
class ServeCommand:
    """Options and arguments of `aegis serve`."""

    local: Path | None = option(
        None,
        "Open the tables of this folder in a workbench, without accounts. Only this machine "
        "can reach it.",
        "FOLDER",
    )
    database: Database = CATALOG
    objects: Objects = None
    host: str = option("127.0.0.1", "Address to listen on.", "ADDRESS")
    port: Annotated[
        int, typer.Option("--port", metavar="PORT", min=0, max=65535, help="Port to listen on.")
    ] = 8080
    origin: str | None = option(
        None, "Behind a proxy: the address that browsers use (https://...).", "URL"
    )
    sign_in: SignInOptions
    worker: Annotated[
        bool,
        typer.Option("--worker/--no-worker", help="Also work on background jobs in this process."),
    ] = True
    operating: OperationOptions
    quiet: Quiet = False

    @property
    def settings(self) -> ServiceSettings:
        """The settings of the service."""
        from aegis.service.settings import ServiceSettings

        host = f"[{self.host}]" if ":" in self.host else self.host
        return ServiceSettings(
            database=self.database,
            objects=self.objects,
            local=self.local is not None,
            folder=self.local,
            origin=self.origin or f"http://{host}:{self.port}",
            worker=self.worker,
            processes=self.operating.processes,
            provider=self.sign_in.provider,
            work=work_limits(self.operating.job_seconds, self.operating.job_memory),
            operation=self.operating.operation,
        )


@takes_records
def command(options: ServeCommand) -> None:
    """Serve the catalog between providers, operators and consumers, or a workbench.

    You give a database, which Aegis makes if it is missing, or with `--local` a folder
    of tables. Aegis serves pages and, under /api/v1, a REST API. The service never
    holds an unmasked row: agents mask next to the data. Ctrl-C ends the service.
    """
    from aegis.service.run import serve

    _check(options.local, options.host)
    if options.operating.processes > 1:
        _require_several(options.operating.processes, options.local, options.port)
    settings = options.settings
    Output(quiet=options.quiet).say(f"Serving on {settings.origin} (Ctrl-C ends it)")
    serve(settings, options.host, options.port)


def _check(local: Path | None, host: str) -> None:
    """Raise an error for a workbench whose folder `local` does not exist, or that other machines
    could reach through `host`.
    """
    if local is not None and host not in _LOOPBACK:
        raise PolicyError(
            f"Everybody who reaches {host} could use a workbench, because it has no accounts.",
            hint="Leave out --host. For several people, serve a catalog (without --local).",
        )
    if local is not None and not local.is_dir():
        raise PolicyError(f"{local} is not a folder.", hint="Give the folder of your tables.")


def _require_several(processes: int, local: Path | None, port: int) -> None:
    """Raise an error if one service cannot run in several processes: on Windows, on port 0, or as a
    workbench (`local`).
    """
    if local is not None:
        raise PolicyError(
            f"A workbench cannot run {processes} processes: its open tables are in the memory of one.",
            hint="Leave out --processes. For several people, serve a catalog (without --local).",
        )
    if sys.platform == "win32":
        raise PolicyError(
            f"On Windows, a service cannot run {processes} processes: they cannot count calls together.",
            hint="Leave --processes out.",
        )
    if port == 0:
        raise PolicyError("Several processes need one port.", hint="Give --port above 0.")


def _roles(text: str) -> dict[str, str]:
    """Return the role for each value of an identity provider's claim, from `VALUE=ROLE,...`."""
    pairs = [pair.rpartition("=") for pair in text.split(",") if pair.strip()]
    if not all(value.strip() and role.strip() for value, _, role in pairs):
        raise PolicyError(
            f"--oidc-roles is {text!r}.", hint="Write VALUE=ROLE, such as aegis-admins=admin."
        )
    return {value.strip(): role.strip() for value, _, role in pairs}
