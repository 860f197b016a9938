"""Replace identifiers by keyed tokens: equal values give equal tokens, which do not reveal the value."""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

import ibis

from aegis.errors import PolicyError
from aegis.masks import parameters
from aegis.masks.base import Kind, Mask, described

if TYPE_CHECKING:
    import ibis.expr.types as ir

LEAST_KEY = 16
"""Smallest number of bytes of a key: 128 bits if they are random."""
BLOCK = 64
"""Block size of SHA-256 in bytes."""


def _text_to_text(data: str) -> str:
    """Declare the signature of a function from text to text for Ibis; this body is never called."""
    return data


HEX = ibis.udf.scalar.builtin(_text_to_text, name="hex", signature=(("string",), "string"))
UNHEX = ibis.udf.scalar.builtin(_text_to_text, name="unhex", signature=(("string",), "binary"))
SHA256 = ibis.udf.scalar.builtin(_text_to_text, name="sha256", signature=(("binary",), "string"))


@dataclass(frozen=True)
class Tokenise(Mask):
    """Shows the first `length` hexadecimal digits of the value's HMAC-SHA256 with a secret key.

    The value is read as text in UTF-8. Equal values give equal tokens in every table masked with
    the same key, so joins keep working. Only someone who has the key can test whether a value has a
    certain token. 32 characters are 128 bits: among a billion values, two share a token with a
    probability of about 1e-21.

    The key is read from the environment or a file (without a trailing line break) when the
    expression is built. It is not part of the mask, its YAML or its text. It *is* part of the
    expression, as two constants: do not show or log the SQL of a tokenised column. Null stays null.

    Reference: Krawczyk, Bellare, Canetti, RFC 2104 (HMAC), section 2.
    """

    name: ClassVar[str] = "tokenise"
    summary: ClassVar[str] = (
        "Replaces an identifier by a token, made with a secret key. Equal values get equal "
        "tokens, so joins still work."
    )
    fits: ClassVar[frozenset[Kind]] = frozenset({Kind.TEXT, Kind.INTEGER})
    example: ClassVar[str] = "{tokenise: {key_env: AEGIS_TOKEN_KEY}}"

    key_env: str | None = described(
        "environment variable that holds the key (or give key_file)", None
    )
    key_file: str | None = described("file that holds the key (or give key_env)", None)
    length: int = described("characters of the token, 8 to 64", 32)

    def __post_init__(self) -> None:
        parameters.either(self.name, self.example, key_env=self.key_env, key_file=self.key_file)
        if self.key_env is not None:
            parameters.text(self.name, "key_env", self.key_env)
        if self.key_file is not None:
            parameters.text(self.name, "key_file", self.key_file)
        parameters.whole(self.name, "length", self.length, at_least=8, at_most=64)

    def expression(self, column: ir.Column) -> ir.Value:
        """Return the token of each value; raise `PolicyError` if the key is missing or empty."""
        key = self._key()
        if len(key) > BLOCK:
            key = hashlib.sha256(key).digest()
        key = key.ljust(BLOCK, b"\0")
        inner, outer = (bytes(byte ^ pad for byte in key).hex() for pad in (0x36, 0x5C))
        text = column if column.type().is_string() else column.cast("string")
        # Concatenated in hexadecimal, since engines differ in how they concatenate bytes.
        message = SHA256(UNHEX(ibis.literal(inner) + HEX(text)))
        return SHA256(UNHEX(ibis.literal(outer) + message)).left(self.length)

    def _key(self) -> bytes:
        if self.key_env is not None:
            key = os.environ.get(self.key_env, "").encode()
            place = f"environment variable {self.key_env!r}"
        else:
            place = f"file {self.key_file!r}"
            try:
                key = Path(self.key_file or "").read_bytes().rstrip(b"\r\n")
            except OSError as error:
                raise PolicyError(
                    f"Mask {self.name!r}: cannot read the key from {place}: {error.strerror}.",
                    hint="Check the path.",
                ) from error
        if not key:
            raise PolicyError(
                f"Mask {self.name!r}: there is no key in {place}.",
                hint="Put a long random secret there, for example the output of `openssl rand -hex 32`.",
            )
        if len(key) < LEAST_KEY:
            raise PolicyError(
                f"Mask {self.name!r}: the key in {place} has {len(key)} bytes, which can be guessed.",
                hint=f"Give at least {LEAST_KEY}, for example the output of `openssl rand -hex 32`.",
            )
        return key
