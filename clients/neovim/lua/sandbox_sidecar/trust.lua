---Trust in a project's settings. Untrusted settings can only tighten the user's
---own. The user sees every further request before the question, and trusts
---exactly the content that was shown.
local display = require('sandbox_sidecar.display')
local notify = require('sandbox_sidecar.notify')
local project = require('sandbox_sidecar.project')
local protocol = require('sandbox_sidecar.protocol_gen')
local sidecar = require('sandbox_sidecar.sidecar')
local view = require('sandbox_sidecar.view')

local methods = protocol.methods

local M = {}

local notified = {} ---@type table<string, true> Digests of reported contents.

---Notifies the user once per content that requests more than it gets.
---@param status sandbox_sidecar.Project
function M.notify_once(status)
  if status.exists and not status.trusted and #status.asks > 0 and not notified[status.digest] then
    notified[status.digest] = true
    notify.warn(status.message .. ' See ":Sidecar trust".')
  end
end

---Checks the project of a directory, and reports its requests.
---@param dir string
function M.check(dir)
  sidecar.request(methods.project_status, { projectDir = dir }, function(_, status)
    if status then
      M.notify_once(status)
    end
  end)
end

---@param status sandbox_sidecar.Project
local function trust(status)
  notify.expect_change()
  sidecar.request(
    methods.project_trust,
    { projectDir = status.projectDir, digest = status.digest },
    function(err)
      if err then
        notify.error(notify.describe(err))
      else
        notify.info(('%s is trusted'):format(display.path(status.file)))
      end
    end
  )
end

---Shows requests in a window, one per line, starting with the request number
---from, as many as fit.
---@param asks sandbox_sidecar.Ask[]
---@param from integer
---@return integer win
---@return integer to
local function show_asks(asks, from)
  local lines, rows, to = {}, 0, from - 1
  -- The question needs space below the window.
  local most = math.max(vim.o.lines - 14, 3)
  for i = from, #asks do
    local line = display.line(asks[i].message)
    local height = math.max(1, math.ceil(vim.fn.strdisplaywidth(line) / vim.o.columns))
    if rows > 0 and rows + height > most then
      break
    end
    lines[#lines + 1], rows, to = line, rows + height, i
  end
  if #asks == 0 then
    lines, rows = { 'nothing beyond your own settings' }, 1
  end
  local win = view.lines('trust', lines, { split = 'topleft' })
  for option, value in pairs({ wrap = true, list = false, number = false, relativenumber = false }) do
    vim.wo[win][option] = value
  end
  vim.wo[win].signcolumn, vim.wo[win].foldcolumn, vim.wo[win].winfixheight = 'no', '0', true
  vim.api.nvim_win_set_height(win, rows)
  vim.cmd.redraw()
  return win, to
end

---Asks about one page of requests. Only the last page offers to trust, and the
---first choice never does.
---@param status sandbox_sidecar.Project
---@param from integer
local function ask_page(status, from)
  local win, to = show_asks(status.asks, from)
  local count = #status.asks
  local choices = {
    'Do not trust',
    'View the file',
    to < count and 'Show more' or 'Trust this content',
  }
  local prompt = ('Trust %s? Its requests are shown above%s.'):format(
    display.path(status.file),
    (from > 1 or to < count) and (', %d to %d of %d'):format(from, to, count) or ''
  )
  view.choose(choices, { prompt = prompt, kind = 'sandbox_sidecar.trust' }, function(choice)
    pcall(vim.api.nvim_win_close, win, true)
    if choice == choices[2] then
      view.file('split', status.file)
    elseif choice == choices[3] and to < count then
      ask_page(status, to + 1)
    elseif choice == choices[3] then
      trust(status)
    end
  end)
end

---Shows what the project's settings request, and asks whether to trust them.
---@param dir? string Default: the current project.
function M.ask(dir)
  sidecar.request(
    methods.project_status,
    { projectDir = dir or project.current() },
    function(err, status)
      if err then
        notify.error(notify.describe(err))
      elseif not status.exists or status.problem then
        notify.error(status.message)
      elseif status.trusted then
        notify.info(status.message)
      else
        local ok, problem = pcall(ask_page, status, 1)
        if not ok then
          notify.error(('trust: %s'):format(problem))
        end
      end
    end
  )
end

---@param dir? string Default: the current project.
function M.withdraw(dir)
  sidecar.request(
    methods.project_untrust,
    { projectDir = dir or project.current() },
    function(err, status)
      if err then
        notify.error(notify.describe(err))
      else
        notify.info(('%s is not trusted'):format(display.path(status.file)))
      end
    end
  )
end

return M
