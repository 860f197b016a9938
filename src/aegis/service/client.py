"""A client of the REST API: what the pages can do, from Python."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any

import httpx

from aegis.catalog.errors import CatalogError, NotAllowed, NotSignedIn, NotThere, WrongState
from aegis.errors import AegisError, DataError, EngineError
from aegis.files import check_output, replacing

_KINDS: dict[int, type[AegisError]] = {
    401: NotSignedIn,
    403: NotAllowed,
    404: NotThere,
    409: WrongState,
}
_WAITED = {"search", "check", "release", "summarize"}


class Client:
    """A service, called with a token.

    Parameters
    ----------
    url
        Where it is, such as https://aegis.example.org.
    token
        From the page "Tokens", or `aegis catalog token`.
    transport
        How calls travel; for tests.

    Examples
    --------
    `aegis.connect(url, token)` makes one::

        with aegis.connect("https://aegis.example.org", token) as catalog:
            for data_set in catalog.search("census"):
                print(data_set["id"], data_set["label"])
    """

    def __init__(
        self, url: str, token: str, *, transport: httpx.BaseTransport | None = None
    ) -> None:
        if not url.startswith(("http://", "https://")):
            raise EngineError(f"{url!r} is no address.", hint="Give https://HOST.")
        self._http = httpx.Client(
            base_url=f"{url.rstrip('/')}/api/v1",
            headers={"Authorization": f"Bearer {token}"},
            timeout=httpx.Timeout(60, read=600),
            transport=transport,
        )

    def __enter__(self) -> Client:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections."""
        self._http.close()

    def me(self) -> dict[str, Any]:
        """Return whose token it is, and what it may do."""
        return self._object("GET", "/me")

    def search(self, words: str = "") -> Iterator[dict[str, Any]]:
        """Yield the data sets that one may see."""
        yield from self._paged("/data-sets", "data_sets", words=words)

    def data_set(self, identifier: str) -> dict[str, Any]:
        """Return a data set with its newest version."""
        return self._object("GET", f"/data-sets/{identifier}")

    def policy(self, identifier: str) -> str:
        """Return the policy of a data set, as YAML."""
        return str(self._object("GET", f"/data-sets/{identifier}/policy")["policy"])

    def costs(self, identifier: str) -> list[dict[str, Any]]:
        """Return what each candidate mask costs, from the protected summary."""
        costs: list[dict[str, Any]] = self._call("GET", f"/data-sets/{identifier}/costs").json()
        return costs

    def export(self, identifier: str, kind: str) -> dict[str, Any]:
        """Return the description of a data set for other catalogs.

        `kind` is croissant, dcat or datapackage.
        """
        return self._object("GET", f"/data-sets/{identifier}/exports/{kind}")

    def export_release(self, request: str, kind: str) -> dict[str, Any]:
        """Return the description of a release for other catalogs, as `export` does."""
        return self._object("GET", f"/requests/{request}/exports/{kind}")

    def register(
        self, identifier: str, *, source: str, public_key: str, **about: Any
    ) -> dict[str, Any]:
        """Register a data set of one's own."""
        body = {"id": identifier, "source": source, "public_key": public_key, **about}
        return self._object("POST", "/data-sets", body)

    def change(self, identifier: str, **about: Any) -> dict[str, Any]:
        """Change what is told of a data set."""
        return self._object("POST", f"/data-sets/{identifier}", about)

    def publish(self, identifier: str, *, published: bool = True) -> dict[str, Any]:
        """Show a data set to consumers, or take it out."""
        shown = "true" if published else "false"
        return self._object("POST", f"/data-sets/{identifier}/publish?published={shown}")

    def grant(self, identifier: str, account: str, role: str, *, granted: bool = True) -> None:
        """Assign an operator or approver, or let a consumer see a data set."""
        body = {"account": account, "role": role, "granted": granted}
        self._object("POST", f"/data-sets/{identifier}/grants", body)

    def ask_summary(self, identifier: str, policy: str, **how: Any) -> dict[str, Any]:
        """Have the agent make a protected summary under a policy (YAML)."""
        return self._object("POST", f"/data-sets/{identifier}/summary", {"policy": policy, **how})

    def ledger(self, identifier: str) -> dict[str, Any]:
        """Return the budget of a data set's population, and its releases."""
        return self._object("GET", f"/data-sets/{identifier}/ledger")

    def request(self, data_set: str, purpose: str, **about: Any) -> dict[str, Any]:
        """Draft a request and hand it in."""
        made = self._object(
            "POST", "/requests", {"data_set": data_set, "purpose": purpose, **about}
        )
        return self.step(made["id"], "submit")

    def requests(self, state: str | None = None) -> Iterator[dict[str, Any]]:
        """Yield the requests that one may see."""
        chosen = {} if state is None else {"state": state}
        yield from self._paged("/requests", "requests", **chosen)

    def shown(self, request: str) -> dict[str, Any]:
        """Return a request with its newest job."""
        return self._object("GET", f"/requests/{request}")

    def step(self, request: str, step: str, **given: Any) -> dict[str, Any]:
        """Move a request: submit, withdraw, review, choose, approve, return, reject, run, retry,
        revoke, renew."""
        return self._object("POST", f"/requests/{request}/{step}", given)

    def wait(self, request: str, *, seconds: float = 600) -> dict[str, Any]:
        """Wait until no job of a request is under way; return the request.

        Raises
        ------
        EngineError
            It takes longer.
        """
        end = time.monotonic() + seconds
        while True:
            shown = self.shown(request)
            job = shown["job"]
            if job is None or job["kind"] not in _WAITED or job["ended"] is not None:
                return shown
            if time.monotonic() > end:
                raise EngineError(
                    f"The {job['kind']} of request {request} is not done after {seconds:g} seconds.",
                    hint="See whether its agent runs.",
                )
            time.sleep(0.3)

    def release(self, request: str) -> dict[str, Any]:
        """Return the figures of a release with its certificate and signature."""
        return self._object("GET", f"/requests/{request}/release")

    def verify(self, request: str) -> dict[str, Any]:
        """Have the stored release verified."""
        return self._object("POST", f"/requests/{request}/verify")

    def download(self, request: str, path: str | Path, *, force: bool = False) -> Path:
        """Write the masked file; it takes its name when its digest is right.

        Raises
        ------
        DataError
            What came is not what the certificate is of.
        """
        from hashlib import sha256

        target = Path(path)
        check_output(target, force=force)
        digest = sha256()
        with (
            replacing(target) as temporary,
            self._http.stream("GET", f"/requests/{request}/download") as answer,
        ):
            if answer.is_error:
                answer.read()
                raise _error(answer)
            with temporary.open("wb") as file:
                for piece in answer.iter_bytes():
                    digest.update(piece)
                    file.write(piece)
            if digest.hexdigest() != answer.headers["X-Aegis-SHA256"]:
                raise DataError("The download is not whole.", hint="Try it again.")
        return target

    def log(self) -> Iterator[dict[str, Any]]:
        """Yield the entries of the log that concern one, the newest first."""
        yield from self._paged("/log", "entries")

    def verify_log(self) -> dict[str, Any]:
        """Return whether the log is whole."""
        return self._object("POST", "/log/verify")

    def work(self, owner: str) -> dict[str, Any] | None:
        """Take the next job of one's own data sets; None where there is none."""
        answer = self._call("POST", "/work", {"owner": owner})
        return None if answer.status_code == 204 else dict(answer.json())

    def alive(self, job: str, attempt: int, progress: Mapping[str, Any]) -> None:
        """Show that a job is worked on."""
        body = {"attempt": attempt, "progress": dict(progress)}
        self._object("POST", f"/jobs/{job}/alive", body)

    def failed(self, job: str, attempt: int, reason: str) -> None:
        """Give a job up."""
        self._object("POST", f"/jobs/{job}/failed", {"attempt": attempt, "reason": reason[:2000]})

    def checked(self, job: str, attempt: int, answer: Mapping[str, Any]) -> None:
        """Answer which configuration meets the rule."""
        self._object("POST", f"/jobs/{job}/checked", {"attempt": attempt, "answer": dict(answer)})

    def upload(
        self,
        job: str,
        kind: str,
        fields: Mapping[str, Any],
        name: str,
        file: tuple[str, bytes],
    ) -> dict[str, Any]:
        """Hand in a protected summary or a masked file."""
        form = {k: v if isinstance(v, str) else json.dumps(v) for k, v in fields.items()}
        answer = self._http.post(f"/uploads/{job}/{kind}", data=form, files={name: file})
        return dict(_checked(answer).json())

    def _paged(self, path: str, key: str, **chosen: Any) -> Iterator[dict[str, Any]]:
        offset = 0
        while True:
            answer = self._object("GET", path, params={**chosen, "offset": offset, "limit": 100})
            yield from answer[key]
            offset += len(answer[key])
            if not answer[key] or offset >= answer["count"]:
                return

    def _object(
        self,
        method: str,
        path: str,
        body: Mapping[str, Any] | None = None,
        params: Mapping[str, Any] | None = None,
    ) -> dict[str, Any]:
        return dict(self._call(method, path, body, params).json())

    def _call(
        self,
        method: str,
        path: str,
        body: Mapping[str, Any] | None = None,
        params: Mapping[str, Any] | None = None,
    ) -> httpx.Response:
        try:
            answer = self._http.request(method, path, json=body, params=params)
        except httpx.HTTPError as error:
            raise EngineError(
                f"The service does not answer: {type(error).__name__}.",
                hint="Check its address, and that it runs.",
            ) from error
        return _checked(answer)


def connect(url: str, token: str) -> Client:
    """Return a client of a service's catalog.

    Parameters
    ----------
    url
        Where the service is, such as https://aegis.example.org.
    token
        From the page "Tokens", or `aegis catalog token`.

    Raises
    ------
    EngineError
        The address is none. Whether somebody answers there shows at the first call.

    Examples
    --------
    >>> import aegis
    >>> with aegis.connect("https://aegis.example.org", "aegis_...") as catalog:
    ...     type(catalog).__name__
    'Client'
    """
    return Client(url, token)


def _checked(answer: httpx.Response) -> httpx.Response:
    if answer.is_error:
        raise _error(answer)
    return answer


def _error(answer: httpx.Response) -> AegisError:
    try:
        body = answer.json()
    except ValueError:
        body = {}
    kind = _KINDS.get(answer.status_code, CatalogError if answer.is_client_error else EngineError)
    detail = body.get("detail") or f"The service answered {answer.status_code}."
    return kind(str(detail), hint=str(body.get("hint", "")))
