"""The exceptions bespeak raises: one root, few families. A refusal on the wire is a value, not an exception."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence


class BespeakError(Exception):
    """The root: catching it catches everything bespeak raises on purpose."""


class LocalProtocolError(BespeakError):
    """This side tried to send something the protocol does not allow."""


class RemoteProtocolError(BespeakError):
    """The peer sent bytes that are not AGTP, or stopped in the middle of a message."""


class ConfigError(BespeakError):
    """A configuration, a command or a target cannot be used; the message says where and what to do."""


class ContractError(BespeakError):
    """A contract is not valid. `findings` holds one Diagnostic for each thing that is wrong."""

    def __init__(self, message: str, findings: Sequence[object] = ()) -> None:
        self.message = message
        self.findings = tuple(findings)
        super().__init__("\n".join([message, *(f"  {finding}" for finding in self.findings)]))


class StoreError(BespeakError):
    """The store did not do what it was told: a fault, not a refusal."""


class StoreUnavailableError(StoreError):
    """The store cannot answer now; whether the last change took place is unknown until it can."""
