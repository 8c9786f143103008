-- finish: a worker writes the terminal state. The first terminal state of a replay wins.
--
-- KEYS[1]  the job's hash
-- ARGV[1]  status: completed, failed, cancelled or expired
-- ARGV[2]  replays, as take answered it
-- ARGV[3]  result: JSON TranslationResult
-- ARGV[4]  finished_at: RFC 3339, UTC, milliseconds, Z
-- ARGV[5]  the job's TTL in ms, from now on
-- ARGV[6]  fingerprint of the record
-- ARGV[7]  deliveries, as take answered it
-- ARGV[8]  queued_at, '' if not known
-- ARGV[9]  started_at, '' if the job was never started
--
-- Reply    {written, status, replays}: written is 1 if there was no key, or one that is not
--          terminal, is at the same replay and is not owned by another fingerprint; else 0 and
--          nothing was changed. status and replays are what stands now: a status that is not
--          terminal means that a replay, or another job of this id, has taken over.

local key = KEYS[1]
local held = redis.call('HMGET', key, 'status', 'replays', 'fingerprint', 'deliveries')
local status, replays, owner = held[1], tonumber(held[2] or '0'), held[3]
local terminal = status == 'completed' or status == 'failed' or status == 'cancelled'
  or status == 'expired'

if redis.call('EXISTS', key) == 1
  and (terminal or replays ~= tonumber(ARGV[2]) or (owner and owner ~= ARGV[6])) then
  return {0, status or '', replays}
end

-- Redis compares and stores numbers as text: the larger count, whoever knew it.
local deliveries = math.max(tonumber(held[4] or '0'), tonumber(ARGV[7]))
redis.call('HSET', key, 'status', ARGV[1], 'replays', ARGV[2], 'result', ARGV[3],
  'finished_at', ARGV[4], 'fingerprint', ARGV[6], 'deliveries', string.format('%.0f', deliveries))
if ARGV[8] ~= '' then redis.call('HSET', key, 'queued_at', ARGV[8]) end
if ARGV[9] ~= '' then redis.call('HSET', key, 'started_at', ARGV[9]) end
redis.call('HDEL', key, 'cancel_requested_at')
for _, field in ipairs(redis.call('HKEYS', key)) do
  if string.sub(field, 1, 5) == 'take:' then redis.call('HDEL', key, field) end
end
redis.call('PEXPIRE', key, ARGV[5])
return {1, ARGV[1], tonumber(ARGV[2])}
