---Shows a server of a session, which listens on the session's own localhost, at
---a port of this machine.
local display = require('sandbox_sidecar.display')
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

---@class sandbox_sidecar.ServerPlace
---@field sessionId? string
---@field group? string Of a server that a command has left in the background.
---@field projectDir? string
---@field label string

---@param places sandbox_sidecar.ServerPlace[]
---@param callback fun(place: sandbox_sidecar.ServerPlace)
local function choose(places, callback)
  if #places == 0 then
    return notify.error('port: no sandboxed session runs')
  end
  if #places == 1 then
    return callback(places[1])
  end
  vim.ui.select(places, {
    prompt = 'The server runs in:',
    format_item = function(place)
      return place.label
    end,
  }, function(place)
    if place then
      callback(place)
    end
  end)
end

---Finds the session: the one of this buffer, or the only one that runs. If
---there are several, the user selects. What an agent has left in the background
---is one, too.
---@param callback fun(place: sandbox_sidecar.ServerPlace)
local function select_place(callback)
  local terminal = require('sandbox_sidecar.terminal').of()
  if terminal then
    return callback({ sessionId = terminal.id, label = '' })
  end
  if not sidecar.initialize_result() then
    return notify.error('port: no sandboxed session runs')
  end
  sidecar.request(methods.list, vim.empty_dict(), function(err, result)
    if err then
      return notify.error(notify.describe(err))
    end
    local places = {}
    for _, session in ipairs(result.sessions) do
      if session.running then
        local label = ('%s: %s'):format(session.kind, sidecar.label(session.sessionId))
        places[#places + 1] = { sessionId = session.sessionId, label = label }
      end
    end
    sidecar.request(methods.list_groups, vim.empty_dict(), function(failed, listed)
      if failed then
        return notify.error(notify.describe(failed))
      end
      for _, group in ipairs(listed.groups) do
        if group.sessions == 0 and group.processes > 0 then
          local label = ('left by %s: %d processes'):format(
            display.quote(group.group, 60),
            group.processes
          )
          places[#places + 1] =
            { group = group.group, projectDir = group.projectDir, label = label }
        end
      end
      choose(places, callback)
    end)
  end)
end

---@param port integer Where the server listens in the session.
---@param local_port? integer Where it is shown. Default: the same port.
---@param browse boolean Whether the browser opens it.
function M.open(port, local_port, browse)
  select_place(function(place)
    local params = {
      sessionId = place.sessionId,
      group = place.group,
      projectDir = place.projectDir,
      port = port,
      localPort = local_port,
    }
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
