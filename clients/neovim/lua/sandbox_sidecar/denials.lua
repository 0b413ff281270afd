---What sessions were refused, and what happened to protected paths, as the sidecar tells it: one message for what comes together, and a
---list to look at.
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

local REFUSED = {
  read = 'read',
  write = 'write',
  create = 'create',
  remove = 'remove',
  execute = 'execute',
  connect_unix = 'connect to the socket',
  connect = 'reach',
  bind = 'listen at',
  signal = 'signal the process',
  protected_write = 'change the protected path',
}

local HAPPENED = {
  protected_created = 'the protected path %s was created',
  protected_replaced = 'the protected path %s was replaced, and can be written by sessions that run',
  protected_written = 'the protected path %s was written',
}

---Names come from whoever is confined: what would not be printed as it is, or break the line, is not.
---@param text string
---@return string
local function printable(text)
  return vim.fn.strtrans(text)
end

---A path as people know it.
---@param target string
---@return string
function M.short(target)
  return printable(vim.startswith(target, '/') and vim.fn.fnamemodify(target, ':~') or target)
end

---Who tried what, for people.
---@param told { access: string, target: string, process?: sandbox_sidecar.Process }
---@param may string "may not", say.
---@return string
function M.attempt(told, may)
  local who = told.process and printable(told.process.name) or 'a program'
  return ('%s %s %s %s'):format(who, may, REFUSED[told.access] or told.access, M.short(told.target))
end

---@param denial sandbox_sidecar.Denial
---@return string
local function describe(denial)
  local told = denial.told
  local text = HAPPENED[told.access] and HAPPENED[told.access]:format(M.short(told.target))
    or M.attempt(told, 'may not')
  return denial.count > 1 and ('%s (%d times)'):format(text, denial.count) or text
end

---A suggestion in words.
---@param suggestion { setting: string, value: any }
---@return string
function M.change(suggestion)
  local value = vim.json.encode(suggestion.value):gsub('\\/', '/')
  -- A text is an entry of a list, everything else the value of the key.
  if type(suggestion.value) == 'string' then
    return ('add %s to %s'):format(printable(value), suggestion.setting)
  end
  return ('set %s to %s'):format(suggestion.setting, printable(value))
end

---What would allow it, in words; nil where nothing would.
---@param told table
---@return string?
local function remedy(told)
  return told.suggestion and 'to allow it, ' .. M.change(told.suggestion) or told.hint
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
    findings[i] = ('%s %s (%s)'):format(finding.change, M.short(finding.path), finding.why)
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
