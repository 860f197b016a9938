"""Handle files and folders of this process, its progress, and its interruptions.

A file is written completely or not at all: it first has a temporary name and is then renamed. The
names of folders for temporary files contain the process, so that leftovers can be removed.

Ctrl-C and SIGTERM take effect, even if a library swallows them. Python raises `KeyboardInterrupt`
wherever the program happens to be. Within DuckDB, it becomes a `RuntimeError` ("Query
interrupted"). While DuckDB imports an optional Python module, it can also get lost. So Aegis also
notes each signal, and raises `KeyboardInterrupt` at the next boundary: at the end of a query or a
step, or before an output gets its final name.

Long work reports its steps to an object of the caller, which shows them. Library functions accept
`progress: Progress = SILENT`. The command line passes an object that draws on standard error; a
notebook or a service may pass another one.
"""

from __future__ import annotations

import hashlib
import os
import platform
import re
import shutil
import signal
import sys
import tempfile
import threading
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cache
from pathlib import Path
from types import FrameType
from typing import Any, Protocol, runtime_checkable

from aegis.errors import AegisError, DataError, PolicyError


@dataclass
class _Signals:
    """The state of interrupts. `noted` says whether a signal was noted, and `deferred` whether
    noted signals wait until a later call of `check`.
    """

    noted: bool = False
    deferred: bool = False


_SIGNALS = _Signals()


@contextmanager
def watching() -> Iterator[None]:
    """Note interrupts (SIGINT and SIGTERM) instead of stopping the program, as long as the context
    lasts. It has no effect outside the main thread, or if the program handles the signal itself or
    ignores it (for example under nohup).
    """
    before = _ours()
    if not before:
        yield
        return
    acknowledge()
    for number in before:
        signal.signal(number, _note)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        acknowledge()


def _ours() -> dict[signal.Signals, Any]:
    """Return SIGINT and SIGTERM, each with the handler that it had before Aegis noted it.

    So a job that is ended politely (by timeout, a scheduler, a container) reports its results so
    far, and so does a background job of a script, where shells ignore SIGINT.
    """
    if threading.current_thread() is not threading.main_thread():
        return {}
    interrupt = signal.getsignal(signal.SIGINT)
    if interrupt not in (signal.default_int_handler, signal.SIG_IGN):
        return {}
    defaults = {signal.SIGINT: signal.default_int_handler, signal.SIGTERM: signal.SIG_DFL}
    return {n: handler for n, handler in defaults.items() if signal.getsignal(n) is handler}


def _note(number: int, frame: FrameType | None) -> None:
    """Handle a signal: note it, and raise `KeyboardInterrupt` unless interrupts are deferred."""
    _SIGNALS.noted = True
    if not _SIGNALS.deferred:
        signal.default_int_handler(number, frame)


@contextmanager
def deferring() -> Iterator[None]:
    """Note interrupts within the context, for example while files are created or removed. A later
    call of `check` raises them.
    """
    before, _SIGNALS.deferred = _SIGNALS.deferred, True
    try:
        yield
    finally:
        _SIGNALS.deferred = before


def acknowledge() -> None:
    """Forget the interrupt that was noted, because the program has already reacted to it."""
    _SIGNALS.noted = False


def check() -> None:
    """Raise `KeyboardInterrupt` if an interrupt was noted and the program has not yet reacted to
    it. Do nothing while another exception is being handled, so that its clean-up finishes first.
    """
    if _SIGNALS.noted and sys.exception() is None:
        raise KeyboardInterrupt


def is_interrupt(error: BaseException) -> bool:
    """Return whether an exception was raised because of an interrupt."""
    if _SIGNALS.noted:
        return True
    link: BaseException | None = error
    links: set[int] = set()
    while link is not None and id(link) not in links:
        if isinstance(link, KeyboardInterrupt) or _says_so(link):
            return True
        links.add(id(link))
        link = link.__cause__ or link.__context__
    return False


def _says_so(error: BaseException) -> bool:
    """Return whether an error is DuckDB's for an interrupted query; DuckDB may not be loaded."""
    if type(error).__name__ == "InterruptException":
        return True
    return isinstance(error, RuntimeError) and str(error) == "Query interrupted"


if sys.platform == "win32":
    import msvcrt
else:
    import fcntl

TABLE_FORMATS = (
    ".parquet",
    ".csv",
    ".csv.gz",
    ".tsv",
    ".tsv.gz",
    ".arrow",
    ".feather",
    ".xlsx",
)
"""The extensions of the tables that Aegis can write."""
BUNDLE = ".aegis"
"""The extension of a summary on disk."""
MOST_TEXT = 64 << 20
"""Largest number of characters in a file that people write."""


_NEW_NAMES: ContextVar[list[str] | None] = ContextVar("new_names", default=None)


