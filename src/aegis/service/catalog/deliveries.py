"""Verify and accept what agents upload: protected summaries, results of checks, masked files.

Each upload needs a valid signature and the current attempt number of its job. A certificate must
match the file and the approved configuration, and state a rule that the file meets. Object, state
and log then change in one transaction.
"""

from __future__ import annotations

import io
import json
from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet
from sqlalchemy.orm import Session

from aegis.advisor.utility import UtilityFigure
from aegis.errors import AegisError
from aegis.masks import Mask
from aegis.measures import MEASURES
from aegis.policy import policy_digest, shown_policy
from aegis.present.cautions import figure_stated
from aegis.present.chosen import chosen_words
from aegis.service.catalog import budget, data_sets, flow, jobs, limited, requests
from aegis.service.catalog.access import Action, Actor
from aegis.service.catalog.catalog import Catalog, UploadLimits
from aegis.service.catalog.errors import CatalogError, TooLarge
from aegis.service.catalog.flow import configuration_of, policy_of
from aegis.service.catalog.log import append
from aegis.service.catalog.records import DataSet, Job, ReleaseRecord, Request, Version, now
from aegis.service.catalog.statements import digest as sha256_of
from aegis.service.catalog.states import RequestState
from aegis.service.catalog.summaries import columns_of, read
from aegis.service.catalog.verifying import MaskedFile, require_answer, require_summary
from aegis.signing import PublicKey, Signature, canonical, verify_bytes

FORMATS = (".parquet", ".csv")
"""Accepted extensions of masked files."""
_MAGIC = b"PAR1"
_LOOKED_AT = 1 << 20
"""Number of bytes of a text file that are examined."""


def signed_part(kind: str, job: str, attempt: int, **digests: str) -> bytes:
    """Return the bytes that an agent signs for an upload: its kind, the job, the attempt, and the
    digests of the uploaded files, as text.
    """
    return canonical({"kind": kind, "job": job, "attempt": attempt, **digests})


def summary(
    catalog: Catalog,
    by: Actor,
    job_id: str,
    attempt: int,
    *,
    policy: str,
    bundle: bytes,
    signature: Mapping[str, Any],
) -> Version:
    """Accept a protected summary (`bundle`) as the newest version of its data set. Raise
    `CatalogError` if the summary is not protected, is not signed by the data set's agent, or was
    made for another policy.
    """
    if len(policy) > catalog.limits.text:
        raise TooLarge("The policy is too long.", hint="Shorten its lists of values.")
    uploaded, declared = read(bundle), policy_of(policy)
    key, digest = catalog.objects.put("summaries", bundle)
    with catalog.database.writing() as session:
        job, data_set = _job(session, by, job_id, attempt, "summarize")
        require_summary(uploaded, declared, job.task, policy)
        signed = signed_part("summary", job_id, attempt, policy=sha256_of(policy), bundle=digest)
        _require_signature(data_set, signed, signature)
        version = Version(
            policy=policy,
            policy_digest=policy_digest(declared),
            columns=columns_of(uploaded),
            summary_key=key,
            summary_digest=digest,
            protection=uploaded.protection.to_dict(),
        )
        data_sets.add_version(session, by, data_set.id, version, label=uploaded.label)
        budget.commit(session, job.id)
        jobs.finish(session, job_id, attempt, {"version": version.number})
        jobs.enqueue(
            session, "leak", jobs.WORKER, data_set.id, task={"version": version.number, "key": key}
        )
        requests.drift(session, by, data_set.id)
        return version


