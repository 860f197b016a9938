"""A folder for bundles, and the bytes of one."""

from __future__ import annotations

from pathlib import Path

import pytest
from bundle_support import example

from aegis.summary import save_bundle


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("bundles")


@pytest.fixture(scope="module")
def bundle(folder: Path) -> bytes:
    file = folder / "example.aegis"
    save_bundle(example(), file)
    return file.read_bytes()
