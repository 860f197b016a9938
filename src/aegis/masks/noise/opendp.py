"""Draw from differentially private mechanisms with OpenDP (extra `dp`)."""

from __future__ import annotations

from functools import cache
from types import SimpleNamespace

import numpy as np

from aegis.arrays import Floats, Ints
from aegis.errors import PolicyError


@cache
def library() -> SimpleNamespace:
    """Import OpenDP; return its domains, measurements and metrics.

    Raise `PolicyError`, which names the extra to install, if OpenDP is missing.
    """
    try:
        # Not by its prelude, which imports its extras for tables and models: two seconds.
        from opendp import domains, measurements, metrics
        from opendp.mod import enable_features
    except ImportError as error:
        raise PolicyError(
            "Noise with a stated epsilon is drawn with OpenDP, which is not installed.",
            hint="Install it: pip install 'aegis-advisor[dp]'.",
        ) from error
    # Non-interactive mechanisms that OpenDP has, but whose proofs its reviewers have not all vetted.
    enable_features("contrib")
    return SimpleNamespace(domains=domains, measurements=measurements, metrics=metrics)


def laplace(numbers: Floats, scale: float) -> Floats:
    """Add independent Laplace noise of this scale to each number."""
    if not len(numbers):
        return numbers.astype(np.float64)
    dp = library()
    domain = dp.domains.vector_domain(dp.domains.atom_domain(T="f64", nan=False))
    metric = dp.metrics.l1_distance(T="f64")
    mechanism = dp.measurements.make_laplace(domain, metric, scale=float(scale))
    return np.array(mechanism(numbers.tolist()), dtype=np.float64)


def geometric(numbers: Ints, scale: float) -> Ints:
    """Add independent noise k to each integer, with P(k) proportional to e^(-|k| / scale)."""
    if not len(numbers):
        return numbers.astype(np.int64)
    dp = library()
    domain = dp.domains.vector_domain(dp.domains.atom_domain(T="i64"))
    metric = dp.metrics.l1_distance(T="i64")
    mechanism = dp.measurements.make_geometric(domain, metric, scale=float(scale))
    return np.array(mechanism(numbers.tolist()), dtype=np.int64)


def randomised_response(codes: Ints, size: int, keep: float) -> Ints:
    """Keep each code with probability `keep`; otherwise draw another code in 0..size - 1 uniformly."""
    if not len(codes):
        return codes.astype(np.int64)
    dp = library()
    mechanism = dp.measurements.make_randomized_response(
        categories=list(range(size)), prob=float(keep)
    )
    return np.array([mechanism(code) for code in codes.tolist()], dtype=np.int64)
