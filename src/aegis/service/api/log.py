"""API calls for the log."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated, Any

from fastapi import Depends, Query
from pydantic import AfterValidator, AwareDatetime

from aegis.service.api import shapes
from aegis.service.api.data_sets import Limit, Offset
from aegis.service.catalog import Action, logbook
from aegis.service.identity import CallOf
from aegis.service.routes import Routes

routes = Routes(tags=["log"])


def _in_utc(moment: datetime) -> datetime:
    """Return a time in UTC; raise an error if the year in UTC is outside Python's range."""
    try:
        return moment.astimezone(UTC)
    except OverflowError as error:
        raise ValueError("it is out of range") from error


Moment = Annotated[AwareDatetime, AfterValidator(_in_utc)]
Word = Annotated[str, Query(max_length=120)]
Head = Annotated[str | None, Query(pattern="^[0-9a-f]{64}$")]


def _filter(
    by: Word = "",
    action: Word = "",
    data_set: Word = "",
    since: Moment | None = None,
    until: Moment | None = None,
) -> logbook.LogFilter:
    return logbook.LogFilter(by, action, data_set, since, until)


Filter = Annotated[logbook.LogFilter, Depends(_filter)]


@routes.get("/log", Action.SEE_LOG)
def listed(call: CallOf, chosen: Filter, offset: Offset = 0, limit: Limit = 50) -> dict[str, Any]:
    """Return log entries that you may read, newest first; filter by actor, action, data set or time."""
    listed, count = call.read(logbook.listed, offset=offset, limit=limit, chosen=chosen)
    return {"count": count, "entries": [shapes.as_json(entry) for entry in listed]}


@routes.post("/log/verify", Action.SEE_LOG)
def verify(call: CallOf, head: Head = None) -> dict[str, Any]:
    """Check that the log is unbroken and still contains an entry hash (`head`) that you noted earlier."""
    return shapes.as_json(call.read(logbook.verify, head))
