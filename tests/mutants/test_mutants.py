"""What the mutation trial draws from."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from coverage import CoverageData

from . import judge
from .__main__ import EQUIVALENT, FORKS, ROOT, Executed
from .mutations import draw, key, mutations, named_equivalent

MODULE = "src/aegis/example.py"


def written(folder: Path, source: str) -> Path:
    path = folder / MODULE
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(source, encoding="utf-8")
    return path


def test_each_change_named_as_equivalent_is_one_of_the_source() -> None:
    assert named_equivalent(EQUIVALENT, ROOT)


def test_an_equivalent_change_is_found_wherever_its_line_moves(tmp_path: Path) -> None:
    named = tmp_path / "equivalent.txt"
    named.write_text(f"# why\n{MODULE} | x = a < 3 | < -> <= | no a is 3\n", encoding="utf-8")
    for above in ("", "y = 1\n\n"):
        module = written(tmp_path, f"{above}x = a < 3\n")
        left = [
            edit
            for edit in mutations(module, MODULE)
            if key(edit, tmp_path) not in named_equivalent(named, tmp_path)
        ]
        assert {f"{edit.before} -> {edit.after}" for edit in left} - {"1 -> 2"} == {"3 -> 4"}
    written(tmp_path, "x = a <= 3\n")
    with pytest.raises(ValueError, match="does not have"):
        named_equivalent(named, tmp_path)


def test_each_edit_changes_the_module_and_leaves_it_python(tmp_path: Path) -> None:
    source = (
        "def f(a, b):\n    if a < b and not b:\n        return max(a, 1) * 2.5\n    return a is b\n"
    )
    path = written(tmp_path, source)
    edits = mutations(path, MODULE)
    for edit in edits:
        changed = edit.apply(source.encode())
        assert changed != source.encode()
        compile(changed, MODULE, "exec")
    assert {"< -> <=", "and -> or", "max -> min", "* -> /", "is -> is not"} <= {
        f"{edit.before} -> {edit.after}" for edit in edits
    }
    drawn = draw(edits, 10, 1)
    assert len(drawn) == len({edit.line for edit in drawn}) == 3
    assert draw(edits, 10, 1) == drawn


def test_what_zip_joins_is_equally_long_in_every_mutant(tmp_path: Path) -> None:
    path = written(tmp_path, "x = list(zip(a, b, strict=True))\ny = f(strict=True)\n")
    assert [edit.line for edit in mutations(path, MODULE)] == [2]


def test_a_line_is_judged_by_the_tests_that_execute_it(tmp_path: Path) -> None:
    data = CoverageData(str(tmp_path / "executed"))
    for test, lines in {"": [1, 4], "slow": [5], "quick": [5, 6]}.items():
        data.set_context(test)
        data.add_lines({str(ROOT / MODULE): lines})
    data.write()
    seconds = {"slow": 2.0, "quick": 1.0, "other": 0.5}
    (tmp_path / "seconds.json").write_text(json.dumps(seconds), encoding="utf-8")
    executed = Executed(tmp_path, 60)
    assert executed.tests(MODULE, 5) == ["quick", "slow"]
    assert executed.tests(MODULE, 6) == ["quick"]
    assert executed.tests(MODULE, 1) == ["quick", "slow", "other"]
    assert executed.tests(MODULE, 9) == []
    assert Executed(tmp_path, 1.5).tests(MODULE, 5) == ["quick"]
    executed.note(MODULE, ["slow"])
    assert executed.tests(MODULE, 5) == ["slow", "quick"]
    assert executed.tests(MODULE, 1) == ["slow", "quick", "other"]


def test_the_source_that_is_named_is_tested_and_what_fails_is_sent(tmp_path: Path) -> None:
    (tmp_path / "changed").mkdir()
    (tmp_path / "changed" / "thing.py").write_text("X = 1\n", encoding="utf-8")
    (tmp_path / "test_thing.py").write_text(
        "from thing import X\n\ndef test_a():\n    assert X == 1\n\n"
        "def test_b():\n    assert X == 2\n\ndef test_c():\n    assert X == 3\n",
        encoding="utf-8",
    )
    receiving, sending = FORKS.Pipe(duplex=False)
    asked = (tmp_path / "changed", tmp_path, ["test_thing.py"], 60, True, sending)
    process = FORKS.Process(target=judge.run, args=asked)
    process.start()
    assert receiving.recv() == (1, ["test_thing.py::test_b"])
    process.join()
