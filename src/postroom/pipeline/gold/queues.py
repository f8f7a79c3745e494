"""`queue_hour`: what went through each queue in an hour; `sla`: how much of it was done in time."""

import numpy as np
import pyarrow as pa

from postroom.pipeline.gold.measures import LENGTHS, ends, summed, with_month
from postroom.pipeline.lake.compute import pc

MINUTE_US = 60_000_000


def queue_hour(lives: pa.Table) -> pa.Table:
    known = lives.filter(pc.is_valid(lives["published_at"]))
    hours = known.append_column("hour", pc.floor_temporal(known["published_at"], unit="hour"))
    return with_month(summed(hours, ["day", "hour", "tenant", "scope", "queue"], ends(hours), LENGTHS))


def sla(lives: pa.Table) -> pa.Table:
    ended = lives.filter(pc.not_equal(lives["outcome"], "open"))
    outcome, total = ended["outcome"], ended["total_us"]
    done = pc.equal(outcome, "completed")
    counts = {
        "ended": np.ones(ended.num_rows, np.int64),
        **{
            f"within_{name}": pc.and_(done, pc.less_equal(total, minutes * MINUTE_US))
            for name, minutes in (("1m", 1), ("5m", 5), ("1h", 60))
        },
        "failed": pc.is_in(outcome, value_set=pa.array(["dead", "expired"])),
    }
    key = ["day", "tenant", "scope", "queue"]
    return with_month(summed(ended, key, counts, {"total": "total_us"}, (50, 99)))
