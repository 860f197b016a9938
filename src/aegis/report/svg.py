"""Convert a chart to inline SVG with texts for screen readers, without network access.

Vega-Lite writes attributes unchanged, so a colour such as `var(--accent)` follows the page's light
or dark mode. Its SVG writer escapes text. This module still parses and checks the result, because
the template inserts it without escaping.
"""

from __future__ import annotations

import atexit
import json
import re
import subprocess
import sys
from dataclasses import dataclass
from functools import cache
from html import escape
from typing import IO, Any
from xml.etree import ElementTree

from markupsafe import Markup

from aegis.blas import addresses_limited
from aegis.errors import EngineError, InternalError
from aegis.report.charts import Plot, variable

FONT = "Helvetica Neue, Helvetica, Arial, Liberation Sans, sans-serif"
"""The typefaces of pages and charts. All have the metrics with which the widths of labels are
computed.
"""

_DRAWING = frozenset(
    {"svg", "g", "path", "line", "rect", "text", "tspan", "circle", "defs", "clipPath", "title"}
)
"""Elements that a chart may hold: nothing that runs, loads or links."""

_NOISE = re.compile(
    r' (?:font-family="[^"]*"|opacity="1"|fill-opacity="1"|pointer-events="none"|stroke-width="0"|aria-hidden="true"'
    r'|class="(?:background|foreground|mark-[^"]*)")'
)
"""Attributes that say what the page says once, or nothing."""

_DIGITS = re.compile(r"(\d\.\d\d)\d+")
"""Coordinates finer than a hundredth of a pixel."""

_OPENING = re.compile(r"<svg\b[^>]*>")
_TAG = re.compile(r"<[a-z][^<>]*>")
_NAMESPACE = "{http://www.w3.org/2000/svg}"
_CHILD = """
import json, sys
import vl_convert
for line in sys.stdin:
    request = json.loads(line)
    text = vl_convert.vegalite_to_svg(request["chart"], vl_version=request["version"], allowed_base_urls=[])
    print(json.dumps(text), flush=True)
"""


@dataclass(frozen=True)
class Drawing:
    """A chart as the report contains it, in two widths.

    Attributes
    ----------
    wide, narrow
        The SVG for a wide and for a small screen.
    """

    wide: Markup
    narrow: Markup


def draw(plot: Plot, *, name: str, title: str, description: str) -> Markup:
    """Return a chart as an inline SVG. `name` identifies it in the page; `title` and `description`
    are plain text for screen readers.

    Raises
    ------
    EngineError
        The process does not get as much memory as the chart engine needs.
    InternalError
        The renderer made something other than a plain drawing.
    """
    import altair

    version = ".".join(altair.SCHEMA_VERSION.removeprefix("v").split(".")[:2])
    # Altair copies and checks everything in a chart, so the data is added only here.
    specification = plot.chart.to_dict(validate=False)
    specification |= {"config": _config(), "datasets": dict(plot.data)}
    text = to_svg(specification, version)
    _require_plain(text)
    width, height = _size(text)
    opening = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" '
        f'style="max-width:{width}px" role="img" '
        f'aria-labelledby="{name}-title {name}-description">'
        f'<title id="{name}-title">{escape(title)}</title>'
        f'<desc id="{name}-description">{escape(description)}</desc>'
    )
    return Markup(_TAG.sub(_short, _OPENING.sub(lambda _: opening, text, count=1)))


def _short(tag: re.Match[str]) -> str:
    """Return a matched SVG tag without the parts that do not change the drawing."""
    return _DIGITS.sub(r"\1", _NOISE.sub("", tag.group()))


def _config() -> dict[str, Any]:
    """Return the Vega-Lite configuration of all charts: font, lines and colours."""
    return {
        "font": FONT,
        "aria": False,
        "padding": 4,
        "background": None,
        "view": {"stroke": None, "continuousWidth": 300, "continuousHeight": 300},
        "axis": {
            "labelColor": variable("muted"),
            "titleColor": variable("muted"),
            "labelFontSize": 12,
            "titleFontSize": 12,
            "titleFontWeight": "normal",
            "titlePadding": 10,
            "labelPadding": 6,
            "gridColor": variable("line"),
            "domain": False,
            "ticks": False,
        },
    }


def _require_plain(text: str) -> None:
    """Refuse an SVG with anything but shapes and text, such as scripts or links."""
    try:
        root = ElementTree.fromstring(text)
    except ElementTree.ParseError as error:
        raise InternalError(
            f"The renderer made an SVG that is not well formed: {error}."
        ) from error
    for element in root.iter():
        tag = element.tag.removeprefix(_NAMESPACE)
        links = [key for key in element.attrib if key.endswith("href") or key.startswith("on")]
        if tag not in _DRAWING or links:
            raise InternalError(f"The renderer made an SVG with <{tag}> {links}.")


def _size(text: str) -> tuple[int, int]:
    """Return the width and the height of an SVG, in pixels, from its opening tag."""
    opening = _OPENING.search(text)
    box = re.search(r'viewBox="0 0 ([\d.]+) ([\d.]+)"', opening.group()) if opening else None
    if box is None:
        raise InternalError("The renderer made an SVG without a size.")
    return round(float(box.group(1))), round(float(box.group(2)))


def to_svg(specification: dict[str, Any], version: str) -> str:
    """Draw a Vega-Lite chart as SVG, without loading external resources.

    Parameters
    ----------
    specification
        The chart with its data.
    version
        Version of Vega-Lite, such as "5.20".

    Raises
    ------
    EngineError
        The process does not get as much memory as the chart engine needs.
    """
    if not addresses_limited():
        return _drawn_here(specification, version)
    request = json.dumps({"chart": specification, "version": version}, default=str)
    try:
        ask, answer = _child()
        ask.write(f"{request}\n")
        ask.flush()
        line = answer.readline()
    except OSError:
        line = ""
    if not line:
        raise EngineError(
            "There is too little memory for the charts of a report.",
            hint="Their engine reserves tens of gigabytes of addresses, though it uses few: lift "
            "the limit (ulimit -v unlimited), or leave the report out.",
        )
    return str(json.loads(line))


def _drawn_here(specification: dict[str, Any], version: str) -> str:
    import vl_convert

    try:
        text = vl_convert.vegalite_to_svg(specification, vl_version=version, allowed_base_urls=[])
    except BaseException as error:
        # What panics in Rust is no `Exception`, and has a class that cannot be imported.
        if not isinstance(error, ValueError) and type(error).__name__ != "PanicException":
            raise
        reason = str(error).strip().splitlines() or [type(error).__name__]
        raise EngineError(
            f"The chart engine failed: {reason[-1]}",
            hint="Allow it more memory or open files (ulimit -n), or leave the report out.",
        ) from error
    return str(text)


@cache
def _child() -> tuple[IO[str], IO[str]]:
    """Start the process that draws charts; return its input and output, one line per chart."""
    child = subprocess.Popen(
        [sys.executable, "-P", "-c", _CHILD],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    atexit.register(child.kill)
    if child.stdin is None or child.stdout is None:
        raise OSError("The chart engine has no streams.")
    return child.stdin, child.stdout
