"""A consumer as a process of its own: claims, works a moment, completes, and says what it has completed.

With a number, it stops in the middle of its work after so many, and keeps what it has claimed.
"""

import sys
import time

from postroom.client import Client, ServiceError


def main(url: str, token: str, name: str, enough: str = "inf") -> None:
    done = 0
    with Client(url, token) as queue:
        while True:
            messages = queue.claim("work/jobs", batch_size=3, wait_s=2, worker=name)
            if not messages and queue.queue("work/jobs").depth_claimed == 0:
                return
            for message in messages:
                time.sleep(0.01)
                try:
                    queue.complete(message, {"by": name})
                except ServiceError as error:
                    if error.service_code != "SCAIQUEUE_CLAIM_LOST":
                        raise
                    continue
                print(message.id, flush=True)
                done += 1
                while done >= float(enough):
                    time.sleep(1)


if __name__ == "__main__":
    main(*sys.argv[1:])
