"""Draw the README's badges from `pyproject.toml`; `make pictures` runs it."""

from __future__ import annotations

import tomllib
from html import escape
from pathlib import Path

ROOT = Path(__file__).parents[1]
IMAGES = ROOT / "docs" / "images"
_LETTER, _EDGE = 6.6, 7
"""Width of a letter and of the margins, in pixels."""


def badges() -> dict[str, str]:
    """Return the badges by file name, as SVG."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    named = "Programming Language :: Python :: 3."
    minor = [int(c.removeprefix(named)) for c in project["classifiers"] if c.startswith(named)]
    return {
        "badge-python.svg": drawn("Python", f"3.{min(minor)} to 3.{max(minor)}"),
        "badge-version.svg": drawn("version", project["version"]),
        "badge-licence.svg": drawn("licence", project["license"]),
    }


def drawn(name: str, value: str) -> str:
    """Return a badge with a name and its value as SVG, readable on light and dark pages."""
    left, right = (round(len(text) * _LETTER + 2 * _EDGE) for text in (name, value))
    name, value = escape(name), escape(value)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{left + right}" height="20" role="img" '
        f'aria-label="{name}: {value}"><title>{name}: {value}</title>'
        f'<rect width="{left + right}" height="20" rx="3" fill="#444"/>'
        f'<path d="M{left} 0h{right - 3}a3 3 0 0 1 3 3v14a3 3 0 0 1-3 3H{left}z" fill="#1f5fa8"/>'
        '<g fill="#fff" font-family="Verdana,DejaVu Sans,sans-serif" font-size="11" '
        f'text-anchor="middle"><text x="{left / 2}" y="14">{name}</text>'
        f'<text x="{left + right / 2}" y="14">{value}</text></g></svg>\n'
    )


if __name__ == "__main__":
    for file, badge in badges().items():
        (IMAGES / file).write_text(badge, encoding="utf-8")
