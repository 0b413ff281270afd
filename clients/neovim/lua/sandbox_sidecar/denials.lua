---What sessions were refused, and what happened to protected paths, as the sidecar tells it: one message for what comes together, and a
---list to look at.
local display = require('sandbox_sidecar.display')
local notify = require('sandbox_sidecar.notify')
local protocol = require('sandbox_sidecar.protocol_gen')
local sidecar = require('sandbox_sidecar.sidecar')

local M = {}

---How long, in milliseconds, further ones are waited for before a message: a program that is refused mostly tries several things.
local FOLD = 300
---The least time, in milliseconds, between two messages.
local QUIET = 5000
---How many are kept for the list, the newest.
local MOST = 200
---How many a message names.
local NAMED = 3

---@class sandbox_sidecar.Denial
---@field label string What the session runs.
---@field told sandbox_sidecar.DeniedParams The newest of its kind.
---@field count integer How often, in all.
---@field time integer When for the last time.

local list = {} ---@type sandbox_sidecar.Denial[] Oldest first.
local fresh = {} ---@type sandbox_sidecar.Denial[] Not said yet.
local missed = 0
local last_said = -QUIET

---@param denial sandbox_sidecar.Denial
---@return string # What was refused, in the sidecar's words, in which names that others chose are quoted.
local function describe(denial)
  local message = display.line(denial.told.message)
  -- The sidecar counts what came together.
  return denial.count > denial.told.count and ('%s (%d times in all)'):format(message, denial.count)
    or message
end

---What would allow it, in words, unless the message says that; nil where nothing would.
---@param told sandbox_sidecar.DeniedParams
---@return string?
local function remedy(told)
  if not told.suggestion then
    return told.hint and display.line(told.hint)
  end
  local change = display.line(told.suggestion.message)
  return not told.message:find(change, 1, true) and 'to allow it, ' .. change or nil
end

local function say()
  local news, others = fresh, missed
  fresh, missed, last_said = {}, 0, vim.uv.now()
  local first = news[1]
  if #news == 1 and others == 0 then
    local hint = remedy(first.told)
    notify.warn(
      ('%s: %s (hint: %s":Sidecar denials" lists all)'):format(
        first.label,
        describe(first),
        hint and hint .. '; ' or ''
      )
    )
    return
  end
  local named = {}
  for i = 1, math.min(NAMED, #news) do
    named[i] = describe(news[i])
  end
  local more = #news - #named + others
  if more > 0 then
    named[#named + 1] = ('and %d more'):format(more)
  end
  notify.warn(
    ('%s: %s (hint: ":Sidecar denials" lists them, with what would allow them)'):format(
      first.label,
      table.concat(named, '; ')
    )
  )
end

---The same of the same session, or of one that runs the same: agents run a command again and again.
---@param label string
---@param told sandbox_sidecar.DeniedParams
---@return sandbox_sidecar.Denial?
local function known(label, told)
  for i = #list, 1, -1 do
    local one = list[i]
    if
      (one.told.sessionId == told.sessionId or one.label == label)
      and one.told.access == told.access
      and one.told.target == told.target
    then
      return one
    end
  end
end

sidecar.notifications[protocol.methods.denied] = function(params)
  local label = sidecar.label(params.sessionId)
  missed = missed + (params.missed or 0)
  local same = known(label, params)
  if same then
    -- It was said, or is about to be: the list counts it.
    same.told, same.count, same.time = params, same.count + params.count, os.time()
    return
  end
  local denial = { label = label, told = params, count = params.count, time = os.time() }
  list[#list + 1] = denial
  if #list > MOST then
    table.remove(list, 1)
  end
  fresh[#fresh + 1] = denial
  if #fresh == 1 then
    vim.defer_fn(say, math.max(FOLD, last_said + QUIET - vim.uv.now()))
  end
end

---What a session changed that programs outside act upon is worth a look before they do.
table.insert(sidecar.on_closed, function(id, result)
  local findings = {}
  for i, finding in ipairs(result.review or {}) do
    findings[i] = display.line(finding.message)
  end
  if #findings > NAMED then
    findings = vim.list_slice(findings, 1, NAMED)
    findings[NAMED + 1] = ('and %d more, see ":Sidecar log"'):format(#result.review - NAMED)
  end
  if #findings > 0 then
    notify.warn(
      ('%s: worth a look, because it runs outside of the sandbox: %s'):format(
        sidecar.label(id),
        table.concat(findings, '; ')
      )
    )
  end
end)

---@return string[] # What was refused, oldest first, each with what would allow it.
function M.lines()
  local lines = {}
  for _, denial in ipairs(list) do
    lines[#lines + 1] = ('%s  %s: %s'):format(
      os.date('%H:%M:%S', denial.time),
      denial.label,
      describe(denial)
    )
    local hint = remedy(denial.told)
    if hint then
      lines[#lines + 1] = '          ' .. hint
    end
  end
  return #lines > 0 and lines or { 'Nothing was refused.' }
end

return M
