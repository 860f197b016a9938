"""The agent: runs beside the data, asks the service for work, and hands in what may leave.

It opens no port. Rows stay here: what it uploads is a protected summary, a verdict on releases
together, or a masked file that was verified, each signed with the provider's key.
"""

from __future__ import annotations

import hmac
import json
import socket
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from aegis.catalog.deliveries import sha256, signed_part
from aegis.catalog.errors import WrongState
from aegis.catalog.flow import configuration_of, policy_of
from aegis.catalog.limited import LimitError, WorkLimits
from aegis.errors import (
    AegisError,
    DataError,
    EngineError,
    NoAdmissibleConfiguration,
    PolicyError,
)
from aegis.files import read_text
from aegis.policy import Configuration, Policy
from aegis.policy.lines import read_yaml
from aegis.progress import Progress, Step
from aegis.service.apart import work_apart
from aegis.service.client import Client
from aegis.signing import PrivateKey, load_private_key, sign_bytes
from aegis.temporary import temporary_folder

_SIGN_OF_LIFE = 10.0
"""Seconds between two signs of life: well below the lease of a job."""
_WAIT_MOST = 30.0


@dataclass(frozen=True)
class AgentSettings:
    """What an agent knows: where the service is, its key, and its list of tables.

    Attributes
    ----------
    url, token
        The service, and a token of the provider with the scope "work".
    key
        Its private key (PEM, Ed25519).
    sources
        Name in the catalog to path or URL of a table. Nothing else is ever opened.
    name
        How the log names this agent.
    work
        What one job may take, in a process of its own; None for this process, without limits.
    """

    url: str
    token: str
    key: PrivateKey
    sources: Mapping[str, str]
    name: str = field(default_factory=socket.gethostname)
    work: WorkLimits | None = None

    @classmethod
    def load(cls, path: Path, token: str, work: WorkLimits | None = None) -> AgentSettings:
        """Read the settings of an agent from YAML: `url`, `key`, `sources`, `name`.

        Raises
        ------
        PolicyError
            A key is missing or unknown, or the private key cannot be read.
        """
        document = read_yaml(read_text(path, "agent", PolicyError), str(path)).data
        if not isinstance(document, dict) or not {"url", "key", "sources"} <= document.keys():
            raise PolicyError(
                f"{path} is no agent's file.",
                hint="It needs: url, key, sources; and may have name.",
            )
        unknown = document.keys() - {"url", "key", "sources", "name"}
        if unknown or not isinstance(document["sources"], dict):
            raise PolicyError(
                f"{path}: {', '.join(sorted(unknown)) or 'sources'} is not as expected.",
                hint="Allowed: url, key, sources (name: path), name.",
            )
        folder = path.parent
        sources = {
            str(name): str(place) if "://" in str(place) else str(folder / str(place))
            for name, place in document["sources"].items()
        }
        key = load_private_key(folder / str(document["key"]))
        more = {"name": str(document["name"])} if "name" in document else {}
        return cls(str(document["url"]), token, key, sources, work=work, **more)


