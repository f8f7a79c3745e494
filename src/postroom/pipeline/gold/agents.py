"""`agent_day`: what each agent got done on a day, how long it took, and what it cost."""

import numpy as np
import pyarrow as pa

from postroom.pipeline.gold.measures import LENGTHS, ends, summed, with_month
from postroom.pipeline.lake.compute import pc
from postroom.pipeline.silver.turns import COUNTS

KEY = ["day", "tenant", "agent"]


def agent_day(lives: pa.Table, turns: pa.Table) -> pa.Table:
    mail = lives.filter(pc.and_(pc.starts_with(lives["queue"], "inbox/"), pc.is_valid(lives["agent"])))
    worked = summed(mail, KEY, ends(mail), LENGTHS)
    tokens = turns[COUNTS[0]]
    for name in COUNTS[1:]:
        tokens = pc.add(tokens, turns[name])
    counts = {
        "turns": np.ones(turns.num_rows, np.int64),
        "failed_turns": pc.not_equal(turns["outcome"], "finished"),
        "tokens": tokens,
    }
    took = summed(turns, KEY, counts, {"turn": "duration_us"}, money=["cost_usd"])
    return with_month(worked.join(took, KEY, join_type="full outer"))
