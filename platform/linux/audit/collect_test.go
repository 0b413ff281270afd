package audit

import (
	"reflect"
	"strings"
	"testing"
	"time"
)

// callRecord is a syscall record of Linux 7.3.
func callRecord(serial, call string) string {
	return "audit(1795277761.128:" + serial + "): arch=c000003e " + call +
		" items=0 ppid=1 pid=94 auid=4294967295 uid=0 gid=0 euid=0 suid=0 " +
		`fsuid=0 egid=0 sgid=0 fsgid=0 tty=(none) ses=4294967295 comm="init" exe="/init" subj=unconfined key=(null)`
}

// The records are those of Linux 7.3.
func TestCollector_JoinsRecords(t *testing.T) {
	t.Parallel()
	const domain = 0x1fe89312d
	openat := Call{Arch: 0xc000003e, Number: 257, Args: [4]uint64{0xffffffffffffff9c, 0x397296ede0d0, 0x80000, 0x1a4}}
	const openatText = "syscall=257 success=no exit=-13 a0=ffffffffffffff9c a1=397296ede0d0 a2=80000 a3=1a4"
	for name, test := range map[string]struct {
		access []string
		call   string
		want   []Denial
	}{
		"a file": {
			access: []string{`domain=1fe89312d blockers=fs.read_file path="/secret" dev="rootfs" ino=7`},
			call:   openatText, want: []Denial{{Blockers: []string{"fs.read_file"}, Path: "/secret", Call: openat}},
		},
		"a name with a blank": {
			access: []string{`domain=1fe89312d blockers=fs.read_file path=2F73652063726574 dev="rootfs" ino=9`},
			call:   openatText,
			want:   []Denial{{Blockers: []string{"fs.read_file"}, Path: "/se cret", Call: openat}},
		},
		"a name that is no text": {
			access: []string{`domain=1fe89312d blockers=fs.read_file path=2F7365226372FF6574 dev="rootfs" ino=10`},
			call:   openatText,
			want:   []Denial{{Blockers: []string{"fs.read_file"}, Path: "/se\"cr\xffet", Call: openat}},
		},
		"a directory": {
			access: []string{`domain=1fe89312d blockers=fs.read_dir path="/d" dev="rootfs" ino=11`}, call: openatText,
			want: []Denial{{Blockers: []string{"fs.read_dir"}, Path: "/d", Call: openat}},
		},
		"two rights": {
			access: []string{`domain=1fe89312d blockers=fs.write_file,fs.read_file path="/secret" dev="rootfs" ino=7`},
			call:   openatText,
			want:   []Denial{{Blockers: []string{"fs.write_file", "fs.read_file"}, Path: "/secret", Call: openat}},
		},
		"two paths": {
			access: []string{
				`domain=1fe89312d blockers=fs.remove_file,fs.refer path="/" dev="rootfs" ino=1`,
				`domain=1fe89312d blockers=fs.make_reg,fs.refer path="/d" dev="rootfs" ino=11`,
			},
			call: "syscall=264 success=no exit=-13 a0=1 a1=2 a2=3 a3=4",
			want: []Denial{
				{
					Blockers: []string{"fs.remove_file", "fs.refer"}, Path: "/",
					Call: Call{0xc000003e, 264, [4]uint64{1, 2, 3, 4}},
				},
				{
					Blockers: []string{"fs.make_reg", "fs.refer"}, Path: "/d",
					Call: Call{0xc000003e, 264, [4]uint64{1, 2, 3, 4}},
				},
			},
		},
		"a signal": {
			access: []string{`domain=1fe89312d blockers=scope.signal opid=1 ocomm="init"`},
			call:   "syscall=62 success=no exit=-1 a0=1 a1=f a2=0 a3=0",
			want: []Denial{{
				Blockers: []string{"scope.signal"}, Peer: 1, Call: Call{0xc000003e, 62, [4]uint64{1, 15}},
			}},
		},
		"an abstract socket": {
			access: []string{"domain=1fe89312d blockers=scope.abstract_unix_socket path=00616273"},
			call:   "syscall=42 success=no exit=-1 a0=3 a1=397296f2e110 a2=6 a3=0",
			want: []Denial{{
				Blockers: []string{"scope.abstract_unix_socket"}, Path: "\x00abs",
				Call: Call{0xc000003e, 42, [4]uint64{3, 0x397296f2e110, 6}},
			}},
		},
		"a socket": {
			access: []string{`domain=1fe89312d blockers=fs.resolve_unix path="/sock" dev="rootfs" ino=12`},
			call:   "syscall=42 success=no exit=-13 a0=3 a1=1 a2=8 a3=0",
			want: []Denial{{
				Blockers: []string{"fs.resolve_unix"}, Path: "/sock",
				Call: Call{0xc000003e, 42, [4]uint64{3, 1, 8}},
			}},
		},
		"without a domain": {access: []string{`blockers=fs.read_file path="/secret"`}, call: openatText},
		"without a reason": {access: []string{`domain=1fe89312d path="/secret"`}, call: openatText},
		"with half a path": {
			access: []string{`domain=1fe89312d blockers=fs.read_file path="/sec`}, call: openatText,
		},
		"with a path unquoted": {
			access: []string{"domain=1fe89312d blockers=fs.read_file path=/secret"}, call: openatText,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := collector{pending: map[uint64]*pendingCall{}}
			for _, access := range test.access {
				refused := parsed(t, kindAccess, "audit(1795277761.128:8): "+access)
				if pushed := g.access(refused, time.Now()); pushed != nil {
					t.Errorf("reported at once: %+v", pushed)
				}
			}
			g.call(parsed(t, kindSyscall, callRecord("7", test.call))) // another call's
			g.call(parsed(t, kindSyscall, callRecord("8", test.call)))
			for i := range test.want {
				test.want[i].PID, test.want[i].Process, test.want[i].domain = 94, "init", domain
			}
			if got := g.end(8); !reflect.DeepEqual(got, test.want) {
				t.Errorf("got  %+v\nwant %+v", got, test.want)
			}
			if left := g.overdue(time.Now(), true); left != nil || len(g.pending) != 0 {
				t.Errorf("left: %+v, %d pending", left, len(g.pending))
			}
		})
	}
}

