"""Standard methods that this release carries out: the handler of each, and what is done later for it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, Final

from bespeak.contract.standard.methods import STANDARD
from bespeak.runtime.composition.step import StepTaker
from bespeak.runtime.due import Carry
from bespeak.runtime.messages.fanout import Fanout
from bespeak.runtime.messages.origin import BROADCAST, NOTIFICATION, PUBLICATION
from bespeak.runtime.methods.communicate.alert import alert
from bespeak.runtime.methods.communicate.broadcast import broadcast
from bespeak.runtime.methods.communicate.reply import reply
from bespeak.runtime.methods.communicate.report import report
from bespeak.runtime.methods.communicate.send import send
from bespeak.runtime.methods.orchestrate.batch import batch
from bespeak.runtime.methods.orchestrate.chain import chain
from bespeak.runtime.methods.orchestrate.check import check
from bespeak.runtime.methods.orchestrate.monitor import monitor
from bespeak.runtime.methods.orchestrate.pause import pause
from bespeak.runtime.methods.orchestrate.retry import retry
from bespeak.runtime.methods.orchestrate.route import route
from bespeak.runtime.methods.orchestrate.run import run
from bespeak.runtime.methods.resume import resume
from bespeak.runtime.methods.transact.authorize import authorize
from bespeak.runtime.methods.transact.cancel import cancel
from bespeak.runtime.methods.transact.log import log
from bespeak.runtime.methods.transact.publish import publish
from bespeak.runtime.methods.transact.purchase import purchase
from bespeak.runtime.methods.transact.quote import quote
from bespeak.runtime.methods.transact.register import register
from bespeak.runtime.methods.transact.sign import sign
from bespeak.runtime.methods.transact.submit import submit
from bespeak.runtime.methods.transact.transfer import transfer
from bespeak.runtime.payments.purchase import KIND as PURCHASE
from bespeak.state.store.commands.kept_calls import KIND as CALL
from bespeak.state.store.commands.messages import ALERT
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
