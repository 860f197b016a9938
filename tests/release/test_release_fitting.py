"""What a masked file may hold under its configuration."""

from __future__ import annotations

import pyarrow as pa
import pytest

from aegis.masks.base import Kind
from aegis.policy import Configuration, load_policy
from aegis.release.fitting import unfitting

POLICY = load_policy(
    {
        "version": 1,
        "label": "ill",
        "attributes": {"visits": {"role": "feature", "masks": ["identity"]}},
    }
)


@pytest.mark.parametrize("stored", [pa.int64(), pa.float64()])
@pytest.mark.parametrize("kind", [Kind.INTEGER, Kind.NUMBER])
def test_whole_numbers_fit_in_each_type_of_numbers(stored, kind):
    """pandas stores integers with nulls as floats; a noisy summary sees whole numbers."""
    table = pa.table({"visits": pa.array([1, None, 3], stored), "ill": ["y", "n", "y"]})
    whole = Configuration("whole", {"visits": POLICY.attributes["visits"].masks[0]})
    assert unfitting(table, POLICY, whole, {"visits": kind}) == []


def test_texts_fit_no_column_of_numbers():
    table = pa.table({"visits": ["1", "2", "3"], "ill": ["y", "n", "y"]})
    whole = Configuration("whole", {"visits": POLICY.attributes["visits"].masks[0]})
    wrong = unfitting(table, POLICY, whole, {"visits": Kind.INTEGER})
    assert wrong == ["visits holds text, and identity shows integer"]
