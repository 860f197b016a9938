"""Check, open and list the files that commands read and write."""

from __future__ import annotations

import shlex
import shutil
import sys
from collections.abc import Sequence
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any

from aegis.cli.options import FileEngine
from aegis.errors import PolicyError
from aegis.files import (
    BUNDLE,
    TABLE_FORMATS,
    check_output,
    format_of,
    leftovers,
    spare_input,
)
from aegis.summary_formats import refuse_added

if TYPE_CHECKING:
    from rich.console import RenderableType

    from aegis.sources import Reading, Source
    from aegis.summary import Summary

YAML = (".yaml", ".yml")
HTML = (".html", ".htm")
REPORT = (*HTML, ".pdf")
JSON = (".json",)


def open_subject(
    given: str,
    *,
    name: str | None = None,
    memory_limit: str | None = None,
    engine: FileEngine | None = None,
    master: str | None = None,
    verify_key: Path | None = None,
    reading: Reading | None = None,
    proposing: bool = False,
) -> Source | Summary:
    """Open the table or the summary at a path or URL.

    Parameters
    ----------
    given
        A path, glob or URL.
    name
        Name of the table, if a database is given.
    memory_limit
        Memory limit of the embedded engine from now on.
    engine, master
        The engine that reads the table, and the address of Spark.
    verify_key
        The public key (PEM) that must verify a summary's signature.
    reading
        How to read text files.
    proposing
        Whether more reading options may be proposed: see `aegis.sources.open_proposing`.
    """
    refuse_added(given)
    elsewhere = engine is not None and engine.elsewhere
    if memory_limit is not None and elsewhere:
        raise PolicyError(
            "--memory-limit works only with the embedded engine.",
            hint="Set spark.driver.memory and spark.executor.memory in Spark's configuration.",
        )
    if memory_limit is not None:
        from aegis.sources import limit_memory

        limit_memory(memory_limit)
    if is_bundle(given):
        if engine is not None or master is not None:
            raise PolicyError(
                f"{given} is a summary, and engines read only tables.",
                hint="Leave out --engine and --master.",
            )
        return read_summary(given, verify_key)
    if verify_key is not None:
        raise PolicyError(
            f"{shown(given)} is a table, and tables are not signed.",
            hint="Leave out --verify-key: it checks summaries (.aegis).",
        )
    from aegis.sources import open_proposing, open_table

    if proposing and name is None and not elsewhere and master is None and "://" not in given:
        return open_proposing(given, reading)
    return open_table(
        given, name=name, engine=engine and engine.value, master=master, reading=reading
    )


def read_summary(path: str | Path, verify_key: Path | None) -> Summary:
    """Read a summary from disk. If `verify_key` is given, the key must verify the summary's
    signature.
    """
    from aegis.signing import load_public_key
    from aegis.summary import load_bundle

    key = None if verify_key is None else load_public_key(verify_key)
    return load_bundle(path, verify_key=key)


def shown(given: str) -> str:
    """Return a path or URL without a password, for display."""
    if "://" not in given:
        return given
    from aegis.sources.urls import shown_url

    return shown_url(given)


def is_bundle(given: str) -> bool:
    """Return whether a path names a summary file."""
    return given.lower().endswith(BUNDLE)


def check_outputs(
    outputs: Sequence[tuple[str | Path | None, tuple[str, ...] | None]],
    *,
    force: bool,
    inputs: Sequence[str | Path | None] = (),
) -> None:
    """Raise an error, before any work is done, unless every output can be written and all have
    different names.

    No output may be one of the inputs, even with `force`. No table may be inside a folder that is
    read, because the next run would read it as data.
    """
    read = {Path(given).resolve() for given in inputs if given is not None}
    seen: set[Path] = set()
    for named, formats in outputs:
        if named is None:
            continue
        path = Path(named)
        place = path.resolve()
        spare_input(read, path)
        if format_of(path) in TABLE_FORMATS and not read.isdisjoint(place.parents):
            raise PolicyError(
                f"{path} lies in the folder that is read.",
                hint="Write it somewhere else: the next run would read it as data.",
            )
        check_output(path, force=force, formats=formats)
        _remove_leftovers(path)
        if path.resolve() in seen:
            raise PolicyError(f"{path} is named for two outputs.", hint="Give each its own name.")
        seen.add(path.resolve())


