"""Types of arrays that many rooms use; docstrings state their shapes."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]
Flags = npt.NDArray[np.bool_]
Floats = npt.NDArray[np.float64]
Int32s = npt.NDArray[np.int32]
Integers = npt.NDArray[np.integer]
"""Whole numbers of any size."""
Ints = npt.NDArray[np.int64]
