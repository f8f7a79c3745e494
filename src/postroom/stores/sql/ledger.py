"""The ledger in SQL: reading it, and dropping its oldest part so that the rest can still be verified."""

import msgspec

from postroom.kernel import jsontext
from postroom.kernel.budgets.model import Budget, fold_accounts
from postroom.kernel.ledger import GENESIS, Event, Folded, Head, unroll
from postroom.kernel.ports import Chain, FoldBasis
from postroom.kernel.states import State
from postroom.stores.sql.dialect import SqlReads, SqlWrites
from postroom.stores.sql.queues import GONE

_to_budget = msgspec.json.Decoder(Budget).decode


class LedgerReads(SqlReads):
    def events(self, after: int, limit: int) -> list[Event]:
        rows = self._db.fetch(self._sql["events"], (after, limit))
        if not rows:
            return []
        before = rows[0][0] - 1
        found = self._db.fetch(self._sql["event_hash"], (before,))
        if found:
            return list(unroll(rows, found[0][0]))
        anchor = self.chain().anchor
        return list(unroll(rows, anchor.hash if anchor.seq == before else GENESIS))

    def events_about(self, tenant: str, correlation_id: str, first: int, end: int, limit: int) -> list[Event]:
        rows = self._db.fetch(self._sql["events_about"], (first, end, correlation_id, tenant, limit))
        return list(unroll(rows, b""))

    def chain(self) -> Chain:
        ends = {
            name: Head(seq, hash_, time) for name, seq, hash_, time, _ in self._db.fetch(self._sql["chain"])
        }
        return Chain(ends["anchor"], ends["head"])

    def standing(self, *, at_anchor: bool) -> FoldBasis:
        if at_anchor:
            rows = self._db.fetch(self._sql["standing"])
            messages = {id_: Folded(place, State(state), tries) for id_, place, state, tries in rows}
            return FoldBasis(messages, self._standing_budgets())
        rows = self._db.fetch(self._sql["all_states"])
        return FoldBasis(
            {
                id_: Folded(f"{scope.partition(GONE)[0]}/{queue}", State(state), attempts)
                for id_, scope, queue, state, attempts in rows
            },
            {},
        )

    def _standing_budgets(self) -> dict[tuple[str, str], Budget]:
        rows = self._db.fetch(self._sql["standing_budgets"])
        return {(tenant, name): _to_budget(data) for tenant, name, data in rows}


class LedgerWrites(LedgerReads, SqlWrites):
    def prune_ledger(self, before: int, up_to_seq: int | None, limit: int) -> int:
        chain = self.chain()
        up_to = min(chain.anchor.seq + limit, chain.head.seq - 1)
        if up_to_seq is not None:
            up_to = min(up_to, up_to_seq)
        found = self._db.fetch(self._sql["last_prunable_event"], (up_to, before))
        if not found:
            return 0
        [last] = found
        self._stand_messages(last[0])
        self._stand_budgets(last[0])
        dropped = self._out.change(self._sql["prune_ledger"], (last[0],))
        self._out.write(self._sql["set_anchor"], last)
        return dropped

    def _stand_messages(self, up_to: int) -> None:
        """What the events say of messages, before they are dropped."""
        self._out.write(self._sql["stand_messages"], (up_to,))

    def _stand_budgets(self, up_to: int) -> None:
        """What the events say of budgets, before they are dropped."""
        rows = self._db.fetch(self._sql["prunable_budget_events"], (up_to,))
        if not rows:
            return
        before = self._standing_budgets()
        after = fold_accounts(unroll(rows, b""), dict(before))
        gone = [key for key in before if key not in after]
        changed = [(*key, jsontext.text(each)) for key, each in after.items() if each != before.get(key)]
        if gone:
            self._out.write_many(self._sql["drop_standing_budget"], gone)
        if changed:
            self._out.write_many(self._sql["put_standing_budget"], changed)
