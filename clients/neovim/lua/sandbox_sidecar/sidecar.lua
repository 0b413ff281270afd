---The sidecar of this editor: one process, started when it is first needed, with a table of what runs in it. It lives as long as the
---editor; the process below it may be restarted.
local binary = require('sandbox_sidecar.binary')
local client = require('sandbox_sidecar.client')
local config = require('sandbox_sidecar.config')
local display = require('sandbox_sidecar.display')
local log = require('sandbox_sidecar.log')
local notify = require('sandbox_sidecar.notify')
local project = require('sandbox_sidecar.project')
local protocol = require('sandbox_sidecar.protocol_gen')

local methods = protocol.methods

local M = {}

---How long, in milliseconds, the editor waits at its end for the sessions to be gone. They go without it, too.
local SHUTDOWN_TIMEOUT = 1500

---What a session wants to hear.
---@class sandbox_sidecar.Listener
---@field label string What the session runs, for people.
---@field on_output fun(bytes: string) Raw bytes, in order.
---@field on_exited fun(status: sandbox_sidecar.ExitStatus) After the last output.
---@field on_lost fun(reason: string) The sidecar is gone, and the session with it.

---@class sandbox_sidecar.State
---@field client? sandbox_sidecar.Client
---@field ready boolean The conversation is open.
---@field initialize_result? sandbox_sidecar.InitializeResult
---@field waiting sandbox_sidecar.Callback[] Called when the conversation is open, or cannot be.
---@field listeners table<string, sandbox_sidecar.Listener>
---@field labels table<string, string> What each session runs, for people.
---@field folder? string The workspace folder that the sidecar was told.
---@field stopping boolean The end of the process is wanted.
local state = { ready = false, waiting = {}, listeners = {}, labels = {}, stopping = false }

---Handlers of what the sidecar tells that is no session's, by method.
---@type table<string, fun(params: any)>
M.notifications = {}

---Handlers of what the sidecar asks, by method.
---@type table<string, fun(params: any, answer: fun(result: any, err?: sandbox_sidecar.Error))>
M.requests = {}

---Called when a session was closed, with what the sidecar says about it.
---@type fun(id: string, result: sandbox_sidecar.CloseResult)[]
M.on_closed = {}

---Called when the process has ended or a new one has begun.
---@type fun()[]
M.on_change = {}

local function changed()
  for _, callback in ipairs(M.on_change) do
    callback()
  end
end

---@param err? sandbox_sidecar.Error
local function settle(err)
  local waiting = state.waiting
  state.waiting = {}
  for _, callback in ipairs(waiting) do
    callback(err)
  end
end

