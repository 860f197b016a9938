"""Limits that the system sets to this process."""

from __future__ import annotations


def addresses_limited() -> bool:
    """Return whether this process may not have all addresses (`ulimit -v`); on Unix alone."""
    try:
        import resource
    except ImportError:
        return False
    return resource.getrlimit(resource.RLIMIT_AS)[0] != resource.RLIM_INFINITY
