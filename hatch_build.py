"""Fill in what depends on the project's public address, when a package is built.

Links between the files of the repository do not work on the page of a package. With `address` in
`pyproject.toml`, they lead to the files of this version at that address, and the package names the
address as its home. Without it, the page of the package shows the text of these links, and no
pictures of the repository, so that no link is broken.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface

_LINK = re.compile(r"(!?)(\[(?:[^\[\]]|!\[[^\]]*\]\([^)]*\))*\])\((?![a-z]+:|#)([^)\s]+)\)")
"""Picture or not, text, and target of a link to a file of the repository."""
_GALLERY = re.compile(r"^\|(?: *!\[[^\]]*\]\([^)]*\) *\|)+\n(?:\|.*\n)+", re.MULTILINE)
"""A table whose first row has only pictures, with the row of their captions."""


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
        else:
            text = without_links(text)
        metadata["readme"] = {"content-type": "text/markdown", "text": text}


def absolute(text: str, address: str, version: str) -> str:
    """Return a page whose links and pictures lead to the files of a version at an address."""

    def led(link: re.Match[str]) -> str:
        kind = "raw" if link[1] else "blob"
        return f"{link[1]}{_LINK.sub(led, link[2])}({address}/{kind}/{version}/{link[3]})"

    return _LINK.sub(led, text)


def without_links(text: str) -> str:
    """Return a page without pictures of the repository, and with the text of each link to a file of
    the repository in place of the link.
    """

    def shown(link: re.Match[str]) -> str:
        return "" if link[1] else _LINK.sub(shown, link[2])[1:-1]

    lines = _LINK.sub(shown, _GALLERY.sub("", text))
    return re.sub(r"\n[ \n]*\n", "\n\n", lines)
