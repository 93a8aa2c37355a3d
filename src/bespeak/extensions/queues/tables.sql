-- Tables of this extension, by the migration of the store that makes them. Applied once; never edited after a release.

-- migration 16
-- Items that wait, run or are tried again, by queue; the channel of an item is its queue.
CREATE INDEX records_queue ON records (channel, due) WHERE kind = 'submission' AND due IS NOT NULL;

-- migration 19
-- Of an item that an agent has pulled: the agent.
ALTER TABLE records ADD COLUMN holder TEXT;
CREATE INDEX records_running ON records (channel, due) WHERE kind = 'submission' AND state = 'running';
