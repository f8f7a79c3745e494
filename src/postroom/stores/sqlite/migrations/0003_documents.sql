-- Things that change under a name that stays. A row is never deleted: `gone` keeps its version going on, so that
-- whoever read an earlier life of it is told. What it said before is among the records.
CREATE TABLE documents (
    tenant TEXT NOT NULL,
    kind TEXT NOT NULL,
    key TEXT NOT NULL,
    version INTEGER NOT NULL,
    data TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    gone INTEGER NOT NULL,
    PRIMARY KEY (tenant, kind, key)
) WITHOUT ROWID;
