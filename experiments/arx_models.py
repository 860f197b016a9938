"""ARX's privacy and quality models in the words of our policies."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from aegis.arx.losses.catalog import Stakes
from aegis.privacy.dp import SampledPrivacy, sampled_privacy
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


def loss_of(metric: Any, models: list[Any]) -> Loss:
    """Return the objective for a quality model; by default ARX takes `loss`."""
    if metric is None:
        return Loss(f"loss(mean=geometric, {_OVER})")
    if not isinstance(metric, Call):
        raise InexpressibleError("a quality model from elsewhere")
    name = metric.name.removeprefix("create").removesuffix("Metric")
    given = list(metric.arguments)
    if name.startswith("Precomputed"):
        name, given = name.removeprefix("Precomputed"), given[1:]
    if name == "PublisherPayout":
        return _payout(given, _stakes(models))
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
        "AECS": Loss("average-class-size" + ("" if factor is None else f"(factor={factor:g})")),
        "Precision": Loss(f"precision(mean=arithmetic, {_OVER}{unsuppressed})"),
        "Height": Loss("height"),
        "EntropyBasedInformationLoss": Loss(f"log-width({_OVER})", per_row=True),
    }
    if name not in losses:
        raise InexpressibleError(f"quality model {name}")
    return losses[name]


def _payout(given: list[Any], stakes: Stakes) -> Loss:
    """Return a publisher's payout: what is lost of the largest possible one."""
    if len(given) > 1:
        raise InexpressibleError("a publisher's payout with weighted suppression")
    attacker = "journalist" if given and given[0] is True else "prosecutor"
    amounts = f"benefit={stakes.benefit:g}, loss={stakes.loss:g}, gain={stakes.gain:g}"
    return Loss(f"publisher-payout({amounts}, cost={stakes.cost:g}, attacker={attacker})")


def demands(models: list[Any]) -> tuple[dict[str, Any], str | None]:
    """Return the privacy rule, and the table of the subset that is released where it is one."""
    rule: dict[str, Any] = {}
    subset = None
    stakes = _stakes(models)
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
        key, value = _demand(model, stakes)
        subset = _subset(model) or subset
        if key is not None:
            rule.setdefault(key, []).append(value)
    if not rule:
        rule["k"] = [1]
    plain = {k: v[0] if len(v) == 1 else v for k, v in rule.items()}
    return plain, subset


def _subset(model: New) -> str | None:
    """Return the table of the rows that a model selects; None where it selects none."""
    if model.name == "EDDifferentialPrivacy":
        return f"sampled-{_sampled(model).rate!r}.csv"
    for argument in model.arguments:
        if isinstance(argument, Call) and argument.on == Name("DataSubset"):
            return Path(argument.arguments[1].arguments[0]).name
        if isinstance(argument, Call) and argument.name == "getSubset":
            return f"drawn-{argument.arguments[0]}.csv"
    return None


def _demand(model: New, stakes: Stakes) -> tuple[str | None, Any]:
    given = model.arguments
    name = model.name
    if name in ("KAnonymity", "KMap", "EDDifferentialPrivacy"):
        return _least_rows(model)
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
    if name.startswith("Profitability"):
        return _profit(name, stakes)
    raise InexpressibleError(f"privacy model {name}")


def _least_rows(model: New) -> tuple[str, int]:
    if model.name == "EDDifferentialPrivacy":
        # ARX counts its k one step further than the theorem asks for.
        return "k", _sampled(model).k + 1
    if len(model.arguments) > 2:
        raise InexpressibleError("k-map of an estimated population")
    return {"KAnonymity": "k", "KMap": "k_map"}[model.name], model.arguments[0]


def _profit(name: str, stakes: Stakes) -> tuple[str, dict[str, Any]]:
    attacker = "prosecutor" if "Prosecutor" in name else "journalist"
    asked = {"attacker": attacker, "gain": stakes.gain, "cost": stakes.cost}
    if name.endswith("NoAttack"):
        return "no_attack", asked
    return "profitability", asked | {"benefit": stakes.benefit, "loss": stakes.loss}


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


def _sampled(model: New) -> SampledPrivacy:
    """Return the rate and the k of differential privacy by sampling and generalisation."""
    epsilon, delta = model.arguments[:2]
    return sampled_privacy(
        _LOGARITHMS[epsilon.text] if isinstance(epsilon, Name) else epsilon, delta
    )


_LOGARITHMS = {"LN2": math.log(2), "LN3": math.log(3)}


def _stakes(models: list[Any]) -> Stakes:
    """Return what a publisher and an adversary win and lose: ARX's defaults unless a test says it."""
    costs = next((m for m in models if isinstance(m, Call)), None)
    named = costs is not None and costs.name == "setCostBenefitConfiguration"
    return CONFIGURATIONS[costs.arguments[0].name] if costs is not None and named else Stakes()


USA = 317_238_626
"""People of the population that ARX takes where a test says USA."""
CONFIGURATIONS = {
    "getConfig1": Stakes(benefit=1200, loss=300, gain=1200, cost=2),
    "getConfig2": Stakes(benefit=1200, loss=3000, gain=120, cost=20),
    "getConfig3": Stakes(benefit=120, loss=3000, gain=120, cost=20),
    "getConfig4": Stakes(benefit=120, loss=3000, gain=1000, cost=20),
}
"""Costs and benefits by the function of the test that sets them."""
