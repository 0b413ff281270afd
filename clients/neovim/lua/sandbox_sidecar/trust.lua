---Trust in a project's settings. Untrusted, they can only tighten the user's own; what they ask for beyond that is shown before the user is
---asked, and trusted is exactly the content that was shown.
local notify = require('sandbox_sidecar.notify')
local project = require('sandbox_sidecar.project')
local protocol = require('sandbox_sidecar.protocol_gen')
local sidecar = require('sandbox_sidecar.sidecar')

local methods = protocol.methods

local M = {}

local told = {} ---@type table<string, true> Digests that the user was told of.

---@param file string
---@return string
local function short(file)
  return vim.fn.fnamemodify(file, ':~')
end

---Tells the user once of a content that asks for more than it gets.
---@param status sandbox_sidecar.Project
function M.consider(status)
  if status.exists and not status.trusted and #status.asks > 0 and not told[status.digest] then
    told[status.digest] = true
    notify.warn(
      ('%s asks for more than your settings allow, and gets none of it (hint: ":Sidecar trust" shows what, and asks)'):format(
        short(status.file)
      )
    )
  end
end

---Looks at a directory's project, and tells what it asks for.
---@param dir string
function M.look(dir)
  sidecar.request(methods.project_status, { projectDir = dir }, function(_, status)
    if status then
      M.consider(status)
    end
  end)
end

---@param status sandbox_sidecar.Project
---@return string
local function question(status)
  local lines = {}
  for _, ask in ipairs(status.asks) do
    lines[#lines + 1] = ('  line %d, %s %s: %s'):format(ask.line, ask.key, ask.value, ask.opens)
  end
  if #lines == 0 then
    lines[1] = '  nothing that your own settings do not allow'
  end
  return ('Trust %s? It asks for:\n%s\n'):format(short(status.file), table.concat(lines, '\n'))
end

---@param status sandbox_sidecar.Project
local function trust(status)
  sidecar.request(
    methods.project_trust,
    { projectDir = status.projectDir, digest = status.digest },
    function(err)
      if err then
        notify.error(notify.describe(err))
      else
        vim.notify(('sandbox_sidecar: %s is trusted'):format(short(status.file)))
      end
    end
  )
end

---Shows what the project asks for, and asks the user.
---@param dir? string Default: the current project.
function M.ask(dir)
  sidecar.request(
    methods.project_status,
    { projectDir = dir or project.current() },
    function(err, status)
      if err then
        return notify.error(notify.describe(err))
      elseif not status.exists then
        return notify.error(('trust: %s: no such file'):format(short(status.file)))
      elseif status.problem then
        return notify.error(('trust: %s: %s'):format(short(status.file), status.problem))
      elseif status.trusted then
        vim.notify(('sandbox_sidecar: %s is trusted already'):format(short(status.file)))
        return
      end
      local choices = { 'Do not trust', 'View the file', 'Trust this content' }
      vim.ui.select(
        choices,
        { prompt = question(status), kind = 'sandbox_sidecar.trust' },
        function(choice)
          if choice == choices[2] then
            vim.cmd.split({ status.file, magic = { file = false, bar = false } })
          elseif choice == choices[3] then
            trust(status)
          end
        end
      )
    end
  )
end

---@param dir? string Default: the current project.
function M.withdraw(dir)
  sidecar.request(
    methods.project_untrust,
    { projectDir = dir or project.current() },
    function(err, status)
      if err then
        notify.error(notify.describe(err))
      else
        vim.notify(('sandbox_sidecar: %s is not trusted'):format(short(status.file)))
      end
    end
  )
end

return M
