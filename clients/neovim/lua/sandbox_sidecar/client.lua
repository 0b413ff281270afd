---One sidecar process from start to end: writes requests, reads responses and
---notifications. It knows nothing about terminals.
---
---The editor stays responsive during a flood of output. Messages are handled in
---slices. While the pipe is not read, the sidecar stops, and then the program.
local framing = require('sandbox_sidecar.framing')
local log = require('sandbox_sidecar.log')

local uv = vim.uv

local M = {}

---The longest slice of message handling, in nanoseconds. Longer slices would
---delay typing.
local SLICE = 10 * 1000 * 1000
---The pause between slices, in milliseconds, in which the editor draws and
---reads keys. Without a pause the main loop would run its whole queue before it
---draws.
local PAUSE = 1
---Reading pauses above this many buffered bytes. It limits memory, and the
---output that still arrives after Ctrl-C.
local HIGH_WATER = 256 * 1024

---@class sandbox_sidecar.Error
---@field code integer
---@field message string
---@field data? sandbox_sidecar.ErrorData

---@alias sandbox_sidecar.Callback fun(err?: sandbox_sidecar.Error, result?: any)

---@class sandbox_sidecar.ClientOptions
---@field command string[]
---@field on_data fun(data: string) Sees all data on its arrival (|api-fast|).
---@field on_notification fun(method: string, params: any)
---@field on_request fun(method: string, params: any, answer: fun(result: any, err?: sandbox_sidecar.Error), id: integer)
---@field on_exit fun(reason: string) Called once, after the last message.

---@class sandbox_sidecar.Client
---@field pid integer
---@field private options sandbox_sidecar.ClientOptions
---@field private handle uv.uv_process_t
---@field private stdin uv.uv_pipe_t
---@field private stdout uv.uv_pipe_t
---@field private stderr uv.uv_pipe_t
---@field private timer uv.uv_timer_t
---@field private decoder sandbox_sidecar.Decoder
---@field private pending table<integer, sandbox_sidecar.Callback>
---@field private seen integer The last request that was handled.
---@field private refused table<integer, true> Requests that are not handled any more.
---@field private last_id integer
---@field private draining boolean A slice is running or on its way.
---@field private paused boolean Whether reading is paused.
---@field private eof boolean Whether the output has ended.
---@field private exit string? How the process ended.
---@field private raw? fun(data: string) See watch.
---@field private over boolean on_exit was called.
local Client = {}
Client.__index = Client

