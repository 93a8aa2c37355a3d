"""The work of a server in the console: the panels of the kernel, those of extensions, and actions on their rows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from typing import Any, Final

import msgspec

from bespeak.faces.console.application import Access, Visit
from bespeak.protocol import status
from bespeak.protocol.exchange.refusal import Fault, Refused
from bespeak.runtime.call import Call, deciding_parties
from bespeak.runtime.identity.authority import GRANT, GRANTED, Grant
from bespeak.runtime.server import Server
from bespeak.state.audit.record import KeptRecord, payload_of
from bespeak.state.audit.trail import StoreTrail
from bespeak.state.audit.verification import Expectation, Verification
from bespeak.state.store.commands.audit import AuditExtent, LatestAudit, ReadAudit
from bespeak.state.store.commands.cases import ACCEPTED, DEFERRED, PENDING, REJECTED, Case, ListCases, ReadCase
from bespeak.state.store.commands.records import ListRecords
from bespeak.state.store.store import Conflict
from bespeak.terminal import panels

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

    def __init__(self, server: Server, access: Access) -> None:
        self._server = server
        self._access = access
        extensions = (panel for extension in server.extensions for panel in extension.panels)
        self._panels = {} if server.store is None else {panel.name: panel for panel in (*KERNEL, *extensions)}

    def names(self) -> list[dict[str, str]]:
        return [{"name": panel.name, "title": panel.title} for panel in self._panels.values()]

    async def show(self, visit: Visit) -> Any:
        """Return the blocks of a panel, of a page of it, or about one of its rows."""
        given, rights = visit.given, self._access.rights(visit.caller)
        panel = self._panels.get(given.get("name", ""))
        if panel is None:
            return _no_panel(given.get("name", ""))
        assert self._server.store is not None, "without a store there are no panels"
        key = given.get("key", "")
        if (wrong := panels.check_fields(key, ())) is not None:
            return wrong
        try:
            request = panels.PanelRequest(self._server, self._server.store, key, given.get("after", ""))
            found = await (panel.show_one or panel.show)(request) if key else await panel.show(request)
        except panels.CursorError:
            return Fault("after must be a cursor that the page before has given.", "after")
        if found is None:
            return panels.not_found("row", key)
        blocks = [_permitted(block, rights, named=visit.caller is not None) for block in found]
        return {"name": panel.name, "title": panel.title, "key": key, "blocks": blocks}

    async def act(self, visit: Visit) -> Any:
        """Carry out an action, and return the blocks of the panel afterwards."""
        try:
            asked = msgspec.convert(visit.given, Asked)
        except msgspec.ValidationError as error:
            return Fault(f"The action is not valid: {error}.")
        panel = self._panels.get(asked.name)
        if panel is None:
            return _no_panel(asked.name)
        if asked.action == panels.SHOW and panel.show_one is not None:
            return await self.show(visit._replace(given={"name": asked.name, "key": asked.key}))
        act = panel.act.get(asked.action)
        if act is None:
            message = f"The panel {asked.name} has no action {asked.action[:40]!r}."
            return Refused(status.NOT_FOUND, "action-not-found", message)
        by = _decider(asked.by or asked.fields.get("by", ""), visit.caller)
        wrong = panels.check_fields(asked.key, [*asked.fields.values(), asked.by]) or (
            by if isinstance(by, Fault) else None
        )
        if wrong is not None:
            return wrong
        assert self._server.store is not None, "without a store there are no panels"
        assert isinstance(by, panels.Decider)
        refused = await act(panels.Deed(self._server, self._server.store, asked.key, asked.fields, by))
        return refused or await self.show(visit._replace(given={"name": asked.name}))


def _no_panel(name: str) -> Refused:
    return Refused(status.NOT_FOUND, "panel-not-found", f"This server has no panel {name[:40]!r}.")


def _decider(name: str, caller: Call | None) -> panels.Decider | Fault:
    """Return who decides: a caller by its credential, the holder of the token by a name, as in a shell."""
    if caller is not None:
        principal = caller.principal
        # The agent as well: names of principals are not unique.
        return panels.Decider(principal.agent_id or "", deciding_parties(caller), principal)
    if not name.strip():
        return Fault("by must be your name: whoever decides is recorded.", "by")
    return panels.Decider.named(name)


def _permitted(block: panels.Block, rights: list[str], *, named: bool) -> panels.Block:
    """Return a block with the actions that its reader may carry out; who is `named` by a credential gives no name."""
    if not isinstance(block, panels.Table):
        return block
    offered = {name: action for name, action in block.actions.items() if name == panels.SHOW or "act" in rights}
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


async def _show_cases(request: panels.PanelRequest) -> list[panels.Block]:
    after = panels.read_cursor(request.after, (0.0, ""))
    found: list[Case] = []
    for state in (PENDING, DEFERRED):
        found += await request.store.read(ListCases(state, panels.MOST_ROWS + 1, after))
    found.sort(key=lambda case: (case.created, case.case_id))
    shown, rest = panels.page(found, lambda case: (case.created, case.case_id))
    rows = [
        panels.row(
            case.case_id,
            *(panels.name_case(case), case.kind, case.agent_id[:12] or "anonymous", case.recipient),
            *map(panels.written, (case.created, case.deadline if case.expires is None else case.expires)),
            actions=(panels.SHOW, "accept", "reject"),
            state=case.state,
        )
        for case in shown
    ]
    actions = {
        panels.SHOW: panels.Action("Show", command="bespeak cases show KEY"),
        **{name: panels.decision(name.capitalize(), f"bespeak cases {name}") for name in ("accept", "reject")},
    }
    columns = ("Asks for", "Kind", "Agent", "To", "Since", "Until")
    return [
        panels.Table("Waiting for a decision", columns, rows, actions, rest, "Nothing waits.", "bespeak cases list")
    ]


async def _show_case(request: panels.PanelRequest) -> list[panels.Block] | None:
    case: Case | None = await request.store.read(ReadCase(request.key))
    if case is None:
        return None
    command = panels.shell("cases", "show", case.case_id)
    return [
        panels.facts(
            panels.name_case(case)[:120],
            command,
            **panels.describe_case(case),
        ),
        panels.json_text("Request", msgspec.json.decode(case.subject), command),
    ]


def _decide(state: str) -> Callable[[panels.Deed], Any]:
    async def decide(deed: panels.Deed) -> Refused | None:
        command, details = panels.decide_case(deed.key, state, deed.by, deed.reason)
        done = await deed.carry_out("CONFIRM", "/", details, command)
        if not isinstance(done, Conflict):
            return None
        why = panels.explain_undecided(deed.key, deed.by.name, done)
        if why is None:
            return panels.not_found("case", deed.key)
        number = status.FORBIDDEN if done.reason == "own-case" else status.CONFLICT
        return Refused(number, done.reason, f"{why}.")

    return decide


async def _show_audit(request: panels.PanelRequest) -> list[panels.Block]:
    trail = request.server.trail
    if trail is None:
        return [panels.facts("Audit trail", recording='off: [audit] records = "off", or the store does not last')]
    (before,) = panels.read_cursor(request.after, (2**62,))
    found = [KeptRecord(*row) for row in await request.store.read(LatestAudit(panels.MOST_ROWS + 1, None, before))]
    shown, rest = panels.page(found, lambda record: (record.position,))
    extent: int = await request.store.read(AuditExtent())
    whole = panels.Row(_TRAIL, [f"{extent:,} records"], (panels.SHOW,))
    verify = {panels.SHOW: panels.Action("Verify", command="bespeak audit verify")}
    recorded = "every call" if trail.auditor.everything else "what governance needs"
    return [
        panels.Table(
            "Latest records", _RECORD, [_record_row(one) for one in shown], _SHOWN_RECORD, rest, "No records."
        ),
        panels.facts("Recording", records=recorded, signed=bool(trail.keys)),
        panels.Table("Verification", ("Trail",), [whole], verify, command="bespeak audit verify"),
    ]


_RECORD: Final = ("When", "Status", "Call", "Agent")
_SHOWN_RECORD: Final = {panels.SHOW: panels.Action("Show", command="bespeak audit show KEY")}


def _record_row(record: KeptRecord) -> panels.Row:
    payload = payload_of(record.jws) or {}
    called = " ".join(str(payload[name]) for name in ("method", "path") if name in payload)
    told = (payload.get("issued_at", ""), payload.get("status", 0), called, record.agent_id[:12] or "anonymous")
    return panels.row(record.audit_id, *told, actions=(panels.SHOW,))


async def _show_record(request: panels.PanelRequest) -> list[panels.Block] | None:
    if request.key == _TRAIL:
        return await _verify(request)
    row = await request.store.read(ReadAudit(request.key))
    if row is None:
        return None
    record = KeptRecord(*row)
    title, command = f"Record {record.audit_id[:16]}", panels.shell("audit", "show", record.audit_id)
    return [panels.json_text(title, {"audit_id": record.audit_id, **(payload_of(record.jws) or {})}, command)]


async def _verify(request: panels.PanelRequest) -> list[panels.Block] | None:
    """Verify the whole trail with the keys of the server, if that does not take long."""
    trail, command = request.server.trail, "bespeak audit verify"
    if trail is None:
        return None
    extent: int = await request.store.read(AuditExtent())
    if extent > _MOST_VERIFIED:
        why = f"it has about {extent:,} records; use `{command} TARGET`, which does not hold up the server"
        return [panels.facts("Verification", command, result=f"not verified: {why}")]
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
        panels.row(f"{number}", one.kind, one.message, one.audit_id, one.stream, one.sequence, state="failed")
        for number, one in enumerate(found)
    ]
    return [
        panels.facts("Verification", command, **{"result": f"{len(found)} faults" if found else "no faults", **tally}),
        panels.Table(
            "Faults", ("Kind", "What", "Record", "Stream", "Number"), rows, empty="No faults.", command=command
        ),
    ]


async def _show_agents(request: panels.PanelRequest) -> list[panels.Block]:
    (after, last) = panels.read_cursor(request.after, ("", ""))
    listed = sorted((one for one in request.server.agents if (one.name, one.agent_id) > (after, last)), key=_place)
    shown, rest = panels.page(listed, _place)
    rows = [
        panels.row(
            *(one.agent_id, one.name, one.agent_id[:16], ", ".join(one.scopes)),
            *(one.principal or one.principal_id,),
            state=one.status,
        )
        for one in shown
    ]
    granted = await request.store.read(ListRecords(GRANT, states=(GRANTED,), limit=panels.MOST_ROWS))
    grants = []
    for record in granted:
        grant = msgspec.json.decode(record.data, type=Grant)
        told = (grant.subject, ", ".join(grant.scope), grant.resource, grant.granted_by[:16])
        grants.append(panels.row(record.record_id, *told, panels.written(grant.expires), state=record.state))
    columns = ("Agent", "Agent-ID", "Scopes", "Acts for")
    nobody = "No agent is registered."
    return [
        panels.Table("Agents", columns, rows, next=rest, empty=nobody, command="bespeak agents list"),
        panels.Table(
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
    panels.Panel(
        name="cases",
        title="Cases",
        show=_show_cases,
        show_one=_show_case,
        act={"accept": _decide(ACCEPTED), "reject": _decide(REJECTED)},
    ),
    panels.Panel(name="agents", title="Agents and grants", show=_show_agents),
    panels.Panel(name="audit", title="Audit trail", show=_show_audit, show_one=_show_record),
)
"""What every server with a store has."""
