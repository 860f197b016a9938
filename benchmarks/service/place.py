"""A service in a process of its own, with a catalog that was filled past its checks."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import httpx
from sqlalchemy import insert

import aegis
from aegis.safe.protect import dumps, protect
from aegis.service.catalog import Catalog, accounts
from aegis.service.catalog.access import scopes_of
from aegis.service.catalog.records import DataSet, Request, Version, new_id, now

POLICY = """version: 1
label: income
privacy: {k: 5, suppression: 0.02}
attributes:
  age: {role: quasi-identifier, masks: [{bucketize: {width: 10}}, suppress]}
  sex: {role: quasi-identifier, masks: [identity, suppress]}
  education: {role: feature, masks: [identity, {keep_frequent: {count: 5}}]}
"""
TABLE = Path(__file__).resolve().parents[2] / "data" / "adult.parquet"


def fill(catalog: Catalog, users: int, data_sets: int, requests: int) -> list[str]:
    """Make accounts, data sets and requests; return a token for each of the users, all consumers.

    Each data set has a version with the protected summary of three attributes of UCI Adult.
    """
    with catalog.database.writing() as session:
        tokens = []
        provider = accounts.create(session, "provider", ["provider"])
        people = [accounts.create(session, f"user{n}", ["consumer"]) for n in range(users)]
        for person in people:
            actor = accounts.actor_of(person)
            tokens.append(accounts.make_token(session, actor, "load", scopes_of(actor))[1])
        auditor = accounts.actor_of(accounts.create(session, "auditor", ["auditor"]))
        tokens.append(accounts.make_token(session, auditor, "load", scopes_of(auditor))[1])
    policy = aegis.load_policy(_mapping())
    bundle = dumps(protect(str(TABLE), policy, level="noise", epsilon=1.0, delta=1e-6)).encode()
    key, digest = catalog.objects.put("summaries", bundle)
    columns = [
        {"name": name, "role": "feature", "kind": "categorical", "masks": ["identity"]}
        for name in ("age", "sex", "education")
    ]
    sets, versions = [], []
    for n in range(data_sets):
        name, version = f"set-{n}", new_id()
        sets.append(
            {
                "id": name, "title": f"Data set {n}", "description": "About persons.",
                "provider_id": provider.id, "source": "adult", "label": "income",
                "population": name, "public": True, "published": True, "public_key": "ab" * 32,
                "terms": "", "approvals": 1, "days": 365, "created": now(),
            }
        )  # fmt: skip
        versions.append(
            {
                "id": version, "data_set_id": name, "number": 1, "policy": POLICY,
                "policy_digest": "p", "columns": columns, "summary_key": key,
                "summary_digest": digest, "protection": {"level": "noise", "epsilon": 1.0,
                "delta": 1e-6}, "created": now(),
            }
        )  # fmt: skip
    asked = [
        {
            "id": new_id(), "data_set_id": f"set-{n % data_sets}",
            "version_id": versions[n % data_sets]["id"], "consumer_id": people[n % users].id,
            "state": "submitted", "purpose": f"Study {n}", "models": [], "terms_accepted": True,
            "message": "", "created": now(), "changed": now(),
        }
        for n in range(requests)
    ]  # fmt: skip
    with catalog.database.writing() as session:
        session.execute(insert(DataSet), sets)
        session.execute(insert(Version), versions)
        if asked:
            session.execute(insert(Request), asked)
    return tokens


def _mapping() -> dict[str, object]:
    import yaml

    mapping: dict[str, object] = yaml.safe_load(POLICY)
    return mapping


@contextmanager
def served(*arguments: str) -> Iterator[str]:
    """Run `aegis serve` with these arguments on a free port; yield its address."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    url = f"http://127.0.0.1:{port}"
    command = [sys.executable, "-c", "from aegis.cli.main import main; main()", "serve", "--port"]
    process = subprocess.Popen([*command, port, "--quiet", *arguments], env=os.environ)
    try:
        for _ in range(600):
            try:
                httpx.get(f"{url}/sign-in")
                break
            except httpx.HTTPError:
                time.sleep(0.2)
        yield url
    finally:
        process.terminate()
        process.wait(timeout=30)


def quantile(seconds: list[float], share: float) -> float:
    """Return a quantile in milliseconds."""
    ordered = sorted(seconds)
    return 1000 * ordered[min(int(share * len(ordered)), len(ordered) - 1)]


def processor_time() -> float:
    """Return the seconds of processor time of all processes that this one has started, and of theirs."""
    spent, parents = {}, {}
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            fields = (folder / "stat").read_text().rpartition(")")[2].split()
            parents[int(folder.name)] = int(fields[1])
            spent[int(folder.name)] = int(fields[11]) + int(fields[12])
    return sum(ticks for n, ticks in spent.items() if _is_below(n, parents)) / os.sysconf(
        "SC_CLK_TCK"
    )


def _is_below(process: int, parents: dict[int, int]) -> bool:
    """Return whether a process was started by this one, or by one that was."""
    while process in parents:
        process = parents[process]
        if process == os.getpid():
            return True
    return False
