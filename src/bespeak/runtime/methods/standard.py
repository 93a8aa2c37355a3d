"""Standard methods that this release carries out: the handler of each, and what is done later for it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, Final

from bespeak.contract.standard.methods import STANDARD
from bespeak.runtime.due import Carry
from bespeak.runtime.methods.orchestrate.batch import batch
from bespeak.runtime.methods.orchestrate.chain import chain
from bespeak.runtime.methods.orchestrate.check import check
from bespeak.runtime.methods.orchestrate.pause import pause
from bespeak.runtime.methods.transact.authorize import authorize
from bespeak.runtime.methods.transact.cancel import cancel
from bespeak.runtime.methods.transact.log import log
from bespeak.runtime.methods.transact.quote import quote
from bespeak.runtime.methods.transact.register import register
from bespeak.runtime.methods.transact.sign import sign
from bespeak.runtime.methods.transact.submit import submit
from bespeak.runtime.methods.transact.transfer import transfer
from bespeak.state.store.commands.steps import WORKFLOW

if TYPE_CHECKING:
    from bespeak.runtime.server import Server

HANDLERS: Final[Mapping[str, Callable[..., Any]]] = {
    "QUOTE": quote,
    "REGISTER": register,
    "SUBMIT": submit,
    "AUTHORIZE": authorize,
    "CANCEL": cancel,
    "SIGN": sign,
    "TRANSFER": transfer,
    "LOG": log,
    "CHAIN": chain,
    "BATCH": batch,
    "PAUSE": pause,
    "CHECK": check,
}
"""Handler of each method, by its name."""

DUE: Final[Mapping[str, Callable[[Server], Carry]]] = {WORKFLOW: lambda server: server.workflows.take_over}
"""For each kind of record that something is due of: what makes the function that does it."""


def implemented(names: Iterable[str]) -> list[str]:
    """Return those of the standard methods that have a handler, in the order of the draft."""
    wanted = set(names)
    return [name for name in STANDARD if name in wanted and name in HANDLERS]
