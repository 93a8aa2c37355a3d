"""FETCH /documents/{document_id}: a report, for the agent that asked for it and for its recipient."""

from __future__ import annotations

from typing import Final

from bespeak.contract.standard.method import NAME, MethodError, StandardMethod
from bespeak.protocol import status
from bespeak.protocol.exchange.refusal import Refused
from bespeak.runtime.answer import Answer
from bespeak.runtime.call import RoutedCall
from bespeak.runtime.methods.needs import refuse_without_needs
from bespeak.runtime.reports.document import CONTENT_TYPES, KIND, SUFFIXES, decode
from bespeak.state.store.commands.records import FindRecord, Record

PATH: Final = "/documents/{document_id}"
FETCH_DOCUMENT: Final = StandardMethod(
    name="FETCH",
    category="communicate",
    description="Returns a report in its format.",
    intent="Fetch a report by its document id.",
    outcome="The document is returned with its own content type.",
    parameters={"document_id": NAME},
    required=("document_id",),
    errors=(MethodError("document-not-found", status.NOT_FOUND, "The caller has no such document."),),
)


async def fetch_document(call: RoutedCall) -> Answer | Refused:
    """Answer FETCH /documents/{document_id}. Documents of others do not exist for the caller."""
    refused = refuse_without_needs(call)
    if refused is not None:
        return refused
    assert call.server.store is not None
    document_id, who = call.input["document_id"], call.principal
    record: Record | None = await call.server.store.read(FindRecord((KIND,), document_id))
    document = None if record is None else decode(record.data)
    if record is None or document is None or not {record.owner, document.recipient} & {who.agent_id, who.principal_id}:
        message = f"This agent has no document with the id {document_id[:80]!r}."
        return FETCH_DOCUMENT.refuse("document-not-found", message)
    name = f"{document_id}.{SUFFIXES[document.format]}"
    # A browser must not show it as a page of this server.
    headers = (("Content-Disposition", f'attachment; filename="{name}"'), ("X-Content-Type-Options", "nosniff"))
    return Answer(document.content, status.OK, CONTENT_TYPES[document.format], headers)
