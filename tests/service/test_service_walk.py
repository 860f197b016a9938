"""The example walks a request to its release, or ends with the reason why it cannot."""

from __future__ import annotations

import importlib.util
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType

import pytest
from service_support import POLICY, House, house

from aegis.errors import DataError
from aegis.service import worker
from aegis.service.catalog import CatalogError

WALK = Path(__file__).parents[2] / "examples" / "service" / "walk.py"


@pytest.fixture
def walk(tmp_path) -> ModuleType:
    """The module of the example, with a small policy."""
    spec = importlib.util.spec_from_file_location("walk", WALK)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    module.POLICY = tmp_path / "policy.yaml"
    module.POLICY.write_text(POLICY)
    return module


@contextmanager
def working(place: House) -> Iterator[None]:
    """Let worker and agent do the jobs while the example waits for them."""
    over = threading.Event()

    def work() -> None:
        while not over.wait(0.02):
            place.work()

    thread = threading.Thread(target=work)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


@pytest.mark.parametrize(
    ("step", "message"),
    [
        ("search", "The search failed: The table is away"),
        ("check", "The check failed: Read the output of the agent"),
        ("summarize", "The summary failed: Read the output of the agent"),
    ],
)
def test_the_walk_ends_with_the_error_of_the_job_that_failed(
    inhabited, tmp_path, walk, monkeypatch, step, message
):
    """It waited for ever for an answer that nobody would give."""

    def fail(*_: object, **__: object) -> None:
        raise DataError("The table is away.", hint="Look for it.")

    monkeypatch.setattr(worker.Worker, f"_{step}", fail, raising=False)
    with house(tmp_path / "place", furnished=inhabited) as place:
        place.agent._tasks[step] = fail
        (place.folder / "agent.pub.pem").write_bytes(place.public_pem())
        with working(place), pytest.raises(CatalogError, match=message):
            walk.walk(place.folder, place.url, place.tokens)


def test_the_walk_ends_in_a_verified_file(inhabited, tmp_path, walk, capsys):
    with house(tmp_path / "place", furnished=inhabited) as place:
        (place.folder / "agent.pub.pem").write_bytes(place.public_pem())
        with working(place):
            masked = walk.walk(place.folder, place.url, place.tokens)
        assert masked.is_file()
        assert "signs: released" in capsys.readouterr().out


def test_a_choice_that_fails_is_not_answered_with_an_earlier_one(requested, tmp_path, monkeypatch):
    with house(tmp_path / "place", furnished=requested) as place, place.client("otto") as otto:
        earlier = otto.shown(requested.request)["answer"]
        assert earlier["holds"]

        def fail(*_: object, **__: object) -> None:
            raise DataError("The table is away.")

        monkeypatch.setattr(worker.Worker, "_search", fail)
        with working(place), pytest.raises(CatalogError, match="search failed: The table is away"):
            otto.choose(requested.request)
