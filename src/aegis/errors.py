"""Define all exceptions that Aegis raises on purpose.

Every message says what was given, what is allowed and what to do. User errors, "no admissible
configuration" and internal bugs have separate base classes, because the user must do something
different for each. `exit_code` is the exit code of the command line.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from difflib import get_close_matches
from enum import StrEnum
from types import MappingProxyType
from typing import ClassVar, TypeVar


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
    """

    noise_drawn = False
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
        given: object,
        allowed: Iterable[str],
        *,
        meanings: Mapping[str, str] = MappingProxyType({}),
    ) -> PolicyError:
        """Return the error for a name that is not in `allowed`. Its message names the kind of thing
        (`kind`), and suggests the most similar allowed name.

        `meanings` maps other names that people use, such as titles, to the allowed names.
        """
        hint = choices(str(given), allowed, meanings=meanings)
        return cls(f"Unknown {kind} {given!r}.", hint=hint)


class DataError(AegisError):
    """Raised if the table or file that the user gave cannot be used."""

    @classmethod
    def unknown_column(cls, given: str, columns: Iterable[str], *, where: str = "") -> DataError:
        """Return the error for a column that the table does not have. Its message suggests the
        column with the most similar name. `where` says where the user named the column, such as
        "named in the policy".
        """
        place = f" ({where})" if where else ""
        return cls(f"No column {given!r} in the table{place}.", hint=choices(given, columns))

    @classmethod
    def other_table(
        cls, origin: str, missing: Sequence[str], named: int, columns: Sequence[str]
    ) -> DataError:
        """Return the error for a table that lacks most of the columns that a policy names.

        `origin` names the table, `missing` are the columns that it lacks, `named` is the number of
        columns that the policy names, and `columns` are those of the table.
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
    """Raised if there is too little memory or the disk is full, so that the data are not at
    fault.
    """


class NoAdmissibleConfiguration(AegisError):  # noqa: N818 - the field's term, and no mistake
    """Raised if no configuration meets the privacy rule; the message names the configuration that
    came closest.
    """

    exit_code = 1


class InternalError(AegisError):
    """Raised if something that must always be true in Aegis is not true, which is a bug in
    Aegis.
    """

    exit_code = 70


Member = TypeVar("Member", bound=StrEnum)


def member(kind: type[Member], given: str, what: str) -> Member:
    """Return the member of an enumeration whose value is `given`.

    Raises
    ------
    PolicyError
        There is none. The message names the kind of value (`what`) and lists all allowed values.
    """
    if given not in list(kind):
        raise PolicyError.unknown(what, given, kind)
    return kind(given)


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
    given: str,
    allowed: Iterable[str],
    *,
    limit: int = 30,
    meanings: Mapping[str, str] = MappingProxyType({}),
) -> str:
    """Return the text "Did you mean ...? Allowed: ..." for a name that is not allowed. At most
    `limit` allowed names are listed.

    `meanings` maps other names that people use to the allowed names. They are compared if no
    allowed name is similar.
    """
    names = list(map(str, allowed))  # members of an enumeration show themselves otherwise
    near = get_close_matches(given, names, n=1, cutoff=0.6 if len(given) > _SHORT else 0.5)
    by_part = {part: name for name in reversed(names) for part in name.lower().split("-")}
    by_part |= {name.lower(): name for name in names}
    if not near:
        near = [by_part[part] for part in get_close_matches(given.lower(), by_part, 1, 0.8)]
    if not near:
        near = [meanings[name] for name in get_close_matches(given.lower(), meanings, 1, 0.8)]
    guess = f"Did you mean {near[0]!r}? " if near else ""
    return f"{guess}Allowed: {_listed(names, limit) or 'nothing'}."


def _listed(names: Sequence[str], limit: int) -> str:
    """Return the first `limit` names as a list in one text. Names with commas, or with blanks at
    their ends, are quoted.
    """
    shown = [repr(n) if "," in n or n != n.strip() else n for n in names[:limit]]
    more = [f"... ({len(names)} in all)"] if len(names) > limit else []
    return ", ".join([*shown, *more])


class RenamedWarning(FutureWarning):
    """Issued if a user gives a former name, such as the former name of a measure. Aegis accepts a
    former name for one version.
    """


class PackageWarning(UserWarning):
    """Issued if an installed package adds something to Aegis that cannot be used. Everything else
    works.
    """
