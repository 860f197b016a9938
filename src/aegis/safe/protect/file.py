"""Store a protected summary as a single JSON file, which people can read before they share it.

The file has the extension `.protected`. Its schema has fields only for protected content. A digest
detects damage and careless edits. Hierarchies are stored completely, because masks refer to their
groups.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np

from aegis.errors import AegisError, DataError
from aegis.files import check_output, read_text, write_text
from aegis.masks import Hierarchy, Kind, parse_mask
from aegis.masks.grouping import hierarchy_of
from aegis.policy import OwnerRule, Role
from aegis.safe import PROTECTED
from aegis.safe.protect.budget import NamingThreshold, NoiseRound, Unit
from aegis.safe.protect.model import (
    CellMethod,
    DomainSource,
    Moments,
    ProtectedAttribute,
    ProtectedCandidate,
    ProtectedSummary,
    Protection,
    ProtectionLevel,
    PublishedDomain,
    StatedVerdict,
)

FORMAT = "aegis-protected-summary"
VERSION = 1
"""Version of the format; it changes if an older reader would misread a file."""
MOST_BYTES = 256 << 20
DIGITS = 9
"""Number of significant digits of a moment."""
_BROKEN = (
    AegisError,
    ArithmeticError,
    AttributeError,
    LookupError,
    TypeError,
    ValueError,
    RecursionError,
)


def save_protected(summary: ProtectedSummary, path: str | Path, *, force: bool = False) -> str:
    """Write a protected summary and return the SHA-256 of the file; equal summaries give equal files.

    Raise `PolicyError` if the name is wrong or taken (without `force`), `DataError` if writing fails.
    """
    target = Path(path)
    check_output(target, force=force, formats=(PROTECTED,))
    text = dumps(summary)
    write_text(target, text)
    return sha256(text.encode("utf-8")).hexdigest()


def load_protected(path: str | Path) -> ProtectedSummary:
    """Return the summary that `save_protected` wrote; raise `DataError` as `loads` does."""
    source = Path(path)
    if source.is_file() and source.stat().st_size > MOST_BYTES:
        raise _damaged(str(source), f"it has more than {MOST_BYTES >> 20} MB")
    return loads(read_text(source, "protected summary", DataError), str(source))


def dumps(summary: ProtectedSummary) -> str:
    """Write a protected summary as the text of its file."""
    content = _content(summary)
    document = {"format": FORMAT, "version": VERSION, "sha256": _digest(content), **content}
    return json.dumps(document, indent=1, ensure_ascii=False, allow_nan=False) + "\n"


def loads(text: str, origin: str = "The text") -> ProtectedSummary:
    """Parse the text of a file; raise `DataError` if it is damaged, or not this version's format."""
    try:
        document = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise _damaged(origin, "it is not JSON") from error
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        raise DataError(
            f"{origin} is not a protected summary.",
            hint="Make one: `aegis protect TABLE --policy POLICY -o NAME.protected --epsilon 1 --delta 1e-6`.",
        )
    if document.get("version") != VERSION:
        raise DataError(
            f"{origin} has version {document.get('version')!r} of the format, and this is "
            f"version {VERSION}.",
            hint="Protect the summary again, or use the Aegis that wrote it.",
        )
    content = {k: v for k, v in document.items() if k not in ("format", "version", "sha256")}
    if document.get("sha256") != _digest(content):
        raise _damaged(origin, "its digest does not fit")
    try:
        return _summary(content)
    except _BROKEN as error:
        reason = getattr(error, "message", str(error)).rstrip(".") or type(error).__name__
        raise _damaged(origin, reason) from error


def _damaged(origin: str, reason: str) -> DataError:
    return DataError(
        f"{origin} is damaged or was tampered with: {reason}.", hint="Ask its maker for it again."
    )


