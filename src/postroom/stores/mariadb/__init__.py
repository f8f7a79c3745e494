"""The store on a MariaDB server: several processes on several machines may have it open."""

from postroom.stores.mariadb.store import MariadbStore

__all__ = ["MariadbStore"]
