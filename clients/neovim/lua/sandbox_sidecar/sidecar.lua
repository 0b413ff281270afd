---The editor's sidecar: one process, which starts when it is first needed, and
---the listeners of its sessions. The module's state lives as long as the
---editor; the process may be restarted.
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

---How long, in milliseconds, the editor waits for the sidecar when it exits.
---The sessions end even if the wait is too short.
local SHUTDOWN_TIMEOUT = 1500

---Receives the events of a session.
---@class sandbox_sidecar.Listener
---@field label string The session's command line, for messages.
---@field on_output fun(bytes: string) Raw bytes, in order.
---@field on_exited fun(status: sandbox_sidecar.ExitStatus, hints: string[], background: integer) `background` processes run on.
---@field on_denied? fun(params: sandbox_sidecar.DeniedParams) Called for each denial that is reported.
---@field on_lost fun(reason: string) Called if the sidecar has ended, and the session with it.

---@class sandbox_sidecar.State
---@field client? sandbox_sidecar.Client
---@field ready boolean Whether the connection is initialized.
---@field initialize_result? sandbox_sidecar.InitializeResult
---@field waiting sandbox_sidecar.Callback[] Called when the connection is initialized, or has failed.
---@field listeners table<string, sandbox_sidecar.Listener>
---@field labels table<string, string> Each session's command line, for messages.
---@field projects table<string, string> The project of each session.
---@field adopted table<string, true> The sessions that the sidecar did not start.
---@field folder? string The workspace folder that the sidecar knows.
---@field stopping boolean Whether the process is being shut down on purpose.
local state = {
  ready = false,
  waiting = {},
  listeners = {},
  labels = {},
  projects = {},
  adopted = {},
  stopping = false,
}

---Handlers of notifications that concern no single session, by method.
---@type table<string, fun(params: any)>
M.notifications = {}

---Handlers of requests from the sidecar, by method.
---@type table<string, fun(params: any, answer: fun(result: any, err?: sandbox_sidecar.Error), id: integer)>
M.requests = {}

---Called when a session has ended, after its listener.
---@type fun(params: sandbox_sidecar.ExitedParams)[]
M.on_exited = {}

---Sees all data on its arrival (|api-fast|).
---@param _ string
function M.on_data(_) end

---Called after a session was closed, with the sidecar's result.
---@type fun(id: string, result: sandbox_sidecar.CloseResult)[]
M.on_closed = {}

