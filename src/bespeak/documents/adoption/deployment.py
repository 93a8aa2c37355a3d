"""The files of a deployment in front of an upstream: configuration, endpoint files with their guesses, REVIEW.md."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any, Final, TypeVar
from urllib.parse import urlsplit

import tomli

from bespeak.contract.endpoint import Endpoint
from bespeak.contract.handler import ExternalService, McpServer, McpTool
from bespeak.contract.limits import Rate, RateLimits
from bespeak.contract.service import ServerIdentity, Service
from bespeak.documents.adoption.facade import (
    DANGERS,
    MARKER,
    RISKS,
    UNREVIEWED,
    Candidate,
    Facade,
    Guess,
    ImportOrigin,
    LeftOut,
    Variable,
    danger_of,
    is_doubtful,
    is_folded,
    is_weighty,
)
from bespeak.documents.adoption.path_choice import style_fault
from bespeak.documents.adoption.sanitizer import first_sentence, plain_text
from bespeak.documents.deployment.deployment import Deployment
from bespeak.documents.deployment.folder import CONFIGURATIONS
from bespeak.documents.projections.deployment_files import configuration_data, endpoint_data, function_names
from bespeak.documents.toml_text import Written, toml_text
from bespeak.text.diagnostics.diagnostic import Diagnostic, printable
from bespeak.text.language.injection import instruction
from bespeak.text.language.names import hyphenated
from bespeak.text.reading.rules import MALFORMED
from bespeak.text.reading.text_file import read_text
from bespeak.text.source.edit import line_end, line_start, placed_edits, whole_lines
from bespeak.text.source.pointer import child, value_at
from bespeak.text.source.toml_tree import TomlTree, parse_toml, toml_comments
from bespeak.text.source.tree import Change, Place, Span, SyntaxFault, TextEdit, apply_edits, deletion

_VARYING: Final = re.compile(
    r"'[^']*'|\{[^{}]*\}|\b[0-9][0-9.,]*\b|\b(?!HTTP\b|AGTP\b)[A-Z]{3,}\b|(?<!\w)/[\w{}./~-]++|(?<=: ).*", re.DOTALL
)
"""Parts of a reason that differ by endpoint: quoted words, parameters, numbers, methods, paths, text after a colon."""

Entry = TypeVar("Entry")


def kind_of(reason: str) -> str:
    """Return a reason without its varying parts, so that reasons of one kind are equal."""
    return _VARYING.sub(lambda found: f"{found[0][0]}…{found[0][-1]}" if found[0][:1] in "'{" else "…", reason)


def grouped(entries: Iterable[Entry], key: Callable[[Entry], Hashable]) -> list[list[Entry]]:
    """Group entries by a key, in the order of the first of each."""
    groups: dict[Hashable, list[Entry]] = {}
    for entry in entries:
        groups.setdefault(key(entry), []).append(entry)
    return list(groups.values())


def shown(names: Sequence[str], most: int) -> str:
    """List names on one line; count those after the first `most`."""
    rest = len(names) - most
    return ", ".join(names[:most]) + (f" and {rest} more" if rest > 0 else "")


def counted(texts: Iterable[str], most: int = 4) -> str:
    """List the different texts, the most frequent first, each with its number if there are several."""
    counts = Counter(texts)
    if len(counts) == 1:
        return next(iter(counts))
    return shown([f"{text} ({number})" for text, number in counts.most_common()], most)


def wrapped(names: Sequence[str], most: int) -> Iterator[str]:
    """Yield indented lines with many names; count those after the first `most`."""
    here = " "
    for index, name in enumerate(names[:most]):
        part = f" {name}{',' if index < min(len(names), most) - 1 else ''}"
        if len(here) + len(part) > 116 and here.strip():
            yield here
            here = " "
        here += part
    yield here + (f" and {len(names) - most} more" if len(names) > most else "")


def plain(text: str) -> str:
    """Return a text on one line, without markup and terminal controls."""
    return printable(" ".join(text.split()))[:300].replace("`", "'").replace("<", "&lt;")


def code(text: str) -> str:
    return f"`{plain(text)}`"


_MOST_LISTED: Final = 60  # endpoints that one entry of a danger lists
_MOST_GROUPS: Final = 100  # entries in the list of guesses that repeat
_EXAMPLES: Final = 3
_LONGEST_SUMMARY: Final = 120

Entries = Sequence[tuple[str, Facade]]  # endpoints, as code spans, with their facades


def used_variables(entries: Entries) -> dict[str, Variable]:
    """Return the variables that hold secrets, by their names."""
    return {variable.name: variable for _, facade in entries for variable in facade.variables}


def review_lines(
    origin: ImportOrigin, entries: Entries, left_out: Sequence[LeftOut], own: Sequence[Guess], notes: Sequence[LeftOut]
) -> Iterator[str]:
    """Yield the lines of REVIEW.md. `own` are guesses about the service itself, `notes` the reader's reports."""
    all_guesses = [*own, *(guess for _, facade in entries for guess in facade.guesses)]
    counts = {risk: sum(guess.risk == risk for guess in all_guesses) for risk in RISKS}
    yield f"# What to review: {plain(origin.title) or 'the import'}\n"
    yield f"{origin.made_by}.\n"
    yield (
        f"These endpoints were derived from {origin.form}. It lacks facts that agents need, above all whether a call "
        "can be undone. Such facts were guessed: do not rely on them until a person has confirmed them (AGTP-API "
        "14.1). `bespeak review FOLDER` shows the endpoints one by one, the most dangerous first, and marks those "
        "that you accept. Doubtful guesses are also comments `# review (confidence): ...` in the files. Until an "
        "endpoint is accepted, manifest and /.well-known/ai mark it as unreviewed.\n"
    )
    yield f"- endpoints: {len(entries)}"
    yield f"- guesses: {', '.join(f'{counts[risk]} of {risk} risk' for risk in RISKS)}"
    yield f"- left out: {len(left_out)}"
    yield f"- notes on the description: {len(notes)}"
    yield from _variables(used_variables(entries))
    told: set[int] = set()
    yield from _doubts(entries, told)
    yield from _dangers(entries, told)
    rest = [("", guess) for guess in own]
    rest += [(endpoint, guess) for endpoint, facade in entries for guess in facade.guesses]
    # Paths have a section of their own.
    yield from _repeated([one for one in rest if id(one[1]) not in told and one[1].at != "/path"])
    yield from _listed("Left out: operations without an endpoint", left_out, "operations")
    yield from _listed("Missing or unusable parts of the description", notes, "places")
    yield from _renamed(entries)


