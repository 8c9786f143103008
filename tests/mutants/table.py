"""The table of mutants: small defects in the code, and the tests that must notice each."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Mutant:
    """One break: in `file`, a path from the root, `old` (found exactly once) becomes `new`.

    `tests`: the files under tests/ that must notice, cheapest first, separated by spaces.
    """

    name: str
    file: str
    old: str
    new: str
    tests: str


CORE = "worker/dragoman_worker"
SCHEMAS, CLIENT = "schemas/dragoman_schemas", "producer/dragoman_producer"
CONNECTIONS = "connections/dragoman_connections"
WORKER, EXECUTOR = "unit/worker/job/test_worker.py", "unit/worker/job/test_executor.py"
CONSUMER, TRANSLATION = "unit/worker/kafka/test_consumer.py", "unit/worker/job/test_translator.py"
PERMITS, RETRY = "unit/worker/flow/test_permits.py", "unit/worker/job/test_retry.py"
FAIR_QUEUE, INTAKE = "unit/worker/flow/test_fair_queue.py", "unit/worker/flow/test_intake.py"
ADMISSION = "unit/worker/flow/test_admission.py"
BOTTLENECK = "unit/worker/health/test_bottleneck.py"
SCRIPTS, STORE = "contract/test_scripts.py", "contract/test_store.py"
CRASHES, LETTERS = "contract/test_crash_points.py", "chaos/test_dead_letter_faults.py"
WAITS, CLOSED = "unit/worker/job/test_worker_waits.py", "unit/worker/job/test_engine_closed.py"
QUARANTINE, SETTLING = "unit/worker/flow/test_quarantine.py", "unit/worker/job/test_settling.py"
DURABILITY = "contract/test_durability.py"
OPENING, JOURNAL = "unit/worker/job/test_opening.py", "unit/worker/process/test_journal.py"
MEMORY_KEY = "unit/worker/memory/test_key.py"
MEMORY = "contract/test_memory.py"
COALESCED = "unit/worker/memory/test_in_flight.py"
RESTARTS, REPAIR = "unit/worker/process/test_restarts.py", "unit/worker/kafka/test_repair.py"
PLANNED = "unit/worker/flow/test_planned_tokens.py"
ACCOUNTING = "unit/producer/test_audit_accounting.py"
SUPERVISOR, WATCHDOG = (
    "unit/worker/process/test_supervisor.py",
    "unit/worker/health/test_watchdog.py",
)

MUTANTS = (
    Mutant(
        "complete before write (test 2)",
        f"{CORE}/job/worker.py",
        "            stands = await self._settler.settle(delivery, outcome)\n"
        "            self._consumer.complete(delivery)\n",
        "            self._consumer.complete(delivery)\n"
        "            stands = await self._settler.settle(delivery, outcome)\n",
        WORKER,
    ),
    Mutant(
        "finish before dead letter",
        f"{CORE}/job/settling.py",
        "        await self._dead_letter(delivery, outcome)\n        if outcome.result is None",
        "        if outcome.result is not None and outcome.take is not None:\n"
        "            await self._finish(outcome.take, outcome.result)\n"
        "        await self._dead_letter(delivery, outcome)\n"
        "        if outcome.result is None",
        WORKER,
    ),
    Mutant(
        "result announced before it is written",
        f"{CORE}/job/settling.py",
        "        try:\n            if claim is not None:\n",
        "        await self._tell(result)\n        try:\n            if claim is not None:\n",
        WORKER,
    ),
    Mutant(
        "released is completed",
        f"{CORE}/job/worker.py",
        "        if isinstance(outcome, Released):\n",
        "        if isinstance(outcome, Released):\n            self._source.complete(delivery)\n",
        WORKER,
    ),
    Mutant(
        "release after halt",
        f"{CORE}/job/worker.py",
        "        if claims and not isinstance(self._halt, EngineDead):",
        "        if claims:",
        WORKER,
    ),
    Mutant(
        "no release after drain",
        f"{CORE}/job/worker.py",
        "        if claims and not isinstance(self._halt, EngineDead):",
        "        if claims and isinstance(self._halt, EngineDead):",
        WORKER,
    ),
    Mutant(
        "commit the position (test 2)",
        f"{CORE}/kafka/offsets.py",
        "return self._unfinished[0] if self._unfinished else self.next_offset",
        "return self.next_offset",
        f"unit/worker/kafka/test_offsets.py {CONSUMER}",
    ),
    Mutant(
        "a record is delivered twice in a generation",
        f"{CORE}/kafka/offsets.py",
        "        if offset < self.next_offset:\n            return False\n",
        "",
        f"unit/worker/kafka/test_offsets.py {CONSUMER}",
    ),
    Mutant(
        "records of an unfinished assignment are registered",
        f"{CORE}/kafka/fetching.py",
        "deliveries = self._partitions.register(batches) if membership.is_assigned else []",
        "deliveries = self._partitions.register(batches)",
        CONSUMER,
    ),
    Mutant(
        "no resync after an error (test 2)",
        f"{CORE}/kafka/resyncs.py",
        "            self._resume_at = None\n            membership.seek_all()\n",
        "            self._resume_at = None\n",
        CONSUMER,
    ),
    Mutant(
        "an empty fetch resets the count of failed fetches",
        f"{CORE}/kafka/resyncs.py",
        "if self._in_a_row and membership.has_passed(self._failed_at):",
        "if self._in_a_row:",
        CONSUMER,
    ),
    Mutant(
        "deliveries of an old generation complete",
        f"{CORE}/kafka/partitions.py",
        "        if offsets is None or offsets.generation != delivery.generation:",
        "        if offsets is None:",
        CONSUMER,
    ),
    Mutant(
        "a failed commit counts as committed",
        f"{CORE}/kafka/committer.py",
        '            if outcome == "ok":',
        "            if outcome:",
        CONSUMER,
    ),
    Mutant(
        "retained partitions start anew",
        f"{CORE}/kafka/membership.py",
        "            if offsets is None or not offsets.continues(held):",
        "            if True:",
        CONSUMER,
    ),
    Mutant(
        "a replaced consumer's callbacks still count",
        f"{CORE}/kafka/membership.py",
        "        self._retired = True\n",
        "",
        CONSUMER,
    ),
    Mutant(
        "a loss is not committed",
        f"{CORE}/kafka/membership.py",
        "track(partition, beginnings[partition], offsets.committed)",
        "track(partition, beginnings[partition], beginnings[partition])",
        CONSUMER,
    ),
    Mutant(
        "commits go on between two assignments",
        f"{CORE}/kafka/committer.py",
        "        if membership is None or not membership.may_commit:",
        "        if membership is None:",
        CONSUMER,
    ),
    Mutant(
        "an unavailable broker halts the worker",
        f"{CORE}/kafka/consumer.py",
        "                if not is_outage(error):",
        "                if True:",
        CONSUMER,
    ),
    Mutant(
        "the claims of lost jobs stay",
        f"{CORE}/job/worker.py",
        "                    await self._release(claim)\n                    job.released",
        "                    job.released",
        WORKER,
    ),
    Mutant(
        "a stopped process counts as stuck",
        f"{CORE}/health/watchdog.py",
        "        passed = min(LONGEST_TICK_S, max(0.0, now - self._ticked_at))",
        "        passed = max(0.0, now - self._ticked_at)",
        "unit/worker/health/test_watchdog.py",
    ),
    Mutant(
        "a job that waits for Redis counts as stuck",
        f"{CORE}/health/liveness.py",
        "        return None if outages.any else permits.oldest",
        "        return permits.oldest",
        "unit/worker/health/test_liveness.py",
    ),
    Mutant(
        "generate without permit",
        f"{CORE}/job/translator.py",
        "            permit = await self._enter(plan, unit)",
        "            permit = self._permits._take(plan.job.job_id, unit.tokens)",
        TRANSLATION,
    ),
    Mutant(
        "length counts as success",
        f"{CORE}/job/translator.py",
        'if generation.finish_reason == "stop" or',
        'if generation.finish_reason in {"stop", "length"} or',
        TRANSLATION,
    ),
    Mutant(
        "the engine's death is a job's failure",
        f"{CORE}/job/defects.py",
        "_NO_DEFECT: Final = (Halt, asyncio",
        "_NO_DEFECT: Final = (asyncio",
        f"{EXECUTOR} {WORKER}",
    ),
    Mutant(
        "a panic before the claim ends the worker",
        f"{CORE}/job/defects.py",
        "    if isinstance(error, _NO_DEFECT):\n",
        "    if isinstance(error, _NO_DEFECT) or not isinstance(error, Exception):\n",
        EXECUTOR,
    ),
    Mutant(
        "claim time without clamping",
        f"{SCHEMAS}/wire.py",
        "divmod(min(max(0, ms), _LATEST_MS), 1000)",
        "divmod(max(0, ms), 1000)",
        f"unit/schemas/test_wire.py {EXECUTOR}",
    ),
    Mutant(
        "a dead letter that no form can carry counts as published",
        f"{CORE}/kafka/publisher.py",
        'raise Unavailable(\n            f"topic {self._topic} refuses a dead',
        'return\n        raise Unavailable(\n            f"topic {self._topic} refuses',
        "unit/worker/kafka/test_publisher.py",
    ),
    Mutant(
        "run without asking who owns the partition",
        f"{CORE}/job/executor.py",
        "                job.permit = await self._translator.admit(job.plan)\n"
        "            if not self._still_assigned(job.delivery):\n"
        '                return Released("partition revoked")\n',
        "                job.permit = await self._translator.admit(job.plan)\n",
        EXECUTOR,
    ),
    Mutant(
        "a suspect runs in company",
        f"{CORE}/job/executor.py",
        "        async with self._permits.quarantine(job.envelope.job_id, by_itself=by_itself):\n",
        "        if True:\n",
        EXECUTOR,
    ),
    Mutant(
        "the claim is known only after the reply",
        f"{CORE}/job/executor.py",
        "        job.claim = claim  # before the call",
        "        # before the call",
        EXECUTOR,
    ),
    Mutant(
        "duplicates run beside each other",
        f"{CORE}/job/in_flight.py",
        "        self.key = (self.envelope.job_id, self.envelope.fingerprint, self.replay)",
        "        self.key = (self.envelope.job_id, str(id(self)), self.replay)",
        EXECUTOR,
    ),
    Mutant(
        "the jobs of a class are not served in rotation",
        f"{CORE}/flow/fair_queue.py",
        "            there.jobs.move_to_end(queued.job)",
        "            pass",
        PERMITS,
    ),
    Mutant(
        "a class that was idle has credit for its idle time",
        f"{CORE}/flow/fair_queue.py",
        "            there.next_start = max(there.next_start, self._virtual_time)",
        "            pass",
        FAIR_QUEUE,
    ),
    Mutant(
        "a backlog of one class uses the whole capacity",
        f"{CORE}/flow/intake.py",
        "max(1, limit * weight // (2 * total))",
        "0",
        INTAKE,
    ),
    Mutant(
        "each report of one preemption reduces the bound again",
        f"{CORE}/flow/admission.py",
        "            if seen.held_tokens <= self.bound:\n",
        "            if True:\n",
        ADMISSION,
    ),
    Mutant(
        "hundreds wait inside the engine",
        f"{CORE}/flow/admission.py",
        "            self.bound = min(self.bound, wanted)",
        "            pass",
        ADMISSION,
    ),
    Mutant(
        "tokens rise without a bound",
        f"{CORE}/flow/admission.py",
        "min(self._most, fills, self.bound + self._rise)",
        "self.bound + self._rise",
        ADMISSION,
    ),
    Mutant(
        "permits that wait for Redis count as a fed engine",
        f"{CORE}/health/bottleneck.py",
        "    if inside >= FED * bound or",
        "    if moment.held >= FED * bound or",
        BOTTLENECK,
    ),
    Mutant(
        "one moment decides what limits throughput",
        f"{CORE}/health/bottleneck.py",
        "maxlen=max(1, round(seconds / every_s))",
        "maxlen=1",
        BOTTLENECK,
    ),
    Mutant(
        "a cancelled waiter keeps its permit",
        f"{CORE}/flow/permits.py",
        "                self.release(waiter.granted.result())",
        "                pass",
        PERMITS,
    ),
    Mutant(
        "an outage consumes an attempt",
        f"{CORE}/job/retry.py",
        "isinstance(error, JobError) and error.disposition is Disposition.RETRY",
        "isinstance(error, JobError | Unavailable)",
        RETRY,
    ),
    Mutant(
        "an outage that another call ended is over for all",
        f"{CORE}/job/outages.py",
        "                self._unavailable.add(server)  # another",
        "                pass  # another",
        "unit/worker/job/test_outages.py",
    ),
    # --- the rest of the six of test 2 --------------------------------------------------------
    Mutant(
        "the position is raised before the record is registered (test 2, #826)",
        f"{CORE}/kafka/offsets.py",
        "        self._unfinished.append(offset)\n        self.next_offset = offset + 1\n",
        "        self.next_offset = offset + 1\n"
        "        if self._unfinished:\n"
        "            self._unfinished.append(offset)\n",
        f"unit/worker/kafka/test_offsets.py {CONSUMER}",
    ),
    Mutant(
        "a new group starts at the end (test 2)",
        f"{CORE}/kafka/membership.py",
        "beginnings = await self.consumer.beginning_offsets(fresh) if fresh else {}",
        "beginnings = await self.consumer.end_offsets(fresh) if fresh else {}",
        CONSUMER,
    ),
    Mutant(
        "completed though saving failed (test 2, taskiq)",
        f"{CORE}/job/settling.py",
        "        stands = await self._until_available(STORE, self._store.finish, claim, result)\n",
        "        try:\n"
        "            stands = await self._store.finish(claim, result)\n"
        "        except Exception:\n"
        "            stands = result\n",
        WORKER,
    ),
    # --- settling ---------------------------------------------------------------------------------
    Mutant(
        "a failure announced before it is written",
        f"{CORE}/job/settling.py",
        "        await self._dead_letter(delivery, outcome)\n"
        "        if outcome.result is None or outcome.claim is None:\n"
        "            return None\n",
        "        await self._dead_letter(delivery, outcome)\n"
        "        if outcome.result is None or outcome.claim is None:\n"
        "            return None\n"
        "        await self._tell(outcome.result)\n",
        f"{WORKER} {CRASHES}",
    ),
    Mutant(
        "done announces nothing",
        f"{CORE}/job/settling.py",
        "                stands = result\n",
        "                return result\n",
        f"{WORKER} {CRASHES}",
    ),
    Mutant(
        "our result is announced though another one is stored",
        f"{CORE}/job/settling.py",
        "        return of_document(stands, result.document)\n",
        "        return result\n",
        "unit/worker/job/test_first_end_wins.py",
    ),
    Mutant(
        "nothing follows a finish",
        f"{CORE}/job/settling.py",
        "        await self._until_available(STORE, self._store.announce, stands)\n",
        "",
        WORKER,
    ),
    Mutant(
        "a dead letter leaves before it is acknowledged",
        f"{CORE}/kafka/publisher.py",
        "        try:\n            await producer.send_and_wait(topic,",
        "        try:\n            await producer.send(topic,",
        LETTERS,
    ),
    # --- the scripts --------------------------------------------------------------------------
    Mutant(
        "finish does not ask which replay it ends",
        f"{SCHEMAS}/scripts/finish.lua",
        " or (redis.call('EXISTS', key) == 1 and replays ~= tonumber(ARGV[2]))",
        "",
        SCRIPTS,
    ),
    Mutant(
        "finish sets no TTL",
        f"{SCHEMAS}/scripts/finish.lua",
        "redis.call('PEXPIRE', key, ARGV[5])\n",
        "",
        SCRIPTS,
    ),
    Mutant(
        "the second end wins",
        f"{SCHEMAS}/scripts/finish.lua",
        "if terminal or foreign or",
        "if foreign or",
        SCRIPTS,
    ),
    Mutant(
        "finish leaves takes behind",
        f"{SCHEMAS}/scripts/finish.lua",
        "then redis.call('HDEL', key, field) end",
        "then redis.call('HGET', key, field) end",
        SCRIPTS,
    ),
    Mutant(
        "take ignores outstanding takes",
        f"{SCHEMAS}/scripts/claim.lua",
        "suspicions = suspicions + 1",
        "suspicions = suspicions",
        SCRIPTS,
    ),
    Mutant(
        "take suspects other records of the job",
        f"{SCHEMAS}/scripts/claim.lua",
        "if redis.call('HGET', key, field) == place then",
        "if redis.call('HGET', key, field) then",
        SCRIPTS,
    ),
    Mutant(
        "a replay reopens what was completed",
        f"{SCHEMAS}/scripts/claim.lua",
        "local reopens = terminal and status ~= 'completed' and",
        "local reopens = terminal and",
        SCRIPTS,
    ),
    Mutant(
        "a lost reply of take counts as a delivery",
        f"{SCHEMAS}/scripts/claim.lua",
        "if not reopens and redis.call('HEXISTS', key, own) == 1 then return answer('run') end\n",
        "",
        SCRIPTS,
    ),
    Mutant(
        "a cancel beats a finished job",
        f"{SCHEMAS}/scripts/cancel.lua",
        "if not status or status == 'queued' then",
        "if status ~= 'running' then",
        SCRIPTS,
    ),
    Mutant(
        "release queues a job that others run",
        f"{SCHEMAS}/scripts/release.lua",
        "if others == 0 and status == 'running' then",
        "if status == 'running' then",
        SCRIPTS,
    ),
    Mutant(
        "a stub overwrites a job",
        f"{SCHEMAS}/scripts/stub.lua",
        "if redis.call('EXISTS', KEYS[1]) == 1 then",
        "if redis.call('EXISTS', KEYS[1]) > 1 then",
        SCRIPTS,
    ),
    # --- the client -------------------------------------------------------------------------------
    Mutant(
        "submitted before it is acknowledged",
        f"{CLIENT}/publisher.py",
        "await producer.send_and_wait(topic,",
        "await producer.send(topic,",
        "integration/test_client_outages.py",
    ),
    Mutant(
        "the audit calls a lost record aged out",
        f"{CLIENT}/operations/accounting.py",
        "        elif self._is_aged(record):",
        "        elif record.settled:",
        ACCOUNTING,
    ),
    Mutant(
        "the audit misses no dead letter",
        f"{CLIENT}/operations/accounting.py",
        'elif key.status == "failed" and not self._dead_letters.of_job(record.job_id or ""):',
        'elif key.status == "" and not self._dead_letters.of_job(record.job_id or ""):',
        ACCOUNTING,
    ),
    Mutant(
        "the audit takes a stuck job for a live one",
        f"{CLIENT}/operations/accounting.py",
        "        elif not record.settled:\n            self._count(Account.LIVE)\n        else:\n"
        '            why = f"its key',
        "        elif key.status:\n            self._count(Account.LIVE)\n        else:\n"
        '            why = f"its key',
        ACCOUNTING,
    ),
    Mutant(
        "a dead engine admits the next item",
        f"{CORE}/flow/permits.py",
        "        if self._closed:\n            return False\n",
        "",
        PERMITS,
    ),
    Mutant(
        "two engines start at once",
        f"{CORE}/process/restarts.py",
        "        async with self._shared.start_lock:\n",
        "        async with asyncio.Lock():\n",
        SUPERVISOR,
    ),
    Mutant(
        "orphans of a dead replica are not killed",
        f"{CORE}/process/children.py",
        "                    os.kill(pid, signal.SIGKILL)\n",
        "                    os.kill(pid, 0)\n",
        SUPERVISOR,
    ),
    Mutant(
        "the group membership of a dead replica is left to the session timeout",
        f"{CORE}/process/children.py",
        "            self._leave_group.request(self._membership)\n",
        "            pass\n",
        SUPERVISOR,
    ),
    Mutant(
        "the standby process is killed as an orphan",
        f"{CORE}/process/children.py",
        " - {self._leave_group.pid}",
        "",
        SUPERVISOR,
    ),
    Mutant(
        "only the first group membership is reported",
        f"{CORE}/kafka/membership_reporter.py",
        'member_id not in ("", self._reported):',
        "member_id and not self._reported:",
        CONSUMER,
    ),
    Mutant(
        "a certificate is read only once",
        f"{CONNECTIONS}/tls.py",
        "        self._reload()\n",
        "",
        "unit/connections/test_tls.py",
    ),
    Mutant(
        "a half-written certificate counts as read",
        f"{CONNECTIONS}/tls.py",
        '            _LOG.warning("changed TLS files cannot be used yet: %s", error)\n',
        "            self._seen = now\n",
        "unit/connections/test_tls.py",
    ),
    Mutant(
        "failed starts are not counted",
        f"{CORE}/process/restarts.py",
        "            self._backoff.failed()\n",
        "            pass\n",
        SUPERVISOR,
    ),
    Mutant(
        "a stuck replica is not killed",
        f"{CORE}/process/restarts.py",
        "reason=reason)\n        replica.kill()\n",
        "reason=reason)\n",
        SUPERVISOR,
    ),
    Mutant(
        "a process group that was stopped counts as stuck",
        f"{CORE}/process/restarts.py",
        "min(now - probed_at, every_s + ASK_S), now",
        "now - probed_at, now",
        "unit/worker/process/test_restarts.py",
    ),
    Mutant(
        "a replica killed in a drain is restarted",
        f"{CORE}/process/restarts.py",
        "        if self._shared.stopping.is_set():\n            return self._drained(replica)\n",
        "",
        SUPERVISOR,
    ),
    Mutant(
        "a stuck worker is never halted",
        f"{CORE}/health/watchdog.py",
        "        if seen.age_s >= check.halts_after_s:\n",
        "        if seen.age_s < 0:\n",
        WATCHDOG,
    ),
    Mutant(
        "time in which it was stopped counts as stuck",
        f"{CORE}/health/watchdog.py",
        "        passed = min(LONGEST_TICK_S, max(0.0, now - self._ticked_at))\n",
        "        passed = now - self._ticked_at\n",
        WATCHDOG,
    ),
    Mutant(
        "a process with a blocked event loop never exits",
        f"{CORE}/health/watchdog.py",
        "self._silent_s = 0.0 if self._beats != self._beats_seen else self._silent_s + passed",
        "self._silent_s = 0.0",
        WATCHDOG,
    ),
    Mutant(
        "work that waits for Redis counts as stuck",
        f"{CORE}/health/liveness.py",
        "        return in_flight.left if settling and not outages.any else None\n",
        "        return in_flight.left if settling else None\n",
        "unit/worker/health/test_liveness.py",
    ),
    Mutant(
        "records outlive the sender task that would send them",
        f"{CONNECTIONS}/kafka_producer.py",
        "    producer._sender.sender_task.add_done_callback(fail_all)",
        "    producer._sender.sender_task.add_done_callback(print)",
        "unit/connections/test_kafka_producer.py",
    ),
    Mutant(
        "a call whose caller was cancelled is sent",
        f"{CONNECTIONS}/batching.py",
        "            if not reply.done():",
        "            if reply is not None:",
        "unit/worker/stores/test_pipeline.py",
    ),
    Mutant(
        "a break that only uvloop reports is a defect",
        f"{CONNECTIONS}/redis_access/redis_py.py",
        '        if "handler is closed" not in str(error):\n            raise\n',
        "        raise\n",
        "integration/test_broken_connections.py",
    ),
    Mutant(
        "a break while connecting is a defect",
        f"{CORE}/stores/connection.py",
        "        with connection_errors():  # connecting",
        "        if packed:  # connecting",
        "integration/test_broken_connections.py",
    ),
    Mutant(
        "a replica that becomes ready has recovered",
        f"{CORE}/process/restarts.py",
        "        return replica.settled.is_set() or ",
        "        return replica.ready.is_set() or ",
        "unit/worker/process/test_restarts.py",
    ),
    Mutant(
        "a replica that answers 503 is killed as one that does not",
        f"{CORE}/process/restarts.py",
        "FAILING_S if answer.status else self._stuck_after_s",
        "self._stuck_after_s",
        "unit/worker/process/test_restarts.py",
    ),
    Mutant(
        "a back-off of 500 s",
        f"{CORE}/process/backoff.py",
        "    max_s: float = 30.0\n",
        "    max_s: float = 500.0\n",
        "unit/worker/process/test_backoff.py",
    ),
    Mutant(
        "a slot counts before it is complete",
        f"{CORE}/process/journal.py",
        "        memory[at] = 0\n        head",
        "        memory[at] = 1\n        head",
        "unit/worker/process/test_journal.py",
    ),
    Mutant(
        "a journal is counted twice",
        f"{CORE}/process/crashes.py",
        "            file.unlink()",
        "            file.stat()",
        "unit/worker/process/test_journal.py",
    ),
    Mutant(
        "a suspect is opened beside others",
        f"{CORE}/job/opening.py",
        "            return len(self._free) == self._all\n        return",
        "            return bool(self._free)\n        return",
        "unit/worker/job/test_opening.py",
    ),
    Mutant(
        "a suspect is opened beside jobs in the engine",
        f"{CORE}/job/preparation.py",
        "self._by_itself(opening) if opening.suspect else nullcontext()",
        "nullcontext()",
        "unit/worker/job/test_opening.py",
    ),
    Mutant(
        "a suspect and a job that runs wait for each other",
        f"{CORE}/job/preparation.py",
        "            self._permits.let_finish(claims.values())\n",
        "",
        "unit/worker/job/test_opening.py",
    ),
    Mutant(
        "a record that kills is opened for ever",
        f"{CORE}/job/opening.py",
        "        if suspect.crashes >= self._poison_after and stage",
        "        if suspect.crashes > 9 * self._poison_after and stage",
        "unit/worker/job/test_opening.py",
    ),
    Mutant(
        "what opens well stays suspect",
        f"{CORE}/job/opening.py",
        "            del self._crashes[name]\n",
        "            return\n",
        "unit/worker/job/test_opening.py",
    ),
    Mutant(
        "the language model is unpacked on the disk",
        f"{CORE}/quality/language.py",
        "    modelio.tempfile = SimpleNamespace(TemporaryFile=lambda **_: io.BytesIO())\n",
        "",
        "unit/worker/process/test_full_disk.py",
    ),
    Mutant(
        "suspects block all other jobs",
        f"{CORE}/flow/permits.py",
        "                self._between = min(self._items, len(self._queue))\n",
        "                self._between = 0\n",
        PERMITS,
    ),
    # --- waits, ends and an engine that dies meanwhile --------------------------------------------
    Mutant(
        "the time of a claim is not clamped",
        f"{SCHEMAS}/wire.py",
        "divmod(min(max(0, ms), _LATEST_MS), 1000)",
        "divmod(ms, 1000)",
        WAITS,
    ),
    Mutant(
        "a cancel still comes while the end is being written",
        f"{CORE}/job/executor.py",
        "                job.leave_scope()\n",
        "                pass\n",
        WAITS,
    ),
    Mutant(
        "a job is let in as the engine dies",
        f"{CORE}/job/translator.py",
        "        if self._permits.closed:  # between",
        "        if False:  # between",
        CLOSED,
    ),
    Mutant(
        "a suspect is let in as the engine dies",
        f"{CORE}/job/executor.py",
        "            if self._permits.closed:\n                raise Draining\n",
        "",
        CLOSED,
    ),
    Mutant(
        "a job that was claimed as the engine died keeps its claim",
        f"{CORE}/job/executor.py",
        "if self._permits.closed or not self._still_assigned(job.delivery):",
        "if not self._still_assigned(job.delivery):",
        CLOSED,
    ),
    Mutant(
        "a halt still lets jobs in",
        f"{CORE}/job/worker.py",
        "        self._permits.close()\n",
        "",
        WAITS,
    ),
    Mutant(
        "a full worker polls in a busy loop",
        f"{CORE}/job/worker.py",
        "        if capacity.jobs == 0:\n            await self._change_within(0.25)\n",
        "",
        WAITS,
    ),
    Mutant(
        "a drain stops polling",
        f"{CORE}/job/worker.py",
        "                await self._consumer.poll(Capacity(0))\n",
        "",
        WAITS,
    ),
    Mutant(
        "a stop waits for Redis without end",
        f"{CORE}/job/worker.py",
        "asyncio.timeout(RELEASE_WITHIN_S)",
        "asyncio.timeout(None)",
        WAITS,
    ),
    Mutant(
        "an outage is asked after every 500 s",
        f"{CORE}/job/outages.py",
        "MAX_PAUSE_S: Final = 5.0",
        "MAX_PAUSE_S: Final = 500.0",
        WAITS,
    ),
    Mutant(
        "a generation is asked for again after 500 s",
        f"{CORE}/job/retry.py",
        "    max_s: float = 5.0\n",
        "    max_s: float = 500.0\n",
        WAITS,
    ),
    Mutant(
        "a replica comes back after 500 s",
        f"{CORE}/process/backoff.py",
        "    max_s: float = 30.0\n",
        "    max_s: float = 500.0\n",
        WAITS,
    ),
    Mutant(
        "a consumer is replaced after 500 s",
        f"{CORE}/kafka/resyncs.py",
        "LONGEST_BACKOFF_S: Final = 10.0",
        "LONGEST_BACKOFF_S: Final = 500.0",
        WAITS,
    ),
    Mutant(
        "a rebuild keeps the old fetch",
        f"{CORE}/kafka/consumer.py",
        "membership, self._membership = self._membership, None\n"
        "        await self._fetching.cancel()\n",
        "membership, self._membership = self._membership, None\n",
        CONSUMER,
    ),
    Mutant(
        "one cohort is as large as all suspects",
        f"{CORE}/flow/quarantine.py",
        "    return max(SMALLEST_COHORT, isqrt(suspects))",
        "    return max(SMALLEST_COHORT, suspects)",
        QUARANTINE,
    ),
    Mutant(
        "suspects run one by one again",
        f"{CORE}/flow/quarantine.py",
        "    return max(SMALLEST_COHORT, isqrt(suspects))",
        "    return 1",
        QUARANTINE,
    ),
    Mutant(
        "a suspect that leaves a cohort makes room in it",
        f"{CORE}/flow/quarantine.py",
        "        self._inside.remove(member)\n",
        "        self._inside.remove(member)\n"
        "        self._cohort = self._cohort and self._cohort - 1\n",
        QUARANTINE,
    ),
    Mutant(
        "a cohort admits a suspect that must run by itself",
        f"{CORE}/flow/quarantine.py",
        "[member for member in self._ready() if not member.by_itself]",
        "list(self._ready())",
        QUARANTINE,
    ),
    Mutant(
        "a member that leaves while it waits is kept",
        f"{CORE}/flow/quarantine.py",
        "            del self._waiting[member]\n            return False\n",
        "            return False\n",
        QUARANTINE,
    ),
    Mutant(
        "a member of a cohort that died again stays in it",
        f"{CORE}/job/executor.py",
        "        by_itself = wanted is Quarantine.BY_ITSELF\n",
        "        by_itself = False\n",
        EXECUTOR,
    ),
    Mutant(
        "a suspect of a lost partition is claimed",
        f"{CORE}/job/executor.py",
        "            if not self._still_assigned(job.delivery):\n"
        '                return Released("partition revoked")\n'
        "            answer = await self._claim(job, wanted)\n",
        "            answer = await self._claim(job, wanted)\n",
        EXECUTOR,
    ),
    Mutant(
        "a job that hangs in quarantine is asked again",
        f"{CORE}/job/translator.py",
        "            if self._permits.in_quarantine(plan.job.job_id):\n",
        "            if False:\n",
        EXECUTOR,
    ),
    Mutant(
        "three deaths are good enough for a cohort",
        f"{SCHEMAS}/scripts/claim.lua",
        "math.min(math.max(suspicions - 1, 0), 2)",
        "math.min(math.max(suspicions - 1, 0), 1)",
        SCRIPTS,
    ),
    Mutant(
        "a refused finish passes for a confirmation",
        f"{SCHEMAS}/scripts/finish.lua",
        "  if status then redis.call('HSET', key, 'status', status) end\n",
        "",
        DURABILITY,
    ),
    Mutant(
        "an end that another wrote is not confirmed",
        f"{CORE}/stores/redis.py",
        "            await self._call(job_id, [command], confirmed=True)\n",
        "            await self._call(job_id, [command])\n",
        DURABILITY,
    ),
    Mutant(
        "done moves the offset unconfirmed",
        f"{CORE}/job/settling.py",
        "                await self._until_available(STORE, self._store.confirm, result.job_id)\n",
        "",
        SETTLING,
    ),
    Mutant(
        "a payload that lost its id ends without a letter",
        f"{CORE}/job/settling.py",
        "            await self._dead_letter(delivery, Rejected(conflict, job_id=result.job_id))\n",
        "            del conflict\n",
        SETTLING,
    ),
    Mutant(
        "duplicates get the refused result",
        f"{CORE}/job/worker.py",
        "            self._in_flight.leave(held, stands)",
        '            self._in_flight.leave(held, getattr(outcome, "result", None))',
        SETTLING,
    ),
    Mutant(
        "another payload's result is returned",
        f"{SCHEMAS}/scripts/finish.lua",
        "local result = terminal and not foreign and",
        "local result = terminal and",
        SCRIPTS,
    ),
    Mutant(
        "a result that cannot be decoded stops the job",
        f"{SCHEMAS}/wire.py",
        "    except ValueError:\n        found = None\n",
        "    except KeyError:\n        found = None\n",
        STORE,
    ),
    Mutant(
        "a count that is none stops a take",
        f"{SCHEMAS}/scripts/claim.lua",
        "  if not number or number ~= number or number < 0 then return 0 end\n",
        "",
        SCRIPTS,
    ),
    # --- before the claim, and restarts -----------------------------------------------------------
    Mutant(
        "what is being opened is not journaled",
        f"{CORE}/job/opening.py",
        "            self._journal.put(slot, Entry(name, stage))\n",
        "            pass\n",
        OPENING,
    ),
    Mutant(
        "what kills while it is planned is not read either",
        f"{CORE}/job/opening.py",
        "suspect.crashes >= self._poison_after and stage >= suspect.stage:",
        "suspect.crashes >= self._poison_after:",
        OPENING,
    ),
    Mutant(
        "a poisonous record is cleared as it ends",
        f"{CORE}/job/opening.py",
        "suspect is not None and suspect.crashes < self._poison_after:",
        "suspect is not None:",
        OPENING,
    ),
    Mutant(
        "a damaged slot hides all others",
        f"{CORE}/process/journal.py",
        "        with suppress(ValueError):  # no valid stage",
        "        with suppress(KeyError):  # no valid stage",
        JOURNAL,
    ),
    Mutant(
        "readiness shortens the wait",
        f"{CORE}/process/backoff.py",
        "        self.failures = 0\n\n    def recovered",
        "        self.failures = self.setbacks = 0\n\n    def recovered",
        "unit/worker/process/test_backoff.py",
    ),
    Mutant(
        "a start that hangs is never killed",
        f"{CORE}/process/restarts.py",
        "            if waited_s >= self._start_within_s:\n",
        "            if waited_s < 0:\n",
        f"{RESTARTS} {SUPERVISOR}",
    ),
    # --- batches, and ends that others wrote ------------------------------------------------------
    Mutant(
        "a batch may expand to a gibibyte",
        f"{CONNECTIONS}/kafka_batches/repair.py",
        "Expander(MAX_EXPANDED)",
        "Expander(16 * MAX_EXPANDED)",
        REPAIR,
    ),
    Mutant(
        "many small batches expand without a bound",
        f"{CONNECTIONS}/kafka_batches/repair.py",
        "            if self._left <= 0:\n",
        "            if self._left is None:\n",
        REPAIR,
    ),
    Mutant(
        "a record that lost header names passes for a whole one",
        f"{CONNECTIONS}/kafka_batches/records.py",
        "    if len(kept) < len(headers):\n",
        "    if len(kept) > len(headers):\n",
        REPAIR,
    ),
    Mutant(
        "a confirmation writes nothing that could be waited for",
        f"{SCHEMAS}/scripts/confirm.lua",
        "redis.call('HSET', KEYS[1], 'status', status)\n",
        "",
        "contract/test_durability.py",
    ),
    Mutant(
        "the loop's longest stall is forgotten at once",
        f"{CORE}/health/stalls.py",
        "        return _longest(before, self._before)\n",
        "        return self._longest\n",
        "unit/worker/health/test_stalls.py",
    ),
    # --- planning, and the hand-over --------------------------------------------------------------
    Mutant(
        "jobs plan without a bound",
        f"{CORE}/flow/planned_tokens.py",
        "        return self.held < self._most and not self._queue\n",
        "        return True\n",
        PLANNED,
    ),
    Mutant(
        "a running job waits for jobs that it blocks",
        f"{CORE}/flow/planned_tokens.py",
        "        if self.free or (runs and job not in self._waiting):\n",
        "        if self.free:\n",
        PLANNED,
    ),
    Mutant(
        "a job cancelled as it is admitted blocks the next one",
        f"{CORE}/flow/planned_tokens.py",
        "            self._queue.pop(job, None)\n            self.admit_next()\n",
        "            self._queue.pop(job, None)\n",
        PLANNED,
    ),
    Mutant(
        "planning has no budget",
        f"{CORE}/job/planner.py",
        "        if plan.spent_s + now - (plan.step_began or now) > self._budget_s:\n",
        "        if plan.spent_s < 0:\n",
        "unit/worker/job/test_planning_in_steps.py",
    ),
    Mutant(
        "large texts are planned on the event loop",
        f"{CORE}/job/translator.py",
        "            if size > LARGE:\n",
        "            if size < 0:\n",
        "unit/worker/job/test_odd_records.py",
    ),
    Mutant(
        "small pieces run one after the other without a break",
        f"{CORE}/flow/slices.py",
        "_ROUND_S: Final = 0.01\n",
        "_ROUND_S: Final = 3600.0\n",
        "unit/worker/job/test_odd_records.py",
    ),
    # --- the memory -------------------------------------------------------------------------------
    *(
        Mutant(
            f"the memory's key is the same for another {member}",
            f"{CORE}/memory/key.py",
            f"        {code},\n",
            "",
            MEMORY_KEY,
        )
        for member, code in (
            ("engine", "question.engine"),
            ("profile or adapter", "question.profile"),
            ("decoding", "_decoding(question.decoding)"),
            ("source", "question.source"),
            ("target language", "question.target_lang"),
            ("source language", "question.source_lang"),
            ("quality level", "question.level"),
            ("protect", "question.protected"),
            (
                "glossary entry",
                "[(term.source, term.targets, term.case_sensitive) for term in question.terms]",
            ),
            ("max_chars", "question.max_chars"),
        )
    ),
    Mutant(
        "the memory's key is the same for another prompt",
        f"{CORE}/memory/key.py",
        '    digest.update(array("q", question.prompt_ids).tobytes())\n',
        "",
        MEMORY_KEY,
    ),
    Mutant(
        "a leader that leaves takes its followers' turns with it",
        f"{CORE}/memory/in_flight.py",
        "            flight.promote(promotes)\n",
        "            flight.promote(0)\n",
        COALESCED,
    ),
    Mutant(
        "a follower cancelled as it becomes leader keeps the turn",
        f"{CORE}/memory/in_flight.py",
        "                self._leave(key, flight, 1)\n",
        "                pass\n",
        COALESCED,
    ),
    Mutant(
        "units that fail alike run one after the other",
        f"{CORE}/memory/in_flight.py",
        "        promotes = 2\n",
        "        promotes = 1\n",
        COALESCED,
    ),
    Mutant(
        "a quarantined unit is coalesced",
        f"{CORE}/memory/in_flight.py",
        "        if quarantined:\n",
        "        if False:\n",
        COALESCED,
    ),
    Mutant(
        "a full hash of the memory grows on",
        f"{SCHEMAS}/scripts/remember.lua",
        "  if held > 0 and held + cost > most then rotate() end\n",
        "",
        MEMORY,
    ),
    Mutant(
        "a hash of the memory is never too old",
        f"{SCHEMAS}/scripts/remember.lua",
        "if held > 0 and redis.call('PTTL', new) <= ttl then rotate() end\n",
        "",
        MEMORY,
    ),
    Mutant(
        "the memory's older hash is not looked up",
        f"{CORE}/stores/redis_memory.py",
        "        value = values[0] if values[0] is not None else values[1]\n",
        "        value = values[0]\n",
        MEMORY,
    ),
    Mutant(
        "a translation in use does not move to the newer hash",
        f"{CORE}/stores/redis_memory.py",
        "            self._writer.add(*place, value)\n",
        "            pass\n",
        MEMORY,
    ),
    Mutant(
        "look-ups wait while Redis does not answer",
        f"{CORE}/stores/redis_memory.py",
        "        if not calls or not self._outages.available:\n",
        "        if not calls:\n",
        MEMORY,
    ),
    Mutant(
        "an approved translation of another script is used",
        f"{SCHEMAS}/languages.py",
        " if other != tag and _likely_script(other) == script))",
        " if other != tag))",
        "unit/schemas/test_approved.py",
    ),
    Mutant(
        "an answer that failed is shared",
        f"{CORE}/memory/in_flight.py",
        " and translation.quality in SHARED_VERDICTS:",
        ":",
        COALESCED,
    ),
    Mutant(
        "a source that repeats does not raise the threshold of vLLM's loops",
        f"{CORE}/engines/vllm/repetition.py",
        "max(LEAST_REPETITIONS, _ALLOWED * count)",
        "LEAST_REPETITIONS",
        "unit/worker/engines/test_vllm_repetition.py",
    ),
)
