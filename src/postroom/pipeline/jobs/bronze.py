"""The bronze step: what is new in the store comes into the lake, and what is broken is told."""

from postroom.pipeline.bronze.ingest import Slice, breaks_of, ingest, slices
from postroom.pipeline.jobs.context import Context
from postroom.pipeline.jobs.progress import watched
from postroom.pipeline.jobs.quarantine import QuarantineFinding
from postroom.pipeline.lake.lake import Positions
from postroom.pipeline.lake.tables import BRONZE, LEDGER, MESSAGES, RECORDS


def take_in(at: Context, target: Positions, *, verify: bool = True) -> int:
    """Everything up to these positions; how many rows came. Each table goes on from where it is."""
    works = {table.name: at.look(table) for table in BRONZE}
    pieces: list[Slice] = []
    for table in (LEDGER, MESSAGES):
        pieces += slices(table, works[table.name].done.ledger, target.ledger)
    pieces += slices(RECORDS, works[RECORDS.name].done.records, target.records)
    after = works[LEDGER.name].done.ledger
    new = max(0, target.ledger - after)
    with at.log.step("bronze", after, target.ledger) as step, watched(at.spark, at.told, "bronze", new):
        uris = {table.name: at.lake.uri(table) for table in BRONZE}
        written = ingest(at.spark, pieces, at.source, uris, verify=verify) if pieces else {}
        count, breaks = breaks_of(written.get(LEDGER.name, []))
        at.quarantine(
            [
                QuarantineFinding(table=LEDGER.name, key=str(b.seq), reason=b.problem, seq=b.seq)
                for b in breaks
            ]
        )
        step.quarantined = count
        for table in BRONZE:
            work = works[table.name]
            if work.done.covers(target) and not work.anew:
                continue
            files = [file for file in written.get(table.name, []) if file.path]
            at.commit(work, files, target, work.snapshot.files if work.anew else [])
            step.rows_out += sum(file.rows for file in files)
        step.rows_in = new
    return step.rows_out
