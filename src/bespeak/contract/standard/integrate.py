"""INTEGRATE: methods that bring data of other systems together (Tier 2 6)."""

from __future__ import annotations

from functools import partial
from typing import Final

from bespeak.contract.schema.file_schema import upload_schema
from bespeak.contract.standard import definition as d
from bespeak.contract.standard.compute import FORMATS
from bespeak.contract.standard.definition import MethodError, Schema, StandardMethod
from bespeak.protocol import status

MOST_SOURCE: Final = 256 << 20  # bytes of a source
_NAME_TAKEN: Final = MethodError("name-taken", status.CONFLICT, "A data set or an entity type has the name.")
_TOO_MANY: Final = MethodError("too-many-resources", status.CONFLICT, "The agent has as many resources as it may have.")
_TOO_MANY_LINKS: Final = MethodError("too-many-links", status.CONFLICT, "The agent or the thing has too many links.")
_SOURCE: Final[Schema] = {"type": ["string", "array", "object"], "minLength": 1, "maxLength": 256}
_POLICY: Final = d.one_of("first", "last", "latest", "longest")
LEAST_INTERVAL: Final = 1
_members = partial(
    d.members,
    SOURCE=_SOURCE,
    TARGET={"type": "string", "pattern": "^[a-z][a-z0-9]*([_-][a-z0-9]+)*$", "maxLength": 64},
    WORD={"type": "string", "pattern": "^[A-Za-z_][A-Za-z0-9_-]{0,63}$"},  # type of a link; a binding
    CHANNEL_TYPE=d.one_of("stream", "webhook", "polling", "event-bus"),
)

