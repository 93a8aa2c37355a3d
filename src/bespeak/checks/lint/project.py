"""Lint run over files and folders: single documents, whole deployments with their catalogs, and the baseline."""

from __future__ import annotations

import os
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

from bespeak.checks.lint.config import Config, Configs, Judge, relative_to
from bespeak.checks.lint.document import Checked, Examined, Times, check, examine, order, python_subject, settle
from bespeak.checks.lint.registration import check_compositions, check_service, effective_policies
from bespeak.checks.lint.rules.composition import STEP
from bespeak.checks.lint.rules.review import WAITING
from bespeak.checks.lint.subject import LintContext, failed_document
from bespeak.checks.lint.suppress import NAME, Baseline
from bespeak.contract.catalog.catalog import Catalog
from bespeak.contract.catalog.document import load_bundled, open_catalog
from bespeak.contract.endpoint import Endpoint
from bespeak.contract.extensions import BUNDLED
from bespeak.contract.handler import Composition
from bespeak.contract.policy import Policies
from bespeak.contract.recipe import Recipe
from bespeak.documents.deployment.folder import AGENT_SUFFIX, CONFIGURATIONS, ENDPOINTS, RECIPES
from bespeak.errors import ContractError
from bespeak.text.diagnostics.diagnostic import Diagnostic, Severity
from bespeak.text.diagnostics.report import SEVERITIES, Finding
from bespeak.text.diagnostics.reporters.text import from_disk
from bespeak.text.reading.text_file import read_text
from bespeak.text.source.tree import MAX_BYTES, Location

if TYPE_CHECKING:
    from bespeak.checks.lint.fixer import FixResult
    from bespeak.documents.deployment.server_toml import ServerDocument

Excluded = Callable[[Path], bool]  # function that returns True if settings exclude a file or folder

_SKIPPED: Final = frozenset({"node_modules", "__pycache__", "venv", "site-packages"})
"""Folders with third-party files. Hidden folders are skipped, too."""

_ENDPOINT: Final = re.compile(r"^[ \t]*+\[[ \t]*+endpoint[ \t]*+[.\]]", re.MULTILINE)
_JSON_KEYS: Final = ('"agis"', '"aiendpoint"', '"agtp_version"', '"agtp_api_version"')


def walk(folder: Path, excluded: Excluded) -> Iterator[Path]:
    """Find the files in a folder tree that may be documents, by path. No folder is entered twice."""
    entered: set[tuple[int, int]] = set()
    waiting = [folder]
    while waiting:
        here = waiting.pop()
        try:
            status = here.stat()
            if (status.st_dev, status.st_ino) in entered:
                continue
            entered.add((status.st_dev, status.st_ino))
            with os.scandir(here) as listing:
                entries = sorted(listing, key=lambda entry: entry.name)
        except OSError:
            continue  # unreadable folders are skipped
        folders: list[Path] = []
        for entry in entries:
            if entry.name.startswith(".") or entry.name in _SKIPPED:
                continue
            path, is_folder = here / entry.name, _is_folder(entry)
            if (not is_folder and not entry.name.endswith((".agis", ".toml", ".json"))) or excluded(path):
                continue
            if is_folder:
                folders.append(path)
            else:
                yield path
        waiting.extend(reversed(folders))


def looks_ours(name: str, text: str) -> bool:
    """Return True if a file looks like a bespeak document; most TOML and JSON files do not."""
    if name.endswith((".agis", AGENT_SUFFIX)) or name in (*CONFIGURATIONS, RECIPES):
        return True
    if name.endswith(".toml"):
        return _ENDPOINT.search(text) is not None
    return any(key in text for key in _JSON_KEYS) or ('"endpoints"' in text and '"vocabulary"' in text)


