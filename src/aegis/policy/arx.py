"""Projects of ARX (`project.deid`) as policies: data, roles, hierarchies, models and limits.

A project is a ZIP archive. What it says in XML and CSV is read; of the Java objects beside them nothing
but which rows are selected.
"""

from __future__ import annotations

import csv
import re
import struct
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from io import StringIO
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from xml.etree import ElementTree
from zipfile import BadZipFile, ZipFile

from aegis.errors import DataError, PolicyError
from aegis.files import replacing
from aegis.policy.load import load_policy, write_mapping

VOCABULARIES = ("2.0",)
"""Versions of the project's vocabulary that are read."""
MOST_BYTES = 1 << 30
"""Most bytes of one file of a project, unpacked."""
_ROLES = {
    "IDENTIFYING_ATTRIBUTE": "identifier",
    "QUASI_IDENTIFYING_ATTRIBUTE": "quasi-identifier",
    "SENSITIVE_ATTRIBUTE": "sensitive",
    "INSENSITIVE_ATTRIBUTE": "feature",
}
_NUMBER = r"([-+.\deE]+)"
_OF = r" for attribute '(.*)'"
_COMPARED = {"reference": "input"}
_ROW_SET = re.compile(
    rb"I\x00\x06lengthI\x00\x04size\[\x00\x05arrayt\x00\x02\[Jxp"
    rb"(.{4}).{4}ur\x00\x02\[J.{8}\x02\x00\x00xp(.{4})",
    re.DOTALL,
)
"""A set of rows as Java writes it: how many there are, how many are in it, and a bit for each."""


@dataclass(frozen=True)
class ImportedProject:
    """What an ARX project became.

    Attributes
    ----------
    table, policy
        The files of the data and of the policy.
    files
        All files that were written, those first.
    objective
        The loss that the project minimises, as `--objective` takes it; None where there is none.
    notes
        What could not be said in a policy, as sentences.
    optimum
        The least loss of an admissible transformation that the project has stored, and its levels;
        None where it has none.
    """

    table: Path
    policy: Path
    files: tuple[Path, ...]
    objective: str | None
    notes: tuple[str, ...]
    optimum: tuple[float, tuple[int, ...]] | None = None


def import_project(
    project: str | Path, folder: str | Path, *, people: int | None = None
) -> ImportedProject:
    """Write the data, the hierarchies and the policy of an ARX project into a folder.

    Parameters
    ----------
    project
        The project, a file that ARX saved.
    folder
        Where to write; it is made. Files of the same names are replaced.
    people
        Size of the population, which models of its uniqueness need and the project's texts lack.

    Raises
    ------
    DataError
        The file cannot be read, is no project, or one of another version.
    PolicyError
        A model has no equivalent, or needs the size of the population.
    """
    target = Path(folder)
    try:
        with ZipFile(project) as archive:
            return _Project(archive, Path(project)).write(target, people)
    except OSError as error:
        raise DataError(f"{project} cannot be read: {error.strerror}.") from error
    except BadZipFile as error:
        raise DataError(
            f"{project} is no ARX project.", hint="Give a .deid file that ARX saved."
        ) from error


