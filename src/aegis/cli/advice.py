"""Print advice, for people and for programs: the ranking, and the proof, obstacles and trade-off
front of a search.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from aegis.cli.output import (
    Column,
    Output,
    figure,
    fixed,
    heading,
    line,
    number,
    pairs,
    percent,
    portion,
    share,
    table_of,
)
from aegis.cli.parameters import Format
from aegis.cli.screen import ShortPage
from aegis.present import Finding, label_lines, label_words, mask_shown, score_words
from aegis.present.finding import (
    measure_words,
    meeting_words,
    possible_words,
    says_nothing,
    strongest,
    why_above_release,
)
from aegis.words import amount, counted

if TYPE_CHECKING:
    from collections.abc import Callable

    from rich.console import RenderableType
    from rich.text import Text

    from aegis.advisor import Advice, Ranked
    from aegis.advisor.figures import Binding, Front, FrontPoint, Relaxation, SearchFigures
    from aegis.advisor.scores import AttributeScore
    from aegis.advisor.utility import ColumnFigure
    from aegis.policy import Policy


def search_sections(advice: Advice) -> Iterator[RenderableType]:
    """Yield the sections on a search: proof, finer configurations, front; none if empty."""
    if advice.search is not None:
        yield from _proof(advice.search, advice)
    if advice.binding is not None and any(
        relaxation.gain > 0 for relaxation in advice.binding.finer
    ):
        yield from _finer(advice.binding)
    if advice.binding is not None and advice.binding.relaxations:
        yield heading("What a weaker rule would gain")
        yield pairs(
            (relaxation.change, _gain(relaxation)) for relaxation in advice.binding.relaxations
        )
    if advice.front is not None:
        yield from _front(advice.front, advice)


def _proof(search: SearchFigures, advice: Advice) -> Iterator[RenderableType]:
    rows = [
        (
            "objective",
            measure_words(search.objective) + (", lower is better" if _lower(search) else ""),
        ),
        ("combinations", _combinations(search, advice)),
        ("result", _result(search, advice)),
    ]
    if search.proven is not None:
        rows.append(("proven", search.proven.words()))
    if search.bound is not None and says_nothing(search):
        rows.append(("best", fixed(search.best)))
    elif search.bound is not None:
        rows.append(("best, bound", f"{fixed(search.best)}, {fixed(search.bound)}"))
    done = f"{search.work.nodes:,} boxes split, {search.work.checked:,} class counts checked"
    if advice.estimated is not None:
        done = f"{search.work.checked:,} combinations scored"
    rows.append(("work", f"{done}, {figure(search.work.seconds, 3)} s"))
    yield heading("Search")
    yield pairs((*rows, *(("note", note) for note in search.notes)))


def _combinations(search: SearchFigures, advice: Advice) -> str:
    """Return as text how many combinations were searched and, if these are not all, why."""
    if search.work.combinations == advice.combinations:
        return amount(search.work.combinations)
    return (
        f"{amount(search.work.combinations)} that differ, of {amount(advice.combinations)}: masks that group "
        "the values in the same way count once"
    )


def _lower(search: SearchFigures) -> bool:
    from aegis.advisor.search.objectives import is_minimised

    return is_minimised(search.objective)


def _result(search: SearchFigures, advice: Advice) -> str:
    if search.best is None:
        if not search.complete:
            return "stopped before anything admissible was found; whether there is any is not known"
        return "proven: no combination meets the rule"
    if not search.tells_masks_apart:
        return "scores cannot distinguish masks on this table"
    if search.optimal:
        if advice.by_release:
            return "the highest score on all rows is proven; the first one has a better release"
        if advice.preferred is not None:
            return "the highest score of all combinations is proven; the first one counts as equal to it"
        return "proven best of all combinations"
    if search.gap is None or search.bound is None:
        return "the best that was found" + ("" if search.proven else "; nothing is proven")
    return f"the best that was found. {possible_words(search)}"


def _finer(binding: Binding) -> Iterator[RenderableType]:
    yield heading("Why no finer?")
    yield table_of(
        [relaxation for relaxation in binding.finer if relaxation.gain > 0],
        (Column("attribute", wraps=True), lambda r: r.attribute),
        (Column("next finer mask", wraps=True), lambda r: mask_shown(r.mask)),
        (number("gain"), lambda r: signed(r.gain)),
        (number("failing rows"), lambda r: f"{r.rows_failing:,}" if r.violations else "none"),
        (number("allowed"), lambda r: f"{r.allowed_rows:,}"),
    )


def _gain(relaxation: Relaxation) -> str:
    if not relaxation.shows:
        return "nothing" if relaxation.proven else "nothing that was found"
    proof = "" if relaxation.proven else ", not proven"
    masks = ", ".join(f"{name} {mask_shown(mask)}" for name, mask in relaxation.masks.items())
    return f"{signed(relaxation.gain)}, to {fixed(relaxation.score)}{proof}" + (
        f", with {masks}" if masks else ""
    )


def _front(front: Front, advice: Advice) -> Iterator[RenderableType]:
    rows = advice.summary["rows"]
    by_objective = any(point.objective is not None for point in front.points)
    counted: list[tuple[Column, Callable[[FrontPoint], str]]] = [
        (number("min. class"), lambda point: f"{point.smallest_class:,}"),
        (number("suppressed"), lambda point: share(point.suppressed_rows or 0, rows)),
    ]
    yield heading(f"The best configuration by {front.parameter}")
    yield table_of(
        front.visible_points,
        (number(front.parameter), lambda point: figure(point.value)),
        (number("objective"), lambda point: fixed(point.objective)) if by_objective else None,
        (number("score"), lambda point: fixed(point.score)),
        (number("kept"), lambda point: percent(point.utility_kept)),
        *([] if front.by_estimate else counted),
        (Column("", wraps=True), lambda point: _remark(point, front)),
    )
    yield from (line(text) for text in front.notes)
    score = f"score: {measure_words(advice.measure)}, on all rows. kept: on {front.on}."
    yield line(f"\n{objective_legend(advice)}{score}", style="dim")


def objective_legend(advice: Advice) -> str:
    """Return what the column of the objective means; empty if it is the measure."""
    search = advice.search
    if search is None or search.objective == advice.measure:
        return ""
    best = "lowest" if _lower(search) else "highest"
    return f"objective: {measure_words(search.objective)}, {best} first: the search went by it.\n"


def _remark(point: FrontPoint, front: Front) -> str:
    remarks = ["recommended knee"] if point.value == front.knee else []
    remarks += [] if point.proven or front.by_estimate else ["not proven"]
    return ", ".join(remarks)


def signed(change: float) -> str:
    """Return a change with an explicit sign."""
    text = fixed(change)
    return f"+{text}" if change > 0 else text


FIXED = (
    "rank",
    "name",
    "score",
    "utility_kept",
    "pud",
    "admissible",
    "smallest_class",
    "suppressed_rows",
    "violations",
    "stderr",
    "tied_with_best",
    "objective",
)
"""Columns of the CSV before the columns of the attributes."""


ESTIMATED = ("estimate", "estimated_pud", "estimated_low", "estimated_high")
"""Columns that follow if deviations were estimated."""
CHANGES_PRINTED = 8
"""Number of changes that are printed, the best ones; JSON and the report contain all."""


def print_advice(
    shell: Output, advice: Advice, origin: str, policy: Policy, top: int | None
) -> None:
    """Print the best `top` configurations (None: all), and details of the best one."""
    if shell.format is Format.JSON:
        shell.json(advice_dict(advice, top))
        return
    if shell.format is Format.CSV:
        shell.caution(advice.warnings)
        names = list(advice.ranking[0].attributes) if advice.ranking else []
        fixed = ("pud_finest" if c == "pud" and advice.against_finest else c for c in FIXED)
        estimated = any(r.estimate is not None for r in advice.ranking)
        labels = list(advice.ranking[0].labels) if advice.ranking else []
        header = [
            *fixed,
            *(f"kept:{label}" for label in labels),
            *(ESTIMATED if estimated else ()),
            *(f"mask:{n}" for n in names),
            *(f"change:{n}" for n in names),
        ]
        shell.csv(header, (_flat(i + 1, advice.ranking[i], names) for i in _places(advice, top)))
        return
    shell.show(*_overview(advice, origin, policy), *_ranking(advice, top))
    if advice.best is not None:
        shell.show(*_best(advice, advice.best), *_estimates(advice.best))
        shell.show(*label_sections(advice))
    shell.show(*change_sections(advice))
    shell.show(*method_sections(advice))
    shell.show(*search_sections(advice))
    shell.caution(advice.warnings)


def print_short(shell: Output, advice: Advice, best: Ranked, origin: str, policy: Policy) -> None:
    """Print the result of a search on one screen: best configuration, masks, cautions."""
    page = ShortPage.of(advice, best, origin, policy)
    shell.show(*page.parts())
    shell.caution(advice.warnings, short_texts=page.cautions)


def advice_dict(advice: Advice, top: int | None) -> dict[str, Any]:
    """Return the advice as JSON, with its best `top` entries and all record-level releases."""
    data = advice.to_dict()
    data["ranking"] = [data["ranking"][index] for index in _places(advice, top)]
    return data


def _places(advice: Advice, top: int | None) -> list[int]:
    """Return the indices of the first `top` entries, and of all record-level releases."""
    first = len(advice.ranking) if top is None else top
    return [i for i, r in enumerate(advice.ranking) if i < first or r.method is not None]


_EACH_COLUMN = (
    "what can still be learnt about the column, as the share of its variance that the other columns "
    "explain on rows held out, of the values shown; kept counts each value, so fewer values keep less"
)
"""Explanation of the figures of columns if each column is predicted from the others."""


def _rank(advice: Advice, index: int) -> str:
    """Return the rank of an entry as text. A search lists only the N best; of releases after all of
    them, only ">N" is known.
    """
    last = max((i for i, r in enumerate(advice.ranking) if r.method is None), default=None)
    if advice.search is None or last is None or index <= last:
        return str(index + 1)
    return f">{last + 1}"


def _flat(rank: int, ranked: Ranked, names: list[str]) -> list[object]:
    masks: Mapping[str, object] = ranked.configuration.masks
    if ranked.method is not None or not masks:  # of a masked table its masks are not known
        masks = ranked.mask_texts
    return [
        rank,
        ranked.name,
        ranked.score,
        ranked.utility_kept,
        ranked.pud,
        None if ranked.admissible is None else str(ranked.admissible).lower(),
        ranked.smallest_class,
        ranked.suppressed_rows,
        "; ".join(ranked.violations),
        ranked.stderr,
        None if ranked.tied_with_best is None else str(ranked.tied_with_best).lower(),
        ranked.objective,
        *ranked.labels.values(),
        *_estimate_cells(ranked),
        *(masks[name] for name in names),
        *(ranked.attributes[name].change for name in names),
    ]


def _estimate_cells(ranked: Ranked) -> tuple[object, ...]:
    """Return the CSV cells on an estimate: name, deviation and bounds; none without one."""
    estimate = ranked.estimate
    return (
        ()
        if estimate is None
        else (estimate.case, estimate.pud, *(estimate.interval or (None, None)))
    )


def _label(summary: Mapping[str, Any]) -> str:
    if summary.get("labels"):
        each = (f"{name} ({label_words(label)})" for name, label in summary["labels"].items())
        return ", ".join(each)
    if not summary["label"]:
        return "any: each column is predicted from the others"
    return f"{summary['label']} ({label_words(summary)})"


def _overview(advice: Advice, origin: str, policy: Policy) -> Iterator[RenderableType]:
    from aegis.measures import MEASURES

    summary = advice.summary
    quasi = len(policy.quasi_identifiers)
    yield pairs(
        (
            ("Table", f"{origin}: {advice.labelled_words}"),
            ("Label", _label(summary)),
            (
                "Attributes",
                f"{len(summary['attributes'])} scored, {quasi} of them quasi-identifiers",
            ),
            ("Rule", str(policy.privacy)),
            ("Measure", f"{advice.measure} ({MEASURES.get(advice.measure).title})"),
            _extent(advice),
        )
    )


def _extent(advice: Advice) -> tuple[str, str]:
    """Return a title such as `Searched`, and how many combinations were searched and are listed."""
    releases = [r for r in advice.ranking if r.method is not None]
    listed = [r for r in advice.ranking if r.method is None]
    release_count = counted(len(releases), "record-level release")
    if advice.search is None:
        of_all = f"{len(listed):,} of {counted(advice.combinations, 'combination')} of masks"
        what = counted(len(listed), "masked table") if advice.masked_tables else of_all
        return (
            "Ranked",
            f"{what}{f', {release_count}' if releases else ''}; {meeting_words(advice)}",
        )
    if not advice.verdicts_known:
        return (
            "Searched" if advice.optimal else "Searched among",
            f"{counted(advice.combinations, 'combination')} of masks; the best {len(listed):,} are listed",
        )
    admissible = sum(r.admissible is True for r in listed)
    are = "is" if admissible == 1 else "are"
    best = f"the best {admissible:,}" if admissible > 1 else "the best one"
    what = f"{best} that meet{'s' * (admissible == 1)} the rule"
    if not admissible:
        what = "none that meets the rule was found"
    elif not advice.optimal:
        what += " of those tried"
    return (
        "Searched" if advice.optimal else "Searched among",
        f"{counted(advice.combinations, 'combination')} of masks; {what}"
        f"{f' {are} listed' if admissible else ''}"
        f"{f', and {release_count}' if releases else ''}",
    )


def _shortfalls(advice: Advice, entries: Sequence[Ranked]) -> Iterator[RenderableType]:
    """Yield why the first entry comes first, and why some do not meet the rule."""
    if advice.preferred is not None:
        yield line(f"\n{advice.preferred.words()}.")
    failing = [r for r in entries if r.violations]
    if failing:
        yield heading("What falls short")
        yield pairs(
            ("" if i else r.name, violation)
            for r in failing
            for i, violation in enumerate(r.violations)
        )


def _ranking(advice: Advice, top: int | None) -> Iterator[RenderableType]:
    from aegis.measures import MEASURES

    places = _places(advice, top)
    entries = [advice.ranking[i] for i in places]
    ranks = [_rank(advice, i) for i in places]
    rows = advice.summary["rows"]
    yield heading("Ranking" + _cut(advice, places, top))
    by_objective = any(r.objective is not None for r in entries)
    estimated = any(r.estimate is not None for r in entries)
    sign = MEASURES.get(advice.measure).direction.sign
    highest = max(entries, key=lambda r: (r.admissible is not False, sign * r.score), default=None)
    yield table_of(
        zip(ranks, entries, strict=True),
        (number("#"), lambda r: r[0]),
        (Column("name", wraps=True), lambda r: r[1].name),
        (number("objective"), lambda r: fixed(r[1].objective)) if by_objective else None,
        (number("score"), lambda r: _score(r[1], highest)),
        (number(_pud(advice)), lambda r: fixed(r[1].pud)),
        (number("est. PUD"), lambda r: _estimated(r[1])[0]) if estimated else None,
        (number("between"), lambda r: _estimated(r[1])[1]) if estimated else None,
        (number("k"), lambda r: "–" if (k := r[1].smallest_class) is None else f"{k:,}"),
        (
            number("suppressed"),
            lambda r: (
                "–"
                if (n := r[1].suppressed_rows) is None
                else percent(100 * n / rows)  # beside estimates, the rows would leave no place
                if estimated
                else share(n, rows)
            ),
        ),
        (Column("rule"), lambda r: _verdict(r[1])),
    )
    yield from _shortfalls(advice, entries)
    best_shown = ", from the best that any table shows of it" if advice.masked_tables else ""
    yield line(
        f"\n{objective_legend(advice)}"
        f"score: {measure_words(advice.measure)} of all rows, before any row is suppressed{_baseline(advice)}.\n"
        f"{_pud(advice)}: how much masking changes the score of an attribute by itself, on average"
        f"{best_shown}; smaller is better.\n"
        f"k: smallest class once rows are suppressed{_no_classes(entries)}."
        + _estimate_legend(advice)
        + _certainty(advice)
        + _below(ranks),
        style="dim",
    )


def _pud(advice: Advice) -> str:
    """Return the heading of deviations, which are from the unmasked table or the finest masks."""
    return "PUD (finest)" if advice.against_finest else "PUD"


def _baseline(advice: Advice) -> str:
    """Return the score with which all scores are compared; empty if utility or scores are shares."""
    from aegis.measures import MEASURES

    figure = advice.utility
    if MEASURES.get(advice.measure).unit == "share":
        return ""
    if figure is not None and fixed(figure.reference) != fixed(advice.unmasked):
        return ""
    name = "finest masks'" if advice.against_finest else "unmasked"
    if advice.masked_tables:
        name = "best table's"
    return f" ({name} {fixed(advice.unmasked)})"


def _no_classes(entries: list[Ranked]) -> str:
    """Return a note that the smallest class of some entries is not known; empty if all are known."""
    all_known = all(r.smallest_class is not None for r in entries)
    return (
        ""
        if all_known
        else "; –: not known, because the file does not show which values occur in one row"
    )


def _estimated(ranked: Ranked) -> tuple[str, str]:
    """Return an estimated deviation and its bounds as texts; empty without an estimate."""
    estimate = ranked.estimate
    if estimate is None:
        return "", ""
    return fixed(estimate.pud), _between(estimate.interval)


def _between(interval: tuple[float, float] | None) -> str:
    """Return the bounds of an estimate as text, with two decimals; empty if there are none."""
    return "" if interval is None else "..".join(f"{end:.2f}" for end in interval)


def _estimate_legend(advice: Advice) -> str:
    estimate = next((r.estimate for r in advice.ranking if r.estimate is not None), None)
    if estimate is None:
        return ""
    return (
        f"\nest. PUD: how much masking changes the {estimate.measure} of an attribute by itself, on average, "
        f"estimated without the raw table ({estimate.case}); the smallest first. between: guaranteed "
        "bounds of this estimate."
    )


def _estimates(ranked: Ranked) -> Iterator[RenderableType]:
    """Yield a table of the masked and the estimated unmasked score of each attribute."""
    estimate = ranked.estimate
    if estimate is None:
        return
    information = {str(a.information or estimate.information) for a in estimate.attributes.values()}
    methods = {a.method or estimate.method for a in estimate.attributes.values()}
    same = f" (known: {min(information)}; method: {min(methods)})"
    mixed = len(information) > 1 or len(methods) > 1
    yield heading(f"Estimated deviation of {estimate.measure}{'' if mixed else same}")
    yield table_of(
        estimate.attributes.items(),
        (Column("attribute", wraps=True), lambda a: a[0]),
        (number("masked"), lambda a: fixed(a[1].masked)),
        (number("raw, est."), lambda a: fixed(a[1].estimate)),
        (number("deviation"), lambda a: fixed(a[1].deviation)),
        (number("between"), lambda a: _between(a[1].interval)),
        (Column("known"), lambda a: str(a[1].information or estimate.information))
        if mixed
        else None,
        (Column("method"), lambda a: a[1].method or estimate.method) if mixed else None,
    )


def _cut(advice: Advice, places: list[int], top: int | None) -> str:
    """Return which entries are printed, as text; empty if all are."""
    if len(places) == len(advice.ranking):
        return ""
    below = any(index >= (top or 0) for index in places)
    return f" (the first {top or 0}{', and record-level releases' if below else ''})"


def _below(ranks: list[str]) -> str:
    """Return a note that explains ranks such as ">10"; empty if there are none."""
    unknown = next((rank for rank in ranks if rank.startswith(">")), None)
    if unknown is None:
        return ""
    return f"\n#: {unknown} is below what the search lists; others may be between."


def _score(ranked: Ranked, highest: Ranked | None) -> str:
    """Return a score as text, marked `~` if it does not differ significantly from the highest."""
    if ranked.tied_with_best is None:
        return fixed(ranked.score)
    return fixed(ranked.score) + (" ~" if ranked.tied_with_best and ranked is not highest else "  ")


def _certainty(advice: Advice) -> str:
    """Return the standard error of the first score, and what `~` means."""
    first = advice.ranking[0] if advice.ranking else None
    if first is None or first.stderr is None:
        return ""
    tied = sum(r.tied_with_best is True for r in advice.ranking) > 1
    mark = "; ~: not significantly different from the highest score" if tied else ""
    return f"\nstandard error of the first score: {fixed(first.stderr)}{mark}."


def _verdict(ranked: Ranked) -> Text:
    from rich.text import Text

    # Which criteria, and by how much, is said below the table: their names would not fit into it.
    style = {True: "green", False: "red", None: ""}[ranked.admissible]
    return Text(ranked.verdict, style=style)


def _best(advice: Advice, best: Ranked) -> Iterator[RenderableType]:
    figure, words = advice.stated_utility(best), Finding.of(advice, best)
    yield heading(f"Best: {words.title}")
    yield line(f"{words.released} {words.proof}")
    expected = advice.expectation
    if expected is None or expected.measure != figure.measure:
        yield line(f"{score_words(advice.summary, figure)}, measured on {figure.on}.")
    if expected is not None:
        headline = f"{advice.headline}, measured on {expected.on}."
        yield line(" ".join(filter(None, (headline, expected.range_words, words.doubt))))
    if advice.proxy is not None:
        yield line(advice.proxy.words())
    yield line("")
    yield from _best_attributes(advice, best)


def _best_attributes(advice: Advice, best: Ranked) -> Iterator[RenderableType]:
    """Yield a table of the best masks, with each attribute's score before and after."""
    from aegis.advisor import utility_kept
    from aegis.measures import MEASURES

    measure, masks = MEASURES.get(advice.measure), best.mask_texts
    listed = strongest(best.attributes, measure)
    left_out = len(best.attributes) - len(listed)
    figures = advice.stated_utility(best).columns

    def cells(name: str, score: AttributeScore) -> tuple[str, str, str]:
        if name in figures:
            return _learnt(figures[name])
        share = utility_kept(score.score, score.unmasked, measure, advice.label_rows)
        return fixed(score.unmasked), fixed(score.score), percent(share)

    yield table_of(
        [(name, cells(name, best.attributes[name])) for name in listed],
        (Column("attribute", wraps=True), lambda a: a[0]),
        (Column("mask", wraps=True), lambda a: mask_shown(masks[a[0]])),
        (number(advice.baseline_word), lambda a: a[1][0]),
        (number("masked"), lambda a: a[1][1]),
        (number("kept"), lambda a: a[1][2]),
        (number("lost"), lambda a: percent(advice.share_lost(a[0]))) if advice.lost_alone else None,
    )
    if left_out:
        yield line(
            f"\n{left_out:,} more attributes predict less each: --format json has all of them."
        )
    meaning = _EACH_COLUMN if figures else "what the attribute predicts by itself"
    lost = " lost: what the whole table would lose if only this attribute were masked."
    if figures or advice.lost_alone:
        above = why_above_release(advice, best)
        yield line(
            f"\n{advice.baseline_word}, masked, kept: {meaning}.{lost * bool(advice.lost_alone)}"
            f"{above and f' {above}'}",
            style="dim",
        )


