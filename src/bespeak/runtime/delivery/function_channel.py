"""Channels of the operator: functions that deliver to addresses like `sms:+4930123456`."""

from __future__ import annotations

import inspect
import logging
from collections.abc import Callable, Mapping
from typing import Any, Final

import msgspec

from bespeak.contract.refusal import Refusal
from bespeak.runtime.bindings.function import describe_failure
from bespeak.runtime.delivery.channel import Delivered, Outcome, Retry, Undeliverable
from bespeak.runtime.delivery.posting import Posting
from bespeak.runtime.threads import run_in_thread

_logger = logging.getLogger(__name__)

_LONGEST: Final = 1000


class FunctionChannel:
    """Calls `function(recipient, letter)`.

    The letter is what a webhook would receive. A mapping or None means that it is delivered; Refusal that it cannot be;
    any other exception that it may be tried again. Delivered, Retry and Undeliverable may be returned as well. A
    function that is not async runs in a thread, which outlives the attempt if the function does not return in time.
    """

    def __init__(self, name: str, function: Callable[..., Any], server_id: str) -> None:
        self._name = name
        self._function = function
        self._server_id = server_id

    def locate(self, address: str) -> str | Undeliverable:
        """Return an empty text: such addresses have no domain."""
        recipient = self._recipient(address)
        usable = 0 < len(recipient) <= _LONGEST and recipient.isprintable()
        return "" if usable else Undeliverable(f"{recipient[:80]!r} is not a valid address for {self._name}.")

    async def deliver(self, address: str, posting: Posting) -> Outcome:
        """Call the function."""
        arguments = self._recipient(address), posting.letter(address, self._server_id)
        try:
            if inspect.iscoroutinefunction(self._function):
                result = await self._function(*arguments)
            else:
                result = await run_in_thread(self._function, *arguments)
        except Refusal as refusal:
            return Undeliverable(f"{self._name} refuses the message: {refusal.message or refusal.name}.")
        except Exception as error:  # noqa: BLE001 - an operator's function may fail in any way
            _logger.warning("%s", describe_failure(f"the channel {self._name}", error))
            return Retry(f"{self._name} failed.")
        if isinstance(result, Delivered | Retry | Undeliverable):
            return result
        return Delivered(self._confirmation(result) if isinstance(result, Mapping) else {})

    def _confirmation(self, result: Mapping[Any, Any]) -> dict[str, Any]:
        try:
            told: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(result))
        except (TypeError, ValueError, RecursionError) as error:
            _logger.warning("the confirmation of the channel %s cannot be written as JSON: %s", self._name, error)
            return {}
        return told

    def _recipient(self, address: str) -> str:
        return address[len(self._name) + 1 :]
