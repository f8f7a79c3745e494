"""`handoff_graph`: who hands work to whom, how long it lay there, and how it ended."""

import numpy as np
import pyarrow as pa

from postroom.pipeline.gold.measures import summed, with_month
from postroom.pipeline.lake.compute import pc


def handoff_graph(handoffs: pa.Table) -> pa.Table:
    outcome = handoffs["outcome"]
    counts = {
        "handoffs": np.ones(handoffs.num_rows, np.int64),
        "completed": pc.equal(outcome, "completed"),
        "failed": pc.is_in(outcome, value_set=pa.array(["dead", "expired"])),
    }
    key = ["day", "tenant", "from_agent", "to_agent"]
    return with_month(summed(handoffs, key, counts, {"latency": "latency_us"}))
