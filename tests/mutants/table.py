"""The table of mutants: breaks of the promise, and the tests that must notice each.

A place is `Class.method` or `function` of the product, wherever its module lies, or a script. So a
refactoring that keeps the function and what it does leaves the table valid.
"""

from __future__ import annotations

from dataclasses import dataclass

from mutants.breaks import Always, Break, Delete, Drop, Later, Returns, Use


@dataclass(frozen=True, slots=True)
class Mutant:
    """One break of the function or script at `place`.

    `tests`: the files under tests/ that must notice, cheapest first, separated by spaces.
    """

    name: str
    place: str
    how: Break
    tests: str


SCRIPTS, DURABILITY = "contract/test_scripts.py", "contract/test_durability.py"
WORKER, EXECUTOR = "unit/worker/job/test_worker.py", "unit/worker/job/test_executor.py"
WAITS, CLOSED = "unit/worker/job/test_worker_waits.py", "unit/worker/job/test_engine_closed.py"
SETTLING, RETRY = "unit/worker/job/test_settling.py", "unit/worker/job/test_retry.py"
CONSUMER, OFFSETS = "unit/worker/kafka/test_consumer.py", "unit/worker/kafka/test_offsets.py"
LETTERS = "chaos/test_dead_letter_faults.py"
FINGERPRINT = "unit/schemas/test_fingerprint.py"
PERMITS, QUARANTINE = "unit/worker/flow/test_permits.py", "unit/worker/flow/test_quarantine.py"
OPENING, JOURNAL = "unit/worker/job/test_opening.py", "unit/worker/process/test_journal.py"
SUPERVISOR = "unit/worker/process/test_supervisor.py"
AUDIT = "unit/producer/test_audit_accounting.py"

