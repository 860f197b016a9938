"""Open Spark sessions, and Parquet files and catalog tables in them; write folders of Parquet files
with Spark's executors, completely or not at all.
"""

from __future__ import annotations

import logging
import os
import re
import shutil
import socket
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path, PurePath
from typing import Any
from urllib.parse import unquote, urlsplit
from uuid import uuid4

import ibis
import ibis.expr.types as ir
import pyarrow.parquet

from aegis.errors import DataError, EngineError, PolicyError
from aegis.files import record
from aegis.sources.embedded import engine_errors, first_cause, translate
from aegis.sources.engines import SPARK, as_table, frame_of, is_of_spark
from aegis.sources.source import Source, refuse_duplicates
from aegis.sources.urls import without_secrets

INSTALL = "pip install 'aegis-advisor[spark]'"
_OTHER = {".csv", ".tsv", ".tab", ".txt", ".data", ".gz"}
_OTHER |= {".json", ".jsonl", ".ndjson", ".arrow", ".feather"}
_PATIENCE = 5.0
"""Number of seconds in which a master must answer."""


def connect(engine: Any = "spark", master: str | None = None) -> Any:
    """Return the Ibis backend that runs queries in a Spark session.

    Parameters
    ----------
    engine
        "spark" for the active session, or a new one if there is none; a SparkSession; or an Ibis
        backend.
    master
        Master URL of "spark": local[4], spark://host:7077, yarn, k8s://... By default, Spark's own
        configuration decides; if it names no master, this machine is used.

    Raises
    ------
    EngineError
        Spark or Java is not installed, or the master cannot be reached.
    PolicyError
        The engine is not one of these, or the master is given for an existing session.
    """
    if engine == "spark":
        session = _session(master)
        return ibis.pyspark.connect(session)
    if master is not None:
        raise PolicyError(
            f"The master {master!r} is given for a session that runs already.",
            hint="Leave it out.",
        )
    if getattr(engine, "name", None) == SPARK:
        return engine
    if is_of_spark(engine, "SparkSession"):
        return ibis.pyspark.connect(engine)
    raise PolicyError(
        f"{engine!r} is not an engine.",
        hint='Allowed: "duckdb", "spark", a SparkSession, an Ibis backend for Spark.',
    )


def open_spark(location: str, backend: Any) -> Source:
    """Open Parquet files, or a table of the Spark catalog, and return it as a `Source`.

    Parameters
    ----------
    location
        A path, folder or glob that Spark reads (also hdfs://, s3a://, ...), or a table of its
        catalog: name, schema.name or catalog.schema.name.
    backend
        The Ibis backend.

    Raises
    ------
    DataError
        There is no such file or table, a file is not Parquet, or files have different schemas.
    """
    session = backend._session
    if _is_path(location):
        frame = _read(session, location)
        _check_schemas(session, frame.inputFiles(), location)
    else:
        frame = _look_up(session, location)
    return open_frame(frame, location, backend)


def open_frame(frame: Any, origin: str = "Spark DataFrame", backend: Any = None) -> Source:
    """Return a Spark DataFrame as a `Source`. The index of a pandas-on-Spark frame is left out."""
    if hasattr(frame, "to_spark"):
        frame = frame.to_spark()
    connection = backend or ibis.pyspark.connect(frame.sparkSession)
    refuse_duplicates(frame.columns, origin)
    with _translated(origin):
        return Source(as_table(connection, frame), origin)


def _session(master: str | None) -> Any:
    try:
        from pyspark.sql import SparkSession
    except ImportError as error:
        raise EngineError(
            f"Spark is not installed: {error.name}.", hint=f"Install it: {INSTALL}; it needs Java."
        ) from error
    active = SparkSession.getActiveSession()
    if active is None:
        return _started(master)
    running = str(active.sparkContext.master)
    if master not in (None, running):
        raise PolicyError(
            f"A Spark session runs on {running} already, but you named the master {master}.",
            hint="Stop it, or leave the master out.",
        )
    return active


