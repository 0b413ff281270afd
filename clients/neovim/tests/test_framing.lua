local H = require('harness')
local framing = require('sandbox_sidecar.framing')

local T = H.set()

local function bodies(chunks)
  local decoder, found = framing.decoder(), {}
  for _, chunk in ipairs(chunks) do
    decoder:feed(chunk)
    while true do
      local body, err = decoder:next()
      if err then
        return found, err
      elseif not body then
        break
      end
      found[#found + 1] = body
    end
  end
  return found, nil, decoder:size()
end

local function message(body, header)
  return (header or 'Content-Length: %d\r\n\r\n'):format(#body) .. body
end

T['messages are decoded whole, however the stream is split'] = function()
  local want = { '{"a":1}', '', ('x'):rep(70), '{"b":"ü"}' }
  local stream = ''
  for _, body in ipairs(want) do
    stream = stream .. message(body)
  end
  for cut = 0, #stream do
    local got, err, left = bodies({ stream:sub(1, cut), stream:sub(cut + 1) })
    H.eq({ got, err, left }, { want, nil, 0 })
  end
  local single = {}
  for i = 1, #stream do
    single[i] = stream:sub(i, i)
  end
  H.eq({ bodies(single) }, { want, nil, 0 })
end

T['header names match in any case, and unknown headers are ignored'] = function()
  H.eq(
    bodies({ message('{}', 'content-LENGTH:%d\r\nContent-Type: x; charset=utf-8\r\n\r\n') }),
    { '{}' }
  )
end

T['an invalid stream is an error at once'] = function()
  for _, stream in ipairs({
    'Content-Length: x\r\n\r\n',
    'Content-Length: -1\r\n\r\n',
    'Content-Length: 1e3\r\n\r\n',
    'Something: 1\r\n\r\n',
    'Content-Length: 33554433\r\n\r\n',
    ('x'):rep(5000),
  }) do
    local got, err = bodies({ stream })
    H.eq({ got, type(err) }, { {}, 'string' })
  end
end

T['a long message in small chunks takes linear time'] = function()
  local body = ('y'):rep(8 * 1024 * 1024)
  local stream, chunks = message(body), {}
  for i = 1, #stream, 4096 do
    chunks[#chunks + 1] = stream:sub(i, i + 4095)
  end
  -- Quadratic work would copy 8 GiB here, and the test would time out.
  H.eq(#bodies(chunks)[1], #body)
end

T['an encoded message can be decoded'] = function()
  local text = framing.encode({ jsonrpc = '2.0', params = vim.empty_dict(), text = 'zwölf\0\n' })
  local body = bodies({ text })[1]
  H.eq(body:find('"params":{}', 1, true) ~= nil, true)
  H.eq(vim.json.decode(body).text, 'zwölf\0\n')
end

return T
