"""Create requests, and move them step by step to a release.

Each function does one step of `aegis.service.catalog.states` in the transaction of its session, and
adds a log entry. Approval freezes the digests of policy, summary, configuration and terms. If one
of them has changed when the release is to be made, the request is sent back.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import timedelta
from functools import lru_cache
from typing import Any

from sqlalchemy import ColumnElement, delete, func, select
from sqlalchemy.orm import Session, defer, joinedload, lazyload

from aegis.errors import require_known
from aegis.measures import LabelKind, measures_of
from aegis.policy import load_policy
from aegis.policy.lines import read_yaml
from aegis.service.catalog import data_sets, jobs, statements
from aegis.service.catalog.access import ActedOn, Action, Actor, authorise, may
from aegis.service.catalog.accounts import actor_of
from aegis.service.catalog.errors import CatalogError, NotAllowed, NotThere, WrongState
from aegis.service.catalog.log import append
from aegis.service.catalog.records import (
    Account,
    Approval,
    ReleaseRecord,
    Request,
    Version,
    now,
)
from aegis.service.catalog.states import FINAL, RequestState, RequestStep, after, done, starts_of

_CHANGED = (
    "Submit the request again: the data set, its policy, its terms or its releases have changed."
)
_AGAIN = (
    "So nobody can make this release now. Once the data set is in the catalog again, with another "
    "provider or with this one, you can submit the request again. You can also withdraw it."
)
WITH_OTHERS = (
    RequestState.SUBMITTED,
    RequestState.IN_REVIEW,
    RequestState.APPROVED,
    RequestState.RUNNING,
    RequestState.FAILED,
)
"""States in which a request waits for an operator, an approver or an agent."""
_END_JOBS = (RequestStep.DRIFT, RequestStep.RETURN, RequestStep.APPROVE)
"""Steps after which nobody waits for a search or a check any more."""
_WITH_RELEASE = (RequestState.RELEASED, RequestState.EXPIRED, RequestState.REVOKED)
"""States in which the release exists or has existed."""
SIGNED_IN = (RequestState.IN_REVIEW, RequestState.APPROVED, RequestState.FAILED)
"""States in which an approval can still be signed."""
_OTHERS = {
    RequestStep.APPROVE: (
        "The request has changed since the first approval.",
        "Choose the configuration again. Then both approvers approve.",
    ),
    RequestStep.RENEW: (
        "The first approver renewed the release for another number of days.",
        "Renew it for the same number of days.",
    ),
}
"""Message and hint if another person has approved other content."""
_IN_LISTS = (
    defer(Request.configuration),
    lazyload(Request.data_set),
    joinedload(Request.version).load_only(Version.number),
    joinedload(Request.consumer).load_only(Account.name),
)
"""Columns that lists load; the other columns are long and only shown on the page of a request."""


def draft(session: Session, by: Actor, /, data_set_id: str, **fields: Any) -> Request:
    """Create a draft of a request for the newest version of a data set. `fields` are purpose and,
    optionally, label, measure, models and terms_accepted.
    """
    data_set = data_sets.authorised(session, by, Action.REQUEST, data_set_id)
    data_sets.require_served(data_set)
    version = data_sets.newest(session, data_set_id)
    if version is None:
        raise WrongState(f"{data_set_id} has no version.", hint="Ask its provider.")
    request = Request(data_set_id=data_set.id, version_id=version.id, consumer_id=by.account)
    _fill(request, version, data_set.label, **fields)
    session.add(request)
    session.flush()
    tell(session, by, request, "request drafted")
    return request


def change(session: Session, by: Actor, /, request_id: str, **changes: Any) -> Request:
    """Change a draft, or a request that was sent back."""
    request = authorised(session, by, Action.CHANGE_REQUEST, request_id)
    if request.state not in (RequestState.DRAFT, RequestState.RETURNED):
        raise WrongState(
            f"A request that is {request.state} cannot be changed.",
            hint="Withdraw it, or ask the operator to return it.",
        )
    names = ("purpose", "label", "measure", "models", "terms_accepted")
    fields = {name: getattr(request, name) for name in names} | changes
    _fill(request, request.version, request.data_set.label, **fields)
    tell(session, by, request, "request changed")
    return request


def submit(session: Session, by: Actor, request_id: str) -> Request:
    """Submit a request for review; it then refers to the newest version of the data set."""
    request = authorised(session, by, Action.CHANGE_REQUEST, request_id)
    if request.data_set.terms and not request.terms_accepted:
        raise CatalogError(
            "You have not accepted the terms of the data set.",
            hint="Read the terms (aegis catalog show), then accept them (--accept-terms).",
        )
    data_sets.require_served(request.data_set)
    newest = data_sets.newest(session, request.data_set_id)
    if newest is None or not request.data_set.published:
        raise WrongState(f"{request.data_set_id} is not published.", hint="Ask its provider.")
    request.version_id, request.version = newest.id, newest
    request.configuration, request.answer = None, None
    request.asked = data_sets.terms_of(request.data_set)
    return _step(session, by, request, RequestStep.SUBMIT, version=newest.number)


def review(session: Session, by: Actor, request_id: str) -> Request:
    """Start the review of a submitted request."""
    request = authorised(session, by, Action.REVIEW, request_id)
    return _step(session, by, request, RequestStep.REVIEW)


def require_review(request: Request) -> None:
    """Raise `WrongState` unless a request is in review."""
    if request.state != RequestState.IN_REVIEW:
        raise WrongState(
            f"You cannot choose a configuration for a request that is {request.state}.",
            hint="First start the review (aegis catalog review).",
        )


def set_configuration(
    session: Session, by: Actor, request: Request, configuration: str, answer: Mapping[str, Any]
) -> None:
    """Store the configuration to release and the `answer` of its check; delete earlier approvals.
    Raise `WrongState` if the request is no longer in review.
    """
    require_review(request)
    request.configuration, request.answer = configuration, dict(answer)
    _forget_approvals(session, request)
    digest, holds = statements.digest(configuration), bool(answer.get("holds"))
    tell(session, by, request, "configuration checked", digest=digest, holds=holds)


def approve(
    session: Session, by: Actor, request_id: str, signed: Mapping[str, Any] | None = None
) -> Request:
    """Approve a request. The last required approval freezes the content of the release.

    `signed` is the statement from `statement`, signed on the approver's machine. An approval
    without it counts in the service, but not for agents that require signatures. It can be added
    later, or replaced if it has expired or was signed with another key.

    Raises
    ------
    NotAllowed
        The actor made the request, has approved it already, or may not approve it.
    WrongState
        There is no configuration, the check with earlier releases is missing or failed, the data
        set has changed since this check, or the request has changed since another person approved
        it.
    CatalogError
        The signature is not for the content of this release, or the agent does not know its key.
    """
    request = authorised(session, by, Action.APPROVE, request_id)
    approval = _approval_of(session, by, request)
    if approval and signed is not None and _is_signed_anew(session, request, approval, signed):
        return _sign(session, by, request, approval, signed)
    after(RequestState(request.state), RequestStep.APPROVE)
    frozen = _frozen(session, request)
    digest = _digest_of(frozen)
    statement = None if signed is None else _checked_statement(request, frozen, signed)
    if not _agreed(session, by, request, RequestStep.APPROVE, digest, signed=statement):
        tell(session, by, request, "approved by one of two", digest=digest)
        return request
    request.frozen = frozen
    return _step(session, by, request, RequestStep.APPROVE, digest=digest)


def _digest_of(frozen: Mapping[str, Any]) -> str:
    """Return the digest of `frozen`, which `_frozen` returns."""
    return statements.digest(json.dumps(frozen, sort_keys=True))


def statement(session: Session, by: Actor, request_id: str) -> dict[str, Any]:
    """Return the statement that an approver signs, and the policy and configuration in it."""
    request = authorised(session, by, Action.APPROVE, request_id)
    frozen = _frozen(session, request) if request.frozen is None else request.frozen
    return {
        "statement": _statement_of(request, frozen),
        "policy": request.version.policy,
        "configuration": request.configuration,
    }


def _statement_of(request: Request, frozen: Mapping[str, Any]) -> dict[str, Any]:
    return statements.statement_of(frozen, request=request.id, source=request.data_set.source)


def signatures(session: Session, request: Request) -> list[dict[str, Any]]:
    """Return the signed approvals of a request, without approvers who may no longer approve it."""
    standing = _standing(session, request)
    return [dict(approval.signed) for approval in standing if approval.signed is not None]


def send_back(session: Session, by: Actor, request_id: str, message: str) -> Request:
    """Send a request back to its consumer, with the required changes."""
    request = authorised(session, by, Action.REVIEW, request_id)
    return _step(session, by, request, RequestStep.RETURN, message=_reason(message))


def reject(session: Session, by: Actor, request_id: str, message: str) -> Request:
    """Reject a request; nobody can change it any more."""
    request = authorised(session, by, Action.REJECT, request_id)
    return _step(session, by, request, RequestStep.REJECT, message=_reason(message))


def withdraw(session: Session, by: Actor, request_id: str) -> Request:
    """Withdraw a request that the actor made."""
    request = authorised(session, by, Action.CHANGE_REQUEST, request_id)
    return _step(session, by, request, RequestStep.WITHDRAW)


def run(session: Session, by: Actor, request_id: str) -> Request:
    """Start an approved release; if approved content has changed, send the request back instead."""
    request = authorised(session, by, Action.RUN, request_id)
    after(RequestState(request.state), RequestStep.RUN)
    if drifted(session, request):
        return _sent_back(session, by, request)
    if len(_standing(session, request)) < needed(request):
        why = "Submit the request again: somebody who approved it has lost the right to approve."
        return _sent_back(session, by, request, why)
    return _step(session, by, request, RequestStep.RUN)


def retry(session: Session, by: Actor, request_id: str) -> Request:
    """Start a failed release again."""
    request = authorised(session, by, Action.RUN, request_id)
    _step(session, by, request, RequestStep.RETRY)
    return run(session, by, request_id)


def drift(session: Session, by: Actor, data_set_id: str) -> int:
    """Send back the unreleased requests whose data set has changed; return how many were sent back."""
    query = select(Request).where(
        Request.data_set_id == data_set_id,
        Request.state.in_((RequestState.IN_REVIEW, RequestState.APPROVED)),
    )
    changed = [request for request in session.scalars(query) if _outdated(session, request)]
    for request in changed:
        _sent_back(session, by, request)
    return len(changed)


def unanswered(session: Session, data_set_ids: Sequence[str]) -> Sequence[Request]:
    """Return the requests for these data sets that wait for somebody else than their consumer,
    oldest first.
    """
    query = select(Request).where(
        Request.data_set_id.in_(data_set_ids), Request.state.in_(WITH_OTHERS)
    )
    return session.scalars(query.order_by(Request.created)).all()


def give_up(session: Session, by: Actor, request: Request, why: str) -> Request:
    """Send a request that nobody can answer any more back to its consumer; `why` is the reason. Its
    jobs must have ended.
    """
    undecided = request.state in starts_of(RequestStep.RETURN)
    step = RequestStep.RETURN if undecided else RequestStep.DRIFT
    return _step(session, by, request, step, message=f"{why} {_AGAIN}")


def complete(session: Session, by: Actor, request: Request, digest: str) -> Request:
    """Record that the release was made, with the SHA-256 of its file."""
    return _step(session, by, request, RequestStep.COMPLETE, digest=digest)


def fail(session: Session, by: Actor, request: Request, reason: str) -> Request:
    """Record that the release failed."""
    return _step(session, by, request, RequestStep.FAIL, message=reason)


def revoke(session: Session, by: Actor, request_id: str, message: str) -> Request:
    """Revoke a release before it expires; people who have downloaded its file keep their copies."""
    request = authorised(session, by, Action.REVOKE, request_id)
    release = release_of(session, request)
    release.revoked = now()
    return _step(session, by, request, RequestStep.REVOKE, message=_reason(message))


def renew(session: Session, by: Actor, request_id: str, days: int) -> Request:
    """Extend a release by `days` from now. The extension needs as many approvals as the release
    did. Raise `CatalogError` if the new end is later than the provider allows, or not later than
    the current end. Raise `NotAllowed` if this account has approved the extension already. Raise
    `WrongState` if the request is not released, or another person approved another number of days.
    """
    request = authorised(session, by, Action.APPROVE, request_id)
    after(RequestState(request.state), RequestStep.RENEW)
    most = days_of(request)
    if not 1 <= days <= most:
        raise CatalogError(
            f"A release cannot be renewed for {days} days.",
            hint=f"Allowed: 1 to {most} days from now on.",
        )
    release, until = file_of(session, request), now() + timedelta(days=days)
    if until <= release.expires:
        raise CatalogError(
            f"The release lasts until {release.expires:%Y-%m-%d} already.",
            hint="Give more days, or renew it later.",
        )
    digest = statements.digest(f"{release.digest} {days}")
    if not _agreed(session, by, request, RequestStep.RENEW, digest):
        tell(session, by, request, "renewed by one of two", days=days)
        return request
    old, release.expires = release.expires, until
    _forget_approvals(session, request, RequestStep.RENEW)
    return _step(
        session, by, request, RequestStep.RENEW, before=old.isoformat(), until=until.isoformat()
    )


def expire(session: Session) -> int:
    """Mark the releases whose lifetime has ended as expired; return how many they are."""
    query = select(Request).join(ReleaseRecord, ReleaseRecord.request_id == Request.id)
    over = query.where(Request.state == RequestState.RELEASED, ReleaseRecord.expires <= now())
    requests = session.scalars(over).all()
    system = Actor("", "system", frozenset())
    for request in requests:
        _step(session, system, request, RequestStep.EXPIRE)
    return len(requests)


def release_of(session: Session, request: Request) -> ReleaseRecord:
    """Return the release of a request; raise `NotThere` if there is none."""
    release = session.scalar(select(ReleaseRecord).where(ReleaseRecord.request_id == request.id))
    if release is None:
        raise NotThere(
            "There is no release of this request.", hint="Look at the state of the request."
        )
    return release


def file_of(session: Session, request: Request) -> ReleaseRecord:
    """Return the release of a request; raise `WrongState` if its file was deleted."""
    release = release_of(session, request)
    if not release.object_key:
        raise WrongState(
            "The file of this release was removed after the release had ended.",
            hint="Request the data set again. You can still read the certificate.",
        )
    return release


def revocation(request: Request, release: ReleaseRecord) -> str | None:
    """Return, in words, when and why a release was revoked; None if it was not."""
    if release.revoked is None:
        return None
    return f"the release was revoked on {release.revoked:%Y-%m-%d}: {request.message}"


def earlier(session: Session, request: Request) -> Sequence[ReleaseRecord]:
    """Return all earlier releases of the table; also expired ones, as somebody may have a copy."""
    query = select(ReleaseRecord).where(
        ReleaseRecord.data_set_id == request.data_set_id, ReleaseRecord.request_id != request.id
    )
    return session.scalars(query.order_by(ReleaseRecord.created)).all()


def approvals_of(session: Session, request: Request) -> Sequence[str]:
    """Return the names of the approvers whose approvals count, in order of time."""
    standing = _standing(session, request)
    return [session.get_one(Account, approval.account_id).name for approval in standing]


def _agreed(
    session: Session,
    by: Actor,
    request: Request,
    step: RequestStep,
    digest: str,
    *,
    signed: dict[str, Any] | None = None,
) -> bool:
    """Add the actor's approval of a step (approving or renewing), of the content with this digest;
    return whether enough people have approved it. The approval replaces an earlier one of other
    content by the actor. Approvals of people who may not approve any more are deleted.

    Raise `NotAllowed` if the actor made the request, or has approved the same content already.
    Raise `WrongState` if another person approved other content.
    """
    if request.consumer_id == by.account:
        raise NotAllowed("You cannot approve your own request.", hint="Ask another person.")
    standing = _standing(session, request, step)
    former = _approval_of(session, by, request, step)
    if former is not None and former.digest == digest:
        raise NotAllowed(f"You have {done(step)} this already.", hint="Ask another approver.")
    others = [approval for approval in standing if approval is not former]
    if any(approval.digest != digest for approval in others):
        message, hint = _OTHERS[step]
        raise WrongState(message, hint=hint)
    for approval in _approvals(session, request, step):
        if approval not in others:
            session.delete(approval)
    session.flush()
    approval = Approval(request_id=request.id, account_id=by.account, step=step, digest=digest)
    approval.signed = signed
    session.add(approval)
    session.flush()
    return len(others) + 1 >= needed(request)


def _approvals(
    session: Session, request: Request, step: RequestStep = RequestStep.APPROVE
) -> Sequence[Approval]:
    query = select(Approval).where(Approval.request_id == request.id, Approval.step == step)
    return session.scalars(query.order_by(Approval.created)).all()


def _approval_of(
    session: Session, by: Actor, request: Request, step: RequestStep = RequestStep.APPROVE
) -> Approval | None:
    """Return the actor's own approval of a step of the request; None if there is none."""
    approvals = _approvals(session, request, step)
    return next((approval for approval in approvals if approval.account_id == by.account), None)


