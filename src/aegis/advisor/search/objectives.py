"""What a search maximises, and the bounds that let it leave boxes out.

Every objective gives one number for a box, to be maximised: an upper bound on all configurations
in it, and the exact value where the box is a single configuration. Objectives that are better
when lower are negated here and turned back in the result.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass

from aegis.advisor.plan import PrivacyPlan
from aegis.advisor.scoring import Scorer
from aegis.advisor.search.areas import Ambiguity, Divergence
from aegis.advisor.search.charged import CHARGED, charged_loss
from aegis.advisor.search.classes import (
    AverageClassSize,
    ClassEntropy,
    Classification,
    ClassLoss,
    Discernibility,
    FactoredLoss,
)
from aegis.advisor.search.loss_options import LabelCharges, LossOptions
from aegis.advisor.search.objective import Objective, OfMeasure, Priced
from aegis.advisor.search.pairwise import Pairwise
from aegis.advisor.search.payout import NAME as PAYOUT
from aegis.advisor.search.payout import PublisherPayout, Stakes
from aegis.advisor.search.problem import Box, Problem, is_leaf, members
from aegis.advisor.search.shown_label import ShownClassification
from aegis.advisor.search.trace import Pillai, seconds_of
from aegis.advisor.search.widths import height
from aegis.errors import PolicyError
from aegis.measures import MEASURES, Measure, Scope, Trace
from aegis.summary import AttributeSummary, Candidate, Information


@dataclass(frozen=True)
class LossObjective:
    """A loss that other tools minimise; for comparison with them.

    Attributes
    ----------
    name, title, formula, reference
        As in the registry of measures.
    per_attribute
        The loss that one candidate adds, for losses that are sums over attributes; None where
        the loss depends on the classes.
    """

    name: str
    title: str
    formula: str
    reference: str
    per_attribute: Callable[[AttributeSummary, Candidate], float] | None


class Additive(Priced):
    """A figure that adds up over attributes: the best candidate of each domain bounds a box.

    No monotonicity is needed, so corrected measures are searched exactly as well. Where the
    label has candidates, the bound is the best over those still in its domain.
    """

    bounded = True
    divides = False

    def __init__(self, name: str, sign: int, values: list[list[list[float]]]) -> None:
        # values[l][j][c]: signed value of candidate c of variable j under label candidate l
        self.name = name
        self.sign = sign
        self._values = values
        self._best: dict[tuple[int, int, int], float] = {}
        self._labelled = len(values) > 1

    def bound(self, box: Box) -> float:
        """Return the sum of the best values left in each domain."""
        labels = members(box[-1]) if self._labelled else [0]
        return max(
            math.fsum(self._over(label, j, box[j]) for j in range(len(self._values[label])))
            for label in labels
        )

    def _over(self, label: int, variable: int, domain: int) -> float:
        key = (label, variable, domain)
        if key not in self._best:
            values = self._values[label][variable]
            self._best[key] = max(values[c] for c in members(domain))
        return self._best[key]


class Unbounded(OfMeasure):
    """A measure without a bound: the search then visits every admissible configuration."""

    bounded = False
    divides = False
    _longest = 0.0

    def bound(self, box: Box) -> float:
        """Return the value of a single configuration, and infinity for any larger box."""
        if not is_leaf(box):
            return math.inf
        began = time.perf_counter()
        value = self.sign * self._scorer.value(self._problem.choice(box), self._measure)
        self._longest = max(self._longest, time.perf_counter() - began)
        return value

    def effort(self, box: Box) -> float:
        """Return what the longest score has taken, or else what the measures of a box factorise."""
        return max(self._longest, seconds_of(self._problem, box))


class BelowTrace(OfMeasure):
    """A measure that never exceeds the plug-in trace, which bounds it.

    Of the held-out trace: a penalty and held-out rows only take away, and the trace cannot grow when
    indicators are grouped. The bound does not see how much they take away, so that a proof may
    need many more boxes than one for `adjusted-pillai`.
    """

    bounded = True
    divides = True

    def __init__(self, problem: Problem, scorer: Scorer, measure: Measure) -> None:
        super().__init__(problem, scorer, measure)
        self._plain = Pillai(problem, "the plug-in trace", adjusted=False)

    def bound(self, box: Box) -> float:
        """Return the value of a single configuration, and the plug-in trace's bound of a box."""
        if is_leaf(box):
            return self._scorer.value(self._problem.choice(box), self._measure)
        return self._plain.bound(box)

    def effort(self, box: Box) -> float:
        """Return the time of the fits."""
        return seconds_of(self._problem, box)


