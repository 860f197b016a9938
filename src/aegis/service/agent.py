"""Run the provider's agent next to the data: it fetches jobs from the service and uploads results.

The agent opens no port, and rows stay with the provider. It uploads protected summaries, verdicts
on several releases together, and verified masked files. It signs each upload with the provider's
key. It checks every job against the provider's own policy and floor (minimum protection). It also
checks every release against the signatures of its approvers and the agent's own ledger.
"""

from __future__ import annotations

import hmac
import json
import threading
import time
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import pyarrow.parquet as pq
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from aegis.errors import (
    AegisError,
    DataError,
    EngineError,
    InternalError,
    NoAdmissibleConfiguration,
)
from aegis.files import Progress, Step, temporary_folder
from aegis.masks import privacy_account
from aegis.policy import Configuration, Policy, policy_digest
from aegis.release import apply
from aegis.service.agent_book import AgentBook, MadeOutput, key_of
from aegis.service.agent_settings import AgentSettings
from aegis.service.catalog import checking, limited, summaries
from aegis.service.catalog.deliveries import signed_part
from aegis.service.catalog.errors import CatalogError, TooOften, WrongState
from aegis.service.catalog.flow import configuration_of, policy_of
from aegis.service.catalog.jobs import LOOK_FOR_WORK, SIGN_OF_LIFE
from aegis.service.catalog.limited import LimitError, ReportedStep
from aegis.service.catalog.statements import digest
from aegis.service.client import Client
from aegis.service.pins import PinnedSource, RefusedError, require_shape
from aegis.signing import PrivateKey, seal, sign_bytes
from aegis.sources.urls import shown_url


