"""Run a service until it is told to stop."""

from __future__ import annotations

import uvicorn

from aegis.service.app import create_app
from aegis.service.settings import Settings
from aegis.sources.embedded import lock_embedded


def serve(settings: Settings, host: str, port: int) -> None:
    """Serve on an address; returns when the process is told to end.

    The embedded engine of this process opens nothing outside of the tables of `--local`.
    """
    lock_embedded([] if settings.folder is None else [settings.folder])
    uvicorn.run(
        create_app(settings),
        host=host,
        port=port,
        log_level="warning",
        server_header=False,
        date_header=True,
        proxy_headers=settings.secure,
        timeout_graceful_shutdown=5,
        # Longer than proxies keep idle connections: one that closes as a call comes looks like a failure.
        timeout_keep_alive=75,
    )
