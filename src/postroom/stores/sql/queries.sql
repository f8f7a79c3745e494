-- Statements that are the same in every SQL store, by name; filters of lists are built in `filters.py`.

-- name: insert_message
-- A new row.
INSERT INTO messages ($ROW_NAMES) VALUES ($ROW_MARKS);

-- name: insert_content
-- Its content, which rarely changes.
INSERT INTO contents (seq, $CONTENT_NAMES) VALUES (?, $CONTENT_MARKS);

-- name: save_claimed
-- Write back what a claim changes.
UPDATE messages SET state = 'claimed', due_at = ?, lease_until = ?, updated_at = ?, claimed_at = ?,
visible_at = NULL, attempts = ?, claims = ?, token = ?, claimed_by = ? WHERE seq = ?;

-- name: save_completed
-- Write back what a completion changes; the token stays, so that a repeated one is recognised.
UPDATE messages SET state = 'completed', due_at = NULL, lease_until = NULL, updated_at = ?, finished_at = ?,
claimed_by = NULL, claimed_at = NULL, result = ? WHERE seq = ?;

-- name: save_changed
-- Write back what changes while a message stays in its queue.
UPDATE messages SET $SET_MUTABLE WHERE seq = ?;

-- name: save_moved
-- The same when it moves to another queue.
UPDATE messages SET $SET_MOVED WHERE seq = ?;

-- name: rows
-- Live messages by their ids.
SELECT $ROW FROM messages m WHERE @among(m.id, text) ORDER BY m.id @lock;

-- name: stored
-- Live messages with their contents.
SELECT $ROW, $CONTENT FROM messages m JOIN contents c ON c.seq = m.seq WHERE @among(m.id, text);

-- name: archived
-- Archived messages with their contents.
SELECT $ROW, $ARCHIVED_CONTENT FROM archive m WHERE @among(m.id, text);

-- name: unfinished
-- Broadcast messages that have open deliveries.
SELECT DISTINCT m.parent_id FROM messages m WHERE @among(m.parent_id, text) AND m.parent_id IS NOT NULL
AND m.subscription_id IS NOT NULL AND m.state IN ('pending', 'delayed', 'claimed');

-- name: next_due
-- When the next one comes due.
SELECT due_at FROM messages WHERE due_at IS NOT NULL ORDER BY due_at LIMIT 1;

-- name: archive
-- Copy a message to the archive.
INSERT INTO archive ($ROW_NAMES, $CONTENT_NAMES, archived_seq)
SELECT $ROW, $CONTENT, ? FROM messages m JOIN contents c ON c.seq = m.seq WHERE m.seq = ?;

-- name: drop_message
-- Take it out of the live messages.
DELETE FROM messages WHERE seq = ?;

-- name: drop_content
-- And its content.
DELETE FROM contents WHERE seq = ?;

-- name: rewrite_content
-- Other content in the place of a live message's.
UPDATE contents SET $SET_CONTENT WHERE seq = (SELECT seq FROM messages WHERE id = ?);

-- name: rewrite_row
-- And what else it said.
UPDATE messages SET result = ?, failure_reason = ? WHERE id = ?;

-- name: rewrite_archived
-- The same of an archived one.
UPDATE archive SET $SET_CONTENT, result = ?, failure_reason = ? WHERE id = ?;

-- name: rewrite_key
-- And the key it was published with, where that told of somebody.
UPDATE messages SET idempotency_key = ? WHERE id = ?;

-- name: rewrite_archived_key
-- The same of an archived one.
UPDATE archive SET idempotency_key = ? WHERE id = ?;

-- name: prunable
-- Archived messages of a queue that may go, since nothing of their conversations is open.
SELECT a.id, a.queue_id, a.idempotency_key FROM archive a
WHERE @among(a.queue_id, integer) AND a.finished_at <= ? AND a.archived_seq <= ?
AND NOT EXISTS (SELECT 1 FROM messages m WHERE m.id = a.correlation_id
    AND m.state IN ('pending', 'delayed', 'claimed'))
AND NOT EXISTS (SELECT 1 FROM messages m WHERE m.correlation_id = a.correlation_id
    AND m.correlation_id <> m.id AND m.state IN ('pending', 'delayed', 'claimed'))
LIMIT ?;

-- name: prune_archive
-- Drop archived messages.
DELETE FROM archive WHERE @among(id, text);

