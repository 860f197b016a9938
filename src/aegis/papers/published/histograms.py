"""Read and write histograms and mappings: as JSON or YAML, or one CSV file per attribute."""

from __future__ import annotations

import csv
import json
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from aegis.errors import DataError
from aegis.masks.mapping import text_of
from aegis.papers.published.model import Possible
from aegis.policy import read_mapping
from aegis.summary import Information, Summary


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
    place = Path(path)
    if place.is_dir():
        files = sorted(place.glob("*.csv"))
        if not files:
            raise DataError(f"{place} holds no CSV file.", hint="Name one after each attribute.")
        return {file.stem: _checked(file.stem, _rows_of(file)) for file in files}
    document = _document(place, "histograms")
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
    with tempfile.TemporaryDirectory(dir=target.parent) as made:
        whole = Path(made, "histograms")
        whole.mkdir()
        for name, rows in histograms.items():
            with Path(whole, f"{name}.csv").open("w", newline="", encoding="utf-8") as file:
                csv.writer(file, lineterminator="\n").writerows([(name, "rows"), *rows.items()])
        whole.rename(target)


def _document(place: Path, what: str) -> dict[str, Any]:
    """Read a mapping from a JSON or YAML file; errors call the file `what`.

    In JSON, keys stay text. YAML is read in the same way as a policy.
    """
    if place.suffix.lower() != ".json":
        return read_mapping(place, "configuration")
    try:
        content = json.loads(place.read_text(encoding="utf-8"))
    except OSError as error:
        raise DataError(f"{place} cannot be read: {error.strerror or error}.") from error
    except ValueError as error:
        raise DataError(f"{place} is not JSON: {error}.", hint=f"Give the {what}.") from error
    if not isinstance(content, dict):
        raise DataError(f"{place} is not a mapping.", hint=f"Give the {what} by attribute.")
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
    told: dict[str, dict[str, Possible]] = {}
    for name, attributes in document.items():
        if not isinstance(attributes, Mapping):
            raise DataError(_SHAPE.format(path=path), hint=_WRITE)
        told[str(name)] = {str(a): _possible(path, values) for a, values in attributes.items()}
    return told


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
    """Return the number of labelled rows by attribute and raw value.

    Attributes without a histogram in the summary are not in the result.
    """
    told = {}
    for name, attribute in summary.attributes.items():
        if attribute.information is Information.NOTHING:
            continue
        known = None if attribute.domain is None else attribute.domain.counts
        rows = attribute.joint.sum(axis=1) if known is None else known
        values = (
            str(text_of(v)) if v is not None else "null" for v in attribute.all_values.to_pylist()
        )
        told[name] = dict(zip(values, map(int, rows), strict=True))
    return told
