"""Signatures of bundles: who made them, and that nothing was changed since."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from bundle_support import assert_same, example, rewritten
from hypothesis import given
from hypothesis import strategies as st

from aegis.cli.main import run
from aegis.errors import DataError, PolicyError
from aegis.signing import (
    PrivateKey,
    PublicKey,
    Signature,
    canonical,
    load_private_key,
    load_public_key,
    make_keys,
    sign_bytes,
    verify_bytes,
)
from aegis.summary import load_bundle, save_bundle


@pytest.fixture(scope="module")
def keys(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the pairs a and b."""
    folder = tmp_path_factory.mktemp("keys")
    for name in ("a", "b"):
        private, public = make_keys()
        (folder / f"{name}.key").write_bytes(private)
        (folder / f"{name}.pub").write_bytes(public)
    return folder


def private(keys: Path, name: str = "a") -> PrivateKey:
    return load_private_key(keys / f"{name}.key")


def public(keys: Path, name: str = "a") -> PublicKey:
    return load_public_key(keys / f"{name}.pub")


@given(data=st.binary(max_size=50), other=st.binary(max_size=50))
def test_a_signature_is_that_of_its_bytes_and_key(keys: Path, data: bytes, other: bytes) -> None:
    signature = sign_bytes(data, private(keys))
    assert verify_bytes(data, Signature.of(signature.to_dict()), public(keys))
    assert sign_bytes(data, private(keys)) == signature
    assert verify_bytes(other, signature, public(keys)) == (other == data)
    assert not verify_bytes(data, signature, public(keys, "b"))
    assert not verify_bytes(data, Signature(signature.key, signature.value[:-2]), public(keys))
    assert not verify_bytes(data, Signature(signature.key, "no hex"), public(keys))


def test_a_forged_signature_names_the_key(keys: Path) -> None:
    """The key that a signature names is not believed: the bytes are verified with the one given."""
    forged = Signature(public(keys).text, sign_bytes(b"x", private(keys, "b")).value)
    assert not verify_bytes(b"x", forged, public(keys))


def test_canonical_bytes() -> None:
    assert canonical({"b": [1, 2], "a": "é"}) == canonical({"a": "é", "b": [1, 2]})
    assert canonical({"a": 1}) == b'{"a":1}'


@pytest.mark.parametrize("given_", [None, "x", {}, {"algorithm": "rsa", "key": "", "value": ""}])
def test_what_is_no_signature(given_: object) -> None:
    with pytest.raises(DataError, match="not one of Ed25519"):
        Signature.of(given_)


def test_a_private_key_shows_in_no_text(keys: Path) -> None:
    key = private(keys)
    assert repr(key) == "PrivateKey(...)"
    assert key.public == PublicKey(public(keys).raw)


def test_files_that_are_no_keys(keys: Path, tmp_path: Path) -> None:
    (tmp_path / "junk").write_text("junk")
    for load, path in (
        (load_private_key, tmp_path / "junk"),
        (load_private_key, keys / "a.pub"),
        (load_public_key, tmp_path / "junk"),
        (load_public_key, keys / "a.key"),
    ):
        with pytest.raises(PolicyError, match="holds no Ed25519"):
            load(path)
    with pytest.raises(PolicyError, match="Cannot read the key"):
        load_public_key(tmp_path / "none")


@pytest.mark.skipif(shutil.which("openssl") is None, reason="no openssl")
def test_keys_of_openssl(tmp_path: Path) -> None:
    key, pub = tmp_path / "o.key", tmp_path / "o.pub"
    subprocess.run(["openssl", "genpkey", "-algorithm", "ed25519", "-out", key], check=True)
    subprocess.run(["openssl", "pkey", "-in", key, "-pubout", "-out", pub], check=True)
    signature = sign_bytes(b"data", load_private_key(key))
    assert verify_bytes(b"data", signature, load_public_key(pub))
    subprocess.run(["openssl", "genpkey", "-algorithm", "x25519", "-out", key], check=True)
    with pytest.raises(PolicyError, match="no Ed25519 private key"):
        load_private_key(key)