def _digest(content: Mapping[str, Any]) -> str:
    text = json.dumps(content, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    # Half of a character has no UTF-8: a file that holds one is damaged, which its parts say.
    return sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def _content(summary: ProtectedSummary) -> dict[str, Any]:
    moments = summary.moments
    return {
        "protection": summary.protection.to_dict(),
        "label": {
            "column": summary.label,
            "classes": list(summary.classes),
            "rows": [round(float(n), 3) for n in summary.class_counts],
        },
        "cell_error": _short(summary.cell_error),
        "attributes": [_attribute_to(a) for a in summary.attributes.values()],
        "moments": None
        if moments is None
        else {
            "error": _short(moments.error),
            "upper": [
                _short(v) for v in moments.matrix[np.triu_indices(len(moments.matrix), 1)].tolist()
            ],
        },
        "verdicts": [[*v.choice, v.admissible] for v in summary.verdicts],
        "rule": None if summary.rule is None else dict(summary.rule),
        "notes": list(summary.notes),
        "policy": summary.policy,
        "made_under": None if summary.owner is None else summary.owner.to_dict(),
    }


def _short(value: float) -> float:
    """Round a number to as many significant digits as a file stores."""
    return float(f"{value:.{DIGITS}g}") + 0.0  # no negative zero


def _attribute_to(attribute: ProtectedAttribute) -> dict[str, Any]:
    masks = (m for c in attribute.candidates for m in (c.mask, c.declared))
    hierarchy = hierarchy_of(masks, attribute.name)
    return {
        "name": attribute.name,
        "role": str(attribute.role),
        "kind": str(attribute.kind),
        "weight": attribute.weight,
        "hierarchy": None
        if hierarchy is None
        else {"name": hierarchy.name, "rows": [list(row) for row in hierarchy.rows]},
        "table": attribute.table.tolist(),
        "units": attribute.units.tolist(),
        "candidates": [
            {
                "mask": c.mask.spec(),
                "declared": c.declared.spec(),
                "groups": c.groups.tolist(),
                "shown": list(c.labels),
            }
            for c in attribute.candidates
        ],
        "codes": None if attribute.codes is None else attribute.codes.tolist(),
    }


def _summary(content: Mapping[str, Any]) -> ProtectedSummary:
    classes = tuple(map(str, content["label"]["classes"]))
    counts = np.array(content["label"]["rows"], dtype=np.float64)
    _require(len(counts) == len(classes), "classes and their rows differ")
    attributes = [_attribute_from(entry, len(classes)) for entry in content["attributes"]]
    sizes = [0 if a.codes is None else a.codes.shape[1] for a in attributes]
    width = len(attributes)
    verdicts = [
        StatedVerdict(tuple(int(i) for i in entry[:-1]), entry[-1]) for entry in content["verdicts"]
    ]
    _require(all(len(v.choice) == width for v in verdicts), "a verdict names other attributes")
    owner = content.get("made_under")
    error = float(content["cell_error"])
    _require(math.isfinite(error) and error >= 0, "the error of cells is not a number")
    return ProtectedSummary(
        protection=_protection_from(content["protection"]),
        label=str(content["label"]["column"]),
        classes=classes,
        class_counts=counts,
        attributes={a.name: a for a in attributes},
        moments=_moments_from(content["moments"], sum(sizes)),
        verdicts=tuple(verdicts),
        rule=content["rule"],
        cell_error=error,
        policy=str(content["policy"]),
        notes=tuple(map(str, content["notes"])),
        owner=None if owner is None else OwnerRule.of(owner, "It"),
    )


def _protection_from(content: Mapping[str, Any]) -> Protection:
    level = ProtectionLevel(content["level"])
    _require(level is not ProtectionLevel.NONE, "its level is none")
    method, domains = content["method"], content.get("domains")
    for name in ("threshold", "step"):
        is_count = type(content[name]) is int and content[name] >= 0
        _require(is_count or content[name] is None, f"its {name} is not a whole number")
    return Protection(
        level=level,
        unit=Unit(content["unit"]),
        rows_per_person=int(content["rows_per_person"]),
        epsilon=content["epsilon"],
        delta=content["delta"],
        rho=content["rho"],
        rounds=tuple(NoiseRound(**round_) for round_ in content["rounds"]),
        method=None if method is None else CellMethod(method),
        threshold=content["threshold"],
        step=content["step"],
        variance=content["variance"],
        public=tuple(content["public"]),
        thresholds=tuple(NamingThreshold(**entry) for entry in content.get("thresholds", ())),
        domains=None
        if domains is None
        else tuple(
            PublishedDomain(str(entry["what"]), str(entry["column"]), DomainSource(entry["source"]))
            for entry in domains
        ),
    )


def _attribute_from(content: Mapping[str, Any], classes: int) -> ProtectedAttribute:
    table = np.array(content["table"], dtype=np.int64).reshape(-1, classes)
    tree = content["hierarchy"]
    hierarchy = None
    if tree is not None:
        hierarchy = Hierarchy(tuple(tuple(row) for row in tree["rows"]), tree["name"])
    candidates = []
    for candidate in content["candidates"]:
        groups = np.array(candidate["groups"], dtype=np.int64)
        labels = tuple(map(str, candidate["shown"]))
        _require(len(groups) == len(table), "groups do not fit the cells")
        sound = not len(groups) or (groups.min() >= 0 and groups.max() < len(labels))
        _require(bool(sound), "a cell belongs to an unknown group")
        candidates.append(
            ProtectedCandidate(
                parse_mask(candidate["mask"], hierarchy=hierarchy),
                parse_mask(candidate["declared"], hierarchy=hierarchy),
                groups,
                labels,
            )
        )
    units = np.array(content["units"], dtype=np.int64)
    _require(len(units) == len(table) and bool((units >= 1).all()), "units do not fit the cells")
    codes = None
    if content["codes"] is not None:
        codes = np.array(content["codes"], dtype=np.int64)
        codes = codes.reshape(len(table), -1) if len(table) else codes.reshape(0, 0)
    return ProtectedAttribute(
        name=str(content["name"]),
        role=Role(content["role"]),
        kind=Kind(content["kind"]),
        weight=float(content["weight"]),
        table=table,
        candidates=tuple(candidates),
        units=units,
        codes=codes,
    )


def _moments_from(content: Mapping[str, Any] | None, size: int) -> Moments | None:
    if content is None:
        return None
    upper = np.array(content["upper"], dtype=np.float64)
    _require(len(upper) == size * (size - 1) // 2, "moments do not fit the codes")
    _require(bool(np.isfinite(upper).all()), "a moment is not a number")
    return Moments.of_upper(upper, size, float(content["error"]))


def _require(condition: bool, problem: str) -> None:
    if not condition:
        raise ValueError(problem)
