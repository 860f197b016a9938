"""Define registries, which find entries by name. Installed packages can add entries through entry
points.

Packages add formats of summaries other than `.aegis` as entry points `aegis.summary_formats`. The
name of such an entry point is the file extension of the format. Its object is a module (or a record)
with the members of `SummaryFormat`. `aegis.study.subject` defines the methods that a study
calls on such a summary.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache, cached_property
from importlib import metadata
from importlib.metadata import EntryPoint, EntryPoints
from pathlib import Path
from typing import Any, Generic, Protocol, TypeVar

from aegis.errors import InternalError, PackageWarning, PolicyError, RenamedWarning


class Named(Protocol):
    """An object that users select by its name."""

    @property
    def name(self) -> str:
        """The name under which the object is registered."""


T = TypeVar("T", bound=Named)


@cache
def _installed() -> Any:
    return metadata.entry_points()


def entry_points(group: str) -> EntryPoints:
    """Return the entry points of a group. The first call scans the installed packages, for all
    groups.

    >>> from aegis.registry import entry_points
    >>> [point.value for point in entry_points("console_scripts") if point.name == "aegis"]
    ['aegis.cli.main:process']
    """
    points: EntryPoints = _installed().select(group=group)
    return points


def group_of(kind: str) -> str:
    """Return the group of entry points through which packages add entries of a kind, such as
    "measure".

    >>> group_of("privacy model"), group_of("search strategy")
    ('aegis.privacy_models', 'aegis.search_strategies')
    """
    words = kind.replace(" ", "_")
    return f"aegis.{words[:-1]}ies" if words.endswith("y") else f"aegis.{words}s"


class Registry(Generic[T]):
    """A collection of entries of one kind, such as measures or masks, that are found by name.

    A package of a third party adds entries through the entry-point group `aegis.<kind>s`: each
    entry point names an object of the registry's type, or a callable without arguments that returns
    such an object. Entry points are loaded when a name is not found for the first time, or when the
    registry is listed, so Aegis starts without a scan of installed packages. If an entry cannot be
    used, it is skipped with a `PackageWarning` that names the package, and it is an error to use
    its name.
    """

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self._entries: dict[str, T] = {}
        self._former: dict[str, str] = {}
        self._families: dict[str, Callable[[str], T]] = {}
        self._derived: dict[str, T] = {}
        self._broken: dict[str, PolicyError] = {}
        self._scanned = False

    def register(self, entry: T) -> T:
        """Add and return an entry; raise `InternalError` if its name is already taken."""
        if entry.name in self._entries:
            raise InternalError(f"{self.kind} {entry.name!r} is registered twice.")
        self._entries[entry.name] = entry
        return entry

    def register_all(self, *entries: T) -> None:
        """Add several entries to the registry, in their order."""
        for entry in entries:
            self.register(entry)

    def rename(self, former: str, name: str) -> None:
        """Accept a former name for the entry `name`, with a warning whenever somebody uses it."""
        self._former[former] = name

    def register_family(self, base: str, make: Callable[[str], T]) -> None:
        """Accept all names of the form `base(OPTIONS)`; `make` returns the entry for the text in
        the brackets.
        """
        self._families[base] = make

    def _of_family(self, name: str) -> T | None:
        """Return the entry for a name with options in brackets; None for any other name."""
        base, bracket, options = name.partition("(")
        if base not in self._families or not bracket or not options.endswith(")"):
            return None
        if name not in self._derived:
            entry = self._families[base](options[:-1])
            self._derived[name] = self._derived.setdefault(entry.name, entry)
        return self._derived[name]

    def get(self, name: str, *, others: Iterable[str] = ()) -> T:
        """Return the entry called `name`, or the one that its former name or the family before a
        bracket makes. A former name gives a `RenamedWarning`. If there is none, raise a
        `PolicyError` that lists all names, and `others`: names of another registry that are
        accepted in the same place.
        """
        derived = self._of_family(name)
        if derived is not None:
            return derived
        if name in self._former:
            new = self._former[name]
            warnings.warn(
                f"{self.kind} {name!r} is now called {new!r}; the next release no longer accepts the old name.",
                RenamedWarning,
                stacklevel=2,
            )
            name = new
        if name not in self._entries:
            self._scan()
        if name in self._entries:
            return self._entries[name]
        titles = {getattr(e, "title", e.name).lower(): e.name for e in self._entries.values()}
        raise self._broken.get(name) or PolicyError.unknown(
            self.kind, name, [*others, *self._entries], meanings=titles
        )

    def names(self) -> tuple[str, ...]:
        """Return the names of all entries, without options, in the order in which they were
        registered.
        """
        self._scan()
        return tuple(self._entries)

    def __iter__(self) -> Iterator[T]:
        self._scan()
        return iter(self._entries.values())

    def __contains__(self, name: object) -> bool:
        if name in self._former:
            return True
        if name not in self._entries:
            self._scan()
        return name in self._entries or (isinstance(name, str) and self._is_derived(name))

    def _is_derived(self, name: str) -> bool:
        try:
            return self._of_family(name) is not None
        except PolicyError:
            return False

    def _scan(self) -> None:
        if self._scanned:
            return
        self._scanned = True
        points = entry_points(group_of(self.kind))
        for point in sorted(points, key=lambda point: point.name):
            try:
                entry = _record_of(self.kind, point)
                if entry.name in self._entries:
                    raise _name_in_use(self.kind, entry.name, point)
                self.register(entry)
            except PolicyError as error:
                self._broken[point.name] = error
                warnings.warn(str(error), PackageWarning, stacklevel=2)


class Extensions:
    """The extensions of one kind, which are found by name and loaded only when they are used.

    Examples of kinds, as users call them, are commands, formats of summaries, and sections of the
    report. A package adds an extension through the entry-point group `aegis.<kind>s`; the name of
    the entry point is the name of the extension. Aegis registers its own optional parts in the same
    way.
    """

    def __init__(self, kind: str) -> None:
        self.kind = kind

    @cached_property
    def _points(self) -> Mapping[str, tuple[EntryPoint, ...]]:
        points: dict[str, tuple[EntryPoint, ...]] = {}
        for point in entry_points(group_of(self.kind)):
            if point not in points.get(point.name, ()):
                points[point.name] = (*points.get(point.name, ()), point)
        return points

    def names(self) -> tuple[str, ...]:
        """Return the sorted names of all extensions, without loading them."""
        return tuple(sorted(self._points))

    def __contains__(self, name: object) -> bool:
        return name in self._points

    def load(self, name: str) -> Any:
        """Load the extension with a name that `names` lists. Raise `PolicyError`, which names the
        package, if two packages add this name, or if the extension cannot be loaded.
        """
        first, *others = self._points[name]
        if others:
            raise _name_in_use(self.kind, name, others[0])
        return _loaded(self.kind, first)


def _record_of(kind: str, point: EntryPoint) -> Any:
    """Return the record that an entry point names: its object or, if this has no name, the result
    of calling it.
    """
    loaded = _loaded(kind, point)
    if hasattr(loaded, "name"):
        return loaded
    try:
        return loaded()
    except Exception as error:
        raise _broken(kind, point, error) from error


def _loaded(kind: str, point: EntryPoint) -> Any:
    try:
        return point.load()
    except Exception as error:
        raise _broken(kind, point, error) from error


def _package(point: EntryPoint) -> str:
    return repr(point.dist.name if point.dist is not None else "?")


def _with_article(kind: str) -> str:
    return f"an {kind}" if kind[0] in "aeiou" else f"a {kind}"


def _broken(kind: str, point: EntryPoint, error: Exception) -> PolicyError:
    return PolicyError(
        f"Package {_package(point)} adds {_with_article(kind)} ({point.value}) that cannot be loaded: "
        f"{type(error).__name__}: {str(error).rstrip('.')}.",
        hint="Install the package again, mend it or uninstall it; AEGIS_DEBUG=1 shows where it fails.",
    )


def _name_in_use(kind: str, name: str, point: EntryPoint) -> PolicyError:
    return PolicyError(
        f"Package {_package(point)} adds {_with_article(kind)} {name!r} ({point.value}), but this name is taken "
        "already.",
        hint="Uninstall the package, or ask its authors to rename what it adds.",
    )


FORMATS = Extensions("summary format")
"""Formats of summaries, by the extension of their files without the dot."""


class SummaryFormat(Protocol):
    """A format of summaries that a package adds to Aegis."""

    TAKEN_BY: str
    """The commands that accept such a file, as the end of a hint."""
    HOLDS: str
    """What such a file is, as a text that follows its name: "is a protected summary"."""
    REFUSED: Mapping[str, str]
    """The options that such a file does not support, without their dashes, each with the reason."""

    def open_summary(self, summary: Any, policy: Any, *, rule_override: bool) -> Any:
        """Open a summary under a `Policy`, and return it as an `AddedSummary`. `summary` is the path
        of the summary, or an object.

        `rule_override` says whether to accept a rule that differs from the rule of the summary's
        owner.
        """


def added_format(summary: Any) -> str | None:
    """Return the file extension of a summary format that a package added, if a path or an object
    has this format; otherwise None. An object names its format in the attribute `summary_format`.
    """
    if isinstance(summary, str | Path):
        ending = Path(str(summary)).suffix.lower().removeprefix(".")
        return ending if ending in FORMATS else None
    name = getattr(summary, "summary_format", None)
    return name if isinstance(name, str) and name in FORMATS else None


def format_of_summary(summary: Any) -> SummaryFormat | None:
    """Return the added format of an object, or of a file by its extension; None if there is none."""
    name = added_format(summary)
    if name is None:
        return None
    summary_format: SummaryFormat = FORMATS.load(name)
    return summary_format


def refuse_options(summary: Any, options: Mapping[str, object]) -> None:
    """Raise `PolicyError` if the user gave an option that a summary of an added format does not
    support. `options` maps names, with or without dashes, to values; None and False were not given.
    """
    summary_format = format_of_summary(summary)
    if summary_format is None:
        return
    for name, value in options.items():
        why = summary_format.REFUSED.get(name.removeprefix("--"))
        if why is not None and value is not None and value is not False:
            raise PolicyError(
                f"{name} was given, and {_named(summary)} {summary_format.HOLDS}: {why}.",
                hint="Leave it out, or give the table or its exact summary (.aegis).",
            )


def refuse_added(path: str | Path) -> None:
    """Refuse a summary in an added format where a table or an ordinary summary is needed."""
    summary_format = format_of_summary(path)
    if summary_format is not None:
        raise PolicyError(
            f"{path} {summary_format.HOLDS}, and this needs a table or its exact summary (.aegis).",
            hint=f"Give one of these; {summary_format.TAKEN_BY}.",
        )


def _named(summary: Any) -> str:
    return str(summary) if isinstance(summary, str | Path) else "the summary"
