"""Cards of A2A agents: the interfaces that take messages, and each skill as an endpoint with its guesses."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from bespeak.agent.discovery.readers import Capability, CredentialPlace, credential_place
from bespeak.contract.catalog.document import load_bundled
from bespeak.contract.endpoint import Endpoint
from bespeak.contract.handler import OpaqueHandler
from bespeak.documents.adoption.facade import Candidate
from bespeak.documents.openapi.description import SecurityScheme
from bespeak.protocol.address_guard import AddressFault, WebAddress, parse_web_address, resolve_address
from bespeak.text.diagnostics.diagnostic import Diagnostic
from bespeak.text.identifiers import unused
from bespeak.text.reading.json_data import json_table
from bespeak.text.reading.table import as_list, as_mapping, as_text

WELL_KNOWN_CARDS: Final = ("/.well-known/agent-card.json", "/.well-known/agent.json")
"""Paths of the card; the second is that of earlier versions."""
_LONGEST: Final = 500
_MOST_LISTED: Final = 20
_MOST_SKILLS: Final = 500
MESSAGE: Final = "message"  # the one field of the input of a skill
_INPUT: Final[Mapping[str, Any]] = {
    "type": "object",
    "properties": {MESSAGE: {"type": "string", "minLength": 1, "maxLength": 20_000}},
    "required": [MESSAGE],
    "additionalProperties": False,
}
_TEXT: Final = {"type": "string"}
_OUTPUT: Final[Mapping[str, Any]] = {
    "type": "object",
    "properties": {
        "text": _TEXT,
        "data": {"type": "array"},
        "files": {"type": "array"},
        "task_id": _TEXT,
        "state": _TEXT,
    },
    "required": ["text"],
}
_SCHEMES: Final = {
    "apiKeySecurityScheme": "apiKey",
    "httpAuthSecurityScheme": "http",
    "oauth2SecurityScheme": "oauth2",
    "openIdConnectSecurityScheme": "openIdConnect",
    "mtlsSecurityScheme": "mutualTLS",
}


@dataclass(frozen=True, slots=True)
class AgentInterface:
    url: str
    binding: str
    version: str

    @property
    def is_legacy(self) -> bool:
        """True if requests have the form of A2A 0.3."""
        return self.version.startswith("0.")

    @property
    def is_spoken(self) -> bool:
        """True if messages can be sent to it: JSON-RPC of A2A 1.0, or of 0.2 and 0.3, which have the same form."""
        return self.binding.upper() == "JSONRPC" and self.version.startswith(("1.", "0.3", "0.2"))


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentSkill:
    id: str
    description: str
    tags: tuple[str, ...] = ()
    examples: tuple[str, ...] = ()
    scopes: tuple[str, ...] = ()
    endpoint: Endpoint  # contract of a message to the agent about it, guessed from its words and tags
    confidence: float = 0.0  # how sure the guess of the impact is, 0 to 1

    @property
    def impact(self) -> str:
        return self.endpoint.semantic.impact


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentCard:
    """The usable part of a card."""

    name: str
    description: str = ""
    version: str = ""
    interfaces: tuple[AgentInterface, ...] = ()
    skills: tuple[AgentSkill, ...] = ()
    credentials: tuple[str, ...] = ()  # kinds of the credentials that the agent takes
    credential_places: tuple[CredentialPlace, ...] = ()
    openapi: str | None = None  # address of a description with the schemas of the skills
    left_out: tuple[tuple[str, str], ...] = field(default=(), repr=False)  # Pointers, and why an interface is unusable.

    @property
    def interface(self) -> AgentInterface | None:
        """The interface that messages are sent to: of those that bespeak speaks, the first of the card."""
        return next((one for one in self.interfaces if one.is_spoken), None)

    def capabilities(self) -> list[Capability]:
        """Return the skills as capabilities: each is called by a message to the agent. Empty without an interface."""
        place = None if self.interface is None else parse_web_address(self.interface.url, insecure=True)
        if not isinstance(place, WebAddress):
            return []
        shared: dict[str, Any] = {"origin": place.origin, "target": place.target, "credentials": self.credential_places}
        shared |= {"input_schema": _INPUT, "output_schema": _OUTPUT}
        called = [(skill.id, skill.endpoint) for skill in self.skills]
        return [
            Capability(id=name, method=one.method, path=one.path, description=one.description, **shared)
            for name, one in called
        ]


def read_card(
    data: bytes, base: WebAddress, *, insecure: bool = False, most: int | None = None
) -> tuple[AgentCard | None, list[Diagnostic]]:
    """Read a card with at most `most` skills, tolerantly; return None if it is not one. Never raises."""
    root = json_table(data, str(base), tolerant=True)
    if isinstance(root, Diagnostic):
        return None, [root]
    card = root.data
    name, skills = _brief(card.get("name")), [as_mapping(entry) for entry in as_list(card.get("skills"))]
    if not name or not skills:
        return None, []
    interfaces: list[AgentInterface] = []
    left_out: list[tuple[str, str]] = []
    for at, url, binding, version in _interfaces(card):
        place = resolve_address(url, base, insecure=insecure)
        if isinstance(place, AddressFault):
            left_out.append((at, f"{at} is left out: {place.message}"))
        else:
            interfaces.append(AgentInterface(str(place), binding, version))
    named = [entry for entry in skills if _brief(entry.get("id"))]
    most = min(_MOST_SKILLS, _MOST_SKILLS if most is None else most)
    if len(named) > most:
        left_out.append(("/skills", f"only the first {most} of {len(named)} skills are used"))
    schemes = list(_schemes(as_mapping(card.get("securitySchemes"))))
    found = AgentCard(
        name=_said(card.get("name"), "/name", left_out) or str(base.origin),
        description=_said(card.get("description"), "/description", left_out),
        version=_brief(card.get("version")),
        interfaces=tuple(interfaces),
        skills=tuple(_judged(named[:most], left_out)),
        credentials=tuple(dict.fromkeys(one.scheme.lower() or one.kind or "unknown" for one in schemes)),
        credential_places=tuple(map(credential_place, schemes)),
        openapi=_openapi(card),
        left_out=tuple(left_out),
    )
    return found, root.findings.found


def _interfaces(card: Mapping[str, Any]) -> Iterator[tuple[str, str, str, str]]:
    for number, entry in enumerate(as_list(card.get("supportedInterfaces"))[:_MOST_LISTED]):
        one = as_mapping(entry)
        if url := as_text(one.get("url")):
            binding, version = _brief(one.get("protocolBinding")), _brief(one.get("protocolVersion"))
            yield f"/supportedInterfaces/{number}", url, binding, version or "1.0"
    if as_text(card.get("url")):
        version = _brief(card.get("protocolVersion")) or "0.3"
        yield "/url", as_text(card["url"]), _brief(card.get("preferredTransport")) or "JSONRPC", version
        for number, entry in enumerate(as_list(card.get("additionalInterfaces"))[:_MOST_LISTED]):
            one = as_mapping(entry)
            if as_text(one.get("url")):
                yield f"/additionalInterfaces/{number}", as_text(one["url"]), _brief(one.get("transport")), version


def _said(value: object, at: str, left_out: list[tuple[str, str]]) -> str:
    """Return a text up to its first instruction to a model, which is reported."""
    from bespeak.documents.adoption.sanitizer import plain_text  # noqa: PLC0415 - loads the language, for cards only

    text = _brief(value)
    plain = plain_text(text, _LONGEST)
    if not plain.fault:
        return text
    left_out.append((at, f"a part of {at} is left out: it holds {plain.fault}"))
    return plain.text


def _judged(entries: Sequence[Mapping[str, Any]], left_out: list[tuple[str, str]]) -> Iterator[AgentSkill]:
    """Yield the skills, with what their words say about the impact of a call."""
    from bespeak.documents.adoption.judgement import judge_all  # noqa: PLC0415 - loads the language, for cards only

    judgements = judge_all([_candidate(entry) for entry in entries], load_bundled())
    taken: set[str] = set()
    for number, (entry, judged) in enumerate(zip(entries, judgements, strict=True)):
        candidate, at = judged.candidate, f"/skills/{number}"
        named = _said(candidate.name, f"{at}/id", left_out)
        if not named:
            continue
        guessed = [guess.confidence for guess in judged.guesses if guess.at == "/semantic/impact"]
        described = _said(candidate.description or candidate.summary, f"{at}/description", left_out)
        tags = [_said(tag, f"{at}/tags", left_out) for tag in candidate.tags]
        examples = [_said(one, f"{at}/examples", left_out) for one in _texts(entry.get("examples"))]
        named = unused(named, taken)
        taken.add(named)
        phrases = [one for one in examples if one and not one.startswith("{")]  # the others are data parts
        hints = {MESSAGE: phrases} if phrases else {}
        yield AgentSkill(
            id=named,
            description=described,
            tags=tuple(filter(None, tags)),
            examples=tuple(filter(None, examples)),
            scopes=tuple(dict.fromkeys(_scopes(entry)))[:_MOST_LISTED],
            endpoint=Endpoint(
                method=judged.method,
                path=judged.path.path,
                description=judged.description,
                semantic=replace(judged.semantic, mcp_tool_name=named, parameter_hints=hints),
                input_schema=_INPUT,
                output_schema=_OUTPUT,
                handler=OpaqueHandler(type="external_service"),
                reviewed=False,
            ),
            confidence=min(guessed, default=0.5),
        )


def _candidate(entry: Mapping[str, Any]) -> Candidate:
    from bespeak.documents.adoption.evidence import deeds  # noqa: PLC0415 - loads the language, for cards only

    described = _brief(entry.get("description"))
    tags = _texts(entry.get("tags"))
    words = {tag.lower() for tag in tags}
    return Candidate(
        name=_brief(entry.get("id")),
        name_kind="the id of the skill",
        summary=_brief(entry.get("name")),
        description=described,
        tags=tags,
        signs=tuple(f"its description says '{deed.words}'" for deed in deeds(described, broad=True)),
        read_only=True if words & {"read-only", "readonly"} else None,
        destructive=True if "destructive" in words else None,
        idempotent=True if "idempotent" in words else None,
    )


def _scopes(entry: Mapping[str, Any]) -> Iterator[str]:
    for alternative in as_list(entry.get("securityRequirements")):
        for scopes in as_mapping(as_mapping(alternative).get("schemes")).values():
            yield from _texts(as_mapping(scopes).get("list"))
    for alternative in as_list(entry.get("security")):
        for scopes in as_mapping(alternative).values():
            yield from _texts(scopes)


def _schemes(schemes: Mapping[str, Any]) -> Iterator[SecurityScheme]:
    for name, scheme in list(schemes.items())[:_MOST_LISTED]:
        one = as_mapping(scheme)
        member = next((name for name in _SCHEMES if name in one), None)
        found = one if member is None else as_mapping(one[member])
        yield SecurityScheme(
            name=name,
            kind=_brief(one.get("type")) if member is None else _SCHEMES[member],
            place=_brief(found.get("in") or found.get("location")),
            parameter=as_text(found.get("name")),
            scheme=_brief(found.get("scheme")),
        )


def _openapi(card: Mapping[str, Any]) -> str | None:
    """Return the address of the schemas, which an extension may name."""
    extensions = as_list(as_mapping(card.get("capabilities")).get("extensions"))[:_MOST_LISTED]
    named = (as_text(as_mapping(as_mapping(entry).get("params")).get("openapi")) for entry in extensions)
    return next(filter(None, named), None)


def _brief(value: object) -> str:
    return " ".join(as_text(value).split())[:_LONGEST]


def _texts(value: object) -> tuple[str, ...]:
    return tuple(filter(None, map(_brief, as_list(value)[:_MOST_LISTED])))
