---Sandboxed terminals for you and for agents. See |sandbox-sidecar|.
local M = {}

---Sets options. It need not be called for the defaults, and
---|vim.g.sandbox_sidecar| does the same.
---@param options? sandbox_sidecar.SetupOptions
function M.setup(options)
  if vim.fn.has('nvim-0.10') == 0 then
    vim.notify('sandbox_sidecar: needs Neovim 0.10 or newer', vim.log.levels.WARN)
    return
  end
  require('sandbox_sidecar.config').set(options or {})
end

---Opens a terminal.
---@param options? sandbox_sidecar.TerminalOptions
---@return sandbox_sidecar.Terminal
function M.terminal(options)
  return require('sandbox_sidecar.terminal').open(options)
end

---Sends text to the program of a terminal, as if it were typed. Raises an error
---if there is none.
---@param text string
---@param buf? integer Default: the current buffer.
function M.send(text, buf)
  local terminal = require('sandbox_sidecar.terminal').of(buf)
  if not terminal then
    error('send: this buffer is not a terminal of ":Sidecar terminal"', 2)
  end
  terminal:send(text)
end

---Runs a command as a sandboxed tool.
---@param cmd string|string[] A line for bash or /bin/sh, or a program with its arguments.
---@param options? sandbox_sidecar.RunOptions
---@param on_done? fun(result: sandbox_sidecar.RunResult) Called once.
---@return sandbox_sidecar.Job
function M.run(cmd, options, on_done)
  return require('sandbox_sidecar.tool').run(cmd, options, on_done)
end

---Returns a command line that runs sandboxed, for other plugins' options.
---Raises an error if there is no sidecar.
---@param argv string[]
---@param options? sandbox_sidecar.WrapOptions
---@return string[]
function M.wrap(argv, options)
  return require('sandbox_sidecar.wrap').argv(argv, options)
end

---The text of a terminal for 'statusline':
---"%{%v:lua.require'sandbox_sidecar'.statusline()%}".
---@param buf? integer Default: the buffer of the current window.
---@return string # Empty for other buffers.
function M.statusline(buf)
  return require('sandbox_sidecar.statusline').text(buf)
end

---Ends the sidecar with every session, and starts a new one.
function M.restart()
  require('sandbox_sidecar.sidecar').restart()
end

return M
