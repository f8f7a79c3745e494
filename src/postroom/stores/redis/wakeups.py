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

log = logging.getLogger("postroom.redis")

CONNECT_S = 2.0
LOOK_S = 1.0
AGAIN_S = 1.0
# Who waits on a line that is not named looks again by itself.
MOST_LINES = 1000
MOST_WAITING = 10_000


class RedisWakeups:
    def __init__(self, url: str, channel: str) -> None:
        self._url = url
        self._channel = channel
        self._name = uuid.uuid4().hex
        """By which this process knows its own."""
        self._lock = threading.Lock()
        self._news: dict[int, int] = {}
        self._has_news = threading.Event()
        self._closed = threading.Event()
        self.is_listening = threading.Event()
        self._wake: Callable[[Mapping[int, int]], None] | None = None
        self._threads = [
            threading.Thread(target=self._keep, args=(work,), name=f"postroom-redis-{name}", daemon=True)
            for name, work in (("tell", self._tell), ("hear", self._hear))
        ]

    def start(self, wake: Callable[[Mapping[int, int]], None]) -> None:
        self._wake = wake
        for thread in self._threads:
            thread.start()

    def tell(self, woken: Mapping[int, int]) -> None:
        """It is sent by a thread of its own: no commit ever waits for Redis."""
        with self._lock:
            if len(self._news) < MOST_WAITING:
                for line, count in woken.items():
                    self._news[line] = self._news.get(line, 0) + count
        self._has_news.set()

    def close(self) -> None:
        self._closed.set()
        self._has_news.set()
        for thread in self._threads:
            if thread.ident is not None:
                thread.join()

    def _keep(self, work: "Callable[[redis.Redis], None]") -> None:
        """Until it is closed; a lost connection is looked for again."""
        while not self._closed.is_set():
            client = redis.Redis.from_url(
                self._url, socket_connect_timeout=CONNECT_S, socket_timeout=CONNECT_S
            )
            try:
                with contextlib.closing(client):
                    work(client)
            except (redis.RedisError, OSError) as error:
                log.info("Redis is not there at the moment: %s", error)
            self.is_listening.clear()
            self._closed.wait(AGAIN_S)

    def _tell(self, client: "redis.Redis") -> None:
        client.ping()
        while not self._closed.is_set():
            self._has_news.wait()
            self._has_news.clear()
            with self._lock:
                news, self._news = self._news, {}
            if not self._closed.is_set():
                client.publish(self._channel, json.dumps([self._name, list(news.items())[:MOST_LINES]]))

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
