local H = require('harness')

local T = H.set()

local function checkhealth(child)
  child.cmd('checkhealth sandbox_sidecar')
  return H.text(child)
end

local function has(text, want)
  if not text:find(want, 1, true) then
    error(('%q is missing in:\n%s'):format(want, text), 2)
  end
end

T['the report names the program, the version, every protection and the settings'] = function()
  local world = H.world()
  local child = H.child(world)
  local text = checkhealth(child)
  has(text, 'program: ' .. H.binary)
  has(text, 'protocol 1')
  has(text, 'the options are valid')
  has(text, ('sandboxed in "%s": terminals and tools'):format(world.project))
  has(text, 'sandbox-sidecar.log')
  local doctor = vim.system({ H.binary, 'doctor' }, { text = true }):wait().stdout
  local count = 0
  for line in doctor:gmatch('[^\n]+') do
    local status, name = line:match('^(%l+) +([%l_]+)')
    if status == 'enforced' or status == 'degraded' or status == 'absent' then
      has(text, ('%s: %s'):format(name, status))
      count = count + 1
    end
  end
  H.eq(count >= 9, true)
  for fix in doctor:gmatch('\n +fix: ([^\n]+)') do
    has(text, fix)
  end
end

T['a missing program is an error with advice'] = function()
  local child = H.child(nil, { setup = { binary = '/nonexistent/sidecar' } })
  local text = checkhealth(child)
  has(text, 'the sidecar cannot start: "/nonexistent/sidecar" is not a program.')
  has(text, 'make build')
end

T['a program that is no sidecar is an error'] = function()
  local child = H.child(nil, { setup = { binary = '/bin/true' } })
  has(checkhealth(child), 'the sidecar ended (exit status 0)')
end

T['unknown options and invalid values are reported'] = function()
  local child = H.child(nil, { setup = { binry = 'x' } })
  has(checkhealth(child), 'unknown option "binry"')
  local wrong = H.child(nil, { setup = { log_level = 1 } })
  has(checkhealth(wrong), 'sandbox_sidecar.log_level')
end

T['settings without a sandbox, and problems in them, are reported'] = function()
  local child = H.child(H.world(H.settings_off))
  has(checkhealth(child), 'nothing is sandboxed in')
  local world = H.world('{ "terminal": { "sandbox": { "enabled": true, "nonsense": 1 } } }')
  has(checkhealth(H.child(world)), '"~/.config/sandbox-sidecar/settings.json":1:')
end

return T
