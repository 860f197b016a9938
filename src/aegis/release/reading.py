"""Read a certificate."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from aegis.errors import DataError
from aegis.release.possible import whole_number
from aegis.signing import sealed_digest

NEEDED = ("input", "output", "policy", "privacy")
"""Keys that every certificate has; a document without them is refused."""


def read_certificate(certificate: str | Path | Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the content of a certificate; raise `DataError` if it is not a certificate."""
    origin = "The document" if isinstance(certificate, Mapping) else str(certificate)
    if not isinstance(certificate, Mapping):
        try:
            text = Path(certificate).read_text(encoding="utf-8")
            certificate = json.loads(text, parse_int=whole_number)
        except (OSError, TypeError) as error:
            why = getattr(error, "strerror", None) or error
            raise DataError(f"{origin} cannot be read: {why}.", hint="Check the path.") from error
        except (ValueError, RecursionError) as error:
            raise DataError(
                f"{origin} is not JSON: {error}.",
                hint="Give what `aegis apply --certificate` wrote.",
            ) from error
    document = certificate if isinstance(certificate, Mapping) else {}
    missing = [key for key in NEEDED if not isinstance(document.get(key), Mapping)]
    if missing:
        raise DataError(
            f"{origin} is not a certificate: it lacks {', '.join(missing)}.",
            hint="Give what `aegis apply --certificate` wrote.",
        )
    return document


def read_intact(certificate: str | Path | Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the content of a certificate, like `read_certificate`; raise `DataError` also if its
    digest is not that of its content.
    """
    document = read_certificate(certificate)
    if not without_digest(document) and document.get("digest") != sealed_digest(document):
        origin = "The document" if isinstance(certificate, Mapping) else str(certificate)
        raise DataError(
            f"{origin} is altered or damaged: its digest is not that of its content.",
            hint="Give the certificate as `aegis apply --certificate` wrote it.",
        )
    return document


def without_digest(document: Mapping[str, Any]) -> bool:
    """Return whether this is one of the first certificates, which have no digest."""
    return document.get("certificate") == 1 and "digest" not in document
