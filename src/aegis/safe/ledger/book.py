"""Keep privacy budgets in one SQLite file, safe with parallel processes and after crashes.

Everything is recorded as an event. Each event is appended in one transaction and contains the
SHA-256 of the previous event. Triggers prevent changes and deletions of events, and `verify`
detects them. A cost is reserved before anything is computed, and counts from then on. It can be
refunded only until noise is drawn or output begins. So a crash may cost budget, but never reveals
more than was paid for.
"""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import replace
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from typing import Any

from aegis.errors import AegisError, DataError, PolicyError, choices
from aegis.options import checks_types
from aegis.safe.ledger.record import (
    Balance,
    Entry,
    EntryState,
    LedgerPopulation,
    Spend,
    TableVersion,
)
from aegis.words import json_fields

APPLICATION = 0x41454749
"""SQLite application id of a ledger: "AEGI"."""
VERSION = 1
WAIT = 30.0
"""Number of seconds to wait for another process that writes."""
_FIRST = "0" * 64
_SCHEMA = (
    """create table event (
  number integer primary key,
  time text not null,
  kind text not null,
  population text not null,
  entry integer not null,
  content text not null,
  previous text not null,
  digest text not null unique
)""",
    """create trigger event_stays before update on event
begin select raise(abort, 'a ledger is only ever added to'); end""",
    """create trigger event_remains before delete on event
begin select raise(abort, 'a ledger is only ever added to'); end""",
)
_STEPS = {
    "begin": ((EntryState.RESERVED,), EntryState.BEGUN),
    "commit": ((EntryState.RESERVED, EntryState.BEGUN), EntryState.COMMITTED),
    "cancel": ((EntryState.RESERVED,), EntryState.CANCELLED),
}
"""For each step of an entry, the states in which it is possible, and the state after it."""


