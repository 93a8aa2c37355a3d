"""TRANSACT: methods that change state or commit to something (Tier 2 5)."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Final

from bespeak.contract.standard import definition as d
from bespeak.contract.standard.definition import MethodError, Schema, StandardMethod
from bespeak.protocol import status

GRANT: Final = "authorization:grant"
PURCHASES: Final = "payments:purchase"
SIGNS: Final = "documents:sign"  # the draft names no scope, but such a signature binds the operator
TYPE: Final[Schema] = {"type": "string", "pattern": "^[a-z][a-z0-9_-]{0,63}$"}  # of an entity: the domain of scopes
_VALUE: Final = "^[0-9]{1,15}([.][0-9]{1,6})?$"
_AMOUNT: Final[Schema] = d.object_of(
    {
        # A number in binary would lose cents.
        "value": {"type": ["string", "integer"], "pattern": _VALUE, "minimum": 0, "maximum": 10**15},
        "currency": {"type": "string", "pattern": "^[A-Z]{3}$"},
    },
    closed=True,
)
MERCHANT: Final[Mapping[str, Schema]] = {
    "merchant_id": {**d.NAME, "description": "Id of the merchant: the server_id of this service."},
    "merchant_manifest_fingerprint": {
        **d.NAME,
        "description": "SHA-256 of the manifest of the merchant, which the buyer has verified, in hexadecimal digits.",
    },
    "intent_assertion": {**d.LINE, "maxLength": 8000, "description": "Signed intent of the principal, a JWT."},
    "cart_digest": {**d.NAME, "description": "Digest of the cart of an earlier QUOTE."},
}  # parameters that stand for the merchant headers (core 2.3), for callers of MCP, A2A and steps, who send none

_members = partial(
    d.members,
    AMOUNT=_AMOUNT,
    TYPE=TYPE,
    SCOPE={"type": ["string", "array"], "items": d.NAME, "minLength": 1, "minItems": 1},
    CONDITIONS=d.object_of(d.members("methods?: [METHOD], paths?: [PATH]"), closed=True),
    COSTS={**d.OBJECT, "additionalProperties": d.object_of(d.members("min: NUMBER, expected: NUMBER, max: NUMBER"))},
    UNITS=d.list_of(d.NAME, most=16),
    PRIORITY={"type": ["integer", "string"], "enum": ["low", "normal", "high", *range(10)]},
    REASON={"type": ["string", "object"], "minLength": 1, "maxLength": 1000},
    STRING={"type": "string"},
)
_method = partial(StandardMethod, category="transact", impact="irreversible", idempotent=False)
TRANSACT: Final[tuple[StandardMethod, ...]] = (
    StandardMethod(
        name="QUOTE",
        category="transact",
        description="Estimates the cost of a call without making it.",
        intent="Estimate what a proposed call would cost.",
        outcome="An estimate with its range and confidence is returned; nothing was executed.",
        takes=_members("method: METHOD, path?: PATH, parameters: OBJECT, budget_units?: UNITS"),
        # `unestimated` has units that were asked for, and of which nothing is known for this call.
        returns=_members(
            "method: METHOD, path: PATH, estimated_cost: COSTS, confidence: SHARE, "
            "basis: declared | measured | both | none | price, samples?: COUNT, unestimated: [NAME]"
        ),
        errors=(
            MethodError("endpoint-not-found", status.NOT_FOUND, "No endpoint has this method and path."),
            MethodError("invalid-parameters", status.UNPROCESSABLE, "The endpoint would refuse these parameters."),
        ),
    ),
    _method(
        name="REGISTER",
        description="Creates an entity of a declared type, a channel, a subscription or a procedure.",
        intent="Register a new entity.",
        outcome="The entity is stored, and its id and version are returned.",
        impact="reversible",
        takes=_members("entity_type: TYPE, data: ANYTHING, idempotency_key?: NAME"),
        returns=_members(
            "entity_id: NAME, entity_type: NAME, owner: NAME, version: 1.., created_at: TIME, expires_at?: TIME, "
            "status?: NAME, escalation_id?: NAME"  # of a procedure, which people decide about first
        ),
        errors=(
            MethodError("too-many-entities", status.CONFLICT, "The agent has as many entities as it may have."),
            MethodError("already-registered", status.CONFLICT, "The subscription or the channel exists already."),
            MethodError("invalid-data", status.UNPROCESSABLE, "The data are too large or do not fit their type."),
            MethodError("unknown-entity-type", status.NOT_FOUND, "The service has no such type of entities."),
            MethodError("callback-refused", status.UNPROCESSABLE, "The callback must not be called."),
            d.NOT_LISTED,
        ),
    ),
    _method(
        name="SUBMIT",
        description="Hands a document or a work item to a queue.",
        intent="Submit a work item for processing.",
        outcome="The item waits in the queue, and its tracking id is returned.",
        impact="reversible",
        takes=_members("target: NAME, payload: ANYTHING, priority?: PRIORITY, callback?: LINE"),
        returns=_members("tracking_id: NAME, target: NAME, status: queued, submitted_at: TIME"),
        errors=(
            MethodError("callback-refused", status.BAD_REQUEST, "The callback must not be called."),
            d.NOT_LISTED,
            MethodError("queue-full", status.UNAVAILABLE, "The queue takes no more items now."),
            MethodError("unknown-queue", status.NOT_FOUND, "The service has no such queue."),
        ),
        joined_by="queue",
    ),
    _method(
        name="AUTHORIZE",
        description="Grants part of the caller's own authority to an agent, or to the agents of a principal.",
        intent="Grant permissions to an agent for a limited time.",
        outcome="The subject holds the granted scopes until they expire or are cancelled.",
        impact="reversible",
        takes=_members("subject: NAME, resource: NAME, scope: SCOPE, ttl?: SECONDS, conditions?: CONDITIONS"),
        returns=_members(
            "grant_id: NAME, subject: NAME, resource: NAME, scope: [NAME], granted_by: NAME, expires_at: TIME"
        ),
        errors=(
            MethodError("unknown-subject", status.FORBIDDEN, "The subject cannot hold a grant."),
            MethodError("already-granted", status.CONFLICT, "The subject holds this grant already."),
            MethodError("scope-violation", status.SCOPE_VIOLATION, "The grant exceeds the authority of the caller."),
        ),
        scopes=(GRANT,),
        recorded=("subject", "resource", "scope"),
    ),
    _method(
        name="CANCEL",
        description="Revokes a grant, a hold, a submission, a workflow, imported resources or a thing of the service.",
        intent="Cancel something that was scheduled or committed.",
        outcome="The target is cancelled, and what could be undone has been undone.",
        # The draft does not say how much a partial refund is. Without `refund_amount` the seller does.
        takes=_members(
            "target_id: NAME, reason?: REASON, notify_parties?: FLAG, refund_policy?: full | partial | none, "
            "refund_amount?: AMOUNT"
        ),
        returns=_members(
            "target_id: NAME, kind: NAME, status: cancelled | cancelling, cancelled_at: TIME, refund?: OBJECT, "
            "notified?: [NAME], details?: OBJECT, job_id?: NAME, look?: OBJECT"
        ),
        errors=(
            MethodError("target-not-found", status.NOT_FOUND, "The caller has no such thing."),
            d.AMBIGUOUS,
            MethodError("already-cancelled", status.CONFLICT, "The target is cancelled already."),
            MethodError("not-cancellable", status.CONFLICT, "The target has ended and cannot be cancelled."),
            MethodError("refund-impossible", status.UNPROCESSABLE, "The refund is not possible for this target."),
        ),
        recorded=("target_id", "reason"),
    ),
    _method(
        name="TRANSFER",
        description="Moves the ownership of an entity to another principal.",
        intent="Transfer the ownership of a resource.",
        outcome="The new owner holds the resource, and the chain of owners is recorded.",
        takes=_members("resource_id: NAME, from_principal: NAME, to_principal: NAME, reason?: LINE"),
        returns=_members(
            "transfer_id: NAME, resource_id: NAME, from_principal: NAME, to_principal: NAME, version: 1.., "
            "transferred_at: TIME"
        ),
        errors=(
            MethodError("resource-not-found", status.NOT_FOUND, "The caller has no such resource."),
            MethodError("not-the-owner", status.FORBIDDEN, "from_principal does not own the resource."),
            MethodError("unknown-principal", status.NOT_FOUND, "to_principal is not known here."),
            MethodError("already-owned", status.CONFLICT, "to_principal owns the resource already."),
            MethodError("scope-violation", status.SCOPE_VIOLATION, "The caller lacks the scope of this entity type."),
        ),
        recorded=("resource_id", "from_principal", "to_principal"),
    ),
    _method(
        name="PURCHASE",
        description="Buys an item at the price of its seller on the account of a principal, or holds the price for it.",
        intent="Purchase an item for a principal.",
        outcome="The item is delivered and its price paid, or the price is held, and the receipt is returned.",
        takes={
            # The draft leaves its form open. A name is enough for a sale that needs no input.
            "item": {
                **d.object_of(d.members("sale: NAME, input?: OBJECT"), closed=True),
                "type": ["string", "object"],
                "minLength": 1,
                "maxLength": 1000,
                "description": "Name of a sale of this service, and its input.",
            },
            "principal_id": d.NAME,
            "amount": {**_AMOUNT, "description": "The most that may be paid; the price is charged."},
            **d.members("payment_method?: NAME, confirm_immediately?: FLAG"),
            **{f"{name}?": schema for name, schema in MERCHANT.items()},
        },
        # A repeated request may find a purchase that has been cancelled meanwhile.
        returns=_members(
            "purchase_id: NAME, principal_id: NAME, item: OBJECT, "
            "status: settled | held | pending | cancelled | expired, amount: AMOUNT, delivered?: ANYTHING, "
            "provider_reference?: NAME, hold_id?: NAME, expires_at?: TIME"
        ),
        errors=(
            MethodError("payment-refused", status.FORBIDDEN, "The payment was refused."),
            MethodError("insufficient-funds", status.CONFLICT, "The account does not cover the amount."),
            MethodError("unknown-item", status.NOT_FOUND, "The service sells no such item."),
            MethodError("invalid-item", status.UNPROCESSABLE, "The sale does not take this input."),
            MethodError("invalid-amount", status.UNPROCESSABLE, "The amount or its currency is not accepted."),
            MethodError("price-changed", status.CONFLICT, "The price is higher than the amount."),
            MethodError("fulfilment-failed", status.SERVER_ERROR, "The seller failed, and the money is released."),
            MethodError("budget-exceeded", status.BUDGET_EXCEEDED, "The price exceeds Budget-Limit."),
            MethodError("counterparty-unverified", status.COUNTERPARTY_UNVERIFIED, "The buyer means another merchant."),
            MethodError("purchase-pending", status.UNAVAILABLE, "The provider or the seller has not answered yet."),
        ),
        scopes=(PURCHASES,),
        recorded=("item", "principal_id", "amount"),
        joined_by="sale",
    ),
    _method(
        name="SIGN",
        description="Signs data with a key of this server.",
        intent="Sign a document or an assertion.",
        outcome="A signature with time and key id is returned, which anyone can verify with the public key.",
        takes=_members("payload: ANYTHING, key_id?: NAME, algorithm?: NAME"),
        returns=_members("signature: STRING, key_id: NAME, algorithm: NAME, signed_at: TIME, digest: NAME"),
        errors=(
            MethodError("key-refused", status.FORBIDDEN, "The caller may not sign with this key."),
            MethodError("unknown-algorithm", status.UNPROCESSABLE, "The key cannot sign with this algorithm."),
        ),
        scopes=(SIGNS,),
    ),
    _method(
        name="LOG",
        description="Writes a structured record that cannot be changed afterwards.",
        intent="Log an event of significance.",
        outcome="The record is stored, and its id is returned.",
        takes=_members(
            "event_type: NAME, data: ANYTHING, severity?: info | warning | error | critical, correlation_id?: NAME"
        ),
        returns=_members("record_id: NAME, event_type: NAME, severity: NAME, logged_at: TIME"),
        errors=(MethodError("invalid-data", status.BAD_REQUEST, "The record is too large."),),
    ),
    _method(
        name="PUBLISH",
        description="Makes content available to the subscribers of a channel, now or at a given time.",
        intent="Publish content to a channel.",
        outcome="The content is published, or will be at the given time.",
        takes=_members("content: ANYTHING, channel: NAME, format?: NAME, schedule_at?: TIME"),
        returns=_members(
            "content_id: NAME, channel: NAME, status: published | scheduled, publish_at: TIME, subscribers?: COUNT"
        ),
        errors=(
            d.NOT_OWN_CHANNEL,
            d.INVALID_TIME,
            MethodError("already-published", status.CONFLICT, "This content is published on the channel already."),
            MethodError("too-many-publications", status.CONFLICT, "The agent has published as much as it may."),
        ),
    ),
)
