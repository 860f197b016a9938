"""Compare a certificate with a released file field by field. Fields that the file does not
determine are compared with their possible values, and the utility of several labels with a new
measurement.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, TypeGuard

from aegis.advisor import Scorer, as_it_is, measure_for, tells_classes_apart, utility_kept
from aegis.advisor.scores import rows_each
from aegis.advisor.utility import Reference, Rows, UtilityFigure
from aegis.measures import MEASURES, Measure
from aegis.measures.several import combined
from aegis.policy import LabelTask, Policy
from aegis.release.auditing import Audit
from aegis.release.field_words import field_in_words
from aegis.release.released import with_hidden
from aegis.sources import DIGESTED, Source
from aegis.summary import summarize
from aegis.words import alike as alike_texts
from aegis.words import counted, json_fields, portion

NOTHING = "nothing"
_LARGEST = 1e15


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

    @property
    def in_words(self) -> str:
        """The difference, with the field in words instead of its path."""
        return f"{field_in_words(self.what)}: {self._difference}"

    @property
    def _difference(self) -> str:
        follows = "; possible:" if self.possible else ", the file shows"
        certified, measured = self._texts()
        return f"the certificate says {certified}{follows} {measured}"

    def _texts(self) -> tuple[str, ...]:
        """Return both values as texts: numbers with as many digits as elsewhere, or with all digits
        if fewer would hide the difference.
        """
        values = (self.certified, self.measured)
        if all(map(_is_shown_short, values)):
            if self.what.startswith("privacy.risk."):
                texts = tuple(map(portion, values))
            elif all(isinstance(value, int) for value in values):
                texts = tuple(f"{value:,}" for value in values)
            else:
                texts = alike_texts(*values)
            if texts[0] != texts[1]:
                return texts
        return tuple(map(brief, values))

    def __str__(self) -> str:
        return f"{self.what}: {self._difference}"

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as JSON values."""
        return json_fields(self, "what", "certified", "measured")


def _is_shown_short(value: Any) -> bool:
    """Return whether a value is a number that people read; a certificate may contain any other."""
    number = isinstance(value, int | float) and not isinstance(value, bool)
    return number and abs(value) < _LARGEST


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
    """Return whether two values are equal; numbers, in nine significant digits."""
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


def asked_elsewhere(catalog: Any) -> str:
    """Say who knows whether a release was revoked: the catalog that a certificate names, if any."""
    named = catalog if isinstance(catalog, Mapping) else {}
    url, request = (str(named.get(key, "unknown")) for key in ("url", "request"))
    return f"only the catalog at {url} knows; ask it: aegis catalog verify {request[:8]}"


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


def names_in(value: Any) -> list[str] | None:
    """Return `value` if it is a list of texts; otherwise None."""
    if isinstance(value, list | tuple) and all(isinstance(name, str) for name in value):
        return list(value)
    return None


Path = tuple[str, ...]
_MOST_DIGITS = 300
_SLACK = 1e-9
"""Tolerated rounding of a figure at the end of its range."""


@dataclass(frozen=True)
class Possible:
    """The possible values of a field: a function that tests a value, and a description in words.

    Attributes
    ----------
    words
        Description of the values in error messages.
    holds
        Function that returns whether a value is possible.
    """

    words: str
    holds: Callable[[Any], bool]


def impossible(document: Mapping[str, Any], released: int) -> Iterator[Mismatch]:
    """Yield each field of a certificate whose value is impossible for a file of `released` rows."""
    rows = document["input"].get("rows")
    if is_count(rows) and rows < released:
        what = f"at least {released:,}, the rows of the file"
        yield Mismatch("input.rows", rows, what, possible=True)
        rows = released
    fields = _fields(document, rows if is_count(rows) else released)
    for path, value in _leaves(document):
        allowed = next((p for pattern, p in fields if _fits(path, pattern)), None)
        if allowed is not None and not allowed.holds(value):
            yield Mismatch(".".join(path), value, allowed.words, possible=True)
    yield from _persons(document)


