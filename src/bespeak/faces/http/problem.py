"""Refusals as problem details (RFC 9457): the `error` object of AGTP in the form HTTP clients expect."""

from __future__ import annotations

from collections.abc import Mapping
from http import HTTPStatus
from typing import Any, Final

import msgspec

from bespeak.protocol import status

_OWN: Final = frozenset({"type", "title", "status", "detail"})
"""Member names reserved by RFC 9457; details of the same name are renamed."""

_RENAMED: Final = {413: "Content Too Large", 422: "Unprocessable Content"}
"""New names of RFC 9110, which not every Python version has."""


def condition_of(error: Mapping[str, Any]) -> str | None:
    """Return the condition of core 6.2 that a 262 names, if any."""
    found = error.get("type")
    return found if isinstance(found, str) else None


def problem(agtp_status: int, body: bytes) -> tuple[int, bytes]:
    """Return the HTTP status and problem body for the AGTP refusal `body`."""
    answer = msgspec.json.decode(body) if body else {}
    error = answer.get("error", {}) if isinstance(answer, dict) else {}
    number = status.to_http(agtp_status, condition_of(error))
    return number, problem_body(number, agtp_status, error, task_id=answer.get("task_id"))


def problem_body(number: int, agtp_status: int, error: Mapping[str, Any], *, task_id: str | None = None) -> bytes:
    """Build a problem body; clients should rely on `code`, because `type` repeats the status.

    A status that AGTP does not define is not sent as an AGTP status.
    """
    members: dict[str, Any] = {
        "type": "about:blank",
        "title": _phrase(number),
        "status": number,
        "detail": error.get("message", ""),
        "code": error.get("code", ""),
    }
    if agtp_status in status.REASONS:
        members["agtp_status"] = agtp_status
    for name, value in error.items():
        if name not in ("code", "message"):
            members[f"error_{name}" if name in _OWN else name] = value
    if task_id is not None:
        members["task_id"] = task_id
    return msgspec.json.encode(members)


def _phrase(number: int) -> str:
    if number in _RENAMED:
        return _RENAMED[number]
    try:
        return HTTPStatus(number).phrase
    except ValueError:
        return ""
