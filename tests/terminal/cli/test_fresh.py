"""Times of a conversation that is not in the lake yet are counted as the lake counts them."""

from postroom.kernel.ledger import Event
from postroom.terminal.cli.fresh import _times


def lived(*moments: tuple[int, str]) -> list[Event]:
    return [
        Event(
            seq=number,
            time=time,
            type="message.changed",
            tenant="default",
            scope="office",
            queue="inbox/coder",
            message_id="m1",
            correlation_id=None,
            causation_id=None,
            actor="test",
            data=f'{{"state":"{state}"}}',
            previous_hash=b"",
            hash=b"",
        )
        for number, (time, state) in enumerate(moments, 1)
    ]


def test_waiting_ends_with_the_first_claim_and_work_is_all_claims_together() -> None:
    retried = lived((10, "pending"), (30, "claimed"), (35, "delayed"), (50, "claimed"), (58, "completed"))
    assert _times(retried) == (20, 13)


def test_what_was_never_claimed_has_no_times_and_what_is_claimed_has_only_waited() -> None:
    assert _times(lived((10, "pending"))) == (None, None)
    assert _times(lived((10, "pending"), (30, "claimed"))) == (20, 0)