def _standing(
    session: Session, request: Request, step: RequestStep = RequestStep.APPROVE
) -> list[Approval]:
    """Return the approvals of a step of the request by people who may still approve it."""
    standing = []
    for approval in _approvals(session, request, step):
        account = session.get(Account, approval.account_id)
        if account is None or account.disabled:
            continue
        actor = actor_of(account)
        if may(
            actor, Action.APPROVE, data_sets.subject_of(session, actor, request.data_set, request)
        ):
            standing.append(approval)
    return standing


def needed(request: Request) -> int:
    """Return the required number of approvals that the provider had set when the request was
    submitted.
    """
    return int(request.asked.get("approvals", request.data_set.approvals))


def days_of(request: Request) -> int:
    """Return how many days a release lasts, as set when the request was submitted."""
    return int(request.asked.get("days", request.data_set.days))


def sees_masks(by: Actor, request: Request) -> bool:
    """Return whether the actor may see the configuration of a request, which its consumer may only
    once the release exists, also after its end. The scopes of a token do not matter.
    """
    subject = ActedOn(consumer=request.consumer_id)
    waits = may(data_sets.unscoped(by), Action.DOWNLOAD, subject)
    return not waits or request.state in _WITH_RELEASE


def _checked_statement(
    request: Request, frozen: Mapping[str, Any], signed: Mapping[str, Any]
) -> dict[str, Any]:
    """Return `signed`, a signed statement; raise an error if it is not about `frozen`."""
    signed_statement = statements.SignedStatement.of(signed)
    other = statements.differences(signed_statement.statement, _statement_of(request, frozen))
    if other:
        raise CatalogError(
            f"The signed statement names another {', '.join(other)}.",
            hint="Sign the request as it is now: aegis catalog approve --key.",
        )
    if not signed_statement.verified():
        raise CatalogError("The signature does not match its statement.", hint="Sign it again.")
    _require_known_signer(request, signed_statement)
    if not now() < signed_statement.expires <= now() + timedelta(days=statements.MOST_DAYS):
        raise CatalogError(
            f"The signed approval ends at {signed_statement.statement['expires']}.",
            hint=f"It must end within {statements.MOST_DAYS} days from now. Sign it again.",
        )
    return signed_statement.to_dict()


