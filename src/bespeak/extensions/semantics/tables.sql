-- Tables of this extension, by the migration of the store that makes them. Applied once; never edited after a release.

-- migration 8
CREATE TABLE ontologies (
    kind TEXT NOT NULL,
    id TEXT NOT NULL,
    version TEXT NOT NULL,
    digest TEXT NOT NULL,
    content {blob} NOT NULL,
    refs TEXT NOT NULL,
    source TEXT NOT NULL,
    signer TEXT NOT NULL,
    signature TEXT NOT NULL,
    actor TEXT NOT NULL,
    supersedes TEXT NOT NULL,
    revision BIGINT NOT NULL,
    registered {real} NOT NULL,
    PRIMARY KEY (kind, id, version)
);
CREATE INDEX ontologies_revision ON ontologies (revision);

-- migration 10
CREATE TABLE mapped_calls (
    source TEXT NOT NULL,
    target TEXT NOT NULL,
    succeeded BIGINT NOT NULL,
    failed BIGINT NOT NULL,
    PRIMARY KEY (source, target)
);

-- migration 13
ALTER TABLE ontologies ADD COLUMN size BIGINT;
UPDATE ontologies SET size = length(content);
CREATE INDEX ontologies_actor ON ontologies (actor, size);