def _is_folder(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir()
    except OSError:  # a link to itself
        return False


@dataclass(frozen=True, slots=True)
class DeploymentFolder:
    """Folder whose endpoint files are served together."""

    root: Path
    configuration: Path | None = None
    catalog: Catalog | None = None  # catalog; None for the default one
    policies: Policies | None = None
    recipes: tuple[Recipe, ...] = ()
    wrong: tuple[Diagnostic, ...] = ()  # About the configuration, if they involve other files.
    server: ServerDocument | None = None  # what the configuration says


class Deployments:
    """Deployments of a run, each read once."""

    def __init__(self) -> None:
        self._above: dict[Path, Path | None] = {}
        self._deployments: dict[Path, DeploymentFolder] = {}
        self._catalogs: dict[tuple[Path, str], Catalog] = {}

    def deployment(self, path: Path) -> DeploymentFolder | None:
        """Return the deployment of a file: that of the nearest parent folder that is one."""
        root = self._root(path.absolute().parent)
        if root is None:
            return None
        if root not in self._deployments:
            self._deployments[root] = _read(root)
        return self._deployments[root]

    def context(self, path: Path | None, config: Config) -> LintContext:
        """Return the context for a file; without one, for a fetched document, which belongs to no deployment."""
        deployment = (self.deployment(path) if path is not None else None) or DeploymentFolder(config.base)
        return LintContext(
            catalog=self._catalog(config) or deployment.catalog or load_bundled(),
            policies=deployment.policies or Policies(),
            recipes=deployment.recipes,
            level=config.conformance_level,
            allowed_verbs=frozenset(verb.upper() for verb in config.allowed_verbs),
            allowed_segments=frozenset(config.allowed_segments),
        )

    def _catalog(self, config: Config) -> Catalog | None:
        if config.catalog is None:
            return None
        key = (config.base, config.catalog)
        if key not in self._catalogs:
            catalog, findings = open_catalog(config.catalog, config.base)
            if catalog is None:
                raise ContractError("The catalog in the lint settings is not usable.", findings)
            self._catalogs[key] = catalog
        return self._catalogs[key]

    def _root(self, folder: Path) -> Path | None:
        if folder not in self._above:
            if _configuration(folder) is not None:
                root: Path | None = folder
            elif folder.name == ENDPOINTS and _configuration(folder.parent) is None:
                root = folder.parent
            else:
                root = self._root(folder.parent) if folder.parent != folder else None
            self._above[folder] = root
        return self._above[folder]


def _configuration(folder: Path) -> Path | None:
    return next((folder / name for name in CONFIGURATIONS if (folder / name).is_file()), None)


def _read(root: Path) -> DeploymentFolder:
    configuration = _configuration(root)
    if configuration is None:
        return DeploymentFolder(root, recipes=_recipes(None, root, root / ENDPOINTS))
    from bespeak.documents.deployment.server_toml import read_server  # noqa: PLC0415 - most runs have no deployment

    # Faults in the files themselves are found when they are checked.
    server, _ = read_server(configuration)
    wrong: list[Diagnostic] = []
    catalog: Catalog | None = None
    if server.main.catalog is not None:
        catalog, findings = open_catalog(server.main.catalog, root)
        if catalog is None:
            wrong = [replace(finding, location=None, pointer="/server/catalog") for finding in findings[:1]]
    policies, _ = effective_policies(server.policies, catalog or load_bundled())
    recipes = _recipes(server.recipes, root, server.main.endpoints or root / ENDPOINTS)
    return DeploymentFolder(root, configuration, catalog, policies, recipes, tuple(wrong), server)


def _recipes(configured: Path | None, *folders: Path) -> tuple[Recipe, ...]:
    paths = [configured] if configured else [folder / RECIPES for folder in folders]
    path = next((path for path in paths if path.is_file()), None)
    if path is None:
        return ()
    from bespeak.documents.deployment.endpoint_toml import read_recipes  # noqa: PLC0415 - as above

    return read_recipes(path)[0]


STDIN: Final = "<stdin>"


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """Command-line options that override settings."""

    select: tuple[str, ...] = ()  # selectors that replace those of the settings
    extend_select: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    level: int | None = None
    fail_on: Severity | None = None
    with_edits: bool = False  # True if fixes are requested as text edits

    def applied(self, config: Config) -> Config:
        if self.select:
            config = replace(config, select=self.select, extend_select=(), ignore=())
        return replace(
            config,
            extend_select=(*config.extend_select, *self.extend_select),
            ignore=(*config.ignore, *self.ignore),
            conformance_level=self.level or config.conformance_level,
            fail_on=self.fail_on or config.fail_on,
        )


@dataclass(frozen=True, slots=True)
class LintResult:
    findings: tuple[Finding, ...]
    files: tuple[str, ...]
    failed: bool  # True if a finding reaches the severity at which its settings fail a run
    ignored: int = 0
    baselined: int = 0


@dataclass(frozen=True, slots=True)
class FixedDocument:
    path: Path
    shown: str
    before: str
    result: FixResult


@dataclass(slots=True)
class _LintedDocument:
    path: Path
    shown: str
    judge: Judge
    examined: Examined
    endpoints: tuple[Endpoint, ...] = ()
    name: str = ""  # name in the baseline, if it is not the path
    counts: bool = True  # True if the document counts as checked


class Project:
    """Documents of a run. File names are relative to the folder `here`."""

    def __init__(self, here: Path, configs: Configs, options: Options, *, measured: bool = False) -> None:
        self.here = here
        self.root = configs.run.base  # base folder of fingerprints and the baseline
        self._configs = configs
        self._options = options
        self._judges: dict[Path | None, Judge] = {}
        self._surroundings = Deployments()
        self._documents: dict[Path, _LintedDocument] = {}
        self._remote: dict[str, _LintedDocument] = {}  # Fetched documents by address. They belong to no deployment.
        self._loaded: dict[Path, Checked] = {}
        """Python files by path, with the findings about what they declared when they were imported."""
        self._recipes: dict[Path, Mapping[str, Recipe]] = {}  # recipes that Python files describe
        self._texts: dict[str, str] = {}
        self._together: set[Path] = set()  # documents with findings that involve other documents
        self.times = Times() if measured else None  # duration of each step, if requested

    def add(self, paths: Iterable[Path]) -> None:
        """Check the given files, whatever their names, and the documents in folders."""
        for given in paths:
            path = Path(os.path.abspath(given))  # noqa: PTH100 - without resolving links, which would change names
            if path.is_dir():
                for file in walk(path, lambda found: self._judge(found.parent).config.excludes(found)):
                    self._add(file, named=False)
            else:
                self._add(path, named=True)

    def add_text(self, text: str | Diagnostic, path: Path | None) -> None:
        """Check a text from an editor or a stream under the name of its file, or report why it cannot be read."""
        judge = self._judge(path.parent if path else self.here)
        shown = self._shown(path) if path else STDIN
        if isinstance(text, Diagnostic):
            self._report(path or Path(STDIN), shown, judge, [text])
            return
        self._texts[shown] = text
        self._look(path or Path(STDIN), shown, judge, text)

    def remote_context(self) -> LintContext:
        return self._surroundings.context(None, self._judge(self.here).config)

    def add_remote(
        self, address: str, checked: Checked | None, found: Iterable[Diagnostic] = (), *, is_document: bool = True
    ) -> None:
        """Add the findings in the text of a fetched document, if there is one, and those about the response."""
        judge = self._judge(self.here)
        inside = Examined(())
        if checked is not None:
            # A fetched document cannot be edited, so fixes are removed.
            bare = replace(checked, findings=tuple(replace(finding, fix=None) for finding in checked.findings))
            inside = settle(bare, judge, address)
            if checked.subject is not None:
                self._texts[address] = checked.subject.tree.text
        left, ignored = judge.visible(found, address)
        findings = (*inside.findings, *(judge.finding(finding, address) for finding in left))
        seen = Examined(findings, inside.ignored + ignored)
        self._remote[address] = _LintedDocument(Path(address), address, judge, seen, name=address, counts=is_document)

    def configurations(self) -> list[Path]:
        return [path for path in self._documents if path.name in CONFIGURATIONS]

    def add_python(
        self,
        path: Path,
        text: str,
        endpoints: Sequence[Endpoint],
        catalog: Catalog,
        own: Policies,
        *,
        recipes: Sequence[Recipe] = (),
    ) -> None:
        """Check endpoints that were declared in a Python file, at their places in its text."""
        judge = self._judge(path.parent)
        around = self._surroundings.context(path, judge.config)
        context = replace(around, catalog=catalog, policies=own, recipes=(*around.recipes, *recipes))
        self._recipes[path] = {recipe.name: recipe for recipe in recipes}
        shown = self._shown(path)
        subject = python_subject(text, shown, endpoints)
        self._texts[shown] = text
        self._loaded[path] = Checked(tuple(check(subject, context)), subject)
        self._settle_python(path, judge)

    def add_findings(self, path: Path, findings: Iterable[Diagnostic]) -> None:
        """Report a file that could not be checked itself, or more of one that was."""
        known = self._documents.get(path)
        self._report(path, self._shown(path), self._judge(path.parent), findings)
        if known is not None:
            found = (*known.examined.findings, *self._documents[path].examined.findings)
            self._documents[path] = replace(known, examined=replace(known.examined, findings=found))

    def _settle_python(self, path: Path, judge: Judge, extra: Sequence[Diagnostic] = ()) -> None:
        checked = self._loaded[path]
        assert checked.subject is not None
        examined = settle(checked, judge, relative_to(path, judge.config.base), extra=extra)
        # Nobody wants code to be rewritten by a fix for a document.
        bare = tuple(replace(one, diagnostic=replace(one.diagnostic, fix=None)) for one in examined.findings)
        endpoints = tuple(one.endpoint for one in checked.subject.endpoints)
        self._documents[path] = _LintedDocument(
            path, self._shown(path), judge, replace(examined, findings=bare, subject=None), endpoints
        )

    def text(self, shown: str) -> str | None:
        return self._texts.get(shown) or from_disk(str(self.here / shown))

    def baselines(self) -> tuple[Path, ...]:
        """Return the default places of a baseline: next to the settings, and in the folder of the run."""
        return self.root / NAME, self.here / NAME

    def check_together(self) -> None:
        """Check what involves several files: two endpoints with one path, a missing catalog."""
        extra: dict[Path, list[Diagnostic]] = defaultdict(list)
        groups: dict[Path, list[tuple[Endpoint, Path]]] = defaultdict(list)
        for path, document in self._documents.items():
            deployment = self._surroundings.deployment(path)
            if deployment is None:
                continue
            groups[deployment.root] += ((endpoint, path) for endpoint in document.endpoints)
            if deployment.configuration == path.absolute():
                extra[path] += deployment.wrong
        for group in groups.values():
            owners = {id(endpoint): path for endpoint, path in group}
            endpoints = [endpoint for endpoint, _ in group]
            deployment = self._surroundings.deployment(group[0][1]) if group else None
            together = (*check_service(endpoints), *self._compositions(group), *_by_extensions(deployment, endpoints))
            for endpoint, finding in together:
                path = owners[id(endpoint)]
                extra[path].append(self._placed(path, endpoint, finding))
        found = {path: findings for path, findings in extra.items() if findings}
        for path in {**found, **dict.fromkeys(self._together)}:
            document = self._documents[path]
            if path in self._loaded:
                self._settle_python(path, document.judge, found.get(path, ()))
                continue
            if (text := self._source(document)) is not None:
                self._look(path, document.shown, document.judge, text, found.get(path, ()))
        self._together = set(found)

    def _compositions(self, group: Sequence[tuple[Endpoint, Path]]) -> Iterator[tuple[Endpoint, Diagnostic]]:
        """Check compositions whose steps are in the run too; a server knows the others and reports them."""
        deployment = self._surroundings.deployment(group[0][1]) if group else None
        recipes = {recipe.name: recipe for recipe in deployment.recipes} if deployment is not None else {}
        for _, path in group:
            recipes |= self._recipes.get(path, {})
        composed = [one for one, _ in group if isinstance(one.handler, Composition) and one.handler.recipe in recipes]
        served = {one.key: one for one, _ in group if not isinstance(one.handler, Composition)}
        policies = (deployment.policies if deployment is not None else None) or Policies()
        for endpoint, _, findings in check_compositions(composed, recipes, served, policies):
            yield from ((endpoint, finding) for finding in findings if finding.rule != STEP.id)

    def _placed(self, path: Path, endpoint: Endpoint, finding: Diagnostic) -> Diagnostic:
        subject = self._loaded[path].subject if path in self._loaded else None
        own = next((one for one in subject.endpoints if one.endpoint is endpoint), None) if subject else None
        return own.place(finding) if own else finding

    def mend(self, known: Baseline | None, *, unsafe: bool) -> list[FixedDocument]:
        """Compute the fixes of all findings that are not in the baseline. The files on disk are not changed."""
        from bespeak.checks.lint.fixer import fix_text  # noqa: PLC0415 - most runs mend nothing

        mended: list[FixedDocument] = []
        for path, document in list(self._documents.items()):
            fixable = any(finding.diagnostic.fix for finding in document.examined.findings)
            text = self._source(document) if fixable else None
            if text is None:
                continue
            try:
                result = fix_text(text, partial(self._as_new, document, known), unsafe=unsafe)
            except Exception as error:  # noqa: BLE001 - the fixes of the other files are still made
                failed = failed_document("fixing the document", error, document.shown)
                finding = document.judge.finding(failed, relative_to(path, document.judge.config.base))
                document.examined = replace(document.examined, findings=(finding, *document.examined.findings))
                continue
            mended.append(FixedDocument(path, document.shown, text, result))
            if result.text != text:
                self._texts[document.shown] = result.text
                self._look(path, document.shown, document.judge, result.text)
        self.check_together()
        return mended

    def _as_new(self, document: _LintedDocument, known: Baseline | None, text: str) -> Examined:
        examined = self._examine(document.path, document.shown, document.judge, text)
        findings: Sequence[Finding] = examined.findings
        if known is not None:
            findings, _ = known.split(findings, document.judge.stands)
        subject = examined.subject
        if subject is not None and subject.kind == "endpoint":
            endpoints = [declared.endpoint for declared in subject.endpoints]
            if [one.key for one in endpoints] != [one.key for one in document.endpoints]:
                findings = [*findings, *map(Finding, self._collisions(document, endpoints))]
        return replace(examined, findings=tuple(findings))

    def _collisions(self, document: _LintedDocument, endpoints: Sequence[Endpoint]) -> Iterable[Diagnostic]:
        """Find collisions between endpoints and those of the other files of a deployment."""
        deployment = self._surroundings.deployment(document.path)
        others = (
            endpoint
            for other in self._documents.values()
            if deployment is not None
            and other is not document
            and self._surroundings.deployment(other.path) is deployment
            for endpoint in other.endpoints
        )
        own = set(map(id, endpoints))
        return [finding for endpoint, finding in check_service((*others, *endpoints)) if id(endpoint) in own]

    def _source(self, document: _LintedDocument) -> str | None:
        text = self._texts.get(document.shown) or read_text(document.path, MAX_BYTES)
        return text if isinstance(text, str) else None

    def outcome(self, baseline: Baseline | None = None) -> LintResult:
        """Return the findings in order, without those in the baseline."""
        findings: list[Finding] = []
        failed, baselined = False, 0
        present: set[str] = set()
        waiting: defaultdict[Path, list[Finding]] = defaultdict(list)
        for document in self._all():
            found: Sequence[Finding] = document.examined.findings
            if baseline is not None:
                found, known = baseline.split(found, document.judge.stands)
                present |= known
                baselined += len(document.examined.findings) - len(found)
            failed = failed or _fails(found, document.judge.config.fail_on)
            for finding in found:
                folder = self._surroundings.deployment(document.path) if finding.diagnostic.rule == WAITING.id else None
                (waiting[folder.root] if folder is not None else findings).append(finding)
        for root, found in waiting.items():
            findings.append(found[0] if len(found) == 1 else _waiting_in(self._shown(root), found))
        if baseline is not None:
            stale = self._stale(baseline, present)
            failed = failed or _fails(stale, self._judge(self.here).config.fail_on)
            findings += stale
        files = tuple(sorted(document.shown for document in self._all() if document.counts))
        ignored = sum(document.examined.ignored for document in self._all())
        return LintResult(tuple(sorted(findings, key=order)), files, failed, ignored, baselined)

    def new_baseline(self, old: Baseline) -> Baseline:
        """Return a baseline with all present findings that may be hidden."""
        found = [
            (finding, self._name(document))
            for document in self._all()
            for finding in document.examined.findings
            if not document.judge.stands(finding.diagnostic.rule)
        ]
        return old.merged(found, self._names(), self.root)

    def _stale(self, baseline: Baseline, present: set[str]) -> list[Finding]:
        judge = self._judge(self.here)
        place = Location(self._shown(baseline.path))
        return [
            judge.finding(replace(one, location=place), baseline.path.name)
            for one in baseline.stale(present, self._names(), self.root)
            if judge.is_on(one.rule)
        ]

    def _names(self) -> set[str]:
        return {self._name(document) for document in self._all()}

    def _name(self, document: _LintedDocument) -> str:
        return document.name or relative_to(document.path, self.root)

    def _all(self) -> Iterator[_LintedDocument]:
        yield from self._documents.values()
        yield from self._remote.values()

    def _judge(self, folder: Path) -> Judge:
        config = self._configs.of(folder)
        if config.file not in self._judges:
            self._judges[config.file] = Judge(self._options.applied(config))
        return self._judges[config.file]

    def _add(self, path: Path, *, named: bool) -> None:
        if path in self._documents:
            return
        judge = self._judge(path.parent)
        text = read_text(path, MAX_BYTES)
        shown = self._shown(path)
        if isinstance(text, Diagnostic):
            self._report(path, shown, judge, [text])
        elif named or looks_ours(path.name, text):
            self._look(path, shown, judge, text)

    def _report(self, path: Path, shown: str, judge: Judge, findings: Iterable[Diagnostic]) -> None:
        """Record the findings of a document that cannot be read or checked itself."""
        places = ((one, replace(one.location, file=shown) if one.location else Location(shown)) for one in findings)
        name = relative_to(path, judge.config.base)
        found = tuple(judge.finding(replace(one, location=place, fix=None), name) for one, place in places)
        self._documents[path] = _LintedDocument(path, shown, judge, Examined(found))

    def _look(self, path: Path, shown: str, judge: Judge, text: str, extra: Sequence[Diagnostic] = ()) -> None:
        examined = self._examine(path, shown, judge, text, extra)
        subject = examined.subject
        if self.times is not None and subject is not None and not extra:
            self.times.measure(subject, self._surroundings.context(path, judge.config))
        # Only the endpoints are stored: the trees of all files would take too much memory.
        endpoints = subject.endpoints if subject is not None and subject.kind == "endpoint" else ()
        self._documents[path] = _LintedDocument(
            path, shown, judge, replace(examined, subject=None), tuple(entry.endpoint for entry in endpoints)
        )

    def _examine(self, path: Path, shown: str, judge: Judge, text: str, extra: Sequence[Diagnostic] = ()) -> Examined:
        return examine(
            text,
            shown,
            self._surroundings.context(path, judge.config),
            judge,
            path=relative_to(path, judge.config.base),
            extra=extra,
            with_edits=self._options.with_edits,
        )

    def _shown(self, path: Path) -> str:
        return relative_to(path, self.here)


def _by_extensions(
    deployment: DeploymentFolder | None, endpoints: Sequence[Endpoint]
) -> Iterator[tuple[Endpoint, Diagnostic]]:
    """Check endpoints by what the extensions know of their deployment."""
    if deployment is not None and deployment.server is not None:
        for known in BUNDLED:
            if known.lints:
                yield from known.lazy(known.lints)(deployment.root, deployment.server, endpoints)


def _waiting_in(folder: str, found: Sequence[Finding]) -> Finding:
    """Report in one finding the files of a deployment that wait for a review."""
    message = f"{len(found)} files of {folder} have guesses that wait for a review"
    advice = f"Run `bespeak review {folder}`; REVIEW.md lists what is in doubt."
    return replace(found[0], diagnostic=replace(found[0].diagnostic, message=message, help=advice))


def _fails(findings: Iterable[Finding], limit: Severity) -> bool:
    weights = SEVERITIES[: SEVERITIES.index(limit) + 1]
    return any(finding.diagnostic.severity in weights for finding in findings)
