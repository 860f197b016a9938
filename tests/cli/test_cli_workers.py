"""Programs that work until they are ended say so when they are, and ended well."""

from __future__ import annotations


def ended(*_):
    raise KeyboardInterrupt


def test_a_worker_that_is_ended_ends_well(shell, monkeypatch):
    account = ("ann", "--roles", "admin", "--password", "seven green lamps on a hill")
    assert shell("catalog", "account", *account, "--database", "catalog.db").code == 0
    monkeypatch.setattr("aegis.service.worker.Worker.once", ended)
    result = shell("worker", "--database", "catalog.db")
    assert result.code == 0
    assert "Stopped. Start a worker again to continue." in result.out
    result = shell("worker", "--database", "catalog.db", "--once")
    assert result.code == 130, "work that was to be done at once was interrupted"
