"""The catalog with its database, its file store and its upload limits."""

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
        Largest size in bytes of a protected summary, and of a masked file.
    text
        Largest number of characters of a policy, a configuration or a certificate.
    cells
        Largest number of cells (rows times columns) of a masked file.
    unpacked
        Largest unpacked size in bytes that a masked file may declare.
    work
        Time and memory limits of a search, an audit or the check of an upload. With None, this work
        has no limits and runs in the process of the service.
    """

    summary: int = 64 << 20
    release: int = 2 << 30
    text: int = 4 << 20
    cells: int = 4_000_000_000
    unpacked: int = 16 << 30
    work: WorkLimits | None = USUAL


@dataclass(frozen=True)
class Catalog:
    """Storage of data sets, requests and releases: a database, and a store (`objects`) of protected
    summaries and masked files. Every call checks the permissions of its actor.
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
        """Open a catalog; create its database and folder if they do not exist.

        Parameters
        ----------
        database
            Path of an SQLite file, or a URL such as postgresql://aegis@db/catalog.
        objects
            A folder or URL for files; by default a folder next to the SQLite file.
        connections
            Number of database connections that stay open.
        """
        if objects is None:
            objects = "objects" if "://" in database else f"{Path(database)}.objects"
        # A store that cannot be used leaves no new database behind.
        store = Objects(objects)
        return cls(Database(database, connections=connections), store, limits)
