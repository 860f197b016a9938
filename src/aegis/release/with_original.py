"""Compare a certificate with the table that its release was made from."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from aegis.policy import Policy
from aegis.release.mismatch import Mismatch, alike, differing
from aegis.release.released import utility_of
from aegis.sources import Source


def original_differs(
    document: Mapping[str, Any], original: Source, output: Source, policy: Policy | None
) -> Iterator[Mismatch]:
    """Yield each field that differs from the original table.

    Parameters
    ----------
    document
        The certificate.
    original, output
        The table before masking, and the released file.
    policy
        What was declared: the utility is measured under it; None if the certificate has none.
    """
    said = document["input"]
    shown: dict[str, Any] = {"rows": original.rows, "sha256": original.digest()}
    if original.dialect is not None:
        shown["dialect"] = original.dialect.to_dict()
    for key in ("rows", "sha256", "dialect"):
        for what, stated, measured in differing(said.get(key), shown.get(key), f"input.{key}"):
            yield Mismatch(what, stated, measured)
    utility = document.get("utility")
    if policy is None or not isinstance(utility, Mapping) or "value" not in utility:
        return
    figure = utility_of(original, output, policy, measure=str(utility.get("measure")))
    for key, measured in ({} if figure is None else figure.to_dict()).items():
        if key in ("reference", "kept", "stderr", "lost_classes", "reference_rmse"):
            stated = utility.get(key)
            if not alike(stated, measured):
                yield Mismatch(f"utility.{key}", stated, measured)


__all__ = ["original_differs"]
