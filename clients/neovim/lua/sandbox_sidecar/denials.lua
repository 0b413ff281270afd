---Reports denials and changes of protected paths, several in one message, and
---lists them all.
local display = require('sandbox_sidecar.display')
local log = require('sandbox_sidecar.log')
local notify = require('sandbox_sidecar.notify')
local project = require('sandbox_sidecar.project')
local protocol = require('sandbox_sidecar.protocol_gen')
local sidecar = require('sandbox_sidecar.sidecar')
local view = require('sandbox_sidecar.view')

local M = {}

---How long, in milliseconds, to wait for further denials before a message. A
---program that is refused usually tries several things.
local BATCH_DELAY = 300
---The least time, in milliseconds, between two messages.
local MIN_INTERVAL = 5000
---How many denials the list keeps.
local MAX_LISTED = 200
---How many denials a message names.
local MAX_NAMED = 3

---@class sandbox_sidecar.Denial
---@field project? string The session's project.
---@field adopted boolean Whether the sidecar did not start the session.
---@field label string The session's command line.
---@field params sandbox_sidecar.DeniedParams The newest of its kind.
---@field count integer How often it happened.
---@field time integer When it happened last.

local list = {} ---@type sandbox_sidecar.Denial[] Oldest first.
local pending = {} ---@type sandbox_sidecar.Denial[] Not reported yet.
local missed = 0
local last_notified = -MIN_INTERVAL

---@param denial sandbox_sidecar.Denial
---@return string # The sidecar's message, with quoted names, and the count.
local function describe(denial)
  local message = display.line(denial.params.message)
  -- The sidecar's message contains its own count.
  return denial.count > denial.params.count
      and ('%s (%d times in all)'):format(message, denial.count)
    or message
end

---@param text string
---@return string # With a capital letter and a full stop.
local function sentence(text)
  return text:sub(1, 1):upper() .. text:sub(2):gsub('%.$', '') .. '.'
end

---Returns the setting that would allow it, or a hint; nil if there is neither,
---or if the message contains it.
---@param params sandbox_sidecar.DeniedParams
---@return string?
local function suggestion_text(params)
  if not params.suggestion then
    return params.hint and sentence(display.line(params.hint))
  end
  local change = display.line(params.suggestion.message)
  return not params.message:find(change, 1, true) and sentence('to allow it, ' .. change) or nil
end

---@param params sandbox_sidecar.DeniedParams
---@return string # For a narrow screen.
local function brief(params)
  return ('refused %s%s %s. See ":Sidecar %s".'):format(
    params.process and display.text(params.process.name) .. ' ' or '',
    (params.access:gsub('_', ' ')),
    display.path(params.target),
    params.suggestion and 'allow' or 'denials'
  )
end

