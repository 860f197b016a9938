"""The commands of the compose file are ones that the image runs."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[2]
COMPOSE = yaml.safe_load((ROOT / "examples" / "service" / "compose.yaml").read_text())["services"]


@pytest.mark.parametrize("name", ["service", "worker"])
def test_a_command_of_the_compose_file_is_taken_as_it_is_written(name, tmp_path):
    """The image's entrypoint is `aegis`: `aegis sh -c ...` ended at once."""
    service = COMPOSE[name]
    secret = tmp_path / "password"
    secret.write_text("secret")
    line = service["command"][0].replace("$$", "$").replace("/run/secrets/database", str(secret))
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        [*service["entrypoint"], f"{line} --help"],
        env={**os.environ, "PATH": path, **service.get("environment", {})},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert "--database" in done.stdout


def test_the_image_holds_what_the_compose_file_runs():
    text = (ROOT / "Dockerfile").read_text()
    assert ".[ml,postgres,service]" in text
    assert "chown aegis /objects" in text
    assert [COMPOSE[name]["entrypoint"] for name in ("service", "worker")] == [["sh", "-c"]] * 2
