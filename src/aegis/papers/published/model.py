"""Hold the counts of masked tables by name, with known counts and mappings of raw values; store
them in one file (a ZIP of bundles, with a manifest of names and digests).

Histograms and mappings are read from JSON or YAML, or from one CSV file per attribute. Contingency
tables instead of a masked table are enough for measures of single attributes.
"""

from __future__ import annotations

import csv
import hashlib
import json
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from aegis.arrays import Ints
from aegis.errors import AegisError, DataError
from aegis.files import check_output, replacing, temporary_folder
from aegis.masks.categories import text_of
from aegis.papers.estimates.deviation import histogram_of
from aegis.papers.reconstruction import MaskedJoint
from aegis.policy import Terms, read_mapping
from aegis.sources import open_table
from aegis.summary import Information, Summary, load_bundle, save_bundle

Histogram = Mapping[str, int]
"""Number of rows of each raw value of an attribute; the values are text."""
Possible = Mapping[str, tuple[str, ...]]
"""The raw values that each masked value may represent; all values are text."""


@dataclass(frozen=True, eq=False)
class Published:
    """The counts of several masked tables that a publisher made from the same rows.

    Attributes
    ----------
    tables
        The summary of each masked table, by the name of its configuration.
    histograms
        For each attribute, the number of rows of each raw value, if known.
    mappings
        For each configuration and attribute, the raw values that masked values may represent, if
        known.
    marginal
        Configurations for which only contingency tables of each attribute and the label are known.
        They cannot be judged by rules on classes or measures of several attributes.
    """

    tables: Mapping[str, Summary]
    histograms: Mapping[str, Histogram] = field(default_factory=dict)
    mappings: Mapping[str, Mapping[str, Possible]] = field(default_factory=dict)
    marginal: frozenset[str] = frozenset()

    @property
    def first(self) -> Summary:
        """The summary of the first table; all have the same label, attributes and rows."""
        return next(iter(self.tables.values()))

    @property
    def terms(self) -> Terms | None:
        """The policy under which the counts were made, and whether its rule is locked."""
        return self.first.terms

    def domain(self, attribute: str) -> tuple[str, ...]:
        """Return the known raw values of an attribute, as text; empty if none are known.

        Values with 0 rows in a histogram are not included, because no table can show them.
        """
        if attribute in self.histograms:
            return tuple(value for value, rows in self.histograms[attribute].items() if rows)
        named = (
            value
            for mapping in self.mappings.values()
            for values in mapping.get(attribute, {}).values()
            for value in values
        )
        return tuple(dict.fromkeys(named))

    def joint(self, name: str, attribute: str) -> MaskedJoint | None:
        """Return a table's rows by masked value and class, with the raw values that each masked
        value may represent; None if these are not known.
        """
        summary = self.tables[name].attributes[attribute]
        domain = self.domain(attribute)
        labels = summary.unmasked.labels
        possible = self.mappings.get(name, {}).get(attribute)
        codes = codes_of(domain, labels, possible)
        if codes is None:
            return None
        return MaskedJoint(name, codes, summary.joint.astype(np.float64))


def codes_of(
    domain: tuple[str, ...], labels: tuple[str, ...], possible: Possible | None
) -> Ints | None:
    """Return the index in `labels` of the masked value of each raw value, shape (V,); None if unknown.

    `possible` lists the raw values of each masked value. Without it, the result is known if the table
    shows a single value, or all raw values.
    """
    codes = {text: i for i, text in enumerate(labels)}
    if not domain:
        return None
    if possible is not None:
        of = {
            raw: codes[masked]
            for masked, raws in possible.items()
            for raw in raws
            if masked in codes
        }
        if any(value not in of for value in domain):
            return None
        return np.array([of[value] for value in domain], dtype=np.int64)
    if len(labels) == 1:
        return np.zeros(len(domain), dtype=np.int64)
    if set(labels) <= set(domain) and len(labels) == len(domain):
        return np.array([codes[value] for value in domain], dtype=np.int64)
    return None


EXTENSION = ".published"
FORMAT = "aegis-published"
VERSION = 1
PAGE = "published.json"
MOST_BYTES = 4 << 30
"""Most bytes of all bundles together; each bundle is checked again when it is read."""
_FIRST_DATE = (1980, 1, 1, 0, 0, 0)


