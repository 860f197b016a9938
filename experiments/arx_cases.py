"""Every case of ARX's test sources: its rule and loss as ours, its optimum beside ours.

Reads the test classes of a checkout of ARX (github.com/arx-deidentifier/arx) and the tables that
they name, as far as those are at hand; neither is part of this project. A case is

- `not expressible`, with the first thing that is missing;
- `no data`, where the table is not at hand;
- `agrees`: the same figure at the optimum (or at every transformation that it names);
- `better`: our optimum is below theirs, and theirs has their figure by our loss and is admissible;
- `theirs fails the rule`: the transformation that ARX expects is not admissible, counted by our rule;
- `differs`: anything else.

    python experiments/arx_cases.py --tests ARX/src/test/org/deidentifier/arx/test --data DIR
        [--only TestAnonymizationKMap] [--seconds 60]

Goes on where it was stopped: what is in results/arx_cases.json is not run again. arx_tables.py makes
the tables of the docs from it.
"""

from __future__ import annotations

import argparse
import csv
import json
import math
import time
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from aegis.advisor.plan import plan_of
from aegis.advisor.search import Searcher
from aegis.advisor.search.problem import Box
from aegis.errors import AegisError
from aegis.policy import Policy, load_policy
from aegis.privacy.dp import sampled_privacy
from aegis.privacy.scheme_search import SCHEME_SCORES
from aegis.records.safe_pub import scheme_cells
from aegis.sources import open_table
from aegis.summary import Summary, summarize
from arx_java import SEED, Call, Case, JavaRandom, Name, New, read_cases
from arx_models import InexpressibleError, Loss, demands, loss_of
from arx_schemes import SCORES, DrawnBy, divisor, replay
from common import RESULTS

NAME = "arx_cases"
PLACES = 9
"""Relative difference, as a power of ten, up to which two figures agree: ARX rounds its sums."""
DRAWN = ("drawn-", "sampled-")
"""Beginnings of the names of tables that ARX's tests draw from a population by Java's generator."""
DEPENDENT = "createDataDependentConfiguration"
"""The function of a test class that sets up a search with differential privacy."""
HEURISTIC = ("Heuristic", "HeuristicTopDown", "Genetic")
"""Classes whose expectations are what a heuristic reaches, not optima."""


@dataclass(frozen=True)
class Asked:
    """A case in our words.

    Attributes
    ----------
    table, population
        Names of the tables; the population where the case releases a subset of it.
    sensitive
        The attribute that is no quasi-identifier; None where all are.
    rule
        The rule of a policy.
    loss
        The objective, and what its figure is multiplied by to be ARX's.
    expected
        Figure at the optimum; None where nothing is admissible.
    nodes
        Figures by transformation, for cases that name several.
    levels
        The expected transformation; None where nothing is expected to be admissible.
    drawn
        How the transformation is drawn with differential privacy; None where it is searched for.
    """

    table: str
    population: str | None
    sensitive: str | None
    rule: dict[str, Any]
    loss: Loss
    expected: float | None = None
    levels: tuple[int, ...] | None = None
    drawn: DrawnBy | None = None
    nodes: dict[tuple[int, ...], float] = field(default_factory=dict)


