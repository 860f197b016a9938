"""The word lists for reading column names: `words.toml` in this folder."""

from __future__ import annotations

import tomllib
from functools import cache
from importlib.resources import files
from typing import Any


@cache
def read_lists() -> dict[str, Any]:
    """Return the file's content: `concept`, a list of concepts, and `words`, lists by name."""
    text = files("aegis.policy.suggest").joinpath("words.toml").read_text(encoding="utf-8")
    return tomllib.loads(text)


@cache
def word_list(name: str) -> frozenset[str]:
    """Return one list of words."""
    return frozenset(read_lists()["words"][name])
