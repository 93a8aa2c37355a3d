"""The verbs that say what a sentence promises: the head verb, those beside it, and those hidden in nouns."""

from __future__ import annotations

from functools import lru_cache
from typing import Final, Literal, NamedTuple

from bespeak.language.lexicon import lexicon
from bespeak.language.light_verb import LIGHT, OBTAINING, meant_verb
from bespeak.language.meanings import meanings
from bespeak.language.operation_class import operation_classes
from bespeak.language.sentence import Word, is_english, words
from bespeak.language.two_word_verb import two_word_verb
from bespeak.language.verb_form import Lemma, lemmas

Kind = Literal["head", "coordinated", "meant", "nominal"]
"""head: the main verb. coordinated: beside it. meant: named by the object of a light verb. nominal: no verb but a noun."""

_DETERMINERS: Final = frozenset(
    "the a an this that these those all any each every some its their your his her our my one two multiple several "
    "many new existing specific single given certain current own another other no specified".split()
)
_MODALS: Final = frozenset("will can may must should shall could would might does do".split())
_BEING: Final = frozenset("is are was were be been being gets get".split())
_SUBJECTS: Final = frozenset(
    "endpoint endpoints operation method methods api apis call function service services resource route action command "
    "tool agent agents user users caller callers client clients system server webhook app application customer "
    "customers merchant admin administrator administrators party procedure interface feature step query request "
    "requester owner owners member members developer developers you we it they account i handler hook "
    "applications merchants apps capability skill entry controller".split()
)
_LEADING: Final = frozenset(
    "please then now also first bulk batch mass async asynchronous asynchronously sync hard soft force partial "
    "beta deprecated internal admin internally v1 v2 v3 v4 public private api experimental legacy new "
    "preview optionally either both one-click auto advanced simple rest".split()
)
_JUMPS: Final = frozenset(
    "allow enable let permit help use utilize call attempt try want need provide offer give serve able intend design "
    "exist require facilitate support make invoke employ wish aim expose start".split()
)
_PURPOSES: Final = frozenset("send submit post pass upload supply provide issue make query transmit request".split())
"""What they do is the means; what follows "to" is the purpose: sends an image to analyze it."""
_CLAUSES: Final = frozenset("that which who whose where when if because so while unless until after before once".split())
_PREPOSITIONS: Final = frozenset(
    "of for to from with on in by at into onto about within under over per between via using as without through "
    "during against based across and or".split()
)
_BARE_NOUNS: Final = frozenset(
    "details detail info information list history status count summary overview statistics stats results result data "
    "report reports settings metadata log logs schema collection preview by endpoint api service resource object for "
    "of in from".split()
)
"""Words after which a first word that can be a noun is one: "order details", "comment by id"."""

_FAR: Final = 12
_NEAR: Final = 8
_MOST: Final = 4


class HeadVerb(NamedTuple):
    """A verb in its base form and where the word that shows it stands in the text."""

    verb: str
    start: int
    end: int
    kind: Kind


@lru_cache(maxsize=4096)
def head_verbs(text: str) -> tuple[HeadVerb, ...]:
    """The verbs of the first sentence, the deciding one first; none if it is no English or has no verb."""
    sentence = words(text)
    if not is_english(sentence):
        return ()
    return tuple(_Reader(sentence).read())


class _Found(NamedTuple):
    at: int
    lemma: Lemma


