"""What callers asked and were told, held against what a reopened store says: every broken promise is named.

An operation is begun before the call and answered after it returned; one without an answer may have happened
or not, but never in part.
"""

import sys
from collections import Counter
from collections.abc import Container
from dataclasses import dataclass, field
from typing import Any

from postroom.errors import PostroomError, StoreError
from postroom.kernel import commands as c
from postroom.kernel.ports import Store
from postroom.kernel.reader import Reader
from postroom.kernel.states import Change, State
from postroom.stores.sqlite import SqliteStore
from tests.faults import lives, tables
from tests.faults.lives import Life
from tests.faults.tables import Tables

ENDS: dict[str, tuple[Change, ...]] = {
    "Complete": (Change.COMPLETED,),
    "Fail": (Change.FAILED, Change.DEAD_LETTERED),
    "Release": (Change.RELEASED, Change.DEAD_LETTERED),
    "Snooze": (Change.SNOOZED, Change.DEAD_LETTERED),
}
CHANGES: dict[str, Change] = {
    "Cancel": Change.CANCELLED,
    "Kill": Change.DEAD_LETTERED,
    "Replay": Change.REPLAYED,
    "Discard": Change.DISCARDED,
}


def told(command: c.Command) -> dict[str, Any]:
    """A command as the history keeps it: plain JSON."""
    said: dict[str, Any] = {"verb": type(command).__name__}
    if isinstance(command, c.Publish):
        said["queue"] = command.queue
        said["messages"] = [[message.body, message.idempotency_key] for message in command.messages]
    elif isinstance(command, c.PublishLike):
        said |= {"verb": "Publish", "queue": command.queue}
        said["messages"] = [[body, command.like and command.like.idempotency_key] for body in command.bodies]
    elif isinstance(command, c.ClaimCommand):
        said |= {"id": command.message_id, "token": command.token}
    elif isinstance(command, c.Cancel | c.Kill):
        said["ids"] = [command.message_id]
    elif isinstance(command, c.Replay | c.Discard):
        said["ids"] = list(command.message_ids)
    elif isinstance(command, c.AddRecord):
        said["record"] = [command.kind, command.key]
    elif isinstance(command, c.Unit):
        said["parts"] = [told(part) for part in command.commands]
    return said


def answer(command: c.Command, value: Any) -> Any:
    """What a caller was told, as plain JSON."""
    if isinstance(command, c.Publish | c.PublishLike):
        return [[receipt.id, receipt.created, str(receipt.state)] for receipt in value]
    if isinstance(command, c.Claim):
        return [[stored.row.id, stored.row.token] for stored in value.messages]
    if isinstance(command, c.Replay | c.Discard):
        return value
    if isinstance(command, c.Unit):
        return [answer(part, each) for part, each in zip(command.commands, value, strict=True)]
    return None


@dataclass
class Operation:
    """`outcome`: unknown, ok, refused (by a rule) or failed (by the store: nothing of it was accepted)."""

    name: str
    said: dict[str, Any]
    outcome: str = "unknown"
    value: Any = None
    error: str = ""

    @property
    def possible(self) -> bool:
        return self.outcome in ("ok", "unknown")


