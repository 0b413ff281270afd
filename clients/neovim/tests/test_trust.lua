local H = require('harness')

local T = H.set()

-- A repository that requests everything.
local ROGUE = '{ "terminal": { "sandbox": { "enabled": false } } }'

---A child whose project has settings, and whose user answers each question with
---_G.choice.
local function child_of(settings)
  local world = H.world()
  world.project_settings = world.project .. '/.zed/settings.json'
  H.write(world.project_settings, settings)
  local child = H.child(world)
  child.lua([[
    _G.asked = {}
    vim.ui.select = function(choices, options, callback)
      table.insert(_G.asked, {
        prompt = options.prompt,
        first = choices[1],
        lines = vim.api.nvim_buf_get_lines(0, 0, -1, false),
      })
      for i, choice in ipairs(choices) do
        if choice == _G.choice then
          return callback(choice, i)
        end
      end
      callback(nil, nil)
    end
  ]])
  return child, world
end

local function reads_secret(child)
  return child.lua_get('require("sandbox_sidecar").run("cat ../outside/secret"):wait().exit_code')
    == 0
end

local ASKS = 'asks for more than your sandbox settings allow'

local function answer(child, choice)
  child.lua('_G.choice, _G.asked = ..., {}', { choice })
  child.cmd('Sidecar trust')
  H.until_true(child, '#_G.asked > 0')
  return child.lua_get('_G.asked[1]')
end

T["a project's requests are reported once, have no effect, and are shown before the question"] = function()
  H.require('filesystem')
  local child, world = child_of(ROGUE)
  H.eq(reads_secret(child), false)
  H.until_notified(child, ASKS)
  H.terminal(child, { cmd = 'true' })
  H.eq(#H.notified(child, ASKS), 1)
  local asked = answer(child, 'Do not trust')
  H.eq(asked.prompt, ('Trust "%s"? Its requests are shown above.'):format(world.project_settings))
  H.eq(asked.first, 'Do not trust')
  H.eq({ #asked.lines, (asked.lines[1]:find('line 1: enabled false: ', 1, true)) }, { 1, 1 })
  -- The list closes with the question.
  H.eq(child.lua_get('#vim.api.nvim_list_wins()'), 1)
  H.eq(reads_secret(child), false)
  -- No answer trusts nothing either.
  answer(child, nil)
  H.eq(reads_secret(child), false)
end

T['trusted settings apply until they change or trust is withdrawn'] = function()
  H.require('filesystem')
  local child, world = child_of(ROGUE)
  H.eq(reads_secret(child), false)
  answer(child, 'Trust this content')
  H.until_notified(child, 'is trusted')
  H.eq(reads_secret(child), true)
  child.cmd('Sidecar trust')
  H.until_notified(child, 'is trusted until it changes')
  H.write(world.project_settings, ROGUE .. '\n')
  H.eq(reads_secret(child), false)
  H.write(world.project_settings, ROGUE)
  H.eq(reads_secret(child), true)
  child.cmd('Sidecar untrust')
  H.until_notified(child, 'is not trusted')
  H.eq(reads_secret(child), false)
end

T['what changed after it was shown is not trusted'] = function()
  local child, world = child_of(ROGUE)
  child.lua(
    [[
    local path, text = ...
    vim.ui.select = function(choices, _, callback)
      vim.fn.writefile({ text }, path)
      callback(choices[3], 3)
    end
  ]],
    { world.project_settings, ROGUE }
  )
  child.cmd('Sidecar trust')
  H.until_notified(child, 'not the content that was shown')
  H.eq(reads_secret(child), false)
end

T['the file can be viewed before the decision'] = function()
  local child, world = child_of(ROGUE)
  answer(child, 'View the file')
  H.until_true(child, ('vim.api.nvim_buf_get_name(0) == %q'):format(world.project_settings))
end

T['modelines in the file have no effect'] = function()
  local child =
    child_of('// {{{\n' .. ROGUE .. '\n// }}}\n// vim: set foldmethod=marker foldlevel=0 :\n')
  -- It is off for root.
  child.go.modeline = true
  answer(child, 'View the file')
  H.until_true(child, 'vim.api.nvim_buf_line_count(0) == 4')
  H.eq({ child.fn.foldclosed(2), child.wo.foldmethod, child.go.modeline }, { -1, 'manual', true })
  -- Control: such a line works elsewhere.
  child.cmd('bwipeout | edit .zed/settings.json')
  H.eq(child.fn.foldclosed(2), 1)
end

T['without a file there is nothing to trust'] = function()
  local child = H.child()
  child.cmd('Sidecar trust')
  H.until_notified(child, 'There is no "')
end

T['a change that requests more is reported while the editor runs'] = function()
  local child, world = child_of('{}')
  H.terminal(child, { cmd = 'exec sleep 60' })
  H.eq(H.notified(child, ASKS), {})
  H.write(world.project_settings, ROGUE)
  H.until_notified(child, ASKS)
end

return T
