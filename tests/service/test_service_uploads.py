"""Files of strangers: what an upload may be, and what the process that reads it may do."""

from __future__ import annotations

import io
import json
import os
import pickle
import subprocess
import sys
from dataclasses import replace

import httpx
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from service_support import CANARY, POLICY, request_of

from aegis.errors import DataError, EngineError, NoAdmissibleConfiguration
from aegis.service.catalog import CatalogError, UploadLimits, WrongState, deliveries, limited
from aegis.service.catalog.deliveries import rows_in
from aegis.service.catalog.errors import TooLarge
from aegis.service.catalog.limited import WorkLimits
from aegis.service.catalog.records import Job
from aegis.service.catalog.verifying import MaskedFile, verify_file
from aegis.service.guard import Guard
from aegis.service.settings import ServiceSettings


def parquet(table: pa.Table, **options: object) -> bytes:
    out = io.BytesIO()
    pq.write_table(table, out, **options)
    return out.getvalue()


SMALL = parquet(pa.table({"a": [1, 2, 3]}))


def test_a_file_is_what_its_name_says():
    assert rows_in("m.parquet", SMALL, UploadLimits()) == 3
    assert rows_in("m.csv", b"a,b\n1,2\n", UploadLimits()) is None
    for name, content in [
        ("m.parquet", b"a,b\n1,2\n"),
        ("m.parquet", SMALL[:-4]),
        ("m.parquet", b"PAR1" + b"x" * 50 + b"PAR1"),
        ("m.csv", SMALL),
        ("m.csv", b"PK\x03\x04 a workbook"),
        ("m.csv", b"\x1f\x8b packed"),
        ("m.csv", b"a\0b"),
    ]:
        with pytest.raises(CatalogError, match="is no"):
            rows_in(name, content, UploadLimits())


def test_a_bomb_is_refused_by_its_footer():
    """A few kilobytes that unpack to a hundred megabytes, or that claim rows without end."""
    bomb = parquet(
        pa.table({"a": pa.array(["x" * 1000] * 100_000)}),
        compression="zstd",
        use_dictionary=False,
    )
    assert len(bomb) < 2 << 20
    with pytest.raises(TooLarge, match="unpacks to"):
        rows_in("m.parquet", bomb, UploadLimits(unpacked=64 << 20))
    with pytest.raises(TooLarge, match="100,000 rows"):
        rows_in("m.parquet", bomb, UploadLimits(cells=99_999))


@pytest.mark.parametrize("name", ["../m.parquet", "a/b.csv", "m.exe", "m", "m.parquet.zip"])
def test_names_of_files_lead_nowhere(place, name):
    with pytest.raises(CatalogError, match="cannot be the name of a masked file"):
        deliveries.release(
            place.catalog, None, "j", 1, file_name=name, content=b"", certificate="", signature={}
        )


def test_a_body_without_a_length_is_cut_off(place):
    """Chunked, so that no header says how large it is."""
    token = {"Authorization": f"Bearer {place.tokens['paula']}"}

    def endless():
        for _ in range(12):
            yield b" " * (1 << 20)

    with httpx.Client(base_url=place.url, timeout=60) as caller:
        answer = caller.post("/api/v1/data-sets", headers=token, content=endless())
    assert answer.status_code == 413
    assert answer.headers["content-type"] == "application/problem+json"


def test_uploads_have_a_limit_of_their_own():
    guard = Guard(None, settings=ServiceSettings(), upload=5)
    assert guard._upload > 5


@pytest.mark.parametrize("path", ["summary", "release"])
def test_an_upload_of_a_job_of_another_is_not_even_read(place, path):
    _, job = request_of(place, "census")
    files = {"bundle" if path == "summary" else "file": ("m.parquet", b"PAR1")}
    form = {"attempt": "1", "signature": "{}", "policy": POLICY, "certificate": "{}"}
    headers = {"Authorization": f"Bearer {place.tokens['clara']}"}
    url = f"{place.url}/api/v1/uploads/{job}/{path}"
    answer = httpx.post(url, data=form, files=files, headers=headers)
    assert answer.status_code in (403, 404), answer.text


