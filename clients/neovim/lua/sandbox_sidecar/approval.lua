---Asks the user about an access while the session waits, if the setting
---`on_denied` is "ask". One question is open at a time.
local display = require('sandbox_sidecar.display')
local notify = require('sandbox_sidecar.notify')
local protocol = require('sandbox_sidecar.protocol_gen')
local sidecar = require('sandbox_sidecar.sidecar')
local view = require('sandbox_sidecar.view')

---How long, in milliseconds, an answer is valid. The sidecar waits no longer.
local TIMEOUT = 60 * 1000

---In the order in which they are offered. A hasty key press picks the first.
---@type { decision: string, text: string }[]
local CHOICES = {
  { decision = 'deny', text = 'Do not allow' },
  { decision = 'once', text = 'Allow once' },
  { decision = 'session', text = 'Allow until the session ends' },
  { decision = 'directory', text = 'Allow all of %s until the session ends' },
  { decision = 'project', text = 'Allow in this project (written to its settings)' },
  { decision = 'user', text = 'Allow everywhere (written to your settings)' },
}

---@class sandbox_sidecar.Question
---@field id integer The request's.
---@field prompt string
---@field choices string[] The decisions that the sidecar accepts.
---@field directory string What "directory" opens, for display.
---@field asked integer The time of the request, by vim.uv.now().
---@field answer fun(result: any)
---@field withdrawn? boolean The program does not wait any more.
---@field windows? table<integer, true> The windows that the question has opened.

local waiting = {} ---@type sandbox_sidecar.Question[]
local open ---@type sandbox_sidecar.Question?

local ask

---@param question sandbox_sidecar.Question
---@param decision string
local function decide(question, decision)
  if question.withdrawn then
    if decision ~= 'deny' then
      notify.warn('nothing was allowed: the program no longer waits for your answer')
    end
    return -- withdraw has answered
  end
  if decision ~= 'deny' and vim.uv.now() - question.asked > TIMEOUT then
    notify.warn('the answer came too late, so the access was refused')
  end
  question.answer({ decision = decision })
end

---Whether a question may open now. In other modes a key that is meant for a
---program could answer it.
---@return boolean
local function accepts_keys()
  local mode = vim.api.nvim_get_mode()
  return (mode.mode == 'n' or mode.mode == 'nt') and not mode.blocking
end

local function next_question()
  while waiting[1] and vim.uv.now() - waiting[1].asked > TIMEOUT do
    decide(table.remove(waiting, 1), 'deny')
  end
  if not open and waiting[1] and accepts_keys() then
    ask(table.remove(waiting, 1))
  end
end

---Opens the question. The default of |vim.ui.select()| holds the main loop until
---a key is pressed, so a key ends it if the sidecar withdraws the question.
---@param question sandbox_sidecar.Question
---@param choose fun()
local function show(question, choose)
  local before = {}
  for _, window in ipairs(vim.api.nvim_list_wins()) do
    before[window] = true
  end
  local withdrawal = ('"method":"%s","params":{"id":%d}'):format(
    protocol.methods.cancel_request,
    question.id
  )
  local tail = ''
  sidecar.watch(function(data)
    local text = tail .. data
    tail = text:sub(-#withdrawal)
    if text:find(withdrawal, 1, true) then
      vim.api.nvim_input('q')
    end
  end)
  local ok, err = pcall(choose)
  sidecar.watch(nil)
  question.windows = {}
  for _, window in ipairs(vim.api.nvim_list_wins()) do
    if not before[window] then
      question.windows[window] = true
    end
  end
  if not ok then
    error(err, 0)
  end
end

---@param question sandbox_sidecar.Question
function ask(question)
  local offered = vim.tbl_filter(function(choice)
    return choice.decision == 'deny' or vim.tbl_contains(question.choices, choice.decision)
  end, CHOICES)
  open = question
  -- Keys typed before the question must not answer it.
  for _ = 1, 1000 do
    if vim.fn.getchar(0) == 0 then
      break
    end
  end
  show(question, function()
    view.choose(offered, {
      prompt = question.prompt,
      kind = 'sandbox_sidecar.approval',
      format_item = function(choice)
        return choice.text:format(question.directory)
      end,
    }, function(choice)
      if open == question then
        open = nil
      end
      decide(question, choice and choice.decision or 'deny')
      vim.schedule(next_question)
    end)
  end)
end

---Closes a question whose program does not wait any more.
---@param question sandbox_sidecar.Question
local function withdraw(question)
  question.answer({ decision = 'deny' })
  question.withdrawn = true
  if open == question then
    open = nil
    for window in pairs(question.windows or {}) do
      pcall(vim.api.nvim_win_close, window, true)
    end
  end
  vim.schedule(next_question)
end

sidecar.notifications[protocol.methods.cancel_request] = function(params)
  if open and open.id == params.id then
    return withdraw(open)
  end
  for i, question in ipairs(waiting) do
    if question.id == params.id then
      return withdraw(table.remove(waiting, i))
    end
  end
end

sidecar.requests['sandbox/requestAccess'] = function(params, answer, id)
  local label = sidecar.label(params.sessionId)
  waiting[#waiting + 1] = {
    id = id,
    -- The sidecar has quoted the names in the messages.
    prompt = ('%s: %s Allow it?%s'):format(
      label,
      display.line(params.message),
      -- Two of the choices write this setting.
      params.suggestion and (' (setting: %s)'):format(display.line(params.suggestion.message)) or ''
    ),
    choices = params.choices,
    directory = display.quote(params.directory or ''),
    asked = vim.uv.now(),
    answer = answer,
  }
  if not accepts_keys() then
    notify.warn(('%s waits for your answer. Go to Normal mode.'):format(label))
  end
  next_question()
end

vim.api.nvim_create_autocmd('ModeChanged', {
  group = vim.api.nvim_create_augroup('sandbox_sidecar.approval', { clear = true }),
  pattern = { '*:n', '*:nt' },
  callback = vim.schedule_wrap(next_question),
})

-- Without a sidecar nobody waits for an answer.
table.insert(sidecar.on_change, function()
  if not sidecar.initialize_result() then
    waiting = {}
  end
end)

return {}
