"""Functions of the service that take part in standard methods: the worker of a queue, the price of a sale, a report."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Generic, Literal, TypeVar

import msgspec

from bespeak.contract.endpoint import Impact
from bespeak.contract.handler import Refusal
from bespeak.text.diagnostics.diagnostic import brief

CANCELS: Final = "cancels"  # kinds of participants
CHECKS: Final = "checks"
ENTITY: Final = "entity"
CHANNEL: Final = "channel"
SOURCE: Final = "source"  # role of the function of a channel that yields its items
SINK: Final = "sink"  # role of the function of a channel that takes one
UNKNOWN: Final = "target-not-found"  # error of CANCEL and CHECK that Unknown means
_NAME: Final = re.compile(r"[a-z0-9]+(?:[._-][a-z0-9]+)*")
_LONGEST_NAME: Final = 128
_TYPE: Final = re.compile(r"[a-z][a-z0-9_-]{0,63}")
OWN_TYPES: Final = ("channel", "subscription", "procedure")  # entity types that REGISTER knows without a declaration
Data = TypeVar("Data")
SOLD: Final = "sold"  # parameter of `fulfil` and `refund` of a sale that is the purchase


def is_name(text: str) -> bool:
    """Return True if the text can be the name of a participant or of a person."""
    return _NAME.fullmatch(text) is not None and len(text) <= _LONGEST_NAME


LETTER: Final = {  # what the function of a recipient can take, with an example of each
    "kind": "alert",
    "sender": "agent",
    "recipient": "front-desk",
    "subject": "Alert from an agent",
    "message": "text",
    "content": {"text": "text"},
    "severity": "critical",
    "reference": "alert-1",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class JoinedFunction:
    """One function of a participant. It is called in the authority of whoever calls the method."""

    function: Callable[..., Any]
    method: str  # standard method under which records and refusals name it
    impact: Impact = "irreversible"
    idempotent: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueOptions:
    """How the items of a queue are worked on."""

    concurrency: int  # items that one process works on at the same time
    retries: int  # attempts after the first one
    lease: float  # seconds after which another process takes the item of one that does not answer
    scopes: tuple[str, ...] = ()  # scopes that an agent needs to use the queue, also when its item is worked on

    def find_fault(self) -> str | None:
        """Return what is wrong with the options; None if they are valid."""
        for name, (least, most) in {"concurrency": (1, 1000), "retries": (0, 100), "lease": (1, 86400)}.items():
            value = getattr(self, name)
            if not least <= value <= most:
                return f"{name} must be {least} to {most}; got {value}"
        return None


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkflowOptions:
    """How long the runs of a workflow may take, and when they begin by themselves."""

    timeout: float  # seconds
    every: str | None = None  # schedule, such as `1 day at 02:00 Europe/Berlin`
    missed: str = "once"  # what is done about times that were missed: skip, once or all

    def find_fault(self) -> str | None:
        most = 366 * 86400
        return None if 0.1 <= self.timeout <= most else f"timeout must be 0.1 to {most} seconds; got {self.timeout}"


@dataclass(frozen=True, slots=True, kw_only=True)
class EntityOptions:
    """Who may register entities of a type."""

    scopes: tuple[str, ...] = ()


class Unknown(Refusal):
    """Raised by a function of `@app.cancels` or `@app.checks` that does not know an id; the next one is asked."""

    def __init__(self, message: str = "") -> None:
        super().__init__(UNKNOWN, message)


class EntityChange(msgspec.Struct, Generic[Data], frozen=True, kw_only=True):
    """What is about to become of an entity, for the hook of its type. `EntityChange[Employee]` has data of that type.

    The change and what the hook adds with `context` are one transaction; a Refusal stops it.
    """

    action: Literal["register", "transfer", "cancel"]
    entity_id: str
    entity_type: str
    owner: str  # owner before the change
    data: Data
    new_owner: str | None = None  # owner after a transfer
    reason: Any = None  # reason that the caller gave


class Price(msgspec.Struct, frozen=True):
    """An amount of money, such as `Price("120.00", "EUR")`. The value is a string: binary numbers lose cents."""

    value: str
    currency: str


class Sold(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A purchase, for `fulfil` and `refund` of a sale if they take a parameter `sold`."""

    purchase_id: str
    key: str
    """Idempotency-Key for effects outside the store: the same in every attempt."""
    principal_id: str
    price: Price
    asked: Price
    """Amount that the buyer wants back when it cancels; the price before, and if it leaves a part to the seller."""
    item: Any = None
    """What `fulfil` has returned; None before."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Participant:
    """What a service brings to standard methods under one name."""

    kind: str  # what it is: queue, sale, report and so on
    name: str
    functions: Mapping[str, JoinedFunction]  # by what each is for: price, fulfil, refund
    methods: tuple[str, ...] = ()  # standard methods that the service offers because of it
    description: str = ""
    scopes: tuple[str, ...] = ()  # scopes that its functions take beside those of the method
    errors: Mapping[str, str] = field(
        default_factory=dict
    )  # names of the errors that it refuses with, and what they mean
    options: Any = None  # settings of its kind
    overrides: Mapping[Any, Callable[..., Any]] | None = field(default=None, compare=False, repr=False)  # for tests

    def find_fault(self, others: Iterable[Participant]) -> str | None:
        """Return what is wrong with its name or its options; None if they are valid."""
        if self.kind == ENTITY and (self.name in OWN_TYPES or _TYPE.fullmatch(self.name) is None):
            form = f"up to 64 lower-case letters, digits, _ and -, and none of {', '.join(OWN_TYPES)}"
            return f"the name must be {form}; got {brief(self.name)}"
        if not is_name(self.name):
            return f"the name must be lower-case words joined by . _ or -; got {brief(self.name)}"
        if any((one.kind, one.name) == (self.kind, self.name) for one in others):
            return f"another {self.kind} has its name"
        return self.options.find_fault() if isinstance(self.options, QueueOptions) else None
