"""End a run with an exit code and one clear error block on standard error."""

from __future__ import annotations

import os
import re
import sys
import traceback
from collections.abc import Sequence
from dataclasses import dataclass, replace
from importlib.metadata import PackageNotFoundError, requires
from typing import Any

from aegis.cli.output import LOG, clean, print_error, print_note, write, write_json
from aegis.cli.parameters import in_plain_words
from aegis.errors import AegisError, InternalError, is_of_memory

INTERRUPTED = 130
CLOSED_PIPE = 141
"""The exit code that a shell reports if a closed pipe has ended the program."""


@dataclass(frozen=True)
class Failure:
    """An error message to the user: the error, with the value and the allowed values, and how to
    avoid it. Programs read its kind: usage, policy, data, engine, no_admissible_configuration,
    file, internal.
    """

    kind: str
    message: str
    hint: str
    exit_code: int

    @classmethod
    def of(cls, error: Exception, arguments: Sequence[str] = ()) -> Failure:
        """Convert an exception to the failure that the user of these `arguments` sees."""
        if isinstance(error, AegisError):
            hint = error.hint
            if isinstance(error, InternalError):
                hint = f"{hint} {_REPORT}".strip()
            return cls(_kind(error), error.message, hint, error.exit_code)
        if hasattr(error, "format_message"):  # an error of the command line's own parser
            _suggest_format(error)
            in_plain_words(error)
            return cls(
                "usage",
                _sentence(_usage_message(error, arguments)),
                _usage_hint(error, arguments),
                2,
            )
        if is_of_memory(error):
            return cls(
                "engine",
                "There is too little memory for this.",
                "Give the process more (ulimit -v, the container's limit), or limit the engine with "
                "--memory-limit.",
                2,
            )
        if isinstance(error, OSError) and error.strerror:
            where = f" {error.filename}" if error.filename else ""
            message = f"Cannot use{where or ' a file'}: {error.strerror}."
            return cls("file", message, "Check the path, permissions and space.", 2)
        if isinstance(error, ModuleNotFoundError) and (extra := extra_of(error.name or "")):
            return cls(
                "usage",
                f"This needs the extra {extra!r}, which is not installed (no module {error.name}).",
                f"Install it: pip install 'aegis-advisor[{extra}]'.",
                2,
            )
        name = type(error).__name__
        return cls("internal", f"{name}: {error}".rstrip(": "), _REPORT, InternalError.exit_code)

    def show(self, *, as_json: bool) -> None:
        """Write the failure to standard error, for people or as JSON."""
        if as_json:
            error = {"kind": self.kind, "message": self.message, "hint": self.hint}
            write_json(sys.stderr, {"error": error})
            return
        print_error(*(line for line in (self.message, self.hint) if line))


def extra_of(module: str) -> str | None:
    """Return the extra of Aegis that installs a module, for example "service" for "uvicorn"; None
    if there is none. The module may be the first or last word of a package's name, as in
    argon2-cffi and python-multipart.
    """
    top = module.partition(".")[0]
    for text in _requirements():
        name, _, marker = text.partition(";")
        package = re.split(r"[\[<>=!~ ]", name.strip(), maxsplit=1)[0]
        words = package.replace("-", "_"), package.split("-")[0], package.split("-")[-1]
        if top in words and (extra := re.search(r"extra == ['\"](\w+)['\"]", marker)):
            return extra[1]
    return None


def _requirements() -> list[str]:
    try:
        return requires("aegis-advisor") or []
    except PackageNotFoundError:  # run from a folder that was never installed
        return []


_REPORT = (
    "This is a bug in Aegis, not your mistake: please report it with the command and the "
    "traceback that AEGIS_DEBUG=1 shows."
)


def fail(error: Exception, arguments: Sequence[str], outputs: Sequence[str] = ()) -> int:
    """Print `error` and return the exit code; with AEGIS_DEBUG=1, the traceback first."""
    if os.environ.get("AEGIS_DEBUG") == "1":
        write(sys.stderr, "".join(traceback.format_exception(error)))
    failure = Failure.of(error, arguments)
    LOG.error("%s", clean(f"{failure.message} {failure.hint}".strip()))
    if outputs:
        hint = " ".join((failure.hint, *written_before(outputs))).strip()
        failure = replace(failure, hint=hint)
    try:
        failure.show(as_json=wants_json(arguments))
    except (
        MemoryError,
        ImportError,
        OSError,
    ):  # even of what draws the block, or of files to load it
        write(sys.stderr, f"Error: {clean(failure.message)}\n       {clean(failure.hint)}\n")
    return failure.exit_code


def fail_to_show(why: OSError, arguments: Sequence[str], outputs: Sequence[str]) -> int:
    """Report that results could not be displayed; return 0 if all files (`outputs`) had been written.
    A pipe that another program closed is no error, and there is no message.
    """
    closed = isinstance(why, BrokenPipeError)
    if outputs:
        if not closed:
            reason = why.strerror or str(why)
            print_note(f"results could not be shown: {reason}. {' '.join(written_before(outputs))}")
        return 0
    if closed:
        return CLOSED_PIPE
    failure = Failure(
        "file",
        f"Cannot write to standard output: {why.strerror or why}.",
        "Check where it goes.",
        2,
    )
    failure.show(as_json=wants_json(arguments))
    return failure.exit_code


def written_before(outputs: Sequence[str]) -> list[str]:
    """Return one sentence on the files that were written before a run ended, if any."""
    return [f"Written: {', '.join(map(clean, outputs))}."] if outputs else []


def wants_json(arguments: Sequence[str]) -> bool:
    """Return whether the arguments request JSON, even if they cannot be parsed."""
    for option, value in zip(arguments, [*arguments[1:], ""], strict=True):
        name, _, inline = option.partition("=")
        if name in ("--format", "-f") and (inline or value).lower() == "json":
            return True
        if option.lower() == "-fjson":
            return True
    return False


def _kind(error: AegisError) -> str:
    return re.sub(r"(?<!^)(?=[A-Z])", "_", type(error).__name__).lower().removesuffix("_error")


def _sentence(text: str) -> str:
    """Return a message of the parser as one line, without the name of the exception."""
    text = text.replace("\n\t", " ")
    return text if text.endswith((".", "?", "!")) else f"{text}."


def _usage_message(error: Any, arguments: Sequence[str]) -> str:
    """Return the parser's message, which stops at the first missing option, with all of these."""
    message: str = error.format_message()
    if not hasattr(error, "param_type") or None in (error.ctx, error.param):  # nothing is missing
        return message
    others = [
        max(option.opts, key=len)
        for option in error.ctx.command.params
        if option.required
        and option is not error.param
        and option.param_type_name == "option"
        and not any(word.startswith(tuple(option.opts)) for word in arguments)
    ]
    return f"{_sentence(message)} Also missing: {', '.join(others)}." if others else message


def _suggest_format(error: Any) -> None:
    """Let the error of `--json` or `--csv` suggest `--format json`."""
    value = getattr(error, "option_name", "").lstrip("-")
    if value in ("json", "csv") and hasattr(error, "possibilities") and error.ctx is not None:
        options = [name for option in error.ctx.command.params for name in option.opts]
        error.possibilities = [f"--format {value}"] if "--format" in options else []


def _usage_hint(error: Exception, arguments: Sequence[str]) -> str:
    context = getattr(error, "ctx", None)
    # Of an option without its value the parser does not say whose it is. No option before the
    # command's name takes one.
    words = [word for word in arguments if not word.startswith("-")]
    command = " ".join(["aegis", *words[:1]]) if context is None else context.command_path
    return f"`{command} --help` shows what the command takes, with examples."
