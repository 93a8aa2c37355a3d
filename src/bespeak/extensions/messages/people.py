"""Reaching people: mail and functions of the service, links by which people answer, and questions to them."""

from __future__ import annotations

import hashlib
import hmac
import logging
import time
from collections.abc import Mapping
from typing import Any, ClassVar, Final, NamedTuple

import msgspec

from bespeak.errors import ConfigError
from bespeak.extensions.messages.delegations import ACCEPTED, DELEGATION, DONE, find_offered
from bespeak.extensions.messages.delivery import Delivery
from bespeak.extensions.messages.message import KEPT, NOTIFICATION, announce, decode_message, decode_origin, message_id
from bespeak.extensions.messages.posting import REPORT, Posting, post
from bespeak.extensions.messages.recipients import PERSON, People, Person, as_address, people_of
from bespeak.extensions.messages.settings import PeopleSettings
from bespeak.extensions.messages.store import ALERT, READ, UNREAD, FindMessage
from bespeak.extensions.messages.transports import Delivered, Outcome, Undeliverable
from bespeak.protocol import status
from bespeak.protocol.exchange.header_values import decode64, encode64
from bespeak.protocol.exchange.instant import write_instant
from bespeak.protocol.exchange.messages import Connection, Request
from bespeak.protocol.exchange.principal import SERVICE, Principal, Scopes
from bespeak.runtime.call import Call, RoutedCall, parties_of
from bespeak.runtime.dispatcher import Dispatcher
from bespeak.runtime.extension import ENQUEUE, Opening
from bespeak.runtime.handling import check_size, invalid, to_json
from bespeak.runtime.identity.authority import Authority
from bespeak.runtime.identity.signer import Signer
from bespeak.runtime.methods.cases import CASES, SCOPES
from bespeak.runtime.server import Server
from bespeak.state.store.commands.cases import DEFERRED, ESCALATION, PENDING, Case, OpenCase, Opened, ReadCase
from bespeak.state.store.commands.records import FindRecord, Record
from bespeak.state.store.settings import OPERATOR
from bespeak.state.store.store import Command, Conflict, Steps

_logger = logging.getLogger(__name__)

MAIL: Final = "postbox"  # scheme of a posting to a person by mail alone, after its function has taken it
MOST_QUESTION: Final = 4 * 1024  # bytes of a question
_MOST_TEXT: Final = 20_000  # characters of an agent's text in a mail
_ANSWERED: Final = (NOTIFICATION, ALERT, ESCALATION, DELEGATION)  # kinds of what people answer


def open_people(opening: Opening, delivery: Delivery) -> None:
    """Find the people of a server, and connect them with mail, functions and links."""
    server, document = opening.server, opening.document
    identity = server.registrar.service.identity
    settings = document.extension_table("people", PeopleSettings) or PeopleSettings()
    joined, written = server.registrar.participants.get("recipient", {}), settings.people
    mails = {name: one.mail for name, one in written.items()}
    if mails.get(OPERATOR) is None and delivery.has("mailto") and as_address(identity.contact) != identity.contact:
        mails[OPERATOR] = identity.contact
    for name, mail in mails.items():
        fault = None if mail is None else delivery.locate(f"mailto:{mail}")
        if isinstance(fault, Undeliverable):
            needed = fault.message if delivery.has("mailto") else "it needs a mail server: write [delivery.smtp]"
            raise ConfigError(f"[people.{name}] mail = {mail!r} cannot be used: {needed}")
    scopes = {name: one.scopes for name, one in written.items()}
    for name, one in joined.items():
        scopes[name] = (*scopes.get(name, ()), *one.participant.options.scopes)
    named = {**mails, **joined}
    people = People(Person(name, mails.get(name), joined.get(name), scopes.get(name, ())) for name in named)
    opening.provide("people", people)
    links = Links(opening.signer, document.http.url)
    opening.provide("answers", Answers(opening.dispatcher, people, links))
    delivery.add(PersonChannel(server, people, delivery, links), PERSON, MAIL)


class Link(NamedTuple):
    name: str
    target: str  # message or case
    expires: int


