"""The extensions that bespeak brings: what is known of each without importing it.

Adding one is a folder and an entry here. A module of an extension is imported only when a server needs it or one of
its methods is called, so this table names modules by text.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import import_module
from types import MappingProxyType
from typing import Any, Final, NamedTuple

_ROOM: Final = "bespeak.extensions"
_NONE: Final[Mapping[str, str]] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Lazy:
    """A name in a module that is imported when it is used."""

    module: str
    attribute: str

    def load(self) -> Any:
        """Import the module and return the value."""
        return getattr(import_module(self.module), self.attribute)

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        """Call it."""
        return self.load()(*arguments, **named)


class KnownExtension(NamedTuple):
    """An entry of the table."""

    name: str
    methods: tuple[str, ...] = ()  # standard methods that it carries out
    floor: Mapping[str, str] = _NONE  # floor methods that it carries out, and the handler of each as `module:function`
    hooks: Mapping[str, str] = _NONE
    """What the kernel asks of it, by the names in `runtime.extension`, and the function for each."""
    needed_by: tuple[str, ...] = ("methods",)
    """What makes a server load it: any standard `methods`, a `store`, `delivery`, `negotiation`, a `semantic` layer.

    A server with one standard method has the extensions of all, because what an agent began with another must go on.
    """

    @property
    def value(self) -> Lazy:
        """The `Extension` itself."""
        return self.lazy(f"extension:{self.name}")

    def lazy(self, place: str) -> Lazy:
        """Return a value of its folder, named as `module:attribute`."""
        module, _, attribute = place.partition(":")
        return Lazy(f"{_ROOM}.{self.name}.{module}", attribute)


# What comes first is opened first and closed last, and its gates stand first.
BUNDLED: Final = (
    KnownExtension("semantics", needed_by=("semantic",)),
    KnownExtension(
        "payments",
        methods=("PURCHASE",),
        hooks={"record PURCHASE": "gate:recorded_merchant", "spent": "gate:spent_by"},
    ),
    KnownExtension(
        "negotiation",
        needed_by=("negotiation",),
        floor={"PROPOSE": "methods:propose"},
        hooks={"describe synthesis": "outcome:describe_synthesis"},
    ),
    KnownExtension(
        "messages",
        needed_by=("methods", "delivery"),
        methods=("SUBMIT", "PUBLISH", "ALERT", "BROADCAST", "REPLY", "SEND"),
        floor={"NOTIFY": "methods_notify:notify"},
        hooks={"confirm messages": "methods_inbox:confirm_received", "announce": "message:announce"},
    ),
    KnownExtension(
        "workflows",
        methods=("CHAIN", "BATCH", "PAUSE", "RUN"),
        floor={"PLAN": "methods_plan:plan", "EXECUTE": "methods_execute:execute"},
        hooks={"resume": "methods:resume_own", "list calls": "listed_calls:list_calls"},
        needed_by=("store", "methods"),
    ),
    KnownExtension(
        "entities",
        methods=("REGISTER", "AUTHORIZE", "CANCEL", "SIGN", "TRANSFER", "LOG"),
        hooks={"cancel": "methods_cancel:revoke"},
    ),
    KnownExtension("reports", methods=("REPORT",)),
    KnownExtension("monitors", methods=("QUOTE", "MONITOR", "ROUTE", "RETRY", "CHECK")),
)
"""The extensions in their order."""

HOOKS: Final[Mapping[str, Callable[..., Any]]] = {
    name: known.lazy(place) for known in BUNDLED for name, place in known.hooks.items()
}
"""What the kernel asks of extensions, by name."""
FLOOR_HANDLERS: Final[Mapping[str, Callable[..., Any]]] = {
    name: known.lazy(place) for known in BUNDLED for name, place in known.floor.items()
}
"""Handlers of floor methods that extensions carry out, by name. Each is imported at its first call."""
