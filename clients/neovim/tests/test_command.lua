local H = require('harness')

local T = H.set()

local function completions(child, line)
  return child.fn.getcompletion(line, 'cmdline')
end

T['completion offers the subcommands and their arguments'] = function()
  local child = H.child()
  H.eq(completions(child, 'Sidecar '), {
    'allow',
    'audit',
    'close',
    'confine',
    'denials',
    'doctor',
    'enable',
    'end',
    'exec',
    'explain',
    'log',
    'policy',
    'port',
    'reopen',
    'restart',
    'review',
    'settings',
    'terminal',
    'trust',
    'untrust',
  })
  H.eq(completions(child, 'Sidecar pol'), { 'policy' })
  H.eq(completions(child, 'vertical Sidecar te'), { 'terminal' })
  H.eq(completions(child, 'Sidecar policy '), { 'terminal', 'tool' })
  H.eq(completions(child, 'Sidecar policy to'), { 'tool' })
  H.eq(completions(child, 'Sidecar settings '), { 'project', 'user' })
  H.eq(completions(child, 'Sidecar policy tool '), {})
  H.eq(completions(child, 'Sidecar explain con'), { 'connect', 'connect_unix' })
  H.eq(completions(child, 'Sidecar explain read /et'), { '/etc/' })
  H.eq(completions(child, 'Sidecar trust /et'), { '/etc/' })
  H.eq(completions(child, 'Sidecar restart '), {})
  H.eq(vim.tbl_contains(completions(child, 'Sidecar terminal tru'), 'true'), true)
  H.eq(completions(child, 'Sidecar! cl'), { 'close' })
end

T['invalid commands are reported, with the valid ones'] = function()
  local child = H.child()
  child.cmd('Sidecar dance')
  H.eq(
    child
      .lua_get('_G.notified[1].text')
      :match('unknown subcommand "dance"%. See ":help sandbox%-sidecar%-commands"') ~= nil,
    true
  )
  child.cmd('Sidecar policy tool more')
  H.eq(child.lua_get('_G.notified[2].text'), 'Sandbox: usage: :Sidecar policy [terminal|tool]')
  child.cmd('Sidecar settings somewhere')
  H.eq(child.lua_get('_G.notified[3].text'):match('expected "user" or "project"') ~= nil, true)
  child.cmd('Sidecar close')
  H.eq(child.lua_get('_G.notified[4].text'):match('not a sandboxed terminal') ~= nil, true)
end

