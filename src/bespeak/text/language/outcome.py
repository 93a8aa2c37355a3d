"""Outcomes that nobody can verify (AGIS 6.1): "Something happens", "It depends", "Will try to book"."""

from __future__ import annotations

import re
from collections.abc import Container
from typing import Final

from bespeak.text.language.late_pattern import LatePattern
from bespeak.text.language.sentence import word_set
from bespeak.text.language.verb_form import lemmas

_LONGEST: Final = 600
_WORD: Final = re.compile(r"\w+(?:['’-]\w+)*")
_SMALL: Final = word_set(
    "a an the this that these those there here it its they them their he she his her we us our you your i my one "
    "ones some any all each every both such same other another is are was were be been being am has have had "
    "having do does did doing will shall can may must get gets got and or but nor not no none nothing never then "
    "now also just only already again still so too very well as at by for from in into of off on onto out over "
    "per to up upon via with without within under after before during until while when where if than because "
    "between through about back what who which"
)
"""Words that name nothing by themselves."""
_GENERIC: Final = word_set(
    # The call itself.
    "request requests operation operations call calls action actions command method endpoint api execution "
    "invocation process procedure response responses result results output answer reply outcome effect effects "
    "attempt attempts http status code ok okay yes true content payload return value called "
    # Anything.
    "something anything everything whatever thing things stuff etc someone somebody anyone data info information "
    "system systems state server service backend application app database function functionality work works user "
    "users agent agents caller callers client clients customer customers party parties change changes need needs "
    "purpose goal way kind sort case place time "
    # What is said of anything.
    "processed process processes handled handle handles managed complete completed completes completion executed "
    "executes performed performs run runs ran running done finished finishes finish worked working success "
    "successes successful successfully succeed succeeds succeeded fails failed error errors exception exceptions "
    "problem problems happen happens happened happening occur occurs occurred take takes taken took made make "
    "makes given give gives returned returns sent send sends provided provides provide received receives respond "
    "responds responded available updated changed modified refreshed affected achieved accomplished fulfilled "
    "carried met reached obtained produced expected desired intended wanted requested appropriate appropriately "
    "necessary needed required relevant corresponding correct correctly proper properly good fine right happy "
    "satisfied pleased glad depends depend depending varies vary various different new accordingly somehow maybe "
    "perhaps "
    # What stands for a text that is still to be written.
    "see refer documentation docs description above below tbd tba todo placeholder unknown unspecified undefined "
    "n/a na null void string text"
)
"""Words that are true of any call, or of none."""
_SUCCESS: Final = word_set(
    "success successful successfully succeed succeeds succeeded works worked work happens happened happen occurs "
    "occurred done processed handled executed performed ok okay fine"
)
_SUBJECTS: Final = word_set("something anything stuff things someone somebody whatever whoever")
"""Subjects that leave open what the sentence is about, whatever follows."""
_STATUS: Final = LatePattern(
    r"(?:the |an? |return(?:s|ed)? )*(?:http |status |code )*[12]\d\d(?: [a-z]+){0,2}"
    r"|(?:(?:the |an? )?success(?:ful)? message)(?: is (?:returned|sent|shown|displayed))?"
)
_CLAUSE: Final = re.compile(
    r"\b(?:that|which|who|whom|whose|where|when|what|how|while|because|so|as|until|unless|whether)\b"
)
"""Beginnings of clauses: what is possible or tried there is not the outcome."""
_ADVERB: Final = (
    r"(?:maybe|perhaps|possibly|probably|hopefully|presumably|supposedly|potentially|ideally|sometimes|usually|normally"
    r"|generally|typically|likely|somehow|more or less|kind of|sort of)"
)
_BE: Final = r"(?:is|are|was|were|be|been|gets?|has|have|had|will|can|may|exists?)"
_HEDGE: Final = LatePattern(
    rf"^{_ADVERB}\b|\b{_BE} {_ADVERB}\b|\b{_ADVERB} {_BE}\b"
    r"|\b(?:might|could|should|would|ought to)(?: not)?(?: now| then)?"
    r" (?:be|have|get|exist|receive|see|appear|work|happen)\b"
    r"|\bmay(?: or may not|be| be| have been)\b"
    r"|\bif (?:all|everything|it|things?) (?:goes|go|went|works?|worked)\b|\bwith (?:some |any |a bit of )?luck\b"
    r"|\bone way or (?:an)?other\b|\bin (?:some|one) way\b|\bsome (?:kind|sort) of\b"
    r"|^(?:(?:it|this|that|the (?:outcome|result|response|answer|effect|rest)|what happens|everything|all) )?"
    r"(?:depends|depending|varies|differs)\b"
)
_AFTERTHOUGHT: Final = LatePattern(
    rf"\b{_ADVERB}$|\b(?:or|perhaps) not$"
    r"|\b(?:if|where|when|whenever|as far as) (?:at all )?(?:possible|feasible|appropriate|applicable)\b"
)
_ATTEMPT: Final = LatePattern(
    r"(?<!\ban )(?<!\bthe )(?<!\beach )(?<!\bevery )(?<!\bno )(?<!\bfurther )"
    r"\b(?:try|tries|trying|tried|attempt|attempts|attempting|attempted|aim|aims|aiming|hope|hopes|hoping|seek|seeks|strive"
    r"|strives|endeavou?rs?|intend|intends|plans|wants|wishes) to\b"
    r"|\b(?:is|are|was|were|be) (?:supposed|expected|intended|meant|likely|going|about|hoped|attempted) to\b"
    r"|\b(?:attempts?|efforts?|try) (?:is|are|was|were|has been|have been|will be|gets?) (?:made|undertaken|started)\b"
    r"|\bbest[ -]effort\b|\b(?:do|does|did|doing|try|tries) (?:its|our|their|the|my|his|her) best\b"
)


def weakness(outcome: str, method: str = "", things: Container[str] = ()) -> str | None:
    """Return why an outcome cannot be verified; None if it names a state or a result.

    `things` are the words of the path in lower case: what they name is specific there, even `request`.
    """
    plain = " ".join(outcome[:_LONGEST].lower().replace("’", "'").split()).strip(" .!…\"'`")
    if not plain:
        return None
    if plain.endswith("?"):
        return "it is a question"
    words = [word.removesuffix("'s") for word in _WORD.findall(plain)]
    rest = [word for word in words if word in things or not _is_empty(word)]
    if all(word.isdecimal() for word in rest) or _STATUS.fullmatch(plain):
        return "it is true of any call"
    clause = _CLAUSE.search(plain)
    main = plain[: clause.start()] if clause and clause.start() else plain
    hedge = _HEDGE.search(main) or _AFTERTHOUGHT.search(plain)
    if _ATTEMPT.search(main):
        return "it says what is tried, not what is true afterwards"
    if hedge:
        return f"{hedge[0].strip()!r} leaves open whether it happens"
    if words and words[0] in _SUBJECTS:
        return f"{words[0]!r} does not say what exists, has changed or is returned"
    if method and not _SUCCESS.isdisjoint(words) and all(_is_form(word, method.lower()) for word in rest):
        return "it only says that the method succeeded"
    return None


def _is_empty(word: str) -> bool:
    return word in _SMALL or word in _GENERIC or (len(word) == 1 and word.isascii())


def _is_form(word: str, method: str) -> bool:
    """Return True if a word is the method as a verb or as a noun: book, booking, cancellation."""
    if word == method or any(lemma.verb == method for lemma in lemmas(word)):
        return True
    return len(method) > 3 and word.startswith(method.rstrip("ey")) and word.endswith(("ion", "ment", "al", "ings"))
