"""The work of a server in the console: the panels of the kernel, those of extensions, and actions on their rows."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict
from typing import Any, Final

import msgspec

from bespeak.protocol import status
from bespeak.protocol.exchange.refusal import Fault, Refused
from bespeak.runtime.call import Call, deciding_parties
from bespeak.runtime.identity.authority import GRANT, GRANTED, Grant
from bespeak.runtime.panels import (
    DECISION,
    MOST_ROWS,
    SHOW,
    Action,
    Block,
    CursorError,
    Decider,
    Deed,
    Panel,
    PanelRequest,
    TableBlock,
    TableRow,
    cells,
    check_fields,
    decide_case,
    explain_undecided,
    facts,
    json_text,
    name_case,
    not_found,
    page,
    read_cursor,
    written,
)
from bespeak.runtime.server import Server
from bespeak.state.audit.record import KeptRecord, payload_of
from bespeak.state.audit.trail import StoreTrail
from bespeak.state.audit.verification import Expectation, Verification
from bespeak.state.store.commands.audit import AuditExtent, LatestAudit, ReadAudit
from bespeak.state.store.commands.cases import ACCEPTED, DEFERRED, PENDING, REJECTED, Case, ListCases, ReadCase
from bespeak.state.store.commands.records import ListRecords
from bespeak.state.store.store import Conflict

_MOST_VERIFIED: Final = 5_000  # records that are verified while a server runs: they take it about half a second
_MOST_FAULTS: Final = 100
_TRAIL: Final = "trail"  # key of the whole audit trail


class Asked(msgspec.Struct, forbid_unknown_fields=True):
    """An action, as the page asks for it."""

    name: str
    action: str
    key: str
    fields: dict[str, str] = {}
    by: str = ""  # name of the operator; it may be among the fields


class Work:
    """The panels of a server, for operators who are known by a name that they give, or by a credential."""

    def __init__(self, server: Server) -> None:
        self._server = server
        extensions = (panel for extension in server.extensions for panel in extension.panels)
        self._panels = {} if server.store is None else {panel.name: panel for panel in (*KERNEL, *extensions)}

    def names(self) -> list[dict[str, str]]:
        return [{"name": panel.name, "title": panel.title} for panel in self._panels.values()]

    async def show(self, given: Mapping[str, Any], rights: list[str], caller: Call | None) -> Any:
        """Return the blocks of a panel, of a page of it, or about one of its rows."""
        panel = self._panels.get(given.get("name", ""))
        if panel is None:
            return _no_panel(given.get("name", ""))
        assert self._server.store is not None, "without a store there are no panels"
        key = given.get("key", "")
        try:
            request = PanelRequest(self._server, self._server.store, key, given.get("after", ""))
            found = await (panel.show_one or panel.show)(request) if key else await panel.show(request)
        except CursorError:
            return Fault("after must be a cursor that the page before has given.", "after")
        if found is None:
            return not_found("row", key)
        blocks = [_permitted(block, rights, named=caller is not None) for block in found]
        return {"name": panel.name, "title": panel.title, "key": key, "blocks": blocks}

    async def act(self, given: Mapping[str, Any], rights: list[str], caller: Call | None) -> Any:
        """Carry out an action, and return the blocks of the panel afterwards."""
        try:
            asked = msgspec.convert(given, Asked)
        except msgspec.ValidationError as error:
            return Fault(f"The action is not valid: {error}.")
        panel = self._panels.get(asked.name)
        if panel is None:
            return _no_panel(asked.name)
        if asked.action == SHOW and panel.show_one is not None:
            return await self.show({"name": asked.name, "key": asked.key}, rights, caller)
        act = panel.act.get(asked.action)
        if act is None:
            message = f"The panel {asked.name} has no action {asked.action[:40]!r}."
            return Refused(status.NOT_FOUND, "action-not-found", message)
        by = _decider(asked.by or asked.fields.get("by", ""), caller)
        wrong = check_fields(asked.key, [*asked.fields.values(), asked.by]) or (by if isinstance(by, Fault) else None)
        if wrong is not None:
            return wrong
        assert self._server.store is not None, "without a store there are no panels"
        assert isinstance(by, Decider)
        refused = await act(Deed(self._server, self._server.store, asked.key, asked.fields, by))
        return refused or await self.show({"name": asked.name}, rights, caller)


def _no_panel(name: str) -> Refused:
    return Refused(status.NOT_FOUND, "panel-not-found", f"This server has no panel {name[:40]!r}.")


def _decider(name: str, caller: Call | None) -> Decider | Fault:
    """Return who decides: a caller by its credential, the holder of the token by a name, as in a shell."""
    if caller is not None:
        principal = caller.principal
        # The agent as well: names of principals are not unique.
        return Decider(principal.agent_id or "", deciding_parties(caller), principal)
    if not name.strip():
        return Fault("by must be your name: whoever decides is recorded.", "by")
    return Decider(name, (name.casefold(),))


def _permitted(block: Block, rights: list[str], *, named: bool) -> Block:
    """Return a block with the actions that its reader may carry out; who is `named` by a credential gives no name."""
    if not isinstance(block, TableBlock):
        return block
    offered = {name: action for name, action in block.actions.items() if name == SHOW or "act" in rights}
    if named:
        offered = {
            name: msgspec.structs.replace(action, fields=tuple(one for one in action.fields if one.name != "by"))
            for name, action in offered.items()
        }
    rows = [
        msgspec.structs.replace(row, actions=tuple(name for name in row.actions if name in offered))
        for row in block.rows
    ]
    return msgspec.structs.replace(block, actions=offered, rows=rows)


async def _show_cases(request: PanelRequest) -> list[Block]:
    after = read_cursor(request.after, (0.0, ""))
    found: list[Case] = []
    for state in (PENDING, DEFERRED):
        found += await request.store.read(ListCases(state, MOST_ROWS + 1, after))
    found.sort(key=lambda case: (case.created, case.case_id))
    shown, rest = page(found, lambda case: (case.created, case.case_id))
    rows = [
        TableRow(
            case.case_id,
            cells(
                *(name_case(case), case.kind, case.agent_id[:12] or "anonymous", case.recipient),
                *(written(case.created), written(case.deadline if case.expires is None else case.expires)),
            ),
            (SHOW, "accept", "reject"),
            case.state,
        )
        for case in shown
    ]
    actions = {
        SHOW: Action("Show", command="bespeak cases show KEY"),
        "accept": Action("Accept", DECISION, danger=True, command="bespeak cases accept KEY --by NAME"),
        "reject": Action("Reject", DECISION, danger=True, command="bespeak cases reject KEY --by NAME"),
    }
    columns = ("Asks for", "Kind", "Agent", "To", "Since", "Until")
    return [TableBlock("Waiting for a decision", columns, rows, actions, rest, "Nothing waits.", "bespeak cases list")]


async def _show_case(request: PanelRequest) -> list[Block] | None:
    case: Case | None = await request.store.read(ReadCase(request.key))
    if case is None:
        return None
    parties = msgspec.json.decode(case.parties) if case.parties else []
    command = f"bespeak cases show {case.case_id}"
    return [
        facts(
            name_case(case)[:120],
            command,
            case_id=case.case_id,
            kind=case.kind,
            state=case.state,
            agent=case.agent_id or "none",
            recipient=case.recipient,
            created=written(case.created),
            deadline=written(case.deadline),
            expires=written(case.expires),
            behind_it=", ".join(party for party in parties if party != case.agent_id) or None,
            decided_by=case.decided_by,
            decided_at=written(case.decided_at),
            reason=case.reason,
            attestation=case.attestation_id,
            digest=f"sha-256:{case.digest}",
        ),
        json_text("Request", msgspec.json.decode(case.subject), command),
    ]


def _decide(state: str) -> Callable[[Deed], Any]:
    async def decide(deed: Deed) -> Refused | None:
        command, details = decide_case(deed.key, state, deed.by, deed.reason)
        done = await deed.carry_out("CONFIRM", "/", details, command)
        if not isinstance(done, Conflict):
            return None
        why = explain_undecided(deed.key, deed.by.name, done)
        if why is None:
            return not_found("case", deed.key)
        number = status.FORBIDDEN if done.reason == "own-case" else status.CONFLICT
        return Refused(number, done.reason, f"{why}.")

    return decide


async def _show_audit(request: PanelRequest) -> list[Block]:
    server = request.server
    trail = server.trail
    if trail is None:
        return [facts("Audit trail", recording='off: [audit] records = "off", or the store does not last')]
    (before,) = read_cursor(request.after, (2**62,))
    found = [KeptRecord(*row) for row in await request.store.read(LatestAudit(MOST_ROWS + 1, None, before))]
    shown, rest = page(found, lambda record: (record.position,))
    extent: int = await request.store.read(AuditExtent())
    whole = TableRow(_TRAIL, [f"{extent:,} records"], (SHOW,))
    verify = {SHOW: Action("Verify", command="bespeak audit verify")}
    recorded = "every call" if trail.auditor.everything else "what governance needs"
    return [
        TableBlock("Latest records", _RECORD, [_record_row(one) for one in shown], _SHOWN_RECORD, rest, "No records."),
        facts("Recording", records=recorded, signed=bool(trail.keys)),
        TableBlock("Verification", ("Trail",), [whole], verify, command="bespeak audit verify"),
    ]


_RECORD: Final = ("When", "Status", "Call", "Agent")
_SHOWN_RECORD: Final = {SHOW: Action("Show", command="bespeak audit show KEY")}


def _record_row(record: KeptRecord) -> TableRow:
    payload = payload_of(record.jws) or {}
    called = " ".join(str(payload[name]) for name in ("method", "path") if name in payload)
    told = (payload.get("issued_at", ""), payload.get("status", 0), called, record.agent_id[:12] or "anonymous")
    return TableRow(record.audit_id, cells(*told), (SHOW,))


async def _show_record(request: PanelRequest) -> list[Block] | None:
    if request.key == _TRAIL:
        return await _verify(request)
    row = await request.store.read(ReadAudit(request.key))
    if row is None:
        return None
    record = KeptRecord(*row)
    title, command = f"Record {record.audit_id[:16]}", f"bespeak audit show {record.audit_id}"
    return [json_text(title, {"audit_id": record.audit_id, **(payload_of(record.jws) or {})}, command)]


async def _verify(request: PanelRequest) -> list[Block] | None:
    """Verify the whole trail with the keys of the server, if that does not take long."""
    trail, command = request.server.trail, "bespeak audit verify"
    if trail is None:
        return None
    extent: int = await request.store.read(AuditExtent())
    if extent > _MOST_VERIFIED:
        why = f"it has about {extent:,} records; use `{command} TARGET`, which does not hold up the server"
        return [facts("Verification", command, result=f"not verified: {why}")]
    from bespeak.state.identity.key_files import trusted  # noqa: PLC0415 - loads cryptography

    ids = frozenset({request.server.routes.service.identity.server_id})
    verification = Verification(StoreTrail(request.store), trusted(trail.keys), Expectation(None, ids))
    found = []
    async for fault in verification.faults():
        found.append(fault)
        if len(found) == _MOST_FAULTS:
            break
    tally = asdict(verification.tally)
    rows = [
        TableRow(f"{number}", cells(one.kind, one.message, one.audit_id, one.stream, one.sequence), state="failed")
        for number, one in enumerate(found)
    ]
    return [
        facts("Verification", command, **{"result": f"{len(found)} faults" if found else "no faults", **tally}),
        TableBlock("Faults", ("Kind", "What", "Record", "Stream", "Number"), rows, empty="No faults.", command=command),
    ]


async def _show_agents(request: PanelRequest) -> list[Block]:
    (after, last) = read_cursor(request.after, ("", ""))
    listed = sorted((one for one in request.server.agents if (one.name, one.agent_id) > (after, last)), key=_place)
    shown, rest = page(listed, _place)
    rows = [
        TableRow(
            one.agent_id,
            cells(one.name, one.agent_id[:16], ", ".join(one.scopes), one.principal or one.principal_id),
            state=one.status,
        )
        for one in shown
    ]
    granted = await request.store.read(ListRecords(GRANT, states=(GRANTED,), limit=MOST_ROWS))
    grants = []
    for record in granted:
        grant = msgspec.json.decode(record.data, type=Grant)
        told = cells(grant.subject, ", ".join(grant.scope), grant.resource, grant.granted_by[:16])
        grants.append(TableRow(record.record_id, [*told, written(grant.expires)], state=record.state))
    columns = ("Agent", "Agent-ID", "Scopes", "Acts for")
    nobody = "No agent is registered."
    return [
        TableBlock("Agents", columns, rows, next=rest, empty=nobody, command="bespeak agents list"),
        TableBlock(
            "Grants in force",
            ("To", "Scopes", "For", "By", "Until"),
            grants,
            empty="No agent has granted anything.",
            command=f"bespeak store records --kind {GRANT}",
        ),
    ]


def _place(agent: Any) -> tuple[str, str]:
    return agent.name, agent.agent_id


KERNEL: Final = (
    Panel(
        name="cases",
        title="Cases",
        show=_show_cases,
        show_one=_show_case,
        act={"accept": _decide(ACCEPTED), "reject": _decide(REJECTED)},
    ),
    Panel(name="agents", title="Agents and grants", show=_show_agents),
    Panel(name="audit", title="Audit trail", show=_show_audit, show_one=_show_record),
)
"""What every server with a store has."""
