local H = require('harness')

local T = H.set()

---Runs a command in the child and waits for its result.
local function run(child, cmd, options)
  child.lua(
    [[
    _G.result = nil
    _G.job = require('sandbox_sidecar').run(...)
    _G.job.on_done = function(result)
      _G.result = result
    end
  ]],
    { cmd, options or vim.empty_dict() }
  )
  H.until_true(child, '_G.result ~= nil', 'the result of ' .. vim.inspect(cmd))
  return child.lua_get('_G.result')
end

T['the result has output of both streams as text, and the exit code'] = function()
  local child = H.child()
  local result = run(child, [[echo out; echo err >&2; printf '\033[31mred\033[0m\n'; exit 3]])
  H.eq({ result.output, result.exit_code, result.signal, result.killed, result.truncated }, {
    'out\nerr\nred\n',
    3,
    nil,
    false,
    false,
  })
  local list = run(child, { 'printf', '%s|', 'a b', '$HOME', "it's" })
  H.eq(list.output, "a b|$HOME|it's|")
  local raw = run(child, [[printf '\033[31mred\033[0m\n']], { raw = true })
  H.eq(raw.output, '\27[31mred\27[0m\r\n')
  local killed = run(child, 'kill -KILL $$')
  H.eq({ killed.exit_code, killed.signal }, { nil, 'SIGKILL' })
end

T['a tool is sandboxed, unless the sandbox is off'] = function()
  H.require('filesystem')
  for _, case in ipairs({
    { settings = H.settings(), read = false, applied = true },
    { settings = H.settings({ apply_to = 'terminal' }), read = true, applied = false },
    { settings = H.settings_off, read = true, applied = false },
  }) do
    local world = H.world(case.settings)
    local child = H.child(world)
    local result = run(child, ('cat %s/secret'):format(world.outside))
    H.eq(result.output == 'the secret\n', case.read)
    H.eq(result.exit_code == 0, case.read)
    H.eq(result.sandbox.applied, case.applied)
    child.stop()
  end
end

T['standard input is empty, and no pager waits for a key'] = function()
  local world = H.world(H.settings({ additional_read_only_paths = { '/etc' } }))
  local child = H.child(world)
  H.eq(run(child, 'cat; echo end').output, 'end\n')
  H.eq(run(child, { 'cat' }).output, '')
  -- git starts a pager itself if its output is longer than its terminal.
  local script =
    'git init -q r && cd r && for i in $(seq 80); do git -c user.name=a -c user.email=a@b commit -q --allow-empty -m "commit $i"; done'
  H.eq(run(child, script).exit_code, 0)
  local _, lines =
    run(child, { 'git', '-C', 'r', 'log', '--oneline' }).output:gsub('commit %d+\n', '')
  H.eq(lines, 80)
end

T['a time limit kills everything'] = function()
  local mark = H.unique()
  local child = H.child()
  local result =
    run(child, ('echo begun; sleep %s & sleep %s'):format(mark, mark), { timeout = 1500 })
  H.eq({ result.timed_out, result.killed, result.exit_code ~= 0 }, { true, true, true })
  H.eq(H.alive('sleep\0' .. mark), 0)
end

T['tools share their processes, until the user ends them'] = function()
  local mark = H.unique()
  local child = H.child()
  child.cmd('Sidecar end')
  H.until_notified(child, 'no agent has left a process running')
  local left = run(child, ('sleep %s & echo $! >left'):format(mark))
  H.eq(left.background, 1)
  H.eq(run(child, 'kill -0 $(cat left) && echo reached').output, 'reached\n')
  for _, group in ipairs({ 'other', 'own' }) do
    H.eq(run(child, 'kill -0 $(cat left)', { group = group }).exit_code, 1)
  end
  H.eq(H.alive('sleep\0' .. mark), 1)
  child.lua('vim.ui.select = function(items, options, choose) choose(items[1]) end')
  child.cmd('Sidecar end')
  H.until_notified(child, 'all processes of "agent" have ended')
  H.eq(H.alive('sleep\0' .. mark), 0)
end

