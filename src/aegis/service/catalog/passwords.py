"""Check the strength of passwords and store them (Argon2id; OWASP ASVS 5.0, chapter 6)."""

from __future__ import annotations

import secrets
import string
from collections.abc import Iterable
from functools import cache
from importlib.resources import files

from argon2 import PasswordHasher
from argon2.exceptions import Argon2Error

from aegis.service.catalog.access import AccountRole
from aegis.service.catalog.errors import CatalogError

SHORTEST = 12
"""Smallest number of characters of a password."""
CONTEXT = ("aegis", "catalog", "service", "password", "account", *AccountRole)
"""Words of the context. A password that consists only of these words or the account's name is
refused.
"""
_HASHER = PasswordHasher()


def hashed(password: str, name: str) -> str:
    """Check the strength of a new password for the account `name`, and return the hash to store.
    Raise `CatalogError` if it is too short, too long or common, or consists mostly of words such as
    the name.
    """
    return _HASHER.hash(require_strong(password, name))


def fits(stored: str | None, password: str) -> bool:
    """Return whether a password matches the stored hash. Without a stored hash, the answer is False
    and takes the same time, so that it does not reveal whether the account exists.
    """
    try:
        return _HASHER.verify(_decoy() if stored is None else stored, password) and bool(stored)
    except Argon2Error:
        return False


def require_strong(password: str, name: str) -> str:
    """Return a new password for the account `name`; raise the error of `hashed` if it is weak."""
    if len(password) < SHORTEST:
        raise CatalogError(
            f"The password has {len(password)} characters.",
            hint=f"Use at least {SHORTEST}, for example a sentence.",
        )
    if len(password) > 256:
        raise CatalogError("The password is too long.", hint="Use at most 256 characters.")
    if password.casefold() in _common():
        raise CatalogError(
            "The password is one of the most common passwords.", hint="Choose another one."
        )
    if _is_made_of(password.casefold(), (name.casefold(), *CONTEXT)):
        raise CatalogError(
            "The password is made of your name, the service's, a role's or a year.",
            hint="Choose another one, for example a sentence.",
        )
    return password


def _is_made_of(text: str, words: Iterable[str]) -> bool:
    """Return whether most of a text consists of these words. Words shorter than three letters are
    ignored, and so are digits and signs at both ends of the text.
    """
    remainder = text
    for word in sorted(words, key=len, reverse=True):
        remainder = remainder.replace(word, "") if len(word) > 2 else remainder
    rest = remainder.strip(string.digits + string.punctuation + " ")
    return remainder != text and len(rest) < SHORTEST // 2


@cache
def _common() -> frozenset[str]:
    text = (
        files("aegis.service.catalog").joinpath("common_passwords.txt").read_text(encoding="utf-8")
    )
    return frozenset(line.strip() for line in text.splitlines() if line.strip())


@cache
def _decoy() -> str:
    """Return the hash of a random password, to compare with if an account does not exist."""
    return _HASHER.hash(secrets.token_urlsafe(32))
