"""A gateway that is killed again and again under load: what is paid twice, and who goes without.

usage: kills.py [--kills 30] [--callers 16]

A real Kafka and Redis, and one echo worker whose texts take 0.2 s. Callers ask for one text after
the other and ask again until it is answered. A job whose gateway died before it was published is
submitted again after 60 s, so a caller may need as long. Status 0: nothing listened.
Exits with 1 if a text was translated twice or has no answer.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections import Counter

import redis
from started import SECRET, site

from support.gateway_callers import Callers


def main() -> int:
    """Kill, count, print a row, and return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=30)
    parser.add_argument("--callers", type=int, default=16)
    options = parser.parse_args()
    began = time.monotonic()
    with site("gateway-kills", worker={"engine.echo.latency_s": 0.2}) as started:
        callers = Callers(started.gateway.url, options.callers, SECRET)
        for _ in range(options.kills):
            callers.wait_for(callers.answered() + 20)
            started.gateway.kill()
            started.gateway.start()
            started.gateway.ready()
        callers.stop()
        with redis.Redis.from_url(started.redis.url) as client:
            jobs = list(client.scan_iter("dragoman:job:gw.*"))
            deliveries = Counter(int(client.hget(job, "deliveries") or 0) for job in jobs)
    without = sum(tries[-1] != 200 for tries in callers.answers.values())
    statuses = Counter(status for tries in callers.answers.values() for status in tries)
    print(json.dumps({
        "kills": options.kills, "texts": len(callers.answers), "jobs": len(jobs),
        "deliveries": dict(deliveries), "statuses": dict(statuses),
        "without_answer": without, "seconds": round(time.monotonic() - began),
    }))  # fmt: skip
    return 1 if without or set(deliveries) != {1} or len(jobs) != len(callers.answers) else 0


if __name__ == "__main__":
    sys.exit(main())
