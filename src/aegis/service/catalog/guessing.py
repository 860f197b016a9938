"""Slow down password guessing without locking accounts.

The service counts wrong passwords for each pair of the caller's network and the account name that
the caller enters, whether or not the account exists. Callers from other networks need not wait. The
service counts an attempt before it compares the password, so simultaneous attempts count, too. It
stores only the hash (`key_of`) of network and name.
"""

from __future__ import annotations

import hashlib
from datetime import timedelta
from ipaddress import ip_address, ip_network

from sqlalchemy import delete
from sqlalchemy.orm import Session

from aegis.service.catalog.errors import TooOften
from aegis.service.catalog.records import Guess, now

FREE = 5
"""Number of wrong passwords after which a caller must wait."""
_FIRST, _LONGEST = 15.0, 900.0
"""Seconds of the first and of the longest waiting time; each is twice as long as the previous one."""
_FORGOTTEN = timedelta(days=1)


def key_of(address: str, name: str) -> str:
    """Return a hash of the network of an address and of an account's name."""
    return hashlib.sha256(f"{network_of(address)} {name.strip().casefold()}".encode()).hexdigest()


def count(session: Session, key: str) -> bool:
    """Count a wrong password under `key`. Return whether it is the first after which the caller
    must wait. Raise `TooOften` if the caller must still wait; this attempt is not counted.
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
    """Delete the count of wrong passwords under `key`, after a right one."""
    session.execute(delete(Guess).where(Guess.key == key))


def network_of(address: str) -> str:
    """Return the network of an address: an IPv4 address itself, or the /64 network of an IPv6 address."""
    try:
        parsed = ip_address(address.partition("%")[0])
    except ValueError:
        return address
    if parsed.version == 6:
        mapped = getattr(parsed, "ipv4_mapped", None)
        return str(mapped or ip_network((parsed, 64), strict=False))
    return str(parsed)