def _started(master: str | None) -> Any:
    """Start a new session; the output of its Java program is shown only with AEGIS_DEBUG=1."""
    from pyspark import SparkConf, SparkContext
    from pyspark.java_gateway import launch_gateway
    from pyspark.sql import SparkSession

    _check_java()
    _check_master(master)
    conf = SparkConf().setAppName("aegis").set("spark.ui.showConsoleProgress", "false")
    if master is not None:
        conf.setMaster(master)
    if (conf.get("spark.master") or "local").startswith("local"):
        # On one machine 200 partitions, as by default, are 200 times the work of few.
        conf.setIfMissing("spark.sql.shuffle.partitions", str(2 * (os.cpu_count() or 1)))
    session_name = f"Spark on {master}" if master else "Spark"
    debugging = os.environ.get("AEGIS_DEBUG") == "1"
    if not debugging:
        # Where Spark ends in mid-run, its Python side logs what is then raised as well.
        logging.getLogger().addFilter(lambda record: record.module != "java_gateway")
    with tempfile.TemporaryFile() as printed:
        gateway_options = {} if debugging else {"stderr": printed}
        try:
            SparkContext(conf=conf, gateway=launch_gateway(conf, gateway_options))
            return SparkSession.builder.getOrCreate()
        except Exception as error:
            printed.seek(0)
            cause = _cause_line(printed.read()) or first_cause(error)
            raise EngineError(
                f"Cannot start {session_name}: {cause}",
                hint="Check the master's URL and that Java 17 or newer is installed; "
                "AEGIS_DEBUG=1 shows what Spark prints.",
            ) from error


def _check_java() -> None:
    home = os.environ.get("JAVA_HOME")
    program = shutil.which("java", path=str(Path(home) / "bin")) if home else shutil.which("java")
    if program is None:
        where = f"JAVA_HOME is {home}" if home else "there is no java on PATH"
        raise EngineError(
            f"Spark needs Java, and {where}.",
            hint="Install Java 17 or newer, or set JAVA_HOME to its folder.",
        )


def _check_master(master: str | None) -> None:
    """Raise an error if no master answers; Spark itself would try for a minute and explain less."""
    if master is None or not master.startswith("spark://"):
        if master is not None and master.startswith("sc://"):
            raise PolicyError(
                "Spark Connect (sc://) is not supported.",
                hint="Give the master itself: spark://HOST:PORT, yarn, k8s://..., local[N].",
            )
        return
    addresses = [address.rpartition(":") for address in master.removeprefix("spark://").split(",")]
    if not all(host and port.isdigit() for host, _, port in addresses):
        raise PolicyError(f"{master!r} is not a master.", hint="Write spark://HOST:PORT.")
    reasons = []
    for host, _, port in addresses:
        try:
            socket.create_connection((host.strip("[]"), int(port)), timeout=_PATIENCE).close()
            return
        except OSError as error:
            reasons.append(f"{host}:{port}: {error.strerror or error}")
    raise EngineError(
        f"Cannot reach the master {master}: {'; '.join(reasons)}.",
        hint="Check the address, and that the master runs.",
    )


def _cause_line(printed: bytes) -> str:
    """Return the line of Spark's output that explains why it ended; empty if none does."""
    lines = [line.strip() for line in printed.decode(errors="replace").splitlines()]
    errors = (line for line in lines if re.search(r"Exception[: ]|Error[: ]", line))
    return without_secrets(next(errors, ""))


def _is_path(path: str) -> bool:
    return "/" in path or Path(path).exists() or bool(re.search(r"\.(parquet|pq)$|[*?]", path))


def _read(session: Any, location: str) -> Any:
    suffix = Path(location).suffix.lower()
    if suffix in _OTHER:
        raise DataError(
            f"With Spark, Aegis reads tables from Parquet or from the catalog, and {location} is neither.",
            hint="Convert it, or define a table or view of it in Spark and give its name.",
        )
    try:
        return session.read.parquet(location)
    except Exception as error:
        raise _unreadable(error, location) from error


