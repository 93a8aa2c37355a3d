-- Tables of this extension, by the migration of the store that makes them. Applied once; never edited after a release.

-- migration 7
CREATE TABLE ledger_accounts (
    account TEXT NOT NULL,
    currency TEXT NOT NULL,
    balance BIGINT NOT NULL,
    credit BIGINT NOT NULL,
    PRIMARY KEY (account, currency)
);
CREATE TABLE ledger_entries (
    position {appended},
    transaction_id TEXT NOT NULL,
    account TEXT NOT NULL,
    currency TEXT NOT NULL,
    amount BIGINT NOT NULL,
    at {real} NOT NULL
);
CREATE UNIQUE INDEX ledger_entries_transaction ON ledger_entries (transaction_id, account, currency);
CREATE INDEX ledger_entries_account ON ledger_entries (account, position);

-- migration 12
-- Their balance is the sum of their entries.
DELETE FROM ledger_accounts WHERE account IN ('held', 'sales');
