"""The security schemes of an upstream, and the requirements of each operation."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from bespeak.documents.openapi.description import SecurityScheme
from bespeak.documents.openapi.notices import Notices
from bespeak.documents.openapi.references import References
from bespeak.documents.openapi.rules import UNUSABLE_SCHEME
from bespeak.documents.openapi.spot import Spot
from bespeak.text.diagnostics.brief import brief
from bespeak.text.reading.rules import WRONG_VALUE
from bespeak.text.reading.untyped import as_texts

Alternatives = tuple[Mapping[str, tuple[str, ...]], ...]

_KINDS: Final = frozenset({"apiKey", "http", "oauth2", "openIdConnect", "mutualTLS"})
_PLACES: Final = frozenset({"header", "query", "cookie"})


class SecurityReader:
    """Reads the security of one description."""

    def __init__(self, root: Spot, references: References, notices: Notices, *, swagger: bool) -> None:
        self._root = root
        self._references = references
        self._notices = notices
        declared = root.below("securityDefinitions") if swagger else root.below("components", "securitySchemes")
        self.schemes = {name: made for name, spot in declared.entries() if (made := self._scheme(name, spot))}
        self._whole = self._alternatives(root.below("security"))

    def read(self, operation: Spot) -> Alternatives:
        """Read the security requirements of an operation: its own, else those of the whole description."""
        own = operation.below("security")
        return self._whole if own.value is None else self._alternatives(own)

    def _scheme(self, name: str, given: Spot) -> SecurityScheme | None:
        spot = self._references.follow(given)
        if spot is None:
            return None
        kind, scheme = spot.text("type"), spot.text("scheme").lower()
        if kind == "basic":  # as 2.0 calls it
            kind, scheme = "http", "basic"
        place, parameter = spot.text("in"), spot.text("name")
        if kind not in _KINDS:
            self._notices.error(
                UNUSABLE_SCHEME, f"{brief(name)} has the unknown type {brief(kind)}, and is left out", spot
            )
            return None
        if kind == "apiKey" and (place not in _PLACES or not parameter):
            self._notices.error(
                UNUSABLE_SCHEME, f"{brief(name)} does not say where its key goes, and is left out", spot
            )
            return None
        if kind == "http" and not scheme:
            self._notices.error(UNUSABLE_SCHEME, f"{brief(name)} does not name its scheme; bearer is assumed", spot)
            scheme = "bearer"
        return SecurityScheme(
            name=name,
            kind=kind,
            place=place if kind == "apiKey" else "",
            parameter=parameter if kind == "apiKey" else "",
            scheme=scheme if kind == "http" else "",
            description=spot.text("description"),
        )

    def _alternatives(self, spot: Spot) -> Alternatives:
        if spot.value is not None and not isinstance(spot.value, list):
            self._notices.error(WRONG_VALUE, f"`security` is {brief(spot.value)}, not a list", spot)
        found: list[dict[str, tuple[str, ...]]] = []
        for one in spot.items():
            if not isinstance(one.value, dict):
                self._notices.error(WRONG_VALUE, f"a requirement is {brief(one.value)}, not an object", one)
                continue
            unknown = [name for name in one.value if name not in self.schemes]
            if unknown:
                message = f"the scheme {brief(unknown[0])} is not declared, and this alternative is left out"
                self._notices.error(UNUSABLE_SCHEME, message, one, "Declare it under components.securitySchemes.")
                continue
            found.append({name: as_texts(scopes) for name, scopes in one.value.items()})
        return tuple(found)
