"""Link headers (RFC 8288) that point to the description of a service (RFC 8631)."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from bespeak.agent.discovery.fetched import Fetched
from bespeak.protocol.web_address import AddressFault, parse_address, resolve_address

_LINK: Final = re.compile(r"<([^<>]{1,2048})>([^<,]{0,500}(?:\"[^\"]{0,500}\"[^<,]{0,500}){0,8})")
_REL: Final = re.compile(r";\s*rel\s*=\s*(?:\"([^\"]*)\"|([^\s;,]+))", re.IGNORECASE)
_WANTED: Final = "service-desc"
_MOST: Final = 3


def service_descriptions(answers: Iterable[Fetched], *, insecure: bool = False) -> list[str]:
    """Collect the addresses that responses link as service descriptions, each once."""
    found: dict[str, None] = {}
    for answer in answers:
        base = parse_address(answer.final_url, insecure=insecure)
        if isinstance(base, AddressFault):
            continue
        for target, parameters in _LINK.findall(answer.headers.get("link", "")[:8192]):
            rel = _REL.search(parameters)
            if rel is None or _WANTED not in (rel[1] or rel[2]).lower().split():
                continue
            place = resolve_address(target, base, insecure=insecure)
            if not isinstance(place, AddressFault):
                found.setdefault(str(place))
    return list(found)[:_MOST]
