"""The 30 cases that both programs search, as policies of Aegis and as arguments of ArxSearch.java."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.measure import SHARED

K = 5
ADULT_QUASI = (
    "sex",
    "age",
    "race",
    "marital-status",
    "education",
    "native-country",
    "workclass",
    "occupation",
    "salary-class",
)
FARS_QUASI = (
    "iage",
    "irace",
    "isex",
    "ihispanic",
    "istatenum",
    "iinjury",
    "ideathday",
    "ideathmon",
)
OBJECTIVES = {
    "NU entropy": ("nu-entropy(over=quasi-identifiers)", "entropy"),
    "loss": ("loss(mean=geometric, over=quasi-identifiers)", "loss"),
    "classification": ("classification(charges=arx)", "classification"),
}
"""The objective of Aegis and the quality model of ARX for each loss: both compute the same figure."""


@dataclass(frozen=True)
class Table:
    """A table with a hierarchy for each column.

    Attributes
    ----------
    name
        What figures call it; "" for Adult.
    folder, file, prefix
        The folder, the file with the rows, and the beginning of the names of the hierarchies' files.
    label
        The column that a policy names as its label.
    """

    name: str
    folder: Path
    file: str
    prefix: str
    label: str

    @property
    def path(self) -> Path:
        """The file with the rows."""
        return self.folder / self.file

    def hierarchy(self, column: str) -> str:
        """Return the file with the hierarchy of a column."""
        return str(self.folder / f"{self.prefix}{column}.csv")


ADULT = Table("", SHARED / "arx_adult", "adult.csv", "adult_hierarchy_", "salary-class")
FARS = Table("FARS subset", SHARED / "fars", "fars_subset.csv", "fars_hierarchy_", "iinjury")


@dataclass(frozen=True)
class Model:
    """A privacy model of a sensitive column.

    Attributes
    ----------
    name
        What figures call it.
    column
        The sensitive column.
    rule
        The key of the policy, and its options without the column.
    words
        The model and its parameters as ArxSearch.java reads them.
    """

    name: str
    column: str
    rule: tuple[str, dict[str, Any]]
    words: str


@dataclass(frozen=True)
class Case:
    """A search that both programs can do.

    Attributes
    ----------
    table, quasi
        The table and its quasi-identifiers.
    loss
        A key of `OBJECTIVES`.
    suppression
        The largest share of rows that may be suppressed.
    model
        The privacy model next to k-anonymity, or None.
    """

    table: Table
    quasi: tuple[str, ...]
    loss: str
    suppression: float
    model: Model | None = None

    @property
    def name(self) -> str:
        """What figures call the case."""
        parts = [self.table.name, f"{len(self.quasi)} QI", self.loss]
        parts += [self.model.name] if self.model else []
        return ", ".join([*filter(None, parts), f"s = {self.suppression:.0%}"])

    @property
    def objective(self) -> str:
        """The objective of the search by Aegis."""
        return OBJECTIVES[self.loss][0]

    def rules(self) -> dict[str, Any]:
        """Return the policy."""
        attributes: dict[str, Any] = {
            name: {"role": "quasi-identifier", "hierarchy": self.table.hierarchy(name)}
            for name in self.quasi
        }
        privacy: dict[str, Any] = {"k": K, "suppression": self.suppression}
        if self.model is not None:
            key, options = self.model.rule
            privacy[key] = {"attribute": self.model.column, **options}
            attributes[self.model.column] = {
                "role": "sensitive",
                "masks": ["identity"],
                "hierarchy": self.table.hierarchy(self.model.column),
            }
        return {
            "version": 1,
            "label": self.table.label,
            "privacy": privacy,
            "attributes": attributes,
        }

    def arguments(self) -> list[str]:
        """Return the arguments of ArxSearch.java."""
        words = {
            "table": str(self.table.path),
            "k": str(K),
            "suppression": str(self.suppression),
            "loss": OBJECTIVES[self.loss][1],
        }
        if self.loss == "classification":
            words["label"] = self.table.label
        if self.model is not None:
            words["sensitive"] = self.model.column
            words["model"] = self.model.words
            words["hierarchy"] = self.table.hierarchy(self.model.column)
        words |= {f"qi:{name}": self.table.hierarchy(name) for name in self.quasi}
        return [f"{key}={value}" for key, value in words.items()]


def _diversity(name: str, options: dict[str, Any], words: str) -> Model:
    return Model(name, "salary-class", ("l_diversity", options), words)


def _closeness(distance: str) -> Model:
    options = {"t": 0.2, "distance": distance, "reference": "input"}
    name = f"t-closeness 0.2, {distance}"
    return Model(name, "occupation", ("t_closeness", options), f"{distance} 0.2")


def _likeness(kind: str) -> Model:
    options = {"beta": 2, "kind": kind, "reference": "input"}
    return Model(f"{kind} beta-likeness 2", "occupation", ("beta_likeness", options), f"{kind} 2")


MODELS = (
    _diversity("distinct 2-diversity", {"kind": "distinct", "l": 2}, "distinct 2"),
    _diversity("entropy 1.3-diversity", {"kind": "entropy", "l": 1.3}, "entropy 1.3"),
    _diversity(
        "recursive (4, 2)-diversity", {"kind": "recursive", "c": 4, "l": 2}, "recursive 4 2"
    ),
    *map(_closeness, ("equal", "hierarchical", "ordered")),
    *map(_likeness, ("basic", "enhanced")),
)
CASES = (
    *(
        Case(ADULT, ADULT_QUASI[:count], loss, share)
        for count, loss in (
            (9, "NU entropy"),
            (9, "loss"),
            (8, "loss"),
            (8, "classification"),
        )
        for share in (0.0, 0.02, 0.05)
    ),
    *(
        Case(ADULT, ADULT_QUASI[: ADULT_QUASI.index(model.column)], "NU entropy", share, model)
        for model in MODELS
        for share in (0.0, 0.05)
    ),
    *(Case(FARS, FARS_QUASI, "loss", share) for share in (0.0, 0.05)),
)
"""Every case of the page on ARX."""