class Ledger:
    """The budgets of populations, and the costs charged to them.

    Parameters
    ----------
    path
        The SQLite file.
    create
        Whether to create the file if it does not exist.

    Raises
    ------
    DataError
        There is no file and `create` is not set, or the file is not a ledger.
    """

    @checks_types
    def __init__(self, path: str | Path, *, create: bool = False) -> None:
        self.path = Path(path)
        if not self.path.exists():
            if not create:
                raise DataError(
                    f"There is no ledger {self.path}.",
                    hint="Make it with its first population: aegis ledger FILE open NAME "
                    "--epsilon E --delta D.",
                )
            if not self.path.parent.is_dir():
                raise PolicyError(
                    f"Cannot make {self.path}: its folder does not exist.", hint="Create it first."
                )
            with suppress(OSError):  # SQLite says why there can be no file
                os.close(os.open(self.path, os.O_CREAT | os.O_WRONLY, 0o600))
        with self._writing(fresh=create):
            pass

    @contextmanager
    def _connected(self) -> Iterator[sqlite3.Connection]:
        try:
            connection = sqlite3.connect(self.path, timeout=WAIT, isolation_level=None)
        except sqlite3.Error as error:
            raise self._broken(error) from error
        try:
            connection.execute("pragma synchronous = full")
            yield connection
        except sqlite3.Error as error:
            raise self._broken(error) from error
        finally:
            connection.close()

    @contextmanager
    def _writing(self, *, fresh: bool = False) -> Iterator[sqlite3.Connection]:
        """Yield a connection with an open transaction, which excludes all other writers. With
        `fresh`, an empty file becomes a ledger.
        """
        with self._connected() as connection:
            connection.execute("begin immediate")
            try:
                self._check(connection, fresh=fresh)
                yield connection
                connection.execute("commit")
            except BaseException:
                if connection.in_transaction:
                    connection.execute("rollback")
                raise

    def _check(self, connection: sqlite3.Connection, *, fresh: bool) -> None:
        application = connection.execute("pragma application_id").fetchone()[0]
        tables = connection.execute("select count(*) from sqlite_master").fetchone()[0]
        if application == 0 and tables == 0 and fresh:
            for statement in _SCHEMA:
                connection.execute(statement)
            connection.execute(f"pragma application_id = {APPLICATION}")
            connection.execute(f"pragma user_version = {VERSION}")
            return
        version = connection.execute("pragma user_version").fetchone()[0]
        if application != APPLICATION or version != VERSION:
            raise DataError(
                f"{self.path} is not a ledger of version {VERSION}.", hint="Name another file."
            )

    def _broken(self, error: sqlite3.Error) -> AegisError:
        return DataError(
            f"The ledger {self.path} cannot be used: {error}.",
            hint="Check that it is a ledger, that it may be written, and who else holds it.",
        )

    @checks_types
    def open_population(
        self, name: str, *, ceiling: float, delta: float, unit: str = "rows"
    ) -> None:
        """Open the budget of the population `name`. `ceiling`, the largest total cost in rho, can
        never be raised. `delta` is used to show rho as an epsilon. `unit` says what is protected,
        `rows` or `persons`.

        Raises
        ------
        PolicyError
            The population exists already, or the ceiling or delta is out of range.
        """
        if not name.strip():
            raise PolicyError("The population has no name.", hint="Name it.")
        Spend("ceiling", ceiling, unit)
        if not 0 < delta < 1:
            raise PolicyError(f"Delta is {delta}.", hint="Allowed: above 0 and below 1.")
        with self._writing() as connection:
            if name in _populations(connection):
                raise PolicyError(
                    f"The population {name!r} is open already.",
                    hint="Use it as it is: its ceiling cannot be changed.",
                )
            content = {"ceiling": ceiling, "delta": delta, "unit": unit}
            _append(connection, "open", name, 0, content)

    def populations(self) -> tuple[LedgerPopulation, ...]:
        """Return all populations."""
        with self._connected() as connection:
            self._check(connection, fresh=False)
            return tuple(_populations(connection).values())

    @checks_types
    def population(self, name: str) -> LedgerPopulation:
        """Return the population `name`. If it does not exist, raise `PolicyError` with a list of
        all populations.
        """
        with self._connected() as connection:
            return self._population(connection, name)

    def _population(self, connection: sqlite3.Connection, name: str) -> LedgerPopulation:
        populations = _populations(connection)
        if name not in populations:
            raise PolicyError(
                f"The ledger {self.path} has no population {name!r}.",
                hint=choices(name, populations),
            )
        return populations[name]

    @checks_types
    def balance(self, name: str) -> Balance:
        """Return the spent and remaining budget of the population `name`."""
        with self._connected() as connection:
            population = self._population(connection, name)
            return Balance(population, _spent(connection, name))

    @checks_types
    def entries(self, name: str | None = None) -> tuple[Entry, ...]:
        """Return all entries of the population `name`, or of all populations, in chronological
        order.
        """
        with self._connected() as connection:
            if name is not None:
                self._population(connection, name)
            entries = _entries(connection).values()
            return tuple(e for e in entries if name in (None, e.population))

    @checks_types
    def reserve(
        self,
        name: str,
        spend: Spend | None,
        *,
        note: str = "",
        version: TableVersion | None = None,
    ) -> int:
        """Reserve a cost from the budget of a population, and return the number of the new entry.

        Parameters
        ----------
        name
            The population.
        spend
            The cost; None for outputs of level `counts` (perturbed counts), whose costs cannot be
            added up.
        note
            The purpose of the output.
        version
            The version of the table from which the output is made, if known.

        Raises
        ------
        PolicyError
            Nothing is reserved, because the population is not in this ledger or protects another
            unit, the cost would exceed the budget, or the ledger has recorded another table or
            secret key for this population.
        """
        with self._writing() as connection:
            population = self._population(connection, name)
            if version is not None:
                self._check_version(connection, name, version)
            cost = None if spend is None else self._affordable(connection, population, spend)
            content = {"spend": cost, "note": note}
            if version is not None:
                content |= {"table": version.table, "key": version.key}
            return _append(connection, "reserve", name, 0, content)

    def _affordable(
        self, connection: sqlite3.Connection, population: LedgerPopulation, spend: Spend
    ) -> dict[str, Any]:
        """Return the cost `spend` as JSON values. Raise `PolicyError` if it exceeds the rest of the
        population's budget, or has another unit.
        """
        name = population.name
        if spend.unit != population.unit:
            raise PolicyError(
                f"The budget of {name!r} protects {population.unit}, but the cost is stated for "
                f"{spend.unit}.",
                hint=f"Protect {population.unit}.",
            )
        spent = _spent(connection, name)
        if spent + spend.rho > population.ceiling * (1 + 1e-12):
            raise PolicyError(
                f"The budget of {name!r} is too small: this costs rho {spend.rho:.6g}, and "
                f"{max(population.ceiling - spent, 0):.6g} of {population.ceiling:.6g} is left.",
                hint="Use an earlier file, or choose a smaller epsilon.",
            )
        return json_fields(spend)

    def _check_version(
        self, connection: sqlite3.Connection, name: str, version: TableVersion
    ) -> None:
        """Raise `PolicyError` if a file made from this version of the population's table would
        reveal rows when it is compared with files of earlier versions. `name` is the population.
        """
        entries = [
            entry
            for entry in _entries(connection).values()
            if entry.table and entry.state is not EntryState.CANCELLED
        ]
        elsewhere = {e.population for e in entries if e.table == version.table} - {name}
        if elsewhere:
            raise PolicyError(
                f"This table belongs to the population {min(elsewhere)!r} in {self.path}, not to {name!r}.",
                hint="Name that population: its budget covers every file made from the table.",
            )
        tables = {e.table for e in entries if e.population == name}
        if tables and version.table not in tables and not version.new:
            raise PolicyError(
                f"The population {name!r} in {self.path} belongs to another table: SHA-256 "
                f"{max(entries, key=lambda e: (e.population == name, e.number)).table[:16]}..., and this one has "
                f"{version.table[:16]}....",
                hint="Name the population of this table, or add --new-version if this is a new "
                "version of that table.",
            )
        if not version.key:
            return
        if any(e.key == version.key and e.table != version.table for e in entries):
            raise PolicyError(
                "This key has protected another version of the table, or another table: the difference "
                "of two files under one key shows the rows that changed.",
                hint="Give a new key for each version, or use level noise.",
            )
        if any(e.key and e.key != version.key and e.table == version.table for e in entries):
            raise PolicyError(
                "You protected this table with another key before: the average of files under several "
                "keys comes close to the exact counts.",
                hint="Give the earlier key: it changes the same count in the same way.",
            )

    @checks_types
    def begin(self, entry: int) -> None:
        """Record that the output of entry number `entry` begins, so that its cost can no longer be
        refunded.
        """
        self._move("begin", entry, {})

    @checks_types
    def commit(self, entry: int, digest: str, *, sensitivity: str = "", sigma: str = "") -> None:
        """Record that the output of entry number `entry` was released. `digest` is its SHA-256;
        `sensitivity` and `sigma` are the sensitivity and the scale of its noise, as text.
        """
        details = {"sensitivity": sensitivity, "sigma": sigma}
        self._move("commit", entry, {"digest": digest} | {k: v for k, v in details.items() if v})

    @checks_types
    def cancel(self, entry: int) -> None:
        """Refund the reserved cost of entry number `entry`, which was never used.

        Raises
        ------
        PolicyError
            Output has begun or was released, so the cost cannot be refunded.
        """
        self._move("cancel", entry, {})

    def refused(self, entry: int, error: BaseException) -> None:
        """Refund the reserved cost of entry number `entry` after an error, unless noise had been
        drawn.

        If errors after drawing noise were free, somebody could repeat a request until the errors
        reveal what noise hides.
        """
        if not isinstance(error, AegisError) or not error.noise_drawn:
            self.cancel(entry)
            return
        self.begin(entry)
        error.hint = f"{error.hint} Noise was drawn, so that the cost stays in the ledger.".strip()

    def _move(self, kind: str, number: int, content: Mapping[str, Any]) -> None:
        with self._writing() as connection:
            entry = _entries(connection).get(number)
            if entry is None:
                raise PolicyError(
                    f"The ledger has no entry {number}.", hint="See aegis ledger FILE show."
                )
            if entry.state not in _STEPS[kind][0]:
                raise PolicyError(
                    f"Entry {number} is {entry.state}, so the step {kind} is not possible.",
                    hint="The ledger refunds no cost after output has begun.",
                )
            _append(connection, kind, entry.population, number, content)

    @checks_types
    def list_release(self, name: str, note: str, digest: str) -> int:
        """Record a release without differential privacy for the population `name`, such as a
        k-anonymous table. Return the number of its entry. `note` describes the release, and
        `digest` is its SHA-256.
        """
        with self._writing() as connection:
            self._population(connection, name)
            return _append(connection, "list", name, 0, {"note": note, "digest": digest})

    @checks_types
    def note(self, name: str, note: str) -> int:
        """Record the text `note`, such as a refusal, for the population `name`, as an event without
        cost. Return the number of its entry.
        """
        with self._writing() as connection:
            self._population(connection, name)
            return _append(connection, "note", name, 0, {"note": note})

    @checks_types
    def notes(self, name: str) -> tuple[str, ...]:
        """Return the texts that `Ledger.note` recorded for the population `name`, in chronological
        order.
        """
        with self._connected() as connection:
            rows = connection.execute(
                "select content from event where kind = 'note' and population = ? order by number",
                (name,),
            ).fetchall()
            return tuple(str(json.loads(row[0])["note"]) for row in rows)

    @contextmanager
    def spending(
        self,
        name: str,
        spend: Spend | None,
        *,
        note: str = "",
        version: TableVersion | None = None,
    ) -> Iterator[Spending]:
        """Return a context manager that reserves a cost from the budget of the population `name`.
        The cost is refunded if the `with` block fails before output begins or noise is drawn.

        In the block, call `begin` of the yielded object before the first byte of output, and
        `commit` after the last one. `spend` is the cost (None for perturbed counts, which have no
        cost), `note` the purpose, and `version` the version of the table.
        """
        entry = self.reserve(name, spend, note=note, version=version)
        spent = Spending(self, entry)
        try:
            yield spent
        except BaseException as error:
            if not spent.begun:
                self.refused(entry, error)
            elif isinstance(error, AegisError):
                note = f"The cost stays in the ledger as entry {entry}: output had begun."
                error.hint = f"{error.hint} {note}".strip()
            raise

    @property
    def head(self) -> str:
        """SHA-256 of the last event.

        Store it in another place, to detect later whether events are missing.
        """
        with self._connected() as connection:
            return _head(connection)

    @checks_types
    def verify(self, head: str | None = None) -> int:
        """Check that every event has the hash that follows from its content and the event before.
        Return the number of events.

        Parameters
        ----------
        head
            An earlier value of the property `head`; an event with this hash must still be in the
            ledger.

        Raises
        ------
        DataError
            An event was changed, inserted or removed, or a budget is overspent.
        """
        with self._connected() as connection:
            self._check(connection, fresh=False)
            previous, digests = _FIRST, {_FIRST}
            rows = connection.execute(
                "select number, time, kind, population, entry, content, previous, digest "
                "from event order by number"
            ).fetchall()
            for position, row in enumerate(rows, start=1):
                if row[0] != position or row[6] != previous or row[7] != _chained(row[:7]):
                    raise self._tampered(f"event {row[0]} does not follow from the one before")
                previous = row[7]
                digests.add(previous)
            if head is not None and head not in digests:
                raise self._tampered("the digest that was noted is not in its chain")
            for name, population in _populations(connection).items():
                if _spent(connection, name) > population.ceiling * (1 + 1e-9):
                    raise self._tampered(f"the budget of {name!r} is overspent")
            return len(rows)

    def _tampered(self, reason: str) -> DataError:
        return DataError(
            f"The ledger {self.path} was tampered with: {reason}.",
            hint="Restore a copy that passes the check, and count the cost of all later files as spent.",
        )

    def __repr__(self) -> str:
        return f"Ledger({str(self.path)!r}, {len(self.populations())} populations)"


