"""Sign in with an identity provider: OpenID Connect, authorization code flow with PKCE.

The provider identifies the person. It determines roles only if the settings name a claim for roles.
Otherwise a new account has no role until an admin assigns one. An account is identified by issuer
and subject, never by name or mail address.
"""

from __future__ import annotations

import base64
import hashlib
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote_plus, urlsplit

import httpx
from joserfc import jwt
from joserfc.errors import JoseError
from joserfc.jwk import KeySet

from aegis.errors import EngineError, PolicyError
from aegis.service.catalog.access import AccountRole
from aegis.service.catalog.errors import NotSignedIn

ALGORITHMS = ["RS256", "ES256", "PS256", "EdDSA", "Ed25519"]
"""Accepted signature algorithms of ID tokens. All need a key of the provider; "none" is not
accepted.
"""
_SECONDS = 10.0
_LEEWAY = 60
_LARGEST = 1 << 20
_LONGEST = 255
"""Largest number of characters of issuer and subject, which together identify an account."""


@dataclass(frozen=True)
class Provider:
    """An identity provider at which people may sign in to this service.

    Attributes
    ----------
    issuer
        URL under which `/.well-known/openid-configuration` is found.
    client_id, client_secret
        Name and secret of this service at the provider; a public client has no secret.
    roles_claim
        The claim of the ID token that lists groups or roles, such as `groups`. None if admins of this
        service assign the roles.
    roles
        The role for each value of the claim. Other values give no role.
    """

    issuer: str
    client_id: str
    client_secret: str | None = None
    roles_claim: str | None = None
    roles: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        parts = urlsplit(self.issuer)
        if parts.scheme != "https" and parts.hostname not in ("127.0.0.1", "localhost", "::1"):
            raise PolicyError(
                f"The address of the identity provider, {self.issuer!r}, does not use TLS.",
                hint="Give its address as https://... .",
            )
        unknown = [role for role in self.roles.values() if role not in list(AccountRole)]
        if unknown:
            raise PolicyError(
                f"Unknown role {unknown[0]!r}.", hint=f"Allowed: {', '.join(AccountRole)}."
            )
        if (self.roles_claim is None) != (not self.roles):
            raise PolicyError(
                "To take roles from an identity provider, Aegis needs a claim, and the role of "
                "each of its values.",
                hint="Give both --oidc-roles-claim and --oidc-roles.",
            )

    def roles_of(self, claims: Mapping[str, Any]) -> list[str] | None:
        """Return the roles that the claims state; None if admins of this service assign roles."""
        if self.roles_claim is None:
            return None
        claim = claims.get(self.roles_claim)
        values = claim if isinstance(claim, list) else [claim]
        named = {
            self.roles[value] for value in values if isinstance(value, str) and value in self.roles
        }
        return sorted(named)


@dataclass(frozen=True)
class Begun:
    """The random values of a started sign-in, which tie the provider's response, token and code to
    this browser. The browser stores them in a cookie.
    """

    state: str
    nonce: str
    verifier: str

    @classmethod
    def new(cls) -> Begun:
        """Return a new sign-in with random values."""
        return cls(*(secrets.token_urlsafe(32) for _ in range(3)))

    @classmethod
    def read(cls, cookie: str) -> Begun:
        """Return the sign-in stored in a cookie; raise `NotSignedIn` if it is not valid."""
        parts = cookie.split(".")
        if len(parts) != 3 or not all(parts):
            raise NotSignedIn("You did not start a sign-in here.", hint="Sign in again.")
        return cls(*parts)

    @property
    def cookie(self) -> str:
        """The text that the browser stores in the cookie."""
        return f"{self.state}.{self.nonce}.{self.verifier}"


@dataclass(frozen=True)
class Person:
    """A person whom the identity provider has identified, by issuer and `subject`. `roles` is None
    if the provider does not determine roles.
    """

    subject: str
    name: str
    roles: Sequence[str] | None = None


def address(provider: Provider, begun: Begun, back: str) -> str:
    """Return the URL at which the person signs in; the provider then sends the browser to `back`."""
    endpoint = _configuration(provider)["authorization_endpoint"]
    digest = hashlib.sha256(begun.verifier.encode()).digest()
    parameters = {
        "response_type": "code",
        "client_id": provider.client_id,
        "redirect_uri": back,
        "scope": "openid profile email",
        "state": begun.state,
        "nonce": begun.nonce,
        "code_challenge": base64.urlsafe_b64encode(digest).rstrip(b"=").decode(),
        "code_challenge_method": "S256",
    }
    return str(httpx.URL(endpoint).copy_merge_params(parameters))


