"""A BLAS that gets no addresses asks for them for ever: it is not loaded without room for it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

LOADING = """
import resource, sys
import numpy, scipy.sparse
from aegis.blas import guard_loading, one_blas_thread

@one_blas_thread
def eigenvalue():
    return float(numpy.linalg.eigvalsh(numpy.eye(3))[0])

how, more = sys.argv[1], int(sys.argv[2])
if how == "use":
    eigenvalue()
status = open("/proc/self/status").read().split()
limit = (int(status[status.index("VmSize:") + 1]) << 10) + (more << 20)
resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
resource.setrlimit(resource.RLIMIT_CPU, (20, 20))  # what hangs is busy
guard_loading()
try:
    if how == "load":
        import scipy.linalg
    print(eigenvalue())
except MemoryError as error:
    print(error)
"""


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="sizes are read from /proc")
@pytest.mark.parametrize(
    ("how", "more", "said"),
    [
        ("load", 50, "There are too few addresses for linear algebra."),
        ("use", 20, "There are too few addresses for linear algebra."),
        ("load", 600, "1.0"),
        ("use", 200, "1.0"),
    ],
)
def test_without_addresses_nothing_hangs(how: str, more: int, said: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", LOADING, how, str(more)], capture_output=True, text=True, check=False
    )
    assert (done.stdout.strip(), done.returncode) == (said, 0), done.stderr
