"""The cache with a limit, compared with a list of entries in the order of their last use; results of methods."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from aegis.arrays import Remembered, remembered

steps = st.lists(
    st.tuples(st.sampled_from(["get", "put"]), st.integers(0, 5), st.integers(0, 4)), max_size=30
)


@given(steps=steps, most=st.integers(0, 9))
def test_the_least_recently_used_values_are_dropped(
    steps: list[tuple[str, int, int]], most: int
) -> None:
    cache: Remembered[int, str] = Remembered(most, len)
    kept: list[tuple[int, str]] = []
    for step, key, length in steps:
        value = "x" * length
        known = dict(kept).get(key)
        if step == "get" and known is not None:
            value = known
        kept = [*((k, v) for k, v in kept if k != key), (key, value)]
        while sum(len(v) for _, v in kept) > most and len(kept) > 1:
            kept.pop(0)
        made = cache.put(key, value) if step == "put" else cache.get(key, lambda own=value: own)
        assert made == value
        assert list(cache._values) == [k for k, _ in kept]
        assert [cache[k] for k, _ in kept] == [v for _, v in kept]
        assert cache.size == sum(len(v) for _, v in kept)
        assert len(cache) == len(kept)
        assert key in cache


def test_a_method_computes_once_for_the_same_object_and_arguments() -> None:
    class Counter:
        def __init__(self) -> None:
            self.calls: list[object] = []

        @remembered
        def double(self, number: int, *, more: int = 0) -> int:
            self.calls.append((number, more))
            return 2 * number + more

    class Other(Counter):
        @remembered
        def double(self, number: int, *, more: int = 0) -> int:
            return super().double(number, more=more) + 1

    first, second = Counter(), Counter()
    assert [first.double(1), first.double(1), first.double(1, more=1)] == [2, 2, 3]
    assert first.calls == [(1, 0), (1, 1)]
    assert second.double(1) == 2
    assert second.calls == [(1, 0)]
    assert [Other().double(1), Other().double(2)] == [3, 5]
