"""Make and verify the statements that approvers sign: digests of a release's content, and an expiry
time.

An attacker might control the service, but an approver's key is only on the approver's machine. So
an agent counts only statements that it can verify with the keys in its settings. The service only
forwards the statements.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from aegis.errors import DataError
from aegis.service.catalog.errors import CatalogError
from aegis.signing import PrivateKey, PublicKey, Signature, canonical, sign_bytes, verify_bytes

KIND = "approval"
VALID_DAYS = 30
"""Number of days for which a new statement is valid."""
MOST_DAYS = 90
"""Largest number of days for which a signed statement is accepted."""
_NEEDED = ("kind", "request", "data_set", "source", "policy", "summary", "configuration", "expires")


@dataclass(frozen=True)
class SignedStatement:
    """A statement, as `statement_of` returns it, and the signature of one approver over its
    canonical bytes.
    """

    statement: Mapping[str, Any]
    signature: Signature

    def to_dict(self) -> dict[str, Any]:
        """Return the signed statement as plain JSON values."""
        return {"statement": dict(self.statement), "signature": self.signature.to_dict()}

    @classmethod
    def of(cls, document: object) -> SignedStatement:
        """Return the statement that `to_dict` wrote. Raise `CatalogError` for another form."""
        statement = document.get("statement") if isinstance(document, Mapping) else None
        if not isinstance(document, Mapping) or not isinstance(statement, Mapping):
            raise CatalogError(
                "The signed approval contains no statement.",
                hint="Give the output of `aegis catalog sign`.",
            )
        missing = [key for key in _NEEDED if not isinstance(statement.get(key), str)]
        if missing:
            raise CatalogError(
                f"The statement lacks {', '.join(missing)}.",
                hint="Give the output of `aegis catalog sign`.",
            )
        try:
            return cls(dict(statement), Signature.of(document.get("signature")))
        except DataError as error:
            raise CatalogError(error.message, hint=error.hint) from error

    @property
    def expires(self) -> datetime:
        """The time in UTC at which the approval expires. Raise `CatalogError` if the statement has
        none with a time zone.
        """
        expiry = self.statement["expires"]
        try:
            moment = datetime.fromisoformat(expiry)
            if moment.tzinfo is None:
                raise ValueError("no time zone")
            return moment.astimezone(UTC)
        except (ValueError, OverflowError) as error:
            raise CatalogError(
                f"The statement ends at {expiry!r}, which is not a time.",
                hint="Write it in ISO 8601 with its zone, such as 2026-12-31T12:00:00+00:00.",
            ) from error

    def verified(self) -> bool:
        """Whether the key that the statement names has signed this statement."""
        try:
            key = PublicKey(bytes.fromhex(self.signature.key))
        except ValueError:
            return False
        return verify_bytes(canonical(self.statement), self.signature, key)


def statement_of(
    frozen: Mapping[str, Any], *, request: str, source: str, until: datetime | None = None
) -> dict[str, Any]:
    """Return the statement that an approver signs: the `frozen` digests of the policy, summary,
    configuration and terms of the release, the number of the request, the name of the table in the
    agent's file, and the end of the approval (by default `VALID_DAYS` from now).
    """
    moment = until or datetime.now(UTC) + timedelta(days=VALID_DAYS)
    return {
        **frozen,
        "kind": KIND,
        "request": request,
        "source": source,
        "expires": moment.isoformat(timespec="seconds"),
    }


def sign_statement(statement: Mapping[str, Any], key: PrivateKey) -> SignedStatement:
    """Return a statement signed with an approver's key. Raise `CatalogError` if it is not the
    statement of an approval.
    """
    signature = sign_bytes(canonical(statement), key)
    return SignedStatement.of({"statement": statement, "signature": signature.to_dict()})


def differences(statement: Mapping[str, Any], expected: Mapping[str, Any]) -> list[str]:
    """Return the fields, except `expires`, in which a statement differs from `expected`."""
    names = dict.fromkeys((*expected, *statement))
    return [n for n in names if n != "expires" and statement.get(n) != expected.get(n)]


def digest(content: str | bytes) -> str:
    """Return the SHA-256 of a text or of bytes in hexadecimal."""
    return hashlib.sha256(content.encode() if isinstance(content, str) else content).hexdigest()
