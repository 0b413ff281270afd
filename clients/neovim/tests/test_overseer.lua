-- overseer.nvim's tasks, started in every way. The plugin is not packaged, so
-- tests/standin/overseer replaces it and makes the same calls. OVERSEER_DIR
-- names a checkout of the plugin, 1.x or 2.x, to test instead.
local H = require('harness')

local T = H.set()

local REAL = (vim.env.OVERSEER_DIR or '') ~= '' and vim.env.OVERSEER_DIR or nil
local DIR = REAL or H.tests .. '/standin/overseer'
-- 1.x has another strategy for terminals, and other names for two commands.
local OLD = vim.fn.filereadable(DIR .. '/lua/overseer/strategy/terminal.lua') == 1

---Skips a case that this version does not have. "overseer" names what CI cannot
---test without the real plugin.
local function needs(feature)
  if not REAL and (feature == 'overseer' or feature == '1.x') then
    H.skip('overseer')
  elseif feature == (OLD and '2.x' or '1.x') then
    H.skip('overseer_' .. feature)
  end
end

---@param order 'before'|'after'|'never' When the adapter is set up: before overseer or after it.
local function child_of(order, opts)
  H.require('filesystem')
  if REAL and not OLD and vim.fn.has('nvim-0.11') == 0 then
    H.skip('neovim_0_11')
  end
  local child = H.child(H.world())
  child.cmd('set rtp+=' .. DIR)
  child.cmd('runtime plugin/overseer.lua')
  child.lua(
    [[
    local order, opts = ...
    local function adapt()
      require('sandbox_sidecar.integrations.overseer').setup()
    end
    if order == 'before' then
      adapt()
    end
    require('overseer').setup(opts)
    if order == 'after' then
      adapt()
    end
    _G.overseer = require('overseer')
    _G.adapt = adapt
  ]],
    { order, opts or vim.empty_dict() }
  )
  return child
end

-- Each task writes to a place that only an unsandboxed program can write, then
-- to its project.
local LINE = 'echo x >../outside/escaped; echo done >>finished'

---Waits for the end of the task, and returns whether it was sandboxed.
local function sandboxed(child)
  H.wait('the end of the task', function()
    return H.read(child.world.project .. '/finished')
  end)
  return H.read(child.world.outside .. '/escaped') == nil
end

local function run(child, code, ...)
  child.lua('local LINE = ...; ' .. code, { LINE, ... })
end

local SHELL = (OLD and 'OverseerRunCmd ' or 'OverseerShell ') .. LINE
local RUN = OLD and 'run_template' or 'run_task'

