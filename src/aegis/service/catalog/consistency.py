"""Compare the tables of the catalog with its log, to detect changes that were not logged.

Each log entry contains the hash of the previous entry, but tables have no such protection. If
somebody changes a table without the service, no log entry matches the change. Details that are
missing from logs of earlier versions are not compared.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import select
from sqlalchemy.orm import Session

from aegis.errors import AegisError
from aegis.service.catalog.log import check
from aegis.service.catalog.objects import Objects
from aegis.service.catalog.records import (
    Account,
    Approval,
    DataSet,
    Grant,
    LogEntry,
    OwnedPopulation,
    ReleaseRecord,
    Request,
    Version,
)
from aegis.service.catalog.statements import digest as digest_of

_APPROVED = {
    "approve": "approve",
    "approved by one of two": "approve",
    "renewed by one of two": "renew",
}
_FORGETS = {"configuration checked": "approve", "return": "approve", "drift": "approve"}


@dataclass
class LoggedState:
    """The state of each object according to the log.

    Attributes
    ----------
    data_sets, requests, releases
        The logged fields of each data set, state of each request, and digest of the file of each
        released request.
    grants, approvals
        All grants (data set, account, role), and all approvals (request, account, step).
    versions
        Digest of each summary, by data set and version number.
    roles, closed
        Roles of each account, and closed accounts.
    removed
        Requests whose release ended and whose file was then deleted.
    populations
        Owner of each population.
    """

    data_sets: dict[str, dict[str, Any]] = field(default_factory=lambda: defaultdict(dict))
    requests: dict[str, str] = field(default_factory=dict)
    grants: set[tuple[str, str, str]] = field(default_factory=set)
    versions: dict[tuple[str, int], str] = field(default_factory=dict)
    roles: dict[str, list[str]] = field(default_factory=dict)
    closed: set[str] = field(default_factory=set)
    approvals: set[tuple[str, str, str]] = field(default_factory=set)
    releases: dict[str, str] = field(default_factory=dict)
    removed: set[str] = field(default_factory=set)
    populations: dict[str, str] = field(default_factory=dict)

    def add(self, entry: LogEntry) -> None:
        """Change the state as the next log entry says."""
        detail, action = entry.detail, entry.action
        if entry.request_id is not None:
            self._add_request(entry.request_id, entry)
        elif entry.data_set_id is not None:
            self._add_data_set(entry.data_set_id, action, detail)
            if action == "population named":
                self.populations[detail["population"]] = entry.actor
        elif action in ("account made", "roles changed"):
            self.roles[detail["account"]] = list(detail["roles"])
        elif action == "account closed":
            self.closed.add(detail["account"])
        elif action == "account reopened":
            self.closed.discard(detail["account"])
        elif action == "population handed over":
            self.populations[detail["population"]] = detail["account"]

    def _add_data_set(self, name: str, action: str, detail: Mapping[str, Any]) -> None:
        if isinstance(detail.get("new"), Mapping):
            self.data_sets[name].update(detail["new"])
        if action == "granted":
            self.grants.add((name, detail["account"], detail["role"]))
        elif action == "grant taken back":
            self.grants.discard((name, detail["account"], detail["role"]))
        elif action == "summary uploaded":
            self.versions[name, detail["version"]] = detail["digest"]

    def _add_request(self, number: str, entry: LogEntry) -> None:
        detail, action = entry.detail, entry.action
        if "state" in detail:
            self.requests[number] = detail["state"]
        if action in _APPROVED:
            self.approvals.add((number, entry.actor, _APPROVED[action]))
        forgotten = "renew" if action == "renew" else _FORGETS.get(action)
        if forgotten is not None:
            self.approvals -= {a for a in self.approvals if a[0] == number and a[2] == forgotten}
        if action == "complete" and "digest" in detail:
            self.releases[number] = detail["digest"]
        elif action == "file removed":
            self.removed.add(number)


def compare(session: Session, objects: Objects) -> list[str]:
    """Return one line for each difference between the log and the tables or stored files."""
    entries = session.scalars(select(LogEntry).order_by(LogEntry.number)).all()
    checked = check(entries)
    if not checked.intact:
        return [f"entry {checked.broken} of the log is wrong: {checked.reason}"]
    logged = LoggedState()
    for entry in entries:
        logged.add(entry)
    return [
        *_data_sets(session, logged),
        *_requests(session, logged),
        *_rights(session, logged),
        *_releases(session, logged),
        *_objects(session, objects),
    ]


def _data_sets(session: Session, logged: LoggedState) -> list[str]:
    wrong = []
    for data_set in session.scalars(select(DataSet)):
        for name, value in logged.data_sets.get(data_set.id, {}).items():
            stored = data_set.provider.name if name == "provider" else getattr(data_set, name)
            if stored != value:
                wrong.append(
                    f"data set {data_set.id}: {name} is {stored!r}, but the log says {value!r}"
                )
    versions = session.scalars(select(Version))
    stored_digests = {(v.data_set_id, v.number): v.summary_digest for v in versions}
    wrong += [
        f"data set {name}: version {number} has another summary than the log says"
        for (name, number), digest in logged.versions.items()
        if stored_digests.get((name, number)) != digest
    ]
    return wrong + [
        f"data set {name}: version {number} is not in the log"
        for name, number in stored_digests.keys() - logged.versions.keys()
    ]


def _requests(session: Session, logged: LoggedState) -> list[str]:
    wrong = []
    for request in session.scalars(select(Request)):
        state = logged.requests.get(request.id, "draft")
        if request.state != state:
            wrong.append(
                f"request {request.id}: its state is {request.state}, but the log says {state}"
            )
    names = {account.id: account.name for account in session.scalars(select(Account))}
    for approval in session.scalars(select(Approval)):
        entry = (approval.request_id, names.get(approval.account_id, "nobody"), approval.step)
        if entry not in logged.approvals:
            wrong.append(f"request {entry[0]}: the log has no entry {entry[2]} by {entry[1]}")
    return wrong


def _rights(session: Session, logged: LoggedState) -> list[str]:
    wrong = []
    names = {}
    for account in session.scalars(select(Account)):
        names[account.id] = account.name
        roles = logged.roles.get(account.name)
        if roles is not None and sorted(roles) != sorted(account.roles):
            wrong.append(
                f"account {account.name}: its roles are {account.roles}, but the log says {roles}"
            )
        if (account.name in logged.closed) != account.disabled:
            state, logged_state = ("closed", "open") if account.disabled else ("open", "closed")
            wrong.append(f"account {account.name}: it is {state}, but the log says {logged_state}")
    stored = {
        (grant.data_set_id, names.get(grant.account_id, "nobody"), grant.role)
        for grant in session.scalars(select(Grant))
    }
    wrong += [
        f"data set {name}: {account} is {role}, but the log does not say so"
        for name, account, role in sorted(stored - logged.grants)
    ]
    wrong += [
        f"data set {name}: {account} is not {role}, but the log says so"
        for name, account, role in sorted(logged.grants - stored)
    ]
    for population in session.scalars(select(OwnedPopulation)):
        owner = logged.populations.get(population.name)
        if owner is not None and owner != names.get(population.owner_id):
            wrong.append(
                f"population {population.name}: its owner is not {owner}, but the log says so"
            )
    return wrong


def _releases(session: Session, logged: LoggedState) -> list[str]:
    wrong = []
    stored = {release.request_id: release for release in session.scalars(select(ReleaseRecord))}
    for number, digest in logged.releases.items():
        release = stored.get(number)
        if release is None or release.digest != digest:
            wrong.append(f"request {number}: its release is not the one in the log")
        elif not release.object_key and number not in logged.removed:
            wrong.append(f"request {number}: its file was removed, but the log does not say so")
    return wrong


def _objects(session: Session, objects: Objects) -> list[str]:
    """Return one line for each stored file that is missing or differs from the uploaded one."""
    named = [(v.summary_key, v.summary_digest) for v in session.scalars(select(Version))]
    remaining = select(ReleaseRecord).where(ReleaseRecord.object_key != "")
    named += [(r.object_key, r.digest) for r in session.scalars(remaining)]
    wrong = []
    for key, digest in named:
        try:
            content = objects.get(key)
        except AegisError as error:
            wrong.append(f"object {key}: {error.message}")
            continue
        if digest_of(content) != digest:
            wrong.append(f"object {key}: its SHA-256 is not the one in the log")
    return wrong
