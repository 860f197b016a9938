"""Define the colours of the report, for light and dark mode.

Templates and charts refer to a colour by its CSS variable, so that one drawing works in both modes.
The contrast to the background is at least 4.5 for text, and at least 3 for marks that carry meaning
(WCAG 2.2, success criteria 1.4.3 and 1.4.11). A test computes the contrast of every pair.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

HEAT_STEPS = 6
"""Number of colour steps of the heat map, from little kept to everything kept."""

HEAT_BOUNDS = (10.0, 30.0, 50.0, 70.0, 90.0)
"""The percentages kept at which the next colour step of the heat map begins."""

LIGHT: Mapping[str, str] = MappingProxyType(
    {
        "page": "#f5f7f9",
        "card": "#ffffff",
        "sunken": "#eef2f5",
        "line": "#d5dde4",
        "ink": "#16212c",
        "muted": "#516070",
        "accent": "#0b5b89",
        "accent-soft": "#e4f0f7",
        "caution": "#a8410f",
        "caution-soft": "#fcefe7",
        "mark-line": "#a9b6c2",
        "heat-0": "#eef3f7",
        "heat-1": "#d3e3ef",
        "heat-2": "#a9cbe2",
        "heat-3": "#74abd0",
        "heat-4": "#2b74a8",
        "heat-5": "#0b4a75",
        "heat-text-0": "#16212c",
        "heat-text-1": "#16212c",
        "heat-text-2": "#16212c",
        "heat-text-3": "#0d1720",
        "heat-text-4": "#ffffff",
        "heat-text-5": "#ffffff",
    }
)

DARK: Mapping[str, str] = MappingProxyType(
    {
        "page": "#10161c",
        "card": "#18202a",
        "sunken": "#202b37",
        "line": "#334252",
        "ink": "#e9eef3",
        "muted": "#a5b3c1",
        "accent": "#74bce8",
        "accent-soft": "#17344a",
        "caution": "#f2a071",
        "caution-soft": "#3a2619",
        "mark-line": "#5c6d7e",
        "heat-0": "#202b37",
        "heat-1": "#1d3d55",
        "heat-2": "#1d5479",
        "heat-3": "#3f87b5",
        "heat-4": "#79b8df",
        "heat-5": "#bfe0f5",
        "heat-text-0": "#e9eef3",
        "heat-text-1": "#e9eef3",
        "heat-text-2": "#ffffff",
        "heat-text-3": "#0b1219",
        "heat-text-4": "#0b1219",
        "heat-text-5": "#0b1219",
    }
)


def variable(name: str) -> str:
    """Return the CSS variable of a colour, to use in the attributes of a drawing.

    Raises
    ------
    KeyError
        The palette has no colour with this name.
    """
    LIGHT[name]
    return f"var(--{name})"


def heat_step(utility: float | None) -> int | None:
    """Return the colour step of the heat map for a percentage of utility, counted from 0; None if
    the utility is None.
    """
    return None if utility is None else sum(utility >= bound for bound in HEAT_BOUNDS)
