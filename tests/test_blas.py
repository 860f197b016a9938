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


IN_THREADS = """
import json, threading
from threadpoolctl import threadpool_info, threadpool_limits
from aegis.blas import one_blas_thread

def threads():
    return max(lib["num_threads"] for lib in threadpool_info() if lib["user_api"] == "blas")

def other():
    counts.append(one_blas_thread(threads)())
    used.set()
    ended.wait()

counts, used, ended = [one_blas_thread(threads)()], threading.Event(), threading.Event()
worker = threading.Thread(target=other)
worker.start()
used.wait()
with threadpool_limits(1):
    counts.append(threads())
ended.set()
worker.join()
print(json.dumps(counts))
"""


def test_the_limit_holds_in_every_python_thread() -> None:
    """Also after another thread that still lives has set one, as threadpoolctl 3.8 does not do."""
    free = {k: v for k, v in os.environ.items() if not k.endswith("_NUM_THREADS")}
    done = subprocess.run(
        [sys.executable, "-c", IN_THREADS], capture_output=True, text=True, check=True, env=free
    )
    assert json.loads(done.stdout) == [1, 1, 1]


COMMAND = """
import json
from aegis.cli import startup
startup.start()
import scipy.linalg.lapack
from threadpoolctl import threadpool_info
scipy.linalg.lapack.dpotrf
print(json.dumps([lib["num_threads"] for lib in threadpool_info() if lib["user_api"] == "blas"]))
"""


@pytest.mark.parametrize(("given", "threads"), [(None, 1), ("2", min(2, os.cpu_count() or 1))])
def test_a_command_starts_no_threads_of_blas_unless_told_to(
    given: str | None, threads: int
) -> None:
    told = {k: v for k, v in os.environ.items() if not k.endswith("_NUM_THREADS")}
    if given is not None:
        told["OPENBLAS_NUM_THREADS"] = given
    done = subprocess.run(
        [sys.executable, "-c", COMMAND], capture_output=True, text=True, check=True, env=told
    )
    assert set(json.loads(done.stdout)) == {threads}


STUDY = """
import json, sys
import scipy.linalg.lapack
from threadpoolctl import ThreadpoolController
import aegis
from aegis.measures import Measure
from aegis.report import svg

svg.to_svg = lambda *_: '<svg viewBox="0 0 1 1"></svg>'  # nothing is scored to draw, which takes seconds
counted = set()
compute = Measure.__call__
scipy.linalg.lapack.dpotrf  # loads the BLAS of SciPy
libraries = ThreadpoolController().select(user_api="blas")  # searched for once: that takes long

def watched(*given):
    counted.update(lib["num_threads"] for lib in libraries.info())
    return compute(*given)

Measure.__call__ = watched
study = aegis.Study(sys.argv[1], aegis.load_policy({
    "version": 1, "label": "sick", "privacy": {"k": 2},
    "attributes": {"age": {"role": "quasi-identifier", "masks": ["identity", {"bucketize": {"width": 20}}]}},
}))
seen = {}
for name, call in {
    "rank": lambda: study.rank(),
    "search": lambda: study.search(),
    "apply": lambda: study.apply(study.rank()),
    "anonymize": lambda: study.anonymize("mondrian"),
    "report": lambda: study.report(study.rank()),
}.items():
    counted.clear()
    call()
    seen[name] = sorted(counted)
print(json.dumps(seen))
"""


@pytest.mark.wings
def test_whatever_a_study_scores_is_scored_on_one_thread(tmp_path: Path) -> None:
    table = tmp_path / "people.csv"
    rows = [f"{20 + n % 40},{'yes' if n % 7 > n % 3 else 'no'}" for n in range(400)]
    table.write_text("age,sick\n" + "\n".join(rows) + "\n")
    free = {k: v for k, v in os.environ.items() if not k.endswith("_NUM_THREADS")}
    done = subprocess.run(
        [sys.executable, "-c", STUDY, str(table)],
        capture_output=True,
        text=True,
        check=False,
        env=free,
    )
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert told.keys() == {"rank", "search", "apply", "anonymize", "report"}
    assert told["rank"] == told["search"] == told["apply"] == [1]
    assert all(set(threads) <= {1} for threads in told.values()), told


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
