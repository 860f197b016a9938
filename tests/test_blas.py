"""BLAS on one thread, and not loaded without room: one that gets no addresses asks for them for ever."""

from __future__ import annotations

import json
import os
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


THREADS = """
import json
from threadpoolctl import threadpool_info
from aegis.blas import one_blas_thread

def threads():
    return {lib["filepath"]: lib["num_threads"] for lib in threadpool_info() if lib["user_api"] == "blas"}

print(json.dumps([one_blas_thread(threads)(), threads()]))
"""


def test_every_blas_is_held_to_one_thread() -> None:
    """That of SciPy as well, which is a library of its own and not loaded before."""
    free = {k: v for k, v in os.environ.items() if not k.endswith("_NUM_THREADS")}
    done = subprocess.run(
        [sys.executable, "-c", THREADS], capture_output=True, text=True, check=True, env=free
    )
    within, after = json.loads(done.stdout)
    assert any("scipy" in path for path in within)
    assert set(within.values()) == {1}
    assert within.keys() == after.keys()
    assert os.cpu_count() == 1 or set(after.values()) != {1}, "the limit ends with the call"


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
