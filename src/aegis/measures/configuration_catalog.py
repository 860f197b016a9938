"""Register the measures of whole configurations: how well all attributes together predict the label."""

from __future__ import annotations

from aegis.measures import cmim, held_out, mutual, ordered, pillai, target_coded
from aegis.measures.cooccurrence import Need
from aegis.measures.expected_catalog import expected_measure
from aegis.measures.expected_merit import Expected, Merit
from aegis.measures.record import LabelKind, Measure, Scope, Trace

CONFIGURATION = (
    *(expected_measure(Expected(merit)) for merit in Merit),
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
        title="Pillai's trace, held out, under two codings",
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
        compute=ordered.held_out_codings,
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
        compute=cmim.cmim,
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
        compute=mutual.mean_contingency,
        of_pair=mutual.pair_contingency,
        label=LabelKind.NONE,
    ),
)
