---:checkhealth| sandbox_sidecar.
local M = {}

---How long to wait for a sidecar to start, in milliseconds. It tests every
---protection of the machine first.
local TIMEOUT = 15000

---@return table<string, fun(text: string, advice?: string[])>
local function reporter()
  local health = vim.health or require('health')
  -- Before 0.10 the functions had longer names.
  return {
    start = health.start or health.report_start,
    ok = health.ok or health.report_ok,
    warn = health.warn or health.report_warn,
    error = health.error or health.report_error,
    info = health.info or health.report_info,
  }
end

---@param report table
local function options(report)
  local config = require('sandbox_sidecar.config')
  report.start('sandbox_sidecar: options')
  local ok, err = pcall(config.get)
  if not ok then
    report.error(tostring(err))
  end
  for _, name in ipairs(config.unknown()) do
    report.warn(('unknown option %q'):format(name), { 'See `:help sandbox-sidecar-options`.' })
  end
  if ok and #config.unknown() == 0 then
    report.ok('the options are valid')
  end
  return ok
end

---@param report table
---@return sandbox_sidecar.InitializeResult?
local function program(report)
  local sidecar = require('sandbox_sidecar.sidecar')
  report.start('sandbox_sidecar: the sidecar')
  local path, missing = require('sandbox_sidecar.binary').find()
  if not path then
    report.error(missing --[[@as string]], {
      'Run `make build` in the checkout; the plugin finds the program there.',
      'Or put `sandbox-sidecar` into `$PATH`, or set the option `binary`.',
      'Searched: '
        .. table.concat(require('sandbox_sidecar.binary').directories(), ', ')
        .. ', `$PATH`',
    })
    return
  end
  report.ok('program: ' .. path)
  local answered, problem = false, nil
  sidecar.ensure(function(err)
    answered, problem = true, err
  end)
  vim.wait(TIMEOUT, function()
    return answered
  end, 10)
  local initialize_result = sidecar.initialize_result()
  if not initialize_result then
    report.error(
      problem and require('sandbox_sidecar.notify').describe(problem)
        or 'the sidecar does not respond',
      { 'See `:Sidecar log`.' }
    )
    return
  end
  report.ok(
    ('version %s, protocol %d, process %d'):format(
      initialize_result.serverInfo.version,
      initialize_result.protocolVersion,
      sidecar.pid()
    )
  )
  return initialize_result
end

---@param report table
---@param initialize_result sandbox_sidecar.InitializeResult
local function protections(report, initialize_result)
  report.start('sandbox_sidecar: what this machine can enforce')
  local names = vim.tbl_keys(initialize_result.capabilities.enforcement)
  table.sort(names)
  for _, name in ipairs(names) do
    local p = initialize_result.capabilities.enforcement[name]
    local mechanism = p.mechanism ~= '' and (' (%s)'):format(p.mechanism) or ''
    local text = ('%s: %s%s: %s'):format(name, p.status, mechanism, p.detail)
    local advice = p.fix and { p.fix } or nil
    if p.status == 'enforced' then
      report.ok(text)
    elseif name == 'denials' then
      -- Reports protect nothing by themselves.
      report.info(text .. (p.fix and ('; ' .. p.fix) or ''))
    elseif p.status == 'absent' and (name == 'filesystem' or name == 'execute') then
      report.error(text, advice)
    else
      report.warn(text, advice)
    end
  end
end

---Whether merged settings sandbox a kind of session.
---@param merged table
---@param kind "terminal"|"tool"
---@return boolean
local function sandboxes(merged, kind)
  local own = merged[kind]
  if own and own.enabled ~= nil and own.enabled ~= vim.NIL then
    return own.enabled
  end
  return merged.enabled and (merged.apply_to == 'both' or merged.apply_to == kind)
end

---@param report table
local function settings(report)
  local sidecar = require('sandbox_sidecar.sidecar')
  local methods = require('sandbox_sidecar.protocol_gen').methods
  local display = require('sandbox_sidecar.display')
  local project = require('sandbox_sidecar.project').current()
  report.start('sandbox_sidecar: settings')
  local answer, problem
  sidecar.request(methods.settings_get, { projectDir = project }, function(err, result)
    answer, problem = result, err
  end)
  vim.wait(TIMEOUT, function()
    return answer ~= nil or problem ~= nil
  end, 10)
  if not answer then
    report.error(
      problem and require('sandbox_sidecar.notify').describe(problem)
        or 'the sidecar does not respond'
    )
    return
  end
  local kinds = {}
  for _, kind in ipairs({ 'terminal', 'tool' }) do
    if sandboxes(answer.settings, kind) then
      kinds[#kinds + 1] = kind .. 's'
    end
  end
  if #kinds > 0 then
    report.ok(('sandboxed in %s: %s'):format(display.path(project), table.concat(kinds, ' and ')))
  else
    report.warn(('nothing is sandboxed in %s'):format(display.path(project)), {
      'Set `terminal.sandbox.enabled` to true: `:Sidecar settings`.',
    })
  end
  for _, d in ipairs(answer.diagnostics) do
    local text =
      display.line(('%s:%d:%d: %s'):format(display.path(d.file), d.line, d.column, d.message))
    local say = ({ error = report.error, warning = report.warn })[d.severity] or report.info
    say(text)
  end
end

function M.check()
  local report = reporter()
  if vim.fn.has('nvim-0.10') == 0 then
    report.start('sandbox_sidecar')
    report.error('needs Neovim 0.10 or newer')
    return
  end
  if not options(report) then
    return
  end
  local initialize_result = program(report)
  if initialize_result then
    protections(report, initialize_result)
    settings(report)
  end
  report.start('sandbox_sidecar: the shell of the editor')
  local text, fine = require('sandbox_sidecar.confine').status()
  if fine then
    report.info(text)
  else
    report.warn(text, { 'Run `:Sidecar confine`, and open the other terminals again.' })
  end
  report.start('sandbox_sidecar: log')
  report.info(require('sandbox_sidecar.log').path())
end

return M
