"""The cache with a limit, compared with a list of entries in the order of their last use; results of methods."""

from __future__ import annotations

from collections.abc import Callable
from threading import Thread
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aegis.arrays import BoundedCache, cached_method

steps = st.lists(
    st.tuples(st.sampled_from(["get", "put"]), st.integers(0, 5), st.integers(0, 4)), max_size=30
)


@given(steps=steps, most=st.integers(0, 9))
def test_the_least_recently_used_values_are_dropped(
    steps: list[tuple[str, int, int]], most: int
) -> None:
    cache: BoundedCache[int, str] = BoundedCache(most, len)
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
        assert cache.cached([*dict(kept), 9]) == dict(kept)
        assert cache.size == sum(len(v) for _, v in kept)
        assert len(cache) == len(kept)


class _Contested:
    """A key. When the cache looks it up for the second time, another thread fills the cache."""

    def __init__(self, other: Thread) -> None:
        self.other, self.hashed = other, 2

    def __hash__(self) -> int:
        self.hashed += 1
        if self.hashed == 2:
            self.other.start()
            self.other.join(0.2)
        return 7


@pytest.mark.parametrize(
    "get", [lambda cache, key: cache.get(key, str), lambda cache, key: cache.cached([key])[key]]
)
def test_threads_share_a_cache(get: Callable[[Any, Any], str]) -> None:
    """The workbench shows a page while it searches, with the same counts."""
    cache: BoundedCache[Any, str] = BoundedCache(1)
    key = _Contested(Thread(target=lambda: cache.put("other", "value")))
    cache.put(key, "first")
    key.hashed = 0
    assert get(cache, key) == "first"
    key.other.join()


def test_a_method_computes_once_for_the_same_object_and_arguments() -> None:
    class Counter:
        def __init__(self) -> None:
            self.calls: list[object] = []

        @cached_method
        def double(self, number: int, *, more: int = 0) -> int:
            self.calls.append((number, more))
            return 2 * number + more

    class Other(Counter):
        @cached_method
        def double(self, number: int, *, more: int = 0) -> int:
            return super().double(number, more=more) + 1

    first, second = Counter(), Counter()
    assert [first.double(1), first.double(1), first.double(1, more=1)] == [2, 2, 3]
    assert first.calls == [(1, 0), (1, 1)]
    assert second.double(1) == 2
    assert second.calls == [(1, 0)]
    assert [Other().double(1), Other().double(2)] == [3, 5]
