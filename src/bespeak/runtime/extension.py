"""What an extension is: one value that tells the kernel everything about a capability.

The kernel knows this type and no extension. What follows from the extensions of a server is computed once, when the
server is made. The interface is provisional: it may change between minor releases.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import msgspec

from bespeak.contract.endpoint import Endpoint
from bespeak.contract.service import Service
from bespeak.contract.standard.definition import StandardMethod
from bespeak.errors import ConfigError
from bespeak.protocol.exchange.refusal import Refused
from bespeak.state.store.commands.records import ChangeRecord, Record
from bespeak.state.store.store import Command, Store

if TYPE_CHECKING:
    import click

    from bespeak.documents.deployment.server_toml import ServerDocument
    from bespeak.runtime.answer import Effects, Envelope
    from bespeak.runtime.background import DueHandler
    from bespeak.runtime.call import RoutedCall
    from bespeak.runtime.dispatcher import Dispatcher
    from bespeak.runtime.exchange import Subscriber
    from bespeak.runtime.identity.signer import Signer
    from bespeak.runtime.registration import DataEndpoint
    from bespeak.runtime.server import Server
    from bespeak.runtime.settlement import TaskAdmission
    from bespeak.terminal.panels import Panel
    from bespeak.text.diagnostics.diagnostic import Diagnostic

_logger = logging.getLogger(__name__)

Judge = Callable[["RoutedCall"], Refused | None]  # a gate: returns the refusal of a call, or None to let it pass
Handler = Callable[..., Any]
"""A handler of a method: takes the call; returns Envelope, Effects, Refused, or a coroutine of one."""
Step = Callable[[], Awaitable[None] | None]

# Names of hooks: what the kernel asks of whoever carries out a part of one of its methods.
CONFIRM: Final = "confirm "
"""Followed by what is confirmed, `confirm(call)`: answers CONFIRM for a target of its own; None for any other."""
RESUME: Final = "resume"  # `resume(call)`: answers RESUME for an id of the extension; None for any other id
CANCEL: Final = "cancel"
"""`cancel(call, given, kinds)`: cancels a record of one of these kinds that belongs to the caller."""
ANNOUNCE: Final = "announce"
"""`announce(server, case_id, agent_id, recipient, content, priority=...)`: the command that tells of a case."""
ASK_PERSON: Final = "ask person"
"""`ask_person(call, name, question, case_id=..., within=...)`: the command that asks a person for a yes or a no."""
ENQUEUE: Final = "enqueue"
"""`enqueue(item_id, queue, payload, authority)`: the command that has a function of the service called."""
HAND_OVER: Final = "hand over"
"""`hand_over(call, told, expires)`: the commands that offer a delegated task; `told` is the answer to DELEGATE."""
INSPECT_SYNTHESIS: Final = "inspect synthesis"
"""`inspect_synthesis(store, synthesis_id)`: its agent, and the members that INSPECT shows; None if it is not in use."""
RELEASE_SYNTHESIS: Final = "release synthesis"
"""`release_synthesis(call, synthesis_id)`: answers SUSPEND for a synthesis or a proposal of the caller."""
FOLLOW: Final = "follow"
"""`await follow(call, job_id)`: how a job of the caller has ended, when it has; None if it goes on for longer."""
LIST_CALLS: Final = "list calls"  # `list_calls(call, endpoint, arguments)`: the calls that a composite would make
SPENT: Final = "spent"
"""`spent(endpoint, output)`: units and amounts that a call which has ended counts against a budget."""
PRICE: Final = "price "
"""Followed by a method, `await price(call, given)`: the exact price of a call with this input, by currency."""
COLLECT: Final = "collect "
"""Followed by a kind of collections, `await collect(call, name)`: those that the caller may read, or that of a name."""
QUERY_ROWS: Final = "query rows"
"""`await query_rows(call, names, most)`: names, first rows and whether there are more, of what the caller may read."""
REMOVE: Final = "remove "
"""Followed by what is removed, `await remove(call, target)`: the Effects with which CANCEL answers; None if the caller
has no such thing."""
SHOW_LINKS: Final = "show links"
"""`await show_links(call, found, follow)`: what FETCH shows beside what it has found, whose content may grow."""
UNLINK: Final = "unlink"  # `unlink(things)`: the command that ends the links of what is removed
RECORD: Final = "record "
"""Followed by a method, `record(call)`: members that its audit record has beside the recorded input."""


class Anchor(Enum):
    """A place among the gates of a call, named by what is known there."""

    AUTHORIZED = "authorized"  # the scopes of the caller cover those of the endpoint
    READ = "read"  # `call.input` has been read and is valid


class Gate(NamedTuple):
    """A gate that an extension brings."""

    judge: Judge
    after: Anchor  # gates behind the same anchor stand in the order of the extensions
    step: Judge | None = None  # judge of the steps of compositions and workflows, if it differs
    methods: frozenset[str] = frozenset()  # methods without which the gate is left out; empty if it is always there
    early: bool = False  # True if it also judges before a person is asked to confirm a call


CANCELLED: Final = "cancelled"
KEPT: Final = 30 * 86400.0  # seconds for which something that was cancelled can still be looked up


class Cancelling(NamedTuple):
    """How CANCEL ends records of one kind."""

    allowed_from: tuple[str, ...]  # states from which that is possible; empty for every state but cancelled
    state: str = CANCELLED
    carry_out: Callable[[RoutedCall, Record], Awaitable[Effects | Envelope]] | None = None
    """Cancels the record and answers, if more than its state changes; a refund is an example."""
    refunds: bool = False
    parties: Callable[[Record], tuple[str, ...]] | None = None
    """Returns who is concerned, by the names of recipients; None if nobody else is."""
    also: Callable[[Record], tuple[Command, ...]] | None = None  # returns what else is done in the same transaction
    before: Callable[[RoutedCall, Record], Awaitable[None]] | None = None
    """Asks whoever may stop it, by raising a refusal."""

    def commands(self, record: Record) -> tuple[Command, ...]:
        """Return what ends a record of an owner, with what is done in the same transaction."""
        ends = self.state == CANCELLED
        change = ChangeRecord(
            *(record.record_id, (record.kind,), self.allowed_from or (record.state,), self.state, record.owner),
            delay=None if ends else 0.0,
            lifetime=KEPT if ends else None,
        )
        return change, *(() if self.also is None else self.also(record))


class RecordKind(NamedTuple):
    """What the kernel knows of one kind of record."""

    due: Callable[[Server], DueHandler] | None = None
    """Makes the function that carries out what is due; None if nothing ever is."""
    cancelling: Cancelling | None = None
    """How its owner cancels it; None if it cannot be cancelled. What can be cancelled can be observed."""
    checked: bool = False  # True if its owner can CHECK it although it cannot be cancelled
    named: bool = False  # True if its owner may name it by its key, or by the Task-ID of the call that made it, as well
    followed: bool = False  # True if it goes on after its process, and a repetition of its call hears how it ends
    describe: Callable[[Server, Record], Awaitable[Mapping[str, Any]]] | None = None
    """Returns what CHECK tells of a record beside its state, for its owner."""


class BuiltIn(NamedTuple):
    """An endpoint that an extension adds at a path of its own."""

    method: StandardMethod
    path: str
    handler: Handler
    listed: bool = False  # True if discovery lists it as an endpoint of the service


Floor = list[tuple[StandardMethod, Handler]]  # floor methods with their handlers, in order


@dataclass(eq=False)
class Opening:
    """What the state of an extension is made of, and where it puts what it makes."""

    server: Server
    dispatcher: Dispatcher
    document: ServerDocument  # settings of the server
    environment: Mapping[str, str]  # variables from which credentials are read
    signer: Signer | None
    settings: Any = None  # settings of the extension that is being opened; None if it has none

    @property
    def store(self) -> Store | None:
        """The store; None for a server without one."""
        return self.server.store

    @property
    def enabled(self) -> frozenset[str]:
        """Names of the standard methods that the server offers."""
        return frozenset(self.server.registrar.service.methods)

    def provide(self, name: str, part: Any) -> None:
        """Make a part known to handlers, as `server.part(name)`."""
        self.server.parts[name] = part

    def on_start(self, step: Step) -> None:
        """Run a step when the server starts, after the store."""
        self.server.starts.append(step)

    def on_run(self, step: Step) -> None:
        """Run a step when background work begins. A server without a store has none."""
        self.server.runs.append(step)

    def on_stop(self, step: Step) -> None:
        """Run a step when background work ends, the last one first."""
        self.server.stops.append(step)

    def on_close(self, step: Step) -> None:
        """Run a step when the server closes, the last one first."""
        self.server.closes.append(step)

    def admit_tasks(self, wrap: Callable[[TaskAdmission], TaskAdmission]) -> None:
        """Put another check around the one for the task of a call."""
        self.dispatcher.admit_tasks(wrap)

    def observe(self, subscriber: Subscriber) -> None:
        """Tell a subscriber of every exchange."""
        self.dispatcher.subscribe(subscriber)


@dataclass(frozen=True, slots=True, kw_only=True)
class Extension:
    """A capability."""

    name: str
    settings: type | None = None
    """Type of its table `[extensions.NAME]`, a msgspec Struct or a dataclass; None if it has none."""
    methods: Mapping[str, Handler] = field(default_factory=dict)  # handlers of standard methods, by name
    own_methods: Sequence[tuple[StandardMethod, Handler]] = ()
    """Methods that the drafts do not have, with their handlers; they are called at `/`."""
    gates: tuple[Gate, ...] = ()
    kinds: Mapping[str, RecordKind] = field(default_factory=dict)  # kinds of its records
    endpoints: Callable[[Service], Iterable[BuiltIn]] | None = None
    """Returns the endpoints that it adds to a service whose server has a store."""
    floor: Callable[[Floor], Floor] | None = None
    """Changes floor methods: returns them with other parameters or handlers."""
    reads: Judge | None = None  # gate that reads the input of calls in place of that of the kernel
    hooks: Mapping[str, Callable[..., Any]] = field(default_factory=dict)
    """Functions that the kernel asks for by name; the names are in this module."""
    wraps: Callable[[Endpoint, Callable[..., Any]], Callable[..., Any]] | None = None
    """Returns the call of an endpoint's function with something around it, or the call as it is."""
    sources: Callable[[Service, Path], tuple[Sequence[DataEndpoint], list[Diagnostic]]] | None = None
    """Opens data of the service, with paths from a folder; returns steps for compositions, and findings."""
    open: Callable[[Opening], None] | None = None
    """Makes its state for one server. Without it, `server.part(name)` is the settings."""
    panels: Sequence[Panel] = ()
    """Pages of the console about its work."""
    commands: Sequence[click.Command] = ()
    """Commands for `bespeak extension`; the object of their context is the TARGET."""


