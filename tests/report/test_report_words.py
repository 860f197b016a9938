"""How figures and foreign text are written."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aegis.report.charts import DARK, HEAT_STEPS, LIGHT, variable
from aegis.report.words import clean, figure, measured, percent, share
from aegis.words import counted

anything = st.text(st.characters(codec=None), max_size=40)


def contrast(first: str, other: str) -> float:
    """Return the contrast ratio of two colours `#rrggbb`, from 1 to 21 (WCAG 2.2, 1.4.3)."""
    lighter, darker = sorted((_luminance(first), _luminance(other)), reverse=True)
    return (lighter + 0.05) / (darker + 0.05)


def _luminance(colour: str) -> float:
    """Return the relative luminance of `#rrggbb`, in [0, 1]."""
    channels = (int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5))
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


@given(anything, st.integers(1, 50))
def test_cleaned_text_can_be_shown_anywhere(text: str, limit: int) -> None:
    shown = clean(text, limit=limit)
    shown.encode("utf-8")
    assert len(shown) <= limit
    assert not {unicodedata.category(c) for c in shown} & {"Cc", "Cs"}
    assert not any(unicodedata.bidirectional(c) in ("RLO", "LRO", "RLI", "PDI") for c in shown)


@given(st.text(st.characters(categories=["L", "N", "P", "S", "M"]), max_size=40))
def test_ordinary_text_is_left_alone(text: str) -> None:
    assert clean(text) == text


def test_disturbing_characters_are_made_visible() -> None:
    assert clean("a\x00b\u202ec\ud800d\ne") == "a\ufffdb\ufffdc\ufffdd e"
    assert clean("abcdef", limit=4) == "abc…"


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "–"),
        (0.0, "0.0 %"),
        (-0.01, "0.0 %"),
        (0.01, "< 0.1 %"),
        (93.44, "93.4 %"),
        (99.97, "> 99.9 %"),
        (100 - 1e-12, "100.0 %"),
        (100.0, "100.0 %"),
        (104.26, "104.3 %"),
    ],
)
def test_percent_never_rounds_to_nothing_or_everything(value: float | None, text: str) -> None:
    assert percent(value).replace("\u00a0", " ") == text


def test_shares_below_one_percent_have_another_digit() -> None:
    written = [share(n, 1000).replace("\u00a0", " ") for n in (0, 9, 10, 1000)]
    assert written == ["0.0 %", "0.90 %", "1.0 %", "100.0 %"]
    assert share(0, 0) == "–"


def test_figures() -> None:
    assert [figure(v) for v in (None, 0, 2.5, 1234.4, 0.00001)] == [
        "–",
        "0",
        "2.5",
        "1,234",
        "1.00e-05",
    ]
    assert [measured(v) for v in (None, -0.00001, 2.5, 12.3456, 3502.04)] == [
        "–",
        "0.0000",
        "2.5000",
        "12.35",
        "3,502",
    ]
    assert [counted(1, "row"), counted(2, "row"), counted(2, "class", "classes")] == [
        "1 row",
        "2 rows",
        "2 classes",
    ]


def test_contrast_follows_the_definition() -> None:
    assert contrast("#000000", "#ffffff") == pytest.approx(21)
    assert contrast("#777777", "#ffffff") == pytest.approx(4.478, abs=1e-3)


@pytest.mark.parametrize("colours", [LIGHT, DARK], ids=["light", "dark"])
def test_text_and_marks_reach_the_contrast_of_aa(colours: dict[str, str]) -> None:
    text = [(ink, ground) for ink in ("ink", "muted") for ground in ("page", "card", "sunken")]
    text += [("accent", "card"), ("accent", "page"), ("caution", "card"), ("ink", "accent-soft")]
    text += [("ink", "caution-soft"), ("muted", "accent-soft")]
    text += [(f"heat-text-{i}", f"heat-{i}") for i in range(HEAT_STEPS)]
    assert {
        p: contrast(colours[p[0]], colours[p[1]]) for p in text if _short(colours, p, 4.5)
    } == {}
    marks = [("accent", "card"), ("caution", "card"), ("accent", "sunken")]
    assert [pair for pair in marks if _short(colours, pair, 3)] == []


def _short(colours: dict[str, str], pair: tuple[str, str], least: float) -> bool:
    return contrast(colours[pair[0]], colours[pair[1]]) < least


def test_palettes_name_the_same_colours() -> None:
    assert list(LIGHT) == list(DARK)
    assert variable("accent") == "var(--accent)"
    with pytest.raises(KeyError):
        variable("puce")