def is_count(value: Any) -> TypeGuard[int]:
    """Return whether a value can be a number of rows of a table."""
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def whole_number(digits: str) -> float:
    """Return an integer of a JSON document; infinity if it is too large for a float."""
    return int(digits) if len(digits) < _MOST_DIGITS else float(digits)


def is_number(value: Any) -> TypeGuard[float]:
    """Return whether a value is a finite number."""
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _between(low: float, high: float, kind: str = "number") -> Possible:
    """Return the numbers from `low` to `high`, which may be infinite, as possible values."""
    ends = f"from {low:g} to {high:g}" if math.isfinite(high) else f"of {low:g} or more"
    if not math.isfinite(low):
        ends = f"of {high:g} or less" if math.isfinite(high) else ""
    slack = _SLACK * max(1.0, abs(high) if math.isfinite(high) else 1.0)
    return Possible(
        f"a {kind} {ends}".strip(),
        lambda value: is_number(value) and low - slack <= value <= high + slack,
    )


def _counts(low: int, high: int, of: str = "") -> Possible:
    return Possible(
        f"a number {of}from {low} to {high}", lambda value: is_count(value) and low <= value <= high
    )


def _or_null(allowed: Possible) -> Possible:
    return Possible(f"{allowed.words}, or null", lambda g: g is None or allowed.holds(g))


def _is_time(value: Any) -> bool:
    try:
        return isinstance(value, str) and datetime.fromisoformat(value) is not None
    except ValueError:
        return False


def _matching(form: str, pattern: str) -> Possible:
    """Return the texts that match a pattern as possible values; `form` describes them."""
    return Possible(form, lambda v: isinstance(v, str) and re.fullmatch(pattern, v) is not None)


_DIGEST = _or_null(_matching("64 digits from 0 to f", "[0-9a-f]{64}"))
_LEAST_ZERO = _or_null(_between(0, math.inf))
_SHARE = _or_null(_between(0, 1, "share"))


def _fields(document: Mapping[str, Any], rows: int) -> list[tuple[Path, Possible]]:
    """Return which values each field can have if the file has so many rows. A field is a path of
    names, in which `*` stands for any name.
    """
    utility = document.get("utility")
    name = utility.get("measure") if isinstance(utility, Mapping) else None
    number_of_rows, any_number = _counts(0, rows), _or_null(_between(-math.inf, math.inf))
    counts_persons = document["privacy"].get("person") is not None
    privacy = {
        number_of_rows: (
            "k",
            "classes",
            "uniques",
            "at_risk.*",
            "homogeneous_rows.*",
            "alpha_k.*.k",
            "l_diversity.*.distinct",
            "class_size_histogram.*.classes",
            "class_size_histogram.*.rows",
        ),
        _or_null(number_of_rows): ("homogeneous_rows_any",),
        _SHARE: ("risk.*.*", "alpha_k.*.alpha", "t_closeness.*.*"),
        _LEAST_ZERO: (
            "mean_class_size",
            "l_diversity.*.entropy",
            "l_diversity.*.recursive_c.*",
            "beta_likeness.*.*",
            "delta_disclosure.*.*",
        ),
    }
    listed = {
        "created": Possible("a time in ISO 8601", _is_time),
        "catalog.url": _matching("the URL of a service", "https?://[!-~]{1,500}"),
        "catalog.request": _matching("32 digits from 0 to f", "[0-9a-f]{32}"),
        "input.sha256": _DIGEST,
        "input.hmac_sha256": _DIGEST,
        "*.sha256_of": Possible(" or ".join(DIGESTED), DIGESTED.__contains__),
        "after.*.certificate": _DIGEST,
        "unseen_rows.*": number_of_rows,
        "utility.kept": _or_null(_between(0, 100, "percent")),
        "utility.stderr": _LEAST_ZERO,
        "utility.rmse": _LEAST_ZERO,
        "utility.reference_rmse": _LEAST_ZERO,
        "utility.one_row": _or_null(_between(0, 1, "a share")),
        "utility.reference": _range_of(name),
        "utility.lost_classes": _counts(1, rows, "of classes "),
        "utility.lost_classes.*": _counts(1, rows, "of rows "),
        "groups.count": number_of_rows,
        "groups.smallest": number_of_rows,
        "groups.left_out_rows": number_of_rows,
        "groups.seconds": _LEAST_ZERO,
        "information_loss.*": any_number,
    }
    if counts_persons:  # the file shows all figures in rows
        listed |= {"persons": number_of_rows, "suppressed_persons": number_of_rows}
        listed |= {
            f"privacy.{name}": allowed for allowed, names in privacy.items() for name in names
        }
    return [(tuple(pattern.split(".")), allowed) for pattern, allowed in listed.items()]


