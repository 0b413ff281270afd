---Reports files that changed while a session ran and that programs outside the
---sandbox act upon, and lists them all.
local display = require('sandbox_sidecar.display')
local log = require('sandbox_sidecar.log')
local notify = require('sandbox_sidecar.notify')
local protocol = require('sandbox_sidecar.protocol_gen')
local sidecar = require('sandbox_sidecar.sidecar')

local M = {}

---How many findings the list keeps.
local MAX_LISTED = 200
---A longer name is not shown in a message, which has one line.
local MAX_NAME = 40

---@class sandbox_sidecar.Review
---@field label string The session's command line.
---@field finding sandbox_sidecar.Finding
---@field time integer When the session ended.

local list = {} ---@type sandbox_sidecar.Review[] Oldest first.

---@param findings sandbox_sidecar.Finding[]
---@return string # With the words of the other clients.
local function message(findings)
  local count = 0
  for _, finding in ipairs(findings) do
    count = count + 1 + #(finding.others or {})
  end
  local name = display.quote(vim.fs.basename(findings[1].path))
  if count > 1 then
    return ('Check %d changed files before programs outside the sandbox use them.'):format(count)
  elseif vim.fn.strchars(name) > MAX_NAME then
    return 'Check a changed file before programs outside the sandbox use it.'
  end
  return ('Check %s before programs outside the sandbox use it.'):format(name)
end

---@param label string What has changed them.
---@param findings sandbox_sidecar.Finding[]
function M.record(label, findings)
  for _, finding in ipairs(findings) do
    log.write('warn', '%s', display.line(finding.message))
    list[#list + 1] = { label = label, finding = finding, time = os.time() }
    if #list > MAX_LISTED then
      table.remove(list, 1)
    end
  end
  notify.warn(message(findings) .. ' See ":Sidecar review".')
end

---Ended sessions whose review is known before they are closed.
local reviewed = {} ---@type table<string, true>

sidecar.notifications[protocol.methods.reviewed] = function(params)
  reviewed[params.sessionId] = true
  M.record(sidecar.label(params.sessionId), params.review)
end

table.insert(sidecar.on_closed, function(id, result)
  -- The answer repeats what the notification has said.
  if result.review and #result.review > 0 and not reviewed[id] then
    M.record(sidecar.label(id), result.review)
  end
  reviewed[id] = nil
end)

---@return string[] # The findings, oldest first, each with the session that may have made the change.
function M.lines()
  local lines = {}
  for _, entry in ipairs(list) do
    lines[#lines + 1] = ('%s  %s: %s'):format(
      os.date('%H:%M:%S', entry.time),
      entry.label,
      display.line(entry.finding.message)
    )
    for _, path in ipairs(entry.finding.others or {}) do
      lines[#lines + 1] = '          ' .. display.quote(path)
    end
  end
  return #lines > 0 and lines
    or { 'No session has changed a file that programs outside the sandbox act on.' }
end

return M
