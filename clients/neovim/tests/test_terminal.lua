local H = require('harness')

local T = H.set()

-- A shell with the same prompt for every user.
local SHELL = "PS1='> ' exec /bin/sh"

T['open, type, read, end'] = function()
  local child = H.child()
  local buf = H.terminal(child, { cmd = SHELL, mods = 'botright' })
  H.eq(child.bo.buftype, 'terminal')
  H.eq(child.bo.filetype, 'sidecar-terminal')
  H.until_text(child, '>')
  H.type_line(child, 'printf \'zw\\303\\266lf %s\\n\' "$((6 * 7))"')
  H.until_text(child, 'zwölf 42')
  H.type_line(child, 'exit 7')
  H.until_text(child, '[Process exited 7]')
  H.until_true(child, '_G.t.status ~= nil')
  H.eq(child.lua_get('vim.b[...].sandbox_sidecar.exit_code', { buf }), 7)
  H.eq(child.lua_get('vim.b[...].sandbox_sidecar.running', { buf }), false)
  -- As in the editor's own terminal, a key in Terminal-mode closes the buffer.
  child.type_keys('x')
  H.until_true(child, ('not vim.api.nvim_buf_is_valid(%d)'):format(buf))
end

T['the screen matches its reference'] = function()
  local child = H.child()
  H.terminal(child, { cmd = "PS1='> ' exec /bin/sh", mods = 'belowright' })
  H.until_text(child, '>')
  H.type_line(child, 'echo "colour: $(printf "\\033[31mred\\033[0m")"')
  H.until_text(child, 'colour: red')
  child.type_keys([[<C-\><C-n>]])
  -- Only the command in the name differs between runs.
  H.screenshot(child, 'terminal')
  H.type_line(child, 'exit 3')
  H.until_text(child, '[Process exited 3]')
  child.type_keys([[<C-\><C-n>]])
  H.screenshot(child, 'exited')
end

T['a file without a grant is denied, unless the sandbox is off'] = function()
  H.require('filesystem')
  for _, case in ipairs({
    { settings = H.settings(), read = false, status = 'full' },
    { settings = H.settings_off, read = true, status = 'off' },
  }) do
    local world = H.world(case.settings)
    local child = H.child(world)
    local buf = H.terminal(child, {
      cmd = 'cat ../outside/secret; echo x >../outside/new; echo mine >mine; cat mine',
    })
    H.until_true(child, '_G.t.status ~= nil')
    local text = H.until_text(child, 'mine', buf)
    H.eq(text:find('the secret', 1, true) ~= nil, case.read)
    H.eq(text:find('Permission denied', 1, true) == nil, case.read)
    H.eq(H.read(world.outside .. '/new') ~= nil, case.read)
    H.eq(H.read(world.project .. '/mine'), 'mine\n')
    local status = child.lua_get('vim.b[...].sandbox_sidecar.sandbox', { buf })
    -- The status is "degraded" if the machine lacks another protection.
    H.eq(status == case.status or (case.status == 'full' and status == 'degraded'), true)
    child.stop()
  end
end

T['programs get the variables of the options, not those of the editor'] = function()
  local world = H.world(H.settings({ allowed_env_vars = { 'PATH', 'HOME', 'MINE', 'ALSO' } }))
  vim.env.SECRET_TOKEN = 'do not tell'
  H.cleanup(function()
    vim.env.SECRET_TOKEN = nil
  end)
  local child = H.child(world, { setup = { env = { MINE = 'one', OTHER = 'two' } } })
  H.terminal(child, { cmd = 'env; exit 0', env = { ALSO = 'three' } })
  H.until_true(child, '_G.t.status ~= nil')
  local text = H.text(child)
  H.eq(text:find('do not tell', 1, true), nil)
  H.eq(text:find('OTHER', 1, true), nil)
  H.eq(text:find('MINE=one', 1, true) ~= nil, true)
  H.eq(text:find('ALSO=three', 1, true) ~= nil, true)
  H.eq(text:find('TERM=xterm-256color', 1, true) ~= nil, true)
end

