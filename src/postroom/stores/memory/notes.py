"""What is kept beside the messages: records, positions, seen keys, and what housekeepers remember."""

from collections.abc import Sequence
from heapq import nsmallest
from itertools import islice
from typing import NamedTuple

from postroom.kernel import jsontext
from postroom.kernel.model import Position, Record
from postroom.kernel.ports import HousekeeperRun, RecordHead
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
        self._records: dict[int, KeptRecord] = {}
        self._positions: dict[str, Position] = {}
        self._seen: dict[tuple[int, str], int] = {}
        self._runs: dict[str, HousekeeperRun] = {}
        self._memos: dict[str, str] = {}
        self._leaders: dict[str, tuple[str, int]] = {}

    # records, by number

    def insert_record(
        self,
        tenant: str,
        kind: str,
        key: str,
        data: str,
        correlation_id: str | None,
        message_id: str | None,
        now: int,
    ) -> int:
        number = next(reversed(self._records), 0) + 1
        kept = KeptRecord(number, tenant, kind, key, data, correlation_id, message_id, now)
        self._journal.set(self._records, number, kept)
        return number

    def records(self, tenant: str, kind: str, key: str | None, after: int, limit: int) -> list[Record]:
        found: list[Record] = []
        for kept in self._records.values():
            if len(found) >= limit:
                break
            if kept.id > after and (kept.tenant, kept.kind) == (tenant, kind) and key in (None, kept.key):
                found.append(_record(kept))
        return found

    def record(self, tenant: str, number: int) -> Record | None:
        kept = self._records.get(number)
        return _record(kept) if kept is not None and kept.tenant == tenant else None

    def forget_records(self, tenant: str, message_ids: Sequence[str]) -> int:
        forgotten = 0
        for number, kept in self._records.items():
            if kept.tenant == tenant and kept.message_id in message_ids and kept.data != "{}":
                self._journal.set(self._records, number, kept._replace(data="{}"))
                forgotten += 1
        return forgotten

    def record_kinds(self) -> list[str]:
        return sorted({kept.kind for kept in self._records.values()})

    def old_records(self, kind: str, after: int, before: int, limit: int) -> list[RecordHead]:
        old = (
            RecordHead(kept.id, kept.tenant, kept.key, kept.created_at)
            for kept in self._records.values()
            if kept.kind == kind and kept.id > after and kept.created_at < before
        )
        return list(islice(old, limit))

    def has_newer_record(self, tenant: str, kind: str, key: str, number: int) -> bool:
        wanted = (tenant, kind, key)
        return any(
            kept.id > number and (kept.tenant, kept.kind, kept.key) == wanted
            for kept in self._records.values()
        )

    def drop_records(self, numbers: Sequence[int]) -> int:
        newest = next(reversed(self._records), 0)
        chosen = [number for number in numbers if number in self._records and number != newest]
        gone = {number: self._records.pop(number) for number in chosen}
        if gone:
            self._journal.note(lambda: self._bring_back(gone))
        return len(gone)

    def _bring_back(self, gone: dict[int, KeptRecord]) -> None:
        """In their old places: the order of the table is that of the numbers."""
        kept = {**self._records, **gone}
        self._records.clear()
        self._records.update(sorted(kept.items()))

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

    def prune(self, leaders_before: int, positions_before: int) -> int:
        leaders = [name for name, (_, until) in self._leaders.items() if until < leaders_before]
        for name in leaders:
            self._journal.delete(self._leaders, name)
        old = [p.name for p in self._positions.values() if not p.hold and p.updated_at < positions_before]
        for name in old:
            self._journal.delete(self._positions, name)
        return len(leaders) + len(old)

    def end_leaderships(self, holder: str, now: int) -> int:
        ended = [
            name
            for name, (who, until) in self._leaders.items()
            if until > now and (who == holder or who.startswith(f"{holder}/"))
        ]
        for name in ended:
            self._journal.set(self._leaders, name, (self._leaders[name][0], now))
        return len(ended)

    def memo(self, name: str) -> str | None:
        return self._memos.get(name)

    def set_memo(self, name: str, value: str) -> None:
        self._journal.set(self._memos, name, value)


def _record(kept: KeptRecord) -> Record:
    data = jsontext.decode(kept.data)
    return Record(id=kept.id, kind=kept.kind, key=kept.key, data=data, created_at=kept.created_at)
