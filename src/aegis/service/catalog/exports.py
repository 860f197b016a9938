"""Describe data sets and releases for other catalogs, in Croissant, DCAT and Data Package.

The description of a data set contains its schema and terms but no file, because files are released
on request. The description of a release names the file, its digest and the column types after
masking. Descriptions contain no values of rows.

Sources: Croissant 1.0 (MLCommons), DCAT 3 (W3C), Data Package 2.0 (datapackage.org).
"""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pyarrow as pa
import pyarrow.parquet

from aegis.service.catalog.objects import Objects
from aegis.service.catalog.records import DataSet, ReleaseRecord, Version

_PARQUET = "application/vnd.apache.parquet"
_MEDIA = {".parquet": _PARQUET, ".csv": "text/csv"}
_START = 1 << 16
"""Number of bytes that are read to find the header of a text file."""


@dataclass(frozen=True)
class Field:
    """A column in an exported description. `kind` is `integer`, `number`, `boolean`, `date`,
    `datetime` or `string`. The role is empty if the policy does not list the column.
    """

    name: str
    kind: str
    role: str


@dataclass(frozen=True)
class Described:
    """The description of a data set, or of one of its releases.

    Attributes
    ----------
    identifier, title, description, terms, version, created, publisher
        The fields of the data set in the catalog.
    url
        URL of the page that shows the data set or the release.
    fields
        The columns of the data set or of the released file.
    file, media, download
        The masked file, its media type and its download URL; None and empty texts for a data set.
    """

    identifier: str
    title: str
    description: str
    terms: str
    version: str
    created: datetime
    publisher: str
    url: str
    fields: tuple[Field, ...]
    file: ReleaseRecord | None = None
    media: str = ""
    download: str = ""


def of_data_set(data_set: DataSet, version: Version, origin: str) -> Described:
    """Return the description of a data set for export; `origin` is the URL of the service."""
    kinds = {"numeric": "number"}
    fields = tuple(
        Field(c["name"], kinds.get(c["kind"], "string"), c["role"]) for c in version.columns
    )
    return Described(
        data_set.id,
        data_set.title,
        data_set.description or data_set.title,
        data_set.terms,
        f"{version.number}.0.0",
        version.created,
        data_set.provider.name,
        f"{origin}/data-sets/{data_set.id}",
        fields,
    )


def of_release(
    release: ReleaseRecord, data_set: DataSet, version: Version, objects: Objects, origin: str
) -> Described:
    """Describe a release with the columns of its file. `origin` is the URL of the service."""
    entry = of_data_set(data_set, version, origin)
    roles = {field.name: field.role for field in entry.fields} | {data_set.label: "label"}
    fields = tuple(
        Field(name, kind, roles.get(name, "")) for name, kind in _columns(release, objects)
    )
    return replace(
        entry,
        identifier=f"{entry.identifier}-{release.request_id[:8]}",
        title=f"{entry.title}, masked",
        created=release.created,
        url=f"{origin}/requests/{release.request_id}",
        fields=fields,
        file=release,
        media=_MEDIA[Path(release.file_name).suffix],
        download=f"{origin}/api/v1/requests/{release.request_id}/download",
    )


def _columns(release: ReleaseRecord, objects: Objects) -> Sequence[tuple[str, str]]:
    if release.file_name.endswith(".csv"):
        start = objects.part(release.object_key, 0, min(release.size, _START))
        header = next(csv.reader(io.StringIO(start.decode("utf-8", "replace"))))
        return [(name, "string") for name in header]
    end = objects.part(release.object_key, max(release.size - _START, 0), release.size)
    footer = int.from_bytes(end[-8:-4], "little") + 8
    if footer > len(end):
        end = objects.part(release.object_key, max(release.size - footer, 0), release.size)
    schema = pyarrow.parquet.read_schema(io.BytesIO(b"PAR1" + end[-footer:]))
    return [(field.name, _kind(field.type)) for field in schema]


def _kind(kind: pa.DataType) -> str:
    """Return Data Package's name for a column type."""
    for fits, name in (
        (pa.types.is_boolean, "boolean"),
        (pa.types.is_integer, "integer"),
        (pa.types.is_floating, "number"),
        (pa.types.is_decimal, "number"),
        (pa.types.is_date, "date"),
        (pa.types.is_timestamp, "datetime"),
    ):
        if fits(kind):
            return name
    return "string"


_CROISSANT_TYPES = {
    "integer": "sc:Integer",
    "number": "sc:Float",
    "boolean": "sc:Boolean",
    "date": "sc:Date",
    "datetime": "sc:DateTime",
    "string": "sc:Text",
}
_CROISSANT_TERMS = (
    "citeAs column equivalentProperty samplingRate extract field fileProperty fileObject fileSet "
    "format includes isLiveDataset jsonPath key md5 parentField path recordSet references regex "
    "repeated replace separator source subField transform"
)
_CROISSANT_CONTEXT = {
    "@language": "en",
    "@vocab": "https://schema.org/",
    **{term: f"cr:{term}" for term in _CROISSANT_TERMS.split()},
    "conformsTo": "dct:conformsTo",
    "cr": "http://mlcommons.org/croissant/",
    "rai": "http://mlcommons.org/croissant/RAI/",
    "data": {"@id": "cr:data", "@type": "@json"},
    "dataType": {"@id": "cr:dataType", "@type": "@vocab"},
    "dct": "http://purl.org/dc/terms/",
    "examples": {"@id": "cr:examples", "@type": "@json"},
    "sc": "https://schema.org/",
}


