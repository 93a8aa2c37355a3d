-- Tables by migration. Each is applied once, in the order of its number, and never edited after a release.

-- migration 1
CREATE TABLE idempotency (
    scope TEXT NOT NULL,
    key TEXT NOT NULL,
    request_hash {blob} NOT NULL,
    fence BIGINT NOT NULL,
    lease {real} NOT NULL,
    answer {blob},
    expires {real} NOT NULL,
    PRIMARY KEY (scope, key)
);
CREATE INDEX idempotency_expires ON idempotency (expires);
CREATE TABLE nonces (
    kind TEXT NOT NULL,
    value TEXT NOT NULL,
    expires {real} NOT NULL,
    PRIMARY KEY (kind, value)
) {keyed};
CREATE INDEX nonces_expires ON nonces (expires);
CREATE TABLE sessions (
    session_id TEXT NOT NULL PRIMARY KEY,
    agent_id TEXT NOT NULL,
    tls_identity TEXT NOT NULL,
    created {real} NOT NULL,
    expires {real} NOT NULL,
    state TEXT NOT NULL,
    suspension_id TEXT,
    nonce_hash TEXT,
    resume_by {real},
    reason TEXT,
    checkpoint TEXT
);
CREATE INDEX sessions_expires ON sessions (expires);
CREATE TABLE agents (
    agent_id TEXT NOT NULL PRIMARY KEY,
    name TEXT NOT NULL,
    status TEXT NOT NULL,
    document TEXT,
    revision BIGINT NOT NULL,
    updated {real} NOT NULL
);
CREATE INDEX agents_name ON agents (name);
CREATE TABLE lifecycle_events (
    position {serial},
    agent_id TEXT NOT NULL,
    event TEXT NOT NULL,
    previous_status TEXT NOT NULL,
    status TEXT NOT NULL,
    actor TEXT NOT NULL,
    reason TEXT NOT NULL,
    at {real} NOT NULL
);
CREATE INDEX lifecycle_events_agent ON lifecycle_events (agent_id, position);
CREATE TABLE cases (
    case_id TEXT NOT NULL PRIMARY KEY,
    kind TEXT NOT NULL,
    state TEXT NOT NULL,
    agent_id TEXT NOT NULL,
    recipient TEXT NOT NULL,
    digest TEXT NOT NULL,
    subject TEXT NOT NULL,
    created {real} NOT NULL,
    deadline {real},
    expires {real},
    decided_by TEXT,
    decided_at {real},
    reason TEXT,
    attestation_id TEXT,
    attestation TEXT
);
CREATE INDEX cases_state ON cases (state, created);
CREATE INDEX cases_expires ON cases (expires);
-- One open case for a question, however many processes are asked it at the same moment.
CREATE UNIQUE INDEX cases_open ON cases (kind, agent_id, digest) WHERE state IN ('pending', 'deferred');
CREATE TABLE delegations (
    delegation_id TEXT NOT NULL PRIMARY KEY,
    delegator TEXT NOT NULL,
    delegate TEXT NOT NULL,
    scope TEXT NOT NULL,
    parent TEXT,
    task TEXT,
    created {real} NOT NULL,
    expires {real} NOT NULL
);
CREATE INDEX delegations_expires ON delegations (expires);
CREATE TABLE outbox (
    position {serial},
    topic TEXT NOT NULL,
    recipient TEXT NOT NULL,
    payload TEXT NOT NULL,
    created {real} NOT NULL,
    due {real} NOT NULL,
    fence BIGINT NOT NULL,
    attempts BIGINT NOT NULL
);
CREATE INDEX outbox_due ON outbox (topic, due, position);
CREATE TABLE audit (
    position {appended},
    stream TEXT NOT NULL,
    sequence BIGINT NOT NULL,
    agent_id TEXT NOT NULL,
    audit_id TEXT NOT NULL,
    jws TEXT NOT NULL
);
CREATE INDEX audit_agent ON audit (agent_id, position);
CREATE INDEX audit_audit_id ON audit ({audit_id});
CREATE TABLE checkpoints (
    position {appended},
    checkpoint_id TEXT NOT NULL,
    jws TEXT NOT NULL
);
CREATE TABLE buckets (
    name TEXT NOT NULL PRIMARY KEY,
    expires {real} NOT NULL
) {keyed};
CREATE INDEX buckets_expires ON buckets (expires);

-- migration 2
CREATE TABLE endpoints (
    method TEXT NOT NULL,
    path TEXT NOT NULL,
    document TEXT NOT NULL,
    revision BIGINT NOT NULL,
    PRIMARY KEY (method, path)
);
CREATE TABLE revisions (
    topic TEXT NOT NULL PRIMARY KEY,
    revision BIGINT NOT NULL,
    updated {real} NOT NULL
);

-- migration 3
ALTER TABLE cases ADD COLUMN parties TEXT;
ALTER TABLE cases ADD COLUMN decided_parties TEXT;

-- migration 4
-- Ids are random. In one index over the whole trail each new one changes another page; in an index by blocks of
-- positions the records of a transaction change a few pages, however long the trail is.
{sqlite}DROP INDEX audit_audit_id;
{sqlite}CREATE INDEX audit_audit_id ON audit (position >> 10, substr(audit_id, 1, 6));

