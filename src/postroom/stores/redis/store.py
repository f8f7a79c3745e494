"""A store on a database server with Redis beside it. Everything is asked of the server; only that something
was committed is told by Redis too, since it is quicker than looking."""

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from urllib.parse import urlsplit

from postroom.kernel.ports import Reads, Store, StoreFault, Transaction
from postroom.stores.redis.wakeups import RedisWakeups
from postroom.stores.sql.server_transaction import ServerTransaction


class RedisStore:
    def __init__(self, store: Store, url: str, redis_url: str) -> None:
        """Databases of one name share a channel; who is woken for nothing looks, and waits again."""
        self.store = store
        self.capabilities = store.capabilities
        self.wakeups = RedisWakeups(redis_url, f"postroom:{urlsplit(url).path.strip('/')}")

    def begin(self) -> Transaction:
        return self.store.begin()

    def commit(self, tx: Transaction) -> None:
        self.store.commit(tx)
        if isinstance(tx, ServerTransaction) and tx.has_news:
            self.wakeups.tell(tx.woken)

    def rollback(self, tx: Transaction) -> None:
        self.store.rollback(tx)

    def reader(self) -> AbstractContextManager[Reads]:
        return self.store.reader()

    def wipe_log(self) -> None:
        self.store.wipe_log()

    def listen(self, wake: Callable[[Mapping[int, int]], None]) -> None:
        self.store.listen(wake)
        self.wakeups.start(wake)

    def classify(self, error: Exception) -> tuple[StoreFault, Exception]:
        return self.store.classify(error)

    def left_behind(self, owner: str) -> str | None:
        return self.store.left_behind(owner)

    def close(self) -> None:
        self.wakeups.close()
        self.store.close()
