---CodeCompanion's tool run_command, with the command in a sandbox. Description,
---schema and approval stay CodeCompanion's.
---
---    require('codecompanion').setup({
---      interactions = { chat = { tools = { run_command = {
---        path = 'sandbox_sidecar.integrations.codecompanion',
---      } } } },
---    })
local text = require('sandbox_sidecar.notify')
local tool = require('sandbox_sidecar.tool')

local run_command =
  vim.deepcopy(require('codecompanion.interactions.chat.tools.builtin.run_command'))

---Sets the flag by which a chat knows whether its tests passed.
---@param tools table
---@param flag any
---@param passed boolean
local function set_flag(tools, flag, passed)
  local registry = type(flag) == 'string' and tools.chat and tools.chat.tool_registry
  if registry then
    registry.flags = registry.flags or {}
    registry.flags[flag] = passed
  end
end

run_command.handlers = run_command.handlers or {}
run_command.handlers.setup = function(self)
  local args = self.args
  self.cmds = {
    ---Newer releases pass callbacks in a table, older ones as a parameter.
    ---@param tools table
    ---@param opts? table
    ---@param callback? function
    function(tools, _, opts, callback)
      callback = callback or opts.output_cb
      local job = tool.run(args.cmd, {}, function(result)
        set_flag(tools, args.flag, result.exit_code == 0)
        local lines = vim.split(result.output, '\n', { trimempty = true })
        if result.error then
          table.insert(lines, 1, text.describe(result.error))
        elseif result.killed then
          lines[#lines + 1] = 'killed'
        elseif result.exit_code ~= 0 then
          lines[#lines + 1] = result.signal and ('ended by %s'):format(result.signal)
            or ('exit status %d'):format(result.exit_code)
        end
        callback({
          status = result.exit_code == 0 and not result.killed and 'success' or 'error',
          data = lines,
        })
      end)
      if opts and opts.register_job then
        opts.register_job(job)
      end
    end,
  }
end

return run_command
