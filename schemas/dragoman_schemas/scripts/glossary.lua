-- glossary: a client replaces a stored glossary, unless another client changed it meanwhile.
--
-- KEYS[1]  the glossary's hash
-- ARGV[1]  the field `meta` as it was read; '' if there was none
-- ARGV[2]  the new `meta`: JSON with a new version
-- then     any number of pairs: a field `terms:<tag>` and its JSON
--
-- Reply    {written, meta}: written is 1 if the hash now holds the arguments, also when the call is
--          repeated; else 0 and nothing was changed. meta is what the hash now holds.

local current = redis.call('HGET', KEYS[1], 'meta') or ''
if current == ARGV[2] then return {1, current} end
if current ~= ARGV[1] then return {0, current} end
-- A write that a full server refuses comes before the first that removes anything.
redis.call('HSET', KEYS[1], 'meta', ARGV[2])
redis.call('DEL', KEYS[1])
redis.call('HSET', KEYS[1], 'meta', ARGV[2])
for n = 3, #ARGV, 2 do
  redis.call('HSET', KEYS[1], ARGV[n], ARGV[n + 1])
end
return {1, ARGV[2]}
