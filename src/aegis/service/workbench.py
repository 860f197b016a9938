"""Edit a policy for one table, and compute its results, without the pages.

A bench has a table and a policy. If the rule changes, results come from cached scores. If a role or
mask changes, the table is summarised again.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import pyarrow as pa

import aegis
from aegis.advisor import Advice, Ranked, Scorer
from aegis.advisor.advise import generate
from aegis.advisor.figures import Front, MaskCost, mask_costs
from aegis.advisor.plan import PrivacyPlan, rank_choice
from aegis.advisor.scoring import Choice
from aegis.advisor.search import Prepared, prepare, search_combinations
from aegis.errors import DataError
from aegis.files import SILENT, Progress, write_text
from aegis.measures import Measure
from aegis.policy import Configuration, Policy, Role, dump_policy, policy_mapping
from aegis.policy.suggest.masks import propose_masks
from aegis.present import value_shown
from aegis.privacy import ClassTable, Verdict
from aegis.requests import SEARCH_WORK, SearchRequest
from aegis.service.catalog.errors import NotThere, WrongState
from aegis.service.catalog.flow import configuration_of, policy_in
from aegis.sources import is_table_file, open_part
from aegis.study import Study
from aegis.study.subject import complete_advice

if TYPE_CHECKING:
    from aegis.policy.suggest.facts import ColumnProfile
    from aegis.release import Release

_CONFIGURATIONS_DRAWN = 24
"""Number of random configurations that are ranked with the finest and the coarsest one."""
_BENCHES = 8
"""Largest number of open tables; the one that was not used for longest is closed."""
_MOST_CACHED_CLASSES = 200_000
"""Largest number of cached classes of one configuration."""
_LISTED = 10
"""Number of configurations that a search returns: as in `aegis advise`, so that both find the same."""
_NOTICED = 0.5
"""Seconds that a search waits for the previous one to end, before it starts without its results."""
_NAMED = 200
"""Number of characters of a wrong name that an error repeats."""
_PREVIEW = 8
"""Number of values of each attribute in a preview."""


def _is_file(path: Path) -> bool:
    """Return whether a file exists. If its name is longer than any file's, it does not."""
    try:
        return path.is_file()
    except OSError:
        return False


@dataclass(frozen=True)
class Preview:
    """Examples of an attribute's values under a mask, as pairs of a value and its masked value."""

    attribute: str
    mask: str
    values: tuple[tuple[str, str], ...]

    @property
    def in_words(self) -> str:
        """The examples in one line. If all examples have the same masked value, it is shown once."""
        if all(value == masked for value, masked in self.values):
            return "each value as it is"
        masked_values = {masked for _, masked in self.values}
        if len(self.values) > 1 and len(masked_values) == 1:
            return f"every value → {masked_values.pop()}"
        return "; ".join(f"{value} → {masked}" for value, masked in self.values)


def _value_text(value: object) -> str:
    """Return a value as masks show it, such as 899 instead of 899.0."""
    if value is None:
        return "null"
    return str(value).removesuffix(".0") if isinstance(value, float) else str(value)


@dataclass(frozen=True)
class View:
    """The results for a policy under a measure: the cost of each candidate mask, and a few ranked
    configurations. Admissible ones come first, sorted from the best.
    """

    costs: tuple[MaskCost, ...]
    ranking: tuple[Ranked, ...]
    measure: str

    @property
    def admissible(self) -> int:
        """Number of configurations in the ranking that meet the rule."""
        return sum(ranked.admissible is True for ranked in self.ranking)