class _Project:
    """An open project."""

    def __init__(self, archive: ZipFile, path: Path) -> None:
        self._archive = archive
        self._path = path
        self._notes: list[str] = []
        self._selects = False
        self._beside = False
        version = self._xml("metadata.xml").findtext("vocabulary", "")
        if version not in VOCABULARIES:
            raise DataError(
                f"{path} is an ARX project of vocabulary {version!r}.",
                hint=f"Read are: {', '.join(VOCABULARIES)}. Save it again with ARX 3.",
            )

    def write(self, folder: Path, people: int | None) -> ImportedProject:
        config = self._xml("input/config.xml")
        definition = self._xml("input/definition.xml")
        table = self._read("data/input.csv")
        hierarchies: dict[str, bytes] = {}
        policy: dict[str, Any] = {"version": 1}
        attributes = {}
        for entry in definition.iterfind("assigment"):
            name, written, content = self._attribute(entry)
            attributes[name] = written
            if content is not None:
                hierarchies[written["hierarchy"]] = content
            if entry.findtext("response") == "true" and "label" not in policy:
                policy["label"] = name
        policy["privacy"] = self._rule(config, people)
        policy["attributes"] = attributes
        contents = {"data.csv": table}
        if self._selects:
            contents["data.csv"] = self._selected(table)
        if self._beside:
            policy["population"] = "population.csv"
            contents["population.csv"] = table
        text = write_mapping(policy)
        contents |= {"policy.yaml": text.encode(), **hierarchies}
        if folder.exists() and not folder.is_dir():
            raise PolicyError(f"{folder} is no folder.", hint="Name one to write into.")
        with TemporaryDirectory() as scratch:  # so that nothing is left of what is refused
            _put(Path(scratch), {"policy.yaml": text.encode(), **hierarchies})
            load_policy(Path(scratch) / "policy.yaml")
        _put(folder, contents)
        main = [folder / "data.csv", folder / "policy.yaml"]
        return ImportedProject(
            main[0],
            main[1],
            (*main, *(folder / name for name in contents if folder / name not in main)),
            self._objective(config.findtext("metric", ""), policy["privacy"]),
            tuple(self._notes),
            self._optimum(),
        )

    def _selected(self, table: bytes) -> bytes:
        """Return the table with the rows that the project selects."""
        match = _ROW_SET.search(self._read("input/config.dat"))
        rows = list(csv.reader(StringIO(table.decode("utf-8-sig")), delimiter=self._separator))
        if match is None or struct.unpack(">i", match[1])[0] != len(rows) - 1:
            self._notes.append("The project selects rows, and which is not read: all are taken.")
            return table
        (count,) = struct.unpack(">i", match[2])
        words = struct.unpack(f">{count}Q", match.string[match.end() :][: 8 * count])
        text = StringIO()
        writer = csv.writer(text, delimiter=self._separator, lineterminator="\n")
        writer.writerow(rows[0])
        writer.writerows(row for i, row in enumerate(rows[1:]) if words[i // 64] >> (i % 64) & 1)
        return text.getvalue().encode()

    @property
    def _separator(self) -> str:
        return self._xml("project.xml").findtext("separator") or ";"

    def _attribute(self, entry: ElementTree.Element) -> tuple[str, dict[str, Any], bytes | None]:
        name = entry.findtext("name", "")
        kind = entry.findtext("type", "")
        if kind not in _ROLES:
            raise DataError(f"{self._path}: attribute {name!r} has the type {kind!r}.")
        written: dict[str, Any] = {"role": _ROLES[kind]}
        if entry.findtext("microaggregationFunction") is not None and kind.startswith("QUASI"):
            self._notes.append(
                f"{name!r} can be aggregated within groups in ARX; here it is generalised. See "
                "aegis anonymize for microaggregation."
            )
        ref = entry.findtext("ref")
        content = None if ref is None else self._read(f"input/{ref}")
        if content is None or not content.strip():
            if written["role"] != "identifier":
                written["masks"] = ["identity"]
            return name, written, None
        written["hierarchy"] = f"hierarchies/{re.sub(r'[^A-Za-z0-9._-]+', '_', name)}.csv"
        if written["role"] == "sensitive":
            written["masks"] = ["identity"]
        elif written["role"] == "quasi-identifier":
            levels = self._levels(entry, content)
            if levels is not None:
                written["masks"] = levels
        else:
            written.pop("hierarchy")
            if written["role"] != "identifier":
                written["masks"] = ["identity"]
            return name, written, None
        return name, written, content

    def _levels(self, entry: ElementTree.Element, content: bytes) -> list[Any] | None:
        """Return the levels that a project allows as masks; None where it allows all."""
        least, most = entry.findtext("min", "All"), entry.findtext("max", "All")
        if least == most == "All":
            return None
        top = content.split(b"\n", 1)[0].count(b";")
        low = 0 if least == "All" else int(least)
        high = top if most == "All" else int(most)
        return ["identity" if level == 0 else {"level": level} for level in range(low, high + 1)]

    def _rule(self, config: ElementTree.Element, people: int | None) -> dict[str, Any]:
        rule: dict[str, Any] = {}
        for criterion in config.iterfind("criteria/criterion"):
            text = (criterion.text or "").strip()
            if text == "Inclusion":
                self._selects = True
                continue
            if re.fullmatch(r"\(.*\)-(presence|map)|.*profitability \(journalist\).*", text):
                self._selects = self._beside = True
            key, value = _demand(text, people)
            rule.setdefault(key, []).append(value)
        plain = {key: given[0] if len(given) == 1 else given for key, given in rule.items()}
        limit = float(config.findtext("relativeMaxOutliers", "0"))
        return (plain or {"k": 1}) | {"suppression": limit}

    def _objective(self, metric: str, rule: Mapping[str, Any]) -> str | None:
        name, _, factors = metric.partition("(")
        if name.strip().lower() == "publisherbenefit":
            return self._payout(metric, rule)
        weighed = re.match(r"([\d.]+)/", factors)
        factor = "" if weighed is None or weighed[1] == "0.5" else f", factor={weighed[1]}"
        objective = _OBJECTIVES.get(name.strip().lower())
        if objective is None:
            self._notes.append(f"The quality model {metric!r} has no equivalent here.")
            return None
        if objective.startswith("classification"):
            self._notes.append(
                "The project does not say by which factor its classification metric weighs masking and "
                "suppression: 0.5 is taken, as ARX does by default."
            )
        return objective.replace(")", f"{factor})") if objective.endswith(")") else objective

    def _payout(self, metric: str, rule: Mapping[str, Any]) -> str | None:
        """Return the objective of a publisher's payout, its amounts those of the rule's demands."""
        stakes = rule.get("profitability")
        if not isinstance(stakes, dict):
            self._notes.append(
                f"The quality model {metric!r} does not say what is won and lost by an attack: give "
                "--objective 'publisher-payout(benefit=..., loss=..., gain=..., cost=...)'."
            )
            return None
        amounts = ", ".join(f"{k}={stakes[k]:g}" for k in ("benefit", "loss", "gain", "cost"))
        attacker = "journalist" if "journalist" in metric.lower() else "prosecutor"
        return f"publisher-payout({amounts}, attacker={attacker})"

    def _optimum(self) -> tuple[float, tuple[int, ...]] | None:
        """Return the least stored loss of an admissible transformation, and its levels."""
        if "lattice.xml" not in self._archive.namelist():
            return None
        best: tuple[float, tuple[int, ...]] | None = None
        for node in self._xml("lattice.xml").iter("n"):
            try:
                least, most = (float(node.findtext(f"l/{key}", "")) for key in "fu")
            except ValueError:
                continue
            if node.findtext("a") == "ANONYMOUS" and least == most:
                levels = tuple(int(x) for x in re.findall(r"\d+", node.findtext("t", "")))
                best = min(filter(None, (best, (most, levels))))
        return best

    def _xml(self, name: str) -> ElementTree.Element:
        text = self._read(name)
        # Nothing that ARX writes declares entities, which could unfold without end.
        if b"<!DOCTYPE" in text or b"<!ENTITY" in text:
            raise DataError(f"{self._path}: {name} declares a document type.")
        try:
            return ElementTree.fromstring(text)  # no entities: see above
        except ElementTree.ParseError as error:
            raise DataError(f"{self._path}: {name} is no XML: {error}.") from error

    def _read(self, name: str) -> bytes:
        try:
            size = self._archive.getinfo(name).file_size
        except KeyError:
            raise DataError(
                f"{self._path} is no ARX project: it holds no {name}.",
                hint="Give a .deid file that ARX saved.",
            ) from None
        if size > MOST_BYTES:
            raise DataError(f"{self._path}: {name} has {size:,} bytes; {MOST_BYTES:,} are allowed.")
        with self._archive.open(name) as file:
            content = file.read(MOST_BYTES + 1)
        if len(content) > MOST_BYTES:
            raise DataError(f"{self._path}: {name} has more bytes than it says.")
        return content


def _put(folder: Path, contents: dict[str, bytes]) -> None:
    """Write files into a folder."""
    (folder / "hierarchies").mkdir(parents=True, exist_ok=True)
    for name, content in contents.items():
        with replacing(folder / name) as temporary:
            temporary.write_bytes(content)


_OBJECTIVES = {
    "loss": "loss(mean=geometric, over=quasi-identifiers)",
    "non-uniform entropy": "nu-entropy(over=quasi-identifiers)",
    "precision": "precision(mean=arithmetic, over=quasi-identifiers)",
    "discernability": "discernibility",
    "discernibility": "discernibility",
    "average equivalence class size": "average-class-size",
    "classification accuracy": "classification(charges=arx)",
    "height": "height",
    "ambiguity": "ambiguity",
    "kl-divergence": "kl-divergence",
    "entropy-based information loss": "log-width(over=quasi-identifiers)",
}
"""Objectives by how ARX names its quality models."""

Groups = tuple[str, ...]
_STAKES = rf"\[benefit={_NUMBER}, loss={_NUMBER}, gain={_NUMBER}, cost={_NUMBER}\]"


def _stakes(groups: Groups) -> dict[str, Any]:
    """Return the attacker, and what a publisher and an adversary win and lose."""
    amounts = map(float, groups[1:])
    return {"attacker": groups[0]} | dict(
        zip(("benefit", "loss", "gain", "cost"), amounts, strict=True)
    )


_DEMANDS: dict[str, Callable[[Groups], tuple[str, Any]]] = {
    r"(\d+)-anonymity": lambda g: ("k", int(g[0])),
    rf"distinct-{_NUMBER}-diversity{_OF}": lambda g: (
        "l_diversity",
        {"attribute": g[1], "l": round(float(g[0])), "kind": "distinct"},
    ),
    rf"shannon-entropy-{_NUMBER}-diversity{_OF}": lambda g: (
        "l_diversity",
        {"attribute": g[1], "l": float(g[0]), "kind": "entropy"},
    ),
    rf"grassberger-entropy-{_NUMBER}-diversity{_OF}": lambda g: (
        "l_diversity",
        {"attribute": g[1], "l": float(g[0]), "kind": "entropy-grassberger"},
    ),
    rf"recursive-\({_NUMBER},{_NUMBER}\)-diversity{_OF}": lambda g: (
        "l_diversity",
        {"attribute": g[2], "c": float(g[0]), "l": round(float(g[1])), "kind": "recursive"},
    ),
    rf"{_NUMBER}-closeness with (equal|hierarchical|ordered) (?:ground-)?distance{_OF}": lambda g: (
        "t_closeness",
        {"attribute": g[2], "t": float(g[0]), "distance": g[1]} | _COMPARED,
    ),
    rf"(basic|enhanced)-{_NUMBER}-likeness{_OF}": lambda g: (
        "beta_likeness",
        {"attribute": g[2], "beta": float(g[1]), "kind": g[0]} | _COMPARED,
    ),
    rf"\({_NUMBER}\)-avg-reidentification-risk": lambda g: (
        "max_risk",
        {"kind": "marketer", "threshold": float(g[0])},
    ),
    rf"\({_NUMBER},{_NUMBER}\)-presence": lambda g: (
        "delta_presence",
        {"minimum": float(g[0]), "maximum": float(g[1])} | _COMPARED,
    ),
    r"\((\d+)\)-map": lambda g: ("k_map", int(g[0])),
    rf"\({_NUMBER}\)-sample-uniqueness": lambda g: (
        "sample_uniqueness",
        {"threshold": float(g[0])},
    ),
    rf"profitability \((\w+)\){_STAKES}": lambda g: ("profitability", _stakes(g)),
    rf"no-attack-profitability \((\w+)\){_STAKES}": lambda g: (
        "no_attack",
        {key: value for key, value in _stakes(g).items() if key in ("attacker", "gain", "cost")},
    ),
}
"""What a policy asks for, by how ARX writes a privacy model."""


def _demand(text: str, people: int | None) -> tuple[str, Any]:
    """Return the key and the value of a rule for a privacy model as ARX writes it."""
    for pattern, demand in _DEMANDS.items():
        match = re.fullmatch(pattern, text)
        if match is not None:
            return demand(match.groups())
    if re.fullmatch(r"(no-attack-)?profitability \(\w+\)", text):
        raise PolicyError(
            f"The project asks for {text!r}, and does not say in a text what is won and lost.",
            hint="ARX writes the amounts once it has anonymised: do that, and save the project again.",
        )
    uniqueness = re.fullmatch(rf"\({_NUMBER}\)-population-uniqueness \((\w+)\)", text)
    if uniqueness is None:
        raise PolicyError(
            f"The project asks for {text!r}, which no policy can say.",
            hint=f"Understood are: {', '.join(_shown())}. Remove the model in ARX.",
        )
    if people is None:
        raise PolicyError(
            f"The project asks for {text!r}, and does not say in a text how large the population is.",
            hint="Give the number of people: --people N.",
        )
    kind = {"estimator": uniqueness[2], "threshold": float(uniqueness[1]), "population": people}
    return "population_uniqueness", kind


def _shown() -> Iterator[str]:
    yield from (
        "k-anonymity",
        "l-diversity",
        "t-closeness",
        "beta-likeness",
        "k-map",
        "delta-presence",
        "average risk",
        "sample uniqueness",
        "population uniqueness",
        "profitability",
        "no-attack profitability",
    )
