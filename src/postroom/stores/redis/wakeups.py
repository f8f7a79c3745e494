"""Tells other processes of commits by Redis' pub/sub, and hears what they tell. Redis may be away, emptied,
slow or wrong: then people are woken later, or for nothing, and nothing else happens.
"""

import contextlib
import json
import logging
import threading
import uuid
from collections.abc import Callable, Mapping

import redis

from postroom.stores.sql.gathered_news import GatheredNews

log = logging.getLogger("postroom.redis")

CONNECT_S = 2.0
LOOK_S = 1.0
AGAIN_S = 1.0
# Who waits on a line that is not named looks again by itself.
MOST_LINES = 1000


class RedisWakeups:
    def __init__(self, url: str, channel: str) -> None:
        self._url = url
        self._channel = channel
        self._name = uuid.uuid4().hex
        """By which this process knows its own."""
        self._closed = threading.Event()
        self.is_listening = threading.Event()
        self._wake: Callable[[Mapping[int, int]], None] | None = None
        self._teller = self._connect()
        self._news = GatheredNews(self._publish, "postroom-redis-tell")
        self._thread = threading.Thread(target=self._listen, name="postroom-redis-hear", daemon=True)

    def start(self, wake: Callable[[Mapping[int, int]], None]) -> None:
        self._wake = wake
        self._news.start()
        self._thread.start()

    def tell(self, woken: Mapping[int, int]) -> None:
        self._news.tell(woken)

    def close(self) -> None:
        self._closed.set()
        self._news.close()
        if self._thread.ident is not None:
            self._thread.join()
        self._teller.close()

    def _connect(self) -> "redis.Redis":
        return redis.Redis.from_url(self._url, socket_connect_timeout=CONNECT_S, socket_timeout=CONNECT_S)

    def _publish(self, woken: Mapping[int, int]) -> None:
        try:
            payload = json.dumps([self._name, list(woken.items())[:MOST_LINES]])
            self._teller.publish(self._channel, payload)
        except (redis.RedisError, OSError) as error:
            log.info("Redis is not there at the moment: %s", error)

    def _listen(self) -> None:
        """Until it is closed; a lost connection is looked for again."""
        while not self._closed.is_set():
            try:
                with contextlib.closing(self._connect()) as client:
                    self._hear(client)
            except (redis.RedisError, OSError) as error:
                log.info("Redis is not there at the moment: %s", error)
            self.is_listening.clear()
            self._closed.wait(AGAIN_S)

    def _hear(self, client: "redis.Redis") -> None:
        with contextlib.closing(client.pubsub(ignore_subscribe_messages=True)) as heard:
            heard.subscribe(self._channel)
            # The first answer says that it is heard.
            heard.get_message(timeout=LOOK_S)
            self.is_listening.set()
            # Something may have come while nobody listened.
            self._receive(None)
            while not self._closed.is_set():
                message = heard.get_message(timeout=LOOK_S)
                if message is not None:
                    self._receive(message["data"])

    def _receive(self, data: bytes | None) -> None:
        assert self._wake is not None, "it was started"
        try:
            name, lines = ("", []) if data is None else json.loads(data)
            woken = {int(line): int(count) for line, count in lines}
        except (ValueError, TypeError):
            log.warning("a message that nobody of us has sent: %.100r", data)
            return
        if name != self._name:
            self._wake(woken)
