"""Masked tables as aggregates, each under its name, with the known information on raw values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from aegis.papers.reconstruction import MaskedJoint
from aegis.policy import Terms
from aegis.summary import Summary

Histogram = Mapping[str, int]
"""Rows of each raw value of an attribute, values as text."""
Possible = Mapping[str, tuple[str, ...]]
"""The raw values that each masked value may represent, all as text."""


@dataclass(frozen=True, eq=False)
class Published:
    """Masked tables of the same rows, as a publisher holds them.

    Attributes
    ----------
    tables
        The summary of each masked table as it is, by the name of its configuration. A name is
        all that is known of a configuration: it need not say which masks made it.
    histograms
        By attribute, where it is known: rows of each raw value.
    mappings
        By configuration and attribute, where it is known: what masked values may represent.
    marginal
        Configurations of which only contingency tables are known, each attribute's against the
        label: which values share a row is not, nor then what a rule or several attributes ask.
    """

    tables: Mapping[str, Summary]
    histograms: Mapping[str, Histogram] = field(default_factory=dict)
    mappings: Mapping[str, Mapping[str, Possible]] = field(default_factory=dict)
    marginal: frozenset[str] = frozenset()

    @property
    def first(self) -> Summary:
        """The summary of the first table; label, attributes and rows are the same in all tables."""
        return next(iter(self.tables.values()))

    @property
    def terms(self) -> Terms | None:
        """The policy that it was made under."""
        return self.first.terms

    def domain(self, attribute: str) -> tuple[str, ...]:
        """Return the known raw values of an attribute; empty if none are known.

        Values that a histogram names without a row are left out: no table can show them.
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
        """Return the masked joint of an attribute in a table, as evidence on its raw values.

        None if what its masked values represent is not known.
        """
        summary = self.tables[name].attributes[attribute]
        domain = self.domain(attribute)
        shown = summary.unmasked.labels
        possible = self.mappings.get(name, {}).get(attribute)
        codes = codes_of(domain, shown, possible)
        if codes is None:
            return None
        return MaskedJoint(name, codes, summary.joint.astype(np.float64))


def codes_of(
    domain: tuple[str, ...], shown: tuple[str, ...], possible: Possible | None
) -> npt.NDArray[np.int64] | None:
    """Return the masked value of each raw value, shape (V,); None if it is unknown.

    Without a mapping, a table that shows one value hides everything, and one whose values are all
    raw ones hides nothing.
    """
    place = {text: i for i, text in enumerate(shown)}
    if not domain:
        return None
    if possible is not None:
        of = {
            raw: place[masked]
            for masked, raws in possible.items()
            for raw in raws
            if masked in place
        }
        if any(value not in of for value in domain):
            return None
        return np.array([of[value] for value in domain], dtype=np.int64)
    if len(shown) == 1:
        return np.zeros(len(domain), dtype=np.int64)
    if set(shown) <= set(domain) and len(shown) == len(domain):
        return np.array([place[value] for value in domain], dtype=np.int64)
    return None
