-- reset: a box removes at its start a job that its broker has forgotten.
--
-- KEYS[1]  the job's hash
--
-- Reply    {removed, status}: removed is 1 if the key was there and not terminal, and was deleted
--          with its claims, else 0 and nothing was changed; status is the status before.

local status = redis.call('HGET', KEYS[1], 'status')
if status == 'completed' or status == 'failed' or status == 'cancelled' or status == 'expired' then
  return {0, status}
end
return {redis.call('DEL', KEYS[1]), status or ''}
