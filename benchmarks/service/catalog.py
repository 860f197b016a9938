"""A service in a process of its own, with a catalog that was filled past its checks."""

from __future__ import annotations

import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.measure import ADULT

if TYPE_CHECKING:
    from aegis.service.catalog import Catalog

POLICY = """version: 1
label: income
privacy: {k: 5, suppression: 0.02}
attributes:
  age: {role: quasi-identifier, masks: [{bucketize: {width: 10}}, suppress]}
  sex: {role: quasi-identifier, masks: [identity, suppress]}
  education: {role: feature, masks: [identity, {keep_frequent: {count: 5}}]}
"""


def fill(
    folder: Path, users: int, data_sets: int, requests: int, database: str | None = None
) -> tuple[list[str], list[str]]:
    """Fill a database, or a new file of SQLite; return the words that serve it, and tokens.

    Each user has a token, and the last token is an auditor's. Each data set has a version with the
    protected summary of three attributes of UCI Adult.
    """
    from aegis.service.catalog import Catalog

    new = Path(tempfile.mkdtemp(dir=folder))
    database, objects = database or str(new / "catalog.db"), str(new / "objects")
    catalog = Catalog.open(database, objects)
    people, tokens, provider = _accounts(catalog, users)
    _records(catalog, people, provider, data_sets, requests)
    catalog.database.close()
    return ["--database", database, "--objects", objects, "--no-worker"], tokens


def _accounts(catalog: Catalog, users: int) -> tuple[list[Any], list[str], Any]:
    """Make consumers, an auditor and a provider; return consumers, tokens of both, and provider."""
    from aegis.service.catalog import accounts
    from aegis.service.catalog.access import scopes_of

    with catalog.database.writing() as session:
        tokens = []
        provider = accounts.create(session, "provider", ["provider"])
        people = [accounts.create(session, f"user{n}", ["consumer"]) for n in range(users)]
        for person in people:
            actor = accounts.actor_of(person)
            tokens.append(accounts.make_token(session, actor, "load", scopes_of(actor))[1])
        auditor = accounts.actor_of(accounts.create(session, "auditor", ["auditor"]))
        tokens.append(accounts.make_token(session, auditor, "load", scopes_of(auditor))[1])
    return people, tokens, provider


def _records(
    catalog: Catalog, people: list[Any], provider: Any, data_sets: int, requests: int
) -> None:
    """Make data sets with a version each, and requests of the consumers in turn."""
    import yaml
    from sqlalchemy import insert

    import aegis
    from aegis.safe.protect import dumps, protect
    from aegis.service.catalog.records import DataSet, Request, Version, new_id, now

    policy = aegis.load_policy(yaml.safe_load(POLICY))
    bundle = dumps(protect(str(ADULT), policy, level="noise", epsilon=1.0, delta=1e-6)).encode()
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
            "version_id": versions[n % data_sets]["id"], "consumer_id": people[n % len(people)].id,
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


@contextmanager
def served(*arguments: object) -> Iterator[tuple[str, int]]:
    """Run `aegis serve` with these arguments on a free port; yield its address and its process."""
    import httpx

    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    url = f"http://127.0.0.1:{port}"
    program = Path(sys.executable).with_name("aegis")
    words = [program, "serve", "--port", port, "--quiet", *map(str, arguments)]
    with subprocess.Popen(words) as process:
        try:
            while process.poll() is None:
                try:
                    httpx.get(f"{url}/sign-in")
                    break
                except httpx.HTTPError:
                    time.sleep(0.2)
            else:
                raise RuntimeError(f"This ended at once: {' '.join(map(str, words))}.")
            yield url, process.pid
        finally:
            process.terminate()
            process.wait(timeout=30)
