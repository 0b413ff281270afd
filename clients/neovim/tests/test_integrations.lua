-- The adapters, called as their plugins call them. toggleterm is the real
-- plugin. The others are not packaged: their calls have the form of the release
-- that the comment names.
local H = require('harness')

local T = H.set()

local function sandboxed()
  H.require('filesystem')
  return H.child(H.world())
end

local SECRET = 'cat ../outside/secret'

T['toggleterm opens sandboxed terminals'] = function()
  local child = sandboxed()
  child.cmd('set rtp+=' .. H.tools .. '/neovim-newest/usr/share/neovim-toggleterm')
  child.lua([[
    require('toggleterm').setup({
      shell = require('sandbox_sidecar.integrations.toggleterm').shell,
      start_in_insert = false,
    })
    require('toggleterm').toggle(1)
  ]])
  H.eq(child.bo.filetype, 'toggleterm')
  local buf = child.api.nvim_get_current_buf()
  -- The buffer's name is a line that any shell takes, without needless quotes,
  -- because a saved session runs it again. toggleterm shows the command alone.
  local shown = child.api.nvim_buf_get_name(buf):match('^term://.*//%d+:(.*)$')
  H.eq(
    shown,
    ('%s exec --kind terminal --project %s -- /bin/sh;#toggleterm#1'):format(
      H.binary,
      child.world.project
    )
  )
  local function title(id)
    local get = ('require("toggleterm.terminal").get(%d, true)'):format(id)
    H.until_true(child, get .. '.display_name ~= nil')
    return child.lua_get(get .. ':_display_name()')
  end
  H.eq(title(1), '/bin/sh')
  child.lua('require("toggleterm").exec(...)', { SECRET .. '; echo $((6*7))' })
  local text = H.until_text(child, '\n42', buf)
  H.eq(text:find('Permission denied', 1, true) ~= nil, true)
  -- Control: the same plugin without the adapter.
  child.lua([[
    local Terminal = require('toggleterm.terminal').Terminal
    Terminal:new({ id = 7, cmd = 'sh -c "cat ../outside/secret; sleep 60"', close_on_exit = false, direction = 'tab' }):open()
  ]])
  H.until_text(child, 'the secret')
  child.lua([[
    local Terminal = require('toggleterm.terminal').Terminal
    local command = require('sandbox_sidecar.integrations.toggleterm').command
    Terminal:new({
      id = 8,
      cmd = command({ 'sh', '-c', 'cat ../outside/secret; sleep 60' }),
      close_on_exit = false,
      direction = 'tab',
    }):open()
  ]])
  H.until_text(child, 'Permission denied')
  H.eq(title(8), 'sh -c cat ../outside/secret; sleep 60')
  -- A name of the user's stays, and so does that of another terminal.
  child.lua([[
    local Terminal = require('toggleterm.terminal').Terminal
    local command = require('sandbox_sidecar.integrations.toggleterm').command
    Terminal:new({ id = 9, cmd = command({ 'cat' }), display_name = 'mine', direction = 'tab' }):open()
  ]])
  H.until_true(child, 'vim.bo.filetype == "toggleterm"')
  H.eq(title(9), 'mine')
  H.eq(child.lua_get('require("toggleterm.terminal").get(7, true).display_name == nil'), true)
end

T['a line for a shell passes every word as it is'] = function()
  local child = sandboxed()
  local words =
    { 'a b', "it's", '$(id)', '`id`', '~', '=ls', '', '*', 'a;b', '-x', '#c', '!', 'plain' }
  for _, shell in ipairs({ 'sh', 'bash', 'zsh' }) do
    local got = child.lua(
      [[
      local shell, words = ...
      local argv = vim.list_extend({ 'printf', '[%s]' }, words)
      local line = require('sandbox_sidecar.wrap').line(argv, { kind = 'terminal' })
      return vim.system({ shell, '-c', line }, { text = true }):wait().stdout
    ]],
      { shell, words }
    )
    H.eq({ shell, got }, { shell, '[' .. table.concat(words, '][') .. ']' })
  end
end

