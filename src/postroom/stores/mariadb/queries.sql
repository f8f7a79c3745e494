-- What MariaDB says otherwise than the shared statements, and what only it does. Rows are locked by the primary key or
-- by one index that never changes, and the index is named: a look through the whole table would wait for every row.

-- name: begin
-- Version and time of a transaction that has just begun, and the time of the ledger's last event.
SELECT v.n, CAST(UNIX_TIMESTAMP(SYSDATE(6)) * 1000000 AS INTEGER), h.time FROM figures v, figures h
WHERE v.queue_id = 0 AND v.subscription_id = 0 AND v.name = 'version'
AND h.queue_id = 0 AND h.subscription_id = 0 AND h.name = 'head';

-- name: lock_head
-- From here to the commit events of this transaction are numbered, one transaction at a time.
SELECT n, hash, time FROM figures FORCE INDEX (PRIMARY)
WHERE queue_id = 0 AND subscription_id = 0 AND name = 'head' FOR UPDATE;

-- name: lock_anchor
SELECT n FROM figures FORCE INDEX (PRIMARY)
WHERE queue_id = 0 AND subscription_id = 0 AND name = 'anchor' FOR UPDATE;

-- name: set_head
UPDATE figures SET n = ?, hash = ?, time = ? WHERE queue_id = 0 AND subscription_id = 0 AND name = 'head';

-- name: set_version
UPDATE figures SET n = n + 1 WHERE queue_id = 0 AND subscription_id = 0 AND name = 'version';

-- name: lock_keys
-- Names of messages that may not be there yet.
SELECT number FROM locks FORCE INDEX (PRIMARY) WHERE kind = 'keys' AND number IN ? ORDER BY number FOR UPDATE;

-- name: lock_budgets
SELECT number FROM locks FORCE INDEX (PRIMARY) WHERE kind = 'budgets' AND number IN ? ORDER BY number FOR UPDATE;

-- name: lock_queues
SELECT number FROM locks FORCE INDEX (PRIMARY) WHERE kind = 'queues' AND number IN ? ORDER BY number FOR UPDATE;

-- name: add_count
INSERT INTO figures (queue_id, subscription_id, name, n) VALUES (?, ?, ?, ?)
ON DUPLICATE KEY UPDATE n = n + VALUES(n);

-- name: counts
SELECT queue_id, subscription_id, state, n FROM counts WHERE @among(queue_id, integer);

-- name: insert_event
-- One numbered, chained event.
INSERT INTO ledger VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?);

-- name: number_messages
SELECT NEXTVAL(message_numbers) FROM seq_1_to_1000000 LIMIT ?;

-- name: number_records
SELECT NEXTVAL(record_numbers);

-- name: rows
-- Live messages by their ids.
SELECT $ROW FROM messages m FORCE INDEX (messages_by_id) WHERE @among(m.id, text) ORDER BY m.id @lock;

-- name: keyed
-- Ids of messages by queue and key, a list of pairs: live, archived, and moved from there.
WITH wanted (queue, name) AS (VALUES ?)
SELECT w.queue, w.name, m.id FROM wanted w STRAIGHT_JOIN messages m
    ON m.key_queue = w.queue AND m.idempotency_key = w.name
UNION ALL
SELECT w.queue, w.name, m.id FROM wanted w STRAIGHT_JOIN archive m
    ON m.key_queue = w.queue AND m.idempotency_key = w.name
UNION ALL
SELECT w.queue, w.name, JSON_UNQUOTE(d.data) FROM wanted w STRAIGHT_JOIN documents d
    ON d.tenant = '' AND d.kind = 'postroom:moved_key' AND d.key = CONCAT(w.queue, _utf8mb4 0x1f, w.name);

-- name: waiting_lines
-- Which of these lines have anything to claim.
SELECT DISTINCT line FROM ready WHERE line IN ?;

-- name: ready
-- The next claimable messages of a line that nobody else has in hand.
SELECT $ROW, $CONTENT FROM ready r FORCE INDEX (PRIMARY)
STRAIGHT_JOIN messages m FORCE INDEX (PRIMARY) ON m.seq = r.seq
STRAIGHT_JOIN contents c FORCE INDEX (PRIMARY) ON c.seq = m.seq
WHERE r.line = ? ORDER BY r.sort_key, r.seq LIMIT ? @skip_locked;

-- name: ready_labelled
-- Numbers of the next claimable messages of a line, by what is to be asked of their contents; nothing is locked.
SELECT r.seq FROM ready r FORCE INDEX (PRIMARY) STRAIGHT_JOIN contents c FORCE INDEX (PRIMARY) ON c.seq = r.seq
WHERE r.line = ? ORDER BY r.sort_key, r.seq LIMIT ?;

-- name: take_ready
-- Those of them that are still claimable, and that nobody else has in hand.
SELECT $ROW, $CONTENT FROM messages m FORCE INDEX (PRIMARY)
STRAIGHT_JOIN contents c FORCE INDEX (PRIMARY) ON c.seq = m.seq
WHERE m.seq IN ? AND m.line = ? AND m.state = 'pending' ORDER BY m.sort_key, m.seq @skip_locked;

-- name: due
-- Messages whose time has come.
SELECT $ROW FROM due d FORCE INDEX (PRIMARY) STRAIGHT_JOIN messages m FORCE INDEX (PRIMARY) ON m.seq = d.seq
WHERE d.due_at <= ? ORDER BY d.due_at, d.seq LIMIT ? @skip_locked;