def _require_known_signer(request: Request, signed_statement: statements.SignedStatement) -> None:
    """Raise an error if the agent did not list the signer's key when it checked the configuration."""
    signers, key = (request.answer or {}).get("signers"), signed_statement.signature.key
    if signers and key not in signers and request.state == RequestState.IN_REVIEW:
        raise CatalogError(
            f"You signed with the key {key[:8]}..., which the provider's agent does not know.",
            hint="Sign with the key that the provider lists in the agent's file. If the provider has just "
            "added your key, choose the configuration again first.",
        )


def _is_signed_anew(
    session: Session, request: Request, approval: Approval, signed: Mapping[str, Any]
) -> bool:
    """Return whether a signed statement should be added to an approval, which must be of the
    present content, and have no signature yet, an expired one, or one by another key.
    """
    if request.frozen is None and approval.digest != _digest_of(_frozen(session, request)):
        return False
    if approval.signed is None:
        return True
    before, anew = map(statements.SignedStatement.of, (approval.signed, signed))
    return before.expires <= now() or before.signature.key != anew.signature.key


def _sign(
    session: Session, by: Actor, request: Request, approval: Approval, signed: Mapping[str, Any]
) -> Request:
    """Add a signature to an approval, or replace one that has expired or is by another key."""
    if request.state not in SIGNED_IN:
        raise WrongState(
            f"A request that is {request.state} can no longer be approved.",
            hint="Look at the state of the request.",
        )
    frozen = _frozen(session, request) if request.frozen is None else request.frozen
    approval.signed = _checked_statement(request, frozen, signed)
    tell(session, by, request, "approval signed", digest=approval.digest)
    return request


