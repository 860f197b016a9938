"""Hold a table against the certificate that came with it: digest, masks, rule and every figure."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from aegis.advisor import Scorer
from aegis.advisor.rank import as_it_is, tells_classes_apart
from aegis.errors import AegisError, DataError
from aegis.masking import masked_population
from aegis.masks import Group, KeepFrequent, Mask, Suppress, evaluate, parse_mask
from aegis.masks.base import SUPPRESSED
from aegis.measures import MEASURES
from aegis.policy import Configuration, Policy, as_policy, policy_digest, rule_of
from aegis.policy.load import load_policy
from aegis.privacy import ModelNeed, PrivacyRule
from aegis.progress import SILENT, Progress
from aegis.release.auditing import Audit, audit
from aegis.release.released import with_hidden
from aegis.sources import Source, open_table
from aegis.summary import summarize
from aegis.summary.leaves import without_hierarchy

NEEDED = ("input", "output", "policy", "privacy")
"""Keys without which a document is no certificate."""
MOST_VALUES = 10_000
"""Most distinct values of a column that are held against its mask."""
NOTHING = "nothing"


@dataclass(frozen=True)
class Mismatch:
    """One thing that certificate and file say differently.

    Attributes
    ----------
    what
        Which thing: a path in the certificate, such as `privacy.k`.
    certified, measured
        What the certificate says, and what the file shows.
    """

    what: str
    certified: Any
    measured: Any

    def __str__(self) -> str:
        return (
            f"{self.what}: the certificate says {_brief(self.certified)}, the file shows "
            f"{_brief(self.measured)}"
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as JSON values."""
        return {"what": self.what, "certified": self.certified, "measured": self.measured}


@dataclass(frozen=True, eq=False)
class CertificateCheck:
    """What came of holding a table against a certificate.

    Attributes
    ----------
    mismatches
        What differs; empty where the certificate is of this table and true.
    unchecked
        What could not be checked from the table alone, in words.
    audit
        The figures that were measured; None where a column is missing that they are of.
    """

    mismatches: tuple[Mismatch, ...]
    unchecked: tuple[str, ...]
    audit: Audit | None

    @property
    def passed(self) -> bool:
        """Whether nothing differs."""
        return not self.mismatches

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as JSON values."""
        return {
            "passed": self.passed,
            "mismatches": [mismatch.to_dict() for mismatch in self.mismatches],
            "unchecked": list(self.unchecked),
        }


def check_certificate(
    table: Any,
    certificate: str | Path | Mapping[str, Any],
    *,
    policy: Policy | str | Path | None = None,
    progress: Progress = SILENT,
) -> CertificateCheck:
    """Return whether a certificate is of this table, and every figure of it true.

    The file's digest and rows; the columns and, as far as masks say what they can show, their values;
    the rule, held against the file anew; every figure of privacy; the utility of what was released.

    Parameters
    ----------
    table
        The masked table, best the file itself: only a file has the digest that was certified.
    certificate
        What `aegis apply` or `aegis anonymize` wrote with `--certificate`: its path, or its content.
    policy
        The policy that the release was made under, where it is at hand: its digest is compared, and
        it brings the hierarchies that some rules need.
    progress
        Receives the steps.

    Raises
    ------
    DataError
        The certificate cannot be read or is none, or the table cannot be opened.

    Examples
    --------
    >>> import aegis, pathlib, tempfile
    >>> study = aegis.Study("data/adult.parquet", "examples/adult/policy.yaml")
    >>> best = study.advise(generate_count=5)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     masked, certificate = pathlib.Path(folder, "m.parquet"), pathlib.Path(folder, "c.json")
    ...     release = study.apply(best, masked, certificate=certificate)
    ...     aegis.check_certificate(masked, certificate).passed
    True
    """
    document = read_certificate(certificate)
    declared = None if policy is None else as_policy(policy)
    return _Check(open_table(table), document, declared, progress).done()


def read_certificate(given: str | Path | Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the content of a certificate; raise `DataError` where it is none."""
    origin = "The document"
    if not isinstance(given, Mapping):
        origin = str(given)
        try:
            given = json.loads(Path(given).read_text(encoding="utf-8"))
        except OSError as error:
            raise DataError(
                f"{origin} cannot be read: {error.strerror or error}.", hint="Check the path."
            ) from error
        except ValueError as error:
            raise DataError(
                f"{origin} is not JSON: {error}.",
                hint="Give what `aegis apply --certificate` wrote.",
            ) from error
    missing = [
        key
        for key in NEEDED
        if not isinstance(given, Mapping) or not isinstance(given.get(key), Mapping)
    ]
    if missing or not isinstance(given, Mapping):
        raise DataError(
            f"{origin} is no certificate: it lacks {', '.join(missing)}.",
            hint="Give what `aegis apply --certificate` wrote.",
        )
    return given


