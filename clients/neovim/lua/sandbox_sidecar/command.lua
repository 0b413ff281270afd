---The command |:Sidecar|. Each subcommand is a row of the table below.
---Completion and the test of the help read the table, too.
local display = require('sandbox_sidecar.display')
local notify = require('sandbox_sidecar.notify')
local project = require('sandbox_sidecar.project')
local view = require('sandbox_sidecar.view')

local M = {}

---@class sandbox_sidecar.Subcommand
---The last parameter is the arguments as typed.
---@field run fun(args: string[], command: vim.api.keyset.create_user_command.command_args, line: string)
---@field complete? fun(lead: string, position: integer): string[] Candidates at a position; the first argument is 1.
---@field arguments string For the usage message.
---@field max_args integer The most arguments it takes.

---@param lead string
---@param list string[]
---@return string[]
local function matching(lead, list)
  return vim.tbl_filter(function(item)
    return vim.startswith(item, lead)
  end, list)
end

---Shows the output of the program.
---@param args string[]
---@param mods vim.api.keyset.cmd.mods
local function show_output(args, mods)
  local path, err = require('sandbox_sidecar.binary').find()
  if not path then
    return notify.error(err --[[@as string]])
  end
  vim.system(
    require('sandbox_sidecar.wrap').mark(vim.list_extend({ path }, args)),
    { text = true },
    vim.schedule_wrap(function(done)
      -- Plugins that replace vim.system() may return only one of them.
      local text = (done.stdout or '') .. (done.stderr or '')
      view.lines(args[1], display.lines(vim.trim(text)), mods)
    end)
  )
end

---@return string[]
local function settings_flags()
  local path = require('sandbox_sidecar.config').get().settings_path
  return path and { '--settings', path } or {}
end

---@param mods vim.api.keyset.cmd.mods
---@return boolean # Whether the user said where the window opens.
local function placed(mods)
  return mods.vertical or mods.horizontal or mods.tab >= 0 or mods.split ~= ''
end

---@return string
local function user_settings()
  local config = require('sandbox_sidecar.config').get().settings_path
  local base = vim.env.XDG_CONFIG_HOME
  base = base and base ~= '' and base or vim.fs.normalize('~/.config')
  return config or vim.fs.joinpath(base, 'sandbox-sidecar', 'settings.json')
end

