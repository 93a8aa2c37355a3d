"""Standard methods that this release carries out: the handler of each, and what is done later for it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, Final

from bespeak.contract.standard.methods import STANDARD
from bespeak.runtime.background import Carry
from bespeak.runtime.composition.step import StepTaker
from bespeak.runtime.entities.methods import authorize, log, register, sign, transfer
from bespeak.runtime.entities.methods_cancel import cancel
from bespeak.runtime.messages.fanout import Fanout
from bespeak.runtime.messages.message import BROADCAST, NOTIFICATION, PUBLICATION
from bespeak.runtime.messages.methods_broadcast import alert, broadcast, publish
from bespeak.runtime.messages.methods_inbox import reply
from bespeak.runtime.messages.methods_send import send, submit
from bespeak.runtime.methods.suspension import resume
from bespeak.runtime.monitors.methods import check, monitor, retry
from bespeak.runtime.monitors.methods_quote import quote
from bespeak.runtime.monitors.methods_route import route
from bespeak.runtime.payments.methods import purchase
from bespeak.runtime.payments.purchases import PURCHASE
from bespeak.runtime.reports.methods import report
from bespeak.runtime.workflows.methods import batch, chain, pause, run
from bespeak.state.store.commands.messages import ALERT
from bespeak.state.store.commands.monitors import KEPT_CALL as CALL
from bespeak.state.store.commands.monitors import MONITOR
from bespeak.state.store.commands.steps import WORKFLOW

if TYPE_CHECKING:
    from bespeak.runtime.server import Server

HANDLERS: Final[Mapping[str, Callable[..., Any]]] = {
    "QUOTE": quote,
    "REGISTER": register,
    "SUBMIT": submit,
    "AUTHORIZE": authorize,
    "CANCEL": cancel,
    "PURCHASE": purchase,
    "SIGN": sign,
    "TRANSFER": transfer,
    "LOG": log,
    "PUBLISH": publish,
    "ALERT": alert,
    "BROADCAST": broadcast,
    "REPLY": reply,
    "REPORT": report,
    "SEND": send,
    "CHAIN": chain,
    "BATCH": batch,
    "MONITOR": monitor,
    "ROUTE": StepTaker(route),
    "PAUSE": pause,
    "RESUME": resume,
    "RUN": run,
    "RETRY": retry,
    "CHECK": check,
}
"""Handler of each method, by its name."""

DUE: Final[Mapping[str, Callable[[Server], Carry]]] = {
    WORKFLOW: lambda server: server.workflows.take_over,
    MONITOR: lambda server: server.monitors.carry,
    PURCHASE: lambda server: server.payments.carry,
    CALL: lambda server: server.retries.carry,
    **dict.fromkeys((NOTIFICATION, BROADCAST, PUBLICATION, ALERT), lambda server: Fanout(server).carry),
}
"""For each kind of record that something is due of: what makes the function that does it."""


def implemented(names: Iterable[str]) -> list[str]:
    """Return those of the standard methods that have a handler, in the order of the draft."""
    wanted = set(names)
    return [name for name in STANDARD if name in wanted and name in HANDLERS]
