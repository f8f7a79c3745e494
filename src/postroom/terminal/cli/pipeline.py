"""`postroom pipeline`: the lake is filled, watched, asked, shown and kept in shape."""

import json
import os
import sys
import threading
from collections.abc import Iterable
from datetime import date, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import msgspec
import typer

from postroom.clock import SECOND, iso, micros
from postroom.errors import InvalidField, PostroomError, StoreInUse
from postroom.kernel import checks
from postroom.terminal.cli import completion
from postroom.terminal.cli.command import command, group
from postroom.terminal.cli.confirm import Yes, confirm
from postroom.terminal.cli.errors import FileTaken, NotWritten, Unclear
from postroom.terminal.cli.exports import Format, chosen, write
from postroom.terminal.cli.lake_access import LakeOption, find_source, lake_of, light, source_of
from postroom.terminal.cli.options import argument, choice, flag, option
from postroom.terminal.cli.output import Column, facts, some, span, table
from postroom.terminal.cli.pipeline_catalog import catalog, describe
from postroom.terminal.cli.pipeline_options import (
    BindAddressOption,
    ConfOption,
    DriverHostOption,
    FeedOption,
    FewOption,
    KeepOption,
    LineageOption,
    MasterOption,
    MemoryOption,
    PyFilesOption,
    RemoteOption,
)
from postroom.terminal.cli.store_access import CommandContext, whoami
from postroom.terminal.cli.values import When, duration

if TYPE_CHECKING:
    from postroom.pipeline.jobs.backtest import BacktestVerdict, Guarded
    from postroom.pipeline.jobs.progress import RunProgress
    from postroom.pipeline.jobs.run import Options, Summary
    from postroom.pipeline.jobs.session import Where
    from postroom.pipeline.lake.lake import Lake
    from postroom.pipeline.sources.sqlite import SqliteSource

app = group("pipeline", "History, traces, costs and insights: the lake, on Spark.")

SinceOption = Annotated[When | None, option("TIME", "From this time on, or so long ago.", "--since")]


