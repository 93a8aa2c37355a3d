"""Sources of data at web addresses: fetched through the guard of deliveries, in bounded size and time."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import TYPE_CHECKING, Final

from bespeak.contract.standard.definition import StandardMethod
from bespeak.extensions.messages.transports import Undeliverable
from bespeak.protocol import status
from bespeak.protocol.address_guard import (
    BlockedAddressError,
    PinnedTransport,
    WebAddress,
    describe_failure,
    resolve_address,
)
from bespeak.runtime.call import RoutedCall
from bespeak.runtime.handling import RefusedError, refusal

if TYPE_CHECKING:
    import httpx

_MOST_REDIRECTS: Final = 5
_PATIENCE: Final = 30.0  # seconds for each part of an answer
_MOVED: Final = frozenset({301, 302, 303, 307, 308})


def check_address(call: RoutedCall, method: StandardMethod, address: str) -> WebAddress:
    """Return an address that may be fetched. Plain http is only for hosts that `[delivery] allow` has."""
    delivery = call.server.part("delivery")
    parsed = Undeliverable("This server fetches nothing.") if delivery is None else delivery.web.parse(address)
    if isinstance(parsed, Undeliverable):
        raise _wrong(method, parsed.message)
    found: WebAddress = parsed
    return found


async def fetch_source(
    call: RoutedCall, method: StandardMethod, address: str, size: int, most: int
) -> AsyncGenerator[tuple[bytes, int | None]]:
    """Yield the content at an address in parts of a size, each with the number of all bytes if the server tells it.

    Raises RefusedError: 503, which may pass, or `invalid-source`. It must be closed.
    """
    import httpx  # noqa: PLC0415 - slow to load

    transport = call.server.part("delivery").web.open()
    try:
        response = await _get(call, method, transport, address)
        told = response.headers.get("content-length", "")
        total = int(told) if told.isdecimal() and len(told) < 16 else None
        fetched, part = 0, bytearray()
        async with aclosing(response.aiter_raw(size)) as pieces:  # type: ignore[type-var]
            while True:
                async with asyncio.timeout(_PATIENCE):
                    piece = await anext(pieces, b"")
                fetched += len(piece)
                part += piece
                if max(fetched, total or 0) > most:
                    raise _wrong(method, f"The source must have at most {most >> 20} MiB.")
                if part and (len(part) >= size or not piece):
                    yield bytes(part), total
                    part.clear()
                if not piece:
                    return
    except BlockedAddressError as error:
        if not error.blocked.found:
            raise _unavailable("its name cannot be resolved") from None
        raise _wrong(method, "The address is not public, and the operator does not allow it.") from None
    except TimeoutError:
        raise _unavailable(f"its server did not answer within {_PATIENCE:g} s") from None
    except (httpx.TransportError, OSError) as error:
        raise _unavailable(describe_failure(error)) from None
    finally:
        await transport.close()


async def _get(call: RoutedCall, method: StandardMethod, transport: PinnedTransport, address: str) -> httpx.Response:
    """Return a good answer, whose body is still to be read."""
    place = check_address(call, method, address)
    for _ in range(_MOST_REDIRECTS + 1):
        headers = {"Accept": "*/*", "Accept-Encoding": "identity", "User-Agent": "bespeak"}
        async with asyncio.timeout(_PATIENCE):
            response = await transport.send("GET", place, headers)
        if response.status_code not in _MOVED:
            break
        await response.aclose()
        moved = resolve_address(response.headers.get("location", ""), place, insecure=True)
        place = check_address(call, method, str(moved) if isinstance(moved, WebAddress) else "")
    else:
        raise _wrong(method, f"The source was redirected more than {_MOST_REDIRECTS} times.")
    number, coding = response.status_code, response.headers.get("content-encoding", "identity")
    if number >= 500 or number == status.RATE_LIMITED:
        raise _unavailable(f"its server answered {number}")
    if number != status.OK:
        raise _wrong(method, f"The server of the source answered {number}.")
    if coding != "identity":
        raise _wrong(method, f"The source has the encoding {coding[:40]!r}, which was not asked for.")
    return response


def _wrong(method: StandardMethod, message: str) -> RefusedError:
    return refusal(method, "invalid-source", message, field="/source")


def _unavailable(why: str) -> RefusedError:
    return refusal(status.UNAVAILABLE, "source-unavailable", f"The source could not be read: {why}.")