_method = partial(StandardMethod, category="integrate", impact="irreversible", idempotent=False)
INTEGRATE: Final[tuple[StandardMethod, ...]] = (
    _method(
        name="MERGE",
        description="Combines rows and objects of several sources; every conflict is reported with what was chosen.",
        intent="Merge datasets or resources into one.",
        outcome="The merged result is returned with a report of the conflicts, and stored if a collection is named.",
        # Earlier versions of what is stored stay readable, but nothing takes a merge back.
        stateless=True,
        # Each source is rows, a collection (alone or with a filter), the id of a resource, or an object. The members of
        # `key` identify a row; without them, only equal rows are the same. `time` is the member that tells when a row
        # was changed; without it, it is the time of the resource. `base` is the common ancestor of a three-way merge.
        takes=_members(
            "sources: [SOURCE 2..16], strategy?: union | intersection | latest | manual, "
            "conflict_resolution?: POLICIES, key?: KEY, time?: NAME, base?: SOURCE, into?: TARGET",
            POLICIES={
                "oneOf": [_POLICY, {"type": "object", "maxProperties": 256, "additionalProperties": _POLICY}],
                "description": 'One policy, or one for each field: {"phone": "latest", "*": "first"}.',
            },
            KEY={**_SOURCE, "type": ["string", "array"], "items": d.NAME, "minItems": 1, "maxItems": 8},
        ),
        returns=_members(
            "merge_id: NAME, strategy: NAME, merged: ANYTHING, count: COUNT, sources: [OBJECT], conflicts: [OBJECT], "
            "conflict_count: COUNT, unresolved: COUNT, removed: COUNT, into?: NAME, added?: COUNT, changed?: COUNT, "
            "skipped?: COUNT, merged_at: TIME"
        ),
        errors=(
            *d.READING,
            _NAME_TAKEN,
            _TOO_MANY,
            MethodError("source-not-found", status.NOT_FOUND, "The caller may read no such source."),
            MethodError("merge-conflict", status.CONFLICT, "No policy resolves a conflict."),
        ),
        recorded=("strategy", "into"),
    ),
    _method(
        name="LINK",
        description="Links two things under the name of a relationship, until the link is cancelled.",
        intent="Associate two entities.",
        outcome="The link exists, and FETCH shows it with either of its ends.",
        impact="reversible",
        takes=_members(
            "source: NAME, target: NAME, relationship: WORD, metadata?: METADATA",
            METADATA={**d.OBJECT, "maxProperties": 64},
        ),
        returns=_members(
            "link_id: NAME, source: NAME, target: NAME, relationship: NAME, metadata: OBJECT, created_at: TIME"
        ),
        errors=(
            MethodError("thing-not-found", status.NOT_FOUND, "The caller may link no such thing."),
            MethodError("already-linked", status.CONFLICT, "The two have this relationship already."),
            _TOO_MANY_LINKS,
        ),
        recorded=("source", "target", "relationship"),
    ),
    _method(
        name="SYNC",
        description="Aligns a collection of the caller with one of another server that the operator lists.",
        intent="Reconcile a local collection with a remote one.",
        outcome="What differed since the last time is pulled or pushed, and the receipt counts it and lists conflicts.",
        # The resource is COLLECTION or COLLECTION/KEY; the remote is NAME, NAME/COLLECTION, or an address that begins
        # with that of a listed remote. `key` is the member that identifies a row on both sides.
        takes=_members(
            "resource: NAME, remote: LINE, direction?: pull | push | bidirectional, "
            "conflict_policy?: remote_wins | local_wins | manual, key?: NAME"
        ),
        # Counts, and rows with conflicts or that were skipped, each with the reason. Those of a job are in CHECK.
        returns=_members(
            "sync_id: NAME, resource: NAME, remote: NAME, direction: NAME, status: completed | queued, "
            "pulled?: COUNT, pushed?: COUNT, deleted?: COUNT, agreed?: COUNT, skipped?: COUNT, conflicts?: COUNT, "
            "listed?: [OBJECT], watermark?: TIME, job_id?: NAME, look?: OBJECT"
        ),
        errors=(
            MethodError("remote-not-found", status.NOT_FOUND, "The operator lists no such remote, or it has no rows."),
            MethodError("resource-not-found", status.NOT_FOUND, "The caller has no such resource to push."),
            _NAME_TAKEN,
            MethodError("sync-running", status.CONFLICT, "The same resource is being synchronized now."),
            MethodError("remote-contradicts", status.CONFLICT, "The remote answers something that cannot be true."),
            _TOO_MANY,
            MethodError("remote-unavailable", status.UNAVAILABLE, "The remote did not answer, or refused."),
        ),
        recorded=("resource", "remote", "direction", "conflict_policy"),
    ),
    _method(
        name="IMPORT",
        description="Adds rows to a collection of the caller, which it can fetch, search and scan from then on.",
        intent="Import data from another system.",
        outcome="The rows are in the collection, and the receipt counts them and lists those that were rejected.",
        # CANCEL removes resources, and what is overwritten stays readable, but nothing takes an import back.
        # `key` is the member that identifies a row; without it, rows never conflict. A row with a value of another type
        # than its column is rejected. Cells of CSV are read as the type of their column.
        takes=_members(
            f"source: ROWS_OR_FILE, target: TARGET, format?: {FORMATS} | parquet | xlsx, "
            "conflict_policy?: overwrite | skip | merge, key?: NAME, columns?: COLUMNS, expected?: EXPECTED",
            ROWS_OR_FILE={
                "description": "Rows, a text in `format`, a file, or the https address of one.",
                "anyOf": [
                    {"type": "string", "minLength": 1},
                    {"type": "array", "minItems": 1, "maxItems": 100_000},
                    {**upload_schema(MOST_SOURCE), "title": "file"},
                ],
            },
            COLUMNS={
                "type": "object",
                "maxProperties": 256,
                "additionalProperties": d.one_of("string", "integer", "number", "boolean"),
            },
            EXPECTED={
                "description": "Digests of rows that must be there, by their keys; null where none must be. A row in "
                "place of another one is skipped, and its key listed as `stale`. A digest is 24 hexadecimal digits of "
                "SHA-256 over the row as JSON without spaces, with sorted members.",
                "type": "object",
                "maxProperties": 10_000,
                "additionalProperties": {"type": ["string", "null"], "maxLength": 24},
            },
        ),
        # A large source is imported in the background: CHECK of `job_id` shows how far, and then the receipt.
        returns=_members(
            "import_id: NAME, target: NAME, status: queued | done, job_id?: NAME, look?: OBJECT, records?: COUNT, "
            "added?: COUNT, changed?: COUNT, skipped?: COUNT, rejected_count?: COUNT, imported_at?: TIME, "
            "rejected?: [OBJECT 0..100], stale?: [TEXT]"
        ),
        errors=(
            MethodError("invalid-source", status.BAD_REQUEST, "The source is not a text in its format."),
            _NAME_TAKEN,
            MethodError("nothing-to-import", status.UNPROCESSABLE, "The source has no row that can be imported."),
            _TOO_MANY,
        ),
        recorded=("target", "conflict_policy"),
    ),
    _method(
        name="MAP",
        impact="informational",
        idempotent=True,
        description="Pairs the fields of two schemas, with a confidence for each pair; what is doubtful is marked.",
        intent="Map one schema to another.",
        outcome="A mapping document is returned and kept for the caller; TRANSFORM applies it by its id.",
        stateless=True,
        # Pairs of the caller are as TRANSFORM takes them: the path in the target with that in the source.
        takes=_members(
            "source_schema: SCHEMA, target_schema: SCHEMA, strategy?: exact | semantic | custom, "
            "unmapped_policy?: ignore | flag | preserve, pairs?: PAIRS",
            SCHEMA={
                **_SOURCE,
                "minItems": 1,
                "maxItems": 1000,
                "description": "A JSON Schema, a list of fields, a collection, an entity type, or METHOD /path for an "
                "input.",
            },
            PAIRS={"type": "object", "minProperties": 1, "maxProperties": 256, "additionalProperties": d.NAME},
        ),
        returns=_members(
            "map_id: NAME, strategy: NAME, method: NAME, unmapped_policy: NAME, fields: [OBJECT], "
            "unmapped_source: [NAME], unmapped_target: [NAME], doubtful: COUNT"
        ),
        errors=(
            *d.READING,
            MethodError("unknown-schema", status.BAD_REQUEST, "The schema names nothing that the caller may see."),
            MethodError("invalid-schema", status.BAD_REQUEST, "The schema is not valid."),
            MethodError("no-fields", status.UNPROCESSABLE, "A schema has no fields that can be mapped, or too many."),
            _TOO_MANY,
        ),
        recorded=("strategy",),
    ),
    _method(
        name="CONNECT",
        description="Moves what is new at a source to a destination, until its time is over or it is cancelled.",
        intent="Establish a channel between two systems.",
        outcome="The connection exists; what is new is delivered in order, and CHECK tells how much was.",
        impact="reversible",
        takes=_members(
            "source: LINE, destination: LINE, channel_type?: CHANNEL_TYPE, config?: CONFIG, ttl?: SECONDS",
            CONFIG=d.object_of(
                _members(
                    "interval?: INTERVAL, filter?: CONDITIONS, parameters?: OBJECT, key?: NAME, rate?: 1..1000",
                    INTERVAL={"type": "number", "minimum": LEAST_INTERVAL, "maximum": 86400},
                ),
                closed=True,
            ),
        ),
        returns=_members(
            "connection_id: NAME, source: LINE, destination: LINE, channel_type: CHANNEL_TYPE, status: NAME, "
            "channel: OBJECT, created_at: TIME, expires_at?: TIME"
        ),
        errors=(
            d.NOT_LISTED,
            MethodError("source-not-found", status.NOT_FOUND, "The caller may read no such source."),
            MethodError("destination-not-found", status.NOT_FOUND, "The caller may write to no such destination."),
            MethodError("callback-refused", status.NOT_FOUND, "The destination cannot be reached or does not agree."),
            MethodError("connection-exists", status.CONFLICT, "The agent has this connection already."),
            MethodError("connection-loops", status.CONFLICT, "What it delivers would come back to its source."),
            MethodError("too-many-connections", status.CONFLICT, "The agent has as many connections as it may have."),
            MethodError("bus-unavailable", status.UNAVAILABLE, "The server has no event bus, or cannot reach it."),
        ),
        recorded=("source", "destination", "channel_type", "ttl"),
    ),
    _method(
        name="EMBED",
        description="Shows a component inside of a resource, or of all resources of a collection, whenever it is read.",
        intent="Embed a component into a resource.",
        outcome="From now on FETCH of the target shows the component under the binding, as its reader may read it.",
        impact="reversible",
        # An id, COLLECTION/KEY, a collection, METHOD /path of an informational endpoint, or model:NAME.
        takes=_members("source: NAME, target: NAME, binding?: WORD, version?: VERSION"),
        returns=_members(
            "embed_id: NAME, source: NAME, target: NAME, binding: NAME, reference: NAME, version?: COUNT, "
            "embedded_at: TIME"
        ),
        errors=(
            MethodError("source-not-found", status.NOT_FOUND, "The caller may read no such component."),
            MethodError("target-not-found", status.NOT_FOUND, "The caller owns no such target."),
            d.NO_VERSION,
            MethodError("not-embeddable", status.BAD_REQUEST, "Only informational endpoints of the service are read."),
            MethodError("binding-taken", status.CONFLICT, "The target has a component or a member of this name."),
            MethodError("embed-cycle", status.CONFLICT, "The target would be inside of itself."),
            _TOO_MANY_LINKS,
        ),
        recorded=("source", "target", "binding"),
    ),
)
