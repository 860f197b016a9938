"""Guessing slows the guesser, not the account.

Wrong passwords are counted by the network that they come from together with the name that was given, whether an
account has that name or not. Who signs in from elsewhere waits for nobody. Each attempt is counted before the
password is compared, so attempts at the same time count, too.
"""

from __future__ import annotations

import hashlib
from datetime import timedelta
from ipaddress import ip_address, ip_network

from sqlalchemy import delete
from sqlalchemy.orm import Session

from aegis.service.catalog.account_records import Guess
from aegis.service.catalog.errors import TooOften
from aegis.service.catalog.records import now

FREE = 5
"""Wrong passwords after which a guesser waits."""
_FIRST, _LONGEST = 15.0, 900.0
"""Seconds of the first wait, and of the longest; each is twice as long as the one before."""
_FORGOTTEN = timedelta(days=1)


def key_of(address: str, name: str) -> str:
    """Return the key under which wrong passwords for one name from one address are counted; it
    reveals neither.
    """
    return hashlib.sha256(f"{_network(address)} {name.strip().casefold()}".encode()).hexdigest()


def count(session: Session, key: str) -> bool:
    """Count an attempt before its password is compared; return whether it is the first that makes them wait.

    Raises
    ------
    TooOften
        They must wait still; this attempt is not counted.
    """
    moment = now()
    guess = session.get(Guess, key)
    if guess is not None and guess.wait_until > moment:
        seconds = int((guess.wait_until - moment).total_seconds()) + 1
        raise TooOften(
            "Too many wrong passwords for this name came from your network.",
            hint=f"Wait {seconds} seconds.",
        )
    session.execute(delete(Guess).where(Guess.changed < moment - _FORGOTTEN))
    guess = session.get(Guess, key, populate_existing=True)
    if guess is None:
        guess = Guess(key=key, failures=0, wait_until=moment, changed=moment)
        session.add(guess)
    guess.failures, guess.changed = guess.failures + 1, moment
    if guess.failures >= FREE:
        wait = min(_FIRST * 2.0 ** min(guess.failures - FREE, 10), _LONGEST)
        guess.wait_until = moment + timedelta(seconds=wait)
    return guess.failures == FREE


def forget(session: Session, key: str) -> None:
    """Forget the attempts of who gave the right password."""
    session.execute(delete(Guess).where(Guess.key == key))


def _network(address: str) -> str:
    """Return the network of an address: who has one of IPv6 has all of its /64."""
    try:
        parsed = ip_address(address.partition("%")[0])
    except ValueError:
        return address
    if parsed.version == 6:
        mapped = getattr(parsed, "ipv4_mapped", None)
        return str(mapped or ip_network((parsed, 64), strict=False))
    return str(parsed)
