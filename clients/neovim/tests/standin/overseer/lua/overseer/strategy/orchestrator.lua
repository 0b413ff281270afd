-- A task that starts others.
local Strategy = {}

function Strategy.new(opts)
  return setmetatable({ opts = opts }, { __index = Strategy })
end

function Strategy:start()
  for _, definition in ipairs(self.opts.tasks) do
    require('overseer').new_task(definition):start()
  end
end

function Strategy.get_bufnr() end

function Strategy.stop() end

function Strategy.reset() end

function Strategy.dispose() end

return Strategy
