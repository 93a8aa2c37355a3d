"""REVIEW.md: what a person has to check after an import, what could hurt first, and what repeats only once."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from bespeak.documents.adoption.danger import DANGERS, danger_of, is_weighty
from bespeak.documents.adoption.facade import Facade, Origin, Variable
from bespeak.documents.adoption.guess import RISKS, Guess, LeftOut
from bespeak.documents.adoption.review_groups import code, counted, grouped, kind_of, plain, shown, wrapped

_MOST_LISTED: Final = 60
"""Endpoints that one entry of a danger lists."""
_MOST_GROUPS: Final = 100
"""Entries in the list of guesses that repeat."""
_EXAMPLES: Final = 3
_IMPACT: Final = "/semantic/impact"

Entries = Sequence[tuple[str, Facade]]
"""Files of the endpoints with their facades."""


class _Found(NamedTuple):
    """A guess and the endpoint it is about; an empty name is the service itself."""

    file: str
    endpoint: str
    guess: Guess


def review_text(
    origin: Origin,
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
    origin: Origin, entries: Entries, left_out: Sequence[LeftOut], general: Sequence[Guess], notes: Sequence[LeftOut]
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