def asked_by(case: Case) -> Asked:
    """Return what a case asks for; raise `InexpressibleError` where we have no words for it."""
    if case.source in ("TestUtilityEstimation", "TestUtilityMetrics2"):
        raise InexpressibleError("a case that compares no figure")
    configuration, *rest = case.arguments
    if isinstance(configuration, Call) and configuration.name == DEPENDENT:
        return _drawn(configuration, rest)
    limit, metric, models = _configuration(configuration)
    texts = [a for a in rest if isinstance(a, str)]
    table = next(Path(t).name for t in texts if t.startswith("./data/"))
    names = [t for t in texts if not t.startswith(("./data/", "["))]
    _refuse(case, rest)
    sensitive = None
    if names and names[0] and not case.utility and not _number(names[0]):
        sensitive = names[0]
    if case.utility:
        sensitive = names[0]
    rule, subset = demands(models)
    if case.source == "TestAnonymizationTCloseness" and "t_closeness" not in rule:
        # The class adds it where a case has none.
        rule["t_closeness"] = {"attribute": sensitive, "t": 0.2, "distance": "hierarchical"}
        rule["t_closeness"]["reference"] = "input"
    loss = loss_of(metric, models)
    rule["suppression"] = limit
    arrays = [a for a in rest if isinstance(a, New) and a.name == "int"]
    if case.utility:
        pairs = [p for p in rest[2:] if isinstance(p, str)]
        nodes = {
            tuple(json.loads(pairs[i])): float(pairs[i + 1])
            for i in range(0, len(pairs), 2)
            if not pairs[i + 1].startswith("[")
        }
        if not nodes:
            raise InexpressibleError("losses compared attribute by attribute (rank)")
        return Asked(subset or table, subset and table, sensitive, rule, loss, nodes=nodes)
    figures = [a for a in rest if isinstance(a, int | float) and not isinstance(a, bool)]
    figures += [float(t) for t in texts if _number(t)]
    if not arrays and None not in rest:
        raise InexpressibleError("local recoding")
    levels = tuple(arrays[0].arguments) if arrays else None
    expected = float(figures[0]) if figures else None
    if (subset or "").startswith("sampled-") and levels is not None and expected is not None:
        # One transformation, which does not depend on the data; all rows may be left out.
        given = {levels: expected}
        return Asked(subset or table, subset and table, sensitive, rule, loss, nodes=given)
    return Asked(subset or table, subset and table, sensitive, rule, loss, expected, levels)


def _drawn(configuration: Call, rest: list[Any]) -> Asked:
    """Return what a case asks for whose transformation is drawn with differential privacy."""
    metric, epsilon, search, delta, steps = configuration.arguments
    name = metric.name.removeprefix("create").removesuffix("Metric")
    targets = next((a.arguments for a in rest if isinstance(a, New) and a.name == "String"), ())
    sample = sampled_privacy(epsilon - search, delta)
    table = next(Path(t).name for t in rest if isinstance(t, str) and t.startswith("./data/"))
    figure = next(float(a) for a in rest if not isinstance(a, bool) and _number(str(a)))
    levels = next(a for a in rest if isinstance(a, New) and a.name == "int").arguments
    drawn = DrawnBy(SCORES[name], sample, search, steps, targets)
    rule = {"k": sample.k + 1, "suppression": 1.0}
    of = f" of {' and '.join(targets)}" if targets else ""
    words = f"{SCORES[name]}{of}, search={search:g}, steps={steps}"
    name_of_sample = f"sampled-{sample.rate!r}.csv"
    loss = Loss(f"safe-pub(score={words})")
    return Asked(name_of_sample, table, None, rule, loss, figure, tuple(levels), drawn=drawn)


def _refuse(case: Case, rest: list[Any]) -> None:
    """Raise `InexpressibleError` for what a case has beside rule, loss and figures."""
    if case.weighted:
        raise InexpressibleError("weights set by a function of the test")
    if any(isinstance(a, Call) and a.name == "getHierarchyBuilders" for a in rest):
        raise InexpressibleError("hierarchies built by functions")
    if any(isinstance(a, New) and a.name == "String" for a in rest):
        raise InexpressibleError("a classification target")


