"""Call the REST API from Python; the client can do everything that the pages can."""

from __future__ import annotations

import json
import ssl
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from hashlib import sha256
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx

from aegis.errors import AegisError, DataError, EngineError, PolicyError
from aegis.files import TABLE_FORMATS, format_of, replacing
from aegis.options import checks_types
from aegis.policy import policy_digest
from aegis.service.catalog.data_sets import rotation_of
from aegis.service.catalog.errors import (
    CatalogError,
    NotAllowed,
    NotSignedIn,
    NotThere,
    TooOften,
    WrongState,
)
from aegis.service.catalog.statements import SignedStatement, digest, sign_statement
from aegis.signing import PrivateKey, sign_bytes

_KINDS = {kind.status: kind for kind in (NotSignedIn, NotAllowed, NotThere, WrongState, TooOften)}
_DIGITS = 32
"""Number of digits of a complete request number."""
_LIST = "See the list: aegis catalog requests."
_WAITED = {"search", "check", "release", "summarize"}
_PAUSE = 0.3
"""Seconds between two looks at a job that is waited for."""


class Client:
    """A connection to the catalog of a service. A token identifies the caller.

    Parameters
    ----------
    url
        URL of the service, such as https://aegis.example.org.
    token
        A token from the page "Tokens", or from `aegis catalog token`.
    transport
        HTTP transport, for tests.
    certificate
        The only certificate that the service may present (PEM); None trusts the certificates that
        the machine trusts.
    key
        The private key that signs approvals in `step(..., "approve")`; None approves without a
        signature.

    Examples
    --------
    `aegis.connect(url, token)` returns a client::

        with aegis.connect("https://aegis.example.org", token) as catalog:
            for data_set in catalog.search("census"):
                print(data_set["id"], data_set["label"])
    """

    def __init__(
        self,
        url: str,
        token: str,
        *,
        transport: httpx.BaseTransport | None = None,
        certificate: Path | None = None,
        key: PrivateKey | None = None,
    ) -> None:
        if not url.startswith(("http://", "https://")):
            raise EngineError(
                f"{url!r} is not an address.", hint="Give an address such as https://HOST."
            )
        self._http = httpx.Client(
            base_url=f"{url.rstrip('/')}/api/v1",
            headers={"Authorization": f"Bearer {token}"} if token else {},
            timeout=httpx.Timeout(60, read=600),
            transport=transport,
            verify=True if certificate is None else _pinned(certificate),
        )
        self._key = key
        self._numbers: dict[str, str] = {}

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections to the service."""
        self._http.close()

    def me(self) -> dict[str, Any]:
        """Return the account of the token, and its permissions."""
        return self._get("/me")

    def invite(self, name: str, roles: Sequence[str]) -> dict[str, Any]:
        """Create an account; return a link for setting its password. The link works once."""
        return self._post("/invitations", name=name, roles=list(roles))

    def reset(self, name: str) -> dict[str, Any]:
        """Return a link for setting a new password. The link works once."""
        return self._post(f"/accounts/{_part(name)}/reset")

    def reopen(self, name: str) -> dict[str, Any]:
        """Reopen a closed account; for admins."""
        return self._post(f"/accounts/{_part(name)}/reopen")

    def end_sessions(self, name: str | None = None, *, tokens: bool = False) -> dict[str, Any]:
        """End all sessions of an account, by default of your own account; return how many ended."""
        path = "/me" if name is None else f"/accounts/{_part(name)}"
        return self._post(f"{path}/sessions/end", tokens=tokens)

    def remove_factor(self, name: str) -> dict[str, Any]:
        """Turn off the second factor of an account; for admins."""
        return self._post(f"/accounts/{_part(name)}/second-factor/remove")

    def hand_over(
        self, identifier: str, to: str, *, public_key: str | None = None
    ) -> dict[str, Any]:
        """Transfer a data set to another provider, whose agent's key is `public_key`."""
        return self._post(f"/data-sets/{identifier}/hand-over", to=to, public_key=public_key)

    def hand_over_all(self, name: str, to: str) -> list[str]:
        """Transfer all data sets of an account to another provider; return their names."""
        return list(self._post(f"/accounts/{_part(name)}/hand-over", to=to)["data_sets"])

    def change_password(self, password: str, new: str) -> None:
        """Change your password; all sessions end."""
        self._post("/me/password", password=password, new=new)

    def second_factor(self, step: str, **fields: str) -> dict[str, Any]:
        """Set up, renew or remove your second factor.

        `step` is "" to begin the setup (needs `password`), `confirm` to complete it (`code`),
        `recovery` for new recovery codes (`password`), or `remove` to turn the second factor off
        (`password`).
        """
        return self._post(f"/me/second-factor/{step}".rstrip("/"), **fields)

    def factor(self) -> dict[str, Any]:
        """Return whether you have a second factor, and the number of unused recovery codes."""
        return self._get("/me/second-factor")

    def sessions(self) -> list[dict[str, Any]]:
        """Return your open sessions, newest first."""
        return self._list("/me/sessions")

    def set_password(self, secret: str, password: str) -> str:
        """Set a password with the secret of a link from an admin; return the name of the account."""
        return str(self._post("/password-links", secret=secret, password=password)["name"])

    def accounts(self) -> list[dict[str, Any]]:
        """Return all accounts; for admins."""
        return self._list("/accounts")

    def make_account(self, name: str, roles: Sequence[str], password: str) -> dict[str, Any]:
        """Create an account; for admins."""
        return self._post("/accounts", name=name, roles=list(roles), password=password)

    def change_roles(self, name: str, roles: Sequence[str]) -> dict[str, Any]:
        """Change the roles of an account; for admins."""
        return self._post(f"/accounts/{_part(name)}/roles", roles=list(roles))

    def close_account(self, name: str, *, leave: bool = False) -> dict[str, Any]:
        """Close an account, and end its sessions and tokens; for admins. With `leave`, also an
        account that provides data sets: they are taken out of the catalog, and the open requests
        for them go back to their consumers. Return these data sets and requests.
        """
        return self._post(f"/accounts/{_part(name)}/disable", leave=leave)

    def tokens(self) -> list[dict[str, Any]]:
        """Return your own tokens, without their secrets."""
        return self._list("/tokens")

    def make_token(self, name: str, scopes: Sequence[str], *, days: int = 90) -> dict[str, Any]:
        """Create a token with some of the permissions of this client's token. Only this call
        returns its secret.
        """
        return self._post("/tokens", name=name, scopes=list(scopes), days=days)

    def revoke_token(self, token: str) -> None:
        """Revoke one of your own tokens, given its number."""
        self._post(f"/tokens/{token}/revoke")

    def search(self, words: str = "") -> Iterator[dict[str, Any]]:
        """Yield the data sets that you may see and that contain all `words`."""
        yield from self._paged("/data-sets", "data_sets", words=words)

    def data_set(self, identifier: str) -> dict[str, Any]:
        """Return a data set with its newest version."""
        return self._get(f"/data-sets/{identifier}")

    def versions(self, identifier: str) -> list[dict[str, Any]]:
        """Return all versions of a data set, newest first."""
        return self._list(f"/data-sets/{identifier}/versions")

    def policy(self, identifier: str) -> str:
        """Return the policy of a data set, as YAML."""
        return str(self._get(f"/data-sets/{identifier}/policy")["policy"])

    def costs(self, identifier: str) -> list[dict[str, Any]]:
        """Return the utility cost of each candidate mask, computed from the protected summary."""
        return self._list(f"/data-sets/{identifier}/costs")

    def export(self, identifier: str, kind: str) -> dict[str, Any]:
        """Describe a data set for other catalogs.

        `kind` is croissant, dcat or datapackage.
        """
        return self._get(f"/data-sets/{identifier}/exports/{kind}")

    def export_release(self, request: str, kind: str) -> dict[str, Any]:
        """Describe a release for other catalogs; `kind` is as in `export`."""
        return self._get(f"{self._of(request)}/exports/{kind}")

    def register(
        self, identifier: str, *, source: str, public_key: str, **about: Any
    ) -> dict[str, Any]:
        """Register a data set; `about` has its title, terms and other fields. `summary` may have
        the policy and the options of `ask_summary`; if the summary is refused, nothing is registered.
        """
        return self._post(
            "/data-sets", id=identifier, source=source, public_key=public_key, **about
        )

    def change(self, identifier: str, **about: Any) -> dict[str, Any]:
        """Change fields of a data set, such as its description or terms."""
        return self._post(f"/data-sets/{identifier}", **about)

    def publish(self, identifier: str, *, published: bool = True) -> dict[str, Any]:
        """Show a data set to consumers or, with `published=False`, hide it from them."""
        return self._post(f"/data-sets/{identifier}/publish?published={str(published).lower()}")

    def grant(self, identifier: str, account: str, role: str, *, granted: bool = True) -> None:
        """Assign an operator or approver, or let a consumer see a data set; `granted=False` ends it."""
        self._post(f"/data-sets/{identifier}/grants", account=account, role=role, granted=granted)

    def admit(self, identifier: str, account: str, *, admitted: bool = True) -> None:
        """Let another provider share the budget of a data set's population.

        With `admitted=False`, end the sharing.
        """
        self._post(f"/data-sets/{identifier}/members", account=account, admitted=admitted)

    def ask_summary(self, identifier: str, policy: str, **how: Any) -> dict[str, Any]:
        """Ask the agent for a protected summary under a policy (YAML); `how` may have protect
        ("noise" or "counts"), epsilon, delta and threshold.
        """
        return self._post(f"/data-sets/{identifier}/summary", policy=policy, **how)

    def ledger(self, identifier: str) -> dict[str, Any]:
        """Return the privacy budget of a data set's population, and its releases."""
        return self._get(f"/data-sets/{identifier}/ledger")

    def draft(self, data_set: str, purpose: str, **about: Any) -> dict[str, Any]:
        """Create a draft of a request; nobody reviews it until you submit it. `about` may have
        label, measure, models and terms_accepted.
        """
        return self._post("/requests", data_set=data_set, purpose=purpose, **about)

    def request(self, data_set: str, purpose: str, **about: Any) -> dict[str, Any]:
        """Create a request and submit it for review; `about` may have label, measure, models and
        terms_accepted. If the service refuses it, no draft stays.
        """
        return self.draft(data_set, purpose, submit=True, **about)

    def change_request(self, request: str, **about: Any) -> dict[str, Any]:
        """Change fields (`about`) of a draft, or of a request that was sent back."""
        return self._post(self._of(request), **about)

    def requests(self, state: str | None = None) -> Iterator[dict[str, Any]]:
        """Yield the requests that you may see."""
        chosen = {} if state is None else {"state": state}
        yield from self._paged("/requests", "requests", **chosen)

    def shown(self, request: str) -> dict[str, Any]:
        """Return a request with its newest job."""
        return self._get(f"{self._of(request)}")

    def step(self, request: str, step: str, **fields: Any) -> dict[str, Any]:
        """Move a request one step further, and return it.

        The steps are submit, withdraw, review, choose, approve, return, reject, run, retry, revoke
        and renew.
        """
        if step == "approve" and self._key is not None:
            fields["signed"] = sign_approval(self.statement(request), self._key).to_dict()
        return self._post(f"{self._of(request)}/{step}", **fields)

    def statement(self, request: str) -> dict[str, Any]:
        """Return the statement that an approver signs, and the policy and configuration that its
        digests identify.
        """
        return self._get(f"{self._of(request)}/statement")

    def wait(self, request: str, *, seconds: float = 600) -> dict[str, Any]:
        """Wait until no job of a request is waiting or running; return the request.

        Raises
        ------
        EngineError
            The jobs take longer than `seconds`.
        """
        end = time.monotonic() + seconds
        while True:
            answer = self.shown(request)
            job = answer["job"]
            if job is None or job["kind"] not in _WAITED or job["ended"] is not None:
                return answer
            if time.monotonic() > end:
                raise EngineError(
                    f"The {job['kind']} of request {request} is not done after {seconds:g} seconds.",
                    hint="Check that its agent runs.",
                )
            time.sleep(_PAUSE)

    def choose(self, request: str, configuration: str | None = None) -> dict[str, Any]:
        """Choose the configuration (YAML) to release, or by default let the worker search for the
        best one. Wait until the agent has checked it on the table, and return the answer.

        Raises
        ------
        CatalogError
            The search or the check failed or was cancelled, so nothing was chosen.
        """
        choice = {} if configuration is None else {"configuration": configuration}
        self.step(request, "choose", **choice)
        answer = self.wait(request)
        require_done(answer["job"])
        chosen: dict[str, Any] = answer["answer"]
        return chosen

    def release(self, request: str) -> dict[str, Any]:
        """Return the figures of a release with its certificate and signature."""
        return self._get(f"{self._of(request)}/release")

    def verify(self, request: str) -> dict[str, Any]:
        """Return whether a release can be used: it was not revoked, and its stored file, its
        certificate and its signature match. `wrong` has the reasons if it cannot.
        """
        return self._post(f"{self._of(request)}/verify")

    def download(
        self,
        request: str,
        path: str | Path,
        *,
        certificate: str | Path | None = None,
        force: bool = False,
    ) -> Path:
        """Download the masked file, and check its digest before the file appears at `path`.

        Parameters
        ----------
        request
            The number of the request.
        path
            The file to write, with the extension of the released file.
        certificate
            The file to which the certificate of the release is written; None writes none.
        force
            Whether existing files may be overwritten.

        Raises
        ------
        PolicyError
            The released file has another format than the extension of `path` says.
        DataError
            The received file does not match its certificate.
        """
        from aegis.cli.files import check_outputs

        target = Path(path)
        check_outputs([(target, TABLE_FORMATS), (certificate, None)], force=force)
        digest, stated_digests = sha256(), set[str]()
        with ExitStack() as stack:
            # Left last: no certificate appears of a file that is not there.
            if certificate is not None:
                document = str(self.release(request)["certificate"])
                draft = stack.enter_context(replacing(Path(certificate), force=force))
                draft.write_text(document, encoding="utf-8")
                stated_digests.add(json.loads(document)["output"]["sha256"])
            temporary = stack.enter_context(replacing(target))
            answer = stack.enter_context(self._streamed(f"{self._of(request)}/download"))
            _require_format(target, answer.headers["Content-Disposition"])
            with temporary.open("wb") as file:
                for piece in answer.iter_bytes():
                    digest.update(piece)
                    file.write(piece)
            stated_digests.add(answer.headers["X-Aegis-SHA256"])
            if stated_digests != {digest.hexdigest()}:
                raise DataError("The download is incomplete.", hint="Download it again.")
        return target

    def log(self, **chosen: str) -> Iterator[dict[str, Any]]:
        """Yield the log entries that you may read, newest first.

        Parameters
        ----------
        chosen
            Filters: `by`, `action`, `data_set`, and `since` and `until` as ISO 8601 with a time
            zone.
        """
        yield from self._paged("/log", "entries", **chosen)

    def verify_log(self, head: str | None = None) -> dict[str, Any]:
        """Check that the log is unbroken and still contains a hash (`head`) noted earlier."""
        return self._post("/log/verify" if head is None else f"/log/verify?head={_part(head)}")

    def job(self, job: str) -> dict[str, Any]:
        """Return a job with its state and progress."""
        return self._get(f"/jobs/{job}")

    def follow(self, job: str) -> Iterator[dict[str, Any]]:
        """Yield the progress of a job at each change, until it ends."""
        with self._streamed(f"/jobs/{job}/events") as answer:
            for line in answer.iter_lines():
                if line.startswith("data: "):
                    yield json.loads(line.removeprefix("data: "))

    def cancel(self, job: str) -> dict[str, Any]:
        """Cancel a job."""
        return self._post(f"/jobs/{job}/cancel")

    def retry(self, job: str) -> dict[str, Any]:
        """Repeat a search, check, audit or summary that failed or was cancelled."""
        return self._post(f"/jobs/{job}/retry")

    def health(self) -> dict[str, Any]:
        """Return the state of the service; raise an error if the service, its database or its file
        store fails.
        """
        self._get("/live")
        return self._get("/health")

    def programs(self) -> list[dict[str, Any]]:
        """Return agents and workers, and when each was last seen; for admins and auditors."""
        return self._list("/programs")

    def metrics(self) -> str:
        """Return the metrics of the service in the text format of Prometheus; for admins and auditors."""
        return self._answer("GET", "/metrics").text

    def work(self, owner: str) -> dict[str, Any] | None:
        """Fetch the next job for your own data sets, as the agent `owner`; None if no job waits."""
        answer = self._answer("POST", "/work", json={"owner": owner})
        return None if answer.status_code == 204 else _json(answer)

    def rotate(self, old: PrivateKey, new: PrivateKey) -> int:
        """Replace your agent's signing key; return how many data sets accept the new key."""
        content = rotation_of(old.public.text, new.public.text)
        signatures = [sign_bytes(content, key).to_dict() for key in (old, new)]
        changed = self._post(
            "/keys", old=old.public.text, new=new.public.text, signatures=signatures
        )
        return int(changed["data_sets"])

    def alive(self, job: str, attempt: int, progress: Mapping[str, Any]) -> None:
        """Report that the agent still works on a job, with its progress."""
        self._post(f"/jobs/{job}/alive", attempt=attempt, progress=dict(progress))

    def give_back(self, job: str, attempt: int) -> None:
        """Return a job to the queue, so that another agent can fetch it at once."""
        self._answer("POST", f"/jobs/{job}/give-back", json={"attempt": attempt}, timeout=5)

    def failed(self, job: str, attempt: int, reason: str, *, spent: bool = False) -> None:
        """Report that the agent could not do a job. `spent` means that noise was drawn, so the
        epsilon of the job stays spent.
        """
        fields = {"spent": True} if spent else {}
        self._post(f"/jobs/{job}/failed", attempt=attempt, reason=reason[:2000], **fields)

    def checked(self, job: str, attempt: int, answer: Mapping[str, Any]) -> None:
        """Report the result of checking configurations on the table: `answer` has the first one
        that meets the rule, and whether it meets it together with earlier releases.
        """
        self._post(f"/jobs/{job}/checked", attempt=attempt, answer=dict(answer))

    def upload(
        self, job: str, kind: str, fields: Mapping[str, Any], name: str, file: tuple[str, bytes]
    ) -> dict[str, Any]:
        """Upload a job's result of this `kind`: text `fields`, and a `file` (file name and content)
        in the form field `name`.
        """
        form = {k: v if isinstance(v, str) else json.dumps(v) for k, v in fields.items()}
        return _json(self._answer("POST", f"/uploads/{job}/{kind}", data=form, files={name: file}))

    def number(self, short: str) -> str:
        """Return the complete number of a request, given its first digits.

        Raises
        ------
        NotThere
            No request that you may see begins with these digits.
        CatalogError
            Several requests begin with these digits.
        """
        if len(short) == _DIGITS:
            return short
        if short not in self._numbers:
            matched = self._get("/requests", number=short.lower(), limit=2)
            numbers = [request["id"] for request in matched["requests"]]
            if not numbers:
                raise NotThere(f"There is no request {short} that you may see.", hint=_LIST)
            if len(numbers) > 1:
                raise CatalogError(
                    f"Several requests begin with {short}.", hint="Give more digits."
                )
            self._numbers[short] = numbers[0]
        return self._numbers[short]

    def _of(self, request: str) -> str:
        """Return the URL path of a request, given its complete number or its first digits."""
        return f"/requests/{self.number(request)}"

    @contextmanager
    def _streamed(self, path: str) -> Iterator[httpx.Response]:
        with _answering(), self._http.stream("GET", path) as answer:
            if answer.is_error:
                answer.read()
            yield _checked(answer)

    def _paged(self, path: str, key: str, **chosen: Any) -> Iterator[dict[str, Any]]:
        offset = 0
        while True:
            answer = self._get(path, **chosen, offset=offset, limit=100)
            yield from answer[key]
            offset += len(answer[key])
            if not answer[key] or offset >= answer["count"]:
                return

    def _list(self, path: str) -> list[dict[str, Any]]:
        listed: list[dict[str, Any]] = self._answer("GET", path).json()
        return listed

    def _get(self, path: str, /, **params: Any) -> dict[str, Any]:
        return _json(self._answer("GET", path, params=params))

    def _post(self, path: str, /, **body: Any) -> dict[str, Any]:
        return _json(self._answer("POST", path, json=body))

    def _answer(self, method: str, path: str, **sent: Any) -> httpx.Response:
        with _answering():
            return _checked(self._http.request(method, path, **sent))