T['kill ends a tool, also one that is just starting'] = function()
  local mark = H.unique()
  local child = H.child()
  child.lua(
    [[
    local job = require('sandbox_sidecar').run('sleep ' .. ..., {}, function(result)
      _G.result = result
    end)
    job:kill()
  ]],
    { mark }
  )
  H.until_true(child, '_G.result ~= nil')
  -- Not the status: a shell may see its program killed, and exit by itself.
  H.eq(child.lua_get('{ _G.result.killed, _G.result.timed_out }'), { true, false })
  H.eq(H.alive('sleep\0' .. mark), 0)
end

T['wait blocks until the end, or until its time limit'] = function()
  local mark = H.unique()
  local child = H.child()
  local result = child.lua_get('require("sandbox_sidecar").run("exit 4"):wait().exit_code')
  H.eq(result, 4)
  local limited =
    child.lua_get('require("sandbox_sidecar").run("sleep " .. ...):wait(1500).timed_out', { mark })
  H.eq(limited, true)
  H.eq(H.alive('sleep\0' .. mark), 0)
end

T['output beyond the limit is cut at the front, between characters'] = function()
  local child = H.child()
  local result =
    run(child, 'for i in $(seq 4000); do echo "ä€ line $i"; done', { max_bytes = 1000 })
  H.eq(result.truncated, true)
  H.eq(#result.output <= 1000, true)
  H.eq(result.output:match('line (%d+)\n$'), '4000')
  H.eq(pcall(vim.str_utfindex, result.output), true)
  H.eq(vim.fn.strchars(result.output) > 0 and result.output:find('^[\128-\191]'), nil)
end

T['ten megabytes come through whole, and the editor stays awake'] = function()
  local child = H.child()
  local result = run(
    child,
    [[head -c 7500000 /dev/zero | tr '\0' x | fold -w 75; echo]],
    { max_bytes = 20000000 }
  )
  H.eq(#result.output:gsub('\n', ''), 7500000)
end

T['twenty tools at once do not mix'] = function()
  local child = H.child()
  child.lua([[
    _G.results, _G.count = {}, 0
    for i = 1, 20 do
      require('sandbox_sidecar').run(('for i in $(seq 50); do echo %d; done; exit %d'):format(i, i), {}, function(result)
        _G.results[i] = { result.output == (i .. '\n'):rep(50), result.exit_code }
        _G.count = _G.count + 1
      end)
    end
  ]])
  H.until_true(child, '_G.count == 20')
  local want = {}
  for i = 1, 20 do
    want[i] = { true, i }
  end
  H.eq(child.lua_get('_G.results'), want)
  -- They share one sidecar.
  H.eq(#child.lua_get('vim.api.nvim_get_proc_children(vim.fn.getpid())'), 1)
end

T['a tool that cannot start says why'] = function()
  local world = H.world()
  local child = H.child(world)
  H.eq(run(child, { '/nonexistent/program' }).exit_code, 127)
  local gone = run(child, 'true', { cwd = world.root .. '/gone' })
  H.eq({ gone.exit_code, gone.error.code, gone.output }, { nil, -32011, '' })
  local broken = H.child(nil, { setup = { binary = '/nonexistent/sidecar' } })
  H.eq(run(broken, 'true').error.message:match('/nonexistent/sidecar') ~= nil, true)
end

T['tools do not start with invalid settings'] = function()
  local child = H.child(H.world('{ "terminal": '))
  H.eq(run(child, 'true').error.code, -32013)
end

T['a sidecar that is killed ends its tools with an error'] = function()
  local mark = H.unique()
  local child = H.child()
  child.lua(
    [[
    require('sandbox_sidecar').run('echo begun; sleep ' .. ..., {
      on_output = function()
        _G.begun = true
      end,
    }, function(result)
      _G.result = result
    end)
  ]],
    { mark }
  )
  H.until_true(child, '_G.begun')
  vim.uv.kill(child.lua_get('require("sandbox_sidecar.sidecar").pid()'), 'sigkill')
  H.until_true(child, '_G.result ~= nil')
  H.eq(child.lua_get('_G.result.error.message'), 'the sidecar ended (killed by signal 9)')
  H.eq(child.lua_get('_G.result.output'), 'begun\n')
end

return T
