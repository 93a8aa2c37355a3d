"""Read the arguments of `bespeak diff`: a document, folder, app, Git revision or live server becomes a Contract."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Callable, Iterable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

from bespeak.checks.evolution.change import ContractChange
from bespeak.checks.evolution.contract import Contract, manifest_contract, service_contract
from bespeak.checks.evolution.git_revision import check_out
from bespeak.checks.lint.reading import read_subject
from bespeak.checks.lint.registration import effective_policies
from bespeak.checks.lint.subject import Subject
from bespeak.contract.catalog.bundled import open_catalog
from bespeak.documents.agis.deployment import with_document
from bespeak.documents.deployment.deployment import read_deployment
from bespeak.documents.deployment.folder import CONFIGURATIONS
from bespeak.documents.files.positions import with_positions
from bespeak.documents.manifest_json import parse_manifest
from bespeak.errors import ConfigError, ContractError
from bespeak.protocol.locator import is_web
from bespeak.text.diagnostics.diagnostic import Diagnostic, has_errors
from bespeak.text.reading.text_file import read_text
from bespeak.text.source.span import Location
from bespeak.text.source.tree import MAX_BYTES

GIT: Final = "git:"
_TIMEOUT: Final = 120
"""Timeout in seconds for importing an app and reading its manifest."""

Locate = Callable[[ContractChange], Location | None]


@dataclass(frozen=True, slots=True)
class ContractSource:
    """A contract, with the locations of its parts if it was read from a file."""

    contract: Contract
    locate: Locate = lambda change: change.location

    def place(self, changes: Iterable[ContractChange]) -> list[ContractChange]:
        """Add source locations to the changes."""
        located = [replace(change, location=self.locate(change)) for change in changes]
        placed = with_positions(change.diagnostic() for change in located)
        return [replace(change, location=found.location) for change, found in zip(located, placed, strict=True)]


def contract_of(
    target: str, other: str, options: Mapping[str, Any], open_files: ExitStack, *, tolerant: bool = False
) -> ContractSource:
    """Read the contract that an argument names. `other` is the other argument: `git:REV` alone means its path at REV.

    With `tolerant`, an AGIS document may have errors. Raises BespeakError.
    """
    if target.startswith(GIT):
        return _at_revision(target, other, open_files, tolerant=tolerant)
    if target.startswith("agtp://") or is_web(target):
        return ContractSource(asyncio.run(_live(target, options)))
    if "://" in target:
        raise ConfigError(
            f"{target!r} is not a supported URI: give agtp://HOST[:PORT], https://HOST, a folder or a file"
        )
    return _local(target, Path.cwd(), tolerant=tolerant)


def _at_revision(target: str, other: str, open_files: ExitStack, *, tolerant: bool) -> ContractSource:
    revision, _, named = target.removeprefix(GIT).partition(":")
    path = named or other
    if path.startswith(GIT):
        path = path.removeprefix(GIT).partition(":")[2]
    if not path or "://" in path:
        raise ConfigError(f"{target} has no path, and {other} is not a path; write git:{revision}:PATH")
    into = Path(open_files.enter_context(TemporaryDirectory(prefix="bespeak-")))
    if _is_module(path):
        here = Path.cwd()
        return _read_temporary(path, check_out(revision, here, into), tolerant=tolerant, into=into, name=target)
    place = Path(path)
    # A configuration and a module may refer to files beside them.
    around = place.parent if place.suffix in (".py", ".toml") else None
    found = check_out(revision, place, into, surroundings=around)
    return _read_temporary(str(found), into, tolerant=tolerant, into=into, name=target)


def _read_temporary(path: str, base: Path, *, tolerant: bool, into: Path, name: str) -> ContractSource:
    """Read a contract from a temporary folder, and hide that folder in locations and messages."""
    try:
        return ContractSource(_local(path, base, tolerant=tolerant).contract, lambda _: None)
    except ContractError as error:
        findings = [finding for finding in error.findings if isinstance(finding, Diagnostic)]
        shown = [replace(finding, location=_renamed(finding.location, into, name)) for finding in findings]
        raise ContractError(error.message.replace(f"{into}/", f"{name}:"), shown) from error
    except ConfigError as error:
        raise ConfigError(str(error).replace(f"{into}/", f"{name}:")) from error


def _renamed(location: Location | None, into: Path, name: str) -> Location | None:
    return location and replace(location, file=location.file.replace(f"{into}/", f"{name}:"))


def _local(target: str, base: Path, *, tolerant: bool) -> ContractSource:
    path = Path(target)
    if _is_module(target) or path.suffix == ".py":
        return ContractSource(_imported(target, base))
    if target and (path.is_dir() or path.suffix == ".toml"):
        return _deployment(path, base)
    if not target or not path.exists():
        raise ConfigError(
            f"{target!r} not found: give an .agis document, a .toml or .py file, a folder, "
            "a manifest, module:app, agtp://HOST, https://HOST, or git:REVISION"
        )
    return _document(path, tolerant=tolerant)


def _is_module(target: str) -> bool:
    module, _, name = target.rpartition(":")
    return len(module) > 1 and name.isidentifier() and (module.endswith(".py") or "/" not in module)


def _document(path: Path, *, tolerant: bool) -> ContractSource:
    text = read_text(path, MAX_BYTES)
    if isinstance(text, Diagnostic):
        raise ContractError(f"{path} cannot be read", [text])
    subject = read_subject(text, str(path))
    if isinstance(subject, Diagnostic):
        raise ContractError(f"{path} cannot be compared", [subject])
    if subject.kind == "manifest":
        manifest, findings = parse_manifest(text.encode())
        if manifest is None:
            raise ContractError(f"{path} cannot be compared", findings)
        return ContractSource(manifest_contract(manifest))
    if subject.agis is None:
        raise ContractError(f"{path} is not a contract", subject.found)
    if not tolerant and has_errors(subject.found):
        raise ContractError(f"{path} has errors; fix them first", subject.found)
    return ContractSource(_agis_contract(subject), _locator(subject))


def _agis_contract(subject: Subject) -> Contract:
    document = subject.agis
    assert document is not None
    return Contract(
        endpoints=tuple(entry.endpoint for entry in document.endpoints),
        vocabulary=document.vocabulary,
        data_manifest=document.data_manifest,
        version=document.version or document.vocabulary.version,
    )


def _locator(subject: Subject) -> Locate:
    declared = {str(entry.endpoint): entry for entry in subject.endpoints}

    def locate(change: ContractChange) -> Location | None:
        if not change.endpoint:
            return subject.tree.locate(change.pointer, key=True)
        entry = declared.get(change.endpoint)
        return subject.tree.locate(entry.pointer(change.pointer), key=True) if entry else None

    return locate


def _deployment(path: Path, base: Path) -> ContractSource:
    deployment, findings = read_deployment(path)
    if has_errors(findings):
        raise ContractError(f"{path} has errors; fix them first", with_positions(findings))
    if deployment.server.main.app is not None:
        return ContractSource(_imported(str(path), base))
    if not path.is_dir() and path.name not in CONFIGURATIONS and deployment.server.identity is None:
        return ContractSource(Contract(endpoints=deployment.endpoints))
    service = deployment.service()
    catalog, found = open_catalog(service.catalog, deployment.root)
    if catalog is None:
        raise ContractError(f"{path} has errors; fix them first", found)
    if deployment.server.document is not None:
        from bespeak.app.authoring.agis_contract import open_agis  # noqa: PLC0415 - a folder seldom has a document

        described = open_agis(deployment.server.document, catalog, service.policies).service
        service = with_document(service, described, deployment.server)
    policies, found = effective_policies(service.policies, catalog)
    if has_errors(found):
        raise ContractError(f"{path} has errors; fix them first", found)
    contract = replace(service_contract(service, policies), catalog_version=catalog.version)
    configuration = next((path / name for name in CONFIGURATIONS if (path / name).is_file()), None)
    return ContractSource(
        contract,
        lambda change: (
            change.location or (Location(str(configuration)) if configuration and not change.endpoint else None)
        ),
    )


def _imported(target: str, base: Path) -> Contract:
    """Read the contract of an app in a separate process, since two revisions of a module cannot be imported
    together.
    """
    command = [sys.executable, "-m", "bespeak", "discover", target, "--json"]
    try:
        done = subprocess.run(  # noqa: S603 - ourselves
            command, capture_output=True, check=False, cwd=base, timeout=_TIMEOUT, stdin=subprocess.DEVNULL
        )
    except subprocess.TimeoutExpired:
        raise ConfigError(f"{target} did not return its contract within {_TIMEOUT} seconds") from None
    if done.returncode:
        said = done.stderr.decode(errors="replace").strip().removeprefix("bespeak: ")
        raise ConfigError(f"{target} cannot be compared: {said}")
    manifest, findings = parse_manifest(done.stdout)
    if manifest is None:
        raise ContractError(f"{target} did not print a valid manifest", findings)
    return manifest_contract(manifest)


async def _live(uri: str, options: Mapping[str, Any]) -> Contract:
    from bespeak.app.cli.service import open_service  # noqa: PLC0415 - files need no client

    async with open_service(uri, **options) as client:
        return manifest_contract(await client.discover())