def save_published(published: Published, path: str | Path, *, force: bool = False) -> None:
    """Write the publisher's data to one file; `load_published` reads an equal object from it.

    Raises
    ------
    PolicyError
        The extension is wrong, or the file exists and `force` is not set.
    """
    target = Path(path)
    check_output(target, force=force, formats=(EXTENSION,))
    members: dict[str, bytes] = {}
    with temporary_folder("published") as folder:
        for number, summary in enumerate(published.tables.values()):
            file = folder / f"{number}.aegis"
            save_bundle(summary, file)
            members[file.name] = file.read_bytes()
    contents = {
        "format": FORMAT,
        "version": VERSION,
        "tables": {
            name: {"member": member, "sha256": hashlib.sha256(members[member]).hexdigest()}
            for name, member in zip(published.tables, members, strict=True)
        },
        "histograms": {name: dict(rows) for name, rows in published.histograms.items()},
        "mappings": {
            name: {a: {m: list(r) for m, r in values.items()} for a, values in attributes.items()}
            for name, attributes in published.mappings.items()
        },
        "marginal": sorted(published.marginal),
    }
    with replacing(target) as temporary, zipfile.ZipFile(temporary, "w") as archive:
        text = json.dumps(contents, indent=1, sort_keys=False).encode()
        for name, data in {PAGE: text, **members}.items():
            archive.writestr(zipfile.ZipInfo(name, _FIRST_DATE), data)


def load_published(path: str | Path) -> Published:
    """Return the data that `save_published` wrote.

    Raises
    ------
    DataError
        The file is missing, is not a file of published counts, or was changed.
    """
    source = Path(path)
    try:
        with zipfile.ZipFile(source) as archive:
            return _read(source, archive)
    except FileNotFoundError as error:
        raise DataError(f"No such file: {source}.", hint="Check the path.") from error
    except (zipfile.BadZipFile, KeyError, TypeError, ValueError, AttributeError, OSError) as error:
        raise DataError(
            f"{source} is not what `aegis publish --masked` wrote: {error}.",
            hint="Make it again from the masked tables.",
        ) from error


def _read(source: Path, archive: zipfile.ZipFile) -> Published:
    sizes = sum(entry.file_size for entry in archive.infolist())
    if sizes > MOST_BYTES or any(e.compress_type != zipfile.ZIP_STORED for e in archive.infolist()):
        raise ValueError("it declares more bytes than are allowed, or is compressed")
    contents: dict[str, Any] = json.loads(archive.read(PAGE))
    if contents.get("format") != FORMAT or contents.get("version") != VERSION:
        raise ValueError(f"format {contents.get('format')!r}, version {contents.get('version')!r}")
    tables = {}
    with temporary_folder("published") as folder:
        for number, (name, entry) in enumerate(contents["tables"].items()):
            data = archive.read(entry["member"])
            if hashlib.sha256(data).hexdigest() != entry["sha256"]:
                raise ValueError(f"the digest of {name} does not fit")
            file = folder / f"{number}.aegis"
            file.write_bytes(data)
            try:
                tables[str(name)] = load_bundle(file)
            except AegisError as error:
                raise ValueError(
                    f"{name}: {error.message.replace(str(file), str(source))}"
                ) from error
    if not tables:
        raise ValueError("it holds no table")
    return Published(
        tables,
        {
            str(a): {str(v): int(n) for v, n in rows.items()}
            for a, rows in contents["histograms"].items()
        },
        {
            str(name): {
                str(a): {str(m): tuple(map(str, raws)) for m, raws in values.items()}
                for a, values in attributes.items()
            }
            for name, attributes in contents["mappings"].items()
        },
        frozenset(map(str, contents.get("marginal", ()))) & frozenset(tables),
    )


def read_histograms(path: str | Path) -> dict[str, dict[str, int]]:
    """Read the number of rows of each raw value, for each attribute.

    Parameters
    ----------
    path
        `{attribute: {value: rows}}` as JSON or YAML; or a folder with a CSV file for each
        attribute, named after the attribute, with a header and two columns: value, number of rows.

    Raises
    ------
    DataError
        A file cannot be read, or a number of rows is not an integer of at least 0.
    """
    source = Path(path)
    if source.is_dir():
        files = sorted(source.glob("*.csv"))
        if not files:
            raise DataError(f"{source} holds no CSV file.", hint="Name one after each attribute.")
        return {file.stem: _checked(file.stem, _rows_of(file)) for file in files}
    document = _document(source, "histograms")
    return {str(name): _checked(str(name), rows) for name, rows in document.items()}


