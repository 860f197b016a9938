"""Find cells of a workbook that contain an error such as #N/A, because the library reads these
cells as empty.
"""

from __future__ import annotations

import re
import zipfile
from collections.abc import Iterator
from html import unescape
from pathlib import Path

from aegis.words import counted

_CELL = re.compile(rb"<(?:\w+:)?c\s([^>]*)(?<!/)>(.*?)</(?:\w+:)?c>", re.DOTALL)
_VALUE = re.compile(rb"<(?:\w+:)?v>([^<]*)<")
_TAG = {
    name: re.compile(rf"<(?:\w+:)?{name}\s[^>]*>".encode()) for name in ("sheet", "Relationship")
}
_NAMED = 3
"""Largest number of cells that a note lists."""


def error_notes(file: Path, sheet: str) -> list[str]:
    """Return messages to the user about those cells in a sheet of an .xlsx file that show an error
    such as #N/A.

    For files of other formats there are no messages, because their error cells look like empty
    cells.
    """
    if not zipfile.is_zipfile(file):
        return []
    with zipfile.ZipFile(file) as archive:
        part = _part(archive, sheet)
        cells = [] if part is None else list(_errors(archive.read(part)))
    if not cells:
        return []
    more = f" and {len(cells) - _NAMED:,} more" if len(cells) > _NAMED else ""
    verb = counted(len(cells), "cell of the sheet holds", "cells of the sheet hold")
    read = "is" if len(cells) == 1 else "are"
    return [f"{verb} an error and {read} read as null: {', '.join(cells[:_NAMED])}{more}."]


def _part(archive: zipfile.ZipFile, sheet: str) -> str | None:
    """Return the file inside the workbook that stores a sheet; None if it cannot be determined."""
    names = set(archive.namelist())
    book, links = "xl/workbook.xml", "xl/_rels/workbook.xml.rels"
    if not {book, links} <= names:
        return None
    listed = [_attributes(tag) for tag in _TAG["sheet"].findall(archive.read(book))]
    link = next((entry.get("id") for entry in listed if entry.get("name") == sheet), None)
    targets = [_attributes(tag) for tag in _TAG["Relationship"].findall(archive.read(links))]
    target = next((entry.get("Target", "") for entry in targets if entry.get("Id") == link), "")
    part = target.removeprefix("/") if target.startswith("/") else f"xl/{target}"
    return part if part in names else None


def _attributes(tag: bytes) -> dict[str, str]:
    """Return the attributes of a tag, by their names without a prefix."""
    pairs = re.findall(
        r"""([\w:]+)\s*=\s*(?:"([^"]*)"|'([^']*)')""", tag.decode("utf-8", "replace")
    )
    return {name.rpartition(":")[2]: unescape(double or single) for name, double, single in pairs}


def _errors(content: bytes) -> Iterator[str]:
    """Yield the error and the position of each cell that has an error."""
    if b't="e"' not in content and b"t='e'" not in content:  # most sheets: no cell is looked at
        return
    for match in _CELL.finditer(content):
        given = _attributes(match[1])
        value = _VALUE.search(match[2])
        if given.get("t") == "e":
            shown = "an error" if value is None else unescape(value[1].decode("utf-8", "replace"))
            yield f"{shown} in {given['r']}" if "r" in given else shown