T['modifiers choose the window'] = function()
  local child = H.child()
  local function layout(command)
    child.cmd('silent! only! | silent! tabonly!')
    child.cmd(command)
    return child.lua_get('{ vim.fn.winlayout()[1], #vim.api.nvim_list_tabpages(), vim.bo.buftype }')
  end
  H.eq(layout('Sidecar terminal'), { 'leaf', 1, 'terminal' })
  H.eq(layout('botright Sidecar terminal'), { 'col', 1, 'terminal' })
  H.eq(layout('horizontal Sidecar terminal'), { 'col', 1, 'terminal' })
  H.eq(layout('vertical Sidecar terminal'), { 'row', 1, 'terminal' })
  H.eq(layout('tab Sidecar terminal'), { 'leaf', 2, 'terminal' })
  H.eq(layout('Sidecar'), { 'leaf', 1, 'terminal' })
end

-- The size that the program sees.
local function size(child, buf)
  return child.lua_get('{ _G.t.rows, _G.t.cols }'), buf
end

T['the program sees every change of the size'] = function()
  local child = H.child()
  child.o.number = false
  local buf = H.terminal(child, {
    cmd = H.sizes,
  })
  H.until_text(child, '22 80')
  local function shows(command, want)
    child.cmd(command)
    -- All sizes so far are visible, so only the last one counts.
    H.wait(command .. ' to give ' .. want, function()
      return H.text(child, buf):match('([^\n]*)$') == want
    end)
  end
  shows('vsplit', '22 80')
  shows('wincmd l | enew', '22 40')
  shows('quit', '22 80')
  shows('setlocal number', '22 76')
  shows('setlocal signcolumn=yes', '22 74')
  shows('setlocal nonumber signcolumn=no foldcolumn=3', '22 77')
  shows('setlocal foldcolumn=0 winbar=x', '21 80')
  shows('setlocal winbar=', '22 80')
  shows('set lines=30 columns=100', '28 100')
  shows('set laststatus=0', '29 100')
  -- A hidden terminal keeps its last size.
  child.cmd('enew | set columns=60')
  H.eq(size(child), { 29, 100 })
  shows('buffer ' .. buf, '29 60')
end

T['a size that changes while the session starts is not lost'] = function()
  local child = H.child()
  -- The window changes before the sidecar has even started.
  child.lua([[
    _G.t = require('sandbox_sidecar').terminal({ cmd = 'read line; stty size' })
    vim.cmd('vsplit | enew')
  ]])
  H.until_true(child, '_G.t.spawned ~= nil')
  H.until_true(child, '_G.t.cols == 40 or _G.t.cols == 39')
  local cols = child.lua_get('_G.t.cols')
  child.cmd('wincmd p')
  H.type_line(child, '')
  H.until_text(child, '22 ' .. cols)
end

T['input typed while the session starts arrives, in order'] = function()
  local child = H.child()
  child.lua([[
    _G.t = require('sandbox_sidecar').terminal({ cmd = 'cat', start_insert = true })
  ]])
  child.type_keys('early bird', '<CR>')
  H.until_text(child, 'early bird\nearly bird')
end

T['two thousand pasted lines arrive whole, in few messages'] = function()
  local child = H.child()
  -- In canonical mode the terminal would cut lines longer than 4096 bytes.
  H.terminal(
    child,
    { cmd = [[stty raw -echo; echo ready; head -c 100000 | cksum; stty sane; echo over]] }
  )
  H.until_text(child, 'ready')
  child.lua([[
    _G.messages = 0
    local sidecar = require('sandbox_sidecar.sidecar')
    local notify = sidecar.notify
    sidecar.notify = function(method, params)
      if method == 'terminal/input' then
        _G.messages = _G.messages + 1
      end
      return notify(method, params)
    end
    local lines = {}
    for i = 1, 2000 do
      lines[i] = ('%049d'):format(i)
    end
    lines[2001] = ''
    vim.cmd.startinsert()
    vim.api.nvim_paste(table.concat(lines, '\n'), false, -1)
  ]])
  local want = {}
  for i = 1, 2000 do
    want[i] = ('%049d\n'):format(i)
  end
  local sum = vim.trim(vim.system({ 'cksum' }, { stdin = table.concat(want) }):wait().stdout)
  H.until_text(child, sum)
  H.until_text(child, 'over')
  H.eq(child.lua_get('_G.messages') <= 20, true)
end

