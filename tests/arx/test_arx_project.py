"""Projects of ARX, written here as ARX writes them, become tables and policies."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import pytest
from typer.testing import CliRunner

import aegis
from aegis.arx.project import import_project
from aegis.cli.main import app
from aegis.errors import AegisError, DataError, PolicyError
from arx_project import ROWS, TYPES, project


def read(path: Path) -> list[list[str]]:
    with path.open(newline="") as file:
        return list(csv.reader(file, delimiter=";"))


def test_a_project_becomes_a_policy(tmp_path: Path) -> None:
    models = (
        "5-anonymity",
        "distinct-2-diversity for attribute 'ill'",
        "0.3-closeness with equal ground-distance for attribute 'ill'",
    )
    found = import_project(project(tmp_path, *models, limits=("1", "2")), tmp_path / "out")
    policy = aegis.load_policy(found.policy)
    assert policy.privacy.to_mapping() == {
        "k": 5,
        "l_diversity": {"attribute": "ill", "kind": "distinct", "l": 2},
        "t_closeness": {"attribute": "ill", "distance": "equal", "reference": "input", "t": 0.3},
        "suppression": 0.25,
    }
    assert {name: str(a.role) for name, a in policy.attributes.items()} == {
        "town": "quasi-identifier",
        "age; in years": "quasi-identifier",
        "ill": "sensitive",
    }
    assert [str(mask) for mask in policy.attributes["town"].masks] == ["level(1)", "level(2)"]
    assert len(policy.attributes["age; in years"].masks) == 3
    assert read(found.table) == [list(TYPES), *map(list, ROWS)]
    assert found.objective == "loss(mean=geometric, over=quasi-identifiers, factor=0.1)"
    assert found.optimum == (0.25, (1, 0))
    assert found.notes == ()
    assert all(path.exists() for path in found.files)
    best = aegis.search(found.table, policy, objective=found.objective).best
    assert best is None or best.objective is not None


def test_selected_rows_are_the_table(tmp_path: Path) -> None:
    chosen = {0, 3, 7}
    path = project(tmp_path, "2-anonymity", "Inclusion", selected=chosen, response="ill")
    found = import_project(path, tmp_path / "out")
    assert read(found.table)[1:] == [list(ROWS[i]) for i in sorted(chosen)]
    policy = aegis.load_policy(found.policy)
    assert (policy.label.column, policy.population) == ("ill", None)
    beside = import_project(
        project(tmp_path, "(0.0,0.5)-presence", selected=chosen), tmp_path / "beside"
    )
    policy = aegis.load_policy(beside.policy)
    assert policy.population == str(tmp_path / "beside" / "population.csv")
    assert len(read(beside.table)) == 4
    assert read(Path(policy.population))[1:] == list(map(list, ROWS))


@pytest.mark.parametrize(
    ("given", "error", "match"),
    [
        ({"vocabulary": "1.0"}, DataError, "vocabulary '1.0'"),
        ({"criteria": ("(1.0)-secrecy",)}, PolicyError, "which a policy cannot express"),
        ({"criteria": ("(9.0,1.0E-6)-DP",)}, PolicyError, "epsilon = 8.1"),
        ({"weights": {"town": "much"}}, DataError, "weight is 'much'"),
        ({"criteria": ("profitability (prosecutor)",)}, PolicyError, "no amounts of gain and loss"),
        ({"criteria": ("(0.1)-population-uniqueness (dankar)",)}, PolicyError, "--people N"),
        (
            {"replaced": {"input/config.xml": "<!DOCTYPE x [<!ENTITY a 'b'>]><config/>"}},
            DataError,
            "document type",
        ),
        ({"replaced": {"input/config.xml": "<config>"}}, DataError, "is not XML"),
        (
            {"replaced": {"input/hierarchies/town.csv": "Ulm;south\nUlm;north\n"}},
            AegisError,
            "Ulm",
        ),
    ],
)
def test_what_is_refused_leaves_nothing(
    tmp_path: Path, given: dict[str, Any], error: type[AegisError], match: str
) -> None:
    criteria = given.pop("criteria", ("2-anonymity",))
    with pytest.raises(error, match=match):
        import_project(project(tmp_path, *criteria, **given), tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_the_classification_metric_is_charged_as_by_arx(tmp_path: Path) -> None:
    config = (
        "<config><relativeMaxOutliers>0.25</relativeMaxOutliers><metric>Classification accuracy"
        "</metric><criteria><criterion>2-anonymity</criterion></criteria></config>"
    )
    path = project(tmp_path, response="ill", replaced={"input/config.xml": config})
    imported = import_project(path, tmp_path / "out")
    assert imported.objective == "classification(charges=arx)"
    assert any("0.5 is taken" in note for note in imported.notes)
    policy = aegis.load_policy(imported.policy)
    best = aegis.search(imported.table, policy, objective=imported.objective).best
    assert best is not None
    assert 0 <= best.objective <= 1


def test_differential_privacy_becomes_a_drawn_sample(tmp_path: Path) -> None:
    path = project(tmp_path, "(2.0,1.0E-6)-DP", "2-anonymity")
    imported = import_project(path, tmp_path / "out")
    options = {"epsilon": 2.0, "delta": 1e-6, "search": 0.2, "score": "loss"}
    assert imported.sampled == options
    policy = aegis.load_policy(imported.policy)
    assert policy.privacy.to_mapping() == {"k": 2, "suppression": 1.0}
    (choice,) = policy.anonymizers
    assert (choice.method, choice.options) == ("safe-pub", options)
    assert sum("how much of epsilon" in note for note in imported.notes) == 1
    asked = ["import", str(path), "-o", str(tmp_path / "drawn")]
    said = CliRunner().invoke(app, asked).stdout
    assert "--method safe-pub" in said
    assert "--option epsilon=2.0" in said
    assert "--seed" not in said
    # Twelve rows are too few for a class; the options are understood all the same.
    method = ["--method", "safe-pub", "-o", str(tmp_path / "sample.csv")]
    words = [word for key, value in options.items() for word in ("--option", f"{key}={value}")]
    files = [str(imported.table), "--policy", str(imported.policy)]
    assert CliRunner().invoke(app, ["anonymize", *files, *method, *words]).exit_code == 1


def test_fixed_levels_of_a_sample_are_noted(tmp_path: Path) -> None:
    java = b"sr\0\x2dorg.deidentifier.arx.DataGeneralizationScheme"
    path = project(tmp_path, "(1.0,1.0E-6)-DP", java=java, metric="Ambiguity")
    imported = import_project(path, tmp_path / "out")
    assert imported.sampled is not None
    assert imported.sampled["score"] == "precision"
    assert any("fixes levels" in note for note in imported.notes)
    assert any("no score of 'Ambiguity'" in note for note in imported.notes)


@pytest.mark.parametrize(
    ("metric", "objective", "notes"),
    [
        ("Loss (0.5/1.0/1.0)", "loss(mean=geometric, over=quasi-identifiers)", 0),
        ("Non-monotonic non-uniform entropy", "nu-entropy(over=quasi-identifiers)", 1),
        ("Non-uniform entropy", "nu-entropy(over=quasi-identifiers, factor=0)", 0),
        ("Non-monotonic precision", "precision(mean=arithmetic, over=quasi-identifiers)", 1),
        ("Monotonic precision", "precision(mean=arithmetic, over=quasi-identifiers, factor=0)", 0),
        ("Non-monotonic discernability", "discernibility", 1),
        ("Monotonic discernability (DM*)", "discernibility(factor=0)", 0),
        ("Average equivalence class size", "average-class-size", 1),
        ("Height", "height", 0),
        ("Ambiguity", "ambiguity", 0),
        ("KL-Divergence", "kl-divergence", 0),
        ("EntropyBasedInformationLoss", "log-width(over=quasi-identifiers)", 1),
        ("Static", None, 1),
    ],
)
def test_quality_models(tmp_path: Path, metric: str, objective: str | None, notes: int) -> None:
    imported = import_project(project(tmp_path, "2-anonymity", metric=metric), tmp_path / "out")
    assert imported.objective == objective
    assert len(imported.notes) == notes
    policy = aegis.load_policy(imported.policy)
    if objective is not None:
        best = aegis.search(imported.table, policy, objective=objective).best
        assert best is not None
        assert best.objective >= 0


def test_weights_and_delta_disclosure(tmp_path: Path) -> None:
    weights = {"town": 0.25, "age; in years": 0.5}
    model = "1.5-disclosure privacy for attribute 'ill'"
    imported = import_project(project(tmp_path, model, weights=weights), tmp_path / "out")
    policy = aegis.load_policy(imported.policy)
    assert {n: a.weight for n, a in policy.attributes.items()} == {
        "town": 0.5,
        "age; in years": 1.0,
        "ill": 1.0,
    }
    assert imported.objective == (
        "loss(mean=geometric, over=quasi-identifiers, weights=policy, factor=0.1)"
    )
    (criterion,) = policy.privacy.criteria
    assert (criterion["delta"], criterion["base"]) == (1.5, 2)
    assert criterion.model.name == "delta_disclosure.present"


def test_a_label_among_several_responses(tmp_path: Path) -> None:
    definition = (
        "<definition><assigment><name>town</name><type>QUASI_IDENTIFYING_ATTRIBUTE</type>"
        "<response>true</response></assigment><assigment><name>age; in years</name>"
        "<type>QUASI_IDENTIFYING_ATTRIBUTE</type></assigment><assigment><name>ill</name>"
        "<type>INSENSITIVE_ATTRIBUTE</type><response>true</response></assigment></definition>"
    )
    path = project(tmp_path, "2-anonymity", replaced={"input/definition.xml": definition})
    imported = import_project(path, tmp_path / "out")
    label = aegis.load_policy(imported.policy).label
    assert label is not None
    assert label.column == "town"
    assert any("one label, 'town'" in note for note in imported.notes)


def test_what_a_publisher_wins_and_loses(tmp_path: Path) -> None:
    stakes = "[benefit=1200.0, loss=300.0, gain=300.0, cost=4.0]"
    metric = {
        "input/config.xml": (
            "<config><relativeMaxOutliers>0.5</relativeMaxOutliers>"
            "<metric>PublisherBenefit (Prosecutor, Benefit=1200.0)</metric><criteria>"
            f"<criterion>profitability (prosecutor){stakes}</criterion>"
            f"<criterion>no-attack-profitability (prosecutor){stakes}</criterion></criteria></config>"
        )
    }
    imported = import_project(project(tmp_path, replaced=metric), tmp_path / "out")
    policy = aegis.load_policy(imported.policy)
    amounts = {"benefit": 1200.0, "loss": 300.0, "gain": 300.0, "cost": 4.0}
    assert policy.privacy.to_mapping() == {
        "profitability": {"attacker": "prosecutor"} | amounts,
        "no_attack": {"attacker": "prosecutor", "gain": 300.0, "cost": 4.0},
        "suppression": 0.5,
    }
    assert imported.objective == (
        "publisher-payout(benefit=1200, loss=300, gain=300, cost=4, attacker=prosecutor)"
    )
    beside = import_project(
        project(tmp_path, f"profitability (journalist){stakes}", selected={0, 3}), tmp_path / "some"
    )
    policy = aegis.load_policy(beside.policy)
    assert policy.population == str(tmp_path / "some" / "population.csv")
    assert len(read(beside.table)) == 3


def test_no_project(tmp_path: Path) -> None:
    (tmp_path / "text.deid").write_text("no archive")
    with ZipFile(tmp_path / "other.deid", "w") as archive:
        archive.writestr("a.txt", "a")
    for name, match in (("text", "is not an ARX project"), ("other", "holds no metadata.xml")):
        with pytest.raises(DataError, match=match):
            import_project(tmp_path / f"{name}.deid", tmp_path / "out")
    with pytest.raises(DataError, match="cannot be read"):
        import_project(tmp_path / "nowhere.deid", tmp_path / "out")


def test_the_command(tmp_path: Path) -> None:
    path = project(tmp_path, "(0.1)-population-uniqueness (pitman)")
    run = CliRunner().invoke
    asked = ["import", str(path), "-o", str(tmp_path / "out")]
    assert run(app, [*asked, "--people", "5000"]).exit_code == 0
    policy = aegis.load_policy(tmp_path / "out" / "policy.yaml")
    assert policy.privacy.to_mapping()["population_uniqueness"]["population"] == 5000
    with pytest.raises(PolicyError, match="exists"):
        run(app, [*asked, "--people", "5000"], catch_exceptions=False, standalone_mode=False)