-- The ways to start a task. `needs` names what the stand-in or a release lacks.
local WAYS = {
  { 'a task of Lua', 'overseer.new_task({ cmd = LINE }):start()' },
  { 'a list', 'overseer.new_task({ cmd = { "sh", "-c", LINE } }):start()' },
  {
    'a task that names a strategy',
    'overseer.new_task({ cmd = LINE, strategy = "jobstart" }):start()',
  },
  {
    'a task that names a strategy and its options',
    'overseer.new_task({ cmd = LINE, strategy = { "jobstart", use_terminal = false } }):start()',
  },
  {
    'the strategy for vim.system',
    'overseer.new_task({ cmd = { "sh", "-c", LINE }, strategy = "system" }):start()',
    needs = '2.x',
  },
  {
    'the strategy for termopen',
    'overseer.new_task({ cmd = LINE, strategy = "terminal" }):start()',
    needs = '1.x',
  },
  {
    "a strategy of the user's own",
    [[
    package.preload['overseer.strategy.mine'] = function()
      return {
        new = function()
          local mine = { get_bufnr = function() end, reset = function() end, dispose = function() end }
          function mine:start(task)
            vim.fn.jobstart({ 'sh', '-c', task.cmd }, { cwd = task.cwd })
          end
          return mine
        end,
      }
    end
    overseer.new_task({ cmd = LINE, strategy = 'mine' }):start()
  ]],
  },
  {
    'a template that names a strategy',
    ([[
    overseer.register_template({
      name = 'theirs',
      builder = function()
        return { cmd = { 'sh', '-c', LINE }, strategy = { 'jobstart', use_terminal = false } }
      end,
    })
    overseer.%s({ name = 'theirs' })
  ]]):format(RUN),
  },
  {
    ':OverseerRun',
    [[
    overseer.register_template({
      name = 'mine',
      builder = function()
        return { cmd = LINE }
      end,
    })
    vim.cmd('OverseerRun mine')
  ]],
  },
  { 'the command for a command line', ('vim.cmd(%q)'):format(SHELL) },
  {
    'a copy of a task',
    'overseer.new_task({ cmd = LINE, strategy = "jobstart" }):clone():start()',
  },
  {
    'the tasks of a task',
    'overseer.new_task({ name = "all", strategy = { "orchestrator", tasks = { { cmd = LINE, strategy = "jobstart" } } } }):start()',
  },
  {
    'a dependency',
    [[
    overseer.new_task({
      cmd = 'true',
      components = { { 'dependencies', task_names = { { cmd = LINE } } }, 'default' },
    }):start()
  ]],
    needs = 'overseer',
  },
  {
    'a task that follows another',
    [[
    overseer.new_task({
      cmd = 'true',
      components = { { 'run_after', ]]
      .. (OLD and 'task_names' or 'tasks')
      .. [[ = { { cmd = LINE } } }, 'default' },
    }):start()
  ]],
    needs = 'overseer',
  },
  {
    "a project's tasks.json",
    ([[
    vim.fn.mkdir('.vscode')
    vim.fn.writefile({ vim.json.encode({
      version = '2.0.0',
      tasks = { { label = 'theirs', type = 'shell', command = LINE } },
    }) }, '.vscode/tasks.json')
    overseer.%s({ name = 'theirs' })
  ]]):format(RUN),
    needs = 'overseer',
  },
  {
    'a bundle',
    [[
    overseer.new_task({ name = 'kept', cmd = LINE, strategy = 'jobstart' })
    overseer.save_task_bundle('kept')
    for _, task in ipairs(overseer.list_tasks()) do
      task:dispose(true)
    end
    overseer.load_task_bundle('kept')
  ]],
    needs = '1.x',
  },
  {
    "another plugin's job that overseer makes a task of",
    [[
    overseer.wrap_builtins(true)
    _G.job = vim.fn.jobstart({ 'sh', '-c', LINE })
    assert(_G.job > 0)
  ]],
    needs = '2.x',
    opts = { experimental_wrap_builtins = { enabled = true } },
  },
  {
    "another plugin's vim.system() that overseer makes a task of",
    [[
    overseer.wrap_builtins(true)
    local out = vim.system({ 'sh', '-c', LINE .. '; echo out; exit 3' }, { text = true }):wait()
    assert(out.code == 3 and out.stdout == 'out\n', vim.inspect(out))
  ]],
    needs = '2.x',
    opts = { experimental_wrap_builtins = { enabled = true } },
  },
}

T['a task is sandboxed'] = H.set()

for _, way in ipairs(WAYS) do
  T['a task is sandboxed'][way[1]] = function()
    needs(way.needs)
    for _, order in ipairs({ 'before', 'after' }) do
      local child = child_of(order, way.opts)
      run(child, way[2])
      H.eq({ order, sandboxed(child) }, { order, true })
    end
    -- Control: without the adapter it escapes.
    local child = child_of('never', way.opts)
    run(child, way[2])
    H.eq(sandboxed(child), false)
  end
end

T['a task from before the adapter is sandboxed when it restarts'] = function()
  local child = child_of('never')
  run(child, '_G.task = overseer.new_task({ cmd = LINE, strategy = "jobstart" }); task:start()')
  H.eq(sandboxed(child), false)
  H.until_true(child, '_G.task.exit_code ~= nil')
  child.lua('_G.waiting = overseer.new_task({ cmd = { "sleep", "60" } }); waiting:start()')
  child.lua('_G.adapt()')
  H.until_notified(child, 'one overseer task runs without a sandbox until it ends')
  for _ = 1, 2 do
    os.remove(child.world.project .. '/finished')
    os.remove(child.world.outside .. '/escaped')
    child.lua('_G.task:restart(true)')
    H.eq(sandboxed(child), true)
    H.until_true(child, '_G.task.exit_code ~= nil')
  end
  child.lua('_G.waiting:stop()')
end

T["the commands that list a project's tasks are sandboxed"] = function()
  if vim.fn.executable('make') == 0 then
    H.skip('make')
  end
  local function list(order)
    local child = child_of(order)
    H.write(
      child.world.project .. '/Makefile',
      'x := $(shell echo x >../outside/escaped; echo done >>finished)\nall:\n\ttrue\n'
    )
    child.lua(([[
      overseer.%s({ name = 'make all', autostart = false }, function(task)
        _G.found = task and task.cmd or 'none'
      end)
    ]]):format(RUN))
    H.until_true(child, '_G.found ~= nil')
    H.eq(child.lua_get('_G.found'), { 'make', 'all' })
    return sandboxed(child)
  end
  H.eq({ list('before'), list('after'), list('never') }, { true, true, false })
