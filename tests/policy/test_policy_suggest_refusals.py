"""Tables of which no policy can be proposed."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from aegis.errors import DataError, PolicyError
from aegis.policy.suggest import init_policy

TWO = [0, 1] * 10


@pytest.mark.parametrize(
    ("table", "label", "error", "message"),
    [
        ({"income": TWO, "age": TWO}, "incom", DataError, "Did you mean 'income'?"),
        ({"income": TWO, "age": TWO}, "Income", DataError, "Did you mean 'income'?"),
        ({"y": [1] * 20, "age": TWO}, "y", DataError, "same value in every row"),
        ({"y": pa.nulls(20, pa.string()), "age": TWO}, "y", DataError, "null in every row"),
        ({"y": [[1], [2]] * 10, "age": TWO}, "y", DataError, "cannot be a class"),
        ({"y": [f"c{i}" for i in range(1100)], "age": [0, 1] * 550}, "y", DataError, "at most 1024"),
        ({"y": ["inf", *map(str, range(1099))], "age": [0, 1] * 550}, "y", DataError, "such as `inf`"),
        ({"y": pa.array([], pa.int64()), "age": pa.array([], pa.int64())}, "y", DataError, "no rows"),
        ({"y": TWO}, "y", PolicyError, "no column besides the label 'y'"),
        (
            {"y": TWO, "email": [f"a{i}@b.org" for i in range(20)], "id": range(20), "z": [1] * 20},
            "y",
            PolicyError,
            "No column besides the label 'y' can be masked and scored: 'email' (identifier",
        ),
        (
            {"y": TWO, **{f"c{i}": [1] * 20 for i in range(12)}},
            "y",
            PolicyError,
            "and 2 more",
        ),
    ],
)  # fmt: skip
def test_bad_tables_get_one_clear_error(
    table: dict[str, Any], label: str, error: type[Exception], message: str
) -> None:
    with pytest.raises(error) as raised:
        init_policy(pa.table(table), label=label)
    assert message in str(raised.value)
    assert raised.value.hint  # type: ignore[attr-defined]
