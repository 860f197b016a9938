"""Load the word lists for column names: `words.toml` in this folder."""

from __future__ import annotations

import tomllib
from functools import cache
from importlib.resources import files
from typing import Any


@cache
def read_lists() -> dict[str, Any]:
    """Read the file with the word lists. In the result, `concept` is a list of concepts, and
    `words` maps the name of each word list to the list.
    """
    text = files("aegis.policy.suggest").joinpath("words.toml").read_text(encoding="utf-8")
    return tomllib.loads(text)


@cache
def word_list(name: str) -> frozenset[str]:
    """Return the word list that has this name."""
    return frozenset(read_lists()["words"][name])
