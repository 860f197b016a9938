"""Make and verify Ed25519 signatures of canonical bytes; they show who made a file.

A digest shows whether bytes have changed; a signature shows who is responsible for them. Keys are
PEM files, made by `aegis keygen` or `openssl genpkey -algorithm ed25519`. The algorithm needs no
parameters, and gives the same signature for the same bytes.

Reference: Josefsson and Liusvaara, RFC 8032 (EdDSA), section 5.1.
"""

from __future__ import annotations

import hashlib
import hmac
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from aegis.errors import DataError, PolicyError

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

ALGORITHM = "ed25519"
MOST_BYTES = 1 << 16
"""Largest size of a key file in bytes."""
_MAKE = "Make a pair of keys: `aegis keygen NAME`."


@dataclass(frozen=True)
class Signature:
    """A signature (64 bytes in hexadecimal), and the public key (32 bytes) with which everybody can
    verify it. The key shows which key signed the bytes, not who owns it.
    """

    key: str
    value: str

    def to_dict(self) -> dict[str, str]:
        """Return the signature as plain JSON values."""
        return {"algorithm": ALGORITHM, "key": self.key, "value": self.value}

    @classmethod
    def of(cls, values: object) -> Signature:
        """Return the signature that `to_dict` wrote; raise `DataError` for anything else."""
        match values:
            case {"algorithm": "ed25519", "key": str(key), "value": str(value), **more} if not more:
                return cls(key, value)
        raise DataError(
            "The signature is not one of Ed25519.", hint="Ask its maker to sign it again."
        )


@dataclass(frozen=True)
class PublicKey:
    """A public key of 32 bytes, with which signatures are verified. Messages name its `origin`."""

    raw: bytes
    origin: str = "the key given"

    @property
    def text(self) -> str:
        """The public key as text in hexadecimal."""
        return self.raw.hex()


@dataclass(frozen=True)
class PrivateKey:
    """A private key of the library `cryptography`, with which documents are signed. The `repr` of
    this object does not show the key.
    """

    key: Ed25519PrivateKey

    def __repr__(self) -> str:
        return "PrivateKey(...)"

    @property
    def public(self) -> PublicKey:
        """The public key that verifies the signatures of this private key."""
        return PublicKey(self.key.public_key().public_bytes_raw())


def canonical(data: Mapping[str, Any] | Sequence[Any]) -> bytes:
    """Return JSON values as bytes, the same for every order of keys and for any white space."""
    return json.dumps(data, sort_keys=True, separators=(",", ":"), ensure_ascii=True).encode()


SEAL = ("digest", "signature")
"""The keys of a sealed document that its digest and its signature do not cover."""


def seal(document: Mapping[str, Any], key: PrivateKey | None = None) -> dict[str, Any]:
    """Return a copy of the document with the digest of its content and, given a key, its signature.
    The digest shows damage and careless edits; only the signature shows who is responsible for the
    content.
    """
    sealed = {name: value for name, value in document.items() if name not in SEAL}
    if key is not None:
        sealed["signature"] = sign_bytes(canonical(sealed), key).to_dict()
    return {**sealed, "digest": sealed_digest(sealed)}


def sealed_digest(document: Mapping[str, Any]) -> str:
    """Return the SHA-256 digest of a document without its field `digest`."""
    rest = {name: value for name, value in document.items() if name != "digest"}
    return hashlib.sha256(canonical(rest)).hexdigest()


def verify_seal(document: Mapping[str, Any], signature: Signature, key: PublicKey) -> bool:
    """Return whether `signature` is that of the owner of `key` on a document with its digest
    (`seal`).
    """
    content = {name: value for name, value in document.items() if name not in SEAL}
    return verify_bytes(canonical(content), signature, key)


def keyed_digest(table: str, release: str, key: PrivateKey) -> str:
    """Return a digest of a table that only the owner of the private key can compute.

    The digest of a table without a key would allow readers of a release to guess its suppressed
    rows: they could compute the digest of each guess. `table` and `release` are the digests of the
    table and of the file made from it, so two releases of one table have different keyed digests.
    """
    secret = hmac.digest(key.key.private_bytes_raw(), b"aegis input of a certificate", "sha256")
    return hmac.digest(secret, f"{table}\n{release}".encode(), "sha256").hex()


def sign_bytes(data: bytes, key: PrivateKey) -> Signature:
    """Return the signature of `data`, which is always the same for the same key."""
    return Signature(key.public.text, key.key.sign(data).hex())


def verify_bytes(data: bytes, signature: Signature, key: PublicKey) -> bool:
    """Return whether `signature` is a signature of `data` by the owner of `key`."""
    from cryptography.exceptions import InvalidSignature
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

    if signature.key != key.text:
        return False
    try:
        library = Ed25519PublicKey.from_public_bytes(key.raw)
        library.verify(bytes.fromhex(signature.value), data)
    except (InvalidSignature, ValueError):
        return False
    return True


def make_keys() -> tuple[bytes, bytes]:
    """Return a new private key and its public key, as PEM texts (PKCS 8 and SubjectPublicKeyInfo)."""
    _require_library()
    from cryptography.hazmat.primitives import serialization as form
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    key = Ed25519PrivateKey.generate()
    private = key.private_bytes(form.Encoding.PEM, form.PrivateFormat.PKCS8, form.NoEncryption())
    public = key.public_key().public_bytes(
        form.Encoding.PEM, form.PublicFormat.SubjectPublicKeyInfo
    )
    return private, public


def load_private_key(path: Path) -> PrivateKey:
    """Read a private key from a PEM file. Raise `PolicyError` if the file cannot be read or
    contains no Ed25519 private key, or if the extra `sign` is missing.
    """
    _require_library()
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
    from cryptography.hazmat.primitives.serialization import load_pem_private_key

    key = _loaded(
        path, partial(load_pem_private_key, password=None), "private key", " without a password"
    )
    if not isinstance(key, Ed25519PrivateKey):
        raise _no_key(path, "private key")
    return PrivateKey(key)


def load_public_key(path: Path) -> PublicKey:
    """Read a public key from a PEM file; raise the errors of `load_private_key`."""
    _require_library()
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
    from cryptography.hazmat.primitives.serialization import load_pem_public_key

    key = _loaded(path, load_pem_public_key, "public key")
    if not isinstance(key, Ed25519PublicKey):
        raise _no_key(path, "public key")
    return PublicKey(key.public_bytes_raw(), str(path))


def _loaded(path: Path, load: Callable[[bytes], object], what: str, form: str = "") -> object:
    """Return the key that `load` reads in a file; `form` describes the form that it can read."""
    from cryptography.exceptions import UnsupportedAlgorithm

    try:
        return load(_read(path))
    except (ValueError, TypeError) as error:
        raise _no_key(path, f"{what}{form}") from error
    except UnsupportedAlgorithm as error:
        raise _no_key(path, what) from error


def _require_library() -> None:
    if find_spec("cryptography") is None:
        raise PolicyError(
            "Signatures need the library cryptography, which is not installed.",
            hint="Install the extra `sign`: pip install 'aegis-advisor[sign]'.",
        )


def _read(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            return file.read(MOST_BYTES)
    except OSError as error:
        raise PolicyError(
            f"Cannot read the key {path}: {error.strerror}.", hint="Check the path."
        ) from error


def _no_key(path: Path, what: str) -> PolicyError:
    return PolicyError(f"{path} holds no Ed25519 {what} (PEM).", hint=_MAKE)
