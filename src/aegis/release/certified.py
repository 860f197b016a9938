"""Compare a table with its certificate.

Each field is computed again from the file and the policy and compared, or reported as not checked.
The digest and the signature cover the whole certificate. The digest protects against damage; the
signature protects against everyone who does not have the key.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from fnmatch import fnmatch
from functools import cached_property
from pathlib import Path
from typing import Any

from aegis.advisor import Scorer
from aegis.advisor.plan import as_it_is, tells_classes_apart
from aegis.advisor.utility import Reference, Rows, UtilityFigure, columns_differ, stated_roles
from aegis.errors import AegisError, DataError
from aegis.files import SILENT, Progress
from aegis.masking import noise_of
from aegis.masks import Mask, parse_mask
from aegis.measures import MEASURES, Measure
from aegis.options import checks_types
from aegis.policy import (
    Configuration,
    Policy,
    Role,
    Unseen,
    as_policy,
    load_policy,
    policy_digest,
    policy_mapping,
    rule_of,
    shown_policy,
)
from aegis.privacy import ModelNeed, PrivacyRule
from aegis.privacy.report import FORMER_NOTES
from aegis.release.auditing import Audit, audit, audit_rows
from aegis.release.certified_policy import (
    as_certified,
    certified_population,
    digest_of_original,
    incomparable,
    mask_parameters,
    names_hierarchies,
    original_differs,
    without_files,
)
from aegis.release.possible import (
    NOTHING,
    OF_INPUT,
    CertificateCheck,
    Mismatch,
    alike,
    as_json,
    asked_elsewhere,
    differing,
    impossible,
    impossible_losses,
    is_count,
    is_number,
    labels_differ,
    lost_like,
    names_in,
    share_like,
    stated_fields,
    without,
)
from aegis.release.reading import read_certificate, without_digest
from aegis.release.released import CERTIFICATE_VERSION, texts_of, with_hidden
from aegis.release.writing import learnt_bounds, odd_values
from aegis.signing import SEAL, PrivateKey, PublicKey, Signature, sealed_digest, verify_seal
from aegis.sources import Source, open_table
from aegis.summary import Summary, summarize
from aegis.summary.leaves import without_hierarchy

CERTIFIED = (
    "certificate",
    "aegis",
    "created",
    "input",
    "output",
    "policy",
    "suppressed_rows",
    "persons",
    "suppressed_persons",
    "unseen_rows",
    "dropped_columns",
    "utility",
    "privacy",
)
"""Fields of every certificate."""
OF_KIND = {
    "configuration": ("configuration", "learnt_bounds", "noised_quasi_identifiers"),
    "anonymizer": ("anonymizer", "groups", "information_loss", "details", "notes"),
}
"""Fields of certificates by kind of release: masks or record-level."""
_OF_INPUT = "needs the original table"
_OF_EACH_ROW = "needs to know which original row each released row comes from"
TAKEN_AS_STATED = {
    "created": "nothing to compare this time with",
    "aegis": "nothing to compare this version with",
    "output.file": "files may be renamed",
}
"""Fields that cannot be checked, with the reason; a signature shows who is responsible for them."""


@checks_types
def check_certificate(
    table: Any,
    certificate: str | Path | Mapping[str, Any],
    *,
    policy: Policy | str | Path | Mapping[str, Any] | None = None,
    original: Any = None,
    verify_key: PublicKey | None = None,
    signing_key: PrivateKey | None = None,
    progress: Progress = SILENT,
) -> CertificateCheck:
    """Check whether a certificate matches this table, and whether all its figures are correct.

    Aegis compares the digest and the number of rows of the file, the columns, the values (if the
    masks define the possible values), the rule, every privacy figure, and the utility of the
    release.

    Parameters
    ----------
    table
        The masked table, preferably the file itself: only a file has the certified digest.
    certificate
        A certificate of `aegis apply` or `aegis anonymize`: its path, or its content.
    policy
        The policy of the release, if you have it. Aegis compares its digest, and uses its
        hierarchies for rules that need them.
    original
        The original table, if you have it. Aegis then also compares its rows and the utility.
    verify_key
        Public key. If you give it, the certificate must have a valid signature for it.
    signing_key
        The private key that signed the certificate. With it, Aegis also compares the digest of the
        original table.
    progress
        Receives the steps.

    Raises
    ------
    DataError
        The certificate cannot be read or is not a certificate, or the table cannot be opened.

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
    source = as_certified(open_table(table), document)
    check = _Check(source, document, declared, verify_key, progress)
    return check.done(original, signing_key)


