package messages

import (
	"path"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/rogpeppe/go-internal/txtar"
)

// exceptions are texts that break a rule for a reason. Each counts in one file,
// so that no other one can hide behind it.
var exceptions = []struct{ file, part, reason string }{}

func TestMessages_AreShortAndPlain(t *testing.T) {
	t.Parallel()
	used := make([]bool, len(exceptions))
	found := map[string]int{}
	for _, m := range collect(t) {
		found[path.Ext(m.file)]++
		broken := faults(m)
		for i, e := range exceptions {
			if len(broken) > 0 && m.file == e.file && strings.Contains(m.text, e.part) {
				used[i], broken = true, nil
			}
		}
		for _, fault := range broken {
			t.Errorf("%s:%d: %s\n\t(%s) %q", m.file, m.line, fault, m.where, m.text)
		}
	}
	for i, e := range exceptions {
		if !used[i] {
			t.Errorf("the exception for %q in %s is not needed any more", e.part, e.file)
		}
	}
	t.Logf("texts found: %v", found)
	for ext, least := range map[string]int{".go": 1000, ".ts": 100, ".lua": 60, ".json": 30} {
		if found[ext] < least {
			t.Errorf("%d texts in %s files, expected at least %d: the collector misses some", found[ext], ext, least)
		}
	}
}

func TestFaults_FindWhatIsBad(t *testing.T) {
	t.Parallel()
	archive, err := txtar.ParseFile("testdata/bad.txtar")
	if err != nil {
		t.Fatal(err)
	}
	long := strings.TrimSpace(strings.Repeat("much too long ", 8))
	files := fstest.MapFS{}
	for i, file := range archive.Files {
		archive.Files[i].Data = []byte(strings.ReplaceAll(string(file.Data), "LONG", long))
		files[file.Name] = &fstest.MapFile{Data: archive.Files[i].Data}
	}
	found, all := map[string]bool{}, 0
	for _, file := range archive.Files {
		wanted := map[int]string{}
		for i, line := range strings.Split(string(file.Data), "\n") {
			if _, want, has := strings.Cut(line, " want "); has {
				wanted[i+1] = want
			}
		}
		all += len(wanted)
		for _, m := range messagesOf(t, files, file.Name) {
			want := wanted[m.line]
			delete(wanted, m.line)
			got := faults(m)
			if want == "" && len(got) > 0 || want != "" && (len(got) != 1 || !strings.HasPrefix(got[0], want+": ")) {
				t.Errorf("%s:%d: %q: got %q, want %q", m.file, m.line, m.text, got, want)
			}
			found[want] = true
		}
		for line, want := range wanted {
			t.Errorf("%s:%d: no text found, want one that breaks %q", file.Name, line, want)
		}
	}
	for _, w := range wordings {
		if !found[w.name] {
			t.Errorf("nothing breaks the rule %q: the fixture is incomplete", w.name)
		}
	}
	if all == 0 {
		t.Error("the fixture is empty")
	}
}
