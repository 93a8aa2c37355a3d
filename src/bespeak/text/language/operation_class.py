"""Operation classes: what a verb does to its object: read, create, change, remove …"""

from __future__ import annotations

from functools import lru_cache
from typing import Final, Literal, NamedTuple, get_args

from bespeak.text.language.meanings import NOT_UNDOING, meanings

OperationClass = Literal[
    "READ", "ANALYZE", "CREATE", "UPDATE", "DELETE", "SEND", "BEGIN", "END", "DECIDE", "ASSIGN", "CONTROL"
]

CLASSES: Final[tuple[OperationClass, ...]] = get_args(OperationClass)
CHANGING: Final = CLASSES[2:]
"""Classes that change something."""
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
}
"""Classes in words, in the third person."""

COMPATIBLE: Final = (
    # READ ANALYZE CREATE UPDATE DELETE SEND BEGIN END DECIDE ASSIGN CONTROL: what the intent does, in the row of what
    # the method does
    (1.0, 0.8, 0.0, 0.0, 0.0, 0.1, 0.05, 0.0, 0.1, 0.0, 0.1),
    (0.8, 1.0, 0.35, 0.3, 0.0, 0.15, 0.3, 0.1, 0.5, 0.35, 0.3),
    (0.0, 0.4, 1.0, 0.35, 0.0, 0.35, 0.6, 0.1, 0.35, 0.4, 0.35),
    (0.0, 0.4, 0.35, 1.0, 0.1, 0.3, 0.35, 0.35, 0.45, 0.5, 0.35),
    (0.0, 0.0, 0.0, 0.15, 1.0, 0.1, 0.0, 0.35, 0.1, 0.0, 0.2),
    (0.1, 0.15, 0.35, 0.3, 0.0, 1.0, 0.4, 0.1, 0.2, 0.45, 0.35),
    (0.0, 0.35, 0.35, 0.35, 0.0, 0.4, 1.0, 0.0, 0.3, 0.3, 0.5),
    (0.0, 0.2, 0.0, 0.35, 0.3, 0.2, 0.0, 1.0, 0.3, 0.1, 0.5),
    (0.0, 0.45, 0.35, 0.5, 0.1, 0.35, 0.3, 0.3, 1.0, 0.4, 0.45),
    (0.0, 0.35, 0.5, 0.55, 0.0, 0.45, 0.2, 0.0, 0.4, 1.0, 0.4),
    (0.0, 0.3, 0.35, 0.4, 0.2, 0.35, 0.5, 0.5, 0.5, 0.4, 1.0),
)
"""How well an intent of one class fits a method of another; not symmetric: to create may be to start, but START does
not promise that something is created."""

_HAND: Final = 1.0
_PREFIXED: Final = 0.9
_NEIGHBOURS: Final = 0.7


class Classes(NamedTuple):
    """The weights of a verb in each class, in the order of CLASSES, and their reliability."""

    weights: tuple[float, ...]
    confidence: float

    @property
    def main(self) -> OperationClass:
        """Class with the largest weight."""
        return CLASSES[self.weights.index(max(self.weights))]

    def of(self, name: OperationClass) -> float:
        """Return the weight in one class."""
        return self.weights[CLASSES.index(name)]


@lru_cache(maxsize=4096)
def operation_classes(verb: str) -> Classes | None:
    """Return the classes of a lower-case verb: hand-assigned, by its prefix, or by its neighbours in meaning."""
    known = meanings()
    if code := known.hand.get(verb):
        return Classes(_weights(code), _HAND)
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
    """Derive classes by prefix: unregister removes or stops what register made, untrash brings back what trash removed,
    and recreate does what create does.
    """
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
