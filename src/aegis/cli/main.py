"""Run `aegis VERB`; each verb calls a public function."""

from __future__ import annotations

import atexit
import inspect
import os
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Protocol

import typer

from aegis._version import __version__
from aegis.blas import guard_loading
from aegis.cli import logs, startup, streams
from aegis.cli.defaults import has_defaults, read_defaults
from aegis.cli.failures import INTERRUPTED, fail, fail_to_show, written_before
from aegis.cli.listing import LISTINGS
from aegis.cli.output import Output
from aegis.cli.panels import (
    ALIASES,
    EXAMPLES_HEAD,
    PanelGroup,
    command_class,
    with_help_all,
)
from aegis.cli.parameters import with_numbers_checked
from aegis.errors import PackageWarning, PolicyError, RenamedWarning
from aegis.files import recording
from aegis.interrupts import is_interrupt, watching
from aegis.limits import addresses_limited
from aegis.registry import Extensions

if TYPE_CHECKING:
    from types import ModuleType

ABOUT = """Keep the most predictive value of a table under a privacy rule.

Start with a table and the label to predict:

  aegis init table.csv --label income -o policy.yaml
  aegis advise table.csv -p policy.yaml -o best.yaml
  aegis apply table.csv -p policy.yaml -c best.yaml -o masked.parquet
  aegis audit masked.parquet -p policy.yaml

Results go to standard output, progress and errors to standard error.
Exit code: 0 done; 1 no admissible configuration, or a failed audit;
2 bad input; 70 a bug; 130 interrupted."""

_RELEASE = "From a table to a release"
_COUNTS = "Work from counts instead of rows"
_CHECK = "Check a table or a release"
_EXPLAIN = "Explain what a policy can name"
VERBS = {
    "init": _RELEASE,
    "summarize": _COUNTS,
    "merge": _COUNTS,
    "advise": _RELEASE,
    "apply": _RELEASE,
    "anonymize": _RELEASE,
    "sql": _RELEASE,
    "audit": _CHECK,
    "risk": _CHECK,
    "compose": _CHECK,
    "report": _RELEASE,
    "keygen": _COUNTS,
    "masks": _EXPLAIN,
    "anonymizers": _EXPLAIN,
    "measures": _EXPLAIN,
    "privacy-models": _EXPLAIN,
}
"""The verbs of the core in the order of the help, each with its group in the help.

Each verb is a module of this package, or one of the `LISTINGS`. Other packages of Aegis name the
group of their verb in `PANEL`.
"""
ADDED = Extensions("command")
"""Verbs that other packages of Aegis, and installed packages, add through the entry points
`aegis.commands`.
"""


class Command(Protocol):
    """A verb: a module or record with a function and examples. The function's docstring is the help
    of the verb.
    """

    @property
    def command(self) -> Callable[..., None]:
        """The function of the verb, with its options as typer reads them."""

    @property
    def EXAMPLES(self) -> tuple[str, ...]:  # noqa: N802 - modules have it, and write constants so
        """Lines of examples in the help."""


def _commands(verb: str) -> Mapping[str, Command]:
    """Return the commands of one verb by name; several if the verb has subcommands (`VERBS`)."""
    module: Any = LISTINGS.get(verb)
    if verb in VERBS and module is None:
        module = import_module(f"aegis.cli.{verb}")
    elif module is None:
        module = ADDED.load(verb)
    if hasattr(module, "VERBS"):
        return {f"{verb} {name}": command for name, command in module.VERBS.items()}
    return {verb: module}


def _all_verbs() -> tuple[str, ...]:
    return (*VERBS, *(name for name in ADDED.names() if name not in VERBS))


@cache
def all_commands() -> Mapping[str, Command]:
    """Return every command by name, after importing all their modules.

    A command of a package that cannot be imported is left out, with a warning that names the
    package.
    """
    commands: dict[str, Command] = {}
    for verb in _all_verbs():
        try:
            commands |= _commands(verb)
        except PolicyError as error:
            warnings.warn(str(error), PackageWarning, stacklevel=2)
    return commands


def _app(commands: Mapping[str, Command]) -> typer.Typer:
    """Return a command line application with these commands."""
    made = typer.Typer(
        name="aegis",
        help=ABOUT,
        cls=PanelGroup,
        add_completion=True,
        rich_markup_mode="rich",
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["--help", "-h"]},
    )
    made.callback(invoke_without_command=True)(start)
    groups: dict[str, typer.Typer] = {}
    for name, command in commands.items():
        group, _, verb = name.rpartition(" ")
        if group and group not in groups:
            home = ADDED.load(group)
            groups[group] = typer.Typer(help=_about(home))
            made.add_typer(
                groups[group],
                name=group,
                no_args_is_help=True,
                rich_help_panel=getattr(home, "PANEL", None),
            )
        _add(groups[group] if group else made, verb, command)
    return made


def _about(module: ModuleType) -> str:
    """Return the help of a verb with subcommands: its module docstring, in one line."""
    return " ".join((module.__doc__ or "").split())


@cache
def _whole_app() -> typer.Typer:
    return _app(all_commands())


def _app_for(arguments: Sequence[str]) -> typer.Typer:
    """Return an application for these arguments: with a single command, if they name one."""
    verb = arguments[0] if arguments else ""
    return _app(_commands(verb)) if verb in VERBS or verb in ADDED else _whole_app()