@dataclass(frozen=True, eq=False)
class _ScoreCache:
    """Cached scores of masks and configurations. They stay valid if the privacy rule changes.

    A search holds `searching` while it uses `prepared`. `named` is the measure that the policy
    names, or None. `classes` has the equivalence classes of `choices`, the shown configurations
    with their names, as far as they are known.
    """

    prepared: Prepared
    named: str | None
    costs: tuple[MaskCost, ...]
    choices: tuple[tuple[str, Choice], ...]
    classes: dict[tuple[Any, ...], ClassTable] = field(default_factory=dict)
    searching: threading.Lock = field(default_factory=threading.Lock)

    @property
    def measure(self) -> Measure:
        """The measure that the search maximises and the page shows."""
        return self.prepared.searcher.measure

    @property
    def scorer(self) -> Scorer:
        """The scorer of configurations."""
        return self.prepared.searcher.scorer

    def verdict(self, index: int, plan: PrivacyPlan) -> Verdict:
        """Return whether one of the shown configurations meets the rule of `plan`."""
        choice = self.choices[index][1]
        if plan.in_engine or plan.by_population:
            return plan.check(choice)
        key = (index, plan.rule.sensitive, plan.rule.hierarchical, plan.rule.by_leaves)
        table = self.classes.get(key)
        if table is None:
            table = plan.classes(choice)
            if len(table.sizes) <= _MOST_CACHED_CLASSES:
                self.classes[key] = table
        return plan.rule.check(table)

    @classmethod
    def of(cls, study: Study) -> _ScoreCache:
        """Compute the scores for a study, with the measure that its searches maximise."""
        summary = study.summary
        prepared = prepare(summary, study.plan, study.policy)
        scorer, measure = prepared.searcher.scorer, prepared.searcher.measure
        configurations = generate(summary, _CONFIGURATIONS_DRAWN, seed=study.seed)
        return cls(
            prepared,
            study.policy.measure,
            mask_costs(summary, measure.name, scorer=scorer),
            tuple((c.name, scorer.choose(c)) for c in configurations),
        )


@dataclass
class _Watch:
    """The progress of a search, which each report stops if another search has started."""

    bench: Bench
    turn: int

    @contextmanager
    def step(self, title: str, total: float | None = None) -> Iterator[_Watch]:  # noqa: ARG002
        """Start a step of the search; raise `WrongState` if another search has started."""
        self.advance()
        yield self

    def advance(self, amount: float = 1) -> None:  # noqa: ARG002
        """Raise `WrongState` if another search has started."""
        if self.bench._turn != self.turn:
            raise WrongState("Another search was begun.", hint="Nothing to do.")

    def note(self, text: str) -> None:  # noqa: ARG002
        """Raise `WrongState` if another search has started; the text is not shown."""
        self.advance()


