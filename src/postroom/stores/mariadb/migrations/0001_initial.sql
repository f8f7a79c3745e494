-- The first schema. Times are microseconds since 1970; JSON is text. Text is compared byte by byte, as everywhere in
-- Postroom. MariaDB commits each statement here by itself, so each can be run again after one that was cut off.
-- It has no partial indexes: what only some rows are in is a computed column, or a small table that triggers keep.

CREATE TABLE IF NOT EXISTS meta (
    name VARCHAR(64) PRIMARY KEY,
    value LONGTEXT NOT NULL
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_nopad_bin;

-- Whoever finds this and no number of a schema knows that a step was cut off, and runs it again.
INSERT IGNORE INTO meta VALUES ('begun', '1');

CREATE TABLE IF NOT EXISTS scopes (
    id BIGINT AUTO_INCREMENT PRIMARY KEY,
    tenant VARCHAR(64) NOT NULL,
    slug VARCHAR(255) NOT NULL,
    display_name LONGTEXT NOT NULL,
    description LONGTEXT NOT NULL,
    state VARCHAR(32) NOT NULL,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL,
    UNIQUE (tenant, slug)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_nopad_bin;

CREATE TABLE IF NOT EXISTS queues (
    id BIGINT AUTO_INCREMENT PRIMARY KEY,
    scope_id BIGINT NOT NULL,
    slug VARCHAR(255) NOT NULL,
    state VARCHAR(32) NOT NULL,
    system BOOLEAN NOT NULL,
    settings LONGTEXT NOT NULL,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL,
    deleted_at BIGINT,
    living_slug VARCHAR(255) AS (IF(deleted_at IS NULL, slug, NULL)) STORED,
    ordering VARCHAR(32) AS (JSON_VALUE(settings, '$.ordering')) STORED,
    retention_s DOUBLE AS (NULLIF(JSON_VALUE(settings, '$.retention_s'), 'null')) STORED,
    UNIQUE KEY queues_by_slug (scope_id, living_slug),
    KEY queues_by_priority (ordering),
    KEY queues_of_dead_letters (slug),
    KEY queues_with_retention (retention_s),
    KEY queues_deleted (deleted_at)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_nopad_bin;

CREATE TABLE IF NOT EXISTS figures (
    queue_id BIGINT NOT NULL,
    subscription_id BIGINT NOT NULL,
    name VARCHAR(32) NOT NULL,
    n BIGINT NOT NULL,
    hash VARBINARY(32),
    time BIGINT,
    message_seq BIGINT,
    PRIMARY KEY (queue_id, subscription_id, name),
    KEY figures_idle (subscription_id)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_nopad_bin;

CREATE TABLE IF NOT EXISTS messages (
    seq BIGINT PRIMARY KEY,
    id VARCHAR(255) NOT NULL,
    tenant VARCHAR(64) NOT NULL,
    scope_id BIGINT NOT NULL,
    queue_id BIGINT NOT NULL,
    line BIGINT NOT NULL,
    subscription_id BIGINT,
    state VARCHAR(32) NOT NULL,
    sort_key BIGINT NOT NULL,
    due_at BIGINT,
    message_type LONGTEXT NOT NULL,
    priority_tier LONGTEXT NOT NULL,
    priority_score BIGINT NOT NULL,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL,
    expires_at BIGINT,
    visible_at BIGINT,
    correlation_id VARCHAR(512),
    causation_id LONGTEXT,
    parent_id VARCHAR(255),
    hop BIGINT NOT NULL,
    idempotency_key VARCHAR(512),
    attempts BIGINT NOT NULL,
    claims BIGINT NOT NULL,
    token LONGTEXT,
    claimed_by LONGTEXT,
    claimed_at BIGINT,
    lease_until BIGINT,
    failure_reason LONGTEXT,
    failure_kind LONGTEXT,
    result LONGBLOB,
    finished_at BIGINT,
    origin_queue_id BIGINT,
    -- Keys hold for the queue that a message was published to.
    key_queue BIGINT AS (IF(idempotency_key IS NULL, NULL, COALESCE(origin_queue_id, queue_id))) STORED,
    ended_at BIGINT AS (IF(state IN ('cancelled', 'completed', 'expired'), finished_at, NULL)) STORED,
    dead_at BIGINT AS (IF(state = 'dead', finished_at, NULL)) STORED,
    UNIQUE KEY messages_by_id (id),
    UNIQUE KEY messages_by_key (key_queue, idempotency_key),
    KEY messages_by_queue (queue_id),
    KEY messages_by_correlation (correlation_id),
    KEY messages_by_parent (parent_id),
    KEY messages_finished (ended_at),
    KEY messages_dead (dead_at)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_nopad_bin;

CREATE TABLE IF NOT EXISTS contents (
    seq BIGINT PRIMARY KEY,
    content_type LONGTEXT NOT NULL,
    body LONGBLOB,
    labels LONGTEXT,
    ttl_s DOUBLE,
    deadline BIGINT,
    delay_until BIGINT,
    hitl_spec LONGTEXT,
    source_type LONGTEXT NOT NULL,
    source_id LONGTEXT,
    channel LONGTEXT,
    sender LONGTEXT,
    sender_id LONGTEXT,
    agent LONGTEXT,
    from_agent LONGTEXT,
    files LONGTEXT,
    metadata LONGTEXT,
    is_review BOOLEAN AS (IF(hitl_spec IS NULL, NULL, 1)) STORED,
    KEY contents_reviews (is_review)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_nopad_bin;

CREATE TABLE IF NOT EXISTS archive (
    seq BIGINT PRIMARY KEY,
    id VARCHAR(255) NOT NULL,
    tenant VARCHAR(64) NOT NULL,
    scope_id BIGINT NOT NULL,
    queue_id BIGINT NOT NULL,
    line BIGINT NOT NULL,
    subscription_id BIGINT,
    state VARCHAR(32) NOT NULL,
    sort_key BIGINT NOT NULL,
    due_at BIGINT,
    message_type LONGTEXT NOT NULL,
    priority_tier LONGTEXT NOT NULL,
    priority_score BIGINT NOT NULL,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL,
    expires_at BIGINT,
    visible_at BIGINT,
    correlation_id VARCHAR(512),
    causation_id LONGTEXT,
    parent_id VARCHAR(255),
    hop BIGINT NOT NULL,
    idempotency_key VARCHAR(512),
    attempts BIGINT NOT NULL,
    claims BIGINT NOT NULL,
    token LONGTEXT,
    claimed_by LONGTEXT,
    claimed_at BIGINT,
    lease_until BIGINT,
    failure_reason LONGTEXT,
    failure_kind LONGTEXT,
    result LONGBLOB,
    finished_at BIGINT,
    origin_queue_id BIGINT,
    content_type LONGTEXT NOT NULL,
    body LONGBLOB,
    labels LONGTEXT,
    ttl_s DOUBLE,
    deadline BIGINT,
    delay_until BIGINT,
    hitl_spec LONGTEXT,
    source_type LONGTEXT NOT NULL,
    source_id LONGTEXT,
    channel LONGTEXT,
    sender LONGTEXT,
    sender_id LONGTEXT,
    agent LONGTEXT,
    from_agent LONGTEXT,
    files LONGTEXT,
    metadata LONGTEXT,
    -- The ledger's length when the message was archived: all its events lie within.
    archived_seq BIGINT NOT NULL,
    -- Keys hold for the queue that a message was published to.
    key_queue BIGINT AS (IF(idempotency_key IS NULL, NULL, COALESCE(origin_queue_id, queue_id))) STORED,
    is_review BOOLEAN AS (IF(hitl_spec IS NULL, NULL, 1)) STORED,
    UNIQUE KEY archive_by_id (id),
    UNIQUE KEY archive_by_key (key_queue, idempotency_key),
    KEY archive_by_queue (queue_id, finished_at),
    KEY archive_by_correlation (correlation_id)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_nopad_bin;

CREATE TABLE IF NOT EXISTS subscriptions (
    id BIGINT AUTO_INCREMENT PRIMARY KEY,
    queue_id BIGINT NOT NULL,
    name VARCHAR(512) NOT NULL,
    created_at BIGINT NOT NULL,
    UNIQUE (queue_id, name)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_nopad_bin;

CREATE TABLE IF NOT EXISTS records (
    id BIGINT PRIMARY KEY,
    tenant VARCHAR(64) NOT NULL,
    kind VARCHAR(64) NOT NULL,
    `key` VARCHAR(600) NOT NULL,
    data LONGTEXT NOT NULL,
    correlation_id VARCHAR(512),
    message_id VARCHAR(255),
    created_at BIGINT NOT NULL,
    KEY records_by_kind (tenant, kind, `key`),
    KEY records_of_kind (kind)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_nopad_bin;

CREATE TABLE IF NOT EXISTS ledger (
    seq BIGINT PRIMARY KEY,
    time BIGINT NOT NULL,
    type LONGTEXT NOT NULL,
    tenant VARCHAR(64) NOT NULL,
    scope LONGTEXT,
    queue LONGTEXT,
    message_id VARCHAR(255),
    correlation_id VARCHAR(512),
    causation_id LONGTEXT,
    actor LONGTEXT NOT NULL,
    data LONGTEXT NOT NULL,
    hash VARBINARY(32) NOT NULL
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_nopad_bin;

CREATE TABLE IF NOT EXISTS accounts (
    tenant VARCHAR(64) NOT NULL,
    name VARCHAR(350) NOT NULL,
    own_limit BIGINT,
    spent BIGINT NOT NULL,
    peak BIGINT,
    frozen LONGTEXT,
    updated_at BIGINT NOT NULL,
    final BOOLEAN NOT NULL DEFAULT 0,
    PRIMARY KEY (tenant, name),
    KEY accounts_by_age (updated_at)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_nopad_bin;

CREATE TABLE IF NOT EXISTS reservations (
    tenant VARCHAR(64) NOT NULL,
    holder VARCHAR(350) NOT NULL,
    account VARCHAR(350) NOT NULL,
    amount BIGINT NOT NULL,
    since BIGINT NOT NULL,
    expires_at BIGINT NOT NULL,
    PRIMARY KEY (tenant, holder, account),
    KEY reservations_of_account (tenant, account, expires_at),
    KEY reservations_by_age (expires_at)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_nopad_bin;

CREATE TABLE IF NOT EXISTS settlements (
    tenant VARCHAR(64) NOT NULL,
    holder VARCHAR(350) NOT NULL,
    at BIGINT NOT NULL,
    PRIMARY KEY (tenant, holder),
    KEY settlements_by_age (at)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_nopad_bin;

CREATE TABLE IF NOT EXISTS holds (
    id BIGINT AUTO_INCREMENT PRIMARY KEY,
    tenant VARCHAR(64) NOT NULL,
    account VARCHAR(350) NOT NULL,
    message_id VARCHAR(255) NOT NULL UNIQUE,
    claims BIGINT NOT NULL,
    until BIGINT NOT NULL,
    KEY holds_of_account (tenant, account),
    KEY holds_by_age (until)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_nopad_bin;

CREATE TABLE IF NOT EXISTS documents (
    tenant VARCHAR(64) NOT NULL,
    kind VARCHAR(64) NOT NULL,
    `key` VARCHAR(600) NOT NULL,
    version BIGINT NOT NULL,
    data LONGTEXT NOT NULL,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL,
    gone BOOLEAN NOT NULL,
    PRIMARY KEY (tenant, kind, `key`),
    KEY documents_of_kind (kind, gone, updated_at),
    KEY documents_gone (gone, updated_at)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_nopad_bin;

CREATE TABLE IF NOT EXISTS audit (
    seq BIGINT AUTO_INCREMENT PRIMARY KEY,
    id VARCHAR(255) NOT NULL UNIQUE,
    tenant VARCHAR(64) NOT NULL,
    scope_id BIGINT NOT NULL,
    queue_id BIGINT NOT NULL,
    message_id VARCHAR(255),
    correlation_id VARCHAR(512),
    event_type VARCHAR(255) NOT NULL,
    permission LONGTEXT NOT NULL,
    allowed BOOLEAN NOT NULL,
    status BIGINT NOT NULL,
    actor_type LONGTEXT NOT NULL,
    actor_id VARCHAR(512) NOT NULL,
    request_id LONGTEXT NOT NULL,
    details LONGTEXT NOT NULL,
    created_at BIGINT NOT NULL,
    KEY audit_by_scope (tenant, scope_id),
    KEY audit_by_correlation (correlation_id)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_nopad_bin;

CREATE TABLE IF NOT EXISTS chunks (
    stream_id VARCHAR(255) NOT NULL,
    number BIGINT NOT NULL,
    data LONGBLOB NOT NULL,
    PRIMARY KEY (stream_id, number)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_nopad_bin;

CREATE TABLE IF NOT EXISTS standing (
    message_id VARCHAR(255) PRIMARY KEY,
    place LONGTEXT NOT NULL,
    state VARCHAR(32) NOT NULL,
    attempts BIGINT NOT NULL
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_nopad_bin;

CREATE TABLE IF NOT EXISTS standing_accounts (
    tenant VARCHAR(64) NOT NULL,
    name VARCHAR(350) NOT NULL,
    data LONGTEXT NOT NULL,
    PRIMARY KEY (tenant, name)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_nopad_bin;

-- What can be claimed, and what comes due. Messages change their states all the time: an index on that would have
-- claims and completions wait for each other crosswise, and rows of these tables are only ever added and dropped.
CREATE TABLE IF NOT EXISTS ready (
    line BIGINT NOT NULL,
    sort_key BIGINT NOT NULL,
    seq BIGINT NOT NULL,
    PRIMARY KEY (line, sort_key, seq)
) ENGINE=InnoDB;

CREATE TABLE IF NOT EXISTS due (
    due_at BIGINT NOT NULL,
    seq BIGINT NOT NULL,
    PRIMARY KEY (due_at, seq)
) ENGINE=InnoDB;

CREATE OR REPLACE TRIGGER messages_added AFTER INSERT ON messages FOR EACH ROW BEGIN
    IF NEW.state = 'pending' THEN
        INSERT INTO ready VALUES (NEW.line, NEW.sort_key, NEW.seq);
    END IF;
    IF NEW.due_at IS NOT NULL THEN
        INSERT INTO due VALUES (NEW.due_at, NEW.seq);
    END IF;
END;

CREATE OR REPLACE TRIGGER messages_changed AFTER UPDATE ON messages FOR EACH ROW BEGIN
    IF NOT (OLD.state <=> NEW.state AND OLD.line <=> NEW.line AND OLD.sort_key <=> NEW.sort_key) THEN
        IF OLD.state = 'pending' THEN
            DELETE FROM ready WHERE line = OLD.line AND sort_key = OLD.sort_key AND seq = OLD.seq;
        END IF;
        IF NEW.state = 'pending' THEN
            INSERT INTO ready VALUES (NEW.line, NEW.sort_key, NEW.seq);
        END IF;
    END IF;
    IF NOT (OLD.due_at <=> NEW.due_at) THEN
        IF OLD.due_at IS NOT NULL THEN
            DELETE FROM due WHERE due_at = OLD.due_at AND seq = OLD.seq;
        END IF;
        IF NEW.due_at IS NOT NULL THEN
            INSERT INTO due VALUES (NEW.due_at, NEW.seq);
        END IF;
    END IF;
END;

CREATE OR REPLACE TRIGGER messages_dropped AFTER DELETE ON messages FOR EACH ROW BEGIN
    IF OLD.state = 'pending' THEN
        DELETE FROM ready WHERE line = OLD.line AND sort_key = OLD.sort_key AND seq = OLD.seq;
    END IF;
    IF OLD.due_at IS NOT NULL THEN
        DELETE FROM due WHERE due_at = OLD.due_at AND seq = OLD.seq;
    END IF;
END;

-- What may not exist yet is locked by one of these rows, which many names share.
CREATE TABLE IF NOT EXISTS locks (
    kind VARCHAR(16) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    number INT NOT NULL,
    PRIMARY KEY (kind, number)
) ENGINE=InnoDB;

INSERT IGNORE INTO locks SELECT 'keys', seq FROM seq_0_to_127;
INSERT IGNORE INTO locks SELECT 'budgets', seq FROM seq_0_to_127;
INSERT IGNORE INTO locks SELECT 'queues', seq FROM seq_0_to_127;

-- Besides the two places in the chain, 'version' counts the changes of what processes remember.
INSERT IGNORE INTO figures VALUES (0, 0, 'head', 0, REPEAT(x'00', 32), 0, 0),
    (0, 0, 'anchor', 0, REPEAT(x'00', 32), 0, 0), (0, 0, 'version', 0, NULL, NULL, NULL);

CREATE OR REPLACE SQL SECURITY INVOKER VIEW counts AS
SELECT queue_id, subscription_id, name AS state, n FROM figures WHERE queue_id > 0;

CREATE OR REPLACE SQL SECURITY INVOKER VIEW chain AS
SELECT name, n AS seq, hash, time, message_seq FROM figures
WHERE queue_id = 0 AND subscription_id = 0 AND name IN ('head', 'anchor');

CREATE OR REPLACE SQL SECURITY INVOKER VIEW positions AS
SELECT `key` AS name, CAST(JSON_VALUE(data, '$.seq') AS INTEGER) AS seq, JSON_VALUE(data, '$.hold') AS hold, updated_at
FROM documents WHERE tenant = '' AND kind = 'postroom:position';

CREATE SEQUENCE IF NOT EXISTS message_numbers;
CREATE SEQUENCE IF NOT EXISTS record_numbers;
