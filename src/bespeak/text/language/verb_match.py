"""How well a verb of an intent fits a method verb: the same, a synonym, a fitting class, or the opposite."""

from __future__ import annotations

from functools import lru_cache
from typing import Final

from bespeak.text.language.meanings import meanings
from bespeak.text.language.operation_class import COMPATIBLE, Classes, operation_classes
from bespeak.text.language.sentence import word_set

GENERIC: Final = word_set(
    "take bring make provide give put raise do have be go come keep hold work serve support include "
    "contain offer deal cover concern involve represent act cause carry perform conduct handle use utilize "
    "want need can may must help facilitate specify indicate mean proceed happen occur refer relate depend belong "
    "become let want try wish like require meet leave pass express turn break"
)
"""Verbs whose meaning is in their object."""

_PRODUCING: Final = word_set("produce generate provide compile prepare give create")
_PRODUCERS: Final = word_set(
    "generate run invoke execute produce render compile synthesize convert transform process prepare call issue draw "
    "compose derive project export sign encrypt decrypt encode decode hash compress authenticate authorize exchange "
    "login signin"
)
_ANSWERING: Final = word_set("return output yield respond")
"""Methods whose result is the answer, and verbs that say so."""
_ANY_OPERATION: Final = word_set("execute run process invoke operate do")
"""Verbs that do whatever their object is; only reading differs."""
_HALF_READING: Final = word_set(
    "generate produce prepare compile render request manage handle administer process open sync refresh execute run"
)
"""Verbs whose result may be just the answer, so that a reading method gets only a warning."""
_REPORTING: Final = word_set("tell inform notify signal ask advertise")
"""Verbs that may only announce what is done: "Informs the registry that an upload is complete"."""
_MOSTLY: Final = 0.8
_REWRITING: Final = 0.7
"""Minimum weight of a change that a verb makes while it works something out: to normalize is not to read."""
_KNOWN: Final = 0.9
"""Minimum reliability of the classes of both verbs for a violation."""
_WARNED: Final = 0.35
_GOOD: Final = 0.5
_SYNONYM: Final = 0.8
_DOUBTFUL_SYNONYM: Final = 0.4
_CONTRADICTION: Final = 0.2
_WEIGHTY: Final = 0.35


@lru_cache(maxsize=8192)
def fit(method: str, verb: str) -> float | None:
    """Return how well two lower-case verbs fit, 0 (opposite) to 1 (same); None if they say too little."""
    if method == verb:
        return 1.0
    if "batch" in (method, verb):
        return None  # it says how many, not what
    known = meanings()
    if known.opposite(method, verb):
        return None if verb == "make" else 0.0  # to make something invalid is to delete it
    ours, theirs = operation_classes(method), operation_classes(verb)
    if ours is None or theirs is None:
        return None
    analyzes = ours.main == "ANALYZE"
    if verb in GENERIC and not (analyzes and verb in _PRODUCING):
        return None
    score = class_fit(ours, theirs)
    if (method in _ANY_OPERATION and theirs.main != "READ") or (verb in _ANY_OPERATION and ours.main != "READ"):
        if score >= _GOOD:
            return score
        return _WARNED if method in _ANY_OPERATION and theirs.main == "DELETE" else None
    if known.synonymous(method, verb):
        score = max(score, _SYNONYM if score > _CONTRADICTION else _DOUBTFUL_SYNONYM)
    if (analyzes and verb in _PRODUCING) or (method in _PRODUCERS and verb in _ANSWERING):
        score = max(score, 0.6)
    rewrites = theirs.main == "ANALYZE" and max(theirs.of("UPDATE"), theirs.of("CREATE")) >= _REWRITING
    if _against(ours, theirs) or _against(theirs, ours) or (ours.main == "READ" and rewrites):
        score = min(score, _WARNED)
    confidence = min(ours.confidence, theirs.confidence)
    if (
        (ours.main == "READ" and verb in _HALF_READING)
        or (method in _PRODUCERS and theirs.main == "READ")
        or (ours.main != "READ" and verb in _REPORTING)
        or confidence < _KNOWN
    ):
        score = max(score, _WARNED)
    return 0.5 + (score - 0.5) * confidence


def _against(one: Classes, other: Classes) -> bool:
    """Return True if one verb starts what the other stops: RESUME and DISABLE both change something."""
    return one.of("BEGIN") >= _MOSTLY > one.of("END") and other.of("END") >= _MOSTLY > other.of("BEGIN")


def class_fit(ours: Classes, theirs: Classes) -> float:
    """Return how well the classes of two verbs fit: half their weighted mean, half the best of the weighty ones."""
    total = mean = best = 0.0
    for row, weight in zip(COMPATIBLE, ours.weights, strict=True):
        if weight:
            for value, other in zip(row, theirs.weights, strict=True):
                if other:
                    mean += weight * other * value
                    total += weight * other
                    if value > best and weight >= _WEIGHTY and other >= _WEIGHTY:
                        best = value
    return (mean / total + best) / 2 if total else 0.5
