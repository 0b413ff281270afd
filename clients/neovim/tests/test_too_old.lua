-- If Neovim is too old, the plugin reports that once, and does nothing else.
local H = require('harness')

local T = H.set()

local OLD = H.tools .. '/neovim-too-old/usr/bin/nvim'

---@return string # Its output.
local function run(...)
  -- The editor that runs this test sets these variables, and they lead to its
  -- own runtime files.
  local args = {
    'env',
    '-u',
    'VIM',
    '-u',
    'VIMRUNTIME',
    OLD,
    '--headless',
    '-u',
    'NONE',
    '-i',
    'NONE',
    '-n',
    '--cmd',
    'set rtp^=' .. H.plugin,
    '--cmd',
    'runtime! plugin/*.lua',
  }
  for _, command in ipairs({ ... }) do
    vim.list_extend(args, { '-c', command })
  end
  local done = vim
    .system(vim.list_extend(args, { '-c', 'qall!' }), { text = true, timeout = H.timeout })
    :wait()
  H.eq({ done.code, done.signal }, { 0, 0 })
  return (vim.trim(done.stdout .. done.stderr):gsub('\r', ''))
end

T['it really is too old'] = function()
  H.eq(run("lua io.stderr:write(tostring(vim.fn.has('nvim-0.10')))"):match('^0'), '0')
end

T['starting reports it once'] = function()
  H.eq(run('sleep 200m'), 'sandbox_sidecar: needs Neovim 0.10 or newer')
end

T['the command reports it, without a stack trace'] = function()
  H.eq(run('Sidecar terminal'), 'sandbox_sidecar: needs Neovim 0.10 or newer')
end

T['setup reports it'] = function()
  local output = run('lua require("sandbox_sidecar").setup({})')
  H.eq(
    output:match('^sandbox_sidecar: needs Neovim 0.10 or newer'),
    'sandbox_sidecar: needs Neovim 0.10 or newer'
  )
  H.eq(output:find('traceback', 1, true), nil)
end

T['checkhealth reports it'] = function()
  local output = run(
    'checkhealth sandbox_sidecar',
    'lua io.stderr:write(table.concat(vim.api.nvim_buf_get_lines(0, 0, -1, false), "\\n"))'
  )
  H.eq(output:find('ERROR: needs Neovim 0.10 or newer', 1, true) ~= nil, true)
  H.eq(output:find('traceback', 1, true), nil)
end

return T
