"""The privacy models and quality models in ARX's notation, and their equivalents in a policy."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from aegis.errors import PolicyError
from aegis.privacy.dp import sampled_privacy

Groups = tuple[str, ...]
_NUMBER = r"([-+.\deE]+)"
_OF = r" for attribute '(.*)'"
_COMPARED = {"reference": "input"}
SEARCHED = 0.1
"""Share of epsilon that ARX's interface spends by default on the search for levels."""


@dataclass(frozen=True)
class QualityModel:
    """The equivalent of a quality model of ARX: an objective of a search, and a score of the method
    `safe-pub`.

    Attributes
    ----------
    objective
        The loss, in the form of the option `--objective`.
    score
        The score with which `safe-pub` draws masks; None if ARX has none.
    factored
        Whether the quality model has a factor in ARX; the project's files do not contain this
        factor.
    """

    objective: str
    score: str | None = None
    factored: bool = True


_ENTROPY = "nu-entropy(over=quasi-identifiers)"
_PRECISION = "precision(mean=arithmetic, over=quasi-identifiers)"
_QUALITY = {
    "loss": QualityModel("loss(mean=geometric, over=quasi-identifiers)", "loss", False),
    "non-monotonic non-uniform entropy": QualityModel(_ENTROPY, "nu-entropy"),
    "non-uniform entropy": QualityModel(_ENTROPY.replace(")", ", factor=0)"), None, False),
    "non-monotonic precision": QualityModel(_PRECISION, "precision"),
    "monotonic precision": QualityModel(_PRECISION.replace(")", ", factor=0)"), None, False),
    "non-monotonic discernability": QualityModel("discernibility", "discernibility"),
    "monotonic discernability": QualityModel("discernibility(factor=0)", None, False),
    "average equivalence class size": QualityModel("average-class-size", "classes"),
    "classification accuracy": QualityModel("classification(charges=arx)", "classification"),
    "height": QualityModel("height", None, False),
    "ambiguity": QualityModel("ambiguity", None, False),
    "kl-divergence": QualityModel("kl-divergence", None, False),
    "entropybasedinformationloss": QualityModel("log-width(over=quasi-identifiers)"),
}
"""What ARX's quality models are here, by their names in lower case without what is in brackets."""


def quality_model(metric: str) -> QualityModel | None:
    """Return the equivalent of a quality model of ARX; None if there is none. `metric` is the
    model's name in ARX.

    >>> quality_model("Monotonic discernability (DM*)").objective
    'discernibility(factor=0)'
    """
    return _QUALITY.get(metric.partition("(")[0].strip().lower())


def sampled(text: str) -> dict[str, Any] | None:
    """Return the options of `safe-pub` for ARX's differential privacy; None for other models.

    >>> sampled("(2.0,1.0E-6)-DP")
    {'epsilon': 2.0, 'delta': 1e-06, 'search': 0.2}

    Raises
    ------
    PolicyError
        Epsilon or delta is outside the supported range.
    """
    match = re.fullmatch(rf"\({_NUMBER},{_NUMBER}\)-DP", text)
    if match is None:
        return None
    epsilon, delta = map(float, match.groups())
    search = round(SEARCHED * epsilon, 12)
    sampled_privacy(epsilon - search, delta)
    return {"epsilon": epsilon, "delta": delta, "search": search}


_STAKES = rf"\[benefit={_NUMBER}, loss={_NUMBER}, gain={_NUMBER}, cost={_NUMBER}\]"


def _stakes(groups: Groups) -> dict[str, Any]:
    """Return attacker and amounts, given as text, as options of a privacy model."""
    amounts = map(float, groups[1:])
    return {"attacker": groups[0]} | dict(
        zip(("benefit", "loss", "gain", "cost"), amounts, strict=True)
    )