---The environment of the sidecar, in which NVIM names this editor, not one that
---it runs in. Settings that grant "$NVIM" mean this editor then; no session gets
---the variable otherwise.
---@return string[]
local function environment()
  local variables = uv.os_environ()
  variables.NVIM = vim.v.servername ~= '' and vim.v.servername or nil
  local list = {}
  for name, value in pairs(variables) do
    list[#list + 1] = name .. '=' .. value
  end
  return list
end

---Starts the process.
---@param options sandbox_sidecar.ClientOptions
---@return sandbox_sidecar.Client? client
---@return string? err
function M.start(options)
  local self = setmetatable({
    options = options,
    stdin = uv.new_pipe(),
    stdout = uv.new_pipe(),
    stderr = uv.new_pipe(),
    timer = uv.new_timer(),
    decoder = framing.decoder(),
    pending = {},
    seen = 0,
    refused = {},
    last_id = 0,
    draining = false,
    paused = false,
    eof = false,
    over = false,
  }, Client)
  local handle, pid = uv.spawn(options.command[1], {
    args = vim.list_slice(options.command, 2),
    stdio = { self.stdin, self.stdout, self.stderr },
    env = environment(),
    -- A session of its own, so that :suspend and a hang-up do not reach the
    -- sidecar. It ends when its standard input closes, also if the editor is
    -- killed.
    detached = true,
  }, function(code, signal)
    self.exit = signal ~= 0 and ('killed by signal %d'):format(signal)
      or ('exit status %d'):format(code)
    self.handle:close()
    self:drain_soon()
  end)
  if not handle then
    for _, unused in ipairs({ self.stdin, self.stdout, self.stderr, self.timer }) do
      unused:close()
    end
    log.write('error', 'start %s: %s', options.command[1], pid)
    return nil, 'the sidecar cannot start: its program does not run. See ":Sidecar log".'
  end
  self.handle, self.pid = handle, pid --[[@as integer]]
  self.stderr:read_start(function(_, data)
    if data then
      vim.schedule(function()
        log.raw(data)
      end)
    end
  end)
  self:read()
  return self
end

---@private
function Client:read()
  self.paused = false
  self.stdout:read_start(function(err, data)
    if err or not data then
      self.eof = true
    else
      if self.raw then
        self.raw(data)
      end
      self.options.on_data(data)
      self.decoder:feed(data)
      if self.decoder:size() > HIGH_WATER then
        self.paused = true
        self.stdout:read_stop()
      end
    end
    self:drain_soon()
  end)
end

---@private
function Client:drain_soon()
  if not self.draining then
    self.draining = true
    vim.schedule(function()
      self:drain()
    end)
  end
end

---Handles received messages for one slice.
---@private
function Client:drain()
  local begun = uv.hrtime()
  while uv.hrtime() - begun < SLICE do
    local body, err = self.decoder:next()
    if err then
      log.write('error', 'invalid message from the sidecar: %s', err)
      self.eof = true
      self.decoder = framing.decoder()
      self:kill()
    end
    if not body then
      self.draining = false
      self:on_drained()
      return
    end
    local ok, problem = xpcall(self.handle_message, debug.traceback, self, body)
    if not ok then
      log.write('error', 'handle a message: %s', problem)
    end
  end
  -- draining stays true, because the next slice is scheduled.
  self.timer:start(PAUSE, 0, function()
    vim.schedule(function()
      self:drain()
    end)
  end)
end

---Called when every received message was handled.
---@private
function Client:on_drained()
  if self.paused and not self.eof then
    self:read()
  elseif self.eof and self.exit and not self.over then
    self.over = true
    for _, open in ipairs({ self.stdin, self.stdout, self.stderr, self.timer }) do
      if not open:is_closing() then
        open:close()
      end
    end
    local pending = self.pending
    self.pending = {}
    for _, callback in pairs(pending) do
      callback({ code = 0, message = ('the sidecar ended (%s)'):format(self.exit) })
    end
    self.options.on_exit(self.exit)
  end
end

---@private
---@param body string
function Client:handle_message(body)
  -- null in an object becomes nil. Since 0.11 it would be vim.NIL, which is
  -- true.
  local message = vim.json.decode(body, { luanil = { object = true, array = true } })
  if message.method and message.id == nil then
    self.options.on_notification(message.method, message.params)
  elseif message.method and self.refused[message.id] then
    self.refused[message.id] = nil
  elseif message.method then
    self.seen = message.id -- they rise
    self.options.on_request(message.method, message.params, function(result, err)
      self:send({
        jsonrpc = '2.0',
        id = message.id,
        result = not err and (result == nil and vim.empty_dict() or result) or nil,
        error = err,
      })
    end, message.id)
  else
    local callback = self.pending[message.id]
    if callback then
      self.pending[message.id] = nil
      callback(message.error, message.result)
    else
      log.write('warn', 'response without a request: %s', body:sub(1, 200))
    end
  end
end

---@private
---@param message table
function Client:send(message)
  if not self.stdin:is_closing() then
    self.stdin:write(framing.encode(message))
  end
end

---Answers a request with an error if the main loop has not handled it
---(|api-fast|).
---@param id integer
function Client:refuse_unseen(id)
  if id > self.seen then
    self.refused[id] = true
    local err = { code = 0, message = 'the editor waits for a command' }
    self:send({ jsonrpc = '2.0', id = id, error = err })
  end
end

---@param method string
---@param params? table
---@param callback sandbox_sidecar.Callback Called once, from the main loop.
function Client:request(method, params, callback)
  if self.over or self.stdin:is_closing() then
    callback({ code = 0, message = 'the sidecar has ended' })
    return
  end
  self.last_id = self.last_id + 1
  self.pending[self.last_id] = callback
  self:send({
    jsonrpc = '2.0',
    id = self.last_id,
    method = method,
    params = params or vim.empty_dict(),
  })
end

---@param method string
---@param params? table
function Client:notify(method, params)
  self:send({ jsonrpc = '2.0', method = method, params = params or vim.empty_dict() })
end

---Sees all data on its arrival (|api-fast|). While a prompt holds the main loop,
---no message is handled.
---@param raw? fun(data: string)
function Client:watch(raw)
  self.raw = raw
end

---@return boolean
function Client:ended()
  return self.over
end

---Ends the connection, and closes the pipe, which ends the sidecar. Returns at
---once.
function Client:shutdown()
  if self.over or self.stdin:is_closing() then
    return
  end
  self:request('shutdown', nil, function() end)
  self:notify('exit')
  -- Queued messages are written first.
  self.stdin:shutdown(function()
    if not self.stdin:is_closing() then
      self.stdin:close()
    end
  end)
end

---Kills the process; its watchdog ends what it started.
function Client:kill()
  if not self.exit then
    self.handle:kill('sigkill')
  end
end

return M
