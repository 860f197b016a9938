"""Write measured figures into the pages that show them: `python docs/figures.py`.

All come from `benchmarks/figures.json`. A page marks where they stand: `<!-- figures TASK -->` to
`<!-- end -->` holds the table of a task, `<!-- figure TASK: NAME -->` to `<!-- end -->` one value,
and `<!-- missed -->` to `<!-- end -->` all figures that miss their target. A test fails when a page is
stale.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from benchmarks.figures import FIGURES, Run, read_runs  # noqa: E402
from benchmarks.measure import Figure  # noqa: E402

MARK = re.compile(
    r"<!-- (?P<kind>figures|figure|missed)(?: (?P<task>\w+))?(?:: (?P<name>.+?))? -->.*?<!-- end -->",
    re.DOTALL,
)


def pages() -> list[Path]:
    """Return the pages that may show figures."""
    return [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


def with_figures(page: str, runs: Mapping[str, Run]) -> str:
    """Return a page whose marked places show the figures of these runs."""
    return MARK.sub(lambda found: _filled(found, runs), page)


def _filled(found: re.Match[str], runs: Mapping[str, Run]) -> str:
    mark = found[0][: found[0].index("-->") + 3]
    if found["kind"] == "missed":
        text = f"\n{_missed(runs)}\n"
    elif found["kind"] == "figures":
        text = f"\n{_table(found['task'], runs[found['task']])}\n"
    else:
        (figure,) = (f for f in runs[found["task"]].figures if f.name == found["name"])
        text = value(figure)
    return f"{mark}{text}<!-- end -->"


def _table(task: str, run: Run) -> str:
    has_target = any(figure.target is not None for figure in run.figures)
    heads = ["measured", "figure", *(["target"] if has_target else []), "details"]
    rows = [
        [_cell(f.name), value(f), *([_target(f)] if has_target else []), _cell(f.note)]
        for f in run.figures
    ]
    lines = [heads, ["---"] * len(heads), *rows]
    table = "\n".join("| " + " | ".join(line) + " |" for line in lines)
    load = " to ".join(f"{one:g}" for one in run.load)
    words = _plain(f"python -m benchmarks --only {task} --rows {run.rows:.0e}")
    return f"\n{table}\n\n`{words}`, commit {run.commit}, {run.date}, load {load}."


def _plain(text: str) -> str:
    """Return a text of a figure as pages write numbers: 5 %, 1e7."""
    return re.sub(r"(?<=\d)%", " %", re.sub(r"(?<=\de)\+0*", "", text))


def _cell(text: str) -> str:
    return _plain(text).replace("|", "\\|")


def _missed(runs: Mapping[str, Run]) -> str:
    missed = [
        f"- {_plain(figure.name)} (`{task}`): {value(figure)}, target {_target(figure, verdict=False)}"
        for task, run in runs.items()
        for figure in run.figures
        if figure.met is False
    ]
    return "\n" + "\n".join(missed)


def _target(figure: Figure, *, verdict: bool = True) -> str:
    if figure.target is None:
        return ""
    bound = "at most" if figure.at_most else "at least"
    text = f"{bound} {_amount(figure.target, figure.unit)}"
    if not verdict or figure.met:
        return text
    return f"{text}: **missed**" if figure.proven else f"{text}: **missed**, no proof"


def value(figure: Figure) -> str:
    """Return the value of a figure with its unit, to three digits."""
    return _amount(figure.value, figure.unit)


def _amount(amount: float, unit: str) -> str:
    if unit == "s" and amount < 0.1:
        amount, unit = amount * 1000, "ms"
    if unit == "MB" and amount >= 1000:
        amount, unit = amount / 1000, "GB"
    if unit == "%":
        return f"{amount:.3g} %"
    number = f"{amount:,.0f}" if amount >= 100 else f"{amount:.3g}"
    return number if unit in {"", "x", "times"} else f"{number} {unit}"


def main() -> None:
    """Write all pages."""
    runs = read_runs(FIGURES)
    for path in pages():
        text = path.read_text(encoding="utf-8")
        if MARK.search(text):
            path.write_text(with_figures(text, runs), encoding="utf-8")


if __name__ == "__main__":
    main()
