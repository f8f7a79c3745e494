"""A measure of tries counts what other processes told of the same, and tells them its own."""

from postroom.api.auth.rate_limit import RateLimiter
from postroom.clock import ManualClock


def test_failures_at_another_process_count_here() -> None:
    clock = ManualClock()
    here, there, apart = (RateLimiter(name, clock, 10) for name in ("failures", "failures", "pace"))
    for _ in range(6):
        here.spend("1.2.3.4")
        there.spend("1.2.3.4")
    assert here.wait("1.2.3.4") == 0
    here.learn(there.counts())
    apart.learn(there.counts())
    assert here.wait("1.2.3.4") > 0
    assert here.wait("5.6.7.8") == 0
    assert apart.wait("1.2.3.4") == 0, "another measure"
    assert here.counts() == {"failures/1.2.3.4": 6}, "only its own is told"
    clock.advance(60)
    assert here.counts() == {}
    here.learn({})
    assert here.wait("1.2.3.4") == 0
