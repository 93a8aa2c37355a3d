"""The files of a deployment in front of an upstream: configuration, endpoint files with their guesses, REVIEW.md.

REVIEW.md lists what a person has to check after an import: the most dangerous first, and repeated entries once.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, NamedTuple, TypeVar
from urllib.parse import urlsplit

from bespeak.contract.handler import ExternalService, HandlerBinding, McpTool
from bespeak.contract.limits import Rate, RateLimits
from bespeak.contract.service import ServerIdentity, Service
from bespeak.documents.adoption.facade import DANGERS, Facade, ImportOrigin, Variable, danger_of, is_weighty
from bespeak.documents.adoption.guess import RISKS, UNREVIEWED, Guess, LeftOut
from bespeak.documents.adoption.naming import hyphenated
from bespeak.documents.adoption.path_choice import style_fault
from bespeak.documents.adoption.sanitizer import plain_text
from bespeak.documents.projections.deployment_files import configuration_data, endpoint_data, function_names
from bespeak.documents.toml_text import Written, toml_text
from bespeak.text.diagnostics.diagnostic import printable
from bespeak.text.language.injection import instruction

_WIDTH: Final = 116
_VARYING: Final = re.compile(
    r"'[^']*'|\{[^{}]*\}|\b[0-9][0-9.,]*\b|\b(?!HTTP\b|AGTP\b)[A-Z]{3,}\b|(?<!\w)/[\w{}./~-]++|(?<=: ).*", re.DOTALL
)
"""Parts of a reason that differ from endpoint to endpoint: quoted words, parameters, numbers, methods, paths, and what
follows a colon."""

Entry = TypeVar("Entry")


def kind_of(reason: str) -> str:
    """Return a reason without its varying parts, so that reasons of one kind are equal."""
    return _VARYING.sub(
        lambda found: found.group()[0] + "…" + found.group()[-1] if found.group()[:1] in "'{" else "…", reason
    )


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
        if len(here) + len(part) > _WIDTH and here.strip():
            yield here
            here = " "
        here += part
    yield here + (f" and {len(names) - most} more" if len(names) > most else "")


def plain(text: str) -> str:
    """Return a text on one line, without markup and terminal controls."""
    return printable(" ".join(text.split()))[:300].replace("`", "'").replace("<", "&lt;")


def code(text: str) -> str:
    """Return a text as a code span."""
    return f"`{plain(text)}`"


_MOST_LISTED: Final = 60  # endpoints that one entry of a danger lists
_MOST_GROUPS: Final = 100  # entries in the list of guesses that repeat
_EXAMPLES: Final = 3
_IMPACT: Final = "/semantic/impact"

Entries = Sequence[tuple[str, Facade]]  # files of the endpoints with their facades


class _Found(NamedTuple):
    """A guess and the endpoint it is about; an empty name is the service itself."""

    file: str
    endpoint: str
    guess: Guess


def review_text(
    origin: ImportOrigin,
    entries: Entries,
    left_out: Sequence[LeftOut],
    general: Sequence[Guess],
    notes: Sequence[LeftOut] = (),
) -> str:
    """Write the document. `general` holds guesses about the whole service, `notes` the reader's reports."""
    return "\n".join(_lines(origin, entries, left_out, general, notes)) + "\n"


def used_variables(entries: Entries) -> dict[str, Variable]:
    """Return the variables that hold secrets, by their names."""
    return {variable.name: variable for _, facade in entries for variable in facade.variables}


