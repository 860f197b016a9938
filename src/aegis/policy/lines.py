"""YAML with line numbers, so that an error in a policy can say where it is.

Scalars are read as YAML 1.2 reads them (https://yaml.org/spec/1.2.2/#103-core-schema), without its
octal and hexadecimal numbers: `yes`, `no`, `on` and `off` are texts, and so are 2024-01-31, 12:30
and 01234, all of which YAML 1.1 would turn into something else. Keys are texts as they are
written, so that a column may be called 2024, on or null.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import yaml

from aegis.errors import PolicyError

Path = tuple[str | int, ...]

_FLOAT = re.compile(
    r"^[-+]?(?:(?:[0-9]+\.[0-9]*|\.[0-9]+)(?:[eE][-+]?[0-9]+)?|[0-9]+[eE][-+]?[0-9]+"
    r"|\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN))$"
)


class _Loader(yaml.SafeLoader):
    """Reads scalars as YAML 1.2 does, and keys as text."""

    yaml_implicit_resolvers: dict[str, Any] = {}  # noqa: RUF012 - the base class's attribute

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        self.flatten_mapping(node)
        for key, _ in node.value:
            if not isinstance(key, yaml.ScalarNode):
                raise yaml.constructor.ConstructorError(
                    problem="a key is not a plain text", problem_mark=key.start_mark
                )
        return {key.value: self.construct_object(value, deep=deep) for key, value in node.value}


_TAG = "tag:yaml.org,2002:"
_Loader.add_implicit_resolver(
    _TAG + "bool", re.compile(r"^(?:true|True|TRUE|false|False|FALSE)$"), list("tTfF")
)
_Loader.add_implicit_resolver(
    _TAG + "null", re.compile(r"^(?:~|null|Null|NULL|)$"), ["~", "n", "N", ""]
)
_Loader.add_implicit_resolver(
    _TAG + "int", re.compile(r"^[-+]?(?:0|[1-9][0-9]*)$"), list("-+0123456789")
)
_Loader.add_implicit_resolver(_TAG + "float", _FLOAT, list("-+.0123456789"))
_Loader.add_implicit_resolver(_TAG + "merge", re.compile(r"^<<$"), ["<"])


class _Dumper(yaml.SafeDumper):
    """Quotes every text that YAML 1.1 or 1.2 would read as something else."""


_Dumper.add_implicit_resolver(_TAG + "float", _FLOAT, list("-+.0123456789"))


@dataclass(frozen=True)
class Located:
    """A YAML document and where each of its parts stands.

    Attributes
    ----------
    data
        The document as plain Python objects.
    lines
        Path of keys and indices to line number, counted from 1.
    origin
        The file's name, for messages.
    """

    data: Any
    lines: dict[Path, int]
    origin: str

    def where(self, *path: str | int) -> str:
        """Return "file, line n" for the deepest known part of `path`."""
        for end in range(len(path), -1, -1):
            if path[:end] in self.lines:
                return f"{self.origin}, line {self.lines[path[:end]]}"
        return self.origin


def read_yaml(text: str, origin: str, *, remedy: str = "Write a value.") -> Located:
    """Parse `text`; raise `PolicyError` with the line on bad syntax or a repeated key.

    `remedy` is what to do where it holds nothing.
    """
    try:
        loader = _Loader(text)
        try:
            node = loader.get_single_node()
            if node is None:
                raise PolicyError(f"{origin} is empty.", hint=remedy)
            lines: dict[Path, int] = {}
            _walk(node, (), lines, origin)
            return Located(loader.construct_document(node), lines, origin)
        finally:
            loader.dispose()
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else 1
        raise PolicyError(
            f"{origin}, line {line}: not valid YAML ({error.problem}).",
            hint="Check indentation, colons and quotes near that line.",
        ) from error
    except yaml.YAMLError as error:
        raise PolicyError(
            f"{origin}: not valid YAML ({error}).", hint="Save it as UTF-8 text."
        ) from error
    except (RecursionError, ValueError) as error:
        raise PolicyError(
            f"{origin}: not valid YAML: an alias stands for itself, or a number is too long.",
            hint="Write out what the alias stands for.",
        ) from error


def write_yaml(data: Mapping[str, Any]) -> str:
    """Return plain data as YAML that `read_yaml` and readers of YAML 1.1 take alike.

    Raises
    ------
    PolicyError
        A value is none of the plain types of Python.
    """
    try:
        return str(yaml.dump(data, Dumper=_Dumper, sort_keys=False, allow_unicode=True))
    except yaml.representer.RepresenterError as error:
        raise PolicyError(
            f"A policy cannot hold {error.args[1]!r}, of type {type(error.args[1]).__qualname__!r}.",
            hint="Use texts, numbers, booleans, lists and mappings.",
        ) from error


def _walk(node: yaml.Node, path: Path, lines: dict[Path, int], origin: str) -> None:
    lines.setdefault(path, node.start_mark.line + 1)
    if isinstance(node, yaml.MappingNode):
        seen: set[str] = set()
        for key, value in node.value:
            name = str(key.value)
            if name in seen and name != "<<":
                raise PolicyError(
                    f"{origin}, line {key.start_mark.line + 1}: {name!r} is given twice.",
                    hint="Keep one of them.",
                )
            seen.add(name)
            lines[(*path, name)] = key.start_mark.line + 1
            _walk(value, (*path, name), lines, origin)
    elif isinstance(node, yaml.SequenceNode):
        for index, value in enumerate(node.value):
            _walk(value, (*path, index), lines, origin)
