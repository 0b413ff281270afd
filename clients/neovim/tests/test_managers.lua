-- The lines of README and the help that install the plugin, as they are written:
-- the editor starts with them as its init.lua. The repository's address leads to
-- one on this machine.
local H = require('harness')

local T = H.set()

local HELP = H.read(H.plugin .. '/doc/sandbox-sidecar.txt')
local README = H.read(H.plugin .. '/../../README.md')

---Returns the lines of the help below a heading, without their indentation.
local function lines_below(heading)
  local lines = HELP:match('\n' .. vim.pesc(heading) .. ' >%l*\n\n(.-)\n<')
  if not lines then
    error('the help has no lines below: ' .. heading)
  end
  return (('\n' .. lines):gsub('\n    ', '\n'))
end

local function run(...)
  local done = vim.system({ ... }, { text = true }):wait()
  assert(done.code == 0, done.stderr)
  return done.stdout
end

---Makes a repository, to which the plugin's address leads in the editors of the
---world.
---@param world World
---@param fill fun(dir: string) Writes the files.
local function repository(world, fill)
  local dir = world.root .. '/github/sandbox-sidecar/sandbox-sidecar.git'
  vim.fn.mkdir(dir, 'p')
  fill(dir)
  local git = { 'git', '-C', dir, '-c', 'user.name=Ada', '-c', 'user.email=ada@example.org' }
  for _, line in ipairs({ { 'init', '-q' }, { 'add', '.' }, { 'commit', '-qm', 'all' } }) do
    run(unpack(vim.list_extend(vim.deepcopy(git), line)))
  end
  H.write(
    world.home .. '/.gitconfig',
    ('[url "file://%s/github/"]\n\tinsteadOf = https://github.com/\n'):format(world.root)
  )
end

---What an editor uses of this repository. "make build" puts the tested program
---where the real one does.
local function plugin_files(dir)
  local root = vim.uv.fs_realpath(H.plugin .. '/../..')
  local clients = dir .. '/clients/neovim'
  vim.fn.mkdir(clients, 'p')
  for _, name in ipairs({ 'lua', 'plugin', 'doc' }) do
    run('cp', '-P', root .. '/' .. name, dir)
    run('cp', '-R', H.plugin .. '/' .. name, clients)
  end
  vim.fn.delete(clients .. '/doc/tags')
  H.write(dir .. '/.gitignore', '/bin/\n')
  local build = 'build:\n\tmkdir -p bin\n\tln -s %s bin/sandbox-sidecar\n'
  H.write(dir .. '/Makefile', build:format(H.binary))
end

---All files of this repository, so that "make build" is the real one.
local function all_files(dir)
  local root = vim.uv.fs_realpath(H.plugin .. '/../..')
  run(
    'bash',
    '-c',
    [[set -o pipefail; git -C "$1" ls-files -z --cached --others --exclude-standard |
      tar -C "$1" --null --files-from=- --create --file=- --ignore-failed-read |
      tar -C "$2" --extract --file=-]],
    'copy',
    root,
    dir
  )
end

---Starts an editor with an init.lua. No stand-in and no line may fail.
---@param world World
---@param init string
---@param prelude? string Lua that runs before.
local function start(world, init, prelude)
  local path = world.home .. '/init.lua'
  H.write(path, init)
  local child = H.child(world, {
    args = {
      '--cmd',
      'cd ' .. world.project,
      '--cmd',
      ('set packpath^=%s/.local/share/nvim/site rtp+=%s/standin/managers'):format(
        world.home,
        H.tests
      ),
      '--cmd',
      'lua ' .. (prelude or 'local _'),
      '-u',
      path,
    },
  })
  H.until_true(child, 'vim.v.vim_did_enter == 1', 'the end of init.lua')
  H.eq(child.v.errmsg, '')
  return child
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

if vim.pack then
  T['the lines for vim.pack'] = function()
    local world = H.world()
    repository(world, plugin_files)
    -- It asks before it installs.
    local child = start(
      world,
      lines_below('vim.pack of Neovim 0.12:'),
      'vim.fn.confirm = function() return 1 end'
    )
    works(child, world.home .. '/.local/share/nvim/site/pack/core/opt/sandbox-sidecar')
  end
end

T['the lines for mini.deps, by a stand-in for it'] = function()
  local world = H.world()
  repository(world, plugin_files)
  local child = start(world, 'require("mini.deps").setup()\n' .. lines_below('mini.deps:'))
  works(child, world.home .. '/.local/share/nvim/site/pack/deps/opt/sandbox-sidecar')
end

for name, spec in pairs({
  help = lines_below('lazy.nvim:'),
  README = README:match('`({ [^`]+})` with lazy%.nvim'),
}) do
  T['the line for lazy.nvim in the ' .. name .. ', by a stand-in for it'] = function()
    local world = H.world()
    repository(world, plugin_files)
    local child = start(world, ('require("lazy").setup({ %s })'):format(spec))
    works(child, world.home .. '/.local/share/nvim/lazy/sandbox-sidecar')
  end
end

T['the lines for a clone by hand, with the real "make build"'] = function()
  local world = H.world()
  repository(world, all_files)
  local done = vim
    .system({ 'sh', '-ec', lines_below('By hand, in a shell:') }, {
      text = true,
      env = {
        HOME = world.home,
        PATH = vim.fs.dirname(vim.v.progpath) .. ':' .. vim.env.PATH,
      },
    })
    :wait()
  H.eq({ done.code, done.code == 0 and '' or done.stderr }, { 0, '' })
  local dir = world.home .. '/src/sandbox-sidecar'
  works(start(world, lines_below('and in init.lua:')), dir)
end

return T
