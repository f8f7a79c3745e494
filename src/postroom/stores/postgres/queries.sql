-- What PostgreSQL says otherwise than the shared statements, and what only it does.

-- name: begin
-- Version and time of a transaction that has just begun, the time of the ledger's last event, and by what turns are taken.
SELECT v.n, (extract(epoch FROM clock_timestamp()) * 1000000)::bigint,
    greatest(h.time, (SELECT l.time FROM ledger l ORDER BY l.seq DESC LIMIT 1)), s.value FROM figures v, figures h, meta s
WHERE v.queue_id = 0 AND v.subscription_id = 0 AND v.name = 'version'
AND h.queue_id = 0 AND h.subscription_id = 0 AND h.name = 'head' AND s.name = 'sealed_by';

-- name: take_turn
-- From here to the commit events of this transaction are numbered, one transaction at a time.
SELECT pg_advisory_xact_lock('figures'::regclass::oid::int, 1);

-- name: take_turn_by_row
-- The same for processes of the version before.
SELECT n FROM figures WHERE queue_id = 0 AND subscription_id = 0 AND name = 'head' FOR UPDATE;

-- name: lock_head
-- The end of the chain, asked by who has the turn.
SELECT seq, hash, time, pg_current_xact_id()::text FROM chain WHERE name = 'head';

-- name: lock_anchor
SELECT n FROM figures WHERE queue_id = 0 AND subscription_id = 0 AND name = 'anchor' FOR UPDATE;

-- name: set_head
UPDATE figures SET n = ?, hash = ?, time = ? WHERE queue_id = 0 AND subscription_id = 0 AND name = 'head';

-- name: set_version
UPDATE figures SET n = n + 1 WHERE queue_id = 0 AND subscription_id = 0 AND name = 'version';

-- name: add_counts
INSERT INTO figures (queue_id, subscription_id, name, n)
SELECT * FROM unnest(?::bigint[], ?::bigint[], ?::text[], ?::bigint[])
ON CONFLICT (queue_id, subscription_id, name) DO UPDATE SET n = figures.n + excluded.n;

-- name: append_counts
INSERT INTO count_changes (queue_id, subscription_id, name, n)
SELECT * FROM unnest(?::bigint[], ?::bigint[], ?::text[], ?::bigint[]);

-- name: fold_counts
-- Add up what was appended; only who has the turn does.
WITH taken AS (DELETE FROM count_changes WHERE number > (SELECT value::bigint FROM meta WHERE name = 'folded') RETURNING *),
added AS (INSERT INTO figures (queue_id, subscription_id, name, n)
    SELECT queue_id, subscription_id, name, sum(n) FROM taken GROUP BY queue_id, subscription_id, name HAVING sum(n) <> 0
    ON CONFLICT (queue_id, subscription_id, name) DO UPDATE SET n = figures.n + excluded.n)
UPDATE meta SET value = (SELECT max(number) FROM taken)::text WHERE name = 'folded' AND EXISTS (SELECT 1 FROM taken);

-- name: drop_figures
WITH gone AS (SELECT id FROM unnest(?::bigint[]) AS id),
appended AS (DELETE FROM count_changes c USING gone WHERE c.queue_id = gone.id)
DELETE FROM figures f USING gone WHERE f.queue_id = gone.id AND f.queue_id > 0;

-- name: drop_idle_figures
-- The counts of subscribers who left, and of returns to lines that are gone.
WITH returned AS (DELETE FROM line_returns r WHERE NOT EXISTS (SELECT 1 FROM subscriptions s WHERE s.id = -r.line)
    AND NOT EXISTS (SELECT 1 FROM queues q WHERE q.id = r.line))
DELETE FROM figures WHERE subscription_id > 0 AND n = 0
AND NOT EXISTS (SELECT 1 FROM subscriptions s WHERE s.id = subscription_id);

-- name: settle_head
-- The row of the head, which is behind, as the ledger ends.
UPDATE figures f SET n = c.seq, hash = c.hash, time = c.time FROM chain c
WHERE c.name = 'head' AND f.queue_id = 0 AND f.subscription_id = 0 AND f.name = 'head';

-- name: counts
SELECT queue_id, subscription_id, state, n FROM counts WHERE @among(queue_id, integer);

