---Turns the sandbox on, which is off until the user says otherwise. The user is
---asked once, and |:Sidecar-enable| asks again.
local display = require('sandbox_sidecar.display')
local notify = require('sandbox_sidecar.notify')
local protocol = require('sandbox_sidecar.protocol_gen')
local view = require('sandbox_sidecar.view')

local M = {}

---What to turn it on for, as "sandbox-sidecar init" takes it.
M.kinds = { 'both', 'terminal', 'tool' }

---Whether the user was never asked before. From then on it is false, in later
---editors too.
---@return boolean
local function first_time()
  local dir = vim.fs.joinpath(vim.fn.stdpath('state') --[[@as string]], 'sandbox_sidecar')
  vim.fn.mkdir(dir, 'p', tonumber('700', 8))
  local file = vim.uv.fs_open(vim.fs.joinpath(dir, 'asked-to-enable'), 'wx', tonumber('600', 8))
  if file then
    vim.uv.fs_close(file)
  end
  return file ~= nil
end

---Runs "sandbox-sidecar init".
---@param apply_to string
local function init(apply_to)
  local path, err = require('sandbox_sidecar.binary').find()
  if not path then
    return notify.error(err --[[@as string]])
  end
  local argv = { path, 'init', '--yes', '--apply-to', apply_to }
  local settings = require('sandbox_sidecar.config').get().settings_path
  if settings then
    vim.list_extend(argv, { '--settings', settings })
  end
  notify.expect_change()
  vim.system(
    require('sandbox_sidecar.wrap').mark(argv),
    { text = true },
    vim.schedule_wrap(function(done)
      if done.code == 0 then
        notify.info('the sandbox is on. See ":Sidecar settings".')
      else
        local text = vim.trim((done.stderr or ''):gsub('sandbox%-sidecar: ', ''))
        view.lines('enable', display.lines(text), {})
      end
    end)
  )
end

---Turns it on, or asks for what.
---@param apply_to? string One of M.kinds.
function M.run(apply_to)
  if apply_to then
    return init(apply_to)
  end
  local choices = { 'terminals and tools', 'tools only', 'not now' }
  view.choose(choices, {
    prompt = 'The sandbox is off. Turn it on for:',
    kind = 'sandbox_sidecar.enable',
  }, function(choice)
    if choice == choices[1] then
      init('both')
    elseif choice == choices[2] then
      init('tool')
    end
  end)
end

---Calls back when the user is in Normal mode, where a question swallows no
---typed text.
---@param callback fun()
local function in_normal_mode(callback)
  local modes = { 'n', 'nt' }
  if vim.tbl_contains(modes, vim.api.nvim_get_mode().mode) then
    return callback()
  end
  vim.api.nvim_create_autocmd('ModeChanged', {
    pattern = { '*:n', '*:nt' },
    once = true,
    callback = vim.schedule_wrap(callback),
  })
end

---Asks the user once, if no settings file says whether the sandbox is on.
---@param dir string The project.
function M.offer(dir)
  if #vim.api.nvim_list_uis() == 0 then
    return
  end
  local methods = protocol.methods
  require('sandbox_sidecar.sidecar').request(
    methods.settings_get,
    { projectDir = dir },
    function(_, result)
      local origins = result and result.origins or {}
      if
        origins.enabled == 'built-in defaults'
        and not origins['tool.enabled']
        and not origins['terminal.enabled']
        and first_time()
      then
        in_normal_mode(M.run)
      end
    end
  )
end

return M