func parsed(t *testing.T, kind uint16, line string) record {
	t.Helper()
	r, ok := parse(kind, line)
	if !ok {
		t.Fatalf("not parsed as a record: %s", line)
	}
	return r
}

func TestConfined_ReadsTheProcessOfADomain(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		line string
		want int
	}{
		{`domain=1fe89312d status=allocated mode=enforcing pid=94 uid=0 exe="/init" comm="init"`, 94},
		{"domain=1fe89312d status=deallocated denials=66", 0},
		{"status=allocated pid=94", 0},
		{"domain=1fe89312d status=allocated", 0},
	} {
		domain, pid, ok := confined(parsed(t, kindDomain, "audit(1795277761.040:7): "+test.line))
		if ok != (test.want != 0) || ok && (pid != test.want || domain != 0x1fe89312d) {
			t.Errorf("%s: %x %d %t", test.line, domain, pid, ok)
		}
	}
}

// Without syscall records nothing says that a call has ended. A flood of
// records takes bounded memory.
func TestCollector_IsBounded(t *testing.T) {
	t.Parallel()
	now := time.Now()
	g := collector{pending: map[uint64]*pendingCall{}}
	lone := record{kind: kindAccess, serial: 1, fields: `domain=1 blockers=fs.read_file path="/x"`}
	g.access(lone, now)
	if early := g.overdue(now.Add(timeout/2), false); early != nil {
		t.Errorf("reported too early: %+v", early)
	}
	if late := g.overdue(now.Add(timeout), false); len(late) != 1 || late[0].PID != 0 || late[0].Path != "/x" {
		t.Errorf("reported late: %+v", late)
	}
	for range 10 * maxPerCall {
		g.access(lone, now)
	}
	if all := g.end(1); len(all) != maxPerCall {
		t.Errorf("%d denials of one call are kept", len(all))
	}
	pushed := 0
	for serial := range uint64(10 * maxPending) {
		lone.serial = serial
		pushed += len(g.access(lone, now))
	}
	if pushed != 9*maxPending || len(g.pending) != maxPending || len(g.order) != maxPending {
		t.Errorf("%d pushed out, %d pending in an order of %d", pushed, len(g.pending), len(g.order))
	}
}

// Parsing any line ends, and yields at most one denial.
func FuzzRecord(f *testing.F) {
	f.Add(uint16(kindAccess),
		`audit(1795277761.128:8): domain=1fe89312d blockers=fs.read_file path=2F73652063726574 dev="rootfs" ino=9`)
	f.Add(uint16(kindDomain),
		`audit(1795277761.040:7): domain=1fe89312d status=allocated mode=enforcing pid=94 uid=0 exe="/init" comm="init"`)
	f.Add(uint16(kindSyscall), callRecord("8", "syscall=62 success=no exit=-1 a0=1 a1=f a2=0 a3=0"))
	f.Add(uint16(kindEnd), "audit(1795277761.128:8): ")
	f.Add(uint16(kindAccess), `audit(0:0): = == "path=" path=" domain=`)
	f.Fuzz(func(t *testing.T, kind uint16, line string) {
		r, ok := parse(kind, line)
		if !ok {
			return
		}
		g := collector{pending: map[uint64]*pendingCall{}}
		g.access(r, time.Now())
		g.call(r)
		confined(r)
		for _, denial := range g.end(r.serial) {
			if denial.domain == 0 || len(denial.Blockers) == 0 || strings.Contains(denial.Blockers[0], " ") ||
				denial.PID < 0 {
				t.Errorf("%q: %+v", line, denial)
			}
		}
		if len(g.pending) != 0 {
			t.Errorf("%q: denials are left", line)
		}
	})
}
