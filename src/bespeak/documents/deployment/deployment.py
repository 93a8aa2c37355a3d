"""A folder as one deployment: configuration, endpoint files, recipes, agents (AGTP-API A.1)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

from bespeak.contract.agent import Agent
from bespeak.contract.endpoint import Endpoint
from bespeak.contract.policy import Policies
from bespeak.contract.recipe import Recipe
from bespeak.contract.service import UNSPECIFIED, ServerIdentity, Service
from bespeak.contract.standard.methods import choose_methods
from bespeak.documents.deployment.endpoint_toml import endpoint_of, read_recipes, recipes_of
from bespeak.documents.deployment.folder import (
    AGENTS,
    CONFIGURATIONS,
    ENDPOINTS,
    RECIPES,
    is_folder,
    is_same,
    is_there,
    list_files,
    list_tree,
    read_toml,
)
from bespeak.documents.deployment.server_toml import ServerDocument, read_server, report_unread, server_of
from bespeak.documents.rules import ENDPOINT_IN_TWO_FILES, INCOMPLETE_IDENTITY, NOTHING_TO_SERVE, UNKNOWN_DOCUMENT
from bespeak.state.identity.agent_json import read_agent
from bespeak.text.diagnostics.diagnostic import Diagnostic, brief, has_errors
from bespeak.text.reading.rules import DUPLICATE, UNREADABLE
from bespeak.text.source.tree import Location

_ASSUMED: Final = ServerIdentity(server_id="localhost", operator=UNSPECIFIED, contact="")


@dataclass(frozen=True, slots=True, kw_only=True)
class Deployment:
    root: Path
    server: ServerDocument = field(default_factory=ServerDocument)
    endpoints: tuple[Endpoint, ...] = ()
    recipes: tuple[Recipe, ...] = ()
    agents: tuple[Agent, ...] = ()
    faults: tuple[Diagnostic, ...] = ()  # errors in the configuration: its intent is unknown, so it must not be served

    @property
    def policies(self) -> Policies:
        return self.server.policies

    def service(self) -> Service:
        """Build the service of these files, without endpoints from Python code or an AGIS document."""
        server = self.server
        service = Service(
            identity=server.identity or _ASSUMED,
            endpoints=self.endpoints,
            policies=server.policies,
            recipes=self.recipes,
            agents=self.agents,
            agent_disclosure=server.agents.disclosure,
            agent_disclosure_notice=server.agents.disclosure_notice,
            require_known_agents=server.agents.require_known,
            agents_stale_after=server.agents.stale_after,
            apis=server.apis,
            hosted_protocols=server.hosted_protocols,
            document_version=server.main.document_version,
            description=server.main.description,
            vocabulary=server.vocabulary,
            data_manifest=server.data_manifest,
            rate_limits=server.limits.rate,
            stream_limits=server.limits.stream,
            trusts_upstreams=server.upstream.trust_answers,
            methods=choose_methods(server.methods.enable),
            procedures=server.procedures,
            semantic=server.extension_tables.get("semantic"),
        )
        return replace(service, catalog=server.main.catalog) if server.main.catalog else service


def read_deployment(path: Path, *, beside_app: bool = False) -> tuple[Deployment, list[Diagnostic]]:
    """Read a folder or a single TOML file and collect its findings. Never raises.

    With `beside_app` the file configures an App. Unless it names that app, endpoint files are left out.
    """
    if is_folder(path):
        configuration = next((path / name for name in CONFIGURATIONS if is_there(path / name)), path)
        server, findings = (ServerDocument(), []) if configuration is path else read_server(configuration)
        return _read_rest(path, configuration, server, findings)
    table = read_toml(path)
    if isinstance(table, Diagnostic):
        return Deployment(root=path.parent, faults=(table,)), [table]
    if table.has("endpoint"):
        endpoint, findings = endpoint_of(table, str(path))
        return Deployment(root=path.parent, endpoints=(endpoint,) if endpoint else ()), findings
    if table.has("recipe"):
        recipes, findings = recipes_of(table, str(path))
        return Deployment(root=path.parent, recipes=recipes), findings
    server, findings = server_of(table, path.parent)
    if beside_app and server.main.app is None:
        faults = tuple(finding for finding in findings if finding.severity == "error")
        agents = _read_agents(server.agents.directory, path.parent / AGENTS, findings)
        # The app has what the identity lacks.
        findings = [finding for finding in findings if finding.rule != INCOMPLETE_IDENTITY.id]
        return Deployment(root=path.parent, server=server, agents=agents, faults=faults), findings
    return _read_rest(path.parent, path, server, findings)


def _read_rest(
    root: Path, configuration: Path, server: ServerDocument, findings: list[Diagnostic]
) -> tuple[Deployment, list[Diagnostic]]:
    faults = tuple(finding for finding in findings if finding.severity == "error")
    if server.identity is None and server.main.app is None:
        message = f"server_id is missing; {_ASSUMED.server_id!r} is used"
        advice = f"Write [server] with server_id, operator and contact into {CONFIGURATIONS[0]}."
        findings.append(INCOMPLETE_IDENTITY.found(message, Location(str(configuration)), advice=advice))
    folder = server.main.endpoints or root / ENDPOINTS
    endpoints = _read_endpoints(configuration, folder, server, findings)
    agents = _read_agents(server.agents.directory, root / AGENTS, findings)
    recipes = _read_recipes(server.recipes, (root / RECIPES, folder / RECIPES), findings)
    elsewhere = server.main.app is not None or server.document is not None or server.methods.enable
    if not endpoints and not elsewhere and not has_errors(findings):
        message = "no endpoint file and no app were found; only the built-in methods are served"
        advice = f'Name the App as app = "module:app" in [server], or put endpoint files into {folder}.'
        findings.append(NOTHING_TO_SERVE.found(message, Location(str(root)), advice=advice))
    made = Deployment(root=root, server=server, endpoints=endpoints, recipes=recipes, agents=agents, faults=faults)
    return made, findings


def _read_endpoints(
    configuration: Path, folder: Path, server: ServerDocument, findings: list[Diagnostic]
) -> tuple[Endpoint, ...]:
    root = configuration if is_folder(configuration) else configuration.parent
    found: dict[tuple[str, str], Endpoint] = {}
    if is_folder(folder):
        _collect(found, list_tree(folder, ".toml", findings), findings)
    elif server.main.endpoints is not None:
        findings.append(UNREADABLE.found("`endpoints` names a folder that does not exist", Location(str(folder))))
    if not is_same(folder, root):
        others = [path for path in list_files(root, ".toml", findings) if path.name != configuration.name]
        _collect(found, others, findings, beside=True)
    return tuple(found.values())


def _collect(
    found: dict[tuple[str, str], Endpoint], paths: Iterable[Path], findings: list[Diagnostic], *, beside: bool = False
) -> None:
    """Add the endpoints of files. Other TOML files may be beside a configuration, but not in the endpoints folder."""
    for path in paths:
        if path.name == RECIPES:
            continue
        table = read_toml(path)
        if isinstance(table, Diagnostic):
            findings.append(table)
            continue
        if beside and not table.has("endpoint"):
            findings.extend(report_unread(table, path))
            continue
        endpoint, wrong = endpoint_of(table, str(path))
        findings.extend(wrong)
        if endpoint is None:
            continue
        first = found.setdefault(endpoint.key, endpoint)
        if first is not endpoint:
            message = f"{brief(str(endpoint))[1:-1]} is already declared in {first.location}"
            findings.append(ENDPOINT_IN_TWO_FILES.found(message, endpoint.location, "/endpoint", "Remove one of them."))


def _read_recipes(configured: Path | None, usual: tuple[Path, ...], findings: list[Diagnostic]) -> tuple[Recipe, ...]:
    path = next((path for path in usual if is_there(path)), None)
    if configured is not None and (is_there(configured) or configured.name != RECIPES or path is None):
        path = configured
    recipes, wrong = read_recipes(path) if path is not None else ((), [])
    findings.extend(wrong)
    return recipes


def _read_agents(configured: Path | None, usual: Path, findings: list[Diagnostic]) -> tuple[Agent, ...]:
    folder = configured or usual
    if not is_folder(folder):
        if configured is not None:
            message = "`directory` of [agents] names a folder that does not exist"
            findings.append(UNREADABLE.found(message, Location(str(folder))))
        return ()
    agents: dict[str, Agent] = {}
    files: dict[str, Path] = {}
    for path in list_files(folder, ".json", findings):
        if path.name.endswith((".genesis.json", "trust-anchors.json")):
            message = "this server does not use genesis documents and trust anchors"
            findings.append(UNKNOWN_DOCUMENT.found(message, Location(str(path)), severity="info"))
            continue
        agent, wrong = read_agent(path)
        findings.extend(wrong)
        if agent is not None and agent.agent_id in agents:
            message = f"the agent {agent.agent_id[:12]}… is already described in {files[agent.agent_id]}"
            findings.append(DUPLICATE.found(message, Location(str(path)), "/agent_id"))
        elif agent is not None:
            agents[agent.agent_id], files[agent.agent_id] = agent, path
    return tuple(agents.values())
