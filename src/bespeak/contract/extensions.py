"""The extensions that bespeak brings, known without importing them: this table names modules by text."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import import_module
from types import MappingProxyType, ModuleType
from typing import Any, Final, NamedTuple

_ROOM: Final = "bespeak.extensions"
_NONE: Final[Mapping[str, str]] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Lazy:
    """A name in a module that is imported when it is used."""

    module: str
    attribute: str

    def load(self) -> Any:
        return getattr(import_module(self.module), self.attribute)

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        return self.load()(*arguments, **named)


class CommandEntry(NamedTuple):
    """A command of the command line."""

    command: Lazy
    section: str  # heading under which `bespeak --help` lists it
    summary: str


class KnownCommand(NamedTuple):
    """A command of an extension; it is in `commands.py` of its folder, under its name."""

    name: str
    section: str = ""
    summary: str = ""
    after: str = ""  # command that `bespeak --help` lists before it
    below: str = ""  # group that it belongs to; empty for one of `bespeak` itself


class KnownExtension(NamedTuple):
    """An entry of the table."""

    name: str
    methods: tuple[str, ...] = ()  # standard methods that it carries out
    floor: Mapping[str, str] = _NONE  # floor methods that it carries out, and the handler of each as `module:function`
    hooks: Mapping[str, str] = _NONE  # functions for what the kernel asks, by names in `runtime.extension`
    needed_by: tuple[str, ...] = ("methods",)
    """What makes a server load it: any standard `methods`, a `store`, `delivery`, `people`, `negotiation`, `semantic`,
    `data`, `files` or a `language_model`.

    A server with one standard method has the extensions of all, because what an agent began with another must go on.
    """
    tables: Mapping[str, str] = _NONE  # tables of bespeak.toml that it reads, and the settings type of each
    commands: tuple[KnownCommand, ...] = ()
    rules: tuple[str, ...] = ()  # its modules that declare rules
    lints: str = ""  # function that checks the endpoints of a deployment for `bespeak lint`, as `module:function`
    has_tables: bool = False  # True if its folder has a tables.sql

    @property
    def value(self) -> Lazy:
        return self.lazy(f"extension:{self.name}")

    def module(self, name: str) -> ModuleType:
        """Import a module of its folder."""
        return import_module(f"{_ROOM}.{self.name}.{name}")

    def lazy(self, place: str) -> Lazy:
        """Return a value of its folder, named as `module:attribute`."""
        module, _, attribute = place.partition(":")
        return Lazy(f"{_ROOM}.{self.name}.{module}", attribute)


# What comes first is opened first and closed last, and its gates stand first.
BUNDLED: Final = (
    KnownExtension(
        "semantics",
        needed_by=("semantic",),
        tables={"semantic": "settings:SemanticSettings"},
        commands=(
            KnownCommand("semantic", "Check a contract", "Publish, register and align ontologies.", after="diff"),
        ),
        has_tables=True,
        rules=("rules",),
        lints="linting:check_concepts",
    ),
    KnownExtension(
        "payments",
        methods=("PURCHASE",),
        hooks={
            "record PURCHASE": "gate:recorded_merchant",
            "spent": "gate:spent_by",
            "price PURCHASE": "methods:quote_price",
        },
        tables={"payments": "settings:PaymentSettings"},
        has_tables=True,
        commands=(KnownCommand("ledger", below="store"),),
    ),
    KnownExtension(
        "negotiation",
        needed_by=("negotiation",),
        floor={"PROPOSE": "methods:propose"},
        tables={"negotiation": "settings:NegotiationSettings"},
        has_tables=True,
        commands=(
            KnownCommand(
                "proposals", "Run a service", "Approve, publish and promote proposed endpoints.", after="cases"
            ),
        ),
        hooks={"inspect synthesis": "methods:inspect_synthesis", "release synthesis": "methods:release_synthesis"},
    ),
    KnownExtension(
        "messages",
        needed_by=("methods", "delivery", "people"),
        methods=("PUBLISH", "ALERT", "BROADCAST", "REPLY", "SEND"),
        floor={"NOTIFY": "methods_send:notify"},
        tables={"delivery": "settings:DeliverySettings", "people": "settings:PeopleSettings"},
        hooks={
            "confirm messages": "methods_inbox:confirm_received",
            "announce": "message:announce",
            "ask person": "people:ask_person",
            "hand over": "delegations:hand_over",
        },
    ),
    KnownExtension(
        "queues",
        methods=("SUBMIT", "PULL"),
        hooks={"enqueue": "queues:enqueue"},
        has_tables=True,
        commands=(
            KnownCommand(
                "queues", "Run a service", "Show the items of queues, and try dead ones again.", after="workflows"
            ),
        ),
    ),
    KnownExtension(
        "workflows",
        methods=("CHAIN", "BATCH", "PAUSE", "RUN"),
        floor={"PLAN": "methods_execute:plan", "EXECUTE": "methods_execute:execute"},
        hooks={"resume": "methods:resume_own", "list calls": "methods:list_calls"},
        needed_by=("store", "methods"),
        has_tables=True,
        commands=(
            KnownCommand("workflows", "Run a service", "Show, pause, resume and cancel workflows.", after="proposals"),
        ),
    ),
    KnownExtension(
        "entities",
        methods=("REGISTER", "AUTHORIZE", "CANCEL", "SIGN", "TRANSFER", "LOG"),
        hooks={"cancel": "methods_cancel:revoke", "collect entities": "collection:collect_entities"},
        has_tables=True,
    ),
    KnownExtension(
        "data",
        needed_by=("data",),
        hooks={"collect data": "collection:collect_data", "query rows": "collection:query_rows"},
    ),
    KnownExtension(
        "acquire",
        methods=("FETCH", "SEARCH", "SCAN", "FIND", "ANALYZE"),
        hooks={"collect resources": "resources:collect_resources"},
        has_tables=True,
    ),
    KnownExtension(
        "compute",
        needed_by=("methods", "language_model"),
        methods=(
            *("EXTRACT", "FILTER", "VALIDATE", "TRANSFORM", "TRANSLATE", "NORMALIZE", "PREDICT"),
            *("RANK", "CLASSIFY", "CALCULATE", "EVALUATE", "GENERATE", "RECOMMEND"),
        ),
        floor={"SUMMARIZE": "summarize:summarize"},
        tables={"language_model": "extension:LanguageModelSettings"},
    ),
    KnownExtension(
        "integrate",
        methods=("MERGE", "LINK", "SYNC", "IMPORT", "MAP", "CONNECT", "EMBED"),
        tables={"connect": "settings:ConnectSettings"},
        hooks={
            "follow": "jobs:follow",
            "remove resources": "removal:remove_resources",
            "show links": "links:show_links",
            "unlink": "store:Unlink",
        },
        has_tables=True,
    ),
    KnownExtension("files", needed_by=("files",), tables={"files": "settings:FileSettings"}),
    KnownExtension("reports", methods=("REPORT",)),
    KnownExtension("monitors", methods=("QUOTE", "MONITOR", "ROUTE", "RETRY", "CHECK")),
)
"""The extensions in their order."""

TABLES: Final[Mapping[str, Lazy]] = {table: one.lazy(place) for one in BUNDLED for table, place in one.tables.items()}
"""Tables of bespeak.toml that extensions read, and the settings type of each."""

HOOKS: Final[Mapping[str, Callable[..., Any]]] = {
    name: known.lazy(place) for known in BUNDLED for name, place in known.hooks.items()
}  # what the kernel asks of extensions, by name
FLOOR_HANDLERS: Final[Mapping[str, Callable[..., Any]]] = {
    name: known.lazy(place) for known in BUNDLED for name, place in known.floor.items()
}  # handlers of floor methods that extensions carry out, by name. Each is imported at its first call.
