"""Hold a ranking of configurations with its reasons and warnings, as immutable objects that print
themselves, and warn if a release that meets the rule may be of little use.
"""

from __future__ import annotations

import html
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from aegis.advisor.figures import (
    WORTHLESS,
    Binding,
    EstimatedScores,
    FirstByMasking,
    FirstByRelease,
    Front,
    ProxyFigures,
    SearchFigures,
)
from aegis.advisor.fold_counts import MOST_CLASSES
from aegis.advisor.ranked import PrivacyChange, Ranked
from aegis.advisor.scores import changed, later, read_later
from aegis.advisor.scoring import Scorer, utility_kept
from aegis.advisor.utility import IN_WORDS, Reference, Rows, UtilityFigure
from aegis.errors import DataError, NoAdmissibleConfiguration
from aegis.masks import Suppress
from aegis.measures import MEASURES, SHARE_KEPT, LabelKind, Measure, ModelMetric
from aegis.options import checks_types
from aegis.policy import OwnerRule, RuleOverride
from aegis.words import (
    Quoting,
    counted,
    html_table,
    in_sentence,
    json_fields,
    jsonable,
    percent,
    predicted,
    unquoted,
)

if TYPE_CHECKING:
    import pandas
    import polars

    from aegis.advisor.label_leaks import ResidualRisks
    from aegis.advisor.several import ServedLabel

SCHEMA_VERSION = 2
"""Version of the JSON form of `Advice`; it changes when a field changes its meaning."""


