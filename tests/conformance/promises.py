"""What must hold of a room at any moment, whatever was done to it. Checked at the end of every test."""

from collections import Counter
from itertools import pairwise

from postroom import Room, State, SyncRoom
from postroom.kernel.budgets.model import fold_accounts
from postroom.kernel.content_check import ContentCheck
from postroom.kernel.ledger import Event, fold, verify
from postroom.kernel.model import DEAD_LETTER, ConsumerMode, Counts
from postroom.kernel.ports import MessageFilter
from postroom.kernel.reader import Reader
from postroom.kernel.rows import Stored
from postroom.kernel.states import OPEN, TERMINAL


def check_promises(room: Room | SyncRoom) -> None:
    room._core.read(lambda reader: _check(reader, room._core.options.tenant))


def _check(reader: Reader, tenant: str) -> None:
    events = all_events(reader)
    _chain_holds(reader, events)
    _fold_gives_the_store(reader, events)
    _accounts_fold_to_the_store(reader, tenant, events)
    messages = reader.page(MessageFilter(tenant=tenant, deliveries=True), None, 1_000_000)
    live = [message for message in messages if not message.archived]
    _counts_are_true(reader, tenant, live)
    for message in live:
        _row_is_sound(message)
    _open_messages_can_end(reader, tenant, live)


def _subscribers(reader: Reader, tenant: str) -> set[int]:
    queues = reader.queues(tenant, None)
    return {each.id for each in reader.subscriptions_of(queue.id for queue in queues)}


def all_events(reader: Reader) -> list[Event]:
    events: list[Event] = []
    after = reader.anchor().seq
    while page := reader.events(after, 1000):
        events += page
        after = page[-1].seq
    return events


def _chain_holds(reader: Reader, events: list[Event]) -> None:
    verify(events, reader.anchor(), reader.head())
    for before, event in pairwise(events):
        assert event.previous_hash == before.hash
        assert event.time >= before.time, "time went back"
    check_contents(reader, events)


def check_contents(reader: Reader, events: list[Event]) -> None:
    """Whatever the ledger points to is what it tells of."""
    contents = ContentCheck()
    for event in events:
        contents.follow(event)
    contents.compare(reader.reads)


def _fold_gives_the_store(reader: Reader, events: list[Event]) -> None:
    """Also when its beginning was pruned: it goes on from where messages stood then."""
    cut = reader.anchor().seq > 0
    told, kept = fold(events, reader.standing()[0], cut=cut), reader.folded()
    if cut or any(event.type == "archive.pruned" for event in events):
        told = {message_id: folded for message_id, folded in told.items() if message_id in kept}
    assert told == kept


def _accounts_fold_to_the_store(reader: Reader, tenant: str, events: list[Event]) -> None:
    # After every reservation has ended, only what is kept is compared.
    kept = reader.list_accounts(tenant, "", 2**60, frozen=False, after="", limit=1_000_000)
    folded = fold_accounts(events, reader.standing()[1])
    told = {name: account for (owner, name), account in folded.items() if owner == tenant}
    assert told == {account.name: account for account in kept}


def _counts_are_true(reader: Reader, tenant: str, live: list[Stored]) -> None:
    dead_letters = {queue.id for queue in reader.queues(tenant, None) if queue.slug == DEAD_LETTER}
    counted: Counter[tuple[int, int, str]] = Counter()
    for row in (stored.row for stored in live):
        # Dead letters count together, whoever they were meant for.
        subscriber = 0 if row.queue_id in dead_letters else row.subscription_id or 0
        counted[row.queue_id, subscriber, row.state] += 1
    subscribers = {0, *_subscribers(reader, tenant), *(stored.row.subscription_id or 0 for stored in live)}
    for queue in reader.queues(tenant, None):
        for subscriber in subscribers:
            wanted = Counts(
                **{state: counted[queue.id, subscriber, state] for state in Counts.__struct_fields__}
            )
            assert reader.counts(queue.id, subscriber) == wanted, f"counts of {queue.path} #{subscriber}"


def _row_is_sound(stored: Stored) -> None:
    row = stored.row
    claimed = row.state == State.CLAIMED
    assert (row.lease_until is not None) == claimed, row
    assert (row.claimed_by is not None) == claimed, row
    # Who was late but was not replaced may still complete; a repeated complete is recognised.
    assert (row.token is not None) == claimed or row.state in (State.COMPLETED, State.PENDING), row
    assert (row.finished_at is not None) == (row.state in TERMINAL), row
    assert (row.origin_queue_id is not None) <= (row.state in (State.DEAD, State.CANCELLED)), row
    if claimed or row.state == State.DELAYED:
        assert row.due_at is not None, f"nothing will ever look at {row}"
    assert row.attempts >= 0, row


def _open_messages_can_end(reader: Reader, tenant: str, live: list[Stored]) -> None:
    """An open message is in a queue from which somebody can claim it."""
    queues = {queue.id: queue for queue in reader.queues(tenant, None)}
    subscribers = _subscribers(reader, tenant)
    still_open = [stored.row for stored in live if stored.row.state in OPEN]
    parents = {row.parent_id for row in still_open if row.subscription_id is not None}
    for row in still_open:
        assert row.queue_id in queues, f"the queue of {row} is gone"
        if queues[row.queue_id].settings.consumer_mode is not ConsumerMode.BROADCAST:
            continue
        if row.subscription_id is None:
            assert row.id in parents, f"{row} waits for deliveries that do not exist"
        else:
            assert row.subscription_id in subscribers, f"the subscriber of {row} is gone"
