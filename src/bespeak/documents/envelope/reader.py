"""Reader of semantic payloads: the fast path for plain ones with a known context, pyld for all others."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache, lru_cache
from typing import Any

import msgspec

from bespeak.contract.ontology.namespace import DEFAULT, Namespace
from bespeak.contract.ontology.rules import CONTEXT, PROFILE_SIZE, PROFILE_TYPE
from bespeak.contract.ontology.verdict import Violation
from bespeak.documents.envelope.envelope import Envelope, envelope_of
from bespeak.documents.envelope.expansion import core_node, expand_nodes, types_of
from bespeak.documents.envelope.fast_path import NotPlain, read_plain
from bespeak.documents.envelope.limits import (
    MOST_BYTES,
    MOST_ITEMS,
    MOST_KEY,
    MOST_REGISTRATION,
    MOST_REGISTRATION_ITEMS,
    MOST_TABLES,
)
from bespeak.documents.envelope.members import Node
from bespeak.documents.envelope.registration import Registration, registration_of
from bespeak.documents.envelope.term_table import Compiled, compile_context
from bespeak.documents.ontology.contexts import Contexts
from bespeak.documents.ontology.core_context import shipped_contexts

_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder().decode


class EnvelopeReader:
    """Reads payloads with the shipped contexts and the registered ones; it never fetches a context.

    Senders choose contexts: the meaning of the most recent ones is kept, by the bytes of `@context`.
    """

    def __init__(self, namespace: Namespace = DEFAULT, contexts: Contexts | None = None) -> None:
        self.namespace = namespace
        self._contexts: Contexts = {**shipped_contexts(namespace), **(contexts or {})}
        self._profile = namespace("SemanticProfile")
        self._compiled = lru_cache(MOST_TABLES)(self._compile)
        # The first message does not wait for the import of pyld.
        self._compiled(_encode(namespace.context))

    def parse(self, document: Any) -> Envelope:
        """Read a semantic envelope; every fault is a violation of the result."""
        node = self._fast(document, "SemanticProfile")
        if node is None:
            node = self._slow_profile(document)
        if isinstance(node, tuple):
            return Envelope(violations=node)
        return envelope_of(node, self._profile)

    def parse_registration(self, document: Any) -> Registration:
        """Read a capability registration; every fault is a violation of the result."""
        found = self._slow(document)
        if isinstance(found, tuple):
            return Registration(violations=found)
        return registration_of(found, self.namespace)

    def is_registration(self, document: Any) -> bool:
        """Return True if a payload holds a capability, which no envelope does."""
        found = self._slow(document)
        wanted = {self.namespace("Capability"), self.namespace("Agent")}
        return isinstance(found, list) and any(not wanted.isdisjoint(types_of(one)) for one in found)

    def _fast(self, document: Any, kind: str) -> Node | tuple[Violation, ...] | None:
        """Return the node of a plain payload, the violations of its context, or None if pyld must read it."""
        if type(document) is not dict or "@context" not in document:
            return (Violation.of(CONTEXT, "/@context"),)
        try:
            key = _encode(document["@context"])
        except (TypeError, ValueError, RecursionError):  # not JSON, such as a lone surrogate
            return (Violation.of(CONTEXT, "/@context"),)
        compiled = self._compiled(key) if len(key) <= MOST_KEY else self._compile(key)
        if compiled.violations:
            return compiled.violations
        if compiled.table is None:
            return None
        try:
            return read_plain(document, compiled.table, kind)
        except NotPlain:
            return None

    def _compile(self, key: bytes) -> Compiled:
        if len(key) > MOST_BYTES:
            return Compiled((Violation.of(PROFILE_SIZE, "/@context", len(key), f"{MOST_BYTES} bytes"),))
        return compile_context(_decode(key), self.namespace, self._contexts)

    def _slow_profile(self, document: Mapping[str, Any]) -> Node | tuple[Violation, ...]:
        found = self._expand(document, MOST_BYTES, MOST_ITEMS)
        if isinstance(found, tuple):
            return found
        profiles = [one for one in found if self._profile in types_of(one)]
        chosen = profiles or [one for one in found if isinstance(one, dict)]
        if len(chosen) > 1:
            return (Violation.of(PROFILE_TYPE, "", f"{len(chosen)} nodes"),)
        return core_node(chosen[0] if chosen else {}, "SemanticProfile", self.namespace)

    def _slow(self, document: Any) -> list[Any] | tuple[Violation, ...]:
        """Expand a registration, whose context has not been looked at yet."""
        fast = self._fast(document, "Capability")
        if isinstance(fast, tuple):
            return fast
        return self._expand(document, MOST_REGISTRATION, MOST_REGISTRATION_ITEMS)

    def _expand(self, document: Mapping[str, Any], most: int, items: int) -> list[Any] | tuple[Violation, ...]:
        try:
            size = len(_encode(document))
        except (TypeError, ValueError, RecursionError):
            return (Violation.of(PROFILE_SIZE, "", "what is not JSON", f"{most} bytes"),)
        if size > most:
            return (Violation.of(PROFILE_SIZE, "", size, f"{most} bytes"),)
        if _has_more(document, items):
            return (Violation.of(PROFILE_SIZE, "", "more", f"{items} members and items"),)
        found = expand_nodes(document, self.namespace, self._contexts)
        return (found,) if isinstance(found, Violation) else found


def _has_more(document: Any, most: int) -> bool:
    """Return True if a payload has more members and items than a limit."""
    waiting, count = [document], 0
    while waiting:
        value = waiting.pop()
        count += len(value)
        if count > most:
            return True
        values = value.values() if isinstance(value, dict) else value
        waiting += [one for one in values if isinstance(one, dict | list)]
    return False


@cache
def default_reader() -> EnvelopeReader:
    """Return the reader that knows the shipped contexts."""
    return EnvelopeReader()


def parse(document: Any) -> Envelope:
    """Read a semantic envelope with the shipped contexts."""
    return default_reader().parse(document)