class _Check:
    """The steps of a check, which gather what differs."""

    def __init__(
        self, source: Source, document: Mapping[str, Any], policy: Policy | None, progress: Progress
    ) -> None:
        self.source = source
        self.document = document
        self.policy = policy
        self.progress = progress
        self.mismatches: list[Mismatch] = []
        self.unchecked: list[str] = []

    def done(self) -> CertificateCheck:
        with self.progress.step("Holding the table against its certificate"):
            self._file()
            self._policy()
            self._configuration()
            audit_of_rule = self._privacy()
            self._utility()
        return CertificateCheck(tuple(self.mismatches), tuple(self.unchecked), audit_of_rule)

    def _differs(self, what: str, certified: Any, measured: Any) -> None:
        if not _alike(certified, measured):
            self.mismatches.append(Mismatch(what, certified, measured))

    def _file(self) -> None:
        said = self.document["output"]
        if self.source.files:
            self._differs("output.sha256", said.get("sha256"), self.source.digest())
        else:
            self.unchecked.append("the digest: rows that are in no file have none")
        self._differs("output.rows", said.get("rows"), self.source.rows)

    def _policy(self) -> None:
        said = dict(self.document["policy"])
        certified = said.pop("sha256", None)
        try:
            policy = load_policy(said) if self.policy is None else self.policy
        except AegisError:
            self.unchecked.append(
                "the policy's digest, which needs its hierarchies: give the policy"
            )
            return
        measured, spelt = policy_digest(policy), str(said.get("measure"))
        # The digest is of the name that the measure had then.
        if spelt in MEASURES and MEASURES.get(spelt).name == policy.measure != spelt:
            measured = policy_digest(replace(policy, measure=spelt))
        self._differs("policy.sha256", certified, measured)

    def _configuration(self) -> None:
        columns = set(self.source.columns)
        for name in self.document.get("dropped_columns") or ():
            if name in columns:
                self.mismatches.append(Mismatch(f"dropped_columns: {name}", "left out", "a column"))
        for name, spec in ((self.document.get("configuration") or {}).get("masks") or {}).items():
            if spec == "suppress" and name in (self.document.get("dropped_columns") or ()):
                continue  # left out in place of being filled
            if name not in columns:
                self.mismatches.append(Mismatch(f"configuration.masks.{name}", spec, NOTHING))
                continue
            self._shown(name, spec)

    def _shown(self, name: str, spec: Any) -> None:
        """Hold the values of a column against what its mask can show."""
        try:
            mask = parse_mask(spec)
        except AegisError:
            self.unchecked.append(f"the values of {name}, whose hierarchy the certificate lacks")
            return
        possible = _possible(mask)
        if possible is None:
            if str(mask) != "identity":
                self.unchecked.append(f"the values of {name}: {mask} does not say what it can show")
            return
        column = self.source.table[name]
        shown = self.source.collect(self.source.table.select(v=column).distinct())["v"]
        texts = [str(value) for value in pc.drop_null(shown).to_pylist()][:MOST_VALUES]
        odd = sorted(text for text in texts if not possible(text))
        if odd:
            self.mismatches.append(Mismatch(f"configuration.masks.{name}", spec, odd[:5]))

    def _privacy(self) -> Audit | None:
        said = self.document["privacy"]
        if said.get("person") is not None:
            self.unchecked.append(
                f"figures of persons ({said['person']}), whom the release does not tell apart"
            )
            return None
        named = [*(said.get("quasi_identifiers") or ()), *(said.get("sensitive") or ())]
        lacking = [name for name in named if name not in self.source.columns]
        if lacking:
            self.mismatches.append(Mismatch("privacy", named, f"no column {', '.join(lacking)}"))
            return None
        audited = self._audited(said)
        if audited is None:
            return None
        self._differs("privacy.rule", self.document["policy"].get("privacy"), said.get("rule"))
        for violation in audited.violations:
            self.mismatches.append(Mismatch("privacy.rule", "met", violation))
        figures = audited.to_dict()
        if "outside" not in said:  # of a version that did not look
            del figures["outside"]
        alone = self._crowd_unknown(rule_of(said.get("rule")))
        for what, certified, measured in _differing(dict(said), figures):
            if alone and what.startswith(_OF_POPULATION):
                continue
            self.mismatches.append(Mismatch(f"privacy.{what}", certified, measured))
        return audited

    def _audited(self, said: Mapping[str, Any]) -> Audit | None:
        rule = rule_of(said.get("rule"))
        if self._crowd_unknown(rule):
            self.unchecked.append("what goes by a population: give the policy")
            rule = rule.without_crowd
        if rule.hierarchical and self.policy is None:
            self.unchecked.append(f"the rule {rule}, which needs a hierarchy: give the policy")
            rule = replace(
                rule,
                criteria=tuple(c for c in rule.criteria if c.attribute not in rule.hierarchical),
            )
        rule = self._checkable(rule, list(said.get("quasi_identifiers") or ()))
        checked = audit(
            self.source,
            quasi_identifiers=list(said.get("quasi_identifiers") or ()),
            sensitive=list(said.get("sensitive") or ()),
            policy=self.policy,
            rule=PrivacyRule(rule.criteria, rule.suppression),
            configuration=self._drawn(said),
            population=None
            if self.policy is None
            else masked_population(self.policy, self._certified_masks().masks),
        )
        # What the certificate states of a release that a policy without a rule allows.
        return checked if said.get("rule") is not None else replace(checked, rule=None)

    def _checkable(self, rule: PrivacyRule, quasi: list[str]) -> PrivacyRule:
        """Return the rule without demands that go by leaves where no hierarchy says what they are."""
        if not rule.by_leaves or (self.policy and not without_hierarchy(self.policy, quasi)):
            return rule
        asked = [c for c in rule.criteria if ModelNeed.LEAVES in c.model.needs]
        self.unchecked += [
            f"{criterion}, which needs a hierarchy of every quasi-identifier: give the policy"
            for criterion in asked
        ]
        return replace(rule, criteria=tuple(c for c in rule.criteria if c not in asked))

    def _drawn(self, said: Mapping[str, Any]) -> Configuration | None:
        """Return the masks where the certificate states what their noise promises."""
        return None if said.get("differential_privacy") is None else self._certified_masks()

    def _certified_masks(self) -> Configuration:
        """Return the certified masks."""
        masks = (self.document.get("configuration") or {}).get("masks") or {}
        known = {} if self.policy is None else self.policy.attributes
        hierarchies = {name: attribute.hierarchy for name, attribute in known.items()}
        parsed = {n: parse_mask(s, hierarchy=hierarchies.get(n)) for n, s in masks.items()}
        return Configuration("certified", parsed)

    def _crowd_unknown(self, rule: PrivacyRule) -> bool:
        """Whether figures were measured beside a population that is not at hand."""
        named = self.policy is not None and self.policy.population is not None
        return rule.by_crowd and "population" in self.document["policy"] and not named

    def _utility(self) -> None:
        said = self.document.get("utility")
        if not isinstance(said, Mapping):
            return
        try:
            declared = self.policy or load_policy(_plain_roles(self.document["policy"]))
            chosen = MEASURES.get(str(said.get("measure")))
            if not tells_classes_apart(self.source, declared):
                self._differs("utility.released", said.get("released"), NOTHING)
                return
            whole = with_hidden(self.source, declared)
            summary = summarize(whole, as_it_is(declared))
        except (AegisError, AttributeError, KeyError) as error:
            self.unchecked.append(f"the utility: {getattr(error, 'message', error)}")
            return
        if summary.sampled:
            self.unchecked.append("the utility, which was measured on a sample of the rows")
            return
        scorer = Scorer(summary)
        self._differs(
            "utility.released", said.get("released"), scorer.value(scorer.unmasked, chosen)
        )