def _variables(variables: Mapping[str, Variable]) -> Iterator[str]:
    if not variables:
        return
    yield "\n## Credentials to set before the server starts\n"
    yield "This server sends them upstream; a caller's identity is never forwarded. `.env.example` lists them too.\n"
    yield from (f"- `{variable.name}`: {plain(variable.what)}" for variable in variables.values())


def _doubts(entries: Entries, told: set[int]) -> Iterator[str]:
    """Yield the endpoints with a doubtful guess about what they do, beside what the upstream says of itself."""
    doubtful: list[tuple[float, str, Facade, list[Guess]]] = []
    for endpoint, facade in entries:
        guesses = [guess for guess in facade.guesses if is_doubtful(guess.at, guess.confidence)]
        if guesses:
            doubtful.append((min(guess.confidence for guess in guesses), endpoint, facade, guesses))
    if doubtful:
        yield f"\n## In doubt: {len(doubtful)} endpoint{'' if len(doubtful) == 1 else 's'}\n"
    for _, endpoint, facade, guesses in sorted(doubtful, key=lambda one: one[0])[:_MOST_GROUPS]:
        told.update(map(id, guesses))
        yield f"- [ ] {endpoint} for {plain(upstream_of(facade.candidate))}"
        yield from (f"  - ({guess.confidence:.1f}) {_said(guess, [guess])}" for guess in guesses)
    if len(doubtful) > _MOST_GROUPS:
        yield f"- {len(doubtful) - _MOST_GROUPS} more; `bespeak review FOLDER --list` shows them."


def _dangers(entries: Entries, told: set[int]) -> Iterator[str]:
    """Yield the endpoints that could hurt, by danger and by the reason of the guess; add that guess to `told`."""
    by_danger: dict[str, list[tuple[str, Guess]]] = {}
    for endpoint, facade in entries:
        danger = danger_of(facade.endpoint, [(guess.at, guess.confidence) for guess in facade.guesses])
        guess = next((guess for guess in facade.guesses if guess.at == "/semantic/impact"), None)
        if danger not in ("", "doubt") and guess is not None:
            told.add(id(guess))
            by_danger.setdefault(danger, []).append((endpoint, guess))
    for danger, phrase in DANGERS.items():
        if found := by_danger.get(danger, []):
            yield f"\n## What {phrase}: {len(found)} endpoint{'' if len(found) == 1 else 's'}\n"
        for group in grouped(found, lambda one: (one[1].at, one[1].text, kind_of(one[1].why))):
            guess = group[0][1]
            yield f"- [ ] ({guess.confidence:.1f}) {_said(guess, [one for _, one in group])}"
            yield from wrapped([endpoint for endpoint, _ in group], _MOST_LISTED)


