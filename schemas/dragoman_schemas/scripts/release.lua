-- release: a worker that drains or loses the partition releases its claim.
--
-- KEYS[1]  the job's hash
-- ARGV[1]  nonce of the claim
--
-- Reply    {removed, status}: removed is 1 if the claim was outstanding, else 0 and nothing was
--          changed; status is the present status ('' without a key): `queued` if a running job
--          has no claim left. The TTL does not change.

local key = KEYS[1]
local removed = redis.call('HEXISTS', key, 'claim:' .. ARGV[1])
local status = redis.call('HGET', key, 'status') or ''
if removed == 0 then return {0, status} end

local others = 0
for _, field in ipairs(redis.call('HKEYS', key)) do
  if string.sub(field, 1, 6) == 'claim:' and field ~= 'claim:' .. ARGV[1] then others = others + 1 end
end
if others == 0 and status == 'running' then
  status = 'queued'
  redis.call('HSET', key, 'status', status)
end
redis.call('HDEL', key, 'claim:' .. ARGV[1])
return {1, status}
