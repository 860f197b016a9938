"""Every public function shows itself by an example, and every example says what comes out."""

from __future__ import annotations

import doctest
import functools
import inspect
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import aegis
from aegis.policy import Policy, policy_digest
from aegis.sources import Source
from aegis.study import subject
from aegis.summary import Summary

ROOT = Path(__file__).parents[2]
NAMES = [name for name in aegis.__all__ if callable(getattr(aegis, name))]


ASKED = ("anonymize", "apply", "evaluate", "rank")
"""Methods of a study that take long, and whose answers examples share."""


def answering_once(ask: Callable[..., Any]) -> Callable[..., Any]:
    """Return a method that answers equal questions about the same table with the same object."""
    known: dict[Any, tuple[Any, Any]] = {}

    @functools.wraps(ask)
    def answered(study: aegis.Study, *given: Any, **options: Any) -> Any:
        if study.source is None or options.keys() & {"output", "certificate", "store"}:
            return ask(study, *given, **options)
        asked = [one if isinstance(one, str) else id(one) for one in given]
        key = (study.source.origin, policy_digest(study.policy), study.seed, *asked, repr(options))
        if key not in known:
            known[key] = given, ask(study, *given, **options)  # kept, so that no other has its id
        return known[key][1]

    return answered


@pytest.fixture(scope="module")
def answered_once() -> Iterator[None]:
    """Let examples share what they know of a table, which each would compute anew."""
    known: dict[tuple[str, str], tuple[Summary, Any]] = {}
    count = subject.summarize_rows

    def remembered(source: Source, policy: Policy, *rest: Any, **options: Any) -> Any:
        key = (source.origin, policy_digest(policy))
        if key not in known:
            known[key] = count(source, policy, *rest, **options)
        return known[key]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(subject, "summarize_rows", remembered)
        for name in ASKED:
            patch.setattr(aegis.Study, name, answering_once(getattr(aegis.Study, name)))
        yield


def described(name: str) -> Iterator[tuple[str, Any]]:
    """Yield what the page of the API describes with examples: a function, a class, its methods."""
    thing = getattr(aegis, name)
    yield name, thing
    own: dict[str, Any] = {}
    for base in reversed(inspect.getmro(thing)) if inspect.isclass(thing) else ():
        if base.__module__.startswith("aegis"):
            own |= vars(base)
    for member, function in own.items():
        if inspect.isfunction(function) and not member.startswith("_"):
            yield f"{name}.{member}", function


TRIED: set[Any] = set()
"""What was run before: two kinds of release inherit the same methods."""


def examples(name: str, thing: Any) -> list[doctest.Example]:
    return doctest.DocTestParser().get_examples(inspect.getdoc(thing) or "", name)


@pytest.mark.parametrize("name", NAMES)
def test_every_public_name_has_an_example(name: str) -> None:
    without = [own for own, thing in described(name) if not examples(own, thing)]
    assert not without


@pytest.mark.usefixtures("answered_once", "unhurried")
@pytest.mark.parametrize("name", NAMES)
def test_examples_say_what_comes_out(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS)
    for own, thing in described(name):
        if thing in TRIED:
            continue
        TRIED.add(thing)
        said: list[str] = []
        runner.run(
            doctest.DocTest(examples(own, thing), {}, own, None, None, None), out=said.append
        )
        assert not said, "".join(said)


@pytest.mark.parametrize("name", aegis.__all__)
def test_every_public_name_is_described(name: str) -> None:
    page = (ROOT / "docs" / "reference" / "python.md").read_text(encoding="utf-8")
    assert name == "__version__" or f"`{name}" in page