@dataclass
class History:
    """A log of begun operations and their answers; any beginning of it is a history too."""

    log: list[dict[str, Any]] = field(default_factory=list)
    retention: dict[str, float] = field(default_factory=dict)
    """Queues whose archived messages may be pruned."""

    def begin(self, name: str, command: c.Command) -> None:
        self.log.append({"op": name, "said": told(command)})

    def ok(self, name: str, command: c.Command, value: Any) -> None:
        self.log.append({"op": name, "ok": answer(command, value)})

    def not_ok(self, name: str, error: BaseException) -> None:
        outcome = "failed" if isinstance(error, StoreError) else "refused"
        if not isinstance(error, PostroomError):
            outcome = "unnamed"
        self.log.append({"op": name, outcome: f"{type(error).__name__}: {error}"})

    def operations(self, length: int | None = None) -> list[Operation]:
        found: dict[str, Operation] = {}
        for entry in self.log[:length]:
            if "said" in entry:
                found[entry["op"]] = Operation(entry["op"], entry["said"])
                continue
            operation = found[entry["op"]]
            if "ok" in entry:
                operation.outcome, operation.value = "ok", entry["ok"]
            else:
                outcome = next(key for key in ("refused", "failed", "unnamed") if key in entry)
                operation.outcome, operation.error = outcome, entry[outcome]
        return list(found.values())

    def check(self, store: Store, length: int | None = None, *, settled: bool = True) -> list[str]:
        """Every broken promise. `settled`: what failed must be absent, since a later commit went well."""
        is_file = isinstance(store, SqliteStore)
        with store.reader() as reads:
            reader = Reader(reads)
            events, whole = lives.read(reader)
            rows, start = reader.folded(), reader.standing()[0]
            problems = lives.check_chain(reader, events)
            found = (
                tables.read_file(store._db)
                if isinstance(store, SqliteStore)
                # Numbers of messages are a sequence's there, and never given twice.
                else tables.read(reads._db.fetch, sys.maxsize)  # type: ignore[attr-defined]
            )
        told_lives, overlaps = lives.lives(events)
        problems += overlaps
        problems += tables.check(found)
        pruned, missing = self._pruned(told_lives, rows.keys(), events)
        problems += missing
        problems += lives.check_fold(events, start, whole, rows, pruned)
        problems += lives.check_attempts(told_lives, _most_retries(found, events))
        if is_file:
            # Of several that claim from a server at once, each passes over what another has in hand.
            problems += lives.check_order(events)
        if whole:
            problems += [
                f"claims: {row.id} has {row.claims}, the ledger {len(told_lives[row.id].turns)}"
                for row in (*found.live, *found.archived)
                if row.id in told_lives and row.claims != len(told_lives[row.id].turns)
            ]
        operations = self.operations(length)
        if not whole:
            told_lives = {}
            pruned |= {row_id for row_id in _acknowledged(operations, self.retention) if row_id not in rows}
        return problems + _Promises(operations, found, told_lives, pruned, settled).check()

    def _pruned(
        self, told_lives: dict[str, Life], rows: Any, events: list[Any]
    ) -> tuple[set[str], list[str]]:
        """Messages that the ledger knows and the store no longer has: as many as were recorded as pruned."""
        gone = {id_: life for id_, life in told_lives.items() if id_ not in rows}
        recorded: Counter[str] = Counter()
        for event in events:
            if event.type == "archive.pruned":
                recorded[f"{event.scope}/{event.queue}"] += event.details["messages"]
        missing = Counter(life.place for life in gone.values())
        problems = [
            f"lost: {n} messages of {place} are gone, {recorded[place]} were pruned"
            for place, n in missing.items()
            if n > recorded[place] or place not in self.retention
        ]
        return {id_ for id_, life in gone.items() if life.place in self.retention}, problems


def _acknowledged(operations: list[Operation], queues: Container[str]) -> set[str]:
    """Ids of messages accepted in these queues."""
    found = set()
    for operation in operations:
        if operation.outcome == "ok":
            values = operation.value if "parts" in operation.said else [operation.value]
            for said, value in zip(_parts(operation), values, strict=True):
                if said["verb"] == "Publish" and said["queue"] in queues:
                    found |= {id_ for id_, _, _ in value}
    return found


def _most_retries(found: Tables, events: list[Any]) -> dict[str, int]:
    most = {path: settings["max_retries"] for path, _, settings in found.queues.values()}
    for event in events:
        if event.type == "queue.updated":
            path = f"{event.scope}/{event.queue}"
            most[path] = max(most.get(path, 0), event.details.get("max_retries", 0))
    # A message keeps the attempts it had under an earlier, higher limit; 5 is the limit by default.
    return {path: max(n, 5) for path, n in most.items()}


