"""The how-to of the service, followed to the letter: every command of its walk, in its order, by its persons."""

from __future__ import annotations

import re
import shlex
import threading
import time
from pathlib import Path

import pyarrow.csv
import pyarrow.parquet as pq
import pytest
from service_support import running, write_table

from aegis.cli.main import run
from aegis.service.agent import Agent
from aegis.service.agent_settings import AgentSettings
from aegis.service.catalog import Catalog, UploadLimits
from aegis.service.client import connect
from aegis.service.settings import ServiceSettings

PAGES = sorted((Path(__file__).resolve().parents[2] / "docs" / "how-to").glob("service*.md"))
TEXT = "\n".join(page.read_text() for page in PAGES)
BLOCKS = re.findall(r"```(sh|yaml)\n(.*?)```", TEXT, re.DOTALL)
PEOPLE = {"paula": "provider", "otto": "operator", "anna": "approver", "clara": "consumer"}
POLICY = """version: 1
label: income
privacy: {k: 5, suppression: 0.05}
attributes:
  age: {role: quasi-identifier, masks: [{bucketize: {width: 10}}, {bucketize: {width: 40}}, suppress]}
  sex: {role: quasi-identifier, masks: [identity, suppress]}
  canary: {role: identifier}
"""


def block(beginning: str) -> str:
    """Return the one block that begins so."""
    (found,) = [text for _, text in BLOCKS if text.startswith(beginning)]
    return found


def lines(text: str) -> list[tuple[list[str], str]]:
    """Return the words of each command, and who gives it."""
    found = []
    for line in text.splitlines():
        command, _, who = line.partition("#")
        if command.strip():
            found.append((shlex.split(command)[1:], who.strip()))
    return found


class Walk:
    def __init__(self, folder: Path, monkeypatch, capsys) -> None:
        self.folder, self.monkeypatch, self.capsys = folder, monkeypatch, capsys
        self.tokens: dict[str, str] = {}
        self.said: list[str] = []
        monkeypatch.chdir(folder)
        monkeypatch.setenv("AEGIS_PASSWORD", "a sentence that is long enough")
        (folder / "data").mkdir()
        write_table(folder / "adult.csv")
        pq.write_table(pyarrow.csv.read_csv(folder / "adult.csv"), folder / "data/adult.parquet")
        (folder / "policy.yaml").write_text(POLICY)

    def do(self, words: list[str]) -> str:
        self.capsys.readouterr()
        code = run(words)
        shown = self.capsys.readouterr()
        assert code == 0, (words, shown.out, shown.err)
        return shown.out.strip()

    def prepare(self) -> None:
        """The accounts, and the keys and the token of the second block."""
        first, second = lines(block("aegis serve --database catalog.db"))
        assert first[0] == ["serve", "--database", "catalog.db", "&"]
        self.do(second[0])
        for name, role in PEOPLE.items():
            account = ["catalog", "account", name, "--roles", role, "--database", "catalog.db"]
            self.do(account)
        for words, _ in lines(block("aegis keygen agent")):
            shown = self.do(words)
            if words[:2] == ["catalog", "token"]:
                self.tokens["agent"] = shown
        self.do(["keygen", "anna"])  # who approves is said before the block
        for name in PEOPLE:
            token = ["catalog", "token", name, "--database", "catalog.db"]
            self.tokens[name] = self.do(token)

    def agent(self, url: str) -> Agent:
        text = block("# agent.yaml").replace("https://aegis.example.org", url)
        (self.folder / "agent.yaml").write_text(text)
        settings = AgentSettings.load(self.folder / "agent.yaml", self.tokens["agent"])
        return Agent(settings, say=self.said.append)

    def walk(self, url: str) -> None:
        """The third block: each line by the person that it names."""
        self.monkeypatch.setenv("AEGIS_URL", url)
        number = ""
        for words, who in lines(block("aegis catalog register census")):
            self.monkeypatch.setenv("AEGIS_TOKEN", self.tokens[who])
            shown = self.do([number if word == "4f2c9a" else word for word in words])
            if words[1] == "request":
                number = shown
            if words[1] == "register":
                self.until_summarised(url)
        assert number

    def until_summarised(self, url: str) -> None:
        """The command says: publish it when its summary has come."""
        with connect(url, self.tokens["paula"]) as paula:
            while paula.data_set("census")["version"] is None:
                assert not [line for line in self.said if line.startswith("failed")], self.said
                time.sleep(0.05)


@pytest.fixture
def walk(tmp_path, monkeypatch, capsys) -> Walk:
    return Walk(tmp_path, monkeypatch, capsys)


def test_the_walk_of_the_how_to_ends_in_a_verified_release(walk):
    walk.prepare()
    catalog = Catalog.open("catalog.db", limits=UploadLimits(work=None))
    over = threading.Event()
    with running(ServiceSettings(calls=60_000), catalog) as url:
        agent = walk.agent(url)
        thread = threading.Thread(target=agent.run, kwargs={"until": over}, daemon=True)
        thread.start()
        try:
            walk.walk(url)
        finally:
            over.set()
            thread.join()
            agent.client.close()
    masked = pq.read_table(walk.folder / "masked.parquet")
    assert masked.column_names == ["age", "sex", "income"]
    assert (walk.folder / "census.jsonld").is_file()


def test_what_the_how_to_says_of_notices_is_read(tmp_path, monkeypatch):
    from aegis.service.notifying import load_channels

    monkeypatch.setenv("AEGIS_WEBHOOK_SECRET", "0123456789abcdef")
    (tmp_path / "notify.yaml").write_text(block("# notify.yaml"))
    mail, hook = load_channels(tmp_path / "notify.yaml")
    assert (mail.name, hook.name) == ("mail", "webhook")
    assert set(mail.addresses) == {"otto", "clara"}


def test_every_path_of_the_api_that_the_how_to_names_is_there(tmp_path):
    from aegis.service.app import create_app

    app = create_app(ServiceSettings(database=str(tmp_path / "c.db"), worker=False))
    known = set(app.openapi()["paths"])
    app.state.catalog.database.close()
    named = set(re.findall(r"(?:GET |metrics_path: )(/api/v1/[\w/-]+)", TEXT))
    assert len(named) >= 3
    assert named <= known
