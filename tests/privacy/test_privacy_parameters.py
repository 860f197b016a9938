"""Which numbers each parameter of a privacy model accepts, by a table that the test writes down."""

from __future__ import annotations

import pytest

from aegis.errors import PolicyError
from aegis.privacy import MODELS

TABLE = """
model                  parameter   accepted       refused
k                      k           1 2 100        0 -1 1.5
k_map                  k           1 2 100        0 -1 1.5
alpha_k                alpha       0.01 1         0 -0.1 1.01
alpha_k                k           1 7            0 2.5
l_diversity.distinct   l           1 3            0 1.5
l_diversity.entropy    l           1 1.5 3        0.99 0
l_diversity.entropy-grassberger  l  1 1.5 3       0.99 0
l_diversity.recursive  l           1 3            0 2.5
l_diversity.recursive  c           0.01 3         0 -1
t_closeness.equal      t           0 0.2 1        -0.1 1.01
t_closeness.ordered    t           0 0.2 1        -0.1 1.01
t_closeness.hierarchical  t        0 0.2 1        -0.1 1.01
beta_likeness.basic    beta        0 1.5 9        -0.1
beta_likeness.enhanced  beta       0 1.5 9        -0.1
delta_disclosure.all   delta       0 1.5 9        -0.1
delta_disclosure.all   base        1.01 2         1 0.5
delta_disclosure.present  delta    0 1.5 9        -0.1
delta_disclosure.present  base     1.01 2         1 0.5
delta_presence         maximum     0.01 1         0 1.01
delta_presence         minimum     0 0.5 1        -0.1 1.01
max_risk.prosecutor    threshold   0.01 1         0 1.01
max_risk.journalist    threshold   0.01 1         0 1.01
max_risk.marketer      threshold   0.01 1         0 1.01
sample_uniqueness      threshold   0 0.1 1        -0.1 1.01
population_uniqueness.dankar   threshold   0 1    -0.1 1.01
population_uniqueness.dankar   population  1 9    0 1.5
population_uniqueness.pitman   threshold   0 1    -0.1 1.01
population_uniqueness.pitman   population  1 9    0 1.5
population_uniqueness.zayatz   threshold   0 1    -0.1 1.01
population_uniqueness.zayatz   population  1 9    0 1.5
population_uniqueness.snb      threshold   0 1    -0.1 1.01
population_uniqueness.snb      population  1 9    0 1.5
no_attack.prosecutor   gain        0 5            -1
no_attack.prosecutor   cost        0.01 5         0 -1
no_attack.journalist   gain        0 5            -1
no_attack.journalist   cost        0.01 5         0 -1
profitability.prosecutor  benefit  0.01 5         0 -1
profitability.prosecutor  loss     0 5            -1
profitability.prosecutor  gain     0 5            -1
profitability.prosecutor  cost     0 5            -1
profitability.journalist  benefit  0.01 5         0 -1
profitability.journalist  loss     0 5            -1
profitability.journalist  gain     0 5            -1
profitability.journalist  cost     0 5            -1
"""

COMPARING = {"t_closeness", "beta_likeness", "delta_disclosure", "delta_presence"}
"""Keys of the models that compare a class with the whole table or with a population."""


def cases() -> list[tuple[str, str, float, bool]]:
    """Return model, parameter, number, and whether it is accepted."""
    header, *lines = TABLE.strip().splitlines()
    assert header.split() == ["model", "parameter", "accepted", "refused"]
    listed = []
    for line in lines:
        model, parameter, rest = line.split(None, 2)
        accepted, refused = rest.split("  ", 1)
        for numbers, inside in ((accepted, True), (refused, False)):
            listed += [(model, parameter, float(number), inside) for number in numbers.split()]
    return listed


@pytest.mark.parametrize(("model", "name", "number", "inside"), cases())
def test_a_number_is_accepted_or_refused(
    model: str, name: str, number: float, inside: bool
) -> None:
    parameter = next(p for p in MODELS.get(model).parameters if p.name == name)
    given = int(number) if number == int(number) else number
    if inside:
        assert parameter.check(given, "privacy") == number
    else:
        with pytest.raises(PolicyError):
            parameter.check(given, "privacy")


def test_the_table_has_every_parameter() -> None:
    written = {(model, parameter) for model, parameter, *_ in cases()}
    known = {(m.name, p.name) for m in MODELS for p in m.parameters}
    assert not (lacking := sorted(known - written)), f"give {lacking} a line in TABLE, above"
    assert written == known


def test_models_that_compare_with_the_table_or_a_population_take_a_reference() -> None:
    comparing = {name for name, _, _, _ in cases() if name.split(".")[0] in COMPARING}
    assert {model.name for model in MODELS if model.compares} == comparing, (
        "COMPARING, above, lists the keys of models that take `reference`: add yours"
    )
