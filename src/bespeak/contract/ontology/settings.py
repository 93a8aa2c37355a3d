"""Settings of the semantic layer: `[semantic]`."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from bespeak.contract.ontology.namespace import DEFAULT, Namespace, parse_base
from bespeak.text.reading.setting import setting

_KEY: Final = re.compile(r"[A-Za-z0-9_-]{43}")


def _key(text: str) -> str | None:
    return text if _KEY.fullmatch(text) else None


def _base(text: str) -> str | None:
    return text if isinstance(parse_base(text), Namespace) else None


@dataclass(frozen=True, slots=True, kw_only=True)
class SemanticSettings:
    """Meaning across vocabularies: the core ontology, and the registry of ontologies."""

    base: str = setting(
        DEFAULT.base,
        "IRI that all names of the core ontology begin with.",
        parse=_base,
        form="an absolute IRI that ends in /",
        advice="Write it like https://acme.example/meaning/.",
    )
    names: str = setting(
        "",
        "IRI that the names of the service's own capabilities and intents begin with. Without it: the AGTP address.",
        parse=_base,
        form="an absolute IRI that ends in /",
        advice="Write it like https://acme.example/rooms/.",
    )
    registry: bool = setting(
        False,
        "Serve the registry of ontologies at `/ontologies`. Agents need the scope `semantic:read` to read it and "
        "`semantic:register` to add to it.",
        security=True,
    )
    trusted_keys: tuple[str, ...] = setting(
        (),
        "Public Ed25519 keys of those who may sign ontologies and alignments: `x` of what `bespeak keys show` prints.",
        parse=_key,
        form="43 characters of base64url",
        security=True,
    )
    require_signature: bool = setting(
        False, "Refuse ontologies and alignments without a signature of a trusted key.", security=True
    )

    @property
    def namespace(self) -> Namespace:
        """Names of the core ontology."""
        return Namespace(self.base)