end

T['the adapter changes nothing but tasks'] = function()
  local child = child_of('after')
  local out = child.lua_get(
    'vim.system({ "sh", "-c", "cat ../outside/secret" }, { text = true }):wait().stdout'
  )
  H.eq(out, 'the secret\n')
  run(child, 'vim.fn.jobstart({ "sh", "-c", LINE })')
  H.eq(sandboxed(child), false)
  H.eq(child.lua_get('#require("overseer.task_list").list_tasks({})'), 0)
end

T["the sidecar's own programs are not sandboxed by overseer's hooks"] = function()
  needs('2.x')
  local child = child_of('after', { experimental_wrap_builtins = { enabled = true } })
  child.lua('overseer.wrap_builtins(true)')
  child.cmd('Sidecar explain read /etc/passwd')
  H.until_text(child, 'allowed: ')
  -- A wrapped command is not wrapped again. A sandbox may not execute the
  -- sidecar.
  local out = child.lua_get([[(function()
    local argv = require('sandbox_sidecar').wrap({ 'sh', '-c', 'cat ../outside/secret 2>&1; pwd' })
    return vim.system(argv, { text = true }):wait().stdout
  end)()]])
  H.eq(out:match('Permission denied\n(.*)\n$'), child.world.project)
end

T['a directory that a task names does not become its project'] = function()
  local child = child_of('before')
  local ssh = child.world.home .. '/.ssh'
  vim.fn.mkdir(ssh, 'p', 448)
  local function ends(cwd, cmd, strategy)
    return child.lua_get(
      [[(function(cwd, cmd, strategy)
        local task = overseer.new_task({
          cwd = cwd,
          cmd = cmd,
          strategy = strategy and { 'jobstart', wrap_opts = {} },
        })
        task:start()
        vim.wait(30000, function()
          return task.exit_code ~= nil
        end, 5)
        return task.exit_code
      end)(...)]],
      { cwd, cmd, strategy }
    )
  end
  H.eq(ends(ssh, 'echo key >>authorized_keys') ~= 0, true)
  if not OLD then
    H.eq(ends(ssh, 'echo key >>authorized_keys', true) ~= 0, true)
  end
  H.eq(vim.fn.readdir(ssh), {})
  -- Controls: the project, also from a subdirectory, and another project with a
  -- file in a window.
  vim.fn.mkdir(child.world.project .. '/sub')
  H.eq(ends(child.world.project .. '/sub', 'echo x >../written'), 0)
  local other = child.world.root .. '/other'
  H.write(other .. '/.git/HEAD', '')
  H.write(other .. '/file', '')
  H.eq(ends(other, 'echo x >written') ~= 0, true)
  child.cmd('split ' .. other .. '/file')
  H.eq(ends(other, 'echo x >written'), 0)
end

T['with an unknown overseer setup raises an error, and no task starts'] = function()
  for what, change in pairs({
    ['tasks that start in another way'] = [[
      local Task = require('overseer.task')
      Task.start = function(self)
        vim.fn.jobstart(self.cmd)
      end
    ]],
    ['tasks of another shape'] = 'require("overseer.task").new = nil',
    ['another version'] = 'require("overseer").builtin = { run = vim.system }',
    ['tasks that cannot be made'] = [[
      require('overseer.strategy').load = function()
        error('moved')
      end
    ]],
  }) do
    local child = child_of('never')
    child.lua(change)
    local got = child.lua_get([[(function()
      local ok, err = pcall(_G.adapt)
      return { ok, err, (pcall(require('overseer.task').start, { cmd = { 'true' } })) }
    end)()]])
    H.eq({ what, got[1], got[3] }, { what, false, false })
    H.eq({ what, got[2]:find('its tasks cannot be sandboxed', 1, true) ~= nil }, { what, true })
    H.eq({ what, got[2]:find('\n', 1, true) }, { what })
  end
  -- Without the plugin there is nothing to hook.
  local child = H.child()
  child.lua([[_G.result = { pcall(require('sandbox_sidecar.integrations.overseer').setup) }]])
  local got = child.lua_get('_G.result')
  H.eq({ got[1], got[2]:find('is missing', 1, true) ~= nil }, { false, true })
end

return T
