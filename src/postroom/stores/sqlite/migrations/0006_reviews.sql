-- What asks a person is found without looking at everything else.
CREATE INDEX contents_reviews ON contents (seq) WHERE hitl_spec IS NOT NULL;
