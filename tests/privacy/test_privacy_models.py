"""The flags that a search relies on: proved by generated tables, refuted by counterexamples."""

from __future__ import annotations

import copy
import math
import pickle
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, reject, settings
from hypothesis import strategies as st
from privacy_brute import Rows, groups, rows, table_of
from privacy_definitions import DEFINITIONS, ELSEWHERE, FAILING, Class

from aegis.errors import InternalError, PolicyError
from aegis.privacy import (
    MODELS,
    ClassTable,
    Comparison,
    Criterion,
    ModelNeed,
    PrivacyModel,
    PrivacyRule,
)

merges = st.lists(st.integers(0, 5), min_size=6, max_size=6)
surplus = st.lists(st.integers(0, 6), min_size=6, max_size=6)

READ = {
    "values": ModelNeed.SENSITIVE,
    "people": ModelNeed.POPULATION,
    "everyone": ModelNeed.REFERENCE,
    "all_classes": ModelNeed.REFERENCE,
}
"""By field of `Class`: what a model needs if its definition reads the field."""


def coarser(
    given: Rows, extra: list[int], merge: list[int]
) -> tuple[ClassTable, ClassTable, list[int]]:
    """Return a table, the one with classes merged, and the merged class of each class."""
    classes = sorted({one for one, _ in given})
    people = {
        one: len(group) + extra[one] for one, group in zip(classes, groups(given), strict=True)
    }
    fine = table_of(given, [people[one] for one in classes])
    merged = sorted({merge[one] for one in classes})
    sums = [sum(people[one] for one in classes if merge[one] == new) for new in merged]
    coarse = table_of([(merge[one], value) for one, value in given], sums)
    return fine, coarse, [merged.index(merge[one]) for one in classes]


def criterion(model: PrivacyModel, limit: float | None = None, **more: float) -> Criterion:
    given: dict[str, object] = {}
    if ModelNeed.SENSITIVE in model.needs:
        given["attribute"] = "s"
    given |= {
        one.name: 2 if one.whole else 1
        for one in model.parameters
        if one.default is None and one.name != model.limit
    }
    return model.criterion(given | ({} if limit is None else {model.limit: limit}) | more)


def just_met(model: PrivacyModel, table: ClassTable) -> Criterion | None:
    """Return the tightest criterion of `model` that every class of `table` meets, if any."""
    parameter = next(one for one in model.parameters if one.name == model.limit)
    any_limit = criterion(model, max(parameter.low, 0.5) if not parameter.whole else 1)
    figures = any_limit.figures(table)
    limit = float(figures.min() if model.direction is Comparison.AT_LEAST else figures.max())
    if model.name == "max_risk.marketer":
        limit = float((figures * table.sizes).sum() / table.rows)
    if math.isinf(limit):
        return None
    if model.direction is Comparison.BELOW:
        limit = limit * (1 + 1e-6) + 1e-6
    return criterion(model, max(limit, 1e-6) if parameter.above else limit)


@pytest.mark.parametrize("model", list(MODELS), ids=lambda model: model.name)
def test_records_are_complete(model: PrivacyModel) -> None:
    assert model.title
    assert model.formula
    assert model.reference
    assert model.argument.endswith(".")
    assert model.description.endswith(".")
    assert model.limit in [one.name for one in model.parameters]
    model.shortfall.format(**{one.name: 1 for one in model.parameters})
    assert model.monotone or not model.monotone_with_suppression
    assert model.variant is None or model.name == f"{model.key}.{model.variant[1]}"


@pytest.mark.parametrize(
    "model", [one for one in MODELS if one.name not in ELSEWHERE], ids=lambda one: one.name
)
@given(given=rows, extra=surplus)
def test_figures_are_those_of_the_definition(
    model: PrivacyModel, given: Rows, extra: list[int]
) -> None:
    assert model.name in DEFINITIONS, (
        f"add the figure of {model.name!r} by its definition to DEFINITIONS in privacy_definitions.py"
    )
    values = groups(given)
    people = [len(own) + more for own, more in zip(values, extra, strict=False)]
    asked = criterion(model, 1)
    figures = asked.figures(table_of(given, people))
    wanted = [
        DEFINITIONS[model.name](Class(own, number, values), asked)
        for own, number in zip(values, people, strict=True)
    ]
    assert figures == pytest.approx(wanted, rel=1e-9, abs=1e-9)


