"""Import of ARX projects (`project.deid`): data, roles, hierarchies, privacy models and limits.

A project is a ZIP archive. Its XML and CSV files are read. From its serialised Java objects, only
the selection of rows is read.
"""

from __future__ import annotations

import csv
import re
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from io import StringIO
from pathlib import Path
from typing import Any
from xml.etree import ElementTree
from zipfile import BadZipFile, ZipFile

from aegis.arx.terms import SEARCHED, demand, quality_model, sampled
from aegis.errors import DataError, PolicyError
from aegis.files import replacing, temporary_folder
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
_SCHEME = b"org.deidentifier.arx.DataGeneralizationScheme"
"""Java's name of the class of fixed levels: in a project only where it holds such levels."""
_ROW_SET = re.compile(
    rb"I\x00\x06lengthI\x00\x04size\[\x00\x05arrayt\x00\x02\[Jxp"
    rb"(.{4}).{4}ur\x00\x02\[J.{8}\x02\x00\x00xp(.{4})",
    re.DOTALL,
)
"""A set of rows as Java writes it: how many there are, how many are in it, and a bit for each."""


@dataclass(frozen=True)
class ImportedProject:
    """The files that the import of an ARX project wrote, and the project's objective.

    Attributes
    ----------
    table, policy
        The files of the data and of the policy.
    files
        All files that were written; table and policy are first.
    objective
        The loss that the project minimises, as a value of the option `--objective`; None if Aegis
        has no such loss.
    notes
        Sentences on parts of the project that a policy cannot express.
    optimum
        The best solution that the project stores: its loss and its hierarchy levels; None if the
        project stores no solution that meets the rule.
    sampled
        Options of the method `safe-pub` if the project requires differential privacy; else None.
        The policy then lists this method among its anonymizers.
    """

    table: Path
    policy: Path
    files: tuple[Path, ...]
    objective: str | None
    notes: tuple[str, ...]
    optimum: tuple[float, tuple[int, ...]] | None = None
    sampled: Mapping[str, Any] | None = None


def import_project(
    project: str | Path, folder: str | Path, *, people: int | None = None
) -> ImportedProject:
    """Write the data, the hierarchies and the policy of an ARX project into a folder.

    Parameters
    ----------
    project
        The project, a file that ARX saved.
    folder
        Folder to write into. It is made if it does not exist; files with the same names are
        replaced.
    people
        Number of people in the population, which the project's files do not contain. Only models of
        population uniqueness need this number.

    Raises
    ------
    DataError
        The file cannot be read, is not a project, or has another version.
    PolicyError
        A model has no equivalent, or needs the size of the population.
    """
    target = Path(folder)
    try:
        with ZipFile(project) as archive:
            return _Project(archive, Path(project)).write(target, people)
    except OSError as error:
        hint = "Give a project (.deid), as ARX saves it."
        raise DataError(f"{project} cannot be read: {error.strerror}.", hint=hint) from error
    except BadZipFile as error:
        raise DataError(
            f"{project} is not an ARX project.", hint="Give a .deid file that ARX saved."
        ) from error