class Spending:
    """A reserved cost. The code that produces the output reports on it when the output begins and
    when it was released.
    """

    def __init__(self, ledger: Ledger, entry: int) -> None:
        self.ledger = ledger
        self.entry = entry
        self.begun = False

    def begin(self) -> None:
        """Record that output begins: from now on the cost cannot be refunded."""
        self.begun = True
        self.ledger.begin(self.entry)

    def commit(self, digest: str, *, sensitivity: str = "", sigma: str = "") -> None:
        """Record that the output with the SHA-256 `digest` was released. `sensitivity` and `sigma`
        are the sensitivity and the scale of its noise, as texts.
        """
        self.ledger.commit(self.entry, digest, sensitivity=sensitivity, sigma=sigma)


def _head(connection: sqlite3.Connection) -> str:
    row = connection.execute("select digest from event order by number desc limit 1").fetchone()
    return _FIRST if row is None else str(row[0])


def _chained(row: tuple[Any, ...]) -> str:
    return sha256(json.dumps(list(row), ensure_ascii=False).encode("utf-8")).hexdigest()


def _append(
    connection: sqlite3.Connection,
    kind: str,
    population: str,
    entry: int,
    content: Mapping[str, Any],
) -> int:
    """Append an event of a population to the ledger. `kind` and `content` describe the event.
    Return the number of the entry to which it belongs; if `entry` is 0, it starts a new entry.
    """
    written = json.dumps(content, sort_keys=True, ensure_ascii=False)
    try:
        f"{population}{written}".encode()
    except UnicodeEncodeError as error:
        raise PolicyError(
            f"The name {population!r} or {content!r} contains characters that cannot be stored in a file.",
            hint="Leave out the unpaired surrogate characters.",
        ) from error
    last = connection.execute("select coalesce(max(number), 0) from event").fetchone()[0]
    number = int(last) + 1
    row = (
        number,
        datetime.now(UTC).isoformat(timespec="milliseconds"),
        kind,
        population,
        entry or number,
        written,
        _head(connection),
    )
    connection.execute("insert into event values (?, ?, ?, ?, ?, ?, ?, ?)", (*row, _chained(row)))
    return entry or number