def croissant(entry: Described) -> dict[str, Any]:
    """Write a description in Croissant 1.0. Croissant's record sets need a file, so the columns of
    a data set are in `variableMeasured`.
    """
    document: dict[str, Any] = {
        "@context": _CROISSANT_CONTEXT,
        "@type": "sc:Dataset",
        "conformsTo": "http://mlcommons.org/croissant/1.0",
        "name": entry.identifier,
        "alternateName": entry.title,
        "description": entry.description,
        "url": entry.url,
        "version": entry.version,
        "datePublished": entry.created.date().isoformat(),
        "license": f"{entry.url}#terms",
        "usageInfo": entry.terms,
        "creator": {"@type": "sc:Organization", "name": entry.publisher},
        "isAccessibleForFree": True,
        "variableMeasured": [
            {"@type": "sc:PropertyValue", "name": f.name, "description": f.role}
            for f in entry.fields
        ],
    }
    return document if entry.file is None else document | _croissant_file(entry, entry.file)


def _croissant_file(entry: Described, file: ReleaseRecord) -> dict[str, Any]:
    """Return the parts of a Croissant document on a file and on its columns."""
    fields = [
        {
            "@type": "cr:Field",
            "@id": f"table/column-{index}",
            "name": f"table/column-{index}",
            "description": f"{field.name} ({field.role})" if field.role else field.name,
            "dataType": _CROISSANT_TYPES[field.kind],
            "source": {"fileObject": {"@id": "masked"}, "extract": {"column": field.name}},
        }
        for index, field in enumerate(entry.fields)
    ]
    media = "application/x-parquet" if entry.media == _PARQUET else entry.media
    return {
        "distribution": [
            {
                "@type": "cr:FileObject",
                "@id": "masked",
                "name": file.file_name,
                "description": "The masked table.",
                "contentUrl": entry.download,
                "contentSize": f"{file.size} B",
                "encodingFormat": media,
                "sha256": file.digest,
            }
        ],
        "recordSet": [
            {
                "@type": "cr:RecordSet",
                "@id": "table",
                "name": "table",
                "description": "Rows of the masked table.",
                "field": fields,
            }
        ],
    }


def dcat(entry: Described) -> dict[str, Any]:
    """Write a description in DCAT 3, as self-contained JSON-LD."""
    distribution: dict[str, Any] = {
        "@id": f"{entry.url}#distribution",
        "@type": "dcat:Distribution",
        "dct:title": f"{entry.title}: released on request",
        "dcat:accessURL": {"@id": entry.url},
    }
    if entry.file is not None:
        distribution |= {
            "dct:title": entry.file.file_name,
            "dcat:downloadURL": {"@id": entry.download},
            "dcat:mediaType": {
                "@id": f"https://www.iana.org/assignments/media-types/{entry.media}"
            },
            "dcat:byteSize": {"@value": str(entry.file.size), "@type": "xsd:nonNegativeInteger"},
            "spdx:checksum": {
                "@type": "spdx:Checksum",
                "spdx:algorithm": {"@id": "spdx:checksumAlgorithm_sha256"},
                "spdx:checksumValue": {"@value": entry.file.digest, "@type": "xsd:hexBinary"},
            },
        }
    rights = entry.terms or "Released on request, after approval."
    return {
        "@context": {
            "dcat": "http://www.w3.org/ns/dcat#",
            "dct": "http://purl.org/dc/terms/",
            "foaf": "http://xmlns.com/foaf/0.1/",
            "rdfs": "http://www.w3.org/2000/01/rdf-schema#",
            "spdx": "http://spdx.org/rdf/terms#",
            "xsd": "http://www.w3.org/2001/XMLSchema#",
        },
        "@id": entry.url,
        "@type": "dcat:Dataset",
        "dct:identifier": entry.identifier,
        "dct:title": entry.title,
        "dct:description": entry.description,
        "dcat:version": entry.version,
        "dcat:keyword": [field.name for field in entry.fields],
        "dct:issued": {
            "@value": entry.created.isoformat(timespec="seconds"),
            "@type": "xsd:dateTime",
        },
        "dct:publisher": {"@type": "foaf:Agent", "foaf:name": entry.publisher},
        "dct:accessRights": {"@type": "dct:RightsStatement", "rdfs:label": rights},
        "dcat:landingPage": {"@id": entry.url},
        "dcat:distribution": distribution,
    }


def data_package(entry: Described) -> dict[str, Any]:
    """Write a description as a Data Package 2.0."""
    fields = [
        {"name": f.name, "type": f.kind, **({"description": f.role} if f.role else {})}
        for f in entry.fields
    ]
    resource: dict[str, Any] = {
        "name": "table",
        "path": entry.url,
        "description": "Released on request.",
        "schema": {"fields": fields},
    }
    if entry.file is not None:
        resource |= {
            "path": entry.download,
            "description": "The masked table.",
            "format": entry.file.file_name.rsplit(".", 1)[1],
            "mediatype": entry.media,
            "bytes": entry.file.size,
            "hash": f"sha256:{entry.file.digest}",
        }
    return {
        "$schema": "https://datapackage.org/profiles/2.0/datapackage.json",
        "name": entry.identifier,
        "title": entry.title,
        "description": entry.description,
        "homepage": entry.url,
        "version": entry.version,
        "created": entry.created.isoformat(timespec="seconds"),
        "contributors": [{"title": entry.publisher, "roles": ["publisher"]}],
        "resources": [resource],
    }


FORMATS: Mapping[str, tuple[Callable[[Described], dict[str, Any]], str, str]] = MappingProxyType(
    {
        "croissant": (croissant, "application/ld+json", "croissant.json"),
        "dcat": (dcat, "application/ld+json", "dcat.jsonld"),
        "datapackage": (data_package, "application/json", "datapackage.json"),
    }
)
"""For each format: the function that writes it, its media type, and its file name."""
