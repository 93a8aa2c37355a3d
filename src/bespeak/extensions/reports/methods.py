"""REPORT makes, stores and delivers a document of recorded data; FETCH /documents returns it (Tier 2 7.5)."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final, NamedTuple, TypeVar

import msgspec

from bespeak.contract.standard.definition import COUNT, NAME, MethodError, StandardMethod
from bespeak.contract.standard.methods import STANDARD
from bespeak.extensions.messages.message import BROADCAST, Message, Origin, message_id, put_messages, send
from bespeak.extensions.messages.posting import DELIVERED, REPORT, WAITING, Posting, post
from bespeak.extensions.messages.recipients import Recipients, find_recipients
from bespeak.extensions.messages.store import FindMessage
from bespeak.extensions.reports.formats import has_typst, write_html, write_json, write_markdown, write_pdf
from bespeak.extensions.reports.report import SOURCES, ReportContent, ReportScope, read_output, read_scope
from bespeak.protocol import status
from bespeak.protocol.exchange.headers import ACCEPT
from bespeak.protocol.exchange.instant import write_instant
from bespeak.runtime.answer import Answer, Effects, Envelope
from bespeak.runtime.bindings.participant import Joined
from bespeak.runtime.call import RoutedCall
from bespeak.runtime.concurrency import FairSemaphore
from bespeak.runtime.handling import (
    RefusedError,
    effects,
    invalid,
    new_id,
    refusal,
    run_function,
    stateful,
    to_json,
    usable_functions,
)
from bespeak.state.store.commands.records import FindRecord, PutRecord, Record
from bespeak.state.store.store import Command

_T = TypeVar("_T")

KIND: Final = "report"
KEPT: Final = 30 * 86400.0  # seconds for which a document can be fetched
MOST_BYTES: Final = 1024 * 1024
MOST_KEPT: Final = 1_000  # documents of one agent
_CHANNEL: Final = "channel:"  # before the name of a channel: a plain one is that of a principal
STORED: Final = "stored"  # state of a document that waits to be fetched; one that is delivered has those of a posting


class ReportFormat(NamedTuple):
    content_type: str
    suffix: str
    write: Callable[[ReportContent], bytes | None]


FORMATS: Final[Mapping[str, ReportFormat]] = {
    "json": ReportFormat("application/json", "json", write_json),
    "html": ReportFormat("text/html; charset=utf-8", "html", write_html),
    "markdown": ReportFormat("text/markdown; charset=utf-8", "md", write_markdown),
    "pdf": ReportFormat("application/pdf", "pdf", write_pdf),
}


class ReportDocument(msgspec.Struct, frozen=True, omit_defaults=True):
    report_type: str
    title: str
    format: str
    recipient: str
    digest: str
    size: int  # number of bytes
    text: str | None = None  # the document; None if it is not text
    base64: str | None = None  # the document, if it is not text

    @classmethod
    def of(cls, report_type: str, title: str, form: str, recipient: str, content: bytes) -> ReportDocument:
        digest = f"sha256:{hashlib.sha256(content).hexdigest()}"
        body = {"base64": base64.b64encode(content).decode()} if form == "pdf" else {"text": content.decode()}
        return cls(report_type, title, form, recipient, digest, len(content), **body)

    @property
    def content(self) -> bytes:
        return self.text.encode() if self.text is not None else base64.b64decode(self.base64 or "")

    def notice(self, document_id: str) -> dict[str, Any]:
        """Return what a recipient is told of a document: what it is, and how to fetch it."""
        return {
            "document_id": document_id,
            **{name: getattr(self, name) for name in ("report_type", "title", "format", "digest")},
            "bytes": self.size,
            "content_type": FORMATS[self.format].content_type,
            "fetch": {"method": "FETCH", "path": f"/documents/{document_id}"},
        }

    def letter(self, document_id: str) -> dict[str, Any]:
        """Return the document for a recipient outside, who cannot fetch it."""
        notice = {name: value for name, value in self.notice(document_id).items() if name != "fetch"}
        name = f"{document_id}.{FORMATS[self.format].suffix}"
        body = {"text": self.text} if self.text is not None else {"base64": self.base64}
        return {**notice, "file_name": name, **body}


decode: Final = msgspec.json.Decoder(ReportDocument).decode
_REPORT: Final = STANDARD["REPORT"]
# A long report takes seconds to set; handlers that block must not wait for that. One at a time, because the typesetter
# uses all cores, and so that an agent's next report waits for at most one of another agent.
_pool: Final = ThreadPoolExecutor(1, "bespeak-report")
_MOST_WAITING: Final = 256
_MOST_OF_ONE: Final = 32
_turns: Final = FairSemaphore(1, most=_MOST_WAITING, most_of_one=_MOST_OF_ONE)


@stateful
async def report(call: RoutedCall) -> Effects:
    """Answer REPORT /. A report has what its caller may see; who receives it sees no more."""
    given, agent_id = call.input, call.agent_id or ""
    form, recipient = given.get("format", "json"), given["recipient"]
    scope = _judge(call, form)
    found = await find_recipients(call, (recipient.removeprefix(_CHANNEL),))
    _check_recipient(found, recipient)
    made = await _make(call, scope)
    if not _turns.has_room(agent_id):
        waiting = f"{_MOST_OF_ONE} reports of the agent, or {_MOST_WAITING} of all agents, are waiting"
        raise refusal(status.UNAVAILABLE, "too-many-waiting", f"{waiting}; try again later.", retry_after=5)
    async with _turns.take(agent_id):
        content = await asyncio.get_running_loop().run_in_executor(_pool, FORMATS[form].write, made)
    if content is None:
        raise refusal(_REPORT, "format-not-available", f"The report could not be written as {form}.")
    if len(content) > MOST_BYTES:
        message = f"The report has {len(content)} bytes, more than {MOST_BYTES}; narrow its scope."
        raise refusal(_REPORT, "invalid-scope", message, field="/scope")
    document, document_id = ReportDocument.of(made.report_type, made.title, form, recipient, content), new_id("doc")
    state = WAITING if found.addresses or recipient.startswith(_CHANNEL) else DELIVERED if found.agents else STORED
    record = (document_id, KIND, agent_id, state, to_json(document))
    most = f"The agent has {MOST_KEPT} documents, the maximum; they expire after {KEPT / 86400:g} days."
    full = refusal(status.RATE_LIMITED, "too-many-documents", most, retry_after=3600).refused
    no_room = "The recipient has no room for more messages."
    return effects(
        [PutRecord(*record, lifetime=KEPT, most=MOST_KEPT), *_deliver(call, document_id, document, found)],
        lambda _: {
            "document_id": document_id,
            "report_type": document.report_type,
            "format": form,
            "bytes": document.size,
            "digest": document.digest,
            "recipient": recipient,
            "status": state,
        },
        {"too-many": full, "": _REPORT.refuse("delivery-unavailable", no_room, field="/recipient")},
    )


def _judge(call: RoutedCall, form: str) -> ReportScope:
    given = call.input
    if given["report_type"] not in (*SOURCES, *_own_reports(call)):
        known = [*usable_functions(call, "report"), *SOURCES]
        message = f"{given['report_type'][:80]!r} is not a report of this server; it has {', '.join(known)}."
        raise refusal(_REPORT, "unknown-report-type", message, field="/report_type", report_types=known)
    if form == "pdf" and not has_typst():
        message = "This server cannot write PDF; ask for html, markdown or json."
        raise refusal(_REPORT, "format-not-available", message, formats=["html", "markdown", "json"])
    return _valid_scope(read_scope(given["scope"], time.time()))


def _own_reports(call: RoutedCall) -> Mapping[str, Joined]:
    """Return the reports that functions of the service make."""
    return call.server.registrar.participants.get("report", {})


def _valid_scope(read: _T | str) -> _T:
    """Return what was read of the scope, unless it is a text that says what is wrong with it."""
    if isinstance(read, str):
        raise refusal(_REPORT, "invalid-scope", f"`scope` {read}.", field="/scope")
    return read


def _check_recipient(found: Recipients, recipient: str) -> None:
    """Refuse a recipient that cannot be reached. Any other name is that of a principal, who fetches the document."""
    is_channel = recipient.startswith(_CHANNEL)
    for name, fault in found.faults.items():
        if name in found.addresses or (is_channel and fault.error is not None):
            error = fault.error or _REPORT.find("delivery-unavailable")
            raise RefusedError(error.refuse(f"The recipient {fault.fault}.", field="/recipient"))
        if name in found.agents or is_channel:
            raise invalid("recipient", f"{fault.fault}.")


async def _make(call: RoutedCall, scope: ReportScope) -> ReportContent:
    kind, service = call.input["report_type"], call.routes.service
    if kind in SOURCES:
        if scope.filters and scope.data is None:
            _valid_scope(f"has filters, which the report {kind} does not take")
        found = _valid_scope(await SOURCES[kind](call, scope))
    else:
        output = await _run(call, _own_reports(call)[kind], scope)
        # A large one takes a while.
        found = _valid_scope(await asyncio.get_running_loop().run_in_executor(_pool, read_output, output))
    title = found.title or f"{service.identity.name or service.identity.server_id}: {scope.data or kind}"
    return ReportContent(
        **{**msgspec.structs.asdict(found), "title": title},
        report_type=kind,
        scope=str(scope),
        generated_at=write_instant(time.time()),
        generated_by=service.identity.server_id,
        generated_for=call.agent_id or "",
    )


async def _run(call: RoutedCall, joined: Joined, scope: ReportScope) -> Any:
    """Call the function of a report in the authority of the caller; return its output."""
    route = joined.routes["run"]
    missing = call.principal.scopes.missing(route.endpoint.required_scopes)
    given = {} if missing else _arguments(route.endpoint.input_schema, scope)  # scopes are judged before the input
    try:
        return await run_function(call, route, given, number="1")
    except RefusedError as error:
        places = {"/start": "/scope/from", "/end": "/scope/to"}
        for one in error.refused.details.get("violations", ()):
            one["pointer"] = places.get(one["pointer"], f"/scope/filters{one['pointer']}")
        raise


def _arguments(schema: Mapping[str, Any], scope: ReportScope) -> dict[str, Any]:
    """Return the arguments of a report: its filters, and the range as `start` and `end` if these are dates or times."""
    fault = "must be a time range and filters; this report takes neither ids nor a data set"
    given = dict(_valid_scope(fault if scope.ids or scope.data is not None else scope.filters))
    bounded = {"start": scope.start > 0, "end": scope.end < ReportScope().end}
    for index, name in enumerate(bounded):
        written = to_json(schema["properties"].get(name, {}))
        if '"format":"date' not in written:
            if bounded[name]:
                _valid_scope(f"must be all, or an object with filters; this report has no {name}")
        elif name in given:
            _valid_scope(f"has a filter {name!r}; write the time range in `from` and `to`")
        elif bounded[name] or name in schema["required"]:
            given[name] = scope.bounds(time.time(), days="date-time" not in written)[index]
    return given


def _deliver(call: RoutedCall, document_id: str, document: ReportDocument, found: Recipients) -> tuple[Command, ...]:
    """Return the commands that tell the recipient, or the subscribers of a channel. A principal fetches its own."""
    sender = call.agent_id or ""
    if found.addresses:
        letter = document.letter(document_id)
        posting = Posting(document_id, REPORT, sender, letter, subject=document.title, record_id=document_id)
        return tuple(post(address, posting) for address in found.addresses)
    if document.recipient.startswith(_CHANNEL):
        told = Origin(sender=sender, kind=REPORT, content=document.notice(document_id), recipients=found.channels)
        return send(_told_by(document_id), BROADCAST, told, found, time.time())
    message = Message(sender=sender, kind=REPORT, content=document.notice(document_id))
    return (put_messages(document_id, message, found.agents),) if found.agents else ()


def _told_by(document_id: str) -> str:
    """Return the id of the broadcast by which the subscribers of a channel are told of a document."""
    return f"brd-{document_id.partition('-')[2]}"


DOCUMENT_PATH: Final = "/documents/{document_id}"
FETCH_DOCUMENT: Final = StandardMethod(
    name="FETCH",
    category="communicate",
    description="Returns a report as a member of an object; as a file, if Accept names its own type.",
    intent="Fetch a report by its document id.",
    outcome="The document is returned with its type and digest.",
    takes={"document_id": NAME},
    returns={
        **dict.fromkeys(("document_id", "report_type", "format", "digest", "content_type", "file_name"), NAME),
        "title": {"type": "string"},
        "bytes": COUNT,
        "text?": {"type": "string", "description": "The document, if it is text."},
        "base64?": {"type": "string", "description": "The document, if it is not."},
    },
    errors=(MethodError("document-not-found", status.NOT_FOUND, "The caller has no such document."),),
)


@stateful
async def fetch_document(call: RoutedCall) -> Answer | Envelope:
    """Answer FETCH /documents/{document_id}. Documents of others do not exist for the caller."""
    document_id, who = call.input["document_id"], call.principal
    record: Record | None = await call.store.read(FindRecord((KIND,), document_id))
    document = None if record is None else decode(record.data)
    named = record is not None and {record.owner, document and document.recipient} & {who.agent_id, who.principal_id}
    told = message_id(_told_by(document_id), who.agent_id or "")
    if document is None or not (named or await call.store.read(FindMessage(told, who.agent_id or ""))):
        message = f"This agent has no document with the id {document_id[:80]!r}."
        raise refusal(FETCH_DOCUMENT, "document-not-found", message)
    content_type = FORMATS[document.format].content_type
    wanted = {part.partition(";")[0].strip().lower() for part in call.request.headers.get(ACCEPT, "").split(",")}
    # JSON is what every caller accepts, so it does not ask for a file.
    if not wanted & ({content_type.partition(";")[0], "application/octet-stream"} - {"application/json"}):
        return Envelope(document.letter(document_id))
    name = f"{document_id}.{FORMATS[document.format].suffix}"
    # A browser must not show it as a page of this server.
    headers = (("Content-Disposition", f'attachment; filename="{name}"'), ("X-Content-Type-Options", "nosniff"))
    return Answer(document.content, status.OK, content_type, headers)
