"""Brings the tables of a store back to how the first version of the schema made them."""

import psycopg

UNDO = """
DROP VIEW counts;
DROP VIEW chain;
DROP TABLE count_changes;
DROP TABLE line_returns;
DELETE FROM meta WHERE name IN ('folded', 'sealed_by');
CREATE VIEW counts AS
SELECT queue_id, subscription_id, name AS state, n FROM figures WHERE queue_id > 0;
CREATE VIEW chain AS
SELECT name, n AS seq, hash, time, message_seq FROM figures
WHERE queue_id = 0 AND subscription_id = 0 AND name IN ('head', 'anchor');
DROP TRIGGER contents_named ON contents;
DROP TRIGGER messages_followed ON messages;
DROP FUNCTION name_content();
DROP FUNCTION follow_message();
ALTER TABLE contents DROP COLUMN id, DROP COLUMN queue_id;
ALTER TABLE messages ADD CONSTRAINT messages_id_key UNIQUE (id);
CREATE INDEX messages_by_queue ON messages (queue_id);
UPDATE meta SET value = '1' WHERE name = 'schema';
"""
# What the version before keeps up to date with every commit.
SETTLE = """
INSERT INTO figures (queue_id, subscription_id, name, n)
SELECT queue_id, subscription_id, state, n FROM counts
ON CONFLICT (queue_id, subscription_id, name) DO UPDATE SET n = excluded.n;
UPDATE figures f SET n = c.seq, hash = c.hash, time = c.time FROM chain c
WHERE c.name = 'head' AND f.queue_id = 0 AND f.subscription_id = 0 AND f.name = 'head';
"""


def bring_back(url: str) -> None:
    with psycopg.connect(url, autocommit=True) as db:
        for sql in (SETTLE, UNDO):
            db.execute(sql.encode())
