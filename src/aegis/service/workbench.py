"""The workbench without its page: a policy in the making, and what it would release.

A bench holds one table under one policy. Moving a control changes the rule, and what is known of
the table answers at once; another role or mask has it summarised anew.
"""

from __future__ import annotations

import json
import threading
import time
from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import aegis
from aegis.advisor import Advice, Ranked, Scorer
from aegis.advisor.costs import MaskCost, mask_costs
from aegis.advisor.generate import generate
from aegis.advisor.plan import PrivacyPlan
from aegis.advisor.rank import rank_choice
from aegis.advisor.scoring import Choice
from aegis.advisor.search import Prepared, prepare, search_combinations
from aegis.errors import DataError
from aegis.files import write_text
from aegis.measures import Measure
from aegis.policy import (
    Configuration,
    Policy,
    Role,
    dump_policy,
    policy_mapping,
)
from aegis.policy.load import parse_value
from aegis.policy.suggest.masks import propose_masks
from aegis.privacy import ClassTable, Verdict
from aegis.progress import SILENT, Progress
from aegis.service.catalog.errors import NotThere, WrongState
from aegis.service.catalog.flow import configuration_of, policy_in, policy_of
from aegis.sources import open_part
from aegis.study import Study
from aegis.study.answers import complete_advice

if TYPE_CHECKING:
    from aegis.policy.suggest.column_profile import ColumnProfile
    from aegis.release import Release

_DRAWN = 24
"""Random configurations that are ranked beside the finest and the coarsest one."""
_BENCHES = 8
"""Tables that are open at once; the one that was not used for longest is closed."""
_REMEMBERED = 200_000
"""Most classes of one configuration that are remembered."""
_LISTED = 10
"""Configurations that a search returns: as many as `aegis advise` lists, among which ties are settled alike."""
_NOTICED = 0.5
"""Seconds that a search waits for the one before to end; then it begins without what that one knows."""
_PREVIEW = 8
"""Values of each attribute that a preview shows."""
TABLES = (
    ".csv",
    ".tsv",
    ".tab",
    ".parquet",
    ".pq",
    ".arrow",
    ".feather",
    ".json",
    ".jsonl",
    ".ndjson",
    ".xlsx",
    ".xls",
    ".ods",
    ".sqlite",
    ".sqlite3",
    ".sav",
    ".dta",
)


@dataclass(frozen=True)
class Preview:
    """What a mask shows in place of some values.

    Attributes
    ----------
    attribute, mask
        The attribute and its mask in the configuration.
    shown
        Pairs of a value and what is shown for it.
    """

    attribute: str
    mask: str
    shown: tuple[tuple[str, str], ...]

    @property
    def in_words(self) -> str:
        """The pairs in one line; what is the same for all values is said once."""
        if all(value == masked for value, masked in self.shown):
            return "each value as it is"
        masked_values = {masked for _, masked in self.shown}
        if len(self.shown) > 1 and len(masked_values) == 1:
            return f"every value → {masked_values.pop()}"
        return "; ".join(f"{value} → {masked}" for value, masked in self.shown)


@dataclass(frozen=True)
class View:
    """What a bench shows of a policy.

    Attributes
    ----------
    policy
        The policy.
    costs
        What each candidate mask costs.
    ranking
        Some configurations, admissible ones first and the best first among them.
    unmasked
        The measure of the table as it is.
    measure
        Name of the measure.
    seconds
        How long it took.
    problem
        What is wrong with the policy, where it cannot be used.
    """

    policy: Policy
    costs: tuple[MaskCost, ...]
    ranking: tuple[Ranked, ...]
    unmasked: float
    measure: str
    seconds: float
    problem: str = ""

    @property
    def by_attribute(self) -> dict[str, list[MaskCost]]:
        """Costs of each attribute's masks."""
        grouped: dict[str, list[MaskCost]] = {}
        for cost in self.costs:
            grouped.setdefault(cost.attribute, []).append(cost)
        return grouped

    @property
    def admissible(self) -> int:
        """How many of the ranking meet the rule."""
        return sum(ranked.admissible is True for ranked in self.ranking)


