"""Descriptions for other catalogs, held against the readers of each format."""

from __future__ import annotations

import copy
import json
import warnings

import pytest
from service_support import released

KINDS = ("croissant", "dcat", "datapackage")


@pytest.fixture(scope="module")
def told(place):
    """Each description, of the data set and of a release."""
    number = released(place)
    with place.client("clara") as clara:
        return {
            (kind, what): get(name, kind)
            for kind in KINDS
            for what, name, get in (
                ("data set", "census", clara.export),
                ("release", number, clara.export_release),
            )
        }


@pytest.mark.parametrize("what", ["data set", "release"])
def test_croissant_is_read_by_its_own_library(told, what, tmp_path):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import mlcroissant

        path = tmp_path / "croissant.json"
        path.write_text(json.dumps(told["croissant", what]))
        read = mlcroissant.Dataset(jsonld=path)
    assert not read.metadata.issues.errors
    assert read.metadata.name.startswith("census")
    columns = [field for table in read.metadata.record_sets for field in table.fields]
    assert len(columns) == (0 if what == "data set" else 3)


@pytest.mark.parametrize("what", ["data set", "release"])
def test_dcat_holds_what_it_must(told, what):
    from rdflib import RDF, Graph, Namespace

    dcat, dct = Namespace("http://www.w3.org/ns/dcat#"), Namespace("http://purl.org/dc/terms/")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        graph = Graph().parse(data=json.dumps(told["dcat", what]), format="json-ld")
    (subject,) = graph.subjects(RDF.type, dcat.Dataset)
    for name in ("title", "description", "publisher", "accessRights", "identifier", "issued"):
        assert len(list(graph.objects(subject, dct[name]))) == 1, name
    (distribution,) = graph.objects(subject, dcat.distribution)
    assert graph.value(distribution, dcat.accessURL)
    assert bool(graph.value(distribution, dcat.downloadURL)) is (what == "release")


@pytest.mark.parametrize("what", ["data set", "release"])
def test_a_data_package_is_read_by_its_own_library(told, what):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import frictionless

        document = told["datapackage", what]
        # It takes what it reads out of the mapping that it is given.
        package = frictionless.Package.from_descriptor(copy.deepcopy(document))
        errors = list(frictionless.Package.metadata_validate(copy.deepcopy(document)))
    assert errors == []
    fields = {field.name: field.type for field in package.resources[0].schema.fields}
    assert {"age", "sex"} <= set(fields)
    assert "canary" not in fields or what == "data set"


def test_what_is_told_of_a_release_is_its_file(told, place, tmp_path):
    document = told["datapackage", "release"]["resources"][0]
    number = document["path"].split("/requests/")[1].split("/")[0]
    with place.client("clara") as clara:
        path = clara.download(number, tmp_path / "m.parquet")
    from hashlib import sha256

    assert document["hash"] == f"sha256:{sha256(path.read_bytes()).hexdigest()}"
    assert document["bytes"] == path.stat().st_size


def test_the_command_writes_what_the_service_tells(told, place, tmp_path, monkeypatch, capsys):
    from aegis.cli.main import main

    number = (
        told["datapackage", "release"]["resources"][0]["path"].split("/requests/")[1].split("/")[0]
    )
    monkeypatch.setenv("AEGIS_URL", place.url)
    monkeypatch.setenv("AEGIS_TOKEN", place.tokens["clara"])

    def run(*words: str) -> int:
        monkeypatch.setattr("sys.argv", ["aegis", "catalog", "export", *words])
        with pytest.raises(SystemExit) as ended:
            main()
        return int(ended.value.code or 0)

    file = tmp_path / "croissant.json"
    assert run("census", "-o", str(file)) == 0
    assert json.loads(file.read_text()) == told["croissant", "data set"]
    assert run("census", "-o", str(file)) == 2
    capsys.readouterr()
    assert run(number, "--release", "--as", "datapackage") == 0
    assert json.loads(capsys.readouterr().out) == told["datapackage", "release"]
    assert run(number[:8], "--as", "datapackage") == 0
    assert json.loads(capsys.readouterr().out) == told["datapackage", "release"]
    assert run("fade") == 2
    assert "no data set and no request fade" in capsys.readouterr().err
    assert run("nothing", "-o", str(tmp_path / "none.json")) == 2
    assert not (tmp_path / "none.json").exists()


def test_an_unknown_format_is_said(place):
    from aegis.service.catalog import CatalogError

    with place.client("clara") as clara, pytest.raises(CatalogError, match="croissant"):
        clara.export("census", "xml")
