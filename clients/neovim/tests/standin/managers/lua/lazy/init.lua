-- A stand-in for lazy.nvim, which is in no package: what it does with a plugin
-- that is not installed. See its documentation, "Plugin Spec".
local M = {}

local function run(command, cwd)
  local done = vim.system(command, { cwd = cwd, text = true }):wait()
  assert(done.code == 0, done.stderr)
end

---@param spec { [1]: string, build?: string }
local function install(spec)
  local dir = vim.fn.stdpath('data') .. '/lazy/' .. vim.fs.basename(spec[1])
  if vim.fn.isdirectory(dir) == 0 then
    local url = ('https://github.com/%s.git'):format(spec[1])
    run({ 'git', 'clone', '--quiet', '--filter=blob:none', url, dir })
    if spec.build then
      run({ vim.env.SHELL or vim.o.shell, '-c', spec.build }, dir)
    end
    vim.cmd.helptags(dir .. '/doc')
  end
  return dir
end

---@param specs { [1]: string, build?: string }[]
function M.setup(specs)
  vim.loader.enable()
  vim.go.loadplugins = false
  for _, spec in ipairs(specs) do
    local dir = install(spec)
    vim.opt.runtimepath:prepend(dir)
    for name, kind in vim.fs.dir(dir .. '/plugin') do
      assert(kind == 'file' and name:match('%.lua$'), name)
      vim.cmd.source(dir .. '/plugin/' .. name)
    end
  end
end

return M
