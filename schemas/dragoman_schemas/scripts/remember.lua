-- remember: a worker writes translations to one shard of the memory's machine tier.
--
-- KEYS[1]  the shard's newer hash, dragoman:memory:{xx}:new
-- KEYS[2]  its older hash, dragoman:memory:{xx}:old
-- ARGV[1]  most bytes of a hash, by the estimate below
-- ARGV[2]  TTL in ms: the newer hash becomes the older one at this age, and expires at twice it
-- then pairs of a field (23 bytes) and its value
--
-- Reply    {rotations, bytes}: how often the newer hash became the older one, which is dropped, and
--          the estimated bytes of the newer hash. A repetition writes the same once more.

local new, old, most, ttl = KEYS[1], KEYS[2], tonumber(ARGV[1]), tonumber(ARGV[2])
local held = tonumber(redis.call('HGET', new, 'bytes') or '') or 0
local rotations = 0

local function rotate()
  redis.call('UNLINK', old)
  redis.call('RENAME', new, old)
  held, rotations = 0, rotations + 1
end

if held > 0 and redis.call('PTTL', new) <= ttl then rotate() end
for i = 3, #ARGV - 1, 2 do
  -- Measured on Redis 7.0: a field takes 70 to 80 bytes more than itself and its value, and the
  -- allocator rounds long values up by an eighth on average.
  local cost = #ARGV[i + 1] + math.floor(#ARGV[i + 1] / 8) + 96
  if held > 0 and held + cost > most then rotate() end
  local fresh = held == 0
  held = held + cost
  redis.call('HSET', new, 'bytes', held, ARGV[i], ARGV[i + 1])
  if fresh then redis.call('PEXPIRE', new, 2 * ttl) end
end
return {rotations, held}
