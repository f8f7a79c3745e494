-- What lets old rows be found, and where things stood when the events that tell of them were pruned.
CREATE INDEX records_of_kind ON records (kind);
CREATE INDEX documents_of_kind ON documents (kind, updated_at) WHERE NOT gone;
CREATE INDEX documents_gone ON documents (updated_at) WHERE gone;

-- A frozen account that is final takes nothing for good, and is forgotten like one that is not frozen.
ALTER TABLE accounts ADD COLUMN final INTEGER NOT NULL DEFAULT 0;
DROP INDEX accounts_by_age;
CREATE INDEX accounts_by_age ON accounts (updated_at) WHERE frozen IS NULL OR final;

-- Messages and accounts as they stood at the anchor: a fold of the kept events begins with these.
CREATE TABLE standing (
    message_id TEXT PRIMARY KEY,
    place TEXT NOT NULL,
    state TEXT NOT NULL,
    attempts INTEGER NOT NULL
) WITHOUT ROWID;
CREATE TABLE standing_accounts (
    tenant TEXT NOT NULL,
    name TEXT NOT NULL,
    data TEXT NOT NULL,
    PRIMARY KEY (tenant, name)
) WITHOUT ROWID;
