-- What the room itself keeps in mind lies among the documents, under kinds of its own and of no tenant.
INSERT INTO documents (tenant, kind, key, version, data, created_at, updated_at, gone)
SELECT '', 'postroom:schema', scope_id || '/' || name || '@' || printf('%010d', version), 1, document,
    created_at, created_at, 0 FROM schemas;
INSERT INTO documents (tenant, kind, key, version, data, created_at, updated_at, gone)
SELECT '', 'postroom:position', name, 1, json_object('seq', seq, 'hold', json(iif(hold, 'true', 'false'))),
    updated_at, updated_at, 0 FROM positions;
INSERT INTO documents (tenant, kind, key, version, data, created_at, updated_at, gone)
SELECT '', 'postroom:leader', name, 1, json_object('holder', holder, 'until', until), until, until, 0 FROM leaders;
INSERT INTO documents (tenant, kind, key, version, data, created_at, updated_at, gone)
SELECT '', 'postroom:memo', name, 1, value, 0, 0, 0 FROM memos WHERE json_valid(value);
INSERT INTO documents (tenant, kind, key, version, data, created_at, updated_at, gone)
SELECT '', 'postroom:run', name, 1, json_object('name', name, 'last_run_at', last_run_at, 'last_status', last_status,
    'last_duration_us', last_duration_us, 'items_processed', items_processed, 'total_items', total_items,
    'runs', runs, 'last_error', last_error), coalesce(last_run_at, 0), coalesce(last_run_at, 0), 0 FROM housekeepers;
INSERT INTO documents (tenant, kind, key, version, data, created_at, updated_at, gone)
SELECT '', 'postroom:seen', subscription_id || '/' || key, 1, 'true', at, at, 0 FROM seen;
INSERT INTO documents (tenant, kind, key, version, data, created_at, updated_at, gone)
SELECT '', 'postroom:moved_key', queue_id || char(31) || idempotency_key, 1, json_quote(message_id), 0, 0, 0
FROM moved_keys;
DROP TABLE schemas;
DROP TABLE positions;
DROP TABLE leaders;
DROP TABLE memos;
DROP TABLE housekeepers;
DROP TABLE seen;
DROP TABLE moved_keys;

-- For whoever reads the file by SQL: how far readers of the ledger have come.
CREATE VIEW positions AS
SELECT key AS name, data ->> '$.seq' AS seq, data ->> '$.hold' AS hold, updated_at FROM documents
WHERE tenant = '' AND kind = 'postroom:position';

-- Queues are found by what they are, however many others there are.
ALTER TABLE queues ADD COLUMN ordering TEXT GENERATED ALWAYS AS (settings ->> '$.ordering') VIRTUAL;
ALTER TABLE queues ADD COLUMN retention_s REAL GENERATED ALWAYS AS (settings ->> '$.retention_s') VIRTUAL;
CREATE INDEX queues_of_scope ON queues (scope_id);
CREATE INDEX queues_by_priority ON queues (ordering) WHERE ordering = 'priority' AND deleted_at IS NULL;
CREATE INDEX queues_of_dead_letters ON queues (slug) WHERE slug = '_dead_letter' AND deleted_at IS NULL;
CREATE INDEX queues_with_retention ON queues (id) WHERE retention_s IS NOT NULL;
CREATE INDEX queues_deleted ON queues (id) WHERE deleted_at IS NOT NULL;
CREATE INDEX scopes_of_tenant ON scopes (tenant);
CREATE INDEX figures_idle ON figures (subscription_id) WHERE subscription_id > 0 AND n = 0;

-- Dead letters stay longer than what ended otherwise, so neither is looked for among the other.
DROP INDEX messages_finished;
CREATE INDEX messages_finished ON messages (finished_at)
    WHERE finished_at IS NOT NULL AND state IN ('cancelled', 'completed', 'expired');
CREATE INDEX messages_dead ON messages (finished_at) WHERE finished_at IS NOT NULL AND state = 'dead';
