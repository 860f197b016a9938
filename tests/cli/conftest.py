"""A folder with a small table, its policy and configurations, and a way to run commands in it."""

from __future__ import annotations

import csv
import json
import shutil
from collections.abc import Callable
from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet
import pytest
import yaml

from aegis.cli.main import run
from aegis.policy import load_configurations, load_policy
from aegis.release import apply
from aegis.signing import make_keys
from aegis.summary import Summary, save_bundle, summarize
from arx_project import project

POLICY = """\
version: 1
label: {column: income, classes: [high, low]}
measure: adjusted-pillai
privacy: {k: 5, suppression: 0.05}
attributes:
  name: {role: identifier}
  age:
    role: quasi-identifier
    masks: [identity, {bucketize: {width: 10}}, {quantiles: {count: 2}}, suppress]
  sex: {role: quasi-identifier, masks: [identity, suppress]}
  zip: {role: quasi-identifier, masks: [{blur: {keep: 3}}, suppress]}
  diagnosis: {role: sensitive}
"""
CONFIGURATIONS = """\
configurations:
  fine: {age: identity, sex: identity, zip: {blur: {keep: 3}}}
  coarse: {age: {quantiles: {count: 2}}, sex: identity, zip: suppress}
"""
BEST = """\
configurations:
  best: {age: {quantiles: {count: 2}}, sex: identity, zip: suppress}
"""
RECIPE = """\
method: mondrian
options: {k: 6}
seed: 0
"""
ROWS = 240


def rows() -> list[dict[str, object]]:
    """Return a table in which income follows age and sex, with some nulls."""
    return [
        {
            "name": f"p{i}",
            "age": 18 + (i * 7) % 48,
            "sex": "fm"[(i // 3) % 2],
            "zip": f"0{1200 + (i * 13) % 40}",
            "diagnosis": ("flu", "cold", "asthma")[(i * 5 + i // 7) % 3],
            "income": "high" if (i * 7) % 48 + 9 * ((i // 3) % 2) + i % 11 > 30 else "low",
            "price": 10 + (i * 37) % 101,
            "extra": None if i % 9 == 0 else i % 4,
        }
        for i in range(ROWS)
    ]


def write_csv(path: Path, table: list[dict[str, object]]) -> None:
    """Write rows as CSV, null as an empty field."""
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, list(table[0]))
        writer.writeheader()
        writer.writerows(table)


@dataclass(frozen=True)
class Result:
    """What a run of the command line left behind."""

    code: int
    out: str
    err: str


@pytest.fixture(scope="session")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder that every test gets a copy of."""
    folder = tmp_path_factory.mktemp("cli")
    table = rows()
    write_csv(folder / "table.csv", table)
    write_csv(folder / "people.csv", [*table, *table])
    (folder / "parts").mkdir()
    for number in range(2):
        part = pa.Table.from_pylist(table[number::2])
        pyarrow.parquet.write_table(part, folder / "parts" / f"{number}.parquet")
    (folder / "policy.yaml").write_text(POLICY)
    (folder / "all.yaml").write_text(CONFIGURATIONS)
    (folder / "best.yaml").write_text(BEST)
    (folder / "recipe.yaml").write_text(RECIPE)
    summary = summarize(folder / "table.csv", load_policy(folder / "policy.yaml"))
    for number, name in enumerate(("table", "january", "february", "year", "march")):
        # The same rows under another digest: merge refuses one summary named twice.
        digests = {**summary.digests, "input": f"{number:064x}"}
        save_bundle(replace(summary, digests=digests), folder / f"{name}.aegis")
    for name in ("march", "sample", "staff"):
        pyarrow.parquet.write_table(pa.Table.from_pylist(table), folder / f"{name}.parquet")
    (folder / "first.json").write_text(
        json.dumps(
            {
                "configuration": {
                    "name": "b",
                    "masks": yaml.safe_load(BEST)["configurations"]["best"],
                }
            }
        )
    )
    if find_spec("aegis.safe") is not None:
        _protect(folder, summary)
    for name, key in zip(("hospital.key", "hospital.pub"), make_keys(), strict=True):
        (folder / name).write_bytes(key)
    project(folder, "2-anonymity").rename(folder / "project.deid")
    # Nothing is to be predicted of these.
    survey = [{n: r[n] for n in ("age", "sex", "zip", "income")} for r in table]
    asked = [
        {"hours": 20 + i % 30, "vote": "yn"[i % 2], "pw": 100 + i % 7} for i in range(len(table))
    ]
    write_csv(folder / "survey.csv", [{**r, **a} for r, a in zip(survey, asked, strict=True)])
    visits = [{"patient": f"p{i // 2}", **row} for i, row in enumerate(table)]
    write_csv(folder / "visits.csv", visits)
    best = load_configurations(folder / "best.yaml", load_policy(folder / "policy.yaml"))
    apply(
        folder / "table.csv",
        load_policy(folder / "policy.yaml"),
        best["best"],
        output=tmp_path_factory.mktemp("certified") / "certified.csv",
        certificate=folder / "released.json",
    )
    return folder


def _protect(folder: Path, summary: Summary) -> None:
    """Add what protection needs: a secret, a ledger, and protected summaries of both levels."""
    from aegis.safe.ledger import Ledger
    from aegis.safe.protect import protect, save_protected

    policy = load_policy(folder / "policy.yaml")
    (folder / "secret.key").write_bytes(b"not so secret, but long enough")
    Ledger(folder / "house.ledger", create=True).open_population(
        "patients", ceiling=0.2, delta=1e-6
    )
    told = protect(
        summary, policy, level="counts", key=(folder / "secret.key").read_bytes(), verdicts=32
    )
    save_protected(told, folder / "told.protected")
    noisy = protect(summary, policy, epsilon=1, delta=1e-6, public=["sex"])
    save_protected(noisy, folder / "noisy.protected")


@pytest.fixture
def folder(template: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of the template, as working directory; nothing tells how wide the page is."""
    place = tmp_path / "work"
    shutil.copytree(template, place)
    monkeypatch.chdir(place)
    for name in ("COLUMNS", "NO_COLOR", "FORCE_COLOR", "AEGIS_DEBUG"):
        monkeypatch.delenv(name, raising=False)
    return place


Shell = Callable[..., Result]


@pytest.fixture
def shell(folder: Path, capsys: pytest.CaptureFixture[str]) -> Shell:
    """Run `aegis` with these words in the folder."""

    def start(*words: str) -> Result:
        capsys.readouterr()
        code = run(words)
        captured = capsys.readouterr()
        return Result(code, captured.out, captured.err)

    return start
