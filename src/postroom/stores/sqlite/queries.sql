-- Every statement of the hot paths, by name. Words after a dollar sign stand for column lists.

-- name: insert_message
-- A new row.
INSERT INTO messages ($ROW_NAMES) VALUES ($ROW_MARKS);

-- name: insert_content
-- Its content, which never changes.
INSERT INTO contents (seq, $CONTENT_NAMES) VALUES (?, $CONTENT_MARKS);

-- name: insert_alike
-- New rows that differ only in their ids, a JSON list, and are numbered from the given number on.
INSERT INTO messages ($ROW_NAMES) SELECT $ROW_ALIKE FROM json_each(?$ROW_NEXT) wanted;

-- name: save_claimed
-- Write back what a claim changes.
UPDATE messages SET state = 'claimed', due_at = ?1, lease_until = ?1, updated_at = ?2, claimed_at = ?2,
visible_at = NULL, attempts = ?3, claims = ?4, token = ?5, claimed_by = ?6 WHERE seq = ?7;

-- name: save_completed
-- Write back what a completion changes; the token stays, so that a repeated one is recognised.
UPDATE messages SET state = 'completed', due_at = NULL, lease_until = NULL, updated_at = ?1, finished_at = ?1,
claimed_by = NULL, claimed_at = NULL, result = ?2 WHERE seq = ?3;

-- name: save
-- Write back what changes while a message stays in its queue.
UPDATE messages SET $MUTABLE WHERE seq = ?;

-- name: relocate
-- The same when it moves to another queue.
UPDATE messages SET $MUTABLE, queue_id = ?, line = ?, origin_queue_id = ? WHERE seq = ?;

-- name: row
-- One live message by its id.
SELECT $ROW FROM messages m WHERE m.id = ?;

-- name: rows
-- Several live messages by their ids.
SELECT $ROW FROM json_each(?) wanted CROSS JOIN messages m ON m.id = wanted.value;

-- name: content
-- The content of one live message.
SELECT $CONTENT FROM contents c WHERE c.seq = ?;

-- name: stored
-- One live message with its content.
SELECT $ROW, $CONTENT FROM messages m CROSS JOIN contents c ON c.seq = m.seq WHERE m.id = ?;

-- name: archived
-- One archived message with its content.
SELECT $ROW, $ARCHIVED_CONTENT FROM archive m WHERE m.id = ?;

-- name: by_key
-- The live message that was published to a queue with a key.
SELECT $ROW, $CONTENT FROM messages m CROSS JOIN contents c ON c.seq = m.seq
WHERE coalesce(m.origin_queue_id, m.queue_id) = ? AND m.idempotency_key = ? AND m.idempotency_key IS NOT NULL;

-- name: archived_by_key
-- The archived message that was published to a queue with a key.
SELECT $ROW, $ARCHIVED_CONTENT FROM archive m
WHERE coalesce(m.origin_queue_id, m.queue_id) = ? AND m.idempotency_key = ? AND m.idempotency_key IS NOT NULL;

-- name: pending
-- The next claimable messages of a line.
SELECT $ROW, $CONTENT FROM messages m CROSS JOIN contents c ON c.seq = m.seq
WHERE m.line = ? AND m.state = 'pending' ORDER BY m.sort_key, m.seq LIMIT ?;

-- name: due
-- Messages whose time has come.
SELECT $ROW FROM messages m WHERE m.due_at <= ? AND m.due_at IS NOT NULL ORDER BY m.due_at, m.seq LIMIT ?;

-- name: claimed_by
-- What a holder has claimed, and those whose names begin with it: all claims have a time that comes.
SELECT $ROW FROM messages m WHERE m.due_at > 0 AND m.due_at IS NOT NULL AND m.state = 'claimed'
AND (m.claimed_by = ?1 OR substr(m.claimed_by, 1, length(?1) + 1) = ?1 || '/') ORDER BY m.due_at LIMIT ?2;

-- name: next_due
-- When the next one comes due.
SELECT due_at FROM messages WHERE due_at IS NOT NULL ORDER BY due_at LIMIT 1;

-- name: open_rows
-- Open messages of a queue, in the order of entry.
SELECT $ROW FROM messages m WHERE m.queue_id = ? AND m.seq > ?
AND m.state IN ('pending', 'delayed', 'claimed') ORDER BY m.seq LIMIT ?;

-- name: rows_in_state
-- Messages of one state in a queue.
SELECT $ROW FROM messages m WHERE m.queue_id = ? AND m.state = ? ORDER BY m.seq LIMIT ?;

-- name: originals
-- Broadcast messages of a queue, without their deliveries.
SELECT $ROW, $CONTENT FROM messages m CROSS JOIN contents c ON c.seq = m.seq
WHERE m.queue_id = ? AND m.subscription_id IS NULL AND m.state IN ('pending', 'completed') ORDER BY m.seq;

