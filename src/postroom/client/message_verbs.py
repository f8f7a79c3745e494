"""What the client does with messages: publish, claim, report, read, decide, subscribe and stream."""

from collections.abc import Sequence
from typing import Any, Unpack

from postroom.client.calls import (
    Call,
    PageOptions,
    drop_missing,
    message_path,
    path_step,
    queue_path,
    scope_path,
)
from postroom.client.model import CompletionOutcome, Message, Page
from postroom.client.verb import Verb
from postroom.errors import InvalidField


class MessageVerbs:
    # work

    @Verb
    def publish(self, queue: str, body: Any = None, **options: Any) -> Call[Message]:
        """With `idempotency_key` it may be repeated safely, and is, when nobody answers."""
        sent = {"body": body, **options}
        return Call(
            "POST", queue_path(queue, "messages"), Message, body=sent, again="idempotency_key" in options
        )

    @Verb
    def publish_many(self, queue: str, messages: list[dict[str, Any]]) -> Call[list[Message]]:
        """All or none; each message is a dictionary of the service's fields."""
        again = all("idempotency_key" in message for message in messages)
        path = queue_path(queue, "messages", "batch")
        return Call("POST", path, list[Message], body={"messages": messages}, again=again)

    @Verb
    def claim(
        self, queue: str, *, batch_size: int = 1, wait_s: float = 0, **wish: Any
    ) -> Call[list[Message]]:
        """Take the next messages: nobody else gets them while the lease lasts."""
        body = {"batch_size": batch_size, "wait_s": wait_s, **wish}
        return Call("POST", queue_path(queue, "claim"), list[Message], body=body)

    @Verb
    def complete(self, message: Message, result: Any = None) -> Call[Message]:
        """The work is done. Saying so again with the same claim is no error."""
        body = {"result": result, **drop_missing(claim_token=message.claim_token)}
        again = message.claim_token is not None
        return Call("POST", message_path(message, "complete"), Message, body=body, again=again)

    @Verb
    def complete_many(self, done: Sequence[tuple[Message, Any]]) -> Call[list[CompletionOutcome]]:
        """Messages of one scope, each with its result, in one call and one commit. One that is refused keeps
        nobody else from being completed: look at the `error` of each."""
        scopes = {message.scope for message, _ in done}
        if len(scopes) != 1:
            raise InvalidField("done", f"has messages of {len(scopes)} scopes; one call is about one")
        sent = [
            {"message_id": message.id, "result": result, **drop_missing(claim_token=message.claim_token)}
            for message, result in done
        ]
        again = all(message.claim_token is not None for message, _ in done)
        path = scope_path(scopes.pop(), "messages", "complete")
        return Call("POST", path, list[CompletionOutcome], body={"messages": sent}, again=again)

    @Verb
    def fail(
        self, message: Message, reason: str, *, retry: bool = True, delay_s: float | None = None
    ) -> Call[Message]:
        """The work failed: it is retried after a pause, or a dead letter."""
        body = drop_missing(claim_token=message.claim_token, reason=reason, retry=retry, delay_s=delay_s)
        return Call("POST", message_path(message, "fail"), Message, body=body)

    @Verb
    def release(self, message: Message) -> Call[Message]:
        """Give a message back untouched: the attempt does not count."""
        body = drop_missing(claim_token=message.claim_token)
        return Call("POST", message_path(message, "release"), Message, body=body)

    @Verb
    def extend(self, message: Message, seconds: float | None = None) -> Call[Message]:
        """Keep a claim for another lease, counted from now."""
        body = drop_missing(claim_token=message.claim_token, extend_s=seconds)
        return Call("POST", message_path(message, "extend"), Message, body=body)

    @Verb
    def snooze(self, message: Message, seconds: float, reason: str | None = None) -> Call[Message]:
        """Come back later; unlike a failure this does not count as an attempt."""
        body = drop_missing(claim_token=message.claim_token, seconds=seconds, reason=reason)
        return Call("POST", message_path(message, "snooze"), Message, body=body)

    @Verb
    def cancel(self, message: Message, reason: str | None = None) -> Call[Message]:
        """End an open message for good."""
        body = drop_missing(reason=reason)
        return Call("POST", message_path(message, "cancel"), Message, body=body)

    # dead letters

    @Verb
    def replay(self, message: Message) -> Call[Message]:
        """Put a dead letter back into the queue it came from."""
        return Call("POST", message_path(message, "replay"), Message)

    @Verb
    def replay_dead(self, scope: str, limit: int | None = None) -> Call[dict[str, Any]]:
        """Put the dead letters of a scope back."""
        path = scope_path(scope, "dead-letters", "replay")
        return Call("POST", path, dict[str, Any], query={"limit": limit})

    @Verb
    def discard(self, message: Message) -> Call[Message]:
        """Put a dead letter away for good."""
        return Call("POST", message_path(message, "discard"), Message)

    # reading

    @Verb
    def get(self, scope: str, message_id: str) -> Call[Message]:
        return Call("GET", scope_path(scope, "messages", path_step(message_id, "message_id")), Message)

    @Verb
    def messages(self, scope: str, **filters: Any) -> Call[Page[Message]]:
        """Filters are `correlation_id`, `parent_id`, `state`, `limit` and `cursor`."""
        return Call("GET", scope_path(scope, "messages"), (Message,), query=filters)

    @Verb
    def queue_messages(self, queue: str, **filters: Any) -> Call[Page[Message]]:
        """Filters are `state`, `message_type`, `limit` and `cursor`."""
        return Call("GET", queue_path(queue, "messages"), (Message,), query=filters)

    @Verb
    def trace(self, scope: str, correlation_id: str) -> Call[list[dict[str, Any]]]:
        """Everything that happened in one conversation, in order."""
        path = scope_path(scope, "audit", "trace", path_step(correlation_id, "correlation_id"))
        return Call("GET", path, list[dict[str, Any]])

    # reviews

    @Verb
    def reviews(
        self, scope: str, *, mine: bool | None = None, **page: Unpack[PageOptions]
    ) -> Call[list[Message]]:
        """Reviews that wait for an answer."""
        return Call("GET", scope_path(scope, "reviews"), list[Message], query={"mine": mine, **page})

    @Verb
    def review(self, scope: str, message_id: str) -> Call[Message]:
        """One review, with the mark of what was seen that its answer carries."""
        path = scope_path(scope, "messages", path_step(message_id, "message_id"), "review")
        return Call("GET", path, Message)

    @Verb
    def answer(self, review: Message, **values: Any) -> Call[Message]:
        """Decide a review: a value for each field it asks for."""
        body = {"answer": values, **drop_missing(seen=review.seen)}
        return Call("POST", message_path(review, "review"), Message, body=body)

    # subscriptions

    @Verb
    def subscribe(self, queue: str, name: str, *, earliest: bool = False) -> Call[dict[str, Any]]:
        """From now on each message of a broadcast queue is delivered to this name too."""
        scope, _, slug = queue.partition("/")
        body = {"queue_id": slug, "name": name, "earliest": earliest}
        return Call("POST", scope_path(scope, "subscriptions"), dict[str, Any], body=body)

    @Verb
    def subscriptions(self, scope: str, **page: Unpack[PageOptions]) -> Call[Page[dict[str, Any]]]:
        return Call("GET", scope_path(scope, "subscriptions"), (dict[str, Any],), query=page)

    @Verb
    def subscription(self, scope: str, subscription_id: str) -> Call[dict[str, Any]]:
        return Call("GET", _subscription(scope, subscription_id), dict[str, Any])

    @Verb
    def unsubscribe(self, scope: str, subscription_id: str) -> Call[None]:
        """What the subscriber had not finished is cancelled."""
        return Call("DELETE", _subscription(scope, subscription_id))

    @Verb
    def check_seen(
        self, scope: str, subscription_id: str, *, key: str | None = None, message_id: str | None = None
    ) -> Call[dict[str, Any]]:
        """Whether this subscriber saw a key or a message before; from now on it did."""
        body = drop_missing(key=key, message_id=message_id)
        return Call("POST", _subscription(scope, subscription_id) + "/dedup", dict[str, Any], body=body)

    # streams

    @Verb
    def open_stream(self, scope: str, **options: Any) -> Call[dict[str, Any]]:
        """Options are `queue_id`, `content_type`, `message_type`, `correlation_id` and `labels`."""
        return Call("POST", scope_path(scope, "streams"), dict[str, Any], body=options)

    @Verb
    def streams(self, scope: str, **page: Unpack[PageOptions]) -> Call[Page[dict[str, Any]]]:
        return Call("GET", scope_path(scope, "streams"), (dict[str, Any],), query=page)

    @Verb
    def stream(self, scope: str, stream_id: str) -> Call[dict[str, Any]]:
        """How it stands, and everything so far joined in order."""
        return Call("GET", stream_path(scope, stream_id), dict[str, Any])

    @Verb
    def append_chunks(self, scope: str, stream_id: str, chunks: list[dict[str, Any]]) -> Call[dict[str, Any]]:
        """Parts with `sequence` and `data`, in any order; one that is there already is ignored."""
        path = stream_path(scope, stream_id, "chunks")
        return Call("POST", path, dict[str, Any], body={"chunks": chunks}, again=True)

    @Verb
    def chunks(
        self,
        scope: str,
        stream_id: str,
        *,
        after: int = -1,
        limit: int | None = None,
        wait_s: float | None = None,
    ) -> Call[list[dict[str, Any]]]:
        """Parts after a number; with `wait_s`, those that come meanwhile."""
        query = {"after": after, "limit": limit, "wait_s": wait_s}
        return Call("GET", stream_path(scope, stream_id, "chunks"), list[dict[str, Any]], query=query)

    @Verb
    def close_stream(
        self, scope: str, stream_id: str, total_chunks: int | None = None
    ) -> Call[dict[str, Any]]:
        """Join the parts to one message of the stream's queue."""
        body = drop_missing(total_chunks=total_chunks)
        return Call("POST", stream_path(scope, stream_id, "close"), dict[str, Any], body=body)

    @Verb
    def abort_stream(self, scope: str, stream_id: str, reason: str | None = None) -> Call[dict[str, Any]]:
        """Give a stream up: no message is made of it."""
        body = drop_missing(reason=reason)
        return Call("POST", stream_path(scope, stream_id, "abort"), dict[str, Any], body=body)


def _subscription(scope: str, subscription_id: str) -> str:
    return scope_path(scope, "subscriptions", path_step(subscription_id, "subscription_id"))


def stream_path(scope: str, stream_id: str, *steps: str) -> str:
    return scope_path(scope, "streams", path_step(stream_id, "stream_id"), *steps)
