"""Functions of the service that take part in standard methods: the worker of a queue, the price of a sale, a report."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from bespeak.contract.endpoint import Impact
from bespeak.text.diagnostics.diagnostic import brief

_NAME: Final = re.compile(r"[a-z0-9]+(?:[._-][a-z0-9]+)*")
_LONGEST_NAME: Final = 128


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
        bounds = {"concurrency": (1, 1000), "retries": (0, 100), "lease": (1, 86400)}
        for name, (least, most) in bounds.items():
            value = getattr(self, name)
            if not least <= value <= most:
                return f"{name} must be {least} to {most}; got {value}"
        return None


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkflowOptions:
    """How long the runs of a workflow may take."""

    timeout: float  # seconds

    def find_fault(self) -> str | None:
        most = 366 * 86400
        return None if 0.1 <= self.timeout <= most else f"timeout must be 0.1 to {most} seconds; got {self.timeout}"


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
        """Return what is wrong with its name; None if it is valid."""
        if _NAME.fullmatch(self.name) is None or len(self.name) > _LONGEST_NAME:
            return f"the name must be lower-case words joined by . _ or -; got {brief(self.name)}"
        if any((one.kind, one.name) == (self.kind, self.name) for one in others):
            return f"another {self.kind} has its name"
        return None
