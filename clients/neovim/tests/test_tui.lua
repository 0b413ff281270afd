-- The editor on a real terminal (tmux), for what no headless editor shows.
local H = require('harness')
local MiniTest = require('mini.test')
local tui = require('tui')

local T = H.set()

-- The prompt as it is printed, not the line that sets it. Early input is echoed
-- before the first prompt.
local PROMPT = "\n[^\n']*inside>"

T['open, type, resize, and the end of the terminal that the editor is in'] = function()
  local mark = H.unique()
  local world = H.world()
  local editor = tui.start(world)
  editor.keys(':botright Sidecar terminal', 'Enter')
  H.wait('the terminal', function()
    return editor.call('vim.bo.buftype') == 'terminal'
  end)
  editor.keys('i', "PS1='inside> '", 'Enter')
  tui.until_screen(editor, PROMPT)
  editor.keys('echo $((6*7)); stty size', 'Enter')
  tui.until_screen(editor, '\n42\n14 120')
  editor.tmux('resize-window', '-x', '90', '-y', '40')
  H.wait('the new size', function()
    editor.keys('stty size', 'Enter')
    return editor.screen():find('\n%d%d 90\n')
  end)
  editor.keys(('sleep %s &'):format(mark), 'Enter')
  H.wait('the program', function()
    return H.alive('sleep\0' .. mark) == 1
  end)
  -- The hang-up reaches the editor. The sidecar notices that the editor has
  -- ended.
  editor.tmux('kill-server')
  H.wait('the end of the program', function()
    return H.alive('sleep\0' .. mark) == 0
  end)
end

T['a long message in Terminal-mode swallows no typed key'] = function()
  local editor = tui.start(H.world())
  editor.keys(':botright Sidecar terminal', 'Enter')
  H.wait('the terminal', function()
    return editor.call('vim.bo.buftype') == 'terminal'
  end)
  editor.keys('i', "PS1='inside> '", 'Enter')
  tui.until_screen(editor, PROMPT)
  editor.run([[require('sandbox_sidecar.notify').warn(('very long '):rep(50))]])
  editor.keys('echo $((6*7))', 'Enter')
  tui.until_screen(editor, '\n42\n')
  -- The control: as it is, the message would wait for ENTER.
  editor.run([[vim.defer_fn(function() vim.notify(('very long '):rep(50)) end, 0)]])
  tui.until_screen(editor, 'Press ENTER')
end

T['a long warning waits for no key in Normal mode, and the log has all of it'] = function()
  local world = H.world(H.settings({ enabeld = true }))
  local editor = tui.start(world, { cols = 80, rows = 24 })
  editor.keys(':Sidecar terminal', 'Enter')
  local screen = tui.until_screen(editor, 'Sandbox: [^\n]*…')
  H.eq(screen:find('Press ENTER', 1, true), nil)
  H.wait('the session', function()
    return editor.call('vim.b.sandbox_sidecar.running')
  end)
  local long = 'this machine lacks ' .. ('something, '):rep(20)
  editor.run([[require('sandbox_sidecar.notify').warn(...)]], long .. 'the last')
  screen = tui.until_screen(editor, 'this machine lacks [^\n]*… See ":Sidecar log"%.')
  H.eq(screen:find('Press ENTER', 1, true), nil)
  local log = editor.call('vim.fn.readfile(require("sandbox_sidecar.log").path())')
  H.eq(table.concat(log, '\n'):find(long .. 'the last', 1, true) ~= nil, true)
  -- What a plugin shows is whole.
  editor.run([[vim.notify = function(text) _G.shown = text end]])
  editor.run([[require('sandbox_sidecar.notify').warn(...)]], long .. 'the last')
  H.eq(editor.call('_G.shown'), 'Sandbox: ' .. long .. 'the last')
end

-- Measures the editor during a flood: the longest delay of a 5 ms timer. The
-- test also measures how long Ctrl-C takes.
local LAG = [[
  _G.lag, _G.last = 0, vim.uv.hrtime()
  _G.ticker = vim.uv.new_timer()
  _G.ticker:start(5, 5, vim.schedule_wrap(function()
    local now = vim.uv.hrtime()
    _G.lag = math.max(_G.lag, (now - _G.last) / 1e6 - 5)
    _G.ticks = (_G.ticks or 0) + 1
    _G.last = now
  end))
]]

---@return number lag Milliseconds.
---@return number answer Milliseconds.
local function flood(open)
  local world = H.world()
  local editor = tui.start(world)
  editor.keys(':botright ' .. open, 'Enter')
  H.wait('the terminal', function()
    return editor.call('vim.bo.buftype') == 'terminal'
  end)
  editor.keys('i', "PS1='inside> '", 'Enter')
  tui.until_screen(editor, PROMPT)
  editor.run(LAG)
  editor.keys('yes a rather ordinary line of output', 'Enter')
  -- Long enough to fill every buffer on the way.
  H.wait('the scrollback to fill', function()
    return editor.call('vim.api.nvim_buf_line_count(0)') > 9000
  end)
  editor.run('_G.ticks = 0')
  H.wait('a while', function()
    return editor.call('_G.ticks') > 200
  end)
  local pressed = vim.uv.hrtime()
  editor.keys('C-c')
  tui.until_screen(editor, PROMPT)
  local answer = (vim.uv.hrtime() - pressed) / 1e6
  return editor.call('_G.lag'), answer
end

T['a flood leaves the editor awake, and Ctrl-C is answered'] = function()
  -- Absolute times mean little on a shared machine. But without slices and flow
  -- control both take seconds each time, and the editor's own terminal does not.
  -- A busy machine may stop the editor for as long, so there are three tries.
  local soon = false
  for _ = 1, 3 do
    local own_lag, own_answer = flood('terminal /bin/sh')
    local lag, answer = flood('Sidecar terminal')
    MiniTest.add_note(
      ('while a terminal floods: lag %.0f ms, Ctrl-C answered after %.0f ms; :terminal in the same run: %.0f ms, %.0f ms'):format(
        lag,
        answer,
        own_lag,
        own_answer
      )
    )
    soon = soon or lag < 10 * own_lag + 1500 and answer < 10 * own_answer + 1500
    if soon then
      break
    end
  end
  H.eq(soon, true)
end

T['the prompt for a question closes when nobody waits for the answer'] = function()
  H.require('filesystem')
  local world = H.world(H.settings({ on_denied = 'ask' }))
  local editor = tui.start(world)
  local line = 'cat %s/secret & until [ -e gone ]; do sleep 0.1; done; kill $!; wait'
  editor.run('require("sandbox_sidecar").run(...)', line:format(world.outside))
  tui.until_screen(editor, 'Do not allow')
  H.write(world.project .. '/gone', '')
  H.wait('the prompt is gone', function()
    return not editor.screen():find('Type number')
  end)
  H.eq(editor.call('1 + 1'), 2)
end

return T
