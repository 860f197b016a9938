"""Targets and tasks of the benchmarks: what meets a target, which tasks run, and what a task skips."""

from __future__ import annotations

import inspect
import os
import subprocess
import sys
from pathlib import Path

import pytest
from benchmarks import __main__ as program
from benchmarks.measure import Figure, SkipError, measured
from benchmarks.processes import peak, seconds_of
from benchmarks.tasks import BY_NAME_ONLY, TASKS, Settings, run_task


def test_a_search_without_a_proof_misses_its_target():
    quick = {"task": "search", "name": "to proof", "value": 31.0, "unit": "s", "target": 60.0}
    assert Figure(**quick).met
    assert Figure(**quick, proven=False).met is False
    assert Figure(**quick | {"target": None}, proven=False).met is None


def test_the_peak_of_a_step_is_the_one_that_it_states():
    words = [sys.executable, "-c", 'print(\'{"seconds": 1, "cpu": 1, "peak": 7.5, "result": {}}\')']
    running = subprocess.Popen(words, stdout=subprocess.PIPE, text=True)
    assert measured(running, "a step").peak == 7.5


def test_each_task_yields_figures_and_says_what_it_measures():
    for name, task in TASKS.items():
        assert inspect.isgeneratorfunction(task), name
        assert task.__doc__, name


def test_tasks_that_run_only_by_name_are_not_run_without_it(monkeypatch, tmp_path, capsys):
    run = []

    class Alone:
        def __init__(self, *_):
            pass

        def __enter__(self):
            return self

        def __exit__(self, *_):
            pass

        def submit(self, _work, name, *_):
            run.append(name)
            return self

        def result(self):
            return []

    monkeypatch.setattr(program, "ProcessPoolExecutor", Alone)
    words = ["benchmarks", "--output", str(tmp_path / "figures.json")]
    monkeypatch.setattr(sys, "argv", words)
    program.main()
    assert set(BY_NAME_ONLY) < set(TASKS)
    assert run == [name for name in TASKS if name not in BY_NAME_ONLY]
    monkeypatch.setattr(sys, "argv", [*words, "--only", ",".join(BY_NAME_ONLY)])
    run.clear()
    program.main()
    assert run == list(BY_NAME_ONLY)
    monkeypatch.setattr(sys, "argv", ["benchmarks", "--help"])
    capsys.readouterr()
    with pytest.raises(SystemExit):
        program.main()
    late = capsys.readouterr().out.rpartition("Without this option")[2]
    assert all(name in late for name in BY_NAME_ONLY)


def test_a_task_without_its_program_or_package_is_skipped_in_one_line(monkeypatch, capsys):
    def without(error):
        yield Figure("some", "first", 1.0, "s")
        raise error

    settings = Settings(Path(), 1)
    missing = ModuleNotFoundError(name="pyspark")
    for error, line in (
        (SkipError("there is no program java"), "some: skipped, there is no program java"),
        (missing, "some: skipped, pyspark is missing: pip install '.[spark]'"),
    ):
        monkeypatch.setitem(TASKS, "some", lambda _, error=error: without(error))
        assert len(run_task("some", settings, {})) == 1
        assert capsys.readouterr().out.splitlines()[1:] == [line]
    fault = ModuleNotFoundError(name="aegis.missing")
    monkeypatch.setitem(TASKS, "some", lambda _: without(fault))
    with pytest.raises(ModuleNotFoundError):
        run_task("some", settings, {})


def test_the_processor_time_of_a_process_includes_those_that_it_started():
    busy = "import time; began = time.process_time()\nwhile time.process_time() - began < 0.5: pass"
    before = seconds_of(os.getpid())
    words = [
        sys.executable,
        "-c",
        f"import subprocess, sys; subprocess.run([sys.executable, '-c', {busy!r}])",
    ]
    subprocess.run(words, check=True)
    assert seconds_of(os.getpid()) - before >= 0.5
    assert peak("self") == peak(os.getpid())
    assert peak("self")[1] > 10
