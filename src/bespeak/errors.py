"""Exceptions that bespeak raises, all under one root. A refusal on the wire is a value, not an exception."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence


class BespeakError(Exception):
    """Base class of all exceptions that bespeak raises on purpose."""


class LocalProtocolError(BespeakError):
    """This side tried to send a message that the protocol does not allow."""


class RemoteProtocolError(BespeakError):
    """The peer sent bytes that are not valid AGTP, or closed the connection within a message."""


class ConfigError(BespeakError):
    """A configuration, an argument or a target is not valid. The message says where and what to do."""


class ContractError(BespeakError):
    """A contract is not valid. `findings` has one Diagnostic for each mistake."""

    def __init__(self, message: str, findings: Sequence[object] = ()) -> None:
        self.message = message
        self.findings = tuple(findings)
        super().__init__("\n".join([message, *(f"  {finding}" for finding in self.findings)]))


class StoreError(BespeakError):
    """The store failed: a fault, not a refusal."""


class StoreUnavailableError(StoreError):
    """The store is temporarily unavailable. It is unknown whether the last change was committed."""


class DataSourceError(BespeakError):
    """A source of data cannot be read. The message is for the operator."""
