"""Read the cases of ARX's test sources: Java expressions, as far as those cases are written in them.

Nothing is executed: constructors, calls and literals become nested tuples, and who reads them says
what they mean.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_TOKEN = re.compile(
    r"""\s+|//[^\n]*|/\*.*?\*/
    |("(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'
    |\d[\d.]*(?:[eE][-+]?\d+)?[dDfFlL]?|\.\d+(?:[eE][-+]?\d+)?[dD]?|\w+|.)""",
    re.DOTALL | re.VERBOSE,
)
_CASE = re.compile(r"new (ARXAnonymizationTestCase|ARXUtilityMetricsTestCase)\(")
_LITERALS = {"null": None, "true": True, "false": False}


@dataclass(frozen=True)
class New:
    """A constructor call, or an array of its elements."""

    name: str
    arguments: tuple[Any, ...]


@dataclass(frozen=True)
class Call:
    """A method call; `on` is what it is called on, None for a function of the same class."""

    on: Any
    name: str
    arguments: tuple[Any, ...]


@dataclass(frozen=True)
class Name:
    """A constant or variable."""

    text: str


@dataclass(frozen=True)
class Case:
    """One case of a test class.

    Attributes
    ----------
    source, number
        The class, and the place of the case in it from 0.
    utility
        Whether it expects the losses of given transformations, rather than an optimum.
    arguments
        What the case is made of, the configuration first.
    weighted
        Whether a function around the case sets weights of attributes.
    """

    source: str
    number: int
    utility: bool
    arguments: tuple[Any, ...]
    weighted: bool = False


class Reader:
    """Reads one expression from a place in a text."""

    def __init__(self, text: str, place: int) -> None:
        self._tokens = _tokens(text, place)
        self._next: str | None = next(self._tokens)

    def expression(self) -> Any:
        """Return the expression that starts here."""
        sign = 1
        while self._next in ("+", "-"):
            sign = -sign if self._take() == "-" else sign
        value = self._primary()
        while self._next == ".":
            self._take()
            value = Call(value, self._take(), self._list("(", ")"))
        return sign * value if sign < 0 else value

    def _primary(self) -> Any:
        token = self._next or ""
        if token == "(":
            return self._cast()
        if token == "new":
            return self._new()
        if token[0] in "\"'":
            return self._take()[1:-1]
        if token[0].isdigit() or token[0] == ".":
            return _number(self._take())
        name = self._name()
        if self._next == "(":
            on, _, method = name.rpartition(".")
            return Call(Name(on) if on else None, method, self._list("(", ")"))
        return _LITERALS[name] if name in _LITERALS else Name(name)

    def _cast(self) -> Any:
        self._take()
        value = self.expression()
        self._take()
        return value if self._next in (",", ")", ".", "}") else self.expression()

    def _new(self) -> New:
        self._take()
        name = self._name()
        if self._next != "[":
            return New(name, self._list("(", ")"))
        self._take()
        if self._next != "]":
            length = self.expression()
            self._take()
            return New(name, (length,))
        self._take()
        return New(name, self._list("{", "}"))

    def _list(self, start: str, end: str) -> tuple[Any, ...]:
        self._expect(start)
        values = []
        while self._next != end:
            values.append(self.expression())
            if self._next == ",":
                self._take()
        self._take()
        return tuple(values)

    def _name(self) -> str:
        name = self._take()
        while self._next == ".":
            self._take()
            name += "." + self._take()
        return name

    def _take(self) -> str:
        token = self._next
        if token is None:
            raise ValueError("The text ends within an expression.")
        self._next = next(self._tokens, None)
        return token

    def _expect(self, token: str) -> None:
        if self._take() != token:
            raise ValueError(f"{token!r} was expected.")


def read_cases(folder: Path) -> Iterator[Case]:
    """Yield the cases of all test classes of a folder."""
    for file in sorted(folder.glob("*.java")):
        text = file.read_text(encoding="utf-8")
        for number, match in enumerate(_CASE.finditer(text)):
            value = Reader(text, match.start()).expression()
            yield Case(
                file.stem,
                number,
                match[1] == "ARXUtilityMetricsTestCase",
                value.arguments,
                text[: match.start()].endswith("weight("),
            )


def _tokens(text: str, place: int) -> Iterator[str]:
    while place < len(text):
        match = _TOKEN.match(text, place)
        if match is None:
            return
        place = match.end()
        if match[1]:
            yield match[1]


def _number(token: str) -> int | float:
    if re.fullmatch(r"\d+[lL]?", token):
        return int(token.rstrip("lL"))
    return float(token.rstrip("dDfFlL"))


class JavaRandom:
    """The generator `java.util.Random`, as its documentation defines it: a congruence of 48 bits."""

    def __init__(self, seed: int) -> None:
        self._state = (seed ^ _MULTIPLIER) & _MASK

    def _bits(self, count: int) -> int:
        self._state = (self._state * _MULTIPLIER + 0xB) & _MASK
        return self._state >> (48 - count)

    def uniform(self) -> float:
        """Return the next number from 0, below 1 (`nextDouble`)."""
        high = self._bits(26)
        return ((high << 27) + self._bits(27)) * 2.0**-53

    def below(self, bound: int) -> int:
        """Return the next whole number from 0, below `bound` (`nextInt`)."""
        if bound & -bound == bound:
            return (bound * self._bits(31)) >> 31
        while True:
            bits = self._bits(31)
            if bits - bits % bound + bound - 1 < 1 << 31:
                return bits % bound


_MULTIPLIER = 0x5DEECE66D
_MASK = (1 << 48) - 1
SEED = 0xDEADBEEF - (1 << 32)
"""The seed of ARX's tests: a literal of 32 bits, which Java takes for a negative number."""
