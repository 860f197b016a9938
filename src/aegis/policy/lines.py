"""YAML with line numbers, so that an error in a policy can say where it is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import yaml

from aegis.errors import PolicyError

Path = tuple[str | int, ...]


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


def read_yaml(text: str, origin: str) -> Located:
    """Parse `text`; raise `PolicyError` with the line on bad syntax or a repeated key."""
    try:
        node = yaml.compose(text, Loader=yaml.SafeLoader)
        if node is None:
            raise PolicyError(
                f"{origin} is empty.",
                hint="`aegis init TABLE --label COLUMN` writes a first policy.",
            )
        lines: dict[Path, int] = {}
        _walk(node, (), lines, origin)
        return Located(yaml.safe_load(text), lines, origin)
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
