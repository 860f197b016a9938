"""Declare functions of engines that Ibis does not know."""

from __future__ import annotations

from collections.abc import Sequence
from inspect import Parameter, Signature
from typing import Any

import ibis


def engine_function(name: str, arguments: Sequence[Any], result: Any) -> Any:
    """Return a function of an engine for expressions of Ibis.

    Parameters
    ----------
    name
        Name of the function in the engine.
    arguments, result
        Ibis types of the arguments and of the result.

    Examples
    --------
    >>> from aegis.sources.functions import engine_function
    >>> hashed = engine_function("hash", ("int64",), "uint64")
    >>> str(hashed(7).type())
    'uint64'
    """

    def declared(*_: Any) -> None:
        """Declare the signature for Ibis; this body is never called."""

    of_kind = Parameter.POSITIONAL_OR_KEYWORD
    parameters = [Parameter(f"argument_{i}", of_kind) for i in range(len(arguments))]
    declared.__signature__ = Signature(parameters)  # type: ignore[attr-defined]
    return ibis.udf.scalar.builtin(declared, name=name, signature=(tuple(arguments), result))
