"""What there is to say about the rules of readers: why each is there and what to do, as data for their pages."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

from bespeak.text.diagnostics.rule import Notation


class Page(NamedTuple):
    """The parts of a page that a reader's rule does not carry itself."""

    why: str
    """What goes wrong, and what to do."""
    bad: str = ""
    good: str = ""
    notation: Notation = "toml"


_FUNCTION: Final = '[endpoint.handler]\ntype = "registered_function"\nfunction = "rooms.handlers.book_room"\n'

_ISSUER: Final = '[auth.token]\nkeys = "issuer.jwks.json"\n'

PAGES: Final[Mapping[str, Page]] = {
    "D101": Page(
        "Nothing is known about a file that cannot be read. Check its name and its permissions, save it as UTF-8, and "
        "split it if it is too large."
    ),
    "D102": Page(
        "A text that is not in its notation has no meaning yet. Repair what stands at the place that is shown, or "
        "shortly before it.",
        '[endpoint]\nmethod = "BOOK\n',
        '[endpoint]\nmethod = "BOOK"\n',
    ),
    "D103": Page(
        "A contract without the key says less than its callers need. Write the key where the finding points.",
        '[endpoint.semantic]\nintent = "Books a room for the guest"\n',
        '[endpoint.semantic]\nintent = "Books a room for the guest"\nactor = "agent"\n',
    ),
    "D104": Page(
        "A value of another type or form is not taken for what it may have meant. Write it as the message says.",
        '[endpoint.semantic]\nis_idempotent = "false"\n',
        "[endpoint.semantic]\nis_idempotent = false\n",
    ),
    "D105": Page(
        "What nobody reads has no effect, and most often the key is another one misspelled. Correct it, or remove it.",
        '[endpoint]\nrequired_errors = ["room_unavailable"]\n',
        '[endpoint]\nerrors = ["room_unavailable"]\n',
    ),
    "D106": Page(
        "The key has a short list of values, and programs know only those. Choose one of them.",
        '[endpoint.handler]\ntype = "function"\n',
        _FUNCTION,
    ),
    "D107": Page(
        "The old spelling is still read, and other readers may not know it. Write the present one.",
        '[endpoint.handler]\ntype = "registered_function"\nreference = "rooms.handlers.book_room"\n',
        _FUNCTION,
    ),
    "D108": Page(
        "AGTP-API knows a handler in one form each, so that any server can run it. Write it in that form.",
        '[endpoint.handler]\ntype = "registered_function"\nmodule = "rooms.handlers"\nfunction = "book_room"\n',
        _FUNCTION,
    ),
    "D109": Page(
        "Where two places say the same thing, sooner or later one of them is wrong. Keep one.",
        "[endpoint]\ninput = {}\n\n[endpoint.input_schema]\n"
        'type = "object"\nproperties = { room_id = { type = "string" } }\nadditionalProperties = false\n',
        '[endpoint.input_schema]\ntype = "object"\nproperties = { room_id = { type = "string" } }\n'
        "additionalProperties = false\n",
    ),
    "D110": Page(
        "Schemas are published as JSON, which has neither dates nor times. Write such a value as a text.",
        '[endpoint.output_schema]\ntype = "object"\ndefault = { date = 2026-11-15 }\n',
        '[endpoint.output_schema]\ntype = "object"\ndefault = { date = "2026-11-15" }\n',
    ),
    "D111": Page("Only one of the two can be served. Remove one, or give it a path of its own."),
    "D112": Page("Its endpoints would be read twice, or for ever. Remove the link."),
    "D113": Page(
        "A server without endpoints has only the floor methods. Add an endpoint file, an app or an AGIS document, or "
        "start in the folder that has them."
    ),
    "D114": Page(
        "A file of an unknown kind is not checked by anybody. Give it the key by which its kind is known, or `exclude` "
        "it."
    ),
    "D115": Page("Agents and auditors know the agent by this document. Add the fields that are named."),
    "D116": Page(
        "Without a method and a path nobody can call it, so that clients leave it out. Publish both.",
        '{"endpoints": [{"method": "BOOK", "path": ""}]}\n',
        '{"endpoints": [{"method": "BOOK", "path": "/room"}]}\n',
        "json",
    ),
    "D117": Page(
        "It is read in capitals here; other readers refuse it. Write it in capitals.",
        '[endpoint]\nmethod = "book"\n',
        '[endpoint]\nmethod = "BOOK"\n',
    ),
    "D118": Page("Readers cannot tell what is empty from what was forgotten. Say it, even if there is nothing to say."),
    "D119": Page(
        "What a program declares is known only when it runs. Compare with the manifest of the running server."
    ),
    "D160": Page(
        "Without its version nobody knows by which rules to read it, and without paths it has nothing to call. Give "
        "the importer a description of OpenAPI 2.0, 3.0 or 3.1.",
        "info: {title: Rooms}\npaths:\n  /room: {get: {operationId: findRoom}}\n",
        'openapi: "3.1.0"\ninfo: {title: Rooms}\npaths:\n  /room: {get: {operationId: findRoom}}\n',
        "yaml",
    ),
    "D161": Page(
        "What stands behind the reference is not known, so anything is taken in its place. References stay in the "
        "description or in files beside it: what a stranger's document names is not fetched.",
        '{"schema": {"$ref": "https://schemas.example/room.json"}}\n',
        '{"schema": {"$ref": "#/components/schemas/Room"}}\n',
        "json",
    ),
    "D162": Page(
        "The schema of an endpoint is complete in itself and is put before models whole. One that reaches half of the "
        "description keeps what is nearest, and what is further away may be anything. Describe more of it in the "
        "endpoint file where agents need it."
    ),
    "D163": Page(
        "A keyword of the wrong type, or a pattern that no engine with bounded time takes, would make the whole schema "
        "unusable. Without it the schema takes more than its author meant: look whether that matters.",
        '{"type": "string", "pattern": "^(?!admin)[a-z]+$"}\n',
        '{"type": "string", "pattern": "^[a-z]+$"}\n',
        "json",
    ),
    "D164": Page(
        "Each parameter needs a name, a place and a way of writing it. What is missing was guessed, or the parameter "
        "was left out: compare with the upstream.",
        "/room/{room_id}:\n  get:\n    parameters: []\n",
        "/room/{room_id}:\n  get:\n    parameters:\n"
        "      - {name: room_id, in: path, required: true, schema: {type: string}}\n",
        "yaml",
    ),
    "D165": Page(
        "Webhooks and callbacks are calls that the upstream makes, and no endpoint can answer for them. Everything "
        "else is imported."
    ),
    "D166": Page(
        "Names of endpoints are made of these ids. Both operations are imported; look at the names they were given.",
        "/room:\n  get: {operationId: room}\n  post: {operationId: room}\n",
        "/room:\n  get: {operationId: findRoom}\n  post: {operationId: bookRoom}\n",
        "yaml",
    ),
    "D167": Page(
        "A facade calls one address. Where none is described, or several are, look at the one that was taken.",
        "servers:\n  - url: /v1\n",
        "servers:\n  - url: https://rooms.acme.example/v1\n",
        "yaml",
    ),
    "D168": Page(
        "A facade sends a body in one media type: JSON where it can, then forms. Where the schema of the body is "
        "missing anything is taken."
    ),
    "D169": Page(
        "Without knowing where a credential goes the facade cannot send it, and the upstream refuses every call. "
        "Declare the scheme, or write the header into the endpoint files.",
        "security:\n  - token: []\n",
        "security:\n  - token: []\ncomponents:\n  securitySchemes:\n    token: {type: http, scheme: bearer}\n",
        "yaml",
    ),
    "D196": Page(
        "Whoever reads it can act as the agent from then on. Remove it, make a new key, and keep that in a file of its "
        "own that only its owner can read."
    ),
    "D197": Page(
        "An id is the hash of the record it began with, and the issuer's signature covers that record. Where they "
        "differ somebody has changed one of them: get the record from its issuer again."
    ),
    "D198": Page(
        "The first tier says that the identity was proven, by DNS, a log or both. Name the proof in "
        "`verification_path`, or say what is true: tier 2 for what an organisation asserts, tier 3 for an experiment."
    ),
    "D199": Page(
        "A broken document can break every rule in every line, and nobody reads on. Repair what is shown and run again."
    ),
    "V551": Page("A catalog that is no JSON gives no verbs at all. Repair what stands at the place that is shown."),
    "V552": Page("Every verb is judged by its entry, and a catalog by its version. Add the key that is missing."),
    "V553": Page("A value in another form is not guessed at. Write it as the message says."),
    "V554": Page(
        "A verb that no request can carry, or that means something else to HTTP, cannot be called. Rename it."
    ),
    "V555": Page("Agents look for verbs by category. Use one that the document defines, or define it."),
    "V556": Page("Whoever follows the name finds nothing. Correct it, or add the verb."),
    "V557": Page(
        "Which of two catalogs is the newer one is decided by their numbers. Write three numbers with points between "
        "them."
    ),
    "V558": Page("Every server supports the twelve floor methods, whatever its catalog. Add what is missing."),
    "V559": Page("Servers map these five for old callers and no others. List exactly them, each with its verb."),
    "V560": Page("What nobody reads has no effect. Correct the spelling, or remove the key."),
    "V561": Page(
        "Authors plan by these versions: a deprecation in a later catalog than this, or an end before the beginning, "
        "helps nobody. Correct them."
    ),
    "V562": Page(
        "Without a catalog no method can be judged. Check the path, the permissions and the size of the file."
    ),
    "W101": Page(
        "A service that cannot be reached in ten seconds, or that shows somebody else's certificate, is not used: what "
        "came from it could come from anybody. Check the address, the network and the certificate."
    ),
    "W102": Page(
        "Documents and redirects may name addresses inside the network of whoever reads them, or others than https. "
        "Nothing is asked there. Type the address yourself, or say allow_private (--allow-private), if you mean it."
    ),
    "W103": Page(
        "Only an answer with the status 200, the media type of the document and a bounded size is read. Serve the "
        "document as application/json, without an encoding, and within the limits."
    ),
    "W104": Page(
        "The owner of a site says in robots.txt what programs may ask for, and this program keeps to it. Ask the owner "
        "to allow the user agent bespeak."
    ),
    "W105": Page(
        "A document without its required members says too little to call anything by. The next source is looked at; "
        "tell the owner of the service what is missing.",
        '{"aiendpoint": "1.0", "service": {"name": "Flights"}}\n',
        '{"aiendpoint": "1.0", "service": {"name": "Flights", "description": "Finds flights."}, "capabilities": [\n'
        '  {"id": "search_flights", "description": "Search flights", "endpoint": "/flights", "method": "GET"}]}\n',
        "json",
    ),
    "W106": Page(
        "One capability that cannot be called must not keep the others from being used. It is left out; the message "
        "says what is wrong with it.",
        '{"capabilities": [{"id": "search", "endpoint": "javascript:search()", "method": "GET"}]}\n',
        '{"capabilities": [{"id": "search", "endpoint": "/search", "method": "GET"}]}\n',
        "json",
    ),
    "W107": Page(
        "Nobody who reads documents of strangers takes them whole. A text that is too long is cut, and capabilities "
        "beyond the first hundred are left out unless all are asked for (--all)."
    ),
    "W108": Page(
        "A discovery document gives no permission to use content. What the service says about that, in headers or in "
        "robots.txt, is shown so that whoever uses the content can keep to it."
    ),
    "W109": Page(
        "A document may name capabilities at other hosts. They can be called, but no credential is sent there unless "
        "the host is named as trusted."
    ),
    "Y820": Page(
        "Every manifest names who runs the server and whom to ask. Write operator and contact.",
        '[server]\nserver_id = "rooms.example"\n',
        '[server]\nserver_id = "rooms.example"\noperator = "Acme Rooms"\ncontact = "mailto:ops@rooms.example"\n',
    ),
    "Y821": Page(
        "Whoever wrote it may count on what it does elsewhere. Remove it, or see to it by other means.",
        "[policies]\nnegotiable = true\n",
        "[policies]\nsynthesis_enabled = false\n",
    ),
    "Y822": Page(
        "The server would have to choose between them, and may choose wrongly. Keep one of them, or complete the pair.",
        '[listen]\nagtp = "127.0.0.1:4480"\ncert = "cert.pem"\n',
        '[listen]\nagtp = "127.0.0.1:4480"\ncert = "cert.pem"\nkey = "key.pem"\n',
    ),
    "Y850": Page(
        "A server that guesses how callers prove who they are lets the wrong ones in. Choose from open, token, mtls "
        "and signed.",
        '[auth]\nmodes = ["oauth"]\n',
        f'[auth]\nmodes = ["token"]\n\n{_ISSUER}',
    ),
    "Y851": Page(
        "With open a header is enough, so that no proof beside it counts. Name the proofs, or open alone.",
        f'[auth]\nmodes = ["open", "token"]\n\n{_ISSUER}',
        f'[auth]\nmodes = ["token"]\n\n{_ISSUER}',
    ),
    "Y852": Page(
        "A token is worth as much as the key it is verified with. Name a file with the public keys of the issuer, or "
        "the address it publishes them at.",
        '[auth]\nmodes = ["token"]\n\n[auth.token]\nissuer = "https://id.example"\n',
        f'[auth]\nmodes = ["token"]\n\n{_ISSUER}',
    ),
    "Y853": Page(
        "Whoever can change the keys on their way can issue tokens for any agent. Fetch them by https; http is for an "
        "issuer on the same machine.",
        '[auth]\nmodes = ["token"]\n\n[auth.token]\njwks_url = "http://id.example/jwks.json"\n',
        '[auth]\nmodes = ["token"]\n\n[auth.token]\njwks_url = "https://id.example/jwks.json"\n',
    ),
    "Y854": Page(
        "Unsigned tokens prove nothing, and a shared secret lets every server that verifies a token also make one. "
        "Choose signatures with a public key.",
        f'[auth]\nmodes = ["token"]\n\n{_ISSUER}algorithms = ["HS256"]\n',
        f'[auth]\nmodes = ["token"]\n\n{_ISSUER}algorithms = ["ES256"]\n',
    ),
    "Y855": Page(
        "A token or a signature that is accepted long after its time is one that a thief can still use. Stay within "
        "the bounds, and set the clocks right.",
        f'[auth]\nmodes = ["token"]\n\n{_ISSUER}leeway = 86400\n',
        f'[auth]\nmodes = ["token"]\n\n{_ISSUER}leeway = 60\n',
    ),
    "Y856": Page(
        "A certificate proves only what the authority behind it has checked. Name the authorities whose certificates "
        "count here.",
        '[auth]\nmodes = ["mtls"]\n',
        '[auth]\nmodes = ["mtls"]\n\n[auth.mtls]\nca = "agents-ca.pem"\n',
    ),
    "Y857": Page(
        "Whoever wrote it may believe that callers are checked by it. Add the mode, or remove the table.",
        '[auth]\nmodes = ["signed"]\n\n[auth.mtls]\nca = "agents-ca.pem"\n',
        '[auth]\nmodes = ["mtls", "signed"]\n\n[auth.mtls]\nca = "agents-ca.pem"\n',
    ),
    "Y858": Page(
        "An empty value could be read as a check that always passes, so that it is not read at all. Fill it in, or "
        "leave the key out for the default.",
        f'[auth]\nmodes = ["token"]\n\n{_ISSUER}issuer = ""\n',
        f'[auth]\nmodes = ["token"]\n\n{_ISSUER}issuer = "https://id.example"\n',
    ),
    "Y870": Page(
        "Input is recorded for single endpoints only, so that nobody records more than was meant. Write the method and "
        "the path as the endpoint has them.",
        '[audit.fields]\nroom = ["guest_id"]\n',
        '[audit.fields]\n"BOOK /room" = ["guest_id"]\n',
    ),
    "Y871": Page(
        "A trail that is believed to be signed and is not proves nothing. Name the key of the server, or leave `sign` "
        "out.",
        '[audit]\nsign = "each"\n',
        '[server]\nserver_id = "rooms.example"\noperator = "Acme"\ncontact = "ops@rooms.example"\n'
        'signing_key = "server.pem"\n\n[audit]\nsign = "each"\n',
    ),
    "Y872": Page(
        "What is cut off behind the last checkpoint is missed by nobody. Keep checkpoints near to each other; one "
        "costs as much as the signature of one record.",
        "[audit]\ncheckpoint_every = 100000000\n",
        '[server]\nserver_id = "rooms.example"\noperator = "Acme"\ncontact = "ops@rooms.example"\n'
        'signing_key = "server.pem"\n\n[audit]\ncheckpoint_every = 1000\n',
    ),
    "Y873": Page(
        "Records are kept, exported and shown, and nothing can be taken out of them again. Record an id that means "
        "nothing to strangers in its place.",
        '[audit.fields]\n"PAY /invoice" = ["card_number"]\n',
        '[audit.fields]\n"PAY /invoice" = ["invoice_id"]\n',
    ),
    "Y874": Page(
        "Whoever wrote it may count on it. Switch on what it belongs to, or remove it.",
        "[audit]\nenabled = false\ndiscovery = true\n",
        "[audit]\nenabled = true\ndiscovery = true\n",
    ),
    "Y875": Page(
        "A server that does not know where its state is would promise what it cannot keep. Name a file, a database of "
        "PostgreSQL, or memory for state that may be lost.",
        '[store]\nplace = "redis://localhost"\n',
        '[store]\nplace = "state.db"\n',
    ),
    "Y876": Page(
        "Configurations are copied, shown and kept in histories; a password among them is soon known to many. Name a "
        "variable of the environment.",
        '[store]\nplace = "postgresql://rooms:hunter2@db.example/rooms"\n',
        '[store]\nplace = "postgresql://rooms:${DB_PASSWORD}@db.example/rooms"\n',
    ),
    "Y877": Page(
        "A key that is forgotten too soon lets a request run twice; a lease that is too long keeps a request whose "
        "process has died from being tried again. Keep the lease above the time a handler takes, and below the "
        "retention.",
        "[idempotency]\nretention = 60\nlease = 3600\n",
        "[idempotency]\nretention = 86400\nlease = 60\n",
    ),
    "Y878": Page(
        "A session that ends too soon makes agents start over, and one that never ends is kept for nobody; a decision "
        "needs somebody who takes it, and an end. Write seconds within the bounds, and a name that people or agents "
        "can be found by.",
        '[sessions]\nidle = 0\n\n[cases]\ndefault_recipient = ""\n',
        '[sessions]\nidle = 3600\n\n[cases]\ndefault_recipient = "front-desk"\n',
    ),
    "Y881": Page(
        "A limit that cannot be read limits nobody. Write a count for a time, s, min, h or day, and perhaps how many "
        "calls may come at once.",
        '[limits.rate]\nagent = "100 per second"\n',
        '[limits.rate]\nagent = "100/s burst 200"\n',
    ),
    "Y890": Page(
        "Discovery systems sort services by a closed list of categories, and the schema of /.well-known/ai refuses "
        "every other. Choose the nearest one, or none.",
        '[http]\ncategory = ["hotels"]\n',
        '[http]\ncategory = ["travel"]\n',
    ),
    "Y891": Page(
        "What stands in a published document has to be found by whoever reads it, and a relative or mistyped address "
        "leads nowhere. Write the whole address, with its scheme and host.",
        '[http]\nurl = "rooms.example"\n',
        '[http]\nurl = "https://rooms.example"\n',
    ),
    "Y892": Page(
        "Whoever lists endpoints for all agents of the web has to limit each of them, because agents do not have to "
        "keep to what a document asks for. The server says so when it starts with an HTTP face. Limit what one agent "
        "and what one address may call; /.well-known/ai then tells the tighter of the two.",
        '[listen]\nhttp = "127.0.0.1:8080"\n',
        '[listen]\nhttp = "127.0.0.1:8080"\n\n[limits.rate]\nagent = "600/min"\naddress = "600/min"\n',
    ),
    "Y893": Page(
        "A proxy is known by the address it calls from, so that a name, or a network with bits behind its length, is "
        "never met and everybody behind the proxy counts as one. Name each proxy, or the network they alone are in: "
        "whoever is trusted says where a call comes from.",
        '[http]\ntrusted_proxies = ["proxy.example"]\n',
        '[http]\ntrusted_proxies = ["10.0.0.7", "10.1.0.0/16"]\n',
    ),
    "Y894": Page(
        "Discovery documents tell the languages of a service by tags; a name of a language is left out of them. Write "
        "the tag, with a region or a script behind it where that matters.",
        '[http]\nlanguage = ["English"]\n',
        '[http]\nlanguage = ["en", "de-CH"]\n',
    ),
}
