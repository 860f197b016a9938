"""`aegis report --evaluate`: what trained models reach, in the report."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from conftest import Shell


def test_the_report_says_what_a_trained_model_reaches(shell: Shell, folder: Path) -> None:
    result = shell("report", "table.csv", "-p", "policy.yaml", "-o", "r.html", "--evaluate", "nb")
    assert result.code == 0
    text = (folder / "r.html").read_text()
    assert "What models reach on the recommendation" in text
    section = text[text.index("What models reach on the recommendation") :]
    rows = dict(
        re.findall(
            r"<td>(accuracy|area under the ROC curve)</td><td class=\"number\">([0-9.]+)", section
        )
    )
    assert set(rows) == {"accuracy", "area under the ROC curve"}
    assert all(0.4 < float(value) <= 1 for value in rows.values())


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("table.csv", "--evaluate", "lrr"), "Did you mean 'lr'"),
        (("table.csv", "--evaluate", ","), "No model was named"),
        (("s.aegis", "--evaluate", "lr"), "holds no rows to train on"),
    ],
)
def test_what_cannot_be_trained_is_refused_before_anything_is_read(
    shell: Shell, words: tuple[str, ...], says: str
) -> None:
    result = shell("report", *words, "-p", "policy.yaml", "-o", "r.html")
    assert result.code == 2
    assert says in " ".join(result.err.split())
