-- claim: a worker asks whether to run a record, just before its first item may enter the engine.
--
-- KEYS[1]  the job's hash
-- ARGV[1]  nonce: new for each delivery; a repetition with the same nonce changes nothing
-- ARGV[2]  fingerprint of the record
-- ARGV[3]  place of the record: topic/partition/offset
-- ARGV[4]  now: RFC 3339, UTC, milliseconds, Z
-- ARGV[5]  live TTL in ms
-- ARGV[6]  requested replay: the number of the header dragoman-replay, 0 without one
-- ARGV[7]  poison_after: this many outstanding claims of the same place mean poison
-- ARGV[8]  quarantine: 0 none, 1 in a cohort of suspects, 2 by itself in the engine
-- ARGV[9]  queued_at: the record's timestamp, used if the key has none
-- ARGV[10] 1 if a stored result is wanted with `done`, else 0
--
-- Reply    {verdict, deliveries, replays, queued_at, started_at, status, result, suspicions}
--          verdict is run, done, conflict, cancel, suspect or poisoned; only run changes the key.
--          The other values are the key's fields after it; '' (0 for numbers) if a field is absent.
--          finish must be given `replays`. `result` is '' unless verdict is done and it was
--          wanted. `suspicions` counts the other outstanding claims of the same place with suspect
--          and poisoned, else 0: with suspect, 2 requires a cohort and more a run by itself.

-- A field that holds no count was written by another program: it counts as 0.
local function count(text)
  local number = tonumber(text or '0')
  if not number or number ~= number or number < 0 then return 0 end
  return math.min(math.floor(number), 9007199254740991)
end

local key, nonce, fingerprint, place, now = KEYS[1], ARGV[1], ARGV[2], ARGV[3], ARGV[4]
local suspicions = 0
local replay = tonumber(ARGV[6])
local own = 'claim:' .. nonce

local held = redis.call('HMGET', key, 'status', 'fingerprint', 'replays', 'cancel_requested_at',
  'deliveries')
local status, owner, replays, cancelled = held[1], held[2], count(held[3]), held[4]
local terminal = status == 'completed' or status == 'failed' or status == 'cancelled'
  or status == 'expired'
local reopens = terminal and status ~= 'completed' and replay > replays

local function answer(verdict, result)
  local kept = redis.call('HMGET', key, 'deliveries', 'replays', 'queued_at', 'started_at', 'status')
  return {verdict, count(kept[1]), count(kept[2]), kept[3] or '', kept[4] or '', kept[5] or '',
    result or '', suspicions}
end

-- Before `done`: a payload that never ran must not get the result of another one.
if owner and owner ~= fingerprint then return answer('conflict') end
if terminal and not reopens then
  return answer('done', ARGV[10] == '1' and redis.call('HGET', key, 'result'))
end
if cancelled and not reopens then return answer('cancel') end
if not reopens and redis.call('HEXISTS', key, own) == 1 then return answer('run') end

local claims = {}
for _, field in ipairs(redis.call('HKEYS', key)) do
  if string.sub(field, 1, 6) == 'claim:' then
    claims[#claims + 1] = field
    if redis.call('HGET', key, field) == place then suspicions = suspicions + 1 end
  end
end
if not reopens then
  if suspicions >= tonumber(ARGV[7]) then return answer('poisoned') end
  local quarantine = math.min(math.max(suspicions - 1, 0), 2)
  if tonumber(ARGV[8]) < quarantine then return answer('suspect') end
end

-- The first write is an HSET: if Redis refuses writes (memory, replicas), it refuses this one and
-- nothing is changed.
redis.call('HSET', key, 'status', 'running', own, place, 'fingerprint', fingerprint,
  'replays', string.format('%.0f', math.max(replays, replay)),
  'deliveries', string.format('%.0f', count(held[5]) + 1))
if reopens then
  redis.call('HDEL', key, 'result', 'finished_at', 'cancel_requested_at')
  for _, field in ipairs(claims) do
    if field ~= own then redis.call('HDEL', key, field) end
  end
end
if reopens or replay > replays then
  redis.call('HSET', key, 'started_at', now)
else
  redis.call('HSETNX', key, 'started_at', now)
end
redis.call('HSETNX', key, 'queued_at', ARGV[9])
redis.call('PEXPIRE', key, ARGV[5])
suspicions = 0  -- as in the reply to a repetition
return answer('run')