T['port shows a server of a session, as long as that lives'] = function()
  H.require('network')
  local child = H.child(H.world(H.settings({ allow_network = false })))
  local function connects(port)
    local client, done = vim.uv.new_tcp(), nil
    client:connect('127.0.0.1', port, function(err)
      done = err or 'connected'
    end)
    H.wait('an answer', function()
      return done
    end)
    client:close()
    return done == 'connected'
  end
  local server = vim.uv.new_tcp()
  server:bind('127.0.0.1', 0)
  local port = server:getsockname().port
  server:listen(1, function() end)
  child.cmd('Sidecar port 3000')
  H.until_notified(child, 'no sandboxed session runs')
  child.cmd('Sidecar port nowhere')
  H.until_notified(child, 'usage: :Sidecar port {port} [local port]')
  child.lua('vim.ui.open = function(url) _G.opened = url end')
  child.cmd(
    [[Sidecar terminal /usr/bin/python3 -u -c 'import http.server as h; s = h.HTTPServer(("127.0.0.1", 3000),]]
      .. [[ h.SimpleHTTPRequestHandler); print("ser" + "ving", flush=True); s.serve_forever()']]
  )
  H.until_text(child, 'serving')
  child.cmd(('Sidecar port 3000 %d'):format(port))
  H.until_notified(child, 'another program uses it')
  local closed = false
  server:close(function()
    closed = true
  end)
  H.wait('the other program closes it', function()
    return closed
  end)
  child.cmd(('Sidecar! port 3000 %d'):format(port))
  H.until_notified(child, ('port 3000 of the session is at 127.0.0.1:%d'):format(port))
  H.eq(child.lua_get('_G.opened'), ('http://127.0.0.1:%d'):format(port))
  H.eq(connects(port), true)
  child.cmd('new')
  child.lua('_G.notified = {}')
  child.cmd(('Sidecar port 3000 %d'):format(port)) -- of the only session
  H.until_notified(child, 'port 3000 of the session is at')
  child.cmd('Sidecar! close')
  H.wait('the port is closed', function()
    return not connects(port)
  end)
  -- A server that a tool has left in the background is shown, too.
  child.lua([[
    require('sandbox_sidecar').run(
      "/usr/bin/python3 -c 'import socket; s = socket.create_server((\"127.0.0.1\", 3001)); open(\"up\", \"w\"); s.accept(); s.accept()' "
        .. '& until test -e up; do :; done', {}, function(result)
        _G.left = result.background
      end)
  ]])
  H.until_true(child, '_G.left == 1', 'a tool leaves a server')
  child.cmd(('Sidecar port 3001 %d'):format(port))
  H.until_notified(child, 'port 3001 of the session is at')
  H.eq(connects(port), true)
end

T['terminal takes a command line as it is'] = function()
  local child = H.child()
  child.cmd([[vertical Sidecar terminal echo "two  words" | tr a-z A-Z; exit 3]])
  H.until_text(child, '[Process exited 3]')
  H.eq(H.text(child):find('TWO  WORDS', 1, true) ~= nil, true)
end

T['exec runs sandboxed in a terminal of the editor, and TermClose has the exit code'] = function()
  H.require('filesystem')
  for _, case in ipairs({ { H.settings(), 'Permission denied' }, { H.settings_off, 'the secret' } }) do
    local world = H.world(case[1])
    local child = H.child(world)
    child.lua([[
      vim.api.nvim_create_autocmd('TermClose', {
        callback = function()
          _G.status = vim.v.event.status
        end,
      })
    ]])
    -- The kernel may drop what a terminal's first process wrote just before it
    -- ended, so this one waits until its text was seen.
    child.cmd('botright Sidecar exec cat ../outside/secret; read line; exit 6')
    H.until_text(child, case[2])
    child.api.nvim_chan_send(child.bo.channel, '\r')
    H.until_true(child, '_G.status ~= nil')
    H.eq(child.lua_get('_G.status'), 6)
    H.eq(child.bo.buftype, 'terminal')
    H.eq(#child.api.nvim_list_wins(), 2)
    child.stop()
  end
end

T['exec in a terminal of the editor sees its size change'] = function()
  local child = H.child()
  child.cmd('Sidecar exec ' .. H.sizes)
  H.until_text(child, '22 80')
  local buf = child.api.nvim_get_current_buf()
  child.cmd('vsplit | enew')
  H.until_text(child, '22 39', buf)
end

T['wrap returns a command line without ambiguity'] = function()
  H.require('filesystem')
  local world = H.world()
  local child = H.child(world)
  H.eq(child.lua_get('require("sandbox_sidecar").wrap({ "claude", "--flag", "-x" })'), {
    H.binary,
    'exec',
    '--kind',
    'tool',
    '--project',
    world.project,
    '--',
    'claude',
    '--flag',
    '-x',
  })
  local job = child.lua_get(
    [[(function(outside)
    local argv = require('sandbox_sidecar').wrap({ 'sh', '-c', 'cat "$1"; exit 8', 'sh', outside .. '/secret' })
    local done = vim.system(argv, { text = true }):wait()
    return { done.code, done.stdout, done.stderr:match('Permission denied') }
  end)(...)]],
    { world.outside }
  )
  H.eq(job, { 8, '', 'Permission denied' })
  H.eq(
    child.lua_get([[(function()
    local line = require('sandbox_sidecar.wrap').line({ 'printf', '%s|', "it's", '$HOME' })
    return vim.fn.system(line .. ' 2>/dev/null') -- diagnostics of settings go there
  end)()]]),
    "it's|$HOME|"
  )
end

T['wrap raises an error without a sidecar or a command'] = function()
  local child = H.child(nil, { setup = { binary = '/nonexistent/sidecar' } })
  H.eq(child.lua_get('pcall(require("sandbox_sidecar").wrap, { "true" })'), false)
  H.eq(child.lua_get('pcall(require("sandbox_sidecar").wrap, {})'), false)
  H.eq(child.lua_get('pcall(require("sandbox_sidecar").wrap, "true")'), false)
end

T['policy shows the policies of both kinds'] = function()
  local world = H.world(H.settings({ apply_to = 'tool' }))
  local child = H.child(world)
  child.cmd('Sidecar policy tool')
  H.until_text(child, 'read,write,execute')
  H.eq(H.text(child):find(world.project, 1, true) ~= nil, true)
  H.eq(
    { child.bo.buftype, child.bo.modifiable, child.bo.filetype },
    { 'nofile', false, 'sidecar-output' }
  )
  child.cmd('quit')
  child.cmd('Sidecar policy')
  H.until_text(child, 'is not sandboxed')
end

T['explain shows the decision and the setting'] = function()
  local child = H.child()
  child.cmd('Sidecar explain read ../outside/secret')
  H.until_text(child, 'refused')
  H.until_text(child, 'additional_read_only_paths')
  child.cmd('quit')
  child.cmd('Sidecar explain write ' .. child.world.project)
  H.until_text(child, 'allowed')
  child.cmd('Sidecar explain read')
  H.eq(child.lua_get('_G.notified[1].text'):match('usage: :Sidecar explain') ~= nil, true)
end

T['audit shows what was noted of this project'] = function()
  H.require('filesystem')
  local world = H.world(H.settings({ audit = 'file' }))
  local child = H.child(world)
  child.cmd('Sidecar audit')
  H.until_text(child, 'nothing was noted')
  child.cmd('quit')
  H.terminal(child, { cmd = 'echo of this project' })
  -- What the command shows does not change later.
  H.wait('the end in the audit trail', function()
    local trail = vim.fn.glob(world.home .. '/.local/state/sandbox-sidecar/audit/*.jsonl')
    return (H.read(trail) or ''):find('"exit_code":0', 1, true)
  end)
  child.cmd('tab Sidecar audit 1h')
  H.until_text(child, 'echo of this project')
  H.until_text(child, 'ended: exit status 0')
  child.cmd('quit')
  child.cmd('Sidecar audit never')
  H.until_text(child, 'expected a duration')
end

T['doctor shows what the machine can enforce'] = function()
  local child = H.child()
  child.cmd('tab Sidecar doctor')
  H.until_text(child, 'filesystem')
  H.eq(#child.api.nvim_list_tabpages(), 2)
end

T['settings opens the effective files'] = function()
  local world = H.world()
  local child = H.child(world)
  child.cmd('Sidecar settings')
  H.eq(child.api.nvim_buf_get_name(0), world.settings)
  H.eq(child.bo.filetype, 'jsonc')
  child.cmd('vertical Sidecar settings project')
  H.eq(child.api.nvim_buf_get_name(0), world.project .. '/.zed/settings.json')
  H.eq(child.lua_get('vim.fn.winlayout()[1]'), 'row')
  -- The file can be written at once.
  child.api.nvim_buf_set_lines(0, 0, -1, false, { '{}' })
  child.cmd('write')
  local other = H.child(nil, { setup = { settings_path = world.root .. '/other.json' } })
  other.cmd('Sidecar settings')
  H.eq(other.api.nvim_buf_get_name(0), world.root .. '/other.json')
end

T['the option settings_path applies to terminals, tools and exec'] = function()
  H.require('filesystem')
  local world = H.world(H.settings_off)
  local path = world.root .. '/strict.json'
  H.write(path, H.settings())
  local child = H.child(world, { setup = { settings_path = path } })
  local cat = 'cat ../outside/secret'
  H.terminal(child, { cmd = cat })
  H.until_text(child, 'Permission denied')
  H.eq(child.lua_get('require("sandbox_sidecar").run(...):wait().exit_code', { cat }), 1)
  child.cmd('tab Sidecar exec ' .. cat .. '; read line')
  H.until_text(child, 'Permission denied')
end

T['log opens the log'] = function()
  local child = H.child(nil, { setup = { log_level = 'debug' } })
  H.terminal(child, { cmd = 'true' })
  H.until_true(child, '_G.t.status ~= nil')
  child.cmd('Sidecar log')
  H.until_text(child, 'started ' .. H.binary)
  H.eq(child.api.nvim_buf_get_name(0), child.fn.stdpath('log') .. '/sandbox-sidecar.log')
end

T['close ends the terminal of the buffer, and with a bang all'] = function()
  local mark = H.unique()
  local child = H.child()
  local function open()
    return H.terminal(child, { cmd = 'exec sleep ' .. mark, mods = 'botright' })
  end
  local first = open()
  local second = open()
  local third = open()
  child.cmd('Sidecar close')
  H.wait('one to end', function()
    return H.alive('sleep\0' .. mark) == 2
  end)
  H.eq(
    child.lua_get('vim.tbl_map(vim.api.nvim_buf_is_valid, { ... })', { first, second, third }),
    { true, true, false }
  )
  child.cmd('Sidecar! close')
  H.wait('all to end', function()
    return H.alive('sleep\0' .. mark) == 0
  end)
end

return T
