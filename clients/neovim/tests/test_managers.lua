-- Plugin managers clone the repository by git, make tags of its help, and source
-- it. Each has an order of its own.
local H = require('harness')

local T = H.set()

local function run(...)
  local done = vim.system({ ... }, { text = true }):wait()
  assert(done.code == 0, done.stderr)
end

---Makes a repository of what an editor uses of this one, and returns its URL.
---@param world World
local function repository(world)
  local root = vim.uv.fs_realpath(H.plugin .. '/../..')
  local dir = world.root .. '/sandbox-sidecar'
  local clients = dir .. '/clients/neovim'
  vim.fn.mkdir(clients, 'p')
  for _, name in ipairs({ 'lua', 'plugin', 'doc' }) do
    run('cp', '-P', root .. '/' .. name, dir)
    run('cp', '-R', H.plugin .. '/' .. name, clients)
  end
  vim.fn.delete(clients .. '/doc/tags')
  local git = { 'git', '-C', dir, '-c', 'user.name=Ada', '-c', 'user.email=ada@example.org' }
  for _, line in ipairs({ { 'init', '-q' }, { 'add', '.' }, { 'commit', '-qm', 'all' } }) do
    run(unpack(vim.list_extend(vim.deepcopy(git), line)))
  end
  return 'file://' .. dir
end

---Puts the program where "make build" does.
local function build(dir)
  vim.fn.mkdir(dir .. '/bin')
  assert(vim.uv.fs_symlink(H.binary, dir .. '/bin/sandbox-sidecar'))
end

---Clones as the managers do, to a path below the home directory of a new world.
local function clone(path)
  local world = H.world()
  local dir = world.home .. '/' .. path
  run('git', 'clone', '--quiet', '--filter=blob:none', repository(world), dir)
  build(dir)
  return world, dir
end

---Checks the plugin, its help and its program.
local function works(child, dir)
  H.eq(child.fn.exists(':Sidecar'), 2)
  H.eq(child.lua_get('require("sandbox_sidecar.binary").find()'), dir .. '/bin/sandbox-sidecar')
  child.cmd('help :Sidecar-allow')
  H.eq(child.bo.buftype, 'help')
  H.terminal(child, { cmd = 'echo it "works"; read line' })
  H.until_text(child, 'it works')
end

---@param world World
---@param ... string Vimscript that runs before the editor sources plugins.
local function start(world, ...)
  local args = { '--cmd', 'cd ' .. world.project }
  for _, line in ipairs({ ... }) do
    vim.list_extend(args, { '--cmd', line })
  end
  local child = H.child(world, { args = args })
  H.eq(child.fn.exists(':Sidecar'), 0)
  return child
end

if vim.pack then
  T['vim.pack installs it from its URL, and loads it'] = function()
    local world = H.world()
    local site = world.home .. '/.local/share/nvim/site'
    local child = start(world, 'set packpath^=' .. site)
    child.lua('vim.pack.add({ ... }, { confirm = false })', { repository(world) })
    local dir = site .. '/pack/core/opt/sandbox-sidecar'
    build(dir)
    works(child, dir)
  end
end

T['a package that is added while the editor runs, as by mini.deps'] = function()
  local world, dir = clone('.local/share/nvim/site/pack/deps/opt/sandbox-sidecar')
  local child = start(world, 'set packpath^=' .. world.home .. '/.local/share/nvim/site')
  child.cmd('helptags ' .. dir .. '/doc')
  child.cmd('packadd sandbox-sidecar')
  works(child, dir)
end

T['a directory that is sourced by the manager itself, as by lazy.nvim'] = function()
  local world, dir = clone('.local/share/nvim/lazy/sandbox-sidecar')
  local child = start(world, 'set noloadplugins', 'lua vim.loader.enable()')
  child.lua(
    [[
    local dir = ...
    vim.cmd.helptags(dir .. '/doc')
    vim.opt.rtp = vim.list_extend({ dir }, vim.api.nvim_get_runtime_file('', true))
    for name, kind in vim.fs.dir(dir .. '/plugin') do
      assert(kind == 'file' and name:match('%.lua$'), name)
      vim.cmd.source(dir .. '/plugin/' .. name)
    end
    require('sandbox_sidecar').setup({ start_insert = false })
  ]],
    { dir }
  )
  works(child, dir)
end

T["a clone in 'runtimepath'"] = function()
  local world, dir = clone('src/sandbox-sidecar')
  local args = { '--cmd', 'cd ' .. world.project, '--cmd', 'set rtp+=' .. dir }
  local child = H.child(world, { args = args })
  child.cmd('helptags ALL')
  works(child, dir)
end

return T
