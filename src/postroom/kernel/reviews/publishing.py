"""A message that asks a person: its spec is completed and checked, and its time to answer begins."""

from typing import Any, Protocol

import msgspec

from postroom.clock import micros
from postroom.kernel import checks
from postroom.kernel.model import NewMessage, Queue
from postroom.kernel.reviews.patterns import PatternDocuments, expanded
from postroom.kernel.reviews.sections import HitlInvalid


class QueueFinder(Protocol):
    def queue(self, tenant: str, scope: str, slug: str) -> Queue | None: ...


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


def check_ways(queues: QueueFinder, queue: Queue, spec: Any) -> None:
    """Every queue that a decision or an escalation leads to must be there. What a rule holds back is held
    in any case, and judged when it is decided."""
    if not isinstance(spec, dict) or "sections" not in spec or "waiting" in spec:
        return
    for name in ways_of(spec):
        if find_way(queues, queue, name) is None:
            raise leads_nowhere(name)


def ways_of(spec: dict[str, Any]) -> list[str]:
    """The queues to which a review may lead, as its spec names them."""
    steps = spec.get("on_decision")
    ways = [*(steps.values() if isinstance(steps, dict) else ()), spec.get("escalation")]
    names = {way["queue"] for way in ways if isinstance(way, dict) and isinstance(way.get("queue"), str)}
    return sorted(names)


def find_way(queues: QueueFinder, queue: Queue, name: str) -> Queue | None:
    """The queue of a name that stands in a review of this queue: `slug`, or `/scope/slug`."""
    scope, _, slug = name[1:].partition("/") if name.startswith("/") else (queue.scope, "", name)
    if not checks.is_text(scope) or not checks.is_text(slug):
        return None
    return queues.queue(queue.tenant, scope, slug)


def leads_nowhere(name: str) -> HitlInvalid:
    return HitlInvalid(problem=f"it leads to {name!r}, and there is no such queue")
