"""Register the privacy models, and define the built-in ones.

Two properties of a model, `monotone` and `monotone_with_suppression`, decide which tables a search
may exclude because a coarser table fails. Each record says why they hold. Most arguments use
convexity: the distribution of a merged class is a mixture of the distributions of its parts. So if
the allowed distributions form a convex set and *all* parts are in this set, the merged class is in
it, too. But if rows may be suppressed, a failing class may be merged with a safe one. Convexity
then guarantees nothing: the rows that were safe may now fail.
"""

from __future__ import annotations

import math
from dataclasses import replace

from aegis.arrays import Flags, Floats
from aegis.errors import InternalError
from aegis.privacy import histograms
from aegis.privacy.caps import (
    alpha_caps,
    basic_caps,
    enhanced_caps,
    entropy_caps,
    equal_caps,
    hierarchical_caps,
    log_ratio_caps,
    ordered_caps,
    recursive_caps,
)
from aegis.privacy.classes import ClassTable
from aegis.privacy.diversity import (
    TOLERANCE,
    distinct_values,
    effective_values,
    enhanced_gain,
    equal_distance,
    hierarchical_distance,
    largest_share,
    log_ratio,
    ordered_distance,
    recursive_ratio,
    relative_gain,
)
from aegis.privacy.model import (
    MODELS,
    Comparison,
    Criterion,
    ModelNeed,
    ModelParameter,
    PrivacyModel,
    ValueDemand,
    Weakening,
    Window,
)

__all__ = ["L_VALUES", "MIXTURE", "MODELS", "UNION"]

_K = ModelParameter("k", "least number of rows in a class", low=1, whole=True)
_L = ModelParameter(
    "l",
    "least number of well-represented sensitive values in a class",
    low=1,
    whole=True,
    larger_is_stronger=True,
)
_T = ModelParameter("t", "largest distance to the table's distribution", high=1)
_BETA = ModelParameter("beta", "largest relative increase of the share of a value")
_DELTA = ModelParameter("delta", "upper bound of |log(q/p)|, which must be below it")
_BASE = ModelParameter(
    "base",
    "base of the logarithm. The default is e (natural logarithm). ARX uses 2",
    low=1,
    above=True,
    default=math.e,
)
# Entropy is at most the logarithm of the number of values, and the tail from rank l on is empty
# below l of them: each kind of l-diversity requires l.
L_VALUES = ValueDemand(
    "l", lambda least: math.ceil(least - TOLERANCE), lambda values: f"an l of at most {values:,}"
)
# The most frequent value has at least its equal share.
_ALPHA_VALUES = ValueDemand(
    "alpha",
    lambda alpha: math.ceil(1 / (alpha + TOLERANCE)),
    lambda values: f"an alpha of at least {math.ceil(1000 / values) / 1000:g}",
)

UNION = (
    "A merged class fails only if each of the classes that it merges failed before. So merging "
    "never increases the number of rows in failing classes."
)
MIXTURE = (
    "The distributions that meet the condition form a convex set. So a merger of safe classes is "
    "safe. But a merger of a safe class and a large failing class may fail. Then the safe rows "
    "fail, too."
)
_MOVING = (
    f"{MIXTURE} Suppression also changes the distribution of the kept rows, with which the model "
    "compares each class."
)
_OTHER_DISTANCES = ("t_closeness.ordered", "t_closeness.hierarchical")
_SENSITIVE = frozenset({ModelNeed.SENSITIVE})
_COMPARED = frozenset({ModelNeed.SENSITIVE, ModelNeed.REFERENCE})
_LI = "Li, Li, Venkatasubramanian: t-Closeness (ICDE 2007), section 5"
_MACHANAVAJJHALA = "Machanavajjhala et al.: l-Diversity (ACM TKDD 1, 2007)"
_CAO = "Cao, Karras: Publishing Microdata with a Robust Privacy Guarantee (PVLDB 5, 2012)"
_BRICKELL = "Brickell, Shmatikov: The Cost of Privacy (KDD 2008)"


def _alpha_k_fails(table: ClassTable, criterion: Criterion) -> Flags:
    shares = largest_share(criterion.counts(table))
    return (shares > criterion["alpha"] + TOLERANCE) | (table.sizes < criterion["k"])


def _by_tree(table: ClassTable, criterion: Criterion) -> Floats:
    counts = criterion.counts(table)
    if counts.levels is None:
        raise InternalError(f"{criterion} has no hierarchy, although that was checked before.")
    return hierarchical_distance(counts, counts.levels)


