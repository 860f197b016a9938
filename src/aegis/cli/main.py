"""Run `aegis VERB`, where each verb calls a public function, and show the help of verbs.

`--help` explains at most ten options, and lists the names of the others in groups. `--help-all`
explains all options. A command names its most important options in `FIRST`; by default, these are
the options that belong to no shared group.
"""

from __future__ import annotations

import atexit
import copy
import functools
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
from typer.core import TyperCommand, TyperGroup, TyperOption

from aegis._version import __version__
from aegis.blas import addresses_limited, guard_loading
from aegis.cli import output, startup
from aegis.cli.failures import INTERRUPTED, fail, fail_to_show, written_before
from aegis.cli.listing import LISTINGS
from aegis.cli.output import Output
from aegis.cli.parameters import has_defaults, read_defaults, with_numbers_checked
from aegis.errors import PackageWarning, PolicyError, RenamedWarning
from aegis.files import is_interrupt, recording, watching
from aegis.registry import Extensions

if TYPE_CHECKING:
    from types import ModuleType

MOST = 10
"""Number of options that `--help` explains."""
SHOWN_EXAMPLES = 4
"""Number of examples that `--help` shows."""
EXAMPLES_HEAD = "\n\nExamples:\n\n"
_HELP_ALL = "help_all"
_READING = "How the table is read"
_SYNTAX = ("encoding", "delimiter", "quote", "escape", "header")
_VALUES = ("decimal", "thousands", "units", "null", "dates", "text", "numbers", "sheet")
_SHARED: Mapping[str, tuple[str, ...]] = {
    "Where the table is": ("table_name", "memory_limit", "engine", "master"),
    "What is printed": ("format", "quiet", "force", "seed", "top", "explain", "no_values"),
    "What is ranked": ("configurations", "generate", "search", "methods", "resume", "proxy"),
    "How it is ranked": ("measure", "merit", "models", "objective", "prefer", "estimate", "exact"),
    "What the rule covers": ("after", "leave_out", "population", "person", "rule_override"),
    "Signatures": ("sign", "verify_key", "signing_key", "key_file"),
    _READING: _SYNTAX + _VALUES,
}
"""Groups of options that several commands have, by the parameter that they fill."""
_PANELS = {name: panel for panel, names in _SHARED.items() for name in names}
ALIASES = {
    "check": "audit",
    "verify": "audit",
    "audit-summary": "leak",
    "audit-together": "compose",
}
"""Other names for commands whose names are hard to guess."""
_OTHER_OPTIONS = {
    "merit": "--metric",
    "methods": "--methods",
    "after": "--earlier-release",
    "like": "--same-groups-as",
    "know": "--known",
}
"""Other words for options that nobody guesses, by the parameter that they fill."""


def panel_of(name: str) -> str | None:
    """Return the heading of an option that several commands share; None if it has none."""
    return _PANELS.get(name)


class PanelCommand(TyperCommand):
    """A command whose `--help` explains the most important options, and names the others."""

    first: tuple[str, ...] = ()

    def __init__(self, name: str | None, **settings: Any) -> None:
        super().__init__(name, **settings)
        _name_plainly(self.params)
        options = [each for each in self.params if isinstance(each, TyperOption)]
        if all(each.name != _HELP_ALL for each in options):
            return
        foremost = self._foremost()
        self.params.sort(key=lambda each: _help_order(each, foremost))
        for each in options:
            if each.name not in foremost and each.rich_help_panel is None:
                each.rich_help_panel = panel_of(each.name or "") or "More"

    def _foremost(self) -> tuple[str, ...]:
        """Return the names of the options that the help explains before all others."""
        if self.first:
            return (*self.first, _HELP_ALL)
        ungrouped = (
            each.name
            for each in self.params
            if isinstance(each, TyperOption)
            and each.rich_help_panel is None
            and panel_of(each.name or "") is None
        )
        return (*tuple(name for name in ungrouped if name)[:MOST], _HELP_ALL)

    def get_help_option(self, ctx: Any) -> Any:
        """Return the option `--help`, displayed as a switch."""
        return _switch(super().get_help_option(ctx))

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Write the help. `--help-all` explains all options, `--help` only the most important ones."""
        command = self if ctx.meta.get(_HELP_ALL) else self._short()
        TyperCommand.format_help(command, ctx, formatter)

    def _short(self) -> PanelCommand:
        """Return a copy with few examples and the foremost options, for a short help."""
        short = copy.copy(self)
        short.params = [each for each in self.params if getattr(each, "rich_help_panel", 0) is None]
        text, head, examples = (self.help or "").partition(EXAMPLES_HEAD)
        short.help = text + head + "\n".join(examples.splitlines()[:SHOWN_EXAMPLES])
        short.epilog = "\n\n".join(self._others()) or None
        return short

    def _others(self) -> Iterator[str]:
        panels: dict[str, list[str]] = {}
        for each in self.params:
            panel = getattr(each, "rich_help_panel", None)
            if panel is not None:
                panels.setdefault(panel, []).append(_long(each))
        if panels:
            yield "[bold]More options[/bold], explained by --help-all"
        for panel in sorted(panels, key=lambda panel: panel == _READING):
            yield f"[bold]{panel}[/bold]: {', '.join(panels[panel])}"


def _long(option: Any) -> str:
    """Return the first long name of an option."""
    names: list[str] = option.opts
    return next(name for name in names if name.startswith("--"))


class PanelGroup(TyperGroup):
    """The group of all commands; its switches are displayed without a type."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        _name_plainly(self.params)

    def get_help_option(self, ctx: Any) -> Any:
        """Return the option `--help`, displayed as a switch."""
        return _switch(super().get_help_option(ctx))


