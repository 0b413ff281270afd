-- The first hour, on a real terminal of 80 columns. SHOTS=DIR keeps each state's
-- screen.
local H = require('harness')
local tui = require('tui')

local T = H.set()

local STATUS = [[%t %=%{%v:lua.require'sandbox_sidecar'.statusline()%} ]]

---@class Story
---@field editor Tui
---@field taken integer
local Story = {}
Story.__index = Story

---Waits until the screen shows all of these texts, literally, and keeps it.
---@param state string
---@param ... string
function Story:shows(state, ...)
  local texts, screen = { ... }, ''
  local ok, err = pcall(H.wait, 'the screen: ' .. state, function()
    screen = self.editor.screen()
    local flat = tui.flat(screen)
    for _, text in ipairs(texts) do
      if not screen:find(text, 1, true) and not flat:find(text, 1, true) then
        return false
      end
    end
    return true
  end)
  self.taken = self.taken + 1
  if vim.env.SHOTS then
    local name = state:gsub('%W+', '-')
    local version = vim.version()
    local file = ('neovim-0.%d-%02d-%s.txt'):format(version.minor, self.taken, name)
    H.write(vim.env.SHOTS .. '/' .. file, screen)
  end
  if not ok then
    local _, told = pcall(self.editor.call, 'vim.fn.execute("messages")')
    error(
      ('%s, with %s; it shows:\n%s\nMessages: %s'):format(err, vim.inspect(texts), screen, told),
      2
    )
  end
  -- No message is in the way of the next key.
  H.eq(screen:find('Press ENTER', 1, true), nil)
  return screen
end

---Opens a terminal in place of the one that is open.
function Story:open()
  self.editor.run([[
    if vim.bo.filetype == 'sidecar-terminal' then
      vim.cmd('stopinsert | Sidecar close')
    end
    vim.cmd('silent! only | Sidecar terminal')
  ]])
  self:ready()
end

---Waits for a new terminal, and its prompt.
function Story:ready()
  H.wait('the session', function()
    return self.editor.call('vim.b.sandbox_sidecar and vim.b.sandbox_sidecar.running') == true
  end)
  self:quiet()
  self.editor.keys('i')
  self:type("PS1='inside> '")
  tui.until_screen(self.editor, "\n[^\n']*inside>")
end

---Empties the line of messages.
function Story:quiet()
  self.editor.run([[vim.cmd('echo ""')]])
end

function Story:type(line)
  self.editor.keys(line, 'Enter')
end

---Leaves Terminal-mode, and runs a command.
function Story:command(line)
  self.editor.keys('C-\\', 'C-n')
  H.wait('Normal mode', function()
    return self.editor.call('vim.api.nvim_get_mode().mode') == 'nt'
  end)
  self:quiet()
  self:type(':' .. line)
end

T['the screen says what is so: off, on, refused, allowed, changed, reopened, killed, restarted'] = function()
  H.require('filesystem')
  local world = H.world(nil, vim.env.ELSEWHERE)
  os.remove(world.settings)
  -- A program that a session could replace would be told.
  local binary = world.root .. '/sandbox-sidecar'
  assert(vim.uv.fs_copyfile(H.binary, binary))
  H.write(world.home .. '/notes/list.txt', 'milk\n')
  local list = '~/notes/list.txt'
  local editor = tui.start(world, { cols = 80, rows = 24, binary = binary })
  local story = setmetatable({ editor = editor, taken = 0 }, Story)
  editor.run('vim.o.laststatus = 2; vim.o.statusline = ...', STATUS)
  local function status()
    return vim.trim(editor.call('vim.api.nvim_eval_statusline(..., {}).str', STATUS))
  end
  local function says(word)
    local shown = status():match('%S+$')
    -- A machine may lack a protection.
    H.eq(shown == word or (word == 'sandbox' and shown == 'partly'), true)
  end
  ---Writes as a program in the terminal, and returns whether it could.
  local function writes(text)
    story:type(('echo %s >>%s; echo %s: $?'):format(text, list, text))
    local screen = tui.until_screen(editor, '\n' .. text .. ': %d')
    return screen:find('\n' .. text .. ': 0') ~= nil
  end

  -- Off: it asks once, and says so until it is on.
  story:type(':Sidecar terminal')
  story:shows('off and it asks', 'The sandbox is off. Turn it on for:', '3: not now')
  story:type('3')
  story:open()
  says('off')
  H.eq(writes('bread'), true)
  story:shows('off', 'bread: 0', ' off')

  -- On: what is open stays as it is, and says so.
  story:command('Sidecar enable')
  story:shows('for what it is turned on', 'Turn it on for:', '1: terminals and tools')
  story:type('1')
  story:shows('on', 'Sandbox: the sandbox is on.', ' off')
  says('off')
  story:open()
  says('sandbox')
  H.eq(editor.screen():find('off', 1, true), nil)

  -- A refusal, and what allows it.
  H.eq(writes('butter'), false)
  story:shows('refused', 'Sandbox: refused sh write "~/notes/list.txt". See ":Sidecar allow".')
  story:command('Sidecar allow')
  story:shows('what is allowed', 'Allow what was refused:', 'additional_read_write_paths')
  story:type('1')
  story:shows('for how long', 'Allow it:', '2: For all my projects', '3: Until this editor closes')
  story:type('2')
  story:shows('allowed', 'Sandbox: the setting was written. It applies to new terminals.')
  H.eq(H.read(world.settings):find('"additional_read_write_paths": %[[^%]]*notes') ~= nil, true)
  story:open()
  H.eq(writes('butter'), true)
  H.eq(H.read(world.home .. '/notes/list.txt'), 'milk\nbread\nbutter\n')
  story:shows('works', 'butter: 0')

  -- Another program changes the settings.
  local text = H.read(world.settings)
  H.write(
    world.settings,
    (text:gsub('"additional_read_write_paths"', '"allow_network": false, %0', 1))
  )
  story:shows('changed', 'Sandbox: 1 terminal still uses old settings. See ":Sidecar reopen".')
  H.eq(editor.call('vim.b.sandbox_sidecar.stale'), true)
  story:command('Sidecar reopen')
  H.wait('another terminal', function()
    return editor.call('vim.b.sandbox_sidecar.stale') == false
  end)
  story:ready()
  H.eq(writes('salt'), true)
  story:shows('reopened', 'salt: 0')

  -- The sidecar's end is its sessions' end.
  vim.uv.kill(editor.call('require("sandbox_sidecar.sidecar").pid()'), 'sigkill')
  story:shows(
    'killed',
    '[The sidecar ended: killed by signal 9]',
    'Sandbox: the sidecar ended',
    'See ":Sidecar log".'
  )
  H.eq(status():match('sandbox$'), nil)
  story:open()
  says('sandbox')
  H.eq(writes('pepper'), true)
  story:shows('restarted', 'pepper: 0')
end

return T