@contextmanager
def recording() -> Iterator[list[str]]:
    """Yield a list of the files, folders and tables that are made while the context lasts. After a
    failure, the caller can list those that remain.
    """
    names: list[str] = []
    token = _NEW_NAMES.set(names)
    try:
        yield names
    finally:
        _NEW_NAMES.reset(token)


def record(name: object) -> None:
    """Add a file, folder or table to the list of `recording`, once it has its final name."""
    names = _NEW_NAMES.get()
    if names is not None:
        names.append(str(name))


def format_of(path: Path) -> str:
    """Return the extension that states a file's format, including `.gz` if the file is compressed."""
    suffixes = [suffix.lower() for suffix in path.suffixes[-2:]]
    return "".join(suffixes if suffixes[1:] == [".gz"] else suffixes[-1:])


def check_output(
    path: Path, *, force: bool, formats: tuple[str, ...] | None = TABLE_FORMATS
) -> None:
    """Raise `PolicyError` if the extension of `path` names none of the formats, its folder does not
    exist, or the file exists and `force` is False. Raise `DataError` if no file can be created in
    the folder.
    """
    if path.is_dir():
        such = f": {path / 'NAME'}{formats[0]}" if formats else ""
        raise PolicyError(
            f"Cannot write {path}: it is a folder.", hint=f"Give the name of a file in it{such}."
        )
    if formats is not None and format_of(path) not in formats:
        ending = format_of(path)
        why = f"unknown extension {ending!r}" if ending else "the name has no extension"
        raise PolicyError(
            f"Cannot write {path}: {why}.",
            hint=f"Allowed: {', '.join(formats)}.",
        )
    if not path.parent.is_dir():
        raise PolicyError(
            f"Cannot write {path}: its folder does not exist.", hint="Create it first."
        )
    _refuse_existing(path, force=force)
    try:
        # Permissions do not tell: even who may do all cannot write everywhere. The file has no name,
        # so nothing is left of it where the program ends here.
        with tempfile.TemporaryFile(dir=path.parent):
            pass
    except OSError as error:
        raise _unwritable(path, error) from error


def _refuse_existing(path: Path, *, force: bool) -> None:
    if path.exists() and not force:
        raise PolicyError(
            f"{path} exists.",
            hint="Choose another name, or overwrite it: --force, in Python force=True.",
        )


def spare_input(inputs: Iterable[Path], *outputs: Path | None) -> None:
    """Raise `PolicyError` if an output is the same file as an input, even under another name."""
    files = list(inputs)
    for path in outputs:
        if path is not None and any(_same_file(path, other) for other in files):
            raise PolicyError(
                f"{path} is read by this command, and would be replaced.",
                hint="Give the output another name.",
            )


def _same_file(path: Path, other: Path) -> bool:
    """Return whether two paths lead to the same file, also through links or in another letter case."""
    if path.resolve() == other.resolve():
        return True
    try:
        return path.samefile(other)
    except OSError:  # one of them is not a file
        return False


