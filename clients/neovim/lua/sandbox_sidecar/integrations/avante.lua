---A tool for avante that runs commands in a sandbox. It replaces avante's own
---"bash" and "run_python" (before 2025-04 "python").
---
---    require('avante').setup({
---      disabled_tools = { 'bash', 'python', 'run_python' },
---      custom_tools = { require('sandbox_sidecar.integrations.avante') },
---    })
local display = require('sandbox_sidecar.display')
local notify = require('sandbox_sidecar.notify')
local project = require('sandbox_sidecar.project')
local tool = require('sandbox_sidecar.tool')

---Not "bash": avante would disable it with its own.
local NAME = 'sandbox_bash'

---@param question string
---@param context any
---@param decided fun(yes: boolean)
local function confirm(question, context, decided)
  local ok, helpers = pcall(require, 'avante.llm_tools.helpers')
  if ok then
    helpers.confirm(question, decided, nil, context, NAME)
  else
    decided(vim.fn.confirm(question, '&Yes\n&No', 2) == 1)
  end
end

return {
  name = NAME,
  description = 'Runs a shell command in a sandbox. It may write the project and temporary directories, and read '
    .. 'the system. Returns the command\'s output. Other access fails with "Permission denied" or "Read-only file '
    .. 'system": do not work around that, tell the user instead.',
  param = {
    type = 'table',
    fields = {
      { name = 'command', description = 'The command line, for bash or /bin/sh', type = 'string' },
      {
        name = 'rel_path',
        description = 'The working directory, relative to the project',
        type = 'string',
        optional = true,
      },
    },
  },
  returns = {
    { name = 'stdout', description = 'What the command printed', type = 'string' },
    { name = 'error', description = 'Why it failed', type = 'string', optional = true },
  },
  ---Newer releases pass their callbacks in a table, older ones as parameters.
  ---@param input { command: string, rel_path?: string }
  func = function(input, second, third)
    local callbacks = type(second) == 'table' and second or { on_log = second, on_complete = third }
    if not callbacks.on_complete then
      return false, 'on_complete not provided'
    end
    if type(input) ~= 'table' or type(input.command) ~= 'string' then
      return false, 'expected a command'
    end
    local root = project.current()
    local cwd, err = project.inside(root, input.rel_path)
    if not cwd then
      return false, 'rel_path: ' .. err
    end
    if callbacks.on_log then
      callbacks.on_log('command: ' .. display.line(input.command))
    end
    confirm(
      -- The command comes last. Nothing in it can then pass for a part of the
      -- question, and all of it is visible.
      ('Run sandboxed in %s: %s'):format(display.quote(cwd), display.line(input.command)),
      callbacks.session_ctx,
      function(yes)
        if not yes then
          callbacks.on_complete(false, 'the user refused')
          return
        end
        tool.run(
          input.command,
          { cwd = cwd, project_dir = root, timeout = 120000 },
          function(result)
            if result.exit_code == 0 then
              callbacks.on_complete(result.output, nil)
              return
            end
            local why = result.error and notify.describe(result.error)
              or result.timed_out and 'killed after two minutes'
              or result.signal and ('ended by %s'):format(result.signal)
              or ('exit status %d'):format(result.exit_code)
            callbacks.on_complete(false, vim.trim(result.output .. '\n' .. why))
          end
        )
      end
    )
  end,
}
