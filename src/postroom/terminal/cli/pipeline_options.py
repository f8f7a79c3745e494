"""Options that commands of `postroom pipeline` share: where Spark runs, and what a run keeps and tells."""

from typing import Annotated

from postroom.terminal.cli.options import option

SPARK = "Spark"
MasterOption = Annotated[
    str | None,
    option("URL", "Spark's master. Else POSTROOM_SPARK_MASTER, else local[*].", "--master", panel=SPARK),
]
RemoteOption = Annotated[
    str | None,
    option("URL", "A Spark Connect server (sc://…). Else POSTROOM_SPARK_REMOTE.", "--remote", panel=SPARK),
]
MemoryOption = Annotated[
    int, option("MB", "Memory of the driver's JVM. Default 1024.", "--memory", panel=SPARK)
]
ConfOption = Annotated[
    list[str] | None,
    option("KEY=VALUE", "A setting of Spark's own; may be given several times.", "--conf", panel=SPARK),
]
DriverHostOption = Annotated[
    str | None,
    option(
        "HOST",
        "Where workers reach this process. Else POSTROOM_SPARK_DRIVER_HOST.",
        "--driver-host",
        panel=SPARK,
    ),
]
BindAddressOption = Annotated[
    str | None,
    option("ADDRESS", "Where it listens. Else POSTROOM_SPARK_BIND_ADDRESS.", "--bind-address", panel=SPARK),
]
PyFilesOption = Annotated[
    list[str] | None,
    option("FILE", "Python files for workers; may be given several times.", "--py-files", panel=SPARK),
]
FewOption = Annotated[
    int | None,
    option(
        "ROWS",
        "Steps over so many rows at most need no Spark. Default 250000; 0 where a master or remote is named.",
        "--few",
        panel=SPARK,
    ),
]
FeedOption = Annotated[
    str | None,
    option(
        "URL",
        "Workers read the store through the office that runs there. Else POSTROOM_SPARK_FEED.",
        "--feed",
        panel=SPARK,
    ),
]
KeepOption = Annotated[
    list[str] | None,
    option(
        "TABLE=DURATION",
        "Let go of rows beyond this age, like bronze/messages=365d; may be given several times.",
        "--keep",
    ),
]
LineageOption = Annotated[
    str | None,
    option(
        "WHERE",
        "Tell OpenLineage events to this address or file, or env. Else POSTROOM_LINEAGE.",
        "--lineage",
    ),
]