def test_signed_bundles(keys: Path, tmp_path: Path) -> None:
    file = tmp_path / "signed.aegis"
    save_bundle(example(), file, key=private(keys))
    first = file.read_bytes()
    assert_same(load_bundle(file), example())
    assert_same(load_bundle(file, verify_key=public(keys)), example())
    with pytest.raises(DataError, match="signed with the key"):
        load_bundle(file, verify_key=public(keys, "b"))
    save_bundle(example(), file, key=private(keys), force=True)
    assert file.read_bytes() == first
    save_bundle(example(), file, force=True)
    with pytest.raises(DataError, match="is not signed"):
        load_bundle(file, verify_key=public(keys))


def test_a_bundle_that_was_changed_and_sealed_again(keys: Path, tmp_path: Path) -> None:
    """Digests can be put right by anybody, the signature cannot."""
    file = tmp_path / "changed.aegis"
    save_bundle(example(), file, key=private(keys))
    data = file.read_bytes()

    def later(manifest: dict[str, Any]) -> None:
        manifest["summary"]["max_levels"] = 9

    file.write_bytes(rewritten(data, change=later))
    assert load_bundle(file).max_levels == 9
    with pytest.raises(DataError, match="does not fit its content"):
        load_bundle(file, verify_key=public(keys))

    def other(manifest: dict[str, Any]) -> None:
        manifest["signature"] = "mine"

    file.write_bytes(rewritten(data, change=other))
    with pytest.raises(DataError, match="not one of Ed25519"):
        load_bundle(file, verify_key=public(keys))


def test_on_the_command_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("t.csv").write_text("a,y\n" + "".join(f"{i % 3},{i % 2}\n" for i in range(40)))
    Path("p.yaml").write_text(
        "version: 1\nlabel: y\nattributes: {a: {role: feature, masks: [{bucketize: {width: 2}}]}}\n"
    )
    assert run(["keygen", "me"]) == 0
    assert run(["keygen", "you"]) == 0
    assert Path("me.key").stat().st_mode & 0o777 == 0o600
    assert run(["keygen", "me"]) == 2
    assert "me.key exists" in capfd.readouterr().err
    summarize = ["summarize", "t.csv", "-p", "p.yaml", "-o"]
    assert run([*summarize, "t.aegis", "--sign", "me.key"]) == 0
    assert run([*summarize, "plain.aegis"]) == 0
    capfd.readouterr()
    commands = [
        ["advise", "{}", "-p", "p.yaml"],
        ["report", "{}", "-p", "p.yaml", "-o", "r.html", "--force"],
        ["reconstruct", "{}", "-p", "p.yaml", "-a", "a"],
        ["merge", "{}", "-o", "m.aegis", "--force"],
        [*summarize, "l.aegis", "--like", "{}", "--force"],
    ]
    for command in commands:
        filled = [word.format("t.aegis") for word in command]
        assert run([*filled, "--verify-key", "me.pub"]) == 0, capfd.readouterr().err
        assert run([*filled, "--verify-key", "you.pub"]) == 2
        assert "signed with the key" in capfd.readouterr().err
        filled = [word.format("plain.aegis") for word in command]
        assert run([*filled, "--verify-key", "me.pub"]) == 2
        assert "is not signed" in capfd.readouterr().err
    assert run(["advise", "t.csv", "-p", "p.yaml", "--verify-key", "me.pub"]) == 2
    assert "tables are not signed" in capfd.readouterr().err
    assert run([*summarize, "n.aegis", "--verify-key", "me.pub"]) == 2
    assert "--like" in capfd.readouterr().err
    assert run([*summarize, "n.aegis", "--sign", "me.pub", "--format", "json"]) == 2
    error = json.loads(capfd.readouterr().err)["error"]
    assert "no Ed25519 private key" in error["message"]
    assert not Path("n.aegis").exists()
