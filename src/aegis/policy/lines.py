"""Read YAML with line numbers, so that errors in a policy can name the line.

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
from typing import Any

import yaml

from aegis.errors import PolicyError

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
class Place:
    """The line number of an entry in a YAML document, and the line numbers of the entries below it.

    Attributes
    ----------
    line
        The line, counted from 1.
    parts
        The positions of the node's keys or entries.
    """

    line: int
    parts: dict[str | int, Place] = field(default_factory=dict)


@dataclass(frozen=True)
class Located:
    """The content of a YAML document, with the line number of each entry.

    Attributes
    ----------
    data
        The document as plain Python objects.
    place
        The position of the document and of its parts.
    origin
        The file's name, for messages.
    """

    data: Any
    place: Place
    origin: str

    def where(self, *path: str | int) -> str:
        """Return "file, line n" for the entry at `path`. If its line is unknown, use the nearest
        entry above it whose line is known.
        """
        place = self.place
        for key in path:
            if key not in place.parts:
                break
            place = place.parts[key]
        return f"{self.origin}, line {place.line}"


def read_yaml(text: str, origin: str, *, remedy: str = "Write a value.") -> Located:
    """Parse `text`, which comes from the file `origin`, as YAML.

    `remedy` is the hint of the error message for an empty file.

    Raises
    ------
    PolicyError
        The syntax is not valid, a key is repeated, there is a tag or an alias that contains itself,
        or a limit is exceeded. The message names the line.
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
    """A value that has been read completely.

    Attributes
    ----------
    value
        The value.
    place
        The position of the value.
    size
        Number of keys and values in it, with aliases written out.
    merges
        Whether it is the plain scalar `<<`, which merges another mapping if it is a key.
    """

    value: Any
    place: Place
    size: int = 1
    merges: bool = False


@dataclass
class _Open:
    """A mapping or list that has not been read to its end.

    Attributes
    ----------
    part
        The part that has been read so far.
    anchor
        The name that aliases use for the mapping or list, if it has one.
    key
        The key whose value comes next.
    merged
        The mappings that are merged into this one (`<<`); its own entries take precedence.
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
        return Located(self.root.value, self.root.place, self.origin)

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
        self.open.append(_Open(_ReadValue({} if mapping else [], Place(line)), event.anchor))

    def _end(self) -> None:
        ended = self.open.pop()
        part = ended.part
        if ended.merged:
            # The first of several mappings goes before the others, and what is written before all.
            whole: dict[str, Any] = {}
            for other in reversed(ended.merged):
                whole |= other
            part.value = whole | part.value
        if ended.anchor is not None:
            self.anchors[ended.anchor] = part
        self._place(part)

    def _add(self, part: _ReadValue, line: int, anchor: str | None = None) -> None:
        self._count(part.size, line)
        if anchor is not None:
            self.anchors[anchor] = part
        self._place(part)

    def _count(self, size: int, line: int) -> None:
        self.size += size
        if self.size > MOST_PARTS:
            raise PolicyError(
                f"{self.origin}, line {line}: more than {MOST_PARTS:,} keys and values "
                "(each alias counts as the text that it repeats).",
                hint="Put long lists of values into a hierarchy file (CSV), and use fewer aliases.",
            )

    def _place(self, part: _ReadValue) -> None:
        """Add a finished value to the mapping or list that contains it."""
        if not self.open:
            self.root = part
            return
        owner = self.open[-1]
        owner.part.size += part.size
        if isinstance(owner.part.value, list):
            owner.part.place.parts[len(owner.part.value)] = part.place
            owner.part.value.append(part.value)
        elif owner.key is None:
            owner.key = self._key(owner, part)
        else:
            self._entry(owner, owner.key, part)
            owner.key = None

    def _key(self, owner: _Open, part: _ReadValue) -> _ReadValue:
        line = part.place.line
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
        owner.part.place.parts[key.value] = Place(key.place.line, part.place.parts)
        if not key.merges:
            owner.part.value[key.value] = part.value
            return
        merged = part.value if isinstance(part.value, list) else [part.value]
        if not all(isinstance(other, dict) for other in merged):
            raise _invalid(self.origin, key.place.line, "'<<' merges mappings only")
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
        return _ReadValue(part.value, Place(line, part.place.parts), part.size)

    def _scalar(self, event: yaml.ScalarEvent, line: int) -> _ReadValue:
        place = Place(line)
        if self.open and isinstance(self.open[-1].part.value, dict) and self.open[-1].key is None:
            return _ReadValue(event.value, place, merges=self._resolved(event) == _MERGE)
        tag = event.tag if event.tag not in (None, "!") else self._resolved(event)
        name = tag.removeprefix(_TAG)
        if name in ("str", "merge"):
            return _ReadValue(event.value, place)
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
        return _ReadValue(value(event.value.lower()), place)

    def _resolved(self, event: yaml.ScalarEvent) -> str:
        """Return the tag of a scalar, by its form; a quoted scalar is always a text."""
        if event.tag == "!":
            return _TAG + "str"
        return str(self.loader.resolve(yaml.ScalarNode, event.value, event.implicit))

    def _tag(self, tag: str, line: int) -> PolicyError:
        return _invalid(self.origin, line, f"the tag {tag!r}", "Leave tags out.")


def write_yaml(data: Mapping[str, Any]) -> str:
    """Return plain data as YAML that readers of YAML 1.1 and 1.2 interpret in the same way.

    Raises
    ------
    PolicyError
        The type of a value is not one of Python's plain types.
    """
    try:
        return str(yaml.dump(data, Dumper=_Dumper, sort_keys=False, allow_unicode=True))
    except yaml.representer.RepresenterError as error:
        raise PolicyError(
            f"A policy cannot hold {error.args[1]!r}, of type {type(error.args[1]).__qualname__!r}.",
            hint="Use texts, numbers, booleans, lists and mappings.",
        ) from error