-- How CodeCompanion uses a tool. `shape` is how it calls the function in cmds:
-- "table" since August 2026, "parameters" before.
local CODECOMPANION = [[
  local path, cmd, flag, shape = ...
  package.loaded['codecompanion.interactions.chat.tools.builtin.run_command'] = {
    name = 'run_command',
    cmds = {},
    schema = { ['function'] = { name = 'run_command' } },
    handlers = {
      setup = function(self)
        table.insert(self.cmds, { cmd = vim.split(self.args.cmd, ' ') })
      end,
    },
    output = { prompt = function(self) return 'Run ' .. self.args.cmd end },
  }
  package.loaded[path] = nil
  local tool = vim.deepcopy(require(path))
  tool.args = { cmd = cmd, flag = flag }
  local tools = { chat = { tool_registry = {} } }
  tool.handlers.setup(tool, { tools = tools })
  _G.prompt = tool.output.prompt(tool)
  _G.answer, _G.tools, _G.job = nil, tools, nil
  local function done(answer)
    _G.answer = answer
  end
  if shape == 'table' then
    tool.cmds[1](tools, tool.args, { output_cb = done, register_job = function(job) _G.job = job end })
  else
    tool.cmds[1](tools, tool.args, nil, done)
  end
]]

T['CodeCompanion gets output, status and flag of a sandboxed command'] = function()
  local child = sandboxed()
  local function run(cmd, flag, shape)
    child.lua(
      CODECOMPANION,
      { 'sandbox_sidecar.integrations.codecompanion', cmd, flag or vim.NIL, shape }
    )
    H.until_true(child, '_G.answer ~= nil')
    return child.lua_get('_G.answer')
  end
  for _, shape in ipairs({ 'table', 'parameters' }) do
    H.eq(run('echo one; echo two', nil, shape), { status = 'success', data = { 'one', 'two' } })
    H.eq(child.lua_get('_G.prompt'), 'Run echo one; echo two')
    local refused = run(SECRET .. '; exit 9', 'testing', shape)
    H.eq(refused.status, 'error')
    H.eq(refused.data[1]:find('Permission denied', 1, true) ~= nil, true)
    H.eq(refused.data[2], 'exit status 9')
    H.eq(child.lua_get('_G.tools.chat.tool_registry.flags.testing'), false)
    run('true', 'testing', shape)
    H.eq(child.lua_get('_G.tools.chat.tool_registry.flags.testing'), true)
  end
end

T['CodeCompanion can cancel a command'] = function()
  local mark = H.unique()
  local child = sandboxed()
  child.lua(
    CODECOMPANION,
    { 'sandbox_sidecar.integrations.codecompanion', 'sleep ' .. mark, vim.NIL, 'table' }
  )
  H.wait('the command', function()
    return H.alive('sleep\0' .. mark) > 0
  end)
  child.lua('_G.job:kill()')
  H.until_true(child, '_G.answer ~= nil')
  H.eq(child.lua_get('_G.answer'), { status = 'error', data = { 'killed' } })
  H.eq(H.alive('sleep\0' .. mark), 0)
end

-- avante's custom tools: func(input, on_log, on_complete), and since 2025
-- func(input, { on_log, on_complete, session_ctx }).
T['avante asks, and gets output and errors of a sandboxed command'] = function()
  local child = sandboxed()
  child.lua([[
    package.loaded['avante.llm_tools.helpers'] = {
      confirm = function(question, callback, _, context)
        _G.question, _G.context = question, context
        callback(_G.allow)
      end,
    }
    _G.tool = require('sandbox_sidecar.integrations.avante')
    function _G.run(command, rel_path, shape)
      _G.result = nil
      local function on_complete(output, err)
        _G.result = { output, err }
      end
      local function on_log(line)
        _G.logged = line
      end
      local input = { command = command, rel_path = rel_path }
      if shape == 'table' then
        _G.tool.func(input, { on_log = on_log, on_complete = on_complete, session_ctx = 'context' })
      else
        _G.tool.func(input, on_log, on_complete)
      end
    end
  ]])
  vim.fn.mkdir(child.world.project .. '/sub')
  for _, shape in ipairs({ 'table', 'parameters' }) do
    local function run(...)
      child.lua('_G.run(...)', { ... })
      H.until_true(child, '_G.result ~= nil')
      return child.lua_get('_G.result')
    end
    child.lua('_G.allow = true')
    H.eq(run('pwd', 'sub', shape), { child.world.project .. '/sub\n' })
    H.eq(child.lua_get('_G.logged'), 'command: pwd')
    H.eq(child.lua_get('_G.context'), shape == 'table' and 'context' or vim.NIL)
    -- The whole project may be written, not only the directory.
    H.eq(run('echo x >../written; cat ../written', 'sub', shape), { 'x\n' })
    local refused = run(SECRET .. '; exit 5', '.', shape)
    H.eq(refused[1], false)
    H.eq(refused[2]:find('Permission denied.*\nexit status 5$') ~= nil, true)
    child.lua('_G.allow = false')
    H.eq(run('echo x >never', '.', shape), { false, 'the user refused' })
    H.eq(H.read(child.world.project .. '/never'), nil)
  end
