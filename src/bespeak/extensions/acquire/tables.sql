-- Tables of this extension, by the migration of the store that makes them. Applied once; never edited after a release.

-- migration 18
-- What agents import: rows of collections, by their position. A key identifies a row in a collection of its owner.
CREATE TABLE resources (
    position {serial},
    collection TEXT NOT NULL,
    owner TEXT NOT NULL,
    key TEXT,
    version BIGINT NOT NULL,
    data TEXT NOT NULL,
    created {real} NOT NULL,
    updated {real} NOT NULL
);
CREATE UNIQUE INDEX resources_key ON resources (collection, owner, key) WHERE key IS NOT NULL;
CREATE INDEX resources_scanned ON resources (owner, collection, position);
CREATE INDEX resources_collection ON resources (collection, position);
CREATE TABLE resource_versions (
    position BIGINT NOT NULL,
    version BIGINT NOT NULL,
    data TEXT NOT NULL,
    updated {real} NOT NULL,
    PRIMARY KEY (position, version)
) {keyed};
-- Resources whose words are not in the index yet. Large imports are indexed afterwards.
CREATE TABLE resources_unindexed (position BIGINT NOT NULL PRIMARY KEY);
{sqlite}CREATE VIRTUAL TABLE resources_text USING fts5(words);
{postgres}CREATE TABLE resources_text (position BIGINT NOT NULL PRIMARY KEY, words TSVECTOR NOT NULL);
-- Each search reads what is pending: four megabytes of it, the usual limit, take longer than the search.
{postgres}CREATE INDEX resources_text_words ON resources_text USING GIN (words) WITH (gin_pending_list_limit = 256);
