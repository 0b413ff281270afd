-- Shared by the tests: directories, child editors, and waiting for conditions.
local MiniTest = require('mini.test')

local M = {}

M.eq = MiniTest.expect.equality
M.tests = vim.env.TESTS
M.plugin = vim.fs.dirname(M.tests)
M.binary = vim.env.SIDECAR_BINARY
M.tools = vim.env.SIDECAR_TOOLS

-- The timeout of every wait, in milliseconds. Only a failing test needs it.
M.timeout = 30000

---@param text string
function M.fail(text)
  error(text, 2)
end

-- For how many milliseconds some process has waited for a processor; see
-- Documentation/accounting/psi.rst of the kernel. 0 if the kernel counts nothing.
local function starved()
  local file = io.open('/proc/pressure/cpu')
  if not file then
    return 0
  end
  local total = (file:read('*l') or ''):match('total=(%d+)')
  file:close()
  return tonumber(total or 0) / 1000
end

---Polls until the condition returns a true value, and returns that. The timeout is
---prolonged by the time in which a processor was missing, to five times as long at
---most.
function M.wait(what, condition, timeout)
  timeout = timeout or M.timeout
  local value
  local begun, before = vim.uv.hrtime(), starved()
  repeat
    local ok = vim.wait(math.min(timeout, 1000), function()
      value = condition()
      return value
    end, 20)
    if ok then
      return value
    end
    local took = (vim.uv.hrtime() - begun) / 1e6
  until took > timeout + math.min(starved() - before, 4 * timeout)
  error('gave up waiting for ' .. what, 2)
end

---Replaces a file as a whole: who watches it never sees it empty.
function M.write(path, text)
  vim.fn.mkdir(vim.fs.dirname(path), 'p')
  path = vim.uv.fs_realpath(path) or path
  local file = assert(io.open(path .. '.new', 'w'))
  file:write(text)
  file:close()
  assert(vim.uv.fs_rename(path .. '.new', path))
end

function M.read(path)
  local file = io.open(path)
  local text = file and file:read('*a')
  if file then
    file:close()
  end
  return text
end

local cleanups = {}

---Runs a function after the case, in any event; the newest first.
function M.cleanup(f)
  table.insert(cleanups, 1, f)
end

---A set of cases with cleanup.
function M.set(opts)
  opts = opts or {}
  opts.hooks = vim.tbl_extend('force', {
    post_case = function()
      local todo = cleanups
      cleanups = {}
      for _, f in ipairs(todo) do
        f()
      end
    end,
  }, opts.hooks or {})
  return MiniTest.new_set(opts)
end

---Settings that sandbox everything. They grant the system, but no temporary
---directory.
function M.settings(extra)
  return vim.json.encode({
    terminal = {
      sandbox = vim.tbl_extend('force', {
        enabled = true,
        apply_to = 'both',
        system_paths = {
          read_write = {
            '/dev/null',
            '/dev/zero',
            '/dev/urandom',
            '/dev/tty',
            '/dev/ptmx',
            '/dev/pts',
          },
        },
      }, extra or {}),
    },
  })
end

-- A command that prints the terminal's size, and each later one. The trap only
-- sets a variable: a shell may forget a signal that comes while it runs a trap.
M.sizes = 'trap changed=1 WINCH; stty size; '
  .. 'while :; do sleep 0.05; if [ $changed ]; then changed=; stty size; fi; done'

M.settings_off = '{ "terminal": { "sandbox": { "enabled": false } } }'

---@class World
---@field home string
---@field project string A project with a marker. Sessions start here.
---@field outside string A directory that no settings grant.
---@field settings string The user's settings file.

---@param settings? string
---@param base? string Where it is. Default: a temporary directory.
---@return World
function M.world(settings, base)
  base = base or vim.fn.tempname():match('^(.*)/')
  local root = vim.uv.fs_realpath(base) .. '/' .. vim.uv.hrtime()
  local world = {
    root = root,
    home = root .. '/home',
    project = root .. '/project',
    outside = root .. '/outside',
  }
  world.settings = world.home .. '/.config/sandbox-sidecar/settings.json'
  for _, dir in ipairs({ world.home, world.project .. '/.git', world.outside }) do
    vim.fn.mkdir(dir, 'p')
  end
  M.write(world.outside .. '/secret', 'the secret\n')
  M.write(world.settings, settings or M.settings())
  M.cleanup(function()
    vim.fn.delete(root, 'rf')
  end)
  return world
end

---The environment of the editors.
function M.env(world)
  return { HOME = world.home, XDG_RUNTIME_DIR = world.home .. '/run' }
end

