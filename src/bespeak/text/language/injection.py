"""Prompt injection (AGIS 13): speaker labels, invisible characters, links, and sentences that instruct a model.

A sentence is judged by all its words: each word and each pair of neighbours has a weight, learnt from attacks and
from honest descriptions (`tools/lexicon/build_instructions.py`). `you are` and `you must` count only in an intent and
an outcome, which address nobody.
"""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Iterator, Mapping
from functools import cache, lru_cache
from itertools import pairwise
from typing import Final, NamedTuple

from bespeak.text.identifiers import spaced
from bespeak.text.language.lexicon import read_data
from bespeak.text.language.sentence import LatePattern, is_english, words

_ROLES: Final = LatePattern(
    r"<\|[a-z_]{1,32}\|>|\[/?(?:inst|system|assistant|admin)\]|<</?sys>>|</?(?:system|assistant|instructions?|prompt"
    r"|important|secret|hidden|admin|override)>|(?:^|[.!?\"'>)\]#*-] ?)(?:system|assistant|human|developer) ?:(?!\w)"
    r"|### ?(?:instructions?|response|assistant|human) ?:"
)
_STRICT: Final = LatePattern(r"\bsystem ?:(?!//)")
_ADDRESSED: Final = LatePattern(
    r"\byou (?:are|must|should|need to|have to|will|shall|may not|cannot)\b|\byou['’](?:re|ll)\b|\bact as\b"
    r"|\b(?:call|use|invoke|run) this (?:(?:tool|endpoint|method|function|service|api) )?(?:first|before|instead"
    r"|always)\b|\bbefore (?:using|calling) (?:any|all) other\b"
)
_SELECTORS: Final = "\ufe00-\ufe0f\U000e0100-\U000e01ef"
_INVISIBLE: Final = LatePattern(
    "[\u00ad\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b\u2028\u2029\u202a-\u202e\u2060-\u206f\u3164\ufeff\uffa0"
    "\ufff9-\ufffc\U000e0000-\U000e00ff\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]"
    "|(?<=[\x00-\x7f])[\u200c-\u200f](?=[\x00-\x7f]|$)"
    f'|(?:^|(?<=[\x00-"$-)+-/:-\x7f{_SELECTORS}]))[{_SELECTORS}]+'
)  # invisible characters, except the joiners and marks that scripts and emoji need
_FLAG: Final = LatePattern("\U0001f3f4[\U000e0061-\U000e007a\U000e0030-\U000e0039]{2,8}\U000e007f")
"""Flags of England, Scotland and others, which are written with invisible letters."""
_LINK: Final = LatePattern(
    r"\b(?:https?|ftp|wss?|file|agtp)://\S|\bwww\.[a-z0-9-]{1,63}\.|\bjavascript:\S|\bdata:[a-z]{1,20}/"
    r"|\]\([^()\s]{1,500}\)"
    r"|<(?:/?(?:a|script|img|iframe|svg|style|object|embed|form|link|meta|base|html|body|div|span)\b|!--)",
    re.IGNORECASE,
)
_BLOB: Final = LatePattern(
    r"(?<![\w+/=.-])[A-Za-z0-9+/]{40,}={0,2}|(?:\\u[0-9a-fA-F]{4}){4}|(?:\\x[0-9a-fA-F]{2}){6}"
    r"|(?:%[0-9A-Fa-f]{2}){8}|(?:&#x?[0-9A-Fa-f]{1,6};){4}"
)
_GAP: Final = LatePattern(r"(?<![\s|])\s{40,}+(?!\|)")  # long gap, not the spaces of a table


def role_marker(text: str, *, strict: bool) -> str | None:
    """Return a marker that starts another speaker's turn; with `strict`, `system:` counts anywhere."""
    plain = normal(text)
    if ":" not in plain and "<" not in plain and "[" not in plain and "#" not in plain:
        return None
    found = _ROLES.search(plain) or (_STRICT.search(plain) if strict else None)
    return found[0].strip() if found else None


def addressed(text: str) -> str | None:
    found = _ADDRESSED.search(normal(text))
    return found[0].strip() if found else None


def visible(text: str) -> str | None:
    """Return the text without invisible characters if it has any."""
    if (text.isascii() and text.isprintable()) or _INVISIBLE.search(text) is None:
        return None
    if "\U0001f3f4" not in text:
        return _INVISIBLE.compiled.sub("", text)
    flags = [*_FLAG.compiled.findall(text), ""]
    parts = (_INVISIBLE.compiled.sub("", part) for part in _FLAG.compiled.split(text))
    clean = "".join(part + flag for part, flag in zip(parts, flags, strict=True))
    return clean if clean != text else None