@dataclass(frozen=True, eq=False)
class _Known:
    """What does not depend on the rule: scores of masks, and of the configurations that are shown.

    Attributes
    ----------
    prepared
        What searches share; the scores on the page are by the same measure.
    searching
        Held by the search that uses it.
    named
        The measure that the policy names, or None.
    costs, choices, unmasked, classes
        See `View`; the configurations that are shown, and what the rule counts of them.
    """

    prepared: Prepared
    named: str | None
    costs: tuple[MaskCost, ...]
    choices: tuple[tuple[str, Choice], ...]
    classes: dict[tuple[Any, ...], ClassTable] = field(default_factory=dict)
    searching: threading.Lock = field(default_factory=threading.Lock)

    @property
    def measure(self) -> Measure:
        """What is maximised, and shown."""
        return self.prepared.searcher.measure

    @property
    def scorer(self) -> Scorer:
        """What scores configurations."""
        return self.prepared.searcher.scorer

    def verdict(self, place: int, plan: PrivacyPlan) -> Verdict:
        """Return what the rule says of a configuration that is shown.

        Its classes depend on the rule only by which values are counted in them: a moved k or
        suppression holds the same ones against another number.
        """
        choice = self.choices[place][1]
        if plan.in_engine or plan.by_population:
            return plan.check(choice)
        key = (place, plan.rule.sensitive, plan.rule.hierarchical, plan.rule.by_leaves)
        table = self.classes.get(key)
        if table is None:
            table = plan.classes(choice)
            if len(table.sizes) <= _REMEMBERED:
                self.classes[key] = table
        return plan.rule.check(table)

    @classmethod
    def of(cls, study: Study) -> _Known:
        """Return it of a study, by what a search of it maximises."""
        summary = study.summary
        prepared = prepare(summary, study.plan, study.policy)
        scorer, measure = prepared.searcher.scorer, prepared.searcher.measure
        drawn = generate(summary, _DRAWN, seed=study.seed)
        return cls(
            prepared,
            study.policy.measure,
            mask_costs(summary, measure.name, scorer=scorer),
            tuple((configuration.name, scorer.choose(configuration)) for configuration in drawn),
        )


@dataclass
class _Watch:
    """Progress of a search that ends it when another one is begun."""

    bench: Bench
    turn: int

    @contextmanager
    def step(self, title: str, total: float | None = None) -> Iterator[_Watch]:  # noqa: ARG002
        """Open a step."""
        self.advance()
        yield self

    def advance(self, amount: float = 1) -> None:  # noqa: ARG002
        """Go on, where it is still this search's turn."""
        if self.bench.turn != self.turn:
            raise WrongState("Another search was begun.", hint="Nothing to do.")

    def note(self, text: str) -> None:  # noqa: ARG002
        """Go on, as `advance` does."""
        self.advance()


