local H = require('harness')

local T = H.set()

T['an hour of ordinary work causes at most three messages'] = function()
  H.require('filesystem')
  local world = H.world('{ "terminal": { "sandbox": { "enabled": true } } }', vim.env.ELSEWHERE)
  vim.fn.delete(world.project .. '/.git', 'rf')
  H.write(world.project .. '/main.c', 'int main(void) { return 0; }\n')
  H.write(world.home .. '/.gitconfig', '[user]\n\tname = Ada\n\temail = ada@example.org\n')
  -- A program that a session could replace would be told.
  local binary = world.root .. '/sandbox-sidecar'
  assert(vim.uv.fs_copyfile(H.binary, binary))
  local child = H.child(world, { setup = { binary = binary } })
  local buf = H.terminal(child)
  local lines = 0
  ---Runs a line, which must succeed. `keys` are typed once the screen matches.
  local function run(line, screen, keys)
    lines = lines + 1
    H.type_line(child, ('clear; %s; echo line %d: $?'):format(line, lines))
    if screen then
      H.wait(line, function()
        return H.text(child, buf):find(screen)
      end)
      child.type_keys(unpack(keys))
    end
    H.until_text(child, ('line %d: 0'):format(lines), buf)
  end
  run('git init -q -b main . && git add main.c && git commit -qm first')
  -- An editor and a monitor use the whole screen, and leave it.
  run('vim main.c', '\n~', { ':%s/0/0 + 0/', '<CR>', ':wq', '<CR>' })
  run('gcc -o main main.c && ./main')
  run('htop', 'F10 ?Quit', { 'q' })
  run("sh -c 'test -x main' && git commit -qam second && git log -p -1 | grep -q '0 + 0'")
  run('git init -q --bare r.git')
  run('git remote add origin "$PWD/r.git" && git push -qu origin main')
  run('ps >/dev/null && ls -la >/dev/null && env >/dev/null')
  run('git checkout -qb topic && git rebase -q main && git stash list')
  H.terminal(child)
  H.type_line(child, 'exit')
  H.until_true(child, '_G.t.status ~= nil')
  child.cmd('stopinsert | Sidecar! close')
  -- After the end of a later session, no report of the first can arrive.
  child.lua([[require('sandbox_sidecar').run('true'):wait()]])
  child.cmd('sleep 600m')
  local all = vim.tbl_map(function(message)
    return message.text
  end, child.lua_get('_G.notified'))
  H.eq({ #all <= 3, all }, { true, all })
end

return T
