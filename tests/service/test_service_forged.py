"""A signature makes nothing true: files, summaries and answers are held against what was asked."""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any

import httpx
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from service_support import POLICY

from aegis.service.catalog import CatalogError
from aegis.service.catalog.deliveries import signed_part
from aegis.service.catalog.records import Job
from aegis.service.catalog.statements import digest as sha256
from aegis.signing import sign_bytes


class Forger:
    """Has the provider's key and token, and an upload of an honest agent to change."""

    def __init__(self, place: Any, name: str) -> None:
        self.place = place
        self.number = place.ask()
        with place.client("otto") as otto:
            otto.step(self.number, "approve")
            otto.step(self.number, "run")
        self.honest: dict[str, Any] = {}
        agent = place.agent
        real = agent.client.upload

        def kept_back(job: str, kind: str, form: dict, name: str, file: tuple) -> dict:
            self.honest = {"job": job, "form": form, "content": file[1]}
            raise CatalogError("kept back")

        agent.client.upload = kept_back
        try:
            agent.once()
        finally:
            agent.client.upload = real
        self.table = pq.read_table(io.BytesIO(self.honest["content"]))
        self.certificate = json.loads(self.honest["form"]["certificate"])
        with place.client("otto") as otto:
            otto.step(self.number, "retry")
        with place.client("paula") as paula:
            self.job = paula.work(name)

    def upload(
        self, table: pa.Table | None = None, certificate: dict[str, Any] | None = None
    ) -> httpx.Response:
        """Hand in a file that is signed as it should be, with a certificate that fits as it can."""
        out = io.BytesIO()
        pq.write_table(self.table if table is None else table, out)
        content = out.getvalue() if table is not None else self.honest["content"]
        document = json.loads(json.dumps(self.certificate if certificate is None else certificate))
        document["output"]["sha256"] = sha256(content)
        if table is not None:
            document["output"]["rows"] = table.num_rows
        text = json.dumps(document)
        signed = signed_part(
            "release",
            self.job["id"],
            self.job["attempt"],
            certificate=sha256(text.encode()),
            file=sha256(content),
        )
        seal = {
            "signature": sign_bytes(signed, self.place.agent.settings.key).to_dict(),
            "job": self.job["id"],
            "attempt": self.job["attempt"],
        }
        return httpx.post(
            f"{self.place.url}/api/v1/uploads/{self.job['id']}/release",
            headers={"Authorization": f"Bearer {self.place.tokens['paula']}"},
            data={"attempt": "1", "certificate": text, "signature": json.dumps(seal)},
            files={"file": ("masked.parquet", content)},
            timeout=120,
        )