def __getattr__(name: str) -> Any:
    """Return `app`, the whole command line, or `COMMANDS`, on first use."""
    if name == "app":
        return _whole_app()
    if name == "COMMANDS":
        return all_commands()
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"aegis {__version__}")
        raise typer.Exit


def start(
    context: typer.Context,
    version: Annotated[  # noqa: ARG001 - the callback has answered it
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")
    ] = False,
    verbose: Annotated[
        bool,
        typer.Option("--verbose", "-v", help="Print each step and its time to standard error."),
    ] = False,
    log_file: Annotated[
        Path | None,
        typer.Option(
            "--log-file", metavar="FILE", help="Append the messages of --verbose to this file."
        ),
    ] = None,
) -> None:
    """Show the help when no command is given."""
    logs.listen(context.obj or (), verbose=verbose, file=log_file)
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


def _add(app: typer.Typer, verb: str, given: Command) -> None:
    """Register a command whose help is its docstring and its examples."""
    command = given.command
    paragraphs = inspect.cleandoc(command.__doc__ or "").split("\n\n")
    text = "\n\n".join(paragraph.replace("\n", " ") for paragraph in paragraphs)
    shown = "\n".join(f"  {example}" for example in given.EXAMPLES)
    shown = f"{text}{EXAMPLES_HEAD}{shown}".replace("[", r"\[")
    made = command_class(getattr(given, "FIRST", ()))
    panel = VERBS.get(verb, getattr(given, "PANEL", None))
    app.command(verb, cls=made, help=shown, rich_help_panel=panel)(
        with_help_all(with_numbers_checked(command))
    )


_TOLD = (RenamedWarning, PackageWarning)
"""Warnings of Python that users of the command line see."""


def run(arguments: Sequence[str]) -> int:
    """Run one command and return the exit code. Every failure becomes one clear error block.

    Parameters
    ----------
    arguments
        The words after `aegis` on the command line.
    """
    streams.start()
    with logs.until_the_end(), watching(), _warnings_told(), recording() as made:
        code = _run(arguments, made)
        logs.LOG.info("exit code %d", code)
        streams.flush()
        why = streams.lost()
        if code == 0 and why is not None:
            code = fail_to_show(why, arguments, made)
            streams.flush()
        return code


@contextmanager
def _warnings_told() -> Iterator[None]:
    """Print each warning about former names and unusable packages only once."""
    told: set[str] = set()
    with warnings.catch_warnings():
        for category in _TOLD:
            warnings.simplefilter("always", category)
        before = warnings.showwarning

        def show(message: Warning | str, category: type[Warning], *where: Any) -> None:
            if not issubclass(category, _TOLD):
                before(message, category, *where)
            elif str(message) not in told:
                told.add(str(message))
                Output().warn([str(message)])

        warnings.showwarning = show  # type: ignore[assignment]
        yield


def _foremost(arguments: Sequence[str]) -> tuple[list[str], list[str]]:
    """Split the arguments into global options, at any position, and the command with its options."""
    first: list[str] = []
    rest: list[str] = []
    given = iter(arguments)
    for word in given:
        if word == "--":
            rest += [word, *given]
        elif word in ("-v", "--verbose") or word.startswith("--log-file="):
            first.append(word)
        elif word == "--log-file":
            first += [word, *([] if (file := next(given, None)) is None else [file])]
        else:
            rest.append(word)
    return first, rest


def _run(arguments: Sequence[str], made: Sequence[str]) -> int:
    try:
        first, rest = _foremost(arguments)
        rest[:1] = [ALIASES.get(word, word) for word in rest[:1]]
        command: Any = typer.main.get_command(_whole_app() if has_defaults() else _app_for(rest))
        code = command.main(
            args=[*first, *rest],
            prog_name="aegis",
            standalone_mode=False,
            obj=tuple(arguments),
            default_map=read_defaults(command),
        )
    except BrokenPipeError as error:  # of what a library prints
        streams.lose(sys.stdout, error)
        code = 0
    except (KeyboardInterrupt, typer.Abort) as error:
        if isinstance(
            error.__cause__, EOFError
        ):  # Typer reads a file that ends too early as Ctrl-D
            return fail(error.__cause__, arguments, made)
        code = INTERRUPTED
    except Exception as error:  # noqa: BLE001 - the outermost place: nothing escapes unexplained
        if not is_interrupt(error):
            return fail(error, arguments, made)
        code = INTERRUPTED
    if code == INTERRUPTED:
        streams.write(sys.stderr, f"{' '.join(('Interrupted.', *written_before(made)))}\n")
    return int(code or 0)


def process() -> None:
    """Run the command line as a process that ends immediately afterwards. This is the entry point
    of `aegis`.
    """
    codes: list[int] = []
    atexit.register(startup.end, codes)  # registered first, so that it is called last
    try:
        main()
    except SystemExit as ended:
        codes += [ended.code] if isinstance(ended.code, int) else []
        raise


def main() -> None:
    """Run the command line and raise `SystemExit`."""
    startup.start()
    streams.open_missing()
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")
    guard_loading()
    code = run(sys.argv[1:])
    if code and addresses_limited():
        # Engines that got no memory fall over as they are taken down, and their signal would hide
        # the exit code. What was temporary is gone by now.
        os._exit(code)
    sys.exit(code)


if __name__ == "__main__":
    process()
