---Sandboxed terminals for agents that ask their editor for terminals (Agent
---Client Protocol, terminal/*). It has the methods of agentic.nvim's manager,
---and replaces it:
---
---    require('sandbox_sidecar.integrations.acp').install()
---
---Other clients can call it in the same way: parameters and results are those
---of the protocol. Each agent has one manager. The agent may write the project
---in which the user starts it. Nothing that it sends later selects another.
local project = require('sandbox_sidecar.project')
local tool = require('sandbox_sidecar.tool')
local uuid = require('sandbox_sidecar.uuid')

---@class sandbox_sidecar.AcpTerminal
---@field session? string The agent's session.
---@field job sandbox_sidecar.Job
---@field status? { exitCode: integer|vim.NIL, signal: string|vim.NIL }
---@field waiters fun(status: table)[]

---@class sandbox_sidecar.AcpCreateParams
---@field command string
---@field args? string[]
---@field env? { name: string, value: string }[]
---@field cwd? string
---@field outputByteLimit? integer
---@field sessionId? string

---@class sandbox_sidecar.AcpTerminals
---@field private terminals table<string, sandbox_sidecar.AcpTerminal>
---@field private root string The project.
local Terminals = {}
Terminals.__index = Terminals

---agentic.nvim calls it just before it starts the agent.
---@return sandbox_sidecar.AcpTerminals
function Terminals:new()
  return setmetatable({ terminals = {}, root = project.current() }, self)
end

---Replaces agentic.nvim's manager, whether it is loaded or not. Agents that are
---running keep theirs.
function Terminals.install()
  local name = 'agentic.acp.terminal_manager'
  local theirs = package.loaded[name]
  package.preload[name] = function()
    return Terminals
  end
  if type(theirs) == 'table' and theirs ~= Terminals then
    -- Modules that have loaded it keep that table, and create a manager from it
    -- for each agent.
    theirs.new = function()
      return Terminals:new()
    end
  end
  package.loaded[name] = theirs or Terminals
end

---@param list any
---@return string[]? # nil if it is not a list of strings.
local function texts(list)
  if list == nil or list == vim.NIL then
    return {}
  elseif type(list) ~= 'table' or not (next(list) == nil or vim.islist(list)) then
    return nil
  end
  for _, item in ipairs(list) do
    if type(item) ~= 'string' then
      return nil
    end
  end
  return list
end

---@param list any Variables in the protocol's form.
---@return table<string, string>? # nil if the form is wrong.
local function variables(list)
  local env = {}
  if list == nil or list == vim.NIL then
    return env
  elseif type(list) ~= 'table' or not (next(list) == nil or vim.islist(list)) then
    return nil
  end
  for _, variable in ipairs(list) do
    if
      type(variable) ~= 'table'
      or type(variable.name) ~= 'string'
      or type(variable.value) ~= 'string'
    then
      return nil
    end
    env[variable.name] = variable.value
  end
  return env
end

---@param terminal sandbox_sidecar.AcpTerminal
---@param status { exitCode: integer|vim.NIL, signal: string|vim.NIL }
local function settle(terminal, status)
  terminal.status = status
  local waiters = terminal.waiters
  terminal.waiters = {}
  for _, waiter in ipairs(waiters) do
    waiter(status)
  end
end

---terminal/create.
---@param params sandbox_sidecar.AcpCreateParams
---@return string? id
---@return string? err
function Terminals:create(params)
  if type(params) ~= 'table' or type(params.command) ~= 'string' then
    return nil, 'terminal/create: expected a command'
  end
  local args, env = texts(params.args), variables(params.env)
  if not args or not env then
    return nil, 'terminal/create: expected strings in args, and names and values in env'
  end
  local cwd, err = project.inside(self.root, params.cwd)
  if not cwd then
    return nil,
      ('terminal/create: cwd: %s. Start the agent in the project where it should work.'):format(err)
  end
  local terminal = { session = params.sessionId, waiters = {} }
  -- Some agents send a whole command line, without arguments.
  local cmd = #args > 0 and vim.list_extend({ params.command }, args) or params.command
  terminal.job = tool.run(cmd, {
    cwd = cwd,
    project_dir = self.root,
    env = env,
    max_bytes = type(params.outputByteLimit) == 'number' and math.max(params.outputByteLimit, 1)
      or nil,
  }, function(result)
    terminal.failure = result.error and result.error.message
    local signal = result.killed and 'SIGKILL' or result.signal or vim.NIL
    settle(
      terminal,
      { exitCode = signal == vim.NIL and result.exit_code or vim.NIL, signal = signal }
    )
  end)
  local id = 'sidecar-' .. uuid.new()
  self.terminals[id] = terminal
  return id
end

---terminal/output.
---@param id string
---@return { output: string, truncated: boolean, exitStatus?: table }? # nil: no such terminal.
function Terminals:get_output(id)
  local terminal = self.terminals[id]
  if not terminal then
    return nil
  end
  local output, truncated = terminal.job:output()
  if terminal.failure then
    output = output .. terminal.failure .. '\n'
  end
  return { output = output, truncated = truncated, exitStatus = terminal.status }
end

---terminal/wait_for_exit.
---@param id string
---@param callback fun(status: { exitCode: integer|vim.NIL, signal: string|vim.NIL })
---@return boolean # false: no such terminal.
function Terminals:wait_for_exit(id, callback)
  local terminal = self.terminals[id]
  if not terminal then
    return false
  end
  if terminal.status then
    callback(terminal.status)
  else
    table.insert(terminal.waiters, callback)
  end
  return true
end

---terminal/kill. Output and status stay available.
---@param id string
---@return boolean # false: no such terminal.
function Terminals:kill(id)
  local terminal = self.terminals[id]
  if terminal then
    terminal.job:kill()
  end
  return terminal ~= nil
end

---terminal/release.
---@param id string
---@return boolean # false: no such terminal.
function Terminals:release(id)
  local terminal = self.terminals[id]
  if not terminal then
    return false
  end
  self.terminals[id] = nil
  terminal.job:kill()
  -- Waiting requests get their answer now. They would hang otherwise.
  settle(terminal, terminal.status or { exitCode = vim.NIL, signal = vim.NIL })
  return true
end

---Releases the terminals of an agent's session.
---@param session string
function Terminals:release_session(session)
  for id, terminal in pairs(self.terminals) do
    if terminal.session == session then
      self:release(id)
    end
  end
end

function Terminals:release_all()
  for id in pairs(self.terminals) do
    self:release(id)
  end
end

return Terminals
