"""Kinds of mutated input, each of which ends in a result or in one clear error."""

from __future__ import annotations

import csv
import io
import json
import zipfile
from collections.abc import Callable
from functools import cache
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import yaml

import aegis
from aegis.anonymizers.recipe import load_recipe
from aegis.masks import Hierarchy, Kind, parse_mask
from aegis.policy import dump_policy, load_configurations, load_policy, read_document
from aegis.signing import canonical
from aegis.sources import open_table
from aegis.summary import Summary, load_bundle, save_bundle, summarize, withhold
from aegis.summary.bundle.archive import pack, unpack
from aegis.summary.model import Information

from .mutate import mutated_bytes, mutated_text, mutated_tree

POLICY: dict[str, Any] = {
    "version": 1,
    "label": "y",
    "measure": "adjusted-pillai",
    "privacy": {
        "k": 2,
        "suppression": 0.1,
        "l_diversity": {"attribute": "s", "kind": "entropy", "l": 1.5},
        "t_closeness": {"attribute": "s", "distance": "ordered", "t": 0.9},
    },
    "unseen": "suppress",
    "attributes": {
        "age": {
            "role": "quasi-identifier",
            "masks": [
                "identity",
                {"bucketize": {"width": 5, "origin": 1}},
                {"equal_width": {"count": 3}},
                {"quantiles": {"count": 2}},
                {"round": {"step": 2}},
                {"compose": [{"top_code": {"at": 7}}, {"round": {"digits": 1}}]},
                "suppress",
            ],
        },
        "town": {
            "role": "quasi-identifier",
            "hierarchy": {
                "levels": {"Oslo": ["N", "*"], "Rome": ["S", "*"], "Turku": ["N", "*"]},
            },
            "masks": [
                "identity",
                {"level": 1},
                {"blur": {"keep": 1}},
                {"group": {"groups": {"a": ["Oslo"]}}},
            ],
            "weight": 2.0,
            "order": ["Oslo", "Rome", "Turku"],
        },
        "s": {"role": "sensitive", "masks": ["identity", {"keep_frequent": {"count": 1}}]},
        "f": {"role": "feature", "masks": [{"erase_digits": {"digits": 1}}, "identity"]},
        "day": {"role": "feature", "masks": [{"truncate": {"unit": "month"}}, "identity"]},
        "name": {"role": "identifier"},
    },
    "configurations": {"one": {"age": {"bucketize": {"width": 5}}, "town": "identity"}},
    "anonymizers": ["mondrian", {"mdav": {"seed": 1}}],
}
RECIPE: dict[str, Any] = {
    "method": "mondrian",
    "measure": "adjusted-pillai",
    "options": {"k": 3},
    "seed": 1,
}
_DUMPER = getattr(yaml, "CSafeDumper", yaml.SafeDumper)
SEVERAL = (1, 1, 1, 2, 3, 6)


def table() -> pa.Table:
    """Return twelve rows of the columns that the policy names."""
    return pa.table(
        {
            "age": [1, 2, 3, 4, 5, None, 7, 8, 9, 10, 11, 12],
            "town": ["Oslo", "Rome", None, "Oslo", "Turku", "Rome"] * 2,
            "s": [1, 2, 2, 3] * 3,
            "f": [1.5, float("nan"), None, -2.0, 1e9, 0.0] * 2,
            "day": pa.array([18000, 18001, None, 18400] * 3, pa.int32()).cast(pa.date32()),
            "name": [f"n{i}" for i in range(12)],
            "y": ["u", "v", "u", None, "v", "u"] * 2,
        }
    )


def policies(random: Random, folder: Path) -> None:
    """A policy with changed keys, values, structure or text."""
    text = _yaml(random, POLICY)
    file = folder / "p.yaml"
    file.write_text(text, encoding="utf-8", errors="replace", newline="")
    policy = load_policy(file)
    if random.random() < 0.1:
        again = load_policy(yaml.safe_load(dump_policy(policy)))
        if again != policy and "nan" not in text.lower():
            raise AssertionError("a policy comes back as another one")
        if random.random() < 0.1:
            aegis.advise(table(), again, generate_count=2)


def configurations(random: Random, folder: Path) -> None:
    """Configurations for a policy that is as it was."""
    file = folder / "c.yaml"
    text = _yaml(random, {"configurations": POLICY["configurations"], "measure": "adjusted-pillai"})
    file.write_text(text, encoding="utf-8", errors="replace", newline="")
    found = load_configurations(file, _policy())
    if random.random() < 0.01:
        aegis.apply(table(), _policy(), next(iter(found.values())))


def recipes(random: Random, folder: Path) -> None:
    """Recipes of record-level releases."""
    file = folder / "r.yaml"
    file.write_text(_yaml(random, RECIPE), encoding="utf-8", errors="replace", newline="")
    load_recipe(read_document(file, "recipe"))


