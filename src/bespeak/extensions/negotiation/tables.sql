-- Tables of this extension, by the migration of the store that makes them. Applied once; never edited after a release.

-- migration 6
CREATE TABLE proposals (
    proposal_id TEXT NOT NULL PRIMARY KEY,
    negotiation_id TEXT NOT NULL,
    agent_id TEXT NOT NULL,
    session_id TEXT NOT NULL,
    session_created {real},
    method TEXT NOT NULL,
    path TEXT NOT NULL,
    digest TEXT NOT NULL,
    counter_digest TEXT,
    state TEXT NOT NULL,
    document TEXT NOT NULL,
    persistent BIGINT NOT NULL,
    published BIGINT NOT NULL,
    granted {real} NOT NULL,
    created {real} NOT NULL,
    expires {real} NOT NULL,
    decided_by TEXT,
    decided_at {real},
    reason TEXT,
    revision BIGINT NOT NULL
);
CREATE INDEX proposals_expires ON proposals (expires);
CREATE INDEX proposals_agent ON proposals (agent_id, state);
CREATE INDEX proposals_revision ON proposals (revision);
-- One answer to a proposal, however many processes are asked it at the same moment.
CREATE UNIQUE INDEX proposals_open ON proposals (agent_id, session_id, digest)
    WHERE state IN ('approved', 'pending');
