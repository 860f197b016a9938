"""Mutations that know the structure of what they change: trees of plain values, and texts."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from random import Random
from typing import Any

JUNK: tuple[Any, ...] = (
    None,
    True,
    False,
    0,
    -1,
    1,
    2,
    3,
    7,
    100,
    2**31,
    2**53 + 1,
    2**63,
    2**64,
    -(2**63) - 1,
    10**40,
    10**99,
    0.0,
    -0.0,
    0.5,
    1.5,
    1e-9,
    1e300,
    1e308,
    float("inf"),
    float("nan"),
    "",
    " ",
    "a",
    "x" * 300,
    "null",
    "true",
    "yes",
    "1e5",
    "0x10",
    "2024-02-30",
    "2024-01-31",
    "é",
    "\u202e",
    "\U0001f600",
    "'",
    '"',
    "a,b",
    "a;b",
    "a\nb",
    "a\tb",
    "\\",
    "{}",
    "*",
    "-",
    "identity",
    "suppress",
    "k",
    "level",
    "feature",
    "identifier",
    "<<",
    "=",
    "~",
    "..",
    "/etc",
    [],
    {},
    [[]],
    [1, "a"],
    [1, 1],
    {"a": 1},
    {"width": 5},
    {"": None},
)
"""Values that are wrong in most places."""
TOKENS = (
    ":",
    "- ",
    "[",
    "]",
    "{",
    "}",
    "&a ",
    "*a",
    "!!int ",
    "!!str ",
    "!x ",
    "<<: ",
    "|",
    ">",
    "#",
    "'",
    '"',
    "\t",
    "\n",
    "\n\n",
    "---\n",
    "...\n",
    "%YAML 1.1\n",
    "? ",
    "9" * 50,
    "\x00",
    "\ufeff",
    ";",
    ",",
    "NULL",
    "é",
    "\u2028",
    "\r\n",
    "\r",
    "\x1b[31m",
    "\x7f",
)
"""Pieces of text that mean something to some reader."""


def places(tree: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yield the path of every part of a tree of mappings and lists, the whole first."""
    yield path
    if isinstance(tree, dict):
        for key, value in tree.items():
            yield from places(value, (*path, key))
    elif isinstance(tree, list):
        for index, value in enumerate(tree):
            yield from places(value, (*path, index))


def at(tree: Any, path: tuple[Any, ...]) -> Any:
    for key in path:
        tree = tree[key]
    return tree


def mutated_tree(random: Random, tree: Any, times: int = 1) -> Any:
    """Return a copy of a tree of plain values with some of its parts changed."""
    tree = copy.deepcopy(tree)
    for _ in range(times):
        path = random.choice(list(places(tree)))
        if not path:
            continue
        owner, key = at(tree, path[:-1]), path[-1]
        random.choice(_CHANGES)(random, tree, owner, key)
    return tree


def _replace(random: Random, tree: Any, owner: Any, key: Any) -> None:
    owner[key] = copy.deepcopy(random.choice(JUNK))


def _remove(random: Random, tree: Any, owner: Any, key: Any) -> None:
    del owner[key]


def _nudge(random: Random, tree: Any, owner: Any, key: Any) -> None:
    value = owner[key]
    if isinstance(value, bool) or not isinstance(value, int | float):
        owner[key] = copy.deepcopy(random.choice(JUNK))
    else:
        owner[key] = random.choice(
            [value + 1, value - 1, -value, value * 10, value / 3, value * 1e9]
        )


def _rename(random: Random, tree: Any, owner: Any, key: Any) -> None:
    if isinstance(owner, dict):
        value = owner.pop(key)
        junk = str(random.choice(JUNK))
        owner[random.choice([str(key)[:-1], str(key) + "s", str(key).upper(), junk])] = value


def _repeat(random: Random, tree: Any, owner: Any, key: Any) -> None:
    if isinstance(owner, list):
        owner.insert(key, copy.deepcopy(owner[key]))
    else:
        owner[str(random.choice(JUNK))] = copy.deepcopy(owner[key])


def _wrap(random: Random, tree: Any, owner: Any, key: Any) -> None:
    value = owner[key]
    owner[key] = random.choice([[value], {"a": value}, [value, value], {str(value): value}])


def _graft(random: Random, tree: Any, owner: Any, key: Any) -> None:
    """Put a copy of another part of the tree here."""
    owner[key] = copy.deepcopy(at(tree, random.choice(list(places(tree)))))


_CHANGES: tuple[Callable[[Random, Any, Any, Any], None], ...] = (
    _replace,
    _replace,
    _remove,
    _nudge,
    _nudge,
    _rename,
    _repeat,
    _wrap,
    _graft,
)


def mutated_text(random: Random, text: str, times: int = 1) -> str:
    """Return a text with pieces cut, doubled, moved or put in."""
    for _ in range(times):
        start = random.randrange(len(text) + 1)
        end = min(len(text), start + random.choice([0, 1, 1, 2, 5, 20, 200]))
        piece = text[start:end]
        put = random.choice(["", piece + piece, random.choice(TOKENS), piece[::-1], "x"])
        text = text[:start] + put + text[end:]
    return text


def mutated_bytes(random: Random, data: bytes, times: int = 1) -> bytes:
    """Return bytes with some flipped, cut, doubled or put in."""
    changed = bytearray(data)
    for _ in range(times):
        if not changed:
            return bytes(changed)
        place = random.randrange(len(changed))
        kind = random.randrange(5)
        if kind < 2:
            changed[place] ^= 1 << random.randrange(8)
        elif kind == 2:
            del changed[place : place + random.choice([1, 4, 100])]
        elif kind == 3:
            changed[place:place] = changed[place : place + random.choice([1, 8, 64])]
        else:
            changed[place] = random.choice([0, 1, 127, 128, 255])
    return bytes(changed)
