"""No password is ever shown, whatever stands in it."""

from __future__ import annotations

from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aegis.errors import AegisError, PolicyError
from aegis.sources import open_table
from aegis.sources.urls import check_url, shown_url, without_secrets

PASSWORDS = st.text(st.sampled_from("secretSECRET019/#@?:%&=[] 'ü"), min_size=6, max_size=12)


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("postgres://u:pw@h:5432/db", "postgres://u:***@h:5432/db"),
        ("postgres://u@h/db", "postgres://u@h/db"),
        ("postgres://h/db?user=a&password=pw@x", "postgres://h/db"),
        ("postgres://u:p/w#x@y@h/db", "postgres://u:***@h/db"),
        ("postgres://u:p?w@h/db?sslmode=off", "postgres://u:***@h/db"),
        ("duckdb:///tmp/a.db", "duckdb:///tmp/a.db"),
        ("s3a://bucket/part", "s3a://bucket/part"),
        ("people.csv", "people.csv"),
    ],
)
def test_urls_are_shown_without_secrets(url: str, shown: str) -> None:
    assert shown_url(url) == shown


def refusal(url: str) -> str:
    try:
        check_url(url)
    except PolicyError as error:
        return str(error)
    return ""


@given(password=PASSWORDS)
def test_no_password_is_shown_however_it_is_written(password: str) -> None:
    for written in (password, quote(password, safe="")):
        url = f"postgres://user:{written}@nohost.invalid:1/db"
        assert shown_url(url) == "postgres://user:***@nohost.invalid:1/db"
        told = refusal(url)
        assert password not in told
        assert written not in told
        assert not told or written == password
    assert password not in without_secrets(
        f"authentication of {password} failed", f"postgres://u:{quote(password, safe='')}@h/db"
    )


@pytest.mark.parametrize(
    "url",
    [
        "postgres://u:top/secret@h/db",
        "postgres://u:top#secret@h/db",
        "postgres://u:top@secret@h/db",
        "postgres://u:top?secret@h/db",
        "postgres://u:topsecret@[::1/db",
        "postgres://u:topsecret@h:port/db",
        "postgres://u:topsecret@h:99999/db",
        "postgres://[/db",
        "postgres://",
    ],
)
def test_malformed_urls_are_one_clear_error(url: str) -> None:
    with pytest.raises(AegisError) as caught:
        open_table(url, name="t")
    assert caught.value.exit_code == 2
    assert caught.value.hint
    assert "secret" not in str(caught.value)
    assert "top" not in str(caught.value)