@pytest.mark.parametrize(
    "model", [one for one in MODELS if one.fails is not None], ids=lambda one: one.name
)
@settings(max_examples=40)
@given(given=rows, extra=surplus, data=st.data())
def test_classes_that_fail_are_those_of_the_definition(
    model: PrivacyModel, given: Rows, extra: list[int], data: st.DataObject
) -> None:
    """A model with `fails` may promise more than its figure says, and must check all of it."""
    assert model.name in FAILING, (
        f"add which classes fail {model.name!r} by its definition to FAILING in privacy_definitions.py"
    )
    values = groups(given)
    people = [len(own) + more for own, more in zip(values, extra, strict=False)]
    strengths = {
        one.name: data.draw(st.integers(1, 4) if one.whole else st.sampled_from([0.2, 0.5, 0.8]))
        for one in model.parameters
    }
    try:
        asked = criterion(model, **strengths)
    except PolicyError:  # a least share above the greatest
        reject()
    classes = [Class(own, number, values) for own, number in zip(values, people, strict=True)]
    failing = asked.failing(table_of(given, people))
    assert failing.tolist() == FAILING[model.name](classes, asked)


class Watched:
    """A class of three rows that remembers which of its fields a definition reads."""

    def __init__(self) -> None:
        self.read: set[str] = set()
        self.given = Class([0, 1, 1], 5, [[0, 1, 1], [0]])

    def __getattr__(self, name: str) -> object:
        self.read.add(name)
        return getattr(self.given, name)


@pytest.mark.parametrize("name", sorted(DEFINITIONS))
def test_a_model_needs_what_its_definition_reads(name: str) -> None:
    """Without its needs, a search would check a model class by class, or on what a table lacks."""
    model, watched = MODELS.get(name), Watched()
    DEFINITIONS[name](watched, criterion(model, 1))
    read = {READ[field] for field in watched.read if field in READ}
    needs = {
        ModelNeed.POPULATION if need is ModelNeed.CROWD else need for need in model.needs
    } & set(READ.values())
    assert not (read - needs), f"add {read - needs} to `needs` of {name!r}"
    assert needs - read <= {ModelNeed.REFERENCE}, f"nothing of {name!r} reads {needs - read}"


@pytest.mark.parametrize("name", sorted(ELSEWHERE))
def test_figures_that_are_defined_elsewhere_are_tested_there(name: str) -> None:
    module = Path(__file__).parent / ELSEWHERE[name]
    assert name.split(".")[0] in module.read_text(encoding="utf-8")
    assert name in MODELS


@pytest.mark.parametrize("model", [one for one in MODELS if one.monotone], ids=lambda one: one.name)
@given(given=rows, extra=surplus, merge=merges)
def test_a_merger_of_safe_classes_is_safe(
    model: PrivacyModel, given: Rows, extra: list[int], merge: list[int]
) -> None:
    fine, coarse, _ = coarser(given, extra, merge)
    met = just_met(model, fine)
    if met is None:
        return
    assert not met.failing(fine).any()
    assert not met.failing(coarse).any()


def test_a_merger_keeps_shares_of_the_population_inside_the_interval() -> None:
    fine = ClassTable(np.array([1, 2]), population=np.array([4, 4]))
    coarse = ClassTable(np.array([3]), population=np.array([8]))
    inside = criterion(MODELS.get("delta_presence"), 0.5, minimum=0.25)
    assert not inside.failing(fine).any()
    assert not inside.failing(coarse).any()


@pytest.mark.parametrize(
    "name", sorted(model.name for model in MODELS if model.monotone_with_suppression)
)
@given(given=rows, extra=surplus, merge=merges, strictness=st.integers(1, 6))
def test_a_merged_class_fails_only_when_all_parts_fail(
    name: str, given: Rows, extra: list[int], merge: list[int], strictness: int
) -> None:
    model = MODELS.get(name)
    fine, coarse, parts = coarser(given, extra, merge)
    limit = strictness if model.direction is Comparison.AT_LEAST else 1 / strictness
    asked = criterion(model, limit)
    fails = asked.failing(fine)
    for place, failing in enumerate(asked.failing(coarse)):
        if failing:
            assert all(fails[part] for part, new in enumerate(parts) if new == place)


