"""The label of a table in plain words."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from aegis.words import counted, short


def label_words(summary: Mapping[str, Any]) -> str:
    """Return the content of a summary's label, such as "2 classes".

    Parameters
    ----------
    summary
        What `Summary.to_dict` returns, or an estimate of it.

    Examples
    --------
    >>> label_words({"classes": {"no": 3, "yes": 2}})
    '2 classes'
    >>> label_words({"classes": {}, "label_number": {"mean": 1250.5, "deviation": 320.25}})
    'a mean of 1,250 and a standard deviation of 320.2'
    """
    number = summary.get("label_number")
    if number is None:
        return counted(len(summary["classes"]), "class", "classes")
    return f"a mean of {short(number['mean'])} and a standard deviation of {short(number['deviation'])}"