def write_histograms(histograms: Mapping[str, Mapping[str, int]], folder: str | Path) -> None:
    """Write one CSV file per attribute into a new folder, which `read_histograms` can read.

    Raises
    ------
    DataError
        The folder exists, or an attribute has a name that cannot be the name of a file.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from aegis.papers.published import read_histograms, write_histograms
    >>> folder = pathlib.Path(tempfile.mkdtemp()) / "histograms"
    >>> write_histograms({"age": {"25": 2, "35": 1}}, folder)
    >>> read_histograms(folder)
    {'age': {'25': 2, '35': 1}}
    """
    target = Path(folder)
    if target.exists():
        raise DataError(f"{target} exists.", hint="Name a folder that does not exist.")
    for name in histograms:
        if not name or "\0" in name or Path(name).name != name:
            raise DataError(f"No file can be named {name!r}.", hint="Write JSON instead.")
    with temporary_folder("histograms", target.parent) as scratch:
        new_folder = scratch / "histograms"
        new_folder.mkdir()
        for name, rows in histograms.items():
            with Path(new_folder, f"{name}.csv").open("w", newline="", encoding="utf-8") as file:
                csv.writer(file, lineterminator="\n").writerows([(name, "rows"), *rows.items()])
        new_folder.rename(target)


def _document(path: Path, what: str) -> dict[str, Any]:
    """Read a mapping from a JSON or YAML file. `what` is the name of the file in error messages."""
    if path.suffix.lower() != ".json":
        return read_mapping(path, "configuration")
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror or error}.") from error
    except ValueError as error:
        raise DataError(f"{path} is not JSON: {error}.", hint=f"Give the {what}.") from error
    if not isinstance(content, dict):
        raise DataError(f"{path} is not a mapping.", hint=f"Give the {what} by attribute.")
    return content


def _rows_of(file: Path) -> dict[str, Any]:
    try:
        with file.open(newline="", encoding="utf-8") as text:
            lines = list(csv.reader(text))[1:]
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise DataError(f"{file} cannot be read: {error}.", hint="Give CSV in UTF-8.") from error
    if any(len(line) != 2 for line in lines):
        raise DataError(f"{file} has not two columns.", hint="Give the value and its rows.")
    return dict(lines)


def _checked(name: str, rows: object) -> dict[str, int]:
    if not isinstance(rows, Mapping) or not rows:
        raise DataError(
            f"The histogram of {name!r} is {rows!r}.", hint="Give the rows of each raw value."
        )
    counted = {}
    for value, count in rows.items():
        text = str(count)
        if isinstance(count, bool) or not text.isdecimal():
            raise DataError(
                f"The histogram of {name!r} has {count!r} rows of {value!r}.",
                hint="Give a whole number from 0.",
            )
        counted[str(text_of(value))] = int(text)
    return counted


def read_mapping_of(path: str | Path) -> dict[str, dict[str, Possible]]:
    """Read the raw values of masked values: `{configuration: {attribute: {masked: [raw, ...]}}}`.

    Raises
    ------
    DataError
        The file cannot be read, or has another structure.
    """
    document = _document(Path(path), "mapping")
    mappings: dict[str, dict[str, Possible]] = {}
    for name, attributes in document.items():
        if not isinstance(attributes, Mapping):
            raise DataError(_SHAPE.format(path=path), hint=_WRITE)
        mappings[str(name)] = {str(a): _possible(path, values) for a, values in attributes.items()}
    return mappings


_SHAPE = "{path} does not say what masked values represent."
_WRITE = "Write {configuration: {attribute: {masked value: [raw values]}}}."


def _possible(path: str | Path, values: object) -> Possible:
    if not isinstance(values, Mapping) or not all(isinstance(v, list) for v in values.values()):
        raise DataError(_SHAPE.format(path=path), hint=_WRITE)
    return {
        str(text_of(masked)): tuple(str(text_of(raw)) for raw in raws)
        for masked, raws in values.items()
    }


def histograms_of(summary: Summary) -> dict[str, dict[str, int]]:
    """Return labelled rows by attribute and raw value, where the summary has histograms."""
    histograms = {}
    for name, attribute in summary.attributes.items():
        if attribute.information is Information.NOTHING:
            continue
        values = (
            str(text_of(v)) if v is not None else "null" for v in attribute.all_values.to_pylist()
        )
        histograms[name] = dict(zip(values, map(int, histogram_of(attribute)), strict=True))
    return histograms


Contingencies = Mapping[str, Mapping[tuple[str | None, str], int]]
"""Number of rows by attribute, masked value and label; values and labels are text, None is null."""