def _plain_roles(policy: Mapping[str, Any]) -> dict[str, Any]:
    """Return a certified policy without what needs files: hierarchies, and masks over them."""
    attributes = {
        name: {key: value for key, value in entry.items() if key in ("role", "weight", "kind")}
        for name, entry in policy["attributes"].items()
    }
    same_keys = {k: v for k, v in policy.items() if k in ("version", "label", "person")}
    return same_keys | {"attributes": attributes}


def _possible(mask: Mask) -> Any:
    """Return the condition of a text that a mask can show it; None where the mask does not say."""
    if isinstance(mask, Suppress):
        return lambda text: text == SUPPRESSED
    if mask.shows_intervals and mask.fitted:
        return lambda text: text == SUPPRESSED or _interval_of(mask, text)
    if isinstance(mask, Group) and mask.rest != "keep":
        shown = {name for name, _ in mask.groups}
        shown.add("other" if mask.rest == "other" else SUPPRESSED)
    elif isinstance(mask, KeepFrequent) and mask.values is not None:
        shown = {*map(str, mask.values), mask.other}
    else:
        return None
    return lambda text: text in shown or _same_number(text, shown)


def _interval_of(mask: Mask, text: str) -> bool:
    """Return whether an interval is one that the mask shows: that of a number within it."""
    low, comma, high = text.strip("[]").partition(",")
    try:
        start, end = float(low), float(high if comma else low)
    except ValueError:
        return not comma  # the name of a value that is in no interval
    inside = next((b for b in (start, end - 1e-9) if math.isfinite(b)), None)
    if inside is None:
        return True
    values = [pa.array([inside])]
    if inside == int(inside):
        values.append(pa.array([int(inside)]))
    shown = {str(v) for array in values for v in evaluate([mask], array)[0].shown.to_pylist()}
    return text in shown or _same_number(text, shown)


