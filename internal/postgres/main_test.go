package postgres

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// This test binary also plays other programs: a server's program that tells its version, and programs that own a
// server and are killed.
func TestMain(m *testing.M) {
	if filepath.Base(os.Args[0]) == "postgres" {
		version, _ := os.ReadFile(filepath.Join(filepath.Dir(os.Args[0]), "VERSION"))
		fmt.Printf("postgres (PostgreSQL) %s\n", version)
		return
	}
	if role := os.Getenv("POSTGRES_TEST_ROLE"); role != "" {
		if err := playRole(role, os.Getenv("POSTGRES_TEST_DIR")); err != nil {
			fmt.Println("failed:", strings.ReplaceAll(err.Error(), "\n", " | "))
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// playRole prints one line when it is ready and then lives until its standard input ends.
func playRole(role, dir string) error {
	ctx := context.Background()
	switch role {
	case "owner of an embedded server":
		e, err := StartEmbedded(ctx, EmbeddedConfig{Dir: dir, Search: Search{Offline: true}})
		if err != nil {
			return err
		}
		fmt.Println("ready", e.DSN("postgres"))
		awaitEnd()
		return e.Stop(ctx)
	case "owner of a temporary server":
		e, err := StartTemporary(ctx, EmbeddedConfig{Dir: dir, Search: Search{Offline: true}})
		if err != nil {
			return err
		}
		fmt.Println("ready", e.Dir())
	case "owner of a watched process":
		cmd := owner{}.command(ctx, "/bin/sleep", "600")
		cmd.Dir = dir
		if err := cmd.Start(); err != nil {
			return err
		}
		if _, err := watch(ctx, cmd, ""); err != nil {
			return err
		}
		fmt.Println("ready", cmd.Process.Pid)
	case "migrator":
		fmt.Println("ready")
		_, err := Migrate(ctx, dir, HeldSchema(), nil)
		return err
	default:
		return fmt.Errorf("no role %q", role)
	}
	awaitEnd()
	return nil
}

func awaitEnd() { _, _ = os.Stdin.Read(make([]byte, 1)) }

// program is this test binary in a role, as a process of its own.
type program struct {
	cmd  *exec.Cmd
	said string // what its first line says after "ready"
	end  func() // ends it in an orderly way
}

// startProgram runs a role as user (the zero owner is the one running the tests) and waits until it is ready.
func startProgram(t *testing.T, role, dir string, user owner) program {
	t.Helper()
	binary, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	if user.switched { // go test keeps its binaries in a closed folder
		binary = copyProgram(t, binary)
	}
	cmd := user.command(t.Context(), binary)
	cmd.Dir = "/"
	cmd.Env = append(os.Environ(), "POSTGRES_TEST_ROLE="+role, "POSTGRES_TEST_DIR="+dir)
	cmd.Stderr = os.Stderr
	input, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	output, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	line, err := bufio.NewReader(output).ReadString('\n')
	said, ready := strings.CutPrefix(strings.TrimSpace(line), "ready")
	if err != nil || !ready {
		t.Fatalf("%s did not get ready: %q, %v", role, line, err)
	}
	return program{cmd: cmd, said: strings.TrimSpace(said), end: func() {
		_ = input.Close()
		if err := cmd.Wait(); err != nil {
			t.Errorf("%s did not end well: %v", role, err)
		}
	}}
}

func (p program) kill(t *testing.T) {
	t.Helper()
	if err := p.cmd.Process.Signal(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	_ = p.cmd.Wait()
}

func copyProgram(t *testing.T, path string) string {
	t.Helper()
	program, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = program.Close() }()
	there := filepath.Join(openDir(t), "program")
	writeProgram(t, there, program)
	return there
}

// writeProgram has another process write it. A file this process has written can't be run for as long as a child
// that a parallel test is just starting has a copy of the open file ("text file busy").
func writeProgram(t *testing.T, path string, content io.Reader) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "/bin/sh", "-c", `cat >"$1" && chmod 755 "$1"`, "sh", path)
	cmd.Stdin = content
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("write %s: %v: %s", path, err, out)
	}
}

// openDir is t.TempDir for folders that the server's user must enter, in memory if there is room.
func openDir(t *testing.T) string {
	t.Helper()
	parent, ok := memoryFolder()
	if !ok {
		parent = "/tmp"
	}
	dir, err := os.MkdirTemp(parent, "postgres-test-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	return dir
}

// ordinary is a user other than root. Only root can become one.
func ordinary(t *testing.T) owner {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("only root can run a program as another user; as an ordinary user the other cases cover it")
	}
	user, err := serverOwner("")
	if err != nil {
		t.Skip(err)
	}
	return user
}

// eventually is for what other processes do.
func eventually(t *testing.T, what string, done func() bool) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); !done(); {
		if pause(t.Context(), 10*time.Millisecond) != nil || time.Now().After(deadline) {
			t.Fatalf("not within 20 s: %s", what)
		}
	}
}
