"""Pictures show the figures that the demo has today."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parents[2]


def script(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, ROOT / "docs" / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def pictures() -> ModuleType:
    return script("pictures")


def test_the_badges_show_what_the_project_declares() -> None:
    readme = (ROOT / "README.md").read_text()
    for name, badge in script("badges").badges().items():
        assert (ROOT / "docs" / "images" / name).read_text() == badge, (
            "make pictures draws it again"
        )
        assert f"(docs/images/{name})" in readme


def test_the_picture_of_the_report_shows_what_the_demo_reports(pictures: ModuleType) -> None:
    shown = pictures.shown_figures(pictures.REPORT)
    assert shown == pictures.figures(pictures.demo_report()), "make pictures takes it again"


def test_the_picture_of_a_request_shows_the_rows_of_its_page(pictures: ModuleType) -> None:
    template = ROOT / "src" / "aegis" / "service" / "templates" / "request.html"
    rows = pictures.request_rows(template.read_text()).split("; ")
    rows.remove("Measure")  # the request of the demo names none
    shown = pictures.shown_figures(pictures.REQUEST)
    assert shown.split("; ") == rows, "make pictures takes it again"


def test_a_picture_holds_its_figures(pictures: ModuleType, tmp_path: Path) -> None:
    plain = (ROOT / "docs" / "images" / "workbench.png").read_bytes()
    made = tmp_path / "made.png"
    made.write_bytes(pictures.with_figures(plain, "96.3 % in ä"))
    assert pictures.shown_figures(made) == "96.3 % in ä"
    with pytest.raises(ValueError, match="holds no figures"):
        pictures.shown_figures(ROOT / "docs" / "images" / "workbench.png")
