---Messages to the user.
local display = require('sandbox_sidecar.display')
local log = require('sandbox_sidecar.log')

local M = {}

local LEVELS = { [vim.log.levels.ERROR] = 'error', [vim.log.levels.WARN] = 'warn' }

local shown = {} ---@type table<string, true>

---How long, in milliseconds, a command's change of the settings is expected.
local QUIET_TIME = 5000
local quiet_until = 0

---How long, in milliseconds, a message in Terminal-mode has the place of the
---mode's name.
local READING_TIME = 10000

---Ends a message that is cut off.
local LOG = ' See ":Sidecar log".'

---Whether |vim.notify()| is the editor's own, which shows a message on the last
---line. A plugin's has more room. The editor's files have no path, or no name.
---@return boolean
local function is_last_line()
  local source = debug.getinfo(vim.notify, 'S').source
  return source == '?' or source == '=?' or vim.startswith(source, '@vim/')
end

---Shortens a message that does not fit the last line. It would wait for ENTER,
---and in Terminal-mode swallow what the user types for the program. What to do
---is said last, and stays. The log has the whole message.
---@param message string
---@param brief? string Says the same in fewer words.
---@return string
local function fitting(message, brief)
  local room = vim.v.echospace - 1
  local bounded = vim.api.nvim_get_mode().mode == 't' or is_last_line()
  if not bounded or vim.fn.strdisplaywidth(message) <= room then
    return message
  end
  message = brief or message
  if vim.fn.strdisplaywidth(message) <= room then
    return message
  end
  local advice = message:match(' See "[^"]*"%.$') or ''
  if advice == '' then
    message, advice = message .. LOG, LOG
  end
  if #advice > room / 2 then
    advice = ''
  end
  local start = message:sub(1, #message - #advice)
  local short ---@type string
  local count = vim.fn.strchars(start)
  repeat
    count = count - 1
    short = vim.fn.strcharpart(start, 0, count) .. '…' .. advice
  until count <= 0 or vim.fn.strdisplaywidth(short) <= room
  return short
end

local mode_is_hidden = false

---Hides "-- TERMINAL --" for a while. Neovim 0.12 draws it over every message in
---Terminal-mode.
local function hide_mode()
  if vim.api.nvim_get_mode().mode ~= 't' or not vim.o.showmode then
    return
  end
  mode_is_hidden, vim.o.showmode = true, false
  local function restore()
    if mode_is_hidden then
      mode_is_hidden, vim.o.showmode = false, true
    end
  end
  vim.defer_fn(restore, READING_TIME)
  vim.api.nvim_create_autocmd('ModeChanged', { pattern = 't:*', once = true, callback = restore })
end

---@param message string Untrusted values in it are quoted. It is always shown as one line.
---@param level integer One of vim.log.levels.
---@param brief? string Says the same in fewer words, for a narrow screen.
function M.show(message, level, brief)
  message = display.line(message)
  log.write(LEVELS[level] or 'info', '%s', message)
  hide_mode()
  local text = fitting('Sandbox: ' .. message, brief and 'Sandbox: ' .. display.line(brief))
  vim.notify(text, level, { title = 'Sidecar' })
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
---@param brief? string
function M.warn(message, brief)
  M.show(message, vim.log.levels.WARN, brief)
end

---Shows a warning only once: every terminal of a project would repeat it.
---@param message string
function M.warn_once(message)
  if not shown[message] then
    shown[message] = true
    M.warn(message)
  end
end

---Says that a command changes the settings, and tells about it itself.
function M.expect_change()
  quiet_until = vim.uv.now() + QUIET_TIME
end

---@return boolean # Whether a change of the settings was told about already. The next one was not.
function M.is_expected_change()
  local expected = vim.uv.now() < quiet_until
  quiet_until = 0
  return expected
end

---Formats an error of the sidecar, with its hint.
---@param err sandbox_sidecar.Error
---@return string
function M.describe(err)
  local hint = type(err.data) == 'table' and err.data.hint
  return display.line(hint and ('%s (hint: %s)'):format(err.message, hint) or err.message)
end

return M
