"""`channel_day`: how many people wrote on each channel, and how soon they had an answer."""

import numpy as np
import pyarrow as pa

from postroom.pipeline.gold.measures import summed, with_month
from postroom.pipeline.lake.compute import pc

KEY = ["tenant", "trace_id"]


def channel_day(traces: pa.Table, spans: pa.Table) -> pa.Table:
    """Conversations by the day they began. Answered is when the first reply was ready to be delivered."""
    people = traces.filter(pc.is_valid(traces["channel"])).select([*KEY, "day", "channel", "started_at"])
    reply = pc.match_substring(spans["name"], "/outbox/")
    mail = pc.and_(pc.match_substring(spans["name"], "/inbox/"), pc.is_null(spans["parent_id"]))
    steps = pa.table(
        {
            **{name: spans[name] for name in KEY},
            "mails": mail.cast(pa.int64()),
            "replies": reply.cast(pa.int64()),
            "answered": pc.if_else(reply, spans["started_at"], None),
        }
    )
    seen = steps.group_by(KEY).aggregate([("mails", "sum"), ("replies", "sum"), ("answered", "min")])
    talks = people.join(seen, KEY, join_type="inner").combine_chunks()
    took = pc.subtract(talks["answered_min"].cast(pa.int64()), talks["started_at"].cast(pa.int64()))
    talks = talks.append_column("answer_us", took)
    counts = {
        "conversations": np.ones(talks.num_rows, np.int64),
        "mails": talks["mails_sum"],
        "replies": talks["replies_sum"],
        "answered": pc.is_valid(talks["answered_min"]),
    }
    return with_month(summed(talks, ["day", "tenant", "channel"], counts, {"answer": "answer_us"}))
