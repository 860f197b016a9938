"""Register the measures of single attributes, with the properties that help to choose one.

`configuration_catalog` has the measures of whole configurations.
"""

from __future__ import annotations

from functools import partial

from aegis.measures import (
    association,
    dependency,
    information,
)
from aegis.measures.columns import HELD_OUT_ANY
from aegis.measures.configuration_catalog import CONFIGURATION
from aegis.measures.expected_catalog import measure_of_learners
from aegis.measures.expected_merit import Merit
from aegis.measures.number import ExpectedR2, r2_measure, r2_of_learners
from aegis.measures.record import (
    MEASURES,
    NUMBER_MEASURE,
    SHARE_KEPT,
    Direction,
    Margins,
    Measure,
)
from aegis.measures.several import share_kept

FALLBACK_MEASURE = "held-out-pillai"
"""The measure that is used if the chosen one cannot be computed; it needs no folds and works with
any number of classes.
"""


def _entropy_limit(margins: Margins) -> float:
    """Return the smaller entropy of label and attribute: no information exceeds either."""
    known = (margins.classes, margins.values)
    return min(information.entropy(counts) for counts in known if counts is not None)


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
        compute=information.mutual_information,
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
        compute=information.corrected_mutual_information,
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
        compute=information.miller_madow_information,
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
        compute=information.reliable_information,
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
        compute=dependency.g1,
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
        compute=dependency.g2,
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
        compute=dependency.g3,
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
        compute=dependency.held_out_error,
    ),
)

for _measure in (*CONFIGURATION, *_INFORMATION, *_CHI_SQUARE, *_DEPENDENCY):
    MEASURES.register(_measure)

MEASURES.register(HELD_OUT_ANY)

for _merit in Merit:
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
