---Runs every task of overseer.nvim in a sandbox, whatever the task or
---overseer's options say.
---
---    require('sandbox_sidecar.integrations.overseer').setup()
---
---Call it before overseer.setup() or after it. Since 2.0 overseer has no option
---for the strategy of its tasks, and a template or a task file can always name
---another one. So this hooks the function that starts every task, and sets the
---task's strategy there.
local Strategy = require('overseer.strategy.sandbox_sidecar')
local notify = require('sandbox_sidecar.notify')
local project = require('sandbox_sidecar.project')
local wrap = require('sandbox_sidecar.wrap')

local M = {}

---The user starts tasks, as if typed into a terminal.
local KIND = 'terminal'

---Hooked classes of tasks. Reloading overseer creates another class.
local hooked = setmetatable({}, { __mode = 'k' })

---@param why string
local function unsupported(why)
  error(('overseer: %s, so its tasks cannot be sandboxed. Use version 1.x or 2.x.'):format(why), 0)
end

---@param name string
---@return table
local function module(name)
  local ok, loaded = pcall(require, name)
  if not ok or type(loaded) ~= 'table' then
    unsupported(('the module %s is missing'):format(name))
  end
  return loaded
end

---@param strategy table
---@param name string
---@return boolean # Whether it is overseer's own strategy of that name.
local function is_builtin(strategy, name)
  local meta = getmetatable(strategy)
  local own = package.loaded['overseer.strategy.' .. name]
  return meta ~= nil and own ~= nil and meta.__index == own
end

---@param cmd string|string[]
---@param cwd? string
---@return string[]
local function argv(cmd, cwd)
  if wrap.is_marked(cmd) then
    return cmd --[[@as string[] ]]
  end
  local list = type(cmd) == 'table' and cmd or { '/bin/sh', '-c', cmd }
  return wrap.argv(
    list --[[@as string[] ]],
    { kind = KIND, project_dir = project.working(cwd or vim.fn.getcwd()) }
  )
end

---Wraps the task's command. The strategy stays, because the caller of
---jobstart() or vim.system() uses what it returns.
---@param strategy table
local function wrap_start(strategy)
  local start = getmetatable(strategy).__index.start
  strategy.start = function(self, task)
    local cmd = task.cmd
    task.cmd = argv(cmd, task.cwd)
    local ok, err = pcall(start, self, task)
    task.cmd = cmd
    if not ok then
      error(err, 0)
    end
  end
end

---@param strategy table The task's strategy.
---@return table # The strategy to use instead.
local function sandboxed(strategy)
  if getmetatable(strategy) == Strategy then
    return strategy
  elseif is_builtin(strategy, 'orchestrator') then
    -- It only starts other tasks.
    return strategy
  elseif
    (is_builtin(strategy, 'jobstart') or is_builtin(strategy, 'system'))
    and type(strategy.opts) == 'table'
    and strategy.opts.wrap_opts
  then
    if not rawget(strategy, 'start') then
      wrap_start(strategy)
    end
    return strategy
  end
  local own = Strategy.new()
  own.name = 'sandbox_sidecar'
  return own
end

---Starts a task that runs nothing, and returns whether the hook saw it.
---@param Task table
---@param hook { probe?: table } The task that the hook looks for.
---@return boolean
local function start_is_hooked(Task, hook)
  local task, reached
  local function nothing() end
  local ok = pcall(function()
    task = Task.new({
      name = 'sandbox_sidecar: test task',
      cmd = { 'true' },
      components = {},
      strategy = 'jobstart',
    })
    hook.probe = task
    hook.strategy = setmetatable({
      name = 'sandbox_sidecar',
      start = function(_, started)
        reached = started == task
      end,
    }, {
      __index = function()
        return nothing
      end,
    })
    task:start()
  end)
  hook.probe = nil
  if task then
    pcall(function()
      task:dispose(true)
    end)
  end
  return ok and reached == true
end

---@param Task table
local function hook_tasks(Task)
  if type(Task.new) ~= 'function' or type(Task.start) ~= 'function' then
    unsupported('its tasks have an unknown form')
  end
  local start, hook = Task.start, {}
  Task.start = function(self, ...)
    if type(self.strategy) ~= 'table' then
      error('overseer: a task without a strategy cannot be sandboxed', 0)
    end
    self.strategy = self == hook.probe and hook.strategy or sandboxed(self.strategy)
    return start(self, ...)
  end
  if not start_is_hooked(Task, hook) then
    unsupported('its tasks start in an unknown way')
  end
end

---@return boolean # Whether a template of overseer's is listing its tasks.
local function is_listing()
  for level = 3, 100 do
    local info = debug.getinfo(level, 'S')
    if not info then
      return false
    elseif info.source:find('/overseer/template/', 1, true) then
      return true
    end
  end
  return true
end

---Wraps the commands by which templates list a project's tasks. They run the
---project's code: make expands "$(shell …)", rake and mage run files.
---@param owner table
---@param name string
local function hook_listing(owner, name)
  local run = owner[name]
  owner[name] = function(cmd, ...)
    if is_listing() then
      local opts = ...
      cmd = argv(cmd, type(opts) == 'table' and opts.cwd or nil)
    end
    return run(cmd, ...)
  end
end

---@param Task table
local function install(Task)
  -- In 2.x templates start programs through functions that overseer saved, in
  -- 1.x through Neovim's.
  local builtin = rawget(module('overseer'), 'builtin')
  local owner, name
  if type(builtin) == 'table' and type(builtin.system) == 'function' then
    owner, name = builtin, 'system'
  elseif builtin == nil and type(Task.new_uninitialized) == 'function' then
    owner, name = vim.fn, 'jobstart'
  else
    unsupported('its version is unknown')
  end
  hook_tasks(Task)
  if not hooked[owner] then
    hook_listing(owner, name)
  end
  hooked[Task], hooked[owner] = true, true
end

---Raises an error if overseer is missing or unsupported; then none of its tasks
---starts. It can be called again, for example after a reload.
function M.setup()
  local Task = module('overseer.task')
  if hooked[Task] then
    return
  end
  local ok, err = pcall(install, Task)
  if not ok then
    -- A user who overlooks the error gets no unsandboxed task.
    Task.start = function()
      error(err, 0)
    end
    error(err, 0)
  end
  local listed, tasks = pcall(module('overseer.task_list').list_tasks, { include_ephemeral = true })
  local running = 0
  for _, task in ipairs(listed and tasks or {}) do
    running = running + (task.status == 'RUNNING' and 1 or 0)
  end
  if running > 0 then
    notify.warn(
      running == 1 and 'one overseer task runs without a sandbox until it ends'
        or ('%d overseer tasks run without a sandbox until they end'):format(running)
    )
  end
end

return M
