"""The chain and the fold: no event can be altered, removed, moved or cut off without being noticed."""

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from postroom.errors import LedgerBroken
from postroom.kernel import jsontext
from postroom.kernel.ledger import GENESIS, Event, EventDraft, Folded, Head, fold, seal, unroll, verify
from postroom.kernel.states import State


def draft(
    kind: str = "message.published", message_id: str | None = "m1", time: int = 5, **data: Any
) -> EventDraft:
    details = jsontext.text({"state": "pending", "attempts": 0, **data})
    return EventDraft(time, kind, "default", "office", "jobs", message_id, "talk", None, "tester", details)


def chain(drafts: list[EventDraft], head: Head | None = None) -> tuple[list[Event], Head]:
    start = head or Head()
    rows, end = seal(drafts, start)
    return list(unroll(rows, start.hash)), end


LIFE = [
    draft(),
    draft("message.claimed", state="claimed", attempts=1, time=6),
    draft("record.turn", None, time=7),
    draft("message.published", "m2", time=7),
    draft("message.completed", state="completed", attempts=1, time=9),
]


def test_events_are_numbered_and_chained_from_the_genesis() -> None:
    events, head = chain(LIFE)
    assert [event.seq for event in events] == [1, 2, 3, 4, 5]
    assert events[0].previous_hash == GENESIS
    assert [event.previous_hash for event in events[1:]] == [event.hash for event in events[:-1]]
    assert head == Head(5, events[-1].hash, 9)
    assert verify(events, Head(), head) == 5


def test_sealing_in_parts_gives_the_same_chain_as_sealing_at_once() -> None:
    whole, end = chain(LIFE)
    for cut in range(len(LIFE) + 1):
        first, middle = chain(LIFE[:cut])
        second, last = chain(LIFE[cut:], middle)
        assert first + second == whole
        assert last == end


def test_nothing_to_seal_changes_nothing() -> None:
    assert seal([], Head(3, b"x", 4)) == ([], Head(3, b"x", 4))
    assert verify([], Head(), Head()) == 0


TAMPERED: dict[str, list[Any]] = {
    "seq": [0, 99],
    "time": [1],
    "type": ["message.cancelled"],
    "tenant": ["other"],
    "scope": ["elsewhere", None],
    "queue": ["elsewhere", None],
    "message_id": ["m9", None],
    "correlation_id": ["other", None],
    "causation_id": ["because"],
    "actor": ["somebody"],
    "data": ["{}"],
    "previous_hash": [b"\x01" * 32, b""],
    "hash": [b"\x01" * 32, b""],
}


def test_every_field_of_an_event_is_tampered_with_below() -> None:
    assert set(TAMPERED) == set(Event.__struct_fields__)


@pytest.mark.parametrize("field", TAMPERED)
def test_an_event_that_was_altered_breaks_the_chain(field: str) -> None:
    events, head = chain(LIFE)
    for place, event in enumerate(events):
        for value in TAMPERED[field]:
            if getattr(event, field) == value:
                continue
            changed = msgspec.structs.replace(event, **{field: value})
            with pytest.raises(LedgerBroken):
                verify([*events[:place], changed, *events[place + 1 :]], Head(), head)


def test_an_event_that_was_altered_and_hashed_again_breaks_the_chain() -> None:
    events, head = chain(LIFE)
    for place in range(len(LIFE)):
        drafts = [*LIFE]
        drafts[place] = draft("message.cancelled", "m1", state="cancelled")
        forged, _ = chain(drafts)
        with pytest.raises(LedgerBroken):
            verify(forged, Head(), head)
        with pytest.raises(LedgerBroken):
            verify([*events[:place], forged[place], *events[place + 1 :]], Head(), head)


def test_an_event_that_was_removed_added_or_moved_breaks_the_chain() -> None:
    events, head = chain(LIFE)
    for place in range(len(events)):
        with pytest.raises(LedgerBroken):
            verify(events[:place] + events[place + 1 :], Head(), head)
        with pytest.raises(LedgerBroken):
            verify([*events[:place], events[place], *events[place:]], Head(), head)
    for place in range(len(events) - 1):
        swapped = [*events]
        swapped[place : place + 2] = swapped[place + 1], swapped[place]
        with pytest.raises(LedgerBroken):
            verify(swapped, Head(), head)


def test_a_chain_cut_off_at_either_end_is_broken() -> None:
    events, head = chain(LIFE)
    for cut in range(1, len(events) + 1):
        with pytest.raises(LedgerBroken):
            verify(events[:-cut], Head(), head)
        with pytest.raises(LedgerBroken):
            verify(events[cut:], Head(), head)


def test_a_chain_that_is_longer_than_was_written_is_broken() -> None:
    events, _ = chain(LIFE)
    _, shorter = chain(LIFE[:-1])
    with pytest.raises(LedgerBroken):
        verify(events, Head(), shorter)


def test_a_kept_part_verifies_from_its_anchor() -> None:
    events, head = chain(LIFE)
    for cut in range(1, len(events)):
        anchor = Head(events[cut - 1].seq, events[cut - 1].hash, events[cut - 1].time)
        assert verify(events[cut:], anchor, head) == len(events) - cut
        with pytest.raises(LedgerBroken):
            verify(events[cut:], Head(anchor.seq, b"\x02" * 32), head)


def test_the_error_names_the_first_event_that_does_not_fit() -> None:
    events, head = chain(LIFE)
    with pytest.raises(LedgerBroken) as caught:
        verify([*events[:2], *events[3:]], Head(), head)
    assert caught.value.data["seq"] == 4
    assert "3 is missing" in str(caught.value)


@given(
    st.lists(
        st.text(st.characters(exclude_categories=["Cs"]), max_size=5), min_size=2, max_size=2, unique=True
    )
)
def test_fields_cannot_be_moved_into_each_other(pair: list[str]) -> None:
    """The hash covers where one field ends and the next begins."""
    one, other = pair
    first = EventDraft(1, "t", one, other, None, None, None, None, "a", "{}")
    second = EventDraft(1, "t", other, one, None, None, None, None, "a", "{}")
    joined = EventDraft(1, "t", one + other, None, None, None, None, None, "a", "{}")
    assert len({chain([each])[1].hash for each in (first, second, joined)}) == 3


def test_folding_gives_the_last_state_of_every_message() -> None:
    events, _ = chain(LIFE)
    assert fold(events) == {
        "m1": Folded("office/jobs", State.COMPLETED, 1),
        "m2": Folded("office/jobs", State.PENDING, 0),
    }


@pytest.mark.parametrize(
    "wrong",
    [
        draft("message.claimed", "new", state="claimed"),
        draft("message.published", "m1"),
        draft("message.claimed", "m1", state="claimed"),
        draft("message.completed", "m2", state="dead"),
        draft("message.nonsense", "m2"),
        draft("message.claimed", "m2", state="nonsense"),
        EventDraft(5, "message.claimed", "default", "office", "jobs", "m2", None, None, "tester", "{}"),
    ],
    ids=lambda wrong: f"{wrong.message_id} {wrong.type} {wrong.data}",
)
def test_an_event_that_cannot_be_is_a_break_and_is_named(wrong: EventDraft) -> None:
    events, _ = chain([*LIFE, wrong])
    with pytest.raises(LedgerBroken) as caught:
        fold(events)
    assert caught.value.data["seq"] == 6
