-- What "make check" holds the Lua code to. "vim" is the only global, and nothing is ever written to the rest.
std = 'luajit'
cache = false
max_line_length = 140
read_globals = { 'vim' }
-- Options and variables of the editor are set by assignment.
globals = { 'vim.g', 'vim.b', 'vim.o', 'vim.go', 'vim.bo', 'vim.wo', 'vim.env' }
exclude_files = { 'lua/sandbox_sidecar/protocol_gen.lua' }
