"""Audit the text of a certificate, report or policy for values that only few persons have."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from aegis.summary import Summary
from aegis.words import counted, json_fields

_RANGE = re.compile(r"#[^\n]*?\bvalues?, (\S+) to (\S+)")
"""The comment of a proposed policy about a number: "119 values, 0 to 99999"."""
_EDGES = re.compile(r"edges\W{1,4}\[([^\]]*)\]")
_DIGEST = re.compile(r"\b[0-9a-f]{64}\b")
_OF_TABLE = re.compile(r"\bInput, SHA-256|SHA-256 of the input\b")
"""Titles of the digest of the original table on pages of earlier versions."""
_WORD = re.compile(r"[^\s\"'\[\]{}(),:;<>=]+(?: [^\s\"'\[\]{}(),:;<>=]+){0,3}")
LEAST_TEXT = 3
"""Smallest length of a value that is searched, because shorter texts occur by chance."""


@dataclass(frozen=True)
class DocumentLeak:
    """What a certificate, report or policy reveals about single persons.

    Attributes
    ----------
    kind
        `certificate`, `report` or `policy`.
    extremes
        How many smallest and largest values of attributes the comments of a policy contain; each
        may belong to one person.
    cuts
        Number of cut points that were learnt from the data; each is a value of the data.
    digests_of_table
        Number of digests of the original table that need no key. A reader who also has the release
        can guess suppressed rows, and compute the digest of each guess.
    rare
        For each attribute, the number of values in the document that have fewer rows than the
        threshold. It is known only if a summary was given.
    findings
        Conclusions, one sentence each.
    """

    kind: str
    extremes: int
    cuts: int
    digests_of_table: int
    rare: dict[str, int]
    findings: tuple[str, ...]

    @property
    def clean(self) -> bool:
        """Whether the document reveals nothing about single persons that the audit can find."""
        return not (self.extremes or self.digests_of_table or self.rare)

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as JSON values."""
        return json_fields(self) | {"clean": self.clean}


def document_verdict(kind: str, *, passed: bool) -> str:
    """Return the result of an audit of a document of this `kind` in words."""
    if passed:
        return f"Passed: Aegis found no value of a single person in this {kind}"
    return f"Failed: this {kind} shows values of single persons"


def audit_document(
    text: str, kind: str, summaries: Sequence[Summary] = (), *, threshold: int = 5
) -> DocumentLeak:
    """Find what a certificate, report or policy (`kind`) reveals about single persons.

    The audit searches the text for values that have fewer than `threshold` rows in the exact
    `summaries` of the table.
    """
    extremes = 2 * len(_RANGE.findall(text))
    cuts = sum(len([c for c in edges.split(",") if c.strip()]) for edges in _EDGES.findall(text))
    rare: dict[str, int] = {}
    words = _words(text)
    for summary in summaries:
        for name, values in _rare_values(summary, threshold):
            hits = len(values & words)
            if hits:
                rare[name] = max(rare.get(name, 0), hits)
    digests = _digests_of_table(text, kind)
    findings = tuple(_findings(text, digests, extremes, cuts, rare, summaries))
    return DocumentLeak(kind, extremes, cuts, digests, rare, findings)


def _digests_of_table(text: str, kind: str) -> int:
    """Return how many digests of the original table need no key, as in earlier versions."""
    if kind != "certificate":
        return len(_OF_TABLE.findall(text))
    try:
        document = json.loads(text)
    except (ValueError, RecursionError):
        return 0
    table_entry = document.get("input") if isinstance(document, dict) else None
    return int(isinstance(table_entry, dict) and table_entry.get("sha256") is not None)


def _words(text: str) -> set[str]:
    """Return the words of a text, and sequences of up to four words."""
    runs: set[str] = set()
    for match in _WORD.finditer(text):
        parts = match[0].split(" ")
        for start in range(len(parts)):
            for stop in range(start + 1, len(parts) + 1):
                runs.add(" ".join(parts[start:stop]).rstrip("."))
    return runs


def _rare_values(summary: Summary, threshold: int) -> Iterable[tuple[str, set[str]]]:
    """Yield each attribute with the texts of its values that fewer than `threshold` rows have."""
    for attribute in summary.all_attributes:
        values, counts = attribute.values, attribute.counts
        if attribute.domain is not None:
            if attribute.domain.counts is None:
                continue
            values, counts = attribute.domain.values, attribute.domain.counts
        texts = (
            str(v)
            for v, n in zip(values.to_pylist(), counts.tolist(), strict=True)
            if v is not None and 0 < n < threshold
        )
        yield attribute.name, {t for t in texts if len(t) >= LEAST_TEXT}


def _findings(
    text: str,
    of_table: int,
    extremes: int,
    cuts: int,
    rare: dict[str, int],
    summaries: Sequence[Summary],
) -> Iterable[str]:
    if of_table:
        yield (
            "it has the digest of the original table (input.sha256): a reader who also has the "
            "release can guess the suppressed rows, and the digest confirms the right guess. "
            "Make the release and its certificate again: this version of Aegis leaves the digest out"
        )
    if extremes:
        yield (
            f"its comments show the smallest and largest value of {counted(extremes // 2, 'attribute')}: "
            "remove the comments before you pass it on"
        )
    if cuts:
        yield f"it has {counted(cuts, 'cut point')} learnt from the data, each a value in the table"
    for name, hits in rare.items():
        yield f"it contains {counted(hits, 'value')} of {name} that few rows have"
    if not summaries:
        yield "Aegis did not search for rare values: that needs the exact summary (--with FILE.aegis)"
    digests = len(set(_DIGEST.findall(text)))
    if digests:
        yield f"it has {counted(digests, 'digest')}: anybody who has such a file can recognise it"
