-- Runs the named test files, or all, and ends the editor. The exit status is 1
-- if a test failed or none ran. If SIDECAR_EVENTS is set, it prints each result
-- as "go test -json" does, for tests/ci.
local tests = vim.env.TESTS
package.path = tests .. '/?.lua;' .. package.path
vim.opt.runtimepath:prepend(vim.fs.dirname(tests))
vim.opt.runtimepath:append(vim.env.SIDECAR_TOOLS .. '/neovim-newest/usr/share/neovim-mini.test')

-- Prints the result of a case, named by its file and its description.
local function print_events(case)
  local state, desc = case.exec.state, vim.deepcopy(case.desc)
  if not (state:match('^Fail') or state:match('^Pass')) then
    return -- it has not ended
  end
  local skipped = table.concat(case.exec.notes, '\n'):find('this machine lacks', 1, true)
  local action = state:match('^Fail') and 'fail' or skipped and 'skip' or 'pass'
  desc[1] = vim.fs.basename(desc[1])
  for _, arg in ipairs(case.args) do
    table.insert(desc, vim.inspect(arg))
  end
  local event = { Package = 'neovim', Test = table.concat(desc, ' | ') }
  local said = vim.list_extend(vim.list_extend({}, case.exec.fails), case.exec.notes)
  if #said > 0 then
    event.Action, event.Output = 'output', table.concat(said, '\n') .. '\n'
    io.stdout:write('\n' .. vim.json.encode(event) .. '\n')
  end
  event.Action, event.Output = action, nil
  io.stdout:write('\n' .. vim.json.encode(event) .. '\n')
  io.stdout:flush()
end

-- Called from the command line, after the editor has started.
function _G.RunTests(files)
  local MiniTest = require('mini.test')
  local reporter = MiniTest.gen_reporter.stdout({ quit_on_finish = false })
  local finish = reporter.finish
  if (vim.env.SIDECAR_EVENTS or '') ~= '' then
    reporter.update = function(number)
      print_events(MiniTest.current.all_cases[number])
    end
  end
  reporter.finish = function()
    local ok, why = pcall(finish)
    if not ok then
      io.stdout:write(('\nthe report failed: %s\n'):format(why))
    end
    local passed, failed = 0, 0
    for _, case in ipairs(MiniTest.current.all_cases) do
      if case.exec and case.exec.state:match('^Pass') then
        passed = passed + 1
      else
        failed = failed + 1
      end
    end
    local skipped = require('harness').skipped
    passed = passed - skipped
    if (vim.env.SIDECAR_EVENTS or '') ~= '' then
      local action = failed > 0 and 'fail' or 'pass'
      io.stdout:write('\n' .. vim.json.encode({ Action = action, Package = 'neovim' }) .. '\n')
    end
    io.stdout:write(('\n%d passed, %d failed, %d skipped\n'):format(passed, failed, skipped))
    vim.cmd((failed > 0 or passed == 0) and '1cquit' or 'qall!')
  end
  MiniTest.setup({
    collect = {
      find_files = function()
        if #files > 0 then
          return files
        end
        return vim.fn.sort(vim.fn.glob(tests .. '/test_*.lua', true, true))
      end,
    },
    execute = { reporter = reporter },
    silent = true,
  })
  local ok, why = xpcall(MiniTest.run, debug.traceback)
  if not ok then -- a file does not load
    io.stdout:write(('\n%s\n'):format(why))
    vim.cmd('1cquit')
  end
end
