"""A small project of ARX, written as ARX writes them."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any
from zipfile import ZipFile

ROWS = [("Ulm", "31", "flu"), ("Rom", "38", "flu"), ("Ulm", "45", "gout"), ("Rom", "47", "flu")] * 3
HIERARCHIES = {
    "town": "Ulm;south;*\nRom;south;*\n",
    "age; in years": "31;30s;*\n38;30s;*\n45;40s;*\n47;40s;*\n",
}
TYPES = {
    "town": "QUASI_IDENTIFYING_ATTRIBUTE",
    "age; in years": "QUASI_IDENTIFYING_ATTRIBUTE",
    "ill": "SENSITIVE_ATTRIBUTE",
}


def project(
    folder: Path,
    *criteria: str,
    vocabulary: str = "2.0",
    limits: tuple[str, str] = ("All", "All"),
    selected: set[int] | None = None,
    response: str | None = None,
    replaced: dict[str, str] | None = None,
    metric: str = "Loss (0.1/1.0/0.2)",
    weights: dict[str, float] | None = None,
    java: bytes = b"",
) -> Path:
    """Write a project."""
    entries = ""
    for name, kind in TYPES.items():
        ref = f"<ref>hierarchies/{name}.csv</ref>" if name in HIERARCHIES else ""
        low, high = limits if name == "town" else ("All", "All")
        answer = "<response>true</response>" if name == response else ""
        entries += (
            f"<assigment><name>{name}</name><type>{kind}</type><datatype>String</datatype>{ref}"
            f"<min>{low}</min><max>{high}</max>{answer}</assigment>"
        )
    asked = "".join(f"<criterion>{one}</criterion>" for one in criteria)
    weighed = "".join(
        f"<attributeWeight><attribute>{name}</attribute><weight>{weight}</weight></attributeWeight>"
        for name, weight in (weights or {}).items()
    )
    data = [tuple(TYPES), *ROWS]
    files: dict[str, Any] = {
        "metadata.xml": f"<metadata><vocabulary>{vocabulary}</vocabulary></metadata>",
        "project.xml": "<project><separator>;</separator></project>",
        "data/input.csv": "".join(";".join(f'"{v}"' for v in row) + "\n" for row in data),
        "input/definition.xml": f"<definition>{entries}</definition>",
        "input/config.xml": (
            "<config><relativeMaxOutliers>0.25</relativeMaxOutliers>"
            f"<metric>{metric}</metric><attributeWeights>{weighed}</attributeWeights>"
            f"<criteria>{asked}</criteria></config>"
        ),
        "input/config.dat": row_set(selected or set()) + java,
        "lattice.xml": (
            "<lattice><level><n><t>[1, 0]</t><a>ANONYMOUS</a><l><u>0.25</u><f>0.25</f></l></n>"
            "<n><t>[0, 0]</t><a>NOT_ANONYMOUS</a><l><u>0.0</u><f>0.0</f></l></n>"
            "<n><t>[0, 1]</t><a>ANONYMOUS</a><l><u>0.5</u><f>0.1</f></l></n></level></lattice>"
        ),
        **{f"input/hierarchies/{name}.csv": text for name, text in HIERARCHIES.items()},
        **(replaced or {}),
    }
    path = folder / "p.deid"
    with ZipFile(path, "w") as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return path


def row_set(selected: set[int]) -> bytes:
    """Return a set of rows as Java's serialisation writes it."""
    word = sum(1 << i for i in selected)
    head = b"I\0\x06lengthI\0\x04size[\0\x05arrayt\0\x02[Jxp"
    shape = struct.pack(">ii", len(ROWS), len(selected))
    array = b"ur\0\x02[J" + b"x" * 8 + b"\x02\0\0xp" + struct.pack(">iQ", 1, word)
    return b"before" + head + shape + array + b"after"
