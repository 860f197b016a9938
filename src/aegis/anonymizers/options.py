"""Describe the options of record-level methods from their docstrings, and check the types of values."""

from __future__ import annotations

import inspect
import re
import types
from collections.abc import Mapping
from dataclasses import MISSING, dataclass, fields
from numbers import Integral, Real
from typing import Any, Union, get_args, get_origin, get_type_hints

from aegis.errors import PolicyError
from aegis.words import brief

_WORDS: Mapping[type, str] = {
    int: "a whole number",
    float: "a number",
    bool: "true or false",
    str: "a text",
    dict: "a mapping",
}
LARGEST = 2**53
"""Largest number that an option accepts."""
_KINDS: Mapping[type, type] = {int: Integral, float: Real}
"""The class of values that an option of each type accepts, so that NumPy's numbers are valid, too."""


@dataclass(frozen=True)
class OptionEntry:
    """One option of a method as listings show it.

    Attributes
    ----------
    name
        The name as users write it.
    description
        Meaning and range of the option.
    default
        Default value; None if there is none.
    """

    name: str
    description: str
    default: Any


def listed_options(options: type[Any]) -> tuple[OptionEntry, ...]:
    """Return the options of a dataclass, with descriptions from its docstring and from the
    docstrings of its base classes.
    """
    documented: dict[str, str] = {}
    for base in reversed(options.__mro__):
        if base.__doc__ and base is not object:
            documented |= _attributes(inspect.cleandoc(base.__doc__))
    return tuple(
        OptionEntry(f.name, documented[f.name], None if f.default is MISSING else f.default)
        for f in fields(options)
    )


def _attributes(doc: str) -> dict[str, str]:
    """Return the descriptions in a docstring's section `Attributes` by name; an entry "a, b"
    describes both names.
    """
    _, heading, section = doc.partition("Attributes\n----------\n")
    entries: dict[str, str] = {}
    if not heading:
        return entries
    section = re.split(r"\n\n\w+\n-+\n", section)[0]
    for entry in re.split(r"\n(?=\S)", section):
        names, _, text = entry.partition("\n")
        for name in names.split(", "):
            entries[name] = " ".join(text.split())
    return entries


def typed(method: str, options: type[Any], given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the given options, converted to their types.

    Lists become tuples, and integers are accepted as floats; nothing else is converted.

    Raises
    ------
    PolicyError
        The method does not have an option, or a value has another type.
    """
    hints = get_type_hints(options)
    allowed = [f.name for f in fields(options)]
    for name in given:
        if name not in allowed:
            raise PolicyError.unknown(f"option of method {method!r}:", name, allowed)
    return {name: _typed(name, value, hints[name]) for name, value in given.items()}


def _typed(name: str, value: Any, hint: Any) -> Any:
    fits, made = _convert(value, hint)
    if not fits:
        raise PolicyError(
            f"{name} = {brief(value)} has the wrong type.", hint=f"It must be {_words(hint)}."
        )
    return made


def _convert(value: Any, hint: Any) -> tuple[bool, Any]:
    """Return whether `value` has the type `hint`, and the converted value."""
    if get_origin(hint) in (Union, types.UnionType):
        tried = [_convert(value, kind) for kind in get_args(hint)]
        return next((attempt for attempt in tried if attempt[0]), (False, None))
    if get_origin(hint) is tuple:
        return _convert_tuple(value, get_args(hint))
    if get_origin(hint) is dict:
        return isinstance(value, Mapping), value
    if hint is type(None):
        return value is None, None
    if hint is not bool and isinstance(value, bool):
        return False, None
    kind = _KINDS.get(hint, hint)
    # Neither a float nor a count of anything holds more; NaN is in no range.
    if not isinstance(value, kind) or (hint in _KINDS and not -LARGEST <= value <= LARGEST):
        return False, None
    return True, hint(value)


def _convert_tuple(value: Any, kinds: tuple[Any, ...]) -> tuple[bool, Any]:
    if not isinstance(value, list | tuple):
        return False, None
    if kinds[-1] is ...:
        kinds = (kinds[0],) * len(value)
    if len(kinds) != len(value):
        return False, None
    parts = [_convert(part, kind) for part, kind in zip(value, kinds, strict=True)]
    return all(fits for fits, _ in parts), tuple(made for _, made in parts)


def _words(hint: Any) -> str:
    if get_origin(hint) in (Union, types.UnionType):
        return " or ".join(_words(kind) for kind in get_args(hint))
    if get_origin(hint) is tuple:
        kinds = get_args(hint)
        if kinds[-1] is ...:
            return f"a list, each entry {_words(kinds[0])}"
        return f"a list of {len(kinds)}: {', '.join(map(_words, kinds))}"
    return "null" if hint is type(None) else _WORDS[get_origin(hint) or hint]
