"""Record an agent's outputs, budgets, checks and refusals on the agent's own disk.

The record is a ledger (`aegis.safe.ledger`): append-only, chained, and written before anything is
uploaded. So the agent keeps its budgets even if the service forgets or lies. Until an output is
uploaded, it is stored next to the ledger. A repeated job uploads the same output, so it reveals
nothing new.
"""

from __future__ import annotations

import hmac
import json
import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from aegis.errors import DataError, PolicyError
from aegis.files import alone
from aegis.safe.ledger import Ledger, Spend
from aegis.safe.ledger.record import Entry, EntryState
from aegis.safe.protect.budget import budget_of
from aegis.service.catalog.statements import digest
from aegis.service.pins import Floor, RefusedError
from aegis.signing import PrivateKey
from aegis.words import counted, json_fields

_BOUNDLESS = 1e9
"""Ceiling of populations in this ledger; the floor in the agent's file sets the real limit, in epsilon."""
_DELTA = 1e-6
_DAY = timedelta(days=1)
_PAUSE = 0.2


@dataclass(frozen=True)
class MadeOutput:
    """The output of a job: text fields of the upload, such as a certificate, and the content of the
    uploaded file. It is uploaded only after the agent's ledger has recorded it.
    """

    fields: Mapping[str, str]
    content: bytes


