---A terminal in a buffer, whose program runs in a sandboxed session.
local channel = require('sandbox_sidecar.channel')
local check = require('sandbox_sidecar.options').check
local config = require('sandbox_sidecar.config')
local display = require('sandbox_sidecar.display')
local notify = require('sandbox_sidecar.notify')
local osc52 = require('sandbox_sidecar.osc52')
local project = require('sandbox_sidecar.project')
local protocol = require('sandbox_sidecar.protocol_gen')
local sidecar = require('sandbox_sidecar.sidecar')
local size = require('sandbox_sidecar.size')
local uuid = require('sandbox_sidecar.uuid')

local M = {}

---@class sandbox_sidecar.TerminalOptions
---@field cmd? string|string[] A line for bash or /bin/sh, or a program with its arguments. Default: the option `shell`.
---@field cwd? string Default: the current directory.
---@field project_dir? string What the session may write. Default: see the option `root_markers`.
---@field env? table<string, string> In addition to the option `env`.
---Where the window opens, as in |nvim_cmd()|, or text such as "vertical".
---Default: the current window.
---@field mods? vim.api.keyset.cmd.mods|string
---@field start_insert? boolean Default: the option of that name.
---@field on_output? fun(bytes: string) Receives the unfiltered output.
---@field on_exit? fun(terminal: sandbox_sidecar.Terminal)

local TERMINAL_OPTIONS = {
  cmd = { 'string', 'table' },
  cwd = { 'string' },
  project_dir = { 'string' },
  env = { 'table' },
  mods = { 'string', 'table' },
  start_insert = { 'boolean' },
  on_output = { 'function' },
  on_exit = { 'function' },
}

---@class sandbox_sidecar.Terminal
---@field buf integer
---@field id string The session's id.
---@field title string The command line.
---@field spawned? sandbox_sidecar.SpawnResult nil until the session has started.
---@field status? sandbox_sidecar.ExitStatus nil until the program has ended.
---@field failed? string Why the session did not start, or was lost.
---@field stale boolean A new terminal would get another policy.
---@field package channel? integer nil when the emulator is closed.
---@field package close_channel fun() Closes the channel of chansend().
---@field package filter? sandbox_sidecar.Filter
---@field package input string[] Typed, but not sent yet.
---@field package cols? integer The size that the session has; nil: the sidecar's default.
---@field package rows? integer
---@field package discarded? boolean Whether the session is being closed because its buffer is gone.
---@field package options sandbox_sidecar.TerminalOptions
local Terminal = {}
Terminal.__index = Terminal

local terminals = {} ---@type table<integer, sandbox_sidecar.Terminal>
local count = 0

---@param buf? integer Default: the current buffer.
---@return sandbox_sidecar.Terminal?
function M.of(buf)
  return terminals[buf and buf ~= 0 and buf or vim.api.nvim_get_current_buf()]
end

---@return sandbox_sidecar.Terminal[] # Terminals whose buffer exists, oldest first.
function M.list()
  local list = vim.tbl_values(terminals)
  table.sort(list, function(a, b)
    return a.buf < b.buf
  end)
  return list
end

---Sets b:sandbox_sidecar for the user's scripts.
---@private
function Terminal:publish()
  if not vim.api.nvim_buf_is_valid(self.buf) then
    return
  end
  local status, spawned = self.status or {}, self.spawned or {}
  vim.b[self.buf].sandbox_sidecar = {
    session_id = self.id,
    running = self.spawned ~= nil and self.status == nil and self.failed == nil,
    pid = spawned.pid,
    policy_id = spawned.policyId,
    sandbox = spawned.sandbox and spawned.sandbox.status,
    stale = self.stale,
    exit_code = status.exitCode,
    signal = status.signal,
    failed = self.failed,
  }
  vim.cmd.redrawstatus({ bang = true })
end

