"""docs/reference/json.md describes what is printed: every field, with its type, and no other."""

from __future__ import annotations

import json
import re
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest
import typer

from aegis.cli.main import app

pytestmark = pytest.mark.wings
DOCS = Path(__file__).parents[2] / "docs" / "reference" / "json.md"
KINDS = {
    "string": str,
    "integer": int,
    "number": (int, float),
    "boolean": bool,
    "null": type(None),
    "object": dict,
    "mapping": object,
    "mask": (str, dict),
}
SHARED = re.compile(r"with the fields of (?:`([^`]+)` in )?\[(aegis [^\]]+)\]")
"""In a meaning: the field has the fields of a document, or of a field of another document."""
ONCE = ("schema", "files[].path", "files[].bytes")
"""Fields of a whole document, which no part of another document has."""
OPAQUE = ("mapping", "mask")
"""Types that are not described further here."""


def documented() -> dict[str, dict[str, tuple[str, ...]]]:
    """Return the fields of each section: path to types."""
    found: dict[str, dict[str, tuple[str, ...]]] = defaultdict(dict)
    shared = []
    section = ""
    for line in DOCS.read_text().splitlines():
        if line.startswith("## "):
            section = line[3:]
        match = re.fullmatch(r"\| `([^`]+)` \| ([a-z ]+) \| .+ \|", line)
        if match:
            found[section][match[1]] = tuple(match[2].split(" or "))
            if other := SHARED.search(line):
                shared.append((found[section], match[1], other[1], found[other[2]]))
    for fields, path, prefix, source in shared:
        if prefix is None:
            own = {f".{name}": kind for name, kind in source.items() if name not in ONCE}
        else:
            own = {
                name.removeprefix(prefix): kind
                for name, kind in source.items()
                if re.match(r"[.\[]", name.removeprefix(prefix))
            }
        fields.update({path + name: kind for name, kind in own.items()})
    found["aegis merge"].update(found["aegis summarize"])
    return found


def read_by(section: str) -> dict[str, tuple[str, ...]]:
    """Return the fields that a document of a section may have: of a protected summary, those of advise, too."""
    own = DOCUMENTED[section]
    if section != PROTECTED:
        return own
    shared = {
        path: types
        for path, types in DOCUMENTED["aegis advise"].items()
        if path != "estimated" and not path.startswith("summary.")
    }
    return shared | own


PROTECTED = "aegis advise of a protected summary"
DOCUMENTED = documented()


class Reader:
    """Walks a document along the documented paths and remembers which it met."""

    def __init__(self, fields: dict[str, tuple[str, ...]]) -> None:
        self.fields = fields
        self.prefixes = {path[:i] for path in fields for i in range(len(path) + 1)}
        self.met: set[str] = set()

    def read(self, data: Any, path: str = "") -> None:
        types = self.fields.get(path)
        if types is not None:
            self.met.add(path)
            assert any(fits(data, one) for one in types), f"{path} is {data!r}, documented {types}"
            if types[0] in OPAQUE or data is None:
                return
        if isinstance(data, dict):
            open_ended = f"{path}.*" in self.prefixes
            for key, value in data.items():
                name = "*" if open_ended else key
                self.read(value, f"{path}.{name}" if path else name)
        elif isinstance(data, list):
            assert f"{path}[]" in self.prefixes, f"{path} is an undocumented list"
            for value in data:
                self.read(value, f"{path}[]")
        else:
            assert types is not None, f"{path} is not documented"


def fits(value: Any, kind: str) -> bool:
    if isinstance(value, bool):
        return kind in ("boolean", "mapping")
    return isinstance(value, KINDS[kind])


