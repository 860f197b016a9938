"""The measures that Aegis ships, with everything that a reader needs to choose among them."""

from __future__ import annotations

from functools import partial

from aegis.measures import (
    association,
    cmim,
    dependency,
    held_out,
    information,
    mutual,
    ordered,
    pillai,
    target_coded,
)
from aegis.measures.cooccurrence import Need
from aegis.measures.expected_catalog import expected_measure, measure_of_learners
from aegis.measures.expected_merit import Expected, Merit
from aegis.measures.record import MEASURES, Direction, Margins, Measure, Scope, Trace

FALLBACK_MEASURE = "held-out-pillai"
"""What takes its place where it cannot be had: it needs no parts of the rows, and takes any classes."""


def _entropy_limit(margins: Margins) -> float:
    """Return the smaller entropy of label and attribute: no information exceeds either."""
    known = (margins.classes, margins.values)
    return min(information.entropy(counts) for counts in known if counts is not None)


_KIVINEN = (
    "Kivinen, Mannila, Approximate inference of functional dependencies from relations,"
    " Theoretical Computer Science 149, 1995, section 2"
)

_CONFIGURATION = (
    *(expected_measure(Expected(merit)) for merit in Merit),
    Measure(
        name="adjusted-pillai",
        title="Pillai's trace, adjusted",
        description=(
            "How much of the label all masked attributes explain together, redundancy counted"
            " once and chance taken off. Lists what a search by another measure scores."
        ),
        formula="V - (1 - V/(C-1)) d (C-1)/(N-d-1), V as pillai-plain, d the rank of S_zz",
        reference=(
            "Pillai, Some new test criteria in multivariate analysis, Annals of Mathematical"
            " Statistics 26, 1955; adjusted as R^2 in Ezekiel, Methods of Correlation Analysis, 1930"
        ),
        range="at most C - 1; about 0 under independence",
        unit="1",
        direction=Direction.HIGHER,
        monotone=False,
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
            "The sum of squared canonical correlations between the masked attributes and the"
            " label, the chi-square of many attributes at once. Bounds a search."
        ),
        formula="V = trace(S_zz^+ S_zu S_uu^+ S_uz)",
        reference=(
            "Pillai, Some new test criteria in multivariate analysis, Annals of Mathematical"
            " Statistics 26, 1955"
        ),
        range="0 .. C - 1",
        unit="1",
        direction=Direction.HIGHER,
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
            "How much of the label penalised regressions explain on rows that they were not fitted"
            " to, the mean over learners from weak to strong penalties. Charges rare values for"
            " the overfitting that they invite. For models that see values one by one."
        ),
        formula=(
            "mean over k of max(0, T_1, .., T_k), T_k = sum_c (TSS_c - RSS_c(p_k)"
            " ((N-1)/(N-1-df(p_k)))^2) / n_c, ridge penalties p = 3, 10, 30, 100, 300 rows"
        ),
        reference=(
            "Golub, Heath, Wahba, Generalized cross-validation as a method for choosing a good"
            " ridge parameter, Technometrics 21, 1979; the trace is Pillai's, the mean over"
            " penalties our own"
        ),
        range="0 .. C - 1",
        unit="1",
        direction=Direction.HIGHER,
        monotone=False,
        scope=Scope.CONFIGURATION,
        cost="O(d^3) in the number of masked levels d, about three times pillai",
        compute=held_out.held_out,
        trace=Trace.BELOW,
    ),
    Measure(
        name="held-out-pillai",
        title="Pillai's trace, held out, under two codings",
        description=(
            "Two thirds of the held-out trace of values, seen one by one and charged for rare ones"
            " that share a level, and one third of that of thresholds, which see the order of"
            " numbers and dates as trees do. Takes the place of the"
            " default where no AUC can be expected."
        ),
        formula=(
            "(2 H(Z, p) + H(L, 100 p)) / 3, H as held-out-pillai-values; Z indicators of values, with a"
            " penalty of one row, too, L the same with [a >= t] for each of at most 32 ranges t of"
            " a number or a date"
        ),
        reference=(
            "As held-out-pillai-values; ridge on thresholds penalises steps between neighbours as in"
            " Whittaker, On a new method of graduation, Proceedings of the Edinburgh Mathematical"
            " Society 41, 1923; charge and mean over codings our own"
        ),
        range="0 .. C - 1",
        unit="1",
        direction=Direction.HIGHER,
        monotone=False,
        scope=Scope.CONFIGURATION,
        cost="O(d^3) in the number of masked levels d, about twice held-out-pillai-values",
        compute=ordered.held_out_codings,
        needs=(Need.ORDER, Need.POOLED),
    ),
    Measure(
        name="target-coded",
        title="Target-coded trace, adjusted",
        description=(
            "Pillai's trace of one numeric code per attribute and class: what each masked value"
            " says of the class. Needs label tables and one small matrix, which is little enough"
            " to be protected."
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
        unit="1",
        direction=Direction.HIGHER,
        monotone=False,
        scope=Scope.CONFIGURATION,
        cost="O(d^2 m (C-1)) in the number of masked levels d and of attributes m",
        compute=target_coded.target_coded,
    ),
    Measure(
        name="held-out-target-coded",
        title="Target-coded trace, held out",
        description=(
            "The target-coded trace on rows that took no part in it, the mean over learners from"
            " weak to strong penalties: held-out-pillai-values as far as label tables and one small"
            " matrix tell it. What protected summaries rank by."
        ),
        formula=(
            "mean over k of max(0, T_1, .., T_k), T_k = C-1 - (C-1 - V s_k) ((N-1)/(N-1 - f_k V/S))^2,"
            " V as in target-coded before chance is taken off, S = sum over masked values x of n_x d_x^2/N,"
            " d_x^2 = sum_c (n_xc/n_x - n_c/N)^2 N/n_c, s_k the sum of n_x d_x^2 (1 - (p/(n_x+p))^2) / (N S),"
            " f_k = sum of n_x/(n_x+p) (1 - n_x/N), ridge penalties p = 1, 3, 10, 30, 100, 300 rows"
        ),
        reference=(
            "As target-coded; the charge as in held-out-pillai-values (Golub, Heath, Wahba,"
            " Technometrics 21, 1979), one attribute at a time our own"
        ),
        range="0 .. C - 1",
        unit="1",
        direction=Direction.HIGHER,
        monotone=False,
        scope=Scope.CONFIGURATION,
        cost="as target-coded",
        compute=target_coded.held_out_target_coded,
    ),
    Measure(
        name="cmim",
        title="Conditional mutual information total",
        description=(
            "Adds up what each attribute says about the label beyond any one attribute chosen"
            " before it, every term corrected for its bias."
        ),
        formula="sum of gains max_A min_(B chosen) (I(A,B;Y) - I(B;Y)), each I as adjusted-mi",
        reference=(
            "Fleuret, Fast binary feature selection with conditional mutual information,"
            " Journal of Machine Learning Research 5, 2004"
        ),
        range="0 or more",
        unit="bits",
        direction=Direction.HIGHER,
        monotone=False,
        scope=Scope.CONFIGURATION,
        cost="O(cells of the pair tables looked at)",
        compute=cmim.cmim,
        needs=(Need.PAIRS,),
    ),
)