end

-- agentic.nvim's terminal manager of summer 2026, which receives ACP's
-- requests.
T['an ACP agent gets terminals, and cannot leave the sandbox'] = function()
  local mark = H.unique()
  local child = sandboxed()
  child.lua([[
    require('sandbox_sidecar.integrations.acp').install()
    _G.manager = require('agentic.acp.terminal_manager'):new()
    function _G.create(params)
      local id, err = _G.manager:create(params)
      _G.status = nil
      if id then
        _G.manager:wait_for_exit(id, function(status)
          _G.status = status
        end)
      end
      return { id or vim.NIL, err }
    end
  ]])
  local function create(params)
    return child.lua_get('_G.create(...)', { params })[1]
  end
  local function output(id)
    return child.lua_get('_G.manager:get_output(...)', { id })
  end
  local id = create({
    command = 'sh',
    args = { '-c', SECRET .. '; echo "$TERM_PROGRAM"; pwd; exit 4' },
    env = { { name = 'TERM_PROGRAM', value = 'agent' } },
    cwd = child.world.project,
    sessionId = 's1',
  })
  H.until_true(child, '_G.status ~= nil')
  H.eq(child.lua_get('_G.status'), { exitCode = 4, signal = vim.NIL })
  local got = output(id)
  H.eq(got.output:match('Permission denied\nagent\n(.*)\n$'), child.world.project)
  H.eq({ got.truncated, got.exitStatus }, { false, { exitCode = 4, signal = vim.NIL } })
  -- Waiting for an ended terminal returns at once.
  H.eq(
    child.lua_get(
      '(function(id) local s; local known = _G.manager:wait_for_exit(id, function(x) s = x end); return { known, s.exitCode } end)(...)',
      { id }
    ),
    { true, 4 }
  )

  local limited = create({ command = 'seq 1000', outputByteLimit = 20 })
  H.until_true(child, '_G.status ~= nil')
  H.eq(output(limited).output, '97\n998\n999\n1000\n')
  H.eq(output(limited).truncated, true)

  local killed = create({ command = 'sleep', args = { mark }, sessionId = 's2' })
  H.eq(output(killed).exitStatus, nil)
  H.wait('the command', function()
    return H.alive('sleep\0' .. mark) > 0
  end)
  H.eq(child.lua_get('_G.manager:kill(...)', { killed }), true)
  H.until_true(child, '_G.status ~= nil')
  H.eq(child.lua_get('_G.status'), { exitCode = vim.NIL, signal = 'SIGKILL' })
  H.eq(H.alive('sleep\0' .. mark), 0)

  H.eq(
    child.lua_get('_G.create(...)', { { args = {} } }),
    { vim.NIL, 'terminal/create: expected a command' }
  )

  -- Releasing ends the program, and answers waiting requests.
  create({ command = 'sleep ' .. mark, sessionId = 's3' })
  H.wait('the command', function()
    return H.alive('sleep\0' .. mark) > 0
  end)
  child.lua('_G.manager:release_session("s3")')
  H.eq(child.lua_get('_G.status'), { exitCode = vim.NIL, signal = vim.NIL })
  H.wait('the end of the command', function()
    return H.alive('sleep\0' .. mark) == 0
  end)
  H.eq(output(id).exitStatus.exitCode, 4)
  child.lua('_G.manager:release_all()')
  H.eq(output(id), vim.NIL)
  H.eq(child.lua_get('_G.manager:kill(...)', { id }), false)
end

---Starts an agent in the project, with agentic.nvim's calls.
local function agent(child)
  child.lua([[
    require('sandbox_sidecar.integrations.acp').install()
    _G.manager = require('agentic.acp.terminal_manager'):new()
    -- Agents send JSON.
    function _G.request(json)
      _G.status, _G.id, _G.err = nil, nil, nil
      _G.id, _G.err = _G.manager:create(vim.json.decode(json))
      if _G.id then
        _G.manager:wait_for_exit(_G.id, function(status)
          _G.status = status
        end)
      end
      return _G.err or vim.NIL
    end
  ]])
  ---@return any err The error that the agent gets.
  ---@return string? output
  return function(params)
    local err = child.lua_get(
      '_G.request(...)',
      { type(params) == 'string' and params or vim.json.encode(params) }
    )
    if err ~= vim.NIL then
      return err
    end
    H.until_true(child, '_G.status ~= nil')
    return nil, child.lua_get('_G.manager:get_output(_G.id).output')
  end
end

