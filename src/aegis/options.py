"""Describe each option of a request once, on the field of the dataclass that contains it.

The command line makes its options from these descriptions, and the Python reference lists them.
"""

from __future__ import annotations

import functools
import inspect
import os
import types
import typing
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import Field, dataclass, field, fields, replace
from numbers import Integral, Real
from pathlib import Path
from typing import Any, ParamSpec, TypeVar, cast

from aegis.errors import PolicyError, choices
from aegis.words import brief

_OPTION = "option"
"""Key of an option in the metadata of a field."""
_GROUP = "group"
"""Key of the record that a field groups options in."""
P = ParamSpec("P")
R = TypeVar("R")
_ABSTRACT: Mapping[Any, Any] = {int: Integral, float: Real, Path: os.PathLike}
"""What passes for a type: numbers of NumPy are numbers, too."""
_LARGEST = 2**63 - 1
"""Largest whole number that files and engines hold."""


@dataclass(frozen=True, kw_only=True)
class Option:
    """The description of one option, which is a field of a request record.

    Attributes
    ----------
    text
        The meaning of the field, as the help and the reference print it.
    metavar
        Placeholder of the value in the help of the command line.
    name
        Name of the option on the command line, if it differs from the field's name.
    short
        Short name on the command line, such as `-o`.
    kind
        Type on the command line, if the field also accepts types that the command line does not.
    least
        The smallest number that the command line accepts.
    offers
        Name of the function in `aegis.cli.completion` that completes the value.
    on_command_line
        Whether the command line has the option; otherwise only Python has it.
    """

    text: str
    metavar: str | None = None
    name: str | None = None
    short: str | None = None
    kind: Any = None
    least: float | None = None
    offers: str | None = None
    on_command_line: bool = True


def option(default: Any, text: str, metavar: str | None = None, **more: Any) -> Any:
    """Return a dataclass field for an option that both the command line and Python have. `metavar`
    and `more` set fields of `Option`.
    """
    return field(default=default, metadata={_OPTION: Option(text=text, metavar=metavar, **more)})


def keyword(default: Any, text: str) -> Any:
    """Return a dataclass field for an option that only Python has."""
    return field(default=default, metadata={_OPTION: Option(text=text, on_command_line=False)})


def group(record: type[R]) -> R:
    """Return a dataclass field whose value is another dataclass (`record`) with related options."""
    nested: Any = field(default_factory=record, metadata={_GROUP: record})
    return cast(R, nested)


def group_of(described: Field[Any]) -> type[Any] | None:
    """Return the dataclass whose options a field groups; None if the field is no group of options."""
    return described.metadata.get(_GROUP)


def own_options(record: type[Any]) -> dict[str, Option]:
    """Return the options of a dataclass by the name of their field, without those in its groups."""
    return {f.name: f.metadata[_OPTION] for f in fields(record) if _OPTION in f.metadata}


def options_of(record: type[Any]) -> Iterator[tuple[str, Option]]:
    """Yield the name and description of all options of a dataclass, in the order of the fields. The
    options of a group come in the position of the group's field.
    """
    for each in fields(record):
        grouped = group_of(each)
        if grouped is not None:
            yield from options_of(grouped)
        elif _OPTION in each.metadata:
            yield each.name, each.metadata[_OPTION]


def documented(record: type[R]) -> type[R]:
    """Return the dataclass of a request after adding the texts of its options to its docstring."""
    lines = [f"{name}\n    {option.text}" for name, option in options_of(record)]
    record.__doc__ = "\n".join((f"{record.__doc__}\n", "Attributes", "----------", *lines))
    return record


def request_with(kind: type[R], request: R | None, keywords: Mapping[str, Any]) -> R:
    """Return a request of the type `kind`: a copy of `request` (by default, of the defaults) with
    the values that keywords state. Raise `TypeError` if a keyword is not an option of the request,
    and `PolicyError` if the value of an option has the wrong type.
    """
    names = [name for name, _ in options_of(kind)]
    for name in keywords:
        if name not in names:
            raise TypeError(f"{kind.__name__} has no {name!r}. {choices(name, names)}")
    if not isinstance(request, kind | None):
        raise PolicyError(
            f"The request is {brief(request)}.", hint=f"Allowed: a {kind.__name__}, or None."
        )
    new_request = _changed(kind() if request is None else request, keywords)
    _check_record(new_request)
    return cast(R, new_request)


