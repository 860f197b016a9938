"""Print what a search returns besides its ranking: proof, obstacles and trade-off front."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from aegis.present import mask_shown
from aegis.words import amount

if TYPE_CHECKING:
    from rich.console import RenderableType

    from aegis.advisor import Advice
    from aegis.advisor.figures import Binding, Front, FrontPoint, Relaxation, SearchFigures


def search_sections(advice: Advice) -> Iterator[RenderableType]:
    """Yield the sections on a search: the proof, what a finer configuration would violate, and the
    front. A section is left out if there is nothing to show.
    """
    if advice.search is not None:
        yield from _proof(advice.search, advice)
    if advice.binding is not None and any(
        relaxation.gain > 0 for relaxation in advice.binding.finer
    ):
        yield from _finer(advice.binding)
    if advice.binding is not None and advice.binding.relaxations:
        yield from _relaxations(advice.binding)
    if advice.front is not None:
        yield from _front(advice.front, advice)


def _proof(search: SearchFigures, advice: Advice) -> Iterator[RenderableType]:
    from aegis.cli.tables import figure, fixed, heading, pairs

    rows = [
        ("objective", search.objective + (", lower is better" if _lower(search) else "")),
        ("combinations", _combinations(search, advice)),
        ("result", _result(search)),
    ]
    if search.proven is not None:
        rows.append(("proven", search.proven.words()))
    if search.bound is not None:
        rows.append(("best, bound", f"{fixed(search.best)}, {fixed(search.bound)}"))
    done = f"{search.work.nodes:,} boxes split, {search.work.checked:,} class counts checked"
    if advice.estimated is not None:
        done = f"{search.work.checked:,} combinations scored"
    rows.append(("work", f"{done}, {figure(search.work.seconds, 3)} s"))
    yield heading("Search")
    yield pairs((*rows, *(("note", note) for note in search.notes)))


def _combinations(search: SearchFigures, advice: Advice) -> str:
    """Return the number of searched combinations and, if it is below the total, the reason."""
    if search.work.combinations == advice.combinations:
        return amount(search.work.combinations)
    return (
        f"{amount(search.work.combinations)} that differ, of {amount(advice.combinations)}: masks that group "
        "the values in the same way count once"
    )


def _lower(search: SearchFigures) -> bool:
    from aegis.advisor.search.objectives import is_minimised

    return is_minimised(search.objective)


def _result(search: SearchFigures) -> str:
    from aegis.cli.tables import figure

    if search.best is None:
        if not search.complete:
            return "stopped before anything admissible was found; whether there is any is not known"
        return "proven: no combination meets the rule"
    if not search.tells_masks_apart:
        return "scores cannot distinguish masks on this table; nothing is proven"
    if search.optimal:
        if search.preferred:
            return "the highest score of all combinations is proven; the first one counts as equal to it"
        return "proven best of all combinations"
    if search.gap is None or search.bound is None:
        return "the best that was found" + ("" if search.proven else "; nothing is proven")
    percent = f"{100 * search.gap:,.0f}" if search.gap >= 1 else figure(100 * search.gap, 3)
    return f"the best that was found; at most {percent} % better is possible"


def _finer(binding: Binding) -> Iterator[RenderableType]:
    from aegis.cli.tables import Column, heading, number, table_of

    yield heading("Why no finer?")
    yield table_of(
        [relaxation for relaxation in binding.finer if relaxation.gain > 0],
        (Column("attribute", wraps=True), lambda r: r.attribute),
        (Column("next finer mask", wraps=True), lambda r: mask_shown(r.mask)),
        (number("gain"), lambda r: signed(r.gain)),
        (number("failing rows"), lambda r: f"{r.rows_failing:,}" if r.violations else "none"),
        (number("allowed"), lambda r: f"{r.allowed_rows:,}"),
    )


def _relaxations(binding: Binding) -> Iterator[RenderableType]:
    from aegis.cli.tables import heading, pairs

    yield heading("What a weaker rule would gain")
    yield pairs((relaxation.change, _gain(relaxation)) for relaxation in binding.relaxations)


def _gain(relaxation: Relaxation) -> str:
    from aegis.cli.tables import fixed

    if not relaxation.shows:
        return "nothing" if relaxation.proven else "nothing that was found"
    proof = "" if relaxation.proven else ", not proven"
    masks = ", ".join(f"{name} {mask_shown(mask)}" for name, mask in relaxation.masks.items())
    return f"{signed(relaxation.gain)}, to {fixed(relaxation.score)}{proof}" + (
        f", with {masks}" if masks else ""
    )


def _front(front: Front, advice: Advice) -> Iterator[RenderableType]:
    from aegis.cli.tables import (
        Column,
        figure,
        fixed,
        heading,
        line,
        number,
        percent,
        share,
        table_of,
    )

    rows = advice.summary["rows"]
    by_objective = any(point.objective is not None for point in front.points)
    yield heading(f"The best configuration by {front.parameter}")
    yield table_of(
        front.points,
        (number(front.parameter), lambda point: figure(point.value)),
        (number("objective"), lambda point: fixed(point.objective)) if by_objective else None,
        (number("score"), lambda point: fixed(point.score)),
        (number("kept"), lambda point: percent(point.utility_kept)),
        (number("min. class"), lambda point: f"{point.smallest_class:,}"),
        (number("suppressed"), lambda point: share(point.suppressed_rows, rows)),
        (Column("", wraps=True), lambda point: _remark(point, knee=point.value == front.knee)),
    )
    yield line(f"\n{objective_legend(advice)}score: {advice.measure}.", style="dim")


def objective_legend(advice: Advice) -> str:
    """Return a line that explains the objective column; empty if the objective is the measure."""
    search = advice.search
    if search is None or search.objective == advice.measure:
        return ""
    best = "lowest" if _lower(search) else "highest"
    return f"objective: {search.objective}, {best} first: the search went by it.\n"


def _remark(point: FrontPoint, *, knee: bool) -> str:
    if point.score is None:
        return "none admissible" if point.proven else "none found in time"
    said = ["recommended knee"] if knee else []
    said += ["dominated"] if point.dominated else []
    said += [] if point.proven else ["not proven"]
    return ", ".join(said)


def signed(change: float) -> str:
    """Return a change with an explicit sign."""
    from aegis.cli.tables import fixed

    text = fixed(change)
    return f"+{text}" if change > 0 else text