def tell(session: Session, by: Actor, request: Request, action: str, **detail: Any) -> None:
    """Log an action of an actor on a request, with the details."""
    append(session, by.name, action, data_set=request.data_set_id, request=request.id, **detail)


def authorised(session: Session, by: Actor, action: Action, request_id: str) -> Request:
    """Return a request on which the actor may do this action. Raise `NotThere` if the actor may not
    see it, and `NotAllowed` if the actor may only see it.
    """
    request = session.get(Request, request_id)
    unknown = NotThere("There is no request of this number that you may see.", hint="See the list.")
    if request is None:
        raise unknown
    subject = data_sets.subject_of(session, by, request.data_set, request)
    if not may(by, action, subject):
        if not may(data_sets.unscoped(by), Action.SEE_REQUEST, subject):
            raise unknown
        authorise(by, action, subject)
    return request


def listed(
    session: Session,
    by: Actor,
    *,
    state: str | None = None,
    data_set: str | None = None,
    number: str = "",
    offset: int = 0,
    limit: int = 50,
) -> tuple[Sequence[Request], int]:
    """Return a page of the requests that the actor may see, newest first, and their total number.
    `number` is the start of a request's number.
    """
    data_sets.authorise_some(by, Action.SEE_REQUEST)
    conditions = [visible(by)]
    if state is not None:
        conditions.append(Request.state == state)
    if data_set is not None:
        conditions.append(Request.data_set_id == data_set)
    if number:
        conditions.append(Request.id.startswith(number, autoescape=True))
    count = session.scalar(select(func.count(Request.id)).where(*conditions)) or 0
    query = select(Request).where(*conditions).options(*_IN_LISTS)
    query = query.order_by(Request.created.desc()).offset(offset).limit(limit)
    return session.scalars(query).all(), count