def checked(
    catalog: Catalog, by: Actor, job_id: str, attempt: int, answer: Mapping[str, Any]
) -> Request:
    """Store the configuration that the agent has checked, and whether it meets the rule, alone and
    together with earlier releases. If the request is no longer in review, cancel the job, so that
    no agent repeats it. Raise `CatalogError` if the answer is malformed, or is about another
    configuration.

    A long answer takes seconds to compare with the job, so this is done before a session may write.
    """
    with catalog.database.reading() as session:
        job, request = _checking(session, by, job_id, attempt)
        if request.state == RequestState.IN_REVIEW:
            require_answer(answer, policy_of(request.version.policy), job.task)
    with catalog.database.writing() as session:
        job, request = _checking(session, by, job_id, attempt)
        if request.state != RequestState.IN_REVIEW:  # nobody waits for the answer any more
            jobs.cancel(session, job, by.name)
            return request
        result = {**job.task["about"], **answer, "releases": job.task["releases"]}
        words = chosen_words(result, request.data_set.label)
        requests.set_configuration(session, by, request, str(answer["configuration"]), words)
        jobs.finish(session, job_id, attempt, {"holds": bool(answer["holds"])})
        return request


def _checking(session: Session, by: Actor, job_id: str, attempt: int) -> tuple[Job, Request]:
    """Return a job that checks a configuration, and its request."""
    job, _ = _job(session, by, job_id, attempt, "check")
    return job, jobs.request_of(session, job)


def release(
    catalog: Catalog,
    by: Actor,
    job_id: str,
    attempt: int,
    *,
    file_name: str,
    content: bytes,
    certificate: str,
    signature: Mapping[str, Any],
) -> ReleaseRecord:
    """Verify and accept a masked file with its certificate. Raise `CatalogError` if the signature,
    the certificate or the file does not match the approved release, and `WrongState` if another
    attempt at the job has begun.
    """
    _check_upload(catalog, file_name, certificate)
    digest = sha256_of(content)
    rows = rows_in(file_name, content, catalog.limits)
    with catalog.database.reading() as session:
        job, data_set = _job(session, by, job_id, attempt, "release")
        request = jobs.request_of(session, job)
        signed = signed_part(
            "release", job_id, attempt, certificate=sha256_of(certificate), file=digest
        )
        signed_by = _require_signature(data_set, signed, signature)
        _require_certificate(certificate, digest, rows, request)
        measured = _utility(certificate)
        masked = _masked(request, file_name, content, certificate)
    _require_file(catalog, masked)
    key, _ = catalog.objects.put("releases", content)
    with catalog.database.writing() as session:
        job, data_set = _job(session, by, job_id, attempt, "release")
        request = jobs.request_of(session, job)
        record = ReleaseRecord(
            request_id=request.id,
            data_set_id=data_set.id,
            population=data_set.population,
            object_key=key,
            file_name=f"{data_set.id}-{request.id[:8]}{Path(file_name).suffix.lower()}",
            digest=digest,
            size=len(content),
            certificate=certificate,
            signature={"signature": signed_by.to_dict(), "job": job_id, "attempt": attempt},
            expires=now() + timedelta(days=requests.days_of(request)),
        )
        session.add(record)
        session.flush()
        budget.commit(session, job.id)
        jobs.finish(session, job_id, attempt, {"release": record.id, "digest": digest})
        if measured is not None and request.answer:
            request.answer = chosen_words(request.answer, data_set.label, measured)
        requests.complete(session, by, request, digest)
        return record


def _check_upload(catalog: Catalog, file_name: str, certificate: str) -> None:
    """Refuse a certificate that is too large, and a file of an unknown format."""
    if len(certificate) > catalog.limits.text:
        raise TooLarge(
            "The certificate is too long.", hint="Run the job again (aegis catalog retry)."
        )
    if Path(file_name).suffix.lower() not in FORMATS or Path(file_name).name != file_name:
        raise CatalogError(
            f"{file_name!r} cannot be the name of a masked file.",
            hint=f"Allowed: {', '.join(FORMATS)}.",
        )