def _repeated(found: Sequence[tuple[str, Guess]]) -> Iterator[str]:
    """Yield groups of guesses, each with its endpoint, which is empty for the service itself; fold the minor ones."""
    folded = Counter(guess.at.removeprefix("/").replace("/", ".") for name, guess in found if name and is_folded(guess))
    found = [one for one in found if not (one[0] and is_folded(one[1]))]
    groups = grouped(found, lambda one: (bool(one[0]), one[1].at, one[1].risk, kind_of(one[1].why)))
    groups.sort(key=lambda group: (RISKS.index(group[0][1].risk), min(guess.confidence for _, guess in group)))
    if groups:
        yield "\n## Other guesses\n"
    for group in groups[:_MOST_GROUPS]:
        endpoint, first = group[0]
        said = _said(first, [guess for _, guess in group])
        place = first.at.removeprefix("/").replace("/", ".")
        where = shown([name or "`bespeak.toml`" for name, _ in group], _EXAMPLES)
        count = f"{len(group)} endpoints: " if len(group) > 1 and endpoint else ""
        yield f"- [ ] ({min(guess.confidence for _, guess in group):.1f}) `{place}`: {said} {count}{where}"
    if left := sum(len(group) for group in groups[_MOST_GROUPS:]):
        yield f"- {left} more guesses are comments in the files."
    if folded:
        kinds = shown([f"{place} ({count})" for place, count in folded.most_common()], 12)
        yield f"\n{folded.total()} guesses of low risk are not listed: {kinds}."


def _said(guess: Guess, alike: Sequence[Guess]) -> str:
    other = f" Or: {plain(guess.otherwise)}." if guess.otherwise and len({one.otherwise for one in alike}) == 1 else ""
    why = plain(guess.why if len({one.why for one in alike}) == 1 else kind_of(guess.why))
    return f"{plain(counted(one.text for one in alike))}. {why[:1].upper()}{why[1:]}.{other}"


def _listed(title: str, entries: Sequence[LeftOut], noun: str) -> Iterator[str]:
    if not entries:
        return
    yield f"\n## {title}\n"
    for group in grouped(entries, lambda one: kind_of(one.why)):
        whats = shown([plain(one.what) for one in group], _EXAMPLES)
        if len(group) == 1:
            yield f"- {whats}: {plain(group[0].why)}"
        else:
            yield f"- {plain(counted(one.why for one in group))}, {len(group)} {noun}: {whats}"


def _renamed(entries: Entries) -> Iterator[str]:
    described = [entry for entry in entries if entry[1].candidate.path is not None]
    changed = [(name, one) for name, one in described if one.rewritten or one.endpoint.path != one.candidate.path]
    if changed:
        yield "\n## Changed paths\n"
    for group in grouped(changed, lambda one: tuple(map(kind_of, one[1].rewritten))):
        reasons = group[0][1].rewritten or ("the path was taken",)
        why = "; ".join(map(kind_of, reasons) if len(group) > 1 else reasons)
        examples = [f"{name} for {code(facade.candidate.origin)}" for name, facade in group]
        yield f"- {len(group)}: {plain(why)}. {shown(examples, _EXAMPLES)}"


REVIEW: Final = "REVIEW.md"
ENVIRONMENT: Final = ".env.example"
ENDPOINTS: Final = "endpoints"
_RATE: Final = Rate(120, "min", 120)  # limit of calls in front of an upstream that states none


@dataclass(frozen=True, slots=True)
class Imported:
    """Files of a deployment by path, with a summary of the import."""

    service: Service  # what the files describe
    files: dict[str, str]
    facades: tuple[Facade, ...]
    left_out: tuple[LeftOut, ...]  # candidates that have no endpoint
    notes: tuple[LeftOut, ...]  # parts of the document that were ignored or read differently than written
    variables: tuple[Variable, ...]
    guesses: dict[str, int]  # number of guesses by risk