@dataclass
class Heartbeat:
    """While an agent works on a job, tells the service regularly that it still does, with the
    progress, so that no other agent gets the job. `attempt` is the number of the attempt at the
    job. `stopped` is set if the job is cancelled, or if the service gives it to another agent.
    """

    client: Client
    job: str
    attempt: int
    stopped: threading.Event = field(default_factory=threading.Event)
    _state: dict[str, Any] = field(default_factory=dict)
    _sent: dict[str, Any] | None = None
    _over: threading.Event = field(default_factory=threading.Event)

    def __enter__(self) -> Heartbeat:
        self._thread = threading.Thread(target=self._beat, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._over.set()
        self._thread.join()

    @contextmanager
    def step(self, title: str, total: float | None = None) -> Iterator[Step]:
        """Start a step of the work, whose progress the service shows. `total` is its number of
        units of work (None: unknown).
        """
        if self.stopped.is_set():
            raise WrongState(
                "The job was cancelled, or another agent has it.", hint="Nothing to do."
            )
        self._state = {"step": title, "done": 0, "total": total}
        yield ReportedStep(self._state)

    def _beat(self) -> None:
        while not self._over.wait(SIGN_OF_LIFE if self._state is self._sent else 0.5):
            self._sent = self._state
            try:
                self.client.alive(self.job, self.attempt, self._sent)
            except WrongState:
                self.stopped.set()
                return
            except AegisError:  # the service may take calls again before the lease ends
                continue


class _NoSourceError(DataError):
    """The agent's file lists no table with this name."""


class _UploadRefusedError(CatalogError):
    """The service refuses what the agent uploaded. The message is that of the service."""


def _sayable(error: AegisError) -> str:
    """Return the error message without values of rows, which most messages quote: the agent sends
    it to the service.
    """
    if isinstance(error, _NoSourceError | _UploadRefusedError | LimitError | RefusedError):
        return str(error)
    if isinstance(error, NoAdmissibleConfiguration):
        return "No configuration meets the rule, alone and with the earlier releases."
    return "Read the output of the agent: it failed, and the reason may quote rows."


class Agent:
    """The program of a provider that does the jobs of the service on the provider's tables. `say`
    receives a line of text for each event.
    """

    def __init__(
        self,
        settings: AgentSettings,
        *,
        client: Client | None = None,
        say: Callable[[str], None] = lambda line: None,  # noqa: ARG005 - says nothing
    ) -> None:
        self.settings = settings
        self.client = client or Client(
            settings.url, settings.token, certificate=settings.certificate
        )
        self.book = AgentBook(settings.ledger)
        self.say = say
        self._tasks: dict[str, Callable[[PinnedJob, Progress], None]] = {
            "summarize": self._summarize,
            "check": self._check,
            "release": self._release,
        }

    def run(self, *, until: threading.Event | None = None) -> None:
        """Fetch and do jobs until `until` is set, with growing pauses as long as no job waits."""
        over = until or threading.Event()
        wait = 0.5
        while not over.is_set():
            try:
                worked = self.once()
            except (EngineError, TooOften) as error:
                self.say(str(error))
                worked = False
            wait = 0.5 if worked else min(wait * 1.5, LOOK_FOR_WORK)
            if not worked:
                over.wait(wait)

    def once(self) -> bool:
        """Fetch and do one job; return False if the service has no job."""
        job = self.client.work(self.settings.name)
        if job is None:
            return False
        named = all(isinstance(job.get(key), str) for key in ("id", "kind", "data_set"))
        if not named or "attempt" not in job:
            raise EngineError(
                "The agent cannot read the job from the service.",
                hint="Use the same version of Aegis for both.",
            )
        try:
            self._work(job)
        except KeyboardInterrupt:
            self._give_back(job)
            raise
        return True

    def _work(self, job: dict[str, Any]) -> None:
        """Do a job in this process or, if the settings limit memory or time, in a separate process."""
        settings = self.settings
        if settings.work is None:
            self.do(job)
            return
        try:
            limited.run(
                "job",
                settings.work,
                say=self.say,
                settings=replace(settings, work=None, key=None),  # type: ignore[arg-type]
                key=settings.key.key.private_bytes_raw(),
                job=job,
            )
        except CatalogError as error:
            self._give_up(job, error)

    def _give_back(self, job: Mapping[str, Any]) -> None:
        """Return a job to the queue when this agent shuts down, so that another agent can do it."""
        try:
            self.client.give_back(job["id"], job["attempt"])
        except AegisError as error:  # it is another's, or its lease ends in a few seconds
            self.say(f"not returned to the service: {error.message}")
        else:
            self.say("given back")

    def do(self, job: dict[str, Any]) -> None:
        """Do a job in this process. Upload the result, or report why there is none."""
        started = time.perf_counter()
        self.say(f"{job['kind']} for {job['data_set']} (attempt {job['attempt']})")
        try:
            with Heartbeat(self.client, job["id"], job["attempt"]) as life, self.book.alone():
                self._do(job, life)
            self.say(f"done in {time.perf_counter() - started:.1f} s")
        except WrongState as error:
            self.say(f"given up: {error.message}")
        except (EngineError, TooOften):
            raise  # the job is begun again once its lease is over
        except AegisError as error:
            self._give_up(job, error)
        except OSError as error:
            hint = "Check its space and permissions, also where temporary files go (TMPDIR)."
            self._give_up(job, DataError(f"The agent's disk cannot be used: {error}.", hint=hint))
        except Exception as error:  # noqa: BLE001 - a bug ends one job, and not the agent
            self.say("".join(traceback.format_exception(error)).rstrip())
            self._give_up(job, InternalError(f"A bug of Aegis: {type(error).__name__}."))

    def _do(self, job: dict[str, Any], life: Progress) -> None:
        """Do a job that the agent's own settings file, as it is now, allows. `life` receives the
        progress. A refusal is recorded in the agent's ledger.
        """
        require_shape(job)
        self.settings = self.settings.renewed()
        name = job["task"]["source"]
        source, policy = self._source(name), policy_of(job["task"]["policy"])
        try:
            source.require_policy(policy)
            self._tasks[job["kind"]](
                PinnedJob(job, job["id"], job["attempt"], job["task"], source, policy), life
            )
        except RefusedError as error:
            self.book.note(name, "refused", kind=job["kind"], job=job["id"], why=error.message)
            raise

    def _give_up(self, job: dict[str, Any], error: AegisError) -> None:
        """Report to the service that a job failed, unless it was cancelled or reassigned meanwhile."""
        self.say(f"failed: {error}")
        try:
            self.client.failed(job["id"], job["attempt"], _sayable(error), spent=error.noise_drawn)
        except WrongState as late:
            self.say(f"given up: {late.message}")

    def _summarize(self, job: PinnedJob, life: Progress) -> None:
        task, source = job.task, job.source
        source.require_summary(task)
        secret = hmac.digest(
            self.book.secret(self.settings.key), f"counts {job.name}".encode(), "sha256"
        )

        def make_output() -> MadeOutput:
            bundle = summaries.make(source.table, job.policy, task, secret, progress=life)
            return MadeOutput({"policy": task["policy"]}, bundle)

        key = key_of("summary", job.id, job.name, {k: v for k, v in task.items() if k != "source"})
        epsilon = float(task["epsilon"]) if task["protect"] == "noise" else 0.0
        output = self.book.spend(job.name, key, source.floor, epsilon, make_output)
        self._hand_in(job, "summary", key, output, ("bundle", "summary.protected"))

    def _check(self, job: PinnedJob, life: Progress) -> None:
        task = job.task
        masks_seen = self._masks_seen(job)
        for text in task["configurations"]:
            job.source.require_masks(configuration_of(text, job.policy), job.policy, masks_seen)
        releases = self.book.releases(job.name)
        earlier = self._earlier(releases, task["certificates"])
        answer = checking.check(
            job.source.table,
            job.policy,
            task["configurations"],
            earlier,
            measure=task["measure"],
            may_search=task["may_search"],
            progress=life,
        )
        self.book.note(
            job.name,
            "checked",
            configuration=digest(answer["configuration"]),
            policy=policy_digest(job.policy),
            masks=configuration_of(answer["configuration"], job.policy).spec(),
            holds=bool(answer["holds"]),
            releases=[release["number"] for release in releases],
        )
        approvers = self.settings.approvers
        signers = sorted(key.text for key in approvers.keys.values()) if approvers.needed else []
        self.client.checked(job.id, job.attempt, answer | {"signers": signers})

    def _earlier(
        self, releases: Sequence[Mapping[str, Any]], certificates: Sequence[str]
    ) -> list[dict[str, Any]]:
        """Return what each earlier release of a table shows, in the form of certificates, from the
        agent's own ledger (`releases`) and from the `certificates` that the service sent. Raise
        `RefusedError` if no known key has signed a certificate, or if an entry of the ledger says
        too little to check the release, and the service did not send its certificate.
        """
        # The service may forget a release; this agent does not.
        recorded = [
            {"configuration": {"masks": r["masks"]}, **r.get("certified", {})} for r in releases
        ]
        others = self.settings.made_elsewhere(certificates, recorded)
        sent = {dict(document.get("output", {})).get("sha256") for document in others}
        for release in releases:
            if "certified" not in release and release["digest"] not in sent:
                raise RefusedError(
                    f"The agent cannot check entry {release['number']} of its ledger: an earlier version "
                    "of Aegis made that release, and the service did not send its certificate.",
                    hint="Ask the operator to restore the release in the catalog.",
                )
        return [*others, *recorded]

    def _masks_seen(self, job: PinnedJob) -> dict[str, list[Any]]:
        """Return, by attribute, the masks that this agent has checked under the policy of the job."""
        masks_seen: dict[str, list[Any]] = {}
        for note in self.book.noted(job.name, "checked"):
            if note["policy"] == policy_digest(job.policy):
                for name, mask in note["masks"].items():
                    masks_seen.setdefault(name, []).append(mask)
        return masks_seen

    def _release(self, job: PinnedJob, life: Progress) -> None:
        task, book, floor = job.task, self.book, job.source.floor
        configuration = configuration_of(task["configuration"], job.policy)
        job.source.require_masks(configuration, job.policy, self._masks_seen(job))
        self.settings.approvers.require(job.received, job.policy)
        approved = digest(task["configuration"])
        key = key_of("release", job.received["request"], policy_digest(job.policy), approved)
        if book.waiting(job.name, key) is None:
            book.require_release(job.name, floor)
            self._require_checked(job, approved)
        account = privacy_account(configuration.masks)
        epsilon = 0.0 if account is None else account.epsilon
        output = book.spend(
            job.name, key, floor, epsilon, lambda: self._masked(job, configuration, life)
        )
        document = json.loads(output.fields["certificate"])
        detail = {
            "request": job.received["request"],
            "masks": configuration.spec(),
            "certified": {
                "suppressed_rows": document["suppressed_rows"],
                "policy": {"privacy": document["policy"].get("privacy")},
            },
        }
        book.list_release(job.name, key, floor, detail, output)
        self._hand_in(job, "release", key, output, ("file", "masked.parquet"))

    def _require_checked(self, job: PinnedJob, approved: str) -> None:
        """Raise `RefusedError` unless this agent has checked the configuration with the digest
        `approved` together with all releases of the table, and found that it meets the rule.
        """
        release_numbers = {release["number"] for release in self.book.releases(job.name)}
        for note in self.book.noted(job.name, "checked"):
            same = (note["configuration"], note["policy"]) == (approved, policy_digest(job.policy))
            if same and note["holds"] and release_numbers <= set(note["releases"]):
                return
        raise RefusedError(
            "The agent has not yet confirmed that this configuration meets the rule together with all "
            "its earlier releases.",
            hint="Choose the configuration again, and have the request approved again.",
        )

    def _masked(self, job: PinnedJob, configuration: Configuration, life: Progress) -> MadeOutput:
        with temporary_folder("agent") as folder:
            masked, certificate = folder / "masked.parquet", folder / "certificate.json"
            apply(
                job.source.table,
                job.policy,
                configuration,
                output=masked,
                certificate=certificate,
                measure=job.task.get("measure"),
                key=self.settings.key,
                progress=life,
            )
            document = json.loads(certificate.read_text(encoding="utf-8"))
            job.source.require_columns(pq.read_schema(masked).names)
            content = masked.read_bytes()
        document["input"]["origin"] = job.received["data_set"]  # instead of its local path
        document["catalog"] = {
            "url": shown_url(self.settings.url),
            "request": job.received["request"],
        }
        sealed = json.dumps(seal(document, self.settings.key), indent=2, ensure_ascii=False)
        return MadeOutput({"certificate": sealed}, content)

    def _hand_in(
        self, job: PinnedJob, kind: str, key: str, output: MadeOutput, file: tuple[str, str]
    ) -> None:
        """Sign the output of a job and upload it as a result of this `kind`. `key` identifies the
        output in the ledger. `file` has the form field for its content, and a file name.
        """
        field, name = file
        signed: dict[str, str | bytes] = {**output.fields, field: output.content}
        digests = {each: digest(content) for each, content in signed.items()}
        signature = sign_bytes(signed_part(kind, job.id, job.attempt, **digests), self.settings.key)
        seal = {"signature": signature.to_dict(), "job": job.id, "attempt": job.attempt}
        form = {"attempt": str(job.attempt), "signature": json.dumps(seal), **output.fields}
        try:
            self.client.upload(job.id, kind, form, field, (name, output.content))
        except (WrongState, TooOften):
            raise
        except CatalogError as error:
            raise _UploadRefusedError(error.message, hint=error.hint) from error
        self.book.handed_in(job.name, key, kind)

    def _source(self, name: str) -> PinnedSource:
        if name not in self.settings.sources:
            raise _NoSourceError(
                f"This agent has no source {name!r}.",
                hint="Add it to `sources` in the agent's file, or register the data set with a source "
                "of that file.",
            )
        return self.settings.sources[name]


def do_given(
    settings: AgentSettings, key: bytes, job: dict[str, Any], *, progress: limited.Lines
) -> None:
    """Do one job in this process, which `limited.run` started for it; `key` is the private key."""
    private_key = PrivateKey(Ed25519PrivateKey.from_private_bytes(key))
    Agent(replace(settings, key=private_key), say=progress.say).do(job)


@dataclass(frozen=True)
class PinnedJob:
    """A job as received from the service, with the settings that the agent's own file has for the
    job's table. `attempt` is the number of this attempt at the job, from 1. `policy` is the policy
    of the `task`, and one of those that the agent's file allows.
    """

    received: Mapping[str, Any]
    id: str
    attempt: int
    task: Mapping[str, Any]
    source: PinnedSource
    policy: Policy

    @property
    def name(self) -> str:
        """Name of the table in the agent's settings file."""
        return str(self.task["source"])
