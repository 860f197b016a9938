"""What a certificate, report or policy gives away: values in its text that few persons have."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from aegis.summary import Summary

_RANGE = re.compile(r"#[^\n]*?\bvalues?, (\S+) to (\S+)")
"""The comment that a proposed policy holds of a number: "119 values, 0 to 99999"."""
_EDGES = re.compile(r"edges\W{1,4}\[([^\]]*)\]")
_DIGEST = re.compile(r"\b[0-9a-f]{64}\b")
_WORD = re.compile(r"[^\s\"'\[\]{}(),:;<>=]+(?: [^\s\"'\[\]{}(),:;<>=]+){0,3}")
LEAST_TEXT = 3
"""Shortest text of a value that is looked for: shorter ones occur by chance."""


@dataclass(frozen=True)
class DocumentLeak:
    """Findings in a document.

    Attributes
    ----------
    kind
        `certificate`, `report` or `policy`.
    extremes
        Least and greatest values of attributes that its comments hold: those of single persons.
    cuts
        Cut points that were learnt from the data: each is a value that occurs.
    rare
        By attribute, how many values of fewer rows than the threshold are in it; only known where
        a summary was given to compare with.
    findings
        What follows, one sentence each.
    """

    kind: str
    extremes: int
    cuts: int
    rare: dict[str, int]
    findings: tuple[str, ...]

    @property
    def clean(self) -> bool:
        """Whether nothing about single persons was found."""
        return not self.extremes and not self.rare

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as JSON values."""
        return {
            "kind": self.kind,
            "extremes": self.extremes,
            "cuts": self.cuts,
            "rare": dict(self.rare),
            "clean": self.clean,
            "findings": list(self.findings),
        }


def audit_document(
    text: str, kind: str, summaries: Sequence[Summary] = (), *, threshold: int = 5
) -> DocumentLeak:
    """Return what a document gives away.

    Parameters
    ----------
    text
        The document.
    kind
        `certificate`, `report` or `policy`.
    summaries
        Exact summaries of the table that it is about: values that fewer than `threshold` rows hold
        are looked for in the text.
    threshold
        Rows from which a value is not rare.
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
    return DocumentLeak(
        kind, extremes, cuts, rare, tuple(_told(text, extremes, cuts, rare, summaries))
    )


def _words(text: str) -> set[str]:
    """Return the words of a text, and runs of up to four of them."""
    runs: set[str] = set()
    for match in _WORD.finditer(text):
        parts = match[0].split(" ")
        for start in range(len(parts)):
            for stop in range(start + 1, len(parts) + 1):
                runs.add(" ".join(parts[start:stop]).rstrip("."))
    return runs


def _rare_values(summary: Summary, threshold: int) -> Iterable[tuple[str, set[str]]]:
    """Yield per attribute the texts of values that few rows hold."""
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


def _told(
    text: str, extremes: int, cuts: int, rare: dict[str, int], summaries: Sequence[Summary]
) -> Iterable[str]:
    if extremes:
        yield (
            f"its comments hold the least and greatest value of {extremes // 2} attributes: leave the "
            "comments out before it is passed on"
        )
    if cuts:
        yield f"{cuts} cut points were learnt from the data: each is a value that occurs"
    for name, hits in rare.items():
        yield f"{hits} values of {name} that few rows hold are in it"
    if not summaries:
        yield "no summary was given to compare with, so that rare values were not looked for"
    digests = len(set(_DIGEST.findall(text)))
    if digests:
        yield f"{digests} digests in it let whoever has the same file recognise it"