---@param method string
---@param params any
local function on_notification(method, params)
  if method == methods.output then
    local bytes = vim.base64.decode(params.data)
    local listener = state.listeners[params.sessionId]
    if listener then
      listener.on_output(bytes)
    end
    -- Consumed is what the listener has taken, so this is also true for what
    -- nobody wants any more.
    M.acknowledge(params.sessionId, #bytes)
  elseif method == methods.exited then
    local listener = state.listeners[params.sessionId]
    state.listeners[params.sessionId] = nil
    if listener then
      listener.on_exited({ exitCode = params.exitCode, signal = params.signal })
    end
    -- Nobody asks for it again: let the sidecar forget it.
    M.close(params.sessionId)
  elseif M.notifications[method] then
    M.notifications[method](params)
  else
    log.write('info', 'ignored the notification %s', method)
  end
end

M.notifications[methods.log_message] = function(params)
  local levels = { vim.log.levels.ERROR, vim.log.levels.WARN }
  if levels[params.type] then
    notify.show(params.message, levels[params.type])
  else
    log.write('info', '%s', params.message)
  end
end

---@param method string
---@param params any
---@param answer fun(result: any, err?: sandbox_sidecar.Error)
local function on_request(method, params, answer)
  local handler = M.requests[method]
  if handler then
    handler(params, answer)
  else
    answer(nil, {
      code = protocol.error_codes.method_not_found,
      message = ('unknown method %q'):format(method),
    })
  end
end

---@param ended sandbox_sidecar.Client
---@param reason string
local function on_exit(ended, reason)
  if state.client ~= ended then
    return
  end
  local wanted = state.stopping
  local listeners = state.listeners
  state.client, state.ready, state.initialize_result, state.folder = nil, false, nil, nil
  state.listeners, state.labels, state.stopping = {}, {}, false
  settle({ code = 0, message = ('the sidecar ended (%s)'):format(reason) })
  for _, listener in pairs(listeners) do
    listener.on_lost(reason)
  end
  if not wanted then
    notify.error(
      ('the sidecar ended (%s), and every session with it; see ":Sidecar log"'):format(reason)
    )
  end
  changed()
end

---Bytes of each session that were consumed and not yet acknowledged.
local consumed = {} ---@type table<string, integer>

---@param id string
---@param bytes integer
function M.acknowledge(id, bytes)
  if consumed[id] then
    consumed[id] = consumed[id] + bytes
    return
  end
  consumed[id] = bytes
  -- One message for a slice is enough: the sidecar sends on long before it has
  -- used its credit up.
  vim.schedule(function()
    local sum = consumed[id]
    consumed[id] = nil
    if state.client then
      state.client:notify(methods.ack, { sessionId = id, bytes = sum })
    end
  end)
end

---@param dir string
---@return sandbox_sidecar.WorkspaceFolder
local function folder(dir)
  return { path = dir, name = vim.fs.basename(dir) }
end

---@param started sandbox_sidecar.Client
local function handshake(started)
  local dir = project.root(vim.fn.getcwd(-1, -1))
  started:request(methods.initialize, {
    processId = vim.uv.os_getpid(),
    clientInfo = { name = 'neovim', version = tostring(vim.version()) },
    workspaceFolders = { folder(dir) },
    capabilities = { flowControl = true, approvals = M.requests['sandbox/requestAccess'] ~= nil },
    initializationOptions = { userSettingsPath = config.get().settings_path },
  }, function(err, initialize_result)
    if state.client ~= started then
      return
    end
    if not err and initialize_result.protocolVersion ~= protocol.version then
      err = {
        code = 0,
        message = ('the sidecar (version %s) speaks protocol %s, this plugin %d (hint: use a sidecar and a plugin of one version)'):format(
          initialize_result.serverInfo.version,
          initialize_result.protocolVersion,
          protocol.version
        ),
      }
    end
    if err then
      state.stopping = true
      started:shutdown()
      settle(err)
      return
    end
    started:notify(methods.initialized)
    state.ready, state.initialize_result, state.folder = true, initialize_result, dir
    settle()
    changed()
    require('sandbox_sidecar.trust').check(dir)
  end)
end

---@return sandbox_sidecar.Error?
local function start()
  -- It listens to what a sidecar says from its first message on.
  require('sandbox_sidecar.diagnostics')
  require('sandbox_sidecar.denials')
  require('sandbox_sidecar.approval')
  local path, missing = binary.find()
  if not path then
    return {
      code = 0,
      message = missing --[[@as string]],
    }
  end
  local started, err
  started, err = client.start({
    command = { path, 'serve', '--log-level', config.get().log_level },
    on_notification = on_notification,
    on_request = on_request,
    on_exit = function(reason)
      on_exit(started, reason)
    end,
  })
  if not started then
    return {
      code = 0,
      message = err --[[@as string]],
    }
  end
  log.write('info', 'started %s as process %d', path, started.pid)
  state.client = started
  handshake(started)
end

---Calls back as soon as the sidecar can be talked to, starting it if need be.
---@param callback sandbox_sidecar.Callback
function M.ensure(callback)
  if state.ready then
    return callback()
  end
  state.waiting[#state.waiting + 1] = callback
  if not state.client then
    local err = start()
    if err then
      -- Later, as every other answer: the caller has its result in hand by
      -- then.
      vim.schedule(function()
        settle(err)
      end)
    end
  end
end

---@param method string
---@param params? table
---@param callback sandbox_sidecar.Callback
function M.request(method, params, callback)
  M.ensure(function(err)
    if err then
      return callback(err)
    end
    state.client:request(method, params, callback)
  end)
end

---Tells something to a sidecar that runs; else nothing.
---@param method string
---@param params table
function M.notify(method, params)
  if state.ready then
    state.client:notify(method, params)
  end
end

---Starts a session. The listener hears nothing before the callback.
---@param params sandbox_sidecar.SpawnParams With a sessionId.
---@param listener sandbox_sidecar.Listener
---@param callback fun(err?: sandbox_sidecar.Error, result?: sandbox_sidecar.SpawnResult)
function M.spawn(params, listener, callback)
  M.ensure(function(err)
    if err then
      return callback(err)
    end
    state.listeners[params.sessionId] = listener
    state.labels[params.sessionId] = display.quote(listener.label, 60)
    state.client:request(methods.spawn, params, function(failed, result)
      if failed and state.listeners[params.sessionId] == listener then
        state.listeners[params.sessionId] = nil
      end
      callback(failed, result)
    end)
  end)
end

---Ends a session, and calls back when no process of it is left.
---@param id string
---@param grace_ms? integer
---@param callback? fun(err?: sandbox_sidecar.Error, result?: sandbox_sidecar.CloseResult)
function M.close(id, grace_ms, callback)
  if not state.ready then
    return callback and callback()
  end
  state.client:request(methods.close, { sessionId = id, graceMs = grace_ms }, function(err, result)
    if result then
      for _, hook in ipairs(M.on_closed) do
        hook(id, result)
      end
    end
    state.labels[id] = nil
    if callback then
      callback(err, result)
    end
  end)
end

---@param id string
---@return string # What a session runs, for people.
function M.label(id)
  return state.labels[id] or 'a session'
end

---@return sandbox_sidecar.InitializeResult? # What the running sidecar said of itself.
function M.initialize_result()
  return state.initialize_result
end

---@return integer? # The running sidecar's process.
function M.pid()
  return state.client and state.client.pid
end

---@param callback? fun()
function M.stop(callback)
  local ending = state.client
  if not ending then
    return callback and callback()
  end
  state.stopping = true
  ending:shutdown()
  if callback then
    local timer = vim.uv.new_timer()
    timer:start(5, 5, function()
      if ending:ended() then
        timer:stop()
        timer:close()
        vim.schedule(callback)
      end
    end)
  end
end

---Ends the sidecar with every session, and starts a new one.
---@param callback? sandbox_sidecar.Callback
function M.restart(callback)
  M.stop(function()
    M.ensure(callback or function(err)
      if err then
        notify.error(notify.describe(err))
      end
    end)
  end)
end

---The editor works in another directory from now on.
local function directory_changed()
  if not state.ready then
    return
  end
  local dir = project.root(vim.fn.getcwd(-1, -1))
  if dir ~= state.folder then
    M.notify(methods.did_change_workspace_folders, {
      added = { folder(dir) },
      removed = { folder(state.folder) },
    })
    state.folder = dir
    require('sandbox_sidecar.trust').check(dir)
  end
end

local group = vim.api.nvim_create_augroup('sandbox_sidecar', { clear = true })
vim.api.nvim_create_autocmd('DirChanged', { group = group, callback = directory_changed })
vim.api.nvim_create_autocmd('VimLeavePre', {
  group = group,
  callback = function()
    local ending = state.client
    if ending then
      M.stop()
      vim.wait(SHUTDOWN_TIMEOUT, function()
        return ending:ended()
      end, 5)
    end
  end,
})

return M