_DEMANDS: dict[str, Callable[[Groups], tuple[str, Any]]] = {
    r"(\d+)-anonymity": lambda g: ("k", int(g[0])),
    rf"distinct-{_NUMBER}-diversity{_OF}": lambda g: (
        "l_diversity",
        {"attribute": g[1], "l": round(float(g[0])), "kind": "distinct"},
    ),
    rf"shannon-entropy-{_NUMBER}-diversity{_OF}": lambda g: (
        "l_diversity",
        {"attribute": g[1], "l": float(g[0]), "kind": "entropy"},
    ),
    rf"grassberger-entropy-{_NUMBER}-diversity{_OF}": lambda g: (
        "l_diversity",
        {"attribute": g[1], "l": float(g[0]), "kind": "entropy-grassberger"},
    ),
    rf"recursive-\({_NUMBER},{_NUMBER}\)-diversity{_OF}": lambda g: (
        "l_diversity",
        {"attribute": g[2], "c": float(g[0]), "l": round(float(g[1])), "kind": "recursive"},
    ),
    rf"{_NUMBER}-closeness with (equal|hierarchical|ordered) (?:ground-)?distance{_OF}": lambda g: (
        "t_closeness",
        {"attribute": g[2], "t": float(g[0]), "distance": g[1]} | _COMPARED,
    ),
    rf"(basic|enhanced)-{_NUMBER}-likeness{_OF}": lambda g: (
        "beta_likeness",
        {"attribute": g[2], "beta": float(g[1]), "kind": g[0]} | _COMPARED,
    ),
    rf"{_NUMBER}-disclosure privacy{_OF}": lambda g: (
        "delta_disclosure",
        {"attribute": g[1], "delta": float(g[0]), "base": 2.0, "values": "present"} | _COMPARED,
    ),
    rf"\({_NUMBER}\)-avg-reidentification-risk": lambda g: (
        "max_risk",
        {"kind": "marketer", "threshold": float(g[0])},
    ),
    rf"\({_NUMBER},{_NUMBER}\)-presence": lambda g: (
        "delta_presence",
        {"minimum": float(g[0]), "maximum": float(g[1])} | _COMPARED,
    ),
    r"\((\d+)\)-map": lambda g: ("k_map", int(g[0])),
    rf"\({_NUMBER}\)-sample-uniqueness": lambda g: (
        "sample_uniqueness",
        {"threshold": float(g[0])},
    ),
    rf"profitability \((\w+)\){_STAKES}": lambda g: ("profitability", _stakes(g)),
    rf"no-attack-profitability \((\w+)\){_STAKES}": lambda g: (
        "no_attack",
        {key: value for key, value in _stakes(g).items() if key in ("attacker", "gain", "cost")},
    ),
}
"""What a policy requires, by how ARX writes a privacy model."""


def demand(text: str, people: int | None) -> tuple[str, Any]:
    """Return a privacy model of ARX as a key and a value of a policy's rule.

    Parameters
    ----------
    text
        The model in ARX's notation.
    people
        Number of people in the population; None if it is not known. Only models of population
        uniqueness need this number.

    Raises
    ------
    PolicyError
        The model has no equivalent, or needs the size of the population.

    Examples
    --------
    >>> demand("5-anonymity", None)
    ('k', 5)
    """
    for pattern, parse in _DEMANDS.items():
        match = re.fullmatch(pattern, text)
        if match is not None:
            return parse(match.groups())
    if re.fullmatch(r"(no-attack-)?profitability \(\w+\)", text):
        raise PolicyError(
            f"The project requires {text!r}, but states no amounts of gain and loss.",
            hint="ARX writes the amounts when it anonymises: anonymise in ARX, then save the project again.",
        )
    uniqueness = re.fullmatch(rf"\({_NUMBER}\)-population-uniqueness \((\w+)\)", text)
    if uniqueness is None:
        raise PolicyError(
            f"The project requires {text!r}, which a policy cannot express.",
            hint=f"Remove the model in ARX. A policy can express: {', '.join(_MODELS)}.",
        )
    if people is None:
        raise PolicyError(
            f"The project requires {text!r}, but does not state the size of the population.",
            hint="Give the number of people: --people N.",
        )
    kind = {"estimator": uniqueness[2], "threshold": float(uniqueness[1]), "population": people}
    return "population_uniqueness", kind


_MODELS = (
    "k-anonymity",
    "l-diversity",
    "t-closeness",
    "beta-likeness",
    "delta-disclosure",
    "differential privacy",
    "k-map",
    "delta-presence",
    "average risk",
    "sample uniqueness",
    "population uniqueness",
    "profitability",
    "no-attack profitability",
)
