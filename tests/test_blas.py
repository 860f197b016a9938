"""BLAS is held to one thread, also the one that SciPy brings."""

from __future__ import annotations

import json
import os
import subprocess
import sys

_SCRIPT = """
import json
import sys

import numpy
from threadpoolctl import threadpool_info

from aegis.blas import one_blas_thread


def threads():
    return {one["filepath"]: one["num_threads"] for one in threadpool_info() if one["user_api"] == "blas"}


@one_blas_thread
def factorise():
    from scipy.linalg.lapack import dpstrf

    dpstrf(numpy.eye(3))
    return threads()


assert not any(name.startswith("scipy.linalg") for name in sys.modules)
inside = factorise()
print(json.dumps({"inside": inside, "after": threads()}))
"""


def test_every_blas_is_held_to_one_thread_even_if_loaded_late() -> None:
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": "2", "MKL_NUM_THREADS": "2"}
    ran = subprocess.run(
        [sys.executable, "-c", _SCRIPT],
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    found = json.loads(ran.stdout)
    assert set(found["inside"].values()) == {1}
    # Nothing was loaded while the limit held, and it was lifted afterwards.
    assert set(found["after"]) == set(found["inside"])
    assert max(found["after"].values()) > 1