MODELS.register_all(
    PrivacyModel(
        name="k",
        title="k-anonymity",
        description="Each row shares its quasi-identifiers with at least k - 1 other rows.",
        formula="|E| >= k",
        reference="Sweeney: k-Anonymity (IJUFKS 10, 2002)",
        direction=Comparison.AT_LEAST,
        parameters=(_K,),
        monotone=True,
        monotone_with_suppression=True,
        monotone_by_person=True,
        argument=UNION,
        figures=lambda table, _: table.sizes,
        least_size=lambda criterion: int(criterion["k"]),
        weakening=Weakening("k", -1, least=2),
        strictest_counts=True,
        shortfall="smaller than {k}",
        implies=("k_map",),
        window=Window.ROWS,
    ),
    PrivacyModel(
        name="k_map",
        title="k-map",
        description="Every released row matches at least k people in the population.",
        formula="population of E >= k",
        reference="Sweeney: Computational Disclosure Control (PhD thesis, MIT 2001)",
        direction=Comparison.AT_LEAST,
        parameters=(_K,),
        monotone=True,
        monotone_with_suppression=True,
        argument=UNION,
        figures=lambda table, _: table.crowds,
        shortfall="that match fewer than {k} people of the population",
        needs=frozenset({ModelNeed.POPULATION}),
    ),
    PrivacyModel(
        name="alpha_k",
        title="(alpha,k)-anonymity",
        description="Every class has at least k rows, and no sensitive value has a share above alpha in it.",
        formula="max_v q_v <= alpha and |E| >= k",
        reference="Wong, Li, Fu, Wang: (alpha,k)-Anonymity (KDD 2006)",
        direction=Comparison.AT_MOST,
        parameters=(
            ModelParameter(
                "alpha",
                "largest share of one value in a class",
                high=1,
                above=True,
                larger_is_stronger=False,
            ),
            replace(_K, default=1, larger_is_stronger=True),
        ),
        monotone=True,
        argument=MIXTURE,
        figures=lambda table, criterion: largest_share(criterion.counts(table)),
        fails=_alpha_k_fails,
        caps=alpha_caps,
        values=_ALPHA_VALUES,
        shortfall="smaller than {k} or with one value in more than {alpha} of the rows",
        needs=_SENSITIVE,
        window=Window.SHARE,
    ),
    PrivacyModel(
        name="l_diversity.distinct",
        title="distinct l-diversity",
        description="Every class has at least l different sensitive values.",
        formula="|{v : q_v > 0}| >= l",
        reference="Li, Li, Venkatasubramanian: t-Closeness (ICDE 2007), section 2",
        direction=Comparison.AT_LEAST,
        parameters=(_L,),
        monotone=True,
        monotone_with_suppression=True,
        argument=UNION,
        figures=lambda table, criterion: distinct_values(criterion.counts(table)),
        dense=lambda table, _: histograms.distinct_values(table),
        values=replace(L_VALUES, sufficient=True),
        shortfall="with fewer than {l} distinct values",
        needs=_SENSITIVE,
        variant=("kind", "distinct"),
        window=Window.DISTINCT,
    ),
    PrivacyModel(
        name="l_diversity.entropy",
        title="entropy l-diversity",
        description="The entropy of the sensitive values in every class is at least that of l equally "
        "likely values.",
        formula="-sum_v q_v ln q_v >= ln l",
        reference=f"{_MACHANAVAJJHALA}, Definition 4.1",
        direction=Comparison.AT_LEAST,
        parameters=(
            ModelParameter(
                "l", "least diversity of a class, as a number of equally likely values", low=1
            ),
        ),
        monotone=True,
        argument=f"Entropy is concave. {MIXTURE}",
        figures=lambda table, criterion: effective_values(criterion.counts(table)),
        dense=lambda table, _: histograms.effective_values(table),
        caps=entropy_caps,
        values=L_VALUES,
        shortfall="with an entropy below ln {l}",
        needs=_SENSITIVE,
        variant=("kind", "entropy"),
        window=Window.ENTROPY,
        window_by_person=False,
    ),
    PrivacyModel(
        name="l_diversity.recursive",
        title="recursive (c,l)-diversity",
        description=(
            "In every class, the most frequent sensitive value occurs less than c times as often "
            "as the l-th most frequent value and all rarer values together."
        ),
        formula="r_1 < c (r_l + ... + r_m), r_1 >= r_2 >= ... the value frequencies of E",
        reference=f"{_MACHANAVAJJHALA}, Definition 4.2",
        direction=Comparison.BELOW,
        limit="c",
        parameters=(_L, ModelParameter("c", "upper bound of r_1 / (r_l + ... + r_m)", above=True)),
        monotone=True,
        argument=(
            "If safe classes merge, the merged class is safe. Its largest count is at most the "
            "sum of the largest counts of its parts. Its count of the l-th and rarer values is at "
            "least the sum of these counts of its parts. But if a safe class merges with a "
            "failing class, the merged class may fail."
        ),
        figures=lambda table, criterion: recursive_ratio(
            criterion.counts(table), int(criterion["l"])
        ),
        dense=lambda table, criterion: histograms.recursive_ratio(table, int(criterion["l"])),
        caps=recursive_caps,
        values=L_VALUES,
        shortfall="whose most frequent value is not below {c} times the tail from rank {l} on",
        needs=_SENSITIVE,
        variant=("kind", "recursive"),
    ),
)
for _distance, _formula, _figures, _dense, _caps in (
    (
        "equal",
        "0.5 sum_v |q_v - p_v| <= t",
        lambda table, criterion: equal_distance(criterion.counts(table)),
        lambda table, _: histograms.equal_distance(table),
        equal_caps,
    ),
    (
        "ordered",
        "sum_i |sum_{j<=i} (q_j - p_j)| / (m - 1) <= t",
        lambda table, criterion: ordered_distance(criterion.counts(table)),
        lambda table, _: histograms.ordered_distance(table),
        ordered_caps,
    ),
    (
        "hierarchical",
        "sum_N height(N)/H min(pos_extra(N), neg_extra(N)) <= t",
        _by_tree,
        lambda table, _: histograms.hierarchical_distance(table),
        hierarchical_caps,
    ),
):
    MODELS.register(
        PrivacyModel(
            name=f"t_closeness.{_distance}",
            title=f"t-closeness ({_distance} distance)",
            description=(
                "In every class, the sensitive values have almost the same distribution as in the whole release."
            ),
            formula=_formula,
            reference=_LI,
            direction=Comparison.AT_MOST,
            parameters=(_T,),
            monotone=True,
            argument=f"The earth mover's distance is convex. {_MOVING}",
            figures=_figures,
            dense=_dense,
            caps=_caps,
            shortfall="farther than {t} from the distribution of the kept rows",
            needs=_COMPARED | ({ModelNeed.HIERARCHY} if _distance == "hierarchical" else set()),
            variant=("distance", _distance),
            # No two values are farther apart than 1 in any of the distances, and all are 1 apart
            # where they are equal ones.
            implies=_OTHER_DISTANCES if _distance == "equal" else (),
        )
    )
