"""Define all exceptions that Aegis raises on purpose.

Every message says what was given, what is allowed and what to do. User errors, "no admissible
configuration" and internal bugs have separate base classes, because the user must do something
different for each. `exit_code` is the exit code of the command line.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from difflib import get_close_matches
from enum import StrEnum
from types import MappingProxyType
from typing import Any, ClassVar, TypeVar

from aegis.words import brief, counted


class AegisError(Exception):
    """The base class of all errors that Aegis raises on purpose.

    Parameters
    ----------
    message
        One or two sentences that say what the user gave and what is allowed.
    hint
        A sentence that says what the user can do.

    Attributes
    ----------
    noise_drawn
        Whether the error was raised after noise was drawn on a privacy budget. Then the error
        itself reveals something about the table, so the budget is not refunded.
    entry
        Path of the wrong entry in the mapping that was read; empty if the whole mapping is wrong.
    """

    noise_drawn = False
    entry: tuple[str | int, ...] = ()
    exit_code: ClassVar[int] = 2

    def __init__(self, message: str, *, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint

    def __str__(self) -> str:
        return f"{self.message} {self.hint}".strip()


class PolicyError(AegisError):
    """Raised if a policy, a parameter or an option is not valid or cannot be carried out."""

    @classmethod
    def unknown(
        cls,
        kind: str,
        name: object,
        allowed: Iterable[str],
        *,
        meanings: Mapping[str, str] = MappingProxyType({}),
    ) -> PolicyError:
        """Return the error for a name of a `kind` that is not in `allowed`, with the most similar
        allowed name. `meanings` maps other names that people use, such as titles, to the allowed
        names.
        """
        hint = choices(str(name), allowed, meanings=meanings)
        return cls(f"Unknown {kind} {name!r}.", hint=hint)


class DataError(AegisError):
    """Raised if the table or file that the user gave cannot be used."""

    @classmethod
    def unknown_column(cls, column: str, columns: Iterable[str], *, where: str = "") -> DataError:
        """Return the error for a column that the table does not have, with the most similar column.
        `where` says where the user named it, such as "named in the policy".
        """
        where = f" ({where})" if where else ""
        return cls(f"No column {column!r} in the table{where}.", hint=choices(column, columns))

    @classmethod
    def other_table(
        cls, origin: str, missing: Sequence[str], named: int, columns: Sequence[str]
    ) -> DataError:
        """Return the error for a table called `origin` that lacks most of the columns that a policy
        names: `missing` of `named`. `columns` are those of the table.
        """
        return cls(
            f"Is this the policy of another table? {len(missing):,} of the {named:,} columns that it "
            f"names are missing: {_listed(missing, 5)}. The table ({origin}) has: "
            f"{_listed(columns, 5)}.",
            hint="Give the table of the policy, or propose a policy for this table: `aegis init`.",
        )


class EngineError(AegisError):
    """Raised if the engine that holds the data fails or does not support an operation."""


class ResourceError(EngineError):
    """Raised if there is too little memory or the disk is full, so that the data are not at fault."""


class NoAdmissibleConfiguration(AegisError):  # noqa: N818 - the field's term, and no mistake
    """Raised if no configuration meets the privacy rule; the message names the closest one."""

    exit_code = 1


class InternalError(AegisError):
    """Raised if something that must always be true in Aegis is not true, which is a bug in Aegis."""

    exit_code = 70


@contextmanager
def at_entry(*path: str | int) -> Iterator[None]:
    """Note the path of the entry that is read in this context on an error, so that it can name the line.

    >>> try:
    ...     with at_entry("privacy"), at_entry("k"):
    ...         raise PolicyError("k is 0.")
    ... except PolicyError as error:
    ...     error.entry
    ('privacy', 'k')
    """
    try:
        yield
    except AegisError as error:
        error.entry = (*path, *error.entry)
        raise


Member = TypeVar("Member", bound=StrEnum)


def require_known(kind: str, name: object, allowed: Collection[str]) -> None:
    """Raise the `PolicyError` for a name of a `kind` that is not in `allowed`."""
    if name not in allowed:
        raise PolicyError.unknown(kind, name, allowed)


def member(kind: type[Member], value: str, what: str) -> Member:
    """Return the member of an enumeration with this value. If there is none, raise a `PolicyError`
    that names the kind of value (`what`) and lists all allowed values.
    """
    if value not in list(kind):
        raise PolicyError.unknown(what, value, kind)
    return kind(value)


def is_of_memory(error: BaseException) -> bool:
    """Return whether an error says that there was too little memory for data, a thread or a
    library.
    """
    if isinstance(error, MemoryError):
        return True
    text = str(error).lower()
    return isinstance(error, OSError | ImportError | RuntimeError) and any(
        words in text for words in _NO_MEMORY
    )


_NO_MEMORY = (
    "out of memory",
    "cannot allocate memory",
    "failed to map segment from shared object",
    "can't start new thread",
    "resource temporarily unavailable",
)
"""What the system, its loader of libraries and Python say where there is no memory."""


_SHORT = 3
"""Up to so many letters, a name is near if half of it is right: t9 is near t8."""


def choices(
    name: str,
    allowed: Iterable[str],
    *,
    limit: int = 30,
    meanings: Mapping[str, str] = MappingProxyType({}),
) -> str:
    """Return the text "Did you mean ...? Allowed: ..." for a name that is not allowed, with at most
    `limit` allowed names. If no allowed name is similar, compare the keys of `meanings`, other
    names that people use for the allowed names.
    """
    names = list(map(str, allowed))  # members of an enumeration show themselves otherwise
    near = get_close_matches(name, names, n=1, cutoff=0.6 if len(name) > _SHORT else 0.5)
    by_part = {part: name for name in reversed(names) for part in name.lower().split("-")}
    by_part |= {name.lower(): name for name in names}
    if not near:
        near = [by_part[part] for part in get_close_matches(name.lower(), by_part, 1, 0.8)]
    if not near:
        near = [meanings[other] for other in get_close_matches(name.lower(), meanings, 1, 0.8)]
    guess = f"Did you mean {near[0]!r}? " if near else ""
    return f"{guess}Allowed: {_listed(names, limit) or 'nothing'}."


def _listed(names: Sequence[str], limit: int) -> str:
    """Return the first `limit` names as a list in one text; quote those with commas, or with blanks
    at their ends.
    """
    texts = [repr(n) if "," in n or n != n.strip() else n for n in names[:limit]]
    more = [f"... ({len(names)} in all)"] if len(names) > limit else []
    return ", ".join([*texts, *more])


_BOUNDS = ("gt", "ge", "lt", "le")
_MAPPING = "a mapping: {{key: value, ...}}"
_INTEGER = "a whole number"
_FLAG = "true or false"
_TIME = "a time with its time zone, such as 2026-11-30T12:00:00Z"
_ALLOWED: Mapping[str, str] = MappingProxyType(
    {
        "bool_parsing": _FLAG,
        "bool_type": _FLAG,
        "datetime_from_date_parsing": _TIME,
        "datetime_object_invalid": _TIME,
        "datetime_parsing": _TIME,
        "datetime_type": _TIME,
        "dict_type": _MAPPING,
        "finite_number": "a finite number",
        "float_parsing": "a number",
        "float_type": "a number",
        "greater_than": "a number above {gt}",
        "greater_than_equal": "a number of {ge} or more",
        "int_from_float": _INTEGER,
        "int_parsing": _INTEGER,
        "int_parsing_size": "a whole number of fewer digits",
        "int_type": _INTEGER,
        "is_instance_of": "a file",
        "less_than": "a number below {lt}",
        "less_than_equal": "a number of {le} or less",
        "list_type": "a list: [one, two]",
        "model_attributes_type": _MAPPING,
        "model_type": _MAPPING,
        "string_type": "a text",
        "string_unicode": "a text in Unicode",
        "timezone_aware": _TIME,
    }
)
"""The values that a field allows, by the type of pydantic's error; `{...}` is a bound of the field."""
_FORMS: Mapping[str, str] = MappingProxyType(
    {
        r"^[0-9a-f]{64}$": "64 characters from 0 to 9 and from a to f",
        r"^[^\x00]*$": "a text without NUL characters",
        r"^(\d{4}-\d{2}-\d{2})?$": "a day such as 2026-11-30",
        r"^[0-9]{1,60}$": "a text of at most 60 digits",
    }
)
"""The meaning of each regular expression that a field can require."""
_LENGTHS: Mapping[str, tuple[str, str, str, str]] = MappingProxyType(
    {
        "string_too_short": ("a text of at least ", "min_length", "character", "characters"),
        "string_too_long": ("a text of at most ", "max_length", "character", "characters"),
        "too_short": ("at least ", "min_length", "entry", "entries"),
        "too_long": ("at most ", "max_length", "entry", "entries"),
    }
)