def _help_order(parameter: Any, foremost: Sequence[str]) -> int:
    """Return a key that sorts parameters: arguments, `foremost` options, all others."""
    if not isinstance(parameter, TyperOption):
        return -1
    return foremost.index(parameter.name) if parameter.name in foremost else len(foremost)


def _switch(option: Any) -> Any:
    """Return the option; if it is a switch, its help shows no type."""
    if option is not None and option.is_flag and option.metavar is None:
        option.metavar = ""
    return option


def _name_plainly(params: list[Any]) -> None:
    """Hide the type of switches in the help, and accept the alternative names of options."""
    for each in params:
        if isinstance(each, TyperOption):
            _switch(each)
            if each.name in _OTHER_OPTIONS and _OTHER_OPTIONS[each.name] not in each.opts:
                each.opts.append(_OTHER_OPTIONS[each.name])


def _show_all(context: typer.Context, help_all: bool) -> None:
    if help_all:
        context.meta[_HELP_ALL] = True
        typer.echo(context.get_help(), color=context.color)
        context.exit()


def with_help_all(command: Callable[..., None]) -> Callable[..., None]:
    """Add an option `--help-all` to a command that has many options."""
    signature = inspect.signature(command, eval_str=True)
    if len(signature.parameters) <= MOST + 1:
        return command

    @functools.wraps(command)
    def explained(**arguments: Any) -> None:
        del arguments[_HELP_ALL]
        command(**arguments)

    more = inspect.Parameter(
        _HELP_ALL, inspect.Parameter.KEYWORD_ONLY, default=False, annotation=_HelpAll
    )
    explained.__signature__ = signature.replace(  # type: ignore[attr-defined]
        parameters=[*signature.parameters.values(), more]
    )
    explained.__annotations__ = {**command.__annotations__, _HELP_ALL: _HelpAll}
    return explained


_HelpAll = Annotated[
    bool,
    typer.Option(
        "--help-all", is_eager=True, callback=_show_all, help="Explain all options, then exit."
    ),
]


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
PACKAGE_COMMANDS = Extensions("command")
"""Verbs that other packages of Aegis, and installed packages, add through the entry points
`aegis.commands`.
"""


class Command(Protocol):
    """A command: a module or object with a function, whose docstring is the help, and examples."""

    @property
    def command(self) -> Callable[..., None]:
        """The function of the command, with its options as the library typer reads them."""

    @property
    def EXAMPLES(self) -> tuple[str, ...]:  # noqa: N802 - modules have it, and write constants so
        """Lines of examples in the help."""


def _commands(verb: str) -> Mapping[str, Command]:
    """Return the command `verb`, or all its subcommands, by name."""
    module: Any = LISTINGS.get(verb)
    if verb in VERBS and module is None:
        module = import_module(f"aegis.cli.{verb}")
    elif module is None:
        module = PACKAGE_COMMANDS.load(verb)
    if hasattr(module, "VERBS"):
        return {f"{verb} {name}": command for name, command in module.VERBS.items()}
    return {verb: module}


@cache
def all_commands() -> Mapping[str, Command]:
    """Return every command by name, after importing all their modules. A command that cannot be
    imported is left out, with a warning that names the package.
    """
    commands: dict[str, Command] = {}
    for verb in dict.fromkeys((*VERBS, *PACKAGE_COMMANDS.names())):
        try:
            commands |= _commands(verb)
        except PolicyError as error:
            warnings.warn(str(error), PackageWarning, stacklevel=2)
    return commands


def _app(commands: Mapping[str, Command]) -> typer.Typer:
    """Return a command line application with these commands."""
    application = typer.Typer(
        name="aegis",
        help=ABOUT,
        cls=PanelGroup,
        add_completion=True,
        rich_markup_mode="rich",
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["--help", "-h"]},
    )
    application.callback(invoke_without_command=True)(start)
    groups: dict[str, typer.Typer] = {}
    for name, command in commands.items():
        group, _, verb = name.rpartition(" ")
        if group and group not in groups:
            home = PACKAGE_COMMANDS.load(group)
            groups[group] = typer.Typer(help=_about(home))
            application.add_typer(
                groups[group],
                name=group,
                no_args_is_help=True,
                rich_help_panel=getattr(home, "PANEL", None),
            )
        _add(groups[group] if group else application, verb, command)
    return application


