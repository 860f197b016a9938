"""The input and the output of a record-level method: its options, described from its docstring, and
its outcome.

Describe the options of record-level methods from their docstrings, and check the types of values.
"""

from __future__ import annotations

import inspect
import re
import types
from collections.abc import Callable, Mapping
from dataclasses import MISSING, dataclass, field, fields
from numbers import Integral, Real
from typing import Any, Union, get_args, get_origin, get_type_hints

import numpy as np

from aegis.anonymizers.groups import InformationLoss
from aegis.anonymizers.records import Records
from aegis.arrays import Array, Flags, Ints
from aegis.errors import DataError, PolicyError, require_known
from aegis.files import Progress, Step
from aegis.words import brief

MINIMUM_K = 2


@dataclass(frozen=True)
class Options:
    """Options that all methods share.

    Attributes
    ----------
    k
        Smallest number of records in a group, at least 2.
    l
        Smallest number of distinct values of every sensitive attribute in a group. 1 requires
        nothing. Only methods that can guarantee l accept a number above 1.
    rounded
        Round means to the resolution of their column, so that whole numbers stay whole. By
        default, means are exact, and whole numbers can become decimals.
    partition_above
        If the table has more records than this, a method with quadratic cost first cuts the table
        into cells by Mondrian. Then it groups the records inside each cell.
    cell_size
        Smallest number of records in a cell of `partition_above`.

    Raises
    ------
    PolicyError
        An option is outside its range.
    """

    k: int = 5
    l: int = 1  # noqa: E741 - the field's term
    rounded: bool = False
    partition_above: int = 50_000
    cell_size: int = 5_000

    def __post_init__(self) -> None:
        at_least("k", self.k, MINIMUM_K)
        at_least("l", self.l, 1)
        at_least("partition_above", self.partition_above, 1)
        at_least("cell_size", self.cell_size, 1)

    @property
    def by_chance(self) -> bool:
        """Return whether the random draws of the method protect the table.

        If they do, readers must not be able to repeat the draws.
        """
        return False

    def check(self, records: Records) -> None:
        """Raise an error if no release of `records` can satisfy these options.

        Raises
        ------
        PolicyError
            k is above the number of records, or l is given without a sensitive attribute.
        DataError
            A sensitive attribute has fewer than l values.
        """
        if self.k > records.subjects:
            unit = "records" if records.persons is None else "persons"
            raise PolicyError(
                f"k = {self.k} is above the number of {unit}, {records.subjects}.",
                hint=f"Give a k of {MINIMUM_K} to {records.subjects}, or more {unit}.",
            )
        if self.l > 1 and not records.sensitive:
            raise PolicyError(
                f"l = {self.l} requires diversity, but no attribute is sensitive.",
                hint="Give a column the role 'sensitive', or leave l out.",
            )
        for attribute in records.sensitive:
            distinct = len(np.unique(attribute.codes))
            if distinct < self.l:
                raise DataError(
                    f"l = {self.l} requires {self.l} distinct values of {attribute.name!r} in each "
                    f"group, but the table holds {distinct}.",
                    hint=f"The most that is possible is l = {distinct}.",
                )


def fitting_groups(records: Records, of: Ints, options: Options) -> Flags:
    """Return whether each group has k records (or persons) and l values of each sensitive attribute,
    shape (G,). `of` has the group of each record, shape (N,).
    """
    groups = int(of.max(initial=-1)) + 1
    if records.persons is None:
        subjects = np.bincount(of, minlength=groups)
    else:
        subjects = _distinct_in(of, records.persons, groups)
    fitting: Flags = subjects >= options.k
    for attribute in records.sensitive if options.l > 1 else ():
        fitting &= _distinct_in(of, attribute.codes, groups) >= options.l
    return fitting