def allowed_value(wrong: Mapping[str, Any]) -> str:
    """Return in plain words what a field allows, for one of the errors that pydantic lists, such as
    "a whole number".

    >>> allowed_value({"type": "greater_than_equal", "ctx": {"ge": 2}})
    'a number of 2 or more'
    """
    kind, bounds = wrong["type"], wrong.get("ctx", {})
    if f"string_{kind}" in _LENGTHS and isinstance(wrong.get("input"), str):
        kind = f"string_{kind}"
    if kind in _LENGTHS:
        start, bound, *noun = _LENGTHS[kind]
        return f"{start}{counted(bounds[bound], *noun)}"
    if kind == "string_pattern_mismatch":
        return _FORMS.get(bounds["pattern"], f"a text of the form {bounds['pattern']}")
    if kind in ("enum", "literal_error"):
        return f"one of: {', '.join(allowed_names(wrong))}"
    if kind == "value_error":
        return str(bounds["error"])
    numbers = {
        k: f"{v:,}" if isinstance(v, int) else f"{v:g}" for k, v in bounds.items() if k in _BOUNDS
    }
    return _ALLOWED.get(kind, "another value").format(**numbers)


def allowed_names(wrong: Mapping[str, Any]) -> list[str]:
    """Return the names that a field allows, for an error of pydantic; empty if it allows others."""
    expected = str(wrong.get("ctx", {}).get("expected", ""))
    return re.findall(r"'([^']*)'", expected) or re.findall(r"\d+", expected)


def wrong_value(wrong: Mapping[str, Any]) -> str:
    """Return which value a field has and which it allows, for one of the errors that pydantic lists.

    A text is not repeated, because it can be a password.

    >>> wrong_value({"type": "int_type", "input": 1.5})
    'is 1.5, not a whole number'
    """
    kind, value = wrong["type"], wrong.get("input")
    if kind in ("missing", "extra_forbidden"):
        return "is missing" if kind == "missing" else "is unknown"
    if kind == "value_error":
        return f"is not allowed: {allowed_value(wrong)}"
    if kind == "json_invalid":
        return f"is not JSON: {wrong['ctx']['error']}"
    text = brief(value)
    if isinstance(value, str | bytes):
        text = f"a text of {counted(len(value), 'character')}"
    elif isinstance(value, list | tuple | dict):
        text = f"a {'mapping' if isinstance(value, dict) else 'list'} of {counted(len(value), 'entry', 'entries')}"
    return f"is {text}, not {allowed_value(wrong)}"


class RenamedWarning(FutureWarning):
    """Issued if a user gives a former name, which Aegis accepts for one version."""


class PackageWarning(UserWarning):
    """Issued if an installed package adds something that cannot be used. Everything else works."""