-- name: next_due
SELECT due_at FROM due ORDER BY due_at LIMIT 1;

-- name: lock_numbers
-- Rows that were found, to be asked again when nobody else can change them.
SELECT seq FROM messages FORCE INDEX (PRIMARY) WHERE seq IN ? ORDER BY seq FOR UPDATE;

-- name: save_claimed_alike
-- Claims of one worker with one lease. Every column is computed from what was there before (SIMULTANEOUS_ASSIGNMENT).
UPDATE messages FORCE INDEX (PRIMARY) SET state = 'claimed', due_at = ?, lease_until = ?, updated_at = ?, claimed_at = ?,
visible_at = NULL, attempts = attempts + 1, claims = claims + 1, token = CONCAT(claims + 1, '-', ?),
claimed_by = ? WHERE seq IN ?;

-- name: save_completed_alike
-- Completions, with one result or none, of claims that are still the messages'.
UPDATE messages FORCE INDEX (PRIMARY) SET state = 'completed', due_at = NULL, lease_until = NULL, updated_at = ?,
finished_at = ?, claimed_by = NULL, claimed_at = NULL, result = ?
WHERE seq IN ? AND (seq, token) IN (?) AND state = 'claimed';

-- name: save_extended
UPDATE messages SET due_at = ?, lease_until = ?, updated_at = ? WHERE seq = ?;

-- name: archive_list
-- Copy messages to the archive. Where the ledger will end with this commit is known only then.
INSERT INTO archive ($ROW_NAMES, $CONTENT_NAMES, archived_seq)
SELECT $ROW, $CONTENT, 4611686018427387904 FROM messages m FORCE INDEX (PRIMARY)
STRAIGHT_JOIN contents c FORCE INDEX (PRIMARY) ON c.seq = m.seq WHERE m.seq IN ?;

-- name: drop_message_list
DELETE FROM messages WHERE seq IN ?;

-- name: drop_content_list
DELETE FROM contents WHERE seq IN ?;

-- name: set_archived
UPDATE archive FORCE INDEX (PRIMARY) SET archived_seq = ? WHERE seq IN ?;

-- name: insert_fact
INSERT INTO documents (tenant, kind, key, version, data, created_at, updated_at, gone) VALUES (?, ?, ?, ?, ?, ?, ?, ?);

-- name: replace_fact
-- In the place of the version that is expected to be there.
UPDATE documents SET version = ?, data = ?, created_at = ?, updated_at = ?, gone = ?
WHERE tenant = ? AND kind = ? AND key = ? AND version = ?;

-- name: facts
-- Facts of a tenant and a kind by their keys.
SELECT tenant, kind, key, version, data, created_at, updated_at, gone FROM documents FORCE INDEX (PRIMARY)
WHERE tenant = ? AND kind = ? AND @among(key, text) ORDER BY key @lock;

-- name: fact
-- One fact by its key.
SELECT tenant, kind, key, version, data, created_at, updated_at, gone FROM documents FORCE INDEX (PRIMARY)
WHERE tenant = ? AND kind = ? AND key = ? @lock;

-- name: scan
-- Facts that are there, by key.
SELECT tenant, kind, key, version, data, created_at, updated_at, gone FROM documents FORCE INDEX (PRIMARY)
WHERE tenant = ? AND kind = ? AND key >= ? AND key < ? AND key <> ? AND gone = 0 ORDER BY key LIMIT ?;

-- name: scan_by_age
-- Facts of a kind that nobody changed since, oldest first.
SELECT d.tenant, d.kind, d.key, d.version, d.data, d.created_at, d.updated_at, d.gone
FROM documents d FORCE INDEX (documents_of_kind), (SELECT ? AS kind, ? AS moment, ? AS tenant, ? AS name) a
WHERE d.kind = a.kind AND d.gone = 0 AND d.updated_at >= a.moment
AND (d.updated_at > a.moment OR d.tenant > a.tenant OR (d.tenant = a.tenant AND d.key > a.name))
AND d.updated_at < ? ORDER BY d.updated_at, d.tenant, d.key LIMIT ?;

-- name: scan_gone
-- Facts that are gone since before.
SELECT tenant, kind, key, version, data, created_at, updated_at, gone FROM documents
WHERE gone = 1 AND updated_at < ? LIMIT ?;

-- name: fact_changes
SELECT CAST(coalesce(sum(version), 0) AS INTEGER) FROM documents WHERE tenant = ? AND kind = ?;

-- name: last_told
-- What the events of messages that are still there said last, before they are dropped.
SELECT l.message_id, CONCAT(l.scope, '/', l.queue), l.data FROM (
    SELECT max(seq) AS seq FROM ledger
    WHERE seq <= ? AND message_id IS NOT NULL AND type LIKE 'message.%' GROUP BY message_id
) last STRAIGHT_JOIN ledger l ON l.seq = last.seq
WHERE EXISTS (SELECT 1 FROM messages m WHERE m.id = l.message_id)
    OR EXISTS (SELECT 1 FROM archive a WHERE a.id = l.message_id);

-- name: put_standing
@upsert(standing; message_id; place, state, attempts);

-- name: woken_since
-- On which lines messages are claimable of which something was told, and how many.
SELECT m.line, count(DISTINCT m.id) FROM ledger l STRAIGHT_JOIN messages m ON m.id = l.message_id
WHERE l.seq > ? AND m.state = 'pending' GROUP BY m.line;

-- name: head
SELECT n FROM figures WHERE queue_id = 0 AND subscription_id = 0 AND name = 'head';
