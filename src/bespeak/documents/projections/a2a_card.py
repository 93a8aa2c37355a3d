"""The agent card of a service: what agents that speak A2A read before they send a message (A2A 1.0, 8)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

import msgspec

from bespeak.contract.confirmation import asks_person
from bespeak.contract.endpoint import Endpoint
from bespeak.contract.endpoint_names import capability_ids, describe_tool, group_of
from bespeak.contract.policy import Policies
from bespeak.contract.schema.view import sample
from bespeak.contract.service import UNSPECIFIED, Service
from bespeak.documents.ai.param_notation import cut
from bespeak.documents.deployment.http_settings import HttpSettings
from bespeak.protocol.exchange.headers import MEDIA_JSON

PATH: Final = "/.well-known/agent-card.json"
LEGACY_PATH: Final = "/.well-known/agent.json"  # card of A2A 0.3, for clients that cannot read the current one
INTERFACE: Final = "/a2a"  # path of the JSON-RPC interface
VERSIONS: Final = ("1.0", "0.3")  # versions of A2A that the interface speaks, the preferred one first
SCHEMAS: Final = "urn:bespeak:a2a:skill-schemas:1"  # says where the schemas of skills are

_BINDING: Final = "JSONRPC"
_LONGEST_EXAMPLE: Final = 400
_MOST_NAMED: Final = 50  # endpoints that the skill of a namespace names
_IMPACTS: Final = {"informational": "read-only", "irreversible": "destructive"}
_OPEN: Final = {
    "apiKeySecurityScheme": {
        "location": "header",
        "name": "Agent-ID",
        "description": "The id of the agent, believed without proof. Authority-Scope has its scopes.",
    }
}
_KEY: Final = {
    "apiKeySecurityScheme": {
        "location": "header",
        "name": "X-API-Key",
        "description": "A static key of the agent, with the scopes it was granted.",
    }
}
_PRESENTED: Final = "The agent's certificate, presented when the connection is made."


def project_card(
    service: Service,
    endpoints: Iterable[Endpoint],
    settings: HttpSettings,
    modes: Iterable[str],
    *,
    version: str,
    issuer: str | None = None,
    policies: Policies | None = None,
    most_skills: int = 100,
    extended: bool = False,
) -> dict[str, Any] | None:
    """Build the card; None if no endpoint is listed or the URL of the service is not known: a card needs both.

    `issuer` is that of the tokens. With more endpoints than `most_skills` there is one skill for each namespace.
    `extended` is True for a card that only identified agents get.
    """
    listed = [endpoint for endpoint in endpoints if endpoint.is_listed]
    if not listed or settings.url is None:
        return None
    ids = capability_ids(listed)
    listed.sort(key=lambda endpoint: endpoint.deprecated is not None)
    identity = service.identity
    skills = _SkillWriter(ids, _schemes(modes, issuer), policies or service.policies)
    card: dict[str, Any] = {
        "name": identity.name or identity.server_id,
        "description": " ".join(service.description.split())
        or cut(f"Operations on {', '.join(dict.fromkeys(map(group_of, listed)))}", 300),
        "version": version,
        "supportedInterfaces": [
            {"url": f"{settings.url}{INTERFACE}", "protocolBinding": _BINDING, "protocolVersion": spoken}
            for spoken in VERSIONS
        ],
        "documentationUrl": f"{settings.url}/",
        "capabilities": {
            "streaming": True,
            "pushNotifications": False,
            "extendedAgentCard": extended,
            "extensions": [_schemas(settings.url, public=not extended)],
        },
        "defaultInputModes": [MEDIA_JSON],
        "defaultOutputModes": [MEDIA_JSON],
        "skills": skills.of_endpoints(listed) if len(listed) <= most_skills else skills.of_namespaces(listed),
    }
    if identity.operator not in ("", UNSPECIFIED):
        contact = identity.contact.strip()
        place = contact if contact.startswith(("https://", "http://")) else settings.url
        card["provider"] = {"organization": identity.operator, "url": place}
    if skills.schemes:
        card["securitySchemes"] = skills.schemes
    if skills.policies.scope_required_for_invocation:
        card["securityRequirements"] = skills.requirements(())
    return card


def to_legacy(card: Mapping[str, Any]) -> dict[str, Any]:
    """Write a card in the form of A2A 0.3."""
    interfaces = {each["protocolVersion"]: each["url"] for each in card["supportedInterfaces"]}
    current = ("supportedInterfaces", "securitySchemes", "securityRequirements")
    legacy: dict[str, Any] = {
        **{name: value for name, value in card.items() if name not in current},
        "protocolVersion": "0.3.0",
        "url": interfaces[VERSIONS[-1]],
        "preferredTransport": _BINDING,
        "capabilities": {name: value for name, value in card["capabilities"].items() if name != "extendedAgentCard"},
        "skills": [_legacy_security(skill) for skill in card["skills"]],
    }
    if "securitySchemes" in card:
        legacy["securitySchemes"] = {
            name: _LEGACY_SCHEMES[next(iter(scheme))](next(iter(scheme.values())))
            for name, scheme in card["securitySchemes"].items()
        }
    return {**legacy, **_legacy_security({"securityRequirements": card.get("securityRequirements", ())})}


class _SkillWriter:
    def __init__(self, ids: Mapping[tuple[str, str], str], schemes: Mapping[str, Any], policies: Policies) -> None:
        self._ids, self.schemes, self.policies = ids, schemes, policies

    def of_endpoints(self, listed: Sequence[Endpoint]) -> list[dict[str, Any]]:
        return [
            self._skill(
                self._ids[each.key],
                describe_tool(each, self._ids),
                list(_tags(each, self.policies)),
                list(_examples(self._ids[each.key], each)),
                each.required_scopes,
            )
            for each in listed
        ]

    def of_namespaces(self, listed: Sequence[Endpoint]) -> list[dict[str, Any]]:
        """Return one skill for each namespace, which names its endpoints."""
        groups: dict[str, list[Endpoint]] = {}
        for endpoint in listed:
            groups.setdefault(group_of(endpoint), []).append(endpoint)
        skills = []
        for name, members in groups.items():
            named = ", ".join(self._ids[endpoint.key] for endpoint in members[:_MOST_NAMED])
            more = f" and {len(members) - _MOST_NAMED} more" if len(members) > _MOST_NAMED else ""
            about = f"{len(members)} skills, each called by its own id: {named}{more}."
            shared = set(members[0].required_scopes).intersection(*(endpoint.required_scopes for endpoint in members))
            tags = list(dict.fromkeys(tag for endpoint in members for tag in _tags(endpoint, self.policies)))
            examples = (list(_examples(self._ids[each.key], each)) for each in members)
            skills.append(self._skill(name, about, tags, next(filter(None, examples), [])[:1], sorted(shared)))
        return skills

    def requirements(self, scopes: Sequence[str]) -> list[dict[str, Any]]:
        """Return the alternatives of credentials for a call with these scopes."""
        return [{"schemes": {name: {"list": list(scopes)}}} for name in self.schemes]

    def _skill(
        self, name: str, about: str, tags: list[str], examples: list[str], scopes: Sequence[str]
    ) -> dict[str, Any]:
        title = " ".join(name.replace("_", " ").replace("-", " ").split()).capitalize()
        skill: dict[str, Any] = {"id": name, "name": title, "description": about, "tags": tags}
        if examples:
            skill["examples"] = examples
        if self.schemes and (scopes or self.policies.scope_required_for_invocation):
            skill["securityRequirements"] = self.requirements(scopes)
        return skill


def _tags(endpoint: Endpoint, policies: Policies) -> Iterator[str]:
    """Yield what a client can select by: the namespace, and how far the consequences of a call go."""
    semantic = endpoint.semantic
    yield group_of(endpoint)
    if semantic.capability:
        yield semantic.capability.replace("_", "-")
    yield _IMPACTS.get(semantic.impact, "reversible")
    conditions = {
        "idempotent": semantic.is_idempotent,
        "streaming": endpoint.streams,
        "needs-confirmation": asks_person(endpoint, policies),
        "deprecated": endpoint.deprecated is not None,
        "unreviewed": not endpoint.reviewed,
    }
    yield from (tag for tag, holds in conditions.items() if holds)


def _examples(skill: str, endpoint: Endpoint) -> Iterator[str]:
    """Yield a data part that calls the skill, and phrases that people use for it."""
    given = sample(endpoint.input_schema)
    if isinstance(given, dict):
        text = msgspec.json.encode({"skill": skill, "input": given}).decode()
        if len(text) <= _LONGEST_EXAMPLE:
            yield text
    hints = (one[0] if isinstance(one, list) and one else one for one in endpoint.semantic.parameter_hints.values())
    if phrases := [hint.strip() for hint in hints if isinstance(hint, str) and hint.strip()]:
        intent = (endpoint.semantic.intent or endpoint.description).strip().rstrip(".")
        yield cut(f"{intent}: {', '.join(phrases)}", _LONGEST_EXAMPLE)


def _schemes(modes: Iterable[str], issuer: str | None) -> dict[str, Mapping[str, Any]]:
    """Return the credentials that the interface takes: no signatures, because each is one of another message."""
    by = f" of {issuer}" if issuer else ""
    bearer = {
        "httpAuthSecurityScheme": {
            "scheme": "Bearer",
            "bearerFormat": "JWT",
            "description": f"A token{by} that names the agent and the scopes it was granted.",
        }
    }
    certificate = {"mtlsSecurityScheme": {"description": _PRESENTED}}
    known = {
        "open": ("AgentId", _OPEN),
        "token": ("Bearer", bearer),
        "key": ("ApiKey", _KEY),
        "mtls": ("ClientCertificate", certificate),
    }
    return dict(known[mode] for mode in modes if mode in known)


def _schemas(url: str, *, public: bool) -> dict[str, Any]:
    """Describe how a skill is called, and where its schema is."""
    params: dict[str, Any] = {"dataPart": {"skill": "the id of the skill", "input": "an object: its arguments"}}
    if public:
        params |= {"openapi": f"{url}/openapi.json", "operationId": "the id of the skill", "agis": f"{url}/"}
    return {
        "uri": SCHEMAS,
        "description": "A data part names the skill and its input, which is held against the schema of the contract.",
        "required": False,
        "params": params,
    }


def _legacy_security(block: Mapping[str, Any]) -> dict[str, Any]:
    rest = {name: value for name, value in block.items() if name != "securityRequirements"}
    asked = [
        {name: scopes["list"] for name, scopes in alternative["schemes"].items()}
        for alternative in block.get("securityRequirements", ())
    ]
    return {**rest, "security": asked} if asked else rest


_LEGACY_SCHEMES: Final[Mapping[str, Any]] = {
    "apiKeySecurityScheme": lambda scheme: {
        "type": "apiKey",
        "in": scheme["location"],
        **{name: value for name, value in scheme.items() if name != "location"},
    },
    "httpAuthSecurityScheme": lambda scheme: {"type": "http", **scheme},
    "mtlsSecurityScheme": lambda scheme: {"type": "mutualTLS", **scheme},
}