@checks_types
def connect(url: str, token: str, *, key: PrivateKey | None = None) -> Client:
    """Return a client of a service's catalog.

    Parameters
    ----------
    url
        URL of the service, such as https://aegis.example.org.
    token
        A token from the page "Tokens", or from `aegis catalog token`.
    key
        The private key of an approver (`aegis.signing.load_private_key`); it signs approvals.

    Raises
    ------
    EngineError
        The URL is not a valid address. (The client contacts the service only at the first call.)

    Examples
    --------
    >>> import aegis
    >>> with aegis.connect("https://aegis.example.org", "aegis_...") as catalog:
    ...     type(catalog).__name__
    'Client'
    """
    return Client(url, token, key=key)


def require_done(job: Mapping[str, Any]) -> None:
    """Raise `CatalogError` with the reason if a job has failed or was cancelled."""
    name = {"summarize": "summary", "leak": "audit"}.get(job["kind"], job["kind"])
    if job["state"] == "failed":
        raise CatalogError(
            f"The {name} failed: {job['error']}", hint="Try again: aegis catalog retry."
        )
    if job["state"] == "cancelled":
        raise CatalogError(
            f"The {name} was cancelled.", hint="The log says by whom: aegis catalog log."
        )


def sign_approval(offered: Mapping[str, Any], key: PrivateKey) -> SignedStatement:
    """Check that the digests of an approval that `Client.statement` returned match its texts, and
    return the signed statement. Raise `CatalogError` if one does not match.
    """
    from aegis.service.catalog.flow import policy_of

    statement = offered.get("statement")
    if not isinstance(statement, Mapping):
        raise CatalogError(
            "The service gives no statement to sign.", hint="Use a service of this version."
        )
    digests = {
        "policy": policy_digest(policy_of(str(offered.get("policy")))),
        "configuration": digest(str(offered.get("configuration"))),
    }
    wrong = [name for name, value in digests.items() if statement.get(name) != value]
    if wrong:
        raise CatalogError(
            f"The service asks you to sign another {' and '.join(wrong)} than it shows.",
            hint="Do not sign, and tell the provider.",
        )
    return sign_statement(statement, key)


