"""Pages of the catalog's workbench, on which you edit a policy with a protected summary."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from fastapi.responses import PlainTextResponse
from starlette.datastructures import FormData
from starlette.responses import Response

from aegis.advisor import Advice
from aegis.masks import Mask
from aegis.policy import Policy, Role, dump_policy
from aegis.present import value_shown
from aegis.safe.protect import ProtectedSummary, narrowed, rank_protected
from aegis.safe.protect import search_protected as search
from aegis.service.catalog import Action, data_sets
from aegis.service.catalog.access import may
from aegis.service.catalog.errors import NotThere
from aegis.service.catalog.flow import policy_of
from aegis.service.catalog.records import DataSet, Version
from aegis.service.catalog.summaries import as_declared, costs_in, read, written
from aegis.service.identity import Call, CallOf, FormCallOf
from aegis.service.known_columns import proposed_masks
from aegis.service.pages import controls
from aegis.service.pages.local import FRONT, FormOf, Yaml, front_card
from aegis.service.pages.render import fragment, page, see
from aegis.service.routes import Routes
from aegis.service.workbench import edited

routes = Routes(include_in_schema=False)
SECONDS = 3.0
"""Largest number of seconds of a search for the page; the worker searches longer for a request."""
_CONFIGURATIONS = 20
_VALUES_SHOWN = 8


@dataclass(frozen=True)
class BenchPage:
    """The results for a policy that the workbench shows.

    Attributes
    ----------
    advice, searched
        Ranked configurations, and whether a search found them to be the best.
    costs
        Utility cost of each candidate mask.
    best, preview
        The first configuration as YAML; and for each attribute its mask, with examples of masked
        values.
    changes
        Differences between the edited policy and the one of the summary, in words.
    unknown
        Attributes and masks that the summary does not have.
    """

    advice: Advice
    searched: bool
    costs: list[dict[str, Any]]
    best: str
    preview: tuple[tuple[str, str, str], ...]
    changes: tuple[str, ...]
    unknown: tuple[str, ...]


def view_of(
    summary: ProtectedSummary, earlier_policy: Policy, policy: Policy, *, searched: bool = False
) -> BenchPage:
    """Compute costs of masks and the best configurations for a protected summary, made under
    `earlier_policy`, under an edited policy. `searched` tells whether to search for the best one,
    for a few seconds.
    """
    masks = {a.name: a.masks for a in policy.attributes.values()}
    narrowed_summary = narrowed(summary, masks)
    advice = (
        search(narrowed_summary, top=10, time_limit=SECONDS)
        if searched
        else rank_protected(
            narrowed_summary,
            policy=policy,
            generate_count=None if policy.configurations else _CONFIGURATIONS,
        )
    )
    best = advice.best
    preview: tuple[tuple[str, str, str], ...] = ()
    if best is not None:
        preview = tuple(
            (name, str(candidate.declared), _values_text(candidate.labels))
            for name, attribute in narrowed_summary.attributes.items()
            for candidate in [attribute.candidate(best.configuration.masks[name])]
        )
    return BenchPage(
        advice,
        searched,
        costs_in(narrowed_summary),
        "" if best is None else written(as_declared(narrowed_summary, best.configuration)),
        preview,
        tuple(_changes(earlier_policy, policy)),
        tuple(_unknown(summary, policy)),
    )


def _values_text(texts: tuple[str, ...]) -> str:
    more = f" and {len(texts) - _VALUES_SHOWN:,} more" if len(texts) > _VALUES_SHOWN else ""
    return "; ".join(str(value_shown(text)) for text in texts[:_VALUES_SHOWN]) + more


def _changes(earlier_policy: Policy, policy: Policy) -> list[str]:
    """Return one line for each difference between two policies."""
    lines = []
    if earlier_policy.privacy != policy.privacy:
        lines.append(f"the rule: {policy.privacy} instead of {earlier_policy.privacy}")
    for name, attribute in policy.attributes.items():
        old = earlier_policy.attributes.get(name)
        if old is None:
            lines.append(f"{name}: new")
            continue
        if old.role != attribute.role:
            lines.append(f"{name}: {attribute.role} instead of {old.role}")
        removed = [str(m) for m in old.masks if m not in attribute.masks]
        new_masks = [str(m) for m in attribute.masks if m not in old.masks]
        lines += [f"{name}: without {', '.join(removed)}"] if removed else []
        lines += [f"{name}: with {', '.join(new_masks)}"] if new_masks else []
    lines += [
        f"{name}: removed" for name in earlier_policy.attributes if name not in policy.attributes
    ]
    return lines


def _unknown(summary: ProtectedSummary, policy: Policy) -> list[str]:
    """Return one line for each attribute with candidates that the summary does not contain."""
    lines = []
    for name, attribute in policy.attributes.items():
        summarised = summary.attributes.get(name)
        masks = () if summarised is None else tuple(c.declared for c in summarised.candidates)
        missing = [str(mask) for mask in attribute.masks if mask not in masks]
        lines += [f"{name} ({', '.join(missing)})"] if missing else []
    return lines


@dataclass(frozen=True)
class _Subject:
    """A data set, its newest version, its protected summary, and whether the actor may propose a
    policy.
    """

    data_set: DataSet
    version: Version
    summary: ProtectedSummary
    may_propose: bool

    @property
    def before(self) -> Policy:
        return policy_of(self.version.policy)


def _subject_of(call: Call, identifier: str) -> _Subject:
    with call.reading() as session:
        data_set = data_sets.authorised(session, call.actor, Action.STUDY, identifier)
        version = data_sets.newest(session, identifier)
        subject = data_sets.subject_of(session, call.actor, data_set)
    if version is None:
        raise NotThere("This data set has no summary yet.", hint="Ask its provider for one.")
    summary = read(call.catalog.objects.get(version.summary_key))
    return _Subject(data_set, version, summary, may(call.actor, Action.EDIT_DATA_SET, subject))


@routes.get("/data-sets/{identifier}/workbench", Action.STUDY)
def show(identifier: str, call: CallOf, search: bool = False) -> Response:
    """Show controls for roles, masks and rule, with costs and configurations from the protected summary."""
    subject = _subject_of(call, identifier)
    return _page(call, subject, subject.before, searched=search)


@routes.post("/data-sets/{identifier}/workbench/draw", Action.STUDY)
def draw(identifier: str, call: CallOf, form: FormOf) -> Response:
    """Show the results for the present settings of the controls."""
    return _results(call, identifier, form, searched=False)


@routes.post("/data-sets/{identifier}/workbench/best", Action.STUDY)
def best(identifier: str, call: CallOf, form: FormOf) -> Response:
    """Search for the best configuration among the current candidates."""
    return _results(call, identifier, form, searched=True)


@routes.post("/data-sets/{identifier}/workbench/front", Action.STUDY)
def front(identifier: str, call: CallOf, form: FormOf) -> Response:
    """Draw a chart of utility against privacy for the current candidate masks."""
    subject, policy, _ = _edited(call, identifier, form)
    summary = narrowed(subject.summary, {a.name: a.masks for a in policy.attributes.values()})
    advice = search(summary, policy=policy, top=1, time_limit=SECONDS, front=FRONT)
    return front_card(advice.require_front())


@routes.post("/data-sets/{identifier}/workbench/policy", Action.STUDY)
def take(identifier: str, call: FormCallOf, policy: Yaml) -> Response:
    """Load a policy that was edited as text into the workbench."""
    return _page(call, _subject_of(call, identifier), policy_of(policy))


@routes.post("/data-sets/{identifier}/workbench/policy.yaml", Action.STUDY)
def download(identifier: str, call: FormCallOf, policy: Yaml) -> Response:
    """Download the policy as a file."""
    _subject_of(call, identifier)
    headers = {"Content-Disposition": f'attachment; filename="{identifier}-policy.yaml"'}
    return PlainTextResponse(dump_policy(policy_of(policy)), headers=headers)


@routes.post("/data-sets/{identifier}/workbench/propose", Action.EDIT_DATA_SET)
def propose(identifier: str, call: FormCallOf, policy: Yaml) -> Response:
    """Send the policy to the provider as a proposal."""
    call.write(data_sets.propose, identifier, dump_policy(policy_of(policy)))
    return see(f"/data-sets/{identifier}")


def _page(call: Call, subject: _Subject, policy: Policy, *, searched: bool = False) -> Response:
    return page(
        call,
        "protected_bench.html",
        yaml=dump_policy(policy),
        view=view_of(subject.summary, subject.before, policy, searched=searched),
        **vars(subject),
        **_controls(subject, policy),
    )


def _results(call: Call, identifier: str, form: FormData, *, searched: bool) -> Response:
    subject, policy, changed = _edited(call, identifier, form)
    view = view_of(subject.summary, subject.before, policy, searched=searched)
    values = {"view": view, "yaml": dump_policy(policy), "swapped": True}
    if changed:  # other candidates are there to choose from now
        values |= _controls(subject, policy) | {"form_key": call.form_key, "opened": changed}
    return fragment("protected_view.html", **values)


def _controls(subject: _Subject, policy: Policy) -> dict[str, Any]:
    return {
        "base": f"/data-sets/{subject.data_set.id}/workbench",
        **controls.form_values(policy),
        "policy_base": dump_policy(policy),
    }


def _edited(
    call: Call, identifier: str, form: FormData
) -> tuple[_Subject, Policy, dict[str, Role]]:
    """Return the data set, its policy with the changes of the form, and the changed roles."""
    call.require_form_key(str(form.get("form_key", "")))
    subject = _subject_of(call, identifier)
    base = policy_of(str(form.get("base", "")) or subject.version.policy)
    policy, changed = edited(
        base,
        controls.changes(base, form),
        lambda name, role: _proposed(subject.summary, base.attributes[name].masks, name, role),
    )
    return subject, policy, changed


def _proposed(
    summary: ProtectedSummary, present: Sequence[Mask], name: str, role: Role
) -> list[Any]:
    """Return proposed masks for a column in another `role`, as a policy has them, or the `present`
    masks if the summary lists no value of the column. A quasi-identifier can always be suppressed.
    """
    masks = proposed_masks(summary, name, role) or present
    specs = [mask.spec() for mask in masks] or ["identity"]
    leaves = role is Role.QUASI_IDENTIFIER and "suppress" not in specs
    return [*specs, "suppress"] if leaves else specs
