"""Read YAML with line numbers, so that errors in a policy can name the line, and define the entries
of a policy file, which are checked before names are looked up.

Aegis reads scalars as in YAML 1.2 (https://yaml.org/spec/1.2.2/#103-core-schema), but without its
octal and hexadecimal numbers. So `yes`, `no`, `on` and `off` are texts. 2024-01-31, 12:30 and
01234, which YAML 1.1 would convert, are texts, too. A key is always the text as written, so a
column may be called 2024, on or null.

A file may come from an untrusted source, so its length, depth and number of nodes are limited. The
content of an alias counts once for each use, although it is in memory only once. Otherwise, a few
aliases of aliases could represent billions of nodes.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import date
from typing import Annotated, Any, Literal

import yaml
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from aegis.errors import PolicyError
from aegis.measures import MEASURES, metric_name
from aegis.policy.labels import Serve
from aegis.policy.model import AttributeKind, Role, SuppressedColumns, Unseen, ValueType

MOST_CHARACTERS = 16 << 20
"""Largest number of characters in a file."""
MOST_DEPTH = 64
"""Largest depth of nested mappings and lists."""
MOST_PARTS = 500_000
"""Largest number of keys and values in a file, with aliases written out."""
MOST_DIGITS = 100
"""Largest number of characters of a whole number; no column has longer numbers."""

_FLOAT = re.compile(
    r"^[-+]?(?:(?:[0-9]+\.[0-9]*|\.[0-9]+)(?:[eE][-+]?[0-9]+)?|[0-9]+[eE][-+]?[0-9]+"
    r"|\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN))$"
)
_INT = re.compile(r"^[-+]?(?:0|[1-9][0-9]*)$")
_BOOL = re.compile(r"^(?:true|True|TRUE|false|False|FALSE)$")
_NULL = re.compile(r"^(?:~|null|Null|NULL|)$")


class _YamlLoader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]
    """A loader that parses with libyaml if it is installed, and resolves scalars as in YAML 1.2."""

    yaml_implicit_resolvers: dict[str, Any] = {}  # noqa: RUF012 - the base class's attribute


_TAG = "tag:yaml.org,2002:"
_MERGE = _TAG + "merge"
_YamlLoader.add_implicit_resolver(_TAG + "bool", _BOOL, list("tTfF"))
_YamlLoader.add_implicit_resolver(_TAG + "null", _NULL, ["~", "n", "N", ""])
_YamlLoader.add_implicit_resolver(_TAG + "int", _INT, list("-+0123456789"))
_YamlLoader.add_implicit_resolver(_TAG + "float", _FLOAT, list("-+.0123456789"))
_YamlLoader.add_implicit_resolver(_MERGE, re.compile(r"^<<$"), ["<"])


def _float(text: str) -> float:
    return float(text.replace(".inf", "inf").replace(".nan", "nan"))


_SCALARS: dict[str, tuple[re.Pattern[str], Callable[[str], Any]]] = {
    "bool": (_BOOL, lambda text: text == "true"),
    "null": (_NULL, lambda text: None),  # noqa: ARG005 - whatever represents it
    "int": (_INT, int),
    "float": (re.compile(f"{_FLOAT.pattern}|{_INT.pattern}"), _float),
}
"""For each tag, the pattern of its scalars and the function that converts them."""


class _Dumper(yaml.SafeDumper):
    """A dumper that quotes every text that YAML 1.1 or 1.2 would read as another type."""


_Dumper.add_implicit_resolver(_TAG + "float", _FLOAT, list("-+.0123456789"))


@dataclass(slots=True)
class EntryLines:
    """The line of an entry in a YAML document, from 1, and those of the keys or entries below it."""

    line: int
    parts: dict[str | int, EntryLines] = field(default_factory=dict)


@dataclass(frozen=True)
class Located:
    """The content of a YAML document as plain Python objects, with the line of each entry. Messages
    name its `origin`.
    """

    data: Any
    lines: EntryLines
    origin: str

    def where(self, *path: str | int) -> str:
        """Return "file, line n" for `path`, or for the nearest entry above with a known line."""
        entry_lines = self.lines
        for key in path:
            if key not in entry_lines.parts:
                break
            entry_lines = entry_lines.parts[key]
        return f"{self.origin}, line {entry_lines.line}"


def read_yaml(text: str, origin: str, *, remedy: str = "Write a value.") -> Located:
    """Parse `text`, which comes from the file `origin`, as YAML. `remedy` is the hint for an empty
    file. Raise `PolicyError`, which names the line, if the syntax is not valid, a key is repeated,
    there is a tag or an alias that contains itself, or a limit is exceeded.
    """
    if len(text) > MOST_CHARACTERS:
        raise PolicyError(
            f"{origin} has {len(text):,} characters; at most {MOST_CHARACTERS:,} are read.",
            hint="Put long lists of values into a hierarchy file (CSV).",
        )
    try:
        return _Reader(text, origin).read(remedy)
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else 1
        raise _invalid(origin, line, str(error.problem)) from error
    except yaml.YAMLError as error:
        raise PolicyError(
            f"{origin}: not valid YAML ({error}).", hint="Save it as UTF-8 text."
        ) from error


def _invalid(origin: str, line: int, problem: str, hint: str = "") -> PolicyError:
    return PolicyError(
        f"{origin}, line {line}: not valid YAML ({problem}).",
        hint=hint or "Check indentation, colons and quotes near that line.",
    )


@dataclass(slots=True)
class _ReadValue:
    """A value that has been read completely. `size` is its number of keys and values, with aliases
    written out. `merges` says whether it is the plain scalar `<<`, which merges another mapping if
    it is a key.
    """

    value: Any
    lines: EntryLines
    size: int = 1
    merges: bool = False


@dataclass
class _Open:
    """A mapping or list that has not been read to its end: the part read so far, the `anchor` that
    aliases use for it, the key whose value comes next, and the mappings that are merged into it
    (`<<`); its own entries take precedence.
    """

    part: _ReadValue
    anchor: str | None
    key: _ReadValue | None = None
    merged: list[Mapping[str, Any]] = field(default_factory=list)


class _Reader:
    """Reads one document event by event, without recursion, and checks the limits from the start."""

    def __init__(self, text: str, origin: str) -> None:
        self.text = text
        self.origin = origin
        self.open: list[_Open] = []
        self.anchors: dict[str, _ReadValue | None] = {}
        self.root: _ReadValue | None = None
        self.size = 0

    def read(self, remedy: str) -> Located:
        self.loader = _YamlLoader(self.text)
        try:
            while not self.loader.check_event(yaml.StreamEndEvent):
                self._take(self.loader.get_event())
        finally:
            self.loader.dispose()
        if self.root is None:
            raise PolicyError(f"{self.origin} is empty.", hint=remedy)
        return Located(self.root.value, self.root.lines, self.origin)

    def _take(self, event: Any) -> None:
        line = event.start_mark.line + 1
        if isinstance(event, yaml.ScalarEvent):
            self._add(self._scalar(event, line), line, event.anchor)
        elif isinstance(event, yaml.AliasEvent):
            self._add(self._alias(str(event.anchor), line), line)
        elif isinstance(event, yaml.MappingStartEvent | yaml.SequenceStartEvent):
            self._start(event, line)
        elif isinstance(event, yaml.MappingEndEvent | yaml.SequenceEndEvent):
            self._end()
        elif isinstance(event, yaml.DocumentStartEvent) and self.root is not None:
            raise _invalid(self.origin, line, "but found another document", "Write one document.")

    def _start(self, event: Any, line: int) -> None:
        mapping = isinstance(event, yaml.MappingStartEvent)
        if event.tag not in (None, "!", _TAG + ("map" if mapping else "seq")):
            raise self._tag(event.tag, line)
        if len(self.open) >= MOST_DEPTH:
            raise PolicyError(
                f"{self.origin}, line {line}: more than {MOST_DEPTH} mappings and lists within one "
                "another.",
                hint="Write it with fewer levels: no part of a policy needs so many.",
            )
        if event.anchor is not None:
            self.anchors[event.anchor] = None
        self._count(1, line)
        self.open.append(_Open(_ReadValue({} if mapping else [], EntryLines(line)), event.anchor))

    def _end(self) -> None:
        ended = self.open.pop()
        part = ended.part
        if ended.merged:
            # The first of several mappings goes before the others, and what is written before all.
            merged: dict[str, Any] = {}
            for other in reversed(ended.merged):
                merged |= other
            part.value = merged | part.value
        if ended.anchor is not None:
            self.anchors[ended.anchor] = part
        self._attach(part)

    def _add(self, part: _ReadValue, line: int, anchor: str | None = None) -> None:
        self._count(part.size, line)
        if anchor is not None:
            self.anchors[anchor] = part
        self._attach(part)

    def _count(self, size: int, line: int) -> None:
        self.size += size
        if self.size > MOST_PARTS:
            raise PolicyError(
                f"{self.origin}, line {line}: more than {MOST_PARTS:,} keys and values "
                "(each alias counts as the text that it repeats).",
                hint="Put long lists of values into a hierarchy file (CSV), and use fewer aliases.",
            )

    def _attach(self, part: _ReadValue) -> None:
        """Add a finished value to the mapping or list that contains it."""
        if not self.open:
            self.root = part
            return
        owner = self.open[-1]
        owner.part.size += part.size
        if isinstance(owner.part.value, list):
            owner.part.lines.parts[len(owner.part.value)] = part.lines
            owner.part.value.append(part.value)
        elif owner.key is None:
            owner.key = self._key(owner, part)
        else:
            self._entry(owner, owner.key, part)
            owner.key = None

    def _key(self, owner: _Open, part: _ReadValue) -> _ReadValue:
        line = part.lines.line
        if not isinstance(part.value, str):
            raise _invalid(self.origin, line, "a key is not a plain text")
        if part.value in owner.part.value:
            raise PolicyError(
                f"{self.origin}, line {line}: {part.value!r} is given twice.",
                hint="Keep one of them.",
            )
        return part

    def _entry(self, owner: _Open, key: _ReadValue, part: _ReadValue) -> None:
        # An entry's line is that of its key, also where its value is an alias.
        owner.part.lines.parts[key.value] = EntryLines(key.lines.line, part.lines.parts)
        if not key.merges:
            owner.part.value[key.value] = part.value
            return
        merged = part.value if isinstance(part.value, list) else [part.value]
        if not all(isinstance(other, dict) for other in merged):
            raise _invalid(self.origin, key.lines.line, "'<<' merges mappings only")
        owner.merged.extend(merged)

    def _alias(self, anchor: str, line: int) -> _ReadValue:
        if anchor not in self.anchors:
            raise _invalid(self.origin, line, f"found undefined alias {anchor!r}")
        part = self.anchors[anchor]
        if part is None:
            raise _invalid(
                self.origin,
                line,
                f"the alias represents itself: {anchor!r}",
                "Write out what the alias represents.",
            )
        return _ReadValue(part.value, EntryLines(line, part.lines.parts), part.size)

    def _scalar(self, event: yaml.ScalarEvent, line: int) -> _ReadValue:
        lines = EntryLines(line)
        if self.open and isinstance(self.open[-1].part.value, dict) and self.open[-1].key is None:
            return _ReadValue(event.value, lines, merges=self._resolved(event) == _MERGE)
        tag = event.tag if event.tag not in (None, "!") else self._resolved(event)
        name = tag.removeprefix(_TAG)
        if name in ("str", "merge"):
            return _ReadValue(event.value, lines)
        if name not in _SCALARS:
            raise self._tag(tag, line)
        form, value = _SCALARS[name]
        if not form.match(event.value):
            raise _invalid(self.origin, line, f"{event.value!r} is no {name}")
        if name == "int" and len(event.value) > MOST_DIGITS:
            raise PolicyError(
                f"{self.origin}, line {line}: a number of {len(event.value):,} digits; at most "
                f"{MOST_DIGITS} are read.",
                hint="Write a code that is so long in quotes.",
            )
        return _ReadValue(value(event.value.lower()), lines)

    def _resolved(self, event: yaml.ScalarEvent) -> str:
        """Return the YAML tag (type) of a scalar, by its form; a quoted scalar is always a text."""
        if event.tag == "!":
            return _TAG + "str"
        return str(self.loader.resolve(yaml.ScalarNode, event.value, event.implicit))

    def _tag(self, tag: str, line: int) -> PolicyError:
        return _invalid(self.origin, line, f"the tag {tag!r}", "Leave tags out.")


def write_yaml(data: Mapping[str, Any]) -> str:
    """Return plain data as YAML that versions 1.1 and 1.2 read alike; refuse other types."""
    try:
        return str(yaml.dump(data, Dumper=_Dumper, sort_keys=False, allow_unicode=True))
    except yaml.representer.RepresenterError as error:
        raise PolicyError(
            f"A policy cannot hold {error.args[1]!r}, of type {type(error.args[1]).__qualname__!r}.",
            hint="Use texts, numbers, booleans, lists and mappings.",
        ) from error


MaskSpec = str | dict[str, Any]
ByValue = Field(strict=False)
"""A member of an enumeration, which a policy names by its value."""


def _column(value: Any) -> Any:
    """Return an integer as text, because a column may be called 2024; other values stay unchanged."""
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else value


def _label(value: Any) -> Any:
    """Return `{column: NAME}` for a bare name of a column; other values stay unchanged."""
    return {"column": value} if isinstance(value, str | int) else value


def _day(value: Any) -> Any:
    """Convert a date that YAML has parsed to text; other values stay unchanged."""
    return value.isoformat() if isinstance(value, date) else value


class PolicyMapping(BaseModel):
    """A part of a policy file that does not accept unknown keys."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class LabelEntry(PolicyMapping):
    """The entry `label`: `income`, or `{column: price, kind: number}`, with bins, classes or cuts."""

    column: Annotated[str, BeforeValidator(_column), Field(min_length=1)]
    """Name of the label column."""
    kind: Literal["classes", "number"] | None = None
    """With `number`, Aegis predicts a number, such as a price, and the measure is R2. By default,
    each value is a class."""
    bins: int | None = Field(default=None, ge=2, le=100)
    """Number of quantile bins of a numeric label."""
    classes: list[str | int | float | bool] | None = Field(default=None, min_length=1)
    """All classes that the label can have. Declare them if they are public knowledge. `aegis protect` then spends no privacy budget on them."""
    cuts: list[int | float] | None = Field(default=None, min_length=1)
    """Cut points of a numeric label in ascending order, if they are public knowledge. They
    replace the quantiles of the table."""
    bounds: list[int | float] | None = Field(default=None, min_length=2, max_length=2)
    """Smallest and largest number of a numeric label, if they are public knowledge. `aegis protect`
    needs them. It counts a number outside of the bounds as the nearer bound."""


