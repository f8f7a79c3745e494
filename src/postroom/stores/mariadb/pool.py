"""Connections that are used again. PyMySQL has no pool of its own; this one never opens more than its size,
and never hands out one that is known to be lost."""

import contextlib
import threading
from collections.abc import Callable
from typing import Any

import pymysql

from postroom.stores.mariadb.errors import PoolDrained, PoolShut

Connection = pymysql.Connection


class MariadbPool:
    def __init__(self, connect: Callable[[], "Connection[Any]"], size: int, wait_s: float) -> None:
        self._connect = connect
        self._room = threading.Semaphore(size)
        self._wait_s = wait_s
        self._lock = threading.Lock()
        self._idle: list[Connection[Any]] = []
        self._is_closed = False

    def take(self) -> "Connection[Any]":
        if not self._room.acquire(timeout=self._wait_s):
            raise PoolDrained("every connection to the server is in use")
        try:
            with self._lock:
                if self._is_closed:
                    raise PoolShut("the store is closed")
                if self._idle:
                    return self._idle.pop()
            return self._connect()
        except BaseException:
            self._room.release()
            raise

    def give_back(self, db: "Connection[Any]", *, lost: bool) -> None:
        """When one is lost the idle ones are given up too, since they may have gone with it."""
        stale: list[Connection[Any]] = []
        with self._lock:
            if lost:
                stale, self._idle = [*self._idle, db], []
            elif self._is_closed:
                stale = [db]
            else:
                self._idle.append(db)
        close_all(stale)
        self._room.release()

    def close(self) -> None:
        with self._lock:
            self._is_closed = True
            idle, self._idle = self._idle, []
        close_all(idle)


def close_all(connections: "list[Connection[Any]]") -> None:
    for db in connections:
        with contextlib.suppress(pymysql.MySQLError, OSError):
            db.close()
