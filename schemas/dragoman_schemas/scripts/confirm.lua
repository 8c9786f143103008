-- confirm: a worker makes a terminal state durable that another program wrote.
--
-- KEYS[1]  the job's hash
--
-- Reply    {written, status}: written is 1 if the key has a status, which was written again
--          unchanged, so that a WAIT or WAITAOF after the script covers every earlier write of the
--          key; else 0 and nothing was changed. status is the present status.

local status = redis.call('HGET', KEYS[1], 'status')
if not status then return {0, ''} end
redis.call('HSET', KEYS[1], 'status', status)
return {1, status}
