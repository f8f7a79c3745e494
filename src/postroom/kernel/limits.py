"""The bounds of what is accepted. Each can be set when a room is opened."""

import msgspec


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """The bounds of what a room accepts; more is refused, and nothing is written.

    >>> import postroom
    >>> with postroom.open_sync("memory://", limits=postroom.Limits(body_bytes=10)) as small:
    ...     _ = small.create_queue("orders")
    ...     small.publish("orders", "a long text")
    Traceback (most recent call last):
    postroom.errors.BodyTooLarge: The body has 13 bytes; at most 10 are allowed. ...
    """

    body_bytes: int = 256 * 1024
    labels: int = 64
    label_key_chars: int = 64
    label_value_chars: int = 256
    metadata_bytes: int = 64 * 1024
    text_chars: int = 512
    reason_chars: int = 8 * 1024
    files: int = 64
    after: int = 1000
    hops: int = 1000
    publish_batch: int = 100_000
    claim_batch: int = 10_000
    claims_per_message: int = 1000
    lease_s: float = 24 * 3600.0
    record_bytes: int = 256 * 1024
    rule_messages: int = 1000
    rule_bytes: int = 16 * 1024 * 1024
