"""How documents on the web introduce a service: its publisher, a short name and a description."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final
from urllib.parse import urlsplit

from bespeak.contract.capability_id import group_of
from bespeak.contract.endpoint import Endpoint
from bespeak.contract.service import Service
from bespeak.documents.ai.param_notation import cut

_DOMAIN: Final = re.compile(r"(?=.{4,120}\Z)(?:[a-z0-9](?:[a-z0-9-]*[a-z0-9])?\.)+[a-z][a-z0-9-]*[a-z0-9]")
_NO_NAME: Final = re.compile(r"[^a-z0-9]+")
_LONGEST_NAME: Final = 60


def publisher_of(service: Service, url: str) -> str:
    """Return the domain of the publisher: the one of the identity, the server id if it is one, else the URL's host."""
    host = urlsplit(url).hostname or "localhost"
    for text in (service.identity.domain or "", service.identity.server_id.removeprefix("agtp://"), host):
        found = text.lower().partition(":")[0]
        if _DOMAIN.fullmatch(found):
            return found
    return _NO_NAME.sub("-", host).strip("-") or "localhost"


def short_name(service: Service) -> str:
    """Return the name of a service for identifiers: lowercase letters, digits and hyphens."""
    text = service.identity.name or service.identity.server_id
    return _NO_NAME.sub("-", text.lower())[:_LONGEST_NAME].strip("-") or "service"


def describe_service(service: Service, listed: Iterable[Endpoint], longest: int) -> str:
    """Return the description of a service, or the nouns of its endpoints, which are better than nothing."""
    things = ", ".join(dict.fromkeys(group_of(endpoint) for endpoint in listed))
    return cut(service.description, longest) or cut(f"Operations on {things}", longest)
