"""The small tables (subscriptions, schemas, records, positions, housekeepers), read alike everywhere."""

import apsw

from postroom.kernel import jsontext
from postroom.kernel.model import Position, Record, Schema, Scope, Subscription
from postroom.kernel.ports import HousekeeperRun


def read_subscriptions(db: apsw.Connection, queue_id: int, path: str) -> list[Subscription]:
    return [
        Subscription(id=id_, queue_id=queue_id, queue=path, name=name, created_at=created_at)
        for id_, name, created_at in db.execute(
            "SELECT id, name, created_at FROM subscriptions WHERE queue_id = ? ORDER BY id", (queue_id,)
        )
    ]


def read_schema(db: apsw.Connection, scope: Scope, name: str, version: int | None) -> Schema | None:
    found = [
        schema for schema in read_schemas(db, scope, name) if version is None or schema.version == version
    ]
    return found[-1] if found else None


def read_schemas(db: apsw.Connection, scope: Scope, name: str | None = None) -> list[Schema]:
    return [
        Schema(
            scope=scope.slug,
            name=found,
            version=version,
            document=jsontext.decode(document),
            created_at=created_at,
        )
        for found, version, document, created_at in db.execute(
            "SELECT name, version, document, created_at FROM schemas"
            " WHERE scope_id = ?1 AND (?2 IS NULL OR name = ?2) ORDER BY name, version",
            (scope.id, name),
        )
    ]


def read_records(
    db: apsw.Connection, tenant: str, kind: str, key: str | None, after: int, limit: int
) -> list[Record]:
    return [
        Record(id=id_, kind=kind, key=found, data=jsontext.decode(data), created_at=created_at)
        for id_, found, data, created_at in db.execute(
            "SELECT id, key, data, created_at FROM records"
            " WHERE tenant = ?1 AND kind = ?2 AND (?3 IS NULL OR key = ?3) AND id > ?4 ORDER BY id LIMIT ?5",
            (tenant, kind, key, after, limit),
        )
    ]


def read_latest(db: apsw.Connection, tenant: str, kind: str, key: str) -> Record | None:
    found = db.execute(
        "SELECT id, data, created_at FROM records WHERE tenant = ? AND kind = ? AND key = ?"
        " ORDER BY id DESC LIMIT 1",
        (tenant, kind, key),
    ).fetchone()
    if found is None:
        return None
    id_, data, created_at = found
    return Record(id=id_, kind=kind, key=key, data=jsontext.decode(data), created_at=created_at)


def read_record(db: apsw.Connection, tenant: str, number: int) -> Record | None:
    found = db.execute(
        "SELECT kind, key, data, created_at FROM records WHERE id = ? AND tenant = ?", (number, tenant)
    ).fetchone()
    if found is None:
        return None
    kind, key, data, created_at = found
    return Record(id=number, kind=kind, key=key, data=jsontext.decode(data), created_at=created_at)


def read_positions(db: apsw.Connection) -> list[Position]:
    return [
        Position(name=name, seq=seq, hold=bool(hold), updated_at=updated_at)
        for name, seq, hold, updated_at in db.execute("SELECT * FROM positions ORDER BY name")
    ]


def read_runs(db: apsw.Connection) -> list[HousekeeperRun]:
    return [
        HousekeeperRun(
            name=name,
            last_run_at=last_run_at,
            last_status=last_status,
            last_duration_us=last_duration_us,
            items_processed=items_processed,
            total_items=total_items,
            runs=runs,
            last_error=last_error,
        )
        for (
            name,
            last_run_at,
            last_status,
            last_duration_us,
            items_processed,
            total_items,
            runs,
            last_error,
        ) in db.execute("SELECT * FROM housekeepers ORDER BY name")
    ]
