"""The one knowledge of names: their words, number, abbreviations and spelling, and the verbs that APIs put in them."""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache
from typing import Final

from bespeak.text.identifiers import WORD_BORDER
from bespeak.text.language.lexicon import lexicon
from bespeak.text.language.operation_class import CHANGING, operation_classes
from bespeak.text.language.sentence import word_lists, word_pairs, word_set

_NO_WORD: Final = re.compile(r"[^A-Za-z0-9]+")
_UNDOING: Final = re.compile(r"\bun (?=[a-z])")  # a prefix that is written apart: `unSuspend`
_ACRONYMS: Final = re.compile(r"(?<=[A-Z]{2})s(?![a-z])")  # the plural of an acronym is one word: listAPIs
_LONGEST: Final = 60
_HISSING: Final = ("s", "x", "z", "ch", "sh")
_SPELLED: Final = str.maketrans(  # spellings of letters that ASCII does not have
    {"ä": "ae", "ö": "oe", "ü": "ue", "Ä": "Ae", "Ö": "Oe", "Ü": "Ue", "ß": "ss", "ø": "o", "ł": "l"}
)
MANNERS: Final = word_set("batch bulk mass multi")  # words before a verb that say how many things it is about
_JOINED: Final = frozenset({"re", "dry"})  # words that make one verb with the next: re-run, dry-run
_NO_PLURALS: Final = word_set(
    "news series species dns sms gps https aws ios kubernetes canvas alias atlas redis debris exists"
)


@lru_cache(maxsize=8192)
def words(text: str) -> tuple[str, ...]:
    """Split a name into lower-case words: `createPet`, `create_pet` and `create-pet` give the same ones."""
    text = text[:400]
    if not text.isascii():
        text = unicodedata.normalize("NFKD", unicodedata.normalize("NFC", text).translate(_SPELLED))
        text = "".join(letter for letter in text if not unicodedata.combining(letter))
    text = _ACRONYMS.sub("S", text)
    text = _UNDOING.sub("un", " ".join(_NO_WORD.split(WORD_BORDER.sub(" ", text))).lower())
    return tuple(text.split())


@lru_cache(maxsize=4096)
def without_manner(parts: tuple[str, ...]) -> tuple[str, ...]:
    """Return the words of a name from its verb on: `batchGetItem` and `re-run` begin with `get` and `rerun`."""
    if len(parts) > 1 and parts[0] in MANNERS:
        return parts[1:]
    return (parts[0] + parts[1], *parts[2:]) if len(parts) > 1 and parts[0] in _JOINED else parts


def snake_case(text: str, otherwise: str = "field") -> str:
    """Return a name in snake_case that starts with a letter."""
    if not (name := "_".join(words(text))[:_LONGEST].strip("_")):
        return otherwise
    return name if name[0].isalpha() else f"{otherwise}_{name}"


@lru_cache(maxsize=8192)
def hyphenated(text: str) -> str:
    """Join the words of a name into a path segment; empty if it has none."""
    return "-".join(words(text))[:_LONGEST].strip("-")


@lru_cache(maxsize=4096)
def plural(word: str) -> str:
    """Return the plural of the last word in a segment; a plural stays as it is."""
    if word.endswith(("ss", "us", "sis", "xis")) or not word.endswith("s"):
        if word.endswith("y") and word[-2:-1] not in "aeiou":
            return word[:-1] + "ies"
        return word + ("es" if word.endswith(_HISSING) else "s")
    return word


@lru_cache(maxsize=8192)
def singular(word: str) -> str:
    if not is_plural(word):
        return word
    nouns = lexicon().nouns
    # `movie` and `pie` are nouns, unlike `movy` and `py`.
    if word.endswith("ies") and len(word) > 4 and (word[:-1] not in nouns or word[:-3] + "y" in nouns):
        return word[:-3] + "y"
    if word.endswith(("sses", "shes", "ches", "xes", "zes", "uses")) and not lexicon().counts(word[:-1]).noun:
        return word[:-2]  # branches; but caches and houses are of `cache` and `house`
    return word[:-1]


@lru_cache(maxsize=8192)
def is_plural(word: str) -> bool:
    looks_plural = word.endswith("s") and not word.endswith(("ss", "us", "sis", "xis"))
    return looks_plural and len(word) > 3 and word not in _NO_PLURALS


@lru_cache(maxsize=8192)
def main_class(word: str) -> str:
    """Return the class of operations that a word in lower case mostly names; empty if it names none."""
    classes = operation_classes(word)
    return classes.main if classes is not None else ""


_ABBREVIATIONS: Final = word_pairs(
    "ids=id uid=id gid=id uuid=id guid=id acct=account addr=address amt=amount cust=customer dept=department "
    "desc=description doc=document emp=employee img=image lat=latitude lng=longitude lon=longitude mail=email "
    "msg=message num=number org=organization organisation=organization people=person pic=picture postcode=zip "
    "qty=quantity repo=repository tel=phone telephone=phone trx=transaction txn=transaction"
)
CURSORS: Final = word_set(
    "after continuation continuation_token cursor next next_cursor next_page_token next_token page_cursor page_token "
    "starting_after token"
)
PAGES: Final = word_set("page page_number")
OFFSETS: Final = word_set("offset skip start_index")
LIMITS: Final = word_set("count first limit max_item max_result page_limit page_size per_page size take top")
"""Names of inputs that ask for a page of a list, in words joined by `join`: a cursor, a page, an offset, a limit."""