@pytest.fixture(scope="module", autouse=True)
def long_leases() -> Iterator[None]:
    """No other program takes over a job, however long the tests between two answers take."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("aegis.service.catalog.jobs.LEASE", timedelta(hours=1))
        yield


@pytest.fixture(scope="module")
def forger(place) -> Forger:
    return Forger(place, "forger")


def raw(rows: int) -> pa.Table:
    draw = np.random.default_rng(5)
    return pa.table(
        {
            "age": draw.integers(20, 80, rows),
            "sex": draw.choice(["m", "f"], rows),
            "income": draw.choice(["high", "low"], rows),
        }
    )


def column(name: str, change: Callable[[pa.ChunkedArray], Any]) -> Callable[[pa.Table], pa.Table]:
    def changed(table: pa.Table) -> pa.Table:
        values = change(table[name])
        return table.set_column(table.column_names.index(name), name, values)

    return changed


def first(values: pa.ChunkedArray, value: Any) -> pa.Array:
    return pa.array([value, *values.to_pylist()[1:]])


FILES: dict[str, tuple[Callable[[pa.Table], pa.Table], str]] = {
    "the raw table": (lambda t: raw(t.num_rows), "age holds integer"),
    "the raw table with its columns renamed": (
        lambda t: raw(t.num_rows).rename_columns(["a", "b", "c"]),
        "it has the column 'a'",
    ),
    "raw ages as text": (
        column("age", lambda v: pa.array([str(i % 60 + 20) for i in range(len(v))])),
        "age shows 20",
    ),
    "a foreign table": (
        lambda t: pa.table({"city": ["x"] * t.num_rows}),
        "it has the column 'city'",
    ),
    "a foreign table of many rows": (
        lambda t: pa.concat_tables([t] * 50),
        "rows, and the check of this configuration left",
    ),
    "the right file and a column of social security numbers": (
        lambda t: t.append_column("ssn", pa.array([f"{i:09}" for i in range(t.num_rows)])),
        "it has the column 'ssn'",
    ),
    "the right file and the identifier": (
        lambda t: t.append_column("canary", pa.array([f"n{i}" for i in range(t.num_rows)])),
        "it has the column 'canary'",
    ),
    "an identifier instead of a quasi-identifier": (
        lambda t: t.drop_columns(["sex"]).append_column("canary", t["sex"]),
        "it lacks the column 'sex'",
    ),
    "no quasi-identifier": (lambda t: t.drop_columns(["age"]), "it lacks the column 'age'"),
    "no label": (lambda t: t.drop_columns(["income"]), "it lacks the column 'income'"),
    "a column twice": (
        lambda t: pa.table([*t.columns, t["age"]], names=[*t.column_names, "age_1"]),
        "it has the column 'age_1'",
    ),
    "a row more": (lambda t: pa.concat_tables([t, t.slice(0, 1)]), "rows, and the check"),
    "a row less": (lambda t: t.slice(1), "rows, and the check"),
    "one row": (lambda t: t.slice(0, 1), "rows, and the check"),
    "one raw age": (column("age", lambda v: first(v, "37")), "age shows 37, which"),
    "an interval that is too narrow": (
        column("age", lambda v: first(v, "[30, 31)")),
        "age shows [30, 31), which",
    ),
    "an interval that is shifted": (
        column("age", lambda v: first(v, "[25, 35)")),
        "age shows [25, 35), which",
    ),
    "an interval that is a name": (
        column("age", lambda v: first(v, "Bob [20, 30)")),
        "age shows Bob [20, 30), which",
    ),
    "a text in an interval": (
        column("age", lambda v: first(v, "[20, 30, n7)")),
        "age shows [20, 30, n7), which",
    ),
    "numbers as sexes": (
        column("sex", lambda v: pa.array(range(len(v)))),
        "sex holds integer, and",
    ),
    "bytes as ages": (
        column("age", lambda v: pa.array([str(x).encode() for x in v.to_pylist()])),
        "age holds another type",
    ),
    # The noise of the summary decides whether the approved mask of the column suppresses it.
    "each row in a class of its own": (
        column("sex", lambda v: pa.array([f"m{i}" for i in range(len(v))])),
        ("k-anonymity", "which suppress cannot"),
    ),
}


@pytest.mark.parametrize("name", FILES)
def test_a_forged_file_is_refused_and_says_why(forger, name):
    change, words = FILES[name]
    answer = forger.upload(change(forger.table))
    assert answer.status_code == 400, answer.text
    assert "does not match the approved release" in answer.json()["detail"], answer.text
    due = (words,) if isinstance(words, str) else words
    assert any(text in answer.json()["detail"] for text in due)


def without(*path: str) -> Callable[[dict[str, Any]], None]:
    def change(document: dict[str, Any]) -> None:
        for key in path[:-1]:
            document = document[key]
        del document[path[-1]]

    return change


def put(value: Any, *path: str) -> Callable[[dict[str, Any]], None]:
    def change(document: dict[str, Any]) -> None:
        for key in path[:-1]:
            document = document[key]
        document[path[-1]] = value

    return change


CERTIFICATES: dict[str, tuple[Callable[[dict[str, Any]], None], str]] = {
    "a better k": (put(99, "privacy", "k"), "size of the smallest class"),
    "fewer quasi-identifiers": (put(["sex"], "privacy", "quasi_identifiers"), "quasi-identifiers"),
    "a rule that is not the policy's": (put({"k": 2}, "privacy", "rule"), "privacy rule"),
    "other masks": (
        put({"age": "suppress"}, "configuration", "masks"),
        "masks are not the approved masks",
    ),
    "another policy": (put("0" * 64, "policy", "sha256"), "another policy"),
    "a rule that is not met": (put(False, "privacy", "passed"), "rule is not met"),
    "more rows": (put(10**9, "output", "rows"), "number of rows"),
    "a digest of the table": (put("0" * 64, "input", "sha256"), "without a key"),
    "no figures": (without("privacy", "k"), "size of the smallest class"),
    "no rows": (without("output", "rows"), "is not a certificate of Aegis"),
    "figures of another kind": (put([], "privacy"), "is not a certificate of Aegis"),
    "a better utility": (put(1e9, "utility", "value"), "utility of the release"),
}


@pytest.mark.parametrize("name", CERTIFICATES)
def test_a_forged_certificate_is_refused_and_says_why(forger, name):
    change, words = CERTIFICATES[name]
    document = json.loads(json.dumps(forger.certificate))
    change(document)
    answer = forger.upload(certificate=document)
    assert answer.status_code == 400, answer.text
    assert words in answer.json()["detail"]


def test_the_honest_file_is_taken(place):
    """The same way of handing in, with nothing changed."""
    forger = Forger(place, "honest forger")
    answer = forger.upload()
    assert answer.status_code == 200, answer.text
    with forger.place.client("otto") as otto:
        assert otto.shown(forger.number)["state"] == "released"


@pytest.fixture(scope="module")
def asked(place) -> dict[str, Any]:
    return ask(place, "asked")


def ask(place: Any, name: str) -> dict[str, Any]:
    """Return a check that waits for its answer, and the honest one."""
    with place.client("clara") as clara, place.client("otto") as otto:
        number = clara.request("census", "to learn", terms_accepted=True)["id"]
        otto.step(number, "review")
        otto.step(number, "choose")
    assert place.worker.once()
    with place.client("paula") as paula:
        job = paula.work(name)
    from aegis.service.catalog.checking import check
    from aegis.service.catalog.flow import policy_of

    task = job["task"]
    table = str(place.folder / "adult.csv")
    certificates = [json.loads(text) for text in task["certificates"]]
    answer = check(
        table,
        policy_of(POLICY),
        task["configurations"],
        certificates,
        measure=None,
        may_search=True,
    )
    return {"job": job, "answer": answer, "number": number}


RAW = "configurations: {raw: {age: identity, sex: identity}}\n"
ANSWERS: dict[str, tuple[dict[str, Any], str]] = {
    "nothing": ({"holds": None}, "holds is 'None'"),
    "a text for a verdict": ({"holds": "yes"}, "holds is 'yes'"),
    "no masks": ({"masks": None}, "masks is 'None'"),
    "masks that are no texts": ({"masks": {"age": 7}}, "masks is"),
    "rows that are a text": ({"rows": "many"}, "rows is 'many'"),
    "rows below 1": ({"rows": 0}, "rows is '0'"),
    "rows that are true": ({"rows": True}, "rows is 'True'"),
    "no rows": ({"rows": None}, "rows is 'None'"),
    "suppressed rows that are a list": ({"suppressed_rows": [1]}, "suppressed_rows is '[1]'"),
    "more suppressed than there are": ({"suppressed_rows": 10**9}, "more rows than there are"),
    "a utility that is a text": ({"utility_kept": "all"}, "utility_kept is 'all'"),
    "violations that are numbers": ({"violations": [1]}, "violations is '[1]'"),
    "a place below 1": ({"place": 0}, "place is '0'"),
    "a place beyond the list": ({"place": 10**6}, "its place is 1000000"),
    "a key that nobody knows": ({"scores": {"a": 1}}, "it has 'scores'"),
    "a key that the service sets": ({"chosen_by": "otto"}, "it has 'chosen_by'"),
    "another configuration": ({"configuration": RAW}, "identity of age was not asked about"),
    "no configuration": ({"configuration": "]["}, ""),
    "two configurations": (
        {"configuration": "configurations: {a: {age: suppress, sex: suppress}, b: {age: suppress, sex: suppress}}"},
        "2 configurations",
    ),
    "a configuration of something else": ({"configuration": "configurations: {a: {x: suppress}}"}, ""),
}  # fmt: skip


@pytest.mark.parametrize("name", ANSWERS)
def test_a_malformed_answer_ends_in_400_with_a_reason(place, asked, name):
    change, words = ANSWERS[name]
    job = asked["job"]
    answer = httpx.post(
        f"{place.url}/api/v1/jobs/{job['id']}/checked",
        headers={"Authorization": f"Bearer {place.tokens['paula']}"},
        json={"attempt": job["attempt"], "answer": {**asked["answer"], **change}},
        timeout=60,
    )
    assert answer.status_code in (400, 422), answer.text
    assert words in answer.json()["detail"]
    assert answer.json()["hint"]


@pytest.mark.parametrize(
    "lacking", ["configuration", "holds", "masks", "place", "searched", "rows"]
)
def test_an_answer_without_a_part_is_refused(place, asked, lacking):
    job = asked["job"]
    given = {k: v for k, v in asked["answer"].items() if k != lacking}
    with place.client("paula") as paula, pytest.raises(CatalogError, match=f"lacks {lacking}"):
        paula.checked(job["id"], job["attempt"], given)


def test_the_honest_answer_is_taken(place):
    asked = ask(place, "honest")
    job = asked["job"]
    with place.client("paula") as paula, place.client("otto") as otto:
        paula.checked(job["id"], job["attempt"], asked["answer"])
        assert otto.shown(asked["number"])["answer"]["holds"]


SUMMARIES: dict[str, tuple[str, dict[str, Any], str]] = {
    "more epsilon": (POLICY, {"epsilon": 30.0}, "it spent epsilon 30"),
    "a larger delta": (POLICY, {"delta": 1e-3}, "its delta is 0.001"),
    "counts for noise": (POLICY, {"protect": "counts", "threshold": 5}, "its protection is counts"),
    "another rule": (POLICY.replace("k: 3", "k: 2"), {}, "another policy"),
    "another mask": (
        POLICY.replace("{bucketize: {width: 40}}", "{bucketize: {width: 5}}"),
        {},
        "age has other masks",
    ),
    "another role": (
        POLICY.replace("sex: {role: quasi-identifier", "sex: {role: feature"),
        {},
        "sex is feature, not quasi-identifier",
    ),
    "an identifier": (
        POLICY.replace("{role: identifier}", "{role: feature, masks: [identity, suppress]}"),
        {},
        "the policy scores no canary",
    ),
    "an attribute less": (
        POLICY.replace("  sex: {role: quasi-identifier, masks: [identity, suppress]}\n", ""),
        {},
        "it lacks sex",
    ),
}


@pytest.mark.parametrize("name", SUMMARIES)
def test_a_summary_that_was_not_asked_for_is_refused(place, name):
    from aegis.service.catalog.flow import policy_of
    from aegis.service.catalog.summaries import make

    policy, how, words = SUMMARIES[name]
    with place.client("paula") as paula:
        paula.ask_summary("census", POLICY, protect="noise", epsilon=8.0)
        job = paula.work("summary")
        task = {**job["task"], **how}
        table = str(place.folder / "adult.csv")
        bundle = make(table, policy_of(policy), task, b"k" * 32)
        text = job["task"]["policy"]
        digests = {"policy": sha256(text.encode()), "bundle": sha256(bundle)}
        signed = signed_part("summary", job["id"], job["attempt"], **digests)
        seal = {"signature": sign_bytes(signed, place.agent.settings.key).to_dict()}
        form = {"attempt": str(job["attempt"]), "signature": json.dumps(seal), "policy": text}
        with pytest.raises(CatalogError) as raised:
            paula.upload(job["id"], "summary", form, "bundle", ("s.protected", bundle))
        assert "does not match what the service asked for" in raised.value.message
        assert words in raised.value.message
        with place.catalog.database.writing() as session:
            session.get(Job, job["id"]).state = "cancelled"


@pytest.mark.parametrize(
    "change",
    [
        lambda u: {k: v for k, v in u.items() if k != "measure"},
        lambda u: u | {"kept": "all"},
        lambda u: u | {"labels": ["income"]},
        lambda u: u | {"lost_classes": [1]},
        lambda u: u | {"rows": "some"},
        lambda u: u | {"measure": "no such measure"},
        lambda u: [*u],
        lambda u: 5,
    ],
)
def test_a_certificate_with_a_malformed_utility_is_refused(
    forger: Forger, change: Callable[[dict[str, Any]], Any]
) -> None:
    forged = forger.certificate | {"utility": change(forger.certificate["utility"])}
    answer = forger.upload(certificate=forged)
    assert answer.status_code == 400, answer.text
    assert "The certificate states a utility that cannot be read" in answer.json()["detail"]
