"""Redis beside a store on a database server: it only wakes people; rows are the truth."""

from postroom.stores.redis.store import RedisStore

__all__ = ["RedisStore"]