-- name: prune_standing
-- And how they stood at the anchor.
DELETE FROM standing WHERE @among(message_id, text);

-- name: counts
-- The counts of queues and their subscribers.
SELECT queue_id, subscription_id, state, n FROM counts WHERE @among(queue_id, integer) @lock;

-- name: events
-- Events after a position, in order.
SELECT * FROM ledger WHERE seq > ? ORDER BY seq LIMIT ?;

-- name: event_hash
-- The hash of one event.
SELECT hash FROM ledger WHERE seq = ?;

-- name: events_about
-- Events of a conversation among those between two numbers.
SELECT * FROM ledger WHERE seq >= ? AND seq < ? AND correlation_id = ? AND tenant = ? ORDER BY seq LIMIT ?;

-- name: chain
-- Head and anchor.
SELECT name, seq, hash, time, message_seq FROM chain;

-- name: last_prunable_event
-- The newest event of the first so many that is old enough to go.
SELECT seq, hash, time FROM ledger WHERE seq <= ? AND time < ? ORDER BY seq DESC LIMIT 1;

-- name: prunable_budget_events
-- What is told of budgets up to an event.
SELECT * FROM ledger WHERE seq <= ? AND (type LIKE 'account.%' OR type = 'accounts.pruned') ORDER BY seq;

-- name: prune_ledger
-- Drop the oldest events.
DELETE FROM ledger WHERE seq <= ?;

-- name: set_anchor
-- Where the kept part of the ledger begins.
UPDATE figures SET n = ?, hash = ?, time = ? WHERE queue_id = 0 AND subscription_id = 0 AND name = 'anchor';

-- name: standing
-- How messages stood at the anchor.
SELECT message_id, place, state, attempts FROM standing;

-- name: standing_budgets
-- How budgets stood at the anchor.
SELECT tenant, name, data FROM standing_accounts;

-- name: put_standing_budget
@upsert(standing_accounts; tenant, name; data);

-- name: drop_standing_budget
DELETE FROM standing_accounts WHERE tenant = ? AND name = ?;

-- name: all_states
-- The present state of every message.
SELECT m.id, s.slug, q.slug, m.state, m.attempts FROM messages m
JOIN queues q ON q.id = m.queue_id JOIN scopes s ON s.id = q.scope_id
UNION ALL
SELECT m.id, s.slug, q.slug, m.state, m.attempts FROM archive m
JOIN queues q ON q.id = m.queue_id JOIN scopes s ON s.id = q.scope_id;

-- name: update_scope
UPDATE scopes SET slug = ?, display_name = ?, description = ?, state = ?, updated_at = ? WHERE id = ?;

-- name: update_queue
UPDATE queues SET state = ?, settings = ?, updated_at = ?, deleted_at = ? WHERE id = ?;

-- name: deleted_queues
-- Queues that were deleted, with the dead letters of their scopes, where messages of theirs may lie.
SELECT q.id, (SELECT h.id FROM queues h WHERE h.scope_id = q.scope_id AND h.slug = '_dead_letter' LIMIT 1)
FROM queues q WHERE q.deleted_at IS NOT NULL AND q.id > ? ORDER BY q.id LIMIT ?;

-- name: has_message
-- Whether a message lies in a queue.
SELECT 1 FROM messages WHERE queue_id = ? LIMIT 1;

-- name: has_archived
SELECT 1 FROM archive WHERE queue_id = ? LIMIT 1;

-- name: has_message_from
-- Whether a dead letter came from a queue.
SELECT 1 FROM messages WHERE queue_id = ? AND origin_queue_id = ? LIMIT 1;

-- name: has_archived_from
SELECT 1 FROM archive WHERE queue_id = ? AND origin_queue_id = ? LIMIT 1;

-- name: drop_queues
DELETE FROM queues WHERE @among(id, integer);

-- name: drop_figures
-- The counts of queues that are forgotten.
DELETE FROM figures WHERE queue_id > 0 AND @among(queue_id, integer);

-- name: drop_idle_figures
-- The counts of subscribers who left.
DELETE FROM figures WHERE subscription_id > 0 AND n = 0
AND NOT EXISTS (SELECT 1 FROM subscriptions s WHERE s.id = subscription_id);

-- name: drop_scopes
-- Deleted scopes without queues; not the newest of all, since its number must not be given again.
DELETE FROM scopes WHERE @among(id, integer) AND slug LIKE '%#%' AND id < (SELECT max(id) FROM scopes)
AND NOT EXISTS (SELECT 1 FROM queues q WHERE q.scope_id = scopes.id);