def _number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _configuration(value: Any) -> tuple[float, Any, list[Any]]:
    """Return the suppression limit, the quality model and the privacy models of a configuration."""
    models = []
    while isinstance(value, Call) and value.name != "create":
        if value.name == "addPrivacyModel":
            models.append(value.arguments[0])
        elif value.name == "setCostBenefitConfiguration":
            models.append(value)
        else:
            raise InexpressibleError(f"configuration by {value.name}")
        value = value.on
    if not isinstance(value, Call):
        raise InexpressibleError("a configuration from elsewhere")
    if value.on is None:
        raise InexpressibleError(f"differential privacy that depends on a search ({value.name})")
    if not isinstance(value.on, Name) or value.on.text != "ARXConfiguration":
        raise InexpressibleError("a configuration from elsewhere")
    limit, *metric = value.arguments
    return float(limit), metric[0] if metric else None, models[::-1]


class Bench:
    """Runs cases on the tables of a folder, and writes tables that are drawn from them to another."""

    def __init__(self, folder: Path, seconds: float, drawn: Path) -> None:
        self._folder = folder
        self._seconds = seconds
        self._drawn = drawn

    def has(self, asked: Asked) -> bool:
        """Return whether the tables of a case are at hand."""
        drawn = asked.table.startswith(DRAWN)
        names = [*([] if drawn else [asked.table]), *filter(None, [asked.population])]
        return all((self._folder / name).exists() for name in names)

    def _table(self, asked: Asked) -> Path:
        """Return the file of the table that is released, drawn from its population where it is."""
        kind, _, number = asked.table.removesuffix(".csv").partition("-")
        if not asked.table.startswith(DRAWN) or asked.population is None:
            return self._folder / asked.table
        path = self._drawn / f"{asked.population}-{asked.table}"
        if not path.exists():
            header, *rows = (self._folder / asked.population).read_text("utf-8").splitlines()
            random = JavaRandom(SEED)
            if kind == "drawn":
                chosen = {random.below(int(number)) for _ in range(int(number))}
            else:
                chosen = {i for i in range(len(rows)) if random.uniform() < float(number)}
            kept = [row for i, row in enumerate(rows) if i in chosen]
            path.write_text("\n".join([header, *kept, ""]), "utf-8")
        return path

    def run(self, asked: Asked) -> dict[str, Any]:
        """Return what the search, or the loss at each transformation, gives."""
        policy, order = self._policy(asked)
        if asked.drawn is not None:
            return self._replayed(asked, asked.drawn, policy)
        summary = _summary(str(self._table(asked)), _Key(asked, policy))
        plan = plan_of(summary, policy)
        began = time.process_time()
        searcher = Searcher(summary, plan, asked.loss.objective, "adjusted-pillai")
        scale = asked.loss.scale(summary.rows)
        if asked.nodes:
            return self._nodes(asked, searcher, order, scale, began)
        found, figures = searcher.run(policy.privacy, top=1, time_limit=self._seconds)
        ours = None if figures.best is None else scale * figures.best
        result: dict[str, Any] = {
            "expected": asked.expected if asked.levels is not None else None,
            "expected_levels": asked.levels,
            "ours": ours,
            "levels": _levels(searcher, found.best[0][1], order) if found.best else None,
            "proven": figures.optimal,
            "checked": figures.work.checked,
            "combinations": figures.work.combinations,
            "seconds": time.process_time() - began,
        }
        if asked.levels is not None:
            box = _box(searcher, asked.levels, order)
            verdict = plan.check(searcher.problem.choice(box))
            result["theirs_by_our_loss"] = -scale * searcher.objective.bound(box)
            result["theirs_admissible"] = verdict.admissible
            result["theirs_suppressed"] = verdict.suppressed_rows
            result["suppressible"] = verdict.allowed_rows
        return result | {"verdict": _verdict(result)}

    def _replayed(self, asked: Asked, drawn: DrawnBy, policy: Policy) -> dict[str, Any]:
        """Return what ARX's draws give with our scores."""
        began = time.process_time()
        source = open_table(str(self._table(asked)))
        rows = open_table(str(self._folder / (asked.population or ""))).rows
        quasi = policy.quasi_identifiers
        table = source.collect(source.table.select([a.name for a in quasi]))
        score, k = SCHEME_SCORES[drawn.score], drawn.sample.k + 1
        chains = [attribute.masks for attribute in quasi]
        names = [attribute.name for attribute in quasi]
        targets = tuple(names.index(target) for target in drawn.targets)
        beyond = rows - table.num_rows
        cells = scheme_cells(table, quasi, chains, score, k, beyond, targets)
        scheme, ours = replay(
            cells.heights,
            lambda s: score.figure_of(cells, s) / divisor(drawn.score, k),
            steps=drawn.steps,
            epsilon=drawn.search,
        )
        theirs = score.figure_of(cells, asked.levels or ()) / divisor(drawn.score, k)
        return {
            "expected": asked.expected,
            "expected_levels": asked.levels,
            "ours": ours,
            "levels": scheme,
            "theirs_by_our_loss": theirs,
            "seconds": time.process_time() - began,
            "verdict": "agrees" if alike(asked.expected, ours) else "differs",
        }

    def _nodes(
        self,
        asked: Asked,
        searcher: Searcher,
        order: list[str],
        scale: float,
        began: float,
    ) -> dict[str, Any]:
        # ARX writes out what a transformation would lose whether or not it is admissible.
        generous = load_rule(asked.rule | {"suppression": 1})
        objective = searcher.objective_under(generous)
        generous_plan = searcher.plan.under(generous)
        nodes = []
        for levels, expected in asked.nodes.items():
            box = _box(searcher, levels, order)
            if not generous_plan.check(searcher.problem.choice(box)).smallest_class:
                continue  # nothing can be released, and so nothing be lost
            ours = -scale * objective.bound(box)
            nodes.append({"levels": levels, "expected": expected, "ours": ours})
        agree = [alike(n["expected"], n["ours"]) for n in nodes]
        return {
            "nodes": len(nodes),
            "nothing_released": len(asked.nodes) - len(nodes),
            "agreeing": sum(agree),
            "differing": [n for n, same in zip(nodes, agree, strict=True) if not same],
            "seconds": time.process_time() - began,
            "verdict": "agrees" if all(agree) else "differs",
        }

    def _policy(self, asked: Asked) -> tuple[Policy, list[str]]:
        """Return the policy, and the quasi-identifiers in the order of the table's columns."""
        table = asked.population or asked.table
        with (self._folder / table).open(encoding="utf-8", newline="") as file:
            columns = next(csv.reader(file, delimiter=";"))
        stem = table.removesuffix(".csv")
        files = {c: self._folder / f"{stem}_hierarchy_{c}.csv" for c in columns}
        order = [c for c in columns if files[c].exists() and c != asked.sensitive]
        attributes: dict[str, Any] = {
            c: {"role": "quasi-identifier", "hierarchy": str(files[c])} for c in order
        }
        if asked.sensitive is not None and asked.sensitive in str(asked.rule):
            protected = {"role": "sensitive", "masks": ["identity"]}
            if files[asked.sensitive].exists():
                protected["hierarchy"] = str(files[asked.sensitive])
            attributes[asked.sensitive] = protected
        written = {
            "version": 1,
            "label": min(order, key=lambda c: files[c].stat().st_size),
            "privacy": asked.rule,
            "attributes": attributes,
        }
        if asked.population is not None:
            written["population"] = str(self._folder / asked.population)
        return load_policy(written), order


