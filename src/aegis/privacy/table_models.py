"""Define privacy models of the whole table, and diversity models corrected for small classes.

These models are registered next to those of `aegis.privacy.models`.
"""

from __future__ import annotations

import numpy as np

from aegis.privacy.classes import ClassTable, FloatArray
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
_PEOPLE = ModelParameter("population", "people that the table is a sample of", low=1, whole=True)
_DANKAR = "Dankar et al.: Estimating the re-identification risk (BMC Med. Inform. 12, 2012)"


def _threshold(what: str) -> ModelParameter:
    return ModelParameter("threshold", what, high=1, larger_is_stronger=False)


def _sample_share(table: ClassTable, _: Criterion) -> FloatArray:
    """Return the share of unique rows for each class of one row, 0 for others, shape (n_classes,)."""
    unique = table.sizes == 1
    share: FloatArray = unique * (unique.sum() / max(int(table.sizes.sum()), 1))
    return share


def _population_share(table: ClassTable, criterion: Criterion) -> FloatArray:
    """Return the estimated share of unique people for each class of one row, 0 for others, shape
    (n_classes,).
    """
    if not len(table):
        return np.zeros(0)
    estimator = (criterion.model.variant or ("", ""))[1]
    estimate = population_uniqueness(table.sizes, int(criterion["population"]), estimator)
    share: FloatArray = (table.sizes == 1) * estimate
    return share


MODELS.register_all(
    PrivacyModel(
        name="l_diversity.entropy-grassberger",
        title="entropy l-diversity, corrected",
        description=(
            "Entropy l-diversity with an estimate of the entropy that is unbiased for small classes, too, where the plain entropy is too low; the diversity of a class is at most its number of values."
        ),
        formula="|{v : q_v > 0}| >= l, G(|E|) - sum_v q_v G(n_v) >= ln l, G(n) = digamma(n) + (-1)^n int_0^1 x^(n-1)/(1+x)",
        reference=(
            "Stammler, Katzenbeisser, Hamacher: Correcting Finite Sampling Issues in Entropy "
            "l-diversity (PSD 2016); Grassberger: arXiv physics/0307138"
        ),
        direction=Comparison.AT_LEAST,
        limit="l",
        parameters=(ModelParameter("l", "values, equally likely, that a class is worth", low=1),),
        monotone=False,
        monotone_with_suppression=False,
        argument=(
            "The correction falls with the size of a class: two classes of a row each, the same "
            "value in both, are more diverse separately than merged."
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
            "At most a share of the released rows is alone with its quasi-identifiers; where more "
            "are, all of them are removed."
        ),
        formula="|{E : |E| = 1}| <= threshold * rows",
        reference=_DANKAR,
        direction=Comparison.AT_MOST,
        limit="threshold",
        parameters=(_threshold("largest share of rows that are unique"),),
        monotone=True,
        monotone_with_suppression=False,
        argument=(
            "A merger has no more unique rows. With suppression the share is of the kept rows, which "
            "other criteria change."
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
                "The people who are expected to be unique in the population are at most a share of "
                "it, by an estimate from the class sizes of the release; where they are more, rows "
                "that are unique in the release are removed."
            ),
            formula="expected uniques of the population <= threshold * population",
            reference=_DANKAR,
            direction=Comparison.AT_MOST,
            limit="threshold",
            parameters=(
                _threshold("largest share of the population that is expected to be unique"),
                _PEOPLE,
            ),
            monotone=False,
            monotone_with_suppression=False,
            argument="An estimate from the number of classes of each size may rise when some merge.",
            figures=_population_share,
            shortfall="of one row, where more than the share {threshold} of the population is unique",
            needs=frozenset({ModelNeed.REFERENCE}),
            variant=("estimator", _estimator),
        )
    )
