import socket

listener = socket.create_server(("127.0.0.1", 0))
client = socket.create_connection(listener.getsockname(), 10)
server, _ = listener.accept()
server.sendall(b"x")
assert client.recv(1) == b"x"