class TaskEntry(LabelEntry):
    """One entry of `labels`: `income`, or `{column: hours, kind: number, weight: 2}`."""

    weight: float = Field(default=1.0, allow_inf_nan=False)
    """How much the label counts in the mean of the shares kept; above zero."""
    measure: str | None = None
    """The measure of this label. By default, it is the policy's measure if this suits the kind of
    label, and otherwise the default measure of the kind.
    """


class AttributeEntry(PolicyMapping):
    """One entry in the mapping `attributes` of a policy file."""

    role: Annotated[Role, ByValue]
    """Role of the attribute in privacy."""
    masks: list[MaskSpec] | None = Field(default=None, min_length=1)
    """Candidate masks. By default, they are all levels of the hierarchy. If there is no hierarchy,
    they are the default masks of the role.
    """
    hierarchy: str | dict[Any, Any] | None = None
    """A CSV file in ARX format, relative to the policy, or an inline tree."""
    weight: float = Field(default=1.0, ge=1e-9, le=1e9, allow_inf_nan=False)
    """Weight of the attribute in measures of single attributes and under `labels: any`, from 1e-9
    to 1e9. (The key `weight` at top level is for weights of rows.)
    """
    kind: Annotated[AttributeKind, ByValue] | None = None
    """How record-level methods compare values of a quasi-identifier. By default, it follows from
    the column's type."""
    order: list[str | int | float] | None = Field(default=None, min_length=2)
    """All values (texts or numbers, without null) of an ordinal quasi-identifier in ascending order."""
    type: Annotated[ValueType, ByValue] | None = None
    """Type of the values. Declare it if it is public knowledge. `aegis protect` then spends no privacy budget on it."""
    values: list[str | int | float | bool] | None = Field(default=None, min_length=1)
    """All values that the attribute can have, without null. Declare them if they are public knowledge. `aegis protect` then spends no privacy budget on them."""


