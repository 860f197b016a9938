"""Every public function shows itself by an example, and every example says what comes out."""

from __future__ import annotations

import doctest
import inspect
from pathlib import Path

import pytest

import aegis

ROOT = Path(__file__).parents[2]
FUNCTIONS = [name for name in aegis.__all__ if inspect.isfunction(getattr(aegis, name))]
CLASSES = [name for name in aegis.__all__ if inspect.isclass(getattr(aegis, name))]


def examples(name: str) -> list[doctest.DocTest]:
    thing = getattr(aegis, name)
    bases = inspect.getmro(thing) if inspect.isclass(thing) else (thing,)
    finder = doctest.DocTestFinder(exclude_empty=True)
    return [
        test
        for base in bases
        if base.__module__.startswith("aegis")
        for test in finder.find(base, name, module=inspect.getmodule(base))
        if test.examples
    ]


@pytest.mark.parametrize("name", FUNCTIONS)
def test_every_public_function_has_an_example(name: str) -> None:
    assert examples(name), f"aegis.{name} has no example"


@pytest.mark.parametrize("name", [*FUNCTIONS, *CLASSES])
def test_examples_say_what_comes_out(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS)
    for test in examples(name):
        said: list[str] = []
        runner.run(test, out=said.append)
        assert not said, "".join(said)


@pytest.mark.parametrize("name", aegis.__all__)
def test_every_public_name_is_described(name: str) -> None:
    page = (ROOT / "docs" / "reference" / "python.md").read_text(encoding="utf-8")
    assert name == "__version__" or f"`{name}" in page
