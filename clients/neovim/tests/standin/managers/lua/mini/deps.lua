-- A stand-in for mini.deps, which is in no package: what add() does with a plugin
-- that is not installed. See its help, "MiniDeps.add()".
local M = {}

local site = vim.fn.stdpath('data') .. '/site'

local function run(command)
  local done = vim.system(command, { text = true }):wait()
  assert(done.code == 0, done.stderr)
end

---@param hook? fun(plugin: { path: string, source: string, name: string })
local function call(hook, plugin)
  local ok, err = pcall(hook or function() end, plugin)
  if not ok then
    vim.notify(err, vim.log.levels.ERROR)
  end
end

---@param spec string|{ source: string, hooks?: table<string, function> }
function M.add(spec)
  spec = type(spec) == 'string' and { source = spec } or spec
  local source, hooks = spec.source, spec.hooks or {}
  if source:find('^[%w-]+/[%w-_.]+$') then
    source = 'https://github.com/' .. source
  end
  local name = vim.fs.basename(source)
  local plugin = { path = site .. '/pack/deps/opt/' .. name, source = source, name = name }
  if vim.fn.isdirectory(plugin.path) == 0 then
    call(hooks.pre_install, plugin)
    run({ 'git', 'clone', '--quiet', '--filter=blob:none', source, plugin.path })
    vim.cmd.helptags(plugin.path .. '/doc')
    call(hooks.post_install, plugin)
  end
  vim.cmd.packadd(name)
end

function M.setup()
  vim.opt.packpath:prepend(site)
  _G.MiniDeps = M
end

return M