def _same_number(text: str, shown: set[str]) -> bool:
    """Return whether two numbers are written differently and are the same."""
    try:
        return float(text) in {float(number) for number in shown if _is_number(number)}
    except ValueError:
        return False


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


_OF_POPULATION = ("risk.journalist", "risk.marketer")
"""Figures that a population has a part in."""


def _differing(certified: Any, measured: Any, path: str = "") -> Iterator[tuple[str, Any, Any]]:
    """Yield path and both values of each figure that two documents state differently."""
    if isinstance(certified, Mapping) and isinstance(measured, Mapping):
        for key in dict.fromkeys((*certified, *measured)):
            if path or key not in ("schema", "notes", "timings", "rule", "violations"):
                own = f"{path}.{key}" if path else str(key)
                yield from _differing(certified.get(key), measured.get(key), own)
    elif not _alike(certified, measured):
        yield path, certified, measured


def _alike(certified: Any, two: Any) -> bool:
    if isinstance(certified, float | int) and isinstance(two, float | int):
        if isinstance(certified, bool) or isinstance(two, bool):
            return certified is two
        return math.isclose(certified, two, rel_tol=1e-9, abs_tol=1e-12)
    if isinstance(certified, list | tuple) and isinstance(two, list | tuple):
        return len(certified) == len(two) and all(map(_alike, certified, two))
    if isinstance(certified, Mapping) and isinstance(two, Mapping):
        return certified.keys() == two.keys() and all(
            _alike(certified[key], two[key]) for key in certified
        )
    return bool(certified == two)


def _brief(value: Any) -> str:
    text = json.dumps(value, default=str) if not isinstance(value, str) else value
    return text if len(text) <= 100 else f"{text[:97]}..."


__all__ = ["CertificateCheck", "Mismatch", "check_certificate", "read_certificate"]
