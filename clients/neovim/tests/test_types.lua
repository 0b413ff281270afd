-- The annotations that LuaLS reads. LuaLS itself is in no package that CI has. If
-- it is installed it checks the code, too; else a note says that it did not.
local MiniTest = require('mini.test')
local H = require('harness')

local T = H.set()

---@return table<string, string> # The text of each file.
local function sources()
  local texts = {}
  for _, path in ipairs(vim.fn.glob(H.plugin .. '/{lua,plugin}/**/*.lua', true, true)) do
    texts[path] = H.read(path)
  end
  return texts
end

---@return table<string, true> # The types that annotations declare.
local function declared_in(texts)
  local declared = {}
  for _, text in pairs(texts) do
    for line in text:gmatch('[^\n]+') do
      local name = line:match('^%-%-%-@class %(exact%) ([%w_.]+)')
        or line:match('^%-%-%-@class ([%w_.]+)')
        or line:match('^%-%-%-@alias ([%w_.]+)')
      if name then
        declared[name] = true
      end
    end
  end
  return declared
end

---@return string[] # Parameters of the function that begins in a line.
local function parameters_of(line)
  local list = line:match('function%s*[%w_.:]*%s*%((.-)%)')
  return list and vim.split(list, '%s*,%s*', { trimempty = true })
end

---Returns what is wrong in the annotations of a text: types that nothing
---declares, and parameters that the function does not have.
local function problems_of(text, declared)
  local problems, params = {}, {}
  for _, line in ipairs(vim.split(text, '\n', { plain = true })) do
    local note = line:match('%-%-%-(.*)') or line:match('%-%-%[%[@(.*)')
    for name in (note and line:find('@', 1, true) and note or ''):gmatch('sandbox_sidecar%.[%w_]+') do
      if name:find('%.%u') and not declared[name] then
        problems[#problems + 1] = 'no type ' .. name
      end
    end
    local param = line:match('^%s*%-%-%-@param ([%w_.]+)')
    if param then
      params[#params + 1] = param
    elseif not line:find('^%s*%-%-') then
      local has = parameters_of(line)
      for _, wanted in ipairs(has and params or {}) do
        if not vim.tbl_contains(has, wanted) then
          problems[#problems + 1] = ('no parameter %s: %s'):format(wanted, vim.trim(line))
        end
      end
      params = {}
    end
  end
  return problems
end

T['annotations name types and parameters that exist'] = function()
  local texts = sources()
  local declared = declared_in(texts)
  local count = 0
  for path, text in pairs(texts) do
    count = count + 1
    H.eq({ path, problems_of(text, declared) }, { path, {} })
  end
  H.eq(count > 30, true)
  -- Control: what it finds.
  H.eq(
    problems_of(
      [[
---@param options sandbox_sidecar.Nothing
---@param given string
local function f(options)
end]],
      declared
    ),
    { 'no type sandbox_sidecar.Nothing', 'no parameter given: local function f(options)' }
  )
end

---@return string[] # The fields of a class, sorted.
local function fields_of(class)
  for _, text in pairs(sources()) do
    local _, last = text:find('%-%-%-@class ' .. vim.pesc(class) .. '\n')
    if last then
      local fields = {}
      for line in text:sub(last + 1):gmatch('([^\n]*)\n') do
        if not line:find('^%-%-%-') then
          break
        end
        fields[#fields + 1] = line:match('^%-%-%-@field ([%w_]+)')
      end
      table.sort(fields)
      return fields
    end
  end
  error('no class ' .. class)
end

T['the classes of options have the options that the functions take'] = function()
  local plugin = require('sandbox_sidecar')
  for class, call in pairs({
    RunOptions = function(options)
      plugin.run('true', options)
    end,
    TerminalOptions = plugin.terminal,
    WrapOptions = function(options)
      plugin.wrap({ 'true' }, options)
    end,
  }) do
    local _, err = pcall(call, { ['?'] = 1 })
    local known = vim.split(err:match('unknown option "%?"%. It has: (.*)$'), ', ')
    H.eq({ class, known }, { class, fields_of('sandbox_sidecar.' .. class) })
  end
  local names = {}
  for _, option in ipairs(require('sandbox_sidecar.config').spec) do
    names[#names + 1] = option.name
  end
  table.sort(names)
  for _, class in ipairs({ 'Config', 'SetupOptions' }) do
    H.eq({ class, names }, { class, fields_of('sandbox_sidecar.' .. class) })
  end
end

T['LuaLS finds nothing, if it is installed'] = function()
  if vim.fn.executable('lua-language-server') == 0 then
    MiniTest.add_note('lua-language-server is not installed, so it has not checked the types')
    return
  end
  local logs = vim.fn.tempname()
  H.cleanup(function()
    vim.fn.delete(logs, 'rf')
  end)
  local done = vim
    .system({
      'lua-language-server',
      '--check=' .. H.plugin .. '/lua',
      '--configpath=' .. H.plugin .. '/.luarc.json',
      '--checklevel=Warning',
      '--logpath=' .. logs,
    }, { text = true, env = { VIMRUNTIME = vim.env.VIMRUNTIME } })
    :wait()
  H.eq({ done.code, done.code == 0 and '' or done.stdout .. done.stderr }, { 0, '' })
end

return T
