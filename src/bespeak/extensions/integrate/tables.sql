-- Tables of this extension, by the migration of the store that makes them. Applied once; never edited after a release.

-- migration 20
-- Bytes that a job needs until it ends, such as the source of an import; any machine may go on with it.
CREATE TABLE job_parts (
    job_id TEXT NOT NULL,
    number BIGINT NOT NULL,
    data {blob} NOT NULL,
    expires {real} NOT NULL,
    PRIMARY KEY (job_id, number)
);
CREATE INDEX job_parts_expires ON job_parts (expires);

-- migration 21
-- The two ends of each link, by which it is found. The link itself is a record.
CREATE TABLE link_ends (
    thing TEXT NOT NULL,
    link_id TEXT NOT NULL,
    PRIMARY KEY (thing, link_id)
) {keyed};
CREATE INDEX link_ends_link ON link_ends (link_id);

-- migration 22
-- What both sides of a synchronization last agreed on: so a change of one side is told from one of the other.
CREATE TABLE synced_rows (
    sync_id TEXT NOT NULL,
    key TEXT NOT NULL,
    digest TEXT NOT NULL,
    run TEXT NOT NULL,
    PRIMARY KEY (sync_id, key)
) {keyed};