def make_deployment(
    origin: ImportOrigin, facades: Sequence[Facade], left_out: Sequence[LeftOut], notes: Sequence[LeftOut] = ()
) -> Imported:
    """Write the files of facades. `notes` lists what the reader of their document could not use."""
    names = function_names([facade.endpoint for facade in facades])
    entries = [(code(str(facade.endpoint)), facade) for facade in facades]
    service, general = _service(origin, facades)
    origin = replace(origin, title=service.identity.name)
    # Segments that keep the upstream's name, although lint would take it for a verb: /starred.
    segments = {(part, one.endpoint.method) for one in facades for part in one.endpoint.path[1:].split("/")}
    odd = sorted({part for part, method in segments if "{" not in part and style_fault(part, method)})
    files = {"bespeak.toml": _configuration(service, general, origin, odd)}
    written: Written = {}
    for name, facade in zip(names, facades, strict=True):
        file = facade.file or f"{ENDPOINTS}/{name.replace('_', '-')}.toml"
        files[file] = facade.text or _endpoint_file(facade, origin, written)
    files[REVIEW] = "\n".join(review_lines(origin, entries, left_out, general, notes)) + "\n"
    if variables := used_variables(entries):
        lines = [f"# {origin.made_by}: credentials for the upstream. Set them, and keep them out of this folder."]
        lines += [f"# {printable(one.what)}\n{one.name}=" for one in variables.values()]
        files[ENVIRONMENT] = "\n".join(lines) + "\n"
    guesses = [*general, *(guess for facade in facades for guess in facade.guesses)]
    counts = {str(risk): sum(guess.risk == risk for guess in guesses) for risk in RISKS}
    service = replace(service, endpoints=tuple(facade.endpoint for facade in facades))
    return Imported(service, files, tuple(facades), tuple(left_out), tuple(notes), tuple(variables.values()), counts)


def _service(origin: ImportOrigin, facades: Sequence[Facade]) -> tuple[Service, list[Guess]]:
    handlers = [facade.endpoint.handler for facade in facades]
    called = (one.mcp if isinstance(one, McpTool) else one for one in handlers)
    addresses = (one.url for one in called if isinstance(one, McpServer | ExternalService))
    hosts = list(dict.fromkeys(filter(None, (urlsplit(address).hostname for address in addresses))))
    said = {
        "name": plain_text(origin.title, 100),
        "description": plain_text(origin.description, 400),
        "contact": plain_text(origin.contact, 200),
        "version": plain_text(origin.version, 60),
    }
    title = said["name"].text
    slug = hyphenated(title) or "upstream"
    host = hosts[0] if hosts else f"{slug}.example"
    source = origin.source if origin.source.startswith(("https://", "http://")) else ""
    named = "the host of the upstream" if hosts else "nothing names the host of this server"
    no_operator = "a description does not name the operator of this server"
    guesses = [
        Guess("/server/server_id", f"server_id {host}", named, 0.4, "the host name of this server", "medium"),
        Guess("/server/operator", f"operator {title or host}", no_operator, 0.3, risk="medium"),
    ]
    for key, one in said.items():
        if one.fault:
            why = f"the upstream's text holds {one.fault}"
            guesses.append(Guess(f"/server/{key}", "left out", why, 0.3, risk="high"))
    if not origin.contact:
        text, why = f"contact https://{host}", "the description does not name a contact"
        guesses.append(Guess("/server/contact", text, why, 0.2, risk="medium"))
    if len(hosts) > 1:
        text, why = f"all of {', '.join(hosts[:5])} are called", f"the description names {len(hosts)} hosts"
        guesses.append(Guess("/server/server_id", text, why, 0.6, risk="medium"))
    if origin.rate is None:
        # AI 6.3: a service that agents find must not be one that they can overrun.
        text, why = f"at most {_RATE} calls of each agent", "the description states no limit"
        guesses.append(Guess("/limits/rate/agent", text, why, 0.3, risk="medium"))
    documentation = source or f"https://{host}"
    if not source:
        why = "the description does not have an address"
        guesses.append(Guess("/apis", f"http_documentation {documentation}", why, 0.3))
    api = {"name": title or slug, "type": origin.command, "version": said["version"].text or "1"}
    service = Service(
        identity=ServerIdentity(
            server_id=host, operator=title or host, contact=said["contact"].text or f"https://{host}", name=title
        ),
        description=said["description"].text,
        document_version=said["version"].text or None,
        apis=({**api, "http_documentation": documentation},),
        rate_limits=RateLimits(
            agent=origin.rate or _RATE,
            endpoints={facade.endpoint.key: facade.rate for facade in facades if facade.rate is not None},
        ),
    )
    return service, guesses