class AgentBook:
    """The ledger of an agent: its own record of all outputs and of the epsilon that they cost, and
    the outputs that wait for their upload. The folder of the ledger is created if it does not
    exist; only its owner can read it. Raise `DataError` if the ledger was tampered with, or cannot
    be used.

    Each output has a `key`, which identifies what was approved or asked for. `floor` is the minimum
    protection that the agent's own file states for a table.
    """

    def __init__(self, folder: Path) -> None:
        self._waiting = folder / "waiting"
        try:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._waiting.mkdir(mode=0o700, exist_ok=True)
        except OSError as error:
            raise DataError(
                f"The agent cannot keep its ledger in {folder}: {error.strerror or error}.",
                hint="In the agent's file, set `ledger` to a folder that the agent may write.",
            ) from error
        self._secret_file = folder / "secret"
        self.ledger = Ledger(folder / "ledger.db", create=True)
        self.ledger.verify()

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Return a context in which no other agent works with this ledger; wait until it begins.

        Two agents at once could each see that the other's release is not there yet.
        """
        with ExitStack() as stack:
            while True:
                try:
                    stack.enter_context(alone(self.ledger.path))
                    break
                except PolicyError:
                    time.sleep(_PAUSE)
            yield

    def secret(self, key: PrivateKey) -> bytes:
        """Return the secret that perturbs counts, derived from the agent's first key.

        The secret stays the same if keys are rotated. Otherwise the same counts would be perturbed
        differently, and their mean would reveal the true counts.
        """
        if not self._secret_file.exists():
            secret = hmac.digest(key.key.private_bytes_raw(), b"aegis agent secret", "sha256")
            write_private(self._secret_file, secret)
        return self._secret_file.read_bytes()

    def note(self, source: str, event: str, **detail: Any) -> None:
        """Record the time and details of an event about the table `source` in the ledger."""
        self._open(source)
        moment = datetime.now(UTC).isoformat(timespec="seconds")
        self.ledger.note(source, json.dumps({"event": event, "time": moment, **detail}))

    def noted(self, source: str, event: str) -> list[dict[str, Any]]:
        """Return the recorded events of one kind about the table `source`, oldest first."""
        self._open(source)
        return [n for n in map(json.loads, self.ledger.notes(source)) if n["event"] == event]

    def releases(self, source: str) -> list[dict[str, Any]]:
        """Return the masks, number, time and digest of each release of a table, oldest first."""
        self._open(source)
        return [
            {**json.loads(entry.note), **json_fields(entry, "number", "time", "digest")}
            for entry in self.ledger.entries(source)
            if entry.state is EntryState.LISTED
        ]

    def list_release(
        self, source: str, key: str, floor: Floor, detail: Mapping[str, Any], output: MadeOutput
    ) -> None:
        """Record a release, with details, before it is uploaded, unless it is recorded already.
        Raise `RefusedError` if the daily limit of releases is reached.
        """
        if any(release["key"] == key for release in self.releases(source)):
            return
        self.require_release(source, floor)
        note = json.dumps({**detail, "key": key})
        self.ledger.list_release(source, note, digest(output.content))

    def require_release(self, source: str, floor: Floor) -> None:
        """Raise `RefusedError` if a table has reached the daily limit of releases."""
        since = datetime.now(UTC) - _DAY
        recent = [r for r in self.releases(source) if datetime.fromisoformat(r["time"]) > since]
        if len(recent) >= floor.releases_a_day:
            raise RefusedError(
                f"The agent has made {counted(len(recent), 'release')} of {source} in 24 hours; the limit "
                f"is {floor.releases_a_day}.",
                hint="Wait, or ask the provider to raise `releases_a_day` in the floor.",
            )

    def waiting(self, source: str, key: str) -> MadeOutput | None:
        """Return the output with this key that waits for its upload; None if none was made. Raise
        `RefusedError` if it was uploaded already: an approval is valid for one release.
        """
        fields = self._waiting / f"{key}.json"
        if fields.exists():
            content = (self._waiting / f"{key}.file").read_bytes()
            return MadeOutput(json.loads(fields.read_text(encoding="utf-8")), content)
        for release in self.releases(source):
            if release["key"] == key:
                raise RefusedError(
                    f"The agent already released this at {release['time']}. An approval allows only "
                    "one release.",
                    hint="Submit another request, and have it approved.",
                )
        return None

    def handed_in(self, source: str, key: str, kind: str) -> None:
        """Record that the output with this key was uploaded, and delete its stored copy."""
        self.note(source, "handed in", kind=kind, key=key)
        (self._waiting / f"{key}.json").unlink(missing_ok=True)
        (self._waiting / f"{key}.file").unlink(missing_ok=True)

    def spend(
        self, source: str, key: str, floor: Floor, epsilon: float, make: Callable[[], MadeOutput]
    ) -> MadeOutput:
        """Record that an output costs `epsilon`, call `make`, and return its output. If the output
        with this key was made before and waits for its upload, return it at no cost. Raise
        `RefusedError` if the epsilon exceeds what `floor` still allows for the table, in total or
        per day.
        """
        waiting = self.waiting(source, key)
        if waiting is not None:
            self._charge(source, key, waiting)
            return waiting
        entry = self._reserve(source, key, floor, epsilon) if epsilon > 0 else None
        try:
            output = make()
            self._keep(key, output)
        except BaseException as error:
            if entry is not None:
                self.ledger.refused(entry, error)
            raise
        if entry is not None:
            self.ledger.commit(entry, digest(output.content))
        return output

    def _charge(self, source: str, key: str, output: MadeOutput) -> None:
        """Commit the cost of an output that waits for its upload, if a kill came between the output
        and this step. A cost that stays reserved could be refunded to a second job with this key.
        """
        for entry in self.ledger.entries(source):
            if entry.state is EntryState.RESERVED and json.loads(entry.note)["key"] == key:
                self.ledger.commit(entry.number, digest(output.content))

    def _reserve(self, source: str, key: str, floor: Floor, epsilon: float) -> int:
        self._open(source)
        for entry in self.ledger.entries(source):  # begun under this key, and ended by a kill
            if entry.state is EntryState.RESERVED and json.loads(entry.note)["key"] == key:
                self.ledger.cancel(entry.number)
        note = json.dumps({"key": key, "epsilon": epsilon})
        spend = Spend("output of the agent", budget_of(epsilon, _DELTA))
        number = self.ledger.reserve(source, spend, note=note)
        spent = [e for e in self.ledger.entries(source) if e.rho > 0]
        since = datetime.now(UTC) - _DAY
        today = [e for e in spent if datetime.fromisoformat(e.time) > since]
        a_day = floor.epsilon if floor.epsilon_a_day is None else floor.epsilon_a_day
        for total, most, when in (
            (_epsilon(spent), floor.epsilon, "in all"),
            (_epsilon(today), a_day, "in 24 hours"),
        ):
            if total > most + 1e-9:
                self.ledger.cancel(number)
                raise RefusedError(
                    f"The agent refuses to spend epsilon {epsilon:g} on {source}: "
                    f"{total - epsilon:g} is spent {when}, and {most:g} is allowed.",
                    hint="Ask for a smaller epsilon, or ask the provider to raise the limit in the "
                    "floor.",
                )
        return number

    def _keep(self, key: str, output: MadeOutput) -> None:
        write_private(self._waiting / f"{key}.file", output.content)
        write_private(self._waiting / f"{key}.json", json.dumps(dict(output.fields)).encode())

    def _open(self, source: str) -> None:
        if source not in {population.name for population in self.ledger.populations()}:
            self.ledger.open_population(source, ceiling=_BOUNDLESS, delta=_DELTA)


def key_of(*parts: Any) -> str:
    """Return a key that identifies an output: the digest of the inputs from which it is made."""
    return digest(json.dumps(parts, sort_keys=True))


def _epsilon(entries: Sequence[Entry]) -> float:
    """Return the sum of the epsilons of several outputs (basic composition)."""
    return sum(float(json.loads(entry.note)["epsilon"]) for entry in entries)


def write_private(path: Path, content: bytes) -> None:
    """Write a file that only its owner can read, under a temporary name until it is complete."""
    temporary = path.with_name(f"{path.name}.part")
    handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(handle, "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    temporary.replace(path)
