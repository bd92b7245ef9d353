package postgres

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// installation makes a folder with a server that says it has this version. The server is this test binary.
func installation(t *testing.T, name, version string) string {
	t.Helper()
	binary, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	dir = filepath.Join(dir, name, "bin")
	err = errors.Join(
		os.MkdirAll(dir, 0o755),
		os.WriteFile(filepath.Join(dir, "VERSION"), []byte(version), 0o644),
	)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"postgres", "initdb"} {
		out, err := exec.CommandContext(t.Context(), "cp", binary, filepath.Join(dir, name)).CombinedOutput()
		if err != nil {
			t.Fatalf("copy: %v: %s", err, out)
		}
	}
	return dir
}

// nothing is a search that finds nothing.
func nothing(t *testing.T) Search {
	t.Helper()
	return Search{Path: t.TempDir(), Globs: []string{}, CacheDir: t.TempDir(), Offline: true}
}

func find(t *testing.T, s Search) Programs {
	t.Helper()
	found, err := FindPrograms(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func TestProgramsOnPathComeFirstAndLinksAreFollowed(t *testing.T) {
	t.Parallel()
	onPath, packaged, s := installation(t, "15", "15.2"), installation(t, "17", "17.1"), nothing(t)
	if err := os.Symlink(filepath.Join(onPath, "postgres"), filepath.Join(s.Path, "postgres")); err != nil {
		t.Fatal(err)
	}
	s.Globs = []string{packaged}
	if got, want := find(t, s), (Programs{Dir: onPath, Version: "15.2", Major: 15}); got != want {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestNewestInstalledPackageIsTakenAndTooOldOnesAreNot(t *testing.T) {
	t.Parallel()
	nine, sixteen, eighteen := installation(t, "9", "9.6.24"), installation(t, "16", "16.4"), installation(t, "18", "18beta1")
	s := nothing(t)
	s.Path, s.Globs = nine, []string{nine, sixteen, eighteen}
	if got, want := find(t, s), (Programs{Dir: eighteen, Version: "18beta1", Major: 18}); got != want {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestVersionOfTheDataIsTakenThoughANewerOneIsThere(t *testing.T) {
	t.Parallel()
	s := nothing(t)
	s.Globs, s.Major = []string{installation(t, "18", "18.1"), installation(t, "16", "16.4")}, 16
	if got := find(t, s); got.Major != 16 {
		t.Errorf("got %v", got)
	}
}

func TestProgramsAreFoundWherePgConfigPoints(t *testing.T) {
	t.Parallel()
	s, there := nothing(t), installation(t, "custom", "17.0")
	script := "#!/bin/sh\necho '" + there + "'\n"
	writeProgram(t, filepath.Join(s.Path, "pg_config"), strings.NewReader(script))
	if got := find(t, s); got.Dir != there {
		t.Errorf("got %v", got)
	}
}

func TestWhatWasPassedOverIsNamedWithTheCommandsThatHelp(t *testing.T) {
	t.Parallel()
	s, old := nothing(t), installation(t, "14", "14.11")
	wrapper := filepath.Join(s.Path, "postgres")
	if err := os.WriteFile(wrapper, []byte("#!/bin/sh\nexec somewhere/postgres\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(s.Path, "initdb"), []byte("#!/bin/sh\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	s.Globs = []string{old}
	_, err := FindPrograms(t.Context(), s)
	if err == nil {
		t.Fatal("something was found")
	}
	for _, want := range []string{
		wrapper + " is a wrapper", old + " is version 14.11, too old", "npm client and there is none",
		"apt-get install postgresql", "brew install", "CRM_DATABASE_URL", "15 or newer",
	} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q is missing in: %v", want, err)
		}
	}
}
