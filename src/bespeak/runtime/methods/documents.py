"""FETCH /documents/{document_id}: a report, for the agent that asked for it and for its recipient."""

from __future__ import annotations

from typing import Final

from bespeak.contract.standard.method import COUNT, NAME, MethodError, StandardMethod
from bespeak.protocol import status
from bespeak.protocol.exchange.headers import ACCEPT
from bespeak.protocol.exchange.refusal import Refused
from bespeak.runtime.answer import Answer, Envelope
from bespeak.runtime.call import RoutedCall
from bespeak.runtime.methods.needs import refuse_without_needs
from bespeak.runtime.reports.document import CONTENT_TYPES, KIND, SUFFIXES, decode
from bespeak.state.store.commands.records import FindRecord, Record

PATH: Final = "/documents/{document_id}"
FETCH_DOCUMENT: Final = StandardMethod(
    name="FETCH",
    category="communicate",
    description="Returns a report as a member of an object; as a file, if Accept names its own type.",
    intent="Fetch a report by its document id.",
    outcome="The document is returned with its type and digest.",
    parameters={"document_id": NAME},
    required=("document_id",),
    result={
        **dict.fromkeys(("document_id", "report_type", "format", "digest", "content_type", "file_name"), NAME),
        "title": {"type": "string"},
        "bytes": COUNT,
        "text": {"type": "string", "description": "The document, if it is text."},
        "base64": {"type": "string", "description": "The document, if it is not."},
    },
    returned=("document_id", "report_type", "format", "digest", "content_type", "file_name", "title", "bytes"),
    errors=(MethodError("document-not-found", status.NOT_FOUND, "The caller has no such document."),),
)


async def fetch_document(call: RoutedCall) -> Answer | Envelope | Refused:
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
    content_type = CONTENT_TYPES[document.format]
    wanted = {part.partition(";")[0].strip().lower() for part in call.request.headers.get(ACCEPT, "").split(",")}
    # JSON is what every caller accepts, so it does not ask for a file.
    if not wanted & ({content_type.partition(";")[0], "application/octet-stream"} - {"application/json"}):
        return Envelope(document.letter(document_id))
    name = f"{document_id}.{SUFFIXES[document.format]}"
    # A browser must not show it as a page of this server.
    headers = (("Content-Disposition", f'attachment; filename="{name}"'), ("X-Content-Type-Options", "nosniff"))
    return Answer(document.content, status.OK, content_type, headers)
