"""Requests: records whose fields are options of the command line and keywords of Python."""

from __future__ import annotations

import inspect
import typing
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Annotated, Any

import pytest
import typer

from aegis import requests
from aegis.cli.parameters import takes_records
from aegis.options import documented, group, group_of, keyword, option, options_of, request_with
from aegis.safe import requests as safe_requests

KEYWORDS: dict[type[Any], Any] = {
    requests.SearchRequest: requests.SearchOptions,
    requests.RankRequest: requests.RankOptions,
    requests.ApplyRequest: requests.ApplyOptions,
    requests.AnonymizeRequest: requests.AnonymizeOptions,
    requests.RiskRequest: requests.RiskOptions,
    safe_requests.ProtectRequest: safe_requests.ProtectOptions,
}


def types_of(record: type[Any]) -> dict[str, str]:
    """Return the types of all options of a request as they are written."""
    types: dict[str, str] = {}
    for field in fields(record):
        grouped = group_of(field)
        types |= {field.name: str(field.type)} if grouped is None else types_of(grouped)
    return types


@pytest.mark.parametrize("record", KEYWORDS, ids=lambda record: record.__name__)
def test_keywords_are_the_options_of_the_record(record: type[Any]) -> None:
    keywords = {
        name: getattr(kind, "__forward_arg__", str(kind))
        for name, kind in KEYWORDS[record].__annotations__.items()
    }
    by_position = {"configurations"} if record is requests.RankRequest else set()
    options = {n: k for n, k in types_of(record).items() if n not in by_position}
    assert keywords == options


@pytest.mark.parametrize("record", KEYWORDS, ids=lambda record: record.__name__)
def test_each_option_is_described(record: type[Any]) -> None:
    described = dict(options_of(record))
    assert set(described) == set(types_of(record))
    for name, given in described.items():
        assert given.text.endswith("."), name
        assert f"{name}\n    {given.text}" in (record.__doc__ or "")


@documented
@dataclass(frozen=True, kw_only=True)
class Colours:
    """Colours."""

    paint: str = option("red", "The paint.", "NAME", short="-p")
    shades: tuple[str, ...] = option((), "Shades.", "A,B", name="tint", kind=list[str] | None)


@documented
@dataclass(frozen=True, kw_only=True)
class Wall:
    """A wall."""

    height: float = option(2.5, "The height.", "M")
    colours: Colours = group(Colours)
    builder: object = keyword(None, "Who builds it.")


@dataclass(frozen=True, kw_only=True)
class BuildCommand:
    """A command."""

    plan: Annotated[Path, typer.Argument(metavar="PLAN")]
    quiet: Annotated[bool, typer.Option("--quiet")] = False
    seed: Annotated[int, typer.Option("--seed")] = 0
    wall: Wall
    loud: Annotated[bool, typer.Option("--loud")] = False


def test_keywords_change_a_request_and_its_groups() -> None:
    wall = request_with(Wall, Wall(height=3.0), {"paint": "blue", "builder": 7})
    assert (wall.height, wall.colours.paint, wall.builder) == (3.0, "blue", 7)
    assert request_with(Wall, None, {}) == Wall()
    with pytest.raises(
        TypeError,
        match=r"no 'hight'\. Did you mean 'height'\? Allowed: height, paint, shades, builder",
    ):
        request_with(Wall, None, {"hight": 1})


def test_a_command_has_an_option_for_each_field() -> None:
    made: list[BuildCommand] = []
    seen: list[Any] = []

    def command(given: BuildCommand) -> None:
        made.append(given)

    wrapped = takes_records(command, seen.append)
    parameters = inspect.signature(wrapped).parameters
    # As the fields, then those that every command lists last; what only Python has is no option.
    assert list(parameters) == ["plan", "height", "paint", "tint", "loud", "seed", "quiet"]
    assert parameters["plan"].default is inspect.Parameter.empty
    assert parameters["tint"].default is None
    app = typer.Typer()
    app.command()(wrapped)
    typer.main.get_command(app).main(
        ["plan.txt", "-p", "blue", "--tint", "sky", "--height", "2"], standalone_mode=False
    )
    colours = Colours(paint="blue", shades=["sky"])  # type: ignore[arg-type]
    assert made == [BuildCommand(plan=Path("plan.txt"), wall=Wall(height=2.0, colours=colours))]
    assert seen[0]["tint"] == ["sky"]


def test_the_types_of_a_request_are_resolved_once(monkeypatch: pytest.MonkeyPatch) -> None:
    request_with(requests.SearchRequest, None, {"top": 1})

    def again(*_: Any, **__: Any) -> None:
        raise AssertionError("The types were resolved again.")

    monkeypatch.setattr(typing, "get_type_hints", again)
    assert request_with(requests.SearchRequest, None, {"top": 2}).top == 2