class _Check:
    """The steps of a comparison: differences go to `mismatches`, the rest to `unchecked`."""

    def __init__(
        self,
        source: Source,
        document: Mapping[str, Any],
        policy: Policy | None,
        key: PublicKey | None,
        progress: Progress,
    ) -> None:
        self.source = source
        self.document = document
        self.policy = policy
        self.key = key
        self.progress = progress
        self.mismatches: list[Mismatch] = []
        self.unchecked: list[str] = []
        self.declared = self._declared()
        self.of_input: list[str] = []
        self.original: Source | None = None

    def done(self, original: Any, signing_key: PrivateKey | None) -> CertificateCheck:
        with self.progress.step("Holding the table against its certificate"):
            self._seal()
            self.mismatches += impossible(self.document, self.source.rows)
            self._file()
            self._policy()
            if original is not None:
                reading = None if self.declared is None else self.declared.reading
                self.original = open_table(original, reading=reading)
                if self.declared is not None:
                    labels = self.declared.label.columns
                    self.original.refuse_other_table([*labels, *self.declared.attributes])
                    for label in labels:
                        self.original.require(label, where="the policy's label")
            audit_of_rule = self._content()
            self._original(signing_key)
            self._rest()
        return CertificateCheck(tuple(self.mismatches), tuple(self.unchecked), audit_of_rule)

    def _content(self) -> Audit | None:
        """Record where certificate and file differ; return the audit, None if a column is missing."""
        self._counts()
        if self.declared is None or not self._has_columns():
            return None
        self._columns()
        self._configuration()
        audited = self._privacy()
        self._claims(audited)
        self._utility()
        return audited

    def _has_columns(self) -> bool:
        """Return whether the file has the label and the columns that the rule protects."""
        if self.declared is None:
            return False
        for what, name in (
            *(("policy.label", name) for name in self.declared.shown_labels),
            *(("policy.privacy", name) for name in self.declared.privacy.sensitive),
        ):
            if name not in self.source.columns:
                if all(mismatch.what != "policy.sha256" for mismatch in self.mismatches):
                    self._differs(what, name, "no such column")
                return False
        return True

    def _differs(self, what: str, certified: Any, measured: Any) -> None:
        noted = any(mismatch.possible and mismatch.what == what for mismatch in self.mismatches)
        if not noted and not alike(certified, measured):
            self.mismatches.append(Mismatch(what, certified, measured))

    def _differences(self, what: str, certified: Any, measured: Any) -> None:
        """Record each field below `what` in which both documents differ."""
        self.mismatches += [Mismatch(*three) for three in differing(certified, measured, what)]

    def _seal(self) -> None:
        """Record if the certificate's own digest or its signature is wrong."""
        version = self.document.get("certificate")
        if without_digest(self.document):
            self.unchecked.append("digest: certificates of version 1 have none")
        elif version != CERTIFICATE_VERSION:
            self._differs("certificate", version, CERTIFICATE_VERSION)
        else:
            self._differs("digest", self.document.get("digest"), sealed_digest(self.document))
        if "signature" not in self.document:
            if self.key is not None:
                self._differs("signature", NOTHING, self.key.text)
            return
        if self.key is None:
            self.unchecked.append("signature: give the key of its maker (--verify-key)")
            return
        try:
            signature = Signature.of(self.document["signature"])
        except DataError as error:
            self._differs("signature", self.document["signature"], error.message)
            return
        self._differs("signature.key", signature.key, self.key.text)
        if signature.key == self.key.text and not verify_seal(self.document, signature, self.key):
            self._differs("signature.value", signature.value, "another content")

    def _declared(self) -> Policy | None:
        """Return the given policy, or else the one in the certificate; None if that is not valid.

        Files that the certificate names are not read, because its author could name any file.
        """
        if self.policy is not None:
            return self.policy
        entry = without(self.document["policy"], "sha256", "population")
        try:
            return load_policy(without_files(entry) if names_hierarchies(entry) else entry)
        except (AegisError, AttributeError, TypeError) as error:
            self._differs("policy", "a policy", getattr(error, "message", str(error)))
            return None

    def _file(self) -> None:
        certified = self.document["output"]
        if reason := incomparable(certified, self.source):
            self.unchecked.append(f"output.sha256: {reason}")
        else:
            self._differs("output.sha256", certified.get("sha256"), self.source.digest())
        self._differs("output.rows", certified.get("rows"), self.source.rows)
        if self.source.dialect is not None and certified.get("text") is None:
            self.unchecked.append("output.text: earlier certificates do not state it")
        elif self.source.dialect is not None:
            self._differs("output.text", certified["text"], texts_of(self.source))

    def _policy(self) -> None:
        """Record differences from the user's policy or, without it, from the policy's digest."""
        if self.policy is None:
            self.unchecked.append("policy.sha256: needs your policy (--policy)")
            if names_hierarchies(self.document["policy"]) or self.declared is None:
                return
        certified, policy = without(self.document["policy"], "sha256"), self.policy
        if policy is None:
            try:
                policy = load_policy(certified)
            except AegisError as error:  # a population that is none
                self._differs("policy", "a policy", error.message)
                return
        released_policy, digest = shown_policy(policy), self.document["policy"].get("sha256")
        if digest == policy_digest(policy):  # earlier versions stated lists of candidate masks
            released_policy = replace(policy, configurations=released_policy.configurations)
        measured, spelt = policy_digest(released_policy), str(certified.get("measure"))
        mapping = as_json(policy_mapping(released_policy))
        # The digest is of the name that the measure had then.
        if spelt in MEASURES and MEASURES.get(spelt).name == policy.measure != spelt:
            measured = policy_digest(replace(released_policy, measure=spelt))
            mapping["measure"] = spelt
        self._differs("policy.sha256", digest, measured)
        if digest == measured:  # else all of it may differ
            self._differences("policy", certified, mapping)

    def _columns(self) -> None:
        """Record columns that the file has or lacks, contrary to the policy or the certificate."""
        entry, columns = self.document.get("dropped_columns"), set(self.source.columns)
        dropped = names_in(entry)
        if dropped is None:
            self._differs("dropped_columns", entry, "a list of names")
            return
        for name in dropped:
            if name in columns:
                self._differs(f"dropped_columns: {name}", "left out", "a column")
        if self.declared is None:
            return
        named = {*self.declared.attributes, *filter(None, (self.declared.person,))}
        for name in sorted(named - columns - set(dropped)):
            self._differs(f"dropped_columns: {name}", NOTHING, "left out")
        unknown = [name for name in dropped if name not in named and name not in columns]
        if unknown:
            self.unchecked.append("dropped_columns: the policy does not name all of them")
        released = {attribute.name for attribute in self.declared.released()}
        released |= set(self.declared.label.columns)
        if not names_hierarchies(self.document["policy"]) or self.policy is not None:
            for name in sorted(columns - released):
                self._differs(f"policy.attributes.{name}", "not released", "a column")

    def _configuration(self) -> None:
        """Record columns with values that their mask cannot show, and missing or wrong masks."""
        if "configuration" not in self.document:
            return
        certified = self.document["configuration"]
        specs = certified.get("masks") if isinstance(certified, Mapping) else None
        if not isinstance(specs, Mapping):
            self._differs("configuration", certified, "masks by the names of columns")
            return
        self.unchecked.append("configuration.name: any name is allowed")
        dropped = names_in(self.document.get("dropped_columns")) or ()
        masked: dict[str, Mask] = {}
        for name, spec in specs.items():
            if name not in self.source.columns and not (spec == "suppress" and name in dropped):
                self._differs(f"configuration.masks.{name}", spec, NOTHING)
                continue
            mask = self._mask(name, spec)
            if mask is None:
                continue
            self._candidate(name, mask)
            if name in self.source.columns:
                masked[name] = mask
        self._odd_values(specs, masked)
        declared = () if self.declared is None else self.declared.released()
        for attribute in declared:  # a configuration masks all of them but identifiers
            if attribute.role is not Role.IDENTIFIER and attribute.name not in specs:
                what = f"configuration.masks.{attribute.name}"
                self._differs(what, NOTHING, "a column with a mask")
        self._made_of_masks()

    def _mask(self, name: str, spec: Any) -> Mask | None:
        """Return the mask that is written as `spec`; None if it is not valid or lacks its hierarchy."""
        attribute = None if self.policy is None else self.policy.attributes.get(name)
        try:
            return parse_mask(spec, hierarchy=attribute.hierarchy if attribute else None)
        except AegisError as error:
            if attribute is None and "level" in json.dumps(spec):
                self.unchecked.append(
                    f"configuration.masks.{name}: needs the hierarchy in your policy (--policy)"
                )
            else:
                self._differs(f"configuration.masks.{name}", spec, error.message)
            return None

    def _candidate(self, name: str, mask: Mask) -> None:
        """Record a mask of the attribute `name` that is not among the policy's candidates."""
        attribute = None if self.declared is None else self.declared.attributes.get(name)
        if attribute is None or (
            self.policy is None and names_hierarchies(self.document["policy"])
        ):
            return
        parameters = mask_parameters(mask.spec())
        listed = (form for mask in attribute.masks for form in (mask, mask.unlisted()))
        if not any(mask_parameters(candidate.spec()) <= parameters for candidate in listed):
            self.unchecked.append(f"configuration.masks.{name}: no candidate of the policy")

    def _odd_values(self, specs: Mapping[str, Any], masks: Mapping[str, Mask]) -> None:
        """Record values of columns that their mask (in `specs`, as certified) cannot show."""
        fitted = {n: mask for n, mask in masks.items() if mask.fitted or not mask.idempotent}
        odd = odd_values(self.source, fitted)
        for name, mask in masks.items():
            field = f"configuration.masks.{name}"
            if odd.get(name):
                self.mismatches.append(Mismatch(field, specs[name], odd[name]))
            elif odd.get(name) is None and str(mask) != "identity":
                text = f"{field}: the certificate does not record the groups of {mask}"
                if not mask.fitted:
                    text = (
                        f"{field}: the certificate does not list the values that {mask} learnt, "
                        "because the release does not show all of them"
                    )
                self.unchecked.append(text)

    def _made_of_masks(self) -> None:
        """Record where statements on noise or learnt bounds do not follow from the stated masks."""
        if self.declared is None:
            return
        masks = self._certified_masks().masks
        quasi = {attribute.name for attribute in self.declared.quasi_identifiers}
        noised = [name for name in noise_of(masks) if name in quasi]
        certified = self.document.get("noised_quasi_identifiers")
        if names_in(certified) is None or sorted(names_in(certified) or ()) != sorted(noised):
            self._differs("noised_quasi_identifiers", certified, noised)
        bounds = learnt_bounds(masks, self.declared.shared_rows)
        self._differences("learnt_bounds", self.document.get("learnt_bounds", NOTHING), bounds)

    def _counts(self) -> None:
        """Record numbers of rows that contradict the file, each other, or the rule's limit."""
        rows, released = self.document["input"].get("rows"), self.source.rows
        suppressed = self.document.get("suppressed_rows")
        if not is_count(rows):
            self._differs("input.rows", rows, "a number of rows")
        elif rows >= released:  # fewer cannot be
            self._differs("suppressed_rows", suppressed, rows - released)
            if is_count(suppressed):  # what is not a count differs already
                self._limit("suppressed_rows", rows, suppressed, persons=False)
        unseen = self.document.get("unseen_rows")
        if not isinstance(unseen, Mapping) or not all(map(is_count, unseen.values())):
            self._differs("unseen_rows", unseen, "numbers of rows by the names of columns")
        elif self.declared is not None and self.declared.unseen is Unseen.ERROR:
            self._differs("unseen_rows", unseen, {})
        else:
            self.unchecked.append(f"unseen_rows: {_OF_INPUT}")
        self._persons()

    def _limit(self, what: str, rows: Any, suppressed: Any, *, persons: bool) -> None:
        """Record the field `what` if more of the `rows` are `suppressed` than the rule allows."""
        if self.declared is None or persons != (self.declared.person is not None):
            return
        if not (is_count(rows) and is_count(suppressed)):
            self._differs(what, suppressed, "a number")
            return
        allowed = self.declared.privacy.allowed_rows(rows)
        if self.declared.privacy.criteria and suppressed > allowed:
            self._differs(what, suppressed, f"at most {allowed}")

    def _persons(self) -> None:
        persons, suppressed = self.document.get("persons"), self.document.get("suppressed_persons")
        if self.declared is None:
            return
        if self.declared.person is None:
            self._differs("persons", persons, None)
            self._differs("suppressed_persons", suppressed, None)
            return
        self.unchecked.append(
            "persons, suppressed_persons: the release does not show the suppressed persons"
        )
        self._limit("suppressed_persons", persons, suppressed, persons=True)

    def _privacy(self) -> Audit | None:
        certified = self.document["privacy"]
        if self._roles(certified):
            return None
        if certified.get("person") not in (None, *self.source.columns):
            return self._of_persons(certified)
        named = [*certified["quasi_identifiers"], *certified["sensitive"]]
        lacking = [name for name in named if name not in self.source.columns]
        if lacking:
            self._differs("privacy", named, f"no column {', '.join(lacking)}")
            return None
        audited = self._audited(certified)
        self._rule(certified, audited)
        figures = without(as_json(audited.to_dict()), *_OF_RULE)
        if self.document.get("certificate") == 1:  # whose version looked at less
            outside = figures.pop("outside")
            if "outside" in certified:
                figures["outside"] = stated_fields(certified["outside"], outside)
        needless, stated_now = self._needing_more(), without(certified, *_OF_RULE)
        notes = certified.get("notes")
        if isinstance(notes, list):
            former = [FORMER_NOTES.get(n, n) if isinstance(n, str) else n for n in notes]
            stated_now["notes"] = former
        for what, entry, measured in differing(stated_now, figures, "privacy"):
            if not any(fnmatch(what, pattern) for pattern in needless):
                self.mismatches.append(Mismatch(what, entry, measured))
        return audited

    def _of_persons(self, certified: Mapping[str, Any]) -> Audit:
        """Audit rows though the rule counts persons; record a class with fewer rows than the k."""
        person = str(certified["person"])
        self._differs("privacy.violations", certified.get("violations"), [])
        self._differs("privacy.passed", certified.get("passed"), True)
        quasi, sensitive = certified["quasi_identifiers"], certified["sensitive"]
        audited = audit_rows(self.source, quasi, sensitive, person)
        least, k, persons = audited.report.k, certified.get("k"), self.document.get("persons")
        self.unchecked.append(
            f"privacy: figures of persons ({person}), whom the release does not distinguish. The smallest "
            f"class has {f'{k:,}' if is_count(k) else '?'} of them by the certificate, and {least:,} rows in the file"
        )
        if isinstance(k, int) and isinstance(persons, int) and least < k <= persons:
            self._differs("privacy.k", k, f"a class of {least:,} rows")
        return audited

    def _needing_more(self) -> list[str]:
        """Return patterns of the names of fields that only a population or hierarchy could check."""
        patterns = ["privacy.outside.implied*"]
        self.unchecked.append(f"privacy.outside.implied: {_OF_EACH_ROW}")
        if self._crowd_unknown(rule_of(self.document["policy"].get("privacy"))):
            patterns += ["privacy.risk.journalist*", "privacy.risk.marketer*", "privacy.notes*"]
        if self.policy is None and names_hierarchies(self.document["policy"]):
            patterns.append("privacy.t_closeness.*.hierarchical")
            self.unchecked.append(f"{patterns[-1]}: needs the hierarchy in your policy (--policy)")
        return patterns

    def _rule(self, certified: Mapping[str, Any], audited: Audit) -> None:
        """Record if `certified` and the audit of the file disagree on whether the rule is met."""
        noised = names_in(self.document.get("noised_quasi_identifiers"))
        violations = audited.violations
        planned: tuple[list[str], bool | None] = [], True
        if noised:  # the plan formed classes by true values, which the file does not show
            criteria = () if audited.rule is None else audited.rule.criteria
            monotone = tuple(c for c in criteria if c.model.monotone)
            rest = [n for n in audited.quasi_identifiers if n not in noised]
            planned = list(violations), audited.passed
            violations = audit(
                self.source, quasi_identifiers=rest, policy=self.policy, rule=PrivacyRule(monotone)
            ).violations
        self._differs("privacy.violations", certified.get("violations"), planned[0])
        self._differs("privacy.passed", certified.get("passed"), planned[1])
        for violation in violations:
            self._differs("privacy.rule", "met", violation)

    def _claims(self, audited: Audit | None) -> None:
        """Record if a class of the file is smaller than the k that a record-level method promises."""
        method = self.document.get("anonymizer")
        claims = method.get("claims") if isinstance(method, Mapping) else None
        k = claims.get("k") if isinstance(claims, Mapping) else None
        if audited is not None and isinstance(k, int) and k > audited.report.k:
            self._differs("anonymizer.claims.k", k, audited.report.k)

    def _roles(self, certified: Mapping[str, Any]) -> bool:
        """Record certified roles or rules that differ from the policy; return whether roles differ."""
        before = len(self.mismatches)
        for key in ("quasi_identifiers", "sensitive"):
            if names_in(certified.get(key)) is None:
                self._differs(f"privacy.{key}", certified.get(key), "a list of names")
        if len(self.mismatches) > before:
            return True
        if self.declared is not None:
            columns = self.source.columns
            # Persons were counted before columns without values were left out.
            names = set(columns) if self.declared.person is None else set(self.declared.attributes)
            quasi = [a.name for a in self.declared.quasi_identifiers if a.name in names]
            protected = (n for n in self.declared.sensitive if n in names)
            sensitive = [*dict.fromkeys((*protected, *self.declared.privacy.sensitive))]
            self._differs("privacy.quasi_identifiers", certified["quasi_identifiers"], quasi)
            self._differs("privacy.sensitive", certified["sensitive"], sensitive)
            self._differs("privacy.person", certified.get("person"), self.declared.person)
        differing = len(self.mismatches) > before
        self._differs("privacy.rule", certified.get("rule"), self.document["policy"].get("privacy"))
        return differing

    def _audited(self, certified: Mapping[str, Any]) -> Audit:
        # The policy's rule: a weaker one is said to differ.
        rule = rule_of(self.document["policy"].get("privacy"))
        if self._crowd_unknown(rule):
            named = "population" in self.document["policy"]
            needed = "the policy" if named else "the policy and --original, for the weights"
            self.unchecked.append(f"the figures that need a population: give {needed}")
            rule = rule.without_crowd
        if rule.hierarchical and self.policy is None:
            self.unchecked.append(f"the rule {rule}, which needs a hierarchy: give the policy")
            rule = replace(
                rule,
                criteria=tuple(c for c in rule.criteria if c.attribute not in rule.hierarchical),
            )
        rule = self._checkable(rule, list(certified.get("quasi_identifiers") or ()))
        checked = audit(
            self.source,
            quasi_identifiers=list(certified.get("quasi_identifiers") or ()),
            sensitive=list(certified.get("sensitive") or ()),
            policy=self.declared,
            rule=PrivacyRule(rule.criteria, rule.suppression),
            configuration=None
            if certified.get("differential_privacy") is None
            else self._certified_masks(),
            population=self._population,
        )
        # What the certificate states of a release that a policy without a rule allows.
        return checked if certified.get("rule") is not None else replace(checked, rule=None)

    def _checkable(self, rule: PrivacyRule, quasi: list[str]) -> PrivacyRule:
        """Return the rule; without criteria on hierarchies unless all of `quasi` have a hierarchy."""
        if not rule.by_leaves or (self.policy and not without_hierarchy(self.policy, quasi)):
            return rule
        on_leaves = [c for c in rule.criteria if ModelNeed.LEAVES in c.model.needs]
        self.unchecked += [
            f"{criterion}, which needs a hierarchy of every quasi-identifier: give the policy"
            for criterion in on_leaves
        ]
        return replace(rule, criteria=tuple(c for c in rule.criteria if c not in on_leaves))

    def _certified_masks(self) -> Configuration:
        """Return the valid masks of the certificate, without those whose hierarchy is missing."""
        certified = self.document.get("configuration")
        specs = certified.get("masks") if isinstance(certified, Mapping) else None
        attributes = {} if self.policy is None else self.policy.attributes
        parsed = {}
        for name, spec in specs.items() if isinstance(specs, Mapping) else ():
            hierarchy = attributes[name].hierarchy if name in attributes else None
            with suppress(AegisError):  # `_mask` says so
                parsed[name] = parse_mask(spec, hierarchy=hierarchy)
        return Configuration("certified", parsed)

    def _crowd_unknown(self, rule: PrivacyRule) -> bool:
        """Return whether the rule needs a population of the release that the user has not given."""
        counted = {"population", "weight"} & set(self.document["policy"])
        return rule.by_crowd and bool(counted) and self._population is None

    @cached_property
    def _population(self) -> Source | None:
        return certified_population(self.policy, self.original, self._certified_masks().masks)

    def _utility(self) -> None:
        """Measure the utility of the released rows, and record differences from the certificate."""
        certified = self.document.get("utility")
        if self.declared is None:
            return
        hidden = [name for name in (self.declared.weight, self.declared.person) if name]
        for name in hidden:
            needed = f"the column {name!r}, which the release does not contain"
            if name in self.source.columns:  # masked, or as tokens
                needed = f"the original values of {name!r}"
            self.unchecked.append(f"utility: needs {needed}")
        if hidden:
            return
        if self.declared.tasks:
            self._utility_of_labels(certified)
            return
        try:
            shows = tells_classes_apart(self.source, self.declared)
            if not shows or not isinstance(certified, Mapping):
                measured = "two classes of the label" if shows else None
                self._differs("utility", certified, measured)
                return
            chosen = MEASURES.get(str(certified.get("measure")))
            summary = summarize(with_hidden(self.source, self.declared), as_it_is(self.declared))
        except AegisError as error:
            self._differs("utility", certified, error.message)
            return
        if summary.sampled:
            self.unchecked.append("utility: it was measured on a sample of the rows")
            return
        self._measured_again(certified, chosen, summary)

    def _measured_again(
        self, certified: Mapping[str, Any], chosen: Measure, summary: Summary
    ) -> None:
        """Record where the certified utility differs from that of the released rows, which
        the measure `chosen` computes from their `summary`.
        """
        self.mismatches += impossible_losses(self.document, summary.label.classes)
        roles = stated_roles(certified.get("columns"))
        scorer = Scorer(summary, (lambda: roles) if roles else None)
        name = "value" if "value" in certified else "released"  # as earlier certificates call it
        value = scorer.value(scorer.unmasked, chosen)
        self._differs(f"utility.{name}", certified.get(name), value)
        for what, entry, measured in columns_differ(certified, scorer, chosen):
            self._differs(what, entry, measured)
        if name == "value":
            self._compared(certified, value, chosen, scorer)

    def _utility_of_labels(self, certified: Any) -> None:
        """Measure the utility of each label; record differences from the certified one."""
        assert self.declared is not None
        all_rows = self.document.get("suppressed_rows") == 0
        try:
            for mismatch in labels_differ(certified, self.source, self.declared, all_rows=all_rows):
                self._differs(mismatch.what, mismatch.certified, mismatch.measured)
        except AegisError as error:
            self._differs("utility", certified, error.message)
        self.of_input = [f"{name} of each label" for name in OF_INPUT]

    def _compared(
        self, certified: Mapping[str, Any], value: float, chosen: Measure, scorer: Scorer
    ) -> None:
        """Record fields of the certified utility that contradict the measured `value`."""
        reference = certified.get("reference")
        self._differs("utility.measure", certified.get("measure"), chosen.name)
        self._differs("utility.reference_name", certified.get("reference_name"), Reference.UNMASKED)
        self._differs("utility.rows", certified.get("rows"), Rows.RELEASED)
        number = scorer.summary.number
        of_number = () if number is None else ("rmse", "reference_rmse", "one_row")
        for key in ("kept", "stderr", "lost_classes", *of_number):
            if key not in certified:
                self._differs(f"utility.{key}", NOTHING, "a field of every utility")
        of_input = ["utility.reference", "utility.stderr", "utility.lost_classes"]
        of_input += ["utility.columns.*.weight, .unmasked and .kept"] * ("columns" in certified)
        if number is not None:
            figure = UtilityFigure(chosen.name, value, value).with_errors(number, number)
            for key in ("rmse", "one_row"):
                self._differs(f"utility.{key}", certified.get(key), figure.to_dict().get(key))
            of_input.append("utility.reference_rmse")
        all_rows = self.document.get("suppressed_rows") == 0
        if all_rows:
            lost = certified.get("lost_classes")
            self._differs("utility.lost_classes", lost, lost_like(lost, {}))
            of_input.remove("utility.lost_classes")
        if not is_number(reference):
            self._differs("utility.reference", reference, "a number")
        elif all_rows or chosen.constant is None:  # else the input's classes say where it begins
            percent, rows = certified.get("kept"), scorer.label_rows
            share = share_like(percent, value, reference, chosen, rows, self.source.rows)
            self._differs("utility.kept", percent, share)
        else:
            of_input.append("utility.kept")
        self.of_input = of_input

    def _original(self, key: PrivateKey | None) -> None:
        """Record differences from the original table or, without this table, the unchecked fields."""
        if self.original is None:
            self.unchecked += [
                f"{', '.join(('input', *self.of_input))}: {_OF_INPUT} (--original TABLE)"
            ]
            return
        compared = digest_of_original(self.document, self.original, key)
        if isinstance(compared, str):
            self.unchecked.append(compared)
        else:
            self._differs(compared.what, compared.certified, compared.measured)
        for mismatch in original_differs(self.document, self.original, self.source, self.declared):
            self._differs(mismatch.what, mismatch.certified, mismatch.measured)
        self.unchecked.append("input.origin: files may be renamed")

    def _rest(self) -> None:
        """Record fields of the certificate that nothing can check, and fields that it lacks."""
        makers = [key for key in ("configuration", "anonymizer") if key in self.document]
        if len(makers) != 1:
            self._differs("configuration", " and ".join(makers) or NOTHING, "what made the release")
        of_kind = OF_KIND[makers[0]] if len(makers) == 1 else ()
        for key in (*CERTIFIED, *of_kind):
            if key not in self.document:
                self._differs(key, NOTHING, "a field of every certificate")
        for what, why in TAKEN_AS_STATED.items():
            if what.partition(".")[0] in self.document:
                self.unchecked.append(f"{what}: {why}")
        wrong = any(each.what.startswith("catalog.") for each in self.mismatches)
        if "catalog" in self.document and not wrong:
            self.unchecked.append(f"catalog: {asked_elsewhere(self.document['catalog'])}")
        fields = {*CERTIFIED, *SEAL, *OF_KIND["configuration"], *TAKEN_AS_STATED, "catalog"}
        others = (key for key in self.document if key not in fields)
        self.unchecked += [f"{key}: nothing in the file shows it" for key in others]


_OF_RULE = ("rule", "violations", "passed")
"""Fields of the privacy figures that depend on the rule, which is compared with the policy."""


__all__ = ["CertificateCheck", "Mismatch", "check_certificate", "read_certificate"]
