"""After an erasure nothing tells of the person: not a dry run, not a key, not the log of the store."""

from pathlib import Path

from postroom.kernel.erasure.subject import Subject
from postroom.kernel.model import NewMessage
from tests.services.conftest import ServedRoom

WHO = "ann@example.org"


def traces(folder: Path) -> list[str]:
    """The files beside the store in which the person can be read."""
    return sorted(each.name for each in folder.glob("room.db*") if WHO.encode() in each.read_bytes())


async def test_what_was_erased_is_gone_from_dry_runs_keys_and_the_log(
    served: ServedRoom, tmp_path: Path
) -> None:
    services, owner, subject = served.services, served.owner, Subject(field="body.mail", value=WHO)
    drafts = [
        NewMessage(body={"mail": WHO, "n": number}, idempotency_key=f"{WHO}/{number}") for number in range(3)
    ]
    made = await services.messages.publish(owner, "work", "jobs", drafts)
    [taken] = await services.claims.claim(owner, [("work", "jobs")])
    await services.claims.complete(owner, taken.message.id, taken.message.claim_token)
    dry = await services.erasures.create(owner, "work", subject, dry_run=True)
    twin = await services.erasures.create(owner, "work", subject)
    other = await services.erasures.create(owner, "work", Subject(field="body.mail", value="bob@example.org"))
    assert traces(tmp_path)
    done = await services.erasures.erase(owner, "work", subject)
    assert (done.status, done.erased) == ("completed", 3)
    assert traces(tmp_path) == []
    for job in (dry, twin):
        found = await services.erasures.read(owner, "work", job.id)
        assert (found.subject, found.status) == (None, "completed")
    assert (await services.erasures.read(owner, "work", other.id)).subject is not None
    keys = [(await served.room.get(each.found.message.id)).idempotency_key for each in made]
    assert keys == [f"erased:{each.found.message.id}" for each in made]