def _look_up(session: Any, name: str) -> Any:
    try:
        return session.table(name)
    except Exception as error:
        if _condition(error) not in ("TABLE_OR_VIEW_NOT_FOUND", "PARSE_SYNTAX_ERROR"):
            raise _unreadable(error, name) from error
        names = [table.name for table in session.catalog.listTables()]
        hint = "A path needs a / or the extension .parquet."
        if names:
            hint = f"{DataError.unknown_column(name, names).hint} {hint}"
        raise DataError(f"No table {name!r} in the catalog of Spark.", hint=hint) from error


def _unreadable(error: Exception, location: str) -> DataError | EngineError:
    if _condition(error) == "PATH_NOT_FOUND":
        return DataError(
            f"No such file: {location}.",
            hint="Check the path, as the executors see it; a glob must match at least one file.",
        )
    if type(error).__name__ in ("AnalysisException", "IllegalArgumentException"):
        return DataError(
            f"Cannot read {location}: {first_cause(error)}", hint="Give files of Parquet."
        )
    return translate(error, location)


def _condition(error: Exception) -> str:
    """Return Spark's name for an error, such as TABLE_OR_VIEW_NOT_FOUND; empty if none."""
    name = getattr(error, "getCondition", lambda: None)()
    return str(name or "").partition(".")[0]


def _check_schemas(session: Any, files: list[str], location: str) -> None:
    """Raise an error if files differ in columns or types; Spark would use one file's schema for all."""
    if len(files) < 2:
        return
    with ThreadPoolExecutor(8) as pool:
        schemas = list(pool.map(lambda file: _schema(session, file), files))
    for file, schema in zip(files, schemas, strict=True):
        if schema != schemas[0]:
            raise DataError(
                f"{file} and {files[0]} have different columns or types.",
                hint=f"Files of one table must share one schema ({location}).",
            )


def _schema(session: Any, file: str) -> list[tuple[str, str]]:
    """Return the names and types of a file's columns."""
    url = urlsplit(file)
    with _translated(file):
        if url.scheme == "file" and Path(unquote(url.path)).exists():
            schema = pyarrow.parquet.read_schema(unquote(url.path))
            return [(field.name, str(field.type)) for field in schema]
        return list(session.read.parquet(file).dtypes)


@contextmanager
def _translated(origin: str) -> Iterator[None]:
    try:
        yield
    except (EngineError, DataError):
        raise
    except Exception as error:
        raise _unreadable(error, origin) from error


SUFFIXES = ("", ".parquet", ".pq")


