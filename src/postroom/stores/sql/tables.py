"""Why no table grows for ever. One that is not named here fails a test."""

BOUNDED_BY = {
    "meta": "a few fixed names",
    "scopes": "what people make; deleted ones go with their last queue",
    "queues": "what people make; deleted ones go with their last message",
    "figures": "queues, subscribers and states; they go with their queue or subscriber",
    "messages": "the archiver: completed_hours, dead_days",
    "contents": "the archiver, with their messages",
    "archive": "retention_s of the queue, else messages_days",
    "subscriptions": "what people make",
    "records": "a rule for each kind: records_days, progress_days, exchanges_days, audit_days",
    "ledger": "ledger_days, and not before readers that hold have passed",
    "accounts": "90 days untouched; frozen ones only when they are final",
    "reservations": "they end by themselves, and go a week later",
    "settlements": "a week",
    "holds": "a week after they ended",
    "documents": "what people make; dropped ones and dead keys 90 days, streams streams_days; of the room's"
    " own, keys seen a day, leaderships a day, positions that hold nothing a year, schemas with their scope,"
    " moved keys with their message",
    "audit": "audit_days",
    "chunks": "streams_days, with their stream",
    "standing": "it goes with its message",
    "standing_accounts": "it goes with its account, when that event is pruned",
}