---A child editor with the plugin. It ends with the case.
---@param world? World
---@param opts? { setup?: table, nvim?: string, plugin?: string, args?: string[] }
---`args` are in place of those that load the plugin.
function M.child(world, opts)
  world = world or M.world()
  opts = opts or {}
  local old = {}
  for name, value in pairs(M.env(world)) do
    old[name] = { vim.env[name] }
    vim.env[name] = value
  end
  vim.fn.mkdir(world.home .. '/run', 'p', 448)
  local child = MiniTest.new_child_neovim()
  child.start(opts.args or {
    '--cmd',
    'set rtp^=' .. (opts.plugin or M.plugin),
    '--cmd',
    'lua vim.g.sandbox_sidecar = ' .. vim.inspect(
      vim.tbl_extend('force', { binary = M.binary }, opts.setup or {}),
      { newline = ' ', indent = '' }
    ),
    '--cmd',
    'cd ' .. world.project,
  }, { connection_timeout = M.timeout, nvim_executable = opts.nvim })
  for name, value in pairs(old) do
    vim.env[name] = value[1]
  end
  child.world = world
  M.cleanup(child.stop)
  -- Records notifications. A message that does not fit would block the child.
  child.lua([[
    _G.notified = {}
    vim.notify = function(text, level)
      table.insert(_G.notified, { text = text, level = level })
    end
    vim.o.statusline = ' %t'
    vim.o.laststatus = 2
    vim.o.shortmess = 'aoOtTIcF'
    vim.o.more = false
  ]])
  return child
end

---Waits until an expression in the child is true, and returns it.
function M.until_true(child, expression, what)
  return M.wait(what or expression, function()
    local value = child.lua_get(expression)
    return value ~= vim.NIL and value
  end)
end

---The text of a buffer, without trailing space.
function M.text(child, buf)
  local lines = child.api.nvim_buf_get_lines(buf or 0, 0, -1, false)
  return (table.concat(lines, '\n'):gsub('%s+$', ''))
end

---Waits until a buffer contains a text, literally.
function M.until_text(child, text, buf)
  local found
  local ok, err = pcall(M.wait, text, function()
    found = M.text(child, buf)
    return found:find(text, 1, true)
  end)
  if not ok then
    error(('%s; the buffer holds:\n%s'):format(err, found), 2)
  end
  return found
end

---Returns the notifications that contain all of these texts, literally. Others
---may come between them.
function M.notified(child, ...)
  local parts, found = { ... }, {}
  for _, message in ipairs(child.lua_get('_G.notified')) do
    local all = true
    for _, part in ipairs(parts) do
      all = all and message.text:find(part, 1, true) ~= nil
    end
    if all then
      found[#found + 1] = message.text
    end
  end
  return found
end

---Waits for a notification that contains all of these texts, and returns it.
function M.until_notified(child, ...)
  local parts = { ... }
  return M.wait('a message with ' .. table.concat(parts, ', '), function()
    return M.notified(child, unpack(parts))[1]
  end)
end

---Opens a terminal in the child, and waits until its session runs. Returns the
---buffer.
function M.terminal(child, opts)
  child.lua('_G.t = require("sandbox_sidecar").terminal(...)', { opts or vim.empty_dict() })
  M.until_true(child, '_G.t.spawned ~= nil or _G.t.failed ~= nil', 'the session')
  return child.lua_get('_G.t.buf')
end

---Types a line into the terminal of the child's current window.
function M.type_line(child, line)
  child.cmd('startinsert')
  child.type_keys(line:gsub('<', '<lt>'), '<CR>')
end

---Returns the number of processes whose arguments contain a text.
function M.alive(text)
  local count = 0
  for name in vim.fs.dir('/proc') do
    if name:match('^%d+$') then
      local arguments = M.read('/proc/' .. name .. '/cmdline') or ''
      if arguments:find(text, 1, true) then
        count = count + 1
      end
    end
  end
  return count
end

---Returns a text that is in no other process's arguments.
function M.unique()
  return ('%d'):format(vim.uv.hrtime() % 1e9 + 1e9)
end

local diagnosis

---Returns the doctor's report about this machine.
function M.doctor()
  diagnosis = diagnosis or vim.system({ M.binary, 'doctor' }, { text = true }):wait().stdout
  return diagnosis
end

-- The number of skipped cases.
M.skipped = 0

---Skips the case if the machine lacks a protection. In CI it fails instead,
---unless SIDECAR_MISSING names it.
function M.require(feature)
  if M.doctor():match('(%a+)%s+' .. feature .. '%s') ~= 'enforced' then
    M.skip(feature)
  end
end

---Skips a case that needs a missing feature, as harness.Skip does.
function M.skip(feature)
  if
    (vim.env.CI or '') ~= ''
    and not (' ' .. (vim.env.SIDECAR_MISSING or '') .. ' '):find(' ' .. feature .. ' ', 1, true)
  then
    error(('this machine lacks %s, and SIDECAR_MISSING does not list it'):format(feature), 2)
  end
  M.skipped = M.skipped + 1
  MiniTest.skip('this machine lacks ' .. feature)
end

---Compares the screen with the reference for this release of Neovim.
function M.screenshot(child, name)
  local version = vim.version()
  local path = ('%s/screenshots/%s-%d.%d'):format(M.tests, name, version.major, version.minor)
  local update = vim.env.UPDATE == '1'
  if not update and vim.fn.filereadable(path) == 0 then
    error(
      ('no reference screenshot %s: check what "UPDATE=1 make test-neovim" writes'):format(path),
      2
    )
  end
  local function compare()
    MiniTest.expect.reference_screenshot(
      child.get_screenshot(),
      path,
      { force = update, ignore_attr = true }
    )
  end
  -- A terminal is drawn shortly after its buffer changes.
  vim.wait(M.timeout, function()
    return (pcall(compare))
  end, 50)
  compare()
end

return M
