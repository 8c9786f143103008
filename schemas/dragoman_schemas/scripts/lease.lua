-- lease: a gateway takes a document, keeps it, and writes what becomes of it.
--
-- KEYS[1]  the document's hash
-- ARGV[1]  the gateway: an id of the process
-- ARGV[2]  now in ms since 1970
-- ARGV[3]  end of the lease in ms since 1970; now or earlier gives the document back
-- ARGV[4]  TTL of the key in ms
-- then     any number of pairs: a field and its value
--
-- Reply    {held, owner}: held is 1 if the document was free, given back, past the end of its lease,
--          or the gateway's own, and all is written; else 0 and nothing was changed. owner is the
--          owner now, empty without a key.

local found = redis.call('HMGET', KEYS[1], 'key', 'owner', 'lease_until')
if not found[1] then return {0, ''} end
local owner, ends = found[2], tonumber(found[3] or '') or 0
if owner and owner ~= ARGV[1] and ends > tonumber(ARGV[2]) then return {0, owner} end
redis.call('HSET', KEYS[1], 'owner', ARGV[1], 'lease_until', ARGV[3])
for n = 5, #ARGV, 2 do
  redis.call('HSET', KEYS[1], ARGV[n], ARGV[n + 1])
end
redis.call('PEXPIRE', KEYS[1], ARGV[4])
return {1, ARGV[1]}