def make_objective(name: str, problem: Problem, scorer: Scorer, plan: PrivacyPlan) -> Objective:
    """Return the objective called `name`: a registered measure, or an information loss.

    Raises
    ------
    PolicyError
        No measure or loss has that name.
    """
    if (base := loss_of(name)) is not None:
        return _make_loss(name, base, problem, plan)
    if name not in MEASURES:
        raise PolicyError.unknown("objective", name, [*MEASURES.names(), *LOSSES])
    measure = MEASURES.get(name)
    if measure.trace is Trace.BELOW:
        return BelowTrace(problem, scorer, measure)
    if measure.trace is not None:
        return Pillai(problem, measure.name, adjusted=measure.trace is Trace.ADJUSTED)
    if measure.of_pair is not None:
        return Pairwise(problem, scorer, measure)
    if measure.scope is Scope.ATTRIBUTE:
        return _additive_measure(problem, scorer, measure)
    return Unbounded(problem, scorer, measure)


def _make_loss(name: str, base: str, problem: Problem, plan: PrivacyPlan) -> Objective:
    """Return the information loss `base` with the options that `name` gives it."""
    loss = LOSSES[base]
    _refuse_noise(base, problem)
    if base in CHARGED:
        _refuse_withheld(base, problem)
        return charged_loss(name, problem, plan)
    if loss.per_attribute is None:
        _refuse_earlier(name, problem)
        if base == PAYOUT:
            return PublisherPayout(problem, plan, Stakes.parse(name), name.strip())
        if base in FACTORED:
            return FACTORED[base](problem, plan, LossOptions.parse(name)[1], name.strip())
        if base == Classification.name:
            return _classification(name, problem, plan)
        return CLASS_LOSSES[name](problem, plan)
    charge = loss.per_attribute
    _refuse_withheld(name, problem)
    values = [
        [-charge(v.attribute, candidate) for candidate in v.candidates] for v in problem.variables
    ]
    return Additive(name, -1, [values])


def _classification(name: str, problem: Problem, plan: PrivacyPlan) -> Classification:
    """Return the classification metric: by what is shown of a label that is a quasi-identifier."""
    frequency = problem.summary.frequency
    shown = frequency is not None and frequency.label in frequency.quasi
    metric = ShownClassification if shown else Classification
    return metric(problem, plan, LabelCharges.parse(name), name.strip())


def loss_of(name: str) -> str | None:
    """Return the information loss that an objective names, options left out; None for a measure.

    Raises
    ------
    PolicyError
        An option is unknown, has a value that is not allowed, or is given to a loss without any.
    """
    base = name.partition("(")[0].strip()
    if base not in LOSSES:
        return None  # brackets of a measure hold no options of a loss
    if base in _OWN_OPTIONS:
        _OWN_OPTIONS[base](name)
        return base
    base, options = LossOptions.parse(name)
    if base in FACTORED and options == LossOptions(factor=options.factor):
        return base
    if base not in CHARGED and (options != LossOptions() or base != name):
        only = " but factor" if base in FACTORED else ""
        raise PolicyError(
            f"Information loss {base!r} takes no options{only} (given: {name!r}).",
            hint=f"Those that do: {', '.join((*CHARGED, *_OWN_OPTIONS))}.",
        )
    return base


