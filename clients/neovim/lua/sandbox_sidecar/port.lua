---Shows a server of a session, which listens on the session's own localhost, at
---a port of this machine.
local notify = require('sandbox_sidecar.notify')
local protocol = require('sandbox_sidecar.protocol_gen')
local sidecar = require('sandbox_sidecar.sidecar')

local methods = protocol.methods

local M = {}

---@param text? string
---@return integer? # nil if the text is no port.
function M.parse(text)
  local number = text and text:match('^%d+$') and tonumber(text)
  return number and number >= 1 and number <= 65535 and number or nil
end

---Finds the session: the one of this buffer, or the only one that runs. If
---there are several, the user selects.
---@param callback fun(id: string)
local function select_session(callback)
  local terminal = require('sandbox_sidecar.terminal').of()
  if terminal then
    return callback(terminal.id)
  end
  if not sidecar.initialize_result() then
    return notify.error('port: no sandboxed session runs')
  end
  sidecar.request(methods.list, vim.empty_dict(), function(err, result)
    if err then
      return notify.error(notify.describe(err))
    end
    local running = vim.tbl_filter(function(session)
      return session.running
    end, result.sessions)
    if #running == 0 then
      return notify.error('port: no sandboxed session runs')
    end
    if #running == 1 then
      return callback(running[1].sessionId)
    end
    vim.ui.select(running, {
      prompt = 'The server runs in:',
      format_item = function(session)
        return ('%s: %s'):format(session.kind, sidecar.label(session.sessionId))
      end,
    }, function(session)
      if session then
        callback(session.sessionId)
      end
    end)
  end)
end

---@param port integer Where the server listens in the session.
---@param local_port? integer Where it is shown. Default: the same port.
---@param browse boolean Whether the browser opens it.
function M.open(port, local_port, browse)
  select_session(function(id)
    local params = { sessionId = id, port = port, localPort = local_port }
    sidecar.request(methods.forward_port, params, function(err, result)
      if err then
        return notify.error(notify.describe(err))
      end
      local url = 'http://' .. result.address
      notify.info(('port %d of the session is at %s until it ends'):format(port, result.address))
      if browse then
        local _, failed = vim.ui.open(url)
        if failed then
          notify.error(failed)
        end
      end
    end)
  end)
end

return M
