---Messages to the user.
local display = require('sandbox_sidecar.display')
local log = require('sandbox_sidecar.log')

local M = {}

local LEVELS = { [vim.log.levels.ERROR] = 'error', [vim.log.levels.WARN] = 'warn' }

local shown = {} ---@type table<string, true>

---Shortens a message in Terminal-mode. A longer one would wait for ENTER, and
---swallow what the user types for the program. The log has the whole message.
---@param message string
---@return string
local function fitting(message)
  local room = vim.v.echospace - 1
  if vim.api.nvim_get_mode().mode ~= 't' or vim.fn.strdisplaywidth(message) <= room then
    return message
  end
  local count = vim.fn.strchars(message)
  repeat
    count = count - 1
    message = vim.fn.strcharpart(message, 0, count)
  until count <= 0 or vim.fn.strdisplaywidth(message) < room
  return message .. '…'
end

---@param message string Untrusted values in it are quoted. It is always shown as one line.
---@param level integer One of vim.log.levels.
function M.show(message, level)
  message = display.line(message)
  log.write(LEVELS[level] or 'info', '%s', message)
  vim.notify(fitting('sandbox_sidecar: ' .. message), level, { title = 'Sidecar' })
end

---@param message string
function M.error(message)
  M.show(message, vim.log.levels.ERROR)
end

---@param message string
function M.info(message)
  M.show(message, vim.log.levels.INFO)
end

---@param message string
function M.warn(message)
  M.show(message, vim.log.levels.WARN)
end

---Shows a warning only once: every terminal of a project would repeat it.
---@param message string
function M.warn_once(message)
  if not shown[message] then
    shown[message] = true
    M.warn(message)
  end
end

---Formats an error of the sidecar, with its hint.
---@param err sandbox_sidecar.Error
---@return string
function M.describe(err)
  local hint = type(err.data) == 'table' and err.data.hint
  return display.line(hint and ('%s (hint: %s)'):format(err.message, hint) or err.message)
end

return M