@dataclass
class Heartbeat:
    """Keeps a job's lease while it is worked on, and shows how far it is.

    Attributes
    ----------
    client, job, attempt
        The job that is kept.
    stopped
        Set where the service has given it to another, or it was cancelled.
    """

    client: Client
    job: str
    attempt: int
    stopped: threading.Event = field(default_factory=threading.Event)
    _told: dict[str, Any] = field(default_factory=dict)
    _over: threading.Event = field(default_factory=threading.Event)

    def __enter__(self) -> Heartbeat:
        self._thread = threading.Thread(target=self._beat, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._over.set()
        self._thread.join()

    def step(self, title: str, total: float | None = None) -> AbstractContextManager[Step]:
        """Open a step, as `aegis.progress.Progress` has them."""
        return self._step(title, total)

    @contextmanager
    def _step(self, title: str, total: float | None) -> Iterator[Step]:
        if self.stopped.is_set():
            raise WrongState("The job is another's, or was cancelled.", hint="Nothing to do.")
        self._told = {"step": title, "done": 0, "total": total}
        yield _AgentCounter(self._told)

    def _beat(self) -> None:
        while not self._over.wait(_SIGN_OF_LIFE if self._told.get("beaten") else 0.5):
            self._told["beaten"] = True
            try:
                told = {k: v for k, v in self._told.items() if k != "beaten"}
                self.client.alive(self.job, self.attempt, told)
            except WrongState:
                self.stopped.set()
                return
            except EngineError:  # the service may be back before the lease ends
                continue


@dataclass
class _AgentCounter:
    told: dict[str, Any]

    def advance(self, amount: float = 1) -> None:
        """Count work as done."""
        self.told["done"] = self.told.get("done", 0) + amount

    def note(self, text: str) -> None:
        """Show a text beside the step."""
        self.told["note"] = text


class _NoSourceError(DataError):
    """The agent's list has no table of this name."""


def _sayable(error: AegisError) -> str:
    """Return what the service is told of an error: nothing that may hold a value of a row.

    Most errors quote what they speak of; in full they stand in the agent's own output.
    """
    if isinstance(error, _NoSourceError | LimitError):
        return str(error)
    if isinstance(error, NoAdmissibleConfiguration):
        return "No configuration meets the rule, alone and with the earlier releases."
    return f"{type(error).__name__} beside the data; the agent's own output says which."


class Agent:
    """Works on the jobs of a provider's data sets.

    Parameters
    ----------
    settings
        What it knows.
    client
        How it calls the service; by default as the settings say.
    say
        Receives a line for each thing that happens.
    """

    def __init__(
        self,
        settings: AgentSettings,
        *,
        client: Client | None = None,
        say: Callable[[str], None] = lambda line: None,  # noqa: ARG005 - says nothing
    ) -> None:
        self.settings = settings
        self.client = client or Client(settings.url, settings.token)
        self.say = say
        self._tasks: dict[str, Callable[[dict[str, Any], Progress], None]] = {
            "summarize": self._summarize,
            "check": self._check,
            "release": self._release,
        }

    def run(self, *, until: threading.Event | None = None) -> None:
        """Ask for work until told to stop, waiting longer while there is none."""
        over = until or threading.Event()
        wait = 1.0
        while not over.is_set():
            try:
                worked = self.once()
            except EngineError as error:
                self.say(str(error))
                worked = False
            wait = 1.0 if worked else min(wait * 1.5, _WAIT_MOST)
            if not worked:
                over.wait(wait)

    def once(self) -> bool:
        """Work on one job; return whether there was one."""
        job = self.client.work(self.settings.name)
        if job is None:
            return False
        limits = self.settings.work
        if limits is None:
            self.do(job)
            return True
        try:
            work_apart(self.settings, job, limits, self.say)
        except LimitError as error:
            self._give_up(job, error)
        return True

    def do(self, job: dict[str, Any], *, before: Callable[[], None] = lambda: None) -> None:
        """Do a job in this process, and hand in what comes out, or say why nothing does.

        Parameters
        ----------
        job
            As the service gave it.
        before
            What is done first; what it raises is said like what the job raises.
        """
        started = time.perf_counter()
        self.say(f"{job['kind']} for {job['data_set']} (attempt {job['attempt']})")
        try:
            before()
            with Heartbeat(self.client, job["id"], job["attempt"]) as life:
                self._tasks[job["kind"]](job, life)
            self.say(f"done in {time.perf_counter() - started:.1f} s")
        except WrongState as error:
            self.say(f"given up: {error.message}")
        except EngineError:
            raise
        except AegisError as error:
            self._give_up(job, error)

    def _give_up(self, job: dict[str, Any], error: AegisError) -> None:
        """Say that a job failed; one that was cancelled or given to another meanwhile is let go."""
        self.say(f"failed: {error}")
        try:
            self.client.failed(job["id"], job["attempt"], _sayable(error))
        except WrongState as late:
            self.say(f"given up: {late.message}")

    def _summarize(self, job: dict[str, Any], life: Progress) -> None:
        from aegis.catalog.summaries import make

        task = job["task"]
        table = self._table(task["source"])
        bundle = make(table, _policy(task), task, self._secret(task["source"]), progress=life)
        digests = {"policy": sha256(task["policy"].encode()), "bundle": sha256(bundle)}
        fields = {"policy": task["policy"]}
        self._hand_in(job, "summary", fields, digests, "bundle", ("summary.protected", bundle))

    def _check(self, job: dict[str, Any], life: Progress) -> None:
        from aegis.catalog.checking import check

        task = job["task"]
        answer = check(
            self._table(task["source"]),
            _policy(task),
            task["configurations"],
            [json.loads(text) for text in task["certificates"]],
            measure=task["measure"],
            may_search=task["may_search"],
            progress=life,
        )
        self.client.checked(job["id"], job["attempt"], answer)

    def _release(self, job: dict[str, Any], life: Progress) -> None:
        from aegis import apply

        task = job["task"]
        with temporary_folder("agent") as folder:
            masked, certificate = folder / "masked.parquet", folder / "certificate.json"
            apply(
                self._table(task["source"]),
                _policy(task),
                _configuration(task),
                output=masked,
                certificate=certificate,
                measure=task.get("measure"),
                progress=life,
            )
            text = certificate.read_text(encoding="utf-8")
            content = masked.read_bytes()
        text = _without_origin(text, job["data_set"])
        digests = {"certificate": sha256(text.encode()), "file": sha256(content)}
        fields = {"certificate": text}
        self._hand_in(job, "release", fields, digests, "file", ("masked.parquet", content))

    def _hand_in(
        self,
        job: dict[str, Any],
        kind: str,
        fields: Mapping[str, Any],
        digests: Mapping[str, str],
        name: str,
        file: tuple[str, bytes],
    ) -> None:
        signature = sign_bytes(
            signed_part(kind, job["id"], job["attempt"], **digests), self.settings.key
        )
        seal = {
            "signature": signature.to_dict(),
            "job": job["id"],
            "attempt": job["attempt"],
        }
        form = {"attempt": str(job["attempt"]), "signature": json.dumps(seal), **fields}
        self.client.upload(job["id"], kind, form, name, file)

    def _secret(self, source: str) -> bytes:
        """Return the secret that perturbs counts of a table: the same at each summary of it."""
        private = self.settings.key.key.private_bytes_raw()
        return hmac.digest(private, f"aegis counts {source}".encode(), "sha256")

    def _table(self, name: str) -> str:
        if name not in self.settings.sources:
            raise _NoSourceError(
                f"This agent has no source {name!r}.",
                hint="Add it to the list, or register the data set under a name of it.",
            )
        return self.settings.sources[name]


def _policy(task: Mapping[str, Any]) -> Policy:
    return policy_of(task["policy"])


def _configuration(task: Mapping[str, Any]) -> Configuration:
    return configuration_of(task["configuration"], _policy(task))


def _without_origin(certificate: str, name: str) -> str:
    """Return a certificate that names the table as the catalog does, not where it lies here."""
    document = json.loads(certificate)
    document["input"]["origin"] = name
    return json.dumps(document, indent=2, ensure_ascii=False)
