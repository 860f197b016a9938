"""Draws of mechanisms that promise differential privacy, by OpenDP (extra `dp`)."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt

from aegis.errors import PolicyError

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


@cache
def library() -> Any:
    """Return OpenDP; raise `PolicyError` that names the extra where it is not installed."""
    try:
        import opendp.prelude as dp
    except ImportError as error:
        raise PolicyError(
            "Masks with a stated epsilon draw their noise with OpenDP, which is not installed.",
            hint="Install it: pip install 'aegis-advisor[dp]'.",
        ) from error
    # Non-interactive mechanisms that OpenDP has, but whose proofs its reviewers have not all vetted.
    dp.enable_features("contrib")
    return dp


def laplace(numbers: Floats, scale: float) -> Floats:
    """Return each number with Laplace noise of its own, of this scale."""
    if not len(numbers):
        return numbers.astype(np.float64)
    dp = library()
    domain = dp.vector_domain(dp.atom_domain(T=float, nan=False))
    mechanism = dp.m.make_laplace(domain, dp.l1_distance(T=float), scale=float(scale))
    return np.array(mechanism(numbers.tolist()), dtype=np.float64)


def geometric(numbers: Ints, scale: float) -> Ints:
    """Return each whole number with two-sided geometric noise of its own, alpha = e^(-1/scale)."""
    if not len(numbers):
        return numbers.astype(np.int64)
    dp = library()
    domain = dp.vector_domain(dp.atom_domain(T=int))
    mechanism = dp.m.make_geometric(domain, dp.l1_distance(T=int), scale=float(scale))
    return np.array(mechanism(numbers.tolist()), dtype=np.int64)


def randomised_response(codes: Ints, size: int, keep: float) -> Ints:
    """Return each code from 0 to `size` with probability `keep`, else another one, uniformly."""
    if not len(codes):
        return codes.astype(np.int64)
    dp = library()
    mechanism = dp.m.make_randomized_response(categories=list(range(size)), prob=float(keep))
    return np.array([mechanism(code) for code in codes.tolist()], dtype=np.int64)
