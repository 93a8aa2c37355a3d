"""INTEGRATE: methods that bring data of other systems together (Tier 2 6)."""

from __future__ import annotations

from typing import Final

from bespeak.contract.standard.compute import FORMATS
from bespeak.contract.standard.definition import (
    COUNT,
    NAME,
    OBJECT,
    TIME,
    MethodError,
    StandardMethod,
    list_of,
    one_of,
)
from bespeak.protocol import status

INTEGRATE: Final[tuple[StandardMethod, ...]] = (
    StandardMethod(
        name="IMPORT",
        category="integrate",
        description="Adds rows to a collection of the caller, which it can fetch, search and scan from then on.",
        intent="Import data from another system.",
        outcome="The rows are in the collection, and the receipt counts them and lists those that were rejected.",
        # What is overwritten stays readable as an earlier version, but nothing removes a resource.
        impact="irreversible",
        idempotent=False,
        takes={
            # Rows, or a text in `format`. Addresses are not read.
            "source": {"type": ["string", "array"], "minLength": 1, "minItems": 1, "maxItems": 10_000},
            "target": {"type": "string", "pattern": "^[a-z][a-z0-9]*([_-][a-z0-9]+)*$", "maxLength": 64},
            "format?": one_of(*FORMATS),
            "conflict_policy?": one_of("overwrite", "skip", "merge"),
            # The member that identifies a row. Without it, rows never conflict.
            "key?": NAME,
        },
        returns={
            "import_id": NAME,
            "target": NAME,
            "records": COUNT,
            "added": COUNT,
            "changed": COUNT,
            "skipped": COUNT,
            "rejected": list_of(OBJECT, most=100),
            "rejected_count": COUNT,
            "imported_at": TIME,
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
