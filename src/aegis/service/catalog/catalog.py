"""The catalog as one object: its database, its files, its limits."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from aegis.service.catalog.database import CONNECTIONS, Database
from aegis.service.catalog.limited import USUAL, WorkLimits
from aegis.service.catalog.objects import Objects


@dataclass(frozen=True)
class UploadLimits:
    """Limits of one upload.

    Attributes
    ----------
    summary, release
        Most bytes of a protected summary, and of a masked file.
    text
        Most characters of a policy, a configuration or a certificate.
    cells
        Most rows times columns of a masked file.
    unpacked
        Most bytes that a masked file says to have when it is unpacked.
    work
        What a search, an audit or the check of an upload may take; None for no process of its own.
    """

    summary: int = 64 << 20
    release: int = 2 << 30
    text: int = 4 << 20
    cells: int = 4_000_000_000
    unpacked: int = 16 << 30
    work: WorkLimits | None = USUAL


@dataclass(frozen=True)
class Catalog:
    """The catalog of data sets, requests and releases; every call checks the caller's rights.

    Attributes
    ----------
    database
        Its tables.
    objects
        Protected summaries and masked files.
    limits
        What one upload may be.
    """

    database: Database
    objects: Objects
    limits: UploadLimits = UploadLimits()

    @classmethod
    def open(
        cls,
        database: str,
        objects: str | None = None,
        *,
        limits: UploadLimits = UploadLimits(),
        connections: int = CONNECTIONS,
    ) -> Catalog:
        """Open a catalog; its database and folders are made if they are missing.

        Parameters
        ----------
        database
            Path of an SQLite file, or a URL such as postgresql://aegis@db/catalog.
        objects
            A folder or URL for files; by default a folder beside the SQLite file.
        limits
            What one upload may be.
        connections
            How many connections with the database stay open.
        """
        if objects is None:
            objects = "objects" if "://" in database else f"{Path(database)}.objects"
        return cls(Database(database, connections=connections), Objects(objects), limits)
