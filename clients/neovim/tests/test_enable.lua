local H = require('harness')

local T = H.set()

---A child whose user has the given settings, or none, and answers each question
---with _G.choice.
local function child_of(settings)
  local world = H.world(settings)
  if not settings then
    os.remove(world.settings)
  end
  local child = H.child(world)
  child.lua([[
    _G.asked = {}
    vim.api.nvim_list_uis = function()
      return { {} }
    end
    vim.ui.select = function(choices, options, callback)
      table.insert(_G.asked, { prompt = options.prompt, choices = choices })
      callback(_G.choice)
    end
  ]])
  return child, world
end

T['a sandbox that nobody turned on is offered, once for all editors'] = function()
  local child, world = child_of()
  child.lua([[_G.choice = 'not now']])
  H.terminal(child, { cmd = 'true' })
  H.until_true(child, '#_G.asked == 1')
  H.eq(child.lua_get('_G.asked[1]'), {
    prompt = 'The sandbox is off. Turn it on for:',
    choices = { 'terminals and tools', 'tools only', 'not now' },
  })
  H.eq(H.read(world.settings), nil)
  child.cmd('Sidecar restart')
  H.terminal(child, { cmd = 'true' })
  child.lua([[require('sandbox_sidecar.enable').offer(vim.uv.cwd())]])
  child.lua([[require('sandbox_sidecar').run('true'):wait()]])
  H.eq(child.lua_get('#_G.asked'), 1)
end

T['who has decided is not asked'] = function()
  for _, settings in ipairs({ H.settings_off, H.settings() }) do
    local child = child_of(settings)
    child.lua([[require('sandbox_sidecar').run('true'):wait()]])
    child.lua([[require('sandbox_sidecar.enable').offer(vim.uv.cwd())]])
    child.lua([[require('sandbox_sidecar').run('true'):wait()]])
    H.eq(child.lua_get('#_G.asked'), 0)
    child.stop()
  end
end

T['the command turns it on for what was chosen'] = function()
  local cases = {
    { 'Sidecar enable', 'terminals and tools', '"apply_to": "both"' },
    { 'Sidecar enable', 'tools only', '"apply_to": "tool"' },
    { 'Sidecar enable terminal', 'unused', '"apply_to": "terminal"' },
  }
  for _, case in ipairs(cases) do
    local child, world = child_of()
    child.lua([[_G.choice = ...]], { case[2] })
    child.cmd(case[1])
    H.until_notified(child, 'the sandbox is on')
    H.eq(H.read(world.settings):find(case[3], 1, true) ~= nil, true)
    child.stop()
  end
end

T['a file that says otherwise stays, and the text to paste is shown'] = function()
  local child, world = child_of(H.settings_off)
  child.cmd('Sidecar enable both')
  H.until_text(child, 'put this into it yourself')
  H.eq(H.read(world.settings), H.settings_off)
  child.cmd('Sidecar enable everything')
  H.until_notified(child, 'usage: :Sidecar enable')
end

return T