class _Reader:
    """One reading of one sentence."""

    def __init__(self, sentence: list[Word]) -> None:
        self.sentence = sentence
        self.lower = [word.lower for word in sentence]

    def read(self) -> list[HeadVerb]:
        for start in self._starts():
            found = self._leading(start)
            if found:
                return self._complete(found)
        found = self._passive() or self._third_person()
        if found:
            return self._complete(found)
        return self._nominal()

    def _starts(self) -> list[int]:
        """Where the sentence may begin: at its first word, and behind a label such as "Users:"."""
        marks = [at + 1 for at, word in enumerate(self.lower[:_FAR]) if word in {":", "-", "–", "—", "|", "/", ")"}]
        return [0, *marks[:2]]

    def _word(self, at: int) -> str:
        return self.lower[at] if 0 <= at < len(self.lower) else ""

    def _leading(self, at: int) -> _Found | None:
        """The verb the sentence begins with, behind subjects, adverbs and "is used to"."""
        at = self._behind_subject(at)
        for _ in range(_FAR):
            word = self._word(at)
            if not word:
                return None
            if word == "to" or (word.endswith("ly") and word not in {"apply", "reply", "supply", "multiply", "rely"}):
                at += 1
            elif word in _LEADING and (self._verb(at + 1) or self._word(at + 1) in _LEADING):
                at += 1
            elif word in {"(", "[", '"', "-", "–", "/", "*"}:
                at += 1
            elif (follower := self._use(at)) is not None:
                at = follower
            else:
                break
        found = self._verb(at)
        if found is None or self._is_noun_here(at, found):
            return None
        return self._jump(_Found(at, found))

    def _behind_subject(self, at: int) -> int:
        """The place behind "This endpoint (will|is used to)" and "The agent", or the same place."""
        start = at
        determined = self._word(at) in _DETERMINERS
        if determined:
            at += 1
        for step in range(4):
            if self._word(at + step) in _SUBJECTS and (determined or step or self._word(at) in _SUBJECTS):
                after = at + step + 1
                follower = self._word(after)
                if follower in {"that", "which", "to"} or follower in _MODALS:
                    return after + 1
                if follower == "for" and self._form(after + 1) == "gerund":
                    return after + 1
                if follower in _BEING or follower == "used":
                    return after
                if self._form(after) == "third" and self._word(after) not in _SUBJECTS:
                    return after
                if follower.endswith("ly"):
                    return after
        return start

    def _use(self, at: int) -> int | None:
        """Behind "is used to", "used for", "can be used to": where the verb stands."""
        word = self._word(at)
        if word in _MODALS and word not in {"do", "does"}:
            return at + 1
        if word in _BEING and word not in {"get", "gets"}:
            if self._word(at + 1) in {"used", "designed", "intended", "able", "meant", "responsible", "useful", "called", "to"}:
                return at + 1
            return None
        if word in {"used", "designed", "intended", "able", "meant", "responsible", "useful"} and self._word(at + 1) in {"to", "for", "by", "in", "when"}:
            return at + 2
        if word in {"api", "endpoint", "method", "operation", "way", "ability", "call", "request", "possibility", "function", "service"}:
            if self._word(at + 1) == "to" and self._form(at + 2) == "base":
                return at + 2
            if self._word(at + 1) == "for" and self._form(at + 2) == "gerund":
                return at + 2
        return None

    def _verb(self, at: int) -> Lemma | None:
        """The verb a word is most likely a form of, as the head of a sentence."""
        word = self._word(at)
        if not word or not word.isascii() or word in _PREPOSITIONS or word in _DETERMINERS or word in _CLAUSES:
            return None
        found = lemmas(word.replace("-", ""))
        if not found:
            return None
        known = meanings().hand
        usable = [lemma for lemma in found if lemma.form in {"base", "third", "gerund"}]
        if not usable:
            return None
        return next((lemma for lemma in usable if lemma.verb in known), usable[0])

    def _form(self, at: int) -> str:
        found = self._verb(at)
        return found.form if found else ""

    def _is_noun_here(self, at: int, lemma: Lemma) -> bool:
        """Whether a word that could be a verb is the beginning of a noun phrase: "Order details"."""
        share = lexicon().share(lemma.verb)
        follower = self._word(at + 1)
        if lemma.form == "third":
            return share[1] > 0.5 and follower not in _DETERMINERS and (follower in _PREPOSITIONS or not follower)
        if lemma.form == "gerund":
            return False
        if share[0] < 0.03 and lemma.verb not in meanings().hand:
            return True
        if share[1] + share[2] < 0.2 or follower in _DETERMINERS:
            return False
        if follower in {"is", "are", "was", "will", "has", "were"}:
            return True
        if follower in {"of", "by", "in", "from", "for"} and lemma.verb in {"list", "search", "query", "check", "filter", "look", "download", "export"}:
            return False
        return follower in _BARE_NOUNS or (share[0] < 0.25 and not follower)

    def _jump(self, found: _Found) -> _Found:
        """From "allows a customer to book" to "book"; the verb itself if nothing follows that it leads to."""
        at, lemma = found
        verb = lemma.verb
        if verb not in _JUMPS and verb not in _PURPOSES:
            return found
        purpose = verb not in _JUMPS
        for place in range(at + 1, min(at + _FAR, len(self.lower))):
            word = self.lower[place]
            if word in _CLAUSES and word != "that":
                break
            if word in {"to", "you"} and place + 1 < len(self.lower):
                after = place + 1
                while self._word(after).endswith("ly"):
                    after += 1
                if self._form(after) == "base":
                    target = self._verb(after)
                    assert target is not None
                    if self._is_aim(target, after, purpose):
                        return self._jump(_Found(after, target))
            if word in {"for", "of", "by"} and verb != "call" and self._form(place + 1) == "gerund" and not purpose:
                target = self._verb(place + 1)
                assert target is not None
                return _Found(place + 1, target)
            if verb in {"let", "help"} and place > at + 1 and self._form(place) == "base":
                target = self._verb(place)
                if target is not None and lexicon().share(target.verb)[0] > 0.5:
                    return _Found(place, target)
        return found

    def _is_aim(self, lemma: Lemma, at: int, purpose: bool) -> bool:
        share = lexicon().share(lemma.verb)[0]
        follower = self._word(at + 1)
        if share < 0.5 and follower not in _DETERMINERS:
            return lemma.verb in meanings().hand and share > 0.2 and not purpose
        return True

    def _passive(self) -> _Found | None:
        """The participle in "a reservation is created"."""
        for at, word in enumerate(self.lower[:_FAR]):
            if word in _CLAUSES:
                return None
            if word in _BEING:
                after = at + 1
                while self._word(after).endswith("ly") or self._word(after) in {"be", "being", "been", "not"}:
                    after += 1
                for lemma in lemmas(self._word(after)):
                    if lemma.form in {"past", "participle"}:
                        return _Found(after, lemma)
        return None

    def _third_person(self) -> _Found | None:
        """A verb behind a subject that is not known as one: "The concierge reserves a table"."""
        for at in range(1, min(_NEAR, len(self.lower))):
            word = self.lower[at]
            if word in _CLAUSES or word in _PREPOSITIONS:
                return None
            lemma = self._verb(at)
            if lemma and lemma.form == "third" and operation_classes(lemma.verb):
                share = lexicon().share(lemma.verb)[0]
                if share >= 0.6 or (self._word(at + 1) in _DETERMINERS and share >= 0.2):
                    return _Found(at, lemma)
        return None

    def _complete(self, found: _Found) -> list[HeadVerb]:
        """The head verb with its particle, what a light verb means, and the verbs beside it."""
        at, lemma = found
        result: list[HeadVerb] = []
        for place, one in [(at, lemma), *self._coordinated(at, lemma)]:
            kind: Kind = "coordinated" if result else "head"
            verb = two_word_verb(one.verb, self.lower, place) or one.verb
            meant = meant_verb(verb, self.lower, place)
            if meant:
                result.append(self._head(meant[1], meant[0], "meant"))
            if not meant or verb not in OBTAINING:
                result.append(self._head(place, verb, kind))
        return result[: 2 * _MOST]

    def _head(self, at: int, verb: str, kind: Kind) -> HeadVerb:
        return HeadVerb(verb, self.sentence[at].start, self.sentence[at].end, kind)

    def _coordinated(self, at: int, head: Lemma) -> list[tuple[int, Lemma]]:
        """The verbs joined to the head by a comma, "and" or "or", in the same form as it."""
        found: list[tuple[int, Lemma]] = []
        place = at + 1
        while place < min(len(self.lower) - 1, at + 25) and len(found) < _MOST - 1:
            word = self.lower[place]
            if word in _CLAUSES:
                break
            if word in {"and", "or", "then", ",", "/"}:
                after = place + 1
                while self._word(after) in {"and", "or", "then", "also", "optionally"} or self._word(after).endswith("ly"):
                    after += 1
                lemma = self._verb(after)
                if lemma and lemma.form == head.form and self._is_verb_here(after, lemma, near=place == at + 1):
                    found.append((after, lemma))
                    place = after
            place += 1
        return found

    def _is_verb_here(self, at: int, lemma: Lemma, near: bool) -> bool:
        share = lexicon().share(lemma.verb)[0]
        follower = self._word(at + 1)
        if near:
            return share >= 0.3 or lemma.verb in meanings().hand
        return share >= 0.65 or (follower in _DETERMINERS and share >= 0.2)

    def _nominal(self) -> list[HeadVerb]:
        """The doing a phrase without a verb names: "Account creation", "Cancellation of an order"."""
        last: HeadVerb | None = None
        for at, word in enumerate(self.lower[:_NEAR]):
            if word in _PREPOSITIONS or word in _CLAUSES or word in {",", "(", ":"}:
                break
            verb = meanings().verb_of(word)
            if verb and operation_classes(verb) and not (word.endswith("s") and at):
                last = self._head(at, verb, "nominal")
            elif word in meanings().hand and lexicon().share(word)[1] >= 0.2:
                last = self._head(at, word, "nominal")
            elif word not in _DETERMINERS and last is not None:
                last = None
        return [last] if last else []


__all__ = ["LIGHT", "HeadVerb", "head_verbs"]
