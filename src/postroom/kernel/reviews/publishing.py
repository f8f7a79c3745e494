"""A message that asks a person: its spec is completed and checked, and its time to answer begins."""

from typing import Any

import msgspec

from postroom.clock import micros
from postroom.kernel.model import NewMessage, Queue
from postroom.kernel.reviews.patterns import PatternDocuments, expanded


def prepare_review(
    documents: PatternDocuments, queue: Queue, message: NewMessage, now: int
) -> tuple[NewMessage, int | None]:
    """The message with its whole spec, and when its time is over. Specs of another make are left alone."""
    wanted: Any = message.hitl_spec
    if not isinstance(wanted, dict) or not ("sections" in wanted or "pattern" in wanted):
        return message, None
    spec = expanded(documents, queue.tenant, queue.scope_id, wanted)
    seconds = spec.get("timeout_s")
    until = None if seconds is None else now + micros(seconds)
    return msgspec.structs.replace(message, hitl_spec=spec), until
