-- Hostile names and settings on a real screen: no forged line, no link, no
-- accidental answer.
local H = require('harness')
local tui = require('tui')

local T = H.set()

-- A link with a command, a line break, colours, a cleared screen, and reversed
-- text.
local EVIL = 'x](command:evil)\nFORGED \27[31m\27[2J\226\128\174gnp.\194\155'
-- How its end is shown. The text before may be shortened.
local SHOWN = [[\nFORGED \x1b[31m\x1b[2J\u202egnp.\u009b]]

---Checks that a screen shows nothing raw.
local function check(screen)
  H.eq({ screen:find('\n%s*FORGED'), screen }, { nil, screen })
  for _, raw in ipairs({ '](', '\27', '\226\128\174', '\194\155', 'evil)\n', '^[' }) do
    H.eq({ raw, screen:find(raw, 1, true), screen }, { raw, nil, screen })
  end
  return screen
end

---Skips the case if the sidecar cannot report denials.
local function require_denials()
  if not H.doctor():find('denials%s+seccomp') then
    H.skip('user_notification')
  end
end

-- Shows messages whole, as a plugin does. The last line would cut them.
local WHOLE = 'local notify = vim.notify; vim.notify = function(...) notify(...) end'

T['denials show escaped names, in messages and in the list'] = function()
  require_denials()
  local world = H.world()
  local editor = tui.start(world)
  editor.run(WHOLE)
  editor.run(
    'require("sandbox_sidecar").run({ "mkdir", ... })',
    world.outside .. '/' .. EVIL,
    ('z'):rep(500)
  )
  local screen = check(tui.until_screen(editor, 'refused to let "mkdir" create'))
  H.eq(tui.flat(screen):find(SHOWN, 1, true) ~= nil, true)
  -- 500 characters do not push the rest away.
  H.eq(screen:find(('z'):rep(121), 1, true), nil)
  -- The space may be the last column.
  H.eq(tui.flat(screen):find('See ?":Sidecar ?denials"%.') ~= nil, true)
  editor.keys('Enter', ':Sidecar denials', 'Enter')
  screen = check(tui.until_screen(editor, '%d%d:%d%d:%d%d  "mkdir'))
  H.eq(tui.flat(screen):find(SHOWN, 1, true) ~= nil, true)
end

T['a question shows one line with escaped names, and leaving it allows nothing'] = function()
  require_denials()
  local world = H.world(H.settings({ on_denied = 'ask' }))
  H.write(world.outside .. '/' .. EVIL, 'the secret\n')
  local editor = tui.start(world)
  -- Messages would wait for Enter, too.
  editor.run('vim.notify = function() end')
  local function ask()
    editor.run(
      [[
      _G.result = nil
      require('sandbox_sidecar').run({ 'cat', ... }, { group = 'own' }, function(result)
        _G.result = result
      end)
    ]],
      world.outside .. '/' .. EVIL
    )
    local screen = check(tui.until_screen(editor, '\n1: Do not allow.*\nType number'))
    local text = tui.flat(screen)
    for _, part in ipairs({ '"cat" wants to read "', SHOWN .. '", and waits', 'Allow it?' }) do
      H.eq({ part, text:find(part, 1, true) ~= nil, screen }, { part, true, screen })
    end
  end
  local function ended()
    local ok, err = pcall(H.wait, 'the answer', function()
      return editor.call('_G.result ~= nil')
    end)
    if not ok then
      error(err .. editor.screen(), 2)
    end
    return editor.call('_G.result.exit_code')
  end
  for _, key in ipairs({ 'Enter', 'Escape', 'q', 'C-c' }) do
    ask()
    editor.keys(key)
    if key == 'q' then
      editor.keys('Enter')
    end
    H.eq({ key, ended() }, { key, 1 })
  end
  -- Control.
  ask()
  editor.keys('2', 'Enter')
  H.eq(ended(), 0)
end

T["a project's requests are escaped, and all are shown before it can be trusted"] = function()
  H.require('filesystem')
  local world = H.world()
  local paths = {}
  for i = 1, 24 do
    paths[i] = ('/nonexistent/%d%s'):format(i, EVIL)
  end
  H.write(
    world.project .. '/.zed/settings.json',
    vim.json.encode({ terminal = { sandbox = { additional_read_write_paths = paths } } })
  )
  local editor = tui.start(world)
  local status =
    'require("sandbox_sidecar.sidecar").request("project/status", { projectDir = ... }, function(_, s) _G.status = s end)'
  editor.run(WHOLE)
  -- The first request for the project's status reports that it requests more.
  editor.run(status, world.project)
  check(tui.until_screen(editor, 'Press ENTER'))
  editor.keys('Enter')
  local function asks()
    editor.run('_G.status = nil; ' .. status, world.project)
    H.wait('the status', function()
      return editor.call('_G.status ~= nil')
    end)
    return editor.call('#_G.status.asks'), editor.call('_G.status.trusted')
  end
  local count = asks()
  H.eq(count >= 24, true)

  ---Turns to the last page, and returns the text of all pages.
  local function read()
    editor.keys('C-l', ':Sidecar trust', 'Enter')
    local from, seen = 1, ''
    while true do
      local page = (', ?%d ?to ?(%%d+) ?of ?%d'):format(from, count)
      tui.until_screen(editor, page)
      local screen = check(tui.until_screen(editor, '\n1: Do not trust\n.*\nType number'))
      local to = tonumber(tui.flat(screen):match(page))
      seen = seen .. screen
      if to == count then
        H.eq(screen:find('3: Trust this content', 1, true) ~= nil, true)
        return seen
      end
      H.eq(screen:find('Trust this content', 1, true), nil)
      editor.keys('3', 'Enter')
      from = to + 1
    end
  end
  for _, key in ipairs({ 'Enter', 'Escape', 'C-c' }) do
    local seen = tui.flat(read())
    for i = 1, 24 do
      H.eq({ i, seen:find(('/nonexistent/%dx]'):format(i), 1, true) ~= nil }, { i, true })
    end
    editor.keys(key)
    H.wait('the end of the list', function()
      return editor.call('#vim.api.nvim_list_wins()') == 1
    end)
    H.eq({ key, select(2, asks()) }, { key, false })
  end
  -- Control.
  read()
  editor.keys('3', 'Enter')
  tui.until_screen(editor, 'is trusted')
  -- The message may be longer than a row, and wait for a key.
  editor.keys('Enter')
  H.eq(select(2, asks()), true)
end

T['problems in settings show escaped values'] = function()
  local child = H.child(
    H.world(
      vim.json.encode({ terminal = { sandbox = { [EVIL] = 1, enabled = true, on_denied = EVIL } } })
    )
  )
  H.terminal(child, { cmd = 'true' })
  H.until_true(child, 'next(require("sandbox_sidecar.diagnostics").all()) ~= nil')
  for what, text in
    pairs(child.lua_get([[(function()
    local function text(buf)
      return table.concat(vim.api.nvim_buf_get_lines(buf, 0, -1, false), '\n')
    end
    vim.cmd('Sidecar settings')
    local shown = { float = text(vim.diagnostic.open_float({ scope = 'buffer' })) }
    vim.diagnostic.setqflist()
    shown.quickfix = text(0)
    vim.cmd('checkhealth sandbox_sidecar')
    shown.health = text(0)
    return shown
  end)()]]))
  do
    check(text)
    H.eq({ what, text:find('FORGED', 1, true) ~= nil, text }, { what, true, text })
  end
end

T['the title of a session is evaluated nowhere'] = function()
  local world = H.world()
  local child = H.child(world)
  local code = '%{%writefile([],"evaluated")%}%{writefile([],"evaluated")}%<%='
  child.o.title = true
  local status = "%f %t %F %{b:term_title} %{%v:lua.require'sandbox_sidecar'.statusline()%}"
  child.go.statusline, child.go.winbar = status, status
  child.o.tabline = ''
  child.o.showtabline = 2
  local buf = H.terminal(child, {
    cmd = {
      'sh',
      '-c',
      'printf "\\033]2;%s\\007\\033]0;%s\\007 %s" "$1" "$1" shown; exec sleep 60',
      'sh',
      code,
    },
  })
  H.until_text(child, 'shown', buf)
  H.until_true(child, ('vim.b[%d].term_title == %q'):format(buf, code))
  child.cmd('redraw!')
  local line = child.api.nvim_eval_statusline(status, { maxwidth = 1000 }).str
  H.eq({ line:find('writefile', 1, true) ~= nil, line }, { true, line })
  H.eq(H.read(world.project .. '/evaluated'), nil)
  -- A hostile value in the buffer variable is not evaluated either.
  child.lua(
    'vim.b[...].sandbox_sidecar = { sandbox = "full", running = false, signal = "%{writefile([],\'evaluated\')}" }',
    { buf }
  )
  child.api.nvim_eval_statusline(status, {})
  child.cmd('redraw!')
  H.eq(H.read(world.project .. '/evaluated'), nil)
  -- Control: evaluated, it writes the file.
  child.api.nvim_eval_statusline(code, {})
  H.eq(H.read(world.project .. '/evaluated'), '')
end

T['a command line of any length and bytes opens a terminal'] = function()
  local child = H.child()
  local buf = H.terminal(child, {
    cmd = { 'sh', '-c', 'echo shown; exec sleep 60', EVIL, ('z'):rep(20000), '$(touch evaluated)' },
  })
  H.until_text(child, 'shown', buf)
  local name = child.api.nvim_buf_get_name(buf)
  H.eq(
    { name:find('%c') or name:find('\226\128\174', 1, true) or false, #name < 200 },
    { false, true }
  )
end

return T
