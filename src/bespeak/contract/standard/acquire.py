"""ACQUIRE: methods that retrieve data, resources or state; only PULL changes anything (Tier 2 3)."""

from __future__ import annotations

from functools import partial
from typing import Final

from bespeak.contract.standard.definition import (
    ANYTHING,
    CONDITIONS,
    COUNT,
    FLAG,
    INVALID_TIME,
    LATE,
    LINE,
    NAME,
    NO_COLLECTION,
    OBJECT,
    READING,
    ROWS,
    SHARE,
    TEXT,
    TIME,
    UNREADABLE,
    MethodError,
    StandardMethod,
    list_of,
    members,
    object_of,
    one_of,
)
from bespeak.protocol import status

_LIMIT: Final = {"type": "integer", "minimum": 1, "maximum": 1000}
_CURSOR: Final = {**TEXT, "maxLength": 4096}
_SORT: Final = {
    "type": ["string", "array"],
    "items": NAME,
    "minLength": 1,
    "maxLength": 256,
    "minItems": 1,
    "maxItems": 8,
    "description": "Columns to sort by; `-` before one means descending.",
}
_HELD: Final = members("item_id: NAME, receipt: NAME")
_PULLED: Final = members("payload: ANYTHING, attempts: 1.., submitted_at: TIME, visible_until: TIME, submitter: NAME")
NAMESPACES: Final = ("agents", "endpoints", "entities", "resources", "data")  # what FIND looks for

ANALYSES: Final = ("anomaly", "trend", "distribution", "correlation")
_FINDING: Final = object_of(
    {
        "kind": one_of(*ANALYSES),
        "columns": list_of({"type": "string"}, least=1),
        "values": OBJECT,
        "confidence": SHARE,
        "confidence_from": LINE,  # what the confidence is computed from
        "explanation?": TEXT,
    }
)