def drifted(session: Session, request: Request) -> bool:
    """Return whether the content to release differs from the approved content, or whether other
    releases were made after the content was checked.
    """
    if request.frozen is None or request.frozen != _frozen(session, request, checked=False):
        return True
    return not holds(session, request)


def visible(by: Actor) -> ColumnElement[bool]:
    """Return the SQL condition that selects the requests that the actor may see."""
    of_actor = Request.consumer_id == by.account
    may_see = data_sets.permitted(by, Action.SEE_REQUEST, Request.data_set_id, of_actor)
    return may_see & (Request.sent | of_actor)


@lru_cache(maxsize=64)
def _label_kind(policy: str) -> LabelKind:
    """Return the kind of label of a policy in YAML. A long policy is not parsed for each request."""
    return load_policy(read_yaml(policy, "the policy").data).label.kind


def _fill(
    request: Request,
    version: Version,
    predicted: str | None,
    *,
    purpose: str,
    label: str | None = None,
    measure: str | None = None,
    models: Sequence[str] = (),
    terms_accepted: bool = False,
) -> None:
    """Set the fields of a request. `predicted` is the label of the data set."""
    if label is not None and label != predicted:
        raise CatalogError(
            f"The data set predicts {predicted or 'each column from the others'}, not {label!r}.",
            hint="Leave the label out, or ask the provider for a data set with this label.",
        )
    if measure is not None:
        fitting = [each.name for each in measures_of(_label_kind(version.policy))]
        require_known("measure", measure, fitting)
    if not purpose.strip():
        raise CatalogError("The request has no purpose.", hint="Write what you need the data for.")
    if len(purpose) > 4000:
        raise CatalogError("The purpose is too long.", hint="Use at most 4,000 characters.")
    request.purpose, request.label, request.measure = purpose.strip(), label, measure
    request.models, request.terms_accepted = list(models), bool(terms_accepted)


