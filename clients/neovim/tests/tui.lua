-- An editor on a real terminal (tmux).
local H = require('harness')

local M = {}

---@class Tui
---@field call fun(expression: string): any Evaluates Lua in the editor.
---@field run fun(code: string) Runs Lua in the editor.
---@field tmux fun(...: string): string
---@field keys fun(...: string) Types keys, by their names in tmux.
---@field screen fun(): string

---Starts the editor in tmux.
---@param opts? { cols?: integer, rows?: integer, binary?: string }
---@return Tui
function M.start(world, opts)
  opts = vim.tbl_extend('force', { cols = 120, rows = 30, binary = H.binary }, opts or {})
  local socket = world.root .. '/tmux'
  local server = world.root .. '/nvim'
  local function tmux(...)
    local done = vim
      .system({ 'tmux', '-S', socket, '-f', '/dev/null', ... }, { text = true, env = { TMUX = '' } })
      :wait()
    assert(done.code == 0, done.stderr)
    return done.stdout
  end
  local env = {}
  for name, value in
    pairs(vim.tbl_extend('force', H.env(world), { SHELL = '/bin/sh', TERM = 'screen-256color' }))
  do
    vim.list_extend(env, { '-e', name .. '=' .. value })
  end
  vim.fn.mkdir(world.home .. '/run', 'p', 448)
  local command = {
    vim.v.progpath,
    '--clean',
    '-n',
    '--listen',
    server,
    '--cmd',
    'set rtp^=' .. H.plugin,
    '--cmd',
    'lua vim.g.sandbox_sidecar = '
      .. vim.inspect({ binary = opts.binary }, { newline = ' ', indent = '' }),
  }
  tmux(
    'new-session',
    '-d',
    '-x',
    tostring(opts.cols),
    '-y',
    tostring(opts.rows),
    '-c',
    world.project,
    unpack(vim.list_extend(env, command))
  )
  H.cleanup(function()
    vim.system({ 'tmux', '-S', socket, 'kill-server' }):wait()
  end)
  local channel
  local function connect()
    local ok, id = pcall(vim.fn.sockconnect, 'pipe', server, { rpc = true })
    channel = ok and id
    return ok
  end
  H.wait('the editor in tmux', connect)
  H.cleanup(function()
    pcall(vim.fn.chanclose, channel)
  end)
  H.wait('its start', function()
    return vim.rpcrequest(channel, 'nvim_get_vvar', 'vim_did_enter') == 1
  end)
  -- An editor that waits for a key would not answer.
  local function ready()
    H.wait('the end of a prompt', function()
      return not vim.rpcrequest(channel, 'nvim_get_mode').blocking
    end)
  end
  return {
    tmux = tmux,
    call = function(expression, ...)
      ready()
      return vim.rpcrequest(channel, 'nvim_exec_lua', 'return ' .. expression, { ... })
    end,
    run = function(code, ...)
      ready()
      vim.rpcrequest(channel, 'nvim_exec_lua', code, { ... })
    end,
    keys = function(...)
      tmux('send-keys', ...)
    end,
    screen = function()
      return tmux('capture-pane', '-p')
    end,
  }
end

---Joins the rows of a screen.
---@param screen string
---@return string
function M.flat(screen)
  return (screen:gsub('\n', ''))
end

---Waits until a pattern matches the screen or its joined rows. Returns the
---screen.
function M.until_screen(editor, text)
  local screen
  local ok, err = pcall(H.wait, 'the screen to show ' .. text, function()
    screen = editor.screen()
    return screen:find(text) or M.flat(screen):find(text)
  end)
  if not ok then
    error(err .. '; it shows:\n' .. screen, 2)
  end
  return screen
end

return M