class ReadingShape(PolicyMapping):
    """The entry that states the format of text files and workbooks."""

    encoding: str | None = None
    """Name of the encoding: `utf-8`, `cp1252`, `latin-1`, `utf-16`, ..."""
    delimiter: str | None = None
    """The character between fields, or `tab`."""
    quote: str | None = None
    """Character around fields (default `"`), or `none` if fields have no quotation
    marks."""
    escape: str | None = None
    """Character before a quotation mark inside a quoted field. The default is a second
    quotation mark."""
    header: bool | None = None
    """Whether the first line names the columns. If not, they are named `c1`, `c2`,
    ..."""
    decimal: Literal[".", ","] | None = None
    """The decimal mark."""
    thousands: str | None = None
    """The thousands separator."""
    units: list[str] = Field(default_factory=list)
    """Units that Aegis removes from numbers: `$`, `%`, `kg`, ..."""
    null: list[str] = Field(default_factory=list)
    """Texts that mean null (without quotation marks), in addition to the empty text."""
    dates: Literal["day-first", "month-first"] | None = None
    """Order of dates such as 03/04/2024."""
    text: list[str] = Field(default_factory=list)
    """Columns to read as text."""
    numbers: list[str] = Field(default_factory=list)
    """Columns to read as numbers, even if different spellings such as 1 and 1.0 become the same
    value."""
    sheet: str | None = None
    """The sheet to read from a workbook."""