-- name: insert_messages
-- New rows, a list for each column.
INSERT INTO messages ($ROW_NAMES) SELECT * FROM unnest($ROW_ARRAYS);

-- name: insert_contents
INSERT INTO contents (seq, id, queue_id, $CONTENT_NAMES)
SELECT * FROM unnest(?::bigint[], ?::text[], ?::bigint[], $CONTENT_ARRAYS);

-- name: insert_alike
-- New messages that differ in their ids, conversations and bodies only, numbered in their order.
WITH new AS MATERIALIZED (SELECT nextval('message_numbers') AS seq, id, correlation_id, body
    FROM unnest(?::text[], ?::text[], ?::bytea[]) AS t (id, correlation_id, body)),
inserted AS (INSERT INTO messages ($ROW_NAMES) SELECT $ROW_ALIKE FROM new)
INSERT INTO contents (seq, id, queue_id, $CONTENT_NAMES) SELECT new.seq, new.id, ?::bigint, $CONTENT_ALIKE FROM new;

-- name: insert_events
-- Numbered, chained events.
INSERT INTO ledger SELECT * FROM unnest(?::bigint[], $EVENT_ARRAYS, ?::bytea[]);

-- name: insert_events_alike
-- The same of one moment, tenant, queue, cause and actor.
INSERT INTO ledger SELECT new.seq, $EVENT_ALIKE, new.hash
FROM unnest(?::bigint[], ?::text[], ?::text[], ?::text[], ?::text[], ?::bytea[])
AS new (seq, type, message_id, correlation_id, data, hash);

-- name: number_messages
SELECT nextval('message_numbers') FROM generate_series(1, ?);

-- name: number_records
SELECT nextval('record_numbers');

-- name: keyed
-- Messages by queue and key, two lists: live, archived, and moved from there, live or archived.
WITH wanted AS MATERIALIZED (SELECT * FROM unnest(?::bigint[], ?::text[]) AS pair (queue, key)),
moved AS MATERIALIZED (SELECT w.queue, w.key, d.data::jsonb #>> '{}' AS id FROM wanted w JOIN documents d
    ON d.tenant = '' AND d.kind = 'postroom:moved_key' AND d.key = w.queue || chr(31) || w.key)
SELECT false, w.queue, w.key, $ROW, $CONTENT FROM wanted w JOIN messages m
    ON coalesce(m.origin_queue_id, m.queue_id) = w.queue AND m.idempotency_key = w.key
    AND m.idempotency_key IS NOT NULL JOIN contents c ON c.seq = m.seq
UNION ALL
SELECT true, w.queue, w.key, $ROW, $ARCHIVED_CONTENT FROM wanted w JOIN archive m
    ON coalesce(m.origin_queue_id, m.queue_id) = w.queue AND m.idempotency_key = w.key
    AND m.idempotency_key IS NOT NULL
UNION ALL
SELECT false, w.queue, w.key, $ROW, $CONTENT FROM moved w JOIN contents c ON c.id = w.id
    JOIN messages m ON m.seq = c.seq
UNION ALL
SELECT true, w.queue, w.key, $ROW, $ARCHIVED_CONTENT FROM moved w JOIN archive m ON m.id = w.id;

-- name: rows
-- Live messages by their ids, in one order, since they are locked.
SELECT $ROW FROM messages m WHERE m.seq = ANY(ARRAY(SELECT c.seq FROM contents c WHERE @among(c.id, text)))
ORDER BY m.seq @lock;

-- name: stored
SELECT $ROW, $CONTENT FROM contents c JOIN messages m ON m.seq = c.seq WHERE @among(c.id, text);

-- name: rewrite_content
UPDATE contents SET $SET_CONTENT WHERE id = ?;

-- name: rewrite_row
UPDATE messages SET result = ?, failure_reason = ? WHERE seq = (SELECT c.seq FROM contents c WHERE c.id = ?);

-- name: rewrite_key
UPDATE messages SET idempotency_key = ? WHERE seq = (SELECT c.seq FROM contents c WHERE c.id = ?);

-- name: prunable
SELECT a.id, a.queue_id, a.idempotency_key FROM archive a
WHERE @among(a.queue_id, integer) AND a.finished_at <= ? AND a.archived_seq <= ?
AND NOT EXISTS (SELECT 1 FROM contents c JOIN messages m ON m.seq = c.seq WHERE c.id = a.correlation_id
    AND m.state IN ('pending', 'delayed', 'claimed'))
