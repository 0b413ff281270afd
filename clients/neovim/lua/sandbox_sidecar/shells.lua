---Sessions that the sidecar did not start: those of shells that |:Sidecar|
---confine, or the user, made the editor's own. They report to the sidecar.
local notify = require('sandbox_sidecar.notify')
local protocol = require('sandbox_sidecar.protocol_gen')
local sidecar = require('sandbox_sidecar.sidecar')

local M = {}

---How long, in milliseconds, a question may wait for the main loop. `:!` holds
---it until its command ends, which waits for the answer.
local HELD = 1000

---@class sandbox_sidecar.ShellSession
---@field params sandbox_sidecar.StartedParams
---@field stale boolean A new session would get another policy.

local running = {} ---@type table<string, sandbox_sidecar.ShellSession>

---Sets b:sandbox_sidecar of a terminal that the shell runs, for the user's
---scripts and the statusline.
---@param session sandbox_sidecar.ShellSession
---@param ended? sandbox_sidecar.ExitedParams
local function publish(session, ended)
  local params = session.params
  for _, buf in ipairs(vim.api.nvim_list_bufs()) do
    if vim.b[buf].terminal_job_pid == params.shellPid then
      vim.b[buf].sandbox_sidecar = {
        session_id = params.sessionId,
        running = ended == nil,
        pid = params.pid,
        policy_id = params.policyId,
        sandbox = params.sandbox.status,
        stale = session.stale,
        exit_code = ended and ended.exitCode,
        signal = ended and ended.signal,
      }
      vim.cmd.redrawstatus({ bang = true })
    end
  end
end

sidecar.notifications[protocol.methods.started] = function(params)
  running[params.sessionId] = { params = params, stale = false }
  publish(running[params.sessionId])
  sidecar.adopt(params.sessionId, table.concat(params.argv, ' '), params.projectDir)
  if params.kind == 'tool' then -- a terminal shows its own
    for _, warning in ipairs(params.sandbox.warnings) do
      notify.warn_once(warning)
    end
  end
end

table.insert(sidecar.on_exited, function(params)
  local session = running[params.sessionId]
  if session then
    running[params.sessionId] = nil
    publish(session, params)
    for _, hint in ipairs(params.hints or {}) do
      notify.info(hint)
    end
  end
end)

---@param stale table<string, true> The ids of all sessions that are stale now.
---@return integer # How many terminals were not before.
function M.set_stale(stale)
  local count = 0
  for id, session in pairs(running) do
    local now = stale[id] == true
    if now and not session.stale and session.params.kind == 'terminal' then
      count = count + 1
    end
    if now ~= session.stale then
      session.stale = now
      publish(session)
    end
  end
  return count
end

---Questions that the main loop has not seen yet. The sidecar writes the names in
---this order, and within a string no quote is without a backslash.
local QUESTION = '"id":(%d+),"method":"sandbox/requestAccess","params":{"sessionId":"([%x-]+)"'
local tail = ''

---|api-fast|
sidecar.on_data = function(data)
  local text, from = tail .. data, 1
  while true do
    local _, last, number, session = text:find(QUESTION, from)
    if not last then
      break
    end
    from = last + 1
    local id = tonumber(number) --[[@as integer]]
    if not sidecar.has_started(session) then
      local timer = vim.uv.new_timer()
      timer:start(HELD, 0, function()
        timer:close()
        sidecar.refuse_unseen(id)
      end)
    end
  end
  tail = text:sub(math.max(from, #text - #QUESTION - 80))
end

table.insert(sidecar.on_change, function()
  if not sidecar.initialize_result() then
    running, tail = {}, ''
  end
end)

return M
