"""Merge summaries from files. Each file may occur only once, and none may be a protected summary."""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING

from aegis.errors import PolicyError
from aegis.options import checks_types
from aegis.summary.bundle.file import load_bundle
from aegis.summary.merge import merge
from aegis.summary.model import Summary
from aegis.summary_formats import added_format

if TYPE_CHECKING:
    from aegis.signing import PublicKey


@checks_types
def merge_bundles(paths: Sequence[str | Path], *, verify_key: PublicKey | None = None) -> Summary:
    """Read summaries of the parts of a table from files, and return the summary of the whole table.

    Parameters
    ----------
    paths
        One or more files that `save_bundle` wrote.
    verify_key
        Public key. If you give it, each file must have a valid signature for it.

    Raises
    ------
    PolicyError
        Two files are the same summary, so that rows would count twice; a file is a protected
        summary; or the parts have different policies or masks.
    DataError
        A file cannot be read, or is not signed with the key; or an error of `merge`.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> import aegis
    >>> summary = aegis.summarize("data/adult.parquet", "examples/adult/policy.yaml")
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "adult.aegis")
    ...     aegis.save_bundle(summary, path)
    ...     aegis.merge_bundles([path]).rows
    32561
    """
    for path in paths:
        other = added_format(path)
        if other is not None:
            raise PolicyError(
                f"{path} is a {other} summary, which cannot be merged: several parts may reveal more "
                "together than each part alone.",
                hint=f"Merge the exact summaries (.aegis), and make the {other} one of the whole.",
            )
    _refuse_twins(paths)
    return merge(*(load_bundle(path, verify_key=verify_key) for path in paths))


def _refuse_twins(paths: Sequence[str | Path]) -> None:
    """Raise `PolicyError` if two files hold the same summary, because the rows of this summary
    would count twice.
    """
    seen: dict[str, str | Path] = {}
    for path in paths:
        file = Path(path)
        digest = sha256(file.read_bytes()).hexdigest() if file.is_file() else str(path)
        if digest in seen:
            raise PolicyError(
                f"{path} and {seen[digest]} are the same summary.",
                hint="Name each part once: its rows would count twice, and classes look larger than "
                "they are.",
            )
        seen[digest] = path