def test_a_token_without_the_scope_gets_no_work(place):
    with place.client("paula") as paula:
        secret = paula.make_token("n", ["browse"])["secret"]
    headers = {"Authorization": f"Bearer {secret}"}
    answer = httpx.post(f"{place.url}/api/v1/work", json={"owner": "x"}, headers=headers)
    assert answer.status_code == 403


@pytest.mark.parametrize("kind", [DataError, NoAdmissibleConfiguration])
def test_no_value_of_a_row_travels_in_an_error(place, monkeypatch, kind):
    def fails(*_: object, **__: object) -> None:
        raise kind(f"The value '{CANARY}' is not known.", hint=f"Mend {CANARY}.")

    monkeypatch.setattr("aegis.service.catalog.checking.check", fails)
    number = place.ask()
    with place.client("otto") as otto:
        job = otto.shown(number)["job"]
        assert job["state"] == "failed"
        assert CANARY not in json.dumps([job, list(otto.log())])
    held = (p for p in place.folder.rglob("*") if p.is_file() and p.suffix != ".csv")
    assert not any(CANARY.encode() in path.read_bytes() for path in held)


BUNDLE_TASK = {"bundle": b"not a summary"}


def test_work_is_done_in_a_process_of_its_own(place):
    """The real one: limits, progress, answer and error, over one process each."""
    number, _ = request_of(place, "census")
    with place.catalog.database.reading() as session:
        job = session.get(Job, _)
        key = place.catalog.objects.get(_version_key(session, number))
    assert job.state == "cancelled"
    told: list[object] = []
    limits = WorkLimits(seconds=120, memory=4 << 30)
    answer = limited.run("leak", limits, alive=told.append, bundle=key)
    assert answer["held"] is True
    assert answer["level"] == "noise"
    with pytest.raises(CatalogError, match="not a protected summary"):
        limited.run("leak", limits, **BUNDLE_TASK)


def _version_key(session, number: str) -> str:
    from aegis.service.catalog.records import Request

    return session.get(Request, number).version.summary_key


def test_work_that_takes_too_long_is_ended():
    with pytest.raises(CatalogError, match=r"more than 0\.1 seconds"):
        limited.run("leak", WorkLimits(seconds=0.1), **BUNDLE_TASK)


def test_work_that_has_no_memory_to_begin_with_is_ended_at_once():
    """Libraries that got no memory while they loaded went on asking until the time was over."""
    limits = WorkLimits(seconds=600, memory=40 << 20)
    with pytest.raises(
        CatalogError, match="At most 40 MiB of memory are allowed, and the work takes"
    ):
        limited.run("leak", limits, **BUNDLE_TASK)


def test_work_that_takes_too_much_memory_is_ended():
    """The bundle's text alone is more than what is left to the process."""
    limits = WorkLimits(seconds=600, memory=600 << 20)
    bundle = b'{"a": "' + 200_000_000 * b"x" + b'"}'
    with pytest.raises(CatalogError, match="The leak took more than the 600 MiB of memory"):
        limited.run("leak", limits, bundle=bundle)


def working(folder, code):
    """Start the process of limited work, with a task of this code; return it once the task began."""
    (folder / "own_task.py").write_text(
        "import os, time\nfrom aegis.errors import ResourceError\n"
        f"def work(progress):\n    print('of a library')\n    progress.say('begun')\n    {code}\n"
    )
    start = (
        "from aegis.service.catalog import limited\n"
        "limited._NEEDED, limited.TASKS['leak'] = (), 'own_task:work'\nlimited.main()\n"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", start, "0"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": str(folder), "TMPDIR": str(folder)},
    )
    pickle.dump(("leak", {}), process.stdin)
    process.stdin.flush()
    assert json.loads(process.stdout.readline()) == {"said": "begun"}
    return process


def test_work_ends_with_the_process_that_started_it(tmp_path):
    """A worker or an agent that is killed leaves nothing at work behind it."""
    process = working(tmp_path, "time.sleep(600)")
    process.stdin.close()
    assert process.wait(timeout=60) == 1
    process.stdout.close()


