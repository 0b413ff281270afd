local list = require('overseer.task_list')
local strategy = require('overseer.strategy')

local Task = {}
local last = 0

function Task.new(opts)
  last = last + 1
  opts.strategy = opts.strategy or { 'jobstart', use_terminal = true }
  local task = setmetatable({
    id = last,
    name = opts.name,
    cmd = opts.cmd,
    cwd = opts.cwd or vim.fn.getcwd(),
    env = opts.env,
    status = 'PENDING',
    strategy_defn = opts.strategy,
    strategy = strategy.load(opts.strategy),
  }, { __index = Task })
  list.add(task)
  return task
end

function Task:clone()
  return Task.new({
    name = self.name,
    cmd = self.cmd,
    cwd = self.cwd,
    env = self.env,
    strategy = self.strategy_defn,
  })
end

function Task.dispatch() end

function Task:is_running()
  return self.status == 'RUNNING'
end

function Task:get_bufnr()
  return self.strategy:get_bufnr()
end

function Task:on_exit(code)
  self.exit_code = code
  if self:is_running() then
    self.status = code == 0 and 'SUCCESS' or 'FAILURE'
  end
end

function Task:start()
  if self.status ~= 'PENDING' then
    return false
  end
  if not pcall(self.strategy.start, self.strategy, self) then
    return false
  end
  self.status = 'RUNNING'
  return true
end

function Task:stop()
  if self:is_running() then
    self.status = 'CANCELED'
    self.strategy:stop()
  end
end

function Task:restart(force)
  if force then
    self:stop()
  end
  self.status, self.exit_code = 'PENDING', nil
  self.strategy:reset()
  return self:start()
end

function Task:dispose(force)
  if force then
    self:stop()
  end
  self.status = 'DISPOSED'
  self.strategy:dispose()
  list.remove(self)
end

return Task