_ANY = "table.csv", "-p", "any.yaml"
_APPLIED = "-c", "number_best.yaml", "-o"
_CERTIFIED = ("--certificate",)
RUNS = {
    "aegis advise": [
        ("advise", "table.csv", "-p", "policy.yaml"),
        ("advise", "table.csv", "-p", "number.yaml"),
        ("advise", "table.csv", "-p", "any.yaml"),
        ("advise", "table.csv", "-p", "several.yaml"),
        ("advise", "table.csv", "-p", "weighted.yaml"),
        ("advise", "table.csv", "-p", "strict.yaml", "--configurations", "all.yaml"),
        (
            "advise",
            "table.csv",
            "-p",
            "policy.yaml",
            "--with",
            "mondrian,mo-obam,hybrid",
            "--top",
            "0",
        ),
        ("advise", "table.csv", "-p", "strict.yaml", "--search", "--front", "k=2,30,50"),
        ("advise", "table.csv", "-p", "noise.yaml", "--top", "0"),
        ("advise", "table.csv", "-p", "policy.yaml", "--search", "--top", "1", "--merit", "auc"),
    ],
    PROTECTED: [
        ("advise", "told.protected", "-p", "policy.yaml"),
        ("advise", "told.protected", "-p", "policy.yaml", "--search"),
        ("advise", "noisy.protected", "-p", "policy.yaml", "--generate", "3"),
    ],
    "aegis audit": [
        ("audit", "table.csv", "--quasi-identifiers", "sex", "--sensitive", "diagnosis,price"),
        ("audit", "table.csv", "-p", "policy.yaml"),
        ("audit", "table.csv", "-p", "noise.yaml", "-c", "noise_best.yaml"),
        ("audit", "table.csv", "--certificate", "released.json"),
    ],
    "aegis risk": [
        ("risk", "table.csv", "--quasi-identifiers", "age,sex", "--special", "-o", "r.csv"),
        (
            "risk",
            "table.csv",
            "--quasi-identifiers",
            "sex",
            "--weight",
            "price",
            "--original",
            "table.csv",
            "--compare",
            "age,price",
        ),
    ],
    "aegis compose": [
        ("compose", "best.yaml", "best.yaml", "-p", "strict.yaml", "table.csv"),
        ("compose", "best.yaml", "finest.yaml", "-p", "strict.yaml", "table.csv"),
    ],
    "aegis apply": [
        *(
            (
                "apply",
                "table.csv",
                "-p",
                f"{p}.yaml",
                *_APPLIED,
                f"{p}.csv",
                *_CERTIFIED,
                f"{p}.json",
            )
            for p in ("any", "several", "weighted")
        ),
        (
            "apply",
            "table.csv",
            "-p",
            "number.yaml",
            "-c",
            "number_best.yaml",
            "-o",
            "n.csv",
            "--certificate",
            "n.json",
        ),
        ("apply", "table.csv", "-p", "policy.yaml", "-c", "best.yaml", "-o", "a.csv"),
        (
            "apply",
            "table.csv",
            "-p",
            "unseen.yaml",
            "-c",
            "unseen_best.yaml",
            "-o",
            "b.csv",
            "--certificate",
            "b.json",
        ),
        (
            "apply",
            "table.csv",
            "-p",
            "noise.yaml",
            "-c",
            "seeded_best.yaml",
            "-o",
            "c.csv",
            "--seed",
            "1",
        ),
    ],
    "aegis anonymize": [
        ("anonymize", *_ANY, "-m", "mondrian", "-o", "any.csv", *_CERTIFIED, "any.json"),
        (
            "anonymize",
            "table.csv",
            "-p",
            "number.yaml",
            "-m",
            "mondrian",
            "-o",
            "m.csv",
            "--certificate",
            "m.cert.json",
        ),
        (
            "anonymize",
            "table.csv",
            "-p",
            "carried.yaml",
            "-m",
            "mo-obam",
            "--front",
            "--option",
            "clusters=6",
            "--option",
            "starts=1",
            "-o",
            "r.csv",
            "--certificate",
            "rc.json",
        ),
        (
            *("anonymize", "table.csv", "-p", "policy.yaml", "-m", "mo-obam", "--front"),
            *("--option", "clusters=4", "--option", "starts=1"),
        ),
        ("anonymize", "table.csv", "-p", "free.yaml", "-m", "hybrid", "-o", "h.csv"),
    ],
    "aegis anonymizers": [("anonymizers",), ("anonymizers", "hybrid")],
    "aegis summarize": [
        ("summarize", "table.csv", "-p", "policy.yaml", "-o", "s.aegis"),
    ],
    "aegis publish": [
        (
            "publish",
            "--masked",
            "M1=table.csv",
            "-p",
            "policy.yaml",
            "-o",
            "m.published",
            "--histograms",
            "sex.json",
            "--mapping",
            "m.json",
        ),
        (
            "publish",
            "--contingency",
            "M1=cells.csv",
            "-p",
            "policy.yaml",
            "-o",
            "c.published",
        ),
    ],
    "aegis merge": [("merge", "january.aegis", "february.aegis", "-o", "s.aegis")],
    "aegis leak": [
        ("leak", "table.aegis", "--level", "counts", "--with", "january.aegis"),
        ("leak", "told.protected", "--with", "noisy.protected"),
        ("leak", "certificate.json", "--with", "table.aegis", "--threshold", "10"),
    ],
    "aegis protect": [
        (
            "protect",
            "table.csv",
            "-p",
            "policy.yaml",
            "-o",
            "p.protected",
            "--epsilon",
            "1",
            "--delta",
            "1e-5",
            "--public",
            "sex",
        ),
        (
            "protect",
            "table.aegis",
            "-p",
            "policy.yaml",
            "-o",
            "q.protected",
            "--ledger",
            "house.ledger",
            "--population",
            "patients",
            "--level",
            "counts",
            "--key-file",
            "secret.key",
            "--method",
            "cell-keys",
        ),
    ],
    "aegis ledger": [
        ("ledger", "house.ledger", "reserve", "patients", "--rho", "0.001"),
        ("ledger", "house.ledger", "list", "patients", "--note", "k = 5"),
        ("ledger", "house.ledger", "verify"),
    ],
    "aegis evaluate": [
        (
            "evaluate",
            "table.csv",
            "-p",
            "policy.yaml",
            "--generate",
            "2",
            "--splits",
            "2",
            "--models",
            "lr",
            "--with",
            "mondrian",
        ),
    ],
    "aegis reconstruct": [
        ("reconstruct", "table.aegis", "-a", "age", "--plot", "map.svg"),
        (
            "reconstruct",
            "table.aegis",
            "-a",
            "age",
            "--method",
            "closed-form",
            "--mask",
            "quantiles",
        ),
        ("reconstruct", "table.csv", "-p", "noise.yaml", "-a", "age", "--method", "channel-em"),
    ],
    "aegis reconstruct of a protected summary": [
        ("reconstruct", "told.protected", "-a", "age"),
        ("reconstruct", "noisy.protected", "-a", "sex"),
    ],
    "aegis masks": [("masks",), ("masks", "blur")],
    "aegis measures": [("measures",)],
    "aegis privacy-models": [("privacy-models",), ("privacy-models", "alpha_k")],
    "Errors": [("advise", "none.csv", "-p", "policy.yaml"), ("advise",)],
}
NUMBER = """\
version: 1
label: {column: age, kind: number}
privacy: {k: 5, suppression: 0.05}
attributes:
  name: {role: identifier}
  sex: {role: quasi-identifier, masks: [identity, suppress]}
  zip: {role: quasi-identifier, masks: [{blur: {keep: 3}}, suppress]}
"""
RARE = {
    "aegis apply": {"utility.leaks"},
    "aegis anonymize": {"utility.labels"},
    "aegis evaluate": {"trainings[].messages[]", "unconverged.*"},
}
"""Fields of mishaps, of several labels or of a repeated label that these runs do not meet."""


