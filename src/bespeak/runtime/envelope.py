"""The envelope of a body (core 5.2): its task and session count like the headers of the same name."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import Any, Final

import msgspec

from bespeak.protocol import status
from bespeak.protocol.exchange.headers import SESSION_ID, TASK_ID
from bespeak.protocol.exchange.refusal import Refused
from bespeak.protocol.exchange.session_id import is_session_id
from bespeak.protocol.exchange.task_id import is_task_id
from bespeak.runtime.call import RoutedCall

_logger = logging.getLogger(__name__)

_IDS: Final[tuple[tuple[str, str, Callable[[str], bool]], ...]] = (
    ("task_id", TASK_ID, is_task_id),
    ("session_id", SESSION_ID, is_session_id),
)
_SHARED: Final = ("context", "task_id", "session_id")


def open_envelope(
    call: RoutedCall, envelope: Mapping[str, Any], parameters: dict[str, Any] | None = None
) -> Refused | None:
    """Take over what an envelope says beside its parameters, or refuse it.

    Headers win over the envelope; core 9 wants a difference to be logged. Built-in methods whose own parameters have
    these names find them in `parameters`.
    """
    headers = call.request.headers
    added = {}
    for member, header, is_valid in _IDS:
        given = envelope.get(member)
        if given is None:
            continue
        if not isinstance(given, str) or not is_valid(given):
            message = f"`{member}` in the body is not valid as the header {header.title().replace('Id', 'ID')}."
            return Refused(status.BAD_REQUEST, f"invalid-{header}", message, {"field": f"/{member}"})
        if header not in headers:
            added[header] = given
        elif headers[header] != given:
            _logger.warning("%s in a body differs from the header, which counts: %s", member, call.route.endpoint)
    if added:
        # Requests may share their headers, so they are never changed.
        call.request = msgspec.structs.replace(call.request, headers={**headers, **added})
    if parameters is not None and call.route.builtin:
        declared = call.route.endpoint.input_schema["properties"]
        for member in _SHARED:
            if member in declared and envelope.get(member) is not None:
                parameters.setdefault(member, envelope[member])
    return None