_MUTUAL = (
    Measure(
        name="adjusted-contingency",
        title="Mean square contingency of all pairs, corrected for chance",
        description=(
            "How much the columns tell of one another, each pair alike: for a table without a label,"
            " where nobody knows which column will be predicted from which. The label, where there is"
            " one, has no part in it."
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
        unit="1",
        direction=Direction.HIGHER,
        monotone=False,
        scope=Scope.CONFIGURATION,
        cost="O(m^2 N)",
        compute=mutual.mean_contingency,
        of_pair=mutual.pair_contingency,
    ),
)

_INFORMATION = (
    Measure(
        name="mi",
        title="Mutual information, plug-in",
        description=(
            "How many bits the attribute says about the label in this very table. Rewards"
            " attributes with many values; kept for reproduction."
        ),
        formula="sum p_xy log2(p_xy / (p_x p_y))",
        reference="Cover, Thomas, Elements of Information Theory, 2006, equation 2.28",
        range="0 .. min(H(X), H(Y))",
        unit="bits",
        direction=Direction.HIGHER,
        monotone=True,
        scope=Scope.ATTRIBUTE,
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
            "Mutual information less what chance alone shows on average, to first order. The"
            " measure of choice where attributes are judged one by one."
        ),
        formula="max(0, MI - (K_x - 1)(K_y - 1) / (2 N ln 2))",
        reference=(
            "Roulston, Estimating the errors on measured entropy and mutual information,"
            " Physica D 125, 1999"
        ),
        range="0 .. min(H(X), H(Y))",
        unit="bits",
        direction=Direction.HIGHER,
        monotone=False,
        scope=Scope.ATTRIBUTE,
        cost="O(K_x K_y)",
        compute=information.corrected_mutual_information,
        fractional=True,
    ),
    Measure(
        name="mi-miller-madow",
        title="Mutual information, Miller-Madow",
        description=(
            "Mutual information with the Miller-Madow correction of each entropy. Corrects too"
            " little where most cells are empty."
        ),
        formula="MI + (K_x + K_y - K_xy - 1) / (2 N ln 2)",
        reference="Miller, Note on the bias of information estimates, 1955",
        range="any; about 0 under independence",
        unit="bits",
        direction=Direction.HIGHER,
        monotone=False,
        scope=Scope.ATTRIBUTE,
        cost="O(K_x K_y)",
        compute=information.miller_madow_information,
        fractional=True,
    ),
    Measure(
        name="rfi",
        title="Reliable fraction of information",
        description=(
            "The share of the label's entropy that the attribute explains beyond the exact mean"
            " under random permutation of the label."
        ),
        formula="(MI - E0[MI]) / H(Y)",
        reference=(
            "Mandros, Boley, Vreeken, Discovering reliable approximate functional dependencies,"
            " KDD 2017"
        ),
        range="at most 1; about 0 under independence",
        unit="1",
        direction=Direction.HIGHER,
        monotone=False,
        scope=Scope.ATTRIBUTE,
        cost="O(distinct row totals x K_y)",
        compute=information.reliable_information,
    ),
)