def _learnt(figure: ColumnFigure) -> tuple[str, str, str]:
    """Return how well the other columns predict a column: unmasked, masked, and the share that is kept."""
    if figure.left_out:
        return "–", "–", "–"
    return portion(figure.unmasked_explained), portion(figure.explained), percent(figure.kept)


def label_sections(advice: Advice) -> Iterator[RenderableType]:
    """Yield a table of the labels under the best configuration, if there are several."""
    lines = label_lines(advice)
    if not lines:
        return
    yield heading("Labels")
    yield table_of(
        lines,
        (Column("label", wraps=True), lambda label: label.label),
        (number("weight"), lambda label: f"{label.weight:g}"),
        (Column("measure", wraps=True), lambda label: label.measure),
        (number("unmasked"), lambda label: fixed(label.reference)),
        (number("masked"), lambda label: fixed(label.value)),
        (number("kept"), lambda label: percent(label.utility_kept)),
        (number("alone"), lambda label: percent(label.alone)),
        (number("price"), lambda label: "–" if label.price is None else f"{label.price:.1f}"),
    )
    proven = sum(label.proven for label in lines)
    yield line(
        "\nkept: share of what the unmasked table predicts of the label beyond a constant prediction. "
        "alone: what the best configuration for this label alone keeps, on all rows"
        f"{f' ({proven} of {len(lines)} proven)' if advice.search else ', of those ranked'}. "
        "price: points that serving the other labels costs.",
        style="dim",
    )


