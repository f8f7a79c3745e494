"""The memory step: what was said in messages that have ended becomes chunks."""

from functools import partial

from postroom.pipeline.jobs.context import Context
from postroom.pipeline.jobs.progress import watched
from postroom.pipeline.jobs.silver import newer
from postroom.pipeline.jobs.tasks import ANSWER, answers
from postroom.pipeline.lake.append import write_all
from postroom.pipeline.lake.lake import Positions
from postroom.pipeline.lake.tables import CHUNKS, MESSAGES


def remember(at: Context, target: Positions) -> None:
    from postroom.pipeline.memory.chunks import chunks

    done = at.lake.positions(CHUNKS)
    if done.ledger >= target.ledger and at.lake.open(CHUNKS) is not None:
        return
    files = newer(at.lake.files(MESSAGES), "ended_seq", done.ledger)
    with at.log.step("memory", done.ledger, target.ledger) as step:
        step.rows_in = sum(file.rows for file in files)
        with watched(at.spark, at.told, "memory", step.rows_in):
            new = at.between(MESSAGES, "ended_seq", done.ledger, target.ledger)
            work = partial(write_all, CHUNKS.name, at.lake.uri(CHUNKS), CHUNKS.schema, CHUNKS.tracked)
            said = chunks(new).select(*CHUNKS.schema.names)
            written = answers(said.mapInArrow(work, ANSWER)).get(CHUNKS.name, [])
        at.lake.commit(CHUNKS, written, Positions(target.ledger, 0), base=done, about={"run": at.log.run_id})
        step.rows_out = sum(file.rows for file in written)