_CHI_SQUARE = (
    Measure(
        name="chi2",
        title="Pearson's chi-square",
        description=(
            "Squared deviation from independence, in units of what is expected. Grows with N and"
            " with the number of values; kept for reproduction."
        ),
        formula="sum (O - E)^2 / E, E = n_x n_y / N",
        reference="Pearson, Philosophical Magazine 50, 1900, page 157",
        range="0 .. N (min(K_x, K_y) - 1)",
        unit="1",
        direction=Direction.HIGHER,
        monotone=True,
        scope=Scope.ATTRIBUTE,
        cost="O(K_x K_y)",
        compute=association.chi_square,
        fractional=True,
        processed=True,
        limit=lambda margins: margins.rows * margins.most,
    ),
    Measure(
        name="phi2",
        title="Mean square contingency",
        description="Chi-square per row: comparable between tables of different size.",
        formula="chi-square / N",
        reference="Cramer, Mathematical Methods of Statistics, 1946, section 21.9",
        range="0 .. min(K_x, K_y) - 1",
        unit="1",
        direction=Direction.HIGHER,
        monotone=True,
        scope=Scope.ATTRIBUTE,
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
            "Strength of association on a scale from 0 to 1, with Bergsma's correction of its bias."
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
        unit="1",
        direction=Direction.HIGHER,
        monotone=False,
        scope=Scope.ATTRIBUTE,
        cost="O(K_x K_y)",
        compute=association.corrected_cramers_v,
        fractional=True,
    ),
    Measure(
        name="cramers-v-plain",
        title="Cramer's V",
        description="Strength of association on a scale from 0 to 1, without correction.",
        formula="sqrt(phi2 / min(K_x - 1, K_y - 1))",
        reference="Cramer, Mathematical Methods of Statistics, 1946, section 21.9",
        range="0 .. 1",
        unit="1",
        direction=Direction.HIGHER,
        monotone=False,
        scope=Scope.ATTRIBUTE,
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
        scope=Scope.ATTRIBUTE,
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
        scope=Scope.ATTRIBUTE,
        cost="O(K_x K_y)",
        compute=dependency.g2,
        limit=lambda _: 0.0,
    ),
    Measure(
        name="g3",
        title="Error g3 of the functional dependency",
        description=(
            "The error of predicting the majority class of each value, on the rows that the"
            " majorities were taken from: a key attribute has 0."
        ),
        formula="1 - sum_x max_y n_xy / N",
        reference=_KIVINEN,
        range="0 .. 1 - 1/K_y",
        unit="share of rows",
        direction=Direction.LOWER,
        monotone=True,
        scope=Scope.ATTRIBUTE,
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
            "The error of predicting each row by the majority class of the other rows with its"
            " value, the overall majority where there is none: a key attribute gains nothing."
        ),
        formula="share of rows whose class is not the majority among the other N - 1 rows",
        reference=(
            "Stone, Cross-validatory choice and assessment of statistical predictions, Journal"
            " of the Royal Statistical Society B 36, 1974; the majority rule is that of g3"
        ),
        range="0 .. 1",
        unit="share of rows",
        direction=Direction.LOWER,
        monotone=False,
        scope=Scope.ATTRIBUTE,
        cost="O(K_x K_y)",
        compute=dependency.held_out_error,
    ),
)

for _measure in (*_CONFIGURATION, *_MUTUAL, *_INFORMATION, *_CHI_SQUARE, *_DEPENDENCY):
    MEASURES.register(_measure)

for _merit in Merit:
    MEASURES.register_family(_merit.measure, partial(measure_of_learners, _merit))

for _former, _name in {
    "pillai": "adjusted-pillai",
    "pillai-held-out": "held-out-pillai-values",
    "pillai-codings": "held-out-pillai",
    "mi-corrected": "adjusted-mi",
    "cramers-v": "adjusted-cramers-v",
    "g3-held-out": "held-out-g3",
}.items():
    MEASURES.rename(_former, _name)
