"""Whatever a call has wrong is said in our words, not in those of pydantic."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any, get_args

import httpx
import pytest
from fastapi.dependencies.models import Dependant
from fastapi.routing import APIRoute
from pydantic import BaseModel

from aegis.errors import wrong_value
from aegis.service.api import shapes
from aegis.service.app import API_ROOMS
from aegis.service.catalog.verifying import Answer
from aegis.service.pages import page_routers
from aegis.service.settings import ServiceSettings
from constraint_support import below, errors_of_model, errors_of_type

MODELS = [*below(shapes.Sent), shapes.Uploaded, *below(shapes.Uploaded), Answer, *below(Answer)]


def require_plain(errors: Iterator[dict[str, Any]]) -> None:
    for each in errors:
        said = wrong_value(each)
        assert "another value" not in said, each["type"]
        assert "of the form" not in said, each["type"]
        assert "Input should" not in said, each["type"]


@pytest.mark.parametrize("model", MODELS)
def test_each_error_of_a_body_is_said_in_plain_words(model: type[BaseModel]) -> None:
    require_plain(errors_of_model(model))


def fields_of(dependant: Dependant) -> Iterator[Any]:
    """Yield the fields of a call: in its path, its address, its headers and its form."""
    yield from dependant.path_params
    yield from dependant.query_params
    yield from dependant.header_params
    yield from dependant.body_params
    for inner in dependant.dependencies:
        yield from fields_of(inner)


@pytest.mark.parametrize("local", [True, False])
def test_each_error_of_a_parameter_is_said_in_plain_words(tmp_path, *, local: bool) -> None:
    routers = [] if local else [room.routes.router for room in API_ROOMS]
    routers += page_routers(ServiceSettings(local=local, folder=tmp_path if local else None))
    kinds = {
        repr(field.field_info): Annotated[field.field_info.annotation, field.field_info]
        for router in routers
        for route in router.routes
        if isinstance(route, APIRoute)
        for field in fields_of(route.dependant)
    }
    assert kinds
    for kind in kinds.values():
        if not issubclass(type(get_args(kind)[0]), type(BaseModel)):
            require_plain(errors_of_type(kind))


@pytest.mark.parametrize(
    ("path", "sent", "said"),
    [
        (
            "data-sets",
            {"id": 5, "source": "x", "public_key": "k"},
            "id is 5, not a text.",
        ),
        (
            "data-sets",
            {"id": "a", "source": "x", "public_key": "k", "days": 0, "colour": "red"},
            "days is 0, not a number of 1 or more; colour is unknown.",
        ),
        ("data-sets", {"id": "a"}, "source is missing; public_key is missing."),
        (
            "tokens",
            {"name": "n" * 200, "scopes": []},
            "name is a text of 200 characters, not a text of at most 120 characters; "
            "scopes is a list of 0 entries, not at least 1 entry.",
        ),
        ("tokens", "{", "the call is not JSON: "),
    ],
)
def test_a_wrong_call_says_what_it_has_and_what_is_allowed(place, path, sent, said) -> None:
    headers = {
        "Authorization": f"Bearer {place.tokens['paula']}",
        "Content-Type": "application/json",
    }
    given = {"content": sent} if isinstance(sent, str) else {"json": sent}
    answer = httpx.post(f"{place.url}/api/v1/{path}", headers=headers, **given)
    assert answer.status_code == 422
    assert said in answer.json()["detail"]
