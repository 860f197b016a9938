"""Every script of the experiments can be imported: what it takes of the package is there."""

from __future__ import annotations

from importlib import import_module

import pytest

from experiment_modules import FOLDER


def test_every_script_can_be_imported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(FOLDER)
    scripts = sorted(path.stem for path in FOLDER.glob("*.py"))
    assert len(scripts) > 50
    for name in scripts:
        import_module(name)