MUTANTS = (
    # --- claim ---
    Mutant(
        "a claim ignores outstanding ones",
        "claim.lua",
        Use("suspicions + 1", "suspicions"),
        SCRIPTS,
    ),
    Mutant("a claim suspects the job's other records", "claim.lua", Always("place", True), SCRIPTS),
    Mutant("a job that kills is claimed for ever", "claim.lua", Always("ARGV[7]", False), SCRIPTS),
    Mutant("a replay reopens what was completed", "claim.lua", Drop("~= 'completed'"), SCRIPTS),
    Mutant("a repeated claim counts as a delivery", "claim.lua", Always("HEXISTS", False), SCRIPTS),
    Mutant("another payload may claim the job", "claim.lua", Always("owner", False), SCRIPTS),
    Mutant("a cancelled job is claimed", "claim.lua", Always("cancelled", False), SCRIPTS),
    Mutant("an ended job is claimed", "claim.lua", Always("terminal and", False), SCRIPTS),
    Mutant("a claim sets no TTL", "claim.lua", Delete("PEXPIRE"), SCRIPTS),
    Mutant("a reopened job keeps its claims", "claim.lua", Always("field ~= own", False), SCRIPTS),
    Mutant(
        "a claim is known only after the reply",
        "Executor._claim",
        Delete("job.claim = claim"),
        EXECUTOR,
    ),
    Mutant(
        "duplicates run beside each other",
        "JobInFlight.__post_init__",
        Use("self.envelope.job_id", "str(id(self))"),
        EXECUTOR,
    ),
    # --- finish, confirm, cancel, stub ---
    Mutant("the second end wins", "finish.lua", Always("foreign", False), SCRIPTS),
    Mutant("a finish ends any replay", "finish.lua", Drop("replays >"), SCRIPTS),
    Mutant("a finish sets no TTL", "finish.lua", Delete("PEXPIRE"), SCRIPTS),
    Mutant("a finish leaves claims", "finish.lua", Delete("HDEL key field"), SCRIPTS),
    Mutant("another payload's result is returned", "finish.lua", Drop("not foreign"), SCRIPTS),
    Mutant("a refused finish is sure", "finish.lua", Delete("HSET key status status"), DURABILITY),
    Mutant("a confirmation writes nothing to wait for", "confirm.lua", Delete("HSET"), DURABILITY),
    Mutant("a cancel beats a finished job", "cancel.lua", Always("queued", True), SCRIPTS),
    Mutant("a running job is not cancelled", "cancel.lua", Delete("HSETNX"), SCRIPTS),
    Mutant("a stub overwrites a job", "stub.lua", Always("EXISTS", False), SCRIPTS),
    # --- release ---
    Mutant("a release queues a job that others run", "release.lua", Drop("others"), SCRIPTS),
    Mutant("a release keeps the claim", "release.lua", Delete("HDEL"), SCRIPTS),
    Mutant(
        "a release overtakes its claim",
        "RedisStore.release",
        Delete("caught_up"),
        "unit/worker/stores/test_pipeline.py",
    ),
    Mutant("claims of a drain stay", "Worker._abandon", Always("claims", False), WORKER),
    Mutant("a dead engine's claims are released", "Worker._abandon", Drop("EngineDead"), WORKER),
    Mutant("claims of lost jobs stay", "Worker._release_lost", Delete("self._release"), WORKER),
    Mutant(
        "a job claimed as the engine dies stays claimed",
        "Executor._translate",
        Drop("closed"),
        CLOSED,
    ),
    # --- the order of a settlement ---
    Mutant(
        "an offset is completed before its end is written",
        "Worker._settle",
        Later("settle", than="complete"),
        WORKER,
    ),
    Mutant(
        "a failure is written before its dead letter",
        "Settler._reject",
        Later("_dead_letter", than="_finish_failed"),
        WORKER,
    ),
    Mutant(
        "an end that cannot be written is no obstacle",
        "Settler._finish",
        Use("await self._until_available(STORE, self._store.finish, claim, result)", "result"),
        WORKER,
    ),
    Mutant("nothing follows a finish", "Settler._publish", Delete("announce"), WORKER),
    Mutant("no result is published", "Settler._publish", Delete("publish"), WORKER),
    Mutant("an end is not confirmed", "Settler._complete", Always("confirm", False), SETTLING),
    Mutant("a conflict has no letter", "Settler._complete", Delete("_dead_letter"), SETTLING),
    Mutant(
        "a letter leaves before it is acknowledged",
        "KafkaPublisher.send",
        Use("producer.send_and_wait", "producer.send"),
        LETTERS,
    ),
    Mutant(
        "a letter that no form can carry is dropped",
        "KafkaDeadLetters._first_sendable",
        Delete("Unavailable"),
        "unit/worker/kafka/test_publisher.py",
    ),
    Mutant("any key counts as ended", "RedisStore.confirm", Returns("True"), DURABILITY),
    Mutant(
        "failures of the engine are not repeated",
        "RetryPolicy.after",
        Use("TransientEngineError", "KeyError"),
        RETRY,
    ),
    # --- the commit offset ---
    Mutant(
        "the position is committed",
        "PartitionOffsets.commit_offset",
        Returns("self.next_offset"),
        OFFSETS,
    ),
    Mutant(
        "two deliveries",
        "PartitionOffsets.begin",
        Always("next_offset", False),
        OFFSETS,
    ),
    Mutant("a delivery does not hold back", "PartitionOffsets.begin", Delete("append"), OFFSETS),
    Mutant("an old delivery completes", "Partitions.complete", Drop("generation"), CONSUMER),
    Mutant("a failed commit counts", "Committer.commit", Always("outcome", True), CONSUMER),
    Mutant("commits go on in a rebalance", "Committer.due", Drop("may_commit"), CONSUMER),
    Mutant("a kept partition restarts", "Membership._adopt", Always("continues", True), CONSUMER),
    Mutant("a replaced consumer counts", "Membership.stop", Delete("_retired"), CONSUMER),
    Mutant(
        "a new group starts at the end",
        "Membership._adopt",
        Use("self.consumer.beginning_offsets", "self.consumer.end_offsets"),
        CONSUMER,
    ),
    Mutant(
        "a loss is not committed",
        "Fetching.out_of_range",
        Use("offsets.committed", "beginnings[partition]"),
        CONSUMER,
    ),
    Mutant(
        "records between two assignments count",
        "Fetching._register",
        Always("is_assigned", False),
        CONSUMER,
    ),
    Mutant("no resync after an error", "Resyncs.resume", Delete("seek_all"), CONSUMER),
    # --- the fingerprint ---
    Mutant(
        "members outside of the fingerprint count",
        "fingerprint_of_normal",
        Always("OUTSIDE_THE_FINGERPRINT", True),
        FINGERPRINT,
    ),
    Mutant("null members count", "_Spelling.members", Always("member", True), FINGERPRINT),
    Mutant("floats in Python's form", "fingerprint_of_normal", Always("plain", True), FINGERPRINT),
    Mutant("1.0 is not 1", "_Spelling._number", Delete("int(value)"), FINGERPRINT),
    # --- drain, revocation and the dead engine ---
    Mutant("a halt admits jobs", "Worker.halt", Delete("close"), WAITS),
    Mutant("a drain admits jobs", "Worker.stop", Delete("drain"), WORKER),
    Mutant("a drain stops polling", "Worker.run", Delete("poll"), WAITS),
    Mutant(
        "a job of a lost partition runs",
        "Executor._run",
        Always("_still_assigned", False),
        EXECUTOR,
    ),
    Mutant(
        "a cancel meets the end",
        "Executor._run_in_scope",
        Delete("leave_scope"),
        WAITS,
    ),
    Mutant("a dead engine admits an item", "Permits._fits", Always("_closed", False), PERMITS),
    Mutant("a cancelled waiter keeps its permit", "Permits._withdraw", Delete("release"), PERMITS),
    # --- records that kill ---
    Mutant(
        "a suspect in a second cohort",
        "Executor._quarantined",
        Use("wanted is Quarantine.BY_ITSELF", "False"),
        EXECUTOR,
    ),
    Mutant(
        "a cohort admits one that runs alone",
        "QuarantineRounds.fill_cohort",
        Always("by_itself", True),
        QUARANTINE,
    ),
    Mutant("an opening is not journaled", "Openings._journaled", Delete("put"), OPENING),
    Mutant(
        "a suspect is opened in company", "Openings._may_enter", Always("alone", False), OPENING
    ),
    Mutant(
        "what kills is opened again",
        "Openings._refuse_poisoned",
        Always("crashes", False),
        OPENING,
    ),
    Mutant("a journal counts twice", "Crashes.replica_exited", Delete("unlink"), JOURNAL),
    Mutant("a stuck replica stays", "ReplicaRestarter._watch", Delete("kill"), SUPERVISOR),
    # --- the audit ---
    Mutant("a lost record is aged", "Ledger._not_owning", Always("_is_aged", True), AUDIT),
    Mutant("no letter is missed", "Ledger._owning", Always("of_job", False), AUDIT),
)
