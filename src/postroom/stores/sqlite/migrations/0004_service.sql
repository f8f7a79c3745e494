-- The audit, parts of streams, and idempotency keys of messages that a rule has moved.
CREATE TABLE audit (
    seq INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    tenant TEXT NOT NULL,
    scope_id INTEGER NOT NULL,
    queue_id INTEGER NOT NULL,
    message_id TEXT,
    correlation_id TEXT,
    event_type TEXT NOT NULL,
    permission TEXT NOT NULL,
    allowed INTEGER NOT NULL,
    status INTEGER NOT NULL,
    actor_type TEXT NOT NULL,
    actor_id TEXT NOT NULL,
    request_id TEXT NOT NULL,
    details TEXT NOT NULL,
    created_at INTEGER NOT NULL
);
CREATE INDEX audit_by_scope ON audit (tenant, scope_id);
CREATE INDEX audit_by_correlation ON audit (correlation_id) WHERE correlation_id IS NOT NULL;

CREATE TABLE chunks (
    stream_id TEXT NOT NULL,
    number INTEGER NOT NULL,
    data BLOB NOT NULL,
    PRIMARY KEY (stream_id, number)
) WITHOUT ROWID;

-- Which message an idempotency key was used for, when a rule has moved the message to another queue.
CREATE TABLE moved_keys (
    queue_id INTEGER NOT NULL,
    idempotency_key TEXT NOT NULL,
    message_id TEXT NOT NULL,
    PRIMARY KEY (queue_id, idempotency_key)
) WITHOUT ROWID;
CREATE INDEX moved_keys_by_message ON moved_keys (message_id);
