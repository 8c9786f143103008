-- stub: a client announces a job before it produces the record.
--
-- KEYS[1]  the job's hash
-- ARGV[1]  queued_at: RFC 3339, UTC, milliseconds, Z
-- ARGV[2]  live TTL in ms
--
-- Reply    {written, status}: written is 1 if there was no key, else 0 and nothing was changed;
--          status is the present status.

if redis.call('EXISTS', KEYS[1]) == 1 then
  return {0, redis.call('HGET', KEYS[1], 'status') or ''}
end
redis.call('HSET', KEYS[1], 'status', 'queued', 'queued_at', ARGV[1])
redis.call('PEXPIRE', KEYS[1], ARGV[2])
return {1, 'queued'}
