"""What the tests of masks share: masking a list of values on the embedded engine."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pyarrow as pa
from hypothesis import strategies as st

from aegis.masks import Kind, Mask, ValueCounts, evaluate, parse_mask

LEAST, GREATEST = -(2**63), 2**63 - 1


def masked(mask: Mask | str | dict[str, Any], values: list[Any], dtype: pa.DataType) -> list[Any]:
    """Return `values`, of Arrow type `dtype`, as `mask` shows them."""
    built = mask if isinstance(mask, Mask) else parse_mask(mask)
    [grouping] = evaluate([built], pa.array(values, dtype))
    shown = grouping.masked_values.to_pylist()
    return [shown[code] for code in grouping.codes.tolist()]


def counted(kind: Kind, values: list[Any], dtype: pa.DataType) -> ValueCounts:
    """Return the distinct values of a list and their counts, as a summary would."""
    found = Counter(values)
    present = sorted(value for value in found if value is not None)
    ordered = present + ([None] if None in found else [])
    return ValueCounts(
        kind,
        pa.array(ordered, dtype),
        np.array([found[value] for value in ordered], dtype=np.int64),
    )


def lists(values: st.SearchStrategy[Any], *, size: int = 20) -> st.SearchStrategy[list[Any]]:
    """Lists with nulls among the values."""
    return st.lists(st.none() | values, min_size=1, max_size=size)


small_integers = st.integers(-500, 500)
huge_integers = st.integers(LEAST, GREATEST) | st.sampled_from([LEAST, LEAST + 3, GREATEST, 0, -1])
integers = small_integers | huge_integers
decimal_floats = st.integers(-(10**9), 10**9).map(lambda n: n / 100)
floats = decimal_floats | st.floats(-1e9, 1e9) | st.sampled_from([-0.0, 0.0, 0.3, 0.7, -0.1])
texts = st.text(max_size=8) | st.sampled_from(["", "*", "e\u0301", "é", "🇳🇴", "x" * 500, "O'Brien"])
