"""How long things stay: nothing that a store keeps may grow for ever."""

import msgspec

DAY_S = 24 * 3600


class RecordRule(msgspec.Struct, frozen=True, kw_only=True):
    """How long records of a kind stay. None keeps for ever.

    With `state`, only the newest of a key counts: the earlier ones go after `keep_s`, and the newest after
    `last_s`; with `account`, not before the account that the key names is forgotten.
    """

    kind: str
    keep_s: float | None
    state: bool = False
    last_s: float | None = None
    account: bool = False


class Retention(msgspec.Struct, frozen=True, kw_only=True):
    """When things move on. None keeps for ever.

    What people and programs wrote (messages, events, records) stays unless somebody says otherwise. What
    only the room itself needs has bounds from the start. `archive_s` is for queues without a retention of
    their own, `records_s` for kinds that `records` does not name: of each key the newest stays.
    """

    archive_after_s: float | None = 3600
    dead_after_s: float | None = 30 * DAY_S
    archive_s: float | None = None
    ledger_s: float | None = None
    records_s: float | None = None
    records: tuple[RecordRule, ...] = ()
    seen_s: float = DAY_S
    settled_s: float = 7 * DAY_S
    accounts_s: float | None = 90 * DAY_S
    audit_s: float | None = 365 * DAY_S
    streams_s: float | None = 30 * DAY_S
    keys_s: float | None = 90 * DAY_S
    gone_s: float | None = 90 * DAY_S
    aging_after_s: float = 600
    aging_step: int = 50

    def rule_of(self, kind: str) -> RecordRule:
        for rule in self.records:
            if rule.kind == kind:
                return rule
        return RecordRule(kind=kind, keep_s=self.records_s, state=True)
