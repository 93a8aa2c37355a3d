-- Tables of this extension, by the migration of the store that makes them. Applied once; never edited after a release.

-- migration 7
CREATE TABLE steps (
    workflow_id TEXT NOT NULL,
    number BIGINT NOT NULL,
    attempt BIGINT NOT NULL,
    state TEXT NOT NULL,
    code BIGINT NOT NULL,
    output TEXT NOT NULL,
    PRIMARY KEY (workflow_id, number)
);

-- migration 17
ALTER TABLE steps ADD COLUMN asked TEXT NOT NULL DEFAULT '';
ALTER TABLE steps ADD COLUMN digest BIGINT NOT NULL DEFAULT 0;
ALTER TABLE steps ADD COLUMN began {real};
ALTER TABLE steps ADD COLUMN ended {real};
ALTER TABLE steps ADD COLUMN undo TEXT;
ALTER TABLE steps ADD COLUMN waits_for TEXT;
CREATE INDEX steps_waiting ON steps (waits_for) WHERE waits_for IS NOT NULL;
