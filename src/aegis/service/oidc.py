"""Signing in at an identity provider: OpenID Connect, authorization code with PKCE.

The provider says who somebody is, never what they may do: a new account has no role until an admin
gives it one, and is tied to issuer and subject, never to a name or an address of mail.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

import httpx
from authlib.common.errors import AuthlibBaseError
from authlib.integrations.httpx_client import OAuth2Client
from joserfc import jwt
from joserfc.errors import JoseError
from joserfc.jwk import KeySet

from aegis.catalog.errors import NotSignedIn
from aegis.errors import EngineError, PolicyError

ALGORITHMS = ["RS256", "ES256", "PS256", "EdDSA", "Ed25519"]
"""Signatures of ID tokens that are taken: with keys of the provider alone, never "none"."""
_SECONDS = 10.0
_LEEWAY = 60
_LARGEST = 1 << 20


@dataclass(frozen=True)
class Provider:
    """An identity provider, as the admin names it.

    Attributes
    ----------
    issuer
        Its address, under which `/.well-known/openid-configuration` stands.
    client_id, client_secret
        What it knows this service by; no secret for a public client.
    """

    issuer: str
    client_id: str
    client_secret: str | None = None

    def __post_init__(self) -> None:
        parts = urlsplit(self.issuer)
        if parts.scheme != "https" and parts.hostname not in ("127.0.0.1", "localhost", "::1"):
            raise PolicyError(
                f"The identity provider {self.issuer!r} is not reached over TLS.",
                hint="Give its address as https://... .",
            )


@dataclass(frozen=True)
class Begun:
    """A sign-in that was begun in a browser, which keeps it in a cookie.

    Attributes
    ----------
    state, nonce, verifier
        What ties the answer, its token and its code to this browser.
    """

    state: str
    nonce: str
    verifier: str

    @classmethod
    def new(cls) -> Begun:
        """Return one that nobody guesses."""
        return cls(*(secrets.token_urlsafe(32) for _ in range(3)))

    @classmethod
    def read(cls, cookie: str) -> Begun:
        """Return the one of a cookie; raise `NotSignedIn` for anything else."""
        parts = cookie.split(".")
        if len(parts) != 3 or not all(parts):
            raise NotSignedIn("No sign-in was begun here.", hint="Begin it anew.")
        return cls(*parts)

    @property
    def cookie(self) -> str:
        """What the cookie holds."""
        return f"{self.state}.{self.nonce}.{self.verifier}"


@dataclass(frozen=True)
class Person:
    """Who signed in.

    Attributes
    ----------
    subject
        Issuer and subject, by which the account is known.
    name
        What the provider calls them.
    """

    subject: str
    name: str


def address(provider: Provider, begun: Begun, back: str) -> str:
    """Return where the browser is sent to sign in; `back` is where it comes back to."""
    told = _configuration(provider)
    with _client(provider, back) as client:
        url, _ = client.create_authorization_url(
            told["authorization_endpoint"],
            state=begun.state,
            nonce=begun.nonce,
            code_verifier=begun.verifier,
        )
    return str(url)


def person(provider: Provider, begun: Begun, back: str, *, code: str, state: str) -> Person:
    """Return who signed in, from the code that the browser came back with.

    Raises
    ------
    NotSignedIn
        The answer is not of this browser, or the token is not of this provider, for this service, of
        now.
    EngineError
        The provider does not answer.
    """
    if not secrets.compare_digest(state.encode(), begun.state.encode()):
        raise NotSignedIn("The answer is of another sign-in.", hint="Begin it anew.")
    told = _configuration(provider)
    try:
        with _client(provider, back) as client:
            token = client.fetch_token(
                told["token_endpoint"], code=code, code_verifier=begun.verifier
            )
        keys = _get(told["jwks_uri"])
        claims = _claims(provider, begun, str(token["id_token"]), keys)
    except httpx.HTTPError as error:
        raise _silent(provider, error) from error
    except (AuthlibBaseError, JoseError, KeyError, ValueError, TypeError) as error:
        raise NotSignedIn(
            f"The identity provider's answer is not valid ({type(error).__name__}).",
            hint="Begin it anew; where it stays so, see the settings of the provider.",
        ) from error
    named = next((claims[k] for k in ("preferred_username", "email", "name") if claims.get(k)), "")
    return Person(f"{provider.issuer} {claims['sub']}"[:255], str(named or claims["sub"])[:100])


def _claims(
    provider: Provider, begun: Begun, token: str, keys: Mapping[str, Any]
) -> Mapping[str, Any]:
    """Return the claims of an ID token (OpenID Connect Core 1.0, section 3.1.3.7)."""
    read = jwt.decode(token, KeySet.import_key_set(keys), algorithms=ALGORITHMS)  # type: ignore[arg-type]
    required = jwt.JWTClaimsRegistry(
        leeway=_LEEWAY,
        iss={"essential": True, "value": provider.issuer},
        aud={"essential": True, "value": provider.client_id},
        nonce={"essential": True, "value": begun.nonce},
        sub={"essential": True},
        exp={"essential": True},
        iat={"essential": True},
    )
    required.validate(read.claims)
    several = isinstance(read.claims["aud"], list) and len(read.claims["aud"]) > 1
    if (several or "azp" in read.claims) and read.claims.get("azp") != provider.client_id:
        raise ValueError("azp")
    return read.claims


def _configuration(provider: Provider) -> Mapping[str, Any]:
    try:
        told = _get(f"{provider.issuer.rstrip('/')}/.well-known/openid-configuration")
    except (httpx.HTTPError, ValueError) as error:
        raise _silent(provider, error) from error
    missing = {"issuer", "authorization_endpoint", "token_endpoint", "jwks_uri"} - told.keys()
    if missing or told["issuer"] != provider.issuer:
        raise EngineError(
            f"{provider.issuer} says that it is {told.get('issuer')!r}.",
            hint="Name the issuer exactly as it names itself.",
        )
    return told


def _get(url: str) -> Mapping[str, Any]:
    """Return a JSON object; no redirect is followed."""
    answer = httpx.get(url, timeout=_SECONDS, follow_redirects=False)
    answer.raise_for_status()
    value = answer.json() if len(answer.content) <= _LARGEST else None
    if not isinstance(value, dict):
        raise ValueError("no JSON object")
    return value


def _client(provider: Provider, back: str) -> OAuth2Client:
    return OAuth2Client(
        client_id=provider.client_id,
        client_secret=provider.client_secret,
        token_endpoint_auth_method="client_secret_basic" if provider.client_secret else "none",
        code_challenge_method="S256",
        scope="openid profile email",
        redirect_uri=back,
        timeout=_SECONDS,
    )


def _silent(provider: Provider, error: Exception) -> EngineError:
    return EngineError(
        f"The identity provider {provider.issuer} does not answer: {type(error).__name__}.",
        hint="Try again in a minute, or sign in with a password.",
    )
