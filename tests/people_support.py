"""Tables of ages and towns, some of them unknown, with masks of either."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv as pc

Row = tuple[int, str | None]


def write_people(path: Path, rows: list[Row], **more: list[Any]) -> Path:
    ages, towns = zip(*rows, strict=True)
    pc.write_csv(pa.table({"age": ages, "town": pa.array(towns, pa.string()), **more}), path)
    return path


def masks_of_people(towns: Mapping[str, str]) -> dict[str, Any]:
    """Return the attributes of a policy: ages in steps, towns in parts of a country."""
    levels = {town: [part, "*"] for town, part in towns.items()}
    return {
        "age": {
            "role": "quasi-identifier",
            "masks": ["identity", *({"bucketize": {"width": w}} for w in (5, 10)), "suppress"],
        },
        "town": {"role": "quasi-identifier", "hierarchy": {"levels": levels}},
    }
