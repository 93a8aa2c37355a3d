"""ACQUIRE: methods that retrieve data, resources or state; only PULL changes anything (Tier 2 3)."""

from __future__ import annotations

from functools import partial
from typing import Final

from bespeak.contract.standard import definition as d
from bespeak.contract.standard.definition import MethodError, StandardMethod
from bespeak.protocol import status

_HELD: Final = "item_id: NAME, receipt: NAME"
_PULLED: Final = "payload: ANYTHING, attempts: 1.., submitted_at: TIME, visible_until: TIME, submitter: NAME"
NAMESPACES: Final = ("agents", "endpoints", "entities", "resources", "data")  # what FIND looks for

_ANALYSES: Final = d.one_of("anomaly", "trend", "distribution", "correlation")
_members = partial(d.members, CURSOR={**d.TEXT, "maxLength": 4096}, ANALYSES=_ANALYSES, STRING={"type": "string"})
_method = partial(StandardMethod, category="acquire", stateless=True)
ACQUIRE: Final[tuple[StandardMethod, ...]] = (
    _method(
        name="FETCH",
        description="Returns a resource, an entity or a row by its id.",
        intent="Retrieve a resource by its identifier.",
        outcome="The content of the resource is returned with its version and its time.",
        # The id is one of this server, or COLLECTION/KEY. `follow` has relationships whose linked things come with
        # their content.
        takes=_members(
            "resource_id: NAME, format?: json | yaml, version?: VERSION, if_modified_since?: TIME, follow?: FOLLOW",
            FOLLOW={**d.list_of(d.NAME, least=1, most=16), "type": ["array", "string"], "maxLength": 256},
        ),
        returns=_members(
            "resource_id: NAME, collection: NAME, modified: FLAG, content?: ANYTHING, media_type?: NAME, "
            "version?: COUNT, owner?: NAME, created_at?: TIME, updated_at?: TIME, links?: [OBJECT], more_links?: FLAG, "
            "embedded?: [OBJECT]"
        ),
        errors=(
            MethodError("resource-not-found", status.NOT_FOUND, "The caller may read no such resource."),
            d.NO_VERSION,
            d.INVALID_TIME,
            d.UNREADABLE,
            d.LATE,
        ),
    ),
    _method(
        name="SEARCH",
        description="Finds rows of collections by words, filters and ranges.",
        intent="Search collections with a structured query.",
        outcome="The rows that match are returned, the best or the first by the order asked for.",
        # The filter stands beside words: an object as `query` is the filter itself.
        takes=_members(
            "query: QUERY, filter?: CONDITIONS, scope?: SCOPE, limit?: 1..1000, offset?: 0..10000, sort?: SORT",
            QUERY={"type": ["string", "object"], "minLength": 1, "maxLength": 1000, "maxProperties": 32},
            SCOPE={"type": ["string", "array"], "items": d.NAME, "minLength": 1, "maxLength": 256, "maxItems": 16},
            SORT={
                "type": ["string", "array"],
                "items": d.NAME,
                "minLength": 1,
                "maxLength": 256,
                "minItems": 1,
                "maxItems": 8,
                "description": "Columns to sort by; `-` before one means descending.",
            },
        ),
        returns=_members(
            "results: [OBJECT], count: COUNT, offset: COUNT, next_offset?: COUNT, total?: COUNT, "
            "total_is_estimate?: FLAG"
        ),
        errors=d.READING,
    ),
    _method(
        name="SCAN",
        description="Reads a whole collection page by page: every row that stays comes exactly once.",
        intent="Enumerate the rows of a collection.",
        outcome="A page of rows is returned, with a cursor if there may be more.",
        takes=_members("collection: NAME, filter?: CONDITIONS, cursor?: CURSOR, page_size?: 1..1000"),
        returns=_members("collection: NAME, items: [OBJECT], count: COUNT, cursor?: CURSOR"),
        errors=(
            d.NO_COLLECTION,
            d.UNREADABLE,
            d.LATE,
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
        # Without items to pull (0), it only ends those that the caller holds. One that is given back comes again, as
        # often as the queue tries; `final` ends it.
        takes=_members(
            "source: NAME, max_items?: 0..100, visibility_timeout?: HIDDEN, acknowledge?: [DONE 0..100], "
            "reject?: [FAILED 0..100]",
            HIDDEN={"type": "number", "minimum": 1, "maximum": 86400},
            DONE=d.object_of(_members(f"{_HELD}, result?: ANYTHING"), closed=True),
            FAILED=d.object_of(_members(f"{_HELD}, reason: LINE, final?: FLAG"), closed=True),
        ),
        returns=_members(
            "source: NAME, items: [ITEM], count: COUNT, settled: [SETTLED]",
            ITEM=d.object_of(_members(f"{_HELD}, {_PULLED}")),
            SETTLED=d.object_of(_members("item_id: NAME, status: done | queued | dead")),
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
        takes={"criteria": {**d.OBJECT, "maxProperties": 32}, **_members("namespace?: NAME, limit?: 1..1000")},
        returns=_members("namespace: NAME, found: [OBJECT], count: COUNT, more: FLAG"),
        errors=(
            *d.READING,
            MethodError("unknown-namespace", status.NOT_FOUND, "The server has no such registry that it may show."),
        ),
    ),
    _method(
        name="ANALYZE",
        description="Finds anomalies, trends, distributions and correlations in rows, by robust statistics.",
        intent="Analyze a dataset for patterns.",
        outcome="Findings are returned, each with its figures and a confidence that says what it is computed from.",
        # Without a type, it is what fits the columns. A range is 2026-11-01/2026-11-30, or {"start": ..., "end": ...}.
        # An anomaly is further than 6 - 5 x sensitivity deviations from the median: 3.5 by default.
        takes=_members(
            "target: ROWS, analysis_type?: ANALYSES, time_range?: RANGE, time_column?: NAME, sensitivity?: SHARE, "
            "explain?: FLAG, columns?: [NAME 1..256], chart?: svg",
            RANGE={
                "type": ["string", "object"],
                "maxLength": 129,
                "properties": {"start": d.TIME, "end": d.TIME},
                "additionalProperties": False,
                "minProperties": 1,
            },
        ),
        returns=_members(
            "analysis_type: ANALYSES, chosen_because?: LINE, rows: COUNT, columns: [STRING], time_column?: STRING, "
            "findings: [FINDING], notes: [TEXT 0..2000], chart?: TEXT",
            # `confidence_from` tells what the confidence is computed from.
            FINDING=d.object_of(
                _members(
                    "kind: ANALYSES, columns: [STRING 1..1000], values: OBJECT, confidence: SHARE, "
                    "confidence_from: LINE, explanation?: TEXT"
                )
            ),
        ),
        errors=(
            *d.READING,
            d.INVALID_TIME,
            MethodError("analysis-busy", status.UNAVAILABLE, "Too many analyses wait; try again later."),
            MethodError("analysis-timeout", status.UNAVAILABLE, "The analysis took too long; narrow it."),
            MethodError("not-available", status.UNAVAILABLE, "The server lacks the library that analyses."),
        ),
    ),
)
