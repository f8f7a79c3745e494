-- The first schema. Times are microseconds since 1970; JSON is text.
CREATE TABLE meta (
    name TEXT PRIMARY KEY,
    value TEXT NOT NULL
) WITHOUT ROWID;

CREATE TABLE scopes (
    id INTEGER PRIMARY KEY,
    tenant TEXT NOT NULL,
    slug TEXT NOT NULL,
    display_name TEXT NOT NULL,
    description TEXT NOT NULL,
    state TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    UNIQUE (tenant, slug)
);

-- AUTOINCREMENT: a number is never given again, since archived messages still carry it.
CREATE TABLE queues (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    scope_id INTEGER NOT NULL,
    slug TEXT NOT NULL,
    state TEXT NOT NULL,
    system INTEGER NOT NULL,
    settings TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    deleted_at INTEGER
);
CREATE UNIQUE INDEX queues_by_slug ON queues (scope_id, slug) WHERE deleted_at IS NULL;

-- What changes with every commit lies together, so that it is one page to write: how many messages each queue
-- (0: its own line) and each of its subscribers has in each state; and, under queue 0, two places in the chain:
-- 'head', where the next event goes on, and 'anchor', where the kept part begins.
CREATE TABLE figures (
    queue_id INTEGER NOT NULL,
    subscription_id INTEGER NOT NULL,
    name TEXT NOT NULL,
    n INTEGER NOT NULL,
    hash BLOB,
    time INTEGER,
    message_seq INTEGER,
    PRIMARY KEY (queue_id, subscription_id, name)
) WITHOUT ROWID;
INSERT INTO figures VALUES (0, 0, 'head', 0, zeroblob(32), 0, 0), (0, 0, 'anchor', 0, zeroblob(32), 0, 0);

CREATE VIEW counts AS
SELECT queue_id, subscription_id, name AS state, n FROM figures WHERE queue_id > 0;

CREATE VIEW chain AS
SELECT name, n AS seq, hash, time, message_seq FROM figures WHERE queue_id = 0 AND subscription_id = 0;

CREATE TABLE messages (
    seq INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    tenant TEXT NOT NULL,
    scope_id INTEGER NOT NULL,
    queue_id INTEGER NOT NULL,
    line INTEGER NOT NULL,
    subscription_id INTEGER,
    state TEXT NOT NULL,
    sort_key INTEGER NOT NULL,
    due_at INTEGER,
    message_type TEXT NOT NULL,
    priority_tier TEXT NOT NULL,
    priority_score INTEGER NOT NULL,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    expires_at INTEGER,
    visible_at INTEGER,
    correlation_id TEXT,
    causation_id TEXT,
    parent_id TEXT,
    hop INTEGER NOT NULL,
    idempotency_key TEXT,
    attempts INTEGER NOT NULL,
    claims INTEGER NOT NULL,
    token TEXT,
    claimed_by TEXT,
    claimed_at INTEGER,
    lease_until INTEGER,
    failure_reason TEXT,
    failure_kind TEXT,
    result BLOB,
    finished_at INTEGER,
    origin_queue_id INTEGER
);
CREATE INDEX messages_pending ON messages (line, sort_key) WHERE state = 'pending';
CREATE INDEX messages_due ON messages (due_at) WHERE due_at IS NOT NULL;
CREATE INDEX messages_finished ON messages (finished_at) WHERE finished_at IS NOT NULL;
CREATE INDEX messages_by_queue ON messages (queue_id);
-- A message that begins a conversation is found by its own id, which the conversation is named after.
CREATE INDEX messages_by_correlation ON messages (correlation_id) WHERE correlation_id <> id;
CREATE INDEX messages_by_parent ON messages (parent_id) WHERE parent_id IS NOT NULL;
CREATE UNIQUE INDEX messages_by_key ON messages (coalesce(origin_queue_id, queue_id), idempotency_key)
    WHERE idempotency_key IS NOT NULL;

CREATE TABLE contents (
    seq INTEGER PRIMARY KEY,
    content_type TEXT NOT NULL,
    body BLOB,
    labels TEXT,
    ttl_s REAL,
    deadline INTEGER,
    delay_until INTEGER,
    hitl_spec TEXT,
    source_type TEXT NOT NULL,
    source_id TEXT,
    channel TEXT,
    sender TEXT,
    sender_id TEXT,
    agent TEXT,
    from_agent TEXT,
    files TEXT,
    metadata TEXT
);

