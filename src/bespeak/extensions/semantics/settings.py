"""Settings of the semantic layer: `[semantic]`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from bespeak.contract.core_ontology import DEFAULT, Namespace, is_iri, parse_base
from bespeak.contract.service import Service
from bespeak.text.reading.settings import RULE, Setting, setting

_KEY: Final = re.compile(r"[A-Za-z0-9_-]{43}")


def _base(text: str) -> str | None:
    return text if isinstance(parse_base(text), Namespace) else None


@dataclass(frozen=True, slots=True, kw_only=True)
class SemanticSettings:
    """Meaning across vocabularies: the core ontology, the registry of ontologies, and what calls must say."""

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
    most_artifacts: int = setting(
        100,
        "Most ontologies and alignments that one agent may register, each version counted.",
        kind="count",
        security=True,
    )
    most_bytes: int = setting(
        16 * 1024 * 1024,
        "Most bytes of content that one agent may register, all versions together: canonical N-Quads of ontologies, "
        "canonical JSON of alignments.",
        kind="count",
        security=True,
    )
    trusted_keys: tuple[str, ...] = setting(
        (),
        "Public Ed25519 keys of those who may sign ontologies and alignments: `x` of what `bespeak keys show` prints. "
        "Once there is one, alignments that none of these keys has signed are refused and not used.",
        parse=lambda text: text if _KEY.fullmatch(text) else None,
        form="43 characters of base64url",
        security=True,
    )
    signer_ranks: Mapping[str, int] = setting(
        {},
        "Rank of keys of `trusted_keys`, 0 without an entry. What one key has signed is not superseded by a key of a "
        "lower rank, and its mappings come first.",
        values=Setting(meaning="The rank.", kind="count"),
        security=True,
    )
    require_signature: bool = setting(
        False, "Refuse ontologies, too, without a signature of a trusted key.", security=True
    )

    required: str = setting(
        "never",
        "Calls that must say what they mean, with an envelope or as a part of a task that has a profile.",
        choices=("never", "irreversible", "always"),
        security=True,
    )
    violations: str = setting(
        "reject",
        "What follows if a profile breaks a consistency rule: the call is refused for good, or with an offer to "
        "renegotiate. Members that an envelope must have are always required.",
        choices=("reject", "renegotiate"),
    )
    rules: Mapping[str, str] = setting(
        {},
        "The same by the id of a consistency rule, such as I226.",
        values=Setting(meaning="What follows.", choices=("reject", "renegotiate"), format=RULE),
    )
    strict_domains: bool = setting(False, "Count concepts of sub-domains as outside of a domain.")
    threshold: float = setting(
        0.75,
        "Lowest confidence of a mapping that is used without confirmation by the operator.",
        bounds=(0.0, 1.0),
        security=True,
    )
    require_provenance: bool = setting(
        True,
        "Use only mappings with an author or a tool for calls of irreversible endpoints. Such mappings are always "
        "confirmed by the operator with `bespeak semantic confirm`.",
        security=True,
    )
    conflict_order: tuple[str, ...] = setting(
        ("policy", "confidence", "override"),
        "Order in which several mappings of one term are resolved.",
        choices=("policy", "confidence", "override"),
    )
    priorities: Mapping[str, int] = setting(
        {},
        "Priority of mappings by author, tool, source, justification or `override`; higher ones first.",
        values=Setting(meaning="The priority.", kind="count"),
    )
    sensitive: tuple[str, ...] = setting(
        (),
        "Capabilities that discovery by meaning shows only to callers with the scopes of their endpoints.",
        parse=lambda text: text if is_iri(text) else None,
        form="an absolute IRI",
        security=True,
    )

    @property
    def namespace(self) -> Namespace:
        return Namespace(self.base)


def semantic_settings(service: Service) -> SemanticSettings | None:
    """Return the settings of a service's semantic layer; None if it has none."""
    assert service.semantic is None or isinstance(service.semantic, SemanticSettings)
    return service.semantic