def link(text: str) -> str | None:
    found = _LINK.search(text) if ":" in text or "](" in text or "<" in text or "www." in text.lower() else None
    return found[0] if found else None


def blob(text: str) -> str | None:
    """Return a run of characters that people do not read."""
    if max(map(len, text.split()), default=0) < 24:
        return None
    for found in _BLOB.compiled.finditer(text):
        run = found[0][:200]
        if run[0] in "\\%&" or _is_mixed(run):
            return run
    return None


def gap(text: str) -> bool:
    """Return True if a long gap hides the second part of a text."""
    return ("    " in text or "\n\n" in text or "\t\t" in text) and _GAP.search(text.strip()) is not None


def _is_mixed(run: str) -> bool:
    """Return True if capitals, small letters and digits alternate more often than in joined words."""
    kinds = [char.isdigit() + 2 * char.isupper() for char in run]
    if set(kinds) != {0, 1, 2}:
        return False
    return sum(one != other for one, other in pairwise(kinds)) > len(run) * 0.3


def normal(text: str) -> str:
    """Normalize a text for matching: lower case, single spaces, no invisible characters, no width variants."""
    if not text.isascii():
        text = unicodedata.normalize("NFKC", _INVISIBLE.compiled.sub("", text))
    return " ".join(text.lower().split())