def _about(module: ModuleType) -> str:
    """Return the help of a command with subcommands: the docstring of its module, in one line."""
    return " ".join((module.__doc__ or "").split())


@cache
def _whole_app() -> typer.Typer:
    return _app(all_commands())


def __getattr__(name: str) -> Any:
    """Return `app`, the whole command line, or `COMMANDS`, on first use."""
    if name == "app":
        return _whole_app()
    if name == "COMMANDS":
        return all_commands()
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def _version(version: bool) -> None:
    if version:
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
    output.listen(context.obj or (), verbose=verbose, file=log_file)
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


def _add(app: typer.Typer, verb: str, module: Command) -> None:
    """Register a command under the name `verb`. Its docstring and examples are its help."""
    command = module.command
    paragraphs = inspect.cleandoc(command.__doc__ or "").split("\n\n")
    text = "\n\n".join(paragraph.replace("\n", " ") for paragraph in paragraphs)
    examples = "\n".join(f"  {example}" for example in module.EXAMPLES)
    help_text = f"{text}{EXAMPLES_HEAD}{examples}".replace("[", r"\[")
    command_class = type("PanelCommand", (PanelCommand,), {"first": getattr(module, "FIRST", ())})
    panel = VERBS.get(verb, getattr(module, "PANEL", None))
    app.command(verb, cls=command_class, help=help_text, rich_help_panel=panel)(
        with_help_all(with_numbers_checked(command))
    )


_PRINTED_ONCE = (RenamedWarning, PackageWarning)
"""Warnings of Python that users of the command line see."""


def run(arguments: Sequence[str]) -> int:
    """Run one command, given the words after `aegis`, and return the exit code. Every failure
    becomes one clear error block.
    """
    output.start()
    with output.until_the_end(), watching(), _warnings_printed_once(), recording() as outputs:
        code = _run(arguments, outputs)
        output.LOG.info("exit code %d", code)
        output.flush()
        why = output.lost()
        if code == 0 and why is not None:
            code = fail_to_show(why, arguments, outputs)
            output.flush()
        return code


@contextmanager
def _warnings_printed_once() -> Iterator[None]:
    """Within this context, print each warning about former names and unusable packages only once."""
    printed: set[str] = set()
    with warnings.catch_warnings():
        for category in _PRINTED_ONCE:
            warnings.simplefilter("always", category)
        before = warnings.showwarning

        def show(message: Warning | str, category: type[Warning], *where: Any) -> None:
            if not issubclass(category, _PRINTED_ONCE):
                before(message, category, *where)
            elif str(message) not in printed:
                printed.add(str(message))
                Output().warn([str(message)])

        warnings.showwarning = show  # type: ignore[assignment]
        yield


def _foremost(arguments: Sequence[str]) -> tuple[list[str], list[str]]:
    """Split the arguments into the global options, wherever they are, and all other words."""
    first: list[str] = []
    rest: list[str] = []
    words = iter(arguments)
    for word in words:
        if word == "--":
            rest += [word, *words]
        elif word in ("-v", "--verbose") or word.startswith("--log-file="):
            first.append(word)
        elif word == "--log-file":
            first += [word, *([] if (file := next(words, None)) is None else [file])]
        else:
            rest.append(word)
    return first, rest


def _run(arguments: Sequence[str], outputs: Sequence[str]) -> int:
    try:
        first, rest = _foremost(arguments)
        rest[:1] = [ALIASES.get(word, word) for word in rest[:1]]
        verb = rest[0] if rest else ""
        alone = not has_defaults() and (verb in VERBS or verb in PACKAGE_COMMANDS)
        command: Any = typer.main.get_command(_app(_commands(verb)) if alone else _whole_app())
        code = command.main(
            args=[*first, *rest],
            prog_name="aegis",
            standalone_mode=False,
            obj=tuple(arguments),
            default_map=read_defaults(command),
        )
    except BrokenPipeError as error:  # of what a library prints
        output.lose(sys.stdout, error)
        code = 0
    except (KeyboardInterrupt, typer.Abort) as error:
        if isinstance(
            error.__cause__, EOFError
        ):  # Typer reads a file that ends too early as Ctrl-D
            return fail(error.__cause__, arguments, outputs)
        code = INTERRUPTED
    except Exception as error:  # noqa: BLE001 - the outermost place: nothing escapes unexplained
        if not is_interrupt(error):
            return fail(error, arguments, outputs)
        code = INTERRUPTED
    if code == INTERRUPTED:
        output.write(sys.stderr, f"{' '.join(('Interrupted.', *written_before(outputs)))}\n")
    return int(code or 0)


def process() -> None:
    """Run the command line as a process that ends immediately afterwards: the entry point."""
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
    output.open_missing()
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
