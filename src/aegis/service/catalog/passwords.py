"""Passwords: required strength, and storage (Argon2id; OWASP ASVS 5.0, chapter 6)."""

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
"""Characters of the shortest password."""
CONTEXT = ("aegis", "catalog", "service", "password", "account", *AccountRole)
"""Words that a password does not consist of, nor of the name of its account."""
_HASHER = PasswordHasher()


def hashed(password: str, name: str) -> str:
    """Return how a new password is stored.

    Parameters
    ----------
    password
        The new one.
    name
        Of the account: it is one of the words that a password may not consist of.

    Raises
    ------
    CatalogError
        It is too short, too long, a common one, or made of the words of its context.
    """
    return _HASHER.hash(_strong(password, name))


def fits(stored: str | None, password: str) -> bool:
    """Return whether a password is the stored one; without a stored one, take the same time and
    return False.
    """
    try:
        return _HASHER.verify(_decoy() if stored is None else stored, password) and bool(stored)
    except Argon2Error:
        return False


def _strong(password: str, name: str) -> str:
    if len(password) < SHORTEST:
        raise CatalogError(
            f"The password has {len(password)} characters.",
            hint=f"Use at least {SHORTEST}; a sentence is fine.",
        )
    if len(password) > 256:
        raise CatalogError("The password is too long.", hint="Use at most 256 characters.")
    if password.casefold() in _common():
        raise CatalogError("The password is one of the common ones.", hint="Choose another one.")
    if _is_made_of(password.casefold(), (name.casefold(), *CONTEXT)):
        raise CatalogError(
            "The password is made of your name, the service's, a role's or a year.",
            hint="Choose another one; a sentence is fine.",
        )
    return password


def _is_made_of(text: str, words: Iterable[str]) -> bool:
    """Return whether words of three letters and more, with digits and signs at the ends, make up most of a text."""
    left = text
    for word in sorted(words, key=len, reverse=True):
        left = left.replace(word, "") if len(word) > 2 else left
    rest = left.strip(string.digits + string.punctuation + " ")
    return left != text and len(rest) < SHORTEST // 2


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
