"""Names of tools: the part that names a service, and the part that names the action and its thing."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Final, NamedTuple

from bespeak.documents.adoption.naming import MANNERS, words
from bespeak.documents.adoption.verb_words import base, is_verb
from bespeak.text.language.lexicon import lexicon

_ARTICLES: Final = frozenset({"a", "an", "the"})
_NOTHING: Final = frozenset({"api", "mcp", "rest", "tool", "tools"})
"""Prefixes that do not name a service."""
_FEW: Final = 2
"""Tools that a prefix must have in common."""
_LONGEST: Final = 2
"""Words of a prefix: `browserbase_stagehand_act`."""


class ToolName(NamedTuple):
    """The parts of one name."""

    namespace: str
    """Service that the name begins with, in words joined by hyphens; empty if it begins with none."""
    bare: str
    """The rest in snake_case, without articles: `create_comment` of `API-create-a-comment`."""


def split_names(names: Sequence[str], title: str = "") -> list[ToolName]:
    """Split the names of all tools of one server with a title.

    A prefix names a service if all tools have it, or if in most of its tools a verb and a thing follow it:
    `jira_get_issue`. The first word of `collection-schema` and `screencast_start` is a thing.
    """
    parts = [words(name) for name in names]
    prefixes = _prefixes(parts, frozenset(words(title)))
    return [_split(one, prefixes) for one in parts]


def _prefixes(parts: Sequence[tuple[str, ...]], title: frozenset[str]) -> frozenset[tuple[str, ...]]:
    rests: defaultdict[tuple[str, ...], list[tuple[str, ...]]] = defaultdict(list)
    for one in parts:
        for length in range(1, min(_LONGEST, len(one) - 1) + 1):
            rests[one[:length]].append(one[length:])
    return frozenset(
        prefix
        for prefix, after in rests.items()
        if len(after) >= _FEW
        and MANNERS.isdisjoint(prefix)
        and _names_service(prefix, after, shared=len(after) == len(parts), titled=title.issuperset(prefix))
    )


def _names_service(prefix: tuple[str, ...], rests: Sequence[tuple[str, ...]], *, shared: bool, titled: bool) -> bool:
    acting = [rest for rest in rests if _acts(rest[0])]
    follows = any(len(rest) > 1 for rest in acting)
    if len(prefix) > 1:
        # The second word may be the thing: browser_mouse_down.
        return len(acting) == len(rests) and all(len(rest) > 1 for rest in rests) and not any(map(_acts, prefix))
    if follows and 2 * len(acting) >= len(rests):
        return not _acts(prefix[-1]) or (titled and shared)
    # Tools that have only their thing in common are not of a service of that name: user_create, user_delete.
    return shared and (follows or not acting) and (titled or not any(map(_acts, prefix)))


def _acts(word: str) -> bool:
    """Return True if a word before others is rather a verb: `list`, `search`, `start`."""
    counts = lexicon().counts(word)
    return is_verb(word) or word == "list" or (base(word) == word and counts.verb > counts.noun)


def _split(parts: tuple[str, ...], prefixes: frozenset[tuple[str, ...]]) -> ToolName:
    cut = next((length for length in range(_LONGEST, 0, -1) if parts[:length] in prefixes), 0)
    *inner, last = parts[cut:] or ("",)
    rest = [part for part in inner if part not in _ARTICLES] + [last]
    service = [part for part in parts[:cut] if part not in _NOTHING]
    return ToolName("-".join(service), "_".join(rest))
