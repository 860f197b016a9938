"""Delete files of ended releases, unused files, and ended sessions.

Certificates and the log are kept, because they show what was released. A release whose file was
deleted cannot be renewed.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

from sqlalchemy import delete, or_, select

from aegis.service.catalog.accounts import IDLE, LONGEST
from aegis.service.catalog.catalog import Catalog
from aegis.service.catalog.log import append
from aegis.service.catalog.records import ReleaseRecord, SignIn, Version, now

ORPHANED = timedelta(days=1)
"""Age from which unused files are deleted, because a newer file may belong to an upload in
progress.
"""


@dataclass(frozen=True)
class Removed:
    """The numbers of deleted sessions, files of ended releases, and unused files (`orphans`)."""

    sessions: int
    files: int
    orphans: int


def clean(catalog: Catalog, keep: timedelta) -> Removed:
    """Delete ended sessions, unused files, and files of releases that expired or were revoked at
    least `keep` ago.
    """
    return Removed(_sessions(catalog), _files(catalog, keep), _orphans(catalog))


def _sessions(catalog: Catalog) -> int:
    moment = now()
    over = or_(SignIn.seen < moment - IDLE, SignIn.created < moment - LONGEST)
    with catalog.database.writing() as session:
        ended = session.scalars(delete(SignIn).where(over).returning(SignIn.hash)).all()
        return len(ended)


def _files(catalog: Catalog, keep: timedelta) -> int:
    """Delete the files of releases that ended more than `keep` ago; return their number."""
    before = now() - keep
    over = or_(ReleaseRecord.revoked < before, ReleaseRecord.expires < before)
    keys = []
    with catalog.database.writing() as session:
        query = select(ReleaseRecord).where(ReleaseRecord.object_key != "", over)
        for release in session.scalars(query):
            keys.append(release.object_key)
            release.object_key = ""
            append(
                session,
                "system",
                "file removed",
                data_set=release.data_set_id,
                request=release.request_id,
                digest=release.digest,
            )
    for key in keys:
        catalog.objects.delete(key)
    return len(keys)


def _orphans(catalog: Catalog) -> int:
    matched = [key for key, created in catalog.objects.listed() if created < now() - ORPHANED]
    with catalog.database.reading() as session:
        named = set(session.scalars(select(Version.summary_key)))
        named |= set(session.scalars(select(ReleaseRecord.object_key)))
    orphans = [key for key in matched if key not in named]
    for key in orphans:
        catalog.objects.delete(key)
    return len(orphans)
