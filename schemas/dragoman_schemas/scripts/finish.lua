-- finish: a worker writes the terminal state. The first terminal state of a replay wins.
--
-- KEYS[1]  the job's hash
-- ARGV[1]  status: completed, failed, cancelled or expired
-- ARGV[2]  replays, as claim returned it
-- ARGV[3]  result: JSON TranslationResult
-- ARGV[4]  finished_at: RFC 3339, UTC, milliseconds, Z
-- ARGV[5]  the job's TTL in ms, from now on
-- ARGV[6]  fingerprint of the record
-- ARGV[7]  deliveries, as claim returned it
-- ARGV[8]  queued_at, '' if unknown
-- ARGV[9]  started_at, '' if the job never started
--
-- Reply    {written, status, replays, owned, result}: written is 1 if there was no key, or one that
--          is not terminal, is at no higher replay and is not owned by another fingerprint; else 0
--          and nothing was changed. (A key at a lower replay has lost this one, as in a fail-over
--          to a server that lags: nobody else would end the job.) status and replays are the
--          present values. owned is 0 if the key belongs to another fingerprint: the id was reused,
--          and this record is a conflict.
--          Owned, not written and not terminal: a replay has taken over the job. result is the
--          stored result if it was not written, is terminal and owned; else ''. The stored status
--          is written again unchanged, so that a WAIT after the script covers it.

-- A field that holds no count was written by another program: it counts as 0.
local function count(text)
  local number = tonumber(text or '0')
  if not number or number ~= number or number < 0 then return 0 end
  return math.min(math.floor(number), 9007199254740991)
end

local key = KEYS[1]
local held = redis.call('HMGET', key, 'status', 'replays', 'fingerprint', 'deliveries')
local status, replays, owner = held[1], count(held[2]), held[3]
local terminal = status == 'completed' or status == 'failed' or status == 'cancelled'
  or status == 'expired'

local foreign = owner and owner ~= ARGV[6]

if terminal or foreign or replays > tonumber(ARGV[2]) then
  if status then redis.call('HSET', key, 'status', status) end
  local result = terminal and not foreign and redis.call('HGET', key, 'result')
  return {0, status or '', replays, foreign and 0 or 1, result or ''}
end

-- The larger of both counts, compared as numbers: Redis stores them as text.
local deliveries = math.max(count(held[4]), tonumber(ARGV[7]))
redis.call('HSET', key, 'status', ARGV[1], 'replays', ARGV[2], 'result', ARGV[3],
  'finished_at', ARGV[4], 'fingerprint', ARGV[6], 'deliveries', string.format('%.0f', deliveries))
if ARGV[8] ~= '' then redis.call('HSET', key, 'queued_at', ARGV[8]) end
if ARGV[9] ~= '' then redis.call('HSET', key, 'started_at', ARGV[9]) end
redis.call('HDEL', key, 'cancel_requested_at')
for _, field in ipairs(redis.call('HKEYS', key)) do
  if string.sub(field, 1, 6) == 'claim:' then redis.call('HDEL', key, field) end
end
redis.call('PEXPIRE', key, ARGV[5])
return {1, ARGV[1], tonumber(ARGV[2]), 1, ''}