def _populations(connection: sqlite3.Connection) -> dict[str, LedgerPopulation]:
    rows = connection.execute(
        "select population, content from event where kind = 'open' order by number"
    ).fetchall()
    return {name: LedgerPopulation(name, **json.loads(content)) for name, content in rows}


def _entries(connection: sqlite3.Connection) -> dict[int, Entry]:
    """Return the current state of all entries of the ledger, by their numbers."""
    entries: dict[int, Entry] = {}
    rows = connection.execute(
        "select time, kind, population, entry, content from event order by number"
    ).fetchall()
    for time, kind, population, number, text in rows:
        content = json.loads(text)
        if kind in ("reserve", "list"):
            cost = content.pop("spend", None)
            spend = None if cost is None else Spend(**cost)
            state = EntryState.RESERVED if kind == "reserve" else EntryState.LISTED
            entries[number] = Entry(number, population, state, time, spend, **content)
        elif kind in _STEPS:
            old = entries[number]
            digest = content.get("digest", old.digest)
            figures = {k: content[k] for k in ("sensitivity", "sigma") if k in content}
            spend = old.spend if old.spend is None else replace(old.spend, **figures)
            entries[number] = replace(old, state=_STEPS[kind][1], spend=spend, digest=digest)
    return entries


def _spent(connection: sqlite3.Connection, name: str) -> float:
    return sum(e.rho for e in _entries(connection).values() if e.population == name)
