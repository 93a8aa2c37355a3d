"""Panels of the console: what a part of the server shows an operator of its work, and what may be changed there.

A panel shows blocks, which are JSON. Texts in them are data: whoever shows them must not read markup in them.
"""

from __future__ import annotations

import secrets
import shlex
import time
import unicodedata
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeVar

import msgspec

from bespeak.contract.extensions import Lazy
from bespeak.protocol import status
from bespeak.protocol.exchange.instant import write_instant
from bespeak.protocol.exchange.messages import Connection, Request, Response
from bespeak.protocol.exchange.principal import ANONYMOUS, Principal
from bespeak.protocol.exchange.refusal import Fault, Refused
from bespeak.state.audit.record import make_payload
from bespeak.state.store.commands.audit import AppendAudit
from bespeak.state.store.commands.cases import CONFIRMATION, KINDS, Case, DecideCase
from bespeak.state.store.store import Command, Conflict, Store
from bespeak.text.diagnostics.diagnostic import printable

if TYPE_CHECKING:
    from bespeak.runtime.server import Server

MOST_ROWS: Final = 200  # rows of one table; more are on its next page
_FOREVER: Final = 250_000_000_000.0  # seconds: times from here on cannot be written
_MOST_NUMBER: Final = 2**62
_LONGEST: Final = 300  # characters of a cell
_LONGEST_TEXT: Final = 64 * 1024
_LONGEST_REASON: Final = 1000

ItemT = TypeVar("ItemT")


class Field(msgspec.Struct, frozen=True):
    """What an action asks for."""

    name: str
    label: str
    required: bool = False


class Action(msgspec.Struct, frozen=True):
    """What may be done with rows of a table."""

    label: str
    fields: tuple[Field, ...] = ()
    danger: bool = False  # True if it cannot be taken back
    command: str = ""  # command that does the same, with KEY for the key of the row


SHOW: Final = "show"  # action that every panel with `show_one` has; it only reads
_BY: Final = Field("by", "Your name", required=True)
DECISION: Final = (_BY, Field("reason", "Reason"))  # fields of decisions; callers with a credential have a name


def decision(label: str, command: str) -> Action:
    """Return an action that decides for good, with who decides and why."""
    return Action(label, DECISION, danger=True, command=f"{command} KEY --by NAME")


class Row(msgspec.Struct, frozen=True, omit_defaults=True):
    key: str
    cells: list[Any]
    actions: tuple[str, ...] = ()
    state: str = ""


class Table(msgspec.Struct, frozen=True, tag_field="kind", tag="table", omit_defaults=True):
    title: str
    columns: tuple[str, ...]
    rows: list[Row]
    actions: Mapping[str, Action] = {}
    next: str | None = None  # cursor of the next page; None if this is the last one
    empty: str = ""  # what is said in place of rows
    command: str = ""  # command that shows the same


class Facts(msgspec.Struct, frozen=True, tag_field="kind", tag="facts", omit_defaults=True):
    title: str
    facts: dict[str, Any]
    command: str = ""


class Text(msgspec.Struct, frozen=True, tag_field="kind", tag="text", omit_defaults=True):
    title: str
    text: str
    command: str = ""


class Node(msgspec.Struct, frozen=True):
    id: str
    label: str
    state: str = ""


class Graph(msgspec.Struct, frozen=True, tag_field="kind", tag="graph", omit_defaults=True):
    title: str
    nodes: list[Node]
    edges: list[tuple[str, ...]]  # from, to, and perhaps a label
    command: str = ""


Block = Table | Facts | Text | Graph


class Decider(NamedTuple):
    """Who decides: an operator by name, or a verified caller."""

    name: str
    parties: tuple[str, ...]  # everyone behind the decision, in lower case
    principal: Principal = ANONYMOUS

    @classmethod
    def named(cls, name: str) -> Decider:
        """Return an operator by the name that they give: "Eve " in wide letters is not somebody else than "eve"."""
        plain = " ".join(unicodedata.normalize("NFKC", name).split())
        return cls(plain, (plain.casefold(),))

    @property
    def written(self) -> str:
        return f"operator:{self.name}"


