-- A change of state writes every index of `messages` anew, so what never changes of a message, its id, and what hardly
-- ever does, its queue, are found by indexes of `contents`.
ALTER TABLE contents ADD COLUMN id TEXT COLLATE "C", ADD COLUMN queue_id BIGINT;

UPDATE contents c SET id = m.id, queue_id = m.queue_id FROM messages m WHERE m.seq = c.seq;

ALTER TABLE contents ALTER COLUMN id SET NOT NULL, ALTER COLUMN queue_id SET NOT NULL;

CREATE UNIQUE INDEX contents_by_id ON contents (id);

CREATE INDEX contents_by_queue ON contents (queue_id, seq);

ALTER TABLE messages DROP CONSTRAINT messages_id_key;

DROP INDEX messages_by_queue;

-- For processes of the version before, for moves of a store, and for large bodies, which go one by one.
CREATE FUNCTION name_content() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    SELECT m.id, m.queue_id INTO NEW.id, NEW.queue_id FROM messages m WHERE m.seq = NEW.seq;
    RETURN NEW;
END $$;

CREATE TRIGGER contents_named BEFORE INSERT ON contents
FOR EACH ROW WHEN (NEW.id IS NULL) EXECUTE FUNCTION name_content();

CREATE FUNCTION follow_message() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    UPDATE contents SET queue_id = NEW.queue_id WHERE seq = NEW.seq;
    RETURN NULL;
END $$;

CREATE TRIGGER messages_followed AFTER UPDATE OF queue_id ON messages
FOR EACH ROW WHEN (OLD.queue_id <> NEW.queue_id) EXECUTE FUNCTION follow_message();