class ProgressMeter:
    """Progress for people on a terminal, and lines of JSON for programs."""

    def __init__(self, at: CommandContext) -> None:
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn

        self._out = at.out
        self._bars: dict[str, Any] = {}
        self._live = sys.stderr.isatty() and not at.out.as_json
        self._shown = Progress(
            SpinnerColumn(),
            TextColumn("{task.description:<14}"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("{task.fields[rate]}"),
            console=at.out.console(stderr=True),
            disable=not self._live,
        )

    def __enter__(self) -> "ProgressMeter":
        self._shown.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._shown.stop()

    def __call__(self, progress: "RunProgress") -> None:
        if self._out.as_json:
            document = {"progress": msgspec.to_builtins(progress)}
            # In one go: steps that run side by side tell theirs at the same time.
            sys.stderr.write(json.dumps(document) + "\n")
            sys.stderr.flush()
            return
        if not self._live:
            if progress.finished:
                print(f"{progress.step}: {progress.total:,}", file=sys.stderr, flush=True)
            return
        bar = self._bars.get(progress.step)
        if bar is None:
            bar = self._bars[progress.step] = self._shown.add_task(progress.step, total=None, rate="")
        rate = f"{progress.rate:,.0f}/s" if progress.rate else ""
        self._shown.update(bar, completed=progress.done, total=progress.total or None, rate=rate)


@command(
    app,
    "run",
    examples=[
        "postroom pipeline run",
        "postroom pipeline run --full-refresh",
        "postroom pipeline run --master spark://host:7077",
    ],
)
def run(
    at: CommandContext,
    lake: LakeOption = None,
    since: SinceOption = None,
    full_refresh: Annotated[
        bool, flag("Build silver, gold and memory anew from bronze.", "--full-refresh")
    ] = False,
    from_store: Annotated[
        bool, flag("With --full-refresh: bronze too, from what the store still has.", "--from-store")
    ] = False,
    accept_gap: Annotated[
        bool, flag("Go on although events left the store before the lake had them.", "--accept-gap")
    ] = False,
    keep: KeepOption = None,
    no_upkeep: Annotated[bool, flag("Leave small and old files as they are.", "--no-upkeep")] = False,
    trust: Annotated[
        bool, flag("Do not check the hashes of the ledger: a little quicker.", "--trust")
    ] = False,
    master: MasterOption = None,
    remote: RemoteOption = None,
    memory: MemoryOption = 1024,
    conf: ConfOption = None,
    driver_host: DriverHostOption = None,
    bind_address: BindAddressOption = None,
    py_files: PyFilesOption = None,
    few: FewOption = None,
    feed: FeedOption = None,
    lineage: LineageOption = None,
) -> None:
    """Bring everything new from the store into the lake, and work out what it means.

    It may be stopped at any time: the next run goes on where this one ended.
    """
    from postroom.pipeline.errors import PartMissing

    found = lake_of(at, lake)
    source = source_of(at, feed)
    try:
        from postroom.pipeline.jobs.run import Options, nothing_to_do
        from postroom.pipeline.jobs.session import where
    except ImportError as error:
        raise PartMissing(package=error.name or "deltalake") from error
    spark = where(
        master,
        remote,
        memory,
        conf=conf or (),
        driver_host=driver_host,
        bind_address=bind_address,
        py_files=py_files or (),
    )
    options = Options(
        refresh=full_refresh,
        everything=full_refresh and from_store,
        accept_gap=accept_gap,
        verify=not trust,
        upkeep=not no_upkeep,
        keep=_ages(keep or ()),
        since=since.before(at.clock.now()) if since is not None else None,
        lineage=_lineage(lineage),
        few=_few(few, spark),
    )
    idle = nothing_to_do(found, source, options)
    if idle is not None:
        told = f"Nothing is new: the lake is at event {idle.position:,}, where the store is."
        at.out.show({**_document(idle, held=True)}, told)
        return
    done = _carry_out(at, found, source, options, spark)
    held = _hold(at, found)
    at.out.show(_document(done, held), *_told(done, held))


def _few(given: int | None, spark: "Where") -> int:
    """Who names a Spark wants it to be used, however little there is to do."""
    from postroom.pipeline.jobs.crew import FEW_ROWS

    if given is not None and given < 0:
        raise InvalidField("--few", "must be at least 0")
    return given if given is not None else 0 if spark.named else FEW_ROWS


def _lineage(given: str | None) -> str:
    """Refused at once when it cannot be told at all; a server that is away stops nothing."""
    from postroom.pipeline.jobs.lineage import check_lineage

    where = given if given is not None else os.environ.get("POSTROOM_LINEAGE", "")
    check_lineage(where)
    return where


def _ages(given: Iterable[str]) -> dict[str, float]:
    from postroom.pipeline.jobs.retention import LETTING_GO

    names = [table.name for table in LETTING_GO]
    found: dict[str, float] = {}
    for each in given:
        name, _, text = each.partition("=")
        if name not in names:
            raise InvalidField("--keep", f"{name!r} is no table of the lake; there are {', '.join(names)}")
        found[name] = duration(text)
    return found


def _carry_out(
    at: CommandContext, lake: "Lake", source: "SqliteSource", options: "Options", chosen: "Where"
) -> "Summary":
    from postroom.pipeline.jobs.parallel import interruptible
    from postroom.pipeline.jobs.run import run as run_once
    from postroom.pipeline.jobs.session import lazy_session

    with ProgressMeter(at) as meter, lazy_session(chosen) as spark:
        return interruptible(spark, lambda: run_once(spark, lake, source, at.clock, options, meter))


@command(app, "backfill", examples=["postroom pipeline backfill --from 2026-11-01 --to 2026-11-03"])
def backfill(
    at: CommandContext,
    first: Annotated[str, option("DAY", "The first day, like 2026-11-01.", "--from")],
    last: Annotated[str | None, option("DAY", "The last day. Default the first.", "--to")] = None,
    lake: LakeOption = None,
    master: MasterOption = None,
    remote: RemoteOption = None,
    memory: MemoryOption = 1024,
    lineage: LineageOption = None,
) -> None:
    """Build these days of silver and gold once more from bronze. What is new is taken in first."""
    found, source = lake_of(at, lake), source_of(at)
    _must_exist(found)
    from postroom.pipeline.jobs.backfill import DayRange, check_days
    from postroom.pipeline.jobs.backfill import backfill as carry_out
    from postroom.pipeline.jobs.parallel import interruptible
    from postroom.pipeline.jobs.run import Options, nothing_to_do
    from postroom.pipeline.jobs.run import run as run_once
    from postroom.pipeline.jobs.session import lazy_session, where

    days = DayRange(_day("--from", first), _day("--to", last or first))
    if days.last < days.first:
        raise InvalidField("--to", "is before --from")
    check_days(found, days)
    chosen = where(master, remote, memory)
    options = Options(lineage=_lineage(lineage), few=_few(None, chosen))
    with ProgressMeter(at) as meter, lazy_session(chosen) as spark:
        if nothing_to_do(found, source, options) is None:
            interruptible(spark, lambda: run_once(spark, found, source, at.clock, options, meter))
        done = interruptible(spark, lambda: carry_out(spark, found, source, at.clock, days, options, meter))
    at.out.show(
        msgspec.to_builtins(done),
        *(f"{name}: {some(rows, 'row')}" for name, rows in done.rows.items()),
        *done.broken,
        *done.notices,
        f"{some(done.days, 'day')} built anew.",
    )


def _day(name: str, text: str) -> date:
    try:
        return date.fromisoformat(text)
    except ValueError:
        raise InvalidField(name, f"is {text!r}, must be a day like 2026-11-01") from None


@command(app, "verify", examples=["postroom pipeline verify", "postroom pipeline verify --repair"])
def verify(
    at: CommandContext,
    lake: LakeOption = None,
    repair: Annotated[
        bool, flag("Take damaged files out, and get their rows from the store or from bronze.", "--repair")
    ] = False,
    master: MasterOption = None,
    remote: RemoteOption = None,
    memory: MemoryOption = 1024,
) -> None:
    """Read every file of the lake and check it: checksums, rows, ranges. Damage is exit code 7."""
    found = lake_of(at, lake)
    _must_exist(found)
    if repair:
        from postroom.pipeline.jobs.run import Options
        from postroom.pipeline.jobs.session import where

        chosen = where(master, remote, memory)
        options = Options(scrub=True, few=_few(None, chosen))
        done = _carry_out(at, found, source_of(at), options, chosen)
        held = _hold(at, found)
        at.out.show(_document(done, held), *(done.repaired or ["Nothing is damaged."]))
        return
    from postroom.pipeline.jobs.verify import verify_lake

    def checked(name: str, files: int, damaged: int) -> None:
        _say(at)(name, {"files": files, "damaged": damaged})

    damages = verify_lake(found, checked)
    at.out.show(
        [{"table": each.data["table"], "problem": each.data["problem"]} for each in damages],
        *(f"{each.data['table']}: {each.data['problem']}" for each in damages),
        "Repair it: postroom pipeline verify --repair" if damages else "Nothing is damaged.",
    )
    if damages:
        raise typer.Exit(damages[0].exit_code)


def _hold(at: CommandContext, lake: "Lake") -> bool:
    """Let the store's pruner know how far it may go; when another process owns it, that one does so."""
    from postroom.pipeline.jobs.prune import hold
    from postroom.stores.sqlite import SqliteStore

    try:
        store = SqliteStore(at.path, clock=at.clock)
    except StoreInUse:
        return False
    try:
        hold(store, lake)
    finally:
        store.close()
    return True


def _document(done: "Summary", held: bool) -> dict[str, Any]:
    return {**msgspec.to_builtins(done), "held": held}


def _told(done: "Summary", held: bool) -> list[Any]:
    shown: list[Any] = [
        table(
            [
                "step",
                Column("rows in", right=True),
                Column("rows out", right=True),
                Column("took", right=True),
            ],
            [(step.step, step.rows_in, step.rows_out, span(step.seconds)) for step in done.steps],
        ),
        f"{some(done.events, 'new event')} in {span(done.seconds)}; the lake is at event {done.position:,}.",
    ]
    shown += done.repaired
    shown += done.broken
    shown += done.notices
    if done.quarantined:
        shown.append(
            f"{some(done.quarantined, 'row')} broke an expectation; they are in the table quarantine."
        )
    if not held:
        shown.append("The store is open in another process, which learns of this position when it next asks.")
    return shown


@command(app, "watch", json=False, examples=["postroom pipeline watch", "postroom pipeline watch --every 1m"])
def watch(
    at: CommandContext,
    lake: LakeOption = None,
    every: Annotated[float, option("DURATION", "How often to look. Default 1s.", "--every")] = 1.0,
    master: MasterOption = None,
    remote: RemoteOption = None,
    memory: MemoryOption = 1024,
    conf: ConfOption = None,
    driver_host: DriverHostOption = None,
    bind_address: BindAddressOption = None,
    py_files: PyFilesOption = None,
    few: FewOption = None,
    feed: FeedOption = None,
    lineage: LineageOption = None,
) -> None:
    """Stay with the store: a run whenever there is something new. Ctrl-C ends it."""
    from postroom.pipeline.jobs.parallel import interruptible
    from postroom.pipeline.jobs.run import Options
    from postroom.pipeline.jobs.session import lazy_session, where
    from postroom.pipeline.jobs.watch import watch as stay

    found, source, stop = lake_of(at, lake), source_of(at, feed), threading.Event()
    chosen = where(
        master,
        remote,
        memory,
        conf=conf or (),
        driver_host=driver_host,
        bind_address=bind_address,
        py_files=py_files or (),
    )
    options = Options(lineage=_lineage(lineage), few=_few(few, chosen))

    def done(summary: "Summary") -> None:
        at.out.say(f"{iso(at.clock.now())}  {some(summary.events, 'event')} in {span(summary.seconds)}")
        for line in (*summary.repaired, *summary.broken, *summary.notices):
            at.out.say(line)

    def waits(error: PostroomError) -> None:
        at.out.say(f"{iso(at.clock.now())}  {error}")

    with lazy_session(chosen) as spark:
        try:
            interruptible(
                spark,
                lambda: stay(
                    spark,
                    found,
                    source,
                    at.clock,
                    stop,
                    every_s=every,
                    options=options,
                    done=done,
                    waits=waits,
                ),
                stop.set,
            )
        except KeyboardInterrupt:
            at.out.say("The watch has ended; what was committed stays.")


@command(app, "status", examples=["postroom pipeline status", "postroom pipeline status --json"])
def status(at: CommandContext, lake: LakeOption = None) -> None:
    """Show how far the lake has come, what it holds, and what its last run did."""
    found = lake_of(at, lake)
    from postroom.pipeline.serving.status import status as look

    source = find_source(at)
    state = look(found, source)
    running = state["running"]
    at.out.show(
        state,
        *(
            f"Broken since {row['since']}: {row['table']}, {row['expectation']}: {some(row['broken'], 'row')}"
            for row in state["expectations"]["broken"]
        ),
        facts(
            [
                ("lake", state["lake"]),
                ("position", f"{state['position']:,}"),
                ("behind the store", None if state["behind"] is None else some(state["behind"], "event")),
                ("running", f"pid {running['pid']} since {running['since']}" if running else None),
                ("quarantined", f"{state['quarantined']:,}" if state["quarantined"] else None),
                ("expectations", _kept(state["expectations"])),
            ]
        ),
        table(
            ["table", Column("rows", right=True), Column("files", right=True), Column("MB", right=True),
             Column("position", right=True), Column("version", right=True)],
            [
                (each["table"], each["rows"], each["files"], f"{each['bytes'] / 1e6:.1f}", each["position"],
                 each["version"])
                for each in state["tables"]
            ],
        ),
    )  # fmt: skip


def _kept(found: dict[str, Any]) -> str | None:
    if not found["checked"]:
        return None
    broken = len(found["broken"])
    return f"{broken} of {found['checked']} broken" if broken else f"all {found['checked']} kept"


@command(
    app,
    "query",
    examples=[
        'postroom pipeline query "SELECT agent, sum(cost_usd) FROM agent_day GROUP BY agent"',
        'postroom pipeline query "SELECT * FROM traces" --format csv --out traces.csv',
        "postroom pipeline query tables",
    ],
)
def query(
    at: CommandContext,
    sql: Annotated[str, argument("SQL", "The question, or the word tables.")],
    lake: LakeOption = None,
    as_: Annotated[
        Format | None, choice(Format, "How to answer", "--format", default="table, or by the name of --out")
    ] = None,
    out: Annotated[Path | None, option("FILE", "Write it to this file.", "--out")] = None,
    limit: Annotated[int, option("N", "Rows to show at most. Default 1000.", "--limit")] = 1000,
    force: Annotated[bool, flag("Replace the file if it is there.", "--force")] = False,
) -> None:
    """Ask the lake in SQL, without starting Spark. Nothing outside the lake can be read."""
    checks.check_count("--limit", limit, least=1, most=1_000_000)
    form = chosen(as_, out, force=force)
    with light(at, lake) as engine:
        if sql.strip().lower() == "tables":
            names = engine.tables()
            at.out.show(names, "\n".join(names))
            return
        found = engine.table(sql)
    if form is not Format.TABLE:
        write(found, form, out)
        if out is not None:
            told = f"{some(found.num_rows, 'row')} written to {out}"
            at.out.show({"file": str(out), "rows": found.num_rows}, told)
        return
    from postroom.pipeline.serving.insights import plain

    rows = [plain(row) for row in found.slice(0, limit).to_pylist()]
    at.out.show(
        rows, table([*found.schema.names], [[_shown(value) for value in row.values()] for row in rows])
    )
    if found.num_rows > limit and not at.out.as_json:
        at.out.note(f"{found.num_rows - limit:,} more rows; see --limit, or --out FILE")


def _shown(value: Any) -> Any:
    return f"{value:,.6g}" if isinstance(value, float) else value


@command(
    app,
    "report",
    examples=["postroom pipeline report", "postroom pipeline report --since 7d --out week.html"],
)
def report(
    at: CommandContext,
    lake: LakeOption = None,
    since: SinceOption = None,
    out: Annotated[Path, option("FILE", "Where to. Default postroom-report.html.", "--out")] = Path(
        "postroom-report.html"
    ),
    force: Annotated[bool, flag("Replace the file if it is there.", "--force")] = False,
) -> None:
    """Write one page with everything worth seeing; it needs no network and can be sent to anybody."""
    from datetime import UTC, datetime

    if out.exists() and not force:
        raise FileTaken(path=str(out))
    with light(at, lake) as engine:
        from postroom.pipeline.serving.insights import period
        from postroom.pipeline.serving.report import report as page

        first = since.before(at.clock.now()) if since is not None else None
        day = datetime.fromtimestamp(first / SECOND, UTC).date() if first is not None else None
        text = page(engine, period(engine, day), iso(at.clock.now()))
    try:
        out.write_text(text, "utf-8")
    except OSError as error:
        if error.filename is None:  # it was begun
            out.unlink(missing_ok=True)
        raise NotWritten(path=str(out), reason=error.strerror or str(error)) from None
    at.out.show({"file": str(out), "bytes": len(text)}, f"The report is in {out}")


@command(app, "compact", examples=["postroom pipeline compact", "postroom pipeline compact --sort"])
def compact(
    at: CommandContext,
    lake: LakeOption = None,
    sort: Annotated[bool, flag("Also put rows together that are looked up together.", "--sort")] = False,
) -> None:
    """Turn many small files of the lake into few large ones."""
    found = lake_of(at, lake)
    from postroom.pipeline.jobs.maintenance import compact as carry_out
    from postroom.pipeline.lake.lease import hold_lease

    with hold_lease(found, at.clock):
        done = carry_out(found, _say(at), sort=sort)
    at.out.show(
        done, f"{some(sum(each['files_removed'] for each in done.values()), 'small file')} put together."
    )


@command(app, "vacuum", examples=["postroom pipeline vacuum", "postroom pipeline vacuum --keep 1d --dry-run"])
def vacuum(
    at: CommandContext,
    lake: LakeOption = None,
    keep: Annotated[
        float, option("DURATION", "Keep what older versions need. Default 7d.", "--keep")
    ] = 604_800.0,
    dry_run: Annotated[bool, flag("Only count.", "--dry-run")] = False,
) -> None:
    """Delete files that nothing needs any more, also those that a killed run left behind."""
    found = lake_of(at, lake)
    from postroom.pipeline.jobs.maintenance import vacuum as carry_out
    from postroom.pipeline.lake.lease import hold_lease

    with hold_lease(found, at.clock):
        done = carry_out(found, _say(at), keep=timedelta(seconds=keep), dry_run=dry_run)
    count = sum(each["files"] for each in done.values())
    at.out.show(done, f"{some(count, 'file')} {'would go' if dry_run else 'deleted'}.")


@command(
    app,
    "retain",
    examples=["postroom pipeline retain --keep 365d --dry-run", "postroom pipeline retain --keep 90d --yes"],
)
def retain(
    at: CommandContext,
    keep: Annotated[float, option("DURATION", "How much of the past to keep, like 365d.", "--keep")],
    lake: LakeOption = None,
    gold: Annotated[bool, flag("Sums too; they hold nothing that anybody wrote.", "--gold")] = False,
    only: Annotated[
        list[str] | None, option("TABLE", "Only this table; may be given several times.", "--table")
    ] = None,
    dry_run: Annotated[bool, flag("Only count.", "--dry-run")] = False,
    yes: Yes = False,
) -> None:
    """Let go of what is older: it leaves the lake for good, and cannot be had again from anywhere.

    Its files are deleted by the first vacuum a week later.
    """
    found = lake_of(at, lake)
    _must_exist(found)
    from postroom.pipeline.jobs.retention import retain as carry_out

    tables = tuple(_ages(f"{name}=0" for name in only or ()))
    if not dry_run and not yes:
        would = carry_out(found, at.clock, keep_s=keep, gold=gold, only=tables, dry_run=True)
        rows = sum(each.rows for each in would.values())
        if rows:
            confirm(f"{some(rows, 'row')} older than {span(keep)} will leave the lake for good. Go on?")
    done = carry_out(found, at.clock, keep_s=keep, gold=gold, only=tables, dry_run=dry_run, told=_say(at))
    rows = sum(each.rows for each in done.values())
    at.out.show(
        msgspec.to_builtins(done),
        f"{some(rows, 'row')} {'would leave' if dry_run else 'left'} the lake."
        + (" Their files go with the next vacuum." if rows and not dry_run else ""),
    )


def _must_exist(lake: "Lake") -> None:
    from postroom.pipeline.errors import LakeMissing
    from postroom.pipeline.lake.tables import LEDGER

    if lake.open(LEDGER) is None:
        raise LakeMissing(lake=lake.location)


def _say(at: CommandContext):
    def say(name: str, numbers: dict[str, Any]) -> None:
        if not at.out.as_json:
            told = ", ".join(f"{value:,} {key.replace('_', ' ')}" for key, value in numbers.items())
            print(f"{name}: {told}", file=sys.stderr, flush=True)

    return say


@command(app, "prune", examples=["postroom pipeline prune --keep 7d"])
def prune(
    at: CommandContext,
    lake: LakeOption = None,
    keep: Annotated[
        float, option("DURATION", "Keep what ended within this time. Default 7d.", "--keep")
    ] = 604_800.0,
) -> None:
    """Drop from the hot store what has ended and is safe in the lake, and let its file shrink."""
    found = lake_of(at, lake)
    source_of(at)
    _must_exist(found)
    from postroom.pipeline.jobs.prune import prune as carry_out

    done = carry_out(at.path, found, at.clock, keep_s=keep)
    at.out.show(
        msgspec.to_builtins(done),
        f"{some(done.messages, 'message')} and {some(done.events, 'event')} left the store for the lake. "
        f"{some(done.pages, 'page')} given back to the disk.",
    )


@command(app, "erase", examples=["postroom pipeline erase sender_id telegram-ada --dry-run"])
def erase(
    at: CommandContext,
    field: Annotated[str, argument("FIELD", "labels.<name>, body.<path>, sender_id, source_id …")],
    value: Annotated[str, argument("VALUE", "The value that stands for the person.")],
    lake: LakeOption = None,
    dry_run: Annotated[bool, flag("Only count.", "--dry-run")] = False,
    yes: Yes = False,
) -> None:
    """Erase what the lake holds about a person, in every layer and down to the files.

    Erase it from the hot store first: postroom erase.
    """
    from postroom.kernel.erasure.subject import Subject, check_subject

    found = lake_of(at, lake)
    from postroom.pipeline.jobs.erase import LakeEraser

    subject = Subject(field=field, value=value)
    check_subject(subject)
    eraser = LakeEraser(found, at.clock)
    ids = eraser.find(subject)
    rows = eraser.count(ids)
    if not dry_run and rows:
        question = f"{some(rows, 'row')} of {some(len(ids), 'message')} will be erased for good. Go on?"
        if not yes:
            confirm(question)
        eraser.carry_out(ids)
    left = rows if dry_run else eraser.count(ids)
    at.out.show(
        {"messages": len(ids), "rows": rows, "left": left, "erased": not dry_run},
        f"{some(rows, 'row')} of {some(len(ids), 'message')} {'found' if dry_run else 'erased'}.",
    )


@command(
    app,
    "backtest",
    examples=[
        "postroom pipeline backtest --rule rule.json",
        "postroom pipeline backtest --hops 3 --usd 0.50",
    ],
)
def backtest(
    at: CommandContext,
    rule: Annotated[Path | None, option("FILE", "A rule as JSON, as for rule add.", "--rule")] = None,
    hops: Annotated[int | None, option("N", "A guard: so many hand-offs at most.", "--hops")] = None,
    messages: Annotated[int | None, option("N", "A guard: so many messages at most.", "--messages")] = None,
    usd: Annotated[float | None, option("N", "A guard: so many dollars at most.", "--usd")] = None,
    lake: LakeOption = None,
    master: MasterOption = None,
    remote: RemoteOption = None,
    memory: MemoryOption = 1024,
) -> None:
    """Run a rule or a guard over all of history, and see what it would have done."""
    found = lake_of(at, lake)
    guards = {"--hops": hops, "--messages": messages, "--usd": usd}
    if (rule is None) == all(each is None for each in guards.values()):
        raise Unclear("Give either --rule FILE, or a guard: --hops, --messages or --usd")
    for name, value in guards.items():
        if value is not None and value < (1 if name == "--messages" else 0):
            raise InvalidField(name, "must be at least " + ("1" if name == "--messages" else "0"))
    document = _rule(rule) if rule is not None else None
    _must_exist(found)
    from postroom.pipeline.jobs import backtest as past
    from postroom.pipeline.jobs.session import session, where

    if document is not None:
        past.read_rule(document)
        from postroom.pipeline.serving.engine import engine

        with engine(found) as opened:
            past.check_source(opened, document)
    with session(where(master, remote, memory)) as spark:
        if document is not None:
            verdict = past.backtest(spark, found, document)
            shown = _told_rule(verdict)
        else:
            guarded = past.guard(spark, found, hops=hops, messages=messages, usd=usd)
            verdict, shown = guarded, _told_guard(guarded)
    at.out.show(msgspec.to_builtins(verdict), *shown)


def _rule(path: Path) -> dict[str, Any]:
    try:
        document = json.loads(path.read_text("utf-8"))
    except OSError as error:
        raise InvalidField("--rule", f"{path} cannot be read: {error.strerror}") from None
    except ValueError as error:
        raise InvalidField("--rule", f"{path} is no JSON: {error}") from None
    if not isinstance(document, dict):
        raise InvalidField("--rule", f"{path} must hold one rule, a JSON object")
    return document


def _told_rule(verdict: "BacktestVerdict") -> list[Any]:
    shown: list[Any] = [
        f"The rule would have taken {verdict.matched:,} of {some(verdict.looked_at, 'message')}."
    ]
    if verdict.matched:
        shown.append(table(["queue", Column("messages", right=True)], sorted(verdict.by_queue.items())))
        ends = ", ".join(f"{count:,} {name}" for name, count in sorted(verdict.by_outcome.items()))
        shown.append(f"How they ended without it: {ends}.")
        shown.append(f"For example: postroom why {verdict.examples[0]}")
    return shown


def _told_guard(found: "Guarded") -> list[Any]:
    shown: list[Any] = [
        f"The guard would have stopped {found.stopped:,} of {some(found.conversations, 'conversation')}."
    ]
    if found.stopped:
        shown += [
            f"{some(found.messages_not_sent, 'message')} would not have been sent, "
            f"and about ${found.saved_usd:,.2f} not been spent.",
            f"{found.completed_anyway:,} of them came to a good end without it.",
            f"For example: postroom trace {found.examples[0]}",
        ]
    return shown


@command(
    app,
    "replay",
    examples=[
        "postroom pipeline replay telegram:1-17",
        "postroom pipeline replay telegram:1-17 --agent coder --usd 0.20",
    ],
)
async def replay(
    at: CommandContext,
    trace: Annotated[
        str,
        argument("ID", "The conversation, or one of its messages.", autocompletion=completion.message_ids),
    ],
    agent: Annotated[str | None, option("NAME", "To this agent instead.", "--agent")] = None,
    model: Annotated[str | None, option("NAME", "With this model instead.", "--model")] = None,
    usd: Annotated[float | None, option("N", "It may cost so many dollars.", "--usd")] = None,
    number: Annotated[str, option("TEXT", "Which replay of it this is. Default 1.", "--number")] = "1",
    lake: LakeOption = None,
) -> None:
    """Send what people wrote in a past conversation once more, marked, to an outbox that nobody delivers."""
    from postroom.pipeline.jobs.replay import ReplayReport, replayed

    wanted = ReplayReport(trace=trace, agent=agent, model=model, usd=usd, number=number)
    with light(at, lake) as engine:
        commands = replayed(engine, wanted, whoami())
    async with at.services(change=True) as services:
        answers = await services.units.apply(at.caller, commands)
    receipts = [receipt for each in answers for receipt in each]
    new = sum(receipt.created for receipt in receipts)
    at.out.show(
        {"messages": [receipt.id for receipt in receipts], "created": new},
        f"{some(new, 'message')} sent again"
        + (f"; {len(receipts) - new} had been before." if new < len(receipts) else "."),
    )


@command(
    app,
    "generate",
    examples=[
        "postroom pipeline generate --store month.db",
        "postroom pipeline generate --store month.db --history 7d --rate 1000",
    ],
)
def generate(
    at: CommandContext,
    history: Annotated[float, option("DURATION", "How much time. Default 30d.", "--history")] = 2_592_000.0,
    rate: Annotated[float, option("N", "People who write on a weekday. Default 400.", "--rate")] = 400.0,
    seed: Annotated[int, option("N", "Another seed, another month. Default 1.", "--seed")] = 1,
    events: Annotated[int | None, option("N", "End after about so many events.", "--events")] = None,
    until: Annotated[When | None, option("TIME", "When it ends. Default now.", "--until")] = None,
) -> None:
    """Make a month of mail with failures, hand-offs and costs, in a new store."""
    from postroom.pipeline.generator.month import MonthPlan
    from postroom.pipeline.generator.month import generate as make

    end = until.before(at.clock.now()) if until is not None else at.clock.now() // micros(60) * micros(60)
    plan = MonthPlan(end=end, days=history / 86_400, per_day=rate, seed=seed, events=events)
    made = make(at.path, plan)
    at.out.show(
        {"store": str(at.path), **msgspec.to_builtins(made)},
        f"{some(made.conversations, 'conversation')}, {some(made.events, 'event')}: {at.path}",
        f"Look at it: postroom pipeline run --store {at.path} && postroom pipeline report --store {at.path}",
    )


command(
    app,
    "describe",
    examples=["postroom pipeline describe", "postroom pipeline describe message_life"],
)(describe)
command(
    app,
    "catalog",
    examples=[
        "postroom pipeline catalog --for duckdb --out lake.sql",
        "postroom pipeline catalog --for trino --lake s3://bucket/postroom",
    ],
)(catalog)
