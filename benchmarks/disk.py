"""The room on disk that Aegis and the packages that it needs take."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.metadata import Distribution, distribution

from packaging.requirements import Requirement

from benchmarks.measure import Figure

LARGEST = 5
"""Packages that have a figure of their own."""


def disk(_: object) -> Iterator[Figure]:
    """Add up the files of the core and of all packages that it needs."""
    sizes = {name: _megabytes(one) for name, one in _needed("aegis-advisor").items()}
    yield Figure("disk", "all packages", sum(sizes.values()), "MB", note=f"{len(sizes)} packages")
    for name in sorted(sizes, key=lambda name: -sizes[name])[:LARGEST]:
        yield Figure("disk", name, sizes[name], "MB")


def _needed(name: str) -> dict[str, Distribution]:
    """Return a distribution and all that it requires without extras, by name."""
    found: dict[str, Distribution] = {}
    names = [name]
    while names:
        one = distribution(names.pop())
        if one.name in found:
            continue
        found[one.name] = one
        names += [
            requirement.name
            for requirement in map(Requirement, one.requires or ())
            if requirement.marker is None or requirement.marker.evaluate({"extra": ""})
        ]
    return found


def _megabytes(one: Distribution) -> float:
    files = [path.locate() for path in one.files or ()]
    return sum(path.stat().st_size for path in files if path.is_file()) / 1e6