@dataclass(frozen=True, eq=False)
class _Key:
    """A policy, alike for a summary where roles, masks and protected attributes are."""

    asked: Asked
    policy: Policy

    def _key(self) -> tuple[Any, ...]:
        needed = self.policy.privacy.sensitive
        return (self.asked.table, self.asked.population, self.asked.sensitive, needed)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Key) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())


@lru_cache(maxsize=4)
def _summary(path: str, key: _Key) -> Summary:
    return summarize(open_table(path), key.policy)


def load_rule(rule: dict[str, Any]) -> Any:
    """Return a rule from what a policy would hold."""
    from aegis.privacy import PrivacyRule

    return PrivacyRule.parse(rule)


def _box(searcher: Searcher, levels: tuple[int, ...], order: list[str]) -> Box:
    """Return the configuration of a transformation; other attributes keep their only candidate."""
    wanted = dict(zip(order, levels, strict=True))
    box = []
    for variable in searcher.problem.variables:
        level = wanted.get(variable.name, 0)
        found = [i for i, c in enumerate(variable.candidates) if _level(c.declared) == level]
        # A level that groups as a finer one does was left out.
        box.append(1 << (found[0] if found else len(variable.candidates) - 1))
    return tuple(box)


def _levels(searcher: Searcher, box: Box, order: list[str]) -> list[int]:
    choice = searcher.problem.choice(box)
    return [_level(choice[name].declared) for name in order]


