"""Print advice, for people and for programs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from aegis.cli.options import Format
from aegis.cli.output import Output
from aegis.cli.pages.search import objective_legend, search_sections
from aegis.cli.pages.short import ShortPage
from aegis.present import Finding, label_lines, label_words, mask_shown, score_words
from aegis.words import counted

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.text import Text

    from aegis.advisor import Advice, Ranked
    from aegis.advisor.column_figures import ColumnFigure
    from aegis.advisor.scores import AttributeScore
    from aegis.policy import Policy


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


_LISTED = 60
"""Largest number of attributes that are listed: those that predict most by themselves."""

ESTIMATED = ("estimate", "estimated_pud", "estimated_low", "estimated_high")
"""Columns that follow if deviations were estimated."""
SHOWN = 8
"""Number of changes that are printed, the best ones; JSON and the report contain all."""


def print_advice(
    shell: Output, advice: Advice, origin: str, policy: Policy, top: int | None
) -> None:
    """Print the best `top` configurations of the ranking (None: all), and details of the best one."""
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
        places = _places(advice, top)
        shell.csv(header, (_flat(i + 1, advice.ranking[i], names) for i in places))
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
    """Print the result of a search on one screen: the best configuration, its masks, and cautions."""
    page = ShortPage.of(advice, best, origin, policy)
    shell.show(*page.parts())
    shell.caution(advice.warnings, shown=page.cautions)


def advice_dict(advice: Advice, top: int | None) -> dict[str, Any]:
    """Return the advice as JSON, with its best `top` entries and all record-level releases."""
    data = advice.to_dict()
    data["ranking"] = [data["ranking"][place] for place in _places(advice, top)]
    return data


def _places(advice: Advice, top: int | None) -> list[int]:
    """Return the indices of the entries to print: the first `top`, and all record-level releases.

    A user who requests record-level releases wants to see their ranks.
    """
    first = len(advice.ranking) if top is None else top
    return [i for i, r in enumerate(advice.ranking) if i < first or r.method is not None]


_EACH_COLUMN = (
    "what can still be learnt about the column, as the share of its variance that the other columns "
    "explain on rows held out, of the values shown; kept counts each value, so fewer values keep less"
)
"""Explanation of the figures of columns if each column is predicted from the others."""


def _rank(advice: Advice, place: int) -> str:
    """Return the rank of the entry number `place` as text.

    A search lists only the best configurations, so a lower rank is only known as ">N".
    """
    last = max((i for i, r in enumerate(advice.ranking) if r.method is None), default=None)
    if advice.search is None or last is None or place <= last:
        return str(place + 1)
    return f">{last + 1}"


def _flat(rank: int, ranked: Ranked, names: list[str]) -> list[object]:
    masks: Mapping[str, object] = ranked.configuration.masks
    if ranked.method is not None or not masks:  # of a masked table its masks are not known
        masks = ranked.shown
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
    """Return the name of the estimate, the estimated deviation and its bounds; empty without an
    estimate.
    """
    estimate = ranked.estimate
    return (
        ()
        if estimate is None
        else (estimate.case, estimate.pud, *(estimate.interval or (None, None)))
    )


def _label(summary: Mapping[str, Any]) -> str:
    if summary.get("labels"):
        each = (f"{name} ({label_words(own)})" for name, own in summary["labels"].items())
        return ", ".join(each)
    if not summary["label"]:
        return "any: each column is predicted from the others"
    return f"{summary['label']} ({label_words(summary)})"


def _overview(advice: Advice, origin: str, policy: Policy) -> Iterator[RenderableType]:
    from aegis.cli.tables import pairs
    from aegis.measures import MEASURES

    summary = advice.summary
    quasi = len(policy.quasi_identifiers)
    yield pairs(
        (
            ("Table", f"{origin}: {counted(summary['rows'], 'row')}"),
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
    """Return a title such as `Searched`, and words on how many combinations were covered and listed."""
    releases = [r for r in advice.ranking if r.method is not None]
    listed = [r for r in advice.ranking if r.method is None]
    beside = counted(len(releases), "record-level release")
    if advice.search is None:
        admissible = advice.admissible_count
        of_all = f"{len(listed):,} of {counted(advice.combinations, 'combination')} of masks"
        what = counted(len(listed), "masked table") if advice.masked_tables else of_all
        return (
            "Ranked",
            f"{what}{f', {beside}' if releases else ''}; "
            f"{admissible:,} {'meet' if advice.verdicts_known else 'are known to meet'}"
            f"{'s' * (admissible == 1 and advice.verdicts_known)} the rule",
        )
    if not advice.verdicts_known:
        return (
            "Searched" if advice.optimal else "Searched among",
            f"{counted(advice.combinations, 'combination')} of masks; the best {len(listed):,} are listed",
        )
    admissible = sum(r.admissible is True for r in listed)
    best = f"the best {admissible:,}" if admissible > 1 else "the best one"
    what = f"{best} that meet{'s' * (admissible == 1)} the rule"
    if not admissible:
        what = "none that meets the rule was found"
    elif not advice.optimal:
        what += " of those tried"
    return (
        "Searched" if advice.optimal else "Searched among",
        f"{counted(advice.combinations, 'combination')} of masks; {what}"
        f"{'' if not admissible else f' {_are(admissible)} listed'}"
        f"{f', and {beside}' if releases else ''}",
    )


def _are(count: int) -> str:
    return "is" if count == 1 else "are"


def _shortfalls(advice: Advice, shown: Sequence[Ranked]) -> Iterator[RenderableType]:
    """Yield sentences on why the first entry is first, and why entries do not meet the rule."""
    from aegis.cli.tables import heading, line, pairs

    if advice.search is not None and advice.search.preferred is not None:
        why = advice.search.preferred
        yield line(f"\n{why[:1].upper()}{why[1:]}.")
    failing = [r for r in shown if r.violations]
    if failing:
        yield heading("What falls short")
        yield pairs(
            ("" if i else r.name, violation)
            for r in failing
            for i, violation in enumerate(r.violations)
        )


def _ranking(advice: Advice, top: int | None) -> Iterator[RenderableType]:
    from aegis.cli.tables import Column, fixed, heading, line, number, share, table
    from aegis.measures import MEASURES

    places = _places(advice, top)
    shown = [advice.ranking[i] for i in places]
    ranks = [_rank(advice, i) for i in places]
    rows = advice.summary["rows"]
    yield heading("Ranking" + _cut(advice, places, top))
    by_objective = any(r.objective is not None for r in shown)
    estimated = any(r.estimate is not None for r in shown)
    sign = MEASURES.get(advice.measure).direction.sign
    highest = max(shown, key=lambda r: (r.admissible is not False, sign * r.score), default=None)
    columns = (
        number("#"),
        Column("name", wraps=True),
        *((number("objective"),) if by_objective else ()),
        number("score"),
        number(_pud(advice)),
        *((number("est. PUD"), number("between")) if estimated else ()),
        number("k"),
        number("suppressed"),
        Column("rule"),
    )
    yield table(
        columns,
        (
            (
                rank,
                r.name,
                *((fixed(r.objective),) if by_objective else ()),
                _score(r, highest),
                fixed(r.pud),
                *(_estimated(r) if estimated else ()),
                ("–" if r.smallest_class is None else f"{r.smallest_class:,}"),
                "–" if r.suppressed_rows is None else share(r.suppressed_rows, rows),
                _verdict(r),
            )
            for rank, r in zip(ranks, shown, strict=True)
        ),
    )
    yield from _shortfalls(advice, shown)
    yield line(
        f"\n{objective_legend(advice)}"
        f"score: {advice.measure} of all rows, before any row is suppressed{_baseline(advice)}.\n"
        f"{_pud(advice)}: mean change per attribute{_best_shown(advice)}. "
        f"k: smallest class once rows are suppressed{_no_classes(shown)}."
        + _estimate_legend(advice)
        + _certainty(advice)
        + _below(ranks),
        style="dim",
    )


def _pud(advice: Advice) -> str:
    """Return the name of the deviation: from the unmasked table, or from the finest masks."""
    return "PUD (finest)" if advice.against_finest else "PUD"


def _baseline(advice: Advice) -> str:
    """Return words on the score to which deviations refer; empty if the utility states another one."""
    from aegis.cli.tables import fixed

    figure = advice.utility
    if figure is not None and fixed(figure.reference) != fixed(advice.unmasked):
        return ""
    name = "finest masks'" if advice.against_finest else "unmasked"
    if advice.masked_tables:
        name = "best table's"
    return f" ({name} {fixed(advice.unmasked)})"


def _best_shown(advice: Advice) -> str:
    """Return words on the reference of the deviations of masked tables; empty for configurations."""
    return ", from the best that any table shows of it" if advice.masked_tables else ""


def _no_classes(shown: list[Ranked]) -> str:
    """Return a note that some smallest classes are not known; empty if all are."""
    known = all(r.smallest_class is not None for r in shown)
    return "" if known else "; –: not known, since nothing tells which values share a row"


def _estimated(ranked: Ranked) -> tuple[str, str]:
    """Return the estimated deviation and its bounds as texts."""
    from aegis.cli.tables import fixed

    estimate = ranked.estimate
    if estimate is None:
        return "", ""
    ends = "" if estimate.interval is None else "..".join(map(fixed, estimate.interval))
    return fixed(estimate.pud), ends


def _estimate_legend(advice: Advice) -> str:
    estimate = next((r.estimate for r in advice.ranking if r.estimate is not None), None)
    if estimate is None:
        return ""
    return (
        f"\nest. PUD: estimated mean change of {estimate.measure} from the raw table ({estimate.case}), "
        "the smallest first; between: what the evidence allows."
    )


def _estimates(ranked: Ranked) -> Iterator[RenderableType]:
    """Yield the estimate for each attribute."""
    from aegis.cli.tables import Column, fixed, heading, number, table

    estimate = ranked.estimate
    if estimate is None:
        return
    yield heading(f"Estimated deviation of {estimate.measure}")
    yield table(
        (
            Column("attribute", wraps=True),
            number("masked"),
            number("raw, estimated"),
            number("deviation"),
            number("between"),
            Column("known"),
            Column("method"),
        ),
        (
            (
                name,
                fixed(a.masked),
                fixed(a.estimate),
                fixed(a.deviation),
                "" if a.interval is None else "..".join(map(fixed, a.interval)),
                str(a.information or estimate.information),
                a.method or estimate.method,
            )
            for name, a in estimate.attributes.items()
        ),
    )


def _cut(advice: Advice, places: list[int], top: int | None) -> str:
    """Return words on which entries (`places`: their indices) are printed; empty if all are."""
    if len(places) == len(advice.ranking):
        return ""
    below = any(place >= (top or 0) for place in places)
    return f" (the first {top or 0}{', and record-level releases' if below else ''})"


def _below(ranks: list[str]) -> str:
    """Return a note on ranks of which only a lower limit is known; empty if there are none."""
    unknown = next((rank for rank in ranks if rank.startswith(">")), None)
    if unknown is None:
        return ""
    return f"\n#: {unknown} is below what the search lists; others may be between."


def _score(ranked: Ranked, highest: Ranked | None) -> str:
    """Return the score, with a mark if it does not differ significantly from the highest one."""
    from aegis.cli.tables import fixed

    if ranked.tied_with_best is None:
        return fixed(ranked.score)
    return fixed(ranked.score) + (" ~" if ranked.tied_with_best and ranked is not highest else "  ")


def _certainty(advice: Advice) -> str:
    """Return words on the standard error of the first score and on the mark of ties."""
    from aegis.cli.tables import fixed

    first = advice.ranking[0] if advice.ranking else None
    if first is None or first.stderr is None:
        return ""
    tied = sum(r.tied_with_best is True for r in advice.ranking) > 1
    mark = "; ~: not significantly different from the highest score" if tied else ""
    return f"\nstandard error of the first score: {fixed(first.stderr)}{mark}."


def _verdict(ranked: Ranked) -> Text:
    from rich.text import Text

    # Which criteria, and by how much, is said below the table: their names would not fit into it.
    if ranked.admissible is None:
        return Text("not said")
    return Text("met", style="green") if ranked.admissible else Text("fails", style="red")


def _best(advice: Advice, best: Ranked) -> Iterator[RenderableType]:
    from aegis.cli.tables import heading, line

    figure, words = advice.stated_utility(best), Finding.of(advice, best)
    yield heading(f"Best: {words.title}")
    yield line(f"{words.released} {words.proof}")
    expected = advice.expectation
    if expected is None or expected.measure != figure.measure:
        yield line(f"{score_words(advice.summary, figure)}, measured on {figure.on}.")
    if expected is not None:
        yield line(f"{advice.headline}, measured on {expected.on}. {expected.range_words}".rstrip())
    if advice.proxy is not None:
        yield line(advice.proxy.words())
    yield line("")
    yield from _best_attributes(advice, best)


def _best_attributes(advice: Advice, best: Ranked) -> Iterator[RenderableType]:
    """Yield the masks of the best configuration, with the measure of each attribute before and after."""
    from aegis.advisor import utility_kept
    from aegis.cli.tables import Column, fixed, line, number, percent, table
    from aegis.measures import MEASURES

    measure, masks = MEASURES.get(advice.measure), best.shown
    telling = sorted(
        best.attributes, key=lambda name: -measure.direction.sign * best.attributes[name].unmasked
    )
    listed, left_out = set(telling[:_LISTED]), telling[_LISTED:]
    figures = advice.stated_utility(best).columns

    def shown(name: str, score: AttributeScore) -> tuple[str, str, str]:
        if name in figures:
            return _learnt(figures[name])
        share = utility_kept(score.score, score.unmasked, measure, advice.label_rows)
        return fixed(score.unmasked), fixed(score.score), percent(share)

    columns = (
        Column("attribute", wraps=True),
        Column("mask", wraps=True),
        number(advice.baseline_word),
        number("masked"),
        number("kept"),
        *([number("lost")] if advice.lost_alone else []),
    )
    yield table(
        columns,
        (
            (
                name,
                mask_shown(masks[name]),
                *shown(name, score),
                *([percent(advice.share_lost(name))] if advice.lost_alone else []),
            )
            for name, score in best.attributes.items()
            if name in listed
        ),
    )
    if left_out:
        yield line(
            f"\n{len(left_out):,} more attributes predict less each: --format json has all of them."
        )
    meaning = _EACH_COLUMN if figures else "what the attribute predicts by itself"
    lost = " lost: what the whole table would lose if only this attribute were masked."
    if figures or advice.lost_alone:
        yield line(
            f"\n{advice.baseline_word}, masked, kept: {meaning}.{lost * bool(advice.lost_alone)}",
            style="dim",
        )


def _learnt(figure: ColumnFigure) -> tuple[str, str, str]:
    """Return how well the other columns predict a column: unmasked, masked, and the share that is kept."""
    from aegis.cli.tables import percent

    if figure.left_out:
        return "–", "–", "–"
    before, after = figure.unmasked_explained, figure.explained
    return percent(100 * before), percent(100 * after), percent(figure.kept)


def label_sections(advice: Advice) -> Iterator[RenderableType]:
    """Yield a table of the labels under the best configuration. If there is only one label, yield
    nothing.
    """
    from aegis.cli.tables import Column, fixed, heading, line, number, percent, table

    lines = label_lines(advice)
    if not lines:
        return
    yield heading("Labels")
    columns = (
        Column("label", wraps=True),
        number("weight"),
        Column("measure", wraps=True),
        number("unmasked"),
        number("masked"),
        number("kept"),
        number("alone"),
        number("price"),
    )
    yield table(
        columns,
        (
            (
                own.label,
                f"{own.weight:g}",
                own.measure,
                fixed(own.reference),
                fixed(own.value),
                percent(own.utility_kept),
                percent(own.alone),
                "–" if own.price is None else f"{own.price:.1f}",
            )
            for own in lines
        ),
    )
    proven = sum(own.proven for own in lines)
    yield line(
        "\nkept: share of what the unmasked table predicts of the label beyond a constant prediction. "
        "alone: what the best configuration for this label alone keeps, on all rows"
        f"{f' ({proven} of {len(lines)} proven)' if advice.search else ', of those ranked'}. "
        "price: points that serving the other labels costs.",
        style="dim",
    )


def change_sections(advice: Advice) -> Iterator[RenderableType]:
    """Yield a table of the effect that other masks would have on the best configuration.

    If scores are not estimates, yield nothing.
    """
    from aegis.cli.tables import Column, heading, number, table

    if advice.estimated is None or not advice.estimated.changes:
        return
    changes = sorted(advice.estimated.changes, key=lambda change: -change.change)[:SHOWN]
    yield heading("Another mask of one attribute would change the score by")
    yield table(
        (Column("attribute"), Column("mask"), number("change"), number("stderr"), Column("")),
        (
            (
                c.attribute,
                mask_shown(c.mask),
                f"{c.change:+.4g}",
                f"{c.stderr:.2g}",
                "tied" * c.tied,
            )
            for c in changes
        ),
    )


def method_sections(advice: Advice) -> Iterator[RenderableType]:
    """Yield a table of the record-level releases and their losses, if there are any."""
    from aegis.cli.tables import Column, fixed, heading, line, number, table

    releases = [(r.name, r.method) for r in advice.ranking if r.method is not None]
    if not releases:
        return
    yield heading("Record-level releases")
    columns = (
        Column("name", wraps=True),
        number("groups"),
        number("IL"),
        number("unscaled"),
        number("NCP"),
        number("mean size"),
        number("left out"),
        number("s"),
    )
    yield table(
        columns,
        (
            (
                name,
                f"{release.groups:,}",
                fixed(release.loss.scaled),
                fixed(release.loss.unscaled),
                fixed(release.loss.penalty),
                f"{release.loss.average_class_size:.1f}",
                f"{release.left_out:,}",
                f"{release.seconds:.2f}",
            )
            for name, release in releases
        ),
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