def _range_of(measure: Any) -> Possible:
    """Return the possible scores of a measure, as far as its record states them; else any number."""
    known_measure = isinstance(measure, str) and measure in MEASURES
    low, _, high = (MEASURES.get(measure).range if known_measure else "").partition(" .. ")
    at_least = low if high else low.removesuffix(" or more")
    return _between(_number(at_least, -math.inf), _number(high, math.inf))


def _number(text: str, otherwise: float) -> float:
    try:
        return float(text)
    except ValueError:
        return otherwise


def _leaves(document: Any, path: Path = ()) -> Iterator[tuple[Path, Any]]:
    """Yield each scalar of a document, with the path of names and indices to it."""
    items: Any = ()
    if isinstance(document, Mapping):
        items = document.items()
    elif isinstance(document, list | tuple):
        items = enumerate(document)
    else:
        yield path, document
    for key, value in items:
        yield from _leaves(value, (*path, str(key)))


def _fits(path: Path, pattern: Path) -> bool:
    return len(path) == len(pattern) and all(
        part in ("*", name) for name, part in zip(path, pattern, strict=True)
    )


def impossible_losses(document: Mapping[str, Any], classes: Sequence[str]) -> Iterator[Mismatch]:
    """Yield the field of lost label classes if it contradicts the file or the suppressed rows.

    A class that the file contains is not lost. A lost class cannot have more rows than were
    suppressed. `classes` are the label classes in the file.
    """
    utility = document.get("utility")
    lost = utility.get("lost_classes") if isinstance(utility, Mapping) else None
    suppressed = document.get("suppressed_rows")
    if is_count(lost) and is_count(suppressed) and lost > suppressed:
        what = f"at most {suppressed:,}, the suppressed rows"
        yield Mismatch("utility.lost_classes", lost, what, possible=True)
    if not isinstance(lost, Mapping) or not all(map(is_count, lost.values())):
        return
    if set(lost) & set(classes):
        what = "classes that the file does not show"
    elif is_count(suppressed) and sum(lost.values()) > suppressed:
        what = f"at most {suppressed:,} rows in all"
    else:
        return
    yield Mismatch("utility.lost_classes", dict(lost), what, possible=True)


def _persons(document: Mapping[str, Any]) -> Iterator[Mismatch]:
    """Yield each field on numbers of persons that contradicts another field or the rule."""
    persons, suppressed = document.get("persons"), document.get("suppressed_persons")
    if is_count(persons) and is_count(suppressed) and suppressed > persons:
        yield Mismatch("suppressed_persons", suppressed, f"at most {persons:,}", possible=True)
    privacy, rule = document["privacy"], document["policy"].get("privacy")
    k, released = privacy.get("k"), privacy.get("persons")
    required_k = rule.get("k") if isinstance(rule, Mapping) else None
    if privacy.get("person") is None or not is_count(k):
        return
    if is_count(released) and k > released:
        what = f"at most {released:,}, the persons of the release"
        yield Mismatch("privacy.k", k, what, possible=True)
    elif is_count(required_k) and k < required_k:
        what = f"at least {required_k:,}, which the rule requires"
        yield Mismatch("privacy.k", k, what, possible=True)


def lost_like(certified: Any, lost: Mapping[str, int]) -> Mapping[str, int] | int:
    """Return lost label classes as the certificate states them: by number or, earlier, by name."""
    return lost if isinstance(certified, Mapping) else len(lost) or {}


OF_INPUT = ("reference", "stderr", "lost_classes", "reference_rmse")
"""Fields of a label's utility that can be computed only from the table before masking."""


