"""`cost_day`: tokens and money by agent and model. Turns without a price are counted, not taken as free."""

import numpy as np
import pyarrow as pa

from postroom.pipeline.gold.measures import summed, with_month
from postroom.pipeline.lake.compute import pc
from postroom.pipeline.silver.turns import COUNTS


def cost_day(turns: pa.Table) -> pa.Table:
    counts = {
        "turns": np.ones(turns.num_rows, np.int64),
        **{name: turns[name] for name in COUNTS},
        "unpriced": pc.is_null(turns["cost_usd"]),
    }
    key = ["day", "tenant", "agent", "provider", "model"]
    return with_month(summed(turns, key, counts, money=["cost_usd"]))