def failed(
    session: Session, by: Actor, job_id: str, attempt: int, reason: str, *, spent: bool = False
) -> None:
    """Record that an agent failed at a job; its epsilon is spent if noise was drawn (`spent`)."""
    job, data_set = _job(session, by, job_id, attempt, None)
    flow.give_up(session, by, job, reason, spent=spent)
    append(session, by.name, "job failed", data_set=data_set.id, job=job_id)


def require_agent(session: Session, by: Actor, job_id: str) -> DataSet:
    """Return the data set of a job; raise an error unless the actor's agent may work on the job."""
    with jobs.visible_job(session, job_id, "Ask for work again.") as job:
        return data_sets.authorised(session, by, Action.WORK, job.data_set_id)


def key_of(release_made: ReleaseRecord, data_set: DataSet) -> str:
    """Return the public key that the agent had when it made a release."""
    signed = str(release_made.signature["signature"].get("key"))
    return signed if signed in data_set.former_keys else data_set.public_key


def verify(catalog: Catalog, release_made: ReleaseRecord, public_key: str) -> list[str]:
    """Return one line for each mismatch between a stored release, its certificate, and its
    signature.
    """
    wrong = []
    content = catalog.objects.get(release_made.object_key)
    digest = sha256_of(content)
    if digest != release_made.digest:
        wrong.append("the file has changed since the agent uploaded it (its SHA-256 differs)")
    document = json.loads(release_made.certificate)
    if document["output"]["sha256"] != digest:
        wrong.append("the certificate is about another file")
    signature = Signature.of(release_made.signature["signature"])
    signed = signed_part(
        "release",
        release_made.signature["job"],
        release_made.signature["attempt"],
        certificate=sha256_of(release_made.certificate),
        file=digest,
    )
    if not verify_bytes(signed, signature, PublicKey(bytes.fromhex(public_key))):
        wrong.append("the agent of the data set has not signed them")
    return wrong


def _job(
    session: Session, by: Actor, job_id: str, attempt: int, kind: str | None
) -> tuple[Job, DataSet]:
    data_set = require_agent(session, by, job_id)
    job = jobs.current(session, job_id, attempt)
    if kind is not None and job.kind != kind:
        raise CatalogError(
            f"The job asks for something else: {job.kind}.", hint="Deliver the result of that job."
        )
    return job, data_set


def _require_signature(data_set: DataSet, signed: bytes, fields: Mapping[str, Any]) -> Signature:
    """Return the signature in the `fields` of an upload; raise an error unless the data set's agent
    has signed the bytes `signed`.
    """
    signature = Signature.of(fields.get("signature", fields))
    if not verify_bytes(signed, signature, PublicKey(bytes.fromhex(data_set.public_key))):
        raise CatalogError(
            "The signature does not come from the data set's agent.",
            hint="Sign with the key of the data set: its public key is in the catalog.",
        )
    return signature


def _require_certificate(text: str, digest: str, rows: int | None, request: Request) -> None:
    """Raise an error unless a certificate says that the rule is met, and is about the approved
    masks and the file with this digest and number of rows (None: unknown).
    """
    try:
        document = json.loads(text)
        output, privacy = document["output"], document["privacy"]
        policy, masks = document["policy"], document["configuration"]["masks"]
        file_digest, stated_rows = output["sha256"], output["rows"]
        stated_policy, passed = policy["sha256"], privacy["passed"]
        guessable = "sha256" in document["input"]
        request_id = document.get("catalog", {}).get("request", request.id)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise CatalogError(
            "The certificate is not a certificate of Aegis.",
            hint="Run the job again (aegis catalog retry).",
        ) from error
    policy = policy_of(request.version.policy)
    approved_masks = configuration_of(request.configuration or "", policy).masks
    wrong = [
        text
        for text, fits in (
            ("it is about another file", file_digest == digest),
            ("it is about another policy", stated_policy == policy_digest(shown_policy(policy))),
            ("its masks are not the approved masks", _approved(masks, approved_masks)),
            ("it says that the rule is not met", passed is True),
            ("it names another request", request_id == request.id),
            ("it states another number of rows", rows is None or stated_rows == rows),
            ("it states the digest of the unmasked table without a key", not guessable),
        )
        if not fits
    ]
    if wrong:
        raise CatalogError(
            f"The certificate does not match the approved release: {'; '.join(wrong)}.",
            hint="Nothing was released. Read the output of the agent.",
        )


