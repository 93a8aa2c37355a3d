"""Outcome of a call to an upstream: an output that keeps its schema, or a declared error (AGTP-API 12.3)."""

from __future__ import annotations

import logging
from typing import Any, Final

import msgspec

from bespeak.contract.endpoint import Endpoint
from bespeak.contract.schema.validation import Validator
from bespeak.protocol import status
from bespeak.protocol.address_guard import describe_failure
from bespeak.protocol.exchange.refusal import Refused
from bespeak.runtime.answer import Answer

_logger = logging.getLogger(__name__)

OUTPUT_INVALID: Final = "upstream-output-invalid"
"""Code for an upstream's answer that breaks the output schema. The upstream has carried the call out."""

MAX_RESPONSE_BYTES: Final = 8 * 1024 * 1024  # maximum size of an upstream response; the draft sets no limit
_SHOWN: Final = 5  # places of violations in the log


class UpstreamOutcome:
    def __init__(self, endpoint: Endpoint, output: Validator | None, *, trusts: bool) -> None:
        """Judge the answers by `output`; with `trusts`, invalid ones are logged and passed on."""
        self._endpoint = endpoint
        self._output = output
        self._trusts = trusts
        self._aftermath = _aftermath(endpoint)

    def check(self, output: Any, answered: str, upstream_status: int | None = None) -> Any:
        """Return a valid output. Refuse an invalid one as final: a server error would invite a second call."""
        if self._output is None or self._output.is_valid(output):
            return output
        violations = self._output.violations(output)
        places = ", ".join(dict.fromkeys(one.schema_pointer or f"/{one.keyword}" for one in violations[:_SHOWN]))
        if self._trusts:
            _logger.warning("%s: the answer of the upstream breaks the output schema at %s", self._endpoint, places)
            return Answer(msgspec.json.encode(output))
        message = f"{answered}, but its answer breaks the output schema of {self._endpoint}."
        return self.failed(OUTPUT_INVALID, message, upstream_status, cause=f"at {places}", took_effect=True)

    def failed(
        self,
        name: str,
        message: str,
        upstream_status: int | None = None,
        *,
        cause: BaseException | str | None = None,
        took_effect: bool = False,
    ) -> Refused:
        """Build the refusal for a failed call. `took_effect` is True if the upstream may have carried it out."""
        # The cause may name the upstream's host, which must not be disclosed (core 10.1, item 12).
        why = describe_failure(cause) if isinstance(cause, BaseException) else cause or message
        _logger.warning("%s: %s: %s", self._endpoint, name, why)
        details: dict[str, Any] = {} if upstream_status is None else {"upstream_status": upstream_status}
        if took_effect and self._aftermath:
            details["effect"] = "possible"
            message += self._aftermath
        return Refused(status.UNPROCESSABLE, name, message, {"details": details} if details else {})


def _aftermath(endpoint: Endpoint) -> str:
    """Return what a caller must know after a call whose result is unclear."""
    if endpoint.semantic.impact == "informational":
        return ""
    if endpoint.semantic.is_idempotent:
        return " The call may have taken effect; it is idempotent and may be repeated."
    return " The call may have taken effect: do not repeat it without the same Idempotency-Key."