class Links:
    """Signed links, each for the answer of one person to one thing. The store lets each answer happen once."""

    path: Final = "/acknowledge"  # path of the page that a link opens

    def __init__(self, signer: Signer | None, url: str | None) -> None:
        raw = None if signer is None else signer.private_key.private_bytes_raw()
        self._key = None if raw is None else hmac.digest(raw, b"bespeak links of people", "sha256")
        self.url = url  # public URL of the HTTP face, which sets it
        self._is_reported = False

    def make(self, name: str, target: str, expires: float) -> str | None:
        """Return a link; None without a key or an HTTP face."""
        if self._key is None or self.url is None:
            if not self._is_reported:
                self._is_reported = True
                lacks = "signing_key in [server]" if self._key is None else "an HTTP face with a public URL"
                _logger.warning("mail to people has no links to answer with: the server lacks %s", lacks)
            return None
        content = f"{name} {target} {int(expires)}".encode()
        return f"{self.url}{self.path}?token={encode64(content).decode()}.{self._sign(self._key, content)}"

    def read(self, token: str) -> Link | None:
        """Return what a token is for; None for one that this server has not signed."""
        text, _, signature = token.partition(".")
        content = decode64(text) if len(text) <= 1024 else None
        if content is None or self._key is None or not signature.isascii():
            return None
        if not hmac.compare_digest(self._sign(self._key, content), signature):
            return None
        name, target, expires = content.decode().split(" ")
        return Link(name, target, int(expires))

    @staticmethod
    def _sign(key: bytes, content: bytes) -> str:
        return encode64(hmac.digest(key, content, "sha256")).decode()


class PersonChannel:
    """Delivers to people: to the function of the service that has their name, and by mail."""

    def __init__(self, server: Server, people: People, delivery: Delivery, links: Links) -> None:
        self._server = server
        self._people = people
        self._delivery = delivery
        self._links = links

    def locate(self, address: str) -> str | Undeliverable:
        """Refuse every address: agents send to the names of people, and not to these addresses."""
        return Undeliverable("People are reached by their names.")

    async def deliver(self, address: str, posting: Posting) -> Outcome:
        """Hand over to the function's queue, with a posting of the mail in the same transaction; or send the mail."""
        scheme, _, name = address.partition(":")
        person = self._people.find(name)
        if person is None or not person.addresses:
            return Undeliverable("Nobody with this name is reached any more.")
        letter = self._write(person, posting)
        if scheme == PERSON and person.joined is not None:
            assert self._server.store is not None
            taken = person.joined.routes["run"].endpoint.input_schema.get("properties", {})
            payload = {key: value for key, value in letter.items() if key in taken}
            item_id = f"item-{hashlib.sha256(posting.posting_id.encode()).hexdigest()[:32]}"
            service = Authority(self._server.registrar.service.identity.server_id, (), {}, verified=SERVICE)
            item = self._server.hooks[ENQUEUE](item_id, f"@{name}", payload, posting.authority or service)
            also = () if person.mail is None else (post(f"{MAIL}:{name}", posting),)
            await self._server.store.do(item, *also)  # a Conflict if it was handed over before
            return Delivered()
        if person.mail is None:
            return Undeliverable("The person has no mail address any more.")
        mail = posting
        if posting.kind != REPORT:  # a report is a file
            text = self._compose(person, posting, letter)
            mail = msgspec.structs.replace(posting, subject=letter["subject"], content=text)
        return await self._delivery.deliver(f"mailto:{person.mail}", mail)

    def _write(self, person: Person, posting: Posting) -> dict[str, Any]:
        content, severity = posting.content, "info"
        if posting.kind == ALERT:
            severity, content = content["severity"], content["message"]
        elif posting.kind == ESCALATION:
            content = content["content"]
        agent, about = self._server.agents.get(posting.sender), posting.about or posting.posting_id
        name = posting.sender[:12] if agent is None else f"{agent.name} ({posting.sender[:12]})"
        is_message = posting.kind in _ANSWERED and not about.startswith(CASES)
        return {
            "kind": posting.kind,
            "sender": posting.sender,
            "recipient": person.name,
            "subject": f"{posting.kind.capitalize()} from {name}",
            "message": text_of(content),
            "content": content,
            "severity": severity,
            "reference": message_id(about, person.inbox) if is_message else about,
        }

    def _compose(self, person: Person, posting: Posting, letter: Mapping[str, Any]) -> str:
        """Write the mail. What the agent says is quoted, so that it cannot pass for words of the server."""
        severity = f", severity {letter['severity']}" if posting.kind == ALERT else ""
        lines = [f"{letter['subject']} to {person.name}{severity}. Agent {posting.sender} says:", ""]
        lines += [f"> {line}" for line in letter["message"][:_MOST_TEXT].split("\n")]
        target = letter["reference"]
        if posting.kind in _ANSWERED:
            expires = posting.expires or time.time() + KEPT
            link = self._links.make(person.name, target, expires)
            if link is not None:
                lines += ["", f"Answer before {write_instant(expires)}; the link is for you alone:", link]
            group = "cases accept" if target.startswith(CASES) else "people acknowledge"
            lines += ["", f"On the server: bespeak {group} {target} TARGET"]
        server_id = self._server.registrar.service.identity.server_id
        return "\n".join([*lines, "", f"Sent by {server_id}.", ""])