def _utility(certificate: str) -> UtilityFigure | None:
    """Return the utility that a certificate states; raise an error if it cannot be shown."""
    try:
        measured = figure_stated(json.loads(certificate))
        if measured is not None:
            MEASURES.get(measured.measure)
    except AegisError as error:
        raise CatalogError(
            "The certificate states a utility that cannot be read.",
            hint="Nothing was released. Run the job again (aegis catalog retry).",
        ) from error
    return measured


def _approved(stated_masks: Any, approved_masks: Mapping[str, Mask]) -> bool:
    """Return whether the masks of a certificate, which leaves out learnt values that the release
    does not show, are the approved ones.
    """
    if not isinstance(stated_masks, Mapping) or stated_masks.keys() != approved_masks.keys():
        return False
    forms = {name: (mask.spec(), mask.unlisted().spec()) for name, mask in approved_masks.items()}
    return all(stated_masks[name] in json.loads(json.dumps(specs)) for name, specs in forms.items())


def _masked(request: Request, file_name: str, content: bytes, certificate: str) -> MaskedFile:
    answer = request.answer or {}
    counted = [answer.get(key) for key in ("rows", "suppressed_rows")]
    rows = [count for count in counted if isinstance(count, int)]
    return MaskedFile(
        content=content,
        suffix=Path(file_name).suffix.lower(),
        certificate=certificate,
        policy=request.version.policy,
        configuration=request.configuration or "",
        kinds={column["name"]: column["kind"] for column in request.version.columns},
        rows=(rows[0], rows[1]) if len(rows) == 2 else None,
    )


def _require_file(catalog: Catalog, masked: MaskedFile) -> None:
    """Compare the masked file with the approved release in a separate process; raise an error if
    they differ.
    """
    wrong = limited.run("verify", catalog.limits.work, masked=masked)
    if wrong:
        raise CatalogError(
            f"The masked file does not match the approved release: {'; '.join(wrong[:10])}.",
            hint="Nothing was released.",
        )


def rows_in(file_name: str, content: bytes, limits: UploadLimits) -> int | None:
    """Return the number of rows that a masked file states about itself; None for text files, which
    state none. Raise `CatalogError` if the file does not have the format of its extension, and
    `TooLarge` if the unpacked file would be larger than allowed.
    """
    if Path(file_name).suffix.lower() == ".csv":
        start = content[:_LOOKED_AT]
        if b"\0" in start or start[:4] == _MAGIC or start[:2] in (b"PK", b"\x1f\x8b"):
            raise CatalogError(
                "The file is not a CSV file.", hint="Run the job again (aegis catalog retry)."
            )
        return None
    wrong = CatalogError(
        "The file is not a Parquet file.", hint="Run the job again (aegis catalog retry)."
    )
    if len(content) < 12 or content[:4] != _MAGIC or content[-4:] != _MAGIC:
        raise wrong
    try:
        metadata = pyarrow.parquet.read_metadata(io.BytesIO(content))
    except (pa.ArrowException, OSError) as error:
        raise wrong from error
    unpacked = sum(metadata.row_group(i).total_byte_size for i in range(metadata.num_row_groups))
    if unpacked > limits.unpacked or metadata.num_rows * metadata.num_columns > limits.cells:
        raise TooLarge(
            f"The file unpacks to {metadata.num_rows:,} rows of {metadata.num_columns:,} columns, "
            f"{unpacked:,} bytes.",
            hint=f"At most {limits.cells:,} cells and {limits.unpacked:,} bytes are allowed.",
        )
    return int(metadata.num_rows)
