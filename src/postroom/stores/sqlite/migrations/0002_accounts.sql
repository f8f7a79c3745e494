-- Accounts: what is spent and reserved of something countable, and messages that wait for one to thaw.
CREATE TABLE accounts (
    tenant TEXT NOT NULL,
    name TEXT NOT NULL,
    own_limit INTEGER,
    spent INTEGER NOT NULL,
    peak INTEGER,
    frozen TEXT,
    updated_at INTEGER NOT NULL,
    PRIMARY KEY (tenant, name)
) WITHOUT ROWID;
CREATE INDEX accounts_frozen ON accounts (tenant, name) WHERE frozen IS NOT NULL;
CREATE INDEX accounts_by_age ON accounts (updated_at) WHERE frozen IS NULL;

-- Those that are neither settled nor released. What has expired no longer counts.
CREATE TABLE reservations (
    tenant TEXT NOT NULL,
    holder TEXT NOT NULL,
    account TEXT NOT NULL,
    amount INTEGER NOT NULL,
    since INTEGER NOT NULL,
    expires_at INTEGER NOT NULL,
    PRIMARY KEY (tenant, holder, account)
) WITHOUT ROWID;
CREATE INDEX reservations_of_account ON reservations (tenant, account, expires_at);
CREATE INDEX reservations_by_age ON reservations (expires_at);

-- Work that was settled, so that it is not counted twice.
CREATE TABLE settlements (
    tenant TEXT NOT NULL,
    holder TEXT NOT NULL,
    at INTEGER NOT NULL,
    PRIMARY KEY (tenant, holder)
) WITHOUT ROWID;
CREATE INDEX settlements_by_age ON settlements (at);

CREATE TABLE holds (
    id INTEGER PRIMARY KEY,
    tenant TEXT NOT NULL,
    account TEXT NOT NULL,
    message_id TEXT NOT NULL UNIQUE,
    claims INTEGER NOT NULL,
    until INTEGER NOT NULL
);
CREATE INDEX holds_of_account ON holds (tenant, account);
CREATE INDEX holds_by_age ON holds (until);
