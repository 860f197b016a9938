"""Open the catalog's database: SQLite from a path, or PostgreSQL from a URL."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Lock
from typing import Any
from weakref import finalize

from alembic import command
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.util.exc import CommandError
from sqlalchemy import Connection, Engine, create_engine, event, inspect, text
from sqlalchemy.exc import ArgumentError, SQLAlchemyError
from sqlalchemy.orm import Session

from aegis.errors import EngineError
from aegis.service.catalog.records import Base

CONNECTIONS = 40
_PATIENCE = 30
"""Number of seconds that a writer waits for its turn."""
_BEGIN = text("BEGIN IMMEDIATE")
_TURN = text("SELECT pg_advisory_xact_lock(:key)")
_WRITERS = 0x41454749
"""Number of the lock that the writers of a PostgreSQL database take in turn."""


class Database:
    """The database of the catalog. `url` is a URL as SQLAlchemy reads it, or the path of an SQLite
    file. `connections` stay open, one for each thread that uses the database. Raise `EngineError`
    if the database cannot be reached, or the URL names an unknown kind of database.
    """

    def __init__(self, url: str, *, connections: int = CONNECTIONS) -> None:
        self.engine = _open(url, connections)
        # A catalog that nobody uses any more leaves no connection open; Python 3.13 warns of those.
        finalize(self, self.engine.dispose)
        self._writers = Lock()
        self._migrate()

    @contextmanager
    def reading(self) -> Iterator[Session]:
        """Yield a session for reading only."""
        with Session(self.engine, expire_on_commit=False) as session:
            yield session

    @contextmanager
    def writing(self) -> Iterator[Session]:
        """Yield a session that may write, and commit its transaction at the end. Writers wait for
        each other, so that the log is one chain and decisions use the current state.
        """
        if not self._writers.acquire(timeout=_PATIENCE):
            raise EngineError(
                "Too many calls are waiting to write to the database.",
                hint="Try again in a minute.",
            )
        try:
            with Session(self.engine, expire_on_commit=False) as session, session.begin():
                self._lock(session)
                yield session
        finally:
            self._writers.release()

    def _lock(self, writer: Session | Connection) -> None:
        """Begin a transaction that writes; wait until no other process has such a transaction."""
        if self.engine.dialect.name == "sqlite":
            writer.execute(_BEGIN)
        else:
            writer.execute(_TURN, {"key": _WRITERS})

    def close(self) -> None:
        """Close all connections to the database."""
        self.engine.dispose()

    def _migrate(self) -> None:
        """Create the tables, or update those of an older version of Aegis, in one transaction."""
        settings = Config()
        settings.set_main_option("script_location", str(Path(__file__).with_name("migrations")))
        try:
            with self.engine.connect() as connection:
                settings.attributes["connection"] = connection
                self._lock(connection)
                if MigrationContext.configure(connection).get_current_revision():
                    command.upgrade(settings, "head")
                else:
                    self._require_own(connection)
                    Base.metadata.create_all(connection)
                    append_only(connection)
                    command.stamp(settings, "head")
                connection.commit()
        except CommandError as error:  # no migration of this version leads from its revision
            raise EngineError(
                "The catalog was made by a newer version of Aegis.",
                hint="Use that version, or a backup that was made before the update.",
            ) from error
        except SQLAlchemyError as error:
            raise _unreachable(self.engine, error) from error

    def _require_own(self, connection: Connection) -> None:
        """Raise `EngineError` if a file of SQLite without a catalog has tables of something else."""
        if self.engine.dialect.name != "sqlite":
            return
        others = set(inspect(connection).get_table_names()) - Base.metadata.tables.keys()
        others.discard("alembic_version")
        if others:
            raise EngineError(
                f"The database has tables of another program: {', '.join(sorted(others)[:3])}.",
                hint="Name the file of a catalog, or a new file.",
            )


def _open(url: str, connections: int) -> Engine:
    address = url if "://" in url else f"sqlite:///{Path(url).absolute()}"
    if address.startswith(("postgres://", "postgresql://")):
        address = "postgresql+psycopg://" + address.split("://", 1)[1]
    # A connection beyond the pool is made anew for each call.
    pool: dict[str, Any] = {"pool_size": connections, "max_overflow": 10}
    if address.startswith("sqlite"):
        pool["connect_args"] = {"timeout": _PATIENCE, "check_same_thread": False}
    try:
        # An error is written where its cause is looked for, and must not quote what was stored.
        engine = create_engine(address, pool_pre_ping=True, hide_parameters=True, **pool)
    except (ArgumentError, ImportError) as error:
        raise EngineError(
            "Aegis does not know this kind of database for the catalog.",
            hint="Give the path of an SQLite file, or postgresql://user@host/name.",
        ) from error
    if engine.dialect.name == "sqlite":
        _make_private(engine.url.database)
        event.listen(engine, "connect", _prepare_sqlite)
    return engine


def _make_private(path: str | None) -> None:
    """Create the database file so that only its owner can read it. SQLite gives its other files the
    same permissions.
    """
    if not path or path == ":memory:":
        return
    with suppress(OSError):  # where it cannot be made the engine says so, with the reason
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))


def _prepare_sqlite(connection: Any, record: object) -> None:  # noqa: ARG001 - SQLAlchemy's form
    """Set up an SQLite connection for several processes, for explicit transactions, and so that what
    was answered survives a power failure.
    """
    connection.isolation_level = None
    cursor = connection.cursor()
    for setting in ("journal_mode=WAL", "synchronous=FULL", "foreign_keys=ON"):
        cursor.execute(f"PRAGMA {setting}")
    cursor.close()


def _unreachable(engine: Engine, error: SQLAlchemyError) -> EngineError:
    url = engine.url.render_as_string(hide_password=True)
    reason = str(getattr(error, "orig", None) or error).splitlines()[0]
    return EngineError(
        f"The database of the catalog at {url} cannot be used: {reason}.",
        hint="Check that the database runs, and that its user may write.",
    )


def append_only(connection: Connection) -> None:
    """Create database triggers that reject changes and deletions of log entries."""
    for statement in _TRIGGERS[connection.dialect.name]:
        connection.execute(text(statement))


_TRIGGERS = {
    "sqlite": (
        "CREATE TRIGGER IF NOT EXISTS log_no_update BEFORE UPDATE ON log BEGIN "
        "SELECT RAISE(ABORT, 'the log is append-only'); END",
        "CREATE TRIGGER IF NOT EXISTS log_no_delete BEFORE DELETE ON log BEGIN "
        "SELECT RAISE(ABORT, 'the log is append-only'); END",
    ),
    "postgresql": (
        "CREATE FUNCTION refuse_log_change() RETURNS trigger AS $$ BEGIN "
        "RAISE EXCEPTION 'the log is append-only'; END $$ LANGUAGE plpgsql",
        "CREATE TRIGGER log_append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON log "
        "FOR EACH STATEMENT EXECUTE FUNCTION refuse_log_change()",
    ),
}
