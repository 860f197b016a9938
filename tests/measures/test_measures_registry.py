"""The registry: every measure is complete, says how to read it, and refuses the wrong counts."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import MISSING, fields, replace
from importlib.metadata import EntryPoint

import numpy as np
import pytest
from measures_brute import cooccurrence, in_parts

from aegis import registry
from aegis.errors import InternalError, PackageWarning, PolicyError
from aegis.measures import (
    DEFAULT_MEASURE,
    FALLBACK_MEASURE,
    MEASURES,
    Contingency,
    Direction,
    Encoding,
    Measure,
    Scope,
    get,
)
from aegis.measures.by_fold import Response, ShownLevels
from aegis.measures.cooccurrence import ColumnCounts


def test_the_default_measures():
    assert (DEFAULT_MEASURE, FALLBACK_MEASURE) == ("held-out-auc", "held-out-pillai")


@pytest.mark.parametrize("measure", list(MEASURES), ids=lambda measure: measure.name)
def test_registered_measures_are_complete(measure):
    for field in fields(Measure):
        value = getattr(measure, field.name)
        assert value is not None or field.default is None
        if isinstance(value, str):
            assert value == value.strip() != ""
    assert measure.description.endswith(".")
    assert measure.compute.__doc__


@pytest.mark.parametrize("field", [f.name for f in fields(Measure) if f.default is MISSING])
@pytest.mark.parametrize("value", ["", " ", None])
def test_an_incomplete_measure_cannot_be_made(field, value):
    with pytest.raises(InternalError, match=f"lacks its {field}"):
        replace(get("mi"), **{field: value})


@pytest.mark.parametrize(
    ("field", "value"),
    [("direction", "higher"), ("scope", "attribute"), ("monotone", None), ("compute", "text")],
)
def test_a_field_of_another_type_is_refused(field, value):
    with pytest.raises(InternalError, match=f"lacks its {field}"):
        replace(get("mi"), **{field: value})


def test_a_name_is_registered_once():
    with pytest.raises(InternalError, match="registered twice"):
        MEASURES.register(get("mi"))


def test_a_package_cannot_take_a_name_that_is_there(monkeypatch):
    own = registry.Registry[Measure]("measure")
    own.register(get("mi"))
    point = EntryPoint("mi", "aegis.measures.catalog:MEASURES.get", "aegis.measures")
    monkeypatch.setattr(EntryPoint, "load", lambda _: get("mi"))
    monkeypatch.setattr(registry, "entry_points", lambda group: [point])
    with pytest.warns(PackageWarning, match=r"adds a measure 'mi' .* this name is taken"):
        assert own.names() == ("mi",)
    assert own.get("mi") is get("mi")


def test_a_package_that_fails_to_load_is_named_and_the_rest_works(monkeypatch):
    own = registry.Registry[Measure]("measure")
    own.register(get("mi"))
    points = [
        EntryPoint("own", "aegis_lacks_this:MEASURE", "aegis.measures"),
        EntryPoint("chi2", "aegis.measures.catalog:MEASURES", "aegis.measures"),
    ]
    monkeypatch.setattr(EntryPoint, "load", load_one(get("chi2")))
    monkeypatch.setattr(registry, "entry_points", lambda group: points)
    with pytest.warns(PackageWarning, match="aegis_lacks_this:MEASURE"):
        assert own.names() == ("mi", "chi2")
    with pytest.raises(PolicyError) as refused:
        own.get("own")
    assert "ModuleNotFoundError" in refused.value.message
    assert "uninstall it" in refused.value.hint
    with pytest.raises(PolicyError, match="Unknown measure"):
        own.get("no-such-measure")


def load_one(measure):
    """Return an `EntryPoint.load` that finds one measure, and nothing that Aegis lacks."""

    def load(point):
        if "lacks" in point.value:
            raise ModuleNotFoundError(point.value)
        return measure

    return load


def test_an_unknown_measure_is_answered_with_the_nearest():
    with pytest.raises(
        PolicyError, match=r"Unknown measure 'adjusted-pilai'.*Did you mean 'adjusted-pillai'"
    ):
        get("adjusted-pilai")
    for given, near in (("aucc", "held-out-auc"), ("pilai", "adjusted-pillai"), ("MI", "mi")):
        with pytest.raises(PolicyError, match=f"Did you mean '{near}'"):
            get(given)


@pytest.mark.parametrize("measure", list(MEASURES), ids=lambda measure: measure.name)
def test_counts_of_the_other_scope_are_refused(measure):
    attribute = Contingency.of([[1, 2], [3, 4]])
    codes, label = np.array([[0], [1], [1]] * 4), np.array([0, 1, 1] * 4)
    folds, _ = in_parts(codes, label, np.arange(12) % 5)
    sums = folds.joint[:, 0]
    response = Response(sums, sums.sum(axis=1), sums.sum(axis=1))
    folds = replace(folds, response=response)
    columns = ColumnCounts(
        lambda: replace(folds, by_attribute=[ShownLevels(folds.joint)]), np.ones(1)
    )
    configuration = replace(
        cooccurrence(codes, label), folds=dict.fromkeys(Encoding, folds), columns=columns
    )
    fits = measure.scope is Scope.ATTRIBUTE
    right, wrong = (attribute, configuration) if fits else (configuration, attribute)
    assert isinstance(measure(right), float)
    with pytest.raises(InternalError, match="takes a"):
        measure(wrong)


def test_direction_signs():
    assert Direction.HIGHER.sign == 1
    assert Direction.LOWER.sign == -1


def test_importing_measures_stays_light():
    code = (
        "import sys, aegis.measures; "
        "print([m for m in ('pandas', 'sklearn', 'altair', 'ibis', 'scipy') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_the_majority_error_takes_expected_counts_as_they_are():
    expected = np.array([[2.7, 1.3], [1.3, 2.1], [0.0, 0.6]])
    table = Contingency(expected, np.ones(3, dtype=np.int64))
    assert get("g3")(table) == pytest.approx(1 - (2.7 + 2.1 + 0.6) / 8.0)