---@type table<string, sandbox_sidecar.Subcommand>
M.subcommands = {
  terminal = {
    arguments = '[command]',
    max_args = math.huge,
    run = function(_, command, line)
      require('sandbox_sidecar.terminal').open({
        cmd = line ~= '' and line or nil,
        mods = command.smods,
      })
    end,
    complete = function(lead)
      return vim.fn.getcompletion(lead, 'shellcmd')
    end,
  },
  exec = {
    arguments = '[command]',
    max_args = math.huge,
    run = function(_, command, line)
      local shell = require('sandbox_sidecar.config').get().shell
        or { require('sandbox_sidecar.confine').own_shell() or '/bin/sh' }
      if placed(command.smods) then
        vim.cmd.new({ mods = command.smods })
      end
      require('sandbox_sidecar.wrap').terminal(line ~= '' and { '/bin/sh', '-c', line } or shell)
    end,
    complete = function(lead)
      return vim.fn.getcompletion(lead, 'shellcmd')
    end,
  },
  policy = {
    arguments = '[terminal|tool]',
    max_args = 1,
    run = function(args, command)
      show_output(
        vim.list_extend(
          { 'policy', '--project', project.current(), '--kind', args[1] or 'terminal' },
          settings_flags()
        ),
        command.smods
      )
    end,
    complete = function(lead)
      return matching(lead, { 'terminal', 'tool' })
    end,
  },
  explain = {
    arguments = '{read|write|execute|connect_unix|connect|bind|sign} {target}',
    max_args = 2,
    run = function(args, command)
      if #args < 2 then
        return notify.error('usage: :Sidecar explain ' .. M.subcommands.explain.arguments)
      end
      local flags = vim.list_extend({ '--project', project.current() }, settings_flags())
      show_output(
        vim.list_extend(vim.list_extend({ 'explain' }, flags), { args[1], args[2] }),
        command.smods
      )
    end,
    complete = function(lead, position)
      if position == 1 then
        return matching(
          lead,
          { 'bind', 'connect', 'connect_unix', 'execute', 'read', 'sign', 'write' }
        )
      end
      return vim.fn.getcompletion(lead, 'file')
    end,
  },
  trust = {
    arguments = '[directory]',
    max_args = 1,
    run = function(args)
      require('sandbox_sidecar.trust').ask(args[1] and project.absolute(args[1]))
    end,
    complete = function(lead)
      return vim.fn.getcompletion(lead, 'dir')
    end,
  },
  untrust = {
    arguments = '[directory]',
    max_args = 1,
    run = function(args)
      require('sandbox_sidecar.trust').withdraw(args[1] and project.absolute(args[1]))
    end,
    complete = function(lead)
      return vim.fn.getcompletion(lead, 'dir')
    end,
  },
  denials = {
    arguments = '',
    max_args = 0,
    run = function(_, command)
      view.lines('denials', require('sandbox_sidecar.denials').lines(), command.smods)
    end,
  },
  allow = {
    arguments = '',
    max_args = 0,
    run = function()
      require('sandbox_sidecar.denials').pick()
    end,
  },
  review = {
    arguments = '',
    max_args = 0,
    run = function(_, command)
      view.lines('review', require('sandbox_sidecar.review').lines(), command.smods)
    end,
  },
  port = {
    arguments = '{port} [local port]',
    max_args = 2,
    run = function(args, command)
      local port = require('sandbox_sidecar.port')
      local inside, here = port.parse(args[1]), port.parse(args[2])
      if not inside or (args[2] and not here) then
        return notify.error('usage: :Sidecar port ' .. M.subcommands.port.arguments)
      end
      port.open(inside, here, command.bang)
    end,
  },
  ['end'] = {
    arguments = '',
    max_args = 0,
    run = function()
      require('sandbox_sidecar.groups').close()
    end,
  },
  audit = {
    arguments = '[since]',
    max_args = 1,
    run = function(args, command)
      local line = { 'audit', '--since', args[1] or '7d' }
      if not command.bang then
        vim.list_extend(line, { '--project', project.current() })
      end
      show_output(vim.list_extend(line, settings_flags()), command.smods)
    end,
    complete = function(lead)
      return matching(lead, { '1h', '7d' })
    end,
  },
  doctor = {
    arguments = '',
    max_args = 0,
    run = function(_, command)
      show_output({ 'doctor' }, command.smods)
    end,
  },
  enable = {
    arguments = '[both|tool|terminal]',
    max_args = 1,
    run = function(args)
      local enable = require('sandbox_sidecar.enable')
      if args[1] and not vim.tbl_contains(enable.kinds, args[1]) then
        return notify.error('usage: :Sidecar enable [both|tool|terminal]')
      end
      enable.run(args[1])
    end,
    complete = function(lead)
      return matching(lead, require('sandbox_sidecar.enable').kinds)
    end,
  },
  confine = {
    arguments = '',
    max_args = 0,
    run = function(_, command)
      local confine = require('sandbox_sidecar.confine')
      if command.bang then
        confine.stop()
      else
        confine.start()
      end
    end,
  },
  settings = {
    arguments = '[user|project]',
    max_args = 1,
    run = function(args, command)
      local path = user_settings()
      if args[1] == 'project' then
        path = vim.fs.joinpath(project.current(), '.zed', 'settings.json')
      elseif args[1] and args[1] ~= 'user' then
        return notify.error(
          ('settings: expected "user" or "project", found %s'):format(display.quote(args[1]))
        )
      end
      vim.fn.mkdir(vim.fs.dirname(path), 'p')
      if placed(command.smods) then
        view.file('split', path, command.smods)
      else
        view.file('edit', path)
      end
      -- Comments are allowed in the file.
      vim.bo.filetype = 'jsonc'
    end,
    complete = function(lead)
      return matching(lead, { 'project', 'user' })
    end,
  },
  log = {
    arguments = '',
    max_args = 0,
    run = function(_, command)
      local path = require('sandbox_sidecar.log').path()
      view.file('split', path, command.smods)
      vim.bo.autoread = true
      vim.cmd.normal({ 'G', bang = true })
    end,
  },
  restart = {
    arguments = '',
    max_args = 0,
    run = function()
      require('sandbox_sidecar.sidecar').restart()
    end,
  },
  reopen = {
    arguments = '',
    max_args = 0,
    run = function()
      if require('sandbox_sidecar.terminal').reopen() == 0 then
        notify.info('every ":Sidecar terminal" in a window uses the current settings.')
      end
    end,
  },
  close = {
    arguments = '',
    max_args = 0,
    run = function(_, command)
      local terminal = require('sandbox_sidecar.terminal')
      local open = command.bang and terminal.list() or { terminal.of() }
      if #open == 0 then
        return notify.error(
          'close: this buffer is not a sandboxed terminal. ":Sidecar! close" closes all of them.'
        )
      end
      for _, t in ipairs(open) do
        vim.api.nvim_buf_delete(t.buf, { force = true })
      end
    end,
  },
}

---@param command vim.api.keyset.create_user_command.command_args
function M.run(command)
  local args = vim.list_slice(command.fargs, 2)
  local name = command.fargs[1] or 'terminal'
  local subcommand = M.subcommands[name]
  if not subcommand then
    return notify.error(
      ('unknown subcommand %s. See ":help sandbox-sidecar-commands".'):format(display.quote(name))
    )
  end
  if #args > subcommand.max_args then
    return notify.error(('usage: :Sidecar %s %s'):format(name, subcommand.arguments))
  end
  local line = command.args:match('^%s*%S+%s+(.*)$') or ''
  local ok, err = pcall(subcommand.run, args, command, line)
  if not ok then
    notify.error(tostring(err))
  end
end

---@param lead string
---@param line string
---@param position integer Bytes before the cursor.
---@return string[]
function M.complete(lead, line, position)
  -- Modifiers and a range before the command are no arguments.
  local before = line:sub(1, position):match('Sidecar!?%s+(.*)$') or ''
  local words = vim.split(vim.trim(before:sub(1, #before - #lead)), '%s+', { trimempty = true })
  if #words == 0 then
    local names = matching(lead, vim.tbl_keys(M.subcommands))
    table.sort(names)
    return names
  end
  local subcommand = M.subcommands[words[1]]
  if not subcommand or not subcommand.complete or #words > subcommand.max_args then
    return {}
  end
  return subcommand.complete(lead, #words)
end

return M