S = {"attribute": "s"}
COUNTEREXAMPLES = {
    "alpha_k": ({"alpha": 0.6, **S}, 0.5, [[2], [2, 1], [2]], None),
    "l_diversity.entropy": ({"kind": "entropy", "l": 2, **S}, 0.5, [[0], [0, 2], [0]], None),
    "l_diversity.recursive": (
        {"kind": "recursive", "l": 2, "c": 2, **S},
        0.3,
        [[0], [0, 2], [0, 2]],
        None,
    ),
    "t_closeness.equal": ({"distance": "equal", "t": 0.1, **S}, 0.5, [[1, 1, 2], [1], [2]], None),
    "t_closeness.ordered": (
        {"distance": "ordered", "t": 0.1, **S},
        0.4,
        [[0], [0, 0, 1], [1]],
        None,
    ),
    "t_closeness.hierarchical": (
        {"distance": "hierarchical", "t": 0.1, **S},
        0.5,
        [[1, 2], [2], [1]],
        None,
    ),
    "beta_likeness.basic": ({"kind": "basic", "beta": 0.25, **S}, 0.5, [[0], [2, 0], [2]], None),
    "beta_likeness.enhanced": (
        {"kind": "enhanced", "beta": 0.6, **S},
        0.4,
        [[2], [1, 0], [0, 1]],
        None,
    ),
    "delta_disclosure.all": ({"values": "all", "delta": 0.3, **S}, 0.5, [[0], [0, 1], [1]], None),
    "delta_disclosure.present": (
        {"values": "present", "delta": 0.4, **S},
        0.4,
        [[1], [0, 2], [2, 0]],
        None,
    ),
    "delta_presence": ({"maximum": 0.5}, 0.5, [[1, 0], [0], [2]], [4, 1, 1]),
}


def table_from(classes: list[list[int]], population: list[int] | None) -> ClassTable:
    given = [(place, value) for place, values in enumerate(classes) for value in values]
    return table_of(given, population)


@pytest.mark.parametrize("name", sorted(COUNTEREXAMPLES))
def test_with_suppression_a_coarser_table_can_break_the_rule(name: str) -> None:
    """The first two classes are merged: admissible before, not after."""
    parameters, suppression, classes, people = COUNTEREXAMPLES[name]
    rule = PrivacyRule.parse({MODELS.get(name).key: parameters, "suppression": suppression})
    assert [one.model.name for one in rule.criteria] == [name]
    assert not rule.monotone
    assert rule.monotone_part is None
    first, second, *others = classes
    merged = None if people is None else [people[0] + people[1], *people[2:]]
    before = rule.check(table_from(classes, people))
    after = rule.check(table_from([first + second, *others], merged))
    assert before.admissible
    assert not after.admissible
    assert after.suppressed_rows > before.suppressed_rows


def test_with_suppression_more_rows_may_have_to_go_for_the_mean_risk() -> None:
    rule = PrivacyRule.parse(
        {"max_risk": {"kind": "marketer", "threshold": 0.3}, "suppression": 0.65}
    )
    assert not rule.monotone
    assert rule.check(ClassTable(np.array([1] * 20 + [2, 9]))).suppressed_rows == 20
    merged = rule.check(ClassTable(np.array([2] * 10 + [2, 9])))
    assert merged.suppressed_rows == 22
    assert not merged.admissible


def test_every_unsafe_model_has_its_counterexample() -> None:
    unsafe = {model.name for model in MODELS if not model.monotone_with_suppression}
    # Of those that are not monotone at all nothing is claimed; unique rows are a share of others.
    never = {model.name for model in MODELS if not model.monotone}
    shown = set(COUNTEREXAMPLES) | never | {"max_risk.marketer", "sample_uniqueness"}
    lacking = sorted(unsafe - shown)
    assert not lacking, (
        f"add to COUNTEREXAMPLES a table that {lacking} admits, and no longer after a merger; "
        "or set monotone_with_suppression=True"
    )
    assert unsafe | never == shown


def test_delta_of_present_values_breaks_even_without_suppression() -> None:
    rule = PrivacyRule.parse(
        {"delta_disclosure": {"attribute": "s", "values": "present", "delta": 0.7}}
    )
    assert not rule.monotone
    classes = [[1, 1, 0, 1], [1], [0], [0, 0]]
    assert rule.check(table_from(classes, None)).admissible
    merged = [classes[0] + classes[1], *classes[2:]]
    assert not rule.check(table_from(merged, None)).admissible


def test_a_minimum_of_presence_admits_no_absent_class() -> None:
    asked = criterion(MODELS.get("delta_presence"), 0.9, minimum=0.1)
    present = ClassTable(np.array([2]), population=np.array([4]))
    assert not asked.failing(present).any()
    absent = ClassTable(np.array([2]), population=np.array([4]), absent=3)
    assert asked.failing(absent).all()
    assert not criterion(MODELS.get("delta_presence"), 0.9).failing(absent).any()


