"""Reader of semantic envelopes (IoA 6.2) and capability registrations (IoA 6.3), with what is wrong in them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache, lru_cache
from typing import Any, Final

import msgspec

from bespeak.contract.core_ontology import DEFAULT, RDFS, Namespace, is_iri
from bespeak.extensions.semantics import rules
from bespeak.extensions.semantics.envelope.expansion import (
    LABEL,
    MOST_REGISTRATION,
    MOST_TEXT,
    MOST_VALUES,
    BadValue,
    Compiled,
    Node,
    NotPlain,
    compile_context,
    core_node,
    expand_nodes,
    read_plain,
    types_of,
)
from bespeak.extensions.semantics.ontology.contexts import Contexts, shipped_contexts
from bespeak.extensions.semantics.profile import ProfileContext, Registration, SemanticProfile, TermBinding, Violation
from bespeak.extensions.semantics.rules import ProfileRule
from bespeak.extensions.semantics.terms import Term

MOST_BYTES: Final = 64 * 1024  # bytes of an envelope as JSON
MOST_ITEMS: Final = 2_000  # members and items of an envelope that pyld reads: it takes some microseconds for each
MOST_REGISTRATION_ITEMS: Final = 50_000
_MOST_TABLES: Final = 256  # contexts whose meaning is kept, and the bytes that each may have to be kept
_MOST_KEY: Final = 4_096
_IRI: Final = "one absolute IRI"
_LITERAL: Final = "one text or number"
_NODE: Final = "an object"


class ClaimedValidation(msgspec.Struct, frozen=True):
    """Result of a validation, as a message carries it (Figure 9)."""

    status: str
    reason: str = ""


class SemanticEnvelope(msgspec.Struct, frozen=True):
    profile: SemanticProfile | None = None  # as far as it could be read, with empty texts for what is missing
    violations: tuple[Violation, ...] = ()  # violations of the rules for members, which no policy accepts
    validation: ClaimedValidation | None = None


def envelope_of(node: Node, profile_type: str) -> SemanticEnvelope:
    found: list[Violation] = []
    types = node.get("@type", ())
    if profile_type not in types:
        found.append(Violation.of(rules.PROFILE_TYPE, "/type", types[0] if len(types) == 1 else (list(types) or None)))
    iri = node.get("@id")
    if isinstance(iri, BadValue):
        found.append(Violation.of(rules.PROFILE_VALUE, "/id", iri.value, _IRI))
        iri = None
    profile = SemanticProfile(
        id=iri,
        ontology_id=_one(node, "ontologyId", found, "", rules.ONTOLOGY_ID) or "",
        ontology_version=_text(node, "ontologyVersion", found, "", rules.ONTOLOGY_VERSION) or "",
        capability_refs=_many(node, "capabilityRefs", found, rules.CAPABILITY_REFS, required=True),
        intent_ref=_one(node, "intentRef", found, "", rules.INTENT_REF) or "",
        profile_version=_text(node, "profileVersion", found) if "profileVersion" in node else None,
        alignment_refs=_many(node, "alignmentRef", found) if "alignmentRef" in node else (),
        context=_context(node, found) if "profileContext" in node else None,
    )
    claimed = _one(node, "validation", found, "", wanted=_NODE) if "validation" in node else None
    validation = None
    if claimed is not None:
        status, reason = (_text(claimed, name, found, "/validation") for name in ("status", "reason"))
        validation = ClaimedValidation(status or "", reason or "")
    return SemanticEnvelope(profile, tuple(found), validation)


def _context(node: Node, found: list[Violation]) -> ProfileContext | None:
    inner = _one(node, "profileContext", found, "", wanted=_NODE)
    if inner is None:
        return None
    at = "/profileContext"
    bindings = inner.get("termBindings", ())
    if len(bindings) > MOST_VALUES:
        found.append(Violation.of(rules.PROFILE_SIZE, f"{at}/termBindings", len(bindings), f"{MOST_VALUES} values"))
        bindings = ()
    return ProfileContext(
        domain=_one(inner, "domain", found, at) if "domain" in inner else None,
        term_bindings=tuple(_binding(one, found, f"{at}/termBindings/{number}") for number, one in enumerate(bindings)),
        source_lang=_text(inner, "sourceLang", found, at) if "sourceLang" in inner else None,
        target_lang=_text(inner, "targetLang", found, at) if "targetLang" in inner else None,
    )


def _binding(one: Any, found: list[Violation], at: str) -> TermBinding:
    if type(one) is BadValue:
        found.append(Violation.of(rules.PROFILE_VALUE, at, one.value, _NODE))
        return TermBinding("", "")
    term = _text(one, "term", found, at, rules.PROFILE_VALUE)
    return TermBinding(term or "", _one(one, "sense", found, at, rules.PROFILE_VALUE) or "")


def _one(
    node: Node, name: str, found: list[Violation], at: str, rule: ProfileRule | None = None, *, wanted: str = _IRI
) -> Any:
    """Return the only value of a member, else None. With a rule it is required; the same value twice is one."""
    values = node.get(name, ())
    if len(values) == 1:
        value = values[0]
        if type(value) is not BadValue:
            return value
    elif not values and rule is None:
        return None
    elif len(values) > 1 and all(one == values[0] for one in values) and type(values[0]) is not BadValue:
        return values[0]
    shown = [one.value if type(one) is BadValue else one for one in values]
    value = shown[0] if len(shown) == 1 else shown or None
    found.append(Violation.of(rule or rules.PROFILE_VALUE, f"{at}/{name}", value, wanted))
    return None


def _text(node: Node, name: str, found: list[Violation], at: str = "", rule: ProfileRule | None = None) -> str | None:
    """Return the only literal of a member as a text. A number is its shortest text: the draft allows both (5.3)."""
    values = node.get(name, ())
    if len(values) == 1 and type(values[0]) is str and 0 < len(values[0]) <= MOST_TEXT:
        return values[0]  # what nearly every sender writes
    value = _one(node, name, found, at, rule, wanted=_LITERAL)
    if value is None:
        return None
    try:
        text = value if type(value) is str else str(value)
    except ValueError:  # Python does not write integers of thousands of digits
        text = ""
    if not text and rule is not None:
        found.append(Violation.of(rule, f"{at}/{name}", value, _LITERAL))
    elif len(text) > MOST_TEXT:
        found.append(Violation.of(rules.PROFILE_SIZE, f"{at}/{name}", len(text), f"{MOST_TEXT} characters"))
        return None
    return text


def _many(
    node: Node, name: str, found: list[Violation], rule: ProfileRule = rules.PROFILE_VALUE, *, required: bool = False
) -> tuple[str, ...]:
    values = node.get(name, ())
    if len(values) > MOST_VALUES:
        found.append(Violation.of(rules.PROFILE_SIZE, f"/{name}", len(values), f"{MOST_VALUES} values"))
        return ()
    if required and not values:
        found.append(Violation.of(rule, f"/{name}", list(values) if name in node else None))
    if len(values) == 1 and type(values[0]) is str:
        return (values[0],)
    for number, one in enumerate(values):
        if type(one) is BadValue:
            found.append(Violation.of(rule, f"/{name}/{number}", one.value, "an absolute IRI"))
    return tuple(dict.fromkeys(one for one in values if type(one) is not BadValue))


_MOST: Final = 2_000  # capabilities of one registration


class RegistrationReader:
    """Reads the capabilities of expanded nodes: at the top, in a graph, or inside of their agents."""

    def __init__(self, namespace: Namespace) -> None:
        self._namespace = namespace
        self._found: list[Violation] = []
        self._terms: list[Term] = []
        self._agents: dict[str, dict[str, None]] = {}

    def read(self, expanded: list[Any]) -> Registration:
        several = len(expanded) > 1
        declared = {one["@id"]: one for one in expanded if isinstance(one, dict) and isinstance(one.get("@id"), str)}
        for number, one in enumerate(expanded):
            at = f"/@graph/{number}" if several else ""
            types = types_of(one)
            if self._namespace("Agent") in types:
                self._read_agent(one, at, declared)
            if self._namespace("Capability") in types:
                self._read_capability(one, at)
            elif not types:
                self._found.append(Violation.of(rules.REGISTRATION_TYPE, f"{at}/type"))
        if not self._terms and not self._found:
            self._found.append(Violation.of(rules.REGISTRATION_TYPE, "/type"))
        if len(self._terms) > _MOST:
            self._found.append(Violation.of(rules.PROFILE_SIZE, "", len(self._terms), f"{_MOST} capabilities"))
        agents = {agent: tuple(capabilities) for agent, capabilities in self._agents.items()}
        return Registration(tuple(self._terms), agents, tuple(self._found))

    def _read_agent(self, expanded: Mapping[str, Any], at: str, declared: Mapping[str, Any]) -> None:
        agent = expanded.get("@id", "")
        for number, one in enumerate(expanded.get(self._namespace("hasCapability"), ())):
            path = f"{at}/hasCapability/{number}"
            iri = one.get("@id", "")
            types = {*types_of(one), *types_of(declared.get(iri))}
            if "@value" in one or (types and self._namespace("Capability") not in types):
                # A reference to what the payload does not declare is judged with the ontologies.
                wrong = iri or one.get("@value")
                self._found.append(Violation.of(rules.CAPABILITY_RANGE, path, wrong, "an ioa:Capability"))
                continue
            if len(one) > 1:
                self._read_capability(one, path)
            if is_iri(agent) and is_iri(iri):
                self._agents.setdefault(agent, {})[iri] = None

    def _read_capability(self, expanded: Mapping[str, Any], at: str) -> None:
        node = core_node(expanded, "Capability", self._namespace)
        iri = node.get("@id")
        if not isinstance(iri, str):
            self._found.append(Violation.of(rules.REGISTRATION_ID, f"{at}/id", iri.value if iri else None))
            iri = ""
        constraints: dict[str, tuple[str, ...]] = {}
        for name in ("inputs", "outputs"):
            constraints[name] = tuple(self._texts(node, name, at))
            if not node.get(name):
                self._found.append(Violation.of(rules.REGISTRATION_CONSTRAINTS, f"{at}/{name}", None))
        for agent in node.get("providedBy", ()):
            if isinstance(agent, dict) and isinstance(agent.get("@id"), str) and iri:
                self._agents.setdefault(agent["@id"], {})[iri] = None
        above = [one.get("@id") for one in expanded.get(f"{RDFS}subClassOf", ()) if isinstance(one, dict)]
        self._terms.append(
            Term(
                iri=iri,
                kind="individual",
                types=tuple(one for one in types_of(expanded) if is_iri(one)),
                labels=tuple(self._texts(node, LABEL, at)),
                inputs=constraints["inputs"],
                outputs=constraints["outputs"],
                parents=tuple(one for one in above if isinstance(one, str) and is_iri(one)),
            )
        )

    def _texts(self, node: Node, name: str, at: str) -> Iterator[str]:
        for number, one in enumerate(node.get(name, ())):
            if isinstance(one, BadValue):
                rule = rules.PROFILE_VALUE if name == LABEL else rules.REGISTRATION_CONSTRAINTS
                self._found.append(Violation.of(rule, f"{at}/{name}/{number}", one.value, "a text"))
            else:
                yield one if isinstance(one, str) else str(one)[:100]


_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder().decode


class EnvelopeReader:
    """Reads payloads with shipped and registered contexts; the meaning of recent ones is kept. It never fetches one."""

    def __init__(self, namespace: Namespace = DEFAULT, contexts: Contexts | None = None) -> None:
        self.namespace = namespace
        self._contexts: Contexts = {**shipped_contexts(namespace), **(contexts or {})}
        self._profile = namespace("SemanticProfile")
        self._compiled = lru_cache(_MOST_TABLES)(self._compile)
        # The first message does not wait for the import of pyld.
        self._compiled(_encode(namespace.context))

    def parse(self, document: Any) -> SemanticEnvelope:
        """Read a semantic envelope; every fault is a violation of the result."""
        node = self._fast(document, "SemanticProfile")
        if node is None:
            found = self._expand(document, MOST_BYTES, MOST_ITEMS)
            node = found if isinstance(found, tuple) else self._only_profile(found)
        return SemanticEnvelope(violations=node) if isinstance(node, tuple) else envelope_of(node, self._profile)

    def parse_registration(self, document: Any) -> Registration:
        found = self._slow(document)
        if isinstance(found, tuple):
            return Registration(violations=found)
        return RegistrationReader(self.namespace).read(found)

    def is_registration(self, document: Any) -> bool:
        """Return True if a payload holds a capability, which no envelope does."""
        found = self._slow(document)
        wanted = {self.namespace("Capability"), self.namespace("Agent")}
        return isinstance(found, list) and any(not wanted.isdisjoint(types_of(one)) for one in found)

    def _fast(self, document: Any, kind: str) -> Node | tuple[Violation, ...] | None:
        """Return the node of a plain payload, the violations of its context, or None if pyld must read it."""
        if type(document) is not dict or "@context" not in document:
            return (Violation.of(rules.CONTEXT, "/@context"),)
        try:
            key = _encode(document["@context"])
        except (TypeError, ValueError, RecursionError):  # not JSON, such as a lone surrogate
            return (Violation.of(rules.CONTEXT, "/@context"),)
        compiled = self._compiled(key) if len(key) <= _MOST_KEY else self._compile(key)
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
            return Compiled((Violation.of(rules.PROFILE_SIZE, "/@context", len(key), f"{MOST_BYTES} bytes"),))
        return compile_context(_decode(key), self.namespace, self._contexts)

    def _only_profile(self, found: list[Any]) -> Node | tuple[Violation, ...]:
        profiles = [one for one in found if self._profile in types_of(one)]
        chosen = profiles or [one for one in found if isinstance(one, dict)]
        if len(chosen) > 1:
            return (Violation.of(rules.PROFILE_TYPE, "", f"{len(chosen)} nodes"),)
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
            return (Violation.of(rules.PROFILE_SIZE, "", "what is not JSON", f"{most} bytes"),)
        if size > most:
            return (Violation.of(rules.PROFILE_SIZE, "", size, f"{most} bytes"),)
        count, waiting = 0, list[Any]([document])
        while waiting:
            value = waiting.pop()
            count += len(value)
            if count > items:
                return (Violation.of(rules.PROFILE_SIZE, "", "more", f"{items} members and items"),)
            values = value.values() if isinstance(value, dict) else value
            waiting += [one for one in values if isinstance(one, dict | list)]
        found = expand_nodes(document, self.namespace, self._contexts)
        return (found,) if isinstance(found, Violation) else found


_default_reader = cache(EnvelopeReader)


def parse(document: Any) -> SemanticEnvelope:
    """Read a semantic envelope with the shipped contexts."""
    return _default_reader().parse(document)
