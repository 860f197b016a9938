"""The page that shows, filters, checks and exports the log."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from typing import Annotated
from urllib.parse import urlencode

from fastapi import Depends, Query
from starlette.responses import Response, StreamingResponse

from aegis.service.api.log import Word
from aegis.service.api.shapes import as_json
from aegis.service.catalog import Action, logbook
from aegis.service.catalog.errors import CatalogError
from aegis.service.catalog.logbook import LogFilter
from aegis.service.identity import Call, CallOf
from aegis.service.pages.people import Offset
from aegis.service.pages.render import PAGE, page
from aegis.service.routes import Routes

routes = Routes(include_in_schema=False)
_PIECE = 1000
Day = Annotated[str, Query(pattern=r"^(\d{4}-\d{2}-\d{2})?$")]


@dataclass(frozen=True)
class _Chosen:
    """The filter of log entries as texts from a form, with days such as 2026-12-31."""

    by: Word = ""
    action: Word = ""
    data_set: Word = ""
    since: Day = ""
    until: Day = ""

    @property
    def filter(self) -> LogFilter:
        """The filter of log entries; raise `CatalogError` if a text is not a date."""
        last = _moment(self.until)
        end = None if last is None else last + timedelta(days=1, microseconds=-1)
        return LogFilter(self.by, self.action, self.data_set, _moment(self.since), end)


_ChosenOf = Annotated[_Chosen, Depends()]


@routes.get("/log", Action.SEE_LOG)
def show(call: CallOf, chosen: _ChosenOf, offset: Offset = 0, verify: bool = False) -> Response:
    """Show log entries, newest first; on request check that the log is unbroken."""
    with call.reading() as session:
        entries, count = logbook.listed(
            session, call.actor, offset=offset, limit=PAGE, chosen=chosen.filter
        )
        actions = logbook.actions(session, call.actor)
        checked = logbook.verify(session, call.actor) if verify else None
    filters = vars(chosen)
    return page(
        call,
        "log.html",
        entries=[(entry, _details(entry.detail)) for entry in entries],
        count=count,
        offset=offset,
        checked=checked,
        given=filters,
        actions=actions,
        query=urlencode({key: value for key, value in filters.items() if value}),
    )


@routes.get("/log/export", Action.SEE_LOG)
def export(call: CallOf, chosen: _ChosenOf) -> Response:
    """Download the shown entries as JSON lines, newest first."""
    headers = {"Content-Disposition": 'attachment; filename="log.jsonl"'}
    lines = _lines(call, chosen.filter)
    return StreamingResponse(lines, media_type="application/jsonl", headers=headers)


def _lines(call: Call, chosen: LogFilter) -> Iterator[str]:
    offset = 0
    while True:
        entries, count = call.read(logbook.listed, offset=offset, limit=_PIECE, chosen=chosen)
        yield "".join(json.dumps(as_json(entry)) + "\n" for entry in entries)
        offset += len(entries)
        if not entries or offset >= count:
            return


def _moment(day: str) -> datetime | None:
    """Return the start of a day in UTC; raise `CatalogError` if the text is not a date."""
    if not day:
        return None
    try:
        return datetime.combine(date.fromisoformat(day), time(), UTC)
    except ValueError as error:
        raise CatalogError(
            f"There is no day {day}.", hint="Write a day such as 2026-12-31."
        ) from error


def _details(detail: object) -> list[tuple[str, str]]:
    """Return the details of a log entry as pairs of name and text, with the old and the new value
    of a change.
    """
    if not isinstance(detail, dict):
        return []
    new_key = next((key for key in ("new", "roles", "state") if key in detail), "new")
    old, new = detail.get("old"), detail.get(new_key)
    pairs = [(name, _text(value)) for name, value in detail.items() if name not in ("old", new_key)]
    if isinstance(new, dict):
        before = old if isinstance(old, dict) else {}
        names = dict.fromkeys([*before, *new])
        changed = [n for n in names if before.get(n) != new.get(n)]
        return pairs + [(n, _change(before, n, new.get(n))) for n in changed]
    if new_key not in detail:
        return pairs
    named = "" if new_key == "new" else new_key
    return [*pairs, (named, _change(detail, "old", new))]


def _change(before: Mapping[str, object], name: str, new: object) -> str:
    """Return a new value as text, after the old value `before[name]` if there is one."""
    return f"{_text(before[name])} → {_text(new)}" if name in before else _text(new)


def _text(value: object) -> str:
    if value is None or value == "" or value == []:
        return "–"
    if isinstance(value, list):
        return ", ".join(_text(item) for item in value)
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, dict):
        return ", ".join(f"{name}: {_text(item)}" for name, item in value.items())
    text = str(value)
    return text if len(text) <= 60 else f"{text[:57]}…"