def _refuse_earlier(loss: str, problem: Problem) -> None:
    frequency = problem.summary.frequency
    if frequency is not None and frequency.earlier is not None:
        raise PolicyError(
            f"Information loss {loss!r} is of the classes of one release, and classes are counted "
            "together with earlier ones.",
            hint="Search by a measure, or leave out the earlier releases.",
        )


def _refuse_noise(loss: str, problem: Problem) -> None:
    for variable in problem.variables:
        for index in variable.channels:
            raise PolicyError(
                f"Information loss {loss!r} is not defined for noise, such as mask "
                f"{str(variable.candidates[index].declared)!r} of {variable.name!r}.",
                hint="Search by a measure, or leave noise masks out of the candidates.",
            )


def _refuse_withheld(loss: str, problem: Problem) -> None:
    carried = problem.summary.information
    if carried is not Information.RAW:
        raise PolicyError(
            f"Information loss {loss!r} goes by single values, and the summary carries {carried} "
            "beside what the masks show.",
            hint="Search by a measure, or give the table or a summary with the raw joints.",
        )


def _additive_measure(problem: Problem, scorer: Scorer, measure: Measure) -> Additive:
    summary = problem.summary
    attributes = problem.variables[: len(summary.attributes)]
    labels: list[Candidate | None] = [None]
    if summary.label_attribute is not None:
        labels = [None if c.size == len(c.groups) else c for c in problem.variables[-1].candidates]
    total = math.fsum(v.attribute.weight for v in attributes)
    sign = measure.direction.sign
    values = [
        [
            [
                sign * v.attribute.weight / total * scorer.attribute(v.attribute, c, measure, label)
                for c in v.candidates
            ]
            for v in attributes
        ]
        for label in labels
    ]
    return Additive(measure.name, sign, values)


_OWN_OPTIONS: dict[str, Callable[[str], object]] = {
    PAYOUT: Stakes.parse,
    Classification.name: LabelCharges.parse,
}
"""What reads and checks the options of losses that have other ones than `LossOptions`."""

FACTORED: dict[str, type[FactoredLoss]] = {
    loss.name: loss for loss in (Discernibility, AverageClassSize)
}
"""Losses over classes that take a factor, by name."""

CLASS_LOSSES: dict[str, type[ClassLoss]] = {
    loss.name: loss
    for loss in (
        Discernibility,
        Classification,
        ClassEntropy,
        AverageClassSize,
        Ambiguity,
        Divergence,
    )
}
"""Losses that depend on the classes, and so on the rule, by name."""