def person(provider: Provider, begun: Begun, back: str, *, code: str, state: str) -> Person:
    """Return the person who signed in at the identity provider. `code` and `state` are what the
    browser brought back. Raise `NotSignedIn` if the response does not belong to this browser, or
    the token has another issuer or audience, or has expired. Raise `EngineError` if the provider
    does not answer.
    """
    if not secrets.compare_digest(state.encode(), begun.state.encode()):
        raise NotSignedIn("The answer belongs to another sign-in.", hint="Sign in again.")
    metadata = _configuration(provider)
    try:
        token = _exchanged(provider, metadata["token_endpoint"], begun, back, code)
        keys = _get(metadata["jwks_uri"])
        claims = _claims(provider, begun, str(token["id_token"]), keys)
    except httpx.HTTPError as error:
        raise _silent(provider, error) from error
    except (JoseError, KeyError, ValueError, TypeError) as error:
        raise NotSignedIn(
            f"The identity provider's answer is not valid ({type(error).__name__}).",
            hint="Sign in again. If that fails, check the settings of the provider.",
        ) from error
    named = next((claims[k] for k in ("preferred_username", "email", "name") if claims.get(k)), "")
    subject = f"{provider.issuer} {claims['sub']}"
    if len(subject) > _LONGEST:  # cut, it could be another person's
        raise NotSignedIn(
            "The identity provider's name for you is too long.",
            hint=f"Together with the provider's address, it may have {_LONGEST} characters.",
        )
    return Person(subject, str(named or claims["sub"])[:100], provider.roles_of(claims))


def _claims(
    provider: Provider, begun: Begun, token: str, keys: Mapping[str, Any]
) -> Mapping[str, Any]:
    """Verify an ID token with the provider's public `keys`, and return its claims (OpenID Connect
    Core 1.0, section 3.1.3.7).
    """
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
        metadata = _get(f"{provider.issuer.rstrip('/')}/.well-known/openid-configuration")
    except (httpx.HTTPError, ValueError) as error:
        raise _silent(provider, error) from error
    missing = {"issuer", "authorization_endpoint", "token_endpoint", "jwks_uri"} - metadata.keys()
    if missing or metadata["issuer"] != provider.issuer:
        raise EngineError(
            f"{provider.issuer} calls itself {metadata.get('issuer')!r}.",
            hint="In --oidc-issuer, write the name exactly as the provider does.",
        )
    return metadata


def _get(url: str) -> Mapping[str, Any]:
    """Fetch a JSON object from a URL, without following redirects."""
    return _object(httpx.get(url, timeout=_SECONDS, follow_redirects=False))


def _object(answer: httpx.Response) -> Mapping[str, Any]:
    answer.raise_for_status()
    value = answer.json() if len(answer.content) <= _LARGEST else None
    if not isinstance(value, dict):
        raise ValueError("no JSON object")
    return value


def _exchanged(
    provider: Provider, endpoint: str, begun: Begun, back: str, code: str
) -> Mapping[str, Any]:
    """Exchange an authorization code for tokens at the provider's `endpoint` (RFC 6749, section
    4.1.3; PKCE proof of RFC 7636). `back` is the URL to which the browser came back.
    """
    form = {
        "grant_type": "authorization_code",
        "code": code,
        "redirect_uri": back,
        "code_verifier": begun.verifier,
    }
    secret = provider.client_secret
    if secret is None:
        form["client_id"] = provider.client_id
    answer = httpx.post(
        endpoint,
        data=form,
        auth=None if secret is None else (quote_plus(provider.client_id), quote_plus(secret)),
        timeout=_SECONDS,
        follow_redirects=False,
    )
    if answer.is_client_error:
        raise ValueError("the provider did not accept the code")
    return _object(answer)


def _silent(provider: Provider, error: Exception) -> EngineError:
    return EngineError(
        f"The identity provider {provider.issuer} does not answer: {type(error).__name__}.",
        hint="Try again in a minute, or sign in with a password.",
    )
