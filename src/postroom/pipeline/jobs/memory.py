"""The memory step: what was said in messages that have ended becomes chunks."""

from collections.abc import Iterator

import msgspec

from postroom.pipeline.jobs.context import Context
from postroom.pipeline.jobs.progress import watched
from postroom.pipeline.jobs.results import read_results, tell_files
from postroom.pipeline.jobs.silver import NewRows, new_rows
from postroom.pipeline.jobs.workers import Parcel
from postroom.pipeline.lake.lake import Positions
from postroom.pipeline.lake.tables import CHUNKS, MESSAGES
from postroom.pipeline.lake.upsert import Target, write_part
from postroom.pipeline.memory.chunks import NEEDED, chunks


class ChunkTasks(msgspec.Struct, frozen=True):
    """What was said, each task into one file if there is anything."""

    new: NewRows
    target: Target

    def __call__(self, number: int) -> Iterator[Parcel]:
        said = map(chunks, self.new.read(number, MESSAGES, NEEDED))
        yield from tell_files(self.target.table, write_part(self.target, None, said))


def remember(at: Context, target: Positions) -> None:
    work = at.look(CHUNKS)
    done = work.done
    if work.snapshot.exists and not work.anew and done.ledger >= target.ledger:
        return
    new = new_rows(at.lake.files(MESSAGES), "ended_seq", done.ledger, target.ledger)
    workers = at.crew.of(new.rows)
    with at.log.step("memory", done.ledger, target.ledger) as step:
        step.rows_in = new.rows
        with watched(workers, at.told, "memory", new.rows):
            results = read_results(workers.collect(ChunkTasks(new, work.target([])), len(new.portions)))
        at.commit_results([work], results, Positions(target.ledger, 0))
        step.rows_out = results.rows(CHUNKS.name)
