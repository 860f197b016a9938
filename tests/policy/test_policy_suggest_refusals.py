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
        ({"pay now": [f"${i:,}.50" for i in range(1100)], "age": [0, 1] * 550}, "pay now", DataError, "before. If they should be numbers, give --numbers 'pay now'."),
        ({"y": [f"{i // 3600}:{i // 60 % 60:02d}:{i % 60:02d}" for i in range(1100)], "age": [0, 1] * 550}, "y", DataError, "Write the times as seconds in a column of numbers"),
        ({"y": pa.array(range(20), pa.time32("s")), "age": TWO}, "y", DataError, "Write the times as seconds in a column of numbers"),
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


def test_a_column_of_times_is_left_out_with_the_same_advice() -> None:
    table = pa.table({"net": pa.array(range(20), pa.time32("s")), "age": TWO, "y": TWO})
    reason = init_policy(table, label="y").profiles["net"].reason
    assert reason.endswith("write the times as seconds in a column of numbers (02:33:01 is 9181)")
