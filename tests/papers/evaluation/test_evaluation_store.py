from __future__ import annotations

import json

import numpy as np
import pytest

from aegis.errors import DataError
from aegis.papers.evaluation.coding import Design
from aegis.papers.evaluation.training import MODELS, Store, Task, Training


def task(**changes):
    values = {
        "configuration": "c",
        "design": Design(np.array([[0], [1], [0], [1]], dtype=np.int32), (2,)),
        "label": np.array([0, 1, 0, 1]),
        "classes": 2,
        "model": MODELS.get("lr"),
        "split": 0,
        "train": np.array([0, 1]),
        "test": np.array([2, 3]),
        "seed": 0,
    }
    return Task(**(values | changes))


def training(split=0, accuracy=0.5):
    return Training("c", "lr", split, {"accuracy": accuracy, "log_loss": None}, False, ("w",), 1.5)


def test_what_was_added_is_found_again_under_the_names_of_the_task(tmp_path):
    path = tmp_path / "store.jsonl"
    store = Store(path)
    assert store.get(task()) is None
    store.add(task().key, training())
    store.close()
    assert Store(path).get(task()) == training()
    renamed = Store(path).get(task(configuration="other"))
    assert renamed is not None
    assert renamed.configuration == "other"


@pytest.mark.parametrize(
    "changes",
    [
        {"seed": 1},
        {"model": MODELS.get("svm")},
        {"train": np.array([0, 3])},
        {"test": np.array([2])},
        {"label": np.array([0, 1, 1, 1])},
        {"design": Design(np.array([[0], [1], [1], [1]], dtype=np.int32), (2,))},
    ],
)
def test_whatever_decides_the_result_is_part_of_the_key(changes):
    assert task(**changes).key != task().key


def test_a_line_that_a_kill_cut_off_is_dropped_and_the_rest_kept(tmp_path):
    path = tmp_path / "store.jsonl"
    store = Store(path)
    store.add(task().key, training())
    store.add(task(seed=1).key, training(accuracy=0.7))
    store.close()
    whole = path.read_bytes()
    first = whole.index(b"\n") + 1
    for cut in range(first + 1, len(whole), 20):
        path.write_bytes(whole[:cut])
        again = Store(path)
        assert again.get(task()) == training()
        assert again.get(task(seed=1)) is None
        again.add(task(seed=1).key, training(accuracy=0.7))
        again.close()
        assert path.read_bytes() == whole


def test_a_store_whose_only_line_was_cut_off_starts_anew(tmp_path):
    path = tmp_path / "store.jsonl"
    path.write_bytes(b'{"key": "abc')
    store = Store(path)
    store.add(task().key, training())
    store.close()
    assert len([json.loads(line) for line in path.read_text().splitlines()]) == 1


@pytest.mark.parametrize("content", ["a,b\n1,2\n", "[]\n", '{"key": 1}\n', "no newline"])
def test_another_file_is_refused_and_left_alone(tmp_path, content):
    path = tmp_path / "table.csv"
    path.write_text(content)
    with pytest.raises(DataError, match="not a"):
        Store(path)
    assert path.read_text() == content


def test_a_folder_that_is_missing_is_said(tmp_path):
    store = Store(tmp_path / "none" / "store.jsonl")
    with pytest.raises(DataError, match="Cannot write"):
        store.add(task().key, training())


def test_without_a_path_results_stay_in_memory():
    store = Store(None)
    store.add(task().key, training())
    assert store.get(task()) == training()