---@private
---@param pattern string
function Terminal:fire(pattern)
  vim.api.nvim_exec_autocmds('User', {
    pattern = pattern,
    modeline = false,
    data = {
      buf = self.buf,
      session_id = self.id,
      exit_code = self.status and self.status.exitCode,
      signal = self.status and self.status.signal,
      sandbox = self.spawned and self.spawned.sandbox.status,
      failed = self.failed,
    },
  })
end

---@private
---@param bytes string
function Terminal:write(bytes)
  if self.channel then
    -- Fails if the buffer was wiped out meanwhile.
    pcall(vim.api.nvim_chan_send, self.channel, bytes)
  end
end

---@private
---@param bytes string
function Terminal:on_output(bytes)
  self:write(self.filter and self.filter:pass(bytes) or bytes)
  if self.options.on_output then
    self.options.on_output(bytes)
  end
end

---Closes the emulator with a last line. Any key in Terminal-mode then closes
---the buffer, as in |:terminal|.
---@private
---@param line string
function Terminal:finish(line)
  -- CAN ends an escape sequence that the program left open. It would swallow
  -- the line.
  self:write('\24\27[0m\r\n[' .. display.line(line) .. ']')
  self:publish()
  local emulator = self.channel
  self.channel = nil
  if emulator then
    pcall(vim.fn.chanclose, emulator)
  end
  self.close_channel()
  self:fire('SandboxSidecarExited')
  if self.options.on_exit then
    self.options.on_exit(self)
  end
end

---@private
---@param status sandbox_sidecar.ExitStatus
function Terminal:on_exited(status)
  self.status = status
  self:finish(
    status.signal and ('Process ended by %s'):format(status.signal)
      or ('Process exited %d'):format(status.exitCode)
  )
  if status.exitCode == 0 and config.get().close_on_success then
    pcall(vim.api.nvim_buf_delete, self.buf, { force = true })
  end
end

---@private
---@param reason string
function Terminal:on_lost(reason)
  self.failed = reason
  self:finish(('The sidecar ended: %s'):format(reason))
end

