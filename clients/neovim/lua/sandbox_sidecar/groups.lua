---Ends what the commands of agents have left running.
local display = require('sandbox_sidecar.display')
local notify = require('sandbox_sidecar.notify')
local protocol = require('sandbox_sidecar.protocol_gen')
local review = require('sandbox_sidecar.review')
local sidecar = require('sandbox_sidecar.sidecar')

local methods = protocol.methods

local M = {}

---@param group sandbox_sidecar.GroupInfo
local function close(group)
  local params = { group = group.group, projectDir = group.projectDir }
  sidecar.request(methods.close_group, params, function(err, result)
    if err then
      return notify.error(notify.describe(err))
    end
    -- Between its sessions, background processes may have changed files, too.
    if result.review then
      review.record(display.quote(group.group, 60), result.review)
    end
    if result.remaining > 0 then
      return notify.error(('%d processes could not be ended'):format(result.remaining))
    end
    notify.info(('all processes of %s have ended'):format(display.quote(group.group, 60)))
  end)
end

---Ends all processes of an agent. If several have some, the user selects.
function M.close()
  if not sidecar.initialize_result() then
    return notify.info('no agent has left a process running')
  end
  sidecar.request(methods.list_groups, vim.empty_dict(), function(err, result)
    if err then
      return notify.error(notify.describe(err))
    end
    local running = vim.tbl_filter(function(group)
      return group.processes > 0
    end, result.groups)
    if #running == 0 then
      return notify.info('no agent has left a process running')
    end
    vim.ui.select(running, {
      prompt = 'End all processes of:',
      format_item = function(group)
        return ('%s in %s: %d processes, since %s'):format(
          display.quote(group.group, 60),
          display.quote(group.projectDir, 200),
          group.processes,
          group.startedAt
        )
      end,
    }, function(group)
      if group then
        close(group)
      end
    end)
  end)
end

return M
