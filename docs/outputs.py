"""Write what the commands of a page print below them, where a block ```output follows; `make outputs` runs it."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
COMMANDS = re.compile(
    r"^```bash\n(?P<command>.*?)^```\n(?P<shown>\n```output\n.*?^```\n)?", re.MULTILINE | re.DOTALL
)


def with_outputs(page: str) -> str:
    """Return a page with the outputs of today, its commands run in order in a fresh folder."""
    with tempfile.TemporaryDirectory() as folder:
        for name in ("data", "examples"):
            (Path(folder) / name).symlink_to(ROOT / name, target_is_directory=True)
        return COMMANDS.sub(lambda found: _block(found, folder), page)


def _block(found: re.Match[str], folder: str) -> str:
    environment = {
        **os.environ,
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "NO_COLOR": "1",
        "COLUMNS": "80",
    }
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", found["command"]],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    block = f"```bash\n{found['command']}```\n"
    return block if found["shown"] is None else f"{block}\n```output\n{done.stdout.strip()}\n```\n"


if __name__ == "__main__":
    for path in sorted((ROOT / "docs").glob("*/*.md")):
        text = path.read_text(encoding="utf-8")
        if "```output" in text:
            path.write_text(with_outputs(text), encoding="utf-8")
