local H = require('harness')

local T = H.set()

local NAMES = {
  'shell',
  'shellcmdflag',
  'shellquote',
  'shellxquote',
  'shellxescape',
  'shellredir',
  'shellpipe',
  'shelltemp',
  'makeef',
}

local function options(child)
  return child.lua(
    [[
    local values = { SHELL = vim.env.SHELL }
    for _, name in ipairs(...) do
      values[name] = vim.go[name]
    end
    return values
  ]],
    { NAMES }
  )
end

---The ways in which an editor runs a command line. Each writes a file.
local WAYS = {
  bang = [[vim.cmd('silent !' .. vim.fn.escape(LINE, '!#%'))]],
  system = [[vim.fn.system(LINE)]],
  filter = [[
    vim.api.nvim_buf_set_lines(0, 0, -1, false, { 'text' })
    vim.cmd('silent %!cat; ' .. vim.fn.escape(LINE, '!#%'))
    TEXT = vim.api.nvim_buf_get_lines(0, 0, -1, false)[1]
  ]],
  read = [[vim.cmd('silent read !' .. vim.fn.escape(LINE, '!#%'))]],
  job = [[vim.fn.jobwait({ vim.fn.jobstart(LINE) })]],
  agent = [[vim.system({ 'sh', '-c', '"$SHELL" -c "$0"', LINE }):wait()]],
  terminal = [[vim.cmd('terminal ' ..  vim.fn.escape(LINE, '!#%'))]],
}

---Runs a line in a way, and returns whether it wrote outside of the project.
local function writes_outside(child, way)
  local inside, outside = child.world.project .. '/in', child.world.outside .. '/out'
  local line = ('echo x > %s; echo y > %s'):format(outside, inside)
  child.cmd('enew!')
  child.lua('LINE = ...; ' .. WAYS[way], { line })
  H.wait(way .. ' to run', function()
    return H.read(inside) == 'y\n'
  end)
  local wrote = H.read(outside) ~= nil
  os.remove(inside)
  os.remove(outside)
  return wrote
end

T['everything that uses the shell is sandboxed, and after the bang it is not'] = function()
  local child = H.child()
  local before = options(child)
  for way in pairs(WAYS) do
    H.eq({ way, writes_outside(child, way) }, { way, true })
  end
  child.cmd('Sidecar confine')
  H.until_notified(child, ':terminal, :! and jobs with a shell are sandboxed')
  for way in pairs(WAYS) do
    H.eq({ way, writes_outside(child, way) }, { way, false })
  end
  H.eq(child.lua_get('TEXT'), 'text')
  child.cmd('Sidecar confine')
  H.until_notified(child, 'sandboxed already')
  child.cmd('Sidecar! confine')
  H.until_notified(child, 'what it starts is not sandboxed')
  H.eq(options(child), before)
  H.eq(writes_outside(child, 'system'), true)
  child.cmd('Sidecar! confine')
  H.until_notified(child, 'was not changed')
end