def read_settings(extensions: Iterable[Extension], given: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """Read the tables of extensions, by name; raise ConfigError for one that is wrong or that nobody reads."""
    types = {extension.name: extension.settings for extension in extensions if extension.settings is not None}
    unread = next((name for name in given if name not in types), None)
    if unread is not None:
        raise ConfigError(f"[extensions.{unread}] is not read: the service has no extension {unread!r} with settings")
    read: dict[str, Any] = {}
    for name, of in types.items():
        try:
            read[name] = msgspec.convert(given.get(name, {}), of)
        except msgspec.ValidationError as error:
            raise ConfigError(f"[extensions.{name}] is not valid: {error}") from None
    return read


def check_names(extensions: Iterable[Extension]) -> None:
    """Raise ConfigError if two extensions have the same name, or name the same method, kind of record or hook."""
    owners: dict[tuple[str, str], Extension] = {}
    for extension in extensions:
        declared = {
            "extension": (extension.name,),
            "method": (*extension.methods, *(method.name for method, _ in extension.own_methods)),
            "kind of record": tuple(extension.kinds),
            "hook": tuple(extension.hooks),
            "panel": tuple(panel.name for panel in extension.panels),
        }
        for what, names in declared.items():
            for name in names:
                owner = owners.setdefault((what, name), extension)
                if owner is not extension:
                    raise ConfigError(
                        f"the extensions {owner.name!r} and {extension.name!r} both name the {what} {name!r}"
                    )


def handlers_of(extensions: Iterable[Extension]) -> dict[str, Handler]:
    """Return the handlers of standard methods, by name."""
    return {name: handler for extension in extensions for name, handler in extension.methods.items()}


def gates_behind(extensions: Iterable[Extension], anchor: Anchor, enabled: Iterable[str]) -> list[Gate]:
    """Return the gates that follow an anchor, for a server that offers these methods."""
    offered = set(enabled)
    return [
        gate
        for extension in extensions
        for gate in extension.gates
        if gate.after is anchor and (not gate.methods or not gate.methods.isdisjoint(offered))
    ]


async def run_all(steps: Iterable[Step]) -> None:
    """Run steps one after the other."""
    for step in steps:
        done = step()
        if done is not None:
            await done


async def close_all(steps: Iterable[Step]) -> None:
    """Run closing steps one after the other. The first failure is raised at the end, the others are logged."""
    failures: list[Exception] = []
    for step in steps:
        try:
            await run_all((step,))
        except Exception as error:  # noqa: BLE001 - raised or logged below
            failures.append(error)
    for failure in failures[1:]:
        _logger.error("another step of closing the server failed", exc_info=failure)
    if failures:
        raise failures[0]
