-- cancel: a client cancels a job that has not run, or requests the abort of a running one.
--
-- KEYS[1]  the job's hash
-- ARGV[1]  now: RFC 3339, UTC, milliseconds, Z
-- ARGV[2]  live TTL in ms
-- ARGV[3]  minimal result: JSON TranslationResult with status cancelled
--
-- Reply    {effect, status}: effect is `cancelled` (no key, or a queued job: it is now terminal),
--          `requested` (the job is running: cancel_requested_at is set; the client now does XADD
--          to the cancel stream) or `ended` (already terminal, nothing was changed). status is the
--          present status.

local key = KEYS[1]
local status = redis.call('HGET', key, 'status')

if not status or status == 'queued' then
  redis.call('HSET', key, 'status', 'cancelled', 'result', ARGV[3], 'finished_at', ARGV[1])
  redis.call('HDEL', key, 'cancel_requested_at')
  redis.call('PEXPIRE', key, ARGV[2])
  return {'cancelled', 'cancelled'}
end
if status == 'running' then
  redis.call('HSETNX', key, 'cancel_requested_at', ARGV[1])
  return {'requested', status}
end
return {'ended', status}
