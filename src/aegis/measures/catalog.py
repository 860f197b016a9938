"""Register all measures, of single attributes and of whole configurations, with the properties that
help to choose one.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from aegis.arrays import Floats
from aegis.errors import InternalError
from aegis.measures import association, columns, held_out, pillai, target_coded
from aegis.measures.association import corrected_information, n_log_n
from aegis.measures.columns import HELD_OUT_ANY
from aegis.measures.cooccurrence import (
    MEASURES,
    NUMBER_MEASURE,
    SHARE_KEPT,
    Direction,
    LabelKind,
    Margins,
    Measure,
    Need,
    Scope,
    Trace,
)
from aegis.measures.merits import FLOOR, Expected, Learner, ModelMetric, learners_of
from aegis.measures.number import ExpectedR2, r2_measure, r2_of_learners
from aegis.measures.several import share_kept

if TYPE_CHECKING:
    from aegis.measures.cooccurrence import Cooccurrence

_NO_GAIN = 1e-12
"""Gains up to this many bits count as rounding: an attribute that another determines adds nothing."""


@dataclass(frozen=True)
class CmimPath:
    """The attributes that conditional mutual information maximisation (CMIM) chooses, in order.

    Attributes
    ----------
    order
        Indices of the chosen attributes. Attributes without a positive gain are not chosen.
    gains
        The information that each chosen attribute adds, in bits: positive, and in descending order
        from the second on.
    """

    order: tuple[int, ...]
    gains: tuple[float, ...]

    @property
    def total(self) -> float:
        """The sum of the gains in bits; 0 if nothing was chosen."""
        return math.fsum(self.gains)


def attribute_information(counts: Cooccurrence) -> Floats:
    """Return the corrected mutual information of each attribute with the label, in bits, shape
    (m,).
    """
    joint, starts = counts.joint, counts.offsets[:-1]
    if not len(starts):
        return np.zeros(0)
    levels = joint.sum(axis=1)
    inside = np.add.reduceat(n_log_n(joint).sum(axis=1) - n_log_n(levels), starts)
    rows = np.add.reduceat((levels > 0).astype(np.int64), starts)
    classes = np.add.reduceat(joint, starts, axis=0)
    return np.array(
        [corrected_information(*folds) for folds in zip(inside, rows, classes, strict=True)]
    )


def cmim_path(counts: Cooccurrence) -> CmimPath:
    """Choose attributes one after the other by the information that they add about the label
    (CMIM).

    CMIM is conditional mutual information maximisation. The first attribute A has the largest
    mutual information I(A; Y) with the label Y. Each next attribute A has the largest gain. Its
    gain is the minimum, over the attributes B that are already chosen, of I(A; Y | B) = I(A, B; Y)
    - I(B; Y). The path ends when no gain is positive. Of equal attributes, the one with the lowest
    index is chosen. All terms are corrected for their first-order bias.

    The criterion is that of Fleuret, Fast binary feature selection with conditional mutual
    information, JMLR 5, 2004. Null counts as a value; levels (masked values) without rows are
    skipped. A gain of at most 1e-12 bits counts as 0.
    """
    if counts.pairs is None:
        raise InternalError("The information of pairs of attributes was not filled in.")
    alone = attribute_information(counts)
    gain = alone.copy()
    order: list[int] = []
    gains: list[float] = []
    while len(order) < len(alone):
        best = int(gain.argmax())
        if gain[best] <= _NO_GAIN:
            break
        order.append(best)
        gains.append(float(gain[best]))
        gain = np.minimum(gain, counts.pairs[:, best] - alone[best])
        gain[best] = -np.inf
    return CmimPath(tuple(order), tuple(gains))


def cmim(counts: Cooccurrence) -> float:
    """Return the sum of the gains of `cmim_path` in bits; 0 if no attribute has a gain."""
    return cmim_path(counts).total


_DIRECTION = (
    "b'x over rows x that took no part in b = (W + p/n I)^-1 (mean of the class less mean of the"
    " rest), W the mean of the two covariances within"
)
_METRIC_FIELDS: dict[ModelMetric, dict[str, Any]] = {
    ModelMetric.AUC: {
        "title": "Expected AUC on rows held out",
        "description": (
            "An estimate of the AUC (area under the ROC curve) that models reach on rows that "
            "took no part in their fit. Aegis fits linear discriminants with several penalties "
            "and takes the best. It reads numbers and dates in two ways: as numbers, and as thresholds between ranges. "
            "Texts are categories. Rare classes count as much as frequent classes."
        ),
        "formula": (
            "largest over p = 10, 100, 1,000 rows of Phi((m_1 - m_0) / sqrt(v_1 + v_0)), means and variances"
            f" by class of {_DIRECTION}; mean over classes; of two classes less what the shape of"
            " scores takes, were attributes independent"
        ),
        "range": "0.5 .. 1",
        "unit": "AUC",
    },
    ModelMetric.ACCURACY: {
        "title": "Expected accuracy on rows held out",
        "description": (
            "An estimate of the share of correct predictions that models reach on rows that took "
            "no part in their fit. It uses the same scores as the expected AUC. The measure shows "
            "little about rare classes: a model that never predicts a rare class is still nearly "
            "always right."
        ),
        "formula": (
            "largest over p = 10, 100, 1,000 rows of the largest share of rows on their class's side of a"
            " threshold, under normal scores with means and variances by class of"
            f" {_DIRECTION}; of several classes by linear discriminants of all their scores"
        ),
        "range": "share of the most frequent class .. 1",
        "unit": "accuracy",
    },
    ModelMetric.LOG_LOSS: {
        "title": "Expected log loss on rows held out",
        "description": (
            "An estimate of the log loss that models reach on rows that took no part in their "
            "fit. It uses the same scores as the expected AUC. The log loss is small if predicted "
            "probabilities are close to the truth."
        ),
        "formula": (
            "least over p = 10, 100, 1,000 rows of the least mean of -ln P(own class) of a logistic curve,"
            f" under normal scores with means and variances by class of {_DIRECTION}; of several"
            " classes by linear discriminants of all their scores"
        ),
        "range": "0 .. entropy of the classes",
        "unit": "nats",
        "direction": Direction.LOWER,
    },
}
LEARNERS = {
    Learner.LR: "logistic regression (numbers as they are)",
    Learner.NB: "naive Bayes (its own log-odds)",
    Learner.GBDT: "boosted trees (thresholds of numbers, without interactions)",
    Learner.PAIRS: "boosted trees with interactions (the same, and what the strongest pair of"
    " attributes tells together)",
}
"""A description in words of each learner whose metrics can be predicted."""


_COST = "O(d^3) in the number of masked levels d, for each of five folds, each penalty and class"
_PAIRS_COST = "; m (m - 1) / 2 tables of 8 x 8 cells for m attributes, by fold and class"


def expected_measure(what: Expected) -> Measure:
    """Return the measure for the metric and models that `Expected` describes."""
    fields = dict(_METRIC_FIELDS[what.merit])
    if what.learners:
        learners = ", ".join(LEARNERS[learner] for learner in what.learners)
        fields["title"] += f": {', '.join(what.learners)}"
        fields["description"] = f"As {what.merit.measure}, the mean of what stands for {learners}."
    return Measure(
        name=what.name,
        reference=(
            "Su, Liu, Linear combinations of multiple diagnostic markers, Journal of the "
            "American Statistical Association 88, 1993; Friedman, Regularized discriminant "
            "analysis, same journal 84, 1989; the choice of the best penalty and coding is ours"
        ),
        scope=Scope.CONFIGURATION,
        cost=_COST + (_PAIRS_COST if what.interacting else ""),
        compute=what.compute,
        needs=(Need.CV_FOLDS,),
        without_folds=what.without_folds,
        floor=FLOOR if what.merit is ModelMetric.AUC else 0.0,
        constant=what.constant,
        **fields,
    )


def measure_of_learners(merit: ModelMetric, learners: str) -> Measure:
    """Return the measure that predicts a metric for the models that `learners` names (`lr+nb`)."""
    return expected_measure(Expected(merit, learners_of(learners)))


CONFIGURATION = (
    *(expected_measure(Expected(merit)) for merit in ModelMetric),
    Measure(
        name="adjusted-pillai",
        title="Pillai's trace, adjusted",
        description=(
            "The measure shows how much of the label all masked attributes explain together. "
            "If attributes share information, this information counts once. The measure subtracts the part that "
            "is due to chance. A search by another measure uses adjusted-pillai to list the "
            "combinations to score."
        ),
        formula="V - (1 - V/(C-1)) d (C-1)/(N-d-1), V as pillai-plain, d the rank of S_zz",
        reference=(
            "Pillai, Some new test criteria in multivariate analysis, Annals of Mathematical"
            " Statistics 26, 1955; adjusted as R^2 in Ezekiel, Methods of Correlation Analysis, 1930"
        ),
        range="at most C - 1; about 0 under independence",
        scope=Scope.CONFIGURATION,
        cost="O(d^3) in the number of masked levels d",
        compute=pillai.pillai,
        trace=Trace.ADJUSTED,
        doubted_by="held-out-pillai-values",
    ),
    Measure(
        name="pillai-plain",
        title="Pillai's trace, plug-in",
        description=(
            "The sum of squared canonical correlations between the masked attributes and the "
            "label. This is a chi-square of many attributes at once. A search uses it as an upper "
            "bound of scores."
        ),
        formula="V = trace(S_zz^+ S_zu S_uu^+ S_uz)",
        reference=(
            "Pillai, Some new test criteria in multivariate analysis, Annals of Mathematical"
            " Statistics 26, 1955"
        ),
        range="0 .. C - 1",
        monotone=True,
        scope=Scope.CONFIGURATION,
        cost="O(d^3) in the number of masked levels d",
        compute=pillai.pillai_plain,
        trace=Trace.PLUG_IN,
    ),
    Measure(
        name="held-out-pillai-values",
        title="Pillai's trace, held out",
        description=(
            "The measure shows how much of the label ridge regressions explain on rows that took "
            "no part in their fit. It is a mean over penalties from weak to strong. Rare values "
            "lower the score, because models overfit to them. The measure suits models that treat "
            "each value separately."
        ),
        formula=(
            "mean over k of max(0, T_1, .., T_k), T_k = sum_c (TSS_c - RSS_c(p_k)"
            " ((N-1)/(N-1-df(p_k)))^2) / n_c, ridge penalties p = 3, 10, 30, 100, 300 rows"
        ),
        reference=(
            "Golub, Heath, Wahba, Generalized cross-validation as a method for choosing a good "
            "ridge parameter, Technometrics 21, 1979; the trace is Pillai's; the mean over "
            "penalties is ours"
        ),
        range="0 .. C - 1",
        scope=Scope.CONFIGURATION,
        cost="O(d^3) in the number of masked levels d, about three times that of adjusted-pillai",
        compute=held_out.held_out,
        trace=Trace.BELOW,
    ),
    Measure(
        name="held-out-pillai",
        title="Pillai's trace, held out, under two encodings",
        description=(
            "A weighted mean of two held-out traces. Two thirds come from single values, minus a "
            "penalty for rare values that share a level. One third comes from thresholds, which "
            "use the order of numbers and dates as trees do. Aegis uses this measure by default "
            "if it cannot predict an AUC."
        ),
        formula=(
            "(2 H(Z, p) + H(L, 100 p)) / 3, H as held-out-pillai-values; Z indicators of values, with a"
            " penalty of one row, too, L the same with [a >= t] for each of at most 32 ranges t of"
            " a number or a date"
        ),
        reference=(
            "As held-out-pillai-values; ridge regression on thresholds penalises steps between "
            "neighbours as in Whittaker, On a new method of graduation, Proceedings of the "
            "Edinburgh Mathematical Society 41, 1923; the penalty for rare values and the mean "
            "over codings are ours"
        ),
        range="0 .. C - 1",
        scope=Scope.CONFIGURATION,
        cost="O(d^3) in the number of masked levels d, about twice that of held-out-pillai-values",
        compute=held_out.held_out_encodings,
        needs=(Need.ORDER, Need.POOLED),
    ),
    Measure(
        name="target-coded",
        title="Target-coded trace, adjusted",
        description=(
            "Pillai's trace of numeric codes. For each attribute and class, the code of a masked "
            "value is the share of the class among the rows with this value. The measure needs "
            "only label tables and one small matrix, which a protected summary can hold."
        ),
        formula=(
            "V - (1 - V/(C-1)) f (C-1)/(N-f-1), V = trace(S_xx^+ S_xu S_uu^+ S_ux), x the codes"
            " n_xc/n_x - n_c/N of each attribute's masked value for all classes but one, f the"
            " masked values less one per attribute"
        ),
        reference=(
            "Micci-Barreca, A preprocessing scheme for high-cardinality categorical attributes,"
            " SIGKDD Explorations 3, 2001, for the codes; the trace is Pillai's"
        ),
        range="at most C - 1; about 0 under independence",
        scope=Scope.CONFIGURATION,
        cost="O(d^2 m (C-1)) in the number of masked levels d and of attributes m",
        compute=target_coded.target_coded,
    ),
    Measure(
        name="held-out-target-coded",
        title="Target-coded trace, held out",
        description=(
            "The target-coded trace on held-out rows, as a mean over penalties from weak to "
            "strong. It approximates held-out-pillai-values from label tables and one small "
            "matrix. For two classes, it uses how well scores separate the classes, as the "
            "expected AUC does. Aegis ranks by this measure if it has only a protected summary."
        ),
        formula=(
            "mean over k of max(0, T_1, .., T_k), T_k = C-1 - (C-1 - V s_k) ((N-1)/(N-1 - f_k V/S))^2,"
            " V as in target-coded before chance is taken off, of two classes 2pq D/(1 + 2pq D) with D ="
            " (m_1-m_0)'(S_1+S_0)^+ (m_1-m_0), of shares p and q, means and covariances of x by class with"
            " one matrix of correlations, S = sum over masked values x of n_x d_x^2/N,"
            " d_x^2 = sum_c (n_xc/n_x - n_c/N)^2 N/n_c, s_k the sum of n_x d_x^2 (1 - (p/(n_x+p))^2) / (N S),"
            " f_k = sum of n_x/(n_x+p) (1 - n_x/N), ridge penalties p = 1, 3, 10, 30, 100, 300 rows"
        ),
        reference=(
            "As target-coded; the separation as in held-out-auc (Su, Liu, 1993); the penalty as "
            "in held-out-pillai-values (Golub, Heath, Wahba, Technometrics 21, 1979), its use for "
            "one attribute at a time is ours"
        ),
        range="0 .. C - 1",
        scope=Scope.CONFIGURATION,
        cost="as target-coded",
        compute=target_coded.held_out_target_coded,
    ),
    Measure(
        name="cmim",
        title="Conditional mutual information total",
        description=(
            "The measure adds up attributes one by one. Each attribute adds the information "
            "about the label that no single attribute before it has. Each term is corrected for "
            "bias."
        ),
        formula="sum of gains max_A min_(B chosen) (I(A,B;Y) - I(B;Y)), each I as adjusted-mi",
        reference=(
            "Fleuret, Fast binary feature selection with conditional mutual information,"
            " Journal of Machine Learning Research 5, 2004"
        ),
        range="0 or more",
        unit="bits",
        scope=Scope.CONFIGURATION,
        cost="O(cells of the pair tables that it reads)",
        compute=cmim,
        needs=(Need.PAIRS,),
    ),
    Measure(
        name="adjusted-contingency",
        title="Mean square contingency of all pairs, corrected for chance",
        description=(
            "The measure shows how closely the columns are associated. Each pair of columns has "
            "the same weight. Use it for a table without a label that has too many values for "
            "held-out-any. The measure ignores a label."
        ),
        formula=(
            "mean over pairs of x / (1 + |x|), x = phi2 - (K_a - 1)(K_b - 1)/(N - 1), phi2 = sum"
            " n_ab^2 / (n_a n_b) - 1; without the correction Pearson's C^2 = phi2 / (1 + phi2)"
        ),
        reference=(
            "Pearson, On the theory of contingency and its relation to association and normal"
            " correlation, Drapers' Company Research Memoirs, Biometric Series 1, 1904; expectation"
            " under rows in random order: Bartlett, Properties of sufficiency and statistical tests,"
            " Proceedings of the Royal Society A 160, 1937"
        ),
        range="-1 .. 1",
        scope=Scope.CONFIGURATION,
        cost="O(m^2 N)",
        compute=columns.mean_contingency,
        of_pairs=columns.contingencies,
        label=LabelKind.NONE,
    ),
)


FALLBACK_MEASURE = "held-out-pillai"
"""The measure that is used if the chosen one cannot be computed; it needs no folds and works with
any number of classes.
"""


def _entropy_limit(margins: Margins) -> float:
    """Return the smaller entropy of label and attribute, which their mutual information never
    exceeds.
    """
    sides = (margins.classes, margins.values)
    return min(association.entropy(counts) for counts in sides if counts is not None)


_KIVINEN = (
    "Kivinen, Mannila, Approximate inference of functional dependencies from relations,"
    " Theoretical Computer Science 149, 1995, section 2"
)

_INFORMATION = (
    Measure(
        name="mi",
        title="Mutual information, plug-in",
        description=(
            "The information that the attribute has about the label in this table, in bits. The "
            "measure favours attributes with many values. Use it to reproduce published results."
        ),
        formula="sum p_xy log2(p_xy / (p_x p_y))",
        reference="Cover, Thomas, Elements of Information Theory, 2006, equation 2.28",
        range="0 .. min(H(X), H(Y))",
        unit="bits",
        monotone=True,
        cost="O(K_x K_y)",
        compute=association.mutual_information,
        fractional=True,
        processed=True,
        limit=_entropy_limit,
    ),
    Measure(
        name="adjusted-mi",
        title="Mutual information, bias-corrected",
        description=(
            "Mutual information minus its expected value under independence, to first order. It "
            "is the best choice if you score attributes one by one."
        ),
        formula="max(0, MI - (K_x - 1)(K_y - 1) / (2 N ln 2))",
        reference=(
            "Roulston, Estimating the errors on measured entropy and mutual information,"
            " Physica D 125, 1999"
        ),
        range="0 .. min(H(X), H(Y))",
        unit="bits",
        cost="O(K_x K_y)",
        compute=association.corrected_mutual_information,
        fractional=True,
    ),
    Measure(
        name="mi-miller-madow",
        title="Mutual information, Miller-Madow",
        description=(
            "Mutual information with the Miller-Madow correction of each entropy. If most cells "
            "are empty, it corrects too little."
        ),
        formula="MI + (K_x + K_y - K_xy - 1) / (2 N ln 2)",
        reference="Miller, Note on the bias of information estimates, 1955",
        range="any; about 0 under independence",
        unit="bits",
        cost="O(K_x K_y)",
        compute=association.miller_madow_information,
        fractional=True,
    ),
    Measure(
        name="rfi",
        title="Reliable fraction of information",
        description=(
            "The share of the label's entropy that the attribute explains, minus the exact mean "
            "of this share under random permutations of the label."
        ),
        formula="(MI - E0[MI]) / H(Y)",
        reference=(
            "Mandros, Boley, Vreeken, Discovering reliable approximate functional dependencies,"
            " KDD 2017"
        ),
        range="at most 1; about 0 under independence",
        cost="O(distinct row totals x K_y)",
        compute=association.reliable_information,
    ),
)

_CHI_SQUARE = (
    Measure(
        name="chi2",
        title="Pearson's chi-square",
        description=(
            "The squared deviation of counts from independence, relative to the expected counts. "
            "Chi-square grows with the number of rows and of values. Use it to reproduce "
            "published results."
        ),
        formula="sum (O - E)^2 / E, E = n_x n_y / N",
        reference="Pearson, Philosophical Magazine 50, 1900, page 157",
        range="0 .. N (min(K_x, K_y) - 1)",
        monotone=True,
        cost="O(K_x K_y)",
        compute=association.chi_square,
        fractional=True,
        processed=True,
        limit=lambda margins: margins.rows * margins.most,
    ),
    Measure(
        name="phi2",
        title="Mean square contingency",
        description="Chi-square divided by the number of rows, so that you can compare tables of "
        "different size.",
        formula="chi-square / N",
        reference="Cramer, Mathematical Methods of Statistics, 1946, section 21.9",
        range="0 .. min(K_x, K_y) - 1",
        monotone=True,
        cost="O(K_x K_y)",
        compute=association.phi_square,
        fractional=True,
        processed=True,
        limit=lambda margins: float(margins.most),
    ),
    Measure(
        name="adjusted-cramers-v",
        title="Cramer's V, bias-corrected",
        description=(
            "The strength of association on a scale from 0 to 1, with Bergsma's correction of its bias."
        ),
        formula=(
            "sqrt(phi2~ / min(r~ - 1, c~ - 1)), phi2~ = max(0, phi2 - (r-1)(c-1)/(N-1)),"
            " r~ = r - (r-1)^2/(N-1), c~ = c - (c-1)^2/(N-1), r = K_x, c = K_y"
        ),
        reference=(
            "Bergsma, A bias-correction for Cramer's V and Tschuprow's T, Journal of the Korean"
            " Statistical Society 42, 2013"
        ),
        range="0 .. 1",
        cost="O(K_x K_y)",
        compute=association.corrected_cramers_v,
        fractional=True,
    ),
    Measure(
        name="cramers-v-plain",
        title="Cramer's V",
        description="The strength of association on a scale from 0 to 1, without a correction.",
        formula="sqrt(phi2 / min(K_x - 1, K_y - 1))",
        reference="Cramer, Mathematical Methods of Statistics, 1946, section 21.9",
        range="0 .. 1",
        cost="O(K_x K_y)",
        compute=association.cramers_v,
        fractional=True,
    ),
)

_DEPENDENCY = (
    Measure(
        name="g1",
        title="Error g1 of the functional dependency",
        description="The share of row pairs that agree on the attribute but not on the label.",
        formula="(sum n_x^2 - sum n_xy^2) / N^2",
        reference=_KIVINEN,
        range="0 .. 1 - 1/K_y",
        unit="share of row pairs",
        direction=Direction.LOWER,
        monotone=True,
        cost="O(K_x K_y)",
        compute=association.g1,
        fractional=True,
        limit=lambda _: 0.0,
    ),
    Measure(
        name="g2",
        title="Error g2 of the functional dependency",
        description="The share of rows whose attribute value occurs with more than one class.",
        formula="sum over x with more than one class of n_x / N",
        reference=_KIVINEN,
        range="0 .. 1",
        unit="share of rows",
        direction=Direction.LOWER,
        monotone=True,
        cost="O(K_x K_y)",
        compute=association.g2,
        limit=lambda _: 0.0,
    ),
    Measure(
        name="g3",
        title="Error g3 of the functional dependency",
        description=(
            "The share of wrong predictions if you predict the majority class of each value, on "
            "the same rows. If an attribute is unique in each row, its error is 0."
        ),
        formula="1 - sum_x max_y n_xy / N",
        reference=_KIVINEN,
        range="0 .. 1 - 1/K_y",
        unit="share of rows",
        direction=Direction.LOWER,
        monotone=True,
        cost="O(K_x K_y)",
        compute=association.g3,
        fractional=True,
        processed=True,
        limit=lambda _: 0.0,
    ),
    Measure(
        name="held-out-g3",
        title="Error g3, leave-one-out",
        description=(
            "The share of wrong predictions if you predict each row by the majority class of the "
            "other rows with the same value. If there is no other row, the overall majority is "
            "the prediction. So an attribute that is unique in each row is useless."
        ),
        formula="share of rows whose class is not the majority among the other N - 1 rows",
        reference=(
            "Stone, Cross-validatory choice and assessment of statistical predictions, Journal"
            " of the Royal Statistical Society B 36, 1974; the majority rule is that of g3"
        ),
        range="0 .. 1",
        unit="share of rows",
        direction=Direction.LOWER,
        cost="O(K_x K_y)",
        compute=association.held_out_error,
    ),
)

for _measure in (*CONFIGURATION, *_INFORMATION, *_CHI_SQUARE, *_DEPENDENCY):
    MEASURES.register(_measure)

MEASURES.register(HELD_OUT_ANY)

for _merit in ModelMetric:
    MEASURES.register_family(_merit.measure, partial(measure_of_learners, _merit))

MEASURES.register(r2_measure(ExpectedR2()))
MEASURES.register_family(NUMBER_MEASURE, r2_of_learners)
MEASURES.register_family(SHARE_KEPT, share_kept)

for _former, _name in {
    "pillai": "adjusted-pillai",
    "pillai-held-out": "held-out-pillai-values",
    "pillai-codings": "held-out-pillai",
    "mi-corrected": "adjusted-mi",
    "cramers-v": "adjusted-cramers-v",
    "g3-held-out": "held-out-g3",
}.items():
    MEASURES.rename(_former, _name)