def masks(random: Random, folder: Path) -> None:
    """One mask with changed parameters, on a column."""
    listed = [m for a in POLICY["attributes"].values() for m in a.get("masks", ())]
    spec = mutated_tree(random, {"mask": random.choice(listed)}, random.choice(SEVERAL))
    hierarchy = Hierarchy.from_tree(POLICY["attributes"]["town"]["hierarchy"])
    mask = parse_mask(spec.get("mask"), hierarchy=hierarchy)
    for kind in Kind:
        if kind in mask.fits:
            mask.check(kind, "a")


def hierarchies(random: Random, folder: Path) -> None:
    """Hierarchy files and trees."""
    rows = [[f"v{i}", f"g{i // 2}", f"h{i // 4}", "*"] for i in range(random.choice([1, 4, 9]))]
    rows.append(
        random.choice([["NULL", "*", "*", "*"], ["", "g0", "h0", "*"], ["x;y", "g", "h", "*"]])
    )
    if random.random() < 0.5:
        file = folder / "h.csv"
        sink = io.StringIO()
        csv.writer(sink, delimiter=random.choice(";,\t|")).writerows(rows)
        text = mutated_text(random, sink.getvalue(), random.choice(SEVERAL))
        file.write_bytes(_encoded(random, text))
        found = Hierarchy.from_csv(file)
    else:
        tree = {"top": {f"g{i}": [f"v{2 * i}", f"v{2 * i + 1}"] for i in range(3)}}
        levels = {"levels": {row[0]: row[1:] for row in rows}}
        chosen = {"h": random.choice([tree, levels])}
        found = Hierarchy.from_tree(mutated_tree(random, chosen, random.choice(SEVERAL)).get("h"))
    found.uncovered_values(pa.array(["v1", None, "zz"]))
    found.uncovered_values(pa.array([1, None, 3]))
    found.groups(found.height)


def bundles(random: Random, folder: Path) -> None:
    """A bundle whose manifest, arrays or bytes were changed, its digests mostly put right."""
    data, policy = _bundle(random.randrange(4))
    file = folder / "b.aegis"
    if random.random() < 0.1:
        file.write_bytes(mutated_bytes(random, data, random.choice(SEVERAL)))
    else:
        file.write_bytes(_resealed(random, data))
    loaded = load_bundle(file)
    if random.random() < 0.3:
        save_bundle(loaded, folder / "again.aegis")
    if random.random() < 0.05:
        aegis.advise(loaded, policy, generate_count=3)


def tables(random: Random, folder: Path) -> None:
    """Text tables, in dialects and with cells that mean something to some reader.

    A table that was written as CSV says is read with as many rows as were written, whatever is in
    its cells; one that was changed afterwards may be refused.
    """
    nasty = [
        "a",
        "b",
        "'",
        "''",
        '"',
        "x'",
        "'x",
        "a,b",
        "a;b",
        "line\nbreak",
        "#",
        "-1",
        "007",
        "1e3",
        " ",
        "é",
    ]
    width, rows = random.choice([1, 2, 3]), random.choice([1, 2, 20, 60])
    names = [f"c{i}" for i in range(width)]
    cells = [[random.choice(nasty) for _ in names] for _ in range(rows)]
    sink = io.StringIO()
    writer = csv.writer(sink, lineterminator=random.choice(["\n", "\r\n"]), quoting=csv.QUOTE_ALL)
    writer.writerows([names, *cells])
    file = folder / "t.csv"
    changed = random.random() < 0.5
    text = (
        mutated_text(random, sink.getvalue(), random.choice(SEVERAL))
        if changed
        else sink.getvalue()
    )
    file.write_bytes(_encoded(random, text) if changed else text.encode())
    source = open_table(str(file))
    found = source.collect(source.table)
    if changed:
        return
    if found.num_rows != rows:
        raise AssertionError(f"{found.num_rows} rows of {rows}")
    for name, column in zip(names, zip(*cells, strict=True), strict=True):
        read = [None if v is None else str(v) for v in found.column(name).to_pylist()]
        if pa.types.is_string(found.column(name).type) and sorted(map(str, read)) != sorted(column):
            raise AssertionError(f"column {name} is {sorted(set(read) ^ set(column))[:5]}")


KINDS: dict[str, Callable[[Random, Path], None]] = {
    "policy": policies,
    "configuration": configurations,
    "recipe": recipes,
    "mask": masks,
    "hierarchy": hierarchies,
    "bundle": bundles,
    "table": tables,
}
"""Every kind of input: writes one that follows from the seed into a folder, and reads it."""
SHARES = {
    "policy": 22,
    "configuration": 14,
    "recipe": 8,
    "mask": 14,
    "hierarchy": 14,
    "bundle": 22,
    "table": 6,
}
"""How many of a hundred inputs are of each kind."""


