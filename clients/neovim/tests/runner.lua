-- Runs the named test files, or all, and ends the editor. The exit status is 1
-- if a test failed or none ran.
local tests = vim.env.TESTS
package.path = tests .. '/?.lua;' .. package.path
vim.opt.runtimepath:prepend(vim.fs.dirname(tests))
vim.opt.runtimepath:append(vim.env.SIDECAR_TOOLS .. '/neovim-newest/usr/share/neovim-mini.test')

-- Called from the command line, after the editor has started.
function _G.RunTests(files)
  local MiniTest = require('mini.test')
  local reporter = MiniTest.gen_reporter.stdout({ quit_on_finish = false })
  local finish = reporter.finish
  reporter.finish = function()
    finish()
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
  MiniTest.run()
end
