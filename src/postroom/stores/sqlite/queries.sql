-- What SQLite says otherwise than the shared statements, and what only it does.

-- name: rows
-- Live messages by their ids; nobody else writes, so they need no order to be locked in.
SELECT $ROW FROM messages m WHERE @among(m.id, text);

-- name: keyed
-- Ids of messages by queue and key, a list of pairs: live, archived, and moved from there.
WITH wanted AS MATERIALIZED (SELECT value ->> 0 AS queue, value ->> 1 AS key FROM json_each(?))
SELECT w.queue, w.key, m.id FROM wanted w CROSS JOIN messages m
    ON coalesce(m.origin_queue_id, m.queue_id) = w.queue AND m.idempotency_key = w.key
    AND m.idempotency_key IS NOT NULL
UNION ALL
SELECT w.queue, w.key, m.id FROM wanted w CROSS JOIN archive m
    ON coalesce(m.origin_queue_id, m.queue_id) = w.queue AND m.idempotency_key = w.key
    AND m.idempotency_key IS NOT NULL
UNION ALL
SELECT w.queue, w.key, d.data ->> '$$' FROM wanted w CROSS JOIN documents d
    ON d.tenant = '' AND d.kind = 'postroom:moved_key' AND d.key = w.queue || char(31) || w.key;

-- name: keyed_one
-- The same of one pair.
SELECT ?1, ?2, id FROM messages
    WHERE coalesce(origin_queue_id, queue_id) = ?1 AND idempotency_key = ?2 AND idempotency_key IS NOT NULL
UNION ALL
SELECT ?1, ?2, id FROM archive
    WHERE coalesce(origin_queue_id, queue_id) = ?1 AND idempotency_key = ?2 AND idempotency_key IS NOT NULL
UNION ALL
SELECT ?1, ?2, data ->> '$$' FROM documents
    WHERE tenant = '' AND kind = 'postroom:moved_key' AND key = ?1 || char(31) || ?2;

-- name: row
-- One live message.
SELECT $ROW FROM messages m WHERE m.id = ?;

-- name: ready
-- The next claimable messages of a line.
SELECT $ROW, $CONTENT FROM messages m CROSS JOIN contents c ON c.seq = m.seq
WHERE m.line = ? AND m.state = 'pending' ORDER BY m.sort_key, m.seq LIMIT ?;

-- name: due
-- Messages whose time has come.
SELECT $ROW FROM messages m WHERE m.due_at <= ? AND m.due_at IS NOT NULL ORDER BY m.due_at, m.seq LIMIT ?;

-- name: insert_uniform
-- New rows that differ only in their ids, a JSON list, and are numbered from the given number on.
INSERT INTO messages ($ROW_NAMES) SELECT $UNIFORM_ROW FROM json_each(?$NEXT_MARK) wanted;

-- name: save_claimed_alike
-- Claims of one worker with one lease.
UPDATE messages SET state = 'claimed', due_at = ?, lease_until = ?, updated_at = ?, claimed_at = ?,
visible_at = NULL, attempts = attempts + 1, claims = claims + 1, token = (claims + 1) || '-' || ?, claimed_by = ?
WHERE seq IN (SELECT value FROM json_each(?));

-- name: save_claimed_list
-- Claims of several, as a JSON list of lists.
UPDATE messages SET state = 'claimed', due_at = claim ->> 1, lease_until = claim ->> 1, updated_at = claim ->> 2,
claimed_at = claim ->> 2, visible_at = NULL, attempts = claim ->> 3, claims = claim ->> 4, token = claim ->> 5,
claimed_by = claim ->> 6
FROM (SELECT value AS claim, value ->> 0 AS number FROM json_each(?)) WHERE seq = number;

-- name: save_extended_list
-- New leases, as a JSON list of numbers and moments.
UPDATE messages SET due_at = lease, lease_until = lease, updated_at = ?
FROM (SELECT value ->> 0 AS number, value ->> 1 AS lease FROM json_each(?)) WHERE seq = number;

-- name: save_completed_alike
-- Completions without a result.
UPDATE messages SET state = 'completed', due_at = NULL, lease_until = NULL, updated_at = ?, finished_at = ?,
claimed_by = NULL, claimed_at = NULL, result = NULL WHERE seq IN (SELECT value FROM json_each(?));

-- name: add_figures
-- Move a counter, or the head of the chain, whose number is the count of all events.
INSERT INTO figures VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO UPDATE
SET n = n + excluded.n, hash = excluded.hash, time = excluded.time, message_seq = excluded.message_seq;

-- name: insert_event
-- One numbered, chained event.
INSERT INTO ledger VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?);

-- name: stand_messages
-- What the events of messages that are still there said last, before they are dropped.
INSERT OR REPLACE INTO standing
SELECT last.id, last.place, last.state, last.attempts FROM (
    SELECT l.message_id AS id, l.scope || '/' || l.queue AS place, json_extract(l.data, '$$.state') AS state,
        json_extract(l.data, '$$.attempts') AS attempts, max(l.seq)
    FROM ledger l WHERE l.seq <= ? AND l.message_id IS NOT NULL AND l.type LIKE 'message.%'
    GROUP BY l.message_id
) last
WHERE EXISTS (SELECT 1 FROM messages m WHERE m.id = last.id)
    OR EXISTS (SELECT 1 FROM archive a WHERE a.id = last.id);

-- name: frozen_budgets
-- Few are frozen, so they are found by an index of their own.
SELECT a.name, a.own_limit, a.spent, a.peak, a.frozen, a.updated_at, a.final,
    (SELECT sum(r.amount) FROM reservations r
     WHERE r.tenant = a.tenant AND r.account = a.name AND r.expires_at > ?),
    (SELECT min(r.since) FROM reservations r
     WHERE r.tenant = a.tenant AND r.account = a.name AND r.expires_at > ?)
FROM accounts a INDEXED BY accounts_frozen WHERE a.tenant = ? AND a.name >= ? AND a.name < ? AND a.name <> ?
AND a.frozen IS NOT NULL ORDER BY a.name LIMIT ?;
