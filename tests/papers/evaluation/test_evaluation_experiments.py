"""Every script of the experiments can be imported: what it takes of the package is there."""

from __future__ import annotations

import subprocess
import sys

from experiment_modules import FOLDER

SCRIPTS = sorted(path.stem for path in FOLDER.glob("*.py"))
IMPORTING = """
import importlib, sys
failed = {}
for name in sys.argv[1:]:
    try:
        importlib.import_module(name)
    except Exception as error:
        failed[name] = repr(error)
print(failed)
"""


def test_every_script_can_be_imported() -> None:
    assert len(SCRIPTS) > 50
    run = subprocess.run(
        [sys.executable, "-c", IMPORTING, *SCRIPTS],
        cwd=FOLDER,
        capture_output=True,
        text=True,
        check=True,
        timeout=300,
    )
    assert run.stdout.strip().splitlines()[-1] == "{}"