---Called when the process has ended or a new one is ready.
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
    -- Output without a listener counts as consumed, too.
    M.acknowledge(params.sessionId, #bytes)
  elseif method == methods.exited then
    local listener = state.listeners[params.sessionId]
    state.listeners[params.sessionId] = nil
    if listener then
      listener.on_exited(
        { exitCode = params.exitCode, signal = params.signal },
        params.hints or {},
        params.background or 0
      )
    end
    for _, hook in ipairs(M.on_exited) do
      hook(params)
    end
    -- Nobody queries the session after its end, so the sidecar may forget it.
    M.close(params.sessionId)
  elseif M.notifications[method] then
    M.notifications[method](params)
    local listener = method == methods.denied and state.listeners[params.sessionId]
    if listener and listener.on_denied then
      listener.on_denied(params)
    end
  else
    log.write('info', 'ignored the unknown notification %s', method)
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
---@param id integer
local function on_request(method, params, answer, id)
  local handler = M.requests[method]
  if handler then
    handler(params, answer, id)
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
  state.listeners, state.labels, state.projects, state.stopping = {}, {}, {}, false
  state.adopted = {}
  vim.env.SANDBOX_WINDOW = nil
  settle({ code = 0, message = ('the sidecar ended (%s)'):format(reason) })
  for _, listener in pairs(listeners) do
    listener.on_lost(reason)
  end
  if not wanted then
    notify.error(
      ('the sidecar ended (%s), and every session with it. See ":Sidecar log".'):format(reason)
    )
  end
  changed()
end

---Each session's bytes that were consumed but not yet acknowledged.
local consumed = {} ---@type table<string, integer>

---@param id string
---@param bytes integer
function M.acknowledge(id, bytes)
  if consumed[id] then
    consumed[id] = consumed[id] + bytes
    return
  end
  consumed[id] = bytes
  -- One message per slice is enough: the sidecar sends the next output long
  -- before its credit is used up.
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
    protocolVersion = protocol.version,
    clientInfo = { name = 'neovim', version = tostring(vim.version()) },
    workspaceFolders = { folder(dir) },
    capabilities = {
      flowControl = true,
      approvals = M.requests['sandbox/requestAccess'] ~= nil,
      window = true,
    },
    initializationOptions = { userSettingsPath = config.get().settings_path },
  }, function(err, initialize_result)
    if state.client ~= started then
      return
    end
    if not err and initialize_result.protocolVersion ~= protocol.version then
      log.write(
        'error',
        'the sidecar speaks protocol %s, the plugin %d',
        initialize_result.protocolVersion,
        protocol.version
      )
      err = {
        code = 0,
        message = ('the sidecar (version %s) does not match this plugin. Install one release of both.'):format(
          display.quote(initialize_result.serverInfo.version)
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
    vim.env.SANDBOX_WINDOW = initialize_result.window
    settle()
    changed()
    require('sandbox_sidecar.trust').check(dir)
    require('sandbox_sidecar.enable').offer(dir)
  end)
end

---@return sandbox_sidecar.Error?
local function start()
  -- These modules register their handlers before the first message.
  require('sandbox_sidecar.diagnostics')
  require('sandbox_sidecar.denials')
  require('sandbox_sidecar.approval')
  require('sandbox_sidecar.review')
  require('sandbox_sidecar.shells')
  config.report_unknown()
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
    on_data = function(data)
      M.on_data(data)
    end,
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

---Calls back when the sidecar is ready for requests. Starts one if needed.
---@param callback sandbox_sidecar.Callback
function M.ensure(callback)
  if state.ready then
    return callback()
  end
  state.waiting[#state.waiting + 1] = callback
  if not state.client then
    local err = start()
    if err then
      -- Always asynchronous: the caller has its return value by then.
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

---Sends a notification if a sidecar is running.
---@param method string
---@param params table
function M.notify(method, params)
  if state.ready then
    state.client:notify(method, params)
  end
end

---Starts a session. The listener gets no event before the callback.
---@param params sandbox_sidecar.SpawnParams With a sessionId.
---@param listener sandbox_sidecar.Listener
---@param callback fun(err?: sandbox_sidecar.Error, result?: sandbox_sidecar.SpawnResult)
function M.spawn(params, listener, callback)
  M.ensure(function(err)
    if err then
      return callback(err)
    end
    if not M.initialize_result().capabilities.groups then
      params.group = nil -- this platform has none
    end
    state.listeners[params.sessionId] = listener
    state.labels[params.sessionId] = display.quote(listener.label, 60)
    state.projects[params.sessionId] = params.projectDir
    state.client:request(methods.spawn, params, function(failed, result)
      if failed and state.listeners[params.sessionId] == listener then
        state.listeners[params.sessionId] = nil
      end
      callback(failed, result)
    end)
  end)
end

---Names a session that the sidecar did not start.
---@param id string
---@param label string
---@param dir string Its project.
function M.adopt(id, label, dir)
  state.labels[id], state.projects[id] = display.quote(label, 60), dir
  state.adopted[id] = true
end

---@param id string
---@return boolean # Whether the session reads the settings itself: the sidecar did not start it.
function M.is_adopted(id)
  return state.adopted[id] == true
end

---Whether the sidecar has started a session (|api-fast|).
---@param id string
---@return boolean
function M.has_started(id)
  return state.listeners[id] ~= nil
end

---Refuses a request that the main loop has not handled (|api-fast|).
---@param id integer
function M.refuse_unseen(id)
  if state.client then
    state.client:refuse_unseen(id)
  end
end

---Ends a session. Calls back when no process of it is left.
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
    state.labels[id], state.projects[id], state.adopted[id] = nil, nil, nil
    if callback then
      callback(err, result)
    end
  end)
end

---@param id string
---@return string # A session's command line, for messages.
function M.label(id)
  return state.labels[id] or 'a session'
end

---@param id string
---@return string? # The project of a session that was not closed.
function M.project(id)
  return state.projects[id]
end

---@return sandbox_sidecar.InitializeResult? # nil if no sidecar is running.
function M.initialize_result()
  return state.initialize_result
end

---@return integer? # The process id of the running sidecar.
function M.pid()
  return state.client and state.client.pid
end

---Sees what arrives while a prompt holds the main loop; see Client:watch.
---@param raw? fun(data: string)
function M.watch(raw)
  if state.client then
    state.client:watch(raw)
  end
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

---Tells the sidecar that the editor's directory has changed.
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