def _lines(
    origin: ImportOrigin,
    entries: Entries,
    left_out: Sequence[LeftOut],
    general: Sequence[Guess],
    notes: Sequence[LeftOut],
) -> Iterator[str]:
    all_guesses = [*general, *(guess for _, facade in entries for guess in facade.guesses)]
    counts = {risk: sum(guess.risk == risk for guess in all_guesses) for risk in RISKS}
    yield f"# What to review: {plain(origin.title) or 'the import'}"
    yield ""
    yield f"{origin.made_by}."
    yield ""
    yield (
        f"These endpoints were derived from {origin.form}. It lacks facts that agents need, above all whether a call "
        "can be undone. Such facts were guessed: do not rely on them until a person has confirmed them (AGTP-API "
        "14.1). `bespeak review FOLDER` shows the endpoints one by one, the most dangerous first, and marks those "
        "that you accept. Doubtful guesses are also comments `# review (confidence): ...` in the files. Until an "
        "endpoint is accepted, manifest and /.well-known/ai mark it as unreviewed."
    )
    yield ""
    yield f"- endpoints: {len(entries)}"
    yield f"- guesses: {', '.join(f'{counts[risk]} of {risk} risk' for risk in RISKS)}"
    yield f"- left out: {len(left_out)}"
    yield f"- notes on the description: {len(notes)}"
    yield from _variables(used_variables(entries))
    told: set[int] = set()
    yield from _dangers(entries, told)
    rest = [_Found("bespeak.toml", "", guess) for guess in general]
    rest += [_Found(file, str(facade.endpoint), guess) for file, facade in entries for guess in facade.guesses]
    # Paths have a section of their own.
    yield from _repeated([one for one in rest if id(one.guess) not in told and one.guess.at != "/path"])
    yield from _listed("Left out: operations without an endpoint", left_out, "operations")
    yield from _listed("Missing or unusable parts of the description", notes, "places")
    yield from _renamed(entries)


def _heading(title: str) -> tuple[str, str, str]:
    return "", f"## {title}", ""


def _variables(variables: Mapping[str, Variable]) -> Iterator[str]:
    if not variables:
        return
    yield from _heading("Credentials to set before the server starts")
    yield "This server sends them upstream; a caller's identity is never forwarded. `.env.example` lists them too."
    yield ""
    yield from (f"- `{variable.name}`: {plain(variable.what)}" for variable in variables.values())


def _dangers(entries: Entries, told: set[int]) -> Iterator[str]:
    """Yield the endpoints that could hurt, by danger and by the reason of the guess; add that guess to `told`."""
    by_danger: dict[str, list[tuple[str, Guess]]] = {}
    for _, facade in entries:
        danger = danger_of(facade.endpoint, [(guess.at, guess.confidence) for guess in facade.guesses])
        guess = _deciding(danger, facade.guesses)
        if danger and guess is not None:
            told.add(id(guess))
            by_danger.setdefault(danger, []).append((str(facade.endpoint), guess))
    for danger, phrase in DANGERS.items():
        found = by_danger.get(danger, [])
        if found:
            yield from _heading(f"What {phrase}: {len(found)} endpoint{'' if len(found) == 1 else 's'}")
        for group in grouped(found, lambda one: (one[1].at, one[1].text, kind_of(one[1].why))):
            guess = group[0][1]
            yield f"- [ ] ({guess.confidence:.1f}) {_said(guess, [one for _, one in group])}"
            yield from wrapped([code(endpoint) for endpoint, _ in group], _MOST_LISTED)


def _deciding(danger: str, guesses: Sequence[Guess]) -> Guess | None:
    """Return the guess that an endpoint is listed with: the doubtful one, else the one about its impact."""
    if danger == "doubt":
        return min((guess for guess in guesses if is_weighty(guess.at)), key=lambda guess: guess.confidence)
    return next((guess for guess in guesses if guess.at == _IMPACT), None)


