"""The command as a process: quick to start, silent in a closed pipe, clean when interrupted."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys

import pytest

COMMAND = [sys.executable, "-c", "from aegis.cli.main import main; main()"]
HEAVY = (
    "ibis",
    "duckdb",
    "numpy",
    "pandas",
    "scipy",
    "altair",
    "sklearn",
    "pyarrow",
    "pydantic",
    "yaml",
)


def run_alone(code: str) -> subprocess.CompletedProcess[str]:
    """Run code in a process of its own."""
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)


def test_help_loads_no_engine():
    code = (
        "import sys\n"
        "from aegis.cli.main import run\n"
        "assert run(['--help']) == 0\n"
        f"found = [m for m in {HEAVY!r} if m in sys.modules]\n"
        "sys.exit(f'loaded: {found}' if found else 0)\n"
    )
    done = run_alone(code)
    assert done.returncode == 0, done.stderr


UNUSED = (
    "pandas",
    "polars",
    "scipy.linalg",
    "scipy.sparse",
    "scipy.special",
    "numpy.testing",
    "aegis.summary.bundle.file",
    "aegis.papers.evaluation",
    "aegis.safe.protect",
    "aegis.anonymizers",
)
"""What a ranking of masks has no use for, and what takes long to load."""


def loaded_of(steps):
    """Return of each step in one process the exit codes of its commands, and what it must not load but is
    loaded then.
    """
    code = (
        "import json, sys\n"
        "from aegis.cli.main import main\n"
        "told = []\n"
        f"for modules, *commands in {steps!r}:\n"
        "    codes = []\n"
        "    for words in commands:\n"
        "        sys.argv = ['aegis', *words.split()]\n"
        "        try:\n"
        "            main()\n"
        "        except SystemExit as ended:\n"
        "            codes.append(ended.code or 0)\n"
        "    told.append([codes, [m for m in modules if m in sys.modules]])\n"
        "print(json.dumps(told))\n"
    )
    done = run_alone(code)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


def test_commands_load_what_they_use(folder):
    """One process for all: rankings, then an audit and a release, then a search."""
    ranking = "advise table.csv -p policy.yaml -q --generate 9 --measure"
    done = loaded_of(
        [
            (UNUSED, f"{ranking} held-out-pillai", f"{ranking} held-out-auc"),
            (
                ("scipy.stats", "scipy.special", "scipy.optimize", "pandas"),
                "audit table.csv -p policy.yaml -q",
                "apply table.csv -p policy.yaml -c best.yaml -o masked.parquet -q",
            ),
            (("altair", "sklearn", "polars", "pandas"), "advise table.csv -p policy.yaml -q"),
        ]
    )
    assert done == [[[0, 0], []], [[1, 0], []], [[0], []]]


def test_a_routine_of_lapack_is_loaded_alone_and_its_package_later():
    code = (
        "import sys\n"
        "from aegis.cli import startup\n"
        "startup.start()\n"
        "startup.before_tables()\n"
        "from scipy.linalg.lapack import dposv\n"
        "assert 'scipy.linalg' not in sys.modules\n"
        "from scipy import linalg, stats\n"
        "assert linalg.lapack.dposv is dposv\n"
        "assert linalg.lapack.get_lapack_funcs(('posv',)), linalg.solve([[2.0]], [1.0])\n"
        "from scipy.linalg import _flapack\n"
        "assert _flapack.dposv is dposv\n"
    )
    done = run_alone(code)
    assert done.returncode == 0, done.stderr


def test_a_policy_that_is_not_there_is_told_before_anything_is_loaded(folder):
    code = (
        "import atexit, sys\n"
        "from aegis.cli.main import main\n"
        "atexit.register(lambda: print([m for m in ('ibis', 'pyarrow') if m in sys.modules]))\n"
        "sys.argv = ['aegis', 'advise', 'table.csv', '-p', 'nowhere.yaml']\n"
        "main()\n"
    )
    done = run_alone(code)
    assert done.returncode == 2
    assert "Cannot read policy file nowhere.yaml" in done.stderr
    assert done.stdout.splitlines()[-1] == "[]"


def test_a_closed_pipe_is_silent(folder):
    reading, writing = os.pipe()
    os.close(reading)
    with os.fdopen(writing, "w") as pipe:
        done = subprocess.run(
            [*COMMAND, "measures"], stdout=pipe, stderr=subprocess.PIPE, text=True, check=False
        )
    assert done.stderr == ""
    assert done.returncode == 141


@pytest.mark.usefixtures("interruptible")
def test_ctrl_c_leaves_no_traceback(folder):
    code = (
        "import time\n"
        "from aegis.cli import listing, main\n"
        "def slow(*args):\n"
        "    print('ready', flush=True)\n"
        "    time.sleep(60)\n"
        "listing.RegistryListing._print_all = slow\n"
        "main.main()\n"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", code, "measures"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=50)
    assert (process.returncode, err) == (130, "Interrupted.\n")


@pytest.mark.parametrize(
    ("command", "word", "code"),
    [
        (COMMAND, "-q", 0),
        (COMMAND, "x", 2),
        # That it ends with 0 is tested where the wheel runs.
        ([sys.executable, "-m", "aegis"], "x", 2),
    ],
)
def test_exit_codes_reach_the_shell(folder, command, word, code):
    done = subprocess.run([*command, "measures", word], capture_output=True, check=False)
    assert done.returncode == code, done.stderr


def test_a_process_that_ends_at_once_does_what_was_asked_of_its_end(folder):
    code = (
        "import atexit, tempfile, threading, time\n"
        "from pathlib import Path\n"
        "from aegis.cli import listing, main\n"
        "from aegis.sources.embedded import embedded\n"
        f"tempfile.tempdir = {str(folder)!r}\n"
        "def printed(*args):\n"
        "    engine = embedded()\n"
        "    engine.raw_sql(\"SET memory_limit = '64MB'\")\n"
        "    engine.raw_sql('CREATE TABLE t AS SELECT hash(range) h FROM range(20_000_000)')\n"
        "    print(len(list(Path(tempfile.tempdir).glob('aegis-engine-*/*'))) > 0)\n"
        "    atexit.register(print, 'asked')\n"
        "    threading.Thread(target=lambda: (time.sleep(0.2), print('thread'))).start()\n"
        "listing.RegistryListing._print_all = printed\n"
        "main.process()\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, "measures"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == ["True", "thread", "asked"]
    assert not list(folder.glob("aegis-engine-*"))
