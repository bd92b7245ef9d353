package licences

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write docs/licences.md anew")

const document = "../../docs/licences.md"

const head = `# Licences of what the programs are made of

Every module that is linked into a program of ` + "`cmd/`" + `, by the licence in its own source. ` + "`make licences`" + ` writes this list anew, and a test
(` + "`internal/licences`" + `) fails if a module is missing here, or has a licence that is not among these.

Of these MPL-2.0 asks for something in return: changes of its own files have to be published. None is changed here. Licences that
reach further (GPL, LGPL, AGPL and their like) are not taken.

| module | licence |
|---|---|
`

// allowed are the licences that somebody has decided on.
var allowed = []string{"Apache-2.0", "BSD-2-Clause", "BSD-3-Clause", "ISC", "MIT", "MPL-2.0"}

func TestEveryModuleOfAProgramHasALicenceThatIsTakenAndIsListed(t *testing.T) {
	t.Parallel()
	list := exec.CommandContext(t.Context(), "go", "list", "-deps", "-f", "{{with .Module}}{{if not .Main}}{{.Path}}|{{.Dir}}{{end}}{{end}}", "./cmd/...")
	list.Dir, list.Stderr = "../..", os.Stderr
	out, err := list.Output()
	if err != nil {
		t.Fatal(err)
	}
	modules := slices.Compact(slices.Sorted(strings.SplitSeq(strings.TrimSpace(string(out)), "\n")))
	var rows strings.Builder
	found := 0
	for _, module := range modules {
		path, dir, isModule := strings.Cut(module, "|")
		if !isModule {
			continue
		}
		found++
		licence := licenceOf(t, dir)
		if !slices.Contains(allowed, licence) {
			t.Errorf("%s has the licence %s: somebody has to decide", path, licence)
		}
		fmt.Fprintf(&rows, "| %s | %s |\n", path, licence)
	}
	if found < 20 {
		t.Fatalf("only %d modules were found", found)
	}
	want := head + rows.String()
	if *update {
		if err := os.WriteFile(document, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(document)
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != want {
		t.Error("docs/licences.md is not what the programs are made of: run make licences, and look at what has changed")
	}
}

var licenceFile = regexp.MustCompile(`(?i)^(licen[cs]e|copying)([.-].*)?$`)

func licenceOf(t *testing.T, dir string) string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		if entry.IsDir() || !licenceFile.MatchString(entry.Name()) {
			continue
		}
		text, err := os.ReadFile(filepath.Join(dir, entry.Name()))
		if err != nil {
			t.Fatal(err)
		}
		if name := nameOf(string(text)); name != "" {
			return name
		}
	}
	return "unknown"
}

// nameOf tells a licence by sentences that only it has. Copyleft comes first: a text that has both is not taken.
func nameOf(text string) string {
	text = strings.Join(strings.Fields(strings.NewReplacer("*", " ", "#", " ", "/", " ").Replace(text)), " ")
	switch has := func(words string) bool { return strings.Contains(text, words) }; {
	case has("GNU AFFERO GENERAL PUBLIC LICENSE"), has("GNU GENERAL PUBLIC LICENSE Version"), has("GNU LESSER GENERAL PUBLIC LICENSE Version"), has("Server Side Public License"):
		return "copyleft"
	case has("Mozilla Public License Version 2.0"), has("Mozilla Public License, version 2.0"), has("Mozilla Public License, v. 2.0"):
		return "MPL-2.0"
	case has("Apache License Version 2.0"):
		return "Apache-2.0"
	case has("Redistribution and use in source and binary forms") && (has("Neither the name") || has("endorse or promote")):
		return "BSD-3-Clause"
	case has("Redistribution and use in source and binary forms"):
		return "BSD-2-Clause"
	case has("Permission is hereby granted, free of charge, to any person obtaining a copy"):
		return "MIT"
	case has("Permission to use, copy, modify, and or distribute this software"), has("Permission to use, copy, modify, and distribute this software"):
		return "ISC"
	}
	return ""
}

// The test of the test.
func TestCopyleftIsTold(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"GNU GENERAL PUBLIC LICENSE\n   Version 3, 29 June 2007": "copyleft", "MIT License\nPermission is hereby granted, free of charge, to any\nperson obtaining a copy": "MIT",
		"All rights reserved.": "", "   GNU AFFERO GENERAL PUBLIC LICENSE": "copyleft",
	} {
		if got := nameOf(text); got != want {
			t.Errorf("%q is told as %q", text, got)
		}
	}
}
