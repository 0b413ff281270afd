---The log file: the sidecar's standard error and the plugin's own messages.
local display = require('sandbox_sidecar.display')

local M = {}

---The size, in bytes, from which the file is renamed when the editor first
---writes to it.
local MAX_SIZE = 1024 * 1024

local file ---@type file*?

---@return string
function M.path()
  return vim.fs.joinpath(vim.fn.stdpath('log') --[[@as string]], 'sandbox-sidecar.log')
end

---@return file*?
local function open()
  if file then
    return file
  end
  local path = M.path()
  vim.fn.mkdir(vim.fs.dirname(path), 'p')
  local stat = vim.uv.fs_stat(path)
  if stat and stat.size > MAX_SIZE then
    vim.uv.fs_rename(path, path .. '.old')
  end
  file = io.open(path, 'a')
  return file
end

---Appends text as it is. Do not call it from libuv callbacks.
---@param text string
function M.raw(text)
  local out = open()
  if out then
    out:write(text)
    out:flush()
  end
end

---@param level 'debug'|'info'|'warn'|'error'
---@param format string
---@param ... any
function M.write(level, format, ...)
  M.raw(('time=%s level=%s client=neovim msg=%q\n'):format(
    os.date('!%Y-%m-%dT%H:%M:%SZ'),
    level:upper(),
    -- "%q" would keep line breaks.
    display.line(format:format(...))
  ))
end

return M