_FEW: Final = r"(?:\S++ ){0,3}?"
_TOOL: Final = (
    r"(?:tools?|functions?|endpoints?|methods?|services?|apis?|servers?|actions?|providers?|helpers?|vendors?|plugins?)"
)
_NAMED: Final = r"[`'\"]?[a-z0-9]+(?:_[a-z0-9]+)+\b[`'\"]?(?! (?:param|field|argument|property|option|header))"
"""Name of a tool: get_quote."""
_PERSON: Final = (
    r"(?:users?|humans?|persons?|operator|owner|customer|anyone|anybody|nobody|no one|someone|them|us|they"
    r"|benutzer|nutzer|anwender|usuario|usuário|utilisateur|utente|пользовател\w+)"
)
_MODEL: Final = r"(?:assistants?|ai|llms?|language models?|chatbots?|copilot|claude|gpt|modell|agents?|models?)"
_SAID: Final = (
    r"(?:instructions?|prompts?|directives?|guidelines|guardrails|training|anweisungen|vorgaben|instrucciones|consignes"
    r"|istruzioni|instruções|инструкции|(?:(?<=your )|(?<=previous )|(?<=prior )|(?<=earlier )|(?<=safety )"
    r"|(?<=system ))(?:rules|orders|constraints|policies|message))"
)
_BEFORE: Final = (
    r"(?:all|any|your|previous|prior|above|earlier|preceding|system|other|safety|original|initial|existing|former"
    r"|vorherigen|bisherigen|anteriores|previas|précédentes|precedenti|предыдущие)"
)
_DROP: Final = (
    r"(?:ignore|disregard|forget|override|bypass|neglect|overlook|set aside|ignoriere|missachte|vergiss|ignora|olvida"
    r"|ignorez|oublie|oubliez|dimentica|esqueça|игнорируй|забудь)"
)
STEMS: Final = (
    *("ignor", "disregard", "forget", "overrid", "bypass", "pretend", "you are", "act as", "from now", "<!--", "!["),
    *("missacht", "vergiss", "olvida", "oublie", "dimentica", "esque", "hinweis", "benutzer", "usuario", "utente"),
)  # parts of words, one of which is in most of the phrases, and in all of those of other languages in ASCII
PHRASES: Final = (
    (
        "tells a model to drop its instructions",
        LatePattern(
            rf"\b{_DROP} {_FEW}{_BEFORE} {_FEW}{_SAID}\b|\b{_DROP} {_FEW}{_SAID} (?:{_BEFORE}|before|given|you)\b"
            rf"|\b{_DROP} (?:everything|anything|all|what) {_FEW}(?:above|before|previously|earlier|you|told)\b"
            r"|\boverrides? (?:the |your |any |all )(?:system|developer) (?:prompt|message|instructions)"
            rf"|\bnew (?:system )?{_SAID}:|\b(?:your|previous|prior|earlier|system) {_FEW}{_SAID} (?:are|is) (?:now )?"
            r"(?:void|obsolete|superseded|cancell?ed|invalid|no longer|outdated|replaced)\b"
            r"|\b(?:priority|precedence) over (?:the |your |all |any )*(?:system|previous|other|developer|user)"
            rf" (?:messages?|{_SAID})|忽略.{{0,8}}(?:指令|指示|说明|提示)|無視して"
        ),
    ),
    (
        "gives a model another role",
        LatePattern(
            r"\byou are now (?:an?|the|in|my|no longer|free|dan|acting|going)\b|\bfrom (?:now|here"
            r"|this point) on(?:wards)?,? (?:you|treat|act|obey|answer|respond)\b|\bpretend (?:to be|that you|you are"
            r"|you're)\b|\byour new (?:role|task|goal|job|instructions?)\b|\bact (?:as|on behalf of) (?:an? |the |my "
            r"|if you )?(?:[\w-]++ ){0,2}?(?:admin(?:istrator)?|root|superuser|assistant|ai|model|chatbot|developer"
            r"|system|dan|were)\b|\byou are an? (?:[\w-]++ ){0,3}?(?:assistant|ai|model|language model|chatbot|bot"
            r"|agent)\b|\b(?:enter|enable|activate) (?:developer|debug|god|admin|jailbreak) mode\b|\b(?:note|message"
            r"|notice|attention|reminder|hint|instructions?|hinweis|nota) (?:to|for|an|für|para|à) (?:the |all |any "
            rf"|das |ai |l')*{_MODEL} ?[:!]|\b(?:system|admin(?:istrator)?|developer|operator|security|owner) (?:notice"
            r"|override|directive|alert|command)s?\b.{0,40}?:|\b(?:important|critical|urgent|mandatory) (?:system"
            r"|admin\w*|security|developer) (?:note|instruction|message|requirement)s?\b"
        ),
    ),
    (
        "keeps something from the user",
        LatePattern(
            r"\b(?:do not|don't|never|no need to) (?:ever )?(?:tell|inform|mention|reveal|disclose|show|admit|notify"
            r"|explain|say|let) (?:(?:this|that|it|any|anything|of|about|to|these|them|steps?|instructions?|the|any"
            rf"|your|calls?|tools?|note) ){{0,4}}?{_PERSON}\b(?! (?:again|by|with|who)\b)|\b(?:do not|don't"
            r"|never) (?:mention|reveal|disclose|admit) (?:that|this|these|the existence|it|how|why)\b"
            r"|\b(?:without (?:telling|informing)|hide (?:this|it|\S+ \S+) from) the (?:user|human)\b"
            r"|\bwithout the (?:user|human)(?:'s|’s)? (?:knowledge|knowing)\b|不要告诉|别告诉|不要讓|不要让"
        ),
    ),
    (
        "pushes itself before other tools",
        LatePattern(
            rf"\b(?:results?|outputs?|answers?) of (?:every|each|all|any) other {_TOOL}\b|\b{_NAMED} is (?:compromised"
            rf"|malicious|unsafe|untrusted|insecure)\b|\b(?:all|the|any) other (?:\w+ ){{0,2}}{_TOOL} (?:are|is"
            r"|have been) (?:\w+ )?(?:malicious|unsafe|compromised|broken|insecure|retired|obsolete|untrusted|dangerous"
            rf"|unreliable|disabled)\b|\bother servers?'? {_TOOL} (?:are|is) (?:\w+ )?(?:malicious|unsafe|compromised)"
            rf"|\buse only this (?:one|{_TOOL})[.!]?$|\bonly the {_TOOL} of this server\b|\b(?:always|only) (?:use|call"
            rf"|invoke|choose|prefer|select|pick) this {_TOOL}\b(?! (?:to|when|if|for|with|after|once|on)\b)"
            r"|\b(?:do not|don't|never) (?:use|call|invoke|select|choose|consider) (?:any |the )?(?:other"
            rf"|another) {_TOOL}\b|\b(?:before|prior to|ahead of) (?:using |calling |invoking )?(?:any|all"
            rf"|every) other {_TOOL}\b"
        ),
    ),
    (
        "deceives the user",
        LatePattern(
            r"\bif (?:you are |you're |anybody |anyone |someone |they |the user )?(?:asked|questioned|wonders?"
            r"|asks?)\b.{0,60}\b(?:say|claim|pretend|deny)\b"
        ),
    ),
    ("hides a comment", LatePattern(r"<!-- ?(?!\w+:)(?:[^\s>]++ ){4}")),
    ("sends data to an address", LatePattern(r"!\[[^\]]{0,80}\]\([^)\s]{0,300}[?&=/][^)\s]{0,100}[{\[<$]")),
)  # purposes that a single phrase shows, in lower case: an honest author has no reason to write it
NEEDLES: Final = (
    *("you", "act ", "instruct", "prompt", "this ", "other", "system", "assistant", "human", "person", "user", "model"),
    *("ignor", "disregard", "forget", "override", "bypass", "pretend", " mode", "conversation", "history", "message"),
    *("developer", "<|", "[inst", "[/inst", "<<", "important", "agent", "token", "secret", "password", "credential"),
    *("~/", "/etc", ".env", ".ssh", "id_rsa", "@", "://", "quiet", "silent", "no one", "nobody", "tool", "cookie"),
    *("environment", "env", "key", "consent", "approv", "permission", "confirm", "answer", "chat", "curl", "rsa"),
    *("operator", "owner", "admin", "<!--", "priority", "priv", "further", "malicious", "compromise", "warning"),
    *("trace", "unaware", "notice", "invisible", "approve", "believe", "vendor", "elsewhere", "memory", "commands"),
    *(".pem", "every", "anybody", "anyone", "claim", "asked", "`", "contacts", "phone", "werkzeug", "mail", "rules"),
    *("code", "recipient", "destination", "payee", "utilisa", "usu"),
)  # lower-case needles, one of which is in every match


