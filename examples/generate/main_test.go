package main

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
)

func TestTheCheckedInExamplesAreWhatIsGenerated(t *testing.T) {
	t.Parallel()
	files, err := generate()
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range files {
		got, err := os.ReadFile(filepath.Join("..", name))
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(want, got) {
			t.Errorf("%s is not what the generator writes; run go generate ./examples", name)
		}
	}
}