@dataclass(frozen=True, slots=True)
class PanelRequest:
    """What is asked of a panel: everything, a further page of its first table, or one thing."""

    server: Server
    store: Store
    key: str = ""  # key of the row that is to be shown; empty for all
    after: str = ""  # cursor of a page; empty for the first one


@dataclass(frozen=True, slots=True)
class Deed:
    """An action on one row of a panel."""

    server: Server
    store: Store
    key: str
    fields: Mapping[str, str]
    by: Decider

    @property
    def reason(self) -> str | None:
        return self.fields.get("reason") or None

    async def carry_out(self, verb: str, path: str, details: Mapping[str, Any], *commands: Command) -> Any | Conflict:
        """Carry out commands in one transaction, with their record if the server keeps an audit trail.

        Return the result of the first one.
        """
        server_id = self.server.routes.service.identity.server_id
        record = write_decision(server_id, verb, path, details, principal=self.by.principal, face="console")
        done = await self.store.do(*commands, *([record] if self.server.audited else []))
        return done if isinstance(done, Conflict) else done[0]


Show = Callable[[PanelRequest], Awaitable[Sequence[Block]]]
Act = Callable[[Deed], Awaitable[Refused | None]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Panel:
    """One page about the work of a server. Its functions are best imported when they are called."""

    name: str
    title: str
    show: Show
    """Returns the blocks. The first table may have pages."""
    show_one: Callable[[PanelRequest], Awaitable[Sequence[Block] | None]] | None = None
    """Returns the blocks about the row of a key; None if there is no such thing."""
    act: Mapping[str, Act] = field(default_factory=dict)
    """Carries out actions, by name; returns why one is refused."""


def panel_in(place: str, name: str, title: str, *, one: bool = False, act: Iterable[str] = ()) -> Panel:
    """Return a panel whose functions are in `panel.py` beside a module: `show`, perhaps `show_one`, and its actions."""
    module = f"{place.rpartition('.')[0]}.panel"
    return Panel(
        name=name,
        title=title,
        show=Lazy(module, "show"),
        show_one=Lazy(module, "show_one") if one else None,
        act={action: Lazy(module, action) for action in act},
    )


def cells(*values: Any) -> list[Any]:
    """Return values as a table shows them: texts without control characters, cut to a length."""
    return [_cut(printable(value)) if isinstance(value, str) else value for value in values]


def row(key: str, *values: Any, actions: Iterable[str] = (), state: str = "") -> Row:
    return Row(key, cells(*values), tuple(actions), state)


def _cut(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"


def written(moment: float | None) -> str | None:
    """Write a time; None if there is none, or never comes."""
    return None if moment is None or moment >= _FOREVER else write_instant(moment)


def facts(title: str, command: str = "", **named: Any) -> Facts:
    """Return a block of the values that are not None; `_` in their names is shown as a space."""
    given = {name: value for name, value in named.items() if value is not None}
    return Facts(title, dict(zip(given, cells(*given.values()), strict=True)), command)


def text(title: str, content: str, command: str = "") -> Text:
    more = f"\n… and {len(content) - _LONGEST_TEXT:,} characters" if len(content) > _LONGEST_TEXT else ""
    return Text(title, "\n".join(map(printable, content[:_LONGEST_TEXT].split("\n"))) + more, command)


def shell(*words: str) -> str:
    """Write a command of bespeak with words that agents or links have chosen: quoted, because people paste it."""
    return shlex.join(("bespeak", *words))


def json_text(title: str, value: Any, command: str = "") -> Text:
    return text(title, msgspec.json.format(msgspec.json.encode(value)).decode(), command)


class CursorError(Exception):
    """A text is not a cursor that a page has given."""


def page(found: Sequence[ItemT], mark: Callable[[ItemT], tuple[Any, ...]]) -> tuple[Sequence[ItemT], str | None]:
    """Return the rows of a page, and the cursor of the next one; one row more than a page has been read."""
    shown = found[:MOST_ROWS]
    return shown, msgspec.json.encode(mark(shown[-1])).decode() if len(found) > MOST_ROWS else None


def read_cursor(after: str, first: tuple[Any, ...]) -> Any:
    """Read a cursor as a value like `first`, which an empty one means; raise CursorError for any other text."""
    if not after:
        return first
    try:
        read = msgspec.json.decode(after, type=tuple[tuple(type(one) for one in first)])  # type: ignore[misc]
    except (msgspec.DecodeError, ValueError):
        raise CursorError from None
    # Neither store takes every text and every number.
    if not all(one.isprintable() if isinstance(one, str) else abs(one) <= _MOST_NUMBER for one in read):
        raise CursorError
    return read


def check_fields(key: str, fields: Iterable[str]) -> Fault | None:
    """Find a text that cannot be recorded."""
    for one in (key, *fields):
        if one and not (one.strip() and one.isprintable() and len(one) <= _LONGEST_REASON):
            limit = f"printable text of at most {_LONGEST_REASON} characters"
            return Fault(f"Every field must be {limit}; got {one[:40]!r}.")
    return None


def not_found(what: str, key: str) -> Refused:
    return Refused(status.NOT_FOUND, "not-found", f"There is no {what} {printable(key)[:120]!r} any more; load again.")


def conflicting(message: str, code: str = "not-possible") -> Refused:
    return Refused(status.CONFLICT, code, message)


def write_decision(
    server_id: str,
    verb: str,
    path: str,
    details: Mapping[str, Any],
    *,
    principal: Principal = ANONYMOUS,
    face: str = "cli",
) -> AppendAudit:
    """Return the command that records a decision like a call, by verb and path, with the details that are not None."""
    request = Request(verb, path, "", {}, msgspec.json.encode(details), Connection(face=face))
    payload = make_payload(
        request=request,
        response=Response(status.OK),
        principal=principal,
        method=verb,
        path=path,
        server_id=server_id,
        issued_at=time.time(),
        recorded={name: value for name, value in details.items() if value is not None},
    )
    return AppendAudit(principal.agent_id or "", payload)


def decide_case(case: str, state: str, by: Decider, reason: str | None) -> tuple[DecideCase, dict[str, Any]]:
    """Return the command of an operator's decision, and the details of its record."""
    attestation = f"att-{secrets.token_hex(16)}"
    command = DecideCase(case, state, by.written, attestation, kinds=KINDS, parties=by.parties, reason=reason)
    return command, {"escalation_id": case, "decision": state, "decided_by": by.name, "reason": reason}


def explain_undecided(case: str, name: str, conflict: Conflict) -> str | None:
    """Tell why a case was not decided; None if there is no such case."""
    details = conflict.details
    if conflict.reason == "already-decided":
        when = write_instant(details["decided_at"])
        return f"{case} was {details['status']} by {details['decided_by']} at {when}, and decisions are final"
    if conflict.reason == "expired":
        return f"{case} has expired; the agent must ask again"
    if conflict.reason == "own-case":
        return f"{case} must be decided by someone else, because {name!r} is behind the request"
    return None


_ABOUT: Final = ("task_id", "workflow_id", "procedure_id", "alignment_id")
"""Members of an escalation that say what it is about."""


def name_case(case: Case) -> str:
    """Tell in a few words what a case asks for."""
    subject = msgspec.json.decode(case.subject)
    if case.kind == CONFIRMATION:
        return f"{subject['method']} {subject['path']}"
    what = next((f"{name[:-3]} {subject[name]}" for name in _ABOUT if name in subject), "a decision")
    return f"{what}, {subject['reason']}" if "reason" in subject else what


def describe_case(case: Case) -> dict[str, str | None]:
    """Return what an operator is told of a case beside its request, by name; None for what it does not have."""
    parties = msgspec.json.decode(case.parties) if case.parties else []
    moments = {name: written(getattr(case, name)) for name in ("created", "deadline", "expires", "decided_at")}
    return {
        "kind": case.kind,
        "state": case.state,
        "agent": case.agent_id or "none",
        "recipient": case.recipient,
        **moments,
        "behind it": ", ".join(party for party in parties if party != case.agent_id) or None,
        "decided by": case.decided_by,
        "reason": case.reason,
        "attestation": case.attestation_id,
        "digest": f"sha-256:{case.digest}",
    }