def _distinct_in(of: Ints, values: Array, groups: int) -> Ints:
    """Return the number of distinct values in each of G groups, shape (G,)."""
    span = int(values.max(initial=0)) + 1
    pairs = np.unique(of * span + values)
    return np.bincount(pairs // span, minlength=groups)


def at_least(name: str, value: float, least: float, *, strictly: bool = False) -> None:
    """Refuse a `value` of the option `name` below `least`; if `strictly`, also an equal one."""
    if not (value > least if strictly else value >= least):
        bound = "above" if strictly else "at least"
        raise PolicyError(f"{name} = {value} is too small.", hint=f"It must be {bound} {least}.")


def within(name: str, value: float, low: float, high: float) -> None:
    """Raise `PolicyError` if the `value` of the option `name` is outside [low, high]."""
    if not low <= value <= high:
        raise PolicyError(
            f"{name} = {value} is out of range.", hint=f"It must lie between {low} and {high}."
        )


@dataclass(frozen=True, eq=False)
class Outcome:
    """The groups that a method has formed, and what the method reports about them.

    Attributes
    ----------
    labels
        Number of the group to which each of the N records belongs, shape (N,), int64. A group can
        have any number from 0 on; suppressed records have a negative number.
    notes
        Sentences that a reader of the release should know.
    details
        Figures that are specific to the method, by name.
    columns
        For methods that do not show groups: the N released values of each quasi-identifier. If
        None, groups are shown in the method's style.
    claims_k
        Whether each released combination of values must occur at least k times.
    loss
        Information loss; None if it follows from the groups.
    """

    labels: Ints
    notes: tuple[str, ...] = ()
    details: Mapping[str, Any] = field(default_factory=dict)
    columns: Mapping[str, tuple[Any, ...]] | None = None
    claims_k: bool = True
    loss: InformationLoss | None = None


Method = Callable[[Records, Any, np.random.Generator, Progress], Outcome]
"""A method's function: it takes records, options, a random generator and progress."""


def labelled(name: str, label: Callable[[Records, Any, np.random.Generator, Step], Ints]) -> Method:
    """Return the function of a method that only groups records. `label` returns the group of each
    record, from the records, the options, a random generator and the step that reports as `name`.
    """

    def run(
        records: Records, options: Any, random: np.random.Generator, progress: Progress
    ) -> Outcome:
        with progress.step(name, len(records)) as step:
            return Outcome(label(records, options, random, step))

    return run


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
    """Return the options of a dataclass, with descriptions from the docstrings of its classes."""
    documented: dict[str, str] = {}
    for base in reversed(options.__mro__):
        if base.__doc__ and base is not object:
            documented |= _attributes(inspect.cleandoc(base.__doc__))
    return tuple(
        OptionEntry(f.name, documented[f.name], None if f.default is MISSING else f.default)
        for f in fields(options)
    )


def _attributes(doc: str) -> dict[str, str]:
    """Return the descriptions in the section `Attributes` by name; an entry may name several."""
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


def typed(method: str, options: type[Any], options_given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the given options, converted to their types.

    Lists become tuples, and integers are accepted as floats; nothing else is converted.

    Raises
    ------
    PolicyError
        The method does not have an option, or a value has another type.
    """
    hints = get_type_hints(options)
    allowed = [f.name for f in fields(options)]
    for name in options_given:
        require_known(f"option of method {method!r}:", name, allowed)
    return {name: _typed(name, value, hints[name]) for name, value in options_given.items()}


def _typed(name: str, value: Any, hint: Any) -> Any:
    fits, converted = _convert(value, hint)
    if not fits:
        raise PolicyError(
            f"{name} = {brief(value)} has the wrong type.", hint=f"It must be {_words(hint)}."
        )
    return converted


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
    return all(fits for fits, _ in parts), tuple(converted for _, converted in parts)


def _words(hint: Any) -> str:
    if get_origin(hint) in (Union, types.UnionType):
        return " or ".join(_words(kind) for kind in get_args(hint))
    if get_origin(hint) is tuple:
        kinds = get_args(hint)
        if kinds[-1] is ...:
            return f"a list, each entry {_words(kinds[0])}"
        return f"a list of {len(kinds)}: {', '.join(map(_words, kinds))}"
    return "null" if hint is type(None) else _WORDS[get_origin(hint) or hint]
