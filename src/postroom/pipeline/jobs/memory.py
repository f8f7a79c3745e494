"""The memory step: what was said in messages that have ended becomes chunks."""

from functools import partial

from postroom.pipeline.jobs.context import Context, newer
from postroom.pipeline.jobs.progress import watched
from postroom.pipeline.jobs.tasks import ANSWER, answers
from postroom.pipeline.lake.append import write_all
from postroom.pipeline.lake.files import WrittenFile
from postroom.pipeline.lake.lake import Positions
from postroom.pipeline.lake.tables import CHUNKS, MESSAGES


def remember(at: Context, target: Positions) -> None:
    from postroom.pipeline.memory.chunks import chunks

    work = at.look(CHUNKS)
    done = work.done
    if work.snapshot.exists and not work.anew and done.ledger >= target.ledger:
        return
    files = newer(at.lake.files(MESSAGES), "ended_seq", done.ledger)
    with at.log.step("memory", done.ledger, target.ledger) as step:
        step.rows_in = sum(file.rows for file in files)
        written: list[WrittenFile] = []
        with watched(at.spark, at.told, "memory", step.rows_in):
            if files:
                new = at.between(MESSAGES, "ended_seq", done.ledger, target.ledger)
                task = partial(write_all, CHUNKS.name, at.lake.uri(CHUNKS), CHUNKS.schema, CHUNKS.tracked)
                said = chunks(new).select(*CHUNKS.schema.names)
                written = answers(said.mapInArrow(task, ANSWER)).get(CHUNKS.name, [])
        gone = work.snapshot.files if work.anew else []
        at.commit(work, written, Positions(target.ledger, 0), gone)
        step.rows_out = sum(file.rows for file in written)
