"""Check the limits that the operating system sets on the memory of this process."""

from __future__ import annotations

import mmap


def addresses_limited() -> bool:
    """Return whether the address space of this process is limited (`ulimit -v`).

    The result is always False on Windows.
    """
    try:
        import resource
    except ImportError:
        return False
    return resource.getrlimit(resource.RLIMIT_AS)[0] != resource.RLIM_INFINITY


def addresses_left(size: int) -> bool:
    """Return whether this process can still get `size` bytes of address space, after trying it."""
    try:
        mmap.mmap(-1, size).close()
    except (OSError, MemoryError):
        return False
    return True