-- name: subscriptions_of
SELECT b.id, b.queue_id, s.slug, q.slug, b.name, b.created_at FROM subscriptions b
JOIN queues q ON q.id = b.queue_id JOIN scopes s ON s.id = q.scope_id
WHERE @among(b.queue_id, integer);

-- name: subscriptions_by_id
SELECT b.id, b.queue_id, s.slug, q.slug, b.name, b.created_at FROM subscriptions b
JOIN queues q ON q.id = b.queue_id JOIN scopes s ON s.id = q.scope_id
WHERE @among(b.id, integer);

-- name: drop_subscription
DELETE FROM subscriptions WHERE id = ?;

-- name: fact
-- One fact by its key.
SELECT tenant, kind, key, version, data, created_at, updated_at, gone FROM documents
WHERE tenant = ? AND kind = ? AND key = ? @lock;

-- name: facts
-- Facts of a tenant and a kind by their keys.
SELECT tenant, kind, key, version, data, created_at, updated_at, gone FROM documents
WHERE tenant = ? AND kind = ? AND @among(key, text) @lock;

-- name: scan
-- Facts that are there, by key. Bounded below once only: of two bounds one would be walked past.
SELECT tenant, kind, key, version, data, created_at, updated_at, gone FROM documents
WHERE tenant = ? AND kind = ? AND key >= ? AND key < ? AND key <> ? AND NOT gone ORDER BY key LIMIT ?;

-- name: scan_by_age
-- Facts of a kind that nobody changed since, oldest first.
SELECT tenant, kind, key, version, data, created_at, updated_at, gone FROM documents
WHERE kind = ? AND NOT gone AND (updated_at, tenant, key) > (?, ?, ?) AND updated_at < ?
ORDER BY updated_at, tenant, key LIMIT ?;

-- name: scan_gone
-- Facts that are gone since before.
SELECT tenant, kind, key, version, data, created_at, updated_at, gone FROM documents
WHERE gone AND updated_at < ? LIMIT ?;

-- name: fact_changes
-- How often facts of a kind were changed.
SELECT coalesce(sum(version), 0) FROM documents WHERE tenant = ? AND kind = ?;

-- name: put_fact
@upsert(documents; tenant, kind, key; version, data, created_at, updated_at, gone);

-- name: drop_fact
DELETE FROM documents WHERE tenant = ? AND kind = ? AND key = ?;

-- name: insert_record
INSERT INTO records (id, tenant, kind, key, data, correlation_id, message_id, created_at)
VALUES (?, ?, ?, ?, ?, ?, ?, ?);

-- name: newest_record
SELECT coalesce(max(id), 0) FROM records;

-- name: superseded
-- Records for whose key there is a newer one.
SELECT r.id FROM records r WHERE @among(r.id, integer) AND EXISTS (SELECT 1 FROM records n
    WHERE n.tenant = r.tenant AND n.kind = r.kind AND n.key = r.key AND n.id > r.id);

-- name: drop_records
-- Not the newest of all: its number must not be given again.
DELETE FROM records WHERE @among(id, integer) AND id < (SELECT max(id) FROM records);

-- name: forget_records
UPDATE records SET data = '{}' WHERE tenant = ? AND @among(message_id, text);

-- name: insert_audit
INSERT INTO audit ($AUDIT_NAMES) VALUES ($AUDIT_MARKS);

-- name: prune_audit
-- The first so many only: entries come in the order of time, so when these are young, all are.
DELETE FROM audit WHERE seq IN
    (SELECT seq FROM (SELECT seq, created_at FROM audit ORDER BY seq LIMIT ?) oldest WHERE created_at < ?);

-- name: forget_audit
UPDATE audit SET details = '{}' WHERE tenant = ? AND details <> '{}' AND @among(message_id, text);

-- name: chunks
SELECT number, data FROM chunks WHERE stream_id = ? AND number > ? ORDER BY number LIMIT ?;

-- name: insert_chunk
INSERT INTO chunks (stream_id, number, data) VALUES (?, ?, ?);

-- name: drop_chunks
DELETE FROM chunks WHERE @among(stream_id, text);

