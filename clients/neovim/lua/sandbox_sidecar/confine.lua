---Makes the editor's own shell a sandboxed one, and takes that back.
local display = require('sandbox_sidecar.display')
local notify = require('sandbox_sidecar.notify')
local sidecar = require('sandbox_sidecar.sidecar')

local M = {}

---The name of the link that stands for the user's own shell.
local GENERIC = 'sandbox-sh'

---@class sandbox_sidecar.Confined
---@field options table<string, any> What was set.
---@field env table<string, string> Variables that were set.
---@field old_options table<string, any>
---@field old_env table<string, string>

local confined ---@type sandbox_sidecar.Confined?

---How long, in milliseconds, to wait for the sidecar, to which shells report.
local START_TIMEOUT = 2000

---The directory of the links, which the program finds by the same rule.
---@return string?
local function directory()
  for _, base in ipairs({ { vim.env.XDG_DATA_HOME, '' }, { vim.env.HOME, '/.local/share' } }) do
    if base[1] and vim.startswith(base[1], '/') then
      return vim.fs.normalize(base[1] .. base[2] .. '/sandbox-sidecar/shells')
    end
  end
end

---Makes the links, and returns the one for a shell.
---@param shell string
---@return string
local function link(shell)
  local path, err = require('sandbox_sidecar.binary').find()
  if not path then
    error(err, 0)
  end
  local dir = directory()
  if not dir then
    error('confine: HOME is not set, so there is no place for the shells.', 0)
  end
  local done = vim
    .system(
      require('sandbox_sidecar.wrap').mark({ path, 'shell', 'install', '--dir', dir }),
      { text = true }
    )
    :wait()
  if done.code ~= 0 then
    error(vim.trim((done.stderr or ''):gsub('sandbox%-sidecar: ', '')), 0)
  end
  local own = vim.fs.joinpath(dir, vim.fs.basename(shell))
  return vim.fn.executable(own) == 1 and own or vim.fs.joinpath(dir, GENERIC)
end

---The options for a link. Sessions have a /tmp of their own, and so do not see
---the editor's temporary files: filters use pipes, and |:make| a file in the
---working directory, which it removes.
---@param path string
---@return table<string, any>
local function options_for(path)
  local fish = vim.fs.basename(path) == 'fish'
  return {
    shell = path:find('[ "]') and ('"%s"'):format(path:gsub('"', '\\"')) or path,
    shellcmdflag = '-c',
    shellquote = '',
    shellxquote = '',
    shellxescape = '',
    shellredir = '>%s 2>&1',
    shellpipe = fish and '&| tee' or '2>&1| tee',
    shelltemp = false,
    makeef = '.make-errors-##',
  }
end

---The program of 'shell', without arguments.
---@return string
local function current()
  return (vim.go.shell:match('^"([^"]+)"') or vim.go.shell:match('^%S+') or vim.env.SHELL or '')
end

---Confines what the editor starts by 'shell' or $SHELL.
function M.start()
  if confined and vim.go.shell == confined.options.shell then
    return notify.info('the shell is sandboxed already. ":Sidecar! confine" takes that back.')
  end
  if require('sandbox_sidecar.config').get().settings_path then
    error('confine: shells do not know the option "settings_path". Unset it.', 0)
  end
  local path = link(current())
  local options, old = options_for(path), {}
  for name, value in pairs(options) do
    old[name] = vim.go[name]
    vim.go[name] = value
  end
  local env = { SHELL = path }
  confined = { options = options, env = env, old_options = old, old_env = {} }
  for name, value in pairs(env) do
    confined.old_env[name] = vim.env[name]
    vim.env[name] = value
  end
  -- What the sandbox refuses is reported to the sidecar. Without it, shells print
  -- that on standard error, which gets into the text of filters.
  local settled = false
  sidecar.ensure(function(err)
    settled = true
    if err then
      notify.error(notify.describe(err))
    end
  end)
  vim.wait(START_TIMEOUT, function()
    return settled
  end, 5)
  notify.info(
    (':terminal, :! and jobs with a shell are sandboxed, by %s.'):format(display.path(path))
  )
  require('sandbox_sidecar.enable').offer(require('sandbox_sidecar.project').current())
end

---Takes that back. What the user has changed since stays.
function M.stop()
  if not confined then
    return notify.info('the shell was not changed by ":Sidecar confine".')
  end
  local was, changed = confined, {}
  confined = nil
  for name, value in pairs(was.options) do
    if vim.go[name] == value then
      vim.go[name] = was.old_options[name]
    else
      changed[#changed + 1] = name
    end
  end
  for name, value in pairs(was.env) do
    if vim.env[name] == value then
      vim.env[name] = was.old_env[name]
    else
      changed[#changed + 1] = '$' .. name
    end
  end
  table.sort(changed)
  if #changed > 0 then
    notify.warn(
      ('the shell is as before, except what was changed since: %s'):format(
        table.concat(changed, ', ')
      )
    )
  else
    notify.info('the shell is as before: what it starts is not sandboxed.')
  end
end

---How many of the editor's terminals the sandboxed shell runs.
---@return integer confined
---@return integer total
local function count()
  local of_ours, total = 0, 0
  for _, channel in ipairs(vim.api.nvim_list_chans()) do
    if channel.mode == 'terminal' and channel.argv then
      total = total + 1
      local dir = directory()
      if dir and vim.startswith(channel.argv[1] or '', dir .. '/') then
        of_ours = of_ours + 1
      end
    end
  end
  return of_ours, total
end

---The user's own shell. A session cannot execute the other one.
---@return string?
function M.own_shell()
  local env = confined and vim.env.SHELL == confined.env.SHELL and confined.old_env or vim.env
  return env.SHELL
end

---Says for |:checkhealth| what is sandboxed, and whether it is a warning.
---@return string text
---@return boolean fine
function M.status()
  local of_ours, total = count()
  local terminals = total > 0 and (' (open terminals: %d of %d)'):format(of_ours, total) or ''
  if not confined then
    return 'the shell of :terminal and :! is not sandboxed' .. terminals, true
  end
  local set = vim.go.shell == confined.options.shell
  return (
    set and 'the shell of :terminal and :! is sandboxed'
    or "'shell' was changed since :Sidecar confine"
  ) .. terminals,
    set and of_ours == total
end

return M