def _repeated(found: Sequence[_Found]) -> Iterator[str]:
    groups = grouped(found, lambda one: (bool(one.endpoint), one.guess.at, one.guess.risk, kind_of(one.guess.why)))
    groups.sort(key=lambda group: (RISKS.index(group[0].guess.risk), min(one.guess.confidence for one in group)))
    if groups:
        yield from _heading("Other guesses")
    for group in groups[:_MOST_GROUPS]:
        first = group[0]
        said = _said(first.guess, [one.guess for one in group])
        place = first.guess.at.removeprefix("/").replace("/", ".")
        where = shown([code(one.endpoint or one.file) for one in group], _EXAMPLES)
        count = f"{len(group)} endpoints: " if len(group) > 1 and first.endpoint else ""
        yield f"- [ ] ({min(one.guess.confidence for one in group):.1f}) `{place}`: {said} {count}{where}"
    left = sum(len(group) for group in groups[_MOST_GROUPS:])
    if left:
        yield f"- {left} more guesses of low risk are comments in the files."


def _said(guess: Guess, alike: Sequence[Guess]) -> str:
    other = f" Or: {plain(guess.otherwise)}." if guess.otherwise and len({one.otherwise for one in alike}) == 1 else ""
    whys = {one.why for one in alike}
    why = plain(guess.why if len(whys) == 1 else kind_of(guess.why))
    return f"{plain(counted(one.text for one in alike))}. {why[:1].upper()}{why[1:]}.{other}"


def _listed(title: str, entries: Sequence[LeftOut], noun: str) -> Iterator[str]:
    if not entries:
        return
    yield from _heading(f"{title}")
    for group in grouped(entries, lambda one: kind_of(one.why)):
        whats = shown([plain(one.what) for one in group], _EXAMPLES)
        if len(group) == 1:
            yield f"- {whats}: {plain(group[0].why)}"
        else:
            yield f"- {plain(counted(one.why for one in group))}, {len(group)} {noun}: {whats}"


def _renamed(entries: Entries) -> Iterator[str]:
    described = [facade for _, facade in entries if facade.candidate.path is not None]
    changed = [facade for facade in described if facade.rewritten or facade.endpoint.path != facade.candidate.path]
    if not changed:
        return
    yield from _heading("Changed paths")
    for group in grouped(changed, lambda one: tuple(map(kind_of, one.rewritten))):
        reasons = group[0].rewritten or ("the path was taken",)
        why = "; ".join(map(kind_of, reasons) if len(group) > 1 else reasons)
        examples = [f"{code(str(one.endpoint))} for {code(one.candidate.origin)}" for one in group]
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
    entries = [(one.file or _file(name), one) for name, one in zip(names, facades, strict=True)]
    service, general = _service(origin, facades)
    origin = replace(origin, title=service.identity.name)
    files = {"bespeak.toml": _configuration(service, general, origin, _odd_segments(facades))}
    written: Written = {}
    files.update((file, facade.text or _endpoint_file(facade, origin, written)) for file, facade in entries)
    files[REVIEW] = review_text(origin, entries, left_out, general, notes)
    variables = used_variables(entries)
    if variables:
        lines = [f"# {origin.made_by}: credentials for the upstream. Set them, and keep them out of this folder."]
        lines += [f"# {printable(one.what)}\n{one.name}=" for one in variables.values()]
        files[ENVIRONMENT] = "\n".join(lines) + "\n"
    guesses = [*general, *(guess for facade in facades for guess in facade.guesses)]
    counts = {str(risk): sum(guess.risk == risk for guess in guesses) for risk in RISKS}
    service = replace(service, endpoints=tuple(facade.endpoint for facade in facades))
    return Imported(service, files, tuple(facades), tuple(left_out), tuple(notes), tuple(variables.values()), counts)


def _file(name: str) -> str:
    return f"{ENDPOINTS}/{name.replace('_', '-')}.toml"


def upstream_hosts(facades: Iterable[Facade]) -> list[str]:
    """Return the hosts that are called, each once."""
    names = (urlsplit(_address(facade.endpoint.handler)).hostname for facade in facades)
    return list(dict.fromkeys(filter(None, names)))


def _address(handler: HandlerBinding) -> str:
    if isinstance(handler, McpTool):
        return handler.mcp.url
    return handler.url if isinstance(handler, ExternalService) else ""


