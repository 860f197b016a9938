"""The one exception tree of Aegis.

Every message says what was given, what is allowed and what to do. User errors, "no admissible
configuration" and internal bugs are separate branches, because each asks something else of the
reader; `exit_code` is what the command line answers with.
"""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches
from typing import ClassVar


class AegisError(Exception):
    """Base of all errors that Aegis raises on purpose.

    Parameters
    ----------
    message
        What was given and what is allowed, in one or two sentences.
    hint
        What to do about it.
    """

    exit_code: ClassVar[int] = 2

    def __init__(self, message: str, *, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint

    def __str__(self) -> str:
        return f"{self.message} {self.hint}".strip()


class PolicyError(AegisError):
    """A declaration of the user cannot be carried out: a policy, a parameter, an option."""

    @classmethod
    def unknown(cls, kind: str, given: object, allowed: Iterable[str]) -> PolicyError:
        """Return the error for a name that is not among `allowed`, with the nearest one."""
        return cls(f"Unknown {kind} {given!r}.", hint=choices(str(given), allowed))


class DataError(AegisError):
    """The table or file itself is not usable as given."""

    @classmethod
    def unknown_column(cls, given: str, columns: Iterable[str], *, where: str = "") -> DataError:
        """Return the error for a column that the table lacks, with the nearest one."""
        place = f" ({where})" if where else ""
        return cls(f"No column {given!r} in the table{place}.", hint=choices(given, columns))


class EngineError(AegisError):
    """The engine that holds the data failed or lacks something."""


class ResourceError(EngineError):
    """Memory or disk space is not enough; the data may be valid."""


class NoAdmissibleConfiguration(AegisError):  # noqa: N818 - the field's term, and no mistake
    """No configuration meets the privacy rule; the message says which came closest."""

    exit_code = 1


class InternalError(AegisError):
    """A bug in Aegis: an invariant does not hold."""

    exit_code = 70


def is_of_memory(error: BaseException) -> bool:
    """Return whether an error means lack of memory: for data, for a thread, or for loading a
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


def choices(given: str, allowed: Iterable[str], *, limit: int = 30) -> str:
    """Return "Did you mean ...? Allowed: ..." for a misspelt name."""
    names = list(map(str, allowed))  # members of an enumeration show themselves otherwise
    near = get_close_matches(given, names, n=1, cutoff=0.6)
    lower = {name.lower(): name for name in names}
    if not near and given.lower() in lower:
        near = [lower[given.lower()]]
    guess = f"Did you mean {near[0]!r}? " if near else ""
    shown = ", ".join(map(_listed, names[:limit])) + (
        f", ... ({len(names)} in all)" if len(names) > limit else ""
    )
    return f"{guess}Allowed: {shown or 'nothing'}."


def _listed(name: str) -> str:
    """Return a name as a list shows it: in quotes where its commas or blanks would mislead."""
    return repr(name) if "," in name or name != name.strip() else name


class RenamedWarning(FutureWarning):
    """A former name was used, which is accepted for one release."""


class PackageWarning(UserWarning):
    """A package adds an entry that cannot be used; everything else works."""
