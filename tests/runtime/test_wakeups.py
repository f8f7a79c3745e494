"""Wake-ups: as many waiters as messages, first come first served, and none is lost with the one it woke."""

import contextlib
from collections import Counter

from postroom.runtime.wakeups import Waiter, Wakeups


class Someone(Waiter):
    """A waiter that counts how often it was woken."""

    def __init__(self, hub: Wakeups, *lines: int) -> None:
        self.woken = 0
        super().__init__(lines, self._count)
        hub.join(self)

    def _count(self) -> None:
        self.woken += 1


def ring(hub: Wakeups, **lines: int) -> None:
    hub.wake(Counter({int(line.removeprefix("line")): count for line, count in lines.items()}))


def woken(*waiters: Someone) -> list[int]:
    return [waiter.woken for waiter in waiters]


def test_as_many_are_woken_as_messages_came_in_the_order_of_waiting() -> None:
    hub = Wakeups()
    waiters = [Someone(hub, 1) for _ in range(4)]
    ring(hub, line1=2)
    assert woken(*waiters) == [1, 1, 0, 0]
    ring(hub, line1=1)
    assert woken(*waiters) == [1, 1, 1, 0]
    ring(hub, line1=5)
    assert woken(*waiters) == [1, 1, 1, 1]


def test_only_the_lines_that_were_rung_are_woken() -> None:
    hub = Wakeups()
    one, other, both = Someone(hub, 1), Someone(hub, -2), Someone(hub, 1, -2)
    hub.wake(Counter({-2: 1}))
    assert woken(one, other, both) == [0, 1, 0]
    hub.wake(Counter({-2: 1}))
    assert woken(one, other, both) == [0, 1, 1]


def test_one_waiter_is_not_woken_twice_for_two_lines() -> None:
    hub = Wakeups()
    both, second = Someone(hub, 1, 2), Someone(hub, 2)
    ring(hub, line1=1, line2=1)
    assert woken(both, second) == [1, 1]


def test_a_waiter_can_be_woken_again_after_it_looked_again() -> None:
    hub = Wakeups()
    waiter = Someone(hub, 1)
    ring(hub, line1=1)
    ring(hub, line1=1)
    assert waiter.woken == 1
    hub.rearm(waiter)
    ring(hub, line1=1)
    assert waiter.woken == 2


def test_a_waiter_that_leaves_rung_passes_it_on() -> None:
    hub = Wakeups()
    first, second, third = (Someone(hub, 1) for _ in range(3))
    ring(hub, line1=1)
    hub.leave(first)
    assert woken(first, second, third) == [1, 1, 0]
    hub.leave(second)
    assert woken(second, third) == [1, 1]


def test_a_waiter_that_leaves_without_having_been_rung_passes_nothing_on() -> None:
    hub = Wakeups()
    first, second = Someone(hub, 1), Someone(hub, 1)
    hub.leave(first)
    assert second.woken == 0
    ring(hub, line1=1)
    hub.rearm(second)
    hub.leave(second)
    third = Someone(hub, 1)
    assert third.woken == 0


def test_a_waiter_of_several_lines_passes_on_to_each_of_them() -> None:
    hub = Wakeups()
    leaving, one, other = Someone(hub, 1, 2), Someone(hub, 1), Someone(hub, 2)
    ring(hub, line2=1)
    hub.leave(leaving)
    assert other.woken == 1
    assert one.woken <= 1


def test_a_waiter_of_one_line_twice_leaves_it_whole() -> None:
    hub = Wakeups()
    waiter = Someone(hub, 1, 1)
    ring(hub, line1=2)
    assert waiter.woken == 1
    hub.leave(waiter)
    assert hub._lines == {}


def test_ringing_where_nobody_waits_is_nothing() -> None:
    hub = Wakeups()
    ring(hub, line1=3)
    waiter = Someone(hub, 1)
    assert waiter.woken == 0
    ring(hub, line1=0)
    assert waiter.woken == 0


def test_whoever_has_left_is_forgotten() -> None:
    hub = Wakeups()
    for waiter in [Someone(hub, n, n + 1) for n in range(50)]:
        hub.leave(waiter)
    assert hub._lines == {}


def test_one_that_cannot_be_woken_does_not_keep_the_others_asleep() -> None:
    """A waiter whose event loop is gone, say."""
    hub = Wakeups()

    def broken() -> None:
        raise RuntimeError("gone")

    hub.join(Waiter([1], broken))
    second = Someone(hub, 1)
    with contextlib.suppress(RuntimeError):
        ring(hub, line1=2)
    assert second.woken == 1


def test_every_follower_is_woken_until_it_leaves() -> None:
    hub = Wakeups()
    calls: list[str] = []

    def first() -> None:
        calls.append("first")

    def second() -> None:
        calls.append("second")

    hub.follow(first)
    hub.follow(second)
    hub.wake_followers()
    assert sorted(calls) == ["first", "second"]
    hub.unfollow(first)
    hub.unfollow(first)
    hub.wake_followers()
    assert sorted(calls) == ["first", "second", "second"]