@contextmanager
def replacing(path: Path, *, force: bool = True, private: bool = False) -> Iterator[Path]:
    """Yield a temporary name next to `path`. If the body of the context succeeds, rename the file
    to `path`; otherwise remove it. Only its owner can read a `private` file. Raise `PolicyError` if
    another process is writing the file, or if it exists by now and `force` is False, and
    `DataError` if it cannot be written.

    If the process is killed while it writes, the old file stays, and `leftovers` finds the
    temporary file. While the context lasts, no other process can enter the context for the same
    path. So if contexts are nested, one process replaces several files together.
    """
    with alone(path):
        _refuse_existing(path, force=force)
        temporary = path.with_name(f"{_partial(path)}{os.getpid()}.partial{format_of(path)}")
        try:
            if private:
                temporary.unlink(missing_ok=True)  # a killed process with this id may have left it
                os.close(os.open(temporary, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
            yield temporary
            with temporary.open("rb+") as file:
                os.fsync(file.fileno())
            check()
            temporary.replace(path)
            record(path)
        except OSError as error:
            raise _unwritable(path, error) from error
        finally:
            with deferring(), suppress(OSError):  # if the disk is read-only by now, it stays
                temporary.unlink(missing_ok=True)


@contextmanager
def alone(path: Path) -> Iterator[None]:
    """Return a context in which no other process can write the file at `path`; raise `PolicyError`
    if one is writing it. It locks a second file next to it; the system frees the lock when the
    process ends.
    """
    lock = path.with_name(f"{_partial(path)}partial.lock")
    with deferring():
        descriptor = _locked(lock, path)
    try:
        yield
    finally:
        with deferring():
            with suppress(OSError):  # a read-only disk keeps it, and nobody holds it
                lock.unlink(missing_ok=True)  # first: who waits looks whether it is there
            os.close(descriptor)


def _locked(lock: Path, path: Path) -> int:
    """Lock the lock file of `path` for this process only, and return its open file descriptor.
    Raise `PolicyError` if another process has the lock, and `DataError` if the lock file cannot be
    created.
    """
    while True:
        try:
            descriptor = os.open(lock, os.O_CREAT | os.O_RDWR, 0o600)
        except OSError as error:
            raise _unwritable(path, error) from error
        try:
            if sys.platform == "win32":
                msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
            else:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except (BlockingIOError, PermissionError) as error:
            os.close(descriptor)
            raise PolicyError(
                f"Another process is writing {path}.",
                hint="Wait until it is done, or choose another name.",
            ) from error
        except OSError:  # a file system without locks
            return descriptor
        # Its last holder may have removed it between the two calls.
        if lock.exists() and os.path.samestat(os.fstat(descriptor), lock.stat()):
            return descriptor
        os.close(descriptor)


def _partial(path: Path) -> str:
    """Return the first part of the names of temporary files for `path`, of characters that no
    database engine treats as special.
    """
    plain = "".join(c if c.isascii() and (c.isalnum() or c in "-_") else "_" for c in path.stem)
    digest = hashlib.sha256(os.fsencode(path.name)).hexdigest()[:8]
    return f".aegis-{plain[:40]}-{digest}."


def leftovers(path: Path) -> list[Path]:
    """Return the temporary files of `path` that remain from killed processes, and whose rows were
    never verified. Files of running processes are not included.
    """
    start = _partial(path)
    leftovers = []
    for other in path.parent.iterdir() if path.parent.is_dir() else ():
        number = other.name.removeprefix(start).partition(".partial")[0]
        if other.name.startswith(start) and number.isdigit() and not runs(int(number)):
            leftovers.append(other)
    return sorted(leftovers)


def runs(process: int) -> bool:
    """Return whether this process runs on this machine; True if this cannot be known."""
    if os.name == "nt":  # what asks elsewhere interrupts there
        return True
    try:
        os.kill(process, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except OSError:  # it runs, and belongs to somebody else
        return True
    return True


def read_text(path: Path, what: str, error: type[AegisError]) -> str:
    """Return the content of a text file that people write, such as a policy (`what`). Raise an
    error of the type `error` if the file cannot be read, is too long or is not UTF-8.
    """
    try:
        with path.open(encoding="utf-8-sig") as file:
            text = file.read(MOST_TEXT + 1)
    except OSError as cause:
        raise _unreadable(path, what, error, cause) from cause
    except UnicodeDecodeError as cause:
        raise error(
            f"{what.capitalize()} file {path} is not UTF-8 text.", hint="Save it as UTF-8."
        ) from cause
    except ValueError as cause:
        raise error(f"No path: {str(path)!r}.", hint="Check the path.") from cause
    if len(text) > MOST_TEXT:
        raise error(
            f"{what.capitalize()} file {path} has more than {MOST_TEXT:,} characters.",
            hint="Check the path: this file is too long to be written by hand.",
        )
    return text


def require_text(path: Path, what: str, error: type[AegisError]) -> None:
    """Raise the error that `read_text` would raise if the file does not exist.

    The file is not read, because it may be a pipe.

    >>> from pathlib import Path
    >>> from aegis.errors import PolicyError
    >>> from aegis.files import require_text
    >>> require_text(Path("nowhere.yaml"), "policy", PolicyError)
    Traceback (most recent call last):
      ...
    aegis.errors.PolicyError: Cannot read policy file nowhere.yaml: No such file or directory. ...
    """
    try:
        path.stat()
    except OSError as cause:
        raise _unreadable(path, what, error, cause) from cause


def _unreadable(path: Path, what: str, error: type[AegisError], cause: OSError) -> AegisError:
    if isinstance(cause, IsADirectoryError):
        return error(f"Cannot read {what} file {path}: it is a folder.", hint="Give a file in it.")
    more = " `aegis init TABLE -o policy.yaml` proposes a policy." if what == "policy" else ""
    return error(
        f"Cannot read {what} file {path}: {cause.strerror}.",
        hint=f"{nearest(path, what)}Check the path.{more}",
    )


_MOST_SIMILAR = 5
"""Similar names that are looked into for one file of the right kind."""
_KEYS = {"policy": "attributes", "configuration": "configurations"}
"""The key that files of a kind have, where another kind has the same file names."""


def nearest(path: Path, what: str = "") -> str:
    """Return the text "Did you mean ...? " with the file in the same folder whose name is most
    similar to the name of the missing file `path`. It is empty if no file of the kind `what`, such
    as "policy", has a similar name, or if the folder cannot be read.
    """
    try:
        names = [] if path.exists() else [file.name for file in path.parent.iterdir()]
    except OSError:
        return ""
    similar = map(path.with_name, get_close_matches(path.name, names, n=_MOST_SIMILAR, cutoff=0.7))
    near = next((file for file in similar if _is_a(file, what)), None)
    return "" if near is None else f"Did you mean {str(near)!r}? "


def _is_a(file: Path, what: str) -> bool:
    """Return whether a file can be of the kind `what`. A policy must have the key `attributes`, and
    a configuration the key `configurations`; any file can be of another kind.
    """
    if what not in _KEYS:
        return True
    try:
        short = file.is_file() and file.stat().st_size <= MOST_TEXT
        text = file.read_text(encoding="utf-8") if short else ""
    except (OSError, ValueError):
        return False
    return re.search(rf"(^|[{{,]\s*)[\"']?{_KEYS[what]}[\"']?\s*:", text, re.MULTILINE) is not None


def _unwritable(path: Path, error: OSError) -> DataError:
    return DataError(
        f"Cannot write {path}: {error.strerror or error}.", hint="Check space and permissions."
    )


def write_text(path: Path, text: str) -> None:
    """Write a text file completely; if this fails, leave no part of it."""
    with replacing(path) as temporary:
        temporary.write_text(text, encoding="utf-8")


_NAME = re.compile(r"aegis-[a-z]+-(?P<machine>[0-9a-f]{8})-(?P<process>[0-9]+)(-.*)?")


@contextmanager
def temporary_folder(purpose: str, parent: Path | None = None) -> Iterator[Path]:
    """Yield a new folder for temporary files in `parent` (by default, the system's folder for
    them), and remove it when the context ends. `purpose`, a word in lower case, becomes part of its
    name.

    `recording` does not list the files in the folder. If a process was killed, its folder remains.
    This function removes such folders, because they may contain rows.
    """
    parent = Path(tempfile.gettempdir()) if parent is None else parent
    remove_abandoned(parent)
    prefix = f"{name_for(purpose)}-"
    with tempfile.TemporaryDirectory(prefix=prefix, dir=parent) as folder, recording():
        yield Path(folder)


def name_for(purpose: str) -> str:
    """Return the name of the folder that this process uses for the given purpose."""
    return f"aegis-{purpose}-{_machine()}-{os.getpid()}"


@cache
def remove_abandoned(parent: Path) -> None:
    """Remove the temporary folders in `parent` whose processes no longer run, once in each process."""
    for folder in abandoned(parent):
        shutil.rmtree(folder, ignore_errors=True)


def abandoned(parent: Path) -> list[Path]:
    """Return the temporary folders in `parent` of processes of this machine that no longer run, as
    far as this process may remove them.
    """
    try:
        with os.scandir(parent) as entries:
            folders = [entry for entry in entries if _is_abandoned(entry)]
    except OSError:  # a folder that cannot be looked into may still take files
        return []
    return sorted(Path(folder.path) for folder in folders)


def _is_abandoned(entry: os.DirEntry[str]) -> bool:
    name = _NAME.fullmatch(entry.name)
    if name is None or name["machine"] != _machine() or runs(int(name["process"])):
        return False
    try:
        owner = entry.stat(follow_symlinks=False).st_uid
        mine = not hasattr(os, "geteuid") or os.geteuid() in (0, owner)
        return mine and entry.is_dir(follow_symlinks=False)
    except FileNotFoundError:  # another process was faster
        return False


@cache
def _machine() -> str:
    """Return an identifier of this machine or container, as several may share a folder, and process
    numbers show which processes still run only within the same system.
    """
    try:
        numbered_by = Path("/proc/self/ns/pid").stat().st_ino
    except OSError:
        numbered_by = 0
    return hashlib.sha256(f"{platform.node()} {numbered_by}".encode()).hexdigest()[:8]


class Step(Protocol):
    """A step of a longer job that is running now, and whose progress is shown."""

    def advance(self, amount: float = 1) -> None:
        """Report that `amount` more units of the step's work are done."""

    def note(self, text: str) -> None:
        """Show a text next to the step, in place of the previous text."""


@runtime_checkable
class Progress(Protocol):
    """An object whose method `step(title, total)` is told about the steps of a job, to show them."""

    def step(self, title: str, total: float | None = None) -> AbstractContextManager[Step]:
        """Open a step with `total` units of work (None if the number is unknown). The step ends
        when the context ends.
        """


class _SilentStep:
    def advance(self, amount: float = 1) -> None:
        """Ignore the amount of work."""

    def note(self, text: str) -> None:
        """Ignore the text."""


SILENT_STEP: Step = _SilentStep()
"""A `Step` whose progress is not shown."""


class Silent:
    """A `Progress` that shows nothing."""

    @contextmanager
    def step(self, title: str, total: float | None = None) -> Iterator[Step]:  # noqa: ARG002
        """Open a step whose progress is not shown."""
        yield SILENT_STEP


SILENT: Progress = Silent()
