"""ACQUIRE: methods that retrieve data, resources or state without changing them (Tier 2 3)."""

from __future__ import annotations

from functools import partial
from typing import Final

from bespeak.contract.standard.definition import (
    CONDITIONS,
    COUNT,
    NAME,
    NO_COLLECTION,
    OBJECT,
    TEXT,
    UNREADABLE,
    MethodError,
    StandardMethod,
    list_of,
)
from bespeak.protocol import status

_MOST_PAGE: Final = 1000
_LIMIT: Final = {"type": "integer", "minimum": 1, "maximum": _MOST_PAGE}
_CURSOR: Final = {**TEXT, "maxLength": 4096}

_method = partial(StandardMethod, category="acquire")
ACQUIRE: Final[tuple[StandardMethod, ...]] = (
    _method(
        name="SCAN",
        description="Reads a whole collection page by page: every row that stays comes exactly once.",
        intent="Enumerate the rows of a collection.",
        outcome="A page of rows is returned, with a cursor if there may be more.",
        takes={"collection": NAME, "filter?": CONDITIONS, "cursor?": _CURSOR, "page_size?": _LIMIT},
        returns={"collection": NAME, "items": list_of(OBJECT), "count": COUNT, "cursor?": _CURSOR},
        errors=(
            NO_COLLECTION,
            UNREADABLE,
            MethodError("invalid-cursor", status.BAD_REQUEST, "The cursor is of another scan or another agent."),
        ),
        stateless=True,
    ),
)
