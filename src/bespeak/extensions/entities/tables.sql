-- Tables of this extension, by the migration of the store that makes them. Applied once; never edited after a release.

-- migration 17
-- Entities by type, which is their channel.
CREATE INDEX records_entity ON records (channel, created, record_id) WHERE kind = 'entity';
