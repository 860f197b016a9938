"""Define privacy models for the whole table, and diversity models that are corrected for small
classes.

These models are registered next to the models of `aegis.privacy.models`.
"""

from __future__ import annotations

import numpy as np

from aegis.arrays import Floats
from aegis.privacy.classes import ClassTable
from aegis.privacy.diversity import corrected_values
from aegis.privacy.model import Comparison, Criterion, ModelNeed, ModelParameter, PrivacyModel
from aegis.privacy.models import L_VALUES
from aegis.privacy.risk_models import MODELS
from aegis.privacy.uniqueness import ESTIMATORS, population_uniqueness

__all__ = ["MODELS"]

_TITLES = {
    "dankar": "by Dankar's rule",
    "pitman": "by Pitman's model",
    "zayatz": "by Zayatz's model",
    "snb": "by the slide negative binomial",
}
_PEOPLE = ModelParameter(
    "population",
    "number of people in the population that the table is a sample of",
    low=1,
    whole=True,
)
_DANKAR = "Dankar et al.: Estimating the re-identification risk (BMC Med. Inform. 12, 2012)"


def _threshold(what: str) -> ModelParameter:
    return ModelParameter("threshold", what, high=1, larger_is_stronger=False)


def _sample_share(table: ClassTable, _: Criterion) -> Floats:
    """Return, for classes of one row, the share of the table's rows that are alone; 0 for others."""
    unique = table.sizes == 1
    share: Floats = unique * (unique.sum() / max(int(table.sizes.sum()), 1))
    return share


def _population_share(table: ClassTable, criterion: Criterion) -> Floats:
    """Return, for classes of one row, the estimated share of people who are unique in the
    population; 0 for others. `criterion` names the estimator and the size of the population.
    """
    if not len(table):
        return np.zeros(0)
    estimator = (criterion.model.variant or ("", ""))[1]
    estimate = population_uniqueness(table.sizes, int(criterion["population"]), estimator)
    share: Floats = (table.sizes == 1) * estimate
    return share


MODELS.register_all(
    PrivacyModel(
        name="l_diversity.entropy-grassberger",
        title="entropy l-diversity, corrected",
        description=(
            "This is entropy l-diversity with a corrected estimate of the entropy, because the "
            "plain entropy is too low in small classes. A class must also have at least l "
            "distinct values."
        ),
        formula="|{v : q_v > 0}| >= l, G(|E|) - sum_v q_v G(n_v) >= ln l, G(n) = digamma(n) + (-1)^n int_0^1 x^(n-1)/(1+x)",
        reference=(
            "Stammler, Katzenbeisser, Hamacher: Correcting Finite Sampling Issues in Entropy "
            "l-diversity (PSD 2016); Grassberger: arXiv physics/0307138"
        ),
        direction=Comparison.AT_LEAST,
        parameters=(
            ModelParameter(
                "l", "least diversity of a class, as a number of equally likely values", low=1
            ),
        ),
        argument=(
            "The correction for chance is smaller for larger classes. For example, take two "
            "classes with one row each and the same value. They count as more diverse than the "
            "merged class."
        ),
        figures=lambda table, criterion: corrected_values(criterion.counts(table)),
        values=L_VALUES,
        shortfall="with a corrected entropy below ln {l}",
        needs=frozenset({ModelNeed.SENSITIVE}),
        variant=("kind", "entropy-grassberger"),
    ),
    PrivacyModel(
        name="sample_uniqueness",
        title="sample uniqueness",
        description=(
            "At most the share `threshold` of the released rows is unique in the "
            "quasi-identifiers. If more rows are unique, Aegis removes all unique rows."
        ),
        formula="|{E : |E| = 1}| <= threshold * rows",
        reference=_DANKAR,
        direction=Comparison.AT_MOST,
        parameters=(_threshold("largest share of rows that are unique"),),
        monotone=True,
        argument=(
            "Merging classes never adds unique rows. But with suppression, the share refers to "
            "the kept rows. If the rule has other models, they also decide which rows are kept."
        ),
        figures=_sample_share,
        shortfall="of one row, more than the share {threshold}",
        needs=frozenset({ModelNeed.REFERENCE}),
    ),
)
for _estimator in ESTIMATORS:
    MODELS.register(
        PrivacyModel(
            name=f"population_uniqueness.{_estimator}",
            title=f"population uniqueness {_TITLES[_estimator]}",
            description=(
                "The share of people that are expected to be unique in the population is at most "
                "`threshold`. Aegis estimates this share from the class sizes of the release. If "
                "the share is larger, Aegis removes the rows that are unique in the release."
            ),
            formula="expected uniques of the population <= threshold * population",
            reference=_DANKAR,
            direction=Comparison.AT_MOST,
            parameters=(
                _threshold("largest share of the population that is expected to be unique"),
                _PEOPLE,
            ),
            argument=(
                "The estimate uses the number of classes of each size. It can rise if classes "
                "merge."
            ),
            figures=_population_share,
            shortfall="of one row, where more than the share {threshold} of the population is unique",
            needs=frozenset({ModelNeed.REFERENCE}),
            variant=("estimator", _estimator),
        )
    )
