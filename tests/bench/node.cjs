// Starts programs by node-pty. A line of JSON on stdin is an order:
//
//  {op: "start", id, argv, dir, frames}, {op: "write", id, data} or {op: "kill", id}
//
// With frames, output goes to stdout as lines of JSON, as an extension host
// would send it. Without, it is only counted. After the end of a program, a line
// gives the size of its output.
const pty = require(process.argv[2]);
const sessions = new Map();
const say = (message) => process.stdout.write(JSON.stringify(message) + "\n");
require("readline").createInterface({ input: process.stdin }).on("line", (line) => {
  const m = JSON.parse(line);
  if (m.op === "start") {
    const started = pty.spawn(m.argv[0], m.argv.slice(1), { cols: 80, rows: 24, cwd: m.dir, env: process.env });
    sessions.set(m.id, started);
    let bytes = 0;
    started.onData((data) => {
      if (m.frames) say({ id: m.id, data });
      else if (bytes === 0) say({ id: m.id, first: true });
      bytes += data.length;
    });
    started.onExit(() => {
      say({ id: m.id, exited: true, bytes });
      sessions.delete(m.id);
    });
  } else if (m.op === "write") sessions.get(m.id)?.write(m.data);
  else if (m.op === "kill") sessions.get(m.id)?.kill("SIGKILL");
}).on("close", () => process.exit(0));
say({ ready: true });
