#!lua name=cssl_queue1
-- The changes of a backup, each in one atomic step; functions.h says what they take and return. Only put is refused when
-- the memory is full: the others free memory or hardly take any, and without them a full server could never become empty.

local function stale(owner)
  return redis.error_reply('STALE ' .. (redis.call('HGET', owner, 'epoch') or '0'))
end

local function owned(work)
  return function(keys, args)
    if redis.call('HGET', keys[1], 'token') ~= args[1] then return stale(keys[1]) end
    return work(keys, args)
  end
end

local function claim(keys, args)
  local old = redis.call('HMGET', keys[1], 'epoch', 'generation', 'nonce')
  local epoch, generation = tonumber(old[1]) or 0, tonumber(old[2]) or 0
  local new_epoch, new_generation = tonumber(args[1]), tonumber(args[2])
  if new_epoch < epoch then return stale(keys[1]) end
  if new_epoch == epoch and (args[3] ~= old[3] or new_generation <= generation) then
    return stale(keys[1])
  end
  local replaced = redis.call('HGETALL', keys[1])
  redis.call('HSET', keys[1], 'epoch', args[1], 'generation', args[2], 'nonce', args[3],
    'token', args[1] .. '.' .. args[2])
  return replaced
end

local function put(keys, args)
  local new = 0
  for i = 2, #args, 2 do new = new + redis.call('HSETNX', keys[2], args[i], args[i + 1]) end
  return new
end

local function replace(keys, args)
  local done = 0
  for i = 2, #args, 2 do
    if redis.call('HEXISTS', keys[2], 'm' .. string.sub(args[i], 2)) == 1 then
      redis.call('HSET', keys[2], args[i], args[i + 1])
      done = done + 1
    end
  end
  return done
end

local function delete(keys, args)
  local done = 0
  for i = 2, #args do done = done + redis.call('HDEL', keys[2], args[i]) end
  return done
end

-- The bodies of messages stay here: only their names leave the server.
local function names(keys, args)
  local cursor, found = unpack(redis.call('HSCAN', keys[2], args[2], 'COUNT', args[3]))
  local bytes, message = 0, string.byte('m')
  for i = 2, #found, 2 do
    bytes = bytes + #found[i]
    if string.byte(found[i - 1]) == message then found[i] = '' end
  end
  return {cursor, found, bytes}
end

local function mark(keys, args)
  redis.call('HSET', keys[1], unpack(args, 2))
  return 1
end

local function renew(keys, args)
  return redis.call('HINCRBY', keys[1], 'renewals', 1)
end

local function add(name, work, flags)
  redis.register_function{function_name = 'cssl_queue1_' .. name, callback = work, flags = flags}
end

add('claim', claim, {'allow-oom'})
add('put', owned(put), {})
add('replace', owned(replace), {'allow-oom'})
add('delete', owned(delete), {'allow-oom'})
add('names', owned(names), {'no-writes'})
add('mark', owned(mark), {'allow-oom'})
add('renew', owned(renew), {'allow-oom'})
