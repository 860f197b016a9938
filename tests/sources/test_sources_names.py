"""Each name stands for one column."""

from __future__ import annotations

import pytest

from aegis.errors import DataError
from aegis.sources.source import refuse_duplicates


def test_the_two_are_named_with_their_places() -> None:
    with pytest.raises(DataError, match="two columns named 'b': number 2 and number 4") as caught:
        refuse_duplicates(["a", "b", "c", "b", "B"], "t.csv")
    assert "rename one" in caught.value.hint
    with pytest.raises(
        DataError, match="'a' and 'A', the same but for capitals: number 1 and number"
    ):
        refuse_duplicates(["a", "A"], "t.csv")
    refuse_duplicates(["a", "b", "a "], "t.csv")