def change_sections(advice: Advice) -> Iterator[RenderableType]:
    """Yield a table of what other masks would change, if scores are estimates."""
    if advice.estimated is None or not advice.estimated.changes:
        return
    changes = sorted(advice.estimated.changes, key=lambda change: -change.change)[:CHANGES_PRINTED]
    yield heading("Another mask of one attribute would change the score by")
    yield table_of(
        changes,
        (Column("attribute"), lambda c: c.attribute),
        (Column("mask"), lambda c: mask_shown(c.mask)),
        (number("change"), lambda c: f"{c.change:+.4g}"),
        (number("stderr"), lambda c: f"{c.stderr:.2g}"),
        (Column(""), lambda c: "tied" * c.tied),
    )


def method_sections(advice: Advice) -> Iterator[RenderableType]:
    """Yield a table of the record-level releases and their losses, if there are any."""
    releases = [(r.name, r.method) for r in advice.ranking if r.method is not None]
    if not releases:
        return
    yield heading("Record-level releases")
    yield table_of(
        releases,
        (Column("name", wraps=True), lambda r: r[0]),
        (number("groups"), lambda r: f"{r[1].groups:,}"),
        (number("IL"), lambda r: fixed(r[1].loss.scaled)),
        (number("unscaled"), lambda r: fixed(r[1].loss.unscaled)),
        (number("NCP"), lambda r: fixed(r[1].loss.penalty)),
        (number("mean size"), lambda r: f"{r[1].loss.average_class_size:.1f}"),
        (number("left out"), lambda r: f"{r[1].left_out:,}"),
        (number("s"), lambda r: f"{r[1].seconds:.2f}"),
    )
    yield line(
        "\nIL: information loss of the centroids on z-scores.\n"
        "unscaled: the same on the numbers as they are.\n"
        "NCP: normalised certainty penalty. mean size: records in a group. s: seconds.\n"
        "left out: rows that the method itself dropped; rows of classes that fail the rule come on top.",
        style="dim",
    )
    for name, release in releases:
        for note in release.notes:
            yield line(f"{name}: {note}", style="dim")
