package processtest

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"invoicebridge/internal/fleet"
)

// patience bounds every wait for another process; nothing is expected to come near it.
const patience = 60 * time.Second

// programs are built once for the test run.
var programs = sync.OnceValues(func() (fleet.Programs, error) {
	dir, err := os.MkdirTemp("", "processtest")
	if err != nil {
		return fleet.Programs{}, err
	}
	return fleet.Build(context.Background(), dir)
})

func TestMain(m *testing.M) {
	code := m.Run()
	if p, err := programs(); err == nil {
		_ = os.RemoveAll(p.Dir)
	}
	os.Exit(code)
}

func built(t testing.TB) fleet.Programs {
	t.Helper()
	p, err := programs()
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func binary(t testing.TB, name string) string {
	t.Helper()
	return filepath.Join(built(t).Dir, name)
}

// command runs a program to its end and gives what it wrote to standard output.
func command(t testing.TB, name string, env []string, args ...string) string {
	t.Helper()
	out, err := built(t).Command(t.Context(), name, env, args...)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// serve starts a program on a free port and returns once it listens. It is killed at the test's end.
func serve(t testing.TB, name string, env ...string) *fleet.Process {
	t.Helper()
	p, err := built(t).Serve(t.Context(), name, "127.0.0.1:0", env)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		p.Kill()
		if t.Failed() {
			t.Logf("log of %s:\n%s", name, p.Log())
		}
	})
	return p
}

// refused starts a program that must not serve, and gives what it says.
func refused(t testing.TB, name string, env ...string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, binary(t, name), "serve")
	cmd.Env = append(os.Environ(), env...)
	out, err := cmd.CombinedOutput()
	if err == nil || ctx.Err() != nil {
		t.Fatalf("%s serves: %s", name, out)
	}
	return string(out)
}

func wantText(t testing.TB, text, part string) {
	t.Helper()
	if !strings.Contains(text, part) {
		t.Errorf("%q is not in:\n%s", part, text)
	}
}