def text_of(content: Any) -> str:
    """Return what an agent says as plain text: a question, a text, or JSON."""
    if isinstance(content, dict):  # a question, a task that is delegated, or an alert
        names = ("question", "task", *(("message",) if content.keys() == {"severity", "message"} else ()))
        content = next((content[name] for name in names if name in content), content)
    text = content if isinstance(content, str) else msgspec.json.format(msgspec.json.encode(content)).decode()
    lines = text.encode(errors="replace").decode().splitlines()
    return "\n".join("".join(one if one.isprintable() else " " for one in line) for line in lines)


class AnswerView(NamedTuple):
    """What the page of a link shows."""

    status: int
    title: str
    text: str = ""
    quoted: str = ""  # words of an agent
    choices: Mapping[str, str] = {}  # answers, and the text of the button of each


_INVALID: Final = AnswerView(
    status.NOT_FOUND, "This link is not valid", "Open the link exactly as it is in the mail, or ask the operator."
)
_EXPIRED: Final = AnswerView(status.GONE, "This link has expired", "The sender must ask again.")


class Answers:
    """Shows what a link is for, and takes the answer. A look changes nothing: mail scanners follow links."""

    def __init__(self, dispatcher: Dispatcher, people: People, links: Links) -> None:
        self._dispatcher = dispatcher
        self._people = people
        self.links = links

    async def look(self, token: str) -> AnswerView:
        return await self._show(self.links.read(token))

    async def answer(self, token: str, choice: str, reason: str, connection: Connection) -> AnswerView:
        """Confirm the message, or decide the case, as the person; every rule of CONFIRM applies."""
        link = self.links.read(token)
        page = await self._show(link)
        if link is None or choice not in page.choices:
            return page
        person = self._people.find(link.name)
        assert person is not None, "the page is shown to nobody else"
        method, given = "CONFIRM", {"target_id": link.target, "status": choice} | ({"reason": reason} if reason else {})
        if choice == DONE:
            method, given = "REPLY", {"in_reply_to": link.target, "content": reason or DONE}
        server = self._dispatcher.server
        call = Call(Request(method, "/", "", {}, msgspec.json.encode(given), connection), server)
        # Name and address are parties of the decision: whoever asked cannot decide by a link either.
        holders = tuple(filter(None, (person.name, person.mail)))
        scopes = Scopes((SCOPES[ESCALATION] if link.target.startswith(CASES) else "messages:confirm",))
        call.principal = Principal(agent_id=person.inbox, scopes=scopes, verified="link", holders=holders)
        answer = self._dispatcher.repeat(call)
        response = answer if not hasattr(answer, "__await__") else await answer
        if status.is_success(response.status):
            return AnswerView(status.OK, "Thank you", f"Your answer is recorded: {page.choices[choice].lower()}.")
        error = msgspec.json.decode(response.body).get("error", {}) if response.body else {}
        return AnswerView(status.to_http(response.status), "The answer is not recorded", str(error.get("message", "")))

    async def _show(self, link: Link | None) -> AnswerView:
        person, store = None if link is None else self._people.find(link.name), self._dispatcher.server.store
        if link is None or person is None:
            return _INVALID
        if link.expires <= time.time():
            return _EXPIRED
        assert store is not None
        if link.target.startswith(CASES):
            case: Case | None = await store.read(ReadCase(link.target))
            if case is None or case.recipient != link.name:
                return _EXPIRED
            if case.state in (PENDING, DEFERRED):
                title = f"Agent {case.agent_id[:12]} asks {link.name}"
                quoted = text_of(msgspec.json.decode(case.subject))
                return AnswerView(status.OK, title, "", quoted, {"accepted": "Approve", "rejected": "Reject"})
            at = "" if case.decided_at is None else f" by {case.decided_by} at {write_instant(case.decided_at)}"
            return AnswerView(status.CONFLICT, "This has been decided", f"It is {case.state}{at}.")
        record: Record | None = await store.read(FindMessage(link.target, person.inbox))
        if record is None:
            return _EXPIRED
        message = decode_message(record.data)
        offered = await store.read(find_offered(record)) if message.kind == DELEGATION else None
        if offered is not None and offered.state == ACCEPTED and "REPLY" in self._dispatcher.server.routes.allowed:
            title = f"You have accepted a task of agent {message.sender[:12]}"
            choices = {DONE: "Report that it is done"}
            return AnswerView(status.OK, title, "Say in a line what came of it.", text_of(message.content), choices)
        if record.state not in (UNREAD, READ):
            text = f"It is {record.state}, {write_instant(record.updated)}."
            return AnswerView(status.CONFLICT, "This has been answered", text)
        origin = None if message.ref is None else await store.read(FindRecord((ALERT, NOTIFICATION), message.ref))
        content = message.content if origin is None else decode_origin(origin.data).content
        title = f"{message.kind.capitalize()} of agent {message.sender[:12]} to {link.name}"
        choices = {"accepted": "Accept", "rejected": "Decline"} if offered else {"accepted": "Acknowledge"}
        return AnswerView(status.OK, title, "", text_of(content), choices)


