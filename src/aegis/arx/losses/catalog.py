"""The losses that other tools minimise, listed as objectives of a search.

The payout of a publisher is the benefit of released data, minus losses from attacks (Wan et al., A
game theoretic framework for analyzing re-identification risk, PLoS ONE 10, 2015). If masks hide the
share h of a row's bits (see `log-width`), the benefit from the row is benefit * (1 - h). An attack
on a class of n rows pays if gain / n > cost; then the publisher's expected loss for each row is
loss / n.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from aegis.advisor.plan import PrivacyPlan
from aegis.advisor.search.objective import ObjectiveType
from aegis.advisor.search.objectives import Additive
from aegis.advisor.search.problem import Box, Problem
from aegis.arrays import Flags, Floats
from aegis.arx.losses.classes import (
    Ambiguity,
    AreaLoss,
    AverageClassSize,
    ClassEntropy,
    Classification,
    ClassLoss,
    Discernibility,
    Divergence,
    Groups,
    ShownClassification,
)
from aegis.arx.losses.loss_options import LabelCharges, LossOptions, read_options
from aegis.arx.losses.separable import ATTRIBUTE_LOSSES, ChargedLoss, height
from aegis.errors import PolicyError, require_known
from aegis.privacy.payoff_models import expected_loss
from aegis.summary import Information

NAME = "publisher-payout"
_ATTACKERS = ("prosecutor", "journalist")


@dataclass(frozen=True)
class Stakes:
    """The amounts of money from which the publisher's payout is computed.

    Attributes
    ----------
    benefit
        What the publisher earns from a row that is released unmasked.
    loss
        What the publisher loses for each person whom an attacker identifies.
    gain, cost
        What an attacker gains by identifying a person, and what an attack on one person costs.
    attacker
        `prosecutor`: an attack succeeds with probability 1 / (rows of the person's class).
        `journalist`: the same with the class's rows in the population, if the policy names a
        population.
    """

    benefit: float = 1200.0
    loss: float = 300.0
    gain: float = 300.0
    cost: float = 4.0
    attacker: str = "prosecutor"

    @classmethod
    def parse(cls, text: str) -> Stakes:
        """Read `publisher-payout(benefit=1200, loss=300, gain=300, cost=4, attacker=journalist)`.

        You can leave out any of the options.

        Raises
        ------
        PolicyError
            An option or the attacker is unknown, or an amount is not a number of at least 0.
        """
        _, options = read_options(text, [field.name for field in fields(cls)])
        values: dict[str, Any] = {
            name: _attacker(value) if name == "attacker" else _amount(name, value)
            for name, value in options.items()
        }
        return cls(**values)


def _attacker(text: str) -> str:
    require_known(f"attacker of {NAME}", text, _ATTACKERS)
    return text


def _amount(name: str, text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 0 <= value < math.inf:
        raise PolicyError(
            f"The {name} of {NAME} is {text!r}.", hint="Give a number from 0, as in gain=300."
        )
    return value


class PublisherPayout(AreaLoss):
    """The loss that the search minimises: the benefit to the publisher if all rows were released
    unmasked, minus the payout of the release. The payout is the publisher's benefit from the
    release, less the losses by attacks.

    A suppressed row has no payout. For a set of configurations, the search uses a lower bound: the
    loss by the finest masks of the set, without attacks.
    """

    name = NAME
    _options: Stakes

    def _exact(self, box: Box) -> float:
        choice = self._problem.choice(box)
        groups = {n: choice[n].groups for n in self._frequency.quasi}
        ids = self._frequency.class_ids(groups)
        classes = self._plan.classes(choice)
        kept_cells = np.isin(ids, classes.kept_ids(self._plan.rule.check(classes).kept_classes))
        class_ids = np.arange(len(classes)) if classes.ids is None else classes.ids
        stakes = self._options
        people = classes.crowds if stakes.attacker == "journalist" else classes.sizes
        crowd = people[np.searchsorted(class_ids, ids)]
        lost = expected_loss(crowd, stakes.gain, stakes.cost, stakes.loss)
        attacked = float((self._frequency.counts * np.where(kept_cells, lost, 0.0)).sum())
        return self._loss(groups, self._cell_bits(box), kept_cells) + attacked

    def _loss(
        self,
        groups: Groups,  # noqa: ARG002 - without attacks, the classes do not matter
        cell_bits: Floats,
        kept_cells: Flags,
    ) -> float:
        unpaid = np.where(kept_cells, cell_bits / (self._most_bits or 1.0), 1.0)
        return float((self._frequency.counts * unpaid).sum() * self._options.benefit)


_WITH_OPTIONS = (*ATTRIBUTE_LOSSES, NAME, Classification.name)


def _charged_loss(text: str, problem: Problem, plan: PrivacyPlan) -> ChargedLoss:
    """Return the loss that `text` names, such as `loss(mean=geometric)`. Raise `PolicyError` if an
    option is not allowed, a candidate adds noise, or the summary has no counts of single values.
    """
    _refuse_noise(text, problem)
    _refuse_withheld(text, problem)
    return ChargedLoss(problem, plan, LossOptions.parse(text)[1], text.strip())


def _height(text: str, problem: Problem, plan: PrivacyPlan) -> Additive:  # noqa: ARG001 - of the seam
    """Return the objective that minimises the sum of the masks' levels in their hierarchies."""
    _refuse_noise(text, problem)
    _refuse_withheld(text, problem)
    values = [[-height(v.attribute, c) for c in v.candidates] for v in problem.variables]
    return Additive(text, -1, [values])


def _over_classes(
    loss: Callable[[Problem, PrivacyPlan, Any, str], ClassLoss], read: Callable[[str], Any]
) -> Callable[[str, Problem, PrivacyPlan], ClassLoss]:
    """Return a function that makes a loss over equivalence classes. `loss` is its Python class, and
    `read` reads its options from its name.
    """

    def build(text: str, problem: Problem, plan: PrivacyPlan) -> ClassLoss:
        _refuse_noise(text, problem)
        _refuse_earlier(text, problem)
        return loss(problem, plan, read(text), text.strip())

    return build


def _classification(
    problem: Problem, plan: PrivacyPlan, charges: LabelCharges, name: str
) -> Classification:
    """Return the classification metric; for a label that is a quasi-identifier, of masked labels."""
    frequency = problem.summary.frequency
    masked = frequency is not None and frequency.label in frequency.quasi
    metric = ShownClassification if masked else Classification
    return metric(problem, plan, charges, name)


def _read_factor(text: str) -> LossOptions:
    """Return the options in `text`; refuse any option but a factor."""
    base, options = LossOptions.parse(text)
    if options != LossOptions(factor=options.factor):
        raise _no_options(base, " but factor", text)
    return options


def _refuse_options(text: str) -> None:
    """Raise `PolicyError` if `text`, the name of a loss, is followed by options."""
    base, options = LossOptions.parse(text)
    if options != LossOptions() or base != text:
        raise _no_options(base, "", text)


def _no_options(base: str, only: str, text: str) -> PolicyError:
    return PolicyError(
        f"Information loss {base!r} takes no options{only} (given: {text!r}).",
        hint=f"Those that do: {', '.join(_WITH_OPTIONS)}.",
    )


def _refuse_earlier(loss: str, problem: Problem) -> None:
    frequency = problem.summary.frequency
    if frequency is not None and frequency.earlier is not None:
        raise PolicyError(
            f"Information loss {loss!r} counts the classes of one release, but here classes are counted "
            "together with earlier ones.",
            hint="Search by a measure, or leave out the earlier releases.",
        )


def _refuse_noise(text: str, problem: Problem) -> None:
    loss = text.partition("(")[0].strip()
    for variable in problem.variables:
        for index in variable.channels:
            raise PolicyError(
                f"Information loss {loss!r} is not defined for noise, such as mask "
                f"{str(variable.candidates[index].declared)!r} of {variable.name!r}.",
                hint="Search by a measure, or leave noise masks out of the candidates.",
            )


def _refuse_withheld(text: str, problem: Problem) -> None:
    loss = text.partition("(")[0].strip()
    carried = problem.summary.information
    if carried is not Information.RAW:
        raise PolicyError(
            f"Information loss {loss!r} needs counts of single values, and the summary has {carried} "
            "in addition to the masked counts.",
            hint="Search by a measure, or give the table or a summary with the raw joints.",
        )


NU_ENTROPY = ObjectiveType(
    "nu-entropy",
    "Non-uniform entropy",
    "sum over attributes of -sum_v n_v log2(n_v / n_g(v)), in bits. n_v is the number of rows "
    "with the value v, and n_g(v) the number of rows in its group. For suppressed rows, the loss "
    "adds the bits from their groups to one group of all rows. The options are those of `loss`",
    "Gionis and Tassa, k-Anonymization with minimal loss of information, TKDE 21, 2009; "
    "suppression as in ARX",
    _charged_loss,
    LossOptions.parse,
)

LOSS = ObjectiveType(
    "loss",
    "Normalised certainty penalty",
    "for each attribute, the mean over rows of the width of the shown group divided by the width "
    "of the attribute (1 for a suppressed row). The loss is the sum over the attributes. If the "
    "attribute has a hierarchy, the width is the number of original values minus one. Otherwise "
    "it is the range of numbers, or else the number of distinct values minus one. Options: "
    "loss(mean=sum|arithmetic|geometric|max, factor=0..1, weights=equal|policy, "
    "over=all|quasi-identifiers). The option `mean` says how to combine the attributes (geometric: prod(1 + "
    "x)^(1/m) - 1). The option `factor` says what counts: with 0 only masking, with 0.5 masking and "
    "suppression, with 1 only suppression. The option `over` says which attributes count",
    "Xu et al., Utility-based anonymization using local recoding, KDD 2006; Iyengar, KDD "
    "2002; options as in ARX",
    _charged_loss,
    LossOptions.parse,
)

PRECISION = ObjectiveType(
    "precision",
    "Precision loss",
    "sum over attributes of the level divided by the height of the hierarchy (1 for a suppressed "
    "row). If an attribute has no hierarchy, the rank of the mask among the candidates counts, "
    "from finest to coarsest. The options are those of `loss`",
    "Sweeney, Achieving k-anonymity privacy protection, IJUFKS 10, 2002",
    _charged_loss,
    LossOptions.parse,
)

HEIGHT = ObjectiveType(
    "height",
    "Height",
    "sum over attributes of the level in the hierarchy. If an attribute has no hierarchy, the "
    "rank of the mask among the candidates counts",
    "Samarati, Protecting respondents' identities in microdata release, TKDE 13, 2001",
    _height,
    _refuse_options,
)

LOG_WIDTH = ObjectiveType(
    "log-width",
    "Entropy-based information loss",
    "mean over rows of the sum over attributes of log2(original values in the shown group) / "
    "log2(all original values). For a suppressed row, each attribute counts 1. The options are "
    "those of `loss`",
    "Wan et al., A game theoretic framework for analyzing re-identification risk, PLoS "
    "ONE 10, 2015",
    _charged_loss,
    LossOptions.parse,
)

DISCERNIBILITY = ObjectiveType(
    "discernibility",
    "Discernibility",
    "sum of squared class sizes, plus the number of all rows for each suppressed row. Option: "
    "discernibility(factor=0..1). With the factor 0, suppressed classes count like kept classes. "
    "With 0.5, squared class sizes and suppressed rows both count in full. With 1, only suppressed rows count",
    "Bayardo and Agrawal, Data privacy through optimal k-anonymization, ICDE 2005, eq. 1",
    _over_classes(Discernibility, _read_factor),
    _read_factor,
)

AVERAGE_CLASS_SIZE = ObjectiveType(
    "average-class-size",
    "Average class size",
    "number of rows divided by number of classes. All suppressed rows count as one class. Option: "
    "average-class-size(factor=0..1), with a factor above 0. Then each kept class counts as "
    "min(1, 2 factor) classes, and the class of suppressed rows as min(1, 2 (1 - factor)) classes",
    "LeFevre, DeWitt, Ramakrishnan, Mondrian, ICDE 2006, section 5; factor as in ARX",
    _over_classes(AverageClassSize, _read_factor),
    _read_factor,
)

AMBIGUITY = ObjectiveType(
    "ambiguity",
    "Ambiguity",
    "for each row, the number of combinations of original values that the row may represent. This "
    "is the product over attributes of the number of original values in the shown group (all "
    "values for a suppressed row). The loss is the sum over the rows",
    "Nergiz, Clifton, Thoughts on k-anonymization, DKE 63, 2007",
    _over_classes(Ambiguity, _refuse_options),
    _refuse_options,
)

KL_DIVERGENCE = ObjectiveType(
    "kl-divergence",
    "Kullback-Leibler divergence",
    "sum over combinations x of original values of p(x) log2(p(x) / q(x)), in bits. p(x) is the "
    "share of the rows with x. q(x) spreads the share of each class evenly over the combinations "
    "that the class may represent, and the share of suppressed rows over all combinations",
    "Kifer, Gehrke, Injecting utility into anonymized datasets, SIGMOD 2006",
    _over_classes(Divergence, _refuse_options),
    _refuse_options,
)

PUBLISHER_PAYOUT = ObjectiveType(
    NAME,
    "Lost payout of a publisher",
    "sum over rows. Each row adds the benefit times the share of information that masks hide in "
    "the quasi-identifiers (as in the loss log-width). If an attack on its class of n rows pays (gain / n > "
    "cost), the row also adds loss / n. A suppressed row adds the whole benefit. Options: "
    "publisher-payout(benefit=1200, loss=300, gain=300, cost=4, attacker=prosecutor|journalist). "
    "For a journalist, n is the size of the class in the population",
    "Wan et al., A game theoretic framework for analyzing re-identification risk, PLoS "
    "ONE 10, 2015; defaults as in ARX",
    _over_classes(PublisherPayout, Stakes.parse),
    Stakes.parse,
)

CLASSIFICATION = ObjectiveType(
    "classification",
    "Classification metric",
    "share of rows that are suppressed, or whose label is not the most frequent label in their "
    "class. With the option classification(charges=arx, factor=0..1), rows count as in ARX. A "
    "suppressed row counts the factor. Each row of a class with several most frequent labels "
    "counts min(1, 2 factor). Any other row without the most frequent label of its class counts "
    "min(1, 2 (1 - factor)). If the label is a quasi-identifier, the metric uses the shown label, "
    "and classes of the other quasi-identifiers. Each count then moves towards 1 by the share of "
    "label values that the mask hides",
    "Iyengar, Transforming data to satisfy privacy constraints, KDD 2002, section 4; options "
    "as in ARX",
    _over_classes(_classification, LabelCharges.parse),
    LabelCharges.parse,
    of_label=True,
)

CLASS_ENTROPY = ObjectiveType(
    "class-entropy",
    "Entropy of the label within classes",
    "H(label | class), the entropy of the label within its class, in bits per row. For a "
    "suppressed row, the entropy of the label in the whole table counts. If you subtract the loss "
    "from the label's entropy, you get the information that the classes have about the label",
    "Cover and Thomas, Elements of information theory, 2006, section 2.2",
    _over_classes(ClassEntropy, _refuse_options),
    _refuse_options,
    of_label=True,
)
