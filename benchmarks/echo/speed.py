"""Jobs per second of one worker from Kafka to Redis, and their costs.

usage: speed.py [--jobs 40000] [--items 1] [--skip 0] [--rounds 3] [--python VENV/bin/python]
                [--out rows.jsonl]

The echo engine at latency 0, quality off, all jobs published before the program starts. Beside it a
bare aiokafka loop and a FastStream program (if VENV with requirements.txt is given) do the same two
scripts and the same event per job. The loop also runs with one script alone, which is the program
that the goal was set beside. Programs take turns, and each round reverses their order. All commit
behind the writes (at least once). The time is from the first script that Redis runs, or the first
after --skip jobs, to the last.
CPU is the program's alone; reads are Redis' reads of its sockets. One row per run, then a table.
With --items 64 every job is a list of so many texts, which the worker alone runs; items_per_s and
worker_cpu_us_per_item are those of the texts.