@pytest.mark.parametrize("section", RUNS)
def test_documents_and_reference_agree(section, shell, folder, monkeypatch):
    # As in a space that is too large to be visited whole.
    monkeypatch.setattr("aegis.advisor.search.searcher.ENUMERATED", 2)
    monkeypatch.setattr("aegis.advisor.search.searcher.LISTED", 3)
    text = (folder / "policy.yaml").read_text()
    (folder / "strict.yaml").write_text(text.replace("k: 5, suppression: 0.05", "k: 6"))
    (folder / "unseen.yaml").write_text(
        text.replace("version: 1", "version: 1\nunseen: suppress").replace(
            "sex: {role: quasi-identifier, masks: [identity, suppress]}",
            "sex: {role: quasi-identifier, masks: [{group: {groups: {female: [f]}}}]}",
        )
    )
    (folder / "carried.yaml").write_text(
        text.replace("version: 1", "version: 1\nunseen: suppress").replace(
            "diagnosis: {role: sensitive}",
            "diagnosis: {role: sensitive, masks: [{group: {groups: {airways: [cold, asthma]}}}]}",
        )
    )
    noise = "{geometric: {epsilon: 2, lower: 18, upper: 65}}"
    (folder / "noise.yaml").write_text(
        text.replace("[identity, {bucketize", f"[{noise}, {{bucketize").replace(
            "sex: {role: quasi-identifier, masks: [identity,",
            "sex: {role: quasi-identifier, masks: [{randomised_response: {epsilon: 2}},",
        )
    )
    learnt = "{randomised_response: {epsilon: 2, values: [f, m], learnt: true}}"
    (folder / "noise_best.yaml").write_text(
        f"configurations: {{n: {{age: {noise}, sex: {learnt}, zip: suppress}}}}\n"
    )
    (folder / "seeded_best.yaml").write_text(
        "configurations: {s: {age: {add_uniform: {amount: 4}}, sex: suppress, zip: suppress}}\n"
    )
    (folder / "number.yaml").write_text(NUMBER)
    label = "label: {column: age, kind: number}"
    (folder / "any.yaml").write_text(NUMBER.replace(label, "labels: any"))
    several = "labels: [{column: age, kind: number}, income]"
    (folder / "several.yaml").write_text(NUMBER.replace(label, several))
    weighted = "label: income\nweight: age"
    (folder / "weighted.yaml").write_text(NUMBER.replace(label, weighted))
    (folder / "number_best.yaml").write_text(
        "configurations: {n: {sex: identity, zip: suppress}}\n"
    )
    (folder / "free.yaml").write_text(text.replace("k: 5, suppression: 0.05", ""))
    (folder / "unseen_best.yaml").write_text(
        "configurations: {b: {age: suppress, zip: suppress}}\n"
    )
    (folder / "finest.yaml").write_text(
        "configurations: {f: {age: identity, sex: identity, zip: {blur: {keep: 3}}}}\n"
    )
    (folder / "certificate.json").write_text('{"shown": ["01239", "1239"], "age": 64}')
    (folder / "sex.json").write_text('{"sex": {"f": 120, "m": 120}}')
    (folder / "m.json").write_text('{"M1": {"sex": {"f": ["f"], "m": ["m"]}}}')
    cells = ("attribute,value,label,rows", "sex,f,no,70", "sex,f,yes,50", "sex,m,no,60")
    (folder / "cells.csv").write_text("\n".join(cells) + "\n")
    reader = Reader(read_by(section))
    for words in RUNS[section]:
        result = shell(*words, "--format", "json")
        document = result.err if section == "Errors" else result.out
        assert document, result.err
        reader.read(json.loads(document))
    assert set(DOCUMENTED[section]) - reader.met == RARE.get(section, set())


def test_every_command_that_prints_results_has_a_section():
    commands = typer.main.get_command(app).commands
    printing = {
        f"aegis {name}"
        for name, command in commands.items()
        if any(one.name == "format" for one in command.params)
    }
    lacking = sorted(printing - RUNS.keys())
    assert not lacking, f"give {lacking} a run in RUNS, and a section in docs/reference/json.md"
    assert (
        set(DOCUMENTED)
        == set(RUNS)
        == printing
        | {
            "Errors",
            PROTECTED,
            "aegis reconstruct of a protected summary",
        }
    )
