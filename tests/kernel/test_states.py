"""The table of states: exactly these changes, and from every open state a way to an end."""

from itertools import product

import pytest

from postroom.kernel.states import OPEN, TERMINAL, TRANSITIONS, WAITING, Change, State, allowed

# Written down a second time, from the architecture: what each change may lead from and to.
WANTED: dict[str, set[tuple[str | None, str]]] = {
    "message.published": {(None, "pending"), (None, "delayed"), (None, "dead"), (None, "completed")},
    "message.ready": {("delayed", "pending")},
    "message.claimed": {("pending", "claimed")},
    "message.extended": {("claimed", "claimed")},
    "message.completed": {("claimed", "completed"), ("pending", "completed"), ("delayed", "completed")},
    "message.failed": {("claimed", "delayed"), ("claimed", "pending")},
    "message.released": {("claimed", "pending")},
    "message.snoozed": {("claimed", "delayed")},
    "message.lease_expired": {("claimed", "pending")},
    "message.dead_lettered": {("claimed", "dead"), ("pending", "dead"), ("delayed", "dead")},
    "message.expired": {("pending", "expired"), ("delayed", "expired")},
    "message.cancelled": {("pending", "cancelled"), ("delayed", "cancelled"), ("claimed", "cancelled")},
    "message.replayed": {("dead", "pending")},
    "message.discarded": {("dead", "cancelled")},
    "message.reordered": {("pending", "pending"), ("delayed", "delayed"), ("claimed", "claimed")},
    "message.routed": {("pending", "pending"), ("delayed", "delayed")},
    "message.transformed": {("pending", "pending"), ("delayed", "delayed")},
    "message.held": {("pending", "delayed"), ("delayed", "delayed")},
}


@pytest.mark.parametrize("change", Change)
def test_a_change_leads_only_from_where_and_to_where_it_may(change: Change) -> None:
    for source, target in product((None, *State), State):
        assert allowed(source, change, target) is ((source, target) in WANTED[change]), (source, target)


def test_every_change_is_in_the_table() -> None:
    assert set(TRANSITIONS) == set(Change)
    assert {change.value for change in Change} == set(WANTED)


def test_a_state_may_be_given_as_text() -> None:
    assert allowed("pending", Change.CLAIMED, State.CLAIMED)
    assert not allowed("nonsense", Change.CLAIMED, State.CLAIMED)


def test_every_state_is_open_or_terminal() -> None:
    assert set(State) == OPEN | TERMINAL
    assert not OPEN & TERMINAL
    assert OPEN >= WAITING == {State.PENDING, State.DELAYED}


def test_every_state_is_reached_from_nothing() -> None:
    reached: set[State | None] = {None}
    for _ in State:
        reached |= {target for pairs in TRANSITIONS.values() for source, target in pairs if source in reached}
    assert reached == {None, *State}


def test_from_every_open_state_there_is_a_way_to_an_end() -> None:
    for state in OPEN:
        reached: set[State | None] = {state}
        for _ in State:
            reached |= {
                target for pairs in TRANSITIONS.values() for source, target in pairs if source in reached
            }
        assert reached & TERMINAL


def test_only_a_dead_message_comes_back_from_an_end() -> None:
    leaving = {source for pairs in TRANSITIONS.values() for source, _ in pairs if source in TERMINAL}
    assert leaving == {State.DEAD}
