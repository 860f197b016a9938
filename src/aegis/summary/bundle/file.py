"""Save, load and merge summaries as files, each a ZIP with a JSON manifest and Arrow arrays.

To merge summaries, each file may be named only once, and none may be a protected summary.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path

import pyarrow as pa

from aegis.errors import AegisError, DataError, PolicyError
from aegis.files import BUNDLE, check_output
from aegis.options import checks_types
from aegis.registry import added_format
from aegis.signing import PrivateKey, PublicKey
from aegis.summary.bundle.archive import damaged, open_archive, write_archive
from aegis.summary.bundle.check import check_summary
from aegis.summary.bundle.read import Reader, member_names, read_shape
from aegis.summary.bundle.write import pack_summary
from aegis.summary.merge import merge
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


@checks_types
def save_bundle(
    summary: Summary, path: str | Path, *, force: bool = False, key: PrivateKey | None = None
) -> None:
    """Write a summary to one file, from which `load_bundle` reads an equal summary.

    The same summary gives the same bytes. The file contains the whole summary except the
    timings. It includes the content of hierarchies, and stores masks as a policy writes them.

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
        The summary that `summarize` returned.
    path
        The file, with the extension `.aegis`.
    force
        Replace an existing file.
    key
        Private key to sign the file with. Anyone with the public key can then check who made it.

    Raises
    ------
    PolicyError
        The extension is not `.aegis`, the folder does not exist, or the file exists and `force` is
        not set.
    DataError
        The file cannot be written, or it would exceed the largest size of a bundle.
    """
    target = Path(path)
    check_output(target, force=force, formats=(BUNDLE,))
    content, members = pack_summary(summary)
    write_archive(target, content, members, key)


@checks_types
def load_bundle(path: str | Path, *, verify_key: PublicKey | None = None) -> Summary:
    """Read the summary in a file that `save_bundle` wrote. Its timings are empty.

    Aegis does not trust the content: it checks sizes before it takes memory, and checks that the
    numbers fit together before it uses them.

    Parameters
    ----------
    path
        The file.
    verify_key
        Public key. Aegis reads the file only if it was signed with the matching private key.

    Raises
    ------
    DataError
        The file is missing, is not a summary, or has another format version. Or it was truncated or
        changed, its numbers contradict each other, or it is not signed with the key.

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
                hint="Load it on a machine with more memory.",
            ) from error
        except _BROKEN as error:
            reason = getattr(error, "message", str(error)).rstrip(".") or type(error).__name__
            raise damaged(source, reason) from error
    return summary


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
    paths_by_digest: dict[str, str | Path] = {}
    for path in paths:
        file = Path(path)
        digest = sha256(file.read_bytes()).hexdigest() if file.is_file() else str(path)
        if digest in paths_by_digest:
            raise PolicyError(
                f"{path} and {paths_by_digest[digest]} are the same summary.",
                hint="Name each part once: its rows would count twice, and classes look larger than "
                "they are.",
            )
        paths_by_digest[digest] = path
    return merge(*(load_bundle(path, verify_key=verify_key) for path in paths))