def _frozen(session: Session, request: Request, *, checked: bool = True) -> dict[str, Any]:
    """Return the digests of the policy, summary, configuration and terms to release. If `checked`,
    raise `WrongState` if there is no configuration, the data set or its terms have changed since
    the request was made, or the configuration breaks the rule, alone or with earlier releases.
    """
    newest = data_sets.newest(session, request.data_set_id)
    if checked:
        if request.configuration is None:
            raise WrongState(
                "No configuration is chosen.",
                hint="First choose one: `aegis catalog choose`, or on the page of the request.",
            )
        if newest is None or newest.id != request.version_id:
            raise WrongState(
                "The data set has changed since the request was made.",
                hint="Return the request, so that the consumer can make it again.",
            )
        if _other_terms(request):
            raise WrongState(
                "The provider has changed the terms since the request was submitted (text, approvers, "
                "duration, budget or visibility).",
                hint="Return the request, so that the consumer can submit it again.",
            )
        _require_holding(session, request)
    return {
        "data_set": request.data_set_id,
        "version": None if newest is None else newest.number,
        "policy": None if newest is None else newest.policy_digest,
        "summary": None if newest is None else newest.summary_digest,
        "configuration": statements.digest(request.configuration or ""),
        "purpose": statements.digest(request.purpose),
        **data_sets.terms_of(request.data_set),
    }