---@private
---@param data string
function Terminal:on_input(data)
  self.input[#self.input + 1] = data
  if #self.input == 1 then
    -- Pasted text arrives in thousands of pieces, which are sent together.
    vim.schedule(function()
      self:flush()
    end)
  end
end

---Sends text to the program, as if it were typed.
---@param text string
function Terminal:send(text)
  if type(text) ~= 'string' then
    error('send: expected a string', 2)
  elseif not self.channel then
    error('send: the program of this terminal has ended', 2)
  end
  self:on_input(text)
end

---Sends the typed input. Input that is typed before the session has started
---waits for it.
---@private
function Terminal:flush()
  if self.spawned and #self.input > 0 then
    local typed = table.concat(self.input)
    self.input = {}
    sidecar.notify(protocol.methods.input, { sessionId = self.id, data = vim.base64.encode(typed) })
  end
end

---@private
---@param cols integer
---@param rows integer
function Terminal:resize(cols, rows)
  if self.spawned and (cols ~= self.cols or rows ~= self.rows) then
    self.cols, self.rows = cols, rows
    sidecar.notify(protocol.methods.resize, { sessionId = self.id, cols = cols, rows = rows })
  end
end

---@private
---@param spawned sandbox_sidecar.SpawnResult
function Terminal:on_spawned(spawned)
  self.spawned = spawned
  for _, warning in ipairs(spawned.sandbox.warnings) do
    notify.warn_once(warning)
  end
  if not vim.api.nvim_buf_is_valid(self.buf) then
    self:close()
    return
  end
  self:publish()
  self:flush()
  -- The window may have changed while the session started.
  local cols, rows = size.of(self.buf)
  if cols and rows then
    self:resize(cols, rows)
  end
  self:fire('SandboxSidecarStarted')
end

---@private
---@param err sandbox_sidecar.Error
function Terminal:on_failed(err)
  self.failed = display.line(err.message)
  notify.error(notify.describe(err))
  self:finish('Not started: ' .. notify.describe(err))
end

---Ends the session; the buffer stays.
---@param callback? fun()
function Terminal:close(callback)
  sidecar.close(self.id, nil, callback and function()
    callback()
  end)
end

---@param stale boolean A new terminal would get another policy.
---@return boolean # Whether the mark is new.
function Terminal:set_stale(stale)
  local newly_stale = stale and not self.stale
  if stale ~= self.stale then
    self.stale = stale
    self:publish()
  end
  return newly_stale
end

---Ends the session of a buffer that is gone.
---@private
function Terminal:discard()
  if self.spawned and not self.status and not self.failed and not self.discarded then
    self.discarded = true
    self:close()
  end
end

---@param terminal sandbox_sidecar.Terminal
---@return sandbox_sidecar.SpawnParams
local function spawn_params(terminal)
  local options, settings = terminal.options, config.get()
  local cwd = project.absolute(options.cwd or vim.fn.getcwd())
  terminal.cols, terminal.rows = size.of(terminal.buf)
  local params = {
    kind = 'terminal',
    sessionId = terminal.id,
    cwd = cwd,
    projectDir = options.project_dir and project.absolute(options.project_dir) or project.root(cwd),
    cols = terminal.cols,
    rows = terminal.rows,
    -- The values describe this terminal, not the one that runs the editor.
    env = vim.tbl_extend('force', {
      TERM = 'xterm-256color',
      COLORTERM = vim.o.termguicolors and 'truecolor' or nil,
    }, settings.env, options.env or {}),
  }
  local cmd = options.cmd
  if type(cmd) == 'string' then
    params.command = cmd
  elseif cmd then
    params.command, params.args = cmd[1], vim.list_slice(cmd, 2)
  elseif settings.shell then
    params.shell = { program = settings.shell[1], args = vim.list_slice(settings.shell, 2) }
  end
  return params
end

---@param mods? vim.api.keyset.cmd.mods|string
local function open_window(mods)
  if type(mods) == 'string' then
    mods = mods ~= '' and vim.api.nvim_parse_cmd(mods .. ' new', {}).mods or nil
  end
  if not mods then
    return
  end
  local tab = mods.tab and mods.tab >= 0
  local split = mods.split and mods.split ~= ''
  if tab or split or mods.vertical or mods.horizontal then
    vim.cmd.split({
      mods = { tab = tab and mods.tab or nil, split = mods.split, vertical = mods.vertical },
    })
  end
end

---Creates a terminal's buffer, with an emulator.
---@param options sandbox_sidecar.TerminalOptions
---@param win? integer The window that shows it.
---@param restored? integer A buffer of a saved session, which becomes the terminal.
---@return sandbox_sidecar.Terminal
local function new(options, win, restored)
  local settings = config.get()
  count = count + 1
  local cmd = options.cmd
    or (settings.shell and settings.shell[1])
    or require('sandbox_sidecar.confine').own_shell()
    or 'shell'
  local title = type(cmd) == 'table' and table.concat(cmd, ' ') or cmd --[[@as string]]
  local buf = restored or vim.api.nvim_create_buf(win ~= nil, false)
  local terminal = setmetatable({
    buf = buf,
    id = uuid.new(),
    title = title,
    stale = false,
    filter = not settings.clipboard and osc52.filter() or nil,
    input = {},
    options = options,
  }, Terminal)
  local job
  job, terminal.close_channel = channel.open(function(bytes)
    terminal:on_input(bytes)
  end)
  -- Before |TermOpen|, whose handlers send to it.
  vim.b[buf].terminal_job_id = job
  terminals[buf] = terminal
  if win then
    vim.api.nvim_win_set_buf(win, buf)
  end
  terminal.channel = vim.api.nvim_open_term(buf, {
    -- The session's terminal has converted line ends already.
    force_crlf = false,
    on_input = function(_, _, _, data)
      terminal:on_input(data)
    end,
  })
  if not restored then
    local cwd = vim.fn.fnamemodify(project.absolute(options.cwd or vim.fn.getcwd()), ':~')
    vim.api.nvim_buf_set_name(
      buf,
      ('sidecar://%s//%d:%s'):format(display.text(cwd), count, display.text(title))
    )
  end
  vim.api.nvim_create_autocmd({ 'BufUnload', 'BufWipeout' }, {
    buffer = buf,
    callback = function()
      terminals[buf] = nil
      terminal.channel = nil
      terminal.close_channel()
      terminal:discard()
    end,
  })
  size.watch(buf, function(cols, rows)
    terminal:resize(cols, rows)
  end)
  terminal:publish()
  vim.bo[buf].filetype = 'sidecar-terminal'
  return terminal
end

---@param terminal sandbox_sidecar.Terminal
local function start(terminal)
  sidecar.spawn(spawn_params(terminal), {
    label = terminal.title,
    on_output = function(bytes)
      terminal:on_output(bytes)
    end,
    on_exited = function(status)
      terminal:on_exited(status)
    end,
    on_lost = function(reason)
      terminal:on_lost(reason)
    end,
  }, function(err, spawned)
    if err then
      terminal:on_failed(err)
    else
      terminal:on_spawned(spawned)
    end
  end)
end

---Starts a terminal without a window.
---@param options sandbox_sidecar.TerminalOptions
---@return sandbox_sidecar.Terminal
function M.create(options)
  local terminal = new(options)
  start(terminal)
  return terminal
end

---Opens a terminal in a window.
---@param options? sandbox_sidecar.TerminalOptions
---@return sandbox_sidecar.Terminal
function M.open(options)
  options = options or {}
  check('terminal', options, TERMINAL_OPTIONS)
  open_window(options.mods)
  local terminal = new(options, vim.api.nvim_get_current_win())
  start(terminal)
  local insert = options.start_insert
  if insert == nil then
    insert = config.get().start_insert
  end
  if insert then
    vim.cmd.startinsert()
  end
  return terminal
end

---Finds the directory and the number in a terminal's name.
---@param buf integer
---@return string dir
---@return string? number
local function from_name(buf)
  local dir, number = vim.api.nvim_buf_get_name(buf):match('^sidecar://(.-)//(%d+):')
  dir = dir and vim.fs.normalize(dir)
  if not dir or not vim.startswith(dir, '/') or vim.fn.isdirectory(dir) == 0 then
    dir = vim.fn.getcwd()
  end
  return dir, number
end

---Ends the shells that use old settings, and opens new ones in their windows. A
---command ends by itself, and is not run again.
---@return integer # How many were reopened.
function M.reopen()
  local reopened = 0
  for _, old in ipairs(M.list()) do
    local windows = vim.fn.win_findbuf(old.buf)
    if old.stale and not old.options.cmd and #windows > 0 then
      local options = vim.tbl_extend('force', old.options, { cwd = from_name(old.buf) })
      options.mods, options.start_insert = nil, false
      local fresh ---@type sandbox_sidecar.Terminal
      vim.api.nvim_win_call(windows[1], function()
        fresh = M.open(options)
      end)
      for _, win in ipairs(windows) do
        vim.api.nvim_win_set_buf(win, fresh.buf)
      end
      vim.api.nvim_buf_delete(old.buf, { force = true })
      reopened = reopened + 1
    end
  end
  return reopened
end

---Turns a buffer of a saved session (|:mksession|) into a terminal again: your
---shell in the directory of its name. A command of it does not run again.
---@param buf integer
function M.restore(buf)
  local dir, number = from_name(buf)
  -- No later terminal gets the same name.
  count = math.max(count, (tonumber(number) or 0) % 2 ^ 31)
  start(new({ cwd = dir }, vim.fn.bufwinid(buf), buf))
end

return M