_method = partial(StandardMethod, category="acquire", stateless=True)
ACQUIRE: Final[tuple[StandardMethod, ...]] = (
    _method(
        name="FETCH",
        description="Returns a resource, an entity or a row by its id.",
        intent="Retrieve a resource by its identifier.",
        outcome="The content of the resource is returned with its version and its time.",
        takes={
            # An id of this server, or COLLECTION/KEY.
            "resource_id": NAME,
            "format?": one_of("json", "yaml"),
            "version?": {"type": ["integer", "string"], "pattern": "^[1-9][0-9]{0,8}$", "minimum": 1},
            "if_modified_since?": TIME,
            # Relationships whose linked things come with their content.
            "follow?": {**list_of(NAME, least=1, most=16), "type": ["array", "string"], "maxLength": 256},
        },
        returns={
            "resource_id": NAME,
            "collection": NAME,
            "modified": FLAG,
            "content?": ANYTHING,
            "media_type?": NAME,
            "version?": COUNT,
            "owner?": NAME,
            "created_at?": TIME,
            "updated_at?": TIME,
            "links?": list_of(OBJECT),
            "more_links?": FLAG,
            "embedded?": list_of(OBJECT),
        },
        errors=(
            MethodError("resource-not-found", status.NOT_FOUND, "The caller may read no such resource."),
            MethodError("version-not-found", status.NOT_FOUND, "The resource has no such version."),
            INVALID_TIME,
            UNREADABLE,
            LATE,
        ),
    ),
    _method(
        name="SEARCH",
        description="Finds rows of collections by words, filters and ranges.",
        intent="Search collections with a structured query.",
        outcome="The rows that match are returned, the best or the first by the order asked for.",
        takes={
            "query": {"type": ["string", "object"], "minLength": 1, "maxLength": 1000, "maxProperties": 32},
            # Beside words: an object as `query` is the filter itself.
            "filter?": CONDITIONS,
            "scope?": {"type": ["string", "array"], "items": NAME, "minLength": 1, "maxLength": 256, "maxItems": 16},
            "limit?": _LIMIT,
            "offset?": {"type": "integer", "minimum": 0, "maximum": 10_000},
            "sort?": _SORT,
        },
        returns={
            "results": list_of(OBJECT),
            "count": COUNT,
            "offset": COUNT,
            "next_offset?": COUNT,
            "total?": COUNT,
            "total_is_estimate?": FLAG,
        },
        errors=READING,
    ),
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
            LATE,
            MethodError("invalid-cursor", status.BAD_REQUEST, "The cursor is of another scan or another agent."),
        ),
    ),
    _method(
        name="PULL",
        description="Takes items from a queue for the caller to work on, and ends those that it has worked on.",
        intent="Pull pending items from a queue.",
        outcome="The items are hidden from others until their time is over, and returned with a receipt of each.",
        impact="reversible",
        idempotent=False,
        stateless=False,
        takes={
            # Without items to pull (0), it only ends those that the caller holds.
            **members("source: NAME, max_items?: 0..100"),
            "visibility_timeout?": {"type": "number", "minimum": 1, "maximum": 86400},
            "acknowledge?": list_of(object_of({**_HELD, "result?": ANYTHING}, closed=True), most=100),
            # An item that is given back comes again, as often as the queue tries; `final` ends it.
            "reject?": list_of(object_of({**_HELD, "reason": LINE, "final?": FLAG}, closed=True), most=100),
        },
        returns=members(
            "source: NAME, items: [ITEM], count: COUNT, settled: [SETTLED]",
            ITEM=object_of({**_HELD, **_PULLED}),
            SETTLED=object_of(members("item_id: NAME, status: done | queued | dead")),
        ),
        errors=(
            MethodError("unknown-queue", status.NOT_FOUND, "There is no queue of this name that the agent may pull."),
            MethodError("not-held", status.CONFLICT, "The agent does not hold an item that it ends (any more)."),
        ),
        joined_by="queue",
    ),
    _method(
        name="FIND",
        description="Finds agents, endpoints, entities and resources that meet criteria.",
        intent="Locate an agent, an endpoint or an entity.",
        outcome="What meets all criteria is returned with its identifier and what is known of it.",
        takes={"criteria": {**OBJECT, "maxProperties": 32}, "namespace?": NAME, "limit?": _LIMIT},
        returns={"namespace": NAME, "found": list_of(OBJECT), "count": COUNT, "more": FLAG},
        errors=(
            *READING,
            MethodError("unknown-namespace", status.NOT_FOUND, "The server has no such registry that it may show."),
        ),
    ),
    _method(
        name="ANALYZE",
        description="Finds anomalies, trends, distributions and correlations in rows, by robust statistics.",
        intent="Analyze a dataset for patterns.",
        outcome="Findings are returned, each with its figures and a confidence that says what it is computed from.",
        takes={
            "target": ROWS,
            # Without it, what fits the columns.
            "analysis_type?": one_of(*ANALYSES),
            # 2026-11-01/2026-11-30, or {"start": ..., "end": ...}.
            "time_range?": {
                "type": ["string", "object"],
                "maxLength": 129,
                "properties": {"start": TIME, "end": TIME},
                "additionalProperties": False,
                "minProperties": 1,
            },
            "time_column?": NAME,
            # An anomaly is further than 6 - 5 x sensitivity deviations from the median: 3.5 by default.
            "sensitivity?": SHARE,
            "explain?": FLAG,
            "columns?": list_of(NAME, least=1, most=256),
            "chart?": one_of("svg"),
        },
        returns={
            "analysis_type": one_of(*ANALYSES),
            "chosen_because?": LINE,
            "rows": COUNT,
            "columns": list_of({"type": "string"}),
            "time_column?": {"type": "string"},
            "findings": list_of(_FINDING),
            "notes": list_of(TEXT, most=2000),
            "chart?": TEXT,
        },
        errors=(
            *READING,
            INVALID_TIME,
            MethodError("analysis-busy", status.UNAVAILABLE, "Too many analyses wait; try again later."),
            MethodError("analysis-timeout", status.UNAVAILABLE, "The analysis took too long; narrow it."),
            MethodError("not-available", status.UNAVAILABLE, "The server lacks the library that analyses."),
        ),
    ),
)
