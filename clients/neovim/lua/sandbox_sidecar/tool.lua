---Commands that run as sandboxed tools, without a window, for agents.
local config = require('sandbox_sidecar.config')
local check = require('sandbox_sidecar.options').check
local project = require('sandbox_sidecar.project')
local sidecar = require('sandbox_sidecar.sidecar')
local text = require('sandbox_sidecar.text')
local uuid = require('sandbox_sidecar.uuid')

local M = {}

---Wide enough for compilers' messages; some programs wrap at 80 columns.
local COLS, ROWS = 160, 50
---How many denials a result keeps.
local MAX_DENIALS = 100

---@class sandbox_sidecar.RunOptions
---@field cwd? string Default: the current directory.
---@field project_dir? string What the tool may write. Default: see the option `root_markers`.
---@field env? table<string, string> In addition to the option `env`.
---@field group? string Runs that name the same group share a sandbox. Default: "agent". "own" is one of its own.
---@field timeout? integer Milliseconds, after which the tool and its processes are killed.
---@field max_bytes? integer How many bytes of output to keep, the newest. Default: 1 MiB.
---@field raw? boolean Whether to keep escape sequences and CR LF in the output.
---@field on_output? fun(bytes: string) Receives raw output.

local RUN_OPTIONS = {
  cwd = { 'string' },
  project_dir = { 'string' },
  env = { 'table' },
  group = { 'string' },
  timeout = { 'number' },
  max_bytes = { 'number' },
  raw = { 'boolean' },
  on_output = { 'function' },
}

---@class sandbox_sidecar.RunResult
---@field exit_code? integer nil if a signal ended it, or it did not start.
---@field signal? string
---@field output string Standard output and error together, as on a terminal.
---@field truncated boolean Whether older output was dropped.
---@field killed boolean Whether kill() or the time limit ended it, whatever its status is.
---@field timed_out boolean Whether the time limit ended it.
---@field sandbox? sandbox_sidecar.SandboxReport The sandbox of the session.
---@field background integer How many of its processes still run, in its group.
---@field hints string[] What the sandbox may have to do with a failure, for the user.
---@field denials sandbox_sidecar.DeniedParams[] What was refused, as far as it was reported; at most 100.
---@field error? sandbox_sidecar.Error Why it did not start, or why its end is unknown.

---@class sandbox_sidecar.Job
---@field id string The session's id.
---@field result? sandbox_sidecar.RunResult nil until it has ended.
---@field package chunks string[]
---@field package size integer Bytes in the chunks.
---@field package options sandbox_sidecar.RunOptions
---@field package spawned? sandbox_sidecar.SpawnResult
---@field package truncated boolean
---@field package timed_out boolean
---@field package killed boolean
---@field package timer? uv.uv_timer_t
---@field package background integer
---@field package hints string[]
---@field package denials sandbox_sidecar.DeniedParams[]
---@field package on_done? fun(result: sandbox_sidecar.RunResult)
local Job = {}
Job.__index = Job

