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
