"""`aegis keygen`: make a pair of keys for signing summaries."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from aegis.cli.files import check_outputs, next_step, written
from aegis.cli.output import Output
from aegis.cli.parameters import Force, Quiet
from aegis.files import replacing

PRIVATE, PUBLIC = ".key", ".pub"
"""The extensions of the two files."""
EXAMPLES = ("aegis keygen hospital", "aegis keygen hospital --force")


def command(
    name: Annotated[
        Path,
        typer.Argument(
            metavar="NAME",
            help="Name of the files: keep NAME.key, hand out NAME.pub.",
        ),
    ],
    force: Force = False,
    quiet: Quiet = False,
) -> None:
    """Make a pair of keys (Ed25519): a private key to sign, a public key to verify.

    You give a name. Aegis writes NAME.key and NAME.pub. NAME.key has no password, and
    only you can read it. `aegis summarize --sign NAME.key` signs a summary. Send
    NAME.pub to the receivers in a way that they trust. With `--verify-key NAME.pub`
    they can check that a summary comes from you and is unchanged. Both files are PEM,
    the format of openssl.
    """
    from aegis.signing import make_keys

    private, public = (name.with_name(name.name + ending) for ending in (PRIVATE, PUBLIC))
    check_outputs([(private, None), (public, None)], force=force)
    keys = make_keys()
    for path, key in ((private, keys[0]), (public, keys[1])):
        with replacing(path, private=path == private) as temporary:
            temporary.write_bytes(key)
    shell = Output(quiet=quiet)
    shell.say(*written([private, public]))
    words = ("sign a summary", "summarize", "TABLE")
    shell.suggest(*next_step(*words, policy="POLICY", o="NAME.aegis", sign=private))
