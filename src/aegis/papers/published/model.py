"""Hold the counts of masked tables by name, with known counts and mappings of raw values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from aegis.arrays import Ints
from aegis.papers.reconstruction import MaskedJoint
from aegis.policy import Terms
from aegis.summary import Summary

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
        The summary of each masked table, by the name of its configuration. The masks of the
        configuration are not known.
    histograms
        For each attribute, the number of rows of each raw value, if known.
    mappings
        For each configuration and attribute, the raw values that masked values may represent, if
        known.
    marginal
        Configurations for which only contingency tables of each attribute and the label are known.
        Combinations of attributes are then not known, so neither rules on classes nor measures of
        several attributes are possible.
    """

    tables: Mapping[str, Summary]
    histograms: Mapping[str, Histogram] = field(default_factory=dict)
    mappings: Mapping[str, Mapping[str, Possible]] = field(default_factory=dict)
    marginal: frozenset[str] = frozenset()

    @property
    def first(self) -> Summary:
        """The summary of the first table.

        Label, attributes and rows are the same for all tables.
        """
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
        """Return, for the masked table `name`, how many rows each masked value of an attribute and
        each label class have, together with the raw values that each masked value may represent.

        Return None if these raw values (the atoms) are not known.
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
) -> Ints | None:
    """Return, for each of the V raw values in `domain`, the index in `shown` of its masked value,
    shape (V,).

    Return None if it is not known which masked value a raw value has. `possible` lists the raw
    values of each masked value. If it is None, they are known in two cases: the table shows a
    single value for all raw values, or it shows all raw values.
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