AND NOT EXISTS (SELECT 1 FROM messages m WHERE m.correlation_id = a.correlation_id
    AND m.correlation_id <> m.id AND m.state IN ('pending', 'delayed', 'claimed'))
LIMIT ?;

-- name: has_message
SELECT 1 FROM contents WHERE queue_id = ? LIMIT 1;

-- name: has_message_from
SELECT 1 FROM contents c JOIN messages m ON m.seq = c.seq WHERE c.queue_id = ? AND m.origin_queue_id = ? LIMIT 1;

-- name: waiting_lines
-- Which of these lines have anything to claim: with each the count of returns for which its floor holds, and the floor.
SELECT l.line FROM unnest(?::bigint[], ?::bigint[], ?::bigint[]) AS l (line, returns, floor)
LEFT JOIN line_returns r ON r.line = l.line
WHERE EXISTS (SELECT 1 FROM messages m WHERE m.line = l.line AND m.state = 'pending'
    AND m.sort_key >= CASE WHEN coalesce(r.n, 0) = l.returns THEN l.floor ELSE -9223372036854775808 END);

-- name: ready
-- The next claimable messages of a line that nobody else has in hand, after the count of returns, which is told also when
-- there are none. Of messages that are passed over no content is read.
WITH returned AS MATERIALIZED (SELECT coalesce((SELECT r.n FROM line_returns r WHERE r.line = ?), 0) AS n),
m AS MATERIALIZED (SELECT * FROM messages m WHERE m.line = ? AND m.state = 'pending'
    AND m.sort_key >= (SELECT CASE WHEN n = ? THEN ?::bigint ELSE -9223372036854775808 END FROM returned)
    ORDER BY m.sort_key, m.seq LIMIT ? @skip_locked)
SELECT returned.n, $ROW, $CONTENT FROM returned LEFT JOIN
    (m JOIN LATERAL (SELECT * FROM contents c WHERE c.seq = m.seq OFFSET 0) c ON true) ON true
ORDER BY m.sort_key, m.seq;

-- name: first_pending
-- The first claimable message of a line, whoever has it in hand, not below a floor.
SELECT m.sort_key FROM messages m WHERE m.line = ? AND m.state = 'pending' AND m.sort_key >= ?
ORDER BY m.sort_key, m.seq LIMIT 1;

-- name: oldest_turn
-- Since when the oldest transaction of a room is open: what it writes is not earlier.
SELECT (extract(epoch FROM min(a.xact_start)) * 1000000)::bigint FROM pg_stat_activity a
WHERE a.datname = current_database() AND a.application_name ~ ('(^| )' || ?::text || '[0-9a-f]+$$');

-- name: return_lines
-- Messages of these lines become claimable, elsewhere than at the end.
INSERT INTO line_returns SELECT line, 1 FROM unnest(?::bigint[]) AS line
ON CONFLICT (line) DO UPDATE SET n = line_returns.n + 1 WHERE line_returns.n >= 0;

-- name: unorder_lines
-- Messages of these lines do not come in order.
INSERT INTO line_returns SELECT line, -1 FROM unnest(?::bigint[]) AS line
ON CONFLICT (line) DO UPDATE SET n = -1 WHERE line_returns.n >= 0;

-- name: next_due
SELECT due_at FROM messages WHERE due_at >= ? AND due_at IS NOT NULL ORDER BY due_at LIMIT 1;

-- name: ready_labelled
-- The same where the content says which.
SELECT $ROW, $CONTENT FROM messages m JOIN contents c ON c.seq = m.seq
WHERE m.line = ? AND m.state = 'pending' ORDER BY m.sort_key, m.seq LIMIT ? @skip_locked;

-- name: due
-- Messages whose time has come.
SELECT $ROW FROM messages m WHERE m.due_at >= ? AND m.due_at <= ? AND m.due_at IS NOT NULL
ORDER BY m.due_at, m.seq LIMIT ? @skip_locked;

