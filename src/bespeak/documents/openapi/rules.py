"""D160-D169: rules for OpenAPI descriptions."""

from __future__ import annotations

from typing import Final

from bespeak.text.diagnostics.rule import Rule

NOT_OPENAPI: Final = Rule(
    "D160",
    "no-openapi-description",
    "MUST",
    "reading files",
    "The document is no OpenAPI description that can be read as one.",
    why=(
        "Without its version nobody knows by which rules to read it, and without paths it has nothing to call. Give "
        "the importer a description of OpenAPI 2.0, 3.0 or 3.1."
    ),
    bad="info: {title: Rooms}\npaths:\n  /room: {get: {operationId: findRoom}}\n",
    good='openapi: "3.1.0"\ninfo: {title: Rooms}\npaths:\n  /room: {get: {operationId: findRoom}}\n',
)
BROKEN_REFERENCE: Final = Rule(
    "D161",
    "reference-not-followed",
    "MUST",
    "reading files",
    "A reference in a description leads nowhere, in a circle, or to where nothing is fetched from.",
    why=(
        "What stands behind the reference is not known, so anything is taken in its place. References stay in the "
        "description or in files beside it: what a stranger's document names is not fetched."
    ),
    bad='{"schema": {"$ref": "https://schemas.example/room.json"}}\n',
    good='{"schema": {"$ref": "#/components/schemas/Room"}}\n',
    notation="json",
)
SCHEMA_CUT: Final = Rule(
    "D162",
    "schema-cut",
    "SHOULD",
    "reading files",
    "A schema of a description reaches more than one endpoint can carry, and is cut.",
    why=(
        "The schema of an endpoint is complete in itself and is put before models whole. One that reaches half of "
        "the description keeps what is nearest, and what is further away may be anything. Describe more of it in "
        "the endpoint file where agents need it."
    ),
)
SCHEMA_PART_DROPPED: Final = Rule(
    "D163",
    "schema-part-left-out",
    "SHOULD",
    "reading files",
    "A part of a schema in a description cannot be used, and is left out.",
    why=(
        "A keyword of the wrong type, or a pattern that no engine with bounded time takes, would make the whole "
        "schema unusable. Without it the schema takes more than its author meant: look whether that matters."
    ),
    bad='{"type": "string", "pattern": "^(?!admin)[a-z]+$"}\n',
    good='{"type": "string", "pattern": "^[a-z]+$"}\n',
    notation="json",
)
UNCLEAR_PARAMETER: Final = Rule(
    "D164",
    "parameter-not-described",
    "SHOULD",
    "reading files",
    "A parameter of a description is not described so that it can be sent.",
    why=(
        "Each parameter needs a name, a place and a way of writing it. What is missing was guessed, or the "
        "parameter was left out: compare with the upstream."
    ),
    bad="/room/{room_id}:\n  get:\n    parameters: []\n",
    good=(
        "/room/{room_id}:\n  get:\n    parameters:\n"
        "      - {name: room_id, in: path, required: true, schema: {type: string}}\n"
    ),
)
NOT_IMPORTED: Final = Rule(
    "D165",
    "part-not-imported",
    "style",
    "reading files",
    "A part of a description is not imported.",
    why=(
        "Webhooks and callbacks are calls that the upstream makes, and no endpoint can answer for them. Everything "
        "else is imported."
    ),
)
DUPLICATE_OPERATION_ID: Final = Rule(
    "D166",
    "operation-id-twice",
    "SHOULD",
    "reading files",
    "Two operations of a description have one operationId.",
    why="Names of endpoints are made of these ids. Both operations are imported; look at the names they were given.",
    bad="/room:\n  get: {operationId: room}\n  post: {operationId: room}\n",
    good="/room:\n  get: {operationId: findRoom}\n  post: {operationId: bookRoom}\n",
)
UNCLEAR_SERVER: Final = Rule(
    "D167",
    "server-left-open",
    "SHOULD",
    "reading files",
    "A description leaves open at which address its operations are called.",
    why="A facade calls one address. Where none is described, or several are, look at the one that was taken.",
    bad="servers:\n  - url: /v1\n",
    good="servers:\n  - url: https://rooms.acme.example/v1\n",
)
UNCLEAR_BODY: Final = Rule(
    "D168",
    "body-left-open",
    "SHOULD",
    "reading files",
    "A description leaves open how a body is sent.",
    why=(
        "A facade sends a body in one media type: JSON where it can, then forms. Where the schema of the body is "
        "missing anything is taken."
    ),
)
UNUSABLE_SCHEME: Final = Rule(
    "D169",
    "unusable-security-scheme",
    "MUST",
    "reading files",
    "A security scheme of a description cannot be used.",
    why=(
        "Without knowing where a credential goes the facade cannot send it, and the upstream refuses every call. "
        "Declare the scheme, or write the header into the endpoint files."
    ),
    bad="security:\n  - token: []\n",
    good=("security:\n  - token: []\ncomponents:\n  securitySchemes:\n    token: {type: http, scheme: bearer}\n"),
)

RULES: Final = (
    NOT_OPENAPI,
    BROKEN_REFERENCE,
    SCHEMA_CUT,
    SCHEMA_PART_DROPPED,
    UNCLEAR_PARAMETER,
    NOT_IMPORTED,
    DUPLICATE_OPERATION_ID,
    UNCLEAR_SERVER,
    UNCLEAR_BODY,
    UNUSABLE_SCHEME,
)
