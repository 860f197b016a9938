"""Options of requests: each is described once, on the field of the record that holds it.

The command line makes its options from these descriptions, and the reference of Python lists them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import Field, dataclass, field, fields, replace
from typing import Any, TypeVar, cast

_OPTION = "option"
"""Key of an option in the metadata of a field."""
_GROUP = "group"
"""Key of the record that a field groups options in."""
R = TypeVar("R")


@dataclass(frozen=True, kw_only=True)
class Option:
    """The description of one field of a request.

    Attributes
    ----------
    text
        Meaning of the field, as help and reference print it.
    metavar
        Placeholder of the value in the help of the command line.
    name
        Name on the command line, where it is not the field's.
    short
        Short name on the command line, such as `-o`.
    kind
        Type on the command line, where the field accepts more.
    least
        Smallest number that the command line accepts.
    offers
        Name of the function in `aegis.cli.completion` that completes the value.
    asked
        Whether the command line has the option; else only Python has it.
    """

    text: str
    metavar: str | None = None
    name: str | None = None
    short: str | None = None
    kind: Any = None
    least: int | None = None
    offers: str | None = None
    asked: bool = True


def option(default: Any, text: str, metavar: str | None = None, **more: Any) -> Any:
    """Return a field of a request that the command line and Python have; `more` as in `Option`."""
    return field(default=default, metadata={_OPTION: Option(text=text, metavar=metavar, **more)})


def keyword(default: Any, text: str) -> Any:
    """Return a field of a request that only Python has."""
    return field(default=default, metadata={_OPTION: Option(text=text, asked=False)})


def group(record: type[R]) -> R:
    """Return a field of a request that groups options which belong together in a record."""
    made: Any = field(default_factory=record, metadata={_GROUP: record})
    return cast(R, made)


def group_of(described: Field[Any]) -> type[Any] | None:
    """Return the record that a field groups options in; None where it is no group."""
    grouped: type[Any] | None = described.metadata.get(_GROUP)
    return grouped


def own_options(record: type[Any]) -> dict[str, Option]:
    """Return the options that a record describes itself, by name of the field."""
    return {f.name: f.metadata[_OPTION] for f in fields(record) if _OPTION in f.metadata}


def options_of(record: type[Any]) -> Iterator[tuple[str, Option]]:
    """Yield all options of a record by name, those of its groups in their place."""
    for each in fields(record):
        grouped = group_of(each)
        if grouped is not None:
            yield from options_of(grouped)
        elif _OPTION in each.metadata:
            yield each.name, each.metadata[_OPTION]


def documented(record: type[R]) -> type[R]:
    """Return a record whose docstring lists its options with their descriptions."""
    lines = [f"{name}\n    {option.text}" for name, option in options_of(record)]
    record.__doc__ = "\n".join((f"{record.__doc__}\n", "Attributes", "----------", *lines))
    return record


def asked(kind: type[R], request: R | None, keywords: Mapping[str, Any]) -> R:
    """Return a request with these keywords in place of its own values; without one, the defaults.

    Raises
    ------
    TypeError
        A keyword is no option of the request.
    """
    known = [name for name, _ in options_of(kind)]
    for name in keywords:
        if name not in known:
            raise TypeError(f"{kind.__name__} has no {name!r}. Allowed: {', '.join(known)}.")
    return cast(R, _changed(kind() if request is None else request, keywords))


def _changed(request: Any, keywords: Mapping[str, Any]) -> Any:
    """Return a request with keywords of its own and of its groups."""
    changes = {}
    for each in fields(request):
        if group_of(each) is not None:
            changes[each.name] = _changed(getattr(request, each.name), keywords)
        elif each.name in keywords:
            changes[each.name] = keywords[each.name]
    return replace(request, **changes)
