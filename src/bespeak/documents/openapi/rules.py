"""D160-D169: rules for OpenAPI descriptions."""

from __future__ import annotations

from typing import Final

from bespeak.text.diagnostics.diagnostic import Rule

NOT_OPENAPI: Final = Rule(
    ("D160", "no-openapi-description", "MUST", "reading files"),
    "The document is not a supported OpenAPI description.",
    why=(
        "The version decides how a description is read, and the paths are what can be called. Give the importer a "
        "description of OpenAPI 2.0, 3.0 or 3.1 that has both."
    ),
    bad="info: {title: Rooms}\npaths:\n  /room: {get: {operationId: findRoom}}\n",
    good='openapi: "3.1.0"\ninfo: {title: Rooms}\npaths:\n  /room: {get: {operationId: findRoom}}\n',
)
BROKEN_REFERENCE: Final = Rule(
    ("D161", "reference-not-followed", "MUST", "reading files"),
    "A reference in a description is broken, circular or to a remote document.",
    why=(
        "The target of the reference is unknown, so any value is accepted in its place. References must stay in the "
        "description or in files next to it, because the importer does not fetch addresses that a document names."
    ),
    bad='{"schema": {"$ref": "https://schemas.example/room.json"}}\n',
    good='{"schema": {"$ref": "#/components/schemas/Room"}}\n',
)
SCHEMA_CUT: Final = Rule(
    ("D162", "schema-cut", "SHOULD", "reading files"),
    "A schema of a description is too large for one endpoint, and is cut.",
    why=(
        "The schema of an endpoint is self-contained and is shown to models whole. A schema that reaches half of the "
        "description keeps its nearest parts, and the others accept any value. Describe more of it in the endpoint "
        "file where agents need it."
    ),
)
SCHEMA_PART_DROPPED: Final = Rule(
    ("D163", "schema-part-left-out", "SHOULD", "reading files"),
    "A part of a schema in a description cannot be used, and is left out.",
    why=(
        "A keyword of the wrong type, or a pattern that cannot be matched in bounded time, would make the whole schema "
        "unusable. Without that part the schema accepts more than its author meant. Check whether that matters."
    ),
    bad='{"type": "string", "pattern": "^(?!admin)[a-z]+$"}\n',
    good='{"type": "string", "pattern": "^[a-z]+$"}\n',
)
UNCLEAR_PARAMETER: Final = Rule(
    ("D164", "parameter-not-described", "SHOULD", "reading files"),
    "The description of a parameter is incomplete or not supported.",
    why=(
        "Each parameter needs a name, a location and a serialization. What is missing was guessed, or the parameter "
        "was left out. Compare with the upstream."
    ),
    bad="/room/{room_id}:\n  get:\n    parameters: []\n",
    good=(
        "/room/{room_id}:\n  get:\n    parameters:\n"
        "      - {name: room_id, in: path, required: true, schema: {type: string}}\n"
    ),
)
NOT_IMPORTED: Final = Rule(
    ("D165", "part-not-imported", "style", "reading files"),
    "A part of a description is not imported.",
    why=(
        "Webhooks and callbacks are calls that the upstream makes, so no endpoint can answer for them. Everything else "
        "is imported."
    ),
)
DUPLICATE_OPERATION_ID: Final = Rule(
    ("D166", "operation-id-twice", "SHOULD", "reading files"),
    "Two operations of a description have the same operationId.",
    why="Names of endpoints are derived from these ids. Both operations are imported; check the names they were given.",
    bad="/room:\n  get: {operationId: room}\n  post: {operationId: room}\n",
    good="/room:\n  get: {operationId: findRoom}\n  post: {operationId: bookRoom}\n",
)
UNCLEAR_SERVER: Final = Rule(
    ("D167", "server-left-open", "SHOULD", "reading files"),
    "The server address of a description is missing or ambiguous.",
    why="A facade calls one address. Where the description has none, or several, check the one that was chosen.",
    bad="servers:\n  - url: /v1\n",
    good="servers:\n  - url: https://rooms.acme.example/v1\n",
)
UNCLEAR_BODY: Final = Rule(
    ("D168", "body-left-open", "SHOULD", "reading files"),
    "The media type or the schema of a body is missing or ambiguous.",
    why=(
        "A facade sends a body in one media type: JSON if possible, otherwise a form. Without a schema for the body, "
        "any value is accepted."
    ),
)
UNUSABLE_SCHEME: Final = Rule(
    ("D169", "unusable-security-scheme", "MUST", "reading files"),
    "A security scheme of a description cannot be used.",
    why=(
        "Without knowing where a credential goes, the facade cannot send it, and the upstream refuses every call. "
        "Declare the scheme, or write the header into the endpoint files."
    ),
    bad="security:\n  - token: []\n",
    good=("security:\n  - token: []\ncomponents:\n  securitySchemes:\n    token: {type: http, scheme: bearer}\n"),
)
