"""Releases with noise: drawn by the system or by seed, checked by true classes, accounted for."""

from __future__ import annotations

import json
from collections import Counter

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import aegis
from aegis.errors import NoAdmissibleConfiguration, PolicyError
from aegis.masks import parse_mask
from aegis.policy import Configuration, Policy, load_policy
from aegis.release import MaskingTransformer, apply, audit

GEOMETRIC = {"geometric": {"epsilon": 2, "lower": 20, "upper": 40}}
RESPONSE = {"randomised_response": {"epsilon": 1.5, "values": ["ab", "ac", "bc"]}}
UNIFORM = {"add_uniform": {"amount": 4}}


def table_of(count: int = 300) -> pa.Table:
    random = np.random.default_rng(1)
    age = [None if i % 50 == 0 else int(a) for i, a in enumerate(random.integers(20, 41, count))]
    return pa.table(
        {
            "id": [f"p{i}" for i in range(count)],
            "age": pa.array(age, pa.int64()),
            "city": random.choice(["ab", "ac", "bc"], count).tolist(),
            "sex": random.choice(["f", "m"], count).tolist(),
            "y": ["p" if (a or 0) + random.normal(0, 6) > 30 else "q" for a in age],
        }
    )


def policy_of(age_role: str = "feature", **changes: object) -> Policy:
    return load_policy(
        {
            "version": 1,
            "label": "y",
            "privacy": {"k": 3},
            "attributes": {
                "id": {"role": "identifier"},
                "age": {"role": age_role, "masks": ["identity", GEOMETRIC, UNIFORM, "shuffle"]},
                "city": {"role": "quasi-identifier", "masks": ["identity", RESPONSE]},
                "sex": {"role": "quasi-identifier"},
            },
        }
        | changes
    )


def masks(**given: object) -> Configuration:
    chosen = {"age": "identity", "city": "identity", "sex": "identity"} | given
    return Configuration("noisy", {n: parse_mask(s) for n, s in chosen.items()})


@pytest.mark.parametrize("age", [UNIFORM, "shuffle"])
def test_the_same_seed_gives_the_same_bytes(tmp_path, age):
    table, policy = table_of(), policy_of()
    made = [
        apply(table, policy, masks(age=age), output=tmp_path / f"{i}.parquet", seed=seed).path
        for i, seed in enumerate([5, 5, 6])
    ]
    one, two, three = (path.read_bytes() for path in made if path is not None)
    assert one == two != three
    shown, true = pq.read_table(made[0]), table
    assert shown.column_names == ["age", "city", "sex", "y"]
    assert shown["city"].to_pylist() == true["city"].to_pylist()
    assert shown["y"].to_pylist() == true["y"].to_pylist()
    released = shown["age"].to_pylist()
    if age == "shuffle":
        assert Counter(released) == Counter(true["age"].to_pylist())
        assert released != true["age"].to_pylist()
    else:
        moved = [
            a - b for a, b in zip(released, true["age"].to_pylist(), strict=True) if b is not None
        ]
        assert set(moved) == set(range(-4, 5))
        assert shown["age"].null_count == true["age"].null_count


@pytest.mark.parametrize("age", [UNIFORM, "shuffle", {"randomised_response": {"keep": 0.5}}])
def test_without_a_seed_nobody_can_repeat_the_draws(tmp_path, age):
    """With the default seed a reader drew a candidate column again and kept those that matched."""
    table, policy, chosen = table_of(), policy_of(), masks(age=age)
    guessed = [apply(table, policy, chosen, seed=seed).data["age"].to_pylist() for seed in range(6)]
    for number in range(4):
        release = aegis.Study(table, policy, seed=5).apply(
            chosen, output=tmp_path / f"{number}.parquet", certificate=tmp_path / f"{number}.json"
        )
        shown = pq.read_table(release.path)["age"].to_pylist()
        assert shown not in guessed
        assert release.seeded_noise == ()
        assert not any("seed" in warning for warning in release.warnings)
        guessed.append(shown)
        assert "seed" not in (tmp_path / f"{number}.json").read_text()


def test_a_release_with_a_seed_says_that_the_noise_can_be_taken_off(tmp_path):
    chosen = masks(age=UNIFORM, city=RESPONSE)
    certificate = tmp_path / "c.json"
    release = apply(
        table_of(),
        policy_of(),
        chosen,
        output=tmp_path / "r.parquet",
        certificate=certificate,
        seed=918273,
    )
    assert release.seeded_noise == ("age",)  # the city's noise has a promise and takes no seed
    assert any("age has a seed" in warning for warning in release.warnings)
    assert json.loads(certificate.read_text())["seeded_noise"] == ["age"]
    checked = aegis.check_certificate(release.path, certificate)
    assert checked.passed
    assert "seeded_noise: nothing in the file shows it" in checked.unchecked
    for file in (certificate, release.path):
        assert b"918273" not in file.read_bytes()
    assert "918273" not in json.dumps(release.to_dict())