COLUMNS = ("attribute", "value", "label", "rows")
"""Columns of the file; it has a line for each cell that is not empty."""
MOST_ROWS = 100_000_000
"""Most rows of the tables of one configuration, because the module writes out each row once."""


def read_contingencies(table: Any) -> dict[str, dict[tuple[str | None, str], int]]:
    """Read the contingency tables of a configuration: rows by attribute, value and label.

    Parameters
    ----------
    table
        Anything that `aegis.sources.open_table` opens, with the columns `attribute`, `value`,
        `label` and `rows`, with one line for each cell of each attribute's table.

    Raises
    ------
    DataError
        A column is missing, a number of rows is not an integer of at least 0, a label is null, or a
        cell occurs twice.
    """
    source = open_table(table)
    missing = [name for name in COLUMNS if name not in source.columns]
    if missing:
        raise DataError(
            f"{source.origin} has no column {', '.join(map(repr, missing))}.",
            hint=f"Contingency tables have the columns {', '.join(COLUMNS)}.",
        )
    cells: dict[str, dict[tuple[str | None, str], int]] = {}
    for line in source.table.select(*COLUMNS).to_pyarrow().to_pylist():
        attribute, label = text_of(line["attribute"]), text_of(line["label"])
        value, rows = text_of(line["value"]), _rows(source.origin, line)
        if attribute is None or label is None:
            raise DataError(
                f"{source.origin} has a row without {'attribute' if attribute is None else 'label'}.",
                hint="Leave this row out of the table.",
            )
        of = cells.setdefault(attribute, {})
        if (value, label) in of:
            raise DataError(
                f"{source.origin} gives the rows of {attribute!r} = {value!r} and {label!r} twice.",
                hint="Give each cell once.",
            )
        of[value, label] = rows
    return cells


def _rows(origin: str, line: Mapping[str, Any]) -> int:
    text = text_of(line["rows"])
    if text is None or not text.isdecimal():
        raise DataError(
            f"{origin} has {line['rows']!r} rows of {line['attribute']!r} = {line['value']!r}.",
            hint="Give a whole number from 0.",
        )
    return int(text)


def table_of(cells: Contingencies, label: str, name: str) -> pa.Table:
    """Return a table of texts that has the counts in `cells`, sorted by label; combinations of attributes
    mean nothing.

    Raise `DataError` if attributes differ in the rows of a class, or there are none or too many.
    """
    classes = _classes(cells, name)
    order = sorted(classes)
    columns = {attribute: _column(of, order) for attribute, of in cells.items()}
    counts = np.array([classes[text] for text in order], dtype=np.int64)
    columns[label] = _dictionary_array(np.repeat(np.arange(len(order)), counts), list(order))
    return pa.table(columns)


def _classes(cells: Contingencies, name: str) -> dict[str, int]:
    """Return the rows of each class; refuse contingency tables that disagree."""
    first_name, first = "", dict[str, int]()
    for attribute, of in cells.items():
        sums: dict[str, int] = {}
        for (_, label), rows in of.items():
            if rows:
                sums[label] = sums.get(label, 0) + rows
        if not first_name:
            first_name, first = attribute, sums
        elif sums != first:
            raise DataError(
                f"The contingency tables of {name} disagree: {first_name!r} has the classes {first}, "
                f"{attribute!r} {sums}.",
                hint="Give tables of the same rows, each with all of them.",
            )
    total = sum(first.values())
    if not 0 < total <= MOST_ROWS:
        raise DataError(
            f"The contingency tables of {name} add up to {total:,} rows.",
            hint=f"Give tables of 1 to {MOST_ROWS:,} rows.",
        )
    return first


def _column(of: Mapping[tuple[str | None, str], int], order: list[str]) -> pa.DictionaryArray:
    row_of = {label: i for i, label in enumerate(order)}
    values = list(dict.fromkeys(value for value, _ in of))
    code = {value: i for i, value in enumerate(values)}
    counts = np.zeros((len(order), len(values)), dtype=np.int64)
    for (value, label), rows in of.items():
        if rows:
            counts[row_of[label], code[value]] = rows
    codes = np.repeat(np.tile(np.arange(len(values)), len(order)), counts.ravel())
    return _dictionary_array(codes, values)


def _dictionary_array(codes: Ints, values: list[str] | list[str | None]) -> pa.DictionaryArray:
    null = np.array([value is None for value in values])
    texts = ["" if value is None else value for value in values]
    return pa.DictionaryArray.from_arrays(
        pa.array(codes, pa.int32(), mask=null[codes]), pa.array(texts, pa.string())
    )