@given(rows, surplus, st.sampled_from([0.2, 0.3, 0.5, 0.8]))
def test_the_fewest_crowds_go_for_the_mean_risk(
    given: Rows, extra: list[int], limit: float
) -> None:
    fine, _, _ = coarser(given, extra, list(range(6)))
    fails = criterion(MODELS.get("max_risk.marketer"), limit).failing(fine)
    people = fine.population
    assert people is not None
    for smallest in [*sorted(set(people.tolist())), math.inf]:
        kept = people >= smallest
        mean = (fine.sizes[kept] / people[kept]).sum() / max(fine.sizes[kept].sum(), 1)
        if mean <= limit + 1e-9:
            break
    assert fails.tolist() == (~kept).tolist()


def test_a_criterion_survives_copying_and_pickling() -> None:
    rule = PrivacyRule.parse({"k": 5, "t_closeness": {"attribute": "s", "t": 0.2}})
    assert copy.deepcopy(rule) == rule
    assert pickle.loads(pickle.dumps(rule)) == rule
    assert hash(pickle.loads(pickle.dumps(rule))) == hash(rule)


@pytest.mark.parametrize("given", [0, -1, 2.5, True, "5", None, float("nan"), float("inf")])
def test_k_is_a_whole_number_from_one(given: object) -> None:
    with pytest.raises(PolicyError, match="whole number from 1"):
        PrivacyRule.parse({"k": given})
    assert PrivacyRule.parse({"k": 5.0}).criteria[0]["k"] == 5


def test_presence_by_the_input_does_not_count_what_is_suppressed_as_absent() -> None:
    table = ClassTable(np.array([1, 4, 4]), population=np.array([10, 8, 8]))
    asked = {"delta_presence": {"minimum": 0.2, "maximum": 0.6}, "suppression": 0.2}
    assert not PrivacyRule.parse(asked).check(table).admissible
    asked["delta_presence"]["reference"] = "input"
    assert PrivacyRule.parse(asked).check(table).kept_classes.tolist() == [False, True, True]
    absent = ClassTable(np.array([4, 4]), population=np.array([8, 8]), absent=3)
    assert not PrivacyRule.parse(asked).check(absent).admissible


@pytest.mark.parametrize(("gain", "cost", "least"), [(300, 4, 76), (1200, 2, 601), (120, 20, 7)])
def test_an_attack_that_just_pays_its_cost_is_one(gain: float, cost: float, least: int) -> None:
    """The costs and gains of ARX's tests; it too asks for one row more than gain over cost."""
    sizes = np.array([least - 1, least])
    for kind, table in (
        ("prosecutor", ClassTable(sizes)),
        ("journalist", ClassTable(np.array([1, 1]), population=sizes)),
    ):
        rule = PrivacyRule.parse({"no_attack": {"attacker": kind, "gain": gain, "cost": cost}})
        assert rule.criteria[0].failing(table).tolist() == [True, False]
    assert PrivacyRule.parse({"no_attack": {"gain": gain, "cost": cost}}).minimum_size == least
    assert PrivacyRule.parse({"no_attack": {"gain": 0, "cost": cost}}).minimum_size == 1


@given(rows, st.sampled_from(["all", "present"]), st.sampled_from([2.0, 10.0]))
def test_delta_disclosure_in_another_logarithm(given: Rows, values: str, base: float) -> None:
    natural = MODELS.get(f"delta_disclosure.{values}").criterion({"attribute": "s", "delta": 0.4})
    other = natural.with_parameter("base", base)
    table = table_of(given, None)
    assert other.figures(table) == pytest.approx(natural.figures(table) / math.log(base))
    scaled = other.with_parameter("delta", 0.4 / math.log(base))
    assert scaled.failing(table).tolist() == natural.failing(table).tolist()


def test_a_presence_that_no_class_can_have_is_refused() -> None:
    with pytest.raises(
        PolicyError, match=r"minimum = 0\.9 and maximum = 0\.1: no class meets both"
    ):
        PrivacyRule.parse({"delta_presence": {"minimum": 0.9, "maximum": 0.1}})
    assert PrivacyRule.parse({"delta_presence": {"minimum": 0.1, "maximum": 0.1}}).criteria


def test_a_model_with_conditions_of_its_own_refuses_a_faster_figure() -> None:
    """A search with `dense` sees only the figure, and would call combinations impossible that are not."""
    alpha = MODELS.get("alpha_k")
    assert alpha.fails is not None
    with pytest.raises(InternalError, match="has `fails` and `dense`"):
        replace(alpha, dense=lambda table, criterion: table.sizes)
