local H = require('harness')

local T = H.set()

local function diagnostics(child, buf)
  return child.lua_get(
    [[vim.tbl_map(function(d)
    return { d.lnum, d.col, d.severity, d.message, d.source }
  end, vim.diagnostic.get(...))]],
    { buf or 0 }
  )
end

local BROKEN = [[
{
  "terminal": {
    "sandbox": {
      "enabled": true,
      "alow_network": false
    }
  }
}
]]

T['problems in the settings are shown in their buffer until they are fixed'] = function()
  local world = H.world(BROKEN)
  local child = H.child(world)
  child.cmd('Sidecar settings')
  H.eq(diagnostics(child), {})
  H.terminal(child, { cmd = 'exec sleep 60', mods = 'botright' })
  local buf = child.fn.bufnr(world.settings)
  H.wait('the diagnostic', function()
    return #diagnostics(child, buf) == 1
  end)
  local d = diagnostics(child, buf)[1]
  -- Line 5, column 7, counted from 0.
  H.eq({ d[1], d[2], d[5] }, { 4, 6, 'sandbox-sidecar' })
  H.eq(d[4]:find('allow_network', 1, true) ~= nil, true)
  H.write(world.settings, (BROKEN:gsub('alow', 'allow')))
  H.wait('no diagnostic', function()
    return #diagnostics(child, buf) == 0
  end)
end

T['a buffer that is opened later shows known problems, also through a symlink'] = function()
  local world = H.world(BROKEN)
  local child = H.child(world)
  H.terminal(child, { cmd = 'exec sleep 60' })
  H.until_true(child, 'next(require("sandbox_sidecar.diagnostics").all()) ~= nil')
  child.cmd('edit ' .. world.settings)
  H.eq(#diagnostics(child), 1)
  vim.uv.fs_symlink(world.settings, world.root .. '/link.json')
  child.cmd('edit ' .. world.root .. '/link.json')
  H.eq(#diagnostics(child), 1)
end

T['an error in a file that is not open is reported once'] = function()
  local world = H.world()
  local child = H.child(world)
  H.terminal(child, { cmd = 'exec sleep 60' })
  H.write(world.settings, '{ "terminal": { "sandbox": { "enabled": tru } } }')
  H.until_true(child, '#_G.notified > 0')
  H.eq(child.lua_get('_G.notified[1].text'):match('settings.json":1:%d+: ') ~= nil, true)
end

T['changed settings mark the running terminals as stale'] = function()
  local world = H.world()
  local child = H.child(world)
  local buf = H.terminal(child, { cmd = 'exec sleep 60' })
  H.write(world.settings, H.settings({ allow_network = false }))
  H.until_true(child, ('vim.b[%d].sandbox_sidecar.stale'):format(buf))
  H.eq(
    child.lua_get('_G.notified[1].text'),
    'Sandbox: 1 terminal still uses old settings. See ":Sidecar reopen".'
  )
  H.write(world.settings, H.settings())
  H.until_true(child, ('not vim.b[%d].sandbox_sidecar.stale'):format(buf))
end

T['the sidecar follows the directory of the editor'] = function()
  local world = H.world()
  local other = world.root .. '/other'
  vim.fn.mkdir(other .. '/.git', 'p')
  H.write(other .. '/.zed/settings.json', '{ "terminal": { "sandbox": { "enabled": 1 } } }')
  local child = H.child(world)
  H.terminal(child, { cmd = 'exec sleep 60' })
  child.cmd('cd ' .. other)
  H.until_true(
    child,
    ('require("sandbox_sidecar.diagnostics").all()[%q] ~= nil'):format(
      other .. '/.zed/settings.json'
    )
  )
end

T['each warning of the sidecar is reported once'] = function()
  local world = H.world()
  -- A project that is the home directory causes one.
  local child = H.child(world)
  child.cmd('cd ' .. world.home)
  H.terminal(child, { cmd = 'true' })
  local first = child.lua_get('#_G.notified')
  H.eq(first > 0, true)
  H.terminal(child, { cmd = 'true' })
  H.eq(child.lua_get('#_G.notified'), first)
end

return T
