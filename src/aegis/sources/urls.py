"""Check the URLs of databases before a driver sees them, and show them without secrets."""

from __future__ import annotations

import re
from urllib.parse import unquote, urlsplit

from aegis.errors import PolicyError

_SECRET = re.compile(r"(://[^\s:/@]*):\S*@|(password\s*=\s*)('[^']*'|\S+)", re.IGNORECASE)
_HIDDEN = "***"


def shown_url(url: str) -> str:
    """Return a URL without password and options; a path unchanged.

    A password may contain / # ? or @ without escaping. So everything up to the last @ is left out.
    """
    scheme, mark, rest = url.partition("://")
    if not mark:
        return url
    address = rest
    user = ""
    if "@" in rest:
        before, _, after = rest.rpartition("@")
        name, secret, _ = before.partition(":")
        if secret or not re.search(r"[/?#]", name):
            user = f"{name}:{_HIDDEN}@" if secret else f"{name}@"
            address = after
    return f"{scheme}://{user}{re.split('[?#]', address, maxsplit=1)[0]}"


def without_secrets(text: str, url: str = "") -> str:
    """Return a message without the passwords of URLs in it, and that of `url`."""
    for secret in _secrets(url):
        text = text.replace(secret, _HIDDEN)
    return _SECRET.sub(
        lambda match: f"{match[1]}:{_HIDDEN}@" if match[1] else f"{match[2]}{_HIDDEN}", text
    )


def check_url(url: str) -> None:
    """Raise an error unless a URL is well formed. Drivers would show the passwords in a malformed
    URL.

    Raises
    ------
    PolicyError
        The user name or password contains characters that must be written as %XX, or the host or
        port is invalid.
    """
    scheme, _, rest = url.partition("://")
    authority = re.split("[/?#]", rest, maxsplit=1)[0]
    path = re.split("[?#]", rest, maxsplit=1)[0]
    fragment = rest.partition("#")[2]
    if authority.count("@") > 1 or "@" in path[len(authority) :] or "@" in fragment:
        raise _unclear(url)
    host = authority.rpartition("@")[2]
    port = re.fullmatch(r"(?:\[[0-9A-Fa-f:.]+\]|[^:\[\]\s]*)(?::([0-9]{1,5}))?", host)
    if port is None or (port[1] and int(port[1]) > 65_535):
        if "@" in rest and "@" not in authority:
            raise _unclear(url)
        raise PolicyError(
            f"The URL {shown_url(f'{scheme}://{path}')} has no valid host and port.",
            hint="Write scheme://user:password@host:port/database, an IPv6 address in [ ].",
        )


def _unclear(url: str) -> PolicyError:
    return PolicyError(
        f"The user or password in {shown_url(url)} holds a character that a URL cannot.",
        hint="Write it as %XX: @ is %40, / is %2F, # is %23, ? is %3F, : is %3A; or leave the "
        "password to PGPASSWORD or ~/.pgpass.",
    )


def _secrets(url: str) -> list[str]:
    """Return the password of a URL as written and as decoded, the longer one first."""
    try:
        password = urlsplit(url).password or ""
    except ValueError:
        return []
    return sorted({text for text in (password, unquote(password)) if len(text) > 2}, key=len)[::-1]
