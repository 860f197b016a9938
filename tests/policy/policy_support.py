"""A policy with every key, a small one, and the beginning of others."""

from __future__ import annotations

from pathlib import Path
from typing import Any

FULL = """\
version: 1
label: {column: price, bins: 4}
measure: mi
privacy: {k: 5, suppression: 0.02, l_diversity: {attribute: job, kind: entropy, l: 2}}
unseen: suppress
attributes:
  age:
    role: quasi-identifier
    masks: [identity, {bucketize: {width: 10}}, suppress]
  town:
    role: quasi-identifier
    hierarchy: levels/town.csv
    weight: 2
  job: {role: sensitive}
  hours: {role: feature, masks: [{keep_frequent: {count: 3}}]}
  name: {role: identifier, masks: [{tokenise: {key_env: KEY}}]}
  note: {role: ignore}
configurations:
  coarse: {age: {bucketize: {width: 10}}, town: {level: 2}}
"""


def write(folder: Path, text: str, name: str = "policy.yaml") -> Path:
    (folder / "levels").mkdir(exist_ok=True)
    (folder / "levels" / "town.csv").write_text("Oslo;north;*\nRome;south;*\n")
    file = folder / name
    file.write_text(text, encoding="utf-8")
    return file


SMALL: dict[str, Any] = {"version": 1, "label": "y", "attributes": {"a": {"role": "feature"}}}


HEAD = "version: 1\nlabel: y\nattributes:\n"


A = "  a: {role: feature}\n"