-- name: save_claimed_alike
-- Claims of one worker with one lease.
UPDATE messages SET state = 'claimed', due_at = ?, lease_until = ?, updated_at = ?, claimed_at = ?,
visible_at = NULL, attempts = attempts + 1, claims = claims + 1, token = (claims + 1) || '-' || ?::text,
claimed_by = ? WHERE seq = ANY(?::bigint[]);

-- name: save_completed_list
-- Completions of claims that are still the messages'.
UPDATE messages SET state = 'completed', due_at = NULL, lease_until = NULL, updated_at = ?, finished_at = ?,
claimed_by = NULL, claimed_at = NULL, result = held.result
FROM unnest(?::bigint[], ?::text[], ?::bytea[]) AS held (number, token, result)
WHERE seq = held.number AND messages.token = held.token AND state = 'claimed';

-- name: save_extended_list
UPDATE messages SET due_at = new.lease, lease_until = new.lease, updated_at = ?
FROM unnest(?::bigint[], ?::bigint[]) AS new (number, lease) WHERE seq = new.number;

-- name: archive_list
-- Copy messages to the archive. Where the ledger will end with this commit is known only then.
INSERT INTO archive ($ROW_NAMES, $CONTENT_NAMES, archived_seq)
SELECT $ROW, $CONTENT, 4611686018427387904 FROM messages m JOIN contents c ON c.seq = m.seq
WHERE m.seq = ANY(?::bigint[]);

-- name: drop_message_list
DELETE FROM messages WHERE seq = ANY(?::bigint[]);

-- name: drop_content_list
DELETE FROM contents WHERE seq = ANY(?::bigint[]);

-- name: set_archived
UPDATE archive SET archived_seq = ? WHERE seq = ANY(?::bigint[]);

-- name: put_facts
-- Each in the place of the version that is expected to be there; what is another is left, and missing in the count.
INSERT INTO documents (tenant, kind, key, version, data, created_at, updated_at, gone)
SELECT tenant, kind, key, version, data, created_at, updated_at, gone FROM
    unnest(?::text[], ?::text[], ?::text[], ?::bigint[], ?::text[], ?::bigint[], ?::bigint[], ?::boolean[])
    AS f (tenant, kind, key, version, data, created_at, updated_at, gone)
ON CONFLICT (tenant, kind, key) DO UPDATE SET version = excluded.version, data = excluded.data,
created_at = excluded.created_at, updated_at = excluded.updated_at, gone = excluded.gone
WHERE documents.version = (SELECT e.version FROM
    unnest(?::text[], ?::text[], ?::text[], ?::bigint[]) AS e (tenant, kind, key, version)
    WHERE e.tenant = documents.tenant AND e.kind = documents.kind AND e.key = documents.key);

-- name: fact_changes
SELECT coalesce(sum(version), 0)::bigint FROM documents WHERE tenant = ? AND kind = ?;

-- name: last_told
-- What the events of messages that are still there said last, before they are dropped.
SELECT DISTINCT ON (l.message_id) l.message_id, l.scope || '/' || l.queue, l.data FROM ledger l
WHERE l.seq <= ? AND l.message_id IS NOT NULL AND l.type LIKE 'message.%'
AND (EXISTS (SELECT 1 FROM contents c WHERE c.id = l.message_id)
    OR EXISTS (SELECT 1 FROM archive a WHERE a.id = l.message_id))
ORDER BY l.message_id, l.seq DESC;

-- name: put_standing
@upsert(standing; message_id; place, state, attempts);

-- name: lock_keys
-- Names of messages that may not be there yet.
SELECT pg_advisory_xact_lock('messages'::regclass::oid::int, number) FROM unnest(?::int[]) AS number;

-- name: lock_budgets
SELECT pg_advisory_xact_lock('accounts'::regclass::oid::int, number) FROM unnest(?::int[]) AS number;

-- name: lock_queues
SELECT pg_advisory_xact_lock('queues'::regclass::oid::int, number) FROM unnest(?::int[]) AS number;

-- name: woken_since
-- On which lines messages are claimable of which something was told, and how many.
SELECT m.line, count(DISTINCT m.seq) FROM ledger l JOIN contents c ON c.id = l.message_id JOIN messages m ON m.seq = c.seq
WHERE l.seq > ? AND m.state = 'pending' GROUP BY m.line;

-- name: head
SELECT seq FROM chain WHERE name = 'head';