@dataclass(frozen=True)
class SparkFolder:
    """A folder that Spark writes. It is on a file system that all of Spark's executors can access.

    Attributes
    ----------
    source
        The table whose session writes the folder.
    path
        The folder: a path or a URL (hdfs://, s3a://, ...), as Spark understands it.
    force
        Whether an existing folder is replaced.
    """

    source: Source
    path: str
    force: bool = False
    _files: Any = field(init=False, repr=False, compare=False)
    _local: Path | None = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        session = self.source.backend._session
        with engine_errors(self.path):
            files = self._path(self.path).getFileSystem(session._jsc.hadoopConfiguration())
            qualified = urlsplit(str(files.makeQualified(self._path(self.path)).toString()))
        object.__setattr__(self, "_files", files)
        local = Path(unquote(qualified.path)) if qualified.scheme == "file" else None
        object.__setattr__(self, "_local", local)

    def check(self) -> None:
        """Raise `PolicyError` unless the folder can be created."""
        name = self._path(self.path).getName()
        suffix = f".{name.rpartition('.')[2]}" if "." in name else ""
        if suffix.lower() not in SUFFIXES:
            raise PolicyError(
                f"Cannot write {self.path}: Spark writes folders of Parquet files.",
                hint="Name a folder, with or without .parquet behind it.",
            )
        with engine_errors(self.path):
            there = self._files.exists(self._path(self.path))
        if there and not self.force:
            raise PolicyError(
                f"{self.path} exists.",
                hint="Choose another name, or overwrite it: --force, in Python force=True.",
            )
        if self._is_read():
            raise PolicyError(
                f"{self.path} is the table itself, holds files of it, or lies within its folder.",
                hint="Give the output another name: it would replace the table, or be read as part "
                "of it.",
            )

    @contextmanager
    def written(self, table: ir.Table) -> Iterator[Source]:
        """Write the result of a query to a temporary folder, yield the result so that the caller
        can check it, then give the folder its final name.

        If the body of the context fails, the temporary folder is removed, and an earlier folder
        with the final name stays unchanged.
        """
        partial = f"{self.path.rstrip('/')}.{uuid4().hex[:12]}.partial"
        try:
            with engine_errors(self.path):
                frame_of(self.source.backend, table).write.parquet(partial, compression="zstd")
            yield open_spark(partial, self.source.backend)
            with engine_errors(self.path):
                self._replace(partial)
            record(self.path)
        except BaseException as error:
            self._discard(partial, error)
            raise

    def _replace(self, partial: str) -> None:
        """Give `partial` its final name; an existing folder is moved away, and back on failure."""
        written, target, old = map(self._path, (partial, self.path, f"{partial}.old"))
        there = self._files.exists(target)
        if there:
            self._rename(target, old)
        try:
            self._rename(written, target)
        except BaseException:
            if there:
                self._rename(old, target)
            raise
        if there:
            self._files.delete(old, True)

    def _rename(self, source: Any, other: Any) -> None:
        # File systems refuse by an exception or by saying no.
        if not self._files.rename(source, other):
            raise EngineError(
                f"Cannot rename {source} to {other}.",
                hint="Check permissions there, and run it again.",
            )

    def _discard(self, partial: str, error: BaseException) -> None:
        """Delete the folder `partial` after `error`; without Spark, only on this machine."""
        try:
            self._files.delete(self._path(partial), True)
        except Exception:  # noqa: BLE001 - whatever it is, `error` came first and is told
            if self._local is not None:
                shutil.rmtree(self._local.with_name(PurePath(partial).name), ignore_errors=True)
            elif isinstance(error, EngineError):
                error.hint = f"{error.hint} Delete {partial}, if it is there.".strip()

    def _is_read(self) -> bool:
        """Return whether the table is read from within the folder, or the folder is inside the table."""
        with engine_errors(self.path):
            folder = _closed(self._files.makeQualified(self._path(self.path)))
            frame = frame_of(self.source.backend, self.source.table)
            # Spark gives them whole, and it may be another file system that holds them.
            uri = self.source.backend._session._jvm.java.net.URI
            read = [_closed(self._path(uri(file))) for file in frame.inputFiles()]
            roots = [_closed(root) for root in _roots(frame)]
        return any(file.startswith(folder) for file in read) or any(map(folder.startswith, roots))

    def _path(self, path: Any) -> Any:
        session = self.source.backend._session
        return session._jvm.org.apache.hadoop.fs.Path(path)


def _closed(path: Any) -> str:
    """Return a Hadoop path as a text that ends in /."""
    return str(path.toString()).rstrip("/") + "/"


def _roots(frame: Any) -> list[Any]:
    """Return the files and folders from which the Spark query `frame` reads."""
    leaves = frame._jdf.queryExecution().analyzed().collectLeaves()
    roots = []
    for i in range(leaves.size()):
        leaf = leaves.apply(i)
        if leaf.getClass().getSimpleName() != "LogicalRelation":
            continue
        relation = leaf.relation()
        if relation.getClass().getSimpleName() == "HadoopFsRelation":
            paths = relation.location().rootPaths()
            roots += [paths.apply(k) for k in range(paths.size())]
    return roots