T['the manager of ACP terminals is replaced before and after it is loaded'] = function()
  local child = H.child()
  H.eq(
    child.lua_get([[(function()
      local acp = require('sandbox_sidecar.integrations.acp')
      local name = 'agentic.acp.terminal_manager'
      acp.install()
      local before = getmetatable(require(name):new()) == acp
      package.preload[name], package.loaded[name] = nil, { new = function() end }
      local held = require(name)
      acp.install()
      return { before, getmetatable(held:new()) == acp, getmetatable(require(name):new()) == acp }
    end)()]]),
    { true, true, true }
  )
end

T["an ACP agent's project is the user's, whatever cwd it names"] = function()
  local child = sandboxed()
  local world = child.world
  local ask = agent(child)
  local ssh = world.home .. '/.ssh'
  vim.fn.mkdir(ssh, 'p', 448)
  vim.fn.mkdir(world.project .. '/sub/deep', 'p')
  vim.fn.mkdir(world.project .. '/$HOME', 'p')
  vim.fn.mkdir(world.project .. '-evil/.git', 'p')
  vim.uv.fs_symlink(ssh, world.project .. '/out')
  vim.uv.fs_symlink(world.project .. '/sub', world.outside .. '/in')
  H.write(world.project .. '/file', '')
  local function pwd(cwd)
    local err, output = ask({ command = 'pwd; echo x >' .. world.project .. '/written', cwd = cwd })
    H.eq({ cwd, err }, { cwd })
    H.eq({ cwd, os.remove(world.project .. '/written') }, { cwd, true })
    return vim.trim(output)
  end

  -- Control: paths in the project work in any notation, and the project can be
  -- written from them.
  for cwd, want in pairs({
    [world.project] = '',
    [world.project .. '/'] = '',
    [world.project .. '/sub/../sub/deep/'] = '/sub/deep',
    [world.outside .. '/in/deep'] = '/sub/deep',
    [world.project .. '/$HOME'] = '/$HOME',
    ['sub'] = '/sub',
    ['./sub/./deep'] = '/sub/deep',
    [''] = '',
  }) do
    H.eq({ cwd, pwd(cwd) }, { cwd, world.project .. want })
  end
  H.eq(pwd(nil), world.project)
  local err, output = ask('{ "command": "pwd", "cwd": null, "args": [], "env": [] }')
  H.eq({ err or false, output }, { false, world.project .. '\n' })

  for _, cwd in ipairs({
    ssh,
    ssh .. '/',
    world.home,
    world.root,
    world.outside,
    '/',
    '..',
    '../project-evil',
    '../outside/../outside',
    world.project .. '-evil',
    world.project .. '/..',
    world.project .. '/sub/../../home/.ssh',
    world.project .. '/out',
    world.project .. '/out/',
    world.project .. '/out/../.ssh',
    'out',
    '~/.ssh',
    '$HOME/.ssh',
    world.project .. '/file',
    world.project .. '/gone',
    world.root .. '/gone',
    world.project .. '\0/../../home/.ssh',
    ssh .. '\0' .. world.project,
    42,
    true,
    { ssh },
    { cwd = world.project },
  }) do
    local answer = ask({
      command = 'sh',
      args = { '-c', 'echo key >>authorized_keys; echo key >>' .. ssh .. '/authorized_keys' },
      cwd = cwd,
    })
    H.eq({ cwd, type(answer) }, { cwd, 'string' })
    H.eq({ answer:find('^terminal/create: cwd: .*[^%c]+$') ~= nil, answer:find('%c') }, { true })
  end
  -- The answer does not reveal that it exists.
  H.eq(
    (ask({ command = 'true', cwd = ssh }):gsub('%.ssh', 'gone')),
    (ask({ command = 'true', cwd = world.home .. '/gone' }))
  )
  H.eq(vim.fn.readdir(ssh), {})

  -- The user changes the directory. A running agent keeps its project; a new
  -- one gets the new project.
  child.cmd('cd ' .. world.outside)
  H.eq(pwd(nil), world.project)
  H.eq(type(ask({ command = 'true', cwd = world.outside })), 'string')
  ask = agent(child)
  local _, there = ask({ command = 'echo x >written && pwd' })
  H.eq(there, world.outside .. '\n')
  H.eq(type(ask({ command = 'true', cwd = world.project })), 'string')
end

T['invalid requests of an ACP agent are rejected'] = function()
  local child = sandboxed()
  local ask = agent(child)
  for _, params in ipairs({
    '[]',
    '{}',
    '"text"',
    '{ "command": ["sh"] }',
    '{ "command": "sh", "args": "-c" }',
    '{ "command": "sh", "args": ["-c", 1] }',
    '{ "command": "sh", "args": { "1": "-c" } }',
    '{ "command": "sh", "env": ["A=b"] }',
    '{ "command": "sh", "env": [{ "name": "A", "value": null }] }',
    '{ "command": "sh", "env": { "A": "b" } }',
  }) do
    H.eq({ params, type(ask(params)) }, { params, 'string' })
  end
  local _, output =
    ask('{ "command": "echo", "args": ["one two"], "env": [], "outputByteLimit": -5 }')
  H.eq(output, '\n')