---@private
---@param bytes string
function Job:on_output(bytes)
  self.chunks[#self.chunks + 1] = bytes
  self.size = self.size + #bytes
  local limit = self.options.max_bytes or 1024 * 1024
  if self.size > 2 * limit then
    self:trim(limit)
  end
  if self.options.on_output then
    self.options.on_output(bytes)
  end
end

---@private
---@param limit integer
function Job:trim(limit)
  if self.size > limit then
    local kept = table.concat(self.chunks):sub(-limit)
    -- Drops the rest of a character that was cut.
    kept = kept:gsub('^[\128-\191]+', '')
    self.chunks, self.size, self.truncated = { kept }, #kept, true
  end
end

---Returns the output so far.
---@return string output
---@return boolean truncated
function Job:output()
  self:trim(self.options.max_bytes or 1024 * 1024)
  local bytes = table.concat(self.chunks)
  return self.options.raw and bytes or text.plain(bytes), self.truncated
end

---@private
---@param status? sandbox_sidecar.ExitStatus
---@param err? sandbox_sidecar.Error
function Job:finish(status, err)
  if self.result then
    return
  end
  if self.timer then
    self.timer:stop()
    self.timer:close()
  end
  local output, truncated = self:output()
  self.result = {
    exit_code = status and status.exitCode,
    signal = status and status.signal,
    output = output,
    truncated = truncated,
    -- A shell may see its program killed, and exit with 137 before it is killed
    -- itself.
    killed = self.killed,
    timed_out = self.timed_out,
    background = self.background,
    sandbox = self.spawned and self.spawned.sandbox,
    hints = self.hints,
    denials = self.denials,
    error = err,
  }
  if self.on_done then
    self.on_done(self.result)
  end
end

---Kills the tool with its processes. It then ends like any tool.
function Job:kill()
  if self.result then
    return
  end
  self.killed = true
  -- A session that is still starting is closed after the response to its spawn.
  if self.spawned then
    sidecar.close(self.id, 0, function(_, closed)
      self:finish(closed, not closed and { code = 0, message = 'the sidecar has ended' } or nil)
    end)
  end
end

---Waits for the end. The editor processes events meanwhile, as in |vim.wait()|.
---@param timeout? integer Milliseconds, after which the tool is killed.
---@return sandbox_sidecar.RunResult
function Job:wait(timeout)
  local function ended()
    return self.result ~= nil
  end
  if not vim.wait(timeout or 2 ^ 31 - 1, ended, 5) then
    self.timed_out = true
    self:kill()
    vim.wait(10000, ended, 5)
  end
  self:finish(nil, { code = 0, message = 'the sidecar does not respond' })
  return self.result
end

---The output is a terminal, so programs would start a pager and wait for a key.
---The shell sets these variables, because the environment filter removes them.
local NO_PAGER = 'PAGER=cat GIT_PAGER=cat MANPAGER=cat; export PAGER GIT_PAGER MANPAGER; '

---@param cmd string|string[]
---@return string command
---@return string[]? args
local function command_line(cmd)
  if type(cmd) == 'string' then
    return NO_PAGER .. cmd
  end
  return '/bin/sh', vim.list_extend({ '-c', NO_PAGER .. 'exec "$@"', 'sh' }, cmd)
end

---Runs a command as a tool. Its standard input is empty.
---@param cmd string|string[] A line for bash or /bin/sh, or a program with its arguments.
---@param options? sandbox_sidecar.RunOptions
---@param on_done? fun(result: sandbox_sidecar.RunResult) Called once.
---@return sandbox_sidecar.Job
function M.run(cmd, options, on_done)
  options = options or {}
  check('run', options, RUN_OPTIONS)
  local cwd = project.absolute(options.cwd or vim.fn.getcwd())
  local program, args = command_line(cmd)
  local job = setmetatable({
    id = uuid.new(),
    chunks = {},
    size = 0,
    options = options,
    truncated = false,
    timed_out = false,
    killed = false,
    background = 0,
    hints = {},
    denials = {},
    on_done = on_done,
  }, Job)
  if options.timeout then
    job.timer = vim.uv.new_timer()
    job.timer:start(
      options.timeout,
      0,
      vim.schedule_wrap(function()
        job.timed_out = job.result == nil
        job:kill()
      end)
    )
  end
  sidecar.spawn({
    kind = 'tool',
    sessionId = job.id,
    group = options.group or 'agent',
    cwd = cwd,
    projectDir = options.project_dir and project.absolute(options.project_dir) or project.root(cwd),
    command = program,
    args = args,
    cols = COLS,
    rows = ROWS,
    -- No terminal draws the output.
    env = vim.tbl_extend('force', { TERM = 'dumb' }, config.get().env, options.env or {}),
  }, {
    label = type(cmd) == 'table' and table.concat(cmd, ' ') or cmd --[[@as string]],
    on_output = function(bytes)
      job:on_output(bytes)
    end,
    on_denied = function(params)
      if #job.denials < MAX_DENIALS then
        job.denials[#job.denials + 1] = params
      end
    end,
    on_exited = function(status, hints, background)
      job.hints, job.background = hints, background
      job:finish(status)
    end,
    on_lost = function(reason)
      job:finish(nil, { code = 0, message = ('the sidecar ended (%s)'):format(reason) })
    end,
  }, function(err, spawned)
    job.spawned = spawned
    if err then
      job:finish(nil, err)
    elseif job.killed then
      job:kill()
    end
  end)
  return job
end

return M