-- name: budgets_by_name
-- Budgets with what is reserved of them at a moment.
SELECT a.name, a.own_limit, a.spent, a.peak, a.frozen, a.updated_at, a.final,
    (SELECT sum(r.amount) FROM reservations r
     WHERE r.tenant = a.tenant AND r.account = a.name AND r.expires_at > ?),
    (SELECT min(r.since) FROM reservations r
     WHERE r.tenant = a.tenant AND r.account = a.name AND r.expires_at > ?)
FROM accounts a WHERE a.tenant = ? AND @among(a.name, text);

-- name: budgets
-- The same of those whose names begin so.
SELECT a.name, a.own_limit, a.spent, a.peak, a.frozen, a.updated_at, a.final,
    (SELECT sum(r.amount) FROM reservations r
     WHERE r.tenant = a.tenant AND r.account = a.name AND r.expires_at > ?),
    (SELECT min(r.since) FROM reservations r
     WHERE r.tenant = a.tenant AND r.account = a.name AND r.expires_at > ?)
FROM accounts a WHERE a.tenant = ? AND a.name >= ? AND a.name < ? AND a.name <> ? ORDER BY a.name LIMIT ?;

-- name: frozen_budgets
-- The same of those that are frozen.
SELECT a.name, a.own_limit, a.spent, a.peak, a.frozen, a.updated_at, a.final,
    (SELECT sum(r.amount) FROM reservations r
     WHERE r.tenant = a.tenant AND r.account = a.name AND r.expires_at > ?),
    (SELECT min(r.since) FROM reservations r
     WHERE r.tenant = a.tenant AND r.account = a.name AND r.expires_at > ?)
FROM accounts a WHERE a.tenant = ? AND a.name >= ? AND a.name < ? AND a.name <> ?
AND a.frozen IS NOT NULL ORDER BY a.name LIMIT ?;

-- name: put_budget
@upsert(accounts; tenant, name; own_limit, spent, peak, frozen, updated_at, final);

-- name: reservations
-- What a holder has reserved; a row without a budget says that it is settled.
SELECT holder, account, amount, since, expires_at FROM reservations WHERE tenant = ? AND holder = ?
UNION ALL
SELECT holder, NULL, 0, at, at FROM settlements WHERE tenant = ? AND holder = ?;

-- name: reservations_like
-- What holders have reserved whose names begin so.
SELECT holder, account, amount, since, expires_at FROM reservations
WHERE tenant = ? AND holder >= ? AND holder < ?;

-- name: put_reservation
@upsert(reservations; tenant, holder, account; amount, since, expires_at);

-- name: drop_reservations
DELETE FROM reservations WHERE tenant = ? AND holder = ?;

-- name: put_settlement
INSERT INTO settlements (tenant, holder, at) VALUES (?, ?, ?);

-- name: holds
SELECT message_id, claims, until FROM holds WHERE tenant = ? AND account = ? ORDER BY id;

-- name: drop_hold
-- A message waits for one budget at a time.
DELETE FROM holds WHERE message_id = ?;

-- name: put_hold
INSERT INTO holds (tenant, account, message_id, claims, until) VALUES (?, ?, ?, ?, ?);

-- name: drop_holds
DELETE FROM holds WHERE tenant = ? AND account = ?;

-- name: prune_settlements
DELETE FROM settlements WHERE (tenant, holder) IN
    (SELECT tenant, holder FROM (SELECT tenant, holder FROM settlements WHERE at < ? LIMIT ?) old);

-- name: prune_reservations
DELETE FROM reservations WHERE (tenant, holder, account) IN
    (SELECT tenant, holder, account FROM
        (SELECT tenant, holder, account FROM reservations WHERE expires_at < ? LIMIT ?) old);

-- name: prune_holds
DELETE FROM holds WHERE id IN (SELECT id FROM (SELECT id FROM holds WHERE until < ? LIMIT ?) old);

-- name: unused_budgets
SELECT tenant, name FROM accounts a WHERE updated_at < ? AND (frozen IS NULL OR final)
AND NOT EXISTS (SELECT 1 FROM reservations r WHERE r.tenant = a.tenant AND r.account = a.name)
ORDER BY updated_at LIMIT ?;

-- name: drop_budget
DELETE FROM accounts WHERE tenant = ? AND name = ?;

-- name: retime_budget
-- The event that tells of a change may be later than the change was begun; a fold takes its time.
UPDATE accounts SET updated_at = ? WHERE tenant = ? AND name = ? AND updated_at = ?;