def _yaml(random: Random, tree: dict[str, Any]) -> str:
    """Return YAML of a tree, of which structure, text or both were changed."""
    how = random.randrange(4)
    if how:
        tree = mutated_tree(random, tree, random.choice(SEVERAL))
    text = yaml.dump(tree, Dumper=_DUMPER, sort_keys=False, allow_unicode=True)
    return text if how in (1, 2) else mutated_text(random, text, random.choice(SEVERAL))


def _encoded(random: Random, text: str) -> bytes:
    data = text.encode(random.choice(["utf-8"] * 6 + ["utf-8-sig", "utf-16", "latin-1"]), "replace")
    return mutated_bytes(random, data) if random.random() < 0.2 else data


@cache
def _policy() -> Any:
    return load_policy(POLICY)


@cache
def _bundle(which: int) -> tuple[bytes, Any]:
    """Return the bytes of a bundle, and the policy that it was made under."""
    import tempfile

    raw = {**POLICY, "configurations": {}, "anonymizers": []}
    if which == 1:  # the label has masks of its own
        raw = {**raw, "attributes": {**raw["attributes"], "y": {"role": "sensitive"}}}
    if which == 2:
        noisy = {
            "role": "feature",
            "masks": [{"laplace": {"epsilon": 1, "lower": -5, "upper": 15, "resolution": 1}}],
        }
        raw = {**raw, "attributes": {**raw["attributes"], "f": noisy}}
    policy = load_policy(raw)
    summary: Summary = summarize(table(), policy, sample_rows=8 if which == 1 else 1000)
    if which == 3:
        summary = withhold(summary, Information.HISTOGRAM)
    with tempfile.TemporaryDirectory() as folder:
        save_bundle(summary, Path(folder) / "b.aegis")
        return (Path(folder) / "b.aegis").read_bytes(), policy


def _resealed(random: Random, data: bytes) -> bytes:
    """Return a bundle with a changed manifest or arrays, whose digests fit again."""
    import hashlib

    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        parts = {name: archive.read(name) for name in archive.namelist()}
    manifest = json.loads(parts.pop("manifest.json"))
    how = random.random()
    if how < 0.2:  # what contradicts nothing
        harmless = {"seed": random.randrange(100), "unnamed": ["z"], "digests": {"policy": "x"}}
        name = random.choice(sorted(harmless))
        manifest["summary"][name] = harmless[name]
    elif how < 0.5:
        manifest["summary"] = mutated_tree(
            random, {"s": manifest["summary"]}, random.choice(SEVERAL)
        ).get("s")
    else:
        for _ in range(random.choice(SEVERAL)):
            name = random.choice(sorted(parts))
            parts[name] = _changed_member(random, parts[name], parts)
    manifest["members"] = {
        name: {"size": len(part), "sha256": hashlib.sha256(part).hexdigest()}
        for name, part in parts.items()
    }
    manifest.pop("digest")
    manifest["digest"] = hashlib.sha256(canonical(manifest)).hexdigest()
    sink = io.BytesIO()
    with zipfile.ZipFile(sink, "w", zipfile.ZIP_STORED) as archive:
        archive.writestr("manifest.json", json.dumps(manifest))
        for name, part in parts.items():
            archive.writestr(name, part)
    return sink.getvalue()


def _changed_member(random: Random, part: bytes, parts: dict[str, bytes]) -> bytes:
    how = random.random()
    if how < 0.1:
        return mutated_bytes(random, part, random.choice(SEVERAL))
    if how < 0.15:
        return parts[random.choice(sorted(parts))]
    try:
        columns: dict[str, Any] = dict(unpack(part))
    except (OSError, ValueError, pa.ArrowException):  # changed before
        return part
    name = random.choice(sorted(columns))
    column = columns[name]
    if not pa.types.is_integer(column.type) or column.null_count:
        columns[name] = column[random.choice([0, 1]) : random.choice([1, len(column)])]
        return pack(columns)
    array = column.to_numpy(zero_copy_only=False).copy()
    columns[name] = _changed_array(random, array)
    if random.random() < 0.1:
        columns["more"] = array
    return pack(columns)


def _changed_array(random: Random, array: Any) -> Any:
    how = random.randrange(8)
    if how == 0 or not len(array):
        return np.append(array, array[:1]) if len(array) else np.zeros(3, dtype=array.dtype)
    if how == 1:
        return array[:-1]
    if how == 2:
        return array.astype(random.choice([np.int64, np.int32, np.int8, np.float64]))
    limits = np.iinfo(array.dtype)
    place = random.randrange(len(array))
    large = [-1, 0, 1, 10, 2**30, 2**31 - 1, 2**53, 2**62, limits.max, limits.min]
    if how < 5:
        array[place] = min(max(random.choice(large), limits.min), limits.max)
    elif how < 7 and limits.min < array[place] < limits.max:
        array[place] += random.choice([-1, 1])
    else:  # two that make up for one another
        other = random.randrange(len(array))
        array[place], array[other] = array[other], array[place]
    return array
