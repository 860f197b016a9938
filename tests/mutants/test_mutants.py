"""What the mutation trial draws from."""

from __future__ import annotations

from pathlib import Path

import pytest

from .__main__ import EQUIVALENT, ROOT
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