@read_later("unmasked", "warnings", "privacy", "uncovered")
@dataclass(frozen=True)
class Advice:
    """The ranking of configurations, with everything that a report says about the ranking.
    Configurations that meet the rule come first, the best at the top.

    Attributes
    ----------
    measure
        Name of the measure that Aegis ranked by.
    ranking
        All configurations that were scored.
    unmasked
        The score of the unmasked table.
    optimal
        Whether Aegis has proven that the best configuration is the best of all combinations of
        the candidates.
    combinations
        Number of combinations of the candidates.
    summary
        Figures of the summary on which the advice is based.
    policy
        The policy, in the form of its YAML.
    warnings
        Warnings; read them before you rely on the advice.
    timings
        Seconds per step.
    search
        The result of a search over all combinations; None if Aegis ranked given configurations.
    binding
        Why no mask of the best configuration can be finer; None if it was not requested.
    front
        The best configuration for each of several values of a privacy parameter; None if it was not
        requested.
    privacy
        Privacy figures of the unmasked table and of the best release; None if they were not
        computed.
    uncovered
        Risks that the rule does not cover; None if they were not checked.
    lost_alone
        For each attribute, the utility that is lost if only this attribute is masked, with its mask
        of the best configuration. Empty if there is no best configuration, if the best entry is a
        record-level release, or if the table has so many values that the computation would take
        more than a few seconds.
    expected
        The AUC (R2 for a number) that models are expected to reach under the best configuration, if
        the measure is not itself a metric of models; None if it was not computed.
    proxy
        Results of small models for the best configurations on a sample; None if not requested.
    owner_rule
        The owner's rule from the summary, if Aegis had only a summary; else None.
    rule_override
        The rule that Aegis used instead of the owner's rule; None if it used the owner's rule.
    estimated
        How Aegis estimated the scores, if they come from a protected summary; None for exact
        counts.
    masked_tables
        Whether Aegis ranked masked tables instead of combinations of candidate masks. Then
        `combinations` is the number of tables, and `unmasked` is the score of the best table.
    labels
        For several labels, the utility that the best configuration keeps for each label; else
        empty.
    preferred
        Why the first configuration is not the one with the best score: it scores about the same and
        masks less (or more, if you prefer that), or its release keeps more predictive value, because
        it suppresses fewer rows. None if the first configuration has the best score.

    Examples
    --------
    >>> import aegis
    >>> study = aegis.Study("data/adult.parquet", "examples/adult/policy.yaml")
    >>> advice = study.rank(generate_count=5)
    >>> advice.best.admissible, len(advice.ranking)
    (True, 5)
    """

    measure: str
    ranking: tuple[Ranked, ...]
    unmasked: float
    optimal: bool
    combinations: int
    summary: Mapping[str, Any]
    policy: Mapping[str, Any]
    warnings: tuple[str, ...] = ()
    timings: Mapping[str, float] = field(default_factory=dict)
    search: SearchFigures | None = None
    binding: Binding | None = None
    front: Front | None = None
    privacy: PrivacyChange | None = None
    uncovered: ResidualRisks | None = None
    lost_alone: Mapping[str, float] = field(default_factory=dict)
    expected: UtilityFigure | None = None
    proxy: ProxyFigures | None = None
    owner_rule: OwnerRule | None = None
    rule_override: RuleOverride | None = None
    estimated: EstimatedScores | None = None
    masked_tables: bool = False
    labels: tuple[ServedLabel, ...] = ()
    preferred: FirstByMasking | FirstByRelease | None = None

    @property
    def by_release(self) -> bool:
        """Whether the first configuration does not have the best score on all rows, but a better
        release than the one that has.
        """
        return isinstance(self.preferred, FirstByRelease)

    @checks_types
    def share_lost(self, name: str) -> float | None:
        """Return how many percent of the unmasked utility you lose if you mask only this attribute;
        None if it is unknown.

        If a mask increases the score (by chance, or because models learn fewer values better), the
        loss is 0.

        Examples
        --------
        >>> import aegis
        >>> study = aegis.Study("data/adult.parquet", "examples/adult/policy.yaml")
        >>> advice = study.rank(generate_count=5)
        >>> 0 <= advice.share_lost("age") < 100
        True
        """
        if name not in self.lost_alone:
            return None
        measure = MEASURES.get(self.measure)
        left = self.unmasked - measure.direction.sign * self.lost_alone[name]
        after = utility_kept(left, self.unmasked, measure, self.label_rows)
        return None if after is None else max(100.0 - after, 0.0)

    @property
    def stated_measure(self) -> str | None:
        """The measure that Aegis writes into the file of the best configuration, so that a
        certificate states the utility by the same measure.

        It is None for the default measure, which needs no name. It is also None if the scores are
        estimates, because the certificate then states the default measure on the released rows.

        Examples
        --------
        >>> import aegis
        >>> study = aegis.Study("data/adult.parquet", "examples/adult/policy.yaml")
        >>> study.rank(generate_count=5, measure="cmim").stated_measure
        'cmim'
        """
        if self.measure.startswith(SHARE_KEPT):
            return None  # the policy says how its labels are served
        by_itself = self.measure in [kind.default_measure for kind in LabelKind]
        unnamed = by_itself and "measure" not in self.policy
        return None if unnamed or self.estimated is not None else self.measure

    @property
    def rows_words(self) -> str:
        """The number of rows in words, such as "2,000 rows"; it is "about" this number if the counts
        are protected.
        """
        about = "" if self.estimated is None else "about "
        return about + counted(self.summary["rows"], "row")

    @property
    def labelled_words(self) -> str:
        """The number of rows in words, and how many of them have no label, if there are any."""
        unlabelled = self.summary.get("unlabelled_rows")
        if not unlabelled or self.estimated is not None:
            return self.rows_words
        return f"{self.rows_words}, {unlabelled:,} of them without a label"

    @property
    def label_rows(self) -> list[float] | None:
        """The number of rows in each class of the label; None if it is not known."""
        label_rows = self.summary.get("classes")
        return None if not label_rows else [float(rows) for rows in label_rows.values()]

    @property
    def against_finest(self) -> bool:
        """Whether `unmasked` is the score under the finest masks, because the counts of the
        unmasked values are not known.
        """
        withheld = self.summary.get("information", "raw") != "raw"
        return withheld or self.estimated is not None

    @property
    def baseline(self) -> Reference:
        """The name of the table whose score is `unmasked`, for sentences.

        Examples
        --------
        >>> import aegis
        >>> study = aegis.Study("data/adult.parquet", "examples/adult/policy.yaml")
        >>> str(study.rank(generate_count=5).baseline)
        'the unmasked table'
        """
        if self.masked_tables:
            return Reference.BEST_TABLE
        return Reference.FINEST if self.against_finest else Reference.UNMASKED

    @property
    def baseline_word(self) -> str:
        """The name of the table whose score is `unmasked`, for the heading of a column."""
        if self.masked_tables:
            return "best table"
        return "finest" if self.against_finest else "unmasked"

    @property
    def ranked_things(self) -> str:
        """The name of the things that Aegis ranks: "configuration" or "masked table"."""
        return "masked table" if self.masked_tables else "configuration"

    @property
    def utility(self) -> UtilityFigure | None:
        """The utility of the best release, as its certificate states it; None if there is no best
        release.

        Examples
        --------
        >>> import aegis
        >>> study = aegis.Study("data/adult.parquet", "examples/adult/policy.yaml")
        >>> figure = study.rank(generate_count=5).utility
        >>> str(figure.rows), str(figure.reference_name)
        ('released', 'the unmasked table')
        """
        return None if self.best is None else self.stated_utility(self.best)

    @checks_types
    def stated_utility(self, ranked: Ranked) -> UtilityFigure:
        """Return the utility of an entry of the ranking. The utility is measured on the rows that
        the entry's release keeps if these rows are known, otherwise on all rows.

        Examples
        --------
        >>> import aegis
        >>> study = aegis.Study("data/adult.parquet", "examples/adult/policy.yaml")
        >>> advice = study.rank(generate_count=5)
        >>> advice.stated_utility(advice.ranking[0]) == advice.utility
        True
        """
        if ranked.utility is not None:
            return ranked.utility
        figure = UtilityFigure.of(
            MEASURES.get(self.measure),
            ranked.score,
            self.unmasked,
            self.label_rows,
            reference_name=self.baseline,
            stderr=ranked.stderr,
            rows=Rows.ALL,
        )
        number = self.summary.get("label_number")
        return figure.with_errors(number, number)

    @property
    def expectation(self) -> UtilityFigure | None:
        """The metric that models trained on the best release are expected to reach; None if it is
        unknown.
        """
        if self.best is None or MEASURES.get(self.measure).unit not in IN_WORDS:
            return None if self.best is None else self.expected
        return self.utility

    @property
    def headline(self) -> str | None:
        """The metric that models trained on the best release are expected to reach, in words; None
        if it is unknown.
        """
        figure = self.expectation
        return None if figure is None else figure.expected(self.label_rows)

    @property
    def closest(self) -> Ranked | None:
        """The entry of the ranking for which the fewest rows must be removed so that it meets the
        rule.

        It is None for an empty ranking.
        """
        return min(
            self.ranking,
            key=lambda r: (r.suppressed_rows or 0, -(r.smallest_class or 0)),
            default=None,
        )

    @property
    def best(self) -> Ranked | None:
        """The first configuration of the ranking that is not known to break the rule; None if there
        is none.
        """
        first = self.ranking[0] if self.ranking else None
        return None if first is None or first.admissible is False else first

    @property
    def admissible_count(self) -> int:
        """The number of entries in the ranking that are known to meet the rule."""
        return sum(ranked.admissible is True for ranked in self.ranking)

    @property
    def probable_count(self) -> int | None:
        """The number of entries that probably meet the rule, by an estimate; None without one."""
        estimates = [ranked.probable for ranked in self.ranking if ranked.probable is not None]
        return sum(estimates) if estimates else None

    @property
    def verdicts_known(self) -> bool:
        """Whether Aegis knows for each entry of the ranking whether it meets the rule."""
        return all(ranked.admissible is not None for ranked in self.ranking)

    @property
    def by_chance(self) -> bool:
        """Whether the best score could be chance: it is not significantly better than the score of
        a constant prediction.
        """
        figure = self.utility
        return figure is not None and figure.may_be_chance(figure.value, self.label_rows)

    @property
    def predicts_unmasked(self) -> bool:
        """Whether the unmasked table predicts the label: its score is significantly better than the
        score of a constant prediction.
        """
        figure = self.utility
        return figure is not None and not figure.may_be_chance(figure.reference, self.label_rows)

    @property
    def undecided(self) -> bool:
        """Whether the search stopped before Aegis knew whether any combination of masks meets the
        rule.
        """
        return self.best is None and self.search is not None and not self.search.complete

    def require_best(self) -> Ranked:
        """Return the best configuration that meets the rule; raise an error if there is none.

        Raises
        ------
        NoAdmissibleConfiguration
            No configuration meets the rule. The message names the one for which the fewest rows
            must be removed, and the change that would admit it.

        Examples
        --------
        >>> import aegis
        >>> study = aegis.Study("data/adult.parquet", "examples/adult/policy.yaml")
        >>> advice = study.rank(generate_count=5)
        >>> advice.require_best() is advice.best
        True
        """
        if self.best is not None:
            return self.best
        what = "combinations of candidate masks" if self.search else f"{self.ranked_things}s"
        count = self.combinations if self.search else len(self.ranking)
        closest = self.closest
        if self.undecided or closest is None:
            raise NoAdmissibleConfiguration(
                f"The search stopped early. It found none of the {count:,} {what} that meets the rule, but "
                "has not checked all of them.",
                hint="Allow more time, coarser masks, or a weaker rule.",
            )
        proven = " (proven)" if self.search else ""
        if closest.suppressed_rows is None:
            raise NoAdmissibleConfiguration(
                f"According to the owner of the data, none of the {count:,} {what} meets the rule.",
                hint="Ask the owner for verdicts on other configurations, or allow coarser masks.",
            )
        raise NoAdmissibleConfiguration(
            f"None of the {count:,} {what} meets the privacy rule{proven}. "
            f"{closest.name!r} came closest: {'; '.join(closest.violations)}.",
            hint=_remedy(closest.suppressed_rows, self.summary["rows"]),
        )

    def require_front(self) -> Front:
        """Return the front; raise `DataError` if there is none.

        Examples
        --------
        >>> import aegis
        >>> study = aegis.Study("data/adult.parquet", "examples/adult/policy.yaml")
        >>> study.search(top=1, front="k=5,50").require_front().parameter
        'k'
        """
        if self.front is None:
            raise DataError(
                "The advice has no front.",
                hint="Name its values, such as front='k=2..10', and allow the search more time.",
            )
        return self.front

    def to_dict(self) -> dict[str, Any]:
        """Return the advice in the JSON form that docs/reference/json.md documents.

        Examples
        --------
        >>> import aegis
        >>> study = aegis.Study("data/adult.parquet", "examples/adult/policy.yaml")
        >>> advice = study.rank(generate_count=5)
        >>> advice.to_dict()["best"] == advice.best.name
        True
        """
        return {
            "schema": SCHEMA_VERSION,
            "best": self.best.name if self.best else None,
            "optimal": self.optimal,
            "measure": self.measure,
            "unmasked": None if self.against_finest else self.unmasked,
            "finest": self.unmasked if self.against_finest else None,
            **json_fields(self, "utility", "headline"),
            "expected": jsonable(self.expectation),
            **json_fields(self, "lost_alone", "combinations", "masked_tables"),
            **(json_fields(self, "labels") if self.labels else {}),
            **json_fields(self, "ranking", "summary", "policy", "warnings", "timings"),
            "preferred": None if self.preferred is None else self.preferred.words(),
            **json_fields(self, "search", "binding", "front", "privacy", "uncovered"),
            **json_fields(self, "estimated", "proxy", "owner_rule", "rule_override"),
        }

    @checks_types
    def rows(self, top: int | None = None) -> list[dict[str, Any]]:
        """Return the ranking as one flat record per entry, with the mask of each attribute in a
        column `mask:NAME`.

        Examples
        --------
        >>> import aegis
        >>> study = aegis.Study("data/adult.parquet", "examples/adult/policy.yaml")
        >>> advice = study.rank(generate_count=5)
        >>> advice.rows(top=1)[0]["rank"]
        1
        """
        return [
            {
                "rank": i + 1,
                "name": r.name,
                "score": r.score,
                "utility_kept": r.utility_kept,
                **{f"kept:{label}": share for label, share in r.labels.items()},
                "pud_finest" if r.against_finest else "pud": r.pud,
                "admissible": r.admissible,
                "smallest_class": r.smallest_class,
                "suppressed_rows": r.suppressed_rows,
                "violations": "; ".join(r.violations),
            }
            | {f"mask:{name}": mask for name, mask in r.mask_texts.items()}
            for i, r in enumerate(self.ranking[:top])
        ]

    def to_polars(self) -> polars.DataFrame:
        """Return `rows()` as a Polars frame (Polars must be installed).

        Examples
        --------
        >>> import aegis
        >>> study = aegis.Study("data/adult.parquet", "examples/adult/policy.yaml")
        >>> advice = study.rank(generate_count=5)
        >>> advice.to_polars().height
        5
        """
        import polars

        return polars.DataFrame(self.rows())

    def to_pandas(self) -> pandas.DataFrame:
        """Return `rows()` as a pandas frame (pandas must be installed).

        Examples
        --------
        >>> import aegis
        >>> study = aegis.Study("data/adult.parquet", "examples/adult/policy.yaml")
        >>> advice = study.rank(generate_count=5)
        >>> advice.to_pandas().shape[0]
        5
        """
        import pandas

        return pandas.DataFrame(self.rows())

    def __repr__(self) -> str:
        figure = self.utility
        head = f"Advice({len(self.ranking)} configurations by {self.measure}"
        if self.best is None or figure is None:
            return f"{head}, none admissible)"
        share = "" if figure.utility_kept is None else f", {percent(figure.utility_kept)} kept"
        return f"{head}, best {self.best.name!r}: {figure.value:.6g}{share})"

    def _repr_html_(self) -> str:
        rows = self.rows(10)
        table = html_table(rows[0] if rows else (), (map(_cell, row.values()) for row in rows))
        return f"<p>{html.escape(repr(self))}</p>{table}"