def _require_holding(session: Session, request: Request) -> None:
    """Raise an error unless a configuration was checked that `holds`."""
    answer = request.answer or {}
    if not answer.get("holds"):
        raise WrongState(
            "The configuration does not meet the rule.", hint="Choose another configuration."
        )
    if answer.get("releases") != [release.id for release in earlier(session, request)]:
        raise WrongState(
            "Other releases about these persons were made since the configuration was checked.",
            hint="Choose the configuration again, so that Aegis checks it again.",
        )


def holds(session: Session, request: Request) -> bool:
    """Return whether the configuration was checked with all earlier releases and meets the rule."""
    try:
        _require_holding(session, request)
    except WrongState:
        return False
    return True


def _outdated(session: Session, request: Request) -> bool:
    newest = data_sets.newest(session, request.data_set_id)
    if request.state == RequestState.APPROVED:
        return drifted(session, request)
    return newest is None or newest.id != request.version_id or _other_terms(request)


def _other_terms(request: Request) -> bool:
    """Return whether the provider's terms have changed since the request was submitted, as far as
    the request stored them: earlier versions of Aegis stored fewer.
    """
    terms = data_sets.terms_of(request.data_set)
    return any(terms.get(name) != value for name, value in request.asked.items())


def _sent_back(session: Session, by: Actor, request: Request, why: str = _CHANGED) -> Request:
    return _step(session, by, request, RequestStep.DRIFT, message=why)


def _step(
    session: Session,
    by: Actor,
    request: Request,
    step: RequestStep,
    *,
    message: str = "",
    **detail: Any,
) -> Request:
    state = after(RequestState(request.state), step)
    if step in (RequestStep.DRIFT, RequestStep.RETURN):
        _forget_approvals(session, request)
        request.frozen = None
    if state in FINAL or step in _END_JOBS:
        for job in jobs.under_way(session, request_id=request.id):
            jobs.cancel(session, job, by.name)
    old, request.state, request.message = request.state, str(state), message
    session.flush()
    tell(session, by, request, step, old=old, state=str(state), **detail)
    return request


def _forget_approvals(
    session: Session, request: Request, step: RequestStep = RequestStep.APPROVE
) -> None:
    session.execute(
        delete(Approval).where(Approval.request_id == request.id, Approval.step == step)
    )


def _reason(message: str) -> str:
    if not message.strip():
        raise CatalogError("You gave no reason.", hint="Give a reason, which the consumer reads.")
    if len(message) > 4000:
        raise CatalogError("The reason is too long.", hint="Use at most 4,000 characters.")
    return message.strip()
