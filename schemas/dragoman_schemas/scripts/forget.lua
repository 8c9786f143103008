-- forget: a client removes a job that has ended, with its result.
--
-- KEYS[1]  the job's hash
--
-- Reply    {removed, status}: removed is 1 if the key was terminal and was deleted, else 0 and
--          nothing was changed; status is the status before, empty without a key.

local status = redis.call('HGET', KEYS[1], 'status')
if status == 'completed' or status == 'failed' or status == 'cancelled' or status == 'expired' then
  return {redis.call('DEL', KEYS[1]), status}
end
return {0, status or ''}