-- name: deliveries
-- Deliveries of a broadcast message that are still open.
SELECT $ROW FROM messages m WHERE m.parent_id = ? AND m.parent_id IS NOT NULL AND m.subscription_id IS NOT NULL
AND m.state IN ('pending', 'delayed', 'claimed') ORDER BY m.seq;

-- name: open_deliveries
-- How many those are.
SELECT count(*) FROM messages m WHERE m.parent_id = ? AND m.parent_id IS NOT NULL
AND m.subscription_id IS NOT NULL AND m.state IN ('pending', 'delayed', 'claimed');

-- name: on_line
-- Waiting messages of one subscriber.
SELECT $ROW FROM messages m
WHERE m.queue_id = ? AND m.line = ? AND m.state IN ('pending', 'delayed') ORDER BY m.seq;

-- name: ended_in
-- Terminal messages in a queue.
SELECT $ROW FROM messages m
WHERE m.queue_id = ? AND m.state IN ('completed', 'dead', 'expired', 'cancelled') ORDER BY m.seq LIMIT ?;

-- name: dead_from
-- Dead letters of a scope's dead-letter queue that came from a queue.
SELECT count(*) FROM messages m WHERE m.queue_id = ? AND m.origin_queue_id = ? AND m.state = 'dead';

-- name: aging
-- Pending messages of one queue that have waited long and can still rise.
SELECT $ROW FROM messages m INDEXED BY messages_by_queue
WHERE m.queue_id = ? AND m.seq > ? AND m.state = 'pending' AND m.created_at <= ? AND m.priority_score < ? ORDER BY m.seq LIMIT ?;

-- name: finished
-- Messages that ended a while ago; dead letters stay.
SELECT $ROW FROM messages m
WHERE m.finished_at <= ? AND m.finished_at IS NOT NULL AND m.state <> 'dead' ORDER BY m.finished_at LIMIT ?;

-- name: dead_before
-- Dead letters of one dead-letter queue that ended long ago.
SELECT $ROW FROM messages m WHERE m.queue_id = ? AND m.state = 'dead' AND m.finished_at <= ? ORDER BY m.seq LIMIT ?;

-- name: archive
-- Copy a message to the archive.
INSERT INTO archive ($ROW_NAMES, $CONTENT_NAMES, archived_seq)
SELECT $ROW, $CONTENT, ? FROM messages m CROSS JOIN contents c ON c.seq = m.seq WHERE m.seq = ?;

-- name: drop_message
-- Take it out of the live messages.
DELETE FROM messages WHERE seq = ?;

-- name: drop_content
-- And its content.
DELETE FROM contents WHERE seq = ?;

-- name: prunable
-- Archived messages of a queue that may go, since nothing of their conversations is open.
SELECT a.id FROM archive a WHERE a.queue_id = ? AND a.finished_at <= ? AND a.archived_seq <= ?
AND NOT EXISTS (SELECT 1 FROM messages m WHERE m.id = a.correlation_id
    AND m.state IN ('pending', 'delayed', 'claimed'))
AND NOT EXISTS (SELECT 1 FROM messages m WHERE m.correlation_id = a.correlation_id
    AND m.correlation_id <> m.id AND m.state IN ('pending', 'delayed', 'claimed'))
ORDER BY a.finished_at LIMIT ?;

-- name: prune_archive
-- Drop one archived message.
DELETE FROM archive WHERE id = ?;

-- name: peek_count
-- The counts of one queue or subscriber.
SELECT state, n FROM counts WHERE queue_id = ? AND subscription_id = ?;

-- name: add_figure
-- Move a counter; or the head of the chain, whose number is the count of all events.
INSERT INTO figures VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO UPDATE
SET n = n + excluded.n, hash = excluded.hash, time = excluded.time, message_seq = excluded.message_seq;

-- name: insert_event
-- One numbered, chained event.
INSERT INTO ledger VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?);

-- name: events
-- Events after a position, in order.
SELECT * FROM ledger WHERE seq > ? ORDER BY seq LIMIT ?;

-- name: event_hash
-- The hash of one event.
SELECT hash FROM ledger WHERE seq = ?;

-- name: chain
-- Head or anchor.
SELECT seq, hash, time, message_seq FROM chain WHERE name = ?;

-- name: last_prunable_event
-- The newest event of the first so many that is old enough to go.
SELECT seq, hash, time FROM ledger WHERE seq <= ? AND time < ? ORDER BY seq DESC LIMIT 1;

-- name: prune_ledger
-- Drop the oldest events.
DELETE FROM ledger WHERE seq <= ?;

-- name: set_anchor
-- Where the kept part of the ledger begins.
UPDATE figures SET n = ?, hash = ?, time = ? WHERE queue_id = 0 AND subscription_id = 0 AND name = 'anchor';
