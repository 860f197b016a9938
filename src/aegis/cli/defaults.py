"""Read the defaults of options from the files of the folder, the project and the user."""

from __future__ import annotations

import os
import sys
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from aegis.errors import PolicyError, choices
from aegis.files import read_text

FOLDER = "aegis.toml"
"""The file in the current folder that overrides all others."""
PROJECT = "pyproject.toml"
"""The file of a project in the current folder; its table `tool.aegis` has defaults."""
VARIABLE = "AEGIS_CONFIG"
"""The environment variable that names another file instead of the user's file; if it is empty, the
user has no file.
"""
_NEVER = ("help", "version", "install-completion", "show-completion")


def user_file() -> Path | None:
    """Return the path of the user's file of defaults; None if there is none."""
    named = os.environ.get(VARIABLE)
    if named is not None:
        return Path(named) if named else None
    if sys.platform == "win32":
        folder = os.environ.get("APPDATA")
        return Path(folder, "aegis", "config.toml") if folder else None
    folder = os.environ.get("XDG_CONFIG_HOME") or str(Path("~/.config").expanduser())
    return Path(folder, "aegis", "config.toml")


def read_defaults(root: Any) -> dict[str, Any]:
    """Return the defaults of all commands, in the form that the parser of the command line needs.

    Top-level keys apply to all commands that have the option. A section such as `[advise]` applies
    only to this command, and overrides top-level keys. The file of the folder overrides the file of
    the project, which overrides the file of the user. Options on the command line override all
    files.

    Parameters
    ----------
    root
        The group of all commands.

    Raises
    ------
    PolicyError
        A file is not TOML, names an unknown command or option, or has an invalid value for an
        option.
    """
    defaults: dict[str, Any] = {}
    for where, data in _files():
        _merge(defaults, _resolved(root, data, where))
    return defaults


def has_defaults() -> bool:
    """Return whether the user's, project's or folder's file sets defaults of options. To check
    these files, all commands must be loaded.
    """
    return any(data for _, data in _files())


def _files() -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield each file's name and content, from the lowest to the highest priority."""
    own = user_file()
    if own is not None and own.is_file():
        yield str(own), _toml(own)
    if Path(PROJECT).is_file():
        tables = _toml(Path(PROJECT)).get("tool", {})
        yield f"{PROJECT} (tool.aegis)", tables.get("aegis", {})
    if Path(FOLDER).is_file():
        yield FOLDER, _toml(Path(FOLDER))


def _toml(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(read_text(path, "file of defaults", PolicyError))
    except tomllib.TOMLDecodeError as error:
        raise PolicyError(f"{path} is not TOML: {error}.", hint="Write KEY = VALUE.") from error


def _merge(into: dict[str, Any], more: Mapping[str, Any]) -> None:
    for key, value in more.items():
        if isinstance(value, Mapping):
            _merge(into.setdefault(key, {}), value)
        else:
            into[key] = value


def _resolved(command: Any, data: Mapping[str, Any], where: str) -> dict[str, Any]:
    """Return the defaults in `data`, the content of `where`, for a command and its subcommands."""
    below: Mapping[str, Any] = getattr(command, "commands", {})
    everywhere = {k.replace("_", "-"): v for k, v in data.items() if not isinstance(v, Mapping)}
    known = set(_all_options(command))
    for key in everywhere:
        if key not in known:
            raise PolicyError(
                f"{where}: no command has an option {key!r}.", hint=choices(key, known)
            )
    defaults = _applied(command, everywhere, where)
    for name, table in data.items():
        if isinstance(table, Mapping):
            if name not in below:
                raise PolicyError(
                    f"{where}: there is no command {name!r}.", hint=choices(name, below)
                )
            _merge(defaults[name], _resolved(below[name], table, f"{where} [{name}]"))
    return defaults


def _applied(command: Any, everywhere: Mapping[str, Any], where: str) -> dict[str, Any]:
    """Return those defaults in `everywhere` that are options of a command or of its subcommands.
    `where` names the file in error messages.
    """
    options = _options(command)
    defaults: dict[str, Any] = {
        options[key].name: _checked(command, options[key], value, f"{where}: {key}")
        for key, value in everywhere.items()
        if key in options
    }
    for name, subcommand in getattr(command, "commands", {}).items():
        defaults[name] = _applied(subcommand, everywhere, where)
    return defaults


def _options(command: Any) -> dict[str, Any]:
    """Return the options of a command by their long names, without the leading dashes."""
    return {
        spelling.lstrip("-"): option
        for option in command.params
        if option.param_type_name == "option"
        for spelling in option.opts
        if spelling.startswith("--") and spelling.lstrip("-") not in _NEVER
    }


def _all_options(command: Any) -> Iterator[str]:
    yield from _options(command)
    for subcommand in getattr(command, "commands", {}).values():
        yield from _all_options(subcommand)


def _checked(command: Any, option: Any, value: Any, where: str) -> Any:
    """Return the default `value`; raise `PolicyError` if its option does not accept this value."""
    if option.is_flag and not isinstance(value, bool):
        raise PolicyError(f"{where} is {value!r}.", hint="Write true or false.")
    if isinstance(value, list) != bool(option.multiple):
        allowed = "a list" if option.multiple else "one value"
        raise PolicyError(f"{where} is {value!r}.", hint=f"Write {allowed}.")
    try:
        option.process_value(command.context_class(command), value)
    except Exception as error:
        if not hasattr(error, "format_message"):
            raise
        raise PolicyError(f"{where} is {value!r}: {error.message}", hint="Correct it.") from error  # type: ignore[attr-defined]
    return value