class Instruction(NamedTuple):
    """The purpose of an instruction, its words, and where they begin in the text."""

    kind: str
    text: str
    start: int = 0


_END: Final = re.compile(r"(?<=[.!?。！？])\s+|(?<=>)\s+(?=[A-Z])|\n\s*(?=[\n#*•-]|\d+[.)])|(?<=[。！？])")
_MOST: Final = 400  # sentences of a text that are judged
_LONGEST: Final = 1_500  # characters of one sentence that are judged together; the rest counts as another one
_LONGEST_REPEATED: Final = 300  # characters of a text whose judgement is remembered
_JOINED: Final = re.compile(r"[A-Za-z]+(?:[A-Z_.-]+[a-z0-9]+){3,}|[a-z0-9]+(?:[_-][a-z0-9]+){3,}")
"""Name that may be a whole sentence: content_from_reading_ssh_id_rsa."""
_LONGEST_NAME: Final = 100
_NAME_LIMIT: Final = 2.0  # sum of weights above which a name is an instruction: it has few words
_MARKUP: Final = re.compile(r"<!--|-->|</?[a-z][^<>]{0,300}>")
_TOKEN: Final = LatePattern(
    r"(?P<ADDRESS>[\w.+-]{1,64}@[\w-]{1,63}\.[\w.-]+|\b(?:https?|ftp|wss?)://\S+|\b[\w-]{1,63}\.(?:example|com|net|org|io|dev)\b\S*"
    r"|\+\d[\d ]{6,}|\b(?:bc1|0x)\w{8,}|\b[a-z]{2}\d{2}[ \d]{8,})"
    r"|(?P<FILE>(?:~|/etc|/home|/var|c:\\)[/\\][\w./\\-]*|(?<!\w)\.(?:env|ssh|aws|kube|npmrc|netrc|pem)\b"
    r"|\bid[_ ](?:rsa|ed25519)\S*|\b\w{1,64}\.(?:json|ya?ml|pem|env|db|sh)\b)"
    r"|(?P<COMMAND>\b(?:curl|wget|bash|sh|cat|rm|chmod|powershell|eval|os\.system)\b)"
    r"|(?P<NAME>\b[a-z]{1,64}(?:_[a-z0-9]{1,64}){1,12}\b)"
    r"|(?P<QUOTED>[`'\"]\w+[`'\"])"
    r"|(?P<NUMBER>\d+)"
    r"|(?P<word>[^\W\d_]+(?:'[a-z]+)?)"
)
_ENDINGS: Final = (("ies", "y"), ("ing", ""), ("ed", ""), ("es", ""), ("s", ""))
_SHORTEST_STEM: Final = 3
_LIMIT: Final = "*"  # name of the sum of weights above which a sentence is an instruction, among the weights
_UNLIKELY: Final = 0.5  # sum of weights up to which an English sentence has none of the phrases
_ANYTHING: Final = "tells a model what to do"
_PURPOSES: Final = (
    ("asks for secrets or private files of the caller", {"FILE", "password", "credential", "secret", "token", "key"}),
    ("keeps something from the user", {"hidden", "secretly", "silently", "quietly", "mention", "tell", "inform"}),
    ("asks for what a model was told", {"conversation", "chat", "prompt", "history", "messag"}),
    ("sends data to an address", {"ADDRESS"}),
    ("has a model run a program", {"COMMAND"}),
    ("changes how other tools are called", {"tool", "NAME"}),
)  # purposes of an instruction, by words that show it


