"""A consumer as a process of its own: claims, works a moment, completes, and says what it has completed."""

import sys
import time

from postroom.client import Client, ServiceError


def main(url: str, token: str, name: str) -> None:
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


if __name__ == "__main__":
    main(*sys.argv[1:])
