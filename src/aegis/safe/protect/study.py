"""Add to `Study` the method that makes a protected summary."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from aegis.files import Progress
from aegis.safe.protect.release import protect, release_protected

if TYPE_CHECKING:
    from aegis.safe.protect.model import ProtectedSummary
    from aegis.study import Study


def protect_table(
    study: Study, output: str | Path | None, *, progress: Progress, **options: Any
) -> ProtectedSummary:
    """Protect a study's table, or its summary if there is no table. Write the result to the file
    `output`, if given. `options` are those of `aegis.safe.protect.protect`.
    """
    subject = study.summary if study.source is None else study.source
    if output is None:
        return protect(subject, study.policy, progress=progress, **options)
    return release_protected(subject, study.policy, output, progress=progress, **options)