def may_inject(text: str) -> bool:
    """Return True if a text may contain an instruction; cheap, because it runs on every text."""
    if not text.isascii():
        return True
    lower = text.lower()
    for needle in NEEDLES:  # noqa: SIM110 - a generator costs as much as the search
        if needle in lower:
            return True
    return False


def may_be_suspect(text: str) -> bool:
    """Return True if any of the texts joined in one must be checked separately, which is rare."""
    return may_inject(text) or not text.isprintable() or link(text) is not None or blob(text) is not None or gap(text)


def instruction(text: str, *, field: bool = False) -> Instruction | None:
    """Return the first sentence that tells a model what to do; a `field` addresses the caller from its first one."""
    if not may_inject(text):
        return None
    return _examine(text, field) if len(text) > _LONGEST_REPEATED else _examine_repeated(text, field)


def _examine(text: str, field: bool) -> Instruction | None:
    for count, (start, sentence) in enumerate(sentences(text)):
        plain = normal(sentence)
        is_name = len(sentence) <= _LONGEST_NAME and _JOINED.fullmatch(sentence.strip())
        if is_name:
            plain = spaced(sentence.strip())
        begins = bool(is_name) or not (count or field)
        kind = _judge(plain, begins=begins, limit=_NAME_LIMIT if is_name else None)
        if kind:
            return Instruction(kind, " ".join(sentence.split())[:200], start)
    # Lines and blanks between the words of a phrase do not hide it.
    kind = _phrase(normal(text)) if "\n" in text else ""
    return Instruction(kind, " ".join(text.split())[:200]) if kind else None


_examine_repeated: Final = lru_cache(4096)(_examine)  # the same, remembered: schemas say the same of many fields


def sentences(text: str) -> Iterator[tuple[int, str]]:
    start = count = 0
    for end in (*(match.end() for match in _END.finditer(text)), len(text)):
        while start < end and count < _MOST:
            part = text[start : min(end, start + _LONGEST)]
            if part.strip():
                yield start, part
                count += 1
            start += len(part)


def features(sentence: str, *, begins: bool) -> set[str]:
    """Return words and pairs of neighbours; the first word of a later sentence counts by itself, as a command."""
    found = [
        _stem(match[0]) if match.lastgroup == "word" else match.lastgroup or ""
        for match in _TOKEN.compiled.finditer(_MARKUP.sub(" ", sentence))
    ]
    pairs = {f"{one} {other}" for one, other in pairwise(found)}
    return {*found, *pairs, *(() if begins or not found else (f"^{found[0]}",))}


def _phrase(sentence: str) -> str:
    return next((kind for kind, pattern in PHRASES if pattern.search(sentence)), "")


def _judge(sentence: str, *, begins: bool, limit: float | None) -> str:
    """Return the purpose of a sentence that instructs a model; empty for any other."""
    weights = _weights()
    found = features(sentence, begins=begins)
    weight = math.fsum(weights.get(one, 0.0) for one in found)  # exact, so that the order of the set has no say
    # Most sentences are far from it. The patterns take longer to compile than a whole document to judge.
    is_near = weight > _UNLIKELY or not sentence.isascii() or any(stem in sentence for stem in STEMS)
    if is_near and (kind := _phrase(sentence)):
        return kind
    # The weights are those of English words.
    if weight <= (weights[_LIMIT] if limit is None else limit) or not is_english(words(sentence)):
        return ""
    return next((kind for kind, signs in _PURPOSES if not found.isdisjoint(signs)), _ANYTHING)


def _stem(word: str) -> str:
    for ending, instead in _ENDINGS:
        if word.endswith(ending) and len(word) - len(ending) >= _SHORTEST_STEM:
            return word[: -len(ending)] + instead
    return word


@cache
def _weights() -> Mapping[str, float]:
    rows = (line.split("\t") for line in read_data("instructions.txt.gz").splitlines())
    return {name: int(weight) / 100 for weight, name in rows}
