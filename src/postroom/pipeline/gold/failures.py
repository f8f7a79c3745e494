"""`failure_causes`: what went wrong where, how often it was got over, and an example to look at."""

import numpy as np
import pyarrow as pa

from postroom.pipeline.gold.measures import Groups, summed, with_month
from postroom.pipeline.lake.compute import pc

KEY = ["day", "tenant", "scope", "queue", "agent", "error_class"]


def failure_causes(lives: pa.Table) -> pa.Table:
    failed = lives.filter(pc.is_valid(lives["error_class"])).sort_by([("last_seq", "descending")])
    counts = {
        "messages": np.ones(failed.num_rows, np.int64),
        "failures": failed["failures"],
        "dead": pc.equal(failed["outcome"], "dead"),
        "recovered": pc.equal(failed["outcome"], "completed"),
    }
    found = summed(failed, KEY, counts)
    example = failed.take(Groups(failed, KEY).first)
    found = found.append_column("example_id", example["message_id"])
    return with_month(found.append_column("example_reason", example["error_reason"]))