def _remove_leftovers(path: Path) -> None:
    """Delete the files that a killed run left behind, and warn the user."""
    from aegis.cli.output import Output

    for left in leftovers(path):
        left.unlink(missing_ok=True)
        Output().warn(
            [f"An earlier run that was killed had left {left}, which nobody verified: deleted."]
        )


def written(paths: Sequence[str | Path | None]) -> list[RenderableType]:
    """Return the line that lists the written files with their sizes."""
    from rich.filesize import decimal

    from aegis.cli.tables import heading

    existing = [path for path in paths if path is not None]
    if not existing:
        return []
    sizes = [_bytes(path) for path in existing]
    shown = ("" if length is None else f" ({decimal(length)})" for length in sizes)
    files = (f"{path}{size}" for path, size in zip(existing, shown, strict=True))
    return [heading(f"Written: {', '.join(files)}")]


def written_dict(paths: Sequence[str | Path | None]) -> list[dict[str, Any]]:
    """Return the paths and sizes of the written files as JSON values."""
    return [{"path": str(p), "bytes": _bytes(p)} for p in paths if p is not None]


def _bytes(path: str | Path) -> int | None:
    """Return the size of a file or of a folder's files; None if it is not on this machine."""
    local = Path(path)
    if local.is_dir():
        return sum(part.stat().st_size for part in local.rglob("*") if part.is_file())
    return local.stat().st_size if local.exists() else None


def unused(path: str | Path) -> str:
    """Return an unused file name: `path` itself, or `path` with a number if the file exists."""
    wanted = Path(path)
    names = (wanted.with_stem(f"{wanted.stem}-{number}") for number in count(2))
    return str(wanted if not wanted.exists() else next(n for n in names if not n.exists()))


def repeated(**options: object) -> list[str]:
    """Return options as words of a command line. Options that are None or off are left out.

    Parameters
    ----------
    options
        Values by the name of the option, with `_` instead of `-`; a name of one letter is the short
        name. A value may be a switch, a text, a list of names, or a list of paths; for paths, the
        option is repeated.
    """
    words: list[str] = []
    for name, given in options.items():
        if given is None or given is False:
            continue
        option = f"{'-' if len(name) == 1 else '--'}{name.replace('_', '-')}"
        if isinstance(given, list) and given and isinstance(given[0], Path):
            words += [word for path in given for word in (option, str(path))]
            continue
        words.append(option)
        if isinstance(given, list | tuple):
            words.append(",".join(map(str, given)))
        elif given is not True:
            words.append(f"{given:g}" if isinstance(given, float) else str(given))
    return words


def next_step(why: str, *words: str | Path, **options: object) -> list[RenderableType]:
    """Return the next step: a sentence, and a command to copy.

    Parameters
    ----------
    why
        The purpose of the command, as a sentence without its full stop.
    words
        The words after `aegis`. A long command is divided into lines before options, and before a
        table with a long name.
    options
        The options that follow the words, as `repeated` takes them.
    """
    from aegis.cli.tables import heading, line

    every = (*words, *repeated(**options))
    quoted = [_program(), *(shlex.quote(shown(str(word))) for word in every)]
    command = "  " + " ".join(quoted)
    if len(command) > 78:
        parts = [quoted[:2], quoted[2:3]]
        for word in quoted[3:]:
            parts.append([word]) if word.startswith("-") else parts[-1].append(word)
        lines = [" ".join(parts[0])]
        for part in map(" ".join, parts[1:]):
            if len(lines[-1]) + len(part) < 72:
                lines[-1] += f" {part}"
            else:
                lines.append(part)
        command = "  " + " \\\n    ".join(lines)
    return [heading(f"Next: {why}"), line(command)]


def _program() -> str:
    """Return the words that call this program: `aegis`, or its path if the shell does not find it."""
    called = Path(sys.argv[0])
    callable_by_name = called.name != "aegis" or shutil.which("aegis") is not None
    return "aegis" if callable_by_name else shlex.quote(str(called))