def _part(name: str) -> str:
    """Return a name quoted for a URL path."""
    return quote(name, safe="")


def _require_format(target: Path, disposition: str) -> None:
    """Raise `PolicyError` unless a download, whose header `disposition` names the released file,
    has the format of `target`.
    """
    released = format_of(Path(disposition.rpartition("filename=")[2].strip('"')))
    if format_of(target) != released:
        raise PolicyError(
            f"The release is a file of the format {released}, and {target} is not.",
            hint=f"Name a file that ends with {released}. pandas or DuckDB can convert it.",
        )


def _pinned(certificate: Path) -> ssl.SSLContext:
    """Return a TLS context that trusts this certificate only."""
    try:
        context = ssl.create_default_context(cafile=certificate)
    except (OSError, ssl.SSLError) as error:
        raise PolicyError(
            f"The certificate {certificate} cannot be read: {error}.", hint="Give a PEM file."
        ) from error
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    return context


@contextmanager
def _answering() -> Iterator[None]:
    """Raise `EngineError` if the service does not answer, or stops in the middle of an answer."""
    try:
        yield
    except httpx.HTTPError as error:
        raise EngineError(
            f"The service does not answer: {type(error).__name__}.",
            hint="Check the address, and whether the service runs.",
        ) from error


def _checked(answer: httpx.Response) -> httpx.Response:
    if answer.is_redirect:
        raise EngineError(
            "The service redirects to another address, and Aegis does not follow it.",
            hint="Give the address at which the service answers directly.",
        )
    if answer.is_error:
        raise _error(answer)
    return answer


def _json(answer: httpx.Response) -> dict[str, Any]:
    """Return the JSON object that the service answered; raise `EngineError` if it is none."""
    value = _object_in(answer)
    if value is None:
        raise EngineError(
            "The service did not answer with a JSON object.",
            hint="Check that its address is right.",
        )
    return value


def _object_in(answer: httpx.Response) -> dict[str, Any] | None:
    try:
        value = answer.json()
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def _error(answer: httpx.Response) -> AegisError:
    body = _object_in(answer) or {}
    kind = _KINDS.get(answer.status_code, CatalogError if answer.is_client_error else EngineError)
    detail = body.get("detail") or f"The service answered {answer.status_code}."
    return kind(str(detail), hint=str(body.get("hint", "")))