@dataclass
class Bench:
    """One table on the bench.

    Attributes
    ----------
    identifier
        Its name in URLs.
    table
        The table's path, a table in memory, or an open source.
    study
        The table under the policy as it is now.
    lock
        One change at a time.
    profiles
        What `aegis init` found on each column, from which masks for another role are proposed.
    title
        The file, and its sheet or table where it has several.
    questions
        What `aegis init` asks a person to decide.
    """

    table: Any
    study: Study
    identifier: str = field(default_factory=lambda: uuid4().hex[:12])
    lock: threading.RLock = field(default_factory=threading.RLock)
    profiles: Mapping[str, ColumnProfile] = field(default_factory=dict)
    title: str = ""
    questions: tuple[str, ...] = ()
    _known: _Known | None = None
    _turn: int = 0
    _found: Advice | None = None

    @classmethod
    def open(
        cls, table: Any, label: str | None, title: str = "", progress: Progress = SILENT
    ) -> Bench:
        """Open a table with the policy that `aegis init` proposes for it."""
        proposed = aegis.init_policy(table, label=label, progress=progress)
        study = Study(table, proposed.policy, progress=progress)
        return cls(
            table,
            study,
            profiles=proposed.profiles,
            title=title,
            questions=proposed.warnings,
        )

    @property
    def policy(self) -> Policy:
        """The policy as it is now."""
        return self.study.policy

    @property
    def turn(self) -> int:
        """Which search's turn it is; it grows with each search, and with each other policy."""
        return self._turn

    def take(self, policy: Policy) -> None:
        """Go on with another policy; the table is read again only where roles or masks differ."""
        with self.lock:
            if policy != self.study.policy:
                self._turn += 1
                self._found = None
            changed = self.study.under(policy)
            if changed.summary is not self.study.summary:
                self._known = None
            self.study = changed

    def take_text(self, text: str) -> None:
        """Go on with a policy that was written as YAML.

        Raises
        ------
        PolicyError
            It is no valid policy.
        """
        self.take(policy_of(text))

    def take_form(
        self,
        roles: Mapping[str, str],
        masks: Mapping[str, Sequence[str]],
        more: Mapping[str, str],
        privacy: Mapping[str, Any],
    ) -> bool:
        """Go on with what the controls say, as `edited` reads them; return whether a role changed.

        A column with another role gets the masks that `aegis init` proposes for that role.
        """
        before = {name: a.role for name, a in self.policy.attributes.items()}
        # A role that does not exist is refused if the policy is read.
        changed = {
            n: Role(role)
            for n, role in roles.items()
            if n in before and role != before[n] and role in list(Role)
        }
        proposed = {
            name: [
                json.dumps(m.spec(), default=str)
                for m in propose_masks(profile.facts, changed[name]).masks
            ]
            for name, profile in self.profiles.items()
            if name in changed
        }
        self.take(edited(self.policy, roles, {**masks, **proposed}, more, privacy))
        return bool(changed)

    def view(self) -> View:
        """Return what stands on the bench: costs, and some configurations under the rule.

        Scores do not depend on the rule and are remembered; what a moved control changes is which
        configurations meet it.
        """
        with self.lock:
            started = time.perf_counter()
            study, known = self.study, self._remembered()
            plan, measure = study.plan, known.measure
            ranked = [
                rank_choice(name, choice, known.scorer, plan, measure, known.verdict(place, plan))
                for place, (name, choice) in enumerate(known.choices)
            ]
            sign = measure.direction.sign
            ranked.sort(key=lambda r: r.ranking_key(sign))
            return View(
                study.policy,
                known.costs,
                tuple(ranked),
                known.prepared.unmasked,
                measure.name,
                time.perf_counter() - started,
            )

    def _remembered(self) -> _Known:
        known = self._known
        if known is None or known.named != self.policy.measure:
            known = self._known = _Known.of(self.study)
        return known

    def best(self, seconds: float) -> Advice:
        """Search the best configuration for so long.

        Raises
        ------
        WrongState
            Another search was begun meanwhile, or the policy is another one: nobody waits for this.
        """
        with self.lock:
            self._turn += 1
            turn = self._turn
            watch = _Watch(self, turn)
            study = self.study
            summary, plan, policy = study.summary, study.plan, study.policy
            known = self._remembered()
        # As `Study.search` does; without the lock where the table is not read, so that controls go on moving.
        # A search that was ended by this one notices at its next box, and gives up what is shared.
        # Beside a population it is in the policy which masks are alike.
        shares = known.searching.acquire(timeout=_NOTICED)
        try:
            with self.lock if plan.in_engine else nullcontext():
                advice = search_combinations(
                    summary,
                    plan,
                    policy,
                    top=_LISTED,
                    time_limit=seconds,
                    explain_best=True,
                    progress=watch,
                    prepared=known.prepared if shares and not plan.by_population else None,
                )
        finally:
            if shares:
                known.searching.release()
        with self.lock:
            watch.advance()
            self._found = complete_advice(study._subject, advice, None, study.seed)
            return self._found

    def front(self, span: str, seconds: float) -> Any:
        """Return the best for each of several strengths of the rule."""
        with self.lock:
            return self.study.front(span, time_limit=seconds)

    def preview(self, configuration: Configuration) -> tuple[Preview, ...]:
        """Return what some values would be shown as: of one's own table, on one's own machine."""
        with self.lock:
            previews = []
            for attribute in self.study.summary.attributes.values():
                candidate = attribute.candidate(configuration.masks[attribute.name])
                count = len(attribute.values)
                places = range(0, count, max(1, count // _PREVIEW))
                pairs = tuple(
                    (str(attribute.values[i].as_py()), candidate.labels[candidate.groups[i]])
                    for i in places
                )
                previews.append(Preview(attribute.name, str(candidate.declared), pairs[:_PREVIEW]))
            return tuple(previews)

    def release(self, configuration: str, folder: Path) -> Release:
        """Mask the table into a folder, with certificate, report, policy and configuration.

        Raises
        ------
        NoAdmissibleConfiguration
            The written table would not meet the rule; nothing is written.
        PolicyError
            The text is no configuration of this policy.
        """
        with self.lock:
            chosen = configuration_of(configuration, self.policy)
            folder.mkdir(parents=True, exist_ok=True)
            made = self.study.apply(
                chosen,
                folder / "masked.parquet",
                certificate=folder / "certificate.json",
                force=True,
            )
            self.study.report(self._advice_on(chosen), folder / "report.html", force=True)
            write_text(folder / "configuration.yaml", configuration)
            write_text(folder / "policy.yaml", self.yaml())
            return made

    def _advice_on(self, chosen: Configuration) -> Advice:
        """Return the search that found a configuration; a ranking of it alone if none did."""
        advice = self._found
        if advice and advice.best and advice.best.configuration.spec() == chosen.spec():
            return advice
        return self.study.rank([chosen], methods=())

    def yaml(self) -> str:
        """Return the policy as YAML."""
        return dump_policy(self.policy)


def edited(
    policy: Policy,
    roles: Mapping[str, str],
    masks: Mapping[str, Sequence[str]],
    more: Mapping[str, str],
    privacy: Mapping[str, Any],
) -> Policy:
    """Return a policy with what controls say.

    Parameters
    ----------
    policy
        The policy as it was.
    roles
        Attribute to role.
    masks
        Attribute to the candidates that stay, as a policy writes them (YAML).
    more
        Attribute to one more candidate, or an empty text.
    privacy
        The rule.

    Raises
    ------
    PolicyError
        What comes out is no valid policy.
    CatalogError
        A mask names a file or a variable of this machine.
    """
    mapping = policy_mapping(policy)
    for name, entry in mapping["attributes"].items():
        entry["role"] = roles.get(name, entry["role"])
        staying = [parse_value(text, name) for text in masks.get(name, ())]
        added = more.get(name, "").strip()
        if added:
            staying.append(parse_value(added, name))
        if entry["role"] in ("identifier", "ignore"):
            entry.pop("masks", None)
        elif staying:
            entry["masks"] = staying
    mapping["privacy"] = _of_sensitive(privacy, mapping["attributes"])
    return policy_in(mapping)


def _of_sensitive(
    privacy: Mapping[str, Any], attributes: Mapping[str, Mapping[str, Any]]
) -> dict[str, Any]:
    """Return a rule without what it asks of columns that are not sensitive any more."""
    kept_rule: dict[str, Any] = {}
    for model, asked in privacy.items():
        listed = asked if isinstance(asked, list) else [asked]
        staying = [
            entry
            for entry in listed
            if not isinstance(entry, Mapping)
            or attributes.get(entry.get("attribute", ""), {"role": Role.SENSITIVE})["role"]
            == Role.SENSITIVE
        ]
        if staying:
            kept_rule[model] = staying if isinstance(asked, list) else asked
    return kept_rule


@dataclass
class Benches:
    """The tables of one folder, and those that are open.

    Attributes
    ----------
    folder
        Nothing outside of it is opened.
    outputs
        Where releases are written, each in a folder of its own.
    """

    folder: Path
    outputs: Path
    _open: OrderedDict[str, Bench] = field(default_factory=OrderedDict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def tables(self) -> list[Path]:
        """Return the tables of the folder, relative to it, without the releases that were made here."""
        files = (p for p in self.folder.rglob("*") if p.suffix.lower() in TABLES and p.is_file())
        files = (p for p in files if not p.is_relative_to(self.outputs))
        inside = (p.relative_to(self.folder) for p in files)
        return sorted(p for p in inside if not any(part.startswith(".") for part in p.parts))

    def path_of(self, name: str) -> Path:
        """Return a table of the folder; raise `DataError` for anything else."""
        path = (self.folder / name).resolve()
        if not path.is_relative_to(self.folder.resolve()) or path.suffix.lower() not in TABLES:
            raise DataError(
                f"{name} is not a table of this folder.", hint="Choose one of the list."
            )
        if not path.is_file():
            raise DataError(f"There is no table {name}.", hint="Choose one of the list.")
        return path

    def title_of(self, name: str, part: str | None) -> str:
        """Return the title of a table; raise `DataError` if the folder has none of that name."""
        path = self.path_of(name)
        return path.name if part is None else f"{path.name}: {part}"

    def open(
        self,
        name: str,
        label: str | None,
        part: str | None = None,
        progress: Progress = SILENT,
    ) -> Bench:
        """Put a table on a bench; `part` is the sheet or table of a file that has several."""
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
        """Return the open benches, the one that was used last first."""
        with self._lock:
            return list(reversed(self._open.values()))

    def close(self, identifier: str) -> None:
        """Close a table; what was released of it stays in its folder."""
        with self._lock:
            self._open.pop(identifier, None)

    def get(self, identifier: str) -> Bench:
        """Return an open bench."""
        with self._lock:
            if identifier not in self._open:
                raise NotThere("This table is not open any more.", hint="Open it again.")
            self._open.move_to_end(identifier)
            return self._open[identifier]
