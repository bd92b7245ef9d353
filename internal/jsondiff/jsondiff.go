// Package jsondiff says where two JSON texts differ. Both sides use it, each on requests of its own.
package jsondiff

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strconv"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// MaxDifferences bounds what Differences gives: more would not tell a person more.
const MaxDifferences = 50

// Differences gives the JSON pointers (RFC 6901) of the places at which two canonical JSON texts differ, in the order
// of the text, at most MaxDifferences. It gives places only, never values: who asks may not be allowed to see the
// other request. It fails if one of the texts is not JSON.
func Differences(canonicalA, canonicalB []byte) ([]string, error) {
	w := walk{pointers: []string{}}
	if err := w.compare("", canonicalA, canonicalB); err != nil {
		return nil, fmt.Errorf("compare two JSON texts: %w", err)
	}
	return w.pointers, nil
}

type walk struct{ pointers []string }

func (w *walk) compare(at jsontext.Pointer, a, b jsontext.Value) error {
	switch {
	case len(w.pointers) == MaxDifferences || bytes.Equal(a, b):
		return nil
	case a.Kind() == '{' && b.Kind() == '{':
		return w.compareObjects(at, a, b)
	case a.Kind() == '[' && b.Kind() == '[':
		return w.compareArrays(at, a, b)
	}
	w.pointers = append(w.pointers, string(at))
	return nil
}

func (w *walk) compareObjects(at jsontext.Pointer, a, b jsontext.Value) error {
	var membersA, membersB map[string]jsontext.Value
	if err := unmarshalBoth(a, b, &membersA, &membersB); err != nil {
		return err
	}
	names := maps.Clone(membersA)
	maps.Copy(names, membersB)
	for _, name := range slices.Sorted(maps.Keys(names)) {
		if err := w.compare(at.AppendToken(name), membersA[name], membersB[name]); err != nil {
			return err
		}
	}
	return nil
}

func (w *walk) compareArrays(at jsontext.Pointer, a, b jsontext.Value) error {
	var itemsA, itemsB []jsontext.Value
	if err := unmarshalBoth(a, b, &itemsA, &itemsB); err != nil {
		return err
	}
	for i := range max(len(itemsA), len(itemsB)) {
		err := w.compare(at.AppendToken(strconv.Itoa(i)), item(itemsA, i), item(itemsB, i))
		if err != nil {
			return err
		}
	}
	return nil
}

// item is the value at i, or none, which differs from every value.
func item(items []jsontext.Value, i int) jsontext.Value {
	if i < len(items) {
		return items[i]
	}
	return nil
}

func unmarshalBoth(a, b jsontext.Value, intoA, intoB any) error {
	if err := json.Unmarshal(a, intoA); err != nil {
		return err
	}
	return json.Unmarshal(b, intoB)
}
