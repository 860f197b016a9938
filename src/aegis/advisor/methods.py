"""Rank record-level releases together with masking configurations, by the same measure and rule."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from aegis.advisor.advice import Advice, caveats_of, with_caveats
from aegis.advisor.encodings import has_excluded
from aegis.advisor.plan import as_it_is, as_released, plan_of
from aegis.advisor.ranked import Ranked, RecordLevel
from aegis.advisor.scoring import AttributeScore, ConfigurationScore, Scorer, utility_kept
from aegis.advisor.utility import UtilityFigure
from aegis.anonymizers import (
    Anonymized,
    Recipe,
    RecordTable,
    anonymize_records,
    check_release,
    read_records,
    recipe_of,
)
from aegis.errors import DataError, PolicyError
from aegis.files import Progress
from aegis.measures import MEASURES, Measure
from aegis.options import checks_types
from aegis.policy import Configuration, Policy
from aegis.privacy import Verdict
from aegis.privacy import report as privacy_report
from aegis.sources import Source, open_table
from aegis.summary import PERSON, Summary, count_classes, summarize

BREAKING = 0.1
"""Largest share of the rows whose classes may fail the rule under the finer masks."""
WORK = 10.0
"""Work after which the search for finer masks ends (see `SearchRequest.work`)."""


@checks_types
def choose_recipes(
    policy: Policy, methods: Collection[str | Recipe] | None, *, seed: int
) -> tuple[Recipe, ...]:
    """Return the recipes (method, options and seed) of the record-level releases to rank: those in
    `methods` or, if this is None, those of the policy.

    Recipes without a seed get `seed`. If the random numbers of a method hide values, nobody may
    repeat them, so its recipe gets no seed. Recipes with equal names are numbered.

    Raises
    ------
    PolicyError
        A method or option is unknown or out of range.
    """
    if methods is None:
        return tuple(recipe_of(choice).repeating(seed) for choice in policy.anonymizers)
    recipes = [
        method if isinstance(method, Recipe) else Recipe(method).repeating(seed)
        for method in methods
    ]
    counts: dict[str, int] = {}
    named = []
    for method in recipes:
        counts[method.name] = counts.get(method.name, 0) + 1
        again = counts[method.name] > 1
        named.append(
            replace(method, name=f"{method.name} {counts[method.name]}") if again else method
        )
    return tuple(named)


def with_methods(
    advice: Advice,
    summary: Summary,
    source: Source | None,
    policy: Policy,
    methods: Sequence[str | Recipe] | None,
    *,
    seed: int,
    progress: Progress,
) -> Advice:
    """Return a copy of the advice that also ranks releases by methods that change single records
    (None: those of the policy).

    Aegis scores each release on the whole table that the method makes, and again without the rows
    of failing classes. Rows that the method leaves out count as suppressed. If the best
    configuration suppresses rows, Aegis also tries methods that suppress single cells on masked
    tables (`beside_rows`).

    Raises
    ------
    PolicyError
        A method or option is unknown, or the advice comes from a search for an objective other than
        the measure.
    DataError
        There is only a summary, which has no records, or the table is not usable.
    """
    recipes = choose_recipes(policy, methods, seed=seed)
    if not recipes:
        return advice
    if source is None:
        if methods is not None:
            raise DataError(
                "Record-level methods need the rows of the table, and a summary has none.",
                hint="Give the table, or leave out --with.",
            )
        note = "the policy's record-level methods were not ranked, because a summary has no rows"
        return replace(advice, warnings=(*advice.warnings, note))
    if any(ranked.objective is not None for ranked in advice.ranking):
        raise PolicyError(
            "Record-level releases can be ranked only by the measure, not by another objective.",
            hint="Leave out --objective, or the record-level methods.",
        )
    ranker = RecordRanker(summary, source, policy, MEASURES.get(advice.measure), seed, progress)
    recipes = beside_rows(recipes, advice, summary, source, policy, progress)
    releases = [ranker.rank(ranker.make(recipe)) for recipe in renamed(recipes, advice)]
    ranked = insert_methods(advice, releases, ranker.read.notes)
    doubt = _doubt(ranked, summary)
    return replace(ranked, warnings=(*ranked.warnings, doubt)) if doubt else ranked


def _doubt(advice: Advice, summary: Summary) -> str | None:
    """Return a warning if the best entry is a record-level release, but the masks of a
    configuration score better on held-out rows; None if not.

    A method can create thousands of rare values, such as centroids and ranges. A model that fits a
    coefficient to each of them predicts worse on new rows; the adjusted trace does not show this.
    """
    best = advice.best
    rival = next(
        (ranked for ranked in advice.ranking if ranked.admissible and ranked.method is None), None
    )
    doubting = MEASURES.get(advice.measure).doubted_by
    if best is None or best.method is None or best.method.held_out is None or rival is None:
        return None
    if doubting is None:
        return None
    scorer = Scorer(summary)
    masks = scorer.value(scorer.choose(rival.configuration), MEASURES.get(doubting))
    if masks <= best.method.held_out:
        return None
    return (
        f"on held-out rows the masks of {rival.name} keep more than {best.name} ({doubting} "
        f"{masks:.4f} against {best.method.held_out:.4f}): prefer {rival.name} for models with one "
        "coefficient per value, such as logistic regression on one-hot columns"
    )


def renamed(recipes: Sequence[Recipe], advice: Advice) -> tuple[Recipe, ...]:
    """Return the recipes, renamed if a configuration of the advice has the same name."""
    names = {ranked.name for ranked in advice.ranking}
    return tuple(
        replace(recipe, name=f"{recipe.name} (records)") if recipe.name in names else recipe
        for recipe in recipes
    )


def insert_methods(advice: Advice, ranked: Sequence[Ranked], notes: Sequence[str]) -> Advice:
    """Return a copy of the advice whose ranking also has the record-level releases `ranked`, with
    `notes` among its warnings.

    If the first configuration was chosen by its released rows, the configurations stay in their
    order, and each release comes before the first one that scores worse. If it was chosen by its
    masking, it stays before all releases that score worse than the best configuration.
    """
    sign = MEASURES.get(advice.measure).direction.sign
    ordered = sorted((*advice.ranking, *ranked), key=lambda r: r.ranking_key(sign))
    if advice.by_release:
        ordered = list(advice.ranking)
        for release in ranked:
            key = release.ranking_key(sign)
            places = (i for i, entry in enumerate(ordered) if key < entry.ranking_key(sign))
            ordered.insert(next(places, len(ordered)), release)
    elif advice.preferred is not None and ordered[0].method is None:
        first = advice.ranking[0]
        ordered = [first, *(entry for entry in ordered if entry is not first)]
    seconds = sum(release.method.seconds for release in ranked if release.method is not None)
    if ordered[0].method is not None:
        # Ties were with the best configuration, which is not the best any more.
        ordered = [replace(release, tied_with_best=None) for release in ordered]
    ranked_all = replace(
        advice,
        ranking=tuple(ordered),
        optimal=advice.optimal and ordered[0].method is None,
        preferred=advice.preferred if ordered[0].method is None else None,
        expected=advice.expected if ordered[0].method is None else None,
        warnings=(*advice.warnings, *notes),
        timings={**advice.timings, "methods": seconds},
    )
    return with_caveats(ranked_all, earlier=caveats_of(advice))


class RecordRanker:
    """Makes releases of one table by record-level methods, which change single records (such as
    microaggregation), and scores them. `seed` is that of the samples for the scores, and of the
    methods whose recipe has none.

    Raises
    ------
    DataError
        The table cannot be used.
    """

    def __init__(
        self,
        summary: Summary,
        source: Source,
        policy: Policy,
        measure: Measure,
        seed: int,
        progress: Progress,
    ) -> None:
        self.policy = policy
        self.measure = measure
        self.seed = seed
        self.progress = progress
        self.read: RecordTable = read_records(source, policy)
        original = Scorer(summary)
        self._roles = lambda scorer=original: scorer.column_roles
        self._unmasked = original.score(original.unmasked, measure)
        if has_excluded(summary):  # releases are counted as they are
            original = Scorer(summarize(source, as_it_is(policy), seed=seed), self._roles)
        self._reference = original.value(original.unmasked, measure)
        self._label_rows = original.label_rows
        self._number = original.summary.number

    def make(self, recipe: Recipe) -> Anonymized:
        """Make the release of a recipe, to compute its figures. Repeated calls draw the same random
        numbers; a release that is written uses others.
        """
        return anonymize_records(self.read, recipe, seed=self.seed, progress=self.progress)

    def rank(self, release: Anonymized) -> Ranked:
        """Score a release, check whether it meets the rule, and return it as an entry of the
        ranking.
        """
        released, remaining, verdict = check_release(release, self.policy)
        before = self._score(released, release.data)
        removed = verdict.suppressed_rows > release.rows - release.data.num_rows
        rest = remaining.collect(remaining.table) if removed else release.judged
        after = self._score(open_table(rest), rest).score if removed else before.score
        utility = UtilityFigure.of(
            self.measure, after, self._reference, self._label_rows, release.rows
        ).with_errors(self._number_of(rest), self._number, release.rows)
        return Ranked(
            configuration=Configuration(release.recipe.name, {}),
            score=before.score,
            utility_kept=utility.utility_kept,
            admissible=verdict.admissible,
            smallest_class=verdict.smallest_class,
            suppressed_rows=verdict.suppressed_rows,
            violations=verdict.violations,
            attributes=before.attributes,
            utility=utility,
            method=replace(
                self._about(release, open_table(rest), verdict),
                held_out=self._held_out(released, release.data),
            ),
        )

    def _number_of(self, rest: pa.Table) -> dict[str, float] | None:
        """Return mean and standard deviation of a numeric label in released rows; None for classes."""
        if self._number is None:
            return None
        numbers = rest.column(self.policy.label.column)
        return {
            "mean": pc.mean(numbers).as_py() or 0.0,
            "deviation": pc.stddev(numbers).as_py() or 0.0,
        }

    def _held_out(self, released: Source, data: pa.Table) -> float | None:
        """Return the score of a released table by a second measure, on held-out rows, because the
        measure of the ranking may be too high for some releases; None if it needs no such check, or
        if nothing is left to predict.
        """
        doubting = self.measure.doubted_by
        if doubting is None or not self._tells_apart(data):
            return None
        scorer = Scorer(summarize(released, as_released(self.policy), seed=self.seed))
        return scorer.value(scorer.unmasked, MEASURES.get(doubting))

    def _score(self, released: Source, data: pa.Table) -> ConfigurationScore:
        """Score a released table, whose rows are `data`, and compare it with the unmasked table."""
        worst = self.measure.worst(self._label_rows)
        unmasked = {
            name: attribute.unmasked for name, attribute in self._unmasked.attributes.items()
        }
        if not self._tells_apart(data):  # nothing is left to predict
            scores = {name: AttributeScore(worst, raw) for name, raw in unmasked.items()}
            value = worst
        else:
            as_made = summarize(released, as_released(self.policy), seed=self.seed)
            scorer = Scorer(as_made, self._roles)
            score = scorer.score(scorer.unmasked, self.measure)
            value = score.score
            scores = {
                name: AttributeScore(score.attributes[name].score, raw)
                for name, raw in unmasked.items()
            }
        share = utility_kept(value, self._reference, self.measure, self._label_rows)
        return ConfigurationScore(value, share, scores)

    def _tells_apart(self, data: pa.Table) -> bool:
        """Return whether the rows have at least two label classes; without a label, whether there
        are any.
        """
        if not self.policy.label:
            return bool(data.num_rows)
        classes = pc.unique(data.column(self.policy.label.column).drop_null())
        return bool(len(classes) > 1)

    def _about(self, release: Anonymized, remaining: Source, verdict: Verdict) -> RecordLevel:
        quasi = [a.name for a in self.policy.quasi_identifiers]
        report = None
        if verdict.smallest_class:
            hierarchies = self.policy.protected_hierarchies
            counted = count_classes(
                remaining,
                quasi,
                self.policy.sensitive,
                hierarchies=hierarchies,
                person=None if self.policy.person is None else PERSON,
            )
            report = privacy_report(counted.table)
        grouped = release.grouped
        return RecordLevel(
            recipe=release.recipe,
            groups=len(grouped.groups),
            left_out=grouped.suppressed,
            claims_k=grouped.claims_k,
            loss=grouped.loss,
            seconds=grouped.seconds,
            notes=grouped.notes,
            report=report,
            carried=self.read.carried,
            before=release.masks,
        )


def beside_rows(
    recipes: Sequence[Recipe],
    advice: Advice,
    summary: Summary,
    source: Source,
    policy: Policy,
    progress: Progress,
) -> tuple[Recipe, ...]:
    """Return the recipes, and further ones for methods that suppress single cells, with masks from
    the ranking.

    One uses the masks of the first configuration, so that the ranking compares suppressed cells
    with suppressed rows under the same masks. Another uses finer masks, because suppressed cells
    cost less than suppressed rows: those that would be best if the rule allowed a tenth of the rows
    to be suppressed.
    """
    cells = [
        recipe
        for recipe in recipes
        if recipe.anonymizer.by_cell and not recipe.options.get("masks")
    ]
    if not cells or not advice.ranking or advice.ranking[0].method is not None:
        return tuple(recipes)
    first = advice.ranking[0]
    finer = _finer(advice, summary, source, policy, progress)
    again: list[Recipe] = []
    for title, ranked in ((first.name, first), ("finer masks", finer)):
        masks = None if ranked is None else _masks(ranked, policy)
        if masks is None or masks in [recipe.options["masks"] for recipe in again]:
            continue
        again += [
            replace(cell, options={**cell.options, "masks": masks}, name=f"{cell.name} on {title}")
            for cell in cells
        ]
    return (*recipes, *again)


def _masks(ranked: Ranked, policy: Policy) -> dict[str, Any] | None:
    """Return the masks of the quasi-identifiers of an entry, as a policy has them; None if it
    suppresses no rows, or if a mask is random.
    """
    if not ranked.suppressed_rows:
        return None
    masks = {a.name: ranked.configuration.masks.get(a.name) for a in policy.quasi_identifiers}
    if not all(mask is None or mask.deterministic for mask in masks.values()):
        return None
    return {name: "identity" if mask is None else mask.spec() for name, mask in masks.items()}


def _finer(
    advice: Advice, summary: Summary, source: Source, policy: Policy, progress: Progress
) -> Ranked | None:
    """Return the configuration, from the ranking or by a new search, that would be best if a tenth
    of the rows (`BREAKING`) could be suppressed; None if there is none.
    """
    rows = summary.rows
    if advice.search is None:
        sign = MEASURES.get(advice.measure).direction.sign
        listed = [
            ranked
            for ranked in advice.ranking
            if ranked.method is None and (ranked.suppressed_rows or 0) <= BREAKING * rows
        ]
        return max(listed, key=lambda cell: sign * cell.score, default=None)
    from aegis.advisor.search import search_combinations

    rule = replace(policy.privacy, suppression=max(BREAKING, policy.privacy.suppression))
    looser = replace(policy, privacy=rule)
    searched = search_combinations(
        summary,
        plan_of(summary, looser, source),
        looser,
        measure=advice.measure,
        top=1,
        work=WORK,
        prefer="score",
        progress=progress,
    )
    return searched.best