class _Promises:
    """What callers were told, one by one. Without a whole ledger there are no lives to compare with."""

    def __init__(
        self,
        operations: list[Operation],
        found: Tables,
        told_lives: dict[str, Life],
        pruned: set[str],
        settled: bool,
    ) -> None:
        self.operations = operations
        self.found = found
        self.rows = found.by_id()
        self.lives = told_lives
        self.pruned = pruned
        self.settled = settled
        self.bodies = Counter(
            _mark(found.bodies.get(row.id)) for row in self.rows.values() if row.subscription_id is None
        )
        self.keyed = Counter(
            key for op in operations for part in _parts(op) for _, key in _sent(part) if key is not None
        )
        self.completers = Counter(
            part["token"] for op in operations for part in _parts(op) if part["verb"] == "Complete"
        )
        self.problems: list[str] = []

    def check(self) -> list[str]:
        for operation in self.operations:
            if operation.outcome == "unnamed":
                self.problems.append(f"error: {operation.name} failed without a name: {operation.error}")
            values = operation.value if "parts" in operation.said else [operation.value]
            for index, part in enumerate(_parts(operation)):
                self._check_part(operation, part, values[index] if operation.outcome == "ok" else None)
            self._check_whole(operation)
        self._check_claims()
        self._check_strangers()
        return self.problems

    def _wrong(self, operation: Operation, problem: str) -> None:
        self.problems.append(f"{operation.said['verb']} {operation.name} ({operation.outcome}): {problem}")

    def _check_part(self, operation: Operation, said: dict[str, Any], value: Any) -> None:
        verb = said["verb"]
        if operation.outcome == "ok":
            if verb == "Publish":
                self._check_published(operation, said, value)
            elif verb == "Claim":
                for id_, token in value:
                    if self._turn(id_, token) is None and self.lives:
                        self._wrong(operation, f"claim {token} of {id_} is not in the ledger")
            elif verb in ENDS or verb == "Extend":
                self._check_settled(operation, said)
            elif verb in CHANGES:
                for id_ in value if value is not None else said["ids"]:
                    if self.lives and not self._life(id_).count(CHANGES[verb]):
                        self._wrong(operation, f"{id_} was never {CHANGES[verb]}")
            elif "record" in said and not self.found.records[tuple(said["record"])]:
                self._wrong(operation, f"record {said['record']} is lost")
        elif (
            operation.error.startswith("ClaimLost")
            and verb in ENDS
            and self.lives
            and "parts" not in operation.said
        ):
            turn = self._turn(said["id"], said["token"])
            if turn is not None and turn.end is None:
                self._wrong(operation, f"claim {said['token']} of {said['id']} was refused but never ended")

    def _check_published(self, operation: Operation, said: dict[str, Any], receipts: Any) -> None:
        for (body, key), (id_, created, _) in zip(said["messages"], receipts, strict=True):
            row = self.rows.get(id_)
            if row is None:
                if id_ not in self.pruned:
                    self._wrong(operation, f"LOST: {id_} was acknowledged and is not there")
                continue
            if self.found.bodies.get(id_) != body:
                self._wrong(operation, f"{id_} holds {self.found.bodies.get(id_)}, sent was {body}")
            if row.idempotency_key != key:
                self._wrong(operation, f"{id_} has the key {row.idempotency_key}, sent was {key}")
            if not created and key is None:
                self._wrong(operation, f"{id_} is said to be known, but had no key")

    def _check_settled(self, operation: Operation, said: dict[str, Any]) -> None:
        row = self.rows.get(said["id"])
        if said["verb"] == "Complete" and row is not None and row.state != State.COMPLETED:
            self._wrong(operation, f"{said['id']} was completed and is {row.state}")
        if not self.lives:
            return
        turn = self._turn(said["id"], said["token"])
        if turn is None:
            self._wrong(operation, f"claim {said['token']} of {said['id']} is not in the ledger")
        elif said["verb"] == "Extend":
            if not turn.extensions:
                self._wrong(operation, f"the extension of {said['id']} is not in the ledger")
        elif turn.end is None or turn.end.type not in ENDS[said["verb"]]:
            ended = turn.end.type if turn.end else "no event"
            self._wrong(operation, f"claim {said['token']} of {said['id']} ended by {ended}")

    def _check_whole(self, operation: Operation) -> None:
        """All parts left their traces, or none did."""
        traces: list[bool] = []
        for said in _parts(operation):
            for body, key in _sent(said):
                if key is None or self.keyed[key] == 1:
                    traces.append(self.bodies[_mark(body)] > 0)
            if "record" in said:
                traces.append(self.found.records[tuple(said["record"])] > 0)
        gone = operation.outcome == "refused" or (operation.outcome == "failed" and self.settled)
        if gone and any(traces):
            self._wrong(operation, f"was refused ({operation.error}) but left traces")
        if self.pruned or not self.lives:
            return
        if any(traces) and not all(traces):
            self._wrong(operation, f"happened in part: {traces}")
        for said in operation.said.get("parts", ()):
            if any(traces) and said["verb"] in ENDS:
                self._check_settled(operation, said)
            elif traces and said["verb"] == "Complete" and self.completers[said["token"]] == 1:
                turn = self._turn(said["id"], said["token"])
                if turn is not None and turn.end is not None and turn.end.type == Change.COMPLETED:
                    self._wrong(operation, f"only completed {said['id']}")

    def _check_claims(self) -> None:
        """No claim was handed out twice, and no token."""
        handed = [
            (id_, token)
            for op in self.operations
            if op.outcome == "ok" and op.said["verb"] == "Claim"
            for id_, token in op.value
        ]
        for name, n in Counter((id_, token.partition("-")[0]) for id_, token in handed).items():
            if n > 1:
                self.problems.append(f"claims: claim {name[1]} of {name[0]} was handed out {n} times")
        for token, n in Counter(handed).items():
            if n > 1:
                self.problems.append(f"claims: token {token} was handed out {n} times")

    def _check_strangers(self) -> None:
        """Nothing is there that nobody sent, and nothing more often than it was sent."""
        sent: Counter[str] = Counter()
        for operation in self.operations:
            if operation.possible or not self.settled:
                sent.update(_mark(body) for part in _parts(operation) for body, _ in _sent(part))
        for mark, n in self.bodies.items():
            if n > sent[mark]:
                self.problems.append(f"stranger: {mark} is there {n} times, sent {sent[mark]} times")

    def _life(self, id_: str) -> Life:
        return self.lives.get(id_) or Life([], {}, State.PENDING, 0, "", ("", 0))

    def _turn(self, id_: str, token: str) -> Any:
        return self._life(id_).turns.get(int(token.partition("-")[0]))


def _parts(operation: Operation) -> list[dict[str, Any]]:
    return operation.said.get("parts", [operation.said])


def _sent(said: dict[str, Any]) -> list[Any]:
    return said.get("messages", [])


def _mark(body: Any) -> str:
    return body["mark"] if isinstance(body, dict) else repr(body)
