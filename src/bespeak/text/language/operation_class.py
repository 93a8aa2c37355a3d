"""Operation classes: what a verb does to its object (read, create, change, remove …), and how well two verbs fit."""

from __future__ import annotations

from functools import lru_cache
from typing import Final, Literal, NamedTuple, get_args

from bespeak.text.language.lexicon import NOT_UNDOING, meanings
from bespeak.text.language.sentence import listed, word_set

OperationClass = Literal[
    "READ", "ANALYZE", "CREATE", "UPDATE", "DELETE", "SEND", "BEGIN", "END", "DECIDE", "ASSIGN", "CONTROL"
]
CLASSES: Final[tuple[OperationClass, ...]] = get_args(OperationClass)
CHANGING: Final = CLASSES[2:]  # classes that change something
_LETTERS: Final = "RACUDSBEJGX"
PHRASES: Final[dict[OperationClass, str]] = {
    "READ": "reads something",
    "ANALYZE": "works something out",
    "CREATE": "creates or commits something",
    "UPDATE": "changes something",
    "DELETE": "removes or ends something",
    "SEND": "sends or tells something",
    "BEGIN": "starts or enables something",
    "END": "stops or pauses something",
    "DECIDE": "decides what is allowed",
    "ASSIGN": "gives something to somebody",
    "CONTROL": "controls how something runs",
}  # classes in words, in the third person
COMPATIBLE: Final = (
    # READ ANALYZE CREATE UPDATE DELETE SEND BEGIN END DECIDE ASSIGN CONTROL: what the intent does, in the row of what
    # the method does
    (1.0, 0.4, 0.0, 0.0, 0.0, 0.1, 0.05, 0.0, 0.1, 0.0, 0.1),
    (0.4, 1.0, 0.35, 0.3, 0.0, 0.15, 0.3, 0.1, 0.5, 0.35, 0.3),
    (0.0, 0.4, 1.0, 0.35, 0.0, 0.35, 0.4, 0.1, 0.35, 0.4, 0.35),
    (0.0, 0.4, 0.35, 1.0, 0.1, 0.3, 0.35, 0.35, 0.45, 0.5, 0.35),
    (0.0, 0.0, 0.0, 0.15, 1.0, 0.1, 0.0, 0.35, 0.1, 0.0, 0.2),
    (0.1, 0.15, 0.35, 0.3, 0.0, 1.0, 0.4, 0.1, 0.2, 0.45, 0.35),
    (0.0, 0.35, 0.35, 0.35, 0.0, 0.4, 1.0, 0.0, 0.3, 0.3, 0.5),
    (0.0, 0.2, 0.0, 0.35, 0.3, 0.2, 0.0, 1.0, 0.3, 0.1, 0.5),
    (0.0, 0.45, 0.35, 0.5, 0.1, 0.35, 0.3, 0.3, 1.0, 0.4, 0.45),
    (0.0, 0.35, 0.4, 0.55, 0.0, 0.45, 0.2, 0.0, 0.4, 1.0, 0.4),
    (0.0, 0.3, 0.35, 0.4, 0.2, 0.35, 0.5, 0.5, 0.5, 0.4, 1.0),
)
"""How well an intent of one class fits a method of another; not symmetric: to create may be to start, but START does
not promise that something is created."""
_PREFIXED: Final = 0.9
_NEIGHBOURS: Final = 0.7


class Classes(NamedTuple):
    """The weights of a verb in each class, in the order of CLASSES, and their reliability."""

    weights: tuple[float, ...]
    confidence: float

    @property
    def main(self) -> OperationClass:
        return CLASSES[self.weights.index(max(self.weights))]

    def of(self, name: OperationClass) -> float:
        return self.weights[CLASSES.index(name)]


@lru_cache(maxsize=4096)
def operation_classes(verb: str) -> Classes | None:
    """Return the classes of a lower-case verb: hand-assigned, by its prefix, or by its neighbours in meaning."""
    known = meanings()
    if code := known.hand.get(verb):
        return Classes(_weights(code), 1.0)
    if found := _prefixed(verb):
        return found
    if code := known.table.get(verb):
        return Classes(_weights(code[:-1]), _NEIGHBOURS + 0.1 * (code[-1] >= "5"))
    return None


