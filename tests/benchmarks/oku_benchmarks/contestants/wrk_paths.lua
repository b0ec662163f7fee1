-- Asks several paths in turn: wrk -s wrk_paths.lua URL -- PATH ...
local requests, turn = {}, 0

function init(paths)
  for place, path in ipairs(paths) do
    requests[place] = wrk.format("GET", path)
  end
end

function request()
  turn = turn % #requests + 1
  return requests[turn]
end