class _Project:
    """An ARX project that is open for reading."""

    def __init__(self, archive: ZipFile, path: Path) -> None:
        self._archive = archive
        self._path = path
        self._notes: list[str] = []
        self._selects = False
        self._needs_population = False
        self._sampled: dict[str, Any] | None = None
        version = self._xml("metadata.xml").findtext("vocabulary", "")
        if version not in VOCABULARIES:
            raise DataError(
                f"{path} is an ARX project of vocabulary {version!r}.",
                hint=f"Aegis reads {', '.join(VOCABULARIES)}. Save it again with ARX 3.",
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
            if entry.findtext("response") == "true":
                if "label" in policy:
                    self._notes.append(
                        f"The project predicts {name!r} as well: a policy has one label, {policy['label']!r}."
                    )
                policy.setdefault("label", name)
        policy["privacy"] = self._rule(config, people)
        weighted = self._weigh(config, attributes)
        policy["attributes"] = attributes
        objective = self._objective(config.findtext("metric", ""), policy["privacy"], weighted)
        if self._sampled is not None:
            policy["anonymizers"] = [{"safe-pub": self._sampled}]
        contents = {"data.csv": table}
        if self._selects:
            contents["data.csv"] = self._selected(table)
        if self._needs_population:
            policy["population"] = "population.csv"
            contents["population.csv"] = table
        text = write_mapping(policy)
        contents |= {"policy.yaml": text.encode(), **hierarchies}
        if folder.exists() and not folder.is_dir():
            raise PolicyError(f"{folder} is not a folder.", hint="Name one to write into.")
        with temporary_folder("import") as scratch:  # so that nothing is left of what is refused
            _put(scratch, {"policy.yaml": text.encode(), **hierarchies})
            load_policy(scratch / "policy.yaml")
        _put(folder, contents)
        main = [folder / "data.csv", folder / "policy.yaml"]
        return ImportedProject(
            main[0],
            main[1],
            (*main, *(folder / name for name in contents if folder / name not in main)),
            objective,
            tuple(self._notes),
            self._optimum(),
            self._sampled,
        )

    def _weigh(self, config: ElementTree.Element, attributes: dict[str, dict[str, Any]]) -> bool:
        """Write the project's weights into `attributes`, scaled to a maximum of 1, and return True.
        If all weights are equal, write none and return False.
        """
        quasi = [name for name, a in attributes.items() if a["role"] == "quasi-identifier"]
        project_weights = {
            entry.findtext("attribute", ""): self._number(entry, "weight")
            for entry in config.iterfind("attributeWeights/attributeWeight")
        }
        weights = {name: project_weights.get(name, 0.0) for name in quasi}
        if len(set(weights.values())) < 2:
            return False
        most = max(weights.values())
        for name, weight in weights.items():
            if weight > 0:
                attributes[name]["weight"] = weight / most
            else:
                self._notes.append(
                    f"The weight of {name!r} is 0, and in a policy above 0: 1 is taken."
                )
        return True

    def _selected(self, table: bytes) -> bytes:
        """Return the rows of the CSV table that the project selects. If the selection cannot be
        read, return all rows and add a note.
        """
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
        role = _ROLES[kind]
        written: dict[str, Any] = {"role": role}
        if entry.findtext("microaggregationFunction") is not None and kind.startswith("QUASI"):
            self._notes.append(
                f"{name!r} can be aggregated within groups in ARX; here it is generalised. See "
                "aegis anonymize for microaggregation."
            )
        ref = entry.findtext("ref")
        content = None if ref is None else self._read(f"input/{ref}")
        masked = role in ("sensitive", "quasi-identifier")
        if content is None or not content.strip() or not masked:
            if role != "identifier":
                written["masks"] = ["identity"]
            return name, written, None
        written["hierarchy"] = f"hierarchies/{re.sub(r'[^A-Za-z0-9._-]+', '_', name)}.csv"
        levels = ["identity"] if role == "sensitive" else self._levels(entry, content)
        if levels is not None:
            written["masks"] = levels
        return name, written, content

    def _levels(self, entry: ElementTree.Element, content: bytes) -> list[Any] | None:
        """Return the allowed levels of an attribute as masks; None if all are allowed."""
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
                self._selects = self._needs_population = True
            options = sampled(text)
            if options is not None:
                self._sampled = options
                continue
            key, value = demand(text, people)
            rule.setdefault(key, []).append(value)
        plain = {key: values[0] if len(values) == 1 else values for key, values in rule.items()}
        # What a sample leaves out counts as suppressed.
        limit = 1.0 if self._sampled is not None else self._number(config, "relativeMaxOutliers")
        return (plain or {"k": 1}) | {"suppression": limit}

    def _number(self, entry: ElementTree.Element, key: str) -> float:
        text = entry.findtext(key, "0")
        try:
            return float(text)
        except ValueError:
            raise DataError(f"{self._path}: {key} is {text!r}, not a number.") from None

    def _objective(self, metric: str, rule: Mapping[str, Any], weighted: bool) -> str | None:
        """Return the loss that the project minimises as an objective; None if Aegis has no
        equivalent. Add a note for each setting that is not in the project's files.
        """
        if metric.lower().startswith("publisherbenefit"):
            return self._payout(metric, rule)
        model = quality_model(metric)
        if self._sampled is not None:
            self._draw(metric, None if model is None else model.score)
        if model is None:
            self._notes.append(f"The quality model {metric!r} has no equivalent here.")
            return None
        if model.factored:
            self._notes.append(
                f"The project does not say by which factor {metric!r} weighs masking and suppression: "
                "0.5 is taken, as ARX does by default."
            )
        weighed = re.search(r"\(([\d.]+)/", metric)
        factor = "" if weighed is None or float(weighed[1]) == 0.5 else f", factor={weighed[1]}"
        if "over=" not in model.objective:
            if weighted:
                self._notes.append(f"Weights of attributes play no part in {model.objective!r}.")
            return model.objective
        weights = ", weights=policy" if weighted else ""
        return model.objective.replace(")", f"{weights}{factor})")

    def _draw(self, metric: str, score: str | None) -> None:
        """Complete the options of `safe-pub`, with notes on settings that the files lack."""
        assert self._sampled is not None
        self._sampled["score"] = score or "precision"
        if score is None:
            self._notes.append(f"ARX draws by no score of {metric!r}; here it is precision.")
        self._notes.append(
            f"The project does not say how much of epsilon the search for levels spends: {SEARCHED:g} "
            "of it is taken, as ARX's interface does by default."
        )
        if _SCHEME in self._read("input/config.dat"):
            self._notes.append(
                "The project fixes levels, and which is not read: here they are drawn. Name them with "
                "--option search=0 --option 'masks={ATTRIBUTE: {level: N}}'."
            )

    def _payout(self, metric: str, rule: Mapping[str, Any]) -> str | None:
        """Return the objective `publisher-payout` with the amounts of money that a criterion names.
        If no criterion names them, add a note and return None.
        """
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
        """Return loss and levels of the best solution that is stored and meets the rule, or None."""
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
            raise DataError(f"{self._path}: {name} is not XML: {error}.") from error

    def _read(self, name: str) -> bytes:
        try:
            size = self._archive.getinfo(name).file_size
        except KeyError:
            raise DataError(
                f"{self._path} is not an ARX project: it holds no {name}.",
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
    """Write each content to the file with its name in the folder, which is made if needed."""
    (folder / "hierarchies").mkdir(parents=True, exist_ok=True)
    for name, content in contents.items():
        with replacing(folder / name) as temporary:
            temporary.write_bytes(content)
