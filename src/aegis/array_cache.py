"""A cache of arrays with a limit on memory; arrays that are dropped are computed again."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Collection, Hashable

import numpy as np
import numpy.typing as npt

_REMEMBERED_BYTES = 1 << 27
"""Most memory for arrays that are remembered, in one place."""


class RememberedArrays:
    """A cache of arrays by key; if they take too much memory, the least recently used ones are dropped."""

    def __init__(self) -> None:
        self._arrays: OrderedDict[Hashable, npt.NDArray[np.float64]] = OrderedDict()
        self.nbytes = 0

    def get(
        self, key: Hashable, make: Callable[[], npt.NDArray[np.float64]]
    ) -> npt.NDArray[np.float64]:
        """Return the array of a key; call `make` if it is not in the cache."""
        remembered = self._arrays.get(key)
        if remembered is not None:
            self._arrays.move_to_end(key)
            return remembered
        made = self._arrays[key] = make()
        self.nbytes += made.nbytes
        while self.nbytes > _REMEMBERED_BYTES and len(self._arrays) > 1:
            self.nbytes -= self._arrays.popitem(last=False)[1].nbytes
        return made

    def __contains__(self, key: Hashable) -> bool:
        return key in self._arrays

    def __getitem__(self, key: Hashable) -> npt.NDArray[np.float64]:
        return self._arrays[key]

    def values(self) -> Collection[npt.NDArray[np.float64]]:
        """Return the arrays in the cache."""
        return self._arrays.values()
