"""Consistency of an intent with its method (pass 6 of AGIS): verbs decide, because vectors cannot."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from operator import itemgetter
from typing import Final, Literal

from bespeak.text.identifiers import spaced
from bespeak.text.language.head_verb import HeadVerb, Kind, head_verbs, later_verbs, names_deed
from bespeak.text.language.lexicon import lexicon, meanings
from bespeak.text.language.names import with_article, with_s
from bespeak.text.language.operation_class import (
    CHANGERS,
    CHANGING,
    GENERIC,
    PHRASES,
    Classes,
    OperationClass,
    fit,
    is_changer,
    operation_classes,
)
from bespeak.text.language.verb_form import classify, lemmas

Consistency = Literal["consistent", "violation", "warning", "unverifiable"]
VIOLATION_BELOW: Final = 0.3
WARNING_BELOW: Final = 0.5
_NAMED: Final = 0.9  # weight of a noun that names the method or a synonym: TRANSFER / "Makes a transfer"
_DOUBT: Final = 0.35  # weight against the method of a word that may not be a verb: never enough for a violation
_HEARD_FROM: Final[dict[Kind, float]] = {"hint": 0.8, "reading": 0.75}
"""Kinds that count only in favour of a method, with the required similarity: a noun must nearly name the method."""
_FRAMED: Final = 0.45  # maximum weight of a verb that sets another one going, unless it is the method's own
_SURE: Final = 0.75  # weight of a verb that decides against an opposite before it: "Enables or disables"
_LETTING: Final = frozenset({"allow", "enable", "let", "permit"})
_AROUND: Final[frozenset[Kind]] = frozenset({"light", "frame"})
_BESIDE: Final = _AROUND | {"hint", "reading", "own"}  # kinds that a reading method need not do
_LONGEST_METHOD: Final = 64
_LONGEST_INTENT: Final = 1000


@dataclass(frozen=True, slots=True)
class IntentJudgement:
    """The result, and the verb of the intent that decided it."""

    verdict: Consistency
    score: float | None
    head: str | None
    method_class: OperationClass | None
    reason: str  # one sentence for people, without a full stop


def judge(method: str, intent: str) -> IntentJudgement:
    """Judge whether the intent fits the method, in bounded time for any text."""
    return _judge(method[:_LONGEST_METHOD], intent[:_LONGEST_INTENT])


@lru_cache(maxsize=2048)
def _judge(method: str, intent: str) -> IntentJudgement:
    verb = method.lower()
    ours = operation_classes(verb)
    if ours is None and (found := lemmas(verb)):
        verb = found[0].verb
        ours = operation_classes(verb)
    if not (heads := head_verbs(intent)):
        return _unverifiable("the intent has no verb that says what happens", ours)
    if ours is None:
        return _unverifiable(f"nothing is known about what {method} does", ours)
    rated = [(score, head) for head in heads if (score := _score(verb, head, intent)) is not None]
    if not rated:
        return _unverifiable(f'"{intent[heads[0].start : heads[0].end]}" does not say what happens', ours, heads[0])
    score, head = _deciding(verb, ours, rated)
    if head.kind == "coordinated" and rated[0][1].kind == "coordinated":
        score = _doubted(score)  # the head verb says nothing, so too little is known for a violation
    undone = not _only_reads(verb, ours) and meanings().opposite(verb, head.verb)
    if score < VIOLATION_BELOW and not undone:
        fits = any((fit(verb, later) or 0) >= WARNING_BELOW for later in later_verbs(intent, head))
        score = VIOLATION_BELOW if fits else score
    written = intent[head.start : head.end]
    verdict: Consistency = (
        "violation" if score < VIOLATION_BELOW else "warning" if score < WARNING_BELOW else "consistent"
    )
    if verdict == "consistent":
        reason = f'"{written}" is what {method} promises'
    elif meanings().opposite(verb, head.verb):
        reason = f'"{written}" is the opposite of what {method} promises'
    else:
        theirs = operation_classes(head.verb)
        promise, does = PHRASES[ours.main], PHRASES[theirs.main] if theirs else "does something else"
        reason = f'{method} {promise}, but "{written}" {does}'
        if promise == does:
            reason = f'{method} and "{written}" are different operations'
    return IntentJudgement(verdict, round(score, 3), head.verb, ours.main, reason)


def _score(verb: str, head: HeadVerb, intent: str) -> float | None:
    if head.kind == "own":
        if verb == head.verb or {verb, head.verb} <= _LETTING:
            return 1.0
        return _NAMED if meanings().synonymous(verb, head.verb) else None
    if (score := fit(verb, head.verb)) is None:
        return None
    if heard_from := _HEARD_FROM.get(head.kind):
        return min(score, _NAMED) if score >= heard_from else None
    if head.kind == "frame" and not _is_own(verb, head.verb):
        return min(score, _FRAMED)
    if head.verb in CHANGERS and verb != head.verb and score >= WARNING_BELOW and not is_changer(verb):
        return _NAMED if names_deed(intent[head.end :], verb) else _FRAMED  # what changes decides: PAUSE / "Updates"
    if head.kind in {"nominal", "doubtful"}:
        score = _doubted(score)
    return min(score, _NAMED) if head.kind in {"meant", "nominal"} else score


def _is_own(verb: str, frame: str) -> bool:
    """Return True if a frame is what the method promises: TRIGGER / "Starts a job that deletes"."""
    ours, theirs = operation_classes(verb), operation_classes(frame)
    begin = ours is not None and theirs is not None and min(ours.of("BEGIN"), theirs.of("BEGIN")) >= _SURE
    return verb == frame or begin or meanings().synonymous(verb, frame)


def _doubted(score: float) -> float:
    return score if score >= WARNING_BELOW else WARNING_BELOW + (score - WARNING_BELOW) * _DOUBT


def _deciding(verb: str, ours: Classes, rated: list[tuple[float, HeadVerb]]) -> tuple[float, HeadVerb]:
    """Choose the deciding verb: a reading method must do nothing else; another may do more than it says."""
    first = rated[0]
    best = max(rated, key=itemgetter(0))
    if _only_reads(verb, ours):
        said = [rating for rating in rated if rating[1].kind not in _BESIDE] or rated
        worst = min(said, key=itemgetter(0))
        reads = said[0][0] >= WARNING_BELOW or any(head.verb == verb for _, head in rated)
        if worst[0] >= WARNING_BELOW and any(_launches(*rating) for rating in rated):
            return _FRAMED, worst[1]  # it starts something that reads
        return max(worst[0], VIOLATION_BELOW if reads else 0), worst[1]  # it reads, and may do more than it should
    if meanings().opposite(verb, first[1].verb):
        own = [rating for rating in rated if rating[1].kind not in _AROUND or rating[1].verb == verb]
        return best if max((score for score, _ in own), default=0) >= _SURE else first
    return best


def _launches(score: float, head: HeadVerb) -> bool:
    classes = operation_classes(head.verb) if head.kind in _AROUND and score < VIOLATION_BELOW else None
    return classes is not None and classes.of("BEGIN") >= _SURE


def _only_reads(verb: str, classes: Classes) -> bool:
    if verb == "return":
        return False  # a parcel is returned too
    return classes.main == "READ" and all(classes.of(name) < 0.5 for name in CHANGING)


def _unverifiable(reason: str, ours: Classes | None, head: HeadVerb | None = None) -> IntentJudgement:
    return IntentJudgement("unverifiable", None, head.verb if head else None, ours.main if ours else None, reason)


MOST: Final = 3
_USUAL: Final = (
    "find", "list", "fetch", "query", "create", "register", "update", "modify", "replace", "remove", "notify", "send",
)  # fmt: skip
"""Verbs that readers expect, preferred to others that fit as well."""
_LISTS: Final = ("list", "lists", "all", "every", "each")


def fitting_verbs(intent: str, candidates: Iterable[str], most: int = MOST) -> tuple[str, ...]:
    """Return the candidates that match the intent best, best first."""
    if not (heads := head_verbs(intent[:_LONGEST_INTENT])):
        return ()
    head = next((one.verb for one in heads if one.verb not in GENERIC), heads[0].verb)
    classes = operation_classes(head)
    rated: list[tuple[tuple[float, ...], str]] = []
    for candidate in candidates:
        verb = candidate.lower()
        score = fit(verb, head)
        own = operation_classes(verb)
        if score is None or own is None or score < 0.75 or judge(candidate, intent).verdict != "consistent":
            continue
        usual = float(_USUAL.index(verb) if verb in _USUAL else len(_USUAL))
        if verb == "list" and not any(word in intent.lower().split() for word in _LISTS):
            usual += 1.5
        related = meanings().synonymous(verb, head)
        same_class = classes is not None and own.main == classes.main
        rare = -lexicon().counts(verb).verb
        rank = (verb != head, not same_class, usual == len(_USUAL) and not related, usual, -round(score, 2), rare)
        rated.append((rank, candidate))
    return tuple(candidate for _, candidate in sorted(rated)[:most])


def fitting_sentence(method: str, path: str) -> str:
    """Write a sentence that begins with the method's action: BOOK /reservation "Books a reservation on behalf of …"."""
    names = [segment for segment in path[:200].split("/") if segment and "{" not in segment and ":" not in segment]
    segments = [name for name in names if name.lower() != method.lower()]
    thing = spaced(segments[-1]) if segments else "resource"
    base = classify(method).base or method.lower()
    verb = third_person(base)
    thing = thing.removeprefix(f"{base} ").strip() or "resource"  # of `/book-` nothing is left
    return f"{verb.capitalize()} {with_article(thing)} on behalf of the requesting agent"


def third_person(verb: str) -> str:
    """Return the third person of a verb: books, retries, dispatches."""
    # Verbs such as quiz double a letter, and the lexicon has these forms.
    for form in (verb + verb[-1:] + "es", verb + "s", verb + "es"):
        if (verb, "third") in lexicon().irregular.get(form, ()):
            return form
    return verb + "es" if verb.endswith("o") else with_s(verb)