end

T['avante accepts only directories in the project'] = function()
  local child = sandboxed()
  local function run(rel_path)
    return child.lua_get(
      [[(function(rel_path)
        local result
        local function done(...)
          result = { ... }
        end
        vim.fn.confirm = function(question)
          _G.question = question
          return 1
        end
        local tool = require('sandbox_sidecar.integrations.avante')
        local ok, err = tool.func({ command = 'pwd', rel_path = rel_path }, nil, done)
        if ok == false then
          return { ok, err }
        end
        vim.wait(30000, function()
          return result
        end, 5)
        return result
      end)(...)]],
      { rel_path }
    )
  end
  vim.uv.fs_symlink(child.world.outside, child.world.project .. '/out')
  H.eq(run('.'), { child.world.project .. '\n' })
  for _, path in ipairs({ '..', 'out', child.world.home, '../outside' }) do
    local result = run(path)
    H.eq(
      { path, result[1], (result[2]:find('not a directory in the project', 1, true) ~= nil) },
      { path, false, true }
    )
  end
end

-- overseer's strategies of May 2026: new, start(task), stop, reset, dispose,
-- get_bufnr.
T['overseer runs tasks in a sandbox'] = function()
  local mark = H.unique()
  local child = sandboxed()
  child.lua([[
    function _G.task(cmd, cwd)
      local strategy = require('overseer.strategy.sandbox_sidecar').new()
      _G.lines, _G.pieces, _G.code = {}, {}, nil
      strategy:start({
        name = 'task',
        cmd = cmd,
        cwd = cwd,
        env = { TERM_PROGRAM = 'overseer' },
        dispatch = function(_, event, data)
          vim.list_extend(event == 'on_output_lines' and _G.lines or _G.pieces, data)
        end,
        on_exit = function(_, code)
          _G.code = code
        end,
      })
      _G.strategy = strategy
    end
  ]])
  child.lua(
    '_G.task(...)',
    { SECRET .. [[; printf '\033[31mred\033[0m\nno end'; exit 3]], child.world.project }
  )
  H.until_true(child, '_G.code ~= nil')
  H.eq(child.lua_get('_G.code'), 3)
  local lines = child.lua_get('_G.lines')
  H.eq(lines[1]:find('Permission denied', 1, true) ~= nil, true)
  H.eq({ lines[2], lines[3], lines[4] }, { 'red', 'no end' })
  local buf = child.lua_get('_G.strategy:get_bufnr()')
  H.until_text(child, 'no end', buf)
  H.eq(child.api.nvim_get_option_value('buftype', { buf = buf }), 'terminal')
  H.eq(child.api.nvim_get_option_value('buflisted', { buf = buf }), false)
  child.lua('_G.strategy:dispose()')
  H.eq(child.api.nvim_buf_is_valid(buf), false)

  child.lua('_G.task(...)', { { 'sleep', mark }, child.world.project })
  H.wait('the task', function()
    return H.alive('sleep\0' .. mark) == 1
  end)
  child.lua('_G.strategy:stop()')
  H.until_true(child, '_G.code ~= nil')
  H.eq(child.lua_get('_G.code > 128'), true)
  H.eq(H.alive('sleep\0' .. mark), 0)

  child.lua('_G.task(...)', { 'true', child.world.root .. '/gone' })
  H.until_true(child, '_G.code ~= nil')
  H.eq(child.lua_get('_G.code'), 127)
end

T["an agent's own command line is wrapped, for jobs as for terminals"] = function()
  local child = sandboxed()
  local got = child.lua_get([[(function()
    local lines
    local job = vim.fn.jobstart(require('sandbox_sidecar').wrap({ 'sh', '-c', 'cat ../outside/secret 2>&1; read line; echo "got $line"'
    }), {
      stdout_buffered = true,
      on_stdout = function(_, data)
        lines = data
      end,
    })
    vim.fn.chansend(job, 'input\n')
    local code = vim.fn.jobwait({ job }, 30000)[1]
    return { code, lines }
  end)()]])
  H.eq(got[1], 0)
  H.eq(got[2][1]:find('Permission denied', 1, true) ~= nil, true)
  H.eq(got[2][2], 'got input')
end

return T
