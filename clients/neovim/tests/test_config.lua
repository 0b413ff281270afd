local H = require('harness')

local T = H.set()

T['setup overrides the variable, and that the defaults'] = function()
  local child = H.child(nil, { setup = { start_insert = true, clipboard = true } })
  child.lua('require("sandbox_sidecar").setup({ clipboard = false })')
  H.eq(child.lua_get('require("sandbox_sidecar.config").get().clipboard'), false)
  H.eq(child.lua_get('require("sandbox_sidecar.config").get().start_insert'), true)
  H.eq(child.lua_get('require("sandbox_sidecar.config").get().log_level'), 'info')
  H.eq(child.lua_get('require("sandbox_sidecar.config").get().root_markers'), { '.git', '.zed' })
end

T['a value of the wrong type is rejected by name'] = function()
  local child = H.child()
  for _, case in ipairs({
    { { binary = 1 }, 'binary' },
    { { root_markers = '.git' }, 'root_markers' },
    { { shell = { 'bash', 2 } }, 'shell%[2%]' },
    { { env = { A = 1 } }, 'env.A' },
    { { clipboard = 'yes' }, 'clipboard' },
  }) do
    local ok, err =
      unpack(child.lua('return { pcall(require("sandbox_sidecar").setup, ...) }', { case[1] }))
    H.eq(ok, false)
    H.eq(err:match(case[2]) ~= nil, true)
  end
end

T['an option of setup() that does not exist is an error, and changes nothing'] = function()
  local child = H.child()
  local ok, err = unpack(child.lua([[
    local setup = require('sandbox_sidecar').setup
    return { pcall(setup, { colour = 'red', start_insert = true }) }
  ]]))
  H.eq(ok, false)
  H.eq(
    err:find('unknown option "colour". See ":help sandbox-sidecar-options".', 1, true) ~= nil,
    true
  )
  H.eq(child.lua_get('require("sandbox_sidecar.config").get().start_insert'), false)
end

T['functions name an option that does not exist or has the wrong type, and start nothing'] = function()
  local child = H.child()
  for _, case in ipairs({
    {
      'run("touch made", { timout = 1 })',
      'run: unknown option "timout". It has: cwd, env, group, ',
    },
    {
      'run("touch made", { timeout = "1" })',
      'run: option "timeout": expected number, found string',
    },
    { 'run("touch made", "tool")', 'run: expected a table of options, found string' },
    { 'terminal({ command = "touch made" })', 'terminal: unknown option "command". It has: cmd, ' },
    { 'terminal({ cmd = 1 })', 'terminal: option "cmd": expected string or table, found number' },
    { 'wrap({ "true" }, { project = "/" })', 'wrap: unknown option "project". It has: kind, ' },
    { 'wrap({ "true" }, { ["a\\nb"] = 1 })', 'wrap: unknown option "a\\nb". ' },
  }) do
    local err = child.lua(([[
      local ok, err = pcall(function()
        require('sandbox_sidecar').%s
      end)
      return ok and 'no error' or err
    ]]):format(case[1]))
    if not err:find(case[2], 1, true) then
      error(('%s: %s'):format(case[1], err))
    end
  end
  H.eq(child.lua_get('require("sandbox_sidecar.sidecar").pid() == nil'), true)
  H.eq(#child.api.nvim_list_wins(), 1)
  -- Control: with the right names, both run.
  H.eq(
    child.lua_get(
      'require("sandbox_sidecar").run("touch made", { timeout = 30000 }):wait().exit_code'
    ),
    0
  )
  H.eq(H.read(child.world.project .. '/made'), '')
  H.terminal(child, { cmd = 'read line', mods = 'vertical' })
end

T['an option of g:sandbox_sidecar that does not exist is named once'] = function()
  local child = H.child(nil, { setup = { colour = 'red' } })
  H.terminal(child, { cmd = 'read line' })
  H.until_notified(child, 'unknown option "colour"', ':help sandbox-sidecar-options')
  H.terminal(child, { cmd = 'read line' })
  H.eq(#H.notified(child, 'unknown option'), 1)
end

T['a clone of the repository is the plugin, as plugin managers add it'] = function()
  -- They add the root to 'runtimepath', make tags of its doc, and call setup().
  local root = vim.uv.fs_realpath(H.plugin .. '/../..')
  local child = H.child(nil, { plugin = root })
  child.lua('require("sandbox_sidecar").setup({ start_insert = false })')
  H.eq(
    child.lua_get('vim.api.nvim_get_runtime_file("lua/sandbox_sidecar/init.lua", true)'),
    { root .. '/lua/sandbox_sidecar/init.lua' }
  )
  H.terminal(child, { cmd = 'echo it "works"; read line' })
  H.until_text(child, 'it works')
  local tags = vim.fn.tempname()
  vim.fn.mkdir(tags)
  vim.system({ 'cp', '-rL', root .. '/doc', tags }):wait()
  child.cmd('helptags ' .. tags .. '/doc')
  H.eq(H.read(tags .. '/doc/tags'):find(':Sidecar-allow', 1, true) ~= nil, true)
  vim.fn.delete(tags, 'rf')
end

T['loading the plugin loads nothing else'] = function()
  local child = H.child()
  H.eq(
    child.lua_get([[vim.tbl_filter(function(name)
    return name:match('^sandbox_sidecar') ~= nil
  end, vim.tbl_keys(package.loaded))]]),
    {}
  )
end

T['the plugin sets no globals'] = function()
  local child = H.child()
  child.lua(
    [[
    local before = {}
    for name in pairs(_G) do
      before[name] = true
    end
    for _, file in ipairs(vim.fn.glob(... .. '/lua/sandbox_sidecar/*.lua', true, true)) do
      require('sandbox_sidecar.' .. vim.fn.fnamemodify(file, ':t:r'))
    end
    _G.new = {}
    for name in pairs(_G) do
      if not before[name] and name ~= 'new' then
        table.insert(_G.new, name)
      end
    end
  ]],
    { H.plugin }
  )
  H.eq(child.lua_get('_G.new'), {})
end

return T