-- Asks the editor behind a socket to set a variable, as msgpack-rpc.
local REACH = [[/usr/bin/python3 -c '
import socket, sys
print("named:", sys.argv[1])
try:
    s = socket.socket(socket.AF_UNIX)
    s.connect(sys.argv[2])
    s.sendall(b"\x94\x00\x01\xacnvim_command\x91\xaflet g:reached=1")
    s.recv(100)
    print("reached")
except OSError as e:
    print("refused:", e)
' "${NVIM-nothing}" ]]

T['no session reaches the editor by $NVIM, unless both settings grant that'] = function()
  H.require('filesystem')
  H.require('unix_sockets')
  for _, case in ipairs({
    { settings = {}, granted = false },
    -- The variable alone opens nothing, and so does not arrive.
    { settings = { allowed_env_vars = { '+NVIM' } }, granted = false },
    -- The control, and what the help warns of.
    {
      settings = { allowed_env_vars = { '+NVIM' }, allowed_unix_sockets = { '$NVIM' } },
      granted = true,
    },
  }) do
    -- An editor in another editor's terminal has that one's address.
    vim.env.NVIM = '/run/another-editor'
    H.cleanup(function()
      vim.env.NVIM = nil
    end)
    local child = H.child(H.world(H.settings(case.settings)))
    local address = child.v.servername
    H.terminal(child, { cmd = REACH .. address, mods = 'tab' })
    H.until_true(child, '_G.t.status ~= nil')
    local text = H.text(child):gsub('\n', '')
    H.eq(text:find(case.granted and 'reached' or 'refused: ', 1, true) ~= nil, true)
    H.eq(text:find('named: ' .. (case.granted and address or 'nothing'), 1, true) ~= nil, true)
    H.eq(child.lua_get('vim.g.reached == 1'), case.granted)
    child.stop()
  end
end

T['what plugins send by chansend() reaches the program, and nothing on the screen'] = function()
  local world = H.world()
  local child = H.child(world)
  -- TermOpen's handlers send before the session runs.
  child.lua([[
    vim.api.nvim_create_autocmd('TermOpen', {
      callback = function()
        vim.fn.chansend(vim.b.terminal_job_id, 'early\n')
      end,
    })
  ]])
  local first = H.terminal(child, { cmd = 'while read -r line; do echo "first: $line"; done' })
  local second =
    H.terminal(child, { cmd = 'while read -r line; do echo "second: $line"; done', mods = 'tab' })
  H.until_text(child, 'first: early', first)
  H.until_text(child, 'second: early', second)
  child.lua('vim.fn.chansend(vim.b[...].terminal_job_id, { "a list", "of lines", "" })', { first })
  H.until_text(child, 'first: a list', first)
  H.until_text(child, 'first: of lines', first)
  child.lua('vim.api.nvim_chan_send(vim.b[...].terminal_job_id, "by the API\\n")', { second })
  H.until_text(child, 'second: by the API', second)
  child.lua('require("sandbox_sidecar").send(...)', { 'by our function\n', first })
  H.until_text(child, 'first: by our function', first)
  child.lua('require("sandbox_sidecar").send("in front\\n")')
  H.until_text(child, 'second: in front', second)
  for _, text in ipairs({ 'a list', 'by our function' }) do
    H.eq(H.text(child, second):find(text, 1, true), nil)
  end
  -- What it replaces: the emulator's own channel shows the text, and the program
  -- gets nothing.
  child.lua('vim.api.nvim_chan_send(_G.t.channel, "only shown\\n")')
  H.until_text(child, 'only shown', second)
  child.lua('require("sandbox_sidecar").send("last\\n")')
  H.until_text(child, 'second: last', second)
  H.eq(H.text(child, second):find('second: only shown', 1, true), nil)
end

T['a hundred thousand bytes that are sent at once arrive whole'] = function()
  local child = H.child()
  H.terminal(
    child,
    { cmd = [[stty raw -echo; echo ready; head -c 100000 | cksum; stty sane; echo over]] }
  )
  H.until_text(child, 'ready')
  local bytes = ('\0\1\3\4\255 tail\r\n'):rep(10000):sub(1, 100000)
  child.lua([[
    local bytes = ('\0\1\3\4\255 tail\r\n'):rep(10000):sub(1, 100000)
    vim.api.nvim_chan_send(vim.b.terminal_job_id, bytes)
  ]])
  local sum = vim.trim(vim.system({ 'cksum' }, { stdin = bytes }):wait().stdout)
  H.until_text(child, sum)
  H.until_text(child, 'over')
end

T['a channel ends with its terminal, and leaves no socket'] = function()
  local child = H.child()
  local function send(buf)
    return child.lua(
      [[
      local sent = pcall(vim.fn.chansend, vim.b[...].terminal_job_id, 'text\n')
      local by_us, why = pcall(require('sandbox_sidecar').send, 'text\n', ...)
      return { sent, by_us, tostring(why) }
    ]],
      { buf }
    )
  end
  local buf = H.terminal(child, { cmd = 'read -r line; read -r line' })
  local sockets = [[vim.tbl_filter(function(path)
    return vim.uv.fs_stat(path).type == 'socket'
  end, vim.fn.glob(vim.fs.dirname(vim.fn.tempname()) .. '/*', true, true))]]
  H.eq(child.lua_get(sockets), {})
  local sent = send(buf)
  H.eq({ sent[1], sent[2] }, { true, true })
  H.until_text(child, '[Process exited 0]', buf)
  sent = send(buf)
  H.eq({ sent[1], sent[2] }, { false, false })
  H.eq(sent[3]:find('the program of this terminal has ended', 1, true) ~= nil, true)
  -- A buffer that is wiped out closes its channel, too.
  local gone = H.terminal(child, { cmd = 'exec sleep 1000' })
  local id = child.lua_get('vim.b[...].terminal_job_id', { gone })
  -- nvim_get_chan_info() of Neovim 0.10 answers for channels that are gone.
  local open = ([[#vim.tbl_filter(function(channel)
    return channel.id == %d
  end, vim.api.nvim_list_chans())]]):format(id)
  H.eq(child.lua_get(open), 1)
  child.cmd('bwipeout! ' .. gone)
  H.until_true(child, open .. ' == 0')
  local ok, why =
    unpack(child.lua('return { pcall(require("sandbox_sidecar").send, "text", ...) }', { gone }))
  H.eq(ok, false)
  H.eq(why:find('not a terminal', 1, true) ~= nil, true)
end

T['mappings, leaving Terminal-mode and scrolling back work as in :terminal'] = function()
  local child = H.child()
  child.cmd([[tnoremap <F2> echo mapped<CR>]])
  H.terminal(child, { cmd = SHELL })
  H.until_text(child, '>')
  child.cmd('startinsert')
  child.type_keys('<F2>')
  H.until_text(child, '\nmapped')
  child.type_keys('seq 1000', '<CR>')
  H.until_text(child, '\n1000\n')
  H.eq(child.fn.mode(1), 't')
  child.type_keys([[<C-\><C-n>]])
  H.eq(child.fn.mode(1), 'nt')
  child.type_keys('gg')
  H.eq(child.fn.line('.'), 1)
  H.eq(child.api.nvim_buf_line_count(0) > 1000, true)
end

T['closing a window keeps its program, wiping out the buffer ends it'] = function()
  local mark = H.unique()
  local child = H.child()
  child.o.hidden = true
  local buf = H.terminal(child, { cmd = 'sleep ' .. mark, mods = 'botright' })
  child.cmd('quit')
  H.eq(child.api.nvim_buf_is_valid(buf), true)
  H.eq(child.lua_get('_G.t.status == nil'), true)
  H.wait('the program', function()
    return H.alive('sleep\0' .. mark) == 1
  end)
  child.cmd('bdelete! ' .. buf)
  H.wait('the end of the program', function()
    return H.alive('sleep\0' .. mark) == 0
  end)
  -- Neither side keeps any state of it.
  child.lua([[
    require('sandbox_sidecar.sidecar').request('terminal/list', nil, function(_, result)
      _G.left = #result.sessions
    end)
  ]])
  H.until_true(child, '_G.left ~= nil')
  H.eq(child.lua_get('_G.left'), 0)
end

for _, ending in ipairs({ 'qall!', 'quit!', 'kill -9', 'kill -15', 'kill -1' }) do
  T['everything is gone after ' .. ending .. ' of the editor'] = function()
    local mark = H.unique()
    local child = H.child()
    -- A program, one in the background and, if the machine can track it, one
    -- that has left the session.
    local detached = vim
      .system({ H.binary, 'doctor' }, { text = true })
      :wait().stdout
      :find('enforced%s+process_tracking') and ('setsid sleep %s & '):format(mark) or ''
    H.terminal(child, { cmd = ('%ssleep %s & exec sleep %s'):format(detached, mark, mark) })
    local count = detached ~= '' and 3 or 2
    H.wait('the processes', function()
      return H.alive('sleep\0' .. mark) == count
    end)
    local sidecar = child.lua_get('require("sandbox_sidecar.sidecar").pid()')
    if ending:match('!') then
      child.lua_notify('vim.cmd(...)', { ending })
    else
      vim.uv.kill(child.fn.getpid(), tonumber(ending:match('%d+')))
    end
    H.wait('the end of the processes', function()
      return H.alive('sleep\0' .. mark) == 0
    end)
    H.wait('the end of the sidecar', function()
      return vim.uv.fs_stat('/proc/' .. sidecar) == nil
    end)
    child.job = nil
  end
end

T['two terminals in two tabs are separate'] = function()
  local child = H.child()
  local first = H.terminal(child, { cmd = SHELL })
  local pid = child.lua_get('require("sandbox_sidecar.sidecar").pid()')
  local second = H.terminal(child, { cmd = SHELL, mods = 'tab' })
  H.type_line(child, 'echo second; exit 2')
  H.until_text(child, '[Process exited 2]', second)
  child.type_keys([[<C-\><C-n>]])
  child.cmd('tabprevious')
  H.eq(child.api.nvim_get_current_buf(), first)
  H.type_line(child, 'echo first')
  H.until_text(child, '\nfirst', first)
  H.eq(H.text(child, first):find('second', 1, true), nil)
  -- Both use one sidecar.
  H.eq(child.lua_get('require("sandbox_sidecar.sidecar").pid()'), pid)
end

T['a killed sidecar ends its terminals, which is reported, and the next terminal gets a new one'] = function()
  local mark = H.unique()
  local child = H.child()
  local buf = H.terminal(child, { cmd = 'exec sleep ' .. mark })
  local pid = child.lua_get('require("sandbox_sidecar.sidecar").pid()')
  vim.uv.kill(pid, 'sigkill')
  H.until_text(child, '[The sidecar ended: killed by signal 9]', buf)
  H.eq(
    child.lua_get('_G.notified[1].text'):match('the sidecar ended %(killed by signal 9%)') ~= nil,
    true
  )
  H.wait('the end of the program', function()
    return H.alive('sleep\0' .. mark) == 0
  end)
  local again = H.terminal(child, { cmd = 'echo again' })
  H.until_text(child, 'again', again)
  H.eq(child.lua_get('require("sandbox_sidecar.sidecar").pid()') ~= pid, true)
end

T['restart ends everything and starts a new sidecar'] = function()
  local mark = H.unique()
  local child = H.child()
  H.terminal(child, { cmd = 'exec sleep ' .. mark })
  local pid = child.lua_get('require("sandbox_sidecar.sidecar").pid()')
  child.cmd('Sidecar restart')
  H.until_true(
    child,
    ('require("sandbox_sidecar.sidecar").initialize_result() ~= nil and require("sandbox_sidecar.sidecar").pid() ~= %d'):format(
      pid
    )
  )
  H.eq(H.alive('sleep\0' .. mark), 0)
  H.eq(child.lua_get('_G.notified'), {})
end

T['a terminal that cannot start shows why, in its buffer and as a message'] = function()
  local world = H.world()
  local child = H.child(world)
  local buf = H.terminal(child, { cmd = { '/nonexistent/program' } })
  H.until_text(child, '[Not started: ', buf)
  H.until_text(child, '/nonexistent/program', buf)
  H.eq(child.lua_get('#_G.notified'), 1)
  H.eq(child.lua_get('vim.b[...].sandbox_sidecar.running', { buf }), false)
  local gone = H.terminal(child, { cmd = 'true', cwd = world.root .. '/gone' })
  H.until_text(child, '[Not started: ', gone)
end

T['without a sidecar there is one message, and no stack trace'] = function()
  local child = H.child(nil, { setup = { binary = '/nonexistent/sidecar' } })
  child.cmd('Sidecar terminal')
  H.eq(child.lua_get('#_G.notified'), 1)
  local text = child.lua_get('_G.notified[1].text')
  H.eq(
    text,
    'Sandbox: the sidecar cannot start: "/nonexistent/sidecar" is not a program. Correct the option "binary".'
  )
end

T['events fire at the start and at the end'] = function()
  local child = H.child()
  child.lua([[
    _G.events = {}
    vim.api.nvim_create_autocmd('User', {
      pattern = 'SandboxSidecar*',
      callback = function(event)
        table.insert(_G.events, { event.match, event.data.exit_code or vim.NIL, event.data.signal or vim.NIL, event.data.buf })
      end,
    })
  ]])
  local buf = H.terminal(child, { cmd = 'exit 5' })
  H.until_true(child, '_G.t.status ~= nil')
  H.eq(child.lua_get('_G.events'), {
    { 'SandboxSidecarStarted', vim.NIL, vim.NIL, buf },
    { 'SandboxSidecarExited', 5, vim.NIL, buf },
  })
  child.lua('_G.events = {}')
  local killed = H.terminal(child, { cmd = 'kill -TERM $$' })
  H.until_text(child, '[Process ended by SIGTERM]', killed)
  H.eq(child.lua_get('_G.events[2]'), { 'SandboxSidecarExited', vim.NIL, 'SIGTERM', killed })
end

T['the statusline shows the sandbox of a running terminal'] = function()
  local child = H.child()
  local function shown()
    local line = child.api.nvim_eval_statusline(
      "%{%v:lua.require'sandbox_sidecar'.statusline()%}",
      { winid = child.api.nvim_get_current_win() }
    )
    return line.str
  end
  H.eq(shown(), '')
  H.terminal(child, { cmd = 'read line; exit 9' })
  H.eq(shown() == 'sandbox' or shown() == 'partly', true)
  H.type_line(child, '')
  H.until_true(child, '_G.t.status ~= nil')
  H.eq(shown(), '')
  local off = H.child(H.world(H.settings_off))
  H.terminal(off, { cmd = 'read line' })
  child = off
  H.eq(shown(), 'off')
end

T['a saved session restores a terminal as a shell in its directory'] = function()
  local world = H.world()
  vim.fn.mkdir(world.project .. '/deep')
  local child = H.child(world)
  H.terminal(child, { cmd = 'echo again >>ran; read line', cwd = world.project .. '/deep' })
  H.wait('the command', function()
    return H.read(world.project .. '/deep/ran')
  end)
  local file = world.root .. '/session.vim'
  child.cmd('mksession ' .. file)
  local second = H.child(world)
  second.cmd('source ' .. file)
  H.until_true(second, 'vim.b.sandbox_sidecar and vim.b.sandbox_sidecar.running', 'the session')
  H.eq(second.bo.buftype, 'terminal')
  H.type_line(second, 'pwd; cat ' .. world.outside .. '/secret; echo answer$((6*7))')
  local text = H.until_text(second, 'answer42') -- 42 alone may be in a path
  H.eq(text:find(world.project .. '/deep', 1, true) ~= nil, true)
  H.eq(text:find('the secret', 1, true), nil)
  H.eq(H.read(world.project .. '/deep/ran'), 'again\n')
end

T['close_on_success closes a terminal only after success'] = function()
  local child = H.child(nil, { setup = { close_on_success = true } })
  local good = H.terminal(child, { cmd = 'exit 0' })
  H.until_true(child, ('not vim.api.nvim_buf_is_valid(%d)'):format(good))
  local bad = H.terminal(child, { cmd = 'exit 1' })
  H.until_text(child, '[Process exited 1]', bad)
end

T['a title is set, and an unfinished sequence does not swallow the last line'] = function()
  local child = H.child()
  local buf = H.terminal(
    child,
    { cmd = [[printf '\033]2;the title\007'; printf '\033]2;unfinished'; exit 6]] }
  )
  H.until_text(child, '[Process exited 6]', buf)
  H.eq(child.lua_get('vim.b[...].term_title', { buf }), 'the title')
end

T['responses of the emulator reach the program'] = function()
  local child = H.child()
  H.terminal(child, {
    cmd = [[stty raw -echo; printf '\033[6n'; dd bs=1 count=4 2>/dev/null | od -An -c; stty sane]],
  })
  H.until_text(child, '033   [   1   ;')
end

T['the option shell is used, else $SHELL'] = function()
  local child =
    H.child(nil, { setup = { shell = { '/bin/sh', '-c', 'echo the shell of the options' } } })
  H.terminal(child)
  H.until_text(child, 'the shell of the options')
  local other = H.child()
  H.terminal(other)
  H.type_line(other, 'echo "run by $0"')
  H.until_text(other, 'run by -sh')
end

T['the project is the directory with a marker, but never the home directory'] = function()
  local world = H.world()
  local child = H.child(world)
  local function root(dir)
    vim.fn.mkdir(dir, 'p')
    return child.lua_get('require("sandbox_sidecar.project").root(...)', { dir })
  end
  H.eq(root(world.project .. '/a/b'), world.project)
  vim.fn.mkdir(world.home .. '/.git', 'p')
  H.eq(root(world.home .. '/work/x'), world.home .. '/work/x')
  H.eq(root(world.home), world.home)
  vim.fn.mkdir(world.root .. '/.git', 'p')
  H.eq(root(world.home .. '/work'), world.home .. '/work')
  -- A marker above the home directory has no effect either.
  H.eq(root(world.outside), world.outside)
end

return T
