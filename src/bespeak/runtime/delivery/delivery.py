"""Delivery: the channels of a server, and whom they may be used for."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from typing import Final

from bespeak.contract.delivery import DeliverySettings, SmtpSettings
from bespeak.errors import ConfigError
from bespeak.protocol.address_guard import AddressGuard, Resolver
from bespeak.protocol.allowed_hosts import AllowedHosts
from bespeak.protocol.wire.messages import ResponseMessage
from bespeak.runtime.bindings.function import resolve_function
from bespeak.runtime.delivery.agtp_notice import AgtpNotice
from bespeak.runtime.delivery.channel import Channel, Outcome, Retry, Undeliverable
from bespeak.runtime.delivery.function_channel import FunctionChannel
from bespeak.runtime.delivery.posting import Posting
from bespeak.runtime.delivery.webhook import Webhook
from bespeak.runtime.signer import Signer

_logger = logging.getLogger(__name__)

_MOST_AT_ONCE: Final = 32
"""Attempts that callers wait for, in one process."""


class Delivery:
    """Delivers to addresses outside.

    Private addresses are refused unless the operator allows them. A name is resolved once for each attempt, and the
    connection uses exactly the addresses that were checked.
    """

    def __init__(
        self,
        settings: DeliverySettings | None,
        *,
        server_id: str,
        signer: Signer | None = None,
        environment: Mapping[str, str] | None = None,
        resolve: Resolver | None = None,
    ) -> None:
        """Open the channels. Raises ConfigError if one of them cannot work."""
        self.is_configured = settings is not None
        """True if the operator has chosen to send messages."""
        self.settings = settings = settings or DeliverySettings()
        self._places = asyncio.Semaphore(_MOST_AT_ONCE)
        allowed = AllowedHosts(settings.allow)
        guard = AddressGuard(allowed, networks=allowed.networks, resolve=resolve)
        web = Webhook(guard, allowed, settings.ca_file, server_id, signer)
        self._notice = AgtpNotice(guard, settings.ca_file, server_id, settings.agent_id, signer)
        self._channels: dict[str, Channel] = {"https": web, "http": web, "agtp": self._notice}
        if settings.smtp is not None:
            self._channels["mailto"] = _open_mail(
                settings.smtp, settings, server_id, {} if environment is None else environment
            )
        for name, dotted in settings.channels.items():
            function = resolve_function(dotted)
            if isinstance(function, str):
                raise ConfigError(f"[delivery.channels] {name}: {dotted!r} cannot be used: {function}")
            self._channels[name] = FunctionChannel(name, function, server_id)

    def has(self, scheme: str) -> bool:
        """Return True if there is a channel for addresses of a scheme."""
        return scheme in self._channels

    def locate(self, address: str) -> str | Undeliverable:
        """Return the domain of an address that a channel takes, or why none does."""
        channel = self._channels.get(_scheme(address))
        if channel is None:
            return Undeliverable("This server has no channel for such addresses.")
        return channel.locate(address)

    def takes(self, address: str) -> bool:
        """Return True if a channel takes the address, and agents may send to it without its consent."""
        return not isinstance(self.locate(address), Undeliverable) and self.permits(address)

    def permits(self, address: str) -> bool:
        """Return True if the operator lists the address, or its domain, as a recipient of whatever agents send."""
        domain = self.locate(address)
        if isinstance(domain, Undeliverable):
            return False
        bare = address.partition(":")[2].lower()
        for entry in self.settings.recipients:
            below = entry.startswith("*.") and domain.endswith(entry[1:])
            if entry == "*" or below or entry in (address.lower(), bare) or (domain and entry == domain):
                return True
        return False

    async def try_now(self, address: str, posting: Posting, seconds: float) -> Outcome:
        """Make one attempt while a caller waits. Only some can be made at a time, whatever the receivers do."""
        try:
            async with asyncio.timeout(seconds), self._places:
                return await self.deliver(address, posting)
        except TimeoutError:
            return Retry(f"The receiver did not answer within {seconds:g} s.")

    async def call(
        self, address: str, method: str, path: str, task_id: str, body: bytes
    ) -> ResponseMessage | Retry | Undeliverable:
        """Call an endpoint of an AGTP server that the operator lists, under the server's own identity."""
        if _scheme(address) != "agtp" or not self.takes(address):
            return Undeliverable("The operator does not list the address as a recipient.")
        seconds = self.settings.timeout
        try:
            async with asyncio.timeout(seconds), self._places:
                return await self._notice.request(address, method, path, task_id, body)
        except TimeoutError:
            return Retry(f"The receiver did not answer within {seconds:g} s.", sent=True)

    async def deliver(self, address: str, posting: Posting) -> Outcome:
        """Make one attempt, in bounded time. It never raises."""
        channel = self._channels.get(_scheme(address))
        if channel is None:
            return Undeliverable("This server has no channel for such addresses.")
        try:
            async with asyncio.timeout(self.settings.timeout):
                return await channel.deliver(address, posting)
        except TimeoutError:
            return Retry(f"The receiver did not answer within {self.settings.timeout:g} s.")
        except Exception as error:  # one posting must not end the delivery of the others
            _logger.error("delivery of %s failed", posting.posting_id, exc_info=error)
            return Retry("The attempt failed in this server.")


def _open_mail(
    smtp: SmtpSettings, settings: DeliverySettings, server_id: str, environment: Mapping[str, str]
) -> Channel:
    try:
        from bespeak.runtime.delivery.mail import Mail  # noqa: PLC0415 - an extra
    except ModuleNotFoundError as error:
        raise ConfigError("[delivery.smtp] needs aiosmtplib: pip install 'bespeak[mail]'") from error
    password = None
    if smtp.password is not None:
        password = environment.get(smtp.password)
        if password is None:
            raise ConfigError(f"[delivery.smtp] password: the variable {smtp.password} is not set")
    return Mail(smtp, password, server_id, settings.ca_file)


def _scheme(address: str) -> str:
    return address.partition(":")[0].lower()