def _configuration(service: Service, guesses: Sequence[Guess], origin: ImportOrigin, odd: Sequence[str]) -> str:
    comments = _comments(f"{origin.made_by} of {_shown(origin.source) or 'a description'}.", guesses)
    data = configuration_data(service)
    if odd:
        data["lint"] = {"allowed-segments": list(odd)}
        comments["/lint/allowed-segments"] = ["Names of the upstream that look like forms of verbs."]
    return toml_text(data, comments)


def upstream_of(candidate: Candidate) -> str:
    """Return what the upstream says about itself: `POST /pets (createPet): Add a pet`."""
    named = f" ({candidate.name})" if candidate.method and candidate.name else ""
    summary = candidate.summary or first_sentence(candidate.description)
    return f"{candidate.origin}{named}{f': {summary[:_LONGEST_SUMMARY]}' if summary else ''}"


def _endpoint_file(facade: Facade, origin: ImportOrigin, written: Written) -> str:
    candidate = facade.candidate
    first = f"{origin.made_by} of {_shown(upstream_of(candidate))}, {_shown(origin.title)}."
    comments = _comments(first, facade.guesses, "/endpoint")
    comments["/endpoint/reviewed"] = [f"{UNREVIEWED} `bespeak review` removes this line when you accept the endpoint."]
    return toml_text({"endpoint": endpoint_data(facade.endpoint, "")}, comments, written)


def _comments(first: str, guesses: Sequence[Guess], above: str = "") -> dict[str, list[str]]:
    """Return the comments of a file by their pointers. Folded guesses would hide those that matter."""
    comments = {"": [first]}
    for guess in guesses:
        if is_folded(guess):
            continue
        other = f"; else {guess.otherwise}" if guess.otherwise else ""
        text = _shown(f"review ({guess.confidence:.1f}): {guess.text}: {guess.why}{other}")
        comments.setdefault(f"{above}{guess.at}", []).append(text)
    return comments


@lru_cache(maxsize=4096)
def _shown(text: str) -> str:
    """Return a text as one line of visible characters, for a comment; models read comments too."""
    return printable(" ".join(text.split()))[:300] if instruction(text, field=True) is None else "(left out)"


SETTINGS: Final = "SETTINGS"  # word in place of a method for the guesses of the configuration
_REVIEWED: Final = "/endpoint/reviewed"
_MADE_OF: Final = re.compile(r"#[^\n]*? of ([^\n]*), [^,\n]*\.(?=\n)")


@dataclass(frozen=True, slots=True)
class Note:
    """A guess that waits for a review, from its comment."""

    at: str  # pointer of the entry below the comment; empty if there is none
    confidence: float
    text: str
    span: Span  # place of the comment


@dataclass(frozen=True, slots=True)
class ReviewFile:
    path: Path
    tree: TomlTree
    endpoint: Endpoint | None  # endpoint of the file; None for the configuration
    notes: tuple[Note, ...]  # guesses, those that decide what a call does first

    @property
    def name(self) -> str:
        """Method and path, or the name of the configuration."""
        return f"{SETTINGS} {self.path.name}" if self.endpoint is None else str(self.endpoint)

    @property
    def upstream(self) -> str:
        """What the upstream says of the endpoint, from the first comment."""
        found = _MADE_OF.match(self.tree.text)
        return found[1] if found is not None else ""

    @property
    def danger(self) -> str:
        if self.endpoint is None:
            return ""
        return danger_of(self.endpoint, [(_inside(note.at), note.confidence) for note in self.notes])

    def written(self, at: str) -> str:
        """Return the value at a pointer as it is written; empty for a table with a header."""
        place = self.tree.place(at)
        return "" if place is None or place.end < 0 else self.tree.text[place.start : place.end]

    def accepted(self) -> str | None:
        """Return the text without its guesses and `reviewed = false`; None if that line cannot be removed alone."""
        tree = self.tree
        edits = []
        for span in toml_comments(tree.text):
            comment = tree.text[span.start : span.end]
            if MARKER.fullmatch(comment) or comment.lstrip("# \t").startswith(UNREVIEWED):
                edits.append(_without(tree.text, span))
        if value_at(tree.data, _REVIEWED, True) is False:
            if (removal := placed_edits(tree, Change("remove", _REVIEWED))) is None:
                return None
            edits += removal
        return self._restored(apply_edits(tree.text, edits))

    def changed(self, note: Note, typed: str) -> str:
        """Return the text with another value for a guess, without its comment. Raises ValueError with the reason."""
        if not self.written(note.at):
            raise ValueError("this guess has no value on one line; edit the file")
        value: Any = typed
        if not isinstance(value_at(self.tree.data, note.at), str) or typed[:1] in ('"', "'"):
            try:
                value = tomli.loads(f"value = {typed}")["value"]
            except (ValueError, RecursionError) as error:
                raise ValueError(f"{typed[:80]!r} is not a valid TOML value: {error}") from None
        if (replacement := placed_edits(self.tree, Change("replace", note.at, value))) is None:
            raise ValueError("this value cannot be replaced; edit the file")
        return self._restored(apply_edits(self.tree.text, [_without(self.tree.text, note.span), *replacement]))

    def _restored(self, text: str) -> str:
        return text.replace("\n", "\r\n") if self.tree.crlf else text