def _service(origin: ImportOrigin, facades: Sequence[Facade]) -> tuple[Service, list[Guess]]:
    hosts = upstream_hosts(facades)
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
    guesses = [
        _guess("server_id", f"server_id {host}", named, 0.4, "the host name of this server"),
        _guess(
            "operator", f"operator {title or host}", "a description does not name the operator of this server", 0.3, ""
        ),
    ]
    for key, one in said.items():
        if one.fault:
            why = f"the upstream's text holds {one.fault}"
            guesses.append(Guess(at=f"/server/{key}", text="left out", why=why, confidence=0.3, risk="high"))
    if not origin.contact:
        guesses.append(_guess("contact", f"contact https://{host}", "the description does not name a contact", 0.2, ""))
    if len(hosts) > 1:
        why = f"the description names {len(hosts)} hosts"
        guesses.append(_guess("server_id", f"all of {', '.join(hosts[:5])} are called", why, 0.6, ""))
    if origin.rate is None:
        # AI 6.3: a service that agents find must not be one that they can overrun.
        text, why = f"at most {_RATE} calls of each agent", "the description states no limit"
        guesses.append(Guess(at="/limits/rate/agent", text=text, why=why, confidence=0.3, risk="medium"))
    documentation = source or f"https://{host}"
    if not source:
        why = "the description does not have an address"
        guesses.append(Guess(at="/apis", text=f"http_documentation {documentation}", why=why, confidence=0.3))
    api = {"name": title or slug, "type": origin.command, "version": said["version"].text or "1"}
    service = Service(
        identity=ServerIdentity(
            server_id=host,
            operator=title or host,
            contact=said["contact"].text or f"https://{host}",
            name=title,
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


def _guess(key: str, text: str, why: str, confidence: float, otherwise: str) -> Guess:
    return Guess(at=f"/server/{key}", text=text, why=why, confidence=confidence, otherwise=otherwise, risk="medium")


def _odd_segments(facades: Sequence[Facade]) -> list[str]:
    """Return the segments that keep the upstream's name, although lint would take it for a verb: /starred."""
    pairs = ((segment, one.endpoint.method) for one in facades for segment in one.endpoint.path[1:].split("/"))
    return sorted({segment for segment, method in pairs if "{" not in segment and style_fault(segment, method)})


def _configuration(service: Service, guesses: Sequence[Guess], origin: ImportOrigin, odd: Sequence[str]) -> str:
    comments: dict[str, list[str]] = {"": [f"{origin.made_by} of {_shown(origin.source) or 'a description'}."]}
    for guess in guesses:
        comments.setdefault(guess.at, []).append(_shown(guess.comment))
    data = configuration_data(service)
    if odd:
        data["lint"] = {"allowed-segments": list(odd)}
        comments["/lint/allowed-segments"] = ["Names of the upstream that look like forms of verbs."]
    return toml_text(data, comments)


def _endpoint_file(facade: Facade, origin: ImportOrigin, written: Written) -> str:
    candidate = facade.candidate
    named = f" ({_shown(candidate.name)})" if candidate.method and candidate.name else ""
    comments: dict[str, list[str]] = {
        "": [f"{origin.made_by} of {_shown(candidate.origin)}{named}, {_shown(origin.title)}."]
    }
    comments["/endpoint/reviewed"] = [f"{UNREVIEWED} `bespeak review` removes this line when you accept the endpoint."]
    for guess in facade.guesses:
        if guess.is_minor:
            continue
        comments.setdefault(f"/endpoint{guess.at}", []).append(_shown(guess.comment))
    return toml_text({"endpoint": endpoint_data(facade.endpoint, "")}, comments, written)


def _shown(text: str) -> str:
    """Return a text as one line of visible characters, for a comment; models read comments too."""
    return printable(" ".join(text.split()))[:300] if instruction(text, field=True) is None else "(left out)"