def _weights(code: str) -> tuple[float, ...]:
    weights = [0.0] * len(CLASSES)
    for letter, digit in zip(code[::2], code[1::2], strict=True):
        weights[_LETTERS.index(letter)] = int(digit, 11) / 10
    return tuple(weights)


def _prefixed(verb: str) -> Classes | None:
    """Derive classes by prefix: unregister ends what register made, and recreate does what create does."""
    for prefix in ("un", "de", "dis"):
        rest = verb.removeprefix(prefix)
        if rest != verb and (code := meanings().hand.get(rest)) and verb not in NOT_UNDOING:
            return Classes(_weights("BaU9C3" if code[0] in "DE" else "DaE5U4"), _PREFIXED)
    rest = verb.removeprefix("re").removeprefix("-")
    if rest != verb and (code := meanings().hand.get(rest)):
        weights = _weights(code)
        at = CLASSES.index("UPDATE")
        changes = weights[CLASSES.index("READ")] < 1
        return Classes((*weights[:at], max(weights[at], 0.6 if changes else 0.0), *weights[at + 1 :]), _PREFIXED)
    return None


GENERIC: Final = listed("generic")  # verbs whose meaning is in their object
_PRODUCING: Final = word_set("produce generate provide compile prepare give create")
CHANGERS: Final = word_set("update set modify change edit alter put adjust")
"""Verbs that say only that something changes; their object decides how."""
_SPECIAL: Final[tuple[OperationClass, ...]] = ("DELETE", "SEND", "BEGIN", "END", "DECIDE", "ASSIGN")
_SAVING: Final = word_set("save write store persist record commit")
_CHECKING: Final = word_set("test verify validate check")  # methods whose result is only a yes or no
_PRODUCERS: Final = listed("producers")
_ANSWERING: Final = word_set(
    "return output yield respond tell"
)  # methods whose result is the answer, and verbs that say so
_HALF_READING: Final = listed("half-reading")  # verbs whose result may be just the answer: only a warning
_REPORTING: Final = word_set("tell inform notify signal ask advertise")  # verbs that may only announce a deed
_MOSTLY: Final = 0.8
_REWRITING: Final = 0.7  # minimum weight of a change while something is worked out
_KNOWN: Final = 0.9  # minimum reliability of the classes of both verbs for a violation
_WARNED: Final = 0.35
_GOOD: Final = 0.5
_RESULT: Final = 0.6
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
    works_out = ours.main == "ANALYZE" and verb in (_ANSWERING if method in _CHECKING else _PRODUCING | _ANSWERING)
    if verb in GENERIC and not works_out:
        return None
    score = class_fit(ours, theirs)
    if known.synonymous(method, verb):
        score = max(score, _SYNONYM if score > _CONTRADICTION else _DOUBTFUL_SYNONYM)
    if works_out or (method in _PRODUCERS and verb in _ANSWERING):  # the verb produces or returns the result
        score = max(score, _RESULT)
    rewrites = theirs.main == "ANALYZE" and max(theirs.of("UPDATE"), theirs.of("CREATE")) >= _REWRITING
    # The verb only looks up what the method promises to work out.
    looks_up = ours.main == "ANALYZE" and theirs.main == "READ" and not theirs.of("ANALYZE") and not works_out
    if _against(ours, theirs) or _against(theirs, ours) or (ours.main == "READ" and rewrites) or looks_up:
        score = min(score, _WARNED)
    confidence = min(ours.confidence, theirs.confidence)
    # The verb may speak of the answer or of a message, not of the deed.
    may_only_answer = verb in (_HALF_READING if ours.main == "READ" else _REPORTING)
    if may_only_answer or (method in _PRODUCERS and theirs.main == "READ") or confidence < _KNOWN:
        score = max(score, _WARNED)
    return 0.5 + (score - 0.5) * confidence


def is_changer(method: str) -> bool:
    """Return True if a method promises a change and nothing more special, as UPDATE and RENAME do."""
    if (classes := operation_classes(method)) is None or method in _SAVING:
        return True
    return classes.main == "UPDATE" and all(classes.of(name) < _GOOD for name in _SPECIAL)


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
