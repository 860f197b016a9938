"""Fill in what depends on the project's public address, when a package is built.

Links between the files of the repository do not work on the page of a package. With `address` in
`pyproject.toml`, they lead to the files of this version at that address, and the package names the
address as its home. Without it, the README stays as it is.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface

_LINK = re.compile(r"(!?)(\[(?:[^\[\]]|!\[[^\]]*\]\([^)]*\))*\])\((?![a-z]+:|#)([^)\s]+)\)")
"""Picture or not, text, and target of a link to a file of the repository."""


class PublicAddress(MetadataHookInterface):
    """Set the README and the addresses of the package."""

    PLUGIN_NAME = "custom"

    def update(self, metadata: dict[str, Any]) -> None:
        """Set `readme` and, with an address, `urls`."""
        address = str(self.config.get("address", "")).rstrip("/")
        text = (Path(self.root) / "README.md").read_text(encoding="utf-8")
        if address:
            version = f"v{metadata['version']}"
            text = absolute(text, address, version)
            files = f"{address}/blob/{version}"
            metadata["urls"] = {
                "Homepage": address,
                "Documentation": f"{files}/docs/index.md",
                "Changelog": f"{files}/CHANGELOG.md",
                "Issues": f"{address}/issues",
            }
        metadata["readme"] = {"content-type": "text/markdown", "text": text}


def absolute(text: str, address: str, version: str) -> str:
    """Return a page whose links and pictures lead to the files of a version at an address."""

    def led(link: re.Match[str]) -> str:
        kind = "raw" if link[1] else "blob"
        return f"{link[1]}{_LINK.sub(led, link[2])}({address}/{kind}/{version}/{link[3]})"

    return _LINK.sub(led, text)
