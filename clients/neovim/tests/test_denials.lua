local H = require('harness')

local T = H.set()

local function notified(child)
  return child.lua_get('_G.notified')
end

local function lines(child)
  return child.lua_get('require("sandbox_sidecar.denials").lines()')
end

T['protected paths that do not exist are refused, in few messages, and all are listed'] = function()
  H.require('filesystem')
  local child = H.child()
  H.terminal(child, { cmd = 'mkdir .vscode .idea; echo >.envrc; echo >.exrc; read line' })
  H.wait('the list', function()
    local text = table.concat(lines(child), '\n')
    return text:find('.vscode', 1, true)
      and text:find('.idea', 1, true)
      and text:find('.envrc', 1, true)
      and text:find('.exrc', 1, true)
  end)
  H.until_notified(child, 'refused to let "', ' create "', ':Sidecar denials')
  H.eq(#notified(child) < 4, true)
  child.cmd('Sidecar denials')
  H.eq(child.bo.filetype, 'sidecar-output')
  H.eq(H.text(child):find('mkdir .vscode .idea', 1, true) ~= nil, true)
  H.eq(#child.api.nvim_buf_get_lines(0, 0, -1, false) >= 4, true)
end

---Skips the case if the sidecar cannot report denials.
local function require_denials()
  if not H.doctor():find('denials%s+seccomp') then
    H.skip('user_notification')
  end
end

local function run(child, line)
  -- In a sandbox of its own: answers are those of a group.
  return child.lua_get(
    'require("sandbox_sidecar").run(..., { group = "own" }):wait().exit_code',
    { line }
  )
end

T['a denial is reported once, with a setting that allows it'] = function()
  require_denials()
  local world = H.world()
  local child = H.child(world)
  local line = 'echo x >../outside/new'
  H.eq(run(child, line) ~= 0, true)
  local text = H.until_notified(
    child,
    ('%q: The sandbox refused to let "'):format(line),
    'sh" create "', -- bash, or sh
    '/outside/new"',
    'o allow it'
  )
  for _ = 1, 3 do
    H.eq(run(child, line) ~= 0, true)
  end
  H.wait('the count', function()
    return table.concat(lines(child), '\n'):find('(4 times in all)', 1, true)
  end)
  H.eq(#notified(child), 1)
  local value, key = text:match('add (%b"") to "([%w_]+)"')
  H.eq(value, ('"%s"'):format(world.outside))
  H.write(world.settings, H.settings({ [key] = { vim.json.decode(value) } }))
  H.eq(run(child, line), 0)
  H.eq(H.read(world.outside .. '/new'), 'x\n')
end

T['a message names some of many denials, and counts the others'] = function()
  require_denials()
  local child = H.child()
  -- More than two messages name, however a slow machine splits them.
  run(child, 'for i in 1 2 3 4 5 6 7 8 9 10 11 12; do mkdir ../outside/d$i; done')
  local text =
    H.until_notified(child, 'refused to let "mkdir" create', 'And ', ' more.', ':Sidecar denials')
  H.eq(select(2, text:gsub('refused to let', '')) <= 3, true)
  H.wait('the list', function()
    local all = table.concat(lines(child), '\n')
    return all:find('/outside/d1', 1, true) and all:find('/outside/d12', 1, true)
  end)
end

T['a limit that is reached is told once'] = function()
  -- Nothing limits root's processes without a cgroup.
  local limited = H.doctor():find('limits +user namespace, RLIMIT_NPROC') ~= nil
  local child = H.child(H.world(H.settings({ limits = { processes = 20 } })))
  run(child, [[bash -c 'for i in $(seq 60); do sleep 3 & done; wait']])
  if limited then
    H.until_notified(child, 'got no process beyond 20', '"limits.processes" sets it')
  end
  local told = 0
  for _, message in ipairs(notified(child)) do
    told = told + (message.text:find('beyond 20', 1, true) and 1 or 0)
  end
  H.eq(told, limited and 1 or 0)
end

T['on_denied ignore reports nothing'] = function()
  require_denials()
  local child = H.child(H.world(H.settings({ on_denied = 'ignore' })))
  H.eq(run(child, 'echo x >../outside/new') ~= 0, true)
  -- After the end of a later session, no report of the first can arrive.
  H.eq(run(child, 'true'), 0)
  child.cmd('sleep 600m')
  H.eq({ lines(child), notified(child) }, { { 'Nothing was refused.' }, {} })
end

T['without denials the list says so'] = function()
  local child = H.child()
  child.cmd('Sidecar denials')
  H.eq(H.text(child), 'Nothing was refused.')
end

T['changed files that run outside of the sandbox are named when a session ends'] = function()
  H.require('filesystem')
  local world = H.world()
  local child = H.child(world)
  H.terminal(child, { cmd = 'echo all: >Makefile; echo x >notes' })
  local text =
    H.until_notified(child, 'Check "Makefile"', ' before programs outside the sandbox use it.')
  H.eq(vim.fn.strchars(text) <= 100, true)
  -- The same holds for a tool.
  child.lua('require("sandbox_sidecar").run("echo x >build.rs; echo x >CMakeLists.txt"):wait()')
  H.until_notified(child, 'Check 2 changed files before programs outside the sandbox use them.')
  child.cmd('Sidecar review')
  local list = H.text(child)
  for _, name in ipairs({ 'Makefile', 'build.rs', 'CMakeLists.txt', 'created' }) do
    H.eq({ name, list:find(name, 1, true) ~= nil }, { name, true })
  end
  H.eq(list:find('/notes', 1, true), nil)
  -- The notification and the answer to closing the session say the same.
  H.eq(select(2, list:gsub('/Makefile" was created', '')), 1)
end

T['without changed files the list says so'] = function()
  local child = H.child()
  child.cmd('Sidecar review')
  H.eq(H.text(child), 'No session has changed a file that programs outside the sandbox act on.')
end

---Sends a request as the sidecar does. The answers go to _G.answers, the
---questions to _G.asked.
local function ask(child, params)
  child.lua(
    [[
    _G.answers = _G.answers or {}
    require('sandbox_sidecar.approval')
    _G.requests = (_G.requests or 0) + 1
    require('sandbox_sidecar.sidecar').requests['sandbox/requestAccess'](..., function(result)
      table.insert(_G.answers, result.decision)
    end, _G.requests)
  ]],
    {
      vim.tbl_extend('force', {
        sessionId = 's',
        access = 'read',
        target = '/etc/secret',
        process = { pid = 1, name = 'cat' },
        message = '"cat" wants to read "/etc/secret", and waits for your answer.',
        choices = { 'deny', 'once', 'session', 'project', 'user' },
      }, params or {}),
    }
  )
end

---A child whose user answers with _G.choice or, with hold, when the test calls
---_G.reply.
local function asked_child(hold, world)
  local child = H.child(world)
  child.lua(
    [[
    _G.asked, _G.hold = {}, ...
    vim.ui.select = function(choices, options, callback)
      local texts = vim.tbl_map(options.format_item, choices)
      table.insert(_G.asked, { prompt = options.prompt, texts = texts })
      _G.reply = function(text)
        for i, shown in ipairs(texts) do
          if shown == text then
            return callback(choices[i], i)
          end
        end
        callback(nil, nil)
      end
      if not _G.hold then
        _G.reply(_G.choice)
      end
    end
  ]],
    { hold or false }
  )
  return child
end

T['each decision can be made, no answer denies, and only valid decisions are offered'] = function()
  local child = asked_child()
  local texts = {
    'Do not allow',
    'Allow once',
    'Allow until the session ends',
    'Allow all of "/etc/50%" until the session ends',
    'Allow in this project (written to its settings)',
    'Allow everywhere (written to your settings)',
  }
  for i, decision in ipairs({ 'deny', 'once', 'session', 'directory', 'project', 'user' }) do
    child.lua('_G.choice = ...', { texts[i] })
    ask(child, {
      choices = { 'deny', 'once', 'session', 'directory', 'project', 'user' },
      directory = '/etc/50%',
    })
    H.until_true(child, ('#_G.answers == %d'):format(i))
    H.eq(child.lua_get('_G.answers[#_G.answers]'), decision)
  end
  H.eq(child.lua_get('_G.asked[1]'), {
    prompt = 'a session: "cat" wants to read "/etc/secret", and waits for your answer. Allow it?',
    texts = texts,
  })
  child.lua('_G.choice = nil')
  ask(child, { choices = { 'once' } })
  H.until_true(child, '#_G.answers == 7')
  H.eq(child.lua_get('_G.answers[7]'), 'deny')
  H.eq(child.lua_get('_G.asked[7].texts'), { 'Do not allow', 'Allow once' })
end

T['the setting is shown in the question'] = function()
  local child = asked_child()
  ask(child, {
    suggestion = {
      setting = 'additional_read_only_paths',
      value = '/etc/secret',
      message = 'add "/etc/secret" to "additional_read_only_paths"',
    },
  })
  H.until_true(child, '#_G.asked == 1')
  H.eq(
    child.lua_get('_G.asked[1].prompt'),
    'a session: "cat" wants to read "/etc/secret", and waits for your answer. Allow it? '
      .. '(setting: add "/etc/secret" to "additional_read_only_paths")'
  )
end

T['one question is open at a time'] = function()
  local child = asked_child(true)
  ask(child, { target = '/one' })
  ask(child, { target = '/two' })
  H.until_true(child, '#_G.asked == 1')
  child.lua('_G.reply("Allow once")')
  H.until_true(child, '#_G.asked == 2')
  child.lua('_G.reply("Do not allow")')
  H.until_true(child, '#_G.answers == 2')
  H.eq(child.lua_get('_G.answers'), { 'once', 'deny' })
end

T['a question that nobody waits for is closed, and a late answer allows nothing'] = function()
  local child = asked_child(true)
  local function withdraw(id)
    child.lua(
      [[require('sandbox_sidecar.sidecar').notifications['$/cancelRequest']({ id = ... })]],
      { id }
    )
  end
  -- As many plugins ask.
  child.lua([[
    local select = vim.ui.select
    vim.ui.select = function(...)
      vim.api.nvim_open_win(0, true, { relative = 'editor', row = 1, col = 1, width = 9, height = 2 })
      select(...)
    end
  ]])
  for _, target in ipairs({ '/one', '/two', '/three' }) do
    ask(child, { target = target })
  end
  H.until_true(child, '#_G.asked == 1')
  H.eq(child.lua_get('#vim.api.nvim_list_wins()'), 2)
  withdraw(2)
  H.eq(child.lua_get('{ #_G.asked, #_G.answers }'), { 1, 1 })
  child.lua('_G.first = _G.reply')
  withdraw(1)
  H.until_true(child, '#_G.asked == 2')
  H.eq(child.lua_get('#vim.api.nvim_list_wins()'), 2)
  child.lua('_G.first("Allow once")')
  H.until_notified(child, 'nothing was allowed: the program no longer waits')
  child.lua('_G.reply("Allow once")')
  H.until_true(child, '#_G.answers == 3')
  H.eq(child.lua_get('_G.answers'), { 'deny', 'deny', 'once' })
  withdraw(4) -- unknown
end

T['a question waits for Normal mode'] = function()
  local child = asked_child()
  child.lua('_G.choice = "Allow once"')
  H.terminal(child, { cmd = 'cat' })
  child.cmd('startinsert')
  H.until_true(child, 'vim.api.nvim_get_mode().mode == "t"')
  ask(child)
  H.until_notified(child, 'waits for your answer')
  child.type_keys('typed', '<CR>')
  H.until_text(child, 'typed\ntyped')
  H.eq(child.lua_get('{ #_G.asked, #_G.answers }'), { 0, 0 })
  child.type_keys([[<C-\><C-n>]])
  H.until_true(child, '#_G.answers == 1')
  H.eq(child.lua_get('_G.answers'), { 'once' })
end

T['an unescaped message is escaped in the question'] = function()
  local child = asked_child()
  child.lua('_G.choice = nil')
  ask(child, { message = 'x\rls wants /a\n\27[2K[y](command:z)' })
  H.until_true(child, '#_G.asked == 1')
  H.eq(
    child.lua_get('_G.asked[1].prompt'),
    [[a session: x\rls wants /a\n\x1b[2K[y]\x28command:z) Allow it?]]
  )
end

---A child whose settings ask about each access, and its directories.
local function asking()
  require_denials()
  local world = H.world(H.settings({ on_denied = 'ask' }))
  H.write(world.project .. '/.zed/settings.json', '{}')
  local child = asked_child(false, world)
  return child, world
end

T['an access is allowed once, for its session, or not at all'] = function()
  local child, world = asking()
  local line = 'cat ../outside/secret && cat ../outside/secret'
  for _, case in ipairs({
    { choice = 'Do not allow', questions = 1, exit = 1 },
    { choice = 'Allow once', questions = 2, exit = 0 },
    { choice = 'Allow until the session ends', questions = 1, exit = 0 },
    { questions = 1, exit = 1 },
  }) do
    child.lua('_G.choice, _G.asked = ..., {}', { case.choice })
    H.eq({ case.choice, run(child, line) }, { case.choice, case.exit })
    H.eq({ case.choice, child.lua_get('#_G.asked') }, { case.choice, case.questions })
  end
  local prompt = child.lua_get('_G.asked[1].prompt')
  H.eq(prompt:find(('%q: "cat" wants to read "'):format(line), 1, true), 1)
  H.eq(prompt:find(world.outside .. '/secret', 1, true) ~= nil, true)
  H.eq(prompt:find('additional_read_only_paths', 1, true) ~= nil, true)
end

T['a whole directory is allowed until the session ends'] = function()
  local child, world = asking()
  local dir = world.outside .. '/dir'
  H.write(dir .. '/file', 'file\n')
  H.write(dir .. '/deep/file', 'file\n')
  child.lua('_G.choice = ...', { ('Allow all of %q until the session ends'):format(dir) })
  H.eq(run(child, 'cat ../outside/dir/file ../outside/dir/deep/file && ls ../outside/dir'), 0)
  H.eq(child.lua_get('#_G.asked'), 1)
end

T['an access that is allowed everywhere is written to the settings, and not asked again'] = function()
  local child, world = asking()
  child.lua('_G.choice = "Allow everywhere (written to your settings)"')
  H.eq(run(child, 'cat ../outside/secret'), 0)
  H.eq(child.lua_get('#_G.asked'), 1)
  H.eq(H.read(world.settings):find('outside', 1, true) ~= nil, true)
  H.wait('a session that need not ask', function()
    child.lua('_G.asked = {}')
    return run(child, 'cat ../outside/secret') == 0 and child.lua_get('#_G.asked') == 0
  end)
end

T['a host is asked about by its name and port'] = function()
  H.require('network_hosts')
  local server = assert(vim.uv.new_tcp())
  assert(server:bind('127.0.0.1', 0))
  assert(server:listen(8, function() end))
  local port = server:getsockname().port
  local child, world = asking()
  H.write(world.settings, H.settings({ on_denied = 'ask', allow_network = false }))
  -- The name under which a session reaches this machine.
  local line = ("bash -c ': </dev/tcp/host.sandbox.internal/%d'"):format(port)
  for _, case in ipairs({
    { choice = 'Do not allow', exit = 1, questions = 1 },
    { choice = 'Allow once', exit = 0, questions = 1 },
    { choice = 'Allow everywhere (written to your settings)', exit = 0, questions = 1 },
  }) do
    child.lua('_G.choice, _G.asked = ..., {}', { case.choice })
    H.eq({ case.choice, run(child, line) }, { case.choice, case.exit })
    H.eq({ case.choice, child.lua_get('#_G.asked') }, { case.choice, case.questions })
  end
  local prompt = child.lua_get('_G.asked[1].prompt')
  local wants = ('"bash" wants to connect to "host.sandbox.internal:%d"'):format(port)
  H.eq(prompt:find(wants, 1, true) ~= nil, true)
  local entry = ('"localhost:%d"'):format(port)
  H.eq(prompt:find('add ' .. entry .. ' to "allowed_hosts"', 1, true) ~= nil, true)
  H.eq(H.read(world.settings):find(entry, 1, true) ~= nil, true)
  local connect = ('connect to "host.sandbox.internal:%d"'):format(port)
  H.until_notified(child, 'The sandbox refused to let "bash" ' .. connect)
  server:close()
end

---Runs ":Sidecar allow" and picks the first setting, then the scope. _G.asked has
---what was asked.
local function allow(child, scope)
  child.lua(
    [[
    local scope = ...
    _G.asked = {}
    vim.ui.select = function(items, options, choose)
      table.insert(_G.asked, { options.prompt, vim.tbl_map(options.format_item, items) })
      choose(#_G.asked == 1 and items[1] or scope)
    end
    vim.cmd('Sidecar allow')
  ]],
    { scope }
  )
  H.until_true(child, '#_G.asked == 2')
end

local SCOPES = {
  'For this project (in its .zed/settings.json, which you then trust)',
  'For all my projects (in your user settings)',
  'Until this editor closes (in new terminals and tools; nothing is written)',
}

T['a refusal is allowed by picking it, and the settings keep their comments'] = function()
  require_denials()
  local world = H.world()
  local child = H.child(world)
  H.write(world.settings, '// mine\n' .. H.read(world.settings))
  H.eq(run(child, 'echo x >../outside/new') ~= 0, true)
  H.until_notified(child, 'o allow it')
  allow(child, 'user')
  H.until_notified(child, 'was written', 'It applies to new terminals')
  H.eq(child.lua_get('_G.asked[1][2][1]'):find(world.outside, 1, true) ~= nil, true)
  H.eq(child.lua_get('_G.asked[2]'), { 'Allow it:', SCOPES })
  H.eq(H.read(world.settings):find('// mine', 1, true), 1)
  H.eq(run(child, 'echo x >../outside/new'), 0)
end

T['a refusal is allowed until the editor closes, and nothing is written'] = function()
  require_denials()
  local world = H.world()
  local child = H.child(world)
  local before = H.read(world.settings)
  H.eq(run(child, 'echo x >../outside/new') ~= 0, true)
  H.until_notified(child, 'o allow it')
  allow(child, 'window')
  H.until_notified(child, 'allowed in new terminals and tools until this editor closes.')
  H.eq(run(child, 'echo x >../outside/new'), 0)
  H.eq(H.read(world.settings), before)
  H.eq(vim.fn.filereadable(world.project .. '/.zed/settings.json'), 0)
  -- Another sidecar knows nothing of it.
  local pid = child.lua_get('require("sandbox_sidecar.sidecar").pid()')
  child.cmd('Sidecar restart')
  local ready = [[(function()
    local sidecar = require('sandbox_sidecar.sidecar')
    return sidecar.initialize_result() ~= nil and sidecar.pid() ~= %d
  end)()]]
  H.until_true(child, ready:format(pid), 'another sidecar')
  H.eq(run(child, 'echo x >../outside/other') > 0, true)
end

T['until the editor closes is no choice for sessions that read the settings themselves'] = function()
  local child = H.child()
  child.lua([[
    local sidecar = require('sandbox_sidecar.sidecar')
    require('sandbox_sidecar.denials')
    sidecar.adopt('shell', 'sh', '/project')
    _G.deny = function(session, setting)
      sidecar.notifications['sandbox/denied']({
        sessionId = session,
        access = 'read',
        target = setting .. session,
        message = 'refused',
        count = 1,
        suggestion = { setting = setting, value = '/x', message = 'add "/x"' },
      })
    end
  ]])
  local shorter = vim.list_slice(SCOPES, 1, 2)
  for _, case in ipairs({
    { 'shell', 'additional_read_only_paths', shorter },
    { 'ours', 'additional_read_only_paths', SCOPES },
    { 'ours', 'tool.toolchains', SCOPES },
    { 'ours', 'allowed_hosts', SCOPES },
    { 'ours', 'allowed_unix_sockets', shorter },
    { 'ours', 'allow_network', shorter },
  }) do
    child.lua('_G.deny(...)', { case[1], case[2] })
    allow(child, nil)
    H.eq({ case[2], child.lua_get('_G.asked[2][2]') }, { case[2], case[3] })
  end
end

T['a start-up file that was refused is listed, and not offered'] = function()
  require_denials()
  local world = H.world()
  for _, name in ipairs({ '.bashrc', '.gitconfig' }) do
    H.write(world.home .. '/' .. name, '')
  end
  local child = H.child(world)
  run(child, 'echo x >>~/.bashrc; echo x >>~/.gitconfig; cat ../outside/secret')
  H.wait('the list', function()
    local text = table.concat(lines(child), '\n')
    return text:find('.bashrc', 1, true)
      and text:find('.gitconfig', 1, true)
      and text:find('secret', 1, true)
  end)
  child.lua([[
    vim.ui.select = function(items, options)
      _G.offered = table.concat(vim.tbl_map(options.format_item, items), '\n')
    end
  ]])
  child.cmd('Sidecar allow')
  local offered = H.until_true(child, '_G.offered')
  -- Control: what is no start-up file is offered.
  H.eq(offered:find('/outside', 1, true) ~= nil, true)
  H.eq({ offered:find('bashrc', 1, true), offered:find('gitconfig', 1, true) }, {})
end

T['nothing to allow is said, and no choice writes nothing'] = function()
  require_denials()
  local world = H.world()
  local child = H.child(world)
  child.cmd('Sidecar allow')
  H.until_notified(child, 'nothing was refused that a setting could allow')
  local before = H.read(world.settings)
  run(child, 'echo x >../outside/new')
  H.until_notified(child, 'o allow it')
  child.lua([[
    vim.ui.select = function(_, _, choose) choose(nil) end
    vim.cmd('Sidecar allow')
  ]])
  H.eq(H.read(world.settings), before)
end

T['the result of a tool has its denials'] = function()
  require_denials()
  local world = H.world()
  local child = H.child(world)
  local denials = child.lua_get(
    'require("sandbox_sidecar").run(...):wait().denials',
    { 'echo x >../outside/new' }
  )
  H.eq(#denials, 1)
  H.eq(denials[1].target, world.outside .. '/new')
  H.eq(denials[1].suggestion ~= nil, true)
  H.eq(child.lua_get('require("sandbox_sidecar").run("true"):wait().denials'), {})
end

return T
