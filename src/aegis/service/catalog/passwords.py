"""Passwords: what is strong enough, and how they are kept (Argon2id; OWASP ASVS 5.0, chapter 6)."""

from __future__ import annotations

import secrets
from functools import cache
from importlib.resources import files

from argon2 import PasswordHasher
from argon2.exceptions import Argon2Error

from aegis.service.catalog.errors import CatalogError

SHORTEST = 12
"""Characters of the shortest password."""
_HASHER = PasswordHasher()


def hashed(password: str) -> str:
    """Return how a new password is stored.

    Raises
    ------
    CatalogError
        It is too short, too long or a common one.
    """
    return _HASHER.hash(_strong(password))


def fits(stored: str | None, password: str) -> bool:
    """Return whether a password is the stored one; without one it takes as long, and is not."""
    try:
        return _HASHER.verify(_decoy() if stored is None else stored, password) and bool(stored)
    except Argon2Error:
        return False


def _strong(password: str) -> str:
    if len(password) < SHORTEST:
        raise CatalogError(
            f"The password has {len(password)} characters.",
            hint=f"Use at least {SHORTEST}; a sentence is fine.",
        )
    if len(password) > 256:
        raise CatalogError("The password is too long.", hint="Use at most 256 characters.")
    if password.casefold() in _common():
        raise CatalogError("The password is one of the common ones.", hint="Choose another one.")
    return password


@cache
def _common() -> frozenset[str]:
    text = (
        files("aegis.service.catalog").joinpath("common_passwords.txt").read_text(encoding="utf-8")
    )
    return frozenset(line.strip() for line in text.splitlines() if line.strip())


@cache
def _decoy() -> str:
    """Return a hash that no password fits, for names that are not there."""
    return _HASHER.hash(secrets.token_urlsafe(32))
