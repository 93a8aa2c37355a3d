"""REVIEW.md: every guess of an importer, the highest risk first, with a box to tick."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from bespeak.documents.adoption.facade import Facade, Origin, Variable
from bespeak.documents.adoption.guess import RISKS, Guess, LeftOut
from bespeak.text.diagnostics.printable import printable

_TITLES: Final = {
    "high": "High: irreversible calls, and endpoints that do not work yet",
    "medium": "Medium: statements that agents rely on",
    "low": "Low: wording that a person can improve",
}
_IMPACTS: Final = ("irreversible", "reversible", "informational")

Entries = Sequence[tuple[str, Facade]]
"""Files of the endpoints with their facades."""


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
    found = [("bespeak.toml", "", guess) for guess in general]
    found += [(file, str(facade.endpoint), guess) for file, facade in entries for guess in facade.guesses]
    impacts = {str(facade.endpoint): _IMPACTS.index(facade.endpoint.semantic.impact) for _, facade in entries}
    found.sort(key=lambda one: (RISKS.index(one[2].risk), impacts.get(one[1], 1), one[2].confidence))
    counts = {risk: sum(1 for _, _, guess in found if guess.risk == risk) for risk in RISKS}
    yield f"# What to review: {_plain(origin.title) or 'the import'}"
    yield ""
    yield f"{origin.made_by}."
    yield ""
    yield (
        f"These endpoints were derived from {origin.form}. It lacks facts that agents need, above all whether a call "
        "can be undone. Such facts were guessed: do not rely on them until a person has confirmed them (AGTP-API "
        "14.1). Each guess is a comment `# review (confidence): ...` in its file; remove the comment after the "
        "review, and then the line `reviewed = false`. Until then manifest and /.well-known/ai mark the endpoint as "
        "unreviewed. `bespeak lint` counts the comments that are left (R901)."
    )
    yield ""
    yield f"- endpoints: {len(entries)}"
    yield f"- guesses: {', '.join(f'{counts[risk]} of {risk} risk' for risk in RISKS)}"
    yield f"- operations left out: {len(left_out)}"
    yield f"- notes on the description: {len(notes)}"
    yield from _variables(used_variables(entries))
    yield from _renamed(entries)
    yield from _listed("Left out: operations without an endpoint", left_out)
    yield from _listed("Missing or unusable parts of the description", notes)
    for risk in RISKS:
        if counts[risk]:
            yield ""
            yield f"## {_TITLES[risk]}"
            yield ""
            yield from (_item(*one) for one in found if one[2].risk == risk)


def _item(file: str, endpoint: str, guess: Guess) -> str:
    where = f"{_plain(endpoint)}, " if endpoint else ""
    place = guess.at.removeprefix("/").replace("/", ".")
    other = f" Or: {_plain(guess.otherwise)}." if guess.otherwise else ""
    return (
        f"- [ ] ({guess.confidence:.1f}) `{where}{place}`: {_plain(guess.text)}. "
        f"{_capital(_plain(guess.why))}.{other} ({file})"
    )


def _variables(variables: Mapping[str, Variable]) -> Iterator[str]:
    if not variables:
        return
    yield ""
    yield "## Credentials to set before the server starts"
    yield ""
    yield "This server sends them upstream; a caller's identity is never forwarded. `.env.example` lists them too."
    yield ""
    yield from (f"- `{variable.name}`: {_plain(variable.what)}" for variable in variables.values())


def _renamed(entries: Entries) -> Iterator[str]:
    rows = [
        (str(facade.endpoint), facade.candidate.origin, facade.rewritten)
        for _, facade in entries
        if facade.rewritten or facade.endpoint.path != facade.candidate.path
    ]
    if not rows:
        return
    yield ""
    yield "## Changed paths"
    yield ""
    yield "| here | upstream | why |"
    yield "|---|---|---|"
    for here, upstream, why in rows:
        yield f"| `{_cell(here)}` | `{_cell(upstream)}` | {_cell('; '.join(why) or 'the path was taken')} |"


def _listed(title: str, entries: Sequence[LeftOut]) -> Iterator[str]:
    if entries:
        yield ""
        yield f"## {title}"
        yield ""
        yield from (f"- {_plain(entry.what)}: {_plain(entry.why)}" for entry in entries)


def _plain(text: str) -> str:
    """Return a text on one line, without markup and terminal controls."""
    return printable(" ".join(text.split()))[:300].replace("`", "'").replace("<", "&lt;")


def _cell(text: str) -> str:
    return _plain(text).replace("|", "\\|")


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]