def checks_types(function: Callable[P, R]) -> Callable[P, R]:
    """Make a function raise `PolicyError` if an argument does not have its declared type."""
    signature = inspect.signature(function)
    several = [n for n, p in signature.parameters.items() if p.kind is p.VAR_POSITIONAL]

    @functools.wraps(function)
    def checked(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            arguments, hints = signature.bind(*args, **kwargs).arguments, _hints(function)
        except TypeError as error:
            raise TypeError(f"{function.__qualname__}() {error}") from None
        for name in several:
            for value in arguments.pop(name, ()):
                _check({name: value}, hints, function.__annotations__)
        _check(arguments, hints, function.__annotations__)
        return function(*args, **kwargs)

    return checked


def check_fields(record: Any) -> None:
    """Raise `PolicyError` if the value of a record's field does not have the declared type."""
    kind: Any = type(record)
    values = {each.name: getattr(record, each.name) for each in fields(record)}
    _check(values, _hints(kind), {each.name: each.type for each in fields(record)})


def check_arguments(function: Callable[..., Any], values: Mapping[str, Any]) -> None:
    """Raise `PolicyError` if an argument of a function does not have its declared type."""
    _check(values, _hints(function), function.__annotations__)


def _check_record(request: Any) -> None:
    """Raise `PolicyError` if a field of a request, or of one of its groups, has the wrong type."""
    check_fields(request)
    for each in fields(request):
        if group_of(each) is not None:
            _check_record(getattr(request, each.name))


def _check(values: Mapping[str, Any], hints: Mapping[str, Any], written: Mapping[str, Any]) -> None:
    for name, value in values.items():
        if name in hints and not _fits(value, hints[name]):
            fault = f"of type {type(value).__name__}"
            if isinstance(value, str) and not _is_text(value):
                fault = "with half of a surrogate pair, which no file can contain"
            raise PolicyError(
                f"{name} is {brief(value)}, {fault}.",
                hint=f"Allowed: {written[name]}{_meaning(hints[name])}.",
            )


def _meaning(hint: Any) -> str:
    """Return an explanation of a protocol, from its docstring. The name alone says nothing."""
    if not getattr(hint, "_is_protocol", False):
        return ""
    first = (inspect.getdoc(hint) or "").partition(".")[0]
    return f", {first[:1].lower()}{first[1:]}" if first else ""


@functools.cache
def _hints(declared: Any) -> Mapping[str, Any]:
    """Return the types that a function or a record declares, by name; `Any` for one that is
    imported only for type checkers.
    """
    unknown: dict[str, Any] = {}
    while True:
        try:
            return typing.get_type_hints(declared, localns=unknown)
        except NameError as error:
            if not error.name or error.name in unknown:
                raise
            unknown[error.name] = Any


def _fits(value: object, hint: Any) -> bool:
    """Return whether a value has the type `hint`, as far as this can be seen without reading long
    content.
    """
    origin, parts = typing.get_origin(hint), typing.get_args(hint)
    if origin in (typing.Union, types.UnionType):
        return any(_fits(value, part) for part in parts)
    kind = origin or hint
    of_protocol = getattr(kind, "_is_protocol", False)  # which often cannot be checked
    if (
        not isinstance(kind, type)
        or kind in (Any, object)
        or (of_protocol and not getattr(kind, "_is_runtime_protocol", False))
    ):
        return True
    if isinstance(value, bool):
        return kind is bool
    if isinstance(value, int) and abs(value) > _LARGEST:
        return False
    if isinstance(value, str | os.PathLike) and not _is_text(value):
        return False
    if not issubclass(kind, Collection) or issubclass(kind, str | bytes):
        return isinstance(value, _ABSTRACT.get(kind, kind))
    if issubclass(kind, Mapping):
        return isinstance(value, Mapping)
    single = isinstance(value, str | bytes | Mapping)
    return (
        isinstance(value, Collection)
        and not single
        and (not parts or all(_fits(each, parts[0]) for each in value))
    )


def _is_text(value: str | os.PathLike[str]) -> bool:
    """Return whether a text can be a path or in a file: not with half of a surrogate pair."""
    try:
        os.fsencode(value)
    except UnicodeEncodeError:
        return False
    return True


def _changed(request: Any, keywords: Mapping[str, Any]) -> Any:
    """Return a copy of a request in which keywords replace fields, also in its groups of options."""
    changes = {}
    for each in fields(request):
        if group_of(each) is not None:
            changes[each.name] = _changed(getattr(request, each.name), keywords)
        elif each.name in keywords:
            changes[each.name] = keywords[each.name]
    return replace(request, **changes)
