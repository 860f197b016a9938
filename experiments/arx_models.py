"""ARX's privacy and quality models in the words of our policies."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from arx_java import Call, Name, New


class InexpressibleError(Exception):
    """A case asks for what we have no words for: its text says what."""


@dataclass(frozen=True)
class Loss:
    """An objective of ours; `per_row` where ours is a mean over rows and ARX's a sum."""

    objective: str
    per_row: bool = False

    def scale(self, rows: int) -> float:
        """Return what our figure is multiplied by to be ARX's."""
        return float(rows) if self.per_row else 1.0


_OVER = "over=quasi-identifiers"


def loss_of(metric: Any) -> Loss:
    """Return the objective for a quality model; by default ARX takes `loss`."""
    if metric is None:
        return Loss(f"loss(mean=geometric, {_OVER})")
    if not isinstance(metric, Call):
        raise InexpressibleError("a quality model from elsewhere")
    name = metric.name.removeprefix("create").removesuffix("Metric")
    given = list(metric.arguments)
    if name.startswith("Precomputed"):
        name, given = name.removeprefix("Precomputed"), given[1:]
    if any(isinstance(a, Name) and a.text.endswith("RANK") for a in given):
        raise InexpressibleError("losses compared attribute by attribute (rank)")
    factor = next((a for a in given if isinstance(a, float)), None)
    monotone = True in [a for a in given if isinstance(a, bool)]
    weighed = "" if factor is None else f", factor={factor:g}"
    unsuppressed = ", factor=0" if monotone else ""
    losses = {
        "Loss": Loss(f"loss(mean=geometric, {_OVER}{weighed})"),
        "Entropy": Loss(f"nu-entropy({_OVER}{unsuppressed})"),
        "Discernability": Loss("discernibility" + ("(factor=0)" if monotone else "")),
        "AECS": Loss("average-class-size"),
        "Precision": Loss(f"precision(mean=arithmetic, {_OVER}{unsuppressed})"),
        "Height": Loss("height"),
        "EntropyBasedInformationLoss": Loss(f"log-width({_OVER})", per_row=True),
    }
    if name not in losses:
        raise InexpressibleError(f"quality model {name}")
    return losses[name]


def demands(models: list[Any]) -> tuple[dict[str, Any], str | None]:
    """Return the privacy rule, and the table of the subset that is released where it is one."""
    rule: dict[str, Any] = {}
    subset = None
    costs = next((m for m in models if isinstance(m, Call)), None)
    for model in models:
        if isinstance(model, Call):
            if model.name == "getPopulationUniqueness":
                kind = model.arguments[1].text.rpartition(".")[2].lower()
                rule["population_uniqueness"] = [
                    {"estimator": kind, "threshold": model.arguments[0], "population": USA}
                ]
                continue
            if model.name != "setCostBenefitConfiguration":
                raise InexpressibleError(f"privacy model by {model.name}")
            continue
        key, value = _demand(model, costs)
        for argument in model.arguments:
            if isinstance(argument, Call) and argument.on == Name("DataSubset"):
                subset = Path(argument.arguments[1].arguments[0]).name
            elif isinstance(argument, Call) and argument.name == "getSubset":
                raise InexpressibleError("a subset drawn by Java's generator")
        if key is not None:
            rule.setdefault(key, []).append(value)
    if not rule:
        rule["k"] = [1]
    plain = {k: v[0] if len(v) == 1 else v for k, v in rule.items()}
    return plain, subset


def _demand(model: New, costs: Call | None) -> tuple[str | None, Any]:
    given = model.arguments
    name = model.name
    if name in ("KAnonymity", "KMap"):
        if len(given) > 2:
            raise InexpressibleError("k-map of an estimated population")
        return {"KAnonymity": "k", "KMap": "k_map"}[name], given[0]
    if name == "Inclusion":
        return None, None
    if name == "SampleUniqueness":
        return "sample_uniqueness", {"threshold": given[0]}
    if name == "AverageReidentificationRisk" and len(given) == 1:
        return "max_risk", {"kind": "marketer", "threshold": given[0]}
    if name == "DPresence":
        return "delta_presence", {
            "minimum": given[0],
            "maximum": given[1],
            "reference": "input",
        }
    if name.endswith("Diversity"):
        return "l_diversity", {"attribute": given[0]} | _diversity(name, given)
    if name.endswith(("TCloseness", "BLikeness")):
        return _compared(name, given)
    if name in ("ProfitabilityProsecutorNoAttack", "ProfitabilityJournalistNoAttack"):
        return ("k" if "Prosecutor" in name else "k_map"), _no_attack(costs)
    raise InexpressibleError(f"privacy model {name}")


def _diversity(name: str, given: tuple[Any, ...]) -> dict[str, Any]:
    if name == "DistinctLDiversity":
        return {"l": given[1], "kind": "distinct"}
    if name == "RecursiveCLDiversity":
        return {"c": given[1], "l": given[2], "kind": "recursive"}
    corrected = len(given) > 2 and given[2].text.endswith("GRASSBERGER")
    return {"l": given[1], "kind": "entropy-grassberger" if corrected else "entropy"}


def _compared(name: str, given: tuple[Any, ...]) -> tuple[str, dict[str, Any]]:
    """Return a demand that compares classes with the table: with all of it, as ARX does."""
    attribute, limit = given[:2]
    asked = {"attribute": attribute, "reference": "input"}
    if name.endswith("BLikeness"):
        return "beta_likeness", asked | {"beta": limit, "kind": name[: -len("BLikeness")].lower()}
    distance = name[: -len("DistanceTCloseness")].lower()
    return "t_closeness", asked | {"t": limit, "distance": distance}


def _no_attack(costs: Call | None) -> int:
    """Return the class size from which an attack does not pay: gain / size is at most its cost."""
    configuration = costs.arguments[0].name if costs is not None else "default"
    gain, cost = CONFIGURATIONS[configuration]
    if cost == 0:
        raise InexpressibleError("an attack without cost")
    return max(1, math.ceil(gain / cost - 1e-9))


USA = 317_238_626
"""People of the population that ARX takes where a test says USA."""
CONFIGURATIONS = {
    "default": (300.0, 4.0),
    "getConfig1": (1200.0, 2.0),
    "getConfig2": (120.0, 20.0),
    "getConfig3": (120.0, 20.0),
    "getConfig4": (1000.0, 20.0),
}
"""Gain and cost of an adversary by the function of the test that sets them."""
