"""Shorten the help of a command: explain the most important options, and only list the names of the
others.

`--help` explains at most ten options, and lists the names of the others in groups. `--help-all`
explains all options. A command names its most important options in `FIRST`; by default, these are
the options that belong to no shared group.
"""

from __future__ import annotations

import copy
import functools
import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup, TyperOption

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
    "Signatures": ("sign", "verify_key", "key_file"),
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
    """Return the group of an option that several commands share; None if it has no group."""
    return _PANELS.get(name)


class PanelCommand(TyperCommand):
    """A command whose `--help` explains the most important options and only lists the names of the
    others.
    """

    first: tuple[str, ...] = ()

    def __init__(self, name: str | None, **given: Any) -> None:
        super().__init__(name, **given)
        _name_plainly(self.params)
        options = [each for each in self.params if isinstance(each, TyperOption)]
        if all(each.name != _HELP_ALL for each in options):
            return
        foremost = self._foremost()
        self.params.sort(key=lambda each: _place(each, foremost))
        for each in options:
            if each.name not in foremost and each.rich_help_panel is None:
                each.rich_help_panel = panel_of(each.name or "") or "More"

    def _foremost(self) -> tuple[str, ...]:
        """Return the names of the options that come first."""
        if self.first:
            return (*self.first, _HELP_ALL)
        own = (
            each.name
            for each in self.params
            if isinstance(each, TyperOption)
            and each.rich_help_panel is None
            and panel_of(each.name or "") is None
        )
        return (*tuple(name for name in own if name)[:MOST], _HELP_ALL)

    def get_help_option(self, ctx: Any) -> Any:
        """Return the option `--help`, displayed as a switch."""
        return _switch(super().get_help_option(ctx))

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Write the help. `--help-all` explains all options, `--help` only the most important ones."""
        whole = bool(ctx.meta.get(_HELP_ALL))
        shown = self if whole else self._short()
        TyperCommand.format_help(shown, ctx, formatter)

    def _short(self) -> PanelCommand:
        """Return the command with few examples and its first options; the others only as names."""
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

    def __init__(self, **given: Any) -> None:
        super().__init__(**given)
        _name_plainly(self.params)

    def get_help_option(self, ctx: Any) -> Any:
        """Return the option `--help`, displayed as a switch."""
        return _switch(super().get_help_option(ctx))


def command_class(first: tuple[str, ...]) -> type[PanelCommand]:
    """Return the class of a command whose help explains these options first."""
    return type("PanelCommand", (PanelCommand,), {"first": first})


def _place(parameter: Any, foremost: Sequence[str]) -> int:
    """Return the sort position of a parameter: arguments, then first options, then others."""
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


def _show_all(context: typer.Context, wanted: bool) -> None:
    if wanted:
        context.meta[_HELP_ALL] = True
        typer.echo(context.get_help(), color=context.color)
        context.exit()


def with_help_all(command: Callable[..., None]) -> Callable[..., None]:
    """Add an option `--help-all` to a command that has many options."""
    signature = inspect.signature(command, eval_str=True)
    if len(signature.parameters) <= MOST + 1:
        return command

    @functools.wraps(command)
    def explained(**given: Any) -> None:
        del given[_HELP_ALL]
        command(**given)

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