def _level(mask: Any) -> int:
    return int(getattr(mask, "level", 0))


def alike(one: float | None, other: float | None) -> bool:
    """Return whether two figures agree."""
    if one is None or other is None:
        return one is other
    return math.isclose(one, other, rel_tol=10**-PLACES, abs_tol=1e-9)


def _verdict(result: dict[str, Any]) -> str:
    expected, ours = result["expected"], result["ours"]
    if alike(expected, ours):
        return "agrees"
    if not result["proven"]:
        return "not proven in time"
    theirs = result.get("theirs_by_our_loss")
    if expected is not None and not result["theirs_admissible"]:
        return "theirs fails the rule"
    known = expected is not None and alike(theirs, expected)
    return "better" if known and ours is not None and ours < expected else "differs"


def run_all(arguments: argparse.Namespace) -> None:
    """Run what is missing, case by case, and write the results after each."""
    with TemporaryDirectory() as drawn:
        _run_all(arguments, Bench(arguments.data, arguments.seconds, Path(drawn)))


def _run_all(arguments: argparse.Namespace, bench: Bench) -> None:
    path = arguments.results / f"{NAME}.json"
    results: dict[str, Any] = json.loads(path.read_text()) if path.exists() else {}
    for case in read_cases(arguments.tests):
        key = f"{case.source}[{case.number}]"
        if arguments.only and not case.source.startswith(tuple(arguments.only.split(","))):
            continue
        if time.process_time() > arguments.until:
            return
        done = results.get(key, {}).get("verdict")
        if done is not None and done not in ("not expressible", "no data", *arguments.again):
            continue
        before = results.get(key)
        results[key] = {"kind": "losses" if case.utility else "optimum"} | outcome(bench, case)
        if results[key] != before:
            path.write_text(json.dumps(results, indent=1) + "\n")
            print(key, {k: v for k, v in results[key].items() if k != "differing"}, flush=True)


def outcome(bench: Bench, case: Case) -> dict[str, Any]:
    """Return what one case gives."""
    try:
        asked = asked_by(case)
    except InexpressibleError as missing:
        return {"verdict": "not expressible", "missing": str(missing)}
    words = {"table": asked.table, "rule": asked.rule, "loss": asked.loss.objective}
    if asked.population:
        words["population"] = asked.population
    if not bench.has(asked):
        return words | {"verdict": "no data"}
    try:
        return words | bench.run(asked)
    except AegisError as error:
        if asked.expected == 0 and asked.levels is None:
            return words | {"verdict": "agrees", "refused": str(error)}
        return words | {"verdict": "refused", "missing": str(error)}


def main(argv: list[str] | None = None) -> None:
    """Run the cases."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tests", type=Path)
    parser.add_argument("--data", type=Path)
    parser.add_argument("--only", default="")
    parser.add_argument("--again", nargs="*", default=[])
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--until", type=float, default=math.inf, help="processor time, in s")
    parser.add_argument("--results", type=Path, default=RESULTS)
    arguments = parser.parse_args(argv)
    run_all(arguments)


if __name__ == "__main__":
    main()
