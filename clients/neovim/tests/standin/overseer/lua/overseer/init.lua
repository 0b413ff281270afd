-- luacheck: globals vim.fn.jobstart vim.system
-- Replaces overseer.nvim 2.x in tests: its modules by their names, and the calls
-- that lead to the start of a program. No code is copied. The appearance of
-- tasks, their components and the task list are missing.
local M = {}

-- Templates and strategies start programs through these.
M.builtin = { jobstart = vim.fn.jobstart, system = vim.system }

---@param cmd any
---@param opts? table
---@param strategy table
local function as_task(cmd, opts, strategy)
  opts = opts or {}
  local task = M.new_task({ cmd = cmd, cwd = opts.cwd, env = opts.env, strategy = strategy })
  task:start()
  return task.strategy
end

-- Other plugins' programs become tasks.
function M.wrap_builtins(enabled)
  if not enabled then
    vim.fn.jobstart, vim.system = M.builtin.jobstart, M.builtin.system
    return
  end
  vim.fn.jobstart = function(cmd, opts)
    return as_task(cmd, opts, { 'jobstart', wrap_opts = opts or {} }).job_id
  end
  vim.system = function(cmd, opts, on_exit)
    local strategy = { 'system', wrap_opts = opts or {}, wrap_exit = on_exit }
    return as_task(cmd, opts, strategy).handle
  end
end

function M.private_setup()
  vim.api.nvim_create_user_command('OverseerShell', function(args)
    M.new_task({ cmd = args.args }):start()
  end, { nargs = '*' })
  vim.api.nvim_create_user_command('OverseerRun', function(args)
    M.run_task({ name = args.args })
  end, { nargs = '*' })
end

-- 2.x has no option for the strategy.
function M.setup(opts)
  M.wrap_builtins(vim.tbl_get(opts or {}, 'experimental_wrap_builtins', 'enabled') == true)
end

function M.new_task(opts)
  return require('overseer.task').new(opts)
end

function M.register_template(template)
  require('overseer.template').register(template)
end

function M.run_task(opts, callback)
  require('overseer.template').find(opts.name, function(template)
    local task = template and M.new_task(template.builder({}))
    if task and opts.autostart ~= false then
      task:start()
    end
    if callback then
      callback(task, not task and 'no such template' or nil)
    end
  end)
end

return M
