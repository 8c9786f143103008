-- mark: a worker records in a document's progress that one of its jobs has ended, or is completed.
--
-- KEYS[1]  the document's hash, dragoman:document:<document_id>:bits:ended or :bits:completed
-- ARGV[1]  index of the job in the document
-- ARGV[2]  the job's TTL in ms; a key that lives longer keeps its own
--
-- Reply    1 if this call set the bit, 0 if it was set before.

-- A field holds the bits of 8,192 jobs, up to the last one that is set, in the order of SETBIT: the
-- first is the highest of its byte. One bitmap for the whole document would cost 125 KB to set the
-- bit of its millionth job.
local key, index, ttl = KEYS[1], tonumber(ARGV[1]), tonumber(ARGV[2])
local field = string.format('%.0f', math.floor(index / 8192))
local place, value = math.floor(index % 8192 / 8) + 1, 2 ^ (7 - index % 8)
local bits = redis.call('HGET', key, field) or ''
local byte = string.byte(bits, place) or 0
local marked = math.floor(byte / value) % 2 == 0

if marked then
  local before = string.sub(bits, 1, place - 1)
  redis.call('HSET', key, field, before .. string.rep('\0', place - 1 - #before)
    .. string.char(byte + value) .. string.sub(bits, place + 1, 1024))
end
if redis.call('PTTL', key) < ttl then redis.call('PEXPIRE', key, ttl) end
return marked and 1 or 0
