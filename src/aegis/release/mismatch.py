"""Compare a certificate with a file field by field."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from aegis.release.auditing import Audit
from aegis.words import counted, json_fields

NOTHING = "nothing"


@dataclass(frozen=True)
class Mismatch:
    """A field whose values in the certificate and in the file differ.

    Attributes
    ----------
    what
        The field: a path in the certificate, such as `privacy.k`.
    certified, measured
        The value in the certificate, and the value that the file has.
    possible
        Whether `measured` describes the possible values instead, because the file does not
        determine the value.
    """

    what: str
    certified: Any
    measured: Any
    possible: bool = False

    def __str__(self) -> str:
        measured = "; possible:" if self.possible else ", the file shows"
        return (
            f"{self.what}: the certificate says {brief(self.certified)}{measured} "
            f"{brief(self.measured)}"
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as JSON values."""
        return json_fields(self, "what", "certified", "measured")


@dataclass(frozen=True, eq=False, repr=False)
class CertificateCheck:
    """Result of comparing a table with a certificate.

    Attributes
    ----------
    mismatches
        The differences; empty if the certificate matches this table.
    unchecked
        Sentences on the fields that could not be checked from the table.
    audit
        The measured privacy figures; None if the table lacks a column that they need.
    """

    mismatches: tuple[Mismatch, ...]
    unchecked: tuple[str, ...]
    audit: Audit | None

    @property
    def passed(self) -> bool:
        """Whether there are no differences."""
        return not self.mismatches

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as JSON values."""
        return json_fields(self, "passed", "mismatches", "unchecked")

    def __repr__(self) -> str:
        verdict = "matches" if self.passed else counted(len(self.mismatches), "difference")
        lines = [f"CertificateCheck({verdict})", *(f"  {each}" for each in self.mismatches)]
        return "\n".join([*lines, *(f"Not checked: {each}" for each in self.unchecked)])


def differing(certified: Any, measured: Any, path: str) -> Iterator[tuple[str, Any, Any]]:
    """Yield the path (below `path`) and both values of each field in which two documents differ."""
    if isinstance(certified, Mapping) and isinstance(measured, Mapping):
        for key in dict.fromkeys((*certified, *measured)):
            values = certified.get(key, NOTHING), measured.get(key, NOTHING)
            yield from differing(*values, f"{path}.{key}")
    elif not alike(certified, measured):
        yield path, certified, measured


def alike(certified: Any, measured: Any) -> bool:
    """Return whether two values are equal; numbers are equal if they agree in nine significant
    digits.
    """
    if isinstance(certified, float | int) and isinstance(measured, float | int):
        if isinstance(certified, bool) or isinstance(measured, bool):
            return certified is measured
        return math.isclose(certified, measured, rel_tol=1e-9, abs_tol=1e-12)
    if isinstance(certified, list | tuple) and isinstance(measured, list | tuple):
        return len(certified) == len(measured) and all(map(alike, certified, measured))
    if isinstance(certified, Mapping) and isinstance(measured, Mapping):
        return certified.keys() == measured.keys() and all(
            alike(certified[key], measured[key]) for key in certified
        )
    return bool(certified == measured)


def brief(value: Any) -> str:
    """Return a value for a message, shortened if it is long."""
    text = json.dumps(value, default=str) if not isinstance(value, str) else value
    return text if len(text) <= 100 else f"{text[:97]}..."


def stated_fields(certified: Any, measured: Any) -> Any:
    """Return the entries of `measured` whose keys `certified` has; `certified` if one is no mapping."""
    if not isinstance(certified, Mapping) or not isinstance(measured, Mapping):
        return certified
    return {key: value for key, value in measured.items() if key in certified}


def without(mapping: Mapping[str, Any], *keys: str) -> dict[str, Any]:
    """Return a mapping without some of its keys."""
    return {key: value for key, value in mapping.items() if key not in keys}


def as_json(data: Mapping[str, Any]) -> dict[str, Any]:
    """Return data as JSON would store and load it."""
    loaded: dict[str, Any] = json.loads(json.dumps(data))
    return loaded


def names_in(given: Any) -> list[str] | None:
    """Return `given` if it is a list of texts; otherwise None."""
    if isinstance(given, list | tuple) and all(isinstance(name, str) for name in given):
        return list(given)
    return None
