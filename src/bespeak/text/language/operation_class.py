"""What a verb does to the thing it is applied to: read it, create it, change it, remove it …"""

from __future__ import annotations

from functools import lru_cache
from typing import Final, Literal, NamedTuple

from bespeak.text.language.meanings import NOT_UNDOING, meanings

OperationClass = Literal["READ", "ANALYZE", "CREATE", "UPDATE", "DELETE", "SEND", "CONTROL"]

CLASSES: Final[tuple[OperationClass, ...]] = ("READ", "ANALYZE", "CREATE", "UPDATE", "DELETE", "SEND", "CONTROL")
CHANGING: Final[tuple[OperationClass, ...]] = ("CREATE", "UPDATE", "DELETE", "SEND", "CONTROL")
"""The classes after which something is different."""
_LETTERS: Final = "RACUDSX"

PHRASES: Final[dict[OperationClass, str]] = {
    "READ": "reads something",
    "ANALYZE": "works something out",
    "CREATE": "creates or commits something",
    "UPDATE": "changes something",
    "DELETE": "removes or ends something",
    "SEND": "sends or tells something",
    "CONTROL": "controls how something runs",
}
"""The classes in words, for the third person."""

COMPATIBLE: Final = (
    # READ ANALYZE CREATE UPDATE DELETE SEND CONTROL: what the intent does, in the row of what the method does
    (1.0, 0.8, 0.0, 0.0, 0.0, 0.1, 0.1),
    (0.8, 1.0, 0.35, 0.3, 0.0, 0.15, 0.3),
    (0.0, 0.4, 1.0, 0.35, 0.0, 0.35, 0.35),
    (0.0, 0.4, 0.35, 1.0, 0.1, 0.3, 0.35),
    (0.0, 0.0, 0.0, 0.15, 1.0, 0.1, 0.2),
    (0.1, 0.15, 0.35, 0.3, 0.0, 1.0, 0.35),
    (0.0, 0.3, 0.35, 0.35, 0.2, 0.35, 1.0),
)
"""How well an intent of one class fits a method of another; it is not symmetric."""

_HAND: Final = 1.0
_PREFIXED: Final = 0.9
_NEIGHBOURS: Final = 0.7


class Classes(NamedTuple):
    """The weights of a verb in each class, in the order of CLASSES, and how far they can be relied on."""

    weights: tuple[float, ...]
    confidence: float

    @property
    def main(self) -> OperationClass:
        """The class with the largest weight."""
        return CLASSES[self.weights.index(max(self.weights))]

    def of(self, name: OperationClass) -> float:
        """The weight in one class."""
        return self.weights[CLASSES.index(name)]


@lru_cache(maxsize=4096)
def operation_classes(verb: str) -> Classes | None:
    """The classes of a verb in lower case: decided by people, by its prefix, or by its neighbours in meaning."""
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
    """unregister removes or stops what register made; recreate does what create does and changes something."""
    for prefix in ("un", "de", "dis"):
        rest = verb.removeprefix(prefix)
        if rest != verb and rest in meanings().hand and verb not in NOT_UNDOING:
            return Classes(_weights("DaX5U4"), _PREFIXED)
    rest = verb.removeprefix("re").removeprefix("-")
    if rest != verb and (code := meanings().hand.get(rest)):
        weights = _weights(code)
        at = CLASSES.index("UPDATE")
        changes = weights[CLASSES.index("READ")] < 1
        return Classes((*weights[:at], max(weights[at], 0.6 if changes else 0.0), *weights[at + 1 :]), _PREFIXED)
    return None
