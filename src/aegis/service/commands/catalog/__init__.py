"""Use the catalog of a service: see aegis serve."""

from __future__ import annotations

from collections.abc import Mapping

from aegis.service.commands.catalog import accounts, data_sets, people, requests, rights, work
from aegis.service.commands.catalog.requests import steps
from aegis.service.commands.catalog.verb import Verb

PANEL = "Serve a catalog"
"""Group of the command in the help."""
VERBS: Mapping[str, Verb] = {
    "account": Verb(accounts.account, ("aegis catalog account ada --roles admin", "aegis catalog account otto --roles operator,approver --url https://aegis.example.org")),
    "token": Verb(accounts.token, ("aegis catalog token paula --scopes work,upload-summary", "aegis catalog token paula --days 30 --database catalog.db")),
    "invite": Verb(people.invite, ("aegis catalog invite nina --roles consumer", "aegis catalog invite nina --roles operator,approver --url https://aegis.example.org")),
    "reset": Verb(people.reset, ("aegis catalog reset nina", "aegis catalog reset nina --url https://aegis.example.org")),
    "reopen": Verb(people.reopen, ("aegis catalog reopen nina", "aegis catalog reopen nina --url https://aegis.example.org")),
    "end-sessions": Verb(people.end_sessions, ("aegis catalog end-sessions", "aegis catalog end-sessions nina --tokens")),
    "remove-factor": Verb(people.remove_factor, ("aegis catalog remove-factor nina", "aegis catalog remove-factor nina --url https://aegis.example.org")),
    "hand-over": Verb(people.hand_over, ("aegis catalog hand-over census-2026 peter --key peter.pub.pem", "aegis catalog hand-over paula peter --all")),
    "password": Verb(people.password, ("aegis catalog password", "aegis catalog password --url https://aegis.example.org")),
    "second-factor": Verb(people.second_factor, ("aegis catalog second-factor", "aegis catalog second-factor --recovery")),
    "set-password": Verb(people.set_password, ("aegis catalog set-password 'https://aegis.example.org/set-password#SECRET'", "AEGIS_NEW_PASSWORD=... aegis catalog set-password 'https://aegis.example.org/set-password#SECRET'")),
    "sessions": Verb(people.sessions, ("aegis catalog sessions", "aegis catalog sessions --format json")),
    "factor-state": Verb(people.factor_state, ("aegis catalog factor-state", "aegis catalog factor-state --format json")),
    "me": Verb(rights.me, ("aegis catalog me", "aegis catalog me --format json")),
    "accounts": Verb(rights.accounts, ("aegis catalog accounts", "aegis catalog accounts --format csv")),
    "roles": Verb(rights.roles, ("aegis catalog roles otto operator,approver", "aegis catalog roles otto consumer --url https://aegis.example.org")),
    "close": Verb(rights.close, ("aegis catalog close otto", "aegis catalog close otto --url https://aegis.example.org")),
    "tokens": Verb(rights.tokens, ("aegis catalog tokens", "aegis catalog tokens --format json")),
    "new-token": Verb(rights.new_token, ("aegis catalog new-token laptop --scopes browse,request", "aegis catalog new-token agent --scopes work,upload-summary --days 30")),
    "end-token": Verb(rights.end_token, ("aegis catalog end-token 9c1b2d", "aegis catalog end-token 9c1b2d --url https://aegis.example.org")),
    "list": Verb(data_sets.listed, ("aegis catalog list", "aegis catalog list census --format json")),
    "show": Verb(data_sets.show, ("aegis catalog show census-2026", "aegis catalog show census-2026 --url https://aegis.example.org")),
    "versions": Verb(data_sets.versions, ("aegis catalog versions census-2026", "aegis catalog versions census-2026 --format json")),
    "policy": Verb(data_sets.policy, ("aegis catalog policy census-2026", "aegis catalog policy census-2026 > policy.yaml")),
    "costs": Verb(data_sets.costs, ("aegis catalog costs census-2026", "aegis catalog costs census-2026 --format csv")),
    "export": Verb(data_sets.export, ("aegis catalog export census-2026 -o croissant.json", "aegis catalog export 4f2c9a --as datapackage")),
    "register": Verb(data_sets.register, ("aegis catalog register census-2026 --source adult --key agent.pub -p policy.yaml", "aegis catalog register census-2026 --source adult --key agent.pub -p policy.yaml --approvals 2 --ceiling 4")),
    "change": Verb(data_sets.change, ("aegis catalog change census-2026 --approvals 2", 'aegis catalog change census-2026 --terms "For research only" --days 90')),
    "summary": Verb(data_sets.summary, ("aegis catalog summary census-2026 -p policy.yaml", "aegis catalog summary census-2026 -p policy.yaml --protect noise --epsilon 2")),
    "publish": Verb(data_sets.publish, ("aegis catalog publish census-2026", "aegis catalog publish census-2026 --withdraw")),
    "grant": Verb(data_sets.grant, ("aegis catalog grant census-2026 otto operator", "aegis catalog grant census-2026 clara consumer")),
    "request": Verb(requests.request, ('aegis catalog request census-2026 --purpose "Predict income" --accept-terms', 'aegis catalog request census-2026 --purpose "Predict income" --models lr,gbdt')),
    "edit": Verb(requests.edit, ('aegis catalog edit 4f2c9a --purpose "Predict income"', 'aegis catalog edit 4f2c9a --purpose "Predict income" --accept-terms')),
    "status": Verb(requests.status, ("aegis catalog status 4f2c9a", "aegis catalog status 4f2c9a --format json")),
    "requests": Verb(requests.requests, ("aegis catalog requests", "aegis catalog requests --state submitted")),
    "choose": Verb(requests.choose, ("aegis catalog choose 4f2c9a", "aegis catalog choose 4f2c9a -c best.yaml")),
    **steps(),
    "approve": Verb(requests.approve, ("aegis catalog approve 4f2c9a --key otto.key", "aegis catalog approve 4f2c9a --key otto.key --url https://aegis.example.org")),
    "statement": Verb(requests.statement, ("aegis catalog statement 4f2c9a -o statement.json", "aegis catalog statement 4f2c9a -o statement.json --force")),
    "sign": Verb(requests.sign, ("aegis catalog sign statement-4f2c9a.json --key otto.key", "aegis catalog sign statement-4f2c9a.json --key otto.key > signed.json")),
    "run": Verb(requests.run, ("aegis catalog run 4f2c9a", "aegis catalog run 4f2c9a --url https://aegis.example.org")),
    "job": Verb(work.job, ("aegis catalog job 4f2c9a --follow", "aegis catalog job 5fb2b9c14a3e4ef0a2b7c0d9e8f71a2b --job")),
    "cancel": Verb(work.cancel, ("aegis catalog cancel 4f2c9a", "aegis catalog cancel 5fb2b9c14a3e4ef0a2b7c0d9e8f71a2b --job")),
    "retry": Verb(work.retry, ("aegis catalog retry 4f2c9a", "aegis catalog retry 5fb2b9c14a3e4ef0a2b7c0d9e8f71a2b --job")),
    "renew": Verb(requests.renew, ("aegis catalog renew 4f2c9a --days 30", "aegis catalog renew 4f2c9a --days 30 --url https://aegis.example.org")),
    "release": Verb(requests.release, ("aegis catalog release 4f2c9a", "aegis catalog release 4f2c9a --certificate certificate.json")),
    "download": Verb(requests.download, ("aegis catalog download 4f2c9a -o masked.parquet", "aegis catalog download 4f2c9a -o masked.parquet --certificate certificate.json")),
    "verify": Verb(requests.verify, ("aegis catalog verify 4f2c9a", "aegis catalog verify 4f2c9a --url https://aegis.example.org")),
    "ledger": Verb(data_sets.ledger, ("aegis catalog ledger census-2026", "aegis catalog ledger census-2026 --url https://aegis.example.org")),
    "log": Verb(data_sets.log, ("aegis catalog log", "aegis catalog log --verify --head 9f2c...", "aegis catalog log --data-set census-2026 --since 2026-01-01T00:00:00+00:00 --export log.jsonl")),
    "admit": Verb(data_sets.admit, ("aegis catalog admit census-2026 peter", "aegis catalog admit census-2026 peter --withdraw")),
    "health": Verb(work.health, ("aegis catalog health", "aegis catalog health --url https://aegis.example.org")),
    "programs": Verb(work.programs, ("aegis catalog programs", "aegis catalog programs --format json")),
    "metrics": Verb(work.metrics, ("aegis catalog metrics", "aegis catalog metrics --url https://aegis.example.org")),
    "backup": Verb(accounts.backup, ("aegis catalog backup copies/monday", "aegis catalog backup copies/monday --database catalog.db")),
    "restore": Verb(accounts.restore, ("aegis catalog restore copies/monday --database restored.db", "aegis catalog restore copies/monday --database restored.db --objects restored")),
    "clean": Verb(accounts.clean, ("aegis catalog clean --keep-days 30", "aegis catalog clean --keep-days 0 --database catalog.db")),
    "check": Verb(accounts.check, ("aegis catalog check", "aegis catalog check --database catalog.db")),
}  # fmt: skip
"""Every verb by name."""

__all__ = ["VERBS", "Verb"]
