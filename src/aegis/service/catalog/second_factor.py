"""Second factor: time-based one-time codes (TOTP, RFC 6238), and recovery codes for a lost device.

A code has six digits, computed by HMAC-SHA-1 from the number of the current half minute. The codes
of the previous and the next half minute are accepted, too, because clocks differ. No code is
accepted twice. See OWASP ASVS 5.0, 6.5 and 6.6.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import secrets
import time
from dataclasses import dataclass
from datetime import timedelta
from urllib.parse import quote

from cryptography.hazmat.primitives.hashes import SHA1
from cryptography.hazmat.primitives.twofactor.hotp import HOTP
from sqlalchemy.orm import Session

from aegis.service.catalog.errors import WrongState
from aegis.service.catalog.log import append
from aegis.service.catalog.records import Account, SecondFactor, now

_SECONDS = 30
_DRIFT = 1
"""Number of time steps before and after the current one whose codes are accepted."""
_BYTES = 20
_RECOVERY = 10
_RECOVERY_BYTES = 16
_SALT = 16
_WRONG = 5
_REFUSED = timedelta(minutes=5)


@dataclass(frozen=True)
class Enrolment:
    """A new key for one-time codes that is not confirmed yet: in base 32, for typing into an app,
    and as an `otpauth://` URL, which apps open.
    """

    secret: str
    address: str


def code_at(secret: str, step: int) -> str:
    """Return the one-time code of a time step (RFC 4226, section 5.3)."""
    return HOTP(base64.b32decode(secret), 6, SHA1()).generate(step).decode()


def step_now() -> int:
    """Return the number of the current half minute (RFC 6238)."""
    return int(time.time()) // _SECONDS


def is_on(session: Session, account: Account) -> bool:
    """Return whether an account has a second factor."""
    return _confirmed(session, account) is not None


def recovery_codes_left(session: Session, account: Account) -> int:
    """Return the number of recovery codes that an account has not used yet."""
    factor = _confirmed(session, account)
    return 0 if factor is None else len(factor.recovery)


def _confirmed(session: Session, account: Account) -> SecondFactor | None:
    factor = session.get(SecondFactor, account.id)
    return factor if factor is not None and factor.confirmed else None


def begin(session: Session, account: Account, service: str) -> Enrolment:
    """Create a key for an account, whose password was just checked; the second factor is off until
    a code confirms the key. Apps show `service`, the host of the service. Raise `WrongState` if the
    account has a second factor already.
    """
    factor = session.get(SecondFactor, account.id)
    if factor is not None and factor.confirmed:
        raise WrongState(
            "You already have a second factor.", hint="First remove it, then set up another one."
        )
    if factor is None:
        factor = SecondFactor(account_id=account.id, recovery=[], step=0, failures=0)
        session.add(factor)
    factor.secret, factor.failures = base64.b32encode(secrets.token_bytes(_BYTES)).decode(), 0
    name = quote(f"{service}:{account.name}", safe=":")
    address = f"otpauth://totp/{name}?secret={factor.secret}&issuer={quote(service)}"
    return Enrolment(factor.secret, address)


def confirm(session: Session, account: Account, code: str) -> list[str] | None:
    """Turn the second factor on with a code from the app; return the recovery codes, or None if the
    code does not match the key. After five wrong codes the key is deleted, so that nobody can guess
    a code. Raise `WrongState` if no second factor was started, or it is on already.
    """
    factor = session.get(SecondFactor, account.id)
    if factor is None or factor.confirmed:
        raise WrongState(
            "You have not started to set up a second factor.", hint="Start with your password."
        )
    step = _step_of(factor, code)
    if step is None:
        factor.failures += 1
        if factor.failures >= _WRONG:
            session.delete(factor)
            append(session, "system", "codes refused", account=account.name, wrong=_WRONG)
        return None
    factor.confirmed, factor.step, factor.failures = True, step, 0
    codes = _new_recovery(factor)
    append(session, account.name, "second factor on", account=account.name, old=False, new=True)
    return codes


def renew_recovery(session: Session, account: Account) -> list[str]:
    """Replace the recovery codes; the old codes stop working."""
    factor = _confirmed(session, account)
    if factor is None:
        raise WrongState("You have no second factor.", hint="Set one up first.")
    old, codes = len(factor.recovery), _new_recovery(factor)
    append(
        session, account.name, "recovery codes made", account=account.name, old=old, new=len(codes)
    )
    return codes


def remove(session: Session, account: Account, by: str) -> None:
    """Turn the second factor off."""
    factor = _confirmed(session, account)
    if factor is None:
        raise WrongState(f"{account.name} has no second factor.", hint="Nothing to do.")
    session.delete(factor)
    append(session, by, "second factor off", account=account.name, old=True, new=False)


def fits(session: Session, account: Account, code: str) -> bool:
    """Return whether a code is right, and record its use so that it is not accepted again. After
    five wrong codes, no one-time code is accepted for five minutes, and the log records this.
    Recovery codes are accepted even then, because they cannot be guessed.
    """
    factor = _confirmed(session, account)
    if factor is None:
        return False
    if _recovers(session, factor, account, code):
        return True
    if factor.refused_until is not None and factor.refused_until > now():
        return False
    step = _step_of(factor, code)
    if step is not None:
        factor.step, factor.failures, factor.refused_until = step, 0, None
        return True
    factor.failures += 1
    if factor.failures >= _WRONG:
        factor.failures, factor.refused_until = 0, now() + _REFUSED
        append(session, "system", "codes refused", account=account.name, wrong=_WRONG)
    return False


def _step_of(factor: SecondFactor, code: str) -> int | None:
    """Return the number of the half minute of this one-time code; None if it is wrong or was used."""
    digits = "".join(code.split())
    present = step_now()
    for step in range(present - _DRIFT, present + _DRIFT + 1):
        if step > factor.step and hmac.compare_digest(
            code_at(factor.secret, step).encode(), digits.encode()
        ):
            return step
    return None


def _recovers(session: Session, factor: SecondFactor, account: Account, code: str) -> bool:
    hashes = ((stored, _salted(code, stored.partition(":")[0])) for stored in factor.recovery)
    used = next(
        (s for s, salted in hashes if hmac.compare_digest(s.encode(), salted.encode())), None
    )
    if used is None:
        return False
    factor.recovery = [stored for stored in factor.recovery if stored != used]
    factor.failures, factor.refused_until = 0, None
    append(
        session, account.name, "recovery code used", account=account.name, left=len(factor.recovery)
    )
    return True


def _new_recovery(factor: SecondFactor) -> list[str]:
    """Replace the recovery codes by new ones of 128 random bits, which are stored as fast hashes
    (allowed above 112 bits: OWASP ASVS 6.5.2).
    """
    random_codes = (secrets.token_bytes(_RECOVERY_BYTES) for _ in range(_RECOVERY))
    texts = [base64.b32encode(random).decode().lower().rstrip("=") for random in random_codes]
    factor.recovery = [_salted(text, secrets.token_hex(_SALT)) for text in texts]
    return ["-".join(text[i : i + 4] for i in range(0, len(text), 4)) for text in texts]


def _salted(code: str, salt: str) -> str:
    """Return salt and hash of a recovery code, as stored."""
    plain = "".join(c for c in code.lower() if c.isalnum())
    return f"{salt}:{hashlib.sha256(f'{salt}:{plain}'.encode()).hexdigest()}"
