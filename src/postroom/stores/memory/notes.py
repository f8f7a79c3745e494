"""What is kept beside the messages: records, positions, seen keys, and what housekeepers remember."""

from heapq import nsmallest
from typing import NamedTuple

from postroom.kernel import jsontext
from postroom.kernel.model import Position, Record
from postroom.kernel.store import HousekeeperRun
from postroom.stores.memory.journal import Journal


class KeptRecord(NamedTuple):
    id: int
    tenant: str
    kind: str
    key: str
    data: str
    correlation_id: str | None
    message_id: str | None
    created_at: int


class Notes:
    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self._records: list[KeptRecord] = []
        self._positions: dict[str, Position] = {}
        self._seen: dict[tuple[int, str], int] = {}
        self._runs: dict[str, HousekeeperRun] = {}
        self._memos: dict[str, str] = {}
        self._leaders: dict[str, tuple[str, int]] = {}

    # records: never deleted, so the number of each is its place in the list plus one

    def insert_record(
        self,
        tenant: str,
        kind: str,
        key: str,
        data: str,
        correlation_id: str | None,
        message_id: str | None,
        now: int,
    ) -> None:
        number = len(self._records) + 1
        self._records.append(KeptRecord(number, tenant, kind, key, data, correlation_id, message_id, now))
        self._journal.note(self._records.pop)

    def records(self, tenant: str, kind: str, key: str | None, after: int, limit: int) -> list[Record]:
        found: list[Record] = []
        for kept in self._records[max(after, 0) :]:
            if len(found) >= limit:
                break
            if (kept.tenant, kept.kind) == (tenant, kind) and key in (None, kept.key):
                data = jsontext.decode(kept.data)
                found.append(
                    Record(id=kept.id, kind=kept.kind, key=kept.key, data=data, created_at=kept.created_at)
                )
        return found

    # positions

    def set_position(self, position: Position) -> None:
        self._journal.set(self._positions, position.name, position)

    def positions(self) -> list[Position]:
        return [self._positions[name] for name in sorted(self._positions)]

    # seen keys

    def seen(self, subscription_id: int, key: str, now: int) -> bool:
        place = (subscription_id, key)
        if place in self._seen:
            return True
        self._journal.set(self._seen, place, now)
        return False

    def prune_seen(self, before: int, limit: int) -> int:
        old = ((at, place) for place, at in self._seen.items() if at < before)
        chosen = nsmallest(limit, old)
        for _, place in chosen:
            self._journal.delete(self._seen, place)
        return len(chosen)

    def forget_seen(self, subscription_id: int) -> None:
        for place in [place for place in self._seen if place[0] == subscription_id]:
            self._journal.delete(self._seen, place)

    # housekeepers

    def report_run(self, run: HousekeeperRun) -> None:
        self._journal.set(self._runs, run.name, run)

    def run_of(self, name: str) -> HousekeeperRun | None:
        return self._runs.get(name)

    def runs(self) -> list[HousekeeperRun]:
        return [self._runs[name] for name in sorted(self._runs)]

    def lead(self, name: str, holder: str, now: int, until: int) -> bool:
        if self.leader(name, now) not in (None, holder):
            return False
        self._journal.set(self._leaders, name, (holder, until))
        return until > now

    def leader(self, name: str, now: int) -> str | None:
        holder, until = self._leaders.get(name, ("", 0))
        return holder if until > now else None

    def memo(self, name: str) -> str | None:
        return self._memos.get(name)

    def set_memo(self, name: str, value: str) -> None:
        self._journal.set(self._memos, name, value)