def test_draws_depend_on_the_column_as_well():
    policy = policy_of()
    one = apply(table_of(200), policy, masks(age=UNIFORM), seed=1).data
    two = apply(table_of(201), policy, masks(age=UNIFORM), seed=1).data
    assert one is not None
    assert two is not None
    assert one["age"].to_pylist() != two["age"].to_pylist()[:200]


def test_a_release_states_what_its_noise_promises(tmp_path):
    certificate = tmp_path / "c.json"
    release = apply(
        table_of(),
        policy_of(),
        masks(age=GEOMETRIC),
        output=tmp_path / "m.csv",
        certificate=certificate,
    )
    account = release.differential_privacy
    assert account is not None
    assert account.epsilon == 2
    assert account.exact == ("age (whether it is null)", "city", "sex", "y")
    document = json.loads(certificate.read_text())
    assert document["privacy"]["differential_privacy"]["epsilon"] == 2
    assert document["privacy"]["differential_privacy"]["covers_release"] is False
    assert document["noised_quasi_identifiers"] == []
    assert release.to_dict()["privacy"] == document["privacy"]
    again = audit(release.path, policy=policy_of(privacy={}), configuration=release.configuration)
    assert again.differential_privacy == account
    assert audit(release.path, policy=policy_of()).differential_privacy is None
    assert apply(table_of(), policy_of(), masks(age=UNIFORM)).differential_privacy is None


def test_noised_quasi_identifiers_are_held_to_their_true_classes():
    table, policy = table_of(), policy_of()
    release = apply(table, policy, masks(city=RESPONSE))
    assert release.noised_quasi_identifiers == ("city",)
    assert release.released_rows == table.num_rows  # six true classes of about 50 rows each
    # Measured on the output: noisy cities with true sexes.
    assert release.data is not None
    shown = Counter(
        zip(release.data["city"].to_pylist(), release.data["sex"].to_pylist(), strict=True)
    )
    assert release.audit.report.k == min(shown.values())
    assert "aegis_true_city" not in release.data.column_names


def test_noise_does_not_help_to_meet_a_rule():
    table = table_of()
    with pytest.raises(NoAdmissibleConfiguration):
        apply(table, policy_of("quasi-identifier"), masks(age=GEOMETRIC))
    policy = policy_of("quasi-identifier", privacy={"k": 3, "suppression": 0.9})
    release = apply(table, policy, masks(age=GEOMETRIC))
    keys = ("age", "city", "sex")
    true = Counter(zip(*(table[n].to_pylist() for n in keys), strict=True))
    assert release.suppressed_rows == sum(n for n in true.values() if n < 3)


def test_noise_on_the_label_is_refused_even_when_the_policy_does_not_list_it():
    configuration = Configuration("c", dict(masks().masks) | {"y": parse_mask("shuffle")})
    policy = policy_of(
        attributes={
            "sex": {"role": "quasi-identifier"},
            "y": {"role": "feature", "masks": ["identity"]},
        }
    )
    with pytest.raises(PolicyError, match="the label is what"):
        apply(table_of(), policy, configuration)


def test_unknown_values_are_refused_or_starred():
    mask = {"randomised_response": {"keep": 1.0, "values": ["ab", "ac"]}}
    with pytest.raises(Exception, match="do not cover"):
        apply(table_of(), policy_of(), masks(city=mask))
    release = apply(table_of(), policy_of(unseen="suppress"), masks(city=mask))
    assert release.data is not None
    assert set(release.data["city"].to_pylist()) == {"ab", "ac", "*"}
    assert release.unseen["city"] == release.data["city"].to_pylist().count("*")


def test_a_transformer_draws_row_for_row():
    table = table_of(100)
    chosen = {"age": UNIFORM, "city": "shuffle", "sex": "identity"}
    step = MaskingTransformer(chosen, seed=3)
    with pytest.warns(UserWarning, match="age, city: noise has a seed"):
        one = step.fit_transform(table)
    assert one["sex"].to_pylist() == table["sex"].to_pylist()
    gaps = [
        a - b for a, b in zip(one["age"].to_pylist(), table["age"].to_pylist(), strict=True) if b
    ]
    assert max(map(abs, gaps)) <= 4
    assert one.equals(step.transform(table))
    assert Counter(one["city"].to_pylist()) == Counter(table["city"].to_pylist())
    assert step.get_params()["seed"] == 3
    unseeded = MaskingTransformer(chosen).fit(table)
    assert not unseeded.transform(table).equals(one)
    assert not unseeded.transform(table).equals(unseeded.transform(table))