LOSSES: dict[str, LossObjective] = {
    loss.name: loss
    for loss in (
        LossObjective(
            "nu-entropy",
            "Non-uniform entropy",
            "sum over attributes of -sum_v n_v log2(n_v / n_g(v)), in bits, and of suppressed rows "
            "the bits from their groups to one of all; options as for loss",
            "Gionis and Tassa, k-Anonymization with minimal loss of information, TKDE 21, 2009; "
            "suppression as in ARX",
            None,
        ),
        LossObjective(
            "loss",
            "Normalised certainty penalty",
            "sum over attributes of the mean over rows of the width of the value's group over the "
            "attribute's, 1 for a suppressed row: leaves less one under a hierarchy, else the range "
            "of numbers, or distinct values less one; loss(mean=sum|arithmetic|geometric|max, "
            "factor=0..1, weights=equal|policy, over=all|quasi-identifiers): how attributes are put "
            "together (geometric: prod(1 + x)^(1/m) - 1), what counts (0 masking alone, 0.5 masking "
            "and suppression, 1 suppression alone), and which attributes do",
            "Xu et al., Utility-based anonymization using local recoding, KDD 2006; Iyengar, KDD "
            "2002; options as in ARX",
            None,
        ),
        LossObjective(
            "precision",
            "Precision loss",
            "sum over attributes of the level over the height of the hierarchy, 1 for a suppressed "
            "row; masks without a hierarchy by their rank among the attribute's candidates from "
            "finest to coarsest; options as for loss",
            "Sweeney, Achieving k-anonymity privacy protection, IJUFKS 10, 2002",
            None,
        ),
        LossObjective(
            "height",
            "Height",
            "sum over attributes of the level in the hierarchy; masks without one by their rank",
            "Samarati, Protecting respondents' identities in microdata release, TKDE 13, 2001",
            height,
        ),
        LossObjective(
            "log-width",
            "Entropy-based information loss",
            "mean over rows of the sum over attributes of log2 of the leaves in the value's group, "
            "over that of all leaves, 1 for a suppressed row; options as for loss",
            "Wan et al., A game theoretic framework for analyzing re-identification risk, PLoS "
            "ONE 10, 2015",
            None,
        ),
        LossObjective(
            "discernibility",
            "Discernibility",
            "sum over classes of |E|^2, plus N for each suppressed row; discernibility(factor=0..1): "
            "0 counts suppressed classes like kept ones, else as for loss",
            "Bayardo and Agrawal, Data privacy through optimal k-anonymization, ICDE 2005, eq. 1",
            None,
        ),
        LossObjective(
            "average-class-size",
            "Average class size",
            "rows over classes, all suppressed rows being one class; average-class-size(factor=0..1): "
            "rows over kept classes times 2 factor, at most 1, and the class of suppressed rows times "
            "2 (1 - factor), at most 1; the factor is above 0",
            "LeFevre, DeWitt, Ramakrishnan, Mondrian, ICDE 2006, section 5; factor as in ARX",
            None,
        ),
        LossObjective(
            "ambiguity",
            "Ambiguity",
            "sum over rows of the product over attributes of the leaves in the value's group; of all "
            "leaves for a suppressed row",
            "Nergiz, Clifton, Thoughts on k-anonymization, DKE 63, 2007",
            None,
        ),
        LossObjective(
            "kl-divergence",
            "Kullback-Leibler divergence",
            "sum over combinations x of p(x) log2(p(x) / q(x)), in bits: p their share of the rows, q "
            "the share of their class spread evenly over its combinations of leaves, or of all "
            "suppressed rows over all combinations",
            "Kifer, Gehrke, Injecting utility into anonymized datasets, SIGMOD 2006",
            None,
        ),
        LossObjective(
            PAYOUT,
            "Payout of a publisher, less than all",
            "sum over rows of benefit times the share of the bits that masks hide (see log-width, over "
            "quasi-identifiers), plus loss / n where an attack on a class of n pays, gain / n > cost; "
            "benefit for a suppressed row; publisher-payout(benefit=1200, loss=300, gain=300, cost=4, "
            "attacker=prosecutor|journalist): a journalist's n is the class's size in the population",
            "Wan et al., A game theoretic framework for analyzing re-identification risk, PLoS "
            "ONE 10, 2015; defaults as in ARX",
            None,
        ),
        LossObjective(
            "classification",
            "Classification metric",
            "share of rows that are suppressed or do not have the most frequent label of their class; "
            "classification(charges=arx, factor=0..1) charges as ARX: with the factor 0.5, half a "
            "suppressed row, and all rows of a class with several most frequent labels; in general "
            "the factor a suppressed row, 2 factor, at most 1, each row of such a class, and "
            "2 (1 - factor), at most 1, a row without the most frequent label of another class; of a "
            "label that is a quasi-identifier what is shown counts, in classes of the others, and each "
            "charge moves to 1 by the share of its values that masks hide",
            "Iyengar, Transforming data to satisfy privacy constraints, KDD 2002, section 4; options "
            "as in ARX",
            None,
        ),
        LossObjective(
            "class-entropy",
            "Entropy of the label within classes",
            "H(label | class) in bits per row, the label's own entropy for suppressed rows; the "
            "label's entropy less this is the information that the classes carry about it",
            "Cover and Thomas, Elements of information theory, 2006, section 2.2",
            None,
        ),
    )
}
"""Losses by name; a label with a role of its own counts among the attributes."""