class ReleaseShape(PolicyMapping):
    """The entry `release`, with optional facts for readers of the report."""

    data: str | None = None
    """Name of the data set."""
    purpose: str | None = None
    """Purpose of the release."""
    recipient: str | None = None
    """Recipient of the release."""
    legal_basis: str | None = None
    """Legal basis of the release."""
    author: str | None = None
    """Person who is responsible for the release."""
    date: Annotated[str | None, BeforeValidator(_day)] = None
    """Date of the decision to release."""


class PolicyShape(PolicyMapping):
    """The content of a policy file."""

    version: Literal[1]
    """Version of the format."""
    label: Annotated[LabelEntry | None, BeforeValidator(_label)] = None
    """The label: the column to predict. If there is no label, Aegis predicts each column from the
    others, as with `labels: any`.
    """
    labels: list[Annotated[TaskEntry, BeforeValidator(_label)]] | Literal["any"] | None = None
    """Several labels, instead of `label`. Give a list of columns, each as in `label`, with `weight`
    and `measure`. Aegis then combines the shares of utility that a configuration keeps for each
    label. Or give `any`: Aegis then predicts each column from all others, and weighs the columns
    by the `weight` of the attributes."""
    serve: Annotated[Serve, ByValue] | None = None
    """How to combine the shares of utility kept for several labels: by their weighted `mean` (the
    default), or by the `worst` of them."""
    labels_known: bool | None = None
    """Whether a model that predicts one of several labels may use the other labels. By default it
    may not."""
    reading: ReadingShape | None = None
    """How to read the table's text files. Options on the command line take
    precedence."""
    measure: str | None = None
    """The measure for rankings, searches and releases. The default is `held-out-auc`, or
    `held-out-pillai` (with a note) if Aegis cannot predict an AUC. For a numeric label, the default
    is `held-out-r2`. If there is no label, it is `held-out-any`.
    """
    merit: Literal["auc", "accuracy", "log-loss", "r2"] | None = None
    """A predicted metric of models, instead of a measure. The metric selects the measure
    `held-out-auc`, `held-out-accuracy`, `held-out-log-loss` or, for a numeric label, `held-out-r2`.
    """
    models: list[Literal["lr", "nb", "gbdt", "pairs"]] | None = None
    """The models for which the metric of `merit` is predicted: logistic regression, naive Bayes,
    boosted trees, or boosted trees with the strongest interaction of two attributes (AUC and R2
    only). Several models count equally. The default is the better of linear models and trees.
    """
    privacy: dict[str, Any] = Field(default_factory=dict)
    """The privacy rule."""
    person: Annotated[str, BeforeValidator(_column)] | None = None
    """Column that identifies the person, if a person can have several rows. The rule, its suppression
    limit and the risks then count persons. Aegis releases the column only as a token."""
    weight: Annotated[str, BeforeValidator(_column)] | None = None
    """Column of survey weights: how many people of the population a row represents. Scores, models
    and estimates of risk use the weights. Classes still count rows or persons. If a rule such as
    k-map needs a population and the policy names none, the number of people in a class is the sum
    of its weights. Aegis releases the column only under a mask.
    """
    population: str | None = None
    """Table of the population from which this table is a sample, with the same column names and
    values. Give the path relative to the policy.
    """
    unseen: Annotated[Unseen, ByValue] = Unseen.ERROR
    """How `apply` treats a value that a mask does not know."""
    suppressed_columns: Annotated[SuppressedColumns, ByValue] = SuppressedColumns.FILL
    """How a release shows a column whose mask is `suppress`. `fill` writes `*` in every row, and
    `leave-out` drops the column. Aegis always keeps a column that the rule protects."""
    attributes: dict[str, AttributeEntry]
    """Role and candidate masks of each column."""
    configurations: dict[str, dict[str, MaskSpec]] = Field(default_factory=dict)
    """Explicit configurations, by name."""
    anonymizers: list[str | dict[str, dict[str, Any]]] = Field(default_factory=list)
    """Record-level methods to rank together with the configurations: a name, or `{NAME: {OPTION: VALUE}}`."""
    release: ReleaseShape = Field(default_factory=ReleaseShape)
    """Facts for the report on the release: purpose, recipient, author and so on."""

    def asked_measure(self) -> str | None:
        """Return the requested measure, by name or metric; refuse both, or an unknown one."""
        models = None if self.models is None else ",".join(self.models)
        expected = metric_name(self.merit, models)
        if expected is not None and self.measure is not None:
            raise PolicyError(
                "`measure` is given together with `merit` or `models`.", hint="Give one of them."
            )
        return expected if self.measure is None else MEASURES.get(self.measure).name