def test_an_error_of_work_keeps_its_kind_and_whether_noise_was_drawn(tmp_path, monkeypatch):
    code = "error = ResourceError('No memory.'); error.noise_drawn = True; raise error"
    process = working(tmp_path, code)
    told = json.loads(process.stdout.readline())
    process.wait(timeout=60)
    process.stdin.close()
    process.stdout.close()
    monkeypatch.setattr(limited._Process, "__init__", lambda self: None)
    parent = limited._Process()
    parent._answer = told
    with pytest.raises(EngineError, match=r"No memory\.") as raised:
        parent._result()
    assert raised.value.noise_drawn


def test_work_that_was_cancelled_is_ended():
    def cancelled(_: object) -> None:
        raise WrongState("The job was cancelled.")

    with pytest.raises(WrongState):
        limited.run("leak", WorkLimits(), alive=cancelled, **BUNDLE_TASK)


WAYS_AROUND = (
    "SELECT * FROM read_csv('/etc/passwd')",
    "SELECT * FROM read_text('{inside}/../../etc/passwd')",
    "SELECT * FROM read_blob('http://127.0.0.1:9/x')",
    "SELECT * FROM glob('/etc/*')",
    "COPY (SELECT 1) TO '/etc/aegis.csv'",
    "ATTACH '/etc/aegis.db'",
    "INSTALL httpfs",
    "LOAD '{inside}/../../lib/x.duckdb_extension'",
    "SET enable_external_access = true",
    "SET allowed_directories = ['/']",
    "SET lock_configuration = false",
    "RESET enable_external_access",
    "SET temp_directory = '/etc'",
)


def test_the_embedded_engine_opens_nothing_outside_its_folder(tmp_path):
    """The known ways around it, each tried in a process that was locked as the service is."""
    (tmp_path / "t.csv").write_text("a,b\n1,2\n")
    script = (
        "import json, sys, pathlib\n"
        "from aegis.sources.embedded import embedded, lock_embedded\n"
        "from aegis.sources import open_table\n"
        "folder = pathlib.Path(sys.argv[1])\n"
        "lock_embedded([folder])\n"
        "assert open_table(str(folder / 't.csv')).rows == 1\n"
        "came = []\n"
        "for way in json.loads(sys.argv[2]):\n"
        "    try:\n"
        "        embedded().con.execute(way).fetchall()\n"
        "    except Exception:\n"
        "        continue\n"
        "    came.append(way)\n"
        "print(json.dumps(came))\n"
    )
    ways = json.dumps([way.format(inside=tmp_path) for way in WAYS_AROUND])
    # Its folder for temporary files is not above the table's.
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    done = subprocess.run(
        [sys.executable, "-c", script, str(tmp_path), ways],
        env={**os.environ, "TMPDIR": str(scratch)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert json.loads(done.stdout) == []


def test_limits_reach_the_worker(place):
    strict = replace(place.catalog.limits, work=WorkLimits(seconds=0.1))
    from aegis.service.worker import Worker

    worker = Worker(replace(place.catalog, limits=strict))
    place.work()
    number = _review(place)
    assert worker.once()
    with place.client("otto") as otto:
        job = otto.shown(number)["job"]
        assert (job["state"], "more than 0.1 seconds" in job["error"]) == ("failed", True)
        again = otto.retry(job["id"])
        assert again["state"] == "queued"
        place.work()
        assert otto.shown(number)["answer"]["holds"]


def _review(place) -> str:
    with place.client("clara") as clara, place.client("otto") as otto:
        number = clara.request("census", "to learn", terms_accepted=True)["id"]
        otto.step(number, "review")
        otto.step(number, "choose")
    return number


def test_no_value_is_read_of_a_file_with_other_rows(monkeypatch):
    """A file of 4.7 MB held 600 million rows, and reading their values took 23 s."""

    def read(*given, **more):
        raise AssertionError("the values were read")

    monkeypatch.setattr("aegis.service.catalog.verifying.unfitting", read)
    count = 10_000_000
    table = pa.table({"age": pa.DictionaryArray.from_arrays(pa.array([0] * count), ["*"])})
    masked = MaskedFile(
        content=parquet(table),
        suffix=".parquet",
        certificate="{}",
        policy=POLICY,
        configuration="configurations: {c: {age: suppress, sex: suppress}}\n",
        kinds={"age": "integer", "sex": "text", "income": "text"},
        rows=(400, 0),
    )
    (wrong,) = verify_file(masked)
    assert "it has 10,000,000 rows" in wrong
