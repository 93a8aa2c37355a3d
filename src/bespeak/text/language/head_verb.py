"""The verbs that state what a sentence promises: the head verb, coordinated verbs, and those hidden in nouns."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from itertools import zip_longest
from typing import Final, Literal, NamedTuple

from bespeak.text.identifiers import apart
from bespeak.text.language import phrases
from bespeak.text.language.lexicon import lexicon, meanings
from bespeak.text.language.names import singular
from bespeak.text.language.operation_class import operation_classes
from bespeak.text.language.sentence import LONGEST, Word, is_english, words
from bespeak.text.language.verb_form import Lemma, lemmas, two_word_verb

Kind = Literal["head", "coordinated", "meant", "nominal", "light", "frame", "doubtful", "hint", "reading", "own"]
"""Role of a verb in its sentence.

head: the main verb. coordinated: beside it. light: a main verb that says little, and meant: what its object names.
frame: a verb that sets another one going. nominal: a noun instead of a verb. doubtful: a verb, or the first part of a
compound noun. hint: a noun that may name the action. reading: a possible meaning of a vague verb. own: a verb that only
leads to the head. The last three count only in favour of a method.
"""
_NEVER_VERBS: Final = phrases.PREPOSITIONS | phrases.DETERMINERS | phrases.CLAUSES
_LEADING_ON: Final = phrases.JUMPS | phrases.PURPOSES | phrases.ASKING_THAT  # verbs that may lead to another one
_SAYING: Final = (phrases.BEING | phrases.MODALS | {"has", "have"}) - {"get", "gets", "do", "does"}
"""Words behind a subject: "Profiles are updated"."""
_AFTER_NOUNS: Final = (phrases.PREPOSITIONS | phrases.CLAUSES | {","}) - {"to", "when", "if", "as"}
"""Words behind the last of several nouns: "its owner and labels of"."""
_OPERATIONS: Final = frozenset({"endpoint", "operation", "method", "api", "action", "apis", "operations"})
_PRONOUNS: Final = frozenset({"we", "you", "they", "i", "it"})
_STATUS: Final = frozenset({"deprecate", "discontinue", "retire", "supersede", "call"})
"""Participles that say how the operation is, not what it does."""
_BEFORE_AIMS: Final = frozenset({"to", "you", "can", "must", "should", "will"})
_ANSWERS: Final = frozenset({"url", "urls", "uri", "link", "token", "tokens", "credentials"})
"""Things that are made in order to be returned."""
_MARKS: Final = frozenset({":", "-", "–", "—", "|", ")"})
_AFTER_STATES: Final = _AFTER_NOUNS | {"status", "state", "flag", "and", "or", "when", "if"}
_LABEL: Final = 4
_MOSTLY: Final = 0.6
_FAR: Final = 12
_NEAR: Final = 8
_MOST: Final = 4


class HeadVerb(NamedTuple):
    """A verb in its base form and the place of its word in the text."""

    verb: str
    start: int
    end: int
    kind: Kind


def head_verbs(text: str) -> tuple[HeadVerb, ...]:
    """Return the verbs of the first sentence, the deciding one first; empty if it is not English or has no verb."""
    return _head_verbs(text[: LONGEST + 1])  # the cache keeps its keys


@lru_cache(maxsize=4096)
def _head_verbs(text: str) -> tuple[HeadVerb, ...]:
    sentence = words(text)
    if not is_english(sentence):
        return ()
    return tuple(_SentenceReader(sentence).read())


def later_verbs(text: str, head: HeadVerb) -> Iterator[str]:
    """Yield what a sentence says behind its head: "Sends an event if you want to remove an item"."""
    sentence = words(text)
    return _SentenceReader(sentence).aims(next(at for at, word in enumerate(sentence) if word.start == head.start))


def names_deed(text: str, verb: str) -> bool:
    """Return True if a text names a deed: tags, cancellation, "to paused"; "size" of resize, but not "paused jobs"."""
    names = {verb, verb.removeprefix("re")}
    lower = [word.lower for word in words(text)]
    for word, behind in zip_longest(lower, lower[1:], fillvalue=""):
        if word in names or meanings().verb_of(word) == verb:
            return True
        forms = {lemma.form for lemma in lemmas(word) if lemma.verb == verb}
        if forms and (forms & {"base", "third", "gerund"} or not behind or behind in _AFTER_STATES):
            return True
    return False


class _PlacedLemma(NamedTuple):
    at: int
    lemma: Lemma


class _SentenceReader:
    """One reading of one sentence."""

    def __init__(self, sentence: list[Word]) -> None:
        self.sentence = sentence
        self.lower = [word.lower for word in sentence]
        self.frames: list[tuple[_PlacedLemma, Kind]] = []  # verbs that led to another: "Allows a user to book"

    def read(self) -> list[HeadVerb]:
        for start in self._starts():
            if found := self._leading(start):
                named = phrases.nominal_verb(self.lower) if self._is_doubtful(*found) else None
                if named and named[0] != phrases.READING:
                    return [self._head(named[1], named[0], "nominal")]
                return self._complete(found)
        begin = phrases.behind_condition(self.lower) or 0
        if found := self._passive(begin) or self._third_person(begin) or self._purpose(begin):
            return self._complete(found)
        named = phrases.nominal_verb(self.lower)
        return [self._head(named[1], named[0], "nominal")] if named else []

    def _starts(self) -> list[int]:
        """Yield where the sentence may begin: at its first word, and after a label or a condition."""
        marks = [at + 1 for at, word in enumerate(self.lower[:_FAR]) if word in _MARKS]
        labels = [at for at in marks if at <= _LABEL and self._verb(at) and (at == 2 or self._form(0) != "third")]
        condition = phrases.behind_condition(self.lower)
        return [*labels[:1], 0 if condition is None else condition, *marks[:2]]

    def _word(self, at: int) -> str:
        return self.lower[at] if 0 <= at < len(self.lower) else ""

    def _leading(self, at: int) -> _PlacedLemma | None:
        """Return the verb that the sentence begins with, after subjects, adverbs and "is used to"."""
        at = self._behind_subject(at)
        for _ in range(_FAR):
            if not (word := self._word(at)):
                return None
            if (
                word == "to"
                or (word == "and" and self._word(at - 1).endswith("ly"))
                or (word.endswith("ly") and word not in {"apply", "reply", "supply", "multiply", "rely"})
                or (
                    word in phrases.LEADING
                    and (self._verb(at + 1) or self._word(at + 1) in phrases.LEADING | phrases.MEANS)
                )
                or word in {"(", "[", '"', "-", "–", "/", "*"}
                or word.isdecimal()
            ):
                at += 1
            elif (follower := self._use(at)) is not None:
                at = follower
            else:
                break
        found = self._verb(at)
        if found is None or found.verb == "be" or self._is_noun_here(at, found):
            return None
        return self._jump(_PlacedLemma(at, found))

    def _behind_subject(self, at: int) -> int:
        """Skip "This endpoint (will|is used to)" and "The agent"."""
        start = at
        determined = self._word(at) in phrases.DETERMINERS
        if determined:
            at += 1
        for step in range(4 if determined else 1):
            if self._word(at + step) in phrases.SUBJECTS or self._is_name(at + step):
                after = at + step + 1
                follower = self._word(after)
                for_doing = follower == "for" and self._form(after + 1) == "gerund"
                if follower in {"that", "which", "to"} or follower in phrases.MODALS or for_doing:
                    return after + 1
                subject = self._word(at + step)
                verb, form = self._verb(after), "base" if subject in _PRONOUNS and subject != "it" else "third"
                mostly = determined or (verb is not None and lexicon().share(verb.verb)[0] >= _MOSTLY)
                acts = verb is not None and verb.form == form and (mostly or self._is_name(at + step))
                if follower in phrases.BEING or follower == "used" or acts or (follower.endswith("ly") and determined):
                    return after
        return start

    def _is_name(self, at: int) -> bool:
        """Return True for the name of an operation as a subject: "CreateMembers sends"."""
        return at < len(self.sentence) and apart(self.sentence[at].text) != self.sentence[at].text

    def _use(self, at: int) -> int | None:
        """Skip "is used to", "used for" and "can be used to", up to the verb."""
        word = self._word(at)
        if word in phrases.MODALS and word not in {"do", "does"}:
            return at + 1
        if word in phrases.BEING and word not in {"get", "gets"}:
            return at + 1 if self._word(at + 1) in phrases.USED or self._word(at + 1) == "to" else None
        if word in phrases.USED and self._word(at + 1) in {"to", "for", "by", "in", "when"}:
            whom = self.lower[at + 2 : at + _NEAR]
            return at + 3 + whom.index("to") if self._word(at + 1) == "by" and "to" in whom else at + 2
        if word in phrases.MEANS and (self._word(at + 1), self._form(at + 2)) in {("to", "base"), ("for", "gerund")}:
            return at + 2
        return None

    def _verb(self, at: int) -> Lemma | None:
        """Return the verb of which a word is most likely a form, as the head of a sentence."""
        word = self._word(at)
        if word == "using" and not at:
            return Lemma("use", "gerund")
        if word == "put" and self.sentence[at].text == "PUT":
            return Lemma("replace", "base")  # the method of HTTP, not the English verb
        if not word or not word.isascii() or word in _NEVER_VERBS:
            return None
        first, hyphen, _ = word.partition("-")
        found = lemmas(first if hyphen and first in phrases.VERBS_FIRST else word.replace("-", ""))
        usable = [lemma for lemma in found if lemma.form in {"base", "third", "gerund"}]
        return next((lemma for lemma in usable if lemma.verb in meanings().hand), usable[0]) if usable else None

    def _form(self, at: int) -> str:
        found = self._verb(at)
        return found.form if found else ""

    def _is_noun_here(self, at: int, lemma: Lemma) -> bool:
        """Return True if a possible verb begins a noun phrase here: "Order details"."""
        share = lexicon().share(lemma.verb)
        follower = self._word(at + 1)
        if two_word_verb(lemma.verb, self.lower, at):
            return False
        if lemma.form == "third":
            if follower in _SAYING:
                return share[1] > 0
            if follower in {"and", "or"} and self._form(at + 2) == "third":
                return False
            ends = not follower or (at + 2 == len(self.lower) and follower in meanings().hand)
            bare = follower in phrases.BARE_NOUNS and lemma.verb not in phrases.VERBS_FIRST
            return share[1] > 0.5 and (ends or bare or follower in phrases.PREPOSITIONS)
        if follower in phrases.DETERMINERS:
            return False
        if lemma.form == "gerund":
            return follower in phrases.BARE_NOUNS and follower not in phrases.PREPOSITIONS
        if lemma.verb not in meanings().hand and (share[0] < 0.03 or share[1] >= 0.3):
            return True
        if follower in _SAYING:
            return True
        if share[1] + share[2] < 0.2 or lemma.verb in phrases.VERBS_FIRST:
            return False
        return follower in phrases.BARE_NOUNS or not follower

    def _is_doubtful(self, at: int, lemma: Lemma) -> bool:
        """Return True if a base form may be the first part of a compound noun: "Document extraction"."""
        follower = self._word(at + 1)
        if self._word(at - 1) in {"must", "should"} or self._word(0) in {"before", "after"}:
            return True  # what the caller has to do
        if follower in phrases.DETERMINERS or not follower:
            return False
        if lemma.form == "gerund":
            return lexicon().counts(self._word(at)).noun > 0
        if lemma.form != "base" or lemma.verb in phrases.VERBS_FIRST:
            return False
        return lemma.verb not in meanings().hand or lexicon().share(lemma.verb)[1] >= 0.5

    def _jump(self, found: _PlacedLemma) -> _PlacedLemma:
        """Move from "allows a customer to book" to "book"; return the verb itself if it leads to no other."""
        at, lemma = found
        if lemma.verb not in _LEADING_ON:
            return found
        for place in range(at + 1, min(at + _FAR, len(self.lower))):
            word = self.lower[place]
            if word in phrases.CLAUSES and word != "that":
                break
            if (target := self._target(found, place)) is not None:
                return target
        return found

    def _target(self, found: _PlacedLemma, place: int) -> _PlacedLemma | None:
        """Return the verb that the word at a place leads to, if it does."""
        at, lemma = found
        verb, word, purpose = lemma.verb, self.lower[place], lemma.verb not in phrases.JUMPS
        if word == "be" and verb in phrases.ASKING_THAT and (passive := phrases.passive_verb(self.lower, place)):
            self.frames.append((found, "own"))
            return _PlacedLemma(passive[1], Lemma(passive[0], lemma.form))
        if word in {"to", "you"} and place + 1 < len(self.lower):
            after = place + 1
            while self._word(after).endswith("ly"):
                after += 1
            target = self._verb(after)
            leads = target is not None and target.form == "base" and self._leads_to(verb, at, place)
            if target is not None and leads and self._is_aim(target, after, purpose):
                self.frames.append((found, "light" if purpose else "own"))
                return self._jump(_PlacedLemma(after, target))
        doing = word in {"for", "of", "by"} and verb != "call" and not purpose
        if doing and (target := self._verb(place + 1)) and target.form == "gerund":
            self.frames.append((found, "own"))
            return _PlacedLemma(place + 1, target)
        helped = verb in {"let", "help"} and place > at + 1
        if helped and (target := self._verb(place)) and target.form == "base":
            return _PlacedLemma(place, target) if lexicon().share(target.verb)[0] > 0.5 else None
        return None

    def _leads_to(self, verb: str, at: int, to: int) -> bool:
        """Return True if "to" after these verbs gives their purpose; "makes a plan to follow" does not."""
        if verb == "recommend":
            return self._word(to) == "you"
        if verb in phrases.THROUGH_A_NOUN:
            return self._word(to - 1) in phrases.MEANS
        return verb not in {"call", "invoke"} or any(word in phrases.MEANS for word in self.lower[at + 1 : to])

    def _is_aim(self, lemma: Lemma, at: int, purpose: bool) -> bool:
        share = lexicon().share(lemma.verb)[0]
        follower = self._word(at + 1)
        if self.sentence[at].text[0].isupper() or lemma.verb in {"be", "have"}:
            return False
        if share < 0.5 and follower not in phrases.DETERMINERS:
            return lemma.verb in meanings().hand and share > 0.2 and not purpose
        return True

    def _passive(self, begin: int) -> _PlacedLemma | None:
        """Return the participle in "a reservation is created"."""
        for at, word in enumerate(self.lower[begin : begin + _FAR], begin):
            if word in phrases.CLAUSES:
                return None
            if word in phrases.BEING and (self._word(at - 1) in _OPERATIONS or self._word(at + 1) == "only"):
                return None  # "This operation is deprecated" does not say what it does
            if word in phrases.BEING and (found := self._participle(at)):
                return found
        return None

    def _participle(self, being: int) -> _PlacedLemma | None:
        while self._word(being + 1) in {"be", "being", "been", "not"}:
            being += 1
        found = phrases.passive_verb(self.lower, being) if being + 1 < len(self.lower) else None
        return _PlacedLemma(found[1], Lemma(found[0], "participle")) if found else None

    def _third_person(self, begin: int) -> _PlacedLemma | None:
        """Return a verb after an unknown subject: "The concierge reserves a table"."""
        for at in range(begin + 1, min(begin + _NEAR, len(self.lower))):
            word = self.lower[at]
            if word in phrases.CLAUSES or word in phrases.PREPOSITIONS:
                return None
            lemma = self._verb(at)
            if lemma and lemma.form == "third" and operation_classes(lemma.verb):
                share = lexicon().share(lemma.verb)[0]
                if share >= 0.6 or (self._word(at + 1) in phrases.DETERMINERS and share >= 0.2):
                    return _PlacedLemma(at, lemma)
        return None

    def _purpose(self, begin: int) -> _PlacedLemma | None:
        """Return what something is for: "A partner can use this to list", "A feature for updating"."""
        for at in range(begin + 1, min(begin + _FAR, len(self.lower) - 1)):
            word, after = self.lower[at], self._verb(at + 1)
            if word in {"use", "uses"} and self.lower[at + 1] == "this":
                return self._leading(at)
            if after and (word, after.form) in {("for", "gerund"), ("to", "base")} and after.verb in meanings().hand:
                return _PlacedLemma(at + 1, after)
            if word in phrases.CLAUSES or word in phrases.BEING:
                return None
        return None

    def _complete(self, found: _PlacedLemma) -> list[HeadVerb]:
        """Add the particle of the head verb, the meaning of a light verb, and the coordinated verbs."""
        at, lemma = found
        result: list[HeadVerb] = []
        coordinated = self._coordinated(at, lemma)
        for place, one in [(at, lemma), *coordinated]:
            kind: Kind = "coordinated" if place != at else "doubtful" if self._is_doubtful(at, lemma) else "head"
            verb = two_word_verb(one.verb, self.lower, place) or one.verb
            if inner := phrases.inner_verb(verb, self.lower, place):
                result += [self._head(inner[1], inner[0], "head"), self._head(place, verb, "frame")]
                result.append(self._head(place, "start", "hint"))
                continue
            if verb in phrases.TAKING and coordinated:
                kind = "frame"
            elif self._is_about_itself(place, one):
                kind = "own"
            if meant := phrases.meant_verb(verb, self.lower, place):
                result.append(self._head(meant[1], meant[0], "meant"))
                kind = "light"
            result.append(self._head(place, verb, kind))
            if meant:
                continue
            if hint := phrases.hinted_verb(verb, self.lower, place):
                deed = verb not in phrases.MAKING or singular(self.lower[hint[1]]) not in phrases.LEFT_BEHIND
                result.append(self._head(hint[1], hint[0], "hint" if deed else "own"))
            result += [self._head(place, reading, "reading") for reading in phrases.readings(verb, self.lower, place)]
            if verb != one.verb:
                result.append(self._head(place, one.verb, "own"))
        result += self._means(at)
        if any(meanings().opposite(lemma.verb, one.verb) for _, one in coordinated):
            result.append(self._head(at, "change", "hint"))  # to add or remove members is to change a group
        result += [self._head(found.at, found.lemma.verb, kind) for found, kind in self.frames]
        return result[: 2 * _MOST]

    def _is_about_itself(self, at: int, lemma: Lemma) -> bool:
        """Return True for "is deprecated" and "This operation applies only to", which do not say what happens."""
        applies = lemma.verb == "apply" and at > 0 and self._word(at + 1) in {"only", "to"}
        return applies or (lemma.form == "participle" and lemma.verb in _STATUS)

    def aims(self, at: int) -> Iterator[str]:
        if not _ANSWERS.isdisjoint(self.lower[place] for place in phrases.object_places(self.lower, at + 1)):
            yield from ("get", "create")
        for place in range(at + 2, len(self.lower)):
            if self.lower[place - 1] in _BEFORE_AIMS and (lemma := self._verb(place)) and lemma.form == "base":
                yield lemma.verb

    def _means(self, at: int) -> list[HeadVerb]:
        """Return the verb that says how: "Cleans up a pool by deleting its entries"."""
        for place in range(at + 2, len(self.lower) - 1):
            if self.lower[place] == "by" and (lemma := self._verb(place + 1)) and lemma.form == "gerund":
                return [self._head(place + 1, two_word_verb(lemma.verb, self.lower, place + 1) or lemma.verb, "hint")]
        return []

    def _head(self, at: int, verb: str, kind: Kind) -> HeadVerb:
        return HeadVerb(verb, self.sentence[at].start, self.sentence[at].end, kind)

    def _coordinated(self, at: int, head: Lemma) -> list[tuple[int, Lemma]]:
        """Return the verbs joined to the head by a comma, "and" or "or", in the same form."""
        found: list[tuple[int, Lemma]] = []
        last, place = at, at + 1
        while place < min(len(self.lower) - 1, at + 25) and len(found) < _MOST - 1:
            word = self.lower[place]
            if word == "(" and ")" in self.lower[place:]:
                place = self.lower.index(")", place)
            elif word in phrases.CLAUSES or word == "(":
                break
            if word in {"and", "or", "then", ",", "/"}:
                after = place + 1
                while self._word(after) in {"and", "or", "then", "also"} or self._word(after).endswith("ly"):
                    after += 1
                lemma = self._verb(after)
                if lemma and lemma.form == head.form and self._is_verb_here(last, after, lemma, near=place == last + 1):
                    led = self._jump(_PlacedLemma(after, lemma))
                    found.append((led.at, led.lemma))
                    last = place = led.at
            place += 1
        return found

    def _is_listed(self, head: int, at: int) -> bool:
        """Return True if a word is in a list of nouns that look like verbs: "the create and update times"."""
        first = head + 2 if self._word(head + 1) in phrases.DETERMINERS else head + 1
        return first < at and self._form(first) == "base" and self._word(first + 1) in {",", "and", "or"}

    def _is_verb_here(self, head: int, at: int, lemma: Lemma, near: bool) -> bool:
        """Return True if a word after the object is a second verb and not another noun: "by make, model and trim"."""
        share = lexicon().share(lemma.verb)[0]
        follower = self._word(at + 1)
        if near:
            return share >= 0.3 or lemma.verb in meanings().hand
        if self._word(at - 1) == "/":
            return False
        if follower in {"it", "them"} or (follower in phrases.DETERMINERS and share >= 0.2):
            return True
        if lemma.form == "third" and lexicon().share(lemma.verb)[1] and (not follower or follower in _AFTER_NOUNS):
            return False
        if lemma.form == "base":
            if lemma.verb not in meanings().hand or self._is_listed(head, at):
                return False
            if not phrases.PREPOSITIONS.isdisjoint(self.lower[head + 1 : at - 1]):
                return share >= 0.9 and self.sentence[at].text.islower()
        return share >= 0.65