for _kind, _formula, _figures, _dense, _caps in (
    (
        "basic",
        "(q_v - p_v) / p_v <= beta for every v",
        lambda table, criterion: relative_gain(criterion.counts(table)),
        lambda table, _: histograms.relative_gain(table),
        basic_caps,
    ),
    (
        "enhanced",
        "(q_v - p_v) / p_v <= min(beta, -ln p_v) for every v",
        lambda table, criterion: enhanced_gain(criterion.counts(table)),
        lambda table, _: histograms.enhanced_gain(table, TOLERANCE),
        enhanced_caps,
    ),
):
    MODELS.register(
        PrivacyModel(
            name=f"beta_likeness.{_kind}",
            title=f"{_kind} beta-likeness",
            description="The share of a sensitive value in a class is at most 1 + beta times its share in the table.",
            formula=_formula,
            reference=_CAO,
            direction=Comparison.AT_MOST,
            parameters=(_BETA,),
            monotone=True,
            argument=_MOVING,
            figures=_figures,
            dense=_dense,
            caps=_caps,
            shortfall="where a value gains more than beta = {beta} allows",
            needs=_COMPARED,
            variant=("kind", _kind),
            implies=("beta_likeness.basic",) if _kind == "enhanced" else (),
        )
    )
MODELS.register_all(
    PrivacyModel(
        name="delta_disclosure.all",
        title="delta-disclosure privacy",
        description=(
            "The share of each sensitive value in a class differs from its share in the table by "
            "less than the factor base^delta."
        ),
        formula="|log(q_v / p_v)| < delta for every v of the table, log to the base",
        reference=_BRICKELL,
        direction=Comparison.BELOW,
        parameters=(_DELTA, _BASE),
        monotone=True,
        argument=_MOVING,
        figures=lambda table, criterion: (
            log_ratio(criterion.counts(table)) / math.log(criterion["base"])
        ),
        dense=lambda table, criterion: histograms.log_ratio(table) / math.log(criterion["base"]),
        caps=log_ratio_caps,
        shortfall="where |log(q/p)| of a value is not below {delta}",
        needs=_COMPARED,
        variant=("values", "all"),
        implies=("delta_disclosure.present",),
    ),
    PrivacyModel(
        name="delta_disclosure.present",
        title="delta-disclosure privacy of present values",
        description=(
            "This is delta-disclosure privacy that ignores the values which a class lacks. "
            "Several other tools compute delta-disclosure in this way."
        ),
        formula="|log(q_v / p_v)| < delta for every v with q_v > 0, log to the base",
        reference=f"{_BRICKELL}, without the values absent from a class",
        direction=Comparison.BELOW,
        parameters=(_DELTA, _BASE),
        argument=(
            "The set of allowed distributions is not convex. For example, a value may be absent "
            "from one safe class and have its smallest allowed share in another class. If both "
            "classes merge, the share of the value is too small."
        ),
        figures=lambda table, criterion: (
            log_ratio(criterion.counts(table), absent=False) / math.log(criterion["base"])
        ),
        dense=lambda table, criterion: (
            histograms.log_ratio(table, absent=False) / math.log(criterion["base"])
        ),
        caps=log_ratio_caps,
        shortfall="where |log(q/p)| of a present value is not below {delta}",
        needs=_COMPARED,
        variant=("values", "present"),
    ),
)
