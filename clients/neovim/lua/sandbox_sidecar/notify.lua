---What is said to the user.
local display = require('sandbox_sidecar.display')
local log = require('sandbox_sidecar.log')

local M = {}

local LEVELS = { [vim.log.levels.ERROR] = 'error', [vim.log.levels.WARN] = 'warn' }

local shown = {} ---@type table<string, true>

---@param message string Values in it that others chose are quoted. It is shown as one line in any case.
---@param level integer One of vim.log.levels.
function M.show(message, level)
  message = display.line(message)
  log.write(LEVELS[level] or 'info', '%s', message)
  vim.notify('sandbox_sidecar: ' .. message, level, { title = 'Sidecar' })
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

---Says a warning the first time only: every terminal of a project would repeat it.
---@param message string
function M.warn_once(message)
  if not shown[message] then
    shown[message] = true
    M.warn(message)
  end
end

---An error of the sidecar's in words, with what can be done about it.
---@param err sandbox_sidecar.Error
---@return string
function M.describe(err)
  local hint = type(err.data) == 'table' and err.data.hint
  return display.line(hint and ('%s (hint: %s)'):format(err.message, hint) or err.message)
end

return M