T['refusals are notified and listed, and not mixed with output'] = function()
  local child = H.child()
  child.cmd('Sidecar confine')
  local line = ('cat %s/secret; echo "done [$SANDBOX_WINDOW]"'):format(child.world.outside)
  local out = child.fn.system(line)
  -- A session does not have the variable.
  H.eq({ out:match('sandbox%-sidecar') or 'none', out:match('done.*') }, { 'none', 'done []\n' })
  H.until_notified(child, 'The sandbox refused', 'secret')
  H.eq(#child.lua_get([[require('sandbox_sidecar.denials').lines()]]) > 0, true)
  -- So is what was written that programs outside act on.
  child.fn.system('echo x > Makefile')
  H.until_notified(child, 'Makefile')
end

T['a terminal has its state, and is stale after a change of the settings'] = function()
  local child = H.child()
  child.cmd('Sidecar confine')
  child.cmd('terminal')
  H.until_true(child, 'vim.b.sandbox_sidecar ~= nil')
  local state = child.lua_get('vim.b.sandbox_sidecar')
  H.eq({ state.running, state.stale, state.sandbox == 'off' }, { true, false, false })
  H.write(child.world.settings, H.settings({ allow_network = false }))
  H.until_notified(child, '1 terminal still uses old settings')
  H.eq(child.lua_get('vim.b.sandbox_sidecar.stale'), true)
  child.lua([[vim.fn.chansend(vim.b.terminal_job_id, 'exit 3\n')]])
  H.until_true(child, 'vim.b.sandbox_sidecar.exit_code == 3')
end

---A child that is confined and asks.
local function asking()
  local world = H.world(H.settings({ on_denied = 'ask' }))
  local child = H.child(world)
  child.lua([[
    vim.ui.select = function(items, _, choose)
      _G.asked = (_G.asked or 0) + 1
      choose(items[2])
    end
  ]])
  child.cmd('Sidecar confine')
  return child
end

T['a job of a shell asks the user'] = function()
  local child = asking()
  child.lua(
    [[
    _G.text = {}
    vim.fn.jobstart(..., { stdout_buffered = true, on_stdout = function(_, lines) _G.text = lines end })
  ]],
    { ('cat %s/secret'):format(child.world.outside) }
  )
  H.until_true(child, '_G.text[1] ~= nil and _G.text[1] ~= ""')
  H.eq(child.lua_get('_G.asked'), 1)
end

T['a command that holds the editor is refused, and does not wait'] = function()
  local child = asking()
  local before = vim.uv.now()
  local out = child.fn.system(('cat %s/secret; echo done'):format(child.world.outside))
  vim.uv.update_time()
  H.eq(out:match('Permission denied.*done') ~= nil, true)
  H.eq(vim.uv.now() - before < 30 * 1000, true) -- the sidecar waits for a minute
  H.eq(child.lua_get('_G.asked or 0'), 0)
end

T['sandboxed terminals start as before'] = function()
  local child = H.child()
  child.lua([[vim.env.SHELL, vim.o.shell = '/bin/bash', '/bin/bash']])
  child.cmd('Sidecar confine')
  for _, command in ipairs({ 'Sidecar terminal', 'Sidecar exec' }) do
    child.cmd(command)
    H.wait('the shell', function()
      return H.text(child):find('[$#] *$')
    end)
    H.type_line(child, 'echo "in<$SHELL>"')
    H.until_text(child, 'in</bin/bash>')
    child.cmd('stopinsert')
  end
end

T['make finds errors, and leaves no file'] = function()
  local child = H.child()
  child.cmd('Sidecar confine')
  child.lua([[
    vim.o.makeprg = 'echo file.c:3: wrong'
    vim.o.errorformat = '%f:%l: %m'
    vim.cmd('silent make!')
  ]])
  H.eq(child.lua_get('vim.fn.getqflist()[1].lnum'), 3)
  H.eq(vim.fn.glob(child.world.project .. '/.make-errors*'), '')
end

T['what the user has changed since stays'] = function()
  local child = H.child()
  child.lua([[vim.o.shellredir = '&>%s']])
  local before = options(child)
  child.cmd('Sidecar confine')
  child.lua([[vim.o.shellpipe = '>']])
  child.cmd('Sidecar! confine')
  H.until_notified(child, 'except what was changed since: shellpipe')
  before.shellpipe = '>'
  H.eq(options(child), before)
end

T['a shell with arguments, or with a space in its path, has a link'] = function()
  for _, shell in ipairs({ '/bin/bash --norc', '"/odd place/fish" -l', 'unknown-shell' }) do
    local child = H.child()
    child.lua('vim.o.shell = ...', { shell })
    child.cmd('Sidecar confine')
    local name = vim.fs.basename(child.lua_get('vim.o.shell'))
    H.eq({ shell, name }, { shell, shell:match('bash') or shell:match('fish') or 'sandbox-sh' })
    child.stop()
  end
end

T['nothing changes if the links cannot be made'] = function()
  local world = H.world()
  local child = H.child(world)
  H.write(world.home .. '/.local/share/sandbox-sidecar/shells/bash', 'not a link')
  local before = options(child)
  child.cmd('Sidecar confine')
  H.until_notified(child, 'a file that is not a link is in the way')
  H.eq(options(child), before)
end

T['settings of another place are refused'] = function()
  local child = H.child(nil, { setup = { settings_path = '/elsewhere.json' } })
  child.cmd('Sidecar confine')
  H.until_notified(child, 'shells do not know the option "settings_path"')
end

T['the health check counts the terminals'] = function()
  local child = H.child()
  child.cmd('terminal sleep 100')
  child.cmd('Sidecar confine')
  child.cmd('terminal sleep 100')
  H.eq(child.lua([[return { require('sandbox_sidecar.confine').status() }]]), {
    'the shell of :terminal and :! is sandboxed (open terminals: 1 of 2)',
    false,
  })
end

return T