-- migration 5
CREATE TABLE paused_tasks (
    agent_id TEXT NOT NULL,
    task_id TEXT NOT NULL,
    case_id TEXT NOT NULL,
    expires {real} NOT NULL,
    PRIMARY KEY (agent_id, task_id, case_id)
);
CREATE INDEX paused_tasks_case ON paused_tasks (case_id);
CREATE INDEX paused_tasks_expires ON paused_tasks (expires);

-- migration 7
CREATE TABLE a2a_tasks (
    task_id TEXT NOT NULL PRIMARY KEY,
    owner TEXT NOT NULL,
    context_id TEXT NOT NULL,
    state TEXT NOT NULL,
    status BIGINT NOT NULL,
    call TEXT,
    document {blob} NOT NULL,
    revision BIGINT NOT NULL,
    updated {real} NOT NULL,
    lease {real} NOT NULL,
    canceled BIGINT NOT NULL,
    expires {real} NOT NULL
);
CREATE INDEX a2a_tasks_owner ON a2a_tasks (owner, updated);
CREATE INDEX a2a_tasks_expires ON a2a_tasks (expires);
CREATE TABLE records (
    record_id TEXT NOT NULL PRIMARY KEY,
    kind TEXT NOT NULL,
    owner TEXT NOT NULL,
    key TEXT,
    state TEXT NOT NULL,
    version BIGINT NOT NULL,
    data TEXT NOT NULL,
    created {real} NOT NULL,
    updated {real} NOT NULL,
    due {real},
    fence BIGINT NOT NULL,
    expires {real} NOT NULL
);
CREATE INDEX records_owner ON records (kind, owner, created);
CREATE INDEX records_due ON records (kind, due) WHERE due IS NOT NULL;
CREATE INDEX records_open ON records (kind, owner) WHERE due IS NOT NULL;
CREATE INDEX records_expires ON records (expires);
CREATE UNIQUE INDEX records_key ON records (kind, key) WHERE key IS NOT NULL;
CREATE INDEX records_channel ON records (state, record_id) WHERE kind = 'subscription';

-- migration 9
CREATE INDEX records_sender ON records (owner, fence)
    WHERE kind = 'message' AND state = 'unread' AND fence <> 0;

-- migration 11
-- Announcements for people, which no process has ever delivered: the cases themselves are kept.
-- Announcements for people, which no process has ever delivered: the cases themselves are kept.
DELETE FROM outbox WHERE topic = 'escalation';

-- migration 14
-- Of a message: the sender whose share of the inbox it counts to. It was kept as the fence.
ALTER TABLE records ADD COLUMN sender_hash BIGINT;
DROP INDEX records_sender;
UPDATE records SET sender_hash = fence, fence = 0 WHERE kind = 'message' AND fence <> 0;
CREATE INDEX records_sender ON records (owner, sender_hash)
    WHERE kind = 'message' AND state = 'unread' AND sender_hash IS NOT NULL;
-- Of a subscription. It was kept as the state, after a `#`.
ALTER TABLE records ADD COLUMN channel TEXT;
DROP INDEX records_channel;
UPDATE records SET channel = substr(state, 2), state = 'active'
    WHERE kind = 'subscription' AND substr(state, 1, 1) = '#';
CREATE INDEX records_channel ON records (channel, record_id)
    WHERE kind = 'subscription' AND state = 'active';
-- Of a monitor. The key was a token of 32 characters, a version of 12 digits, and the target, whose kind
-- preceded it unless it was a record.
ALTER TABLE records ADD COLUMN target_kind TEXT;
ALTER TABLE records ADD COLUMN target TEXT;
ALTER TABLE records ADD COLUMN target_version BIGINT;
UPDATE records SET target_version = CAST(substr(key, 34, 12) AS BIGINT), target = substr(key, 47),
    target_kind = 'record', key = NULL WHERE kind = 'monitor' AND key IS NOT NULL;
UPDATE records SET target_kind = 'agent', target = substr(target, 7) WHERE kind = 'monitor' AND target LIKE 'agent %';
UPDATE records SET target_kind = 'endpoint', target = substr(target, 10) WHERE kind = 'monitor' AND target LIKE 'endpoint %';
UPDATE records SET target_kind = 'server', target = substr(target, 8) WHERE kind = 'monitor' AND target LIKE 'server %';
-- The number and size of the events of an agent were version and fence of a record.
CREATE TABLE event_counters (
    owner TEXT NOT NULL PRIMARY KEY,
    events BIGINT NOT NULL,
    size BIGINT NOT NULL
);
INSERT INTO event_counters SELECT owner, version, fence FROM records WHERE kind = 'log-counter';
DELETE FROM records WHERE kind = 'log-counter';

-- migration 15
CREATE TABLE api_keys (
    key_id TEXT NOT NULL PRIMARY KEY,
    digest {blob} NOT NULL,
    agent_id TEXT NOT NULL,
    agent TEXT NOT NULL,
    scopes TEXT NOT NULL,
    name TEXT NOT NULL,
    created {real} NOT NULL,
    expires {real},
    revoked {real},
    last_used {real}
);
CREATE INDEX api_keys_expires ON api_keys (expires);

-- migration 16
-- Of a workflow, the target is the Task-ID of the call that began it.
CREATE INDEX records_task ON records (owner, target) WHERE kind = 'workflow' AND target IS NOT NULL;

-- migration 17
-- So it is of a submission and of a delegation.
DROP INDEX records_task;
CREATE INDEX records_task ON records (owner, target) WHERE target IS NOT NULL;
