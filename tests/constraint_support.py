"""Values that break each constraint of pydantic's models, found in their schemas."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from pydantic import BaseModel, TypeAdapter, ValidationError

OTHER = object()
"""A value that no field accepts."""
GOOD: Mapping[str, Any] = {"int": 0, "float": 0.0, "dict": {}, "union": 0}
"""A value that each kind of schema accepts, if it accepts no text."""
WRAPPERS = {
    "nullable",
    "default",
    "function-before",
    "function-after",
    "function-wrap",
    "function-plain",
    "lax-or-strict",
    "json-or-python",
}
"""Kinds of schemas around another schema."""
INNER = ("schema", "lax_schema", "python_schema")


def below(kind: type[BaseModel]) -> Iterator[type[BaseModel]]:
    """Yield all models that derive from a model."""
    for derived in kind.__subclasses__():
        yield derived
        yield from below(derived)


def breaking(schema: Mapping[str, Any], named: Mapping[str, Any]) -> Iterator[tuple[Any, str]]:
    """Yield values that break a constraint of a schema, with the type of the error that each causes.

    A kind of schema that is not here fails with a `KeyError`: add it, and its errors.
    """
    kind = schema["type"]
    if kind == "definition-ref":
        return
    if kind in WRAPPERS:
        inner = next((schema[key] for key in INNER if key in schema), None)
        if inner is not None:
            yield from breaking(inner, named)
        return
    if "custom_error_type" in schema:
        yield OTHER, schema["custom_error_type"]
        return
    if kind == "union":
        for choice in schema["choices"]:
            own = choice[0] if isinstance(choice, tuple) else choice
            yield from ((value, error) for value, error in breaking(own, named) if value is OTHER)
        return
    if kind == "list":
        yield OTHER, "list_type"
        items = schema.get("items_schema", {"type": "any"})
        yield from lengths(schema, lambda n: [GOOD.get(items["type"], "0")] * n, "too")
        yield from (([value], error) for value, error in breaking(items, named))
        return
    yield from PLAIN[kind](schema)


def lengths(schema: Mapping[str, Any], make: Any, start: str) -> Iterator[tuple[Any, str]]:
    if schema.get("min_length"):
        yield make(0), f"{start}_short"
    if "max_length" in schema:
        yield make(schema["max_length"] + 1), f"{start}_long"


def texts(schema: Mapping[str, Any]) -> Iterator[tuple[Any, str]]:
    yield OTHER, "string_type"
    yield from lengths(schema, lambda n: "0" * n, "string_too")
    if "pattern" in schema:
        broken = "?" if re.search(schema["pattern"], "?") is None else "\x00"
        yield broken, "string_pattern_mismatch"


def numbers(schema: Mapping[str, Any]) -> Iterator[tuple[Any, str]]:
    kind = schema["type"]
    yield OTHER, f"{kind}_type"
    bounds = {"ge": (-1, "greater_than_equal"), "gt": (0, "greater_than")}
    bounds |= {"le": (1, "less_than_equal"), "lt": (0, "less_than")}
    for bound, (step, error) in bounds.items():
        if bound in schema:
            yield schema[bound] + step, error
    if schema.get("allow_inf_nan") is False:
        yield float("inf"), "finite_number"


def of(error: str) -> Any:
    return lambda _: iter([(OTHER, error)])


PLAIN: dict[str, Any] = {
    "any": lambda _: iter(()),
    "str": texts,
    "int": numbers,
    "float": numbers,
    "bool": of("bool_type"),
    "dict": of("dict_type"),
    "literal": of("literal_error"),
    "enum": of("enum"),
    "model": of("model_type"),
    "datetime": of("datetime_type"),
    "is-instance": of("is_instance_of"),
}
LAX = ["x", "", "\ud800", 1.5, "9" * 5000, 10**30, "2026-11-30", "2026-13-40", "25:00", b"\xff"]
"""Values that cause further errors where texts are converted to other types."""


def errors_of_model(model: type[BaseModel]) -> Iterator[dict[str, Any]]:
    """Yield the errors that a model raises for its fields; assert that each constraint can raise its own."""
    schema: Any = model.__pydantic_core_schema__
    named = {each["ref"]: each for each in schema.get("definitions", ())}
    while "fields" not in schema:
        schema = named[schema["schema_ref"]] if "schema_ref" in schema else schema["schema"]
    for name, field in schema["fields"].items():
        due = list(breaking(field["schema"], named))
        for value, error in [*due, *((value, None) for value in LAX)]:
            raised = list(errors(model.model_validate, {name: value}))
            own = [each for each in raised if each["loc"][:1] == (name,)]
            before = any(
                each["loc"] == () for each in raised
            )  # a model refuses some in all its fields
            kinds = {None, *(each["type"] for each in own)}
            assert before or error in kinds, (model, name, value, error)
            yield from own
    yield from errors(model.model_validate, {"another key": 1})
    yield from errors(model.model_validate, 5)


def errors_of_type(kind: Any) -> Iterator[dict[str, Any]]:
    """Yield the errors that an annotated type raises; assert that each constraint can raise its own."""
    adapter: TypeAdapter[Any] = TypeAdapter(kind)
    due = list(breaking(adapter.core_schema, {}))
    for value, error in [*due, *((value, None) for value in LAX)]:
        raised = list(errors(adapter.validate_python, value))
        assert error in (None, *(each["type"] for each in raised)), (kind, value, error)
        yield from raised


def errors(validate: Any, value: Any) -> Iterator[dict[str, Any]]:
    try:
        validate(value)
    except ValidationError as error:
        yield from error.errors()
