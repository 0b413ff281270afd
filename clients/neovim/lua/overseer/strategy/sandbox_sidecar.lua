---Runs a task of overseer in a sandbox:
---
---    overseer.new_task({ cmd = 'make', strategy = 'sandbox_sidecar' })
---
---For all tasks see sandbox_sidecar.integrations.overseer.
local project = require('sandbox_sidecar.project')
local terminal = require('sandbox_sidecar.terminal')
local text = require('sandbox_sidecar.text')

---@class sandbox_sidecar.OverseerStrategy
---@field private terminal? sandbox_sidecar.Terminal
local Strategy = {}
Strategy.__index = Strategy

---@return sandbox_sidecar.OverseerStrategy
function Strategy.new()
  return setmetatable({}, Strategy)
end

---@return integer?
function Strategy:get_bufnr()
  return self.terminal and self.terminal.buf
end

---@param task table overseer's task: cmd, cwd, env, dispatch(), on_exit().
function Strategy:start(task)
  local rest = '' -- an incomplete line
  local function dispatch_lines(lines)
    if #lines > 0 then
      task:dispatch('on_output_lines', vim.tbl_map(text.plain, lines))
    end
  end
  local started
  started = terminal.create({
    cmd = task.cmd,
    cwd = task.cwd,
    -- Not the project of that directory, which may come from a file such as
    -- tasks.json.
    project_dir = project.working(task.cwd or vim.fn.getcwd()),
    env = task.env,
    on_output = function(bytes)
      if self.terminal ~= started then
        return
      end
      local pieces = vim.split(bytes, '\n', { plain = true })
      task:dispatch('on_output', pieces)
      pieces[1] = rest .. pieces[1]
      rest = table.remove(pieces)
      dispatch_lines(pieces)
    end,
    on_exit = function(ended)
      if self.terminal ~= started or vim.v.exiting ~= vim.NIL then
        return
      end
      dispatch_lines(rest ~= '' and { rest } or {})
      local status = ended.status or {}
      -- 128 plus the signal's number, or 127 if nothing was started, as in a
      -- shell.
      local code = status.exitCode
        or (status.signal and 128 + (vim.uv.constants[status.signal] or 0))
        or 127
      task:on_exit(code)
    end,
  })
  self.terminal = started
end

function Strategy:stop()
  if self.terminal then
    self.terminal:close()
  end
end

---@private
function Strategy:discard()
  local old = self.terminal
  self.terminal = nil
  if old and vim.api.nvim_buf_is_valid(old.buf) then
    vim.api.nvim_buf_delete(old.buf, { force = true })
  end
end

function Strategy:reset()
  self:discard()
end

function Strategy:dispose()
  self:discard()
end

return Strategy
