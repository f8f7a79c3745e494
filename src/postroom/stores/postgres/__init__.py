"""The store on a PostgreSQL server: several processes on several machines may have it open."""

from postroom.stores.postgres.store import PostgresStore

__all__ = ["PostgresStore"]