def read_review(path: Path, endpoint: Endpoint | None = None) -> ReviewFile | Diagnostic:
    text = read_text(path)
    if isinstance(text, Diagnostic):
        return text
    tree = parse_toml(text, str(path))
    if isinstance(tree, SyntaxFault):
        return MALFORMED.found(f"this is not TOML: {tree.message}", tree.location)
    notes = sorted(_notes(tree), key=lambda note: (not is_weighty(_inside(note.at)), note.confidence))
    return ReviewFile(path, tree, endpoint, tuple(notes))


def waiting_files(deployment: Deployment) -> list[ReviewFile]:
    """Return the files of a deployment that wait for a review: those in doubt, then by danger."""
    found = [(Path(one.location.file), one) for one in deployment.endpoints if one.location is not None]
    files = [read_review(path, endpoint) for path, endpoint in found]
    read = (file for file in files if isinstance(file, ReviewFile))
    waiting = [one for one in read if one.notes or (one.endpoint is not None and not one.endpoint.reviewed)]
    waiting.sort(key=_urgency)
    for name in CONFIGURATIONS:
        settings = read_review(deployment.root / name)
        if isinstance(settings, ReviewFile):
            return [*waiting, settings] if settings.notes else waiting
    return waiting


def _urgency(file: ReviewFile) -> tuple[bool, int, bool, float]:
    is_final = file.endpoint is not None and file.endpoint.semantic.impact == "irreversible"
    least = min([1.0, *(note.confidence for note in file.notes)])
    doubtful = any(is_doubtful(_inside(note.at), note.confidence) for note in file.notes)
    return not doubtful, list(DANGERS).index(file.danger), not is_final, least


def _inside(at: str) -> str:
    return at.removeprefix("/endpoint")


def _notes(tree: TomlTree) -> Iterator[Note]:
    marked = ((span, MARKER.fullmatch(tree.text, span.start, span.end)) for span in toml_comments(tree.text))
    notes = [(span, found) for span, found in marked if found is not None]
    entries = _entries(tree) if notes else {}
    for span, found in notes:
        try:
            confidence = min(float(found[1]), 1.0)
        except ValueError:
            confidence = 0.0
        yield Note(_below(tree.text, span, entries), confidence, found[2], span)


def _entries(tree: TomlTree) -> dict[int, str]:
    """Return the pointers of all keys, by the start of their line; of several keys in one line, the outermost."""
    root = tree.place("")
    assert root is not None
    lines: dict[int, str] = {}

    def visit(place: Place, at: str) -> None:
        if place.key is not None:
            lines.setdefault(line_start(tree.text, place.key.start), at)
        parts = place.entries.items() if place.entries is not None else enumerate(place.items or ())
        for key, part in parts:
            if place.end < 0:
                visit(part, child(at, key))

    visit(root, "")
    return lines


def _below(text: str, comment: Span, entries: dict[int, str]) -> str:
    """Return the pointer of the entry that a comment precedes or follows on its line."""
    start = line_start(text, comment.start)
    while start < len(text):
        if start in entries:
            return entries[start]
        line = text[start : line_end(text, start)].strip()
        if line and not line.startswith("#"):
            return ""
        start = line_end(text, start) + 1
    return ""


def _without(text: str, comment: Span) -> TextEdit:
    before = text[line_start(text, comment.start) : comment.start]
    if before.strip():
        return deletion(comment.start - (len(before) - len(before.rstrip())), comment.end)
    return whole_lines(text, comment.start, comment.end)
