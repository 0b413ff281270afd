package spawn

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/sandbox-sidecar/sandbox-sidecar/platform/platformtest"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform/policy"
)

// lateWriter is a sink that changes the project once it hears of the end.
type lateWriter struct {
	*recorder
	file   string
	review chan []Finding
}

func (w *lateWriter) Exited(exit Exit) {
	_ = os.WriteFile(w.file, nil, 0o600)
	w.recorder.Exited(exit)
}

func (w *lateWriter) Reviewed(findings []Finding) { w.review <- findings }

// The end is reported before the review, which may take long: what changes
// between them is in it.
func TestSession_TheEndIsReportedBeforeTheReview(t *testing.T) {
	t.Parallel()
	s := newFixture(t, &platformtest.Fake{})
	request := s.line("true")
	request.Policy = policy.Policy{Restricted: true, Project: s.dir}
	session, err := s.Start(t.Context(), request)
	if err != nil {
		t.Fatal(err)
	}
	w := &lateWriter{newRecorder(), filepath.Join(s.dir, "Makefile"), make(chan []Finding, 1)}
	session.Begin(w, nil)
	if exit, _ := w.end(t); exit != (Exit{}) {
		t.Errorf("%+v", exit)
	}
	if got := <-w.review; len(got) != 1 || got[0].Path != w.file {
		t.Errorf("review: %+v", got)
	}
	if _, err := session.Close(t.Context(), 0); err != nil {
		t.Error(err)
	}
	if got := session.Findings(); len(got) != 1 {
		t.Errorf("after the end: %+v", got)
	}
}