class AskPerson(Command, frozen=True):
    """Open the case of a question, or find it: a repetition returns the case as it is now."""

    guards: ClassVar[bool] = True
    asked: OpenCase

    def steps(self) -> Steps:
        """Return the Case, or a Conflict: too-many."""
        found = yield from ReadCase(self.asked.case_id).steps()
        if found is not None:
            return found
        opened: Opened | Conflict = yield from self.asked.steps()
        return opened if isinstance(opened, Conflict) else opened.case


def ask_person(call: RoutedCall, name: str, question: str, *, case_id: str, within: float) -> AskPerson:
    """Return the command that asks a person, in the authority of a call, for a yes or a no within some seconds.

    It is answered by the link of a mail, by `bespeak cases`, or by CONFIRM of an agent with `escalation:confirm`; not
    by a party behind the call. `case_id` is `esc-` and a stable text of the asker, the same in every repetition. The
    case is `accepted`, `rejected` or `expired` then; a decision wakes the workflows of the agent that wait. An unknown
    name raises a RefusedError (404) that lists the people whom the caller may ask.
    """
    if not case_id.startswith(CASES):
        raise ValueError(f"the id of a question begins with {CASES}; got {case_id[:80]!r}")
    if not question.strip() or "\0" in question:
        raise invalid("question", "must be a text without NUL.")
    check_size("question", len(question.encode()), MOST_QUESTION)
    server, agent_id = call.server, call.agent_id or ""
    people_of(server).require(name, call)
    subject, expires = to_json({"question": question}), time.time() + within
    told = announce(server, case_id, agent_id, name, msgspec.Raw(subject.encode()), call=call, expires=expires)
    opening = OpenCase(
        *(case_id, ESCALATION, agent_id, name, hashlib.sha256(case_id.encode()).hexdigest(), subject),
        deadline=expires,
        lifetime=within,
        announcement=told,
        parties=parties_of(call),
        most_open=server.cases.most_open,
    )
    return AskPerson(opening)
