"""INTEGRATE: methods that bring data of other systems together (Tier 2 6)."""

from __future__ import annotations

from typing import Final

from bespeak.contract.schema.file_schema import upload_schema
from bespeak.contract.standard.compute import FORMATS
from bespeak.contract.standard.definition import (
    NAME,
    OBJECT,
    MethodError,
    StandardMethod,
    list_of,
    members,
    one_of,
)
from bespeak.protocol import status

MOST_SOURCE: Final = 256 << 20  # bytes of a source
INTEGRATE: Final[tuple[StandardMethod, ...]] = (
    StandardMethod(
        name="IMPORT",
        category="integrate",
        description="Adds rows to a collection of the caller, which it can fetch, search and scan from then on.",
        intent="Import data from another system.",
        outcome="The rows are in the collection, and the receipt counts them and lists those that were rejected.",
        # CANCEL removes resources, and what is overwritten stays readable, but nothing takes an import back.
        impact="irreversible",
        idempotent=False,
        takes={
            "source": {
                "description": "Rows, a text in `format`, a file, or the https address of one.",
                "anyOf": [
                    {"type": "string", "minLength": 1},
                    {"type": "array", "minItems": 1, "maxItems": 100_000},
                    {**upload_schema(MOST_SOURCE), "title": "file"},
                ],
            },
            "target": {"type": "string", "pattern": "^[a-z][a-z0-9]*([_-][a-z0-9]+)*$", "maxLength": 64},
            "format?": one_of(*FORMATS, "parquet", "xlsx"),
            "conflict_policy?": one_of("overwrite", "skip", "merge"),
            # The member that identifies a row. Without it, rows never conflict.
            "key?": NAME,
            # A row with a value of another type is rejected. Cells of CSV are read as the type of their column.
            "columns?": {
                "type": "object",
                "maxProperties": 256,
                "additionalProperties": one_of("string", "integer", "number", "boolean"),
            },
        },
        returns={
            "import_id": NAME,
            "target": NAME,
            # A large source is imported in the background: CHECK of `job_id` shows how far, and then the receipt.
            **members(
                "status: queued | done, job_id?: NAME, look?: OBJECT, records?: COUNT, added?: COUNT, changed?: COUNT, "
                "skipped?: COUNT, rejected_count?: COUNT, imported_at?: TIME"
            ),
            "rejected?": list_of(OBJECT, most=100),
        },
        errors=(
            MethodError("invalid-source", status.BAD_REQUEST, "The source is not a text in its format."),
            MethodError("name-taken", status.CONFLICT, "A data set or an entity type has the name of the target."),
            MethodError("nothing-to-import", status.UNPROCESSABLE, "The source has no row that can be imported."),
            MethodError("too-many-resources", status.CONFLICT, "The agent has as many resources as it may have."),
        ),
        recorded=("target", "conflict_policy"),
    ),
)
