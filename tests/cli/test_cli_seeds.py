"""A seed is in nothing that a command prints or writes but the recipe of a method whose draws do not protect."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pytest

import aegis
from aegis.cli.main import run
from aegis.release import check_certificate

SEED = "918273645"
ASKED: dict[str, list[str]] = {
    "a ranking": ["advise", "t.csv", "-p", "p.yaml", "--generate", "3", "-o", "best.yaml"],
    "a search": ["advise", "t.csv", "-p", "p.yaml", "--search", "--report", "r.html"],
    "a summary": ["summarize", "t.csv", "-p", "p.yaml", "-o", "t.aegis", "--exact"],
    "a report": ["report", "t.csv", "-p", "p.yaml", "-o", "r.html"],
    "a release": ["apply", "t.csv", "-p", "p.yaml", "-c", "c.yaml", "-o", "o.csv", "--certificate", "c.json"],
    "records": ["anonymize", "t.csv", "-p", "p.yaml", "-m", "mo-obam", "-o", "o.csv", "--certificate", "c.json"],
    "trained": ["evaluate", "t.csv", "-p", "p.yaml", "--generate", "2", "--models", "nb", "--splits", "2"],
}  # fmt: skip


OF_WINGS = ("records", "trained")
"""Commands that wings add, or methods of theirs."""


@pytest.mark.parametrize(
    "asked",
    [pytest.param(name, marks=[pytest.mark.wings] if name in OF_WINGS else []) for name in ASKED],
)
def test_no_output_holds_the_seed(
    asked: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """`apply --seed` may take the number that `advise --seed` took, and a default is one for all."""
    monkeypatch.chdir(tmp_path)
    rows = [f"{30 + n % 4},{'ab'[n % 2]},{'yn'[n % 3 == 0]}" for n in range(48)]
    Path("t.csv").write_text("age,city,y\n" + "\n".join(rows) + "\n")
    Path("p.yaml").write_text(
        "version: 1\nlabel: y\nprivacy: {k: 2, suppression: 0.5}\nattributes:\n"
        "  age: {role: quasi-identifier, masks: [identity, {round: {step: 2}}, suppress]}\n"
        "  city: {role: quasi-identifier, masks: [identity, suppress]}\n"
    )
    Path("c.yaml").write_text("configurations: {one: {age: identity, city: identity}}\n")
    given = {file.name for file in tmp_path.iterdir()}
    form = [] if asked == "a report" else ["--format", "json"]
    assert run([*ASKED[asked], "--seed", SEED, *form]) == 0
    printed = capsys.readouterr()
    assert SEED not in printed.out + printed.err
    for file in tmp_path.iterdir():
        if file.name not in given:
            assert SEED.encode() not in file.read_bytes(), file.name


@pytest.mark.parametrize("method", [None, "mdav"])
def test_no_figure_of_a_release_depends_on_its_seed(method: str | None, tmp_path: Path) -> None:
    """Else a reader of the file tries seeds until the figure agrees, and a check without it fails."""
    ages = [30 + n % 7 for n in range(150)]
    likely = [(age * 7 + n * n) % 5 > age % 3 for n, age in enumerate(ages)]
    table = pa.table({"age": ages, "y": ["n" if one else "p" for one in likely]})
    age = {"role": "quasi-identifier", "masks": ["identity", "suppress"]}
    policy = aegis.load_policy(
        {
            "version": 1,
            "label": "y",
            "privacy": {"k": 2, "suppression": 0.5},
            "attributes": {"age": age},
        }
    )
    configuration = aegis.Configuration("one", {"age": policy.attributes["age"].masks[0]})
    figures = set()
    for seed in (None, 1, 918273):
        files = {"output": tmp_path / "o.csv", "certificate": tmp_path / "c.json", "force": True}
        if method is None:
            aegis.apply(table, policy, configuration, measure="held-out-auc", seed=seed, **files)
        else:
            aegis.anonymize(table, policy, method, measure="held-out-auc", seed=seed, **files)
        document = json.loads((tmp_path / "c.json").read_text())
        figures.add(document["utility"]["value"])
        assert check_certificate(tmp_path / "o.csv", document).passed
    assert len(figures) == 1