def labels_differ(
    certified: Any, released: Source, policy: Policy, *, all_rows: bool
) -> Iterator[Mismatch]:
    """Yield each utility figure of the labels in a certificate, together with the same figure
    measured on the released file.

    Each item has the path of the field, the certified value and the measured value. Equal values
    are included, because the caller compares them.

    Parameters
    ----------
    certified
        The entry `utility` of the certificate.
    all_rows
        Whether no row was suppressed. Then the input and the released file have the same label
        classes.
    """
    several = policy.label.several
    assert several is not None
    labels = certified.get("labels") if isinstance(certified, Mapping) else None
    if not isinstance(labels, Mapping) or set(labels) != set(several.columns):
        yield Mismatch("utility.labels", labels, list(several.columns))
        return
    source, shares = with_hidden(released, policy), []
    for task in policy.tasks:
        what = f"utility.labels.{task.label.column}"
        label = labels[task.label.column]
        percent = label.get("kept", "") if isinstance(label, Mapping) else ""
        if not (percent is None or is_number(percent)):
            yield Mismatch(what, label, "what is kept of the label")
            return
        shares.append(None if percent is None else percent / 100)
        for key, entry, measured in _label(label, source, policy, task, all_rows=all_rows):
            yield Mismatch(f"{what}.{key}", entry, measured)
    value = combined(several.serve, shares, [task.weight for task in policy.tasks])
    there = any(share is not None for share in shares)
    for key, measured in {
        "measure": several.measure,
        "value": value,
        "reference": float(there),
        "kept": 100 * value if there else None,
        "reference_name": str(Reference.UNMASKED),
        "rows": str(Rows.RELEASED),
        "lost_classes": lost_like(certified.get("lost_classes"), {}),
        "stderr": None,
    }.items():
        yield Mismatch(f"utility.{key}", certified.get(key), measured)


def _label(
    certified: Mapping[str, Any], source: Source, policy: Policy, task: LabelTask, *, all_rows: bool
) -> Iterator[tuple[str, Any, Any]]:
    """Yield name, stated value and measured value of each figure of one label."""
    policy_of_label, rows = policy.of_task(task), None
    each = rows_each(source.rows, len(policy.tasks))
    yield "reference_name", certified.get("reference_name"), str(Reference.UNMASKED)
    yield "rows", certified.get("rows"), str(Rows.RELEASED)
    if all_rows:
        lost = certified.get("lost_classes")
        yield "lost_classes", lost, lost_like(lost, {})
    chosen = task.measure_by(str(certified.get("measure")))
    if tells_classes_apart(source, policy_of_label):
        scorer = Scorer(summarize(source, as_it_is(policy_of_label)))
        chosen, _ = measure_for(scorer.summary, chosen.name)
        value, rows = scorer.value(scorer.unmasked, chosen), scorer.label_rows
        yield "value", certified.get("value"), value
        figure = UtilityFigure(chosen.name, value, value)
        number = scorer.summary.number
        errors = figure.with_errors(number, number).to_dict()
        for key in ("rmse", "one_row"):
            yield key, certified.get(key), errors.get(key)
    else:
        value = chosen.worst()
        if chosen.constant is None:
            yield "value", certified.get("value"), value
    yield "measure", certified.get("measure"), task.measure or chosen.name
    reference = certified.get("reference")
    if not is_number(reference):
        yield "reference", reference, "a number"
    elif chosen.constant is None or (all_rows and rows is not None):
        percent = certified.get("kept")
        yield "kept", percent, share_like(percent, value, float(reference), chosen, rows, each)


def share_like(
    certified: Any,
    value: float,
    reference: float,
    measure: Measure,
    label_rows: Sequence[float] | None,
    rows: float,
) -> float | None:
    """Return the percentage of utility kept. Earlier certificates compare with the exact score of a
    constant prediction; if `certified` is their percentage, that is returned.
    """
    shares = [utility_kept(value, reference, measure, label_rows, each) for each in (rows, None)]
    return next((share for share in shares if alike(certified, share)), shares[0])