def _cell(value: object) -> str:
    return f"{value:.5g}" if isinstance(value, float) else str(value)


def _remedy(removed: int, rows: int) -> str:
    """Return a hint that says which suppression limit would admit the configuration that breaks the
    rule least, or that no limit would.
    """
    limit = -(-removed * 10_000 // rows) / 10_000
    if removed < rows and limit < 1:
        return (
            f"It would pass with a suppression limit of {limit:g} ({removed:,} of {rows:,} rows). "
            "Or allow coarser masks, or a weaker rule."
        )
    return (
        "It would suppress every row: allow coarser masks of quasi-identifiers, or a weaker rule."
    )


FEWEST = 25
"""Smallest number of rows of a class for which the score of a model is not considered chance."""
RARE = 0.1
"""Share of the labelled rows below which a class counts as rare."""
COMPARED = 10
"""Number of configurations to compare, starting with the best."""
LEAST_AUC_GAIN = 0.01
"""Smallest difference in AUC from which two metrics count as disagreeing."""
ALIKE = 0.005
"""Largest difference in accuracy up to which two releases count as equal."""


def caveats_of(advice: Advice) -> tuple[str, ...]:
    """Return sentences on why the best release may be less useful than its score suggests."""
    return (*_worthless(advice), *_rare_class(advice), *_few_rows(advice))


def _rarest(advice: Advice) -> tuple[str, float, float]:
    """Return the class with the fewest rows, their number (infinity for fewer than two classes),
    and their share.
    """
    rows = {name: n for name, n in advice.summary.get("classes", {}).items() if n > 0}
    if len(rows) < 2:
        return "", math.inf, math.inf
    name = min(rows, key=rows.__getitem__)
    return name, rows[name], rows[name] / sum(rows.values())


def class_of_few_rows(advice: Advice) -> Quoting | None:
    """Return how few rows a label class has, if too few to predict the metric of models; else None."""
    name, rows, _ = _rarest(advice)
    if advice.expectation is None or rows >= FEWEST:
        return None
    label, noun = advice.summary["label"], "row" if rows == 1 else "rows"
    sentence = f"{label} = {in_sentence(name)} has {rows:,.0f} {noun} only"
    return Quoting(sentence, f"a class of {label} has fewer than {FEWEST} rows")


def _few_rows(advice: Advice) -> tuple[str, ...]:
    few = class_of_few_rows(advice)
    if few is None:
        return ()
    then = (
        "the expected metric of models may be chance, even if its standard error is small. "
        "Merge this class with another one, or leave out its rows"
    )
    return (Quoting(f"{few}: {then}", f"{unquoted(few)}: {then}"),)


def _rare_class(advice: Advice) -> tuple[str, ...]:
    """Return a warning if a class is rare and the score weights rows, not classes. A model that
    never predicts a rare class is nearly always right, so releases may have the same accuracy,
    although they predict the class differently well (AUC).
    """
    name, _, share = _rarest(advice)
    if share >= RARE or MEASURES.get(advice.measure).unit == "AUC":
        return ()  # of other merits `disagreement` says more
    label = advice.summary["label"]
    then = f"such a class hardly affects accuracy, and {advice.measure} weights rows, not classes"
    if len(advice.summary["classes"]) <= MOST_CLASSES:
        then += ". Compare with the ranking by --measure held-out-auc"
    fact = f"only {share:.1%} of the labelled rows are {label} = {in_sentence(name)}"
    without = f"less than {RARE:.0%} of the labelled rows are in the rarest class of {label}"
    return (Quoting(f"{fact}: {then}", f"{without}: {then}"),)


def _worthless(advice: Advice) -> tuple[str, ...]:
    """Return a warning if nothing in the release predicts the label."""
    best = advice.best
    label = predicted(advice.summary)
    subject, use = ("each other", "") if not label else (label, f" to predict {label} from")
    if best is None or not best.attributes:
        return ()
    if best.utility_kept is None:
        return (
            f"by {advice.measure} the attributes do not predict {subject} even unmasked, so the "
            "ranking cannot show how much is kept",
        )
    masks = best.configuration.masks
    if best.method is None and all(isinstance(masks[name], Suppress) for name in best.attributes):
        return (
            f"the recommended {best.name} suppresses every scored attribute, so nothing is "
            f"left{use}. Allow more suppressed rows, a weaker rule, or masks between identity and "
            "suppress",
        )
    if advice.by_chance:
        return (
            f"the score of the recommended {best.name} is within two standard errors of no utility: "
            f"that its attributes predict {subject} may be chance",
        )
    if best.utility_kept < WORTHLESS and advice.stated_utility(best).lost_classes:
        return (
            f"the recommended {best.name} has no utility left: its release suppresses all rows of a class "
            "of the label. Lower `suppression` in the policy below the share of this class, so that these "
            "rows stay",
        )
    if best.utility_kept < WORTHLESS:
        return (
            f"the recommended {best.name} has no utility left: its attributes do not predict {subject}",
        )
    return ()


def with_caveats(advice: Advice, earlier: tuple[str, ...] = ()) -> Advice:
    """Return a copy of the advice whose warnings include `caveats_of`, and not those in `earlier`,
    which a call added for another best release.
    """

    def warnings() -> tuple[str, ...]:
        others = tuple(text for text in advice.warnings if text not in earlier)
        return (*others, *caveats_of(advice))

    return changed(advice, warnings=later(warnings))


def with_first(advice: Advice, first: Callable[[], Sequence[str]]) -> Advice:
    """Return a copy of the advice whose warnings begin with those that `first` returns when they
    are read.
    """
    return changed(advice, warnings=later(lambda: (*first(), *advice.warnings)))


def disagreement(ranking: Sequence[Ranked], scorer: Scorer, measure: Measure) -> tuple[str, ...]:
    """Return a warning if a class is rare, and the expected AUC would put another configuration
    first than the metric of the ranking does. If the metric is the AUC or no metric of models, the
    result is empty. Record-level releases are skipped.
    """
    label_rows = [rows for rows in scorer.label_rows if rows > 0]
    if measure.constant is None or measure.unit == "AUC" or len(label_rows) < 2:
        return ()
    if min(label_rows) / sum(label_rows) >= RARE:
        return ()
    admissible = [ranked for ranked in ranking if ranked.admissible and ranked.method is None][
        :COMPARED
    ]
    if len(admissible) < 2:
        return ()
    choices = [scorer.choose(ranked.configuration) for ranked in admissible]
    _, _, models = measure.name.partition("(")
    suffix = f"({models}" if models else ""
    auc, accuracy = (
        MEASURES.get(merit.measure + suffix) for merit in (ModelMetric.AUC, ModelMetric.ACCURACY)
    )
    aucs = [scorer.value(choice, auc) for choice in choices]
    best = max(range(len(admissible)), key=aucs.__getitem__)
    if aucs[best] - aucs[0] < LEAST_AUC_GAIN:
        return ()
    right = [scorer.value(choices[index], accuracy) for index in (0, best)]
    alike = "equal" if abs(right[0] - right[1]) <= ALIKE else "close"
    first, other = admissible[0].name, admissible[best].name
    return (
        f"the model metrics disagree, because a class is rare ({min(label_rows) / sum(label_rows):.1%}): "
        f"by accuracy {first} and {other} are {alike} ({right[0]:.3f} and {right[1]:.3f}), by AUC they "
        f"differ ({aucs[0]:.3f} and {aucs[best]:.3f}). To rank by AUC, give --metric auc",
    )
