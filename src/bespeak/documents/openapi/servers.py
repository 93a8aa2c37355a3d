"""The address of an operation: the nearest described server, made absolute."""

from __future__ import annotations

import re
from typing import Final
from urllib.parse import urljoin, urlsplit

from bespeak.documents.openapi.notices import Notices
from bespeak.documents.openapi.rules import UNCLEAR_SERVER
from bespeak.documents.openapi.spot import Spot
from bespeak.text.diagnostics.brief import brief
from bespeak.text.reading.untyped import as_texts

_VARIABLE: Final = re.compile(r"\{([^{}]*)\}")


class ServerReader:
    """Reads the servers of one description."""

    def __init__(self, root: Spot, base_url: str | None, notices: Notices) -> None:
        self._root = root
        self._base_url = base_url
        self._notices = notices
        self._known: dict[tuple[str, str], str | None] = {}

    def read(self, item: Spot, operation: Spot) -> str:
        """Return the base address of an operation, without a trailing slash; report and return empty if there is
        none.
        """
        for level in (operation, item, self._root):
            listed = level.below("servers")
            if listed.value is None:
                continue
            if listed.key not in self._known:
                self._known[listed.key] = self._first(listed)
            base = self._known[listed.key]
            if base is not None:
                return base
        return self._absolute("/", self._root)

    def read_swagger(self, operation: Spot) -> str:
        """Return the base address of a 2.0 operation: schemes, host and basePath."""
        schemes = operation.value.get("schemes") or self._root.value.get("schemes")
        offered = [scheme.lower() for scheme in as_texts(schemes)]
        base = urlsplit(self._base_url or "")
        host = self._root.text("host") or base.netloc
        path = self._root.text("basePath")
        scheme = next((one for one in ("https", "http") if one in offered), base.scheme or "https")
        if not host or not _is_host(host):
            self._notices.warning(
                UNCLEAR_SERVER, "no server is described, so the upstream's address is unknown", self._root, _ADVICE
            )
            return ""
        return f"{scheme}://{host}/{path.strip('/')}".rstrip("/")

    def _first(self, listed: Spot) -> str | None:
        """Return the first valid server; None if there is none."""
        usable = [spot for spot in listed.items() if isinstance(spot.value, dict) and spot.text("url")]
        if not usable:
            if listed.value != []:
                self._notices.warning(UNCLEAR_SERVER, "`servers` names no server", listed)
            return None
        if len(usable) > 1:
            others = ", ".join(_shown(spot.text("url")) for spot in usable[1:4])
            taken = brief(_shown(usable[0].text("url")))
            message = f"{len(usable)} servers are described; {taken} is used, not {others[:200]}"
            self._notices.info(
                UNCLEAR_SERVER, message, listed, "Write another address into the endpoint files if you need it."
            )
        return self._absolute(self._filled(usable[0]), usable[0])

    def _filled(self, server: Spot) -> str:
        """Fill the variables of an address with their defaults."""

        def value(found: re.Match[str]) -> str:
            variable = server.below("variables", found[1])
            values = variable.below("enum").value
            default = variable.text("default") or (str(values[0]) if isinstance(values, list) and values else "")
            if not default and "default" not in (variable.value or {}):
                message = f"{{{found[1][:80]}}} in the address of the server has no default"
                self._notices.warning(UNCLEAR_SERVER, message, server, "Write the address into the endpoint files.")
                return found[0]
            return default

        return _VARIABLE.sub(value, server.text("url"))

    def _absolute(self, url: str, at: Spot) -> str:
        try:
            whole = urljoin(self._base_url, url) if self._base_url else url
            parts = urlsplit(whole)
            host = parts.netloc
        except ValueError:
            whole, host, parts = url, "", None
        _, at_sign, named = host.rpartition("@")
        if at_sign:
            message = "the address of the server contains a user or password, which is left out"
            self._notices.warning(
                UNCLEAR_SERVER, message, at, "Send credentials as a header whose value is a variable."
            )
        host = named
        if parts is None or parts.scheme not in {"http", "https"} or not _is_host(host):
            message = f"the server {brief(_shown(url))} is not a valid http or https address"
            self._notices.warning(UNCLEAR_SERVER, message, at, _ADVICE)
            return ""
        return f"{parts.scheme}://{host}{parts.path}".rstrip("/")


_ADVICE: Final = "Name the address of the upstream when you import."


_HOST: Final = re.compile(r"(?:[\w{}.~-]+|\[[0-9A-Fa-f:.]+\])(?::([0-9]{1,5}))?")


def _shown(url: str) -> str:
    """Remove user and password from an address."""
    return re.sub(r"//[^/@]*@", "//", url)


def _is_host(host: str) -> bool:
    """Return True if a text is a host name or IP address, with an optional port; variables are allowed."""
    found = _HOST.fullmatch(host)
    return found is not None and int(found[1] or 0) < 65_536
