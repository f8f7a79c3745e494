"""What a MariaDB server says of itself and of a store on it."""

import contextlib

import pymysql

from postroom.stores.mariadb.address import read_address
from postroom.stores.mariadb.connection import MariadbReadConnection
from postroom.stores.mariadb.errors import classify
from postroom.stores.mariadb.migrate import read_version, steps
from postroom.stores.sql.info import StoreInfo, StoreState
from postroom.stores.sql.tables import BOUNDED_BY

SETTINGS = ("innodb_flush_log_at_trx_commit", "innodb_doublewrite", "max_allowed_packet", "max_connections")
LEAST_PACKET = 16 * 1024 * 1024


def read_state(url: str) -> StoreState:
    address = read_address(url)
    try:
        with contextlib.closing(address.connect()) as db:
            reads = MariadbReadConnection(db)
            [(now,)] = reads.fetch("SELECT CAST(UNIX_TIMESTAMP(SYSDATE(6)) AS DOUBLE)")
            return StoreState(schema=read_version(reads, address.place), newest=max(steps()), now=now)
    except pymysql.MySQLError as error:
        raise classify(error, address.place)[1] from error


def read_info(url: str) -> StoreInfo:
    address = read_address(url)
    try:
        with contextlib.closing(address.connect()) as db:
            reads = MariadbReadConnection(db)
            [(version,)] = reads.fetch("SELECT VERSION()")
            settings = {name: str(reads.fetch(f"SELECT @@{name}")[0][0]) for name in SETTINGS}
            sizes = dict(
                reads.fetch(
                    "SELECT table_name, CAST(data_length + index_length AS INTEGER)"
                    " FROM information_schema.tables WHERE table_schema = DATABASE()"
                    " AND table_type = 'BASE TABLE'"
                )
            )
            there = [name for name in BOUNDED_BY if name in sizes]
            rows = {name: reads.fetch(f"SELECT count(*) FROM {name}")[0][0] for name in there}  # noqa: S608
    except pymysql.MySQLError as error:
        raise classify(error, address.place)[1] from error
    warnings = []
    if settings["innodb_flush_log_at_trx_commit"] != "1":
        warnings.append(
            "innodb_flush_log_at_trx_commit is not 1: a power cut may lose what was accepted; set it to 1"
        )
    if int(settings["max_allowed_packet"]) < LEAST_PACKET:
        warnings.append("max_allowed_packet is below 16M: large messages are refused; set it to 64M")
    return StoreInfo(
        place=address.place,
        kind=f"MariaDB {version}",
        bytes=sum(sizes.values()),
        rows=rows,
        settings=settings,
        warnings=warnings,
    )
