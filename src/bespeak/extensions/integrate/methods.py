"""IMPORT: rows of another system become resources of a collection (Tier 2 6.4)."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any, Final

from bespeak.contract.standard.methods import STANDARD
from bespeak.documents.data_formats import FormatError, read_data
from bespeak.extensions.acquire.store import CountOwned, NewRow, PutResources
from bespeak.extensions.data.collection import list_collections
from bespeak.protocol.exchange.instant import write_instant
from bespeak.runtime.answer import Effects
from bespeak.runtime.call import RoutedCall
from bespeak.runtime.concurrency import run_in_thread
from bespeak.runtime.handling import effects, invalid, new_id, refusal, stateful, to_json

MOST_RESOURCES: Final = 1_000_000  # resources of one agent
_MOST_ROWS: Final = 10_000  # rows of one call
_MOST_ROW: Final = 64 * 1024  # bytes of a row
_LONGEST_KEY: Final = 256
_MOST_SHOWN: Final = 100  # rejected rows of a receipt
_IMPORT: Final = STANDARD["IMPORT"]


@stateful
async def import_rows(call: RoutedCall) -> Effects:
    """Answer IMPORT /. Rows that cannot be imported are rejected one by one, with the reason."""
    given, target, policy = call.input, call.input["target"], call.input.get("conflict_policy", "overwrite")
    if any(one.kind != "resources" for one in await list_collections(call, target)):
        message = f"{target!r} is the name of a data set or an entity type of this service; choose another target."
        raise refusal(_IMPORT, "name-taken", message, field="/target")
    rows = await _read_source(given["source"], given.get("format"))
    accepted, rejected = await run_in_thread(_check_rows, rows, given.get("key"))
    if not accepted:
        reason = f": {rejected[0]['reason']}" if rejected else ""
        message = f"No row of the source can be imported{reason}."
        raise refusal(_IMPORT, "nothing-to-import", message, field="/source", rejected=rejected[:_MOST_SHOWN])
    assert call.server.store is not None, "the handler is stateful"
    owner = call.agent_id or ""
    if await call.server.store.read(CountOwned(owner, MOST_RESOURCES)) + len(accepted) > MOST_RESOURCES:
        message = f"The agent may have {MOST_RESOURCES:,} resources."
        raise refusal(_IMPORT, "too-many-resources", message)
    return effects(
        [PutResources(target, owner, tuple(accepted), policy)],
        lambda results: {
            "import_id": new_id("import"),
            "target": target,
            "records": len(rows),
            "added": results[0].added,
            "changed": results[0].changed,
            "skipped": results[0].skipped,
            "rejected": rejected[:_MOST_SHOWN],
            "rejected_count": len(rejected),
            "imported_at": write_instant(time.time()),
        },
        {},
    )


async def _read_source(source: Any, form: str | None) -> list[Any]:
    if isinstance(source, str):
        if form is None:
            raise invalid("format", "is needed for a text; it is not guessed, and addresses are not read.")
        try:
            data = await run_in_thread(read_data, source, form)
        except FormatError as error:
            where = {"line": error.line} if error.line else {}
            message = f"The source is not {form} that can be read: {error}."
            raise refusal(_IMPORT, "invalid-source", message, field="/source", **where) from None
        source = data if isinstance(data, list) else [data]
    elif form not in {None, "json"}:
        raise invalid("format", f"is {form}, which is a text; the source is rows, so leave it out.")
    if len(source) > _MOST_ROWS:
        raise invalid("source", f"must have at most {_MOST_ROWS:,} rows; got {len(source):,}. Send it in parts.")
    rows: list[Any] = source
    return rows


def _check_rows(rows: list[Any], key: str | None) -> tuple[list[NewRow], list[dict[str, Any]]]:
    """Return what can be imported, and the number of each other row with the reason."""
    accepted: list[NewRow] = []
    rejected: list[dict[str, Any]] = []
    for number, row in enumerate(rows):
        text = to_json(row) if isinstance(row, Mapping) else ""
        value = row.get(key) if isinstance(row, Mapping) and key is not None else None
        if not text:
            reason = "it is not an object"
        elif "resource_id" in row:
            reason = "the member resource_id is the server's"
        elif len(text) > _MOST_ROW:
            reason = f"it has more than {_MOST_ROW // 1024} KiB"
        elif key is not None and (isinstance(value, bool) or not isinstance(value, str | int) or value == ""):
            reason = f"its key {key[:80]!r} is not a text or a whole number"
        elif len(str(value)) > _LONGEST_KEY or "\0" in str(value):
            reason = f"its key has more than {_LONGEST_KEY} characters, or a NUL"
        else:
            accepted.append(NewRow(None if value is None else str(value), text))
            continue
        rejected.append({"row": number, "reason": reason})
    return accepted, rejected