CREATE TABLE archive (
    seq INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    tenant TEXT NOT NULL,
    scope_id INTEGER NOT NULL,
    queue_id INTEGER NOT NULL,
    line INTEGER NOT NULL,
    subscription_id INTEGER,
    state TEXT NOT NULL,
    sort_key INTEGER NOT NULL,
    due_at INTEGER,
    message_type TEXT NOT NULL,
    priority_tier TEXT NOT NULL,
    priority_score INTEGER NOT NULL,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    expires_at INTEGER,
    visible_at INTEGER,
    correlation_id TEXT,
    causation_id TEXT,
    parent_id TEXT,
    hop INTEGER NOT NULL,
    idempotency_key TEXT,
    attempts INTEGER NOT NULL,
    claims INTEGER NOT NULL,
    token TEXT,
    claimed_by TEXT,
    claimed_at INTEGER,
    lease_until INTEGER,
    failure_reason TEXT,
    failure_kind TEXT,
    result BLOB,
    finished_at INTEGER,
    origin_queue_id INTEGER,
    content_type TEXT NOT NULL,
    body BLOB,
    labels TEXT,
    ttl_s REAL,
    deadline INTEGER,
    delay_until INTEGER,
    hitl_spec TEXT,
    source_type TEXT NOT NULL,
    source_id TEXT,
    channel TEXT,
    sender TEXT,
    sender_id TEXT,
    agent TEXT,
    from_agent TEXT,
    files TEXT,
    metadata TEXT,
    -- The ledger's length when the message was archived: all its events lie within.
    archived_seq INTEGER NOT NULL
);
CREATE INDEX archive_by_queue ON archive (queue_id, finished_at);
CREATE INDEX archive_by_correlation ON archive (correlation_id) WHERE correlation_id <> id;
CREATE UNIQUE INDEX archive_by_key ON archive (coalesce(origin_queue_id, queue_id), idempotency_key)
    WHERE idempotency_key IS NOT NULL;

CREATE TABLE subscriptions (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    queue_id INTEGER NOT NULL,
    name TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    UNIQUE (queue_id, name)
);

CREATE TABLE seen (
    subscription_id INTEGER NOT NULL,
    key TEXT NOT NULL,
    at INTEGER NOT NULL,
    PRIMARY KEY (subscription_id, key)
) WITHOUT ROWID;
CREATE INDEX seen_by_age ON seen (at);

CREATE TABLE schemas (
    scope_id INTEGER NOT NULL,
    name TEXT NOT NULL,
    version INTEGER NOT NULL,
    document TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    PRIMARY KEY (scope_id, name, version)
) WITHOUT ROWID;

CREATE TABLE records (
    id INTEGER PRIMARY KEY,
    tenant TEXT NOT NULL,
    kind TEXT NOT NULL,
    key TEXT NOT NULL,
    data TEXT NOT NULL,
    correlation_id TEXT,
    message_id TEXT,
    created_at INTEGER NOT NULL
);
CREATE INDEX records_by_kind ON records (tenant, kind, key);

CREATE TABLE positions (
    name TEXT PRIMARY KEY,
    seq INTEGER NOT NULL,
    hold INTEGER NOT NULL,
    updated_at INTEGER NOT NULL
) WITHOUT ROWID;

CREATE TABLE ledger (
    seq INTEGER PRIMARY KEY,
    time INTEGER NOT NULL,
    type TEXT NOT NULL,
    tenant TEXT NOT NULL,
    scope TEXT,
    queue TEXT,
    message_id TEXT,
    correlation_id TEXT,
    causation_id TEXT,
    actor TEXT NOT NULL,
    data TEXT NOT NULL,
    hash BLOB NOT NULL
);

CREATE TABLE housekeepers (
    name TEXT PRIMARY KEY,
    last_run_at INTEGER,
    last_status TEXT NOT NULL,
    last_duration_us INTEGER NOT NULL,
    items_processed INTEGER NOT NULL,
    total_items INTEGER NOT NULL,
    runs INTEGER NOT NULL,
    last_error TEXT
) WITHOUT ROWID;

CREATE TABLE leaders (
    name TEXT PRIMARY KEY,
    holder TEXT NOT NULL,
    until INTEGER NOT NULL
) WITHOUT ROWID;

CREATE TABLE memos (
    name TEXT PRIMARY KEY,
    value TEXT NOT NULL
) WITHOUT ROWID;
