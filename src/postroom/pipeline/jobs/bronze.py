"""The bronze step: what is new in the store comes into the lake, and what is broken is told."""

from postroom.pipeline.bronze.ingest import Ingest, breaks_of, slices
from postroom.pipeline.jobs.context import Context
from postroom.pipeline.jobs.progress import watched
from postroom.pipeline.jobs.quarantine import QuarantineFinding
from postroom.pipeline.jobs.results import read_results
from postroom.pipeline.lake.lake import Positions
from postroom.pipeline.lake.tables import BRONZE, LEDGER, RECORDS


def take_in(at: Context, target: Positions, *, verify: bool = True) -> int:
    """Everything up to these positions; how many rows came. Each table goes on from where it is."""
    works = {table: at.look(table) for table in BRONZE}
    ranges = {
        table: (work.done.records, target.records) if table is RECORDS else (work.done.ledger, target.ledger)
        for table, work in works.items()
    }
    pieces = [piece for table, (after, up_to) in ranges.items() for piece in slices(table, after, up_to)]
    after = works[LEDGER].done.ledger
    new = max(0, target.ledger - after)
    workers = at.crew.of(max(up_to - after for after, up_to in ranges.values()))
    with at.log.step("bronze", after, target.ledger) as step, watched(workers, at.told, "bronze", new):
        uris = {table.name: at.lake.uri(table) for table in BRONZE}
        results = read_results(workers.collect(Ingest(pieces, at.source, uris, verify), len(pieces)))
        count, breaks = breaks_of(results.written.get(LEDGER.name, []))
        at.quarantine(
            [
                QuarantineFinding(table=LEDGER.name, key=str(b.seq), reason=b.problem, seq=b.seq)
                for b in breaks
            ]
        )
        step.quarantined = count
        for table, work in works.items():
            if work.done.covers(target) and not work.anew:
                continue
            files = [file for file in results.written.get(table.name, []) if file.path]
            at.commit(work, files, target, work.snapshot.files if work.anew else [])
            step.rows_out += sum(file.rows for file in files)
        step.rows_in = new
    return step.rows_out
