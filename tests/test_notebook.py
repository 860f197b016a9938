"""In a notebook a study, an advice, a release and an audit show themselves as HTML."""

from __future__ import annotations

import os
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

CELLS = (
    "import aegis\n"
    "import pyarrow as pa\n"
    "table = pa.table({'age': [20 + i % 7 for i in range(90)], '<b>': [i % 2 for i in range(90)]})\n"
    "policy = aegis.load_policy({'version': 1, 'label': '<b>', 'privacy': {'k': 2},\n"
    "    'attributes': {'age': {'role': 'quasi-identifier'}}})\n"
    "study = aegis.Study(table, policy)\n"
    "policy",
    "study.summary\nstudy",
    "advice = study.advise()\nadvice",
    "release = study.apply(advice)\nrelease",
    "study.audit()",
)


@pytest.fixture(scope="module")
def shown(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """The HTML of each cell's result."""
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(c) for c in CELLS])
    folder = tmp_path_factory.mktemp("notebook")
    here = os.environ.get("PYTHONPATH")
    os.environ["PYTHONPATH"] = str(Path(__file__).parents[1] / "src")
    try:
        NotebookClient(
            notebook,
            timeout=300,
            kernel_name="python3",
            resources={"metadata": {"path": str(folder)}},
        ).execute()
    finally:
        if here is None:
            del os.environ["PYTHONPATH"]
        else:
            os.environ["PYTHONPATH"] = here
    (results) = [cell.outputs[-1] for cell in notebook.cells]
    return [result["data"]["text/html"] for result in results]


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_each_result_is_a_table(shown: list[str]) -> None:
    assert all("<table>" in page for page in shown)
    assert all("<b>" not in page for page in shown)


def test_each_says_what_it_is(shown: list[str]) -> None:
    kinds = ("Policy(", "Study(", "Advice(", "Release(", "Audit(")
    assert [
        page.removeprefix("<p>").startswith(kind) for page, kind in zip(shown, kinds, strict=True)
    ]
    assert [kind in page for page, kind in zip(shown, kinds, strict=True)] == [True] * 5