@lru_cache(maxsize=16_384)
def stems(name: str) -> tuple[str, ...]:
    """Split a name into its words, in singular and without abbreviations; `idBoard` is the id of a board."""
    unshortened = (_ABBREVIATIONS.get(word, word) for word in words(name[:120]))
    found = [_ABBREVIATIONS.get(singular(word), singular(word)) for word in unshortened]
    for at in range(len(found) - 1):
        if found[at] == "e" and found[at + 1] == "email":  # e-mail
            found[at] = ""
    found = [word for word in found if word]
    return (*found[1:], "id") if found[:1] == ["id"] else tuple(found)


def join(parts: tuple[str, ...]) -> str:
    return "_".join(parts)


METHODS: Final = frozenset({"get", "post", "put", "patch", "delete", "head", "options"})  # those of HTTP
RELATING: Final = word_set("by for from to of in on with using via and or")  # They end the thing that a name is about.
COMMANDS: Final = word_set("search query checkout count login signin logon logout signout logoff signup upload")
"""Nouns that are commands at the end of a path."""
LIGHT: Final = frozenset({"place", "make", "do", "perform", "take"})  # verbs whose object names the action: placeOrder
ENDINGS: Final = word_set("list create retrieve update destroy delete get search query put patch insert exists")
"""Verbs that are written after the noun: orders_list, userExists."""
_SINGLY: Final = word_lists(
    "upload=SUBMIT,CREATE signup=REGISTER,ENROLL count=COUNT lookup=LOOKUP,FIND move=TRANSFER,CHANGE "
    "upsert=SET,REPLACE leave=WITHDRAW,REMOVE preview=FETCH,RENDER write=SUBMIT,SET trash=REMOVE,ARCHIVE "
    "rerun=RETRY,RUN dryrun=SIMULATE,EVALUATE associate=LINK,ATTACH finalize=COMMIT,CLOSE kill=TERMINATE,STOP "
    "lint=VALIDATE,EVALUATE kick=REMOVE,EVICT empty=CLEAR,PURGE reverse=REVERT,UNDO assume=ACQUIRE,OBTAIN "
    "trust=AUTHORIZE,APPROVE screenshot=CAPTURE,SNAPSHOT explain=DESCRIBE,INTERPRET push=SUBMIT,SEND "
    "apply=SET,DEPLOY wait=AWAIT reconnect=RESTART,REFRESH geocode=RESOLVE,LOCATE open=OPEN,ACCESS,START "
    "diff=COMPARE,FETCH"
)
_BY_VERBS: Final = {  # words that APIs use and the catalog lacks or understands differently, by the verbs for them
    "FETCH RETRIEVE": "get show view read return returns give display",
    "CREATE SUBMIT": "post add new make insert save store put",
    "REMOVE PURGE": "delete destroy del drop erase clear discard",
    "MODIFY UPDATE": "patch edit",
    "AUTHENTICATE AUTHORIZE": "login signin logon",
    "DISCONNECT TERMINATE": "logout signout logoff",
    "CHECK VERIFY": "does is has exists test can",
    "DUPLICATE CREATE": "copy clone",
    "SET UPDATE": "mark lock pin toggle",
    "CLEAR REMOVE": "unlock unpin",
    "SET CREATE": "star like tag label vote favorite",
    "UNLINK REMOVE": "unstar unlike untag unfollow",
    "EXECUTE RUN": "trigger do perform take call click press tap hover drag scroll swipe navigate goto play select "
    "exec",
    "UNLINK DETACH": "dissociate disassociate",
    "BLOCK SUSPEND": "ban freeze",
    "CLOSE REJECT": "dismiss complete finish",
    "INSERT SET": "type fill",
}
VERBS_FOR: Final = {
    **{word: tuple(verbs.split()) for verbs, spoken in _BY_VERBS.items() for word in spoken.split()},
    **_SINGLY,
}
"""Verbs of the catalog for a word that APIs use as a verb, and that the catalog lacks or understands differently."""
SPOKEN: Final = frozenset(VERBS_FOR)
"""Words that are verbs in a name, although they may be nouns or are not in a dictionary."""
SAME_VERB: Final = word_set(  # The verb keeps their meaning. Of others something is lost, so they stay in the path.
    "get show view read return give display add new make insert upload delete destroy del drop erase clear discard "
    "patch edit count lookup login signin logon logout signout logoff signup copy clone rerun exists move associate "
    "dissociate disassociate ban unban kill empty dismiss"
)


@lru_cache(maxsize=4096)
def changes(word: str) -> bool:
    """Return True if a word mostly names a change."""
    return main_class(word.lower()) in CHANGING
