"""Walk a request from registration to download: service, agent and four persons on UCI Adult.

`make demo-service` runs it. Everything is started as an organisation would start it, on a free port of
this machine; what is made stays in the folder given.
"""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import aegis
from aegis.errors import EngineError
from aegis.service.catalog import Catalog, accounts
from aegis.service.catalog.access import scopes_of
from aegis.service.client import Client, require_done
from aegis.signing import load_private_key, load_public_key, make_keys

ROOT = Path(__file__).resolve().parents[2]
TABLE = ROOT / "data" / "adult.parquet"
POLICY = ROOT / "examples" / "adult" / "policy.yaml"
AGENT = """url: {url}
key: agent.pem
approvers: {{otto: otto.pub.pem}}
sources:
  adult:
    table: {table}
    policy: {policy}
    floor: {{k: 5, suppression: 0.02, epsilon: 4}}
"""
"""What the provider pins beside the data: whom the agent believes, and the least protection."""
PEOPLE = {"paula": "provider", "otto": "operator", "clara": "consumer", "aude": "auditor"}
PASSWORD = "walking through the catalog"


def say(text: str) -> None:
    """Print a line at once."""
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def prepare(folder: Path) -> dict[str, str]:
    """Make the catalog, four accounts, keys of agent and operator; return a token for each account."""
    tokens = {}
    with Catalog.open(str(folder / "catalog.db")).database.writing() as session:
        for name, role in PEOPLE.items():
            made = accounts.create(session, name, [role], password=PASSWORD)
            actor = accounts.actor_of(made)
            _, tokens[name] = accounts.make_token(session, actor, "demo", scopes_of(actor))
    for owner in ("agent", "otto"):
        private, public = make_keys()
        secret = folder / f"{owner}.pem"
        secret.touch(mode=0o600)  # nobody else reads it
        secret.write_bytes(private)
        (folder / f"{owner}.pub.pem").write_bytes(public)
    return tokens


@contextmanager
def started(*arguments: str, **environment: str) -> Iterator[None]:
    """Run `aegis` with these arguments while the context lasts."""
    command = [sys.executable, "-c", "from aegis.cli.main import main; main()", *arguments]
    process = subprocess.Popen(
        command, env={**os.environ, **environment}, stdout=subprocess.DEVNULL
    )
    try:
        yield
    finally:
        process.terminate()
        process.wait(timeout=30)


def wait_for(client: Client, seconds: float = 180) -> None:
    """Wait until the service answers."""
    end = time.monotonic() + seconds
    while True:
        try:
            client.me()
        except EngineError:
            if time.monotonic() > end:
                raise
            time.sleep(0.3)
        else:
            return


def wait_for_job(client: Client, job: dict[str, Any]) -> None:
    """Wait until a job ends; raise an error if it made nothing."""
    for state in client.follow(job["id"]):
        job = state
    require_done(job)


def walk(folder: Path, url: str, tokens: dict[str, str]) -> Path:
    """Do what each person does; return the masked file."""
    with (
        aegis.connect(url, tokens["paula"]) as paula,
        aegis.connect(url, tokens["otto"], key=load_private_key(folder / "otto.pem")) as otto,
        aegis.connect(url, tokens["clara"]) as clara,
        aegis.connect(url, tokens["aude"]) as aude,
    ):
        wait_for(paula)
        key = load_public_key(folder / "agent.pub.pem").text
        registered = paula.register(
            "census",
            source="adult",
            public_key=key,
            title="Census income",
            description="32,561 persons of the US census of 1994 (UCI Adult).",
            terms="For research; no attempt to find a person.",
            public=True,
            ceiling=4.0,
            summary={"policy": POLICY.read_text(encoding="utf-8"), "epsilon": 1.0},
        )
        say("paula registers census; her agent summarises it, with epsilon 1")
        wait_for_job(paula, registered["job"])
        paula.publish("census")
        paula.grant("census", "otto", "operator")
        say("paula publishes it, and otto is its operator")
        costs = sorted(clara.costs("census"), key=lambda cost: -cost["lost"])
        said = ", ".join(f"{c['attribute']} {c['mask']} {c['lost']:.0f} %" for c in costs[:3])
        say(f"clara sees what masks cost: {said}")
        purpose = "Predict income for a study of education"
        number = clara.request("census", purpose, models=["lr", "gbdt"], terms_accepted=True)["id"]
        say(f"clara requests it: {purpose}")
        otto.step(number, "review")
        say(f"otto has the best searched. {otto.choose(number)['headline']}")
        otto.step(number, "approve")
        otto.step(number, "run")
        made = otto.wait(number)
        require_done(made["job"])
        say(f"otto approves with his key; the agent masks, verifies and signs: {made['state']}")
        masked = clara.download(number, folder / "masked.parquet", force=True)
        checked = clara.verify(number)
        log = aude.verify_log()
        say(
            f"clara downloads {masked.name}; file, certificate and signature fit: {checked['verified']}"
        )
        say(f"aude verifies the log: {log['entries']} entries, whole: {log['whole']}")
    return masked


def main() -> None:
    """Run the walk in the folder that is given."""
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    for old in folder.glob("catalog.db*"):
        if old.is_file():
            old.unlink()
    tokens = prepare(folder)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    url = f"http://127.0.0.1:{port}"
    (folder / "agent.yaml").write_text(
        AGENT.format(url=url, table=TABLE, policy=POLICY), encoding="utf-8"
    )
    database = str(folder / "catalog.db")
    with (
        started("serve", "--database", database, "--port", port, "--quiet"),
        started("agent", str(folder / "agent.yaml"), "--quiet", AEGIS_TOKEN=tokens["paula"]),
    ):
        walk(folder, url, tokens)
    say(f"Everything is in {folder}. To look around: aegis serve --database {database}")
    say(f"and sign in as {', '.join(PEOPLE)}; the password is: {PASSWORD}")


if __name__ == "__main__":
    main()
