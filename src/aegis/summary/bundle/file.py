"""A summary as one file, safe to load: a ZIP with a JSON manifest and Arrow arrays."""

from __future__ import annotations

import struct
from pathlib import Path

import pyarrow as pa

from aegis.errors import AegisError, DataError
from aegis.files import BUNDLE, check_output
from aegis.signing import PrivateKey, PublicKey
from aegis.summary.bundle.archive import damaged, open_archive, write_archive
from aegis.summary.bundle.check import check_summary
from aegis.summary.bundle.read import Reader, member_names
from aegis.summary.bundle.shape import read_shape
from aegis.summary.bundle.write import pack_summary
from aegis.summary.model import Summary

_BROKEN = (
    AegisError,
    ArithmeticError,
    AttributeError,
    LookupError,
    OSError,
    RecursionError,
    StopIteration,
    TypeError,
    ValueError,
    pa.ArrowException,
    struct.error,
)
"""What content that does not fit can lead to: all of it means that the bundle is damaged."""


def save_bundle(
    summary: Summary, path: str | Path, *, force: bool = False, key: PrivateKey | None = None
) -> None:
    """Write a summary to one file, from which `load_bundle` makes an equal one.

    The same summary gives the same bytes. Everything is in the file but the timings: hierarchies
    are stored by content, masks as a policy writes them.

    Examples
    --------
    >>> import aegis, tempfile, pathlib
    >>> summary = aegis.summarize("data/adult.parquet", "examples/adult/policy.yaml")
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "adult.aegis")
    ...     aegis.save_bundle(summary, path)
    ...     path.stat().st_size < 10_000_000
    True

    Parameters
    ----------
    summary
        What `summarize` returned.
    path
        The file, with the extension `.aegis`.
    force
        Replace an existing file.
    key
        Sign the bundle with this key; anybody with the public key can check who made it.

    Raises
    ------
    PolicyError
        The extension is another, the folder does not exist, or the file exists and `force` is
        not set.
    DataError
        The file cannot be written, or would be larger than a bundle may be.
    """
    target = Path(path)
    check_output(target, force=force, formats=(BUNDLE,))
    content, members = pack_summary(summary)
    write_archive(target, content, members, key)


def load_bundle(path: str | Path, *, verify_key: PublicKey | None = None) -> Summary:
    """Return the summary that `save_bundle` wrote; its timings are empty.

    Nothing in the file is trusted: sizes are checked before memory is taken, and every number is
    compared with the others before it is used.

    Parameters
    ----------
    path
        The file.
    verify_key
        Read it only if it was signed with the private key of this one.

    Raises
    ------
    DataError
        The file is missing, is no bundle or one of another format version, is truncated or
        tampered with, contradicts itself, or is not signed with the key.

    Examples
    --------
    >>> import aegis, tempfile, pathlib
    >>> summary = aegis.summarize("data/adult.parquet", "examples/adult/policy.yaml")
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "adult.aegis")
    ...     aegis.save_bundle(summary, path)
    ...     aegis.load_bundle(path).rows
    32561
    """
    source = Path(path)
    with open_archive(source, verify_key) as archive:
        try:
            content = read_shape(archive.content)
            summary = Reader(archive.members(member_names(content))).summary(content)
            check_summary(summary)
        except MemoryError as error:
            raise DataError(
                f"There is not enough memory to read {source}.",
                hint="Load it where there is more.",
            ) from error
        except _BROKEN as error:
            reason = getattr(error, "message", str(error)).rstrip(".") or type(error).__name__
            raise damaged(source, reason) from error
    return summary
