"""What the log says of a request: names, ids and numbers, never a value that the caller sent."""

from __future__ import annotations

import logging
from collections.abc import Coroutine
from typing import Any, Final

from bespeak.protocol.exchange.messages import Connection, Malformed, Request, Response
from bespeak.runtime.call import Call
from bespeak.runtime.dispatcher import Dispatcher
from bespeak.runtime.particulars import caller_of, particulars
from bespeak.runtime.registry import Registry

LOGGER: Final = "bespeak.access"

_logger = logging.getLogger(LOGGER)


class AccessLog:
    """A dispatcher that writes one line for each answer. Where nobody wants those lines it is not put in between."""

    def __init__(self, dispatcher: Dispatcher, registry: Registry) -> None:
        self._dispatcher = dispatcher
        self._registry = registry

    @staticmethod
    def wanted() -> bool:
        """Whether the lines would be written at all."""
        return _logger.isEnabledFor(logging.DEBUG)

    def __call__(self, request: Request) -> Response | Coroutine[Any, Any, Response]:
        """Answer a request, and say so."""
        call = Call(request, self._registry)
        answer = self._dispatcher(request, call=call)
        if not isinstance(answer, Response):
            return self._wait(call, answer)
        _tell(call, answer)
        return answer

    async def _wait(self, call: Call, waiting: Coroutine[Any, Any, Response]) -> Response:
        answer = await waiting
        _tell(call, answer)
        return answer

    def malformed(self, fault: Malformed, connection: Connection) -> Response:
        """Answer bytes that were no request; the dispatcher says so."""
        return self._dispatcher.malformed(fault, connection)


def _tell(call: Call, answer: Response) -> None:
    told = particulars(call, answer.status, answer.headers)
    args = (answer.status, told["method"], told["path"], caller_of(told))
    _logger.debug("%d %s %s by %s", *args, extra={"particulars": told})
