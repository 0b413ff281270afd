---The plugin's options. Defaults, checks and the help come from the table
---below.
local M = {}

---@class (exact) sandbox_sidecar.OptionSpec
---@field name string
---@field type string|string[] As vim.validate takes it.
---@field shown? string The type in the help, if it differs.
---@field default any
---@field doc string

---@type sandbox_sidecar.OptionSpec[]
M.spec = {
  {
    name = 'binary',
    type = { 'string', 'nil' },
    doc = 'The program. Without it, the plugin searches its own directory `bin`, the `bin` of its checkout, '
      .. 'and `$PATH`.',
  },
  {
    name = 'settings_path',
    type = { 'string', 'nil' },
    doc = 'An absolute path to a settings file that replaces your user settings file. No session starts while '
      .. 'it is missing.',
  },
  {
    name = 'root_markers',
    type = 'table',
    shown = 'string[]',
    default = { '.git', '.zed' },
    doc = 'A project is the nearest directory above the working directory that contains one of these. It is never '
      .. 'the home directory or one above it. Without a marker it is the working directory. A session may write its project.',
  },
  {
    name = 'shell',
    type = { 'table', 'nil' },
    shown = 'string[]',
    doc = 'The program of `:Sidecar terminal` with its arguments. Without it, `$SHELL` as a login shell.',
  },
  {
    name = 'env',
    type = 'table',
    shown = 'table<string, string>',
    default = {},
    doc = 'Environment variables for every session. The setting `allowed_env_vars` filters them like all others.',
  },
  {
    name = 'start_insert',
    type = 'boolean',
    default = false,
    doc = 'Whether a new terminal starts in Terminal-mode. |:terminal| does not.',
  },
  {
    name = 'close_on_success',
    type = 'boolean',
    default = false,
    doc = 'Whether a terminal closes when its program exits with status 0.',
  },
  {
    name = 'clipboard',
    type = 'boolean',
    default = false,
    doc = 'Whether programs in a terminal may write the clipboard (OSC 52). Off by default: a program could write '
      .. 'a command that you paste into another shell.',
  },
  {
    name = 'log_level',
    type = 'string',
    shown = 'one of "debug", "info", "warn", "error"',
    default = 'info',
    doc = 'The least severe level of sidecar messages in the log (`:Sidecar log`).',
  },
}

---@class sandbox_sidecar.Config
---@field binary? string
---@field settings_path? string
---@field root_markers string[]
---@field shell? string[]
---@field env table<string, string>
---@field start_insert boolean
---@field close_on_success boolean
---@field clipboard boolean
---@field log_level 'debug'|'info'|'warn'|'error'

---The same with every field optional, for the user.
---@class sandbox_sidecar.SetupOptions
---@field binary? string
---@field settings_path? string
---@field root_markers? string[]
---@field shell? string[]
---@field env? table<string, string>
---@field start_insert? boolean
---@field close_on_success? boolean
---@field clipboard? boolean
---@field log_level? 'debug'|'info'|'warn'|'error'

local given = {} ---@type sandbox_sidecar.SetupOptions

---@param name string
---@param value any
---@param types string|string[]
local function validate(name, value, types)
  if vim.fn.has('nvim-0.11') == 1 then
    vim.validate(name, value, types)
  else
    vim.validate({ [name] = { value, types } })
  end
end

---Raises an error that names the option and the expected type.
---@param options table
function M.check(options)
  validate('sandbox_sidecar', options, 'table')
  for _, option in ipairs(M.spec) do
    if options[option.name] ~= nil then
      validate('sandbox_sidecar.' .. option.name, options[option.name], option.type)
    end
  end
  for _, name in ipairs({ 'root_markers', 'shell' }) do
    for i, item in ipairs(options[name] or {}) do
      validate(('sandbox_sidecar.%s[%d]'):format(name, i), item, 'string')
    end
  end
  for name, value in pairs(options.env or {}) do
    validate('sandbox_sidecar.env.' .. name, value, 'string')
  end
end

---@param options table
---@return string[] # Names of options that do not exist.
local function unknown_in(options)
  local known, unknown = {}, {}
  for _, option in ipairs(M.spec) do
    known[option.name] = true
  end
  for name in pairs(options) do
    if not known[name] then
      unknown[#unknown + 1] = tostring(name)
    end
  end
  table.sort(unknown)
  return unknown
end

---@param name string
---@return string
local function describe_unknown(name)
  return ('unknown option %s. See ":help sandbox-sidecar-options".'):format(
    require('sandbox_sidecar.display').quote(name)
  )
end

---@return string[] # Names in |g:sandbox_sidecar| that are no options.
function M.unknown()
  return unknown_in(vim.g.sandbox_sidecar or {})
end

---Warns of them, once each. An error would come at every use, not where the
---variable is set.
function M.report_unknown()
  for _, name in ipairs(M.unknown()) do
    require('sandbox_sidecar.notify').warn_once(describe_unknown(name))
  end
end

---@param options sandbox_sidecar.SetupOptions
function M.set(options)
  M.check(options)
  for _, name in ipairs(unknown_in(options)) do
    error('sandbox_sidecar: ' .. describe_unknown(name), 3)
  end
  given = vim.deepcopy(options)
end

---The effective options: setup(), else vim.g.sandbox_sidecar, else the
---defaults.
---@return sandbox_sidecar.Config
function M.get()
  local global = vim.g.sandbox_sidecar or {}
  M.check(global)
  local config = {}
  for _, option in ipairs(M.spec) do
    for _, value in ipairs({ { given[option.name] }, { global[option.name] }, { option.default } }) do
      if value[1] ~= nil then
        config[option.name] = value[1]
        break
      end
    end
  end
  return config
end

return M