@dataclass
class Bench:
    """An open table of the workbench, with the policy that a user edits.

    Attributes
    ----------
    table
        The table's path, a table in memory, or an open source.
    study
        The study of the table under the current policy.
    lock
        Lock for changes.
    profiles
        Facts about each column, as `aegis init` finds them. They are used to propose masks if a
        column gets another role.
    title
        The file, and the sheet or table if the file has several.
    questions
        Questions of `aegis init` that a person must answer.
    """

    table: Any
    study: Study
    identifier: str = field(default_factory=lambda: uuid4().hex[:12])
    lock: threading.RLock = field(default_factory=threading.RLock)
    profiles: Mapping[str, ColumnProfile] = field(default_factory=dict)
    title: str = ""
    questions: tuple[str, ...] = ()
    _scores: _ScoreCache | None = None
    _turn: int = 0
    _advice: Advice | None = None

    @classmethod
    def open(
        cls, table: Any, label: str | None, title: str = "", progress: Progress = SILENT
    ) -> Bench:
        """Open a table with the policy that `aegis init` proposes for it."""
        proposed = aegis.init_policy(table, label=label, progress=progress)
        study = Study(table, proposed.policy, progress=progress)
        return cls(
            table, study, profiles=proposed.profiles, title=title, questions=proposed.warnings
        )

    @property
    def policy(self) -> Policy:
        """The current policy."""
        return self.study.policy

    def take(self, policy: Policy) -> None:
        """Set another policy; the table is summarised again only if roles or masks differ."""
        with self.lock:
            if policy != self.study.policy:
                self._turn += 1
                self._advice = None
            changed = self.study.under(policy)
            if changed.summary is not self.study.summary:
                self._scores = None
            self.study = changed

    def take_form(self, changes: FormChanges) -> bool:
        """Change the policy as the form says; a column with another role gets the masks that `aegis
        init` proposes for it. Return whether the role of an attribute changed.
        """
        policy, changed = edited(self.policy, changes, self._proposed)
        self.take(policy)
        return bool(changed)

    def _proposed(self, name: str, role: Role) -> list[Any]:
        if name not in self.profiles:
            return [mask.spec() for mask in self.policy.attributes[name].masks]
        return [mask.spec() for mask in propose_masks(self.profiles[name].facts, role).masks]

    def view(self) -> View:
        """Return costs of masks and a few ranked configurations under the current policy. If only
        the rule has changed, only the check whether configurations meet it is repeated.
        """
        with self.lock:
            study, scores = self.study, self._cached_scores()
            plan, measure = study.plan, scores.measure
            ranked = [
                rank_choice(name, choice, scores.scorer, plan, measure, scores.verdict(index, plan))
                for index, (name, choice) in enumerate(scores.choices)
            ]
            ranked.sort(key=lambda r: r.ranking_key(measure.direction.sign))
            return View(scores.costs, tuple(ranked), measure.name)

    def _cached_scores(self) -> _ScoreCache:
        scores = self._scores
        if scores is None or scores.named != self.policy.measure:
            scores = self._scores = _ScoreCache.of(self.study)
        return scores

    def best(self, seconds: float | None) -> Advice:
        """Search for the best configuration for at most `seconds`; if None, for as long as `aegis
        advise` would search. Raise `WrongState` if another search has started or the policy has
        changed, so nobody waits for this result.
        """
        with self.lock:
            self._turn += 1
            turn = self._turn
            watch = _Watch(self, turn)
            study, plan = self.study, self.study.plan
            scores = self._cached_scores()
        request = SearchRequest(
            top=_LISTED, time_limit=seconds, work=SEARCH_WORK, explain_best=True
        )
        # Without the lock where the table is not read, so that controls go on moving.
        # A search that was ended by this one notices at its next box, and gives up what is shared.
        # Beside a population it is in the policy which masks are alike.
        shares = scores.searching.acquire(timeout=_NOTICED)
        try:
            with self.lock if plan.in_engine else nullcontext():
                prepared = scores.prepared if shares and not plan.by_population else None
                rows = study._subject.released(self.lock)
                advice = search_combinations(
                    study.summary,
                    plan,
                    study.policy,
                    request,
                    progress=watch,
                    prepared=prepared,
                    released=rows,
                )
        finally:
            if shares:
                scores.searching.release()
        with self.lock:
            watch.advance()
            self._advice = complete_advice(study._subject, advice, None, study.seed)
            return self._advice

    def front(self, span: str, seconds: float) -> Front:
        """Search for about `seconds` in total for the best configuration under each of several
        rules, which `span` names: `k=2,3,5` stands for k = 2, 3 and 5.
        """
        with self.lock:
            return self.study.front(span, time_limit=seconds)

    def preview(self, configuration: Configuration) -> tuple[Preview, ...]:
        """Return examples of original and masked values. They are values of rows, so only the local
        workbench may call this method.
        """
        with self.lock:
            previews = []
            for attribute in self.study.summary.attributes.values():
                candidate = attribute.candidate(configuration.masks[attribute.name])
                count = len(attribute.values)
                places = range(0, count, max(1, count // _PREVIEW))
                pairs = tuple(
                    (
                        _value_text(attribute.values[i].as_py()),
                        str(value_shown(candidate.labels[candidate.groups[i]])),
                    )
                    for i in places
                )
                previews.append(Preview(attribute.name, str(candidate.declared), pairs[:_PREVIEW]))
            return tuple(previews)

    def release(self, configuration: str, folder: Path) -> Release:
        """Mask the table and write it to a folder, with certificate, report, policy and
        configuration. Raise `NoAdmissibleConfiguration` if the written table would not meet the
        rule, so nothing is written. Raise `PolicyError` if the text is not a configuration of this
        policy.
        """
        with self.lock:
            chosen = configuration_of(configuration, self.policy)
            advice = self._advice
            if not advice or not advice.best or advice.best.configuration.spec() != chosen.spec():
                advice = self.study.rank([chosen], methods=())
            folder.mkdir(parents=True, exist_ok=True)
            released = self.study.apply(
                chosen,
                folder / "masked.parquet",
                certificate=folder / "certificate.json",
                force=True,
            )
            self.study.report(advice, folder / "report.html", force=True)
            write_text(folder / "configuration.yaml", configuration)
            write_text(folder / "policy.yaml", self.yaml())
            return released

    def yaml(self) -> str:
        """Return the policy as YAML."""
        return dump_policy(self.policy)


@dataclass(frozen=True)
class FormChanges:
    """The changes that a form makes to a policy: roles, candidates to keep (`masks`) and to add
    (`more`), both by attribute as a policy writes them, and the privacy rule.
    """

    roles: Mapping[str, str]
    masks: Mapping[str, Sequence[Any]]
    more: Mapping[str, Sequence[Any]]
    privacy: Mapping[str, Any]


def edited(
    policy: Policy, changes: FormChanges, propose: Callable[[str, Role], Sequence[Any]]
) -> tuple[Policy, dict[str, Role]]:
    """Return a policy with the changes of the form, and the attributes that get another role, for
    which `propose` returns candidates. Raise `PolicyError` if the result is not a valid policy, and
    `CatalogError` if a mask refers to a file or a variable of this machine.
    """
    mapping, changed = policy_mapping(policy), {}
    for name, entry in mapping["attributes"].items():
        role = changes.roles.get(name, entry["role"])
        masks = changes.masks.get(name, ())
        if role != entry["role"] and role in list(Role):  # another one is refused as it is read
            changed[name] = Role(role)
            masks = propose(name, changed[name])
        masks = [*masks, *changes.more.get(name, ())]
        entry["role"] = role
        if role in ("identifier", "ignore"):
            entry.pop("masks", None)
        elif masks:
            entry["masks"] = masks
    mapping["privacy"] = _of_sensitive(changes.privacy, mapping["attributes"])
    return policy_in(mapping), changed


def _of_sensitive(
    privacy: Mapping[str, Any], attributes: Mapping[str, Mapping[str, Any]]
) -> dict[str, Any]:
    """Return the `privacy` of a policy without criteria on columns that are not sensitive according
    to their role in `attributes`.
    """
    others = {name for name, entry in attributes.items() if entry["role"] != Role.SENSITIVE}
    kept_rule: dict[str, Any] = {}
    for model, criterion in privacy.items():
        listed = criterion if isinstance(criterion, list) else [criterion]
        staying = [
            e for e in listed if not (isinstance(e, Mapping) and e.get("attribute") in others)
        ]
        if staying:
            kept_rule[model] = staying if isinstance(criterion, list) else criterion
    return kept_rule


@dataclass
class Benches:
    """The tables of a folder, and those of them that are open in the workbench. No other folder is
    opened. Each release gets a separate folder in `outputs`.
    """

    folder: Path
    outputs: Path
    _open: OrderedDict[str, Bench] = field(default_factory=OrderedDict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def tables(self) -> list[Path]:
        """Return the paths of the tables relative to the folder, without released files."""
        files = (p for p in self.folder.rglob("*") if is_table_file(p) and p.is_file())
        files = (p for p in files if not p.is_relative_to(self.outputs))
        inside = (p.relative_to(self.folder) for p in files)
        return sorted(p for p in inside if not any(part.startswith(".") for part in p.parts))

    def path_of(self, name: str) -> Path:
        """Return the path of a table in the folder; raise `DataError` if there is no such table."""
        path = (self.folder / name).resolve()
        if not path.is_relative_to(self.folder.resolve()) or not is_table_file(path):
            raise DataError(
                f"{name[:_NAMED]} is not a table of this folder.",
                hint="Choose a table from the list.",
            )
        if not _is_file(path):
            raise DataError(
                f"There is no table {name[:_NAMED]}.", hint="Choose a table from the list."
            )
        return path

    def title_of(self, name: str, part: str | None) -> str:
        """Return the title of a file, or of its sheet or table `part`. Raise `DataError` if there
        is no such file.
        """
        path = self.path_of(name)
        return path.name if part is None else f"{path.name}: {part}"

    def open(
        self, name: str, label: str | None, part: str | None = None, progress: Progress = SILENT
    ) -> Bench:
        """Open a table; `part` is the sheet or table of a file that has several."""
        path, title = self.path_of(name), self.title_of(name, part)
        table = str(path) if part is None else open_part(path, part)
        bench = Bench.open(table, label, title, progress)
        bench.view()  # what its page shows first is work, too
        with self._lock:
            self._open[bench.identifier] = bench
            while len(self._open) > _BENCHES:
                self._open.popitem(last=False)
        return bench

    def all_open(self) -> list[Bench]:
        """Return the tables that are open in the workbench, the most recently used first."""
        with self._lock:
            return list(reversed(self._open.values()))

    def close(self, identifier: str) -> None:
        """Close a table; its releases stay in their folder."""
        with self._lock:
            self._open.pop(identifier, None)

    def get(self, identifier: str) -> Bench:
        """Return an open table, and mark it as just used. Raise `NotThere` if it is closed."""
        with self._lock:
            if identifier not in self._open:
                raise NotThere("This table is no longer open.", hint="Open it again.")
            self._open.move_to_end(identifier)
            return self._open[identifier]


def preload() -> None:
    """Open and search a small artificial table, so that all libraries are loaded before a person
    waits.
    """
    rows = range(64)
    table = pa.table(
        {
            "age": [20 + n % 40 for n in rows],
            "place": [f"place {n % 7}" for n in rows],
            "answer": [f"answer {n // 3 % 2}" for n in rows],
        }
    )
    bench = Bench.open(table, "answer")
    bench.view()
    bench.best(1.0)
