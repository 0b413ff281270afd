local H = require('harness')

local T = H.set()

local PATH = H.plugin .. '/doc/sandbox-sidecar.txt'

-- Generates the help's section about options from the table.
local function options_section()
  local lines = {}
  for _, option in ipairs(require('sandbox_sidecar.config').spec) do
    local tag = ('*sandbox-sidecar-option-%s*'):format(option.name)
    lines[#lines + 1] = ('%s%s'):format(option.name, (' '):rep(78 - #option.name - #tag) .. tag)
    local kind = option.shown or (type(option.type) == 'table' and option.type[1] or option.type)
    local default = vim.inspect(option.default, { newline = ' ', indent = '' })
    lines[#lines + 1] = ('    %s, default `%s`'):format(kind, default)
    local line = '   '
    for word in option.doc:gmatch('%S+') do
      if #line + 1 + #word > 78 then
        lines[#lines + 1] = line
        line = '   '
      end
      line = line .. ' ' .. word
    end
    lines[#lines + 1] = line
    lines[#lines + 1] = ''
  end
  return table.concat(lines, '\n') .. '\n'
end

T['the help lists the options of the code'] = function()
  local text = H.read(PATH)
  local before, between, after =
    text:match('^(.-\nEach option with its type and default:\n\n)(.-)(==========.*)$')
  local want = options_section()
  if vim.env.UPDATE == '1' then
    H.write(PATH, before .. want .. after)
  elseif between ~= want then
    error(
      'the options in doc/sandbox-sidecar.txt are not those of the code: run "UPDATE=1 make test-neovim"'
    )
  end
end

T['the tags of both files can be built, and every link has a tag'] = function()
  local dir = vim.fn.tempname()
  vim.fn.mkdir(dir, 'p')
  H.cleanup(function()
    vim.fn.delete(dir, 'rf')
  end)
  local text = ''
  for _, name in ipairs({ 'sandbox-sidecar.txt', 'sandbox-sidecar-settings.txt' }) do
    local content = H.read(H.plugin .. '/doc/' .. name)
    H.write(dir .. '/' .. name, content)
    text = text .. content
  end
  vim.cmd.helptags(dir)
  local own = {}
  for tag in H.read(dir .. '/tags'):gmatch('([^\t\n]+)\t[^\n]*\n') do
    own[tag] = true
  end
  -- The editor's own tags are in its runtime files.
  local runtime = H.read(vim.env.VIMRUNTIME .. '/doc/tags')
  for link in text:gmatch('|([^%s|]+)|') do
    local tag = link
    if not own[tag] and not runtime:find('\n' .. tag .. '\t', 1, true) then
      error('no tag for the link ' .. link)
    end
  end
  for _, name in ipairs(vim.tbl_keys(require('sandbox_sidecar.command').subcommands)) do
    H.eq({ name, own[':Sidecar-' .. name] }, { name, true })
  end
  for _, name in ipairs(vim.tbl_keys(require('sandbox_sidecar'))) do
    H.eq({ name, own[('sandbox_sidecar.%s()'):format(name)] }, { name, true })
  end
end

T['no line of either file is wider than 78 columns'] = function()
  for _, name in ipairs({ 'sandbox-sidecar.txt', 'sandbox-sidecar-settings.txt' }) do
    for line in H.read(H.plugin .. '/doc/' .. name):gmatch('([^\n]*)\n') do
      if vim.fn.strdisplaywidth(line) > 78 then
        error(name .. ': ' .. line)
      end
    end
  end
end

T['every example runs'] = function()
  local world = H.world()
  local child = H.child(world)
  -- The examples need these.
  child.env.PATH = vim.fs.dirname(H.binary) .. ':' .. child.env.PATH
  child.cmd('set rtp+=' .. H.tests .. '/standin/overseer')
  child.lua([[
    package.loaded['codecompanion.interactions.chat.tools.builtin.run_command'] = { handlers = {} }
  ]])
  local count = 0
  for example in H.read(PATH):gmatch(' ?>lua\n\n(.-)\n<') do
    count = count + 1
    local ok, err = unpack(child.lua(
      [[
      local chunk, problem = loadstring(...)
      if not chunk then
        return { false, problem }
      end
      return { pcall(chunk) }
    ]],
      { example }
    ))
    if not ok then
      error(('%s\nin the example:\n%s'):format(err, example))
    end
  end
  H.eq(count >= 15, true)
  -- The example settings are valid, and do what the text says.
  H.write(world.settings, H.read(PATH):match(' >json\n\n(.-)\n<'))
  local result = child.lua_get([[(function()
    local result = require('sandbox_sidecar').run('true'):wait()
    return { result.exit_code, result.sandbox.applied }
  end)()]])
  H.eq(result[1], 0)
  H.require('filesystem')
  H.eq(result[2], true)
end

return T