local function notify_pending()
  local batch, uncounted = pending, missed
  pending, missed, last_notified = {}, 0, vim.uv.now()
  local first = batch[1]
  if #batch == 1 and uncounted == 0 then
    local hint = suggestion_text(first.params)
    notify.warn(
      ('%s: %s%s See ":Sidecar denials".'):format(
        first.label,
        describe(first),
        hint and ' ' .. hint or ''
      ),
      brief(first.params)
    )
    return
  end
  local named = {}
  for i = 1, math.min(MAX_NAMED, #batch) do
    named[i] = describe(batch[i])
  end
  local more = #batch - #named + uncounted
  if more > 0 then
    named[#named + 1] = ('And %d more.'):format(more)
  end
  notify.warn(
    ('%s: %s See ":Sidecar denials".'):format(first.label, table.concat(named, ' ')),
    ('refused %d operations. See ":Sidecar denials".'):format(#batch + uncounted)
  )
end

---Finds the same denial of the same session, or of one with the same command
---line: agents run commands repeatedly.
---@param label string
---@param params sandbox_sidecar.DeniedParams
---@return sandbox_sidecar.Denial?
local function known(label, params)
  for i = #list, 1, -1 do
    local entry = list[i]
    if
      (entry.params.sessionId == params.sessionId or entry.label == label)
      and entry.params.access == params.access
      and entry.params.target == params.target
      and entry.params.detail == params.detail
    then
      return entry
    end
  end
end

sidecar.notifications[protocol.methods.denied] = function(params)
  local label = sidecar.label(params.sessionId)
  missed = missed + (params.missed or 0)
  local same = known(label, params)
  if same then
    -- It was reported, or soon will be. Only the list counts it.
    same.params, same.count, same.time = params, same.count + params.count, os.time()
    return
  end
  local denial = {
    project = sidecar.project(params.sessionId),
    adopted = sidecar.is_adopted(params.sessionId),
    label = label,
    params = params,
    count = params.count,
    time = os.time(),
  }
  list[#list + 1] = denial
  if #list > MAX_LISTED then
    table.remove(list, 1)
  end
  pending[#pending + 1] = denial
  if #pending == 1 then
    vim.defer_fn(notify_pending, math.max(BATCH_DELAY, last_notified + MIN_INTERVAL - vim.uv.now()))
  end
end

sidecar.notifications[protocol.methods.limit_reached] = function(params)
  notify.warn(('%s: %s'):format(sidecar.label(params.sessionId), params.message))
end

---@return string[] # The denials, oldest first, each with the setting that would allow it.
function M.lines()
  local lines = {}
  for _, denial in ipairs(list) do
    lines[#lines + 1] = ('%s  %s: %s'):format(
      os.date('%H:%M:%S', denial.time),
      denial.label,
      describe(denial)
    )
    local hint = suggestion_text(denial.params)
    if hint then
      lines[#lines + 1] = '          ' .. hint
    end
  end
  return #lines > 0 and lines or { 'Nothing was refused.' }
end

---@class sandbox_sidecar.Allowable
---@field project? string
---@field adopted boolean Whether the sidecar has started no session that was refused it.
---@field suggestion sandbox_sidecar.Suggestion

---@return sandbox_sidecar.Allowable[] # Each setting that would allow something, the latest denial's first.
local function allowable()
  local items, seen = {}, {} ---@type sandbox_sidecar.Allowable[], table<string, sandbox_sidecar.Allowable>
  for i = #list, 1, -1 do
    local denial = list[i]
    local suggestion = denial.params.suggestion
    if suggestion then
      local key = vim.json.encode({ denial.project or '', suggestion.setting, suggestion.value })
      if not seen[key] then
        seen[key] = { project = denial.project, adopted = true, suggestion = suggestion }
        items[#items + 1] = seen[key]
      end
      seen[key].adopted = seen[key].adopted and denial.adopted
    end
  end
  return items
end

---The lists to which the sidecar adds without writing a file.
local GRANTABLE = { toolchains = true, allowed_hosts = true }

---Whether an entry can be allowed until the editor closes. A session that the
---sidecar did not start reads the settings itself, and would not get it.
---@param item sandbox_sidecar.Allowable
---@return boolean
local function is_grantable(item)
  local name = item.suggestion.setting:gsub('^[%w_]+%.', '')
  return not item.adopted and (GRANTABLE[name] or vim.startswith(name, 'additional_'))
end

---@param item sandbox_sidecar.Allowable
---@param scope string
local function allow(item, scope)
  notify.expect_change()
  sidecar.request(protocol.methods.settings_allow, {
    projectDir = item.project or project.current(),
    scope = scope,
    suggestion = item.suggestion,
  }, function(err, result)
    if err then
      notify.error(notify.describe(err))
    elseif scope == 'window' then
      notify.info('allowed in new terminals and tools until this editor closes.')
    else
      log.write('info', 'the setting was written to %s', display.path(result.file))
      notify.info('the setting was written. It applies to new terminals.')
    end
  end)
end

---What each scope means, in VS Code's words. Its window is this editor: a window
---of Neovim is a part of the screen.
local SCOPES = {
  project = 'For this project (in its .zed/settings.json, which you then trust)',
  user = 'For all my projects (in your user settings)',
  window = 'Until this editor closes (in new terminals and tools; nothing is written)',
}

---@param item sandbox_sidecar.Allowable
local function pick_scope(item)
  view.choose(is_grantable(item) and { 'project', 'user', 'window' } or { 'project', 'user' }, {
    prompt = 'Allow it:',
    kind = 'sandbox_sidecar.scope',
    format_item = function(scope)
      return SCOPES[scope]
    end,
  }, function(scope)
    if scope then
      allow(item, scope)
    end
  end)
end

---Lets the user pick what to allow, and for how long.
function M.pick()
  local items = allowable()
  if #items == 0 then
    return notify.info('nothing was refused that a setting could allow')
  end
  view.choose(items, {
    prompt = 'Allow what was refused:',
    kind = 'sandbox_sidecar.allow',
    format_item = function(item)
      return display.line(item.suggestion.message)
    end,
  }, function(item)
    if not item then
      return
    end
    -- Not on the line of the first question, as older Neovims would draw it.
    vim.schedule(function()
      vim.cmd.redraw()
      pick_scope(item)
    end)
  end)
end

return M
